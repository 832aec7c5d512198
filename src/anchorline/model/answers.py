"""Answers of every form as arrays, and models that answer with labels, texts or tensors as models of numbers."""

import inspect
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.errors import ParameterError, PredictorOutputError, SetupWarning


@dataclass(frozen=True, slots=True, eq=False)
class NamedScores:
    """Scores (n, c) whose columns have names, and the numbers (n,) of the named classes if they came along."""

    values: np.ndarray
    names: tuple[Any, ...]
    named: np.ndarray | None = None


def read_answer(answer: Any, classes: Sequence[Any] | None = None) -> np.ndarray | NamedScores:
    """Return a model's answer as an array; a frame, a dictionary of columns or one per row keeps its names.

    Lists of labels with scores, as pipelines answer them, become scores in the order of ``classes``.
    Tensors may require gradients or be on another device. Of a frame whose first column is called "predict", as
    H2O answers, the other columns are the scores. The array is a copy, because a model may answer in one buffer.
    """
    if isinstance(answer, NamedScores):
        return answer
    scores, labels = read_label_scores(answer, classes)
    return _read_columns(scores) if labels is None else NamedScores(scores, labels)


def _read_columns(answer: Any) -> np.ndarray | NamedScores:
    """Return an array, or the columns of a frame or of dictionaries with their names."""
    columns = None
    if isinstance(answer, Mapping):
        columns = dict(answer)
    elif isinstance(answer, list | tuple) and answer and all(isinstance(row, Mapping) and row for row in answer):
        columns = {name: [row[name] for row in answer] for name in answer[0]}
    elif hasattr(answer, "columns"):
        import narwhals as nw  # noqa: PLC0415  heavy

        frame = nw.from_native(answer, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            columns = {name: frame[:, j].to_numpy() for j, name in enumerate(frame.columns)}
    if columns is None:
        return np.array(as_numpy(answer))
    labels = np.asarray(columns.pop("predict")) if len(columns) > 2 and "predict" in columns else None
    values, names = np.column_stack([as_numpy(each) for each in columns.values()]), tuple(columns)
    if len(names) < 2 or names == tuple(range(len(names))):
        return values
    if labels is None:
        return NamedScores(values, names)
    places = {str(name): j for j, name in enumerate(names)}
    if not {*map(str, labels.tolist())} <= {*places}:
        return NamedScores(values, names)
    return NamedScores(values, names, np.array([places[str(label)] for label in labels.tolist()]))


def as_numpy(given: Any) -> Any:
    """Return a tensor as an array, whether or not it requires gradients; any other object unchanged."""
    return given.detach().cpu().numpy() if hasattr(given, "detach") else given


class TorchModel:
    """A module of PyTorch, callable on numbers: in evaluation mode, without gradients.

    A network of convolutions gets images and signals with their channels first, as PyTorch has them. Two or more
    outputs are class scores unless ``task`` is "number". If they are not probabilities at the first call, they are
    taken for logits, and a warning says so.
    """

    def __init__(self, module: Any, task: str | None = None) -> None:
        self.module, self.task = module, task
        self._are_logits: bool | None = None

    def __call__(self, inputs: Any) -> np.ndarray:
        """Return the outputs of the module, (n,) or (n, outputs)."""
        import torch  # noqa: PLC0415  heavy, and not a dependency

        parameter = next(iter(self.module.parameters()), torch.zeros(0))
        rows = torch.as_tensor(np.ascontiguousarray(inputs), dtype=parameter.dtype, device=parameter.device)
        was_training = self.module.training
        self.module.eval()
        try:
            with torch.no_grad():
                outputs = self.module(channels_first(rows, self.module))
        finally:
            self.module.train(was_training)
        outputs = outputs[0] if isinstance(outputs, tuple) else getattr(outputs, "logits", outputs)
        values = np.asarray(as_numpy(outputs).astype(np.float64))
        if self.task is not None or values.ndim != 2 or values.shape[1] < 2:
            return values
        if self._are_logits is None:
            sums = np.abs(values.sum(axis=1) - 1)
            self._are_logits = bool((values < 0).any() or (sums > 1e-4).any())
            if self._are_logits:
                warnings.warn(
                    SetupWarning(
                        f"The network's {values.shape[1]} outputs are not probabilities, so they are treated as "
                        "class logits and passed through a softmax. If they are numbers, type task='number' and "
                        "output=0.",
                        "softmax",
                    ),
                    stacklevel=2,
                )
        if self._are_logits:
            powers = np.exp(values - values.max(axis=1, keepdims=True))
            values = powers / powers.sum(axis=1, keepdims=True)
        return values


def channels_first(inputs: Any, module: Any) -> Any:
    """Return a tensor as the first convolution of a module takes it, if it says how many channels it takes.

    Images (n, h, w, channels) and signals (n, time, channels) get their channels first, and those without any get
    an axis of one channel.
    """
    kinds = {"Conv1d": 3, "Conv2d": 4}
    first = next((each for each in module.modules() if type(each).__name__ in kinds), None)
    if first is None:
        return inputs
    n_axes, n_channels = kinds[type(first).__name__], first.in_channels
    if inputs.ndim == n_axes - 1 and n_channels == 1:
        return inputs.unsqueeze(1)
    if inputs.ndim == n_axes and inputs.shape[1] != n_channels == inputs.shape[-1]:
        return inputs.movedim(-1, 1)
    return inputs


class WithConstant:
    """Fitted results of statsmodels that were given a constant, callable on tables with and without it."""

    def __init__(self, results: Any) -> None:
        self.results = results
        self.names = [str(name) for name in results.model.exog_names]

    def __call__(self, inputs: Any) -> Any:
        """Return the predictions; a table that lacks the constant gets it."""
        import narwhals as nw  # noqa: PLC0415  heavy

        frame = nw.from_native(inputs, eager_only=True, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            ones = np.ones((len(inputs), len(self.names) - inputs.shape[1]))
            return self.results.predict(np.column_stack([ones, inputs]))
        if "const" not in frame.columns:
            frame = frame.with_columns(const=nw.lit(1.0))
        if {*self.names} <= {*frame.columns}:
            frame = frame.select(self.names)
        return self.results.predict(frame.to_native())


class SurvivalModel:
    """A regression of lifelines, callable on tables: its risk, or if it has none, the median time of survival."""

    def __init__(self, model: Any) -> None:
        self.model = model
        has_risk = hasattr(model, "predict_partial_hazard")
        self.output_name = "risk" if has_risk else "median time"
        self._ask = "predict_partial_hazard" if has_risk else "predict_median"

    def __call__(self, inputs: Any) -> np.ndarray:
        """Return one number per row."""
        return np.asarray(getattr(self.model, self._ask)(inputs), dtype=np.float64)


class OneOutput:
    """One of several outputs of a model of scikit-learn, as a model of its own."""

    def __init__(self, model: Any, number: int) -> None:
        self.model, self.number = model, number
        self.classes_ = list(model.classes_[number])
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))

    def predict(self, inputs: Any) -> np.ndarray:
        """Return the labels of the output, (n,)."""
        return np.asarray(self.model.predict(inputs))[:, self.number]

    def predict_proba(self, inputs: Any) -> np.ndarray:
        """Return the probabilities of the output's classes, (n, classes)."""
        return np.asarray(self.model.predict_proba(inputs)[self.number])


