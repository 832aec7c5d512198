"""Models that answer with labels and scores, with texts, or differently each time, as models that give numbers."""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from anchorline.errors import ParameterError, PredictorOutputError


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
        self._options = {"top_k": None} if takes_top_k else {}

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
