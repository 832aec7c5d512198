"""Models that fail: what was raised, what was received, what to try; and models that end the process."""

import contextlib
import re
import signal
import threading
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np

from anchorline.errors import PredictorError

_LIBRARIES = {"pyarrow": "Arrow tables", "polars": "Polars frames"}
_OF_FRAMES = ("AssertionError", "AttributeError", "IndexError", "InvalidIndexError", "KeyError", "TypeError")


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


def quoted_row(inputs: Any, i: int) -> str:
    """Return a row of a table or list for the end of a sentence; nothing for other inputs."""
    if isinstance(inputs, np.ndarray | list):
        return f": {np.asarray(inputs[i]).tolist()!r:.300}"
    import narwhals as nw  # noqa: PLC0415  heavy

    frame = nw.from_native(inputs, eager_only=True, pass_through=True)
    return f": {frame[i : i + 1].rows(named=True)[0]!r:.300}" if isinstance(frame, nw.DataFrame) else ""


# The signal whose handler raises each error: Python's own handler of Ctrl-C, and ours of a request to end.
_SIGNAL_OF = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}


@contextlib.contextmanager
def contain_exits() -> Iterator[None]:
    """Raise `PredictorError` where a model raises anything but an `Exception`.

    So a model that exits fails its row and not the whole batch.
    """
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        if _may_come_from_signal(error):
            raise
        raise PredictorError(f"The model raised {error!r}.") from error


def _may_come_from_signal(error: BaseException) -> bool:
    """Return whether a signal from outside may have caused the error; only the main thread handles signals."""
    if threading.current_thread() is not threading.main_thread():
        return False
    frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    for handler in (signal.getsignal(number) for kind, number in _SIGNAL_OF.items() if isinstance(error, kind)):
        # A handler in C, as Python's own, leaves no trace.
        if callable(handler) and getattr(handler, "__code__", None) in (None, *frames):
            return True
    earlier = error.__cause__ or error.__context__  # a model may clean up and then raise another error
    return earlier is not None and _may_come_from_signal(earlier)
