"""Models that try to end the process (``sys.exit`` and the like), told apart from people who do."""

import contextlib
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from anchorline.errors import PredictorError

# What handlers of these signals raise: Python's own of Ctrl-C, and ours of a request to end.
_ASKED_BY = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}


@contextlib.contextmanager
def contain_exits() -> Iterator[None]:
    """What a model raises that is no `Exception` becomes a `PredictorError`: it costs its row, not the batch."""
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        if _may_be_asked_for(error):
            raise
        raise PredictorError(f"The model raised {error!r}.") from error


def _may_be_asked_for(error: BaseException) -> bool:
    """Whether somebody outside may have asked to end: the main thread hears it, by a handler."""
    if threading.current_thread() is not threading.main_thread():
        return False
    heard_by = (signal.getsignal(by) for kind, by in _ASKED_BY.items() if isinstance(error, kind))
    if any(callable(handler) and _may_have_raised(handler, error) for handler in heard_by):
        return True
    before = error.__cause__ or error.__context__  # a model may tidy up, and raise another
    return before is not None and _may_be_asked_for(before)


def _may_have_raised(handler: Callable[..., Any], error: BaseException) -> bool:
    """Whether the handler is in the error's trace; one in C, as Python's own of Ctrl-C, leaves none."""
    code = getattr(handler, "__code__", None)
    return code is None or any(frame.f_code is code for frame, _ in traceback.walk_tb(error.__traceback__))
