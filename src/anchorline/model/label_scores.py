"""Models that answer with labels and their scores, such as the pipelines of Hugging Face, as classifiers."""

import inspect
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
        self._options = {"top_k": None} if _takes_top_k(pipeline) else {}

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


def _takes_top_k(pipeline: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(pipeline).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(one.name == "top_k" or one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters)
