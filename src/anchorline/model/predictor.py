"""The black box seen from one instance: checked answers, one output, the decision, and every query counted."""

import contextlib
import math
import re
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anchorline.errors import AnchorlineError, BudgetError, ParameterError, PredictorError, PredictorOutputError
from anchorline.model.answers import NamedScores, read_answer
from anchorline.model.outputs import Target, column_of, owner_of, plain_label, scores_only
from anchorline.result.explanation import Choices, Output

_WHICH_TASK = "labels or numbers? For a classifier's `predict` pass task='label', otherwise task='number'."
BATCH_ROWS = 4096  # the most rows of one call; fixed, because a model's last bits may depend on the batch it sees
_SIGNS = (-1, 0, 1)  # integers that a function returns for two classes; others may be numbers
_ROUNDING = 1e-4  # probabilities that a model sums in float32 may be off by this much


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A model's answers to n rows: the explained outputs (n,), and whether the decision is that of the instance.

    ``stays`` (n,) is None for numbers without a threshold, about which nothing is decided.
    """

    outputs: np.ndarray
    stays: np.ndarray | None


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Checked answers: (n,) numbers or labels, or (n, c) class scores with the number (n,) of the named class.

    ``classes`` are the labels of the columns if the answer itself names them, as a frame does.
    """

    values: np.ndarray
    named: np.ndarray | None
    classes: tuple[Any, ...] | None = None

    def part(self, rows: slice) -> "Scores":
        """Return the answers to some of the rows."""
        return Scores(self.values[rows], None if self.named is None else self.named[rows], self.classes)


@dataclass(frozen=True, slots=True)
class Rule:
    """How the class that a model names follows from its scores: the highest, or one score's threshold.

    With ``column`` None, the class with the highest score is named; otherwise the class of ``column`` where its
    score is at least ``threshold``, else the other of two.
    """

    column: int | None = None
    threshold: float = 0.0

    def named(self, scores: np.ndarray) -> np.ndarray:
        """Return the number of the named class per row of (n, c) scores."""
        if self.column is None:
            return np.asarray(scores.argmax(axis=1))
        return np.where(scores[:, self.column] >= self.threshold, self.column, 1 - self.column)


