"""A cohort: the cases that match a search, explained one by one while somebody asks for their summary.

Every request goes on for about a second and returns what is known so far. Work therefore has progress, ends when
nobody asks any more, and takes turns with all other requests. What is known is kept.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from anchorline.errors import AnchorlineError
from anchorline.result.explanation import Explanation
from anchorline.studio.catalog import Catalog
from anchorline.studio.job_queue import JobCanceledError, checkpoint, running_seconds
from anchorline.studio.limits import MAX_ANSWERED
from anchorline.studio.problems import Problem

logger = logging.getLogger("anchorline.studio")
_STEP_SECONDS = 1.0
_ANSWERS_PER_CHUNK = 512
_MAX_VALUES = 60_000  # values of all explained cases of a cohort, which take a few hundred bytes each
_MAX_COHORTS = 12  # in memory; each holds a few hundred explanations
_MAX_PER_USER = 4  # that are under way, so that one user leaves room for the others
_IDLE_SECONDS = 10.0  # the page asks about an unfinished cohort several times in this time


class Cohort:
    """The explanations of a sample of the cases that match a search, and the answers to a larger sample.

    ``explain`` explains a position of the table. A case whose request ends after more than ``case_seconds`` spent
    on this case alone is left out.
    """

    def __init__(
        self,
        catalog: Catalog,
        search: str,
        n_rows: int,
        explain: Callable[[int], Explanation],
        case_seconds: float,
    ) -> None:
        self._catalog, self._search, self._explain, self._case_seconds = catalog, search, explain, case_seconds
        self._n_rows = min(n_rows, max(20, _MAX_VALUES // max(1, len(catalog.names))))
        self._lock = threading.Lock()
        self.used = 0.0  # when a request last began or ended
        self.found: np.ndarray | None = None  # None while the model's answers, which the search needs, are unknown
        self.positions, self.answered = np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
        self.explained: list[tuple[int, Explanation]] = []
        self.n_answered = 0
        self._search_progress = 0.0
        self.failures: dict[int, str] = {}  # the kind of error, by position

    @property
    def n_done(self) -> int:
        """How many cases were explained or have failed."""
        return len(self.explained) + len(self.failures)

    @property
    def progress(self) -> float:
        """The share of the work that is done."""
        if self.is_done or self.found is None:
            return 1.0 if self.is_done else 0.2 * self._search_progress
        total = len(self.positions) + len(self.answered) / 50
        return min(0.999, 0.2 + 0.8 * (self.n_done + self.n_answered / 50) / total)

    @property
    def is_done(self) -> bool:
        """Whether every case of the samples was explained or has failed, and the model has answered."""
        is_found = self.found is not None
        return is_found and self.n_done == len(self.positions) and self.n_answered == len(self.answered)

    @property
    def is_busy(self) -> bool:
        """Whether a request goes on with it at the moment."""
        return self._lock.locked()

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
                    self._explain_next()
        finally:
            self.used = time.monotonic()
            self._lock.release()

    def _find(self) -> None:
        if self.found is not None:
            return
        found, self._search_progress = self._catalog.find(self._search, "position")
        if self._search_progress < 1:
            return
        rng = np.random.default_rng(0)  # the same cases for everybody
        self.positions = _sampled(found, self._n_rows, rng)
        self.answered = _sampled(found, MAX_ANSWERED, rng)
        self.found = found

    def _answer(self) -> None:
        part = self.answered[self.n_answered : self.n_answered + _ANSWERS_PER_CHUNK]
        self._catalog.answer_table.at(part.tolist())
        self.n_answered += len(part)

    def _explain_next(self) -> None:
        position, began = int(self.positions[self.n_done]), running_seconds()
        try:
            self.explained.append((position, self._explain(position)))
        except AnchorlineError as error:
            if not self.failures:  # further ones are most likely of the same kind
                logger.exception("case %s of a summary could not be explained", position)
            self.failures[position] = type(error).__name__
        except JobCanceledError:
            if running_seconds() - began > self._case_seconds:
                self.failures[position] = "TimeoutError"
            raise


def _sampled(found: np.ndarray, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Return all positions, or a random sample of them in order."""
    return found if len(found) <= n_rows else np.sort(rng.choice(found, n_rows, replace=False))


class CohortCache:
    """The cohorts that were asked for last; safe to use from several threads.

    A cohort that is neither finished nor idle is never dropped, because cohorts that displace each other in turns
    would all begin again and again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cohorts: dict[str, tuple[Cohort, str | None]] = {}  # with their users; least recently used first

    def get_or_build(self, key: str, user: str | None, build: Callable[[], Cohort]) -> Cohort:
        """Return the cohort stored under ``key``, or store a new one that ``user`` has begun.

        Raises `Problem` 429 if the user has too many under way, or if there is no room.
        """
        with self._lock:
            cohort, user = self._cohorts.pop(key, (None, user))
            if cohort is None:
                self._make_room(user)
                cohort = build()
            cohort.used = time.monotonic()
            self._cohorts[key] = cohort, user
            return cohort

    def _make_room(self, user: str | None) -> None:
        ended = [key for key, (cohort, _) in self._cohorts.items() if cohort.is_done or _is_idle(cohort)]
        own = [key for key, (_, other) in self._cohorts.items() if other == user and key not in ended]
        if len(own) >= _MAX_PER_USER:
            detail = f"{_MAX_PER_USER} summaries of yours are computed at the moment. Try again later."
            raise Problem(429, detail, headers={"Retry-After": "5"})
        if len(self._cohorts) < _MAX_COHORTS:
            return
        if not ended:
            detail = f"{_MAX_COHORTS} other summaries are computed at the moment. Try again later."
            raise Problem(429, detail, headers={"Retry-After": "5"})
        del self._cohorts[ended[0]]


def _is_idle(cohort: Cohort) -> bool:
    return not cohort.is_busy and time.monotonic() - cohort.used > _IDLE_SECONDS


def progress_of(cohort: Cohort) -> dict[str, Any]:
    """Return how far a cohort is explained, and which part of the table it is."""
    return {
        "progress": cohort.progress,
        "is_done": cohort.is_done,
        "found": None if cohort.found is None else len(cohort.found),
        "n_sampled": len(cohort.positions),
        "n_explained": len(cohort.explained),
        "failed": [*cohort.failures],
    }
