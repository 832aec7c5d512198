"""Realistic neighbors: all new values come from one row, drawn among those most like the explained row.

Which attributes are replaced is drawn first. The donor is one of the 10 rows that are most like the explained row
in the attributes that it keeps; of these, the most similar is drawn 10 times as often as the tenth. One row that
is like the explained row in everything does not donate, because that is usually the row itself.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from anchorline.spaces.columns import Column
from anchorline.spaces.likeness import costs_to, grades_of, unit_of

MAX_DONORS = 2**13  # rows of the pool that may donate; a random sample of larger pools
_COMPARED = 2**10  # rows that are compared for each neighbor: those most like the explained row on the whole
_NEAREST = 10
_AT_ONCE = 2**10  # neighbors whose rows are compared at once, to bound memory


class Likeness:
    """The rows of a pool, graded once; ``units`` are the positions of columns that count as one each."""

    def __init__(
        self, columns: Sequence[Column], units: Sequence[tuple[int, ...]], categories: Collection[int]
    ) -> None:
        self.units = units
        self._graded = {}
        for j in (j for unit in units for j in unit):
            grades = grades_of(columns[j], by_level=j in categories)
            self._graded[j] = grades, grades.grades(columns[j]).astype(np.intp)

    def costs(self, row: Sequence[Column]) -> np.ndarray:
        """Return how unlike a row every pool row is in each unit, (units, n): whole numbers below 2^16 in all."""
        unit = unit_of(len(self.units))
        each = [
            costs_to([self._graded[j] for j in positions], [row[j] for j in positions], unit)
            for positions in self.units
        ]
        return np.array(each, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class SimilarRows:
    """Rows that may donate: ``rows`` (m,), how unlike they are per attribute (d, m), and in fixed columns (m,)."""

    rows: np.ndarray
    costs: np.ndarray
    fixed: np.ndarray

    @classmethod
    def among(cls, costs: np.ndarray, allowed: np.ndarray, n_attributes: int) -> "SimilarRows":
        """Choose rows that may donate among the ``allowed`` ones, given the costs (units, n) of all.

        If there are many, these are the rows most like the explained row, where one attribute counts at most as
        much as an average one, because an attribute in which a row is very different may be replaced.
        """
        costs = costs[:, allowed]
        total = costs.sum(axis=0)
        same = np.flatnonzero(total == 0)
        if len(same) and len(allowed) > 1:
            kept = np.delete(np.arange(len(allowed)), same[0])
            allowed, costs, total = allowed[kept], costs[:, kept], total[kept]
        if len(allowed) > _COMPARED:
            typical = np.minimum(costs, int(unit_of(len(costs)))).sum(axis=0)
            kept = np.sort(np.argsort(typical, kind="stable")[:_COMPARED])
            allowed, costs = allowed[kept], costs[:, kept]
        return cls(allowed, costs[:n_attributes].astype(np.float64), costs[n_attributes:].sum(axis=0))

    def choose(self, replaced: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
        """Return the row (n,) that donates the replaced attributes (d, n) of every neighbor."""
        n_rows = len(self.rows)
        n_near = min(_NEAREST, n_rows)
        chosen = np.empty(len(uniforms), dtype=np.intp)
        for first in range(0, len(uniforms), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            # Sums of whole numbers are exact, and the place decides among equally similar rows.
            unlike = (~replaced[:, part]).T.astype(np.float64) @ self.costs + self.fixed
            keys = unlike.astype(np.int64) * n_rows + np.arange(n_rows)
            keys.partition(n_near - 1, axis=1)
            near = np.sort(keys[:, :n_near], axis=1) % n_rows
            ends = np.cumsum(np.arange(n_near, 0, -1))
            ranks = ends.searchsorted(uniforms[part] * ends[-1], side="right")
            chosen[part] = near[np.arange(len(near)), ranks]
        return np.asarray(self.rows[chosen])