_BATCH_SIZE = 32  # inputs that a pipeline without a size of its own gives its model at once


class LabelScores:
    """A pipeline that answers every input with dictionaries of a label and its score, as a classifier.

    A pipeline of Hugging Face's transformers is wrapped by itself when it is passed to `Explainer`; it knows its
    labels. Wrap any other pipeline of this form with its labels.

    Parameters
    ----------
    pipeline
        A function of a list of inputs that returns, per input, a list of ``{"label": ..., "score": ...}``. If it
        has a keyword ``top_k``, it is called with ``top_k=None``, which returns the scores of all labels.
    classes
        The labels, in the order of the columns; by default those that the pipeline's model lists.

    Examples
    --------
    >>> pipeline = lambda texts: [[{"label": "good", "score": 0.9}, {"label": "bad", "score": 0.1}] for _ in texts]
    >>> LabelScores(pipeline, classes=["bad", "good"])(["great food"]).tolist()
    [[0.1, 0.9]]
    """

    def __init__(self, pipeline: Callable[..., Any], classes: Sequence[str] | None = None) -> None:
        self.pipeline = pipeline
        known = labels_of(pipeline) if classes is None else [str(label) for label in classes]
        if known is None:
            raise ParameterError(
                "The labels of the pipeline are not known, because it has no model.config.id2label. Type "
                "LabelScores(pipeline, classes=['bad', 'good'])."
            )
        self.classes_ = known
        try:
            parameters = [*inspect.signature(pipeline).parameters.values()]
        except (TypeError, ValueError):
            parameters = []
        takes_top_k = any(one.name == "top_k" or one.kind is one.VAR_KEYWORD for one in parameters)
        self._options: dict[str, Any] = {"top_k": None} if takes_top_k else {}
        can_pad = getattr(getattr(pipeline, "tokenizer", None), "pad_token", None) is not None
        if is_pipeline(pipeline) and can_pad and getattr(pipeline, "_batch_size", None) is None:
            self._options["batch_size"] = _BATCH_SIZE

    def __call__(self, inputs: Sequence[Any]) -> np.ndarray:
        """Return the scores of all labels, (n, classes)."""
        answers = list(self.pipeline(list(inputs), **self._options))
        return np.array([self._row(answer) for answer in answers], dtype=np.float64)

    def _row(self, answer: Any) -> list[float]:
        try:
            entries = [answer] if isinstance(answer, Mapping) else list(answer)
            scores = {str(entry["label"]): float(entry["score"]) for entry in entries}
            return [scores[label] for label in self.classes_]
        except (KeyError, TypeError):
            raise PredictorOutputError(
                f"The pipeline answered {answer!r:.120}; it must return a label and a score for each of "
                f"{self.classes_!r:.120}. Create the pipeline with top_k=None, or pass all its labels as classes."
            ) from None


