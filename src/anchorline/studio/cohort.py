"""A cohort: the cases that match a search, explained piece by piece while somebody asks for their summary.

Every request goes on for about a second and returns what is known so far. Work therefore has progress, ends when
nobody asks any more, and takes turns with all other requests. What is known is kept.
"""

import math
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from anchorline.result.explanation import Explanation
from anchorline.result.explanations import Explanations
from anchorline.studio.catalog import Catalog
from anchorline.studio.job_queue import JobCanceledError, checkpoint, raise_if_canceled, running_seconds
from anchorline.studio.limits import MAX_ANSWERED
from anchorline.studio.search_time import limited_search

_STEP_SECONDS = 1.0
_QUICK_SECONDS = 0.25  # a chunk that takes less is followed by a larger one, after a step's time by a smaller one
_MAX_CHUNK, _ANSWERS_PER_CHUNK = 128, 512
_ROW_SECONDS = 5.0  # a search for one sum that takes longer ends with its best sum
_MAX_VALUES = 60_000  # facts of all explanations of a cohort, which take a few hundred bytes each


class Cohort:
    """The explanations of a sample of the cases that match a search, and the answers to a larger sample.

    ``explain`` explains positions of the table, in order. A case whose request ends after more than
    ``case_seconds`` spent on this case alone is left out.
    """

    def __init__(
        self,
        catalog: Catalog,
        search: str,
        n_rows: int,
        explain: Callable[[list[int]], Explanations],
        case_seconds: float = math.inf,
    ) -> None:
        self._catalog, self._search, self._explain, self._case_seconds = catalog, search, explain, case_seconds
        self._n_rows = min(n_rows, max(20, _MAX_VALUES // max(1, len(catalog.names))))
        self._lock, self._chunk, self._slow_until = threading.Lock(), 1, 0
        self.used = 0.0  # when a request last began or ended
        self.found: np.ndarray | None = None  # None while the model's answers, which the search needs, are unknown
        self.positions, self.answered = np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
        self.explained: list[tuple[int, Explanation]] = []
        self.n_done = self.n_answered = 0
        self.search_progress = 0.0
        self.failures: dict[int, str] = {}  # why, by position
        self.kept: dict[str, Any] = {}  # what was computed from the whole cohort

    @property
    def progress(self) -> float:
        """The share of the work that is done."""
        if self.found is None:
            return 0.2 * self.search_progress
        total = max(1, len(self.positions) + len(self.answered) / 50)
        return 0.2 + 0.8 * min(1.0, (self.n_done + self.n_answered / 50) / total) if total else 1.0

    @property
    def is_done(self) -> bool:
        """Whether every case of the samples was explained or has failed, and the model has answered."""
        is_found = self.found is not None
        return is_found and self.n_done == len(self.positions) and self.n_answered == len(self.answered)

    def step(self, seconds: float = _STEP_SECONDS) -> None:
        """Go on for about that time, unless another thread does."""
        if self.is_done or not self._lock.acquire(blocking=False):
            return
        try:
            end = time.monotonic() + seconds
            self._find()
            while self.found is not None and not self.is_done and time.monotonic() < end:
                checkpoint()
                if self.n_answered < len(self.answered):
                    self._answer()
                else:
                    self._explain_chunk()
        finally:
            self.used = time.monotonic()
            self._lock.release()

    @property
    def is_busy(self) -> bool:
        """Whether a request goes on with it at the moment."""
        return self._lock.locked()

    def _find(self) -> None:
        if self.found is not None:
            return
        found, self.search_progress = self._catalog.find(self._search, "position")
        if self.search_progress < 1:
            return
        rng = np.random.default_rng(0)  # the same cases for everybody
        self.positions = _sampled(found, self._n_rows, rng)
        self.answered = _sampled(found, MAX_ANSWERED, rng)
        self.found = found

    def _answer(self) -> None:
        part = self.answered[self.n_answered : self.n_answered + _ANSWERS_PER_CHUNK]
        self._catalog.answer_table.at(part.tolist())
        self.n_answered += len(part)

    def _explain_chunk(self) -> None:
        start, began = time.monotonic(), running_seconds()
        part = self.positions[self.n_done : self.n_done + self._chunk].tolist()
        try:
            with limited_search(_ROW_SECONDS * len(part), keep_best=True):
                many = self._explain(part)
            raise_if_canceled()  # then rows have failed that another request will explain
        except JobCanceledError:  # the next request may have no more time, so that it tries one case at a time
            self._chunk = 1
            self._slow_until = self.n_done + len(part)
            if len(part) == 1 and running_seconds() - began > self._case_seconds:
                self.failures[part[0]] = "took too long"
                self.n_done += 1
            raise
        for position, entry in zip(part, many, strict=True):
            if isinstance(entry, Explanation):
                self.explained.append((position, entry))
            else:
                self.failures[position] = entry.error_type
        self.n_done += len(part)
        seconds = time.monotonic() - start
        if seconds < _QUICK_SECONDS and self.n_done >= self._slow_until:
            self._chunk = min(_MAX_CHUNK, 2 * self._chunk)
        elif seconds > _STEP_SECONDS:
            self._chunk = max(1, self._chunk // 2)


def _sampled(found: np.ndarray, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Return all positions, or a random sample of them in order."""
    return found if len(found) <= n_rows else np.sort(rng.choice(found, n_rows, replace=False))


def explain_positions(explainer: Explainer, catalog: Catalog, positions: list[int], keywords: Any) -> Explanations:
    """Explain rows of the table together, so that trees are solved column by column."""
    stored = catalog.cases.stored_at[np.array(positions, dtype=np.intp)]
    frame, _ = next(catalog.cases.inputs(stored))  # a table has one input for all rows
    return explainer.explain_many(frame, errors="keep", **keywords)
