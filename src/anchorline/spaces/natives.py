"""Rows in the table's own types: cells of pandas, Polars, Arrow or NumPy are copied, never converted.

A neighbor is the instance with some cells copied from training rows. So data types, category sets, whole numbers
and the representation of missing values are preserved without special cases.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from anchorline.spaces.values import pandas_from_value

_COPIED = 8  # times as many rows as are drawn take as long to copy as the drawn ones take to select


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The cells of n neighbors that are drawn from the table, ``counts[j]`` of them in ``columns[j]``.

    ``at`` holds column-major positions among these columns: the cell of neighbor i in ``columns[j]`` has position
    ``i + j n``. ``rows`` are the rows of the table that the cells are drawn from.
    """

    columns: np.ndarray
    counts: np.ndarray
    at: np.ndarray
    rows: np.ndarray

    @classmethod
    def from_sources(cls, columns: np.ndarray, sources: np.ndarray) -> "list[Cells]":
        """Return the cells that come from ``sources`` (d, n), rows of the table, or -1 where nothing is drawn.

        ``columns`` (largest group, d) are the columns of the d attributes, or -1.
        """
        n, flat = sources.shape[1], sources.reshape(-1)
        at = np.flatnonzero(flat >= 0)
        counts = np.diff(at.searchsorted(np.arange(len(sources) + 1) * n))
        first, *others = columns
        cells = cls(first, counts, at, flat[at].astype(np.intp))
        return [cells, *(cells.for_columns(each, n) for each in others)]

    def per_cell(self, per_column: np.ndarray) -> np.ndarray:
        """Repeat a number per column once per cell of the column."""
        return per_column.repeat(self.counts)

    def put(self, values: np.ndarray, flat: np.ndarray, n: int) -> None:
        """Write a value per cell into a column-major table of n rows: to the position ``i + column n``."""
        columns = self.columns.tolist()
        first = min(columns, default=0)
        if columns == list(range(first, first + len(columns))):  # adjacent, which is the usual case
            flat[first * n :][self.at] = values
        else:
            flat[self.at + self.per_cell((self.columns - np.arange(len(columns))) * n)] = values

    def for_columns(self, columns: np.ndarray, n: int) -> "Cells":
        """Return the same cells in other columns; leave out those whose new column is -1."""
        gone = columns < 0
        if not gone.any():
            return Cells(columns, self.counts, self.at, self.rows)
        kept = ~self.per_cell(gone)
        at = self.at - self.per_cell(np.cumsum(gone) * n)
        return Cells(columns[~gone], self.counts[~gone], at[kept], self.rows[kept])


class Natives(Protocol):
    """A table in its own library; it can be pickled, so that other processes can explain rows."""

    def pick(self, j: int, rows: np.ndarray) -> Any:
        """Return a copy of some rows of column j as a native column."""

    def row(self, i: int) -> tuple[Any, ...]:
        """Return a copy of row i as native columns of one value each."""

    def from_value(self, j: int, value: Any) -> Any:
        """Return a native column of one value with the type of column j, or raise any error.

        None is a missing value; dates are NumPy dates in UTC.
        """

    def readable(self, column: Any) -> Any:
        """Return a native column as a Series of its library, or as an array."""

    def categories(self, j: int) -> list[Any]:
        """Return the categories that the type of column j lists, including those that no row has."""

    def rows(self, rows: np.ndarray) -> Any:
        """Return a table of some rows."""

    def joined(self, j: int, cells: Sequence[Any], at: np.ndarray) -> Any:
        """Return a native column of the type of column j; its row i is the only value of ``cells[at[i]]``."""

    def of_columns(self, columns: Sequence[Any]) -> "Natives":
        """Return a table of other rows, given as native columns of the same types."""

    def reordered(self, orders: Iterable[tuple[int, np.ndarray]]) -> "Natives":
        """Return this table with every column in an order of its own; orders come one by one, to save memory."""

    def neighbors(self, row: Sequence[Any], n: int, drawn: Iterable[Cells]) -> Any:
        """Return a table of n copies of ``row`` (native columns of one value each) with the drawn cells."""


