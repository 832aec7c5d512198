"""A cohort: the cases that match a search, explained one by one while somebody asks for their summary.

Every request goes on for about a second and returns what is known so far. Work therefore has progress, ends when
nobody asks any more, and takes turns with all other requests. What is known is kept.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from anchorline.errors import AnchorlineError, ParameterError
from anchorline.guarantees.intervals import binomial_interval
from anchorline.model.outputs import plain_label
from anchorline.render.characters import printable
from anchorline.studio.catalog import AnswerTable, Catalog
from anchorline.studio.job_queue import JobCanceledError, checkpoint, running_seconds
from anchorline.studio.known import Known
from anchorline.studio.problems import logger

STEP_SECONDS = 1.0
_MAX_ANSWERED = 5_000  # cases of a summary whose answers are counted
_MAX_LABELS = 12  # of a confusion matrix
ANSWERS_PER_CHUNK = 512
_MAX_VALUES = 60_000  # values of all explained cases of a cohort, which take a few hundred bytes each


class Cohort:
    """The explanations of a sample of the cases that match a search, and the answers to a larger sample.

    ``explain`` explains a position of the table. A case whose request ends after more than ``case_seconds`` spent
    on this case alone is left out. A search about explanations finds what is ``known`` when it begins.
    """

    def __init__(
        self,
        catalog: Catalog,
        search: str,
        n_rows: int,
        explain: Callable[[int], Any],
        case_seconds: float,
        known: Known | None = None,
    ) -> None:
        self._known, self.state = known, None if known is None else known.state
        self._catalog, self._search, self._explain, self._case_seconds = catalog, search, explain, case_seconds
        self._n_rows = min(n_rows, max(20, _MAX_VALUES // max(1, len(catalog.names))))
        self._lock = threading.Lock()
        self.found: np.ndarray | None = None  # None while the model's answers, which the search needs, are unknown
        self.positions, self.answered = np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
        self.explained: list[tuple[int, Any]] = []  # or the rules
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

    def step(self, seconds: float = STEP_SECONDS) -> None:
        """Go on for about that time, unless another thread does."""
        if self.is_done or not self._lock.acquire(blocking=False):
            return
        try:
            end = time.monotonic() + seconds
            self._find()
            while self.found is not None and not self.is_done and time.monotonic() < end:
                checkpoint()
                part = self.answered[self.n_answered : self.n_answered + ANSWERS_PER_CHUNK]
                if len(part):
                    self._catalog.answer_table.at(part.tolist())
                    self.n_answered += len(part)
                else:
                    self._explain_next()
        finally:
            self._lock.release()

    def _find(self) -> None:
        if self.found is not None:
            return
        found, self._search_progress = self._catalog.find(self._search, "position", known=self._known)
        if self._search_progress < 1:
            return
        rng = np.random.default_rng(0)  # the same cases for everybody
        self.positions = sampled(found, self._n_rows, rng)
        self.answered = sampled(found, rng=rng)
        self.found = found

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


def sampled(found: np.ndarray, n_rows: int = _MAX_ANSWERED, rng: np.random.Generator | None = None) -> np.ndarray:
    """Return all positions, or a random sample of them in order, the same for everybody."""
    rng = np.random.default_rng(0) if rng is None else rng
    return found if len(found) <= n_rows else np.sort(rng.choice(found, n_rows, replace=False))


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


class Truth:
    """One outcome per case: the code of a text in ``labels`` (-1 if missing), and a number (NaN if it is none)."""

    def __init__(
        self, name: str, values: Sequence[Any], n_rows: int, label: Callable[[str], str] = printable
    ) -> None:
        plain = [plain_label(value) for value in (values.tolist() if hasattr(values, "tolist") else values)]
        if len(plain) != n_rows:
            raise ParameterError(
                f"The target has {len(plain):,} values for {n_rows:,} cases; each case needs one."
            )
        codes: dict[str, int] = {}
        texts = [None if _is_missing(value) else label(_text(value)) for value in plain]
        self.name = name
        self.codes = np.array([-1 if text is None else codes.setdefault(text, len(codes)) for text in texts])
        self.labels = list(codes)
        self.numbers = np.array([_number(value) for value in plain], dtype=float)

    def labels_like(self, names: Sequence[str]) -> list[str]:
        """Return the labels as the model writes them: 1 becomes 1.0 if a class has that name, and none is 1."""
        longer = {name.removesuffix(".0"): name for name in names if name.endswith(".0")}
        return [
            label if label in names or not label.removeprefix("-").isdecimal() else longer.get(label, label)
            for label in self.labels
        ]

    def texts(self, positions: Sequence[int], names: Sequence[str]) -> list[str | None]:
        """Return the outcomes of some cases as texts; ``names`` are those of the model's answers."""
        labels = self.labels_like(names)
        return [None if code < 0 else labels[code] for code in self.codes[list(positions)].tolist()]

    def rightness(self, table: AnswerTable) -> np.ndarray:
        """Return per case whether the model's decision is right (1), wrong (0) or unknown (-1)."""
        labels, levels = self.labels_like(table.names), table.levels
        if not {*labels} & {*table.names}:  # other words for the same, so that nothing is known
            return np.full(len(self.codes), -1)
        codes = np.array([levels.index(label) if label in levels else -2 for label in labels])[self.codes]
        return np.where((self.codes >= 0) & (table.codes >= 0), codes == table.codes, -1)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


