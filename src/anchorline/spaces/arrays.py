"""Tables whose cells all have one type: arrays, and pandas frames of one NumPy type."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from anchorline.spaces.natives import Cells
from anchorline.spaces.values import numpy_from_value, pandas_from_value

_LINE = 64  # bytes that a processor fetches from memory at once


@dataclass(frozen=True, eq=False)
class ArrayNatives:
    """A 2-D array in column-major order; all cells have one type, so neighbors are assembled in one step."""

    table: np.ndarray
    order: ClassVar[Literal["C", "F"]] = "C"

    def pick(self, j: int, rows: np.ndarray) -> np.ndarray:
        """Return a copy of some rows of column j."""
        return np.asarray(self.table[rows, j])

    def row(self, i: int) -> tuple[np.ndarray, ...]:
        """Return views of one copy of the row."""
        return tuple(self.table[i].copy()[:, None])

    def from_value(self, j: int, value: Any) -> np.ndarray:
        """Return an array of the array's type, except that texts may be longer."""
        return numpy_from_value(value, self.table.dtype)

    def readable(self, column: np.ndarray) -> np.ndarray:
        """Return the array itself, because arrays can be read directly."""
        return column

    def categories(self, j: int) -> list[Any]:
        """Return an empty list, because arrays have no categories."""
        return []

    def rows(self, rows: np.ndarray) -> Any:
        """Return a 2-D array of some rows."""
        return np.asarray(self.table[rows], order=self.order)

    def joined(self, j: int, cells: Sequence[np.ndarray], at: np.ndarray) -> np.ndarray:
        """Return an array whose entry i is the only value of ``cells[at[i]]``."""
        return np.asarray(np.concatenate(cells)[at])

    def of_columns(self, columns: Sequence[np.ndarray]) -> "ArrayNatives":
        """Return a table of other rows, whose texts may be longer."""
        table = np.empty((len(columns[0]), len(columns)), np.result_type(self.table, *columns), order="F")
        for j, column in enumerate(columns):
            table[:, j] = column
        return replace(self, table=table)

    def reordered(self, orders: Iterable[tuple[int, np.ndarray]]) -> "ArrayNatives":
        """Return this table with every column in an order of its own."""
        table = self.table.copy(order="F")
        for j, order in orders:
            table[:, j] = self.table[order, j]
        return replace(self, table=table)

    def neighbors(self, row: Sequence[np.ndarray], n: int, drawn: Iterable[Cells]) -> Any:
        """Return n copies of the instance, in which the drawn cells are overwritten."""
        own = np.concatenate(row)
        neighbors = np.empty((n, len(own)), dtype=np.result_type(own, self.table), order=self.order)
        flat, filled = neighbors.reshape(-1, order=self.order), 0
        for cells in drawn:
            last = len(own) if self.order == "C" else int(cells.columns.max(initial=-1)) + 1
            if filled < last:  # just before they are overwritten, while they are in the processor's cache
                neighbors[:, filled:last], filled = own[filled:last], last
            self._put(cells, flat, n)
            del cells  # freed before the next cells are made, which then reuse memory in the processor's cache
        neighbors[:, filled:] = own[filled:]
        return neighbors

    def _put(self, cells: Cells, flat: np.ndarray, n: int) -> None:
        """Overwrite the cells of n row-major rows, at the positions ``i d + column``."""
        d = self.table.shape[1]
        positions = cells.per_cell(cells.columns - np.arange(len(cells.columns)) * (n * d))
        positions += cells.at * d
        flat[positions] = self._values(cells)

    def _values(self, cells: Cells) -> np.ndarray:
        """Return the table's values for the cells."""
        table = self.table.reshape(-1, order="F")
        sources = cells.per_cell(cells.columns * len(self.table)) + cells.rows
        if len(sources) and not table.dtype.hasobject:
            first, last = int(cells.columns.min()), int(cells.columns.max()) + 1
            _fetch(table[first * len(self.table) : last * len(self.table)], len(sources))
        return np.asarray(table.take(sources))


def _fetch(values: np.ndarray, n_reads: int) -> None:
    """Read values in order before ``n_reads`` reads at random, unless that would read more of the memory.

    A processor fetches ahead what is read in order. Of 2,000 rows, this takes a third off the time of `take`.
    """
    if values.nbytes <= _LINE * n_reads:
        np.bitwise_or.reduce(values.view(np.uint8)[::_LINE])


@dataclass(frozen=True, eq=False)
class FrameOfOneType(ArrayNatives):
    """A pandas frame whose columns share one NumPy type: an array with labels, in the layout of pandas."""

    labels: Any
    order = "F"

    def from_value(self, j: int, value: Any) -> Any:
        """Return an array of one value, converted by pandas."""
        return pandas_from_value(value, self.table.dtype)

    def rows(self, rows: np.ndarray) -> Any:
        """Return a frame of some rows with an index from 0."""
        return self._frame(super().rows(rows))

    def neighbors(self, row: Sequence[np.ndarray], n: int, drawn: Iterable[Cells]) -> Any:
        """Return a frame with the training table's labels and an index from 0."""
        return self._frame(super().neighbors(row, n, drawn))

    def _put(self, cells: Cells, flat: np.ndarray, n: int) -> None:
        """Overwrite the cells of n column-major rows."""
        cells.put(self._values(cells), flat, n)

    def _frame(self, values: np.ndarray) -> Any:
        """Return a frame with an explicit type, because pandas converts objects that are all texts."""
        import pandas as pd  # noqa: PLC0415  heavy, and not a dependency

        return pd.DataFrame(values, columns=self.labels.view(), dtype=self.table.dtype, copy=False)
