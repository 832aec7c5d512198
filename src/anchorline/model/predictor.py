"""The black box: a target, fixed batches, checked answers, one output scaled to [-1, +1], queries counted."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.errors import AnchorlineError, ParameterError, PredictorError, PredictorOutputError
from anchorline.grid import DROP_GRID
from anchorline.model import failures
from anchorline.model.target import TASKS, Target, checked_range

BATCH_ROWS = 4096  # fixed, because a model's last bits may depend on the batch it sees
_ROUNDING = 1e-4  # probabilities that a model sums in float32 may be off by this much
_ABOUT_THE_SAME = 0.10  # of the usual spread of the outputs; a change within this reads as "about the same"
Range = tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A model's answers to some rows.

    ``drops`` (n,); ``stays`` (n,), whether the decision is unchanged, or the number about the same, or None if
    that is not measured; ``clipped`` (n,), whether the output left its range.
    """

    drops: np.ndarray
    stays: np.ndarray | None
    clipped: np.ndarray


class Predictor:
    """A model seen from one instance: how far its output falls, on the scale [-1, +1].

    The constructor queries nothing. `open` queries the model about the instance; everything else needs that.

    Parameters
    ----------
    target
        What to ask, and which part of the answer is explained. Answers are n numbers, n labels, or (n, c)
        scores of c classes. With task "label", the output is +1 where the label equals the one at the
        instance, otherwise -1; with "number", integers are numbers; with None, texts are labels, and so are
        integers if they are -1 or +1.
    output_range
        Lowest and highest output, scaled to -1 and +1. Outputs beyond are clipped and counted. None stands
        for 0 and 1 for probabilities, for the result of ``learn`` for other numbers, otherwise for -1 and 1.
    threshold
        The decision is "output >= threshold". None stands for the class that the model chooses, or for the label.
    same_within
        A number without a threshold stays the same if it changes by at most this much. None stands for a tenth of
        the learned spread, or of the output range if that is given.
    max_queries
        Hard limit of rows shown to the model.
    learn
        Returns the lowest and highest known output of a column (None: the only one), and their usual spread.
    compare
        Whether it is measured if a number stays the same; explanations of the first release did not.
    """

    prediction: float
    column: int | None
    label: Any
    is_label: bool
    is_probability: bool
    same_within: float | None

    def __init__(
        self,
        target: Target,
        *,
        output_range: Range | None = None,
        threshold: float | None = None,
        same_within: float | None = None,
        max_queries: int | None = None,
        learn: Callable[[int | None], tuple[float, float, float]] | None = None,
        compare: bool = True,
    ) -> None:
        if not callable(target.ask):
            raise failures.not_callable(target.ask)
        if target.task not in TASKS:
            raise ParameterError(f"task is {target.task!r}, but it must be 'label', 'number' or None.")
        self.target, self.task, self._max_queries = target, target.task, max_queries
        self._given_range, self._learn = output_range, learn
        self._threshold, self._given_same, self._compare = threshold, same_within, compare
        self._is_learned, self._spread = False, 0.0
        self.n_columns: int | None = None  # of the answers; None if they are one value per row
        self.checksum_key = self.checksum_ticks = 0
        self.n_queries, self.n_clipped, self.largest = 0, 0, 1.0  # scaled outputs beyond the largest are clipped

    def open(self, original: Any) -> "Predictor":
        """Query the model about the instance, one model input of one row; return the predictor itself."""
        answer, chosen = self.query(original, 1)
        self.task = "label" if _is_text(answer) else self.target.task
        self.column = self._choose_column(answer, chosen, self.target.column)
        integers = self.target.task is None and answer.ndim == 1 and answer.dtype.kind in "iub"
        self.is_label = self.task == "label" or integers
        self.label = getattr(answer[0], "item", lambda: answer[0])() if self.is_label else None
        self.class_ = None if chosen is None or self.task == "number" else int(chosen[0])
        self.is_probability = self.class_ is not None and self.target.scale is None and _are_probabilities(answer)
        answer = answer.clip(0, 1) if self.is_probability else answer
        self._decision = self._decide(answer, chosen)
        self.prediction = 1.0 if self.task == "label" else float(self._one(answer)[0])
        self._check_answer()
        self._low, self._high = self._range()
        self._check_range()
        self.same_within = self._same_within()
        return self

    def _check_answer(self) -> None:
        target, n_columns = self.target, self.n_columns
        if self.is_label and (self._threshold is not None or self._given_range not in (None, (-1.0, 1.0))):
            raise failures.labels_have_no_range()
        if n_columns is not None and target.classes is not None and len(target.classes) != n_columns:
            raise failures.other_number_of_classes(len(target.classes), n_columns)
        if n_columns is not None and target.classes is None and target.column is None and target.name is not None:
            raise failures.columns_without_names(target.name, n_columns)
        if target.labels is not None and self.label not in target.labels:
            raise failures.unknown_label(target.labels, self.label)
        if self._given_same is not None and self.decision != "number":
            raise failures.decisions_are_not_near()

    def _check_range(self) -> None:
        if not self._low <= self.prediction <= self._high:
            raise failures.outside_range(self.prediction, self._low, self._high)
        if self._threshold is not None and not self._low <= self._threshold <= self._high:
            raise failures.threshold_outside_range(self._threshold, self._low, self._high)

    def describe(self) -> dict[str, Any]:
        """Return what is explained of the model, in plain values, to be recorded with an explanation."""
        classes = self.target.classes if self.n_columns is not None else None
        rule = None if self.target.rule is None or self.class_ is None else dict(self.target.rule)
        same = {"same_within": self.same_within, "same_is_given": None if self._given_same is None else True}
        return {
            "output": output_name(self.target, self.column),
            "column": self.column,
            "classes": None if classes is None else [plain_label(label) for label in classes],
            "task": self.task,
            "probability": self.is_probability,
            "output_range": list(self.output_range),
            "learned_range": self._is_learned,
            "threshold": self._threshold,
            "input": self.target.input,
            **(self.target.contrast or {}),
            **({"output_scale": self.target.scale} if self.target.scale else {}),
            **{name: value for name, value in {"rule": rule, **same}.items() if value is not None},
        }

    def _choose_column(self, answer: np.ndarray, chosen: np.ndarray | None, column: int | None) -> int | None:
        """Return the requested column, or that of the class that the model chooses."""
        if chosen is None:
            if column is not None:
                raise failures.no_columns(column)
            return None
        self.n_columns = answer.shape[1]
        if column is not None and column >= self.n_columns:
            raise failures.too_few_columns(column, self.n_columns)
        if column is None and self.task == "number":
            raise ParameterError(f"The model returns {self.n_columns} numbers per row. Pass column=.")
        return int(chosen[0]) if column is None else column

    def _range(self) -> Range:
        """Return the output range: as given, that of probabilities, or as learned, stretched to the prediction."""
        if self._given_range is not None:
            return checked_range(self._given_range)
        if self.is_probability or self.target.known_range is not None:
            return self.target.known_range or (0.0, 1.0)
        if self.is_label or (self._learn is None and self.column is None):
            return -1.0, 1.0
        if self._learn is None:
            raise failures.unknown_range()
        low, high, self._spread = self._learn(self.column)
        self._is_learned = True
        low, high = min(low, self.prediction), max(high, self.prediction)
        if low == high:  # a constant, around which a range must have room at every size of numbers
            room, most = max(1.0, abs(low) / 1024), float(np.finfo(np.float64).max)
            low, high = max(low - room, -most), min(high + room, most)
        return checked_range((low, high))

    def _same_within(self) -> float | None:
        """Return by how much a number may change and stay the same, with two digits; None if it is a decision."""
        if self.decision != "number":
            return None
        width = self._spread if self._is_learned else self._high - self._low
        return about_the_same(width) if self._given_same is None else self._given_same

    @property
    def output_range(self) -> tuple[float, float]:
        """Lowest and highest output."""
        return self._low, self._high

    @property
    def half_range(self) -> float:
        """Half the output range: the size of 1 on the scale, in the output's own units."""
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
        """A random weighted sum of all drops so far; a different answer to any query changes it.

        It starts from bits of the key, so that a different key shows even if the output never drops.
        """
        return (self.checksum_key % 2**42 + self.checksum_ticks) / (DROP_GRID * 2.0**16)

    def in_own_units(self, contributions: np.ndarray, intercept: float) -> tuple[np.ndarray, float]:
        """Convert a sum on the scale [-1, +1] to the output's own units and anchor it; no intercept stays none.

        Without contributions the intercept is the prediction, which may be too small to differ from zero on the
        scale, such as a probability of 1e-17.
        """
        own = contributions * self.half_range
        return own, 0.0 if intercept == self.origin and own.any() else self.prediction - float(own.sum())

    def answer(self, inputs: Any, n_rows: int) -> Answer:
        """Return ``(f(x) - f(z)) / 2`` per row, rounded to multiples of 2^-26, and whether the decision stays."""
        position = self.n_queries
        raw, chosen = self.query(inputs, n_rows)
        if self.is_probability and not _are_probabilities(raw):
            raise failures.not_probabilities()
        raw = raw.clip(0, 1) if self.is_probability else raw  # rounding must not count as clipping
        if self.task == "label":
            outputs = np.where(raw == self.label, 1.0, -1.0)
        else:
            outputs = self._scale(self._one(raw).astype(np.float64))
        clipped = np.abs(outputs) > self.largest
        if clipped.any():
            self.n_clipped += int(clipped.sum())
            outputs = np.clip(outputs, -self.largest, self.largest)
        ticks = np.rint((self.scaled_prediction - outputs) * (DROP_GRID / 2))
        self._note(ticks.astype(np.int64), position)
        stays = ticks == 0 if self.is_label else None
        if self._decision is not None:
            stays = self._decide(raw, chosen) == self._decision
        elif self.same_within is not None:
            stays = self._is_about_the_same(self._one(raw).astype(np.float64))
        return Answer(ticks / DROP_GRID, stays, clipped)

    def _one(self, answer: np.ndarray) -> np.ndarray:
        """Return the explained output out of everything that the model answered."""
        return answer if answer.ndim == 1 else answer[:, self.column]

    def _decide(self, answer: np.ndarray, chosen: np.ndarray | None) -> np.ndarray | None:
        """Return per row whether the threshold is reached, or whether the model chooses the class of x."""
        if self._threshold is not None and not self.is_label:
            return np.asarray(self._one(answer) >= self._threshold)
        return None if self.class_ is None else np.asarray(chosen == self.class_)

    def _is_about_the_same(self, outputs: np.ndarray) -> np.ndarray:
        """Return per row whether the number stays the same, up to the rounding of drops, without clipping."""
        with np.errstate(over="ignore"):
            return np.abs(outputs - self.prediction) <= (self.same_within or 0) + 2 * self.half_range / DROP_GRID

    @property
    def decided(self) -> str | None:
        """The class that the model chooses, the label, or the side of the threshold, as text; None for numbers."""
        if self.is_label:
            return str(self.label)
        if self._threshold is not None:
            return f"{'at or above' if self.prediction >= self._threshold else 'below'} {self._threshold:g}"
        column, names = self.class_, self.target.classes
        return None if column is None else f"class {column}" if names is None else str(names[column])

    @property
    def decision(self) -> str | None:
        """The kind of decision: "label", "threshold", "class" (chosen), "own class" (explained), or "number"."""
        if self.is_label:
            return "label"
        if self._threshold is not None:
            return "threshold"
        if self.class_ is not None:
            return "own class" if self.class_ == self.column else "class"
        return "number" if self._compare else None

    def _note(self, ticks: np.ndarray, position: int) -> None:
        """Add the drops of the rows to the checksum, each weighted by 16 random bits; integers, so exact."""
        step, first = divmod(position, 16)  # a step of Philox gives 16 times 16 bits
        last = first + len(ticks)
        words = np.random.Philox(key=self.checksum_key, counter=step).random_raw(-(-last // 4))
        self.checksum_ticks += int((ticks * words.astype("<u8", copy=False).view("<u2")[first:last]).sum())

    def _scale(self, outputs: np.ndarray) -> np.ndarray:
        if (self._low, self._high) == (-1.0, 1.0):
            return outputs
        return (outputs - self._low) / self.half_range - 1

    def query(self, inputs: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the model's answers, and the number of the chosen class per row, if the answers have columns."""
        if self._max_queries is not None and self.n_queries + n_rows > self._max_queries:
            raise failures.too_many_queries(self.n_queries + n_rows, self._max_queries)
        self.n_queries += n_rows
        checked, chosen = split_answer(self.target, ask(self.target.ask, inputs, n_rows, self.task))
        if self.n_queries > n_rows:  # not the first query, so the kind of answer is known
            if checked.shape[1:] != (() if self.n_columns is None else (self.n_columns,)):
                raise PredictorOutputError.wrong_shape(checked.shape, n_rows)
            if _is_text(checked) and self.task != "label":
                raise PredictorOutputError.not_numbers(checked)
            if self.is_label and self.task is None and not np.isin(checked, (-1, 1)).all():
                other = checked[~np.isin(checked, (-1, 1))][0]
                raise failures.other_integer(self.label, other)
        return checked, chosen


def about_the_same(width: float) -> float:
    """Return the change that reads as "about the same" beside outputs of this width, with two digits."""
    return float(f"{_ABOUT_THE_SAME * width:.2g}")


def split_answer(target: Target, answer: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the scores in a model's answer, and the number of the chosen class per row.

    Nothing is chosen if the answer has one value per row.
    """
    if answer.ndim == 1:
        return answer, None
    if target.rule is None:
        return answer, answer.argmax(axis=1)
    return answer[:, :-1], answer[:, -1].astype(np.intp)


def ask(model: Callable[[Any], Any], inputs: Any, n_rows: int, task: str | None) -> np.ndarray:
    """Return the model's checked answers to some rows; errors name the input and the answer."""
    if isinstance(inputs, np.ndarray) and not inputs.flags.c_contiguous:
        inputs = inputs.copy(order="C")  # models expect rows in C order, whatever a space builds
    try:
        answer = model(inputs)
    except AnchorlineError:
        raise  # a model of our own has already explained the error
    except Exception as error:
        raise PredictorError(failures.failure_text(error, model, inputs, n_rows)) from error
    return _checked_answer(answer, n_rows, task)


def batches(n_rows: int, first: int = 0) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of every model call for the rows ``first`` to ``n_rows``; the boundaries are fixed."""
    for start in range(first, n_rows, BATCH_ROWS):
        yield start, min(start + BATCH_ROWS, n_rows)


def _checked_answer(answer: Any, n_rows: int, task: str | None) -> np.ndarray:
    """Return one finite number (or label) per row, or raise a `PredictorOutputError` that quotes the answer."""
    if answer is None:
        raise failures.no_answer(n_rows)
    try:
        array = np.asarray(answer)
    except Exception as error:
        raise PredictorOutputError(f"The predictor's answer cannot be read as an array: {error}") from error
    if array.shape == (n_rows, 1):
        array = array[:, 0]
    if array.shape != (n_rows,) and not (task != "label" and array.ndim == 2 and array.shape[0] == n_rows):
        raise PredictorOutputError.wrong_shape(array.shape, n_rows)
    if task == "label" or _is_text(array):
        if any(label != label for label in array.tolist()):  # noqa: PLR0124  only NaN differs from itself
            raise failures.nan_label()
        return array
    if array.dtype.kind not in "fiub" or array.shape[1:] == (0,):
        raise PredictorOutputError.not_numbers(array)
    if array.ndim == 1 and array.dtype.kind in "iub" and task is None and not np.isin(array, (-1, 1)).all():
        raise failures.integers(array[0])
    if not np.isfinite(array).all():
        bad = np.flatnonzero(~np.isfinite(array.reshape(n_rows, -1)).all(axis=1))
        raise failures.not_finite(array[bad[0]], bad, n_rows)
    return array


def _is_text(array: np.ndarray) -> bool:
    """Whether the answers are texts, which are labels whatever the task."""
    return array.ndim == 1 and (array.dtype.kind in "UT" or (array.dtype == object and isinstance(array[0], str)))


def _are_probabilities(answer: np.ndarray) -> bool:
    """Whether the scores of every row are probabilities, up to the rounding of sums of float32."""
    return bool((answer >= -_ROUNDING).all() and (np.abs(answer.sum(axis=1) - 1) <= _ROUNDING).all())


def output_name(target: Target, column: int | None) -> str:
    """Return the name of an output: the given one, that of its class, or f(x)."""
    if target.name is not None:
        return target.name
    if column is None:
        return "f(x)"
    if target.classes is not None:
        return str(target.classes[column])
    return f"output {column}" if target.task == "number" else f"class {column}"


def plain_label(label: Any) -> str | int | float | bool | None:
    """Return a label as JSON can hold it; JSON has no infinity."""
    fits = label is None or isinstance(label, (str, int)) or (isinstance(label, float) and math.isfinite(label))
    return label if fits else str(label)
