"""`read`: the trees of a model, if its answers are a sum of trees, and otherwise the reason why not.

Nothing that is read is trusted: `agrees` compares it with the model's own answers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.model.loaders.onnx_file import OnnxModel
from anchorline.model.outputs import NotReadableError, Target, classes_of, method_of, owner_of, unwrap
from anchorline.model.trees.ensemble import Ensemble
from anchorline.model.trees.libraries import READERS, Reader, Trees

_SHARE_OF_RANGE = 1e-9  # by how much of the range of the answers the trees may differ from the model
_LIBRARIES = {"imblearn", *READERS}
_ANSWERS = ("predict", "predict_proba", "decision_function", "__call__")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the trees of a model cannot stand for its answers, as a clause that follows "because"."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """A model as a sum of trees, with one output per column of the model's answers; one if ``is_mirrored``.

    ``transform`` turns model inputs of n rows, as the model gets them, into features (n, m): float64, with NaN for
    missing values, and with whole numbers for categories. ``scale`` is "number" for numbers of a regressor,
    "probability" for averages of leaves, or "margin" for the sum inside the link of a boosted classifier. ``link``
    turns a margin into probabilities: "logistic" or "softmax"; "identity" for other scales. ``is_mirrored``: the
    model has two classes and one margin, that of column 1; its negative is that of column 0. ``sums_in`` is the
    type in which the library adds leaf values up.
    """

    ensemble: Ensemble
    transform: Callable[[Any], np.ndarray]
    scale: str
    link: str
    is_mirrored: bool = False
    sums_in: str = "float64"

    @property
    def n_columns(self) -> int:
        """Number of columns of the model's answers."""
        return 2 if self.is_mirrored else self.ensemble.n_outputs

    def column(self, number: int | None = None) -> Ensemble:
        """Return one column of the answers as a sum of trees with one output; None stands for the only column."""
        if self.is_mirrored:
            return self.ensemble.weighted({0: -1.0 if number == 0 else 1.0})
        return self.ensemble.weighted({number or 0: 1.0})

    def evaluate(self, inputs: Any) -> np.ndarray:
        """Return the answers (n, columns) of the trees to model inputs."""
        answers = self.ensemble.evaluate(self.transform(inputs))
        return np.column_stack([-answers, answers]) if self.is_mirrored else answers


def read(model: Any, target: Target) -> Reading | Refusal | None:
    """Return the model as a sum of trees, or the reason why not; None if it has no trees as far as one can see.

    ``model`` is what an `Explainer` was given: an estimator, a booster, a loaded model file, or a method of one of
    these. Labels and probabilities of boosted classifiers are not sums of trees.
    """
    model = getattr(model, "counted_model", model)  # the command line counts what it asks
    estimator = owner_of(model)
    method = None if estimator is model else method_of(model)
    try:
        opened: list[Any] = []
        inner, steps = unwrap(estimator, opened.append)
        reader = _reader(inner)
        if reader is None:
            return _refused_wrapper(inner)
        for each in (*opened, *np.ravel(getattr(inner, "estimators_", ()))):
            _refuse_own_answers(each)
        trees, asked = reader(inner), _asked(estimator, method, target)
        ensemble = _sum_of(trees, asked, classes_of(estimator))

        def transform(inputs: Any) -> np.ndarray:
            for step in steps:
                inputs = step(inputs)
            return trees.encode(inputs)

        is_mirrored = target.scale is not None and ensemble.n_outputs == 1  # two classes have two margins
        if target.contrast is not None:
            first, second = (target.contrast["classes"].index(label) for label in target.contrast["contrast"])
            weights = {0: 2.0 if first else -2.0} if is_mirrored else {first: 1.0, second: -1.0}
            ensemble, is_mirrored = ensemble.weighted(weights), False
        return Reading(
            ensemble=ensemble,
            transform=transform,
            scale=asked,
            link=trees.link,
            is_mirrored=is_mirrored,
            sums_in=trees.sums_in,
        )
    except NotReadableError as error:
        return Refusal(str(error))
    except Exception as error:  # another version of a library may keep its trees elsewhere
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return Refusal(f"the trees of the {type(estimator).__name__} could not be read ({text:.200})")


