"""How far a changed row is from the nearest training row, beside the same distance of real rows.

The distance of two rows is the mean over the columns of the distances of their values; `anchorline.spaces.choices`
defines these.
"""

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.spaces.choices import APART, TableChoices, Values, column_values
from anchorline.spaces.rows import Schema
from anchorline.spaces.table import Table

_MAX_ROWS = 10_000  # training rows among which the nearest is sought
_MAX_REAL = 200  # training rows whose own nearest rows are sought, for comparison


Realism = tuple[float, float, float]
"""Distance to the nearest training row; of real rows, its median, and the share that are at least as far."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Training rows as numbers (columns, n): places of numbers and dates, codes of all others, NaN if missing.

    ``nearest`` are the sorted distances of some of them from their nearest other rows.
    """

    values: tuple[Values, ...]
    is_ordered: np.ndarray
    numbers: np.ndarray
    nearest: np.ndarray

    @classmethod
    def of(cls, table: Table) -> "Rows":
        """Return the rows of a table among which the nearest are sought, and the distances of some from theirs."""
        n = table.schema.n_rows
        kept = np.unique(np.linspace(0, n - 1, min(n, _MAX_ROWS)).astype(np.intp))
        values = tuple(
            column_values(table.schema, j) for j, name in enumerate(table.names) if name not in table.left_out
        )
        numbers = np.stack([_numbers(each, each.ids[kept]) for each in values])
        is_ordered = np.array([each.places is not None for each in values])
        rows = cls(values, is_ordered, numbers, np.zeros(0))
        some = np.unique(np.linspace(0, len(kept) - 1, min(len(kept), _MAX_REAL)).astype(np.intp))
        nearest = [rows.distance(numbers[:, i], leaving_out=i) for i in some.tolist()] if len(kept) > 1 else []
        return cls(values, is_ordered, numbers, np.sort(nearest))

    def distance(self, row: np.ndarray, leaving_out: int | None = None) -> float:
        """Return the distance of a row (columns,) to the nearest training row that is not like ``leaving_out``."""
        total = sum((self.apart(i, own) for i, own in enumerate(row.tolist())), np.zeros(self.numbers.shape[1]))
        if leaving_out is not None:
            total[leaving_out] = np.inf
        return float(total.min() / len(self.numbers))

    def apart(self, column: int, value: float) -> np.ndarray:
        """Return the distances of a value from those of all rows in a column, (n,)."""
        numbers = self.numbers[column]
        apart = np.abs(numbers - value) if self.is_ordered[column] else np.where(numbers == value, 0.0, APART)
        missing = np.isnan(numbers)
        return np.where(np.isnan(apart) | missing, np.where(missing & np.isnan(value), 0.0, APART), apart)


def _numbers(values: Values, ids: np.ndarray) -> np.ndarray:
    """Return the places or codes of values, NaN where they are missing."""
    lookup = np.arange(len(values.rows), dtype=np.float64) if values.places is None else values.places
    return np.where(ids >= 0, np.append(lookup, np.nan)[ids], np.nan)


_ROWS: weakref.WeakKeyDictionary[Schema, dict[Any, Rows]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Nearby:
    """The training rows beside one instance, without those that are like it in all columns.

    Rows that are like the instance do not count, because every small change is close to them. ``apart`` (columns,
    n) are the distances of the instance's own values from those of the rows, and ``total`` (n,) their sums.
    """

    choices: TableChoices
    rows: Rows
    positions: Mapping[int, int]
    apart: np.ndarray
    total: np.ndarray

    @classmethod
    def of(cls, choices: TableChoices) -> "Nearby | None":
        """Return the rows beside an instance; None if there are none to compare it with."""
        table = choices.table
        known, key = _ROWS.setdefault(table.schema, {}), tuple(sorted(table.left_out))
        if key not in known:
            known[key] = Rows.of(table)
        rows = known[key]
        positions = [j for j, name in enumerate(table.names) if name not in table.left_out]
        own = np.array([_place(rows.values[i], choices, j) for i, j in enumerate(positions)])
        others = rows.numbers[:, ~_like(rows.numbers, own)]
        if not (len(rows.nearest) and others.shape[1]):
            return None
        rows = Rows(rows.values, rows.is_ordered, others, rows.nearest)
        apart = np.stack([rows.apart(i, value) for i, value in enumerate(own.tolist())])
        return cls(choices, rows, {j: i for i, j in enumerate(positions)}, apart, apart.sum(axis=0))

    def distance(self, change: Mapping[int, int]) -> float:
        """Return how far a changed row is from the nearest row; a change maps attributes to candidates."""
        total, is_copied = self.total, False
        for attribute, value in change.items():
            choice = self.choices.attributes[attribute]
            for j in choice.positions:
                i = self.positions[j]
                values = self.rows.values[i]
                number = _numbers(values, values.ids[choice.rows[value : value + 1]])[0]
                total = total if is_copied else total.copy()
                total += self.rows.apart(i, float(number)) - self.apart[i]
                is_copied = True
        return max(0.0, float(total.min())) / len(self.apart)

    def realism(self, change: Mapping[int, int]) -> Realism:
        """Return the distance of a changed row, beside those of real rows."""
        distance, nearest = self.distance(change), self.rows.nearest
        below = int(np.searchsorted(nearest, distance - 1e-12))
        return distance, float(np.median(nearest)), 1 - below / len(nearest)


def _like(numbers: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return which rows are like the instance in all columns."""
    same = (numbers == own[:, None]) | (np.isnan(numbers) & np.isnan(own)[:, None])
    return np.asarray(same.all(axis=0))


def _place(values: Values, choices: TableChoices, j: int) -> float:
    """Return the place or code of the instance's own value in a column; -1 for a category that no row has."""
    cell, schema = choices.neighborhood.columns[j], choices.table.schema
    if cell.missing[0]:
        return float("nan")
    if values.places is not None:
        return values.place(float(cell.values[0]))
    same = np.flatnonzero(schema.columns[j].values[values.rows] == cell.values[0])
    return float(same[0]) if len(same) else -1.0
