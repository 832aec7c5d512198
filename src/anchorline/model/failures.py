"""The errors about models: what was raised or answered, what was received, and what to try."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from anchorline.errors import ParameterError, PredictorOutputError

_LIBRARIES = {"pyarrow": "Arrow tables", "polars": "Polars frames"}
_OF_FRAMES = ("AssertionError", "AttributeError", "IndexError", "InvalidIndexError", "KeyError", "TypeError")
_WHICH_TASK = "labels or numbers? For a classifier's `predict` pass task='label', otherwise task='number'."


def failure_text(error: Exception, model: Any, inputs: Any, n_rows: int) -> str:
    """Return the message for an exception that the model raised; quote the exception on one line."""
    kind = type(inputs).__name__
    raised = " ".join(f"{type(error).__name__}: {error}".split())
    return (
        f"The model raised {raised} (queried for {n_rows} rows, input of type {kind}, "
        f"shape {getattr(inputs, 'shape', None)}). {_advice(error, model, inputs)}"
    )


def _owner(model: Any) -> Any:
    """Return the model behind a method, and behind what selects its columns and its class."""
    for name in ("ask", "scores", "__self__"):
        inner = getattr(model, name, None)
        if inner is not None:
            return _owner(inner)
    return model


def _advice(error: Exception, model: Any, inputs: Any) -> str:
    if isinstance(inputs, np.ndarray):
        return "Call `predict` on an input of that shape by hand."
    library = _LIBRARIES.get(type(inputs).__module__.partition(".")[0])
    owner = _owner(model)
    if library == "Arrow tables" and hasattr(owner, "feature_names_in_"):
        return (
            "The model was fitted on a frame with column names, most likely a pandas frame, but it receives "
            f"{library}, because the training table is one. Type "
            "`al.Explainer(model, al.Table(table.to_pandas()))`."
        )
    if library is not None:
        return (
            f"The model receives {library}, because the training table is one. If it takes pandas frames, type "
            "`al.Table(table.to_pandas())`. If the model takes arrays, pass input='array'."
        )
    names_column = isinstance(error, KeyError) and isinstance(error.args[0] if error.args else 0, str)
    is_frames = type(error).__name__ in _OF_FRAMES or re.search("[Ff]rame|feature names", str(error))
    arrays = "If the model takes arrays, pass input='array'. " if is_frames and not names_column else ""
    return f"{arrays}Call the model on such a {type(inputs).__name__} by hand."


def labels_have_no_range() -> ParameterError:
    """Return the error about a threshold or an output range beside labels."""
    return ParameterError(
        "The answers are labels, which have no threshold and no output_range. Leave both out, or declare that "
        "integers are numbers by task='number'."
    )


def other_number_of_classes(n_classes: int, n_columns: int) -> ParameterError:
    """Return the error about classes that are not as many as the columns of the answers."""
    return ParameterError(
        f"{n_classes} classes were given, but the model returns {n_columns} columns. Pass one class per column."
    )


def columns_without_names(name: str, n_columns: int) -> ParameterError:
    """Return the error about a class that is requested by name from answers without names."""
    return ParameterError(
        f"output is {name!r}, but the model returns {n_columns} columns without names. Pass classes=[...] with "
        "the labels of all columns, or the number of one as output=0."
    )


def unknown_label(labels: Sequence[Any], answer: Any) -> ParameterError:
    """Return the error about a label that is not one of the model's classes."""
    return ParameterError(
        f"The model's classes are {list(labels)}, but it answers {answer!r}. If that is a score, pass "
        "task='number', otherwise task='label'."
    )


def not_callable(model: Any) -> ParameterError:
    """Return the error about a model that is not a function."""
    return ParameterError(
        f"predict is a {type(model).__name__}, which is not callable. It must be a function of an (n, d) array, "
        "for example `model.predict`."
    )


def integers(answer: Any) -> PredictorOutputError:
    """Return the error about integers, which may be labels or numbers."""
    kind = "booleans" if isinstance(answer, bool | np.bool_) else "integers"
    return PredictorOutputError(f"The predictor returned {kind} such as {answer}: {_WHICH_TASK}")


def other_integer(at_instance: Any, elsewhere: Any) -> PredictorOutputError:
    """Return the error about integers that looked like labels at the instance."""
    return PredictorOutputError(
        f"The predictor returned the integer {at_instance} for x, and {elsewhere} elsewhere: {_WHICH_TASK}"
    )


def nan_label() -> PredictorOutputError:
    """Return the error about a label that does not equal itself."""
    return PredictorOutputError(
        "The predictor returned NaN as a label. Every label must equal itself, which NaN does not."
    )


def not_finite(answer: Any, bad: np.ndarray, inputs: Any, n_rows: int) -> PredictorOutputError:
    """Return the error about answers that are not finite; ``bad`` are their rows."""
    return PredictorOutputError(
        f"The predictor returned {answer} for {bad.size} of {n_rows} rows of one call, first for row {bad[0]}"
        f"{_row(inputs, int(bad[0]))}. It must return finite numbers. Call `model` on that row by hand."
    )


def _row(inputs: Any, i: int) -> str:
    """Return a row of a table or list for the end of a sentence; nothing for other inputs."""
    if isinstance(inputs, np.ndarray | list):
        return f": {np.asarray(inputs[i]).tolist()!r:.300}"
    import narwhals as nw  # noqa: PLC0415  heavy

    frame = nw.from_native(inputs, eager_only=True, pass_through=True)
    return f": {frame[i : i + 1].rows(named=True)[0]!r:.300}" if isinstance(frame, nw.DataFrame) else ""


def not_probabilities() -> PredictorOutputError:
    """Return the error about scores that are probabilities at the instance only."""
    return PredictorOutputError(
        "The model's scores sum to 1 at x but not everywhere, so they are not probabilities. Pass "
        "output_range=(lowest, highest) and output=, or task='number'."
    )


def no_answer(n_rows: int) -> PredictorOutputError:
    """Return the error about a model that returns nothing."""
    return PredictorOutputError(f"The predictor returned None; it must return {n_rows} numbers. Add a `return`?")
