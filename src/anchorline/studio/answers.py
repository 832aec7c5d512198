"""The model's answers to the rows of the table, kept as numbers and asked for block by block."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from anchorline.model.outputs import Target
from anchorline.model.predictor import Scores
from anchorline.render.characters import printable
from anchorline.spaces.columns import NUMBER, text_of
from anchorline.studio.job_queue import checkpoint

_FILL_SECONDS = 1.0  # a request asks for further blocks for about this time
_MAX_SCORES = 20_000_000  # scores of all classes are kept up to this many: 160 MB


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers to several rows: the decision per row, and the explained number per row (None for labels)."""

    texts: list[str]
    values: list[float | None]


class AnswerTable:
    """The answers to all rows, as far as they are known; ``ask`` returns the model's answers to positions.

    The model is asked about ``block_rows`` rows at once. For every row the table keeps a number and the code of a
    text, not Python objects, so that memory is bounded.
    """

    def __init__(
        self, ask: Callable[[np.ndarray], Scores], target: Callable[[], Target], n_rows: int, block_rows: int
    ) -> None:
        self._ask, self._target, self.n_rows, self._block_rows = ask, target, n_rows, block_rows
        self._lock = threading.Lock()
        self._levels: dict[str, int] = {}
        self.codes = np.full(n_rows, -1, dtype=np.int32)
        self.values = np.full(n_rows, np.nan)
        self._scores: np.ndarray | None = None
        self._known = np.zeros(-(-n_rows // block_rows), dtype=bool)

    @property
    def n_known(self) -> int:
        """How many rows have an answer."""
        return min(self.n_rows, int(self._known.sum()) * self._block_rows)

    @property
    def is_known(self) -> np.ndarray:
        """Whether each row has an answer."""
        return np.repeat(self._known, self._block_rows)[: self.n_rows]

    @property
    def levels(self) -> list[str]:
        """The distinct texts of answers; empty for numbers, whose texts follow from the numbers."""
        return list(self._levels)

    @property
    def names(self) -> list[str]:
        """The texts that answers can be: those of all classes, or if these are not known, the levels."""
        classes = self._target().classes
        return self.levels if classes is None else [printable(str(label)) for label in classes]

    def fill(self, seconds: float = _FILL_SECONDS) -> None:
        """Ask for further blocks for about that time, at least for one; progress is `n_known`."""
        end = time.monotonic() + seconds
        for block in np.flatnonzero(~self._known).tolist():
            checkpoint()
            positions = np.arange(block * self._block_rows, min(self.n_rows, (block + 1) * self._block_rows))
            self._store(positions, self._ask(positions))
            self._known[block] = True
            if time.monotonic() > end:
                return

    def at(self, positions: Sequence[int]) -> Answers:
        """Return the answers to a few rows; the model is asked about those that are not known."""
        rows = np.array(positions, dtype=np.intp)
        unknown = rows[~self._known[rows // self._block_rows]]
        if len(unknown):
            self._store(unknown, self._ask(unknown))
        levels, codes = self.levels, self.codes[rows].tolist()
        return _readable([levels[code] for code in codes if code >= 0] or None, self.values[rows])

    def readable(self, scores: Scores) -> Answers:
        """Return the decisions and the explained numbers in the model's answer to any rows."""
        return _readable(*self._read(scores))

    def scores(self, column: int) -> np.ndarray | None:
        """Return the score of one class per row (NaN where unknown), or None if there are too many to keep."""
        return None if self._scores is None else self._scores[:, column]

    def _read(self, scores: Scores) -> tuple[list[str] | None, np.ndarray]:
        """Return the texts, None for numbers; and the explained numbers, NaN for labels."""
        target, values = self._target(), scores.values
        if scores.named is not None and target.task != "number":
            column = scores.named if target.column is None else target.column
            labels = [f"class {j}" for j in range(values.shape[1])] if target.classes is None else target.classes
            names = [printable(str(label)) for label in labels]
            return [names[j] for j in scores.named.tolist()], values[np.arange(len(values)), column].astype(float)
        if values.ndim == 2:
            return None, values[:, target.column or 0].astype(float)
        if target.task == "number" or (values.dtype.kind == "f" and target.task != "label"):
            return None, values.astype(float)
        return [printable(str(label)) for label in values.tolist()], np.full(len(values), np.nan)

    def _store(self, rows: np.ndarray, scores: Scores) -> None:
        texts, numbers = self._read(scores)
        with self._lock:
            self.values[rows] = numbers
            if texts is not None:
                self.codes[rows] = [self._levels.setdefault(text, len(self._levels)) for text in texts]
            if scores.named is not None and self.n_rows * scores.values.shape[1] <= _MAX_SCORES:
                if self._scores is None:
                    self._scores = np.full((self.n_rows, scores.values.shape[1]), np.nan)
                self._scores[rows] = scores.values


def _readable(texts: list[str] | None, values: np.ndarray) -> Answers:
    numbers = values.tolist()
    if texts is None:
        return Answers([text_of(value, NUMBER) for value in numbers], numbers)
    return Answers(texts, [None if np.isnan(value) else value for value in numbers])
