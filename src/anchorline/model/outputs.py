"""Which of a model's numbers is explained: estimators and functions, classes and columns."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.errors import ParameterError, PredictorError
from anchorline.model.predictor import TASKS

INPUTS = ("auto", "frame", "array")


@dataclass(frozen=True, slots=True)
class Target:
    """What to ask a model, and what of its answer.

    ``classes`` are the labels of the answer's columns, if known; ``column`` is the one explained (None: that
    of the most probable class at the instance); ``name`` what the output is called (None: after its class);
    ``labels`` what the answers must be among, where only the model says that they are labels.
    """

    ask: Callable[[Any], Any]
    task: str | None
    classes: tuple[Any, ...] | None
    column: int | None
    name: str | None
    input: str
    labels: tuple[Any, ...] | None = None

    def name_of(self, column: int | None) -> str:
        """What the output is called: as asked, after its class, or f(x)."""
        if self.name is not None:
            return self.name
        if column is None:
            return "f(x)"
        if self.classes is not None:
            return str(self.classes[column])
        return f"output {column}" if self.task == "number" else f"class {column}"


def resolve(
    model: Any,
    *,
    output: Any = None,
    column: int | None = None,
    task: str | None = None,
    classes: Sequence[Any] | None = None,
    input: str = "auto",
) -> Target:
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
    model, told = _askable(model), task
    ask, task = _method(model, task)
    known = _known_classes(ask, task, classes if classes is not None else classes_of(model), classes is not None)
    if input == "array" or (input == "auto" and _wants_arrays(model)):
        ask, input = OfArrays(ask), "array"
    if column is not None and (isinstance(column, bool) or not isinstance(column, int | np.integer) or column < 0):
        raise ParameterError(f"column is {column!r}; needed the number of a column of the answers, from 0.")
    name = None if output is None else str(output)
    if known is not None and output is not None:
        named, name = _column_of(output, known), None  # called as the model calls it: 1, "1" and 1.0 alike
        if column is not None and column != named:
            raise ParameterError(
                f"output is {output!r}, which is column {named}, but column is {column}. Give one."
            )
        column = named
    if column is not None and known is not None and column >= len(known):
        raise ParameterError(f"column is {column}; the model has {len(known)} classes: {_told(known)}.")
    if task == "label" and name is not None and name in map(str, classes_of(model) or ()):
        raise ParameterError(
            f"output is {output!r}, a class; but labels are explained as they are predicted at the row: leave "
            "it out. For a class of your choice the model needs `predict_proba`."
        )
    labels = classes_of(model) if task == "label" and told is None and classes is None else None
    column = None if column is None else int(column)
    return Target(ask, task, known, column, name, input, None if labels is None else tuple(labels))


def classes_of(model: Any) -> Any:
    """The labels of a model's columns, where it tells them; of a method, those of its object."""
    told = getattr(_estimator_of(model), "classes_", None)
    return (_labels(told) or None) if isinstance(told, Iterable) else None  # CatBoost's regressors list none


def _askable(model: Any) -> Any:
    """XGBoost's own boosters take matrices of their own: asked as if they came from a file. All else as it is."""
    if type(model).__module__.partition(".")[0] != "xgboost" or type(model).__name__ != "Booster":
        return model
    from anchorline.model.loaders.xgboost_file import XgboostModel  # noqa: PLC0415  only where it is needed

    return XgboostModel(model.copy(), "booster")  # a copy: it is told to use one thread


def _estimator_of(model: Any) -> Any:
    """The estimator behind ``model.predict_proba``; any other model is its own."""
    owner = getattr(model, "__self__", None)
    return model if owner is None else owner


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


@dataclass(frozen=True, slots=True)
class OfArrays:
    """A model that takes arrays, asked about any table."""

    ask: Callable[[Any], Any]

    def __call__(self, inputs: Any) -> Any:
        """The model's answer to the table as an array."""
        array = as_array(inputs)
        try:
            return self.ask(array)
        except Exception as error:
            raise PredictorError(
                f"The model raised {type(error).__name__}: {error} (given an array of shape {array.shape}). "
                "If it takes frames, pass input='frame'; else try it on such an array by hand."
            ) from error


def as_array(inputs: Any) -> np.ndarray:
    """A table as a 2-D array: float64 where all columns are numbers or booleans, else of objects."""
    if isinstance(inputs, np.ndarray):
        return inputs
    import narwhals as nw  # noqa: PLC0415  heavy

    frame = nw.from_native(inputs, eager_only=True)
    if all(dtype.is_numeric() or dtype == nw.Boolean for dtype in frame.schema.values()):
        # By position: frame[0] of whole-number labels would be a row.
        columns = (frame[:, j].cast(nw.Float64) for j in range(frame.shape[1]))
        return np.column_stack([column.to_numpy().astype(np.float64) for column in columns])
    array = np.empty(frame.shape, dtype=object)
    for j in range(frame.shape[1]):
        column = frame[:, j]
        array[:, j] = column.to_list()
        array[column.is_null().to_numpy(), j] = None if column.dtype == nw.String else np.nan  # never pandas.NA
    return array


def _known_classes(ask: Any, task: str | None, classes: Any, given: bool) -> tuple[Any, ...] | None:
    """The labels of the columns of the answers; None where answers have no columns, or nobody told."""
    if isinstance(classes, str) or (classes is not None and not isinstance(classes, Iterable)):
        raise ParameterError(f"classes is {classes!r}; needed a list of labels, one a column of the answers.")
    if task == "label" or classes is None:
        return None
    told = _labels(classes)
    if any(isinstance(label, list | tuple | np.ndarray) for label in told):
        raise ParameterError("The model has several outputs; needed one. Wrap it in a function that returns one.")
    if len(set(map(str, told))) < len(told):
        raise ParameterError(f"classes are {_told(told)}; needed labels that differ.")
    method = getattr(ask, "__name__", "")
    one_number = method == "predict" or (method == "decision_function" and len(told) == 2)
    return None if one_number and not given else tuple(told)


def _labels(classes: Iterable[Any]) -> list[Any]:
    """Labels as Python values: NumPy's own would not be found again in JSON."""
    return [label.item() if isinstance(label, np.generic) else label for label in classes]


def _column_of(output: Any, classes: tuple[Any, ...]) -> int:
    """The column of a class label; labels are compared as they are, then by their texts."""
    for found in ([c == output for c in classes], [str(c) == str(output) for c in classes]):
        if any(found):
            return found.index(True)
    raise ParameterError(f"output is {output!r}; the model's classes are {_told(classes)}. Pick one of them.")


def _told(classes: Sequence[Any]) -> str:
    shown = ", ".join(repr(label) for label in classes[:12])
    return f"{shown}, ... ({len(classes)})" if len(classes) > 12 else shown