def _text(value: Any) -> str:
    """Return a label as text; 1.0, which a column with missing values holds instead of 1, is 1."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else float("nan")


def outcomes(table: AnswerTable, rows: np.ndarray, truth: Truth | None) -> dict[str, Any]:
    """Return what the model decides in these cases, and how often it is right if the truth is known."""
    codes, levels = table.codes[rows], table.levels
    content: dict[str, Any] = {"n": len(rows), "target": None if truth is None else printable(truth.name)}
    if not levels:
        return content | {"numbers": _numbers(table.values[rows], None if truth is None else truth.numbers[rows])}
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    content["decisions"] = [
        {"label": levels[i], "count": int(counts[i])} for i in np.argsort(-counts, kind="stable")
    ]
    if truth is None:
        return content
    return content | _confusion(codes, levels, truth.codes[rows], truth.labels_like(table.names))


def _confusion(codes: np.ndarray, levels: list[str], actual: np.ndarray, labels: list[str]) -> dict[str, Any]:
    """Return how often each decision meets each outcome, and how often they agree.

    ``codes`` are the decisions as codes of ``levels``, ``actual`` the outcomes as codes of ``labels``.
    """
    names = sorted({*levels, *labels})
    if not {*levels} & {*labels}:
        return {"mismatch": [labels[:5], levels[:5]]}
    known = (actual >= 0) & (codes >= 0)
    places = [np.array([names.index(label) for label in each]) for each in (labels, levels)]
    found, decided = places[0][actual[known]], places[1][codes[known]]
    n, right = int(known.sum()), int((found == decided).sum())
    content: dict[str, Any] = {"n_true": n}
    if n:
        limits = binomial_interval(right, n, 0.95)
        content["right"] = {"value": right / n, "low": limits.low, "high": limits.high}
    if len(names) <= _MAX_LABELS:
        counts = np.zeros((len(names), len(names)), dtype=int)
        np.add.at(counts, (found, decided), 1)
        content["confusion"] = {"labels": names, "counts": counts.tolist()}
    return content


def _numbers(values: np.ndarray, actual: np.ndarray | None) -> dict[str, Any]:
    """Return the mean of numbers, and how far they are from the true ones."""
    content = {"mean": float(values.mean()) if len(values) else None}
    known = np.isfinite(values) & (np.isfinite(actual) if actual is not None else False)
    if actual is not None and known.any():
        content["mean_absolute_error"] = float(np.abs(values[known] - actual[known]).mean())
    return content
