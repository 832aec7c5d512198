"""The black box: fixed batches, checked answers, one output scaled to [-1, +1], queries counted."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.errors import AnchorlineError, BudgetError, ParameterError, PredictorError, PredictorOutputError

BATCH_ROWS = 4096  # fixed, because a model's last bits may depend on the batch it sees
_DROP_GRID = 2.0**26  # drops are multiples of 1 / this, so that their sums are exact
_ROUNDING = 1e-4  # how far the probabilities of a model that adds up in float32 may be off
TASKS = (None, "label", "number")
_SAY_WHICH = "labels or numbers? For a classifier's `predict` pass task='label', else task='number'."


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What the model said of some rows: drops (n,), where the decision stayed (if any), what was clipped."""

    drops: np.ndarray
    stays: np.ndarray | None
    clipped: np.ndarray


class Predictor:
    """A model seen from one instance: how far its output falls, on the scale [-1, +1].

    Parameters
    ----------
    model
        A callable from model inputs (n rows) to n numbers, n labels, or (n, c) scores of c classes.
    original
        The instance, as a model input of one row; it is queried at once.
    output_range
        Lowest and highest output, scaled to -1 and +1. Outputs beyond are clipped and counted. None: 0 and
        1 for probabilities, what ``learn`` says for other numbers, else -1 and 1.
    task
        "label": the output is +1 where the label equals the one at the instance, else -1. "number":
        integers are numbers. None: texts are labels; integers only if they are -1 or +1.
    column
        Which of several scores is explained; None: that of the most probable class at the instance.
    threshold
        The decision is "output >= threshold". None: which class is the most probable, or the label; of a
        number, no decision.
    max_queries
        Hard limit of rows shown to the model.
    checksum_key
        Philox key of the weights of `checksum`.
    learn
        From a column (None: there is only one) to the lowest and highest output known.
    """

    def __init__(
        self,
        model: Callable[[Any], Any],
        original: Any,
        *,
        output_range: tuple[float, float] | None = None,
        task: str | None = None,
        column: int | None = None,
        threshold: float | None = None,
        max_queries: int | None = None,
        checksum_key: int = 0,
        learn: Callable[[int | None], tuple[float, float]] | None = None,
    ) -> None:
        if not callable(model):
            raise ParameterError(
                f"predict is a {type(model).__name__}, not callable; needed a function of an (n, d) array, "
                "for example `model.predict`."
            )
        if task not in TASKS:
            raise ParameterError(f"task is {task!r}; needed 'label', 'number' or None.")
        self._model, self.task, self._max_queries = model, task, max_queries
        self._threshold, self.checksum_key, self.checksum_ticks = checked_threshold(threshold), checksum_key, 0
        self.n_queries = self.n_clipped = 0
        self.n_columns: int | None = None  # of the answers; None: one number a row
        answer = self._ask(original, 1)
        self.task = "label" if _is_text(answer) else task
        self.column = self._choose_column(answer, column)
        self.is_label = self.task == "label" or (task is None and answer.ndim == 1 and answer.dtype.kind in "iub")
        self.label = getattr(answer[0], "item", lambda: answer[0])() if self.is_label else None
        self._class = int(answer[0].argmax()) if answer.ndim == 2 and self.task != "number" else None
        self.is_probability = self._class is not None and _are_probabilities(answer)
        answer = answer.clip(0, 1) if self.is_probability else answer
        self._decision = self._decide(answer)
        self.prediction = 1.0 if self.task == "label" else float(self._one(answer)[0])
        if self.is_label and (threshold is not None or output_range not in (None, (-1.0, 1.0))):
            raise ParameterError(
                "The answers are labels: they have no threshold and no output_range. Leave both out, or say that "
                "integers are numbers by task='number'."
            )
        self._low, self._high = self._range(output_range, learn)
        if not self._low <= self.prediction <= self._high:
            raise PredictorOutputError(
                f"The model's output at x is {self.prediction:g}, outside output_range ({self._low:g}, "
                f"{self._high:g}). Pass output_range=(lowest, highest) of the model's outputs."
            )
        if self._threshold is not None and not self._low <= self._threshold <= self._high:
            raise ParameterError(
                f"threshold is {self._threshold:g}, outside output_range ({self._low:g}, {self._high:g}): no "
                "decision ever changes. Type output_range=(lowest, highest) of the model's outputs."
            )

    def _choose_column(self, answer: np.ndarray, column: int | None) -> int | None:
        """The column asked for, or that of the most probable class."""
        if answer.ndim == 1:
            if column is not None:
                raise ParameterError(
                    f"column is {column}, but the model answers with one value a row. Leave it out."
                )
            return None
        self.n_columns = answer.shape[1]
        if column is not None and column >= self.n_columns:
            raise ParameterError(f"column is {column}; the model answers with {self.n_columns} columns, from 0.")
        if column is None and self.task == "number":
            raise ParameterError(f"The model answers with {self.n_columns} numbers a row. Pass column=, from 0.")
        return int(answer[0].argmax()) if column is None else column

    def _range(
        self,
        given: tuple[float, float] | None,
        learn: Callable[[int | None], tuple[float, float]] | None,
    ) -> tuple[float, float]:
        """The output range: as given, by nature, or learned and stretched to hold the prediction."""
        if given is not None:
            return checked_range(given)
        if self.is_probability:
            return 0.0, 1.0
        if self.is_label or (learn is None and self.column is None):
            return -1.0, 1.0
        if learn is None:
            raise ParameterError(
                "The model's scores are no probabilities, and nothing tells their range. Pass "
                "output_range=(lowest, highest) of the scores."
            )
        low, high = learn(self.column)
        low, high = min(low, self.prediction), max(high, self.prediction)
        return checked_range((low, high) if low < high else (low - 1, high + 1))

    @property
    def output_range(self) -> tuple[float, float]:
        """Lowest and highest output."""
        return self._low, self._high

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
        """A random weighted sum of all drops so far: another answer to any query gives another number.

        It begins with bits of the key, so that another key shows even where nothing ever drops.
        """
        return (self.checksum_key % 2**42 + self.checksum_ticks) / (_DROP_GRID * 2.0**16)

    def in_own_units(self, contributions: np.ndarray, intercept: float) -> tuple[np.ndarray, float]:
        """A sum on the scale [-1, +1] in the output's own units, anchored again; no intercept stays none."""
        own = contributions * self.half_range
        return own, 0.0 if intercept == self.origin else self.prediction - float(own.sum())

    def answer(self, inputs: Any, n_rows: int) -> Answer:
        """``(f(x) - f(z)) / 2`` for every row, rounded to multiples of 2^-26, and where the decision stays."""
        position = self.n_queries
        raw = self._ask(inputs, n_rows)
        if self.is_probability and not _are_probabilities(raw):
            raise PredictorOutputError(
                "The model's scores add up to 1 at x, but not everywhere: they are no probabilities. Pass "
                "output_range=(lowest, highest) and column=, or task='number'."
            )
        raw = raw.clip(0, 1) if self.is_probability else raw  # rounding is no output to be counted as clipped
        if self.task == "label":
            outputs = np.where(raw == self.label, 1.0, -1.0)
        else:
            outputs = self._scale(self._one(raw).astype(np.float64))
        clipped = np.abs(outputs) > 1
        if clipped.any():
            self.n_clipped += int(clipped.sum())
            outputs = np.clip(outputs, -1.0, 1.0)
        ticks = np.rint((self.scaled_prediction - outputs) * (_DROP_GRID / 2))
        self._note(ticks.astype(np.int64), position)
        stays = ticks == 0 if self.is_label else None
        if self._decision is not None:
            stays = self._decide(raw) == self._decision
        return Answer(ticks / _DROP_GRID, stays, clipped)

    def _one(self, answer: np.ndarray) -> np.ndarray:
        """The output explained, of all that the model answered."""
        return answer if answer.ndim == 1 else answer[:, self.column]

    def _decide(self, answer: np.ndarray) -> np.ndarray | None:
        """The decision in every row: whether the threshold is reached, or which class is the most probable."""
        if self._threshold is not None and not self.is_label:
            return np.asarray(self._one(answer) >= self._threshold)
        return None if self._class is None else np.asarray(answer.argmax(axis=1) == self._class)

    @property
    def decision(self) -> str | None:
        """What is decided: "label", "threshold", "class" (the most probable), "own class" (the one explained)."""
        if self.is_label:
            return "label"
        if self._threshold is not None:
            return "threshold"
        return None if self._class is None else "own class" if self._class == self.column else "class"

    def _note(self, ticks: np.ndarray, position: int) -> None:
        """Add the rows' drops to the checksum, each weighted by 16 random bits of its own; exact integers."""
        step, first = divmod(position, 16)  # a step of Philox gives 16 times 16 bits
        last = first + len(ticks)
        words = np.random.Philox(key=self.checksum_key, counter=step).random_raw(-(-last // 4))
        self.checksum_ticks += int((ticks * words.astype("<u8", copy=False).view("<u2")[first:last]).sum())

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
        checked = ask(self._model, inputs, n_rows, self.task)
        if self.n_queries > n_rows:  # not the first: the kind of answer is known
            if checked.shape[1:] != (() if self.n_columns is None else (self.n_columns,)):
                raise PredictorOutputError.wrong_shape(checked.shape, n_rows)
            if _is_text(checked) and self.task != "label":
                raise PredictorOutputError.not_numbers(checked)
            if self.is_label and self.task is None and not np.isin(checked, (-1, 1)).all():
                other = checked[~np.isin(checked, (-1, 1))][0]
                raise PredictorOutputError(
                    f"The predictor returned the integer {self.label} for x, and {other} elsewhere: {_SAY_WHICH}"
                )
        return checked


def ask(model: Callable[[Any], Any], inputs: Any, n_rows: int, task: str | None) -> np.ndarray:
    """The model's checked answers to some rows; errors that say what was asked and what came."""
    if isinstance(inputs, np.ndarray) and not inputs.flags.c_contiguous:
        inputs = inputs.copy(order="C")  # row by row, as models expect it, whatever a space makes
    try:
        answer = model(inputs)
    except AnchorlineError:
        raise  # a model of our own already says what is wrong
    except Exception as error:
        raise PredictorError(_told(error, inputs, n_rows)) from error
    return _checked_answer(answer, n_rows, task)


def _told(error: Exception, inputs: Any, n_rows: int) -> str:
    shape, kind = getattr(inputs, "shape", None), type(inputs).__name__
    hint = "Try `predict` on such an input by hand."
    if not isinstance(inputs, np.ndarray):
        hint = "If the model takes arrays, pass input='array'; else try it on such a frame by hand."
    return (
        f"The model raised {type(error).__name__}: {error} (asked for {n_rows} rows, input of type {kind}, "
        f"shape {shape}). {hint}"
    )


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
    if array.shape == (n_rows, 1):
        array = array[:, 0]
    if array.shape != (n_rows,) and not (task != "label" and array.ndim == 2 and array.shape[0] == n_rows):
        raise PredictorOutputError.wrong_shape(array.shape, n_rows)
    if task == "label" or _is_text(array):
        if any(label != label for label in array.tolist()):  # noqa: PLR0124  only NaN differs from itself
            raise PredictorOutputError(
                "The predictor returned NaN as a label; needed labels that equal themselves."
            )
        return array
    if array.dtype.kind not in "fiub" or array.shape[1:] == (0,):
        raise PredictorOutputError.not_numbers(array)
    if array.ndim == 1 and array.dtype.kind in "iub" and task is None and not np.isin(array, (-1, 1)).all():
        raise PredictorOutputError(f"The predictor returned integers such as {array[0]}: {_SAY_WHICH}")
    if not np.isfinite(array).all():
        bad = np.flatnonzero(~np.isfinite(array.reshape(n_rows, -1)).all(axis=1))
        raise PredictorOutputError(
            f"The predictor returned {array[bad[0]]} for {bad.size} of {n_rows} rows (first: row {bad[0]}); "
            "needed finite numbers. Look at `predict(x[None])`, or wrap it: `lambda X: np.nan_to_num(predict(X))`."
        )
    return array


def _is_text(array: np.ndarray) -> bool:
    """Whether the answers are texts: labels, whatever the task."""
    return array.ndim == 1 and (array.dtype.kind in "UT" or (array.dtype == object and isinstance(array[0], str)))


def _are_probabilities(answer: np.ndarray) -> bool:
    """Whether the scores of every row are probabilities, up to the rounding of sums of float32."""
    return bool((answer >= -_ROUNDING).all() and (np.abs(answer.sum(axis=1) - 1) <= _ROUNDING).all())
