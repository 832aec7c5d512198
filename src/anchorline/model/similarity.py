"""Models that answer with texts: the output is how similar an answer is to the answer that is explained."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from anchorline.errors import ParameterError, PredictorOutputError

Measure = Callable[[str, str], float]


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

    def __init__(self, model: Callable[[Any], Sequence[str]], answer: str, measure: Measure | None = None) -> None:
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
        if not ((values >= 0) & (values <= 1)).all():
            raise PredictorOutputError(
                f"The measure returned {values[~((values >= 0) & (values <= 1))][0]!r}; it must return a number "
                "from 0 to 1."
            )
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
