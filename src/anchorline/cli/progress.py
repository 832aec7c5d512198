"""Progress on standard error: rows per second and the time left, only on a terminal, after one second."""

import contextlib
import copy
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from anchorline.cli.console import one_line, print_message
from anchorline.search.sources import Cost

_DELAY_SECONDS = 1.0  # before the bar appears
_LONG_SECONDS = 10.0  # shorter waits are not announced
_TYPICAL_QUERIES = 6000  # of an explanation that takes as many as it needs


class _RateColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:,.0f} rows/s")


def _bar(*columns: ProgressColumn) -> Progress:
    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    is_shown = console.is_terminal and sys.stderr.isatty()
    # Standard output is reserved for results.
    return Progress(*columns, console=console, transient=True, redirect_stdout=False, disable=not is_shown)


@contextlib.contextmanager
def row_progress() -> Iterator[Any]:
    """Yield a function that shows the `Progress` of a batch as a bar; None where nobody looks."""
    with _bar(BarColumn(), TextColumn("{task.description}", markup=False)) as bar:
        task = bar.add_task("", total=None)

        def show(progress: Any) -> None:
            bar.update(task, description=str(progress), completed=progress.done, total=progress.total)

        yield None if bar.disable else show


class QueryProgress:
    """Counts the rows that are sent to a model, and shows the remaining time as a progress bar.

    ``expected`` is an estimate of the total number of rows. The bar grows if there are more. With ``announce``,
    the first answer is timed, and a line says what all of them will cost if that is long.
    """

    def __init__(self, title: str, expected: float | None, *, announce: bool = False) -> None:
        self.n_rows, self._announces = 0, announce
        self._expected = expected
        description = TextColumn("{task.description}", markup=False)
        self._progress = _bar(description, BarColumn(), _RateColumn(), TimeRemainingColumn())
        self._task = self._progress.add_task(one_line(title), total=expected)
        self._timer = threading.Timer(_DELAY_SECONDS, self._progress.start)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        if not self._progress.disable:
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if not self._progress.disable:
            self._timer.join()  # otherwise the timer could start the bar after it was stopped
        self._progress.stop()

    def describe(self, title: str) -> None:
        """Change the text in front of the bar."""
        self._progress.update(self._task, description=one_line(title))

    def set_expected(self, expected: float) -> None:
        """Change the estimate of the total number of rows."""
        self._expected = expected
        self._progress.update(self._task, total=expected)

    def add_rows(self, n_rows: int, seconds: float) -> None:
        """Count rows that were sent to the model, and the time it took to answer."""
        self.n_rows += n_rows
        if self._expected is not None:
            if self._announces:
                cost = Cost(int(self._expected), seconds / max(n_rows, 1) * self._expected)
                if cost.seconds >= _LONG_SECONDS:
                    print_message(f"This takes {cost}.")
                self._announces = False
            if self.n_rows > self._expected:
                self.set_expected(self.n_rows * 1.2)
        self._progress.update(self._task, completed=self.n_rows)

    def wrap_model(self, model: Any) -> Any:
        """Return a copy of the model that counts the rows of every call and is otherwise the same."""
        if not callable(getattr(model, "predict", None)):
            return _CountingCallable(model, self.add_rows)
        wrapped = copy.copy(model)
        try:
            for name in ("predict", "predict_proba"):
                if callable(method := getattr(model, name, None)):
                    setattr(wrapped, name, _CountingCallable(method, self.add_rows))
            wrapped.counted_model = model  # whose trees may be read
        except AttributeError:  # the object does not allow new attributes, so its calls are not counted
            return model
        return wrapped


class _CountingCallable:
    """A callable that counts the rows it is called with, and otherwise behaves as the wrapped one."""

    def __init__(self, ask: Callable[[Any], Any], add_rows: Callable[[int, float], None]) -> None:
        self._ask, self._add_rows = ask, add_rows
        self.counted_model = ask  # whose trees may be read

    def __call__(self, inputs: Any) -> Any:
        start = time.perf_counter()
        answer = self._ask(inputs)
        self._add_rows(len(inputs) if hasattr(inputs, "__len__") else 1, time.perf_counter() - start)
        return answer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name != "__self__":
            raise AttributeError(name)
        return getattr(self._ask, name)


def expected_rows(n_queries: int | None, n_explanations: int) -> float:
    """Return an estimate of the rows sent to the model; ``n_queries`` per explanation, or None for auto."""
    return float(n_explanations * (_TYPICAL_QUERIES if n_queries is None else n_queries))