class Questions:
    """How a model is asked, and how its answers are read; it counts every row that it asks about.

    ``rule`` says how the named class follows from scores; None if the model's own `predict` must be asked as well,
    which then counts as a second answer per row. ``limit`` is the most answers allowed.
    """

    def __init__(self, target: Target, rule: Rule | None = None, limit: float = math.inf) -> None:
        if not callable(target.ask):
            raise ParameterError(
                f"predict is a {type(target.ask).__name__}, which is not callable. It must be a function of an "
                "(n, d) array, for example `model.predict`."
            )
        self.target, self.limit, self.n_answers = target, limit, 0
        self._rule = rule if target.rule is None or target.asks_predict else Rule(**target.rule)
        self.asks_twice = target.asks_predict and rule is None
        self.n_columns: int | None = None
        self.is_known = False  # the kind of answers, after the first one

    @property
    def per_row(self) -> int:
        """Number of answers that each row takes."""
        return 2 if self.asks_twice else 1

    @property
    def rows_left(self) -> int:
        """How many more rows may be asked about, if there is a limit."""
        return int(max(0, self.limit - self.n_answers) // self.per_row)

    def ask(self, inputs: Any, n_rows: int) -> Scores:
        """Return the model's checked answers to some rows."""
        if self.n_answers + n_rows * self.per_row > self.limit:
            raise BudgetError(
                f"{self.n_answers + n_rows * self.per_row} queries are needed, but queries is {self.limit}. Type "
                "a larger number, or queries='auto'."
            )
        self.n_answers += n_rows * self.per_row
        call, target = self.target.ask, self.target
        if target.asks_predict and self._rule is not None:
            call = scores_only(call)
        answer, classes, named = checked_answer(call, inputs, n_rows, target.task, target.classes)
        if answer.ndim == 1:
            scores = Scores(answer, None)
        elif self._rule is not None:
            scores = Scores(answer, self._rule.named(answer), classes)
        elif target.rule is None:
            scores = Scores(answer, answer.argmax(axis=1) if named is None else named, classes)
        else:
            scores = Scores(answer[:, :-1], answer[:, -1].astype(np.intp), classes)
        n_columns = None if scores.values.ndim == 1 else scores.values.shape[1]
        if self.is_known and n_columns != self.n_columns:
            raise PredictorOutputError.wrong_shape(scores.values.shape, n_rows)
        self.n_columns, self.is_known = n_columns, True
        return scores


class Predictor:
    """A model seen from one instance. The constructor asks nothing; `open` asks about the instance.

    ``threshold``: the decision is "output >= threshold"; None stands for the class that the model names, or for
    the label. ``output_range``: lowest and highest output, for the limits of what is measured; outputs beyond are
    refused.
    """

    prediction: float
    output: Output
    output_range: tuple[float, float] | None

    def __init__(
        self,
        questions: Questions,
        threshold: float | None = None,
        output_range: tuple[float, float] | None = None,
    ) -> None:
        self.questions, self.target = questions, questions.target
        self._threshold, self._given_range = threshold, output_range
        self.is_open = False

    def open(self, original: Any) -> "Predictor":
        """Ask about the instance, one model input of one row; return the predictor itself."""
        return self.open_with(self.questions.ask(original, 1))

    def open_with(self, scores: Scores) -> "Predictor":
        """Take the answer about the instance, which has one row; return the predictor itself."""
        self.is_open = True
        if scores.classes is not None and self.target.classes is None:
            labels = tuple(label.item() if isinstance(label, np.generic) else label for label in scores.classes)
            if self.target.name is not None and self.target.column is None:  # the output is one of them
                column = column_of(self.target.name, labels)
                self.target = replace(self.target, classes=labels, column=column, name=None)
            elif self.target.task is None:
                self.target = replace(self.target, classes=labels)
        answer, target = scores.values, self.target
        integers = target.task is None and answer.ndim == 1 and answer.dtype.kind in "iub"
        self.is_label = target.task == "label" or _is_text(answer) or integers
        self.label = getattr(answer[0], "item", lambda: answer[0])() if self.is_label else None
        self.class_ = None if scores.named is None or target.task == "number" else int(scores.named[0])
        self.column = self._column(scores)
        self._check()
        self.is_probability = self.class_ is not None and target.scale is None and _are_probabilities(answer)
        self.prediction = 1.0 if self.is_label else float(self._outputs(answer)[0])
        is_unit = self.is_label or self.is_probability
        self.output_range = (0.0, 1.0) if is_unit else self._given_range or target.known_range
        low, high = self.output_range or (-math.inf, math.inf)
        if self._threshold is not None and not low <= self._threshold <= high:
            raise ParameterError(
                f"threshold is {self._threshold:g}, but the model's output is between {low:g} and {high:g}. Type, "
                f"say, threshold={(low + high) / 2:g}."
            )
        self._check_range(np.array([self.prediction]))
        self.output = self._describe(answer)
        return self

    def answer(self, inputs: Any, n_rows: int) -> Answer:
        """Return the explained output of some rows, and whether the decision is that of the instance."""
        return self.read(self.questions.ask(inputs, n_rows))

    def read(self, scores: Scores) -> Answer:
        """Return what answers mean for this instance; answers to other questions of the same model may be read."""
        if self.is_label:
            if self.target.task is None and not _is_text(scores.values):
                other = scores.values[~np.isin(scores.values, _SIGNS)]
                if len(other):
                    raise PredictorOutputError(
                        f"The predictor returned the integer {self.label} for x, and {other[0]} elsewhere: "
                        f"{_WHICH_TASK}"
                    )
            stays = np.asarray(scores.values == self.label)
            return Answer(stays.astype(np.float64), stays)
        if _is_text(scores.values):
            raise PredictorOutputError.not_numbers(scores.values)
        outputs = self._outputs(scores.values)
        self._check_range(outputs)
        if self._threshold is not None:
            return Answer(outputs, (outputs >= self._threshold) == (self.prediction >= self._threshold))
        return Answer(outputs, None if self.class_ is None else np.asarray(scores.named == self.class_))

    def _outputs(self, values: np.ndarray) -> np.ndarray:
        if self.is_probability:
            if not _are_probabilities(values):
                raise PredictorOutputError(
                    "The model's scores sum to 1 at x but not everywhere, so they are not probabilities. Pass "
                    "output_range=(lowest, highest) and output=, or task='number'."
                )
            return np.asarray(values[:, self.column].clip(0, 1), dtype=np.float64)
        return np.asarray(values if values.ndim == 1 else values[:, self.column], dtype=np.float64)

    def _column(self, scores: Scores) -> int | None:
        column, n_columns = self.target.column, self.questions.n_columns
        if scores.named is None:
            if column is not None:
                raise ParameterError(
                    f"output is {column}, but the model returns one value per row. Leave output out."
                )
            return None
        if column is not None and column >= (n_columns or 0):
            raise ParameterError(f"output is {column}, but the model returns {n_columns} columns, counted from 0.")
        if column is None and self.target.task == "number":
            raise ParameterError(
                f"The model returns {n_columns} numbers per row, but one is explained. Type output=0, the number "
                "of one of them, counted from 0."
            )
        return int(scores.named[0]) if column is None else column

    def _check(self) -> None:
        target, n_columns = self.target, self.questions.n_columns
        if self.is_label and (self._threshold is not None or self._given_range is not None):
            raise ParameterError(
                "The answers are labels, which have no threshold and no output_range. Leave both out, or declare "
                "that integers are numbers by task='number'."
            )
        if n_columns is not None and target.classes is not None and len(target.classes) != n_columns:
            raise ParameterError(
                f"{len(target.classes)} classes were given, but the model returns {n_columns} columns. Pass one "
                "class per column."
            )
        if n_columns is not None and target.classes is None and target.column is None and target.name is not None:
            raise ParameterError(
                f"output is {target.name!r}, but the model returns {n_columns} columns without names. Pass "
                "classes=[...] with the labels of all columns, or the number of one as output=0."
            )
        if self.is_label and target.labels is not None and self.label not in target.labels:
            raise ParameterError(
                f"The model's classes are {list(target.labels)}, but it answers {self.label!r}. If that is a "
                "score, pass task='number', otherwise task='label'."
            )

    def _check_range(self, outputs: np.ndarray) -> None:
        if self.output_range is None or self.is_label:
            return
        low, high = self.output_range
        beyond = (outputs < low) | (outputs > high)
        if beyond.any():
            raise PredictorOutputError(
                f"The model's output is {outputs[beyond][0]:g}, outside output_range ({low:g}, {high:g}). Type "
                "output_range=(lowest, highest) of the model's outputs, or leave it out."
            )

    def _describe(self, answer: np.ndarray) -> Output:
        target, classes = self.target, self.target.classes if self.questions.n_columns is not None else None
        is_label_name = target.name is None or target.contrast or self.is_label  # whose brackets hold no unit
        name = output_name(target, self.column)
        name, unit = (name, "") if is_label_name else split_unit(name)
        labels = None if classes is None else tuple(plain_label(label) for label in classes)
        kind, decision, runner_up = "number", None, None
        if self.is_label:
            label = self.label
            if target.classes is not None and isinstance(label, int) and label not in target.classes:
                label = dict(enumerate(target.classes)).get(label, label)  # the number of a class
            kind, name, decision = "label", str(label), plain_label(label)
        elif self._threshold is not None:
            side = "at or above" if self.prediction >= self._threshold else "below"
            kind, decision = "threshold", f"{side} {self._threshold:g}"
        elif self.class_ is not None:
            kind = "class"
            decision = f"class {self.class_}" if labels is None else labels[self.class_]
            if answer.shape[1] > 2 and self.is_probability and self.column == self.class_:
                order = np.argsort(-answer[0], kind="stable")
                second = int(order[1] if order[0] == self.class_ else order[0])
                runner_up = f"class {second}" if labels is None else labels[second], float(answer[0, second])
        return Output(
            kind=kind,
            name=name,
            decision=decision,
            unit=unit,
            is_probability=self.is_probability,
            threshold=self._threshold,
            classes=labels,
            runner_up=runner_up,
            scale=target.scale,
            low=None if self.output_range is None else self.output_range[0],
            high=None if self.output_range is None else self.output_range[1],
            choices=self._choices(),
        )

    def _choices(self) -> Choices:
        """Return what makes the same explainer again; labels are found by their texts."""
        target, contrast = self.target, self.target.contrast or {}
        classes = contrast.get("classes", target.classes)
        labels = None if classes is None else tuple(plain_label(label) for label in classes)
        output: Any = target.name if target.column is None else target.column
        if target.column is not None and labels is not None:
            output = labels[target.column]
        if contrast or target.part is not None:
            output = tuple(contrast["contrast"]) if contrast else target.part
        return Choices(
            output=output,
            output_scale=None if target.scale is None else "margin",
            task=None if contrast else target.task,
            classes=None if target.part is not None else labels,
            output_range=self._given_range,
            input=target.input,
        )


def split_unit(name: str) -> tuple[str, str]:
    """Return the name of an output and its unit, which stands in brackets at its end.

    Examples
    --------
    >>> split_unit("price [EUR]"), split_unit("price")
    (('price', 'EUR'), ('price', ''))
    """
    text, _, unit = name.removesuffix("]").partition(" [")
    return (text, unit) if name.endswith("]") and unit and "[" not in unit else (name, "")


def checked_answer(
    model: Callable[[Any], Any], inputs: Any, n_rows: int, task: str | None, classes: Sequence[Any] | None = None
) -> tuple[np.ndarray, tuple[Any, ...] | None, np.ndarray | None]:
    """Return the model's checked answers to some rows, the names of their columns, and the named classes.

    Errors name the input and the answer.
    """
    if isinstance(inputs, np.ndarray) and not inputs.flags.c_contiguous:
        inputs = inputs.copy(order="C")  # models expect rows in C order, whatever a space builds
    try:
        answer = model(inputs)
    except AnchorlineError:
        raise  # a model of our own has already explained the error
    except Exception as error:
        raise PredictorError(failure_text(error, model, inputs, n_rows)) from error
    if answer is None:
        raise PredictorOutputError(
            f"The predictor returned None; it must return {n_rows} numbers. Add a `return`?"
        )
    try:
        read = read_answer(answer, classes)
    except PredictorOutputError:
        raise
    except Exception as error:
        raise PredictorOutputError(f"The predictor's answer cannot be read as an array: {error}") from error
    if isinstance(read, NamedScores):
        return _as_numbers_or_labels(read.values, inputs, n_rows, task), read.names, read.named
    return _as_numbers_or_labels(read, inputs, n_rows, task), None, None


def batches(n_rows: int, size: int = BATCH_ROWS) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of every model call for n rows; the boundaries are fixed."""
    for start in range(0, n_rows, size):
        yield start, min(start + size, n_rows)


def _as_numbers_or_labels(array: np.ndarray, inputs: Any, n_rows: int, task: str | None) -> np.ndarray:
    """Return one finite number (or label) per row, or raise a `PredictorOutputError` that quotes the answer."""
    if array.shape == (n_rows, 1):
        array = array[:, 0]
    if array.shape != (n_rows,) and not (task != "label" and array.ndim == 2 and array.shape[0] == n_rows):
        raise PredictorOutputError.wrong_shape(array.shape, n_rows)
    if task == "label" or _is_text(array):
        if any(label != label for label in array.tolist()):  # noqa: PLR0124  only NaN differs from itself
            raise PredictorOutputError(
                "The predictor returned NaN as a label. Every label must equal itself, which NaN does not."
            )
        return array
    if array.dtype.kind not in "fiub" or array.shape[1:] == (0,):
        raise PredictorOutputError.not_numbers(array)
    if array.ndim == 1 and array.dtype.kind in "iu" and task is None and not np.isin(array, _SIGNS).all():
        other = array[~np.isin(array, _SIGNS)][0]
        raise PredictorOutputError(f"The predictor returned integers such as {other}: {_WHICH_TASK}")
    if not np.isfinite(array).all():
        bad = np.flatnonzero(~np.isfinite(array.reshape(n_rows, -1)).all(axis=1))
        raise PredictorOutputError(
            f"The predictor returned {array[bad[0]]} for {bad.size} of {n_rows} rows of one call, first for row "
            f"{bad[0]}{quoted_row(inputs, int(bad[0]))}. It must return finite numbers. Call `model` on that row "
            "by hand."
        )
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


# ---- models that fail, or end the process

_TABLES_OF = {"pyarrow": "Arrow tables", "polars": "Polars frames"}
_OF_FRAMES = ("AssertionError", "AttributeError", "IndexError", "InvalidIndexError", "KeyError", "TypeError")


def failure_text(error: Exception, model: Any, inputs: Any, n_rows: int) -> str:
    """Return the message for an exception that the model raised; quote the exception on one line."""
    kind = type(inputs).__name__
    raised = " ".join(f"{type(error).__name__}: {error}".split())
    return (
        f"The model raised {raised} (queried for {n_rows} rows, input of type {kind}, "
        f"shape {getattr(inputs, 'shape', None)}). {_advice(error, model, inputs)}"
    )


def _advice(error: Exception, model: Any, inputs: Any) -> str:
    if isinstance(inputs, np.ndarray):
        return "Call `predict` on an input of that shape by hand."
    library = _TABLES_OF.get(type(inputs).__module__.partition(".")[0])
    while (inner := getattr(model, "ask", None)) is not None:  # behind what selects its columns and its class
        model = inner
    owner = owner_of(model)
    if library == "Arrow tables" and hasattr(owner, "feature_names_in_"):
        return (
            "The model was fitted on a frame with column names, most likely a pandas frame, but it receives "
            f"{library}, because the training table is one. Type "
            "`al.Explainer(model, al.Table(table.to_pandas()))`."
        )
    if library is not None:
        return (
            f"The model receives {library}, because the training table is one. If it takes pandas frames, type "
            "`al.Table(table.to_pandas())`. If the model takes arrays, pass input='array'."
        )
    names_column = isinstance(error, KeyError) and isinstance(error.args[0] if error.args else 0, str)
    is_frames = type(error).__name__ in _OF_FRAMES or re.search("[Ff]rame|feature names", str(error))
    arrays = "If the model takes arrays, pass input='array'. " if is_frames and not names_column else ""
    return f"{arrays}Call the model on such a {type(inputs).__name__} by hand."


def quoted_row(inputs: Any, i: int) -> str:
    """Return a row of a table or list for the end of a sentence; nothing for other inputs."""
    if isinstance(inputs, np.ndarray | list):
        return f": {np.asarray(inputs[i]).tolist()!r:.300}"
    import narwhals as nw  # noqa: PLC0415  heavy

    frame = nw.from_native(inputs, eager_only=True, pass_through=True)
    return f": {frame[i : i + 1].rows(named=True)[0]!r:.300}" if isinstance(frame, nw.DataFrame) else ""


# The signal whose handler raises each error: Python's own handler of Ctrl-C, and ours of a request to end.
_SIGNAL_OF = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}


@contextlib.contextmanager
def contain_exits() -> Iterator[None]:
    """Raise `PredictorError` where a model raises anything but an `Exception`.

    So a model that exits fails its row and not the whole batch.
    """
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        if _may_come_from_signal(error):
            raise
        raise PredictorError(f"The model raised {error!r}.") from error


def _may_come_from_signal(error: BaseException) -> bool:
    """Return whether a signal from outside may have caused the error; only the main thread handles signals."""
    if threading.current_thread() is not threading.main_thread():
        return False
    frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    for handler in (signal.getsignal(number) for kind, number in _SIGNAL_OF.items() if isinstance(error, kind)):
        # A handler in C, as Python's own, leaves no trace.
        if callable(handler) and getattr(handler, "__code__", None) in (None, *frames):
            return True
    earlier = error.__cause__ or error.__context__  # a model may clean up and then raise another error
    return earlier is not None and _may_come_from_signal(earlier)
