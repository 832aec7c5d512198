"""Models that try to end the process (``sys.exit`` and the like), told apart from people who do."""

import contextlib
import signal
import threading
from collections.abc import Iterator

from anchorline.errors import PredictorError

# What handlers of these signals raise: Python's own of Ctrl-C, and ours of a request to end.
_ASKED_BY = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}


@contextlib.contextmanager
def survived() -> Iterator[None]:
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
    """Whether somebody outside may have asked to end: only the main thread hears it, and only if it listens."""
    if threading.current_thread() is not threading.main_thread():
        return False
    return any(isinstance(error, kind) and callable(signal.getsignal(by)) for kind, by in _ASKED_BY.items())