def _reader(model: Any) -> Reader | None:
    """Return the reader of a model's class or of the first of its base classes that has one."""
    names = ((cls.__module__.partition(".")[0], cls.__name__) for cls in type(model).__mro__)
    return next((READERS[library][name] for library, name in names if name in READERS.get(library, {})), None)


def _refuse_own_answers(model: Any) -> None:
    """Raise `NotReadableError` if the model itself, or a class that no known library wrote, changes its answers.

    Such a model may answer unlike its trees anywhere, so that no comparison on some rows is enough.
    """
    for name in _ANSWERS:
        authors = [cls for cls in type(model).__mro__ if name in vars(cls)][:1]
        is_own = any(cls.__module__.partition(".")[0] not in _LIBRARIES for cls in authors)
        if is_own or name in getattr(model, "__dict__", {}):
            raise NotReadableError(f"its {type(model).__name__} has a `{name}` of its own")


def _refused_wrapper(model: Any) -> Refusal | None:
    """Return the refusal of a model that has trees or tree models in its attributes; None for any other model."""
    if isinstance(model, OnnxModel) and b"TreeEnsemble" in model.content:
        return Refusal("the trees of an ONNX file are not read; load the original model")
    if callable(getattr(model, "predict", None)):
        for part in getattr(model, "__dict__", {}).values():
            if any(_reader(unwrap(each)[0]) for each in (part if isinstance(part, list | tuple) else [part])):
                name = type(model).__name__
                return Refusal(f"its {name} makes answers from those of its models in a way of its own")
    return None


def _asked(estimator: Any, method: str | None, target: Target) -> str:
    """Return the scale of the answers that are explained: "number", "probability" or "margin"."""
    if target.contrast is not None:
        return "probability" if target.scale is None else "margin"
    if target.task == "label":
        raise NotReadableError("a label is not a sum of trees")
    if target.scale is not None or method == "decision_function":
        return "margin"
    has_classes = callable(getattr(estimator, "predict_proba", None)) or not hasattr(estimator, "predict")
    has_classes = target.classes is not None or (has_classes and classes_of(estimator) is not None)
    if method == "predict_proba" or (method is None and has_classes):
        return "probability"
    if method not in (None, "predict", "__call__"):
        raise NotReadableError(f"the answers of `{method}` are not a sum of trees")
    if classes_of(estimator) is not None:
        raise NotReadableError("a label is not a sum of trees")
    return "number"


