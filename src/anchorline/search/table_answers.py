"""What a model answers about the rows of a table: asked once per explainer, at most 10,000 rows."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.model.outputs import Target
from anchorline.model.predictor import Predictor, Questions, Rule, Scores
from anchorline.spaces.base import Space

_MIDDLE = (0.05, 0.95)  # quantiles between which most outputs lie


@dataclass(frozen=True, eq=False)
class TableAnswers:
    """The answers to the rows of the table, with the class that the model names where it does.

    ``n_answers`` were asked for, which no explanation counts.
    """

    scores: Scores
    n_answers: int
    _extents: dict[Any, tuple[float, float, float]] = field(default_factory=dict, repr=False)

    @classmethod
    def ask(cls, space: Space, target: Target) -> "TableAnswers | None":
        """Ask the model about the rows; None if the space has none."""
        questions, values, named = Questions(target), list[np.ndarray](), list[np.ndarray]()
        for inputs, n_rows in space.examples():
            scores = questions.ask(inputs, n_rows)
            values.append(scores.values)
            if scores.named is not None:
                named.append(scores.named)
        if not values:
            return None
        both = Scores(np.concatenate(values), np.concatenate(named) if named else None)
        return cls(both, questions.n_answers)

    @cached_property
    def rule(self) -> Rule | None:
        """How the named class follows from scores on all rows: the highest, or one threshold; None if it does not.

        A threshold is halfway between the scores of the rows on its two sides.
        """
        values, named = self.scores.values, self.scores.named
        if named is None:
            return None
        if np.array_equal(values.argmax(axis=1), named):
            return Rule()
        if values.shape[1] != 2:
            return None
        ones, zeros = values[named == 1, 1], values[named == 0, 1]
        if not len(ones) or not len(zeros) or not ones.min() > zeros.max():
            return None
        return Rule(1, float((ones.min() + zeros.max()) / 2))

    def outputs(self, predictor: Predictor) -> np.ndarray:
        """Return the explained outputs of the rows, (n,)."""
        return predictor.read(self.scores).outputs

    def alike(self, predictor: Predictor) -> np.ndarray | None:
        """Return which rows the model decides like the instance, (n,); None for numbers."""
        return predictor.read(self.scores).stays

    def extent(self, predictor: Predictor) -> tuple[float, float, float]:
        """Return the lowest and highest output, and the distance of the 5% and 95% quantiles."""
        explained = predictor.column, predictor.label  # on nothing else of an instance do outputs depend
        if explained not in self._extents:
            outputs = self.outputs(predictor)
            low, high = np.quantile(outputs, _MIDDLE, method="inverted_cdf")
            self._extents[explained] = float(outputs.min()), float(outputs.max()), float(high - low)
        return self._extents[explained]