class ColumnNatives(ABC):
    """A table that is stored as columns, each of its own type."""

    columns: tuple[Any, ...]

    def pick(self, j: int, rows: np.ndarray) -> Any:
        """Return a copy of some rows of column j."""
        return self._take(self.columns[j], rows)

    def row(self, i: int) -> tuple[Any, ...]:
        """Return row i as native columns of one value each."""
        return tuple(self.pick(j, np.array([i])) for j in range(len(self.columns)))

    def rows(self, rows: np.ndarray) -> Any:
        """Return a table of some rows."""
        return self._assemble([self.pick(j, rows) for j in range(len(self.columns))])

    def joined(self, j: int, cells: Sequence[Any], at: np.ndarray) -> Any:
        """Return a column whose row i is the only value of ``cells[at[i]]``."""
        both = cells[0]
        for cell in cells[1:]:
            both = self._concat(j, both, cell)
        return self._take(both, at)

    def of_columns(self, columns: Sequence[Any]) -> Any:
        """Return a table of other rows, given as native columns of the same types."""
        return replace(self, columns=tuple(columns))  # type: ignore[type-var]  # every subclass is a dataclass

    def reordered(self, orders: Iterable[tuple[int, np.ndarray]]) -> Any:
        """Return this table with every column in an order of its own."""
        columns = list(self.columns)
        for j, order in orders:
            columns[j] = self.pick(j, order)
        return replace(self, columns=tuple(columns))  # type: ignore[type-var]  # every subclass is a dataclass

    def neighbors(self, row: Sequence[Any], n: int, drawn: Iterable[Cells]) -> Any:
        """Return a table whose columns hold the instance's value and the drawn values at their positions."""
        sources = np.full((len(self.columns), n), -1, dtype=np.intp)
        for cells in drawn:
            cells.put(cells.rows, sources.reshape(-1), n)
        return self._assemble([self._mix(j, own, sources[j]) for j, own in enumerate(row)])

    def _mix(self, j: int, own: Any, sources: np.ndarray) -> Any:
        """Return column j of the neighbors, with the instance's own value where sources are -1."""
        column = self.columns[j]
        if len(column) <= _COPIED * len(sources):
            return self._take(self._concat(j, own, column), sources + 1)
        drawn = sources >= 0
        both = self._concat(j, own, self.pick(j, sources[drawn])) if drawn.any() else own
        return self._take(both, np.where(drawn, np.cumsum(drawn), 0))

    @abstractmethod
    def _take(self, column: Any, rows: np.ndarray) -> Any:
        """Return a copy of some rows of a native column."""

    @abstractmethod
    def _concat(self, j: int, first: Any, second: Any) -> Any:
        """Return the concatenation of two native columns that have the type of column j."""

    @abstractmethod
    def _assemble(self, columns: Sequence[Any]) -> Any:
        """Return a table of these native columns."""


@dataclass(frozen=True, eq=False)
class PandasNatives(ColumnNatives):
    """The columns of a pandas frame as NumPy or pandas arrays, and their labels."""

    columns: tuple[Any, ...]
    labels: Any

    def from_value(self, j: int, value: Any) -> Any:
        """Return an array of one value, converted by pandas, which raises an error if the type cannot hold it."""
        return pandas_from_value(value, self.columns[j].dtype)

    def readable(self, column: Any) -> Any:
        """Return a NumPy array unchanged, and a pandas array as a Series."""
        import pandas as pd  # noqa: PLC0415  heavy, and not a dependency

        return column if isinstance(column, np.ndarray) else pd.Series(column, copy=False)

    def categories(self, j: int) -> list[Any]:
        """Return the categories that the column's type lists, or those of an Arrow dictionary."""
        column = self.columns[j]
        if hasattr(column, "categories"):
            return list(column.categories)
        return dictionary_values(column.__arrow_array__())

    def _take(self, column: Any, rows: np.ndarray) -> Any:
        return column.take(rows)

    def _concat(self, j: int, first: Any, second: Any) -> Any:
        if isinstance(first, np.ndarray):
            return np.concatenate([first, second])
        return type(first)._concat_same_type([first, second])

    def _assemble(self, columns: Sequence[Any]) -> Any:
        """Return a frame with an index from 0; objects get an explicit type, or pandas would convert texts."""
        import pandas as pd  # noqa: PLC0415  heavy, and not a dependency

        index = pd.RangeIndex(len(columns[0]))  # one object, or pandas would align every series with it
        by_position = {
            j: pd.Series(column, dtype=object, index=index, copy=False) if column.dtype == object else column
            for j, column in enumerate(columns)
        }
        frame = pd.DataFrame(by_position, index=index, copy=False)
        frame.columns = self.labels.view()  # a view, so that a model that renames them does not rename ours
        return frame


def dictionary_values(column: Any) -> list[Any]:
    """Return the categories of all chunks of an Arrow column."""
    return [value for chunk in column.chunks for value in chunk.dictionary.to_pylist()]