def read_label_scores(answer: Any, classes: Sequence[Any] | None = None) -> tuple[Any, tuple[str, ...] | None]:
    """Return class scores (n, c) and the classes if each answer lists labels with their scores.

    Labels alone are returned if each answer is the best label with its score, because the scores of the others are
    not known then. Any other answer is returned as it is. The columns are ``classes``, or the sorted labels. A
    zero-shot pipeline lists the labels and the scores of each text one after the other.
    """
    entries = answer.tolist() if isinstance(answer, np.ndarray) and answer.dtype == object else answer
    if not isinstance(entries, list | tuple) or not entries:
        return answer, None
    lists = [_label_scores(each) for each in entries]
    entries = [one for each in lists for one in (each if isinstance(each, list) and each else [None])]
    if not all(isinstance(one, Mapping) and "label" in one and "score" in one for one in entries):
        return answer, None
    if all(len(each) == 1 for each in lists):
        return np.array([str(each[0]["label"]) for each in lists]), None
    names = tuple(map(str, classes)) if classes is not None else tuple(sorted(str(e["label"]) for e in lists[0]))
    scores = [{str(one["label"]): float(one["score"]) for one in each} for each in lists]
    if any({*each} != {*names} for each in scores):
        raise PredictorOutputError(
            f"The model answered {lists[0]!r:.120}; each answer must have a score for each of "
            f"{list(names)!r:.120}. Type `lambda texts: pipeline(texts, top_k=None)` if it is a pipeline."
        )
    return np.array([[each[name] for name in names] for each in scores]), names


def _label_scores(answer: Any) -> Any:
    """Return one answer as a list of labels with their scores, if it is one."""
    if not isinstance(answer, Mapping):
        return answer
    if "labels" in answer and "scores" in answer:
        pairs = zip(answer["labels"], answer["scores"], strict=True)
        return [{"label": label, "score": score} for label, score in pairs]
    return [answer]


def labels_of(pipeline: Any) -> list[str] | None:
    """Return the labels that the model of a pipeline lists, in the order of their numbers, or None."""
    labels = getattr(getattr(getattr(pipeline, "model", None), "config", None), "id2label", None)
    if not isinstance(labels, Mapping) or not labels:
        return None
    return [str(labels[number]) for number in sorted(labels, key=int)]


def is_pipeline(model: Any) -> bool:
    """Return whether a model is a pipeline of Hugging Face's transformers that scores labels."""
    libraries = {kind.__module__.partition(".")[0] for kind in type(model).__mro__}
    return "transformers" in libraries and callable(model) and labels_of(model) is not None


