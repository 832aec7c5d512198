r"""Realistic neighbors: all new values come from one row, drawn among those most like the explained row.

Which attributes are replaced is drawn first. The donor is one of the 10 rows that are most like the explained row
in the attributes that it keeps; of these, the most similar is drawn 10 times as often as the tenth. One row that
is like the explained row in everything does not donate, because that is usually the row itself.

How alike two rows are is a cost per attribute. For one column, the difference of two values is

- :math:`g = (r - r')^2` for two numbers or dates with the ranks :math:`r, r'` in [0, 1] among the training values,
- :math:`g = 1` for two different categories, or if exactly one value is missing, and otherwise 0.

The cost is :math:`\min(6, g / \bar g)`, where :math:`\bar g` is the mean over all pairs of training rows. So every
column counts the same, whatever its scale, and no single difference dominates. An attribute of several columns
costs the mean of its columns. Ranks are rounded to 1,024 grades, and costs to whole numbers: sums are exact.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from anchorline.spaces.columns import CATEGORY, Column, level_of

GRADES = 1024
MOST = 6.0  # the largest cost of a column, in units of its mean cost
MAX_DONORS = 2**13  # rows of the pool that may donate; a random sample of larger pools
_COMPARED = 2**10  # rows that are compared for each neighbor: those most like the explained row on the whole
_NEAREST = 10
_AT_ONCE = 2**10  # neighbors whose rows are compared at once, to bound memory


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """The grades of a column of numbers, dates or booleans: their ranks among the sorted ``points``.

    ``mean`` is the mean squared difference of two rows, in grades.
    """

    points: np.ndarray
    mean: float

    @classmethod
    def of_column(cls, column: Column) -> "Ranks":
        """Return the grades that the values of a training column define."""
        grades = cls(np.sort(column.values[~column.missing]), 0.0)
        present = grades.grades(column)[~column.missing].astype(np.int64)
        n, n_missing = len(present), int(column.missing.sum())
        # Whole numbers are exact in any order of summation, so that the mean is the same on every machine.
        spread = 2 * (n * int((present**2).sum()) - int(present.sum()) ** 2)
        mean = (spread + 2 * n * n_missing * GRADES**2) / (n + n_missing) ** 2
        return cls(grades.points, mean)

    def grades(self, column: Column) -> np.ndarray:
        """Return the grade of every value, (n,): its middle rank in units of 1/1024; the last is "missing"."""
        if not len(self.points):
            return np.full(len(column.values), GRADES + 1, dtype=np.uint16)
        below, upto = (self.points.searchsorted(column.values, side) for side in ("left", "right"))
        grades = (below + upto) * (GRADES // 2) // len(self.points)
        return np.where(column.missing, GRADES + 1, grades).astype(np.uint16)

    def costs(self, column: Column) -> np.ndarray:
        """Return the cost of every grade seen from the only value of a column, (grades,)."""
        own = int(self.grades(column)[0])
        gaps = np.arange(GRADES + 2, dtype=np.float64) - own
        if own > GRADES:
            gaps[:-1] = GRADES
        else:
            gaps[-1] = GRADES
        return _relative(gaps**2, self.mean)


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """The grades of a column of categories: one per level, by its text; missing values are a level of their own.

    ``mean`` is the share of the pairs of rows that differ. Levels that the column lacks have the last grade.
    """

    levels: Mapping[str, int]
    mean: float

    @classmethod
    def of_column(cls, column: Column) -> "Texts":
        """Return the grades that the values of a training column define."""
        counts, n = Counter(_texts(column)), len(column.values)
        mean = (n**2 - sum(count**2 for count in counts.values())) / n**2
        return cls({level: i for i, level in enumerate(sorted(counts))}, mean)

    def grades(self, column: Column) -> np.ndarray:
        """Return the grade of every value, (n,)."""
        return np.array([self.levels.get(text, len(self.levels)) for text in _texts(column)], dtype=np.uint16)

    def costs(self, column: Column) -> np.ndarray:
        """Return the cost of every grade seen from the only value of a column, (grades,)."""
        differs = np.ones(len(self.levels) + 1)
        differs[int(self.grades(column)[0])] = 0.0
        return _relative(differs, self.mean)


def unit_of(n_attributes: int) -> float:
    """Return what a cost of 1 is as a whole number, so that the costs of all attributes stay below 2^16."""
    return float(max(1, (2**16 - 1) // int(MOST * n_attributes)))


def _relative(differences: np.ndarray, mean: float) -> np.ndarray:
    """Return differences in units of their mean, at most 6; all are 0 if no two rows differ."""
    return np.minimum(MOST, differences / mean) if mean else np.zeros_like(differences)


def _texts(column: Column) -> list[str]:
    """Return a text per value; that of missing values is one that no level has."""
    texts = column.values if column.kind == CATEGORY else [level_of(v, column.kind) for v in column.values]
    return ["\0" if gone else text for text, gone in zip(texts, column.missing.tolist(), strict=True)]


class Likeness:
    """The rows of a pool, graded once; ``units`` are the positions of columns that count as one each.

    ``categories`` are the positions of columns of numbers that are read as categories.
    """

    def __init__(
        self, columns: Sequence[Column], units: Sequence[tuple[int, ...]], categories: Collection[int]
    ) -> None:
        self.units = units
        self._graded: dict[int, tuple[Ranks | Texts, np.ndarray]] = {}
        for j in (j for unit in units for j in unit):
            by_level = j in categories or columns[j].kind == CATEGORY
            grades = Texts.of_column(columns[j]) if by_level else Ranks.of_column(columns[j])
            self._graded[j] = grades, grades.grades(columns[j]).astype(np.intp)

    def costs(self, row: Sequence[Column]) -> np.ndarray:
        """Return how unlike a row every pool row is in each unit, (units, n): whole numbers below 2^16 in all."""
        unit, costs = unit_of(len(self.units)), []
        for positions in self.units:
            parts = [(*self._graded[j], row[j], unit / len(positions)) for j in positions]
            each = [
                np.floor(grades.costs(own) * most).astype(np.int32).take(rows) for grades, rows, own, most in parts
            ]
            costs.append(np.sum(each, axis=0, dtype=np.int32))
        return np.array(costs, dtype=np.int32)


def similar_rows(costs: np.ndarray, allowed: np.ndarray, replaced: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Return the row (n,) among the ``allowed`` ones that donates the replaced attributes (d, n) of a neighbor.

    ``costs`` (units, rows) are those of all rows: per attribute, and then per fixed column. If many rows are
    allowed, those most like the explained row are compared, where one attribute counts at most as much as an
    average one, because an attribute in which a row is very different may be replaced.
    """
    rows, costs = allowed, costs[:, allowed]
    same = np.flatnonzero(costs.sum(axis=0) == 0)
    if len(same) and len(rows) > 1:
        rows, costs = np.delete(rows, same[0]), np.delete(costs, same[0], axis=1)
    if len(rows) > _COMPARED:
        typical = np.minimum(costs, int(unit_of(len(costs)))).sum(axis=0)
        kept = np.sort(np.argsort(typical, kind="stable")[:_COMPARED])
        rows, costs = rows[kept], costs[:, kept]
    of_attributes, fixed = costs[: len(replaced)].astype(np.float64), costs[len(replaced) :].sum(axis=0)
    n_rows, n_near = len(rows), min(_NEAREST, len(rows))
    ends = np.cumsum(np.arange(n_near, 0, -1))
    chosen = np.empty(len(uniforms), dtype=np.intp)
    for first in range(0, len(uniforms), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        # Sums of whole numbers are exact; the place decides among equally similar rows.
        unlike = (~replaced[:, part]).T.astype(np.float64) @ of_attributes + fixed
        keys = unlike.astype(np.int64) * n_rows + np.arange(n_rows)
        keys.partition(n_near - 1, axis=1)
        near = np.sort(keys[:, :n_near], axis=1) % n_rows
        ranks = ends.searchsorted(uniforms[part] * ends[-1], side="right")
        chosen[part] = near[np.arange(len(near)), ranks]
    return np.asarray(rows[chosen])
