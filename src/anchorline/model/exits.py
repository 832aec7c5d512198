"""`contain_exits`: turns the exit of a model (``sys.exit`` and the like) into an error.

The exit of a person who presses Ctrl-C, or who sends a signal to end the process, passes through.
"""

import contextlib
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from anchorline.errors import PredictorError

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
    handlers = (signal.getsignal(number) for kind, number in _SIGNAL_OF.items() if isinstance(error, kind))
    if any(callable(handler) and _may_have_raised(handler, error) for handler in handlers):
        return True
    earlier = error.__cause__ or error.__context__  # a model may clean up and then raise another error
    return earlier is not None and _may_come_from_signal(earlier)


def _may_have_raised(handler: Callable[..., Any], error: BaseException) -> bool:
    """Return whether the handler is in the error's traceback; a handler in C, as Python's own, leaves no trace."""
    code = getattr(handler, "__code__", None)
    return code is None or any(frame.f_code is code for frame, _ in traceback.walk_tb(error.__traceback__))
