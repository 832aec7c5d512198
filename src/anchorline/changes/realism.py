"""How far a changed row is from the nearest training row, beside the same distance of real rows.

The distance of two rows is the mean over the columns of the distances of their values; `candidates` defines these.
"""

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from anchorline.changes.candidates import APART, Candidates, Change, ChangeableRow, Values, distinct_values
from anchorline.changes.result import Realism
from anchorline.spaces.rows import Schema

_MAX_ROWS = 10_000  # training rows among which the nearest is sought
_MAX_REAL = 200  # training rows whose own nearest rows are sought, for comparison


class Rows:
    """Training rows as ``numbers`` (columns, n): places of numbers and dates, codes of all others, NaN if missing.

    ``columns`` are positions, each with itself if it is ordered, or else with None. ``nearest`` are the sorted
    distances of some rows from their nearest other rows.
    """

    def __init__(self, schema: Schema, columns: Sequence[tuple[int, int | None]]) -> None:
        kept = np.unique(np.linspace(0, schema.n_rows - 1, min(schema.n_rows, _MAX_ROWS)).astype(np.intp))
        self.values = [distinct_values(schema, (j,), view) for j, view in columns]
        self.numbers = np.stack([_numbers(each, each.ids[kept]) for each in self.values])
        nearest, n = [], len(kept)
        for i in np.unique(np.linspace(0, n - 1, min(n, _MAX_REAL)).astype(np.intp)).tolist() if n > 1 else ():
            pairs = zip(self.values, self.numbers, strict=True)
            total = sum((_apart(each, numbers, numbers[i]) for each, numbers in pairs), np.zeros(n))
            total[i] = np.inf
            nearest.append(float(total.min() / len(columns)))
        self.nearest = np.sort(nearest)


_ROWS: weakref.WeakKeyDictionary[Schema, dict[Any, Rows]] = weakref.WeakKeyDictionary()


class Nearby:
    """The training rows beside one row, without those that are like it in all columns.

    Rows that are like the row do not count, because every small change is close to them. ``others`` (columns, n)
    are the rows as numbers, ``apart`` (columns, n) how far the own values are from theirs, and ``total`` the sums.
    """

    def __init__(self, candidates: Candidates, case: ChangeableRow, rows: Rows, own: np.ndarray) -> None:
        self.candidates, self.case, self.rows = candidates, case, rows
        same = (rows.numbers == own[:, None]) | (np.isnan(rows.numbers) & np.isnan(own)[:, None])
        self.others = rows.numbers[:, ~same.all(axis=0)]
        self.apart = np.stack([_apart(*each) for each in zip(rows.values, self.others, own, strict=True)])
        self.total = self.apart.sum(axis=0)

    @classmethod
    def of(cls, candidates: Candidates) -> "Nearby | None":
        """Return the rows beside an instance; None if there are none to compare it with."""
        case = candidates.case
        if not isinstance(case, ChangeableRow):
            return None
        columns = tuple((j, None if j in case.named else j) for j in case.changing)
        known = _ROWS.setdefault(case.schema, {})
        if columns not in known:
            known[columns] = Rows(case.schema, columns)
        rows = known[columns]
        own = [_place(values, case, j) for values, j in zip(rows.values, case.changing, strict=True)]
        found = cls(candidates, case, rows, np.array(own))
        return found if len(rows.nearest) and len(found.total) else None

    def distance(self, change: Change) -> float:
        """Return how far a changed row is from the nearest row."""
        total = self.total.copy()
        for candidate in change:
            for j in self.case.positions[int(self.candidates.owner[candidate])]:
                i = self.case.changing.index(j)
                values = self.rows.values[i]
                number = _numbers(values, values.ids[self.candidates.rows[[candidate]]])[0]
                total += _apart(values, self.others[i], number) - self.apart[i]
        return max(0.0, float(total.min())) / len(self.apart)

    def realism(self, change: Change) -> Realism:
        """Return the distance of a changed row, beside those of real rows."""
        distance, nearest = self.distance(change), self.rows.nearest
        below = int(np.searchsorted(nearest, distance - 1e-12))
        return Realism(distance, float(np.median(nearest)), 1 - below / len(nearest))


def _apart(values: Values, numbers: np.ndarray, number: float) -> np.ndarray:
    """Return the distances of a column's value from those of rows (n,), all as numbers."""
    apart = np.abs(numbers - number) if values.places is not None else np.where(numbers == number, 0.0, APART)
    missing = np.isnan(numbers)
    return np.where(np.isnan(apart) | missing, np.where(missing & np.isnan(number), 0.0, APART), apart)


def _numbers(values: Values, ids: np.ndarray) -> np.ndarray:
    """Return the places or codes of values, NaN where they are missing."""
    lookup = np.arange(len(values.rows), dtype=np.float64) if values.places is None else values.places
    return np.where(ids >= 0, np.append(lookup, np.nan)[ids], np.nan)


def _place(values: Values, case: ChangeableRow, j: int) -> float:
    """Return the place or code of the row's own value in a column; -1 for a category that no row has."""
    cell = case.cells[j]
    if cell.missing[0]:
        return float("nan")
    if values.places is not None:
        return values.place(float(cell.values[0]))
    same = np.flatnonzero(case.schema.columns[j].values[values.rows] == cell.values[0])
    return float(same[0]) if len(same) else -1.0
