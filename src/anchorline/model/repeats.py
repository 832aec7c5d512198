"""Models whose answers vary from call to call: each row is asked several times, and the answers are averaged."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from anchorline.errors import ParameterError, PredictorOutputError


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
        total: np.ndarray | None = None
        for _ in range(self.n):
            answer = self._numbers(self.model(inputs))
            if total is not None and answer.shape != total.shape:
                raise PredictorOutputError(
                    f"The model answered the same rows with shapes {total.shape} and {answer.shape}. It must "
                    "return the same shape each time."
                )
            total = answer if total is None else total + answer
        assert total is not None  # n >= 1
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
