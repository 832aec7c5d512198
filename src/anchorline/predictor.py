"""The black box: fixed batches, checked answers, one output scaled to [-1, +1], queries counted."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.errors import BudgetError, ParameterError, PredictorError, PredictorOutputError

BATCH_ROWS = 4096  # fixed, because a model's last bits may depend on the batch it sees
_DROP_GRID = 2.0**26  # drops are multiples of 1 / this, so that their sums are exact
TASKS = (None, "label", "number")


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What the model said of some rows: drops (n,), and where the decision stayed, if there is one."""

    drops: np.ndarray
    stays: np.ndarray | None


class Predictor:
    """A model seen from one instance: how far its output falls, on the scale [-1, +1].

    Parameters
    ----------
    model
        A callable from model inputs (n rows) to n numbers, or labels with ``task="label"``.
    original
        The instance, as a model input of one row; it is queried at once.
    output_range
        Lowest and highest output, scaled to -1 and +1. Outputs beyond are clipped and counted.
    task
        "label": the output is +1 where the label equals the one at the instance, else -1.
        "number": integers are numbers. None: numbers; integers only if they are -1 or +1, as labels.
    threshold
        The decision is "output >= threshold"; None: no decision, unless the answers are labels.
    max_queries
        Hard limit of rows shown to the model.
    checksum_key
        Philox key of the weights of `checksum`.
    """

    def __init__(
        self,
        model: Callable[[Any], Any],
        original: Any,
        *,
        output_range: tuple[float, float] = (-1.0, 1.0),
        task: str | None = None,
        threshold: float | None = None,
        max_queries: int | None = None,
        checksum_key: int = 0,
    ) -> None:
        if not callable(model):
            raise ParameterError(
                f"predict is a {type(model).__name__}, not callable; needed a function of an (n, d) array, "
                "for example `model.predict`."
            )
        if task not in TASKS:
            raise ParameterError(f"task is {task!r}; needed 'label', 'number' or None.")
        self._model, self._task, self._max_queries = model, task, max_queries
        self._low, self._high = checked_range(output_range)
        self._threshold, self._checksum_key, self._checksum = checked_threshold(threshold), checksum_key, 0
        self.n_queries = 0
        self.n_clipped = 0
        answer = self._ask(original, 1)
        self.is_label = task == "label" or (task is None and answer.dtype.kind in "iub")
        self.label = getattr(answer[0], "item", lambda: answer[0])() if self.is_label else None
        self.prediction = 1.0 if task == "label" else float(answer[0])
        if self.is_label and (threshold is not None or (self._low, self._high) != (-1.0, 1.0)):
            raise ParameterError(
                "The answers are labels: they have no threshold and no output_range. Leave both out, or say that "
                "integers are numbers by task='number'."
            )
        if not self._low <= self.prediction <= self._high:
            raise PredictorOutputError(
                f"The model's output at x is {self.prediction:g}, outside output_range ({self._low:g}, "
                f"{self._high:g}). Pass output_range=(lowest, highest) of the model's outputs."
            )

    @property
    def half_range(self) -> float:
        """Half the output range: what 1 on the scale means in the output's own units."""
        return (self._high - self._low) / 2

    @property
    def scaled_prediction(self) -> float:
        """The prediction on the scale [-1, +1]."""
        return float(self._scale(np.array([self.prediction]))[0])

    @property
    def origin(self) -> float:
        """The scaled value of a zero output."""
        return float((0.0 - self._low) / self.half_range - 1)

    @property
    def checksum(self) -> float:
        """A random weighted sum of all drops so far: another answer to any query gives another number."""
        return self._checksum / (_DROP_GRID * 2.0**16)

    def in_own_units(self, contributions: np.ndarray, intercept: float) -> tuple[np.ndarray, float]:
        """A sum on the scale [-1, +1] in the output's own units, anchored again; no intercept stays none."""
        own = contributions * self.half_range
        return own, 0.0 if intercept == self.origin else self.prediction - float(own.sum())

    def answer(self, inputs: Any, n_rows: int) -> Answer:
        """``(f(x) - f(z)) / 2`` for every row, rounded to multiples of 2^-26, and where the decision stays."""
        position = self.n_queries
        raw = self._ask(inputs, n_rows)
        if self._task == "label":
            outputs = np.where(raw == self.label, 1.0, -1.0)
        else:
            outputs = self._scale(raw.astype(np.float64))
            outside = np.abs(outputs) > 1
            if outside.any():
                self.n_clipped += int(outside.sum())
                outputs = np.clip(outputs, -1.0, 1.0)
        ticks = np.rint((self.scaled_prediction - outputs) * (_DROP_GRID / 2))
        self._note(ticks.astype(np.int64), position)
        stays = None
        if self.is_label:
            stays = ticks == 0
        elif self._threshold is not None:
            stays = (raw >= self._threshold) == (self.prediction >= self._threshold)
        return Answer(ticks / _DROP_GRID, stays)

    def _note(self, ticks: np.ndarray, position: int) -> None:
        """Add the rows' drops to the checksum, each weighted by 16 random bits of its own; exact integers."""
        words = np.random.Philox(key=self._checksum_key).advance(position).random_raw(4 * len(ticks))[::4]
        self._checksum += int((ticks * (words >> np.uint64(48)).astype(np.int64)).sum())

    def _scale(self, outputs: np.ndarray) -> np.ndarray:
        if (self._low, self._high) == (-1.0, 1.0):
            return outputs
        return (outputs - self._low) / self.half_range - 1

    def _ask(self, inputs: Any, n_rows: int) -> np.ndarray:
        if self._max_queries is not None and self.n_queries + n_rows > self._max_queries:
            raise BudgetError(
                f"{self.n_queries + n_rows} queries needed, max_queries is {self._max_queries}. "
                "Lower n_samples or raise max_queries."
            )
        self.n_queries += n_rows
        try:
            answer = self._model(inputs)
        except Exception as error:
            shape = getattr(inputs, "shape", None)
            raise PredictorError(
                f"The model raised {type(error).__name__}: {error} (asked for {n_rows} rows, input of type "
                f"{type(inputs).__name__}, shape {shape}). Try `predict` on such an input by hand."
            ) from error
        return _checked_answer(answer, n_rows, self._task)


