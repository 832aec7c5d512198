"""Progress of a batch: rows finished, rate and remaining time."""

import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

from anchorline.errors import ParameterError

_MIN_SECONDS = 0.2  # between two updates of the terminal line
_RATE_ROWS = 200  # the rate covers the latest rows, so that the start of the workers soon stops counting


@dataclass(frozen=True, slots=True)
class Progress:
    """Rows finished, all rows, finished rows that failed, and the recent rate in rows per second.

    The rate is 0 before the first row.

    Examples
    --------
    >>> print(Progress(done=50, total=200, failed=1, rate=2.0))
    50 of 200 rows (25%), 2.0 per second, 1:15 left, 1 failed
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
        left = "" if self.remaining is None else f", {format_duration(self.remaining)} left"
        failed = f", {self.failed:,} failed" if self.failed else ""
        return f"{self.done:,} of {self.total:,} rows ({share:.0%}), {self.rate:.1f} per second{left}{failed}"


def format_duration(seconds: float) -> str:
    """Format seconds as minutes and seconds, with hours where there are any.

    Examples
    --------
    >>> format_duration(4000)
    '1:06:40'
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def check_progress(progress: Any) -> None:
    """Raise `ParameterError` unless ``progress`` is a function, a bool or None."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise ParameterError(
            f"progress is {progress!r}, but it must be True for a line on a terminal, a function of `Progress`, "
            "or None."
        )


class ProgressReporter:
    """Counts rows and calls a function after each; True writes a line to a terminal or below a notebook's cell."""

    def __init__(self, total: int, progress: Callable[[Progress], None] | bool | None, skipped: int = 0) -> None:
        check_progress(progress)
        self._total, self._done, self._failed = total, skipped, 0
        self._report = _TerminalLine(sys.stderr) if progress is True else progress or None
        self._recent = deque([(time.monotonic(), skipped)], maxlen=_RATE_ROWS)

    def count(self, failed: bool) -> None:
        """Count one more row and report the progress."""
        self._done += 1
        self._failed += failed
        if self._report is not None:
            now, (then, done) = time.monotonic(), self._recent[0]
            self._recent.append((now, self._done))
            rate = (self._done - done) / (now - then) if now > then else 0.0
            self._report(Progress(self._done, self._total, self._failed, rate))


class _TerminalLine:
    """One line of a terminal or a notebook, overwritten with each update; other streams get nothing."""

    def __init__(self, stream: TextIO) -> None:
        is_notebook = type(stream).__module__.partition(".")[0] == "ipykernel"  # which overwrites lines, too
        self._stream = stream if is_notebook or stream.isatty() else None
        self._last, self._width = 0.0, 0

    def __call__(self, progress: Progress) -> None:
        is_last = progress.done == progress.total
        if self._stream is None or not (is_last or time.monotonic() - self._last >= _MIN_SECONDS):
            return
        self._last, text = time.monotonic(), str(progress)
        self._stream.write("\r" + text.ljust(self._width) + ("\n" if is_last else ""))
        self._stream.flush()
        self._width = len(text)
