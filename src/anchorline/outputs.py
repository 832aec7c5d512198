"""Which of a model's numbers is explained: estimators and functions, classes and columns."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.predictor import TASKS

INPUTS = ("auto", "frame", "array")


@dataclass(frozen=True, slots=True)
class Asked:
    """What to ask a model, and what of its answer.

    ``classes`` are the labels of the answer's columns, if known; ``column`` is the one explained (None: that
    of the class predicted at the instance); ``name`` what the output is called (None: after its class).
    """

    ask: Callable[[Any], Any]
    task: str | None
    classes: tuple[Any, ...] | None
    column: int | None
    name: str | None
    input: str

    def name_of(self, column: int | None) -> str:
        """What the output is called: as asked, after its class, or f(x)."""
        if self.name is not None:
            return self.name
        if column is None:
            return "f(x)"
        return str(self.classes[column]) if self.classes is not None else f"class {column}"


def resolve(
    model: Any,
    *,
    output: Any = None,
    column: int | None = None,
    task: str | None = None,
    classes: Sequence[Any] | None = None,
    input: str = "auto",
) -> Asked:
    """Find out how to ask a fitted estimator or a callable.

    A classifier is asked for the probabilities of its classes, or, where it has none or with
    ``task="label"``, for its labels; anything else for numbers.

    Examples
    --------
    >>> resolve(lambda rows: rows, output="no", classes=["yes", "no"]).column
    1
    """
    if task not in TASKS:
        raise ParameterError(f"task is {task!r}; needed 'label', 'number' or None.")
    if input not in INPUTS:
        raise ParameterError(f"input is {input!r}; needed one of {', '.join(INPUTS)}.")
    ask, task = _method(model, task)
    told = classes if classes is not None else classes_of(model)
    known = None if task == "label" or told is None else tuple(_listed_classes(told))
    if input == "array" or (input == "auto" and _wants_arrays(model)):
        ask, input = _of_arrays(ask), "array"
    if column is not None and (isinstance(column, bool) or not isinstance(column, int | np.integer) or column < 0):
        raise ParameterError(f"column is {column!r}; needed the number of a column of the answers, from 0.")
    name = None if output is None else str(output)
    if column is None and known is not None and output is not None:
        column = _column_of(output, known)
    if column is not None and known is not None and column >= len(known):
        raise ParameterError(f"column is {column}; the model has {len(known)} classes: {_told(known)}.")
    return Asked(ask, task, known, None if column is None else int(column), name, input)


def classes_of(model: Any) -> Any:
    """The labels of a model's columns, where it tells them; of a method, those of its object."""
    return getattr(_estimator_of(model), "classes_", None)


def _estimator_of(model: Any) -> Any:
    """The estimator behind ``model.predict_proba``; any other model is its own."""
    return getattr(model, "__self__", None) or model


def _method(model: Any, task: str | None) -> tuple[Callable[[Any], Any], str | None]:
    """What to call, and what its answers are."""
    predict = getattr(model, "predict", None)
    if not callable(predict):
        if callable(model):
            return model, task
        raise ParameterError(
            f"predict is a {type(model).__name__}, not callable; needed a fitted estimator, or a function of a "
            "table of rows, for example `model.predict`."
        )
    if task != "label" and callable(getattr(model, "predict_proba", None)):
        return model.predict_proba, task
    if classes_of(model) is not None:
        return predict, "label" if task is None else task
    return predict, "number" if task is None and _is_regressor(model) else task


def _is_regressor(model: Any) -> bool:
    from sklearn.base import is_regressor  # noqa: PLC0415  heavy

    try:
        return bool(is_regressor(model))
    except (AttributeError, TypeError):  # not an estimator at all
        return False


def _wants_arrays(model: Any) -> bool:
    """Whether a scikit-learn estimator was fitted on an array: it then warns about frames."""
    estimator = _estimator_of(model)
    if type(estimator).__module__.startswith("catboost"):
        return False  # its names are elsewhere, and frames are always understood
    return hasattr(estimator, "n_features_in_") and not hasattr(estimator, "feature_names_in_")


def _of_arrays(ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda inputs: ask(as_array(inputs))


def as_array(inputs: Any) -> np.ndarray:
    """A table as a 2-D array: float64 where all columns are numbers or booleans, else of objects."""
    if isinstance(inputs, np.ndarray):
        return inputs
    import narwhals as nw  # noqa: PLC0415  heavy

    frame = nw.from_native(inputs, eager_only=True)
    if all(dtype.is_numeric() or dtype == nw.Boolean for dtype in frame.schema.values()):
        return np.column_stack([frame[name].cast(nw.Float64).to_numpy() for name in frame.columns])
    array = np.empty(frame.shape, dtype=object)
    for j, name in enumerate(frame.columns):
        array[:, j] = frame[name].to_list()
    return array


def _listed_classes(classes: Any) -> list[Any]:
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise ParameterError(f"classes is {classes!r}; needed a list of labels, one a column of the answers.")
    told = [getattr(label, "item", lambda label=label: label)() for label in classes]
    if any(isinstance(label, list | tuple | np.ndarray) for label in told):
        raise ParameterError("The model has several outputs; needed one. Wrap it in a function that returns one.")
    return told


def _column_of(output: Any, classes: tuple[Any, ...]) -> int:
    """The column of a class label; labels are compared as they are, then by their texts."""
    for found in ([c == output for c in classes], [str(c) == str(output) for c in classes]):
        if any(found):
            return found.index(True)
    raise ParameterError(f"output is {output!r}; the model's classes are {_told(classes)}. Pick one of them.")


def _told(classes: Sequence[Any]) -> str:
    shown = ", ".join(repr(label) for label in classes[:12])
    return f"{shown}, ... ({len(classes)})" if len(classes) > 12 else shown
