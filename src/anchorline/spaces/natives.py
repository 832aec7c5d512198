"""Rows in the table's own types: pandas, Polars, Arrow or NumPy, never converted, only picked.

A neighbor is the instance with some cells taken from training rows. So data types, category sets, whole
numbers and the way of being missing are kept without a word about any of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from narwhals.dependencies import is_pandas_dataframe, is_polars_dataframe, is_pyarrow_table

from anchorline.errors import ParameterError
from anchorline.spaces.values import arrow_one, as_date, bare, numpy_one, pandas_one


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Cells of n neighbors that are drawn from the table, column after column, ``counts`` of each.

    ``at`` numbers the cells down the columns: that of neighbor i in the j-th of the columns is ``i + j n``.
    ``rows`` are the table's rows that they are drawn from.
    """

    columns: np.ndarray
    counts: np.ndarray
    at: np.ndarray
    rows: np.ndarray

    def each(self, of_columns: np.ndarray) -> np.ndarray:
        """Of every cell what is given of its column."""
        return of_columns.repeat(self.counts)

    def places(self, n: int) -> np.ndarray:
        """Where the cells lie in a table of n rows, column by column: ``i + column n``."""
        columns = self.columns.tolist()
        first = min(columns, default=0)
        if columns == list(range(first, first + len(columns))):  # side by side, as they mostly are
            return np.asarray(self.at + first * n)
        return np.asarray(self.at + self.each((self.columns - np.arange(len(columns))) * n))

    def of(self, columns: np.ndarray, n: int) -> "Cells":
        """The same of these columns, but for those that are -1."""
        gone = columns < 0
        if not gone.any():
            return Cells(columns, self.counts, self.at, self.rows)
        kept = ~self.each(gone)
        at = self.at - self.each(np.cumsum(gone) * n)
        return Cells(columns[~gone], self.counts[~gone], at[kept], self.rows[kept])


class Natives(Protocol):
    """A table in its own library; pickles, so that batches can be shared out."""

    def pick(self, j: int, rows: np.ndarray) -> Any:
        """Rows of column j, copied: a native column."""

    def row(self, i: int) -> tuple[Any, ...]:
        """Row i, copied: native columns of one value."""

    def one(self, j: int, value: Any) -> Any:
        """A native column of one value with the type of column j, or any error.

        None is missing; dates come as NumPy has them, in UTC.
        """

    def readable(self, column: Any) -> Any:
        """A native column as a Series of its library, or an array."""

    def categories(self, j: int) -> list[Any]:
        """The categories that the type of column j lists, those of no row included."""

    def rows(self, rows: np.ndarray) -> Any:
        """A table of some rows."""

    def arranged(self, orders: Iterable[tuple[int, np.ndarray]]) -> "Natives":
        """The same with every column in an order of its own; one at a time: together they are a second table."""

    def neighbors(self, row: Sequence[Any], n: int, drawn: Iterable[Cells]) -> Any:
        """A table of n times the instance ``row``, native columns of one value each, but for the cells drawn."""


def natives_of(table: Any) -> Natives | None:
    """The natives of a pandas, Polars or Arrow table or a 2-D array; None of anything else."""
    if isinstance(table, np.ndarray):
        return ArrayNatives(np.asfortranarray(table))
    if is_pandas_dataframe(table):
        dtypes = set(table.dtypes)
        if len(dtypes) == 1 and all(isinstance(dtype, np.dtype) for dtype in dtypes):
            return FrameOfOneType(np.asfortranarray(table.to_numpy()), table.columns)
        return PandasNatives(tuple(bare(table.iloc[:, j]) for j in range(table.shape[1])), table.columns)
    if is_polars_dataframe(table):
        return PolarsNatives(tuple(table.get_columns()))
    if not is_pyarrow_table(table):
        return None
    for name, column in zip(table.column_names, table.columns, strict=True):
        _check_arrow(name, column)
    return ArrowNatives(tuple(table.columns), table.schema)


def _check_arrow(name: str, column: Any) -> None:
    """Refuse types of which Arrow can pick no rows, and dictionaries that it cannot put together."""
    import pyarrow as pa  # noqa: PLC0415  heavy, and not a dependency

    try:
        both = pa.chunked_array([*column.chunks, *column.chunks], type=column.type)
        both.unify_dictionaries().take(np.zeros(0, dtype=np.intp))
        if isinstance(column.type, pa.BaseExtensionType):  # of bool8 Arrow makes no values of what it gives
            pa.array(column.drop_null()[:1].to_pylist(), type=column.type)
    except pa.ArrowException as error:
        kind = "bool_" if "bool" in str(column.type) else "string"
        raise ParameterError(
            f"Column {name!r} is of Arrow's type {column.type}, of which rows cannot be picked and put together "
            f"({error}). Cast it, e.g. `table[{name!r}].cast(pyarrow.{kind}())`."
        ) from error


