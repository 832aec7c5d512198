"""Rows whose columns are sorted, each by itself: where those lie for which a fact is true.

Searches in all columns at once are what makes facts about a row of thousands of columns cheap.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.spaces.columns import CATEGORY, Column, Ranks
from anchorline.spaces.natives import Natives


@dataclass(frozen=True, eq=False)
class SortedColumn:
    """A column whose rows are sorted by value, missing values last; rows with equal values keep their order.

    ``order`` (n,): the rows in this order. ``values`` (m,): the distinct values, ascending: numbers, dates in
    microseconds and booleans as floats, categories as texts. ``starts`` (m + 1,): how many rows come before each
    value; the last entry is the number of rows that have a value.
    """

    order: np.ndarray
    values: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, column: Column) -> "SortedColumn":
        """Sort a column."""
        if column.kind == CATEGORY:
            levels, places = column.ranks or Ranks.of(column.values.tolist())
            codes = np.where(column.missing, len(levels), places.astype(np.intp))
            counts = np.bincount(codes, minlength=len(levels) + 1)[:-1]
            present = np.flatnonzero(counts)
            distinct = np.array(levels, dtype=object)[present]
            return cls(np.argsort(codes, kind="stable"), distinct, np.append(0, np.cumsum(counts[present])))
        order = np.argsort(np.where(column.missing, np.nan, column.values), kind="stable")  # NaN comes last
        values = column.values[order[: len(order) - int(column.missing.sum())]] + 0.0  # -0 and 0 are one number
        first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])[: len(values)])
        return cls(order, values[first], np.append(first, len(values)))

    @property
    def n_present(self) -> int:
        """The number of rows that have a value."""
        return int(self.starts[-1])

    @cached_property
    def places(self) -> np.ndarray:
        """The place (n,) of every row in the order."""
        places = np.empty_like(self.order)
        places[self.order] = np.arange(len(self.order))
        return places

    @property
    def codes(self) -> np.ndarray:
        """The number (n,) of every row's value among the distinct ones; -1 for missing values."""
        codes = np.full(len(self.order), -1, dtype=np.intp)
        codes[self.order[: self.n_present]] = np.arange(len(self.values)).repeat(np.diff(self.starts))
        return codes

    def span(self, value: Any) -> tuple[int, int]:
        """Return where the rows with a value start and stop in the order; an empty span if there are none."""
        at = int(np.searchsorted(self.values, value))
        if at < len(self.values) and self.values[at] == value:
            return int(self.starts[at]), int(self.starts[at + 1])
        return 0, 0


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows in canonical order: in their own types, as they were read, and sorted by every column that may change.

    ``natives`` may have more rows, which come after those of ``columns``.
    """

    natives: Natives
    columns: tuple[Column, ...]
    sorted: Mapping[int, SortedColumn]

    @classmethod
    def of(cls, natives: Natives, columns: Sequence[Column], free: Iterable[int]) -> "Pool":
        """Sort the ``free`` columns."""
        return cls(natives, tuple(columns), {j: SortedColumn.of(columns[j]) for j in free})

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.columns[0].values)


class Ladders:
    """The distinct values of several sorted columns of numbers in one array, which are searched together.

    Rung i of column j is its i-th smallest distinct value, of which there are ``sizes[j]``.
    """

    def __init__(self, columns: Sequence[SortedColumn]) -> None:
        self.sizes = np.array([len(column.values) for column in columns], dtype=np.intp)
        self._first = np.concatenate([[0], np.cumsum(self.sizes + 1)])[:-1].astype(np.intp)
        end = [np.inf]  # above the highest rung: then an index is always valid
        parts = [part for column in columns for part in (column.values, end)]
        self._values = np.concatenate(parts) if parts else np.zeros(0)
        starts = [column.starts for column in columns]
        self._below = np.concatenate(starts).astype(np.int64) if starts else np.zeros(0, dtype=np.int64)
        self._steps = [1 << bit for bit in reversed(range(int(self.sizes.max(initial=0) + 1).bit_length()))]

    def value(self, rungs: np.ndarray) -> np.ndarray:
        """Return the values at rungs (columns, ...); infinity above the highest one."""
        return np.asarray(self._values[self._index(rungs)])

    def below(self, rungs: np.ndarray) -> np.ndarray:
        """Return how many rows have values below rungs (columns, ...)."""
        return np.asarray(self._below[self._index(rungs)])

    def rungs_below(self, values: np.ndarray) -> np.ndarray:
        """Return how many distinct values are less than the given ones (columns, ...)."""
        return self._search(self._values, values)

    def rungs_at_rank(self, ranks: np.ndarray) -> np.ndarray:
        """Return the lowest rungs (columns, ...) with at least this many rows below them, which must exist."""
        return self._search(self._below, ranks)

    def of(self, column: int) -> np.ndarray:
        """Return the distinct values of one column, ascending."""
        first = int(self._first[column])
        return self._values[first : first + int(self.sizes[column])]

    def _index(self, rungs: np.ndarray) -> np.ndarray:
        return np.asarray(rungs + self._first.reshape(-1, *[1] * (rungs.ndim - 1)))

    def _search(self, ascending: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Return, by halving, how many entries of each column are less than what is wanted."""
        shape = (-1, *[1] * (wanted.ndim - 1))
        first, sizes = (self._first - 1).reshape(shape), self.sizes.reshape(shape)
        found = np.zeros(wanted.shape, dtype=np.intp)
        for step in self._steps:
            tried = np.minimum(found + step, sizes + 0)
            ok = (ascending[first + tried] < wanted) & (found + step <= sizes)
            found += step * ok
        return found