def adapted(model: Any, task: str | None) -> Any:
    """Return a model of a library whose objects are not called with tables as one that is; others as they are."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        return TorchModel(model, task)
    library, inner = type(model).__module__.partition(".")[0], getattr(model, "model", None)
    if library == "statsmodels" and not hasattr(inner, "formula"):
        return WithConstant(model) if "const" in (getattr(inner, "exog_names", None) or ()) else model
    if library == "lifelines" and hasattr(model, "predict_median"):  # a regression, which has no `predict`
        return SurvivalModel(model)
    return LabelScores(model) if is_pipeline(model) else model


class Repeated:
    """A model that is asked ``n`` times about every row.

    Numbers and class scores are averaged. Of labels, the shares become class scores, so that a model that answers
    with a label only is explained by how often it gives each label. The standard deviation of an average of n
    independent answers is that of one answer divided by the square root of n.

    Parameters
    ----------
    model
        A function of rows that returns numbers (n,), class scores (n, c) or labels (n,).
    n
        How often a row is asked. A budget counts rows, so the model is called n times as often.
    classes
        The labels that the model may give, in the order of the columns; only for labels.

    Examples
    --------
    >>> answers = iter(["good", "bad", "good", "good"])
    >>> Repeated(lambda texts: [next(answers)], 4, classes=["bad", "good"])(["great food"]).tolist()
    [[0.25, 0.75]]
    """

    def __init__(self, model: Callable[[Any], Any], n: int, classes: Sequence[Any] | None = None) -> None:
        if not (isinstance(n, int) and not isinstance(n, bool) and n >= 1):
            raise ParameterError(f"n is {n!r}, but it must be a whole number >= 1. Type Repeated(model, 5).")
        if not callable(model):
            raise ParameterError(
                f"The model is of type {type(model).__name__}, but it must be a function of rows. Type "
                "Repeated(model.predict_proba, 5)."
            )
        self.model, self.n = model, n
        self._labels = None if classes is None else {label: j for j, label in enumerate(classes)}
        self.classes_ = list(classes) if classes is not None else getattr(model, "classes_", None)

    def __call__(self, inputs: Any) -> np.ndarray:
        """Return the averages: (n,) of numbers, and (n, classes) of class scores or labels."""
        total = self._numbers(self.model(inputs))
        for _ in range(self.n - 1):
            answer = self._numbers(self.model(inputs))
            if answer.shape != total.shape:
                raise PredictorOutputError(
                    f"The model answered the same rows with shapes {total.shape} and {answer.shape}. It must "
                    "return the same shape each time."
                )
            total = total + answer
        return np.asarray(total / self.n)

    def _numbers(self, answer: Any) -> np.ndarray:
        """Return one answer as numbers; a label becomes a score of 1."""
        values = np.asarray(answer)
        if self._labels is None:
            if values.dtype.kind not in "fiub":
                raise PredictorOutputError(
                    f"The model answered {values.ravel()[:1].tolist()!r:.60}, which is not a number. If these are "
                    "labels, type Repeated(model, n, classes=['bad', 'good'])."
                )
            return values.astype(np.float64)
        scores = np.zeros((len(values), len(self._labels)))
        for row, label in enumerate(values.tolist()):
            column = self._labels.get(label)
            if column is None:
                raise PredictorOutputError(
                    f"The model answered {label!r:.60}, which is not one of its classes: "
                    f"{list(self._labels)!r:.200}. Pass all labels as classes."
                )
            scores[row, column] = 1.0
        return scores


class SimilarTo:
    """A model that answers with texts, as a number from 0 to 1: how similar its answer is to a given one.

    So the parts of a question are explained by how much the answer depends on them.

    Parameters
    ----------
    model
        A function of a list of inputs that returns one text per input.
    answer
        The answer that is explained, such as ``model([question])[0]``.
    measure
        A function of an answer and the explained one that returns a number from 0 to 1, such as the similarity of
        two embeddings; by default `word_overlap`.

    Examples
    --------
    >>> capital = lambda questions: ["Paris" if "France" in text else "I do not know" for text in questions]
    >>> question = "What is the capital of France?"
    >>> similar = SimilarTo(capital, capital([question])[0])
    >>> similar([question, "What is the capital?"]).tolist()
    [1.0, 0.0]
    """

    def __init__(
        self,
        model: Callable[[Any], Sequence[str]],
        answer: str,
        measure: Callable[[str, str], float] | None = None,
    ) -> None:
        if not isinstance(answer, str):
            raise ParameterError(
                f"answer is {answer!r:.60}, but it must be the text of the explained answer. Type "
                "SimilarTo(model, model([question])[0])."
            )
        self.model, self.answer, self.measure = model, answer, measure or word_overlap

    def __call__(self, inputs: Any) -> np.ndarray:
        """Return one number per input."""
        texts = list(self.model(inputs))
        wrong = [text for text in texts if not isinstance(text, str)]
        if wrong:
            raise PredictorOutputError(
                f"The model answered {wrong[0]!r:.60} of type {type(wrong[0]).__name__}; it must return one text "
                "per input."
            )
        values = np.array([float(self.measure(text, self.answer)) for text in texts])
        beyond = values[~((values >= 0) & (values <= 1))]
        if len(beyond):
            raise PredictorOutputError(f"The measure returned {beyond[0]!r}; it must return a number from 0 to 1.")
        return values


def word_overlap(text: str, other: str) -> float:
    """Return the share of words that two texts have in common, from 0 to 1, whatever their order and case.

    It is twice the number of common words over the number of all words of both; two texts without words are equal.

    Examples
    --------
    >>> word_overlap("It is Paris.", "Paris")
    0.5
    """
    words, others = (Counter(re.findall(r"\w+", each.casefold())) for each in (text, other))
    total = words.total() + others.total()
    return 2 * (words & others).total() / total if total else 1.0
