"""LIME's image explainer by its own names: existing calls keep working, and the weights now add up."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.compat.lime_arguments import explain_labels, seed_from, settings_from, warn_without_effect
from anchorline.compat.lime_explanation import LimeExplanation
from anchorline.errors import MissingDependencyError, ParameterError, names_similar_keywords
from anchorline.explainer import Explainer
from anchorline.facts import Fact
from anchorline.spaces.image import Image

_ALL = 100_000  # LIME's default number of regions, which stands for all of them


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LimeImageExplanation(LimeExplanation):
    """Explanations of one image by label; ``segments`` are the numbers of the pixels' regions, as in LIME."""

    image: np.ndarray
    segments: np.ndarray

    def _number(self, fact: Fact) -> int:
        return int(fact.column.removeprefix("region "))

    def get_image_and_mask(
        self,
        label: int,
        positive_only: bool = True,
        negative_only: bool = False,
        hide_rest: bool = False,
        num_features: int = 5,
        min_weight: float = 0.0,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the image with the regions of a label, and a mask for `skimage.segmentation.mark_boundaries`."""
        if positive_only and negative_only:
            raise ParameterError("positive_only and negative_only are both True. Set one of them to False.")
        self._explanation(label)  # raises if the label was not explained
        weights = [(region, weight) for region, weight in self.local_exp[label] if abs(weight) >= min_weight]
        if positive_only or negative_only:
            weights = [pair for pair in weights if (pair[1] > 0) == positive_only]
        shown = np.zeros(self.image.shape) if hide_rest else self.image.copy()
        mask = np.zeros(self.segments.shape, self.segments.dtype if self.segments.dtype.kind == "i" else np.int64)
        for region, weight in weights[:num_features]:
            inside = self.segments == region
            shown[inside] = self.image[inside]
            mask[inside] = 1 if positive_only or negative_only or weight > 0 else -1
            if not (positive_only or negative_only):
                shown[inside, int(weight > 0)] = self.image.max()  # red subtracts, green adds, as in LIME
        return shown, mask


class LimeImageExplainer:
    """Explain images with the names that ``lime.lime_image.LimeImageExplainer`` uses.

    The intercept and the weights of a label add up to the model's own output for that label. ``explanations`` of a
    result has the `anchorline.Explanation` of every label, and its `plot` draws the regions.

    Parameters
    ----------
    kernel_width, kernel, verbose, feature_selection
        Have no effect here. A value other than the default raises a warning that says what happens instead.
    random_state
        A seed. None is seed 0, so that the same call gives the same bytes.

    Examples
    --------
    >>> image = np.full((4, 4, 3), 200, dtype=np.uint8)
    >>> def predict_proba(images):
    ...     p = images[:, 0, 0, 0] / 255
    ...     return np.column_stack([1 - p, p])
    >>> quarters = lambda image: np.arange(4).reshape(2, 2).repeat(2, axis=0).repeat(2, axis=1)
    >>> result = LimeImageExplainer().explain_instance(
    ...     image, predict_proba, top_labels=1, hide_color=0, num_features=1, segmentation_fn=quarters)
    >>> result.local_exp[1][0][0], result.get_image_and_mask(1)[1].tolist()[0]
    (0, [1, 1, 0, 0])
    """

    @names_similar_keywords("LimeImageExplainer")
    def __init__(
        self,
        kernel_width: float = 0.25,
        kernel: Callable[..., Any] | None = None,
        verbose: bool = False,
        feature_selection: str = "auto",
        random_state: Any = None,
    ) -> None:
        warn_without_effect(
            kernel_width=(kernel_width, 0.25),
            kernel=(kernel, None),
            verbose=(verbose, False),
            feature_selection=(feature_selection, "auto"),
        )
        self.seed = seed_from(random_state)

    @names_similar_keywords("explain_instance")
    def explain_instance(
        self,
        image: Any,
        classifier_fn: Any,
        labels: Iterable[int] = (1,),
        hide_color: Any = None,
        top_labels: int | None = 5,
        num_features: int = _ALL,
        num_samples: int = 1000,
        batch_size: int = 10,
        segmentation_fn: Callable[[np.ndarray], Any] | None = None,
        distance_metric: str = "cosine",
        model_regressor: Any = None,
        random_seed: int | None = None,
    ) -> LimeImageExplanation:
        """Explain one image's prediction, with one independent explanation per label.

        ``classifier_fn`` maps images (n, h, w, 3) to (n, c) probabilities. As in LIME, a gray image becomes one of
        three channels, regions come from quickshift unless ``segmentation_fn`` returns others, and hidden regions
        have their mean color unless ``hide_color`` is given. ``num_features`` is the most regions of a sum, and 8
        by default. The model is asked about ``num_samples`` images at most, per label, in batches of at most 64
        MiB, so that ``batch_size`` has no effect; neither have ``distance_metric`` and ``model_regressor``.
        """
        warn_without_effect(distance_metric=(distance_metric, "cosine"), model_regressor=(model_regressor, None))
        pixels = np.asarray(image)
        pixels = np.stack([pixels] * 3, axis=-1) if pixels.ndim == 2 else pixels
        seed = self.seed % 1000 if random_seed is None else random_seed
        segments = np.asarray(_quickshift(pixels, seed) if segmentation_fn is None else segmentation_fn(pixels))
        space = Image(segments, "mean" if hide_color is None else hide_color)
        settings = settings_from(Image.default_k if num_features == _ALL else num_features, num_samples, self.seed)
        found = explain_labels(Explainer(classifier_fn, space), pixels, labels, top_labels, settings)
        regions = tuple(f"region {number}" for number in np.unique(segments).tolist())
        return LimeImageExplanation(feature_names=regions, image=pixels, segments=segments, **found)


def _quickshift(image: np.ndarray, seed: int) -> np.ndarray:
    """Return the regions that LIME finds by default."""
    try:
        from skimage import segmentation  # noqa: PLC0415  heavy, and optional
    except ImportError as error:
        raise MissingDependencyError.for_package("skimage", "image") from error
    quickshift: Any = segmentation.quickshift  # it has no types
    return np.asarray(quickshift(image, kernel_size=4, max_dist=200, ratio=0.2, rng=seed))