@dataclass(frozen=True, eq=False)
class ArrayNatives:
    """A 2-D array, kept column by column: all cells are of one type, so neighbors are put together at once."""

    table: np.ndarray
    order: ClassVar[Literal["C", "F"]] = "C"

    def pick(self, j: int, rows: np.ndarray) -> np.ndarray:
        """A copy of some rows."""
        return np.asarray(self.table[rows, j])

    def row(self, i: int) -> tuple[np.ndarray, ...]:
        """Views of one copy."""
        return tuple(self.table[i].copy()[:, None])

    def one(self, j: int, value: Any) -> np.ndarray:
        """Texts as long as they are; all else of the array's type."""
        return numpy_one(value, self.table.dtype)

    def readable(self, column: np.ndarray) -> np.ndarray:
        """An array is read as it is."""
        return column

    def categories(self, j: int) -> list[Any]:
        """None: an array lists no categories."""
        return []

    def rows(self, rows: np.ndarray) -> Any:
        """A 2-D array."""
        return np.asarray(self.table[rows], order=self.order)

    def arranged(self, orders: Iterable[tuple[int, np.ndarray]]) -> "ArrayNatives":
        """Column by column."""
        found = self.table.copy(order="F")
        for j, order in orders:
            found[:, j] = self.table[order, j]
        return replace(self, table=found)

    def neighbors(self, row: Sequence[np.ndarray], n: int, drawn: Iterable[Cells]) -> Any:
        """The instance over and over, then the cells that differ."""
        own = np.concatenate(row)
        found = np.empty((n, len(own)), dtype=np.result_type(own, self.table), order=self.order)
        found[:] = own
        flat = found.reshape(-1, order=self.order)
        for cells in drawn:
            flat[self._places(cells, n, len(own))] = self._values(cells)
            del cells  # before the next ones are made, which then get memory that is in the processor's cache
        return found

    def _places(self, cells: Cells, n: int, d: int) -> np.ndarray:
        """Where the cells lie, row by row: ``i d + column``, from ``i + j n``."""
        places = cells.each(cells.columns - np.arange(len(cells.columns)) * (n * d))
        places += cells.at * d
        return places

    def _values(self, cells: Cells) -> np.ndarray:
        """What the table has for the cells."""
        sources = cells.each(cells.columns * len(self.table))
        sources += cells.rows
        return self.table.reshape(-1, order="F").take(sources)


@dataclass(frozen=True, eq=False)
class FrameOfOneType(ArrayNatives):
    """A pandas frame whose columns share one NumPy type: an array with labels, laid out as pandas does."""

    labels: Any
    order = "F"

    def one(self, j: int, value: Any) -> Any:
        """As pandas converts it."""
        return pandas_one(value, self.table.dtype)

    def rows(self, rows: np.ndarray) -> Any:
        """A frame with an index from 0."""
        return self._frame(super().rows(rows))

    def neighbors(self, row: Sequence[np.ndarray], n: int, drawn: Iterable[Cells]) -> Any:
        """A frame with the training table's labels and an index from 0."""
        return self._frame(super().neighbors(row, n, drawn))

    def _places(self, cells: Cells, n: int, d: int) -> np.ndarray:
        """Column by column."""
        return cells.places(n)

    def _frame(self, values: np.ndarray) -> Any:
        """With the type said: pandas takes objects that are all texts for its own texts."""
        import pandas as pd  # noqa: PLC0415  heavy, and not a dependency

        return pd.DataFrame(values, columns=self.labels.view(), dtype=self.table.dtype, copy=False)


class _Columns(ABC):
    """A table column by column, each of a type of its own."""

    columns: tuple[Any, ...]

    def pick(self, j: int, rows: np.ndarray) -> Any:
        """A copy of some rows."""
        return self._taken(self.columns[j], rows)

    def row(self, i: int) -> tuple[Any, ...]:
        """Column by column."""
        return tuple(self.pick(j, np.array([i])) for j in range(len(self.columns)))

    def rows(self, rows: np.ndarray) -> Any:
        """A table of some rows."""
        return self._assembled([self.pick(j, rows) for j in range(len(self.columns))])

    def arranged(self, orders: Iterable[tuple[int, np.ndarray]]) -> Any:
        """Column by column."""
        columns = list(self.columns)
        for j, order in orders:
            columns[j] = self.pick(j, order)
        return replace(self, columns=tuple(columns))  # type: ignore[type-var]  # every kind is a dataclass

    def neighbors(self, row: Sequence[Any], n: int, drawn: Iterable[Cells]) -> Any:
        """Of every column the instance's value and those drawn, each put where it belongs."""
        sources = np.full((len(self.columns), n), -1, dtype=np.intp)
        for cells in drawn:
            sources.reshape(-1)[cells.places(n)] = cells.rows
        return self._assembled([self._mixed(j, own, sources[j]) for j, own in enumerate(row)])

    def _mixed(self, j: int, own: Any, sources: np.ndarray) -> Any:
        """Column j of neighbors: the instance's own value where sources are -1."""
        drawn = sources >= 0
        both = self._joined(j, own, self.pick(j, sources[drawn]))
        return self._taken(both, np.where(drawn, np.cumsum(drawn), 0))

    @abstractmethod
    def _taken(self, column: Any, rows: np.ndarray) -> Any:
        """Rows of a native column, copied."""

    @abstractmethod
    def _joined(self, j: int, first: Any, second: Any) -> Any:
        """Two native columns of the type of column j, one after the other."""

    @abstractmethod
    def _assembled(self, columns: Sequence[Any]) -> Any:
        """A table of native columns."""


