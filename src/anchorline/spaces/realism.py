"""How far a changed row is from the nearest training row, beside the same distance of real rows.

The distance of two rows is the mean over the columns of the distances of their values; `anchorline.spaces.choices`
defines these.
"""

import weakref
from collections.abc import Mapping, Sequence
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
        total = np.zeros(self.numbers.shape[1])
        for own, is_ordered, column in zip(row, self.is_ordered, self.numbers, strict=True):
            apart = np.abs(column - own) if is_ordered else np.where(column == own, 0.0, APART)
            both_missing = np.isnan(column) & np.isnan(own)
            total += np.where(np.isnan(apart) | np.isnan(column), np.where(both_missing, 0.0, APART), apart)
        if leaving_out is not None:
            total[leaving_out] = np.inf
        return float(total.min() / len(self.numbers))


def _numbers(values: Values, ids: np.ndarray) -> np.ndarray:
    """Return the places or codes of values, NaN where they are missing."""
    lookup = np.arange(len(values.rows), dtype=np.float64) if values.places is None else values.places
    return np.where(ids >= 0, np.append(lookup, np.nan)[ids], np.nan)


_ROWS: weakref.WeakKeyDictionary[Schema, dict[Any, Rows]] = weakref.WeakKeyDictionary()


def realism(choices: TableChoices, changes: Sequence[Mapping[int, int]]) -> list[Realism | None]:
    """Return how real changed rows are; a change maps attributes to candidates.

    Training rows that are like the instance itself do not count, because every small change is close to them.
    """
    table = choices.table
    known = _ROWS.setdefault(table.schema, {})
    key = tuple(sorted(table.left_out))
    if key not in known:
        known[key] = Rows.of(table)
    rows = known[key]
    if not len(rows.nearest):
        return [None] * len(changes)
    positions = [j for j, name in enumerate(table.names) if name not in table.left_out]
    own = np.array([_place(rows.values[i], choices, j) for i, j in enumerate(positions)])
    others = Rows(rows.values, rows.is_ordered, rows.numbers[:, ~_like(rows.numbers, own)], rows.nearest)
    if not others.numbers.shape[1]:
        return [None] * len(changes)
    return [_realism(others, _changed(own, rows, choices, positions, change)) for change in changes]


def _realism(rows: Rows, row: np.ndarray) -> Realism:
    distance = rows.distance(row)
    below = int(np.searchsorted(rows.nearest, distance - 1e-12))
    return distance, float(np.median(rows.nearest)), 1 - below / len(rows.nearest)


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


def _changed(
    own: np.ndarray, rows: Rows, choices: TableChoices, positions: Sequence[int], change: Mapping[int, int]
) -> np.ndarray:
    """Return the changed row as numbers."""
    changed = own.copy()
    for attribute, value in change.items():
        choice = choices.attributes[attribute]
        for j in choice.positions:
            i = positions.index(j)
            values = rows.values[i]
            changed[i] = _numbers(values, values.ids[choice.rows[value : value + 1]])[0]
    return changed
