"""LIME's image explainer by its own names: existing calls keep working, and the weights now add up."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.compat.lime_arguments import check_selection, seed_from, warn_without_effect
from anchorline.compat.lime_explanation import LimeExplanation
from anchorline.compat.lime_labels import check_number_of_features, explain_labels
from anchorline.errors import MissingDependencyError, ParameterError, names_similar_keywords
from anchorline.settings import Settings
from anchorline.spaces.image import Image

MOST_REGIONS = 10  # of one sum; a longer sum is not readable, and its rule cannot be measured
_ALL = 100_000  # LIME's default, which stands for all regions


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LimeImageExplanation(LimeExplanation):
    """Explanations of one image by label; ``segments`` are the numbers of the pixels' regions, as in LIME."""

    image: np.ndarray
    segments: np.ndarray

    @cached_property
    def local_exp(self) -> dict[int, list[tuple[int, float]]]:
        """(Number of the region, weight) pairs by label, largest first."""
        return {
            label: [(int(term.literal.name.removeprefix("region ")), term.contribution) for term in e.terms]
            for label, e in self.explanations.items()
        }

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

    The intercept and the weights of a label add up to the model's own output for that label. The
    `anchorline.Explanation` of every label has a certificate, and its `plot` draws the regions.

    Parameters
    ----------
    kernel_width, kernel, verbose
        Have no effect here. A value other than the default raises a warning that says what happens instead.
    feature_selection
        Every method except "auto" raises a warning, because anchorline finds the best choice and proves that it is
        best.
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
        width = None if kernel_width == 0.25 else kernel_width
        warn_without_effect(kernel_width=width, kernel=kernel, verbose=verbose)
        check_selection(feature_selection)
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
        have their mean color unless ``hide_color`` is given. At most 10 regions are in a sum. The size of a batch
        is chosen by its memory, so that ``batch_size`` has no effect; neither have ``distance_metric`` and
        ``model_regressor``.
        """
        metric = "euclidean" if distance_metric == "cosine" else distance_metric  # LIME's default for images
        warn_without_effect(distance_metric=metric, model_regressor=model_regressor)
        if check_number_of_features(num_features) > MOST_REGIONS and num_features != _ALL:
            warnings.warn(
                f"num_features is {num_features}, but a sum has at most {MOST_REGIONS} regions here.",
                UserWarning,
                stacklevel=3,
            )
        pixels = np.asarray(image)
        pixels = np.stack([pixels] * 3, axis=-1) if pixels.ndim == 2 else pixels
        seed = self.seed % 1000 if random_seed is None else random_seed
        segments = np.asarray(_quickshift(pixels, seed) if segmentation_fn is None else segmentation_fn(pixels))
        space = Image(segments, "mean" if hide_color is None else hide_color)
        k = min(int(num_features), MOST_REGIONS) + 1
        settings = Settings.from_keywords(k=k, n_samples=num_samples, seed=self.seed, keep_noise=True)
        found = explain_labels(space, pixels, classifier_fn, None, labels, top_labels, settings)
        first = next(iter(found.explanations.values()))
        return LimeImageExplanation(
            mode="classification",
            explanations=found.explanations,
            feature_names=tuple(literal.name for literal in first.literals),
            class_names=found.names,
            predict_proba=found.outputs,
            top_labels=found.top,
            image=pixels,
            segments=segments,
        )


def _quickshift(image: np.ndarray, seed: int) -> np.ndarray:
    """Return the regions that LIME finds by default."""
    try:
        from skimage import segmentation  # noqa: PLC0415  heavy, and optional
    except ImportError as error:
        raise MissingDependencyError.for_package("skimage", "image") from error
    quickshift: Any = segmentation.quickshift  # it has no types
    return np.asarray(quickshift(image, kernel_size=4, max_dist=200, ratio=0.2, rng=seed))
