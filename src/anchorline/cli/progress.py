"""Progress on standard error: rows asked, rate and time left; only on a terminal, only after a second."""

import copy
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from anchorline.cli.console import error_console, one_line

PATIENCE = 1.0  # seconds before a bar appears


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:,.0f} rows/s")


class Meter:
    """Counts the rows a model is asked about and shows how many are left.

    ``expected`` is a guess of the rows in all; the bar grows where there are more.
    """

    def __init__(self, title: str, expected: float | None) -> None:
        self.n_rows = 0
        self._expected = expected
        console = error_console()
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            _Rate(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            redirect_stdout=False,  # results are for whoever reads them
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task(one_line(title), total=expected)
        self._timer = threading.Timer(PATIENCE, self._progress.start)
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
            self._timer.join()  # so that it does not start after the end
        self._progress.stop()

    def describe(self, title: str) -> None:
        """Say what is being done."""
        self._progress.update(self._task, description=one_line(title))

    def expect(self, expected: float) -> None:
        """Correct the guess."""
        self._expected = expected
        self._progress.update(self._task, total=expected)

    def note(self, n_rows: int) -> None:
        """Count rows."""
        self.n_rows += n_rows
        if self._expected is not None and self.n_rows > self._expected:
            self.expect(self.n_rows * 1.2)
        self._progress.update(self._task, completed=self.n_rows)

    def counted(self, model: Any) -> Any:
        """The model, whose every call is noted; all else about it stays."""
        if not callable(getattr(model, "predict", None)):
            return _Counted(model, self.note)
        shadow = copy.copy(model)
        for name in ("predict", "predict_proba"):
            method = getattr(model, name, None)
            if callable(method):
                try:
                    setattr(shadow, name, _Counted(method, self.note))
                except AttributeError:  # an object of fixed attributes: not counted
                    return model
        return shadow


class _Counted:
    """A callable that notes how many rows it is asked about, and is otherwise the one it wraps."""

    def __init__(self, ask: Callable[[Any], Any], note: Callable[[int], None]) -> None:
        self._ask, self._note = ask, note

    def __call__(self, inputs: Any) -> Any:
        answer = self._ask(inputs)
        self._note(len(inputs) if hasattr(inputs, "__len__") else 1)
        return answer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name != "__self__":
            raise AttributeError(name)
        return getattr(self._ask, name)


def expected_rows(keywords: dict[str, Any], n_explanations: int) -> float | None:
    """A guess of the rows a model will be asked about: a search sample, and a fresh one."""
    n_samples = keywords.get("n_samples")
    if n_samples == "auto":
        return None
    searched = n_samples or (20_000 if keywords.get("objective") == "relevance" else 5000)
    return float(n_explanations * (searched + min(searched, 10_000) + 1))