def batches(n_rows: int, first: int = 0) -> Iterator[tuple[int, int]]:
    """Fixed boundaries of model calls: (start, stop) of every batch of the rows ``first`` to ``n_rows``."""
    for start in range(first, n_rows, BATCH_ROWS):
        yield start, min(start + BATCH_ROWS, n_rows)


def checked_threshold(threshold: float | None) -> float | None:
    """The threshold as a finite number, or None."""
    if threshold is None:
        return None
    if isinstance(threshold, (int, float, np.number)) and np.isfinite(threshold):
        return float(threshold)
    raise ParameterError(f"threshold is {threshold!r}; needed a finite number, or None. Type threshold=0.5.")


def checked_range(output_range: tuple[float, float]) -> tuple[float, float]:
    """Lowest and highest output as floats whose distance has a half."""
    try:
        low, high = (float(end) for end in output_range)
    except (TypeError, ValueError):
        low = high = np.nan
    half = high / 2 - low / 2
    if not (np.isfinite([low, high, half]).all() and half > 1e-300 and np.isfinite(2 * half)):
        raise ParameterError(
            f"output_range is {output_range!r}; needed two finite numbers, lowest first. Type output_range=(0, 1)."
        )
    return low, high


def _checked_answer(answer: Any, n_rows: int, task: str | None) -> np.ndarray:
    """One finite number (or label) a row, or a `PredictorOutputError` that says what came."""
    if answer is None:
        raise PredictorOutputError(f"The predictor returned None; needed {n_rows} numbers. Add a `return`?")
    try:
        array = np.asarray(answer)
    except Exception as error:
        raise PredictorOutputError(f"The predictor's answer is no array: {error}") from error
    if array.shape != (n_rows,):
        raise PredictorOutputError.wrong_shape(array.shape, n_rows)
    if task == "label":
        if any(label != label for label in array.tolist()):  # noqa: PLR0124  only NaN differs from itself
            raise PredictorOutputError(
                "The predictor returned NaN as a label; needed labels that equal themselves."
            )
        return array
    if array.dtype.kind not in "fiub":
        raise PredictorOutputError(
            f"The predictor returned {array.dtype} values such as {array[0]!r}; needed numbers. "
            "For labels pass task='label'."
        )
    if array.dtype.kind in "iub" and task is None and not np.isin(array, (-1, 1)).all():
        raise PredictorOutputError(
            f"The predictor returned integers such as {array[0]}: labels or numbers? "
            "For a classifier's `predict` pass task='label', else task='number'."
        )
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise PredictorOutputError(
            f"The predictor returned {array[bad[0]]} for {bad.size} of {n_rows} rows (first: row {bad[0]}); "
            "needed finite numbers. Look at `predict(x[None])`, or wrap it: `lambda X: np.nan_to_num(predict(X))`."
        )
    return array