def _sum_of(trees: Trees, asked: str, classes: Any) -> Ensemble:
    """Return the trees if their sum is what is asked; raise `NotReadableError` otherwise."""
    if asked != "margin" and trees.link in ("logistic", "softmax"):
        raise NotReadableError(
            "the probabilities of a boosted classifier are not a sum of trees; its margin is "
            "(output_scale='margin')"
        )
    if asked != "margin" and trees.link != "identity":
        raise NotReadableError(f"the answers are not a sum of trees, but a function of it ({trees.link})")
    ensemble = trees.ensemble()
    if asked == "probability" and ensemble.n_outputs != len(classes):
        raise NotReadableError(f"the trees have {ensemble.n_outputs} outputs for {len(classes)} classes")
    return ensemble


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether trees answer like their model, their largest difference, and how large it may be."""

    holds: bool
    difference: float
    allowed: float

    def __bool__(self) -> bool:
        return self.holds


def agrees(reading: Reading, answers: Any, inputs: Any) -> Agreement:
    """Compare the trees with the model's own answers to some model inputs.

    They must be equal to 1e-9 of the range of the answers, plus the rounding of the model's own sum. A sum of T
    numbers that is rounded T times errs by about the square root of T roundings of the sum of their sizes.

    ``answers`` are (n,) or (n, columns); further columns, such as the chosen class, are ignored.
    """
    answers = np.asarray(answers, dtype=np.float64)
    answers = answers[:, None] if answers.ndim == 1 else answers[:, : reading.n_columns]
    found = reading.evaluate(inputs)
    if found.shape != answers.shape:
        return Agreement(False, float("inf"), 0.0)
    difference, allowed = float(np.abs(found - answers).max()), _rounding(reading, answers)
    return Agreement(difference <= allowed, difference, allowed)


def _rounding(reading: Reading, answers: np.ndarray) -> float:
    """Return by how much trees and a model with these answers (n, columns) may differ; see `agrees`."""
    ensemble = reading.ensemble
    largest = np.maximum.reduceat(np.abs(ensemble.values).max(axis=1), ensemble.roots)  # leaf of every tree
    largest_sum = float(largest.sum() + np.abs(ensemble.base).max())
    rounding = (4 + np.sqrt(len(ensemble.roots))) * np.finfo(reading.sums_in).eps * largest_sum
    return float(_SHARE_OF_RANGE * float(np.ptp(answers, axis=0).max()) + rounding)


_LINKED = 1e-6  # by how much probabilities may differ, beside the rounding of margins


@dataclass(frozen=True, eq=False)
class Forms:
    """Linear forms of the trees' outputs that are positive where the goal is reached: one of them, or all.

    ``weights`` (outputs, forms) and ``offsets`` (forms,). Forms within ``tolerance`` of 0 leave it open.
    """

    weights: np.ndarray
    offsets: np.ndarray
    need_all: bool
    tolerance: float = 0.0

    @classmethod
    def of(cls, kind: str, wanted: float, reading: Reading, column: int) -> "Forms | None":
        """Return a goal as forms of the columns of the trees' answers; None if it is not linear in them.

        ``kind`` is "class" or "other class" (than the one with the number ``wanted``), or ">=", ">", "<=" or "<".
        """
        unit = np.eye(reading.n_columns)
        if kind in ("class", "other class"):
            own = int(wanted)
            others = [k for k in range(reading.n_columns) if k != own]
            lead, need_all = np.stack([unit[own] - unit[k] for k in others], axis=1), kind == "class"
            return cls(lead if need_all else -lead, np.zeros(len(others)), need_all)
        limit = float(wanted)
        if reading.link == "logistic" and reading.n_columns == 2 and 0 < limit < 1:
            limit = float(np.log(limit / (1 - limit)))
        elif reading.link != "identity":
            return None
        sign = 1.0 if kind in (">=", ">") else -1.0
        return cls(sign * unit[column][:, None], np.array([-sign * limit]), need_all=True)

    def margins(self, forms: np.ndarray) -> np.ndarray:
        """Return how far above 0 the forms (..., forms) are that decide."""
        return np.asarray(forms.min(axis=-1) if self.need_all else forms.max(axis=-1))


def allowed_error(reading: Reading, target: Target, inputs: Any, scores: Any) -> float | None:
    """Return how far trees and model may differ by rounding; None if they differ by more on some rows.

    ``scores`` are the model's answers to the inputs; it must name the class with the highest score.
    """
    found = reading.evaluate(inputs)
    answers = np.asarray(scores.values, dtype=np.float64)
    if scores.named is not None and (answers.max(axis=1) > answers[np.arange(len(answers)), scores.named]).any():
        return None
    answers = answers[:, None] if answers.ndim == 1 else answers
    allowed = _rounding(reading, found)
    is_linked = reading.scale == "margin" and target.scale is None and target.contrast is None
    shown = found
    if is_linked:  # what a classifier makes of its margins
        with np.errstate(over="ignore"):
            is_softmax = reading.link == "softmax"
            shares = np.exp(found - found.max(axis=1, keepdims=True)) if is_softmax else 1 / (1 + np.exp(-found))
        shown = shares / shares.sum(axis=1, keepdims=True)
    if shown.shape != answers.shape or np.abs(shown - answers).max() > allowed + (_LINKED if is_linked else 0.0):
        return None
    return allowed