@dataclass(frozen=True, eq=False)
class PandasNatives(_Columns):
    """A pandas frame: NumPy arrays, or pandas' own where the type is; and the labels of the columns."""

    columns: tuple[Any, ...]
    labels: Any

    def one(self, j: int, value: Any) -> Any:
        """As pandas converts it, which refuses what the type cannot hold."""
        return pandas_one(value, self.columns[j].dtype)

    def readable(self, column: Any) -> Any:
        """An array, or a Series of an array of pandas' own."""
        import pandas as pd  # noqa: PLC0415  heavy, and not a dependency

        return column if isinstance(column, np.ndarray) else pd.Series(column, copy=False)

    def categories(self, j: int) -> list[Any]:
        """As the column's type lists them; of Arrow's dictionaries, all."""
        column = self.columns[j]
        return list(column.categories) if hasattr(column, "categories") else _dictionary(column.__arrow_array__())

    def _taken(self, column: Any, rows: np.ndarray) -> Any:
        return column.take(rows)

    def _joined(self, j: int, first: Any, second: Any) -> Any:
        if isinstance(first, np.ndarray):
            return np.concatenate([first, second])
        return type(first)._concat_same_type([first, second])

    def _assembled(self, columns: Sequence[Any]) -> Any:
        """A frame with an index from 0; objects with their type said, else texts become pandas' own."""
        import pandas as pd  # noqa: PLC0415  heavy, and not a dependency

        told = {
            j: pd.Series(column, dtype=object, copy=False) if column.dtype == object else column
            for j, column in enumerate(columns)
        }
        frame = pd.DataFrame(told, index=pd.RangeIndex(len(columns[0])), copy=False)
        frame.columns = self.labels.view()  # a name that a model gives them is not ours
        return frame


@dataclass(frozen=True, eq=False)
class PolarsNatives(_Columns):
    """Polars Series."""

    columns: tuple[Any, ...]

    def one(self, j: int, value: Any) -> Any:
        """As Polars converts it; a column of the type Null would lose the value in silence."""
        import polars as pl  # noqa: PLC0415  heavy, and not a dependency

        name, dtype = self.columns[j].name, self.columns[j].dtype
        if value is not None and dtype == pl.Null:
            raise TypeError("the column's type is Null: it holds no values at all")
        if isinstance(value, np.datetime64):
            ticks = as_date(value, f"M8[{getattr(dtype, 'time_unit', 'D')}]").astype(np.int64)
            return pl.Series(name, [int(ticks)]).cast(dtype)
        return pl.Series(name, [value], dtype=dtype)

    def readable(self, column: Any) -> Any:
        """A Series is read as it is."""
        return column

    def categories(self, j: int) -> list[Any]:
        """Of an Enum, all; else those of the column."""
        import polars as pl  # noqa: PLC0415  heavy, and not a dependency

        column = self.columns[j]
        if isinstance(column.dtype, pl.Enum):
            return column.dtype.categories.to_list()
        return list(column.drop_nulls().unique(maintain_order=True))

    def _taken(self, column: Any, rows: np.ndarray) -> Any:
        return column.gather(rows)

    def _joined(self, j: int, first: Any, second: Any) -> Any:
        import polars as pl  # noqa: PLC0415  heavy, and not a dependency

        return pl.concat([first, second], rechunk=True)  # texts are picked from one piece twice as fast

    def _assembled(self, columns: Sequence[Any]) -> Any:
        import polars as pl  # noqa: PLC0415  heavy, and not a dependency

        return pl.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class ArrowNatives(_Columns):
    """Chunked arrays of an Arrow table, and its schema."""

    columns: tuple[Any, ...]
    schema: Any

    def one(self, j: int, value: Any) -> Any:
        """As Arrow converts it."""
        return arrow_one(value, self.columns[j].type)

    def readable(self, column: Any) -> Any:
        """A chunked array is read as it is."""
        return column

    def categories(self, j: int) -> list[Any]:
        """Those of all chunks."""
        return _dictionary(self.columns[j])

    def _taken(self, column: Any, rows: np.ndarray) -> Any:
        return column.take(rows)

    def _joined(self, j: int, first: Any, second: Any) -> Any:
        """With categories numbered alike."""
        import pyarrow as pa  # noqa: PLC0415  heavy, and not a dependency

        both = pa.chunked_array([*first.chunks, *second.chunks], type=self.columns[j].type)
        return both.unify_dictionaries()

    def _assembled(self, columns: Sequence[Any]) -> Any:
        import pyarrow as pa  # noqa: PLC0415  heavy, and not a dependency

        return pa.table(list(columns), schema=self.schema)


def _dictionary(column: Any) -> list[Any]:
    """The categories of all chunks of an Arrow column."""
    return [value for chunk in column.chunks for value in chunk.dictionary.to_pylist()]
