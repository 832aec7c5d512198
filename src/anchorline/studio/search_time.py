"""The time of a search for the best sum, of which a request may use only a part."""

from collections.abc import Iterator
from contextlib import contextmanager

from anchorline.optimize.exact import interruption
from anchorline.studio.job_queue import checkpoint, running_seconds


class SearchTooLongError(BaseException):
    """A search took longer than its share; not an `Exception`, so that no handler mistakes it for an error."""


@contextmanager
def limited_search(seconds: float, *, keep_best: bool) -> Iterator[None]:
    """Limit the time of the solvers that this thread calls, measured from their first step, without pauses.

    After that time, the solvers return their best sums so far if ``keep_best``; otherwise `SearchTooLongError` is
    raised.
    """
    end: float | None = None

    def is_over() -> bool:
        nonlocal end
        checkpoint()
        end = running_seconds() + seconds if end is None else end
        if running_seconds() > end and not keep_best:
            raise SearchTooLongError
        return running_seconds() > end

    token = interruption.set(is_over)
    try:
        yield
    finally:
        interruption.reset(token)
