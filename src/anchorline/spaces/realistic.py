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
from collections.abc import Collection, Sequence

import numpy as np

from anchorline.spaces.columns import CATEGORY, Column, level_of

GRADES = 1024
MOST = 6.0  # the largest cost of a column, in units of its mean cost
MAX_DONORS = 2**13  # rows of the pool that may donate; a random sample of larger pools
_COMPARED = 2**10  # rows that are compared for each neighbor: those most like the explained row on the whole
_NEAREST = 10
_AT_ONCE = 2**10  # neighbors whose rows are compared at once, to bound memory


class Grades:
    """The values of a training column as whole numbers, by which values are compared.

    The grade of a number or date is its middle rank in units of 1/1024, and the last one is "missing". With
    ``by_level``, there is one grade per category, by its text; missing values are a category of their own, and
    categories that the column lacks have the last grade. ``mean`` is the mean difference of two rows.
    """

    def __init__(self, column: Column, by_level: bool = False) -> None:
        n, missing = len(column.values), column.missing
        self._levels: dict[str, int] | None = None
        if by_level:
            counts = Counter(_texts(column))
            self._levels = {level: i for i, level in enumerate(sorted(counts))}
            self.mean = (n**2 - sum(count**2 for count in counts.values())) / n**2
            return
        self._points = np.sort(column.values[~missing])
        present, n_missing = self.of(column)[~missing].astype(np.int64), int(missing.sum())
        # Whole numbers are exact in any order of summation, so that the mean is the same on every machine.
        spread = 2 * (len(present) * int((present**2).sum()) - int(present.sum()) ** 2)
        self.mean = (spread + 2 * len(present) * n_missing * GRADES**2) / n**2

    def of(self, column: Column) -> np.ndarray:
        """Return the grade of every value of a column, (n,)."""
        if self._levels is not None:
            last = len(self._levels)
            return np.array([self._levels.get(text, last) for text in _texts(column)], dtype=np.uint16)
        if not len(self._points):
            return np.full(len(column.values), GRADES + 1, dtype=np.uint16)
        below, upto = (self._points.searchsorted(column.values, side) for side in ("left", "right"))
        grades = (below + upto) * (GRADES // 2) // len(self._points)
        return np.where(column.missing, GRADES + 1, grades).astype(np.uint16)

    def costs(self, column: Column) -> np.ndarray:
        """Return the cost of every grade seen from the only value of a column, (grades,): at most 6."""
        own = int(self.of(column)[0])
        if self._levels is not None:
            differences = np.ones(len(self._levels) + 1)
            differences[own] = 0.0
        else:
            differences = (np.arange(GRADES + 2, dtype=np.float64) - own) ** 2
            differences[slice(-1) if own > GRADES else -1] = GRADES**2
        return np.minimum(MOST, differences / self.mean) if self.mean else np.zeros_like(differences)


def unit_of(n_attributes: int) -> float:
    """Return what a cost of 1 is as a whole number, so that the costs of all attributes stay below 2^16."""
    return float(max(1, (2**16 - 1) // int(MOST * n_attributes)))


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
        self._graded: dict[int, tuple[Grades, np.ndarray]] = {}
        for j in (j for unit in units for j in unit):
            grades = Grades(columns[j], j in categories or columns[j].kind == CATEGORY)
            self._graded[j] = grades, grades.of(columns[j]).astype(np.intp)

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
