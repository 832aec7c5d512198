"""`read`: the trees of a model, if its answers are a sum of trees, and otherwise the reason why not.

Treelite reads many of these formats too, and was tried first (4.8). It refuses XGBoost's native categories since
XGBoost 3.1, histogram gradient boosting with categories of texts, single decision trees, and CatBoost, and it
answers wrongly where LightGBM takes zeros for missing values. It would also be one more compiled dependency. The
formats themselves are plain arrays or texts, so every library has a reader of its own here.

Nothing that is read is trusted: `anchorline.model.trees.agrees` compares it with the model's own answers.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from anchorline.model.loaders.onnx_file import OnnxModel
from anchorline.model.outputs import classes_of
from anchorline.model.target import Target
from anchorline.model.trees import catboost_trees, lightgbm_trees, scikit, xgboost_trees
from anchorline.model.trees.reading import Reading, Refusal, Trees
from anchorline.model.wrappers import NotReadableError, Steps, unwrap

Reader = Callable[[Any], Trees]
# Readers by the first part of a class's module, and by its name. Subclasses are read like their base class, unless
# they change its answers.
READERS: dict[str, dict[str, Reader]] = {
    "catboost": catboost_trees.READERS,
    "lightgbm": lightgbm_trees.READERS,
    "sklearn": scikit.READERS,
    "xgboost": xgboost_trees.READERS,
}
_LINKED = ("logistic", "softmax")
_LIBRARIES = {"anchorline", "imblearn", *READERS}
_ANSWERS = ("predict", "predict_proba", "decision_function", "__call__")


def read(model: Any, target: Target) -> Reading | Refusal | None:
    """Return the model as a sum of trees, or the reason why not; None if it has no trees as far as one can see.

    Parameters
    ----------
    model
        What an `Explainer` was given: an estimator, a booster, a loaded model file, or a method of one of these.
    target
        Which of the model's answers are explained. Probabilities of boosted classifiers and labels are not sums of
        trees.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from anchorline.model.outputs import resolve
    >>> model = DecisionTreeRegressor().fit([[1.0], [2.0], [3.0]], [5.0, 6.0, 6.0])
    >>> read(model, resolve(model)).evaluate(np.array([[0.0], [4.0]])).ravel().tolist()
    [5.0, 6.0]
    """
    owner = getattr(model, "__self__", None)
    estimator, method = (model, None) if owner is None else (owner, model.__name__)
    try:
        opened: list[Any] = []
        inner, steps = unwrap(estimator, opened.append)
        reader = _reader(inner)
        if reader is None:
            return _refused_wrapper(inner)
        for each in (*opened, *np.ravel(getattr(inner, "estimators_", ()))):
            _refuse_own_answers(each)
        asked = _asked(estimator, method, target)
        return _reading(reader(inner), steps, asked, classes_of(estimator), target)
    except NotReadableError as error:
        return Refusal(str(error))
    except Exception as error:  # another version of a library may keep its trees elsewhere
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return Refusal(f"the trees of the {type(estimator).__name__} could not be read ({text:.200})")


def _reader(model: Any) -> Reader | None:
    """Return the reader of a model's class or of the first of its base classes that has one."""
    for cls in type(model).__mro__:
        library, _, rest = cls.__module__.partition(".")
        if library == "anchorline":  # a loaded file
            library = rest.rpartition(".")[2].removesuffix("_file")
        reader = READERS.get(library, {}).get(cls.__name__)
        if reader is not None:
            return reader
    return None


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
    if callable(getattr(model, "predict", None)) and any(_reader(part) is not None for part in _parts(model)):
        return Refusal(f"its {type(model).__name__} makes answers from those of its models in a way of its own")
    return None


def _parts(model: Any) -> Iterator[Any]:
    for part in getattr(model, "__dict__", {}).values():
        yield from (unwrap(member)[0] for member in (part if isinstance(part, list | tuple) else [part]))


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


def _reading(trees: Trees, steps: Steps, asked: str, classes: Any, target: Target) -> Reading:
    """Return the trees as the answers that are explained."""
    if asked != "margin" and trees.link in _LINKED:
        raise NotReadableError(
            "the probabilities of a boosted classifier are not a sum of trees; its margin is "
            "(output_scale='margin')"
        )
    if asked != "margin" and trees.link != "identity":
        raise NotReadableError(f"the answers are not a sum of trees, but a function of it ({trees.link})")
    ensemble = trees.build()
    if asked == "probability" and ensemble.n_outputs != len(classes):
        raise NotReadableError(f"the trees have {ensemble.n_outputs} outputs for {len(classes)} classes")
    reading = Reading(
        ensemble=ensemble,
        transform=_transform(steps, trees.encode),
        scale=asked,
        link=trees.link,
        classes=None if classes is None or asked == "number" else tuple(classes),
        library=trees.library,
        is_mirrored=target.scale is not None and ensemble.n_outputs == 1,  # two classes have two margins
        sums_in=trees.sums_in,
    )
    return reading if target.contrast is None else _difference(reading, target.contrast)


def _difference(reading: Reading, contrast: Mapping[str, Any]) -> Reading:
    """Return the difference of two columns, which is a sum of trees if the columns are."""
    first, second = (contrast["classes"].index(label) for label in contrast["contrast"])
    weights = {0: 2.0 if first else -2.0} if reading.is_mirrored else {first: 1.0, second: -1.0}
    return replace(reading, ensemble=reading.ensemble.weighted(weights), classes=None, is_mirrored=False)


def _transform(steps: Steps, encode: Callable[[Any], np.ndarray]) -> Callable[[Any], np.ndarray]:
    def transform(inputs: Any) -> np.ndarray:
        for step in steps:
            inputs = step(inputs)
        return encode(inputs)

    return transform
