"""What the changes of attributes do to the drops of rows, and the problems that this poses."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.optimize.independent import IndependentProblems
from anchorline.optimize.options import PAIRS, GroupedProblems


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """What changes of attributes do in n rows.

    ``weights`` (attributes, 1 + ways, n) are probabilities, and ``covariances`` (attributes, ways, n) those of the
    outcomes with the drops, whose ``means`` are (n,). ``breaks`` (3, attributes, ways, n) are literals that an
    outcome breaks.
    """

    weights: np.ndarray
    breaks: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    @property
    def changing(self) -> np.ndarray:
        """Which literals the rows have, (3, n, attributes)."""
        return np.ascontiguousarray(np.swapaxes(self.breaks.any(axis=2), 1, 2))

    def _added(self, values: np.ndarray, broken: np.ndarray) -> np.ndarray:
        """Return sums of values (attributes, ways, n) over the outcomes that are broken, (n, attributes)."""
        total = np.zeros((values.shape[0], values.shape[2]))
        for way in range(values.shape[1]):  # one by one, so that no sum depends on the other rows
            total += np.where(broken[:, way], values[:, way], 0.0)
        return np.ascontiguousarray(total.T)

    def independent(self, p: float, squares: np.ndarray | None, posed: dict[str, Any]) -> IndependentProblems:
        """Return the problems of attributes that have one literal and change in one way each."""
        covariances = np.ascontiguousarray(self.covariances[:, 0].T)
        problems = IndependentProblems(p, self.means, covariances, np.zeros(len(self.means)), **posed)
        return problems if squares is None else problems.with_squares(squares)

    def grouped(self, p: float, squares: np.ndarray | None, posed: dict[str, Any]) -> GroupedProblems:
        """Return the problems of attributes with up to three literals each."""
        chances, breaks = self.weights[:, 1:], self.breaks
        return GroupedProblems(
            np.stack([self._added(chances, own) for own in breaks]),
            np.stack([self._added(chances, breaks[i] & breaks[j]) for i, j in PAIRS]),
            np.stack([self._added(self.covariances, own) for own in breaks]),
            self.means,
            self._explainable(p) if squares is None else squares,
            **posed,
        )

    def _explainable(self, p: float) -> np.ndarray:
        """Return the mean squares (n,) of the best sums of all outcomes: see `LeafRow.explainable`."""
        chances, c = self.weights[:, 1:], self.covariances
        changing = chances > 0
        own = self._added(c**2 / np.where(changing, chances, 1.0), changing) + self._added(c, changing) ** 2 / (
            1 - p
        )
        return np.asarray(self.means**2 + own.sum(axis=1))
