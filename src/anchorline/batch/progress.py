"""How far a batch is: rows done, rate, time left."""

import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

from anchorline.errors import ParameterError

_MIN_SECONDS = 0.2  # between two lines of the bar
_LATELY = 200  # rows over which the rate is taken: starting workers soon counts no more


@dataclass(frozen=True, slots=True)
class Progress:
    """Rows finished of all, rows among them that failed, rows a second lately (0 before the first).

    Examples
    --------
    >>> print(Progress(done=50, total=200, failed=1, rate=2.0))
    50 of 200 rows (25%), 2.0 a second, 1:15 left, 1 failed
    """

    done: int
    total: int
    failed: int
    rate: float

    @property
    def remaining(self) -> float | None:
        """Seconds left at this rate; None before the first row."""
        return (self.total - self.done) / self.rate if self.rate else None

    def __str__(self) -> str:
        share = self.done / self.total if self.total else 1.0
        left = "" if self.remaining is None else f", {clock(self.remaining)} left"
        failed = f", {self.failed:,} failed" if self.failed else ""
        return f"{self.done:,} of {self.total:,} rows ({share:.0%}), {self.rate:.1f} a second{left}{failed}"


def clock(seconds: float) -> str:
    """Seconds as people read them.

    Examples
    --------
    >>> clock(4000)
    '1:06:40'
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def check_progress(progress: Any) -> None:
    """Refuse what is neither a function nor a yes or no."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise ParameterError(
            f"progress is {progress!r}; needed True for a line on a terminal, a function of `Progress`, or None."
        )


class Meter:
    """Counts rows and tells a callback; True stands for a line on a terminal's standard error."""

    def __init__(self, total: int, progress: Callable[[Progress], None] | bool | None, skipped: int = 0) -> None:
        check_progress(progress)
        self._total, self._done, self._failed = total, skipped, 0
        self._tell = _Line(sys.stderr) if progress is True else progress or None
        self._lately = deque([(time.monotonic(), skipped)], maxlen=_LATELY)

    def count(self, failed: bool) -> None:
        """One row more."""
        self._done += 1
        self._failed += failed
        if self._tell is not None:
            now, (then, done) = time.monotonic(), self._lately[0]
            self._lately.append((now, self._done))
            rate = (self._done - done) / (now - then) if now > then else 0.0
            self._tell(Progress(self._done, self._total, self._failed, rate))


class _Line:
    """One line of a terminal, written over and over; silent where there is no terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream if stream.isatty() else None
        self._last, self._width = 0.0, 0

    def __call__(self, progress: Progress) -> None:
        over = progress.done == progress.total
        if self._stream is None or not (over or time.monotonic() - self._last >= _MIN_SECONDS):
            return
        self._last, text = time.monotonic(), str(progress)
        self._stream.write("\r" + text.ljust(self._width) + ("\n" if over else ""))
        self._stream.flush()
        self._width = len(text)
