"""How far a changed row is from the nearest training row, beside the same distance of real rows.

The distance of two rows is the mean over the columns of the distances of their values; `candidates` defines these.
"""

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anchorline.changes.candidates import APART, Candidates, Change, ChangeableRow, Values, distinct_values
from anchorline.changes.result import Realism
from anchorline.spaces.rows import Schema

_MAX_ROWS = 10_000  # training rows among which the nearest is sought
_MAX_REAL = 200  # training rows whose own nearest rows are sought, for comparison


@dataclass(frozen=True, eq=False)
class Rows:
    """Training rows as numbers (columns, n): places of numbers and dates, codes of all others, NaN if missing.

    ``nearest`` are the sorted distances of some of them from their nearest other rows.
    """

    values: tuple[Values, ...]
    numbers: np.ndarray
    nearest: np.ndarray

    @classmethod
    def of(cls, schema: Schema, columns: Sequence[tuple[int, int | None]]) -> "Rows":
        """Return the rows of a table among which the nearest are sought, and the distances of some from theirs.

        ``columns`` are positions, each with itself if it is ordered, or else with None.
        """
        kept = np.unique(np.linspace(0, schema.n_rows - 1, min(schema.n_rows, _MAX_ROWS)).astype(np.intp))
        values = tuple(distinct_values(schema, (j,), view) for j, view in columns)
        numbers = np.stack([_numbers(each, each.ids[kept]) for each in values])
        rows = cls(values, numbers, np.zeros(0))
        some = np.unique(np.linspace(0, len(kept) - 1, min(len(kept), _MAX_REAL)).astype(np.intp))
        nearest = [rows.distance(numbers[:, i], leaving_out=i) for i in some.tolist()] if len(kept) > 1 else []
        return replace(rows, nearest=np.sort(nearest))

    def distance(self, row: np.ndarray, leaving_out: int) -> float:
        """Return the distance of a row (columns,) to the nearest training row other than ``leaving_out``."""
        total = sum((self.apart(i, own) for i, own in enumerate(row.tolist())), np.zeros(self.numbers.shape[1]))
        total[leaving_out] = np.inf
        return float(total.min() / len(self.numbers))

    def apart(self, column: int, value: float) -> np.ndarray:
        """Return the distances of a value from those of all rows in a column, (n,)."""
        numbers, is_ordered = self.numbers[column], self.values[column].places is not None
        apart = np.abs(numbers - value) if is_ordered else np.where(numbers == value, 0.0, APART)
        missing = np.isnan(numbers)
        return np.where(np.isnan(apart) | missing, np.where(missing & np.isnan(value), 0.0, APART), apart)


_ROWS: weakref.WeakKeyDictionary[Schema, dict[Any, Rows]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Nearby:
    """The training rows beside one row, without those that are like it in all columns.

    Rows that are like the row do not count, because every small change is close to them. ``apart`` (columns, n)
    are the distances of the row's own values from those of the rows, and ``total`` (n,) their sums.
    """

    candidates: Candidates
    case: ChangeableRow
    rows: Rows
    places: Mapping[int, int]
    apart: np.ndarray
    total: np.ndarray

    @classmethod
    def of(cls, candidates: Candidates) -> "Nearby | None":
        """Return the rows beside an instance; None if there are none to compare it with."""
        case = candidates.case
        if not isinstance(case, ChangeableRow):
            return None
        positions = tuple(sorted(j for each in case.positions for j in each))
        columns = tuple((j, None if j in case.named else j) for j in positions)
        known = _ROWS.setdefault(case.schema, {})
        if columns not in known:
            known[columns] = Rows.of(case.schema, columns)
        rows = known[columns]
        own = np.array([_place(rows.values[i], case, j) for i, j in enumerate(positions)])
        same = (rows.numbers == own[:, None]) | (np.isnan(rows.numbers) & np.isnan(own)[:, None])
        others = rows.numbers[:, ~same.all(axis=0)]
        if not (len(rows.nearest) and others.shape[1]):
            return None
        rows = replace(rows, numbers=others)
        apart = np.stack([rows.apart(i, value) for i, value in enumerate(own.tolist())])
        places = {j: i for i, j in enumerate(positions)}
        return cls(candidates, case, rows, places, apart, apart.sum(axis=0))

    def distance(self, change: Change) -> float:
        """Return how far a changed row is from the nearest row."""
        total = self.total.copy()
        for candidate in change:
            source = self.candidates.rows[[candidate]]
            for j in self.case.positions[int(self.candidates.owner[candidate])]:
                i = self.places[j]
                number = _numbers(self.rows.values[i], self.rows.values[i].ids[source])[0]
                total += self.rows.apart(i, float(number)) - self.apart[i]
        return max(0.0, float(total.min())) / len(self.apart)

    def realism(self, change: Change) -> Realism:
        """Return the distance of a changed row, beside those of real rows."""
        distance, nearest = self.distance(change), self.rows.nearest
        below = int(np.searchsorted(nearest, distance - 1e-12))
        return Realism(distance, float(np.median(nearest)), 1 - below / len(nearest))


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
