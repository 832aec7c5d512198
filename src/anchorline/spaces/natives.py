"""Rows in the table's own types: cells of pandas, Polars, Arrow or NumPy are copied, never converted.

A neighbor is the instance with some cells copied from training rows. So data types, category sets, whole numbers
and the representation of missing values are preserved without special cases.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from narwhals.dependencies import is_pandas_dataframe, is_polars_dataframe, is_pyarrow_table

from anchorline.errors import ParameterError
from anchorline.spaces.values import (
    array_of_series,
    arrow_from_value,
    cast_date,
    numpy_from_value,
    pandas_from_value,
)


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

    def per_cell(self, per_column: np.ndarray) -> np.ndarray:
        """Repeat a number per column once per cell of the column."""
        return per_column.repeat(self.counts)

    def flat_positions(self, n: int) -> np.ndarray:
        """Return the column-major positions of the cells in a table of n rows: ``i + column n``."""
        columns = self.columns.tolist()
        first = min(columns, default=0)
        if columns == list(range(first, first + len(columns))):  # adjacent, which is the usual case
            return np.asarray(self.at + first * n)
        return np.asarray(self.at + self.per_cell((self.columns - np.arange(len(columns))) * n))

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

    def reordered(self, orders: Iterable[tuple[int, np.ndarray]]) -> "Natives":
        """Return this table with every column in an order of its own.

        Orders are an iterable, because all of them together take as much memory as the table.
        """

    def neighbors(self, row: Sequence[Any], n: int, drawn: Iterable[Cells]) -> Any:
        """Return a table of n copies of ``row`` (native columns of one value each) with the drawn cells."""


def natives_from_table(table: Any) -> Natives | None:
    """Return the natives of a pandas, Polars or Arrow table or a 2-D array; None for any other object."""
    if isinstance(table, np.ndarray):
        return ArrayNatives(np.asfortranarray(table))
    if is_pandas_dataframe(table):
        dtypes = set(table.dtypes)
        if len(dtypes) == 1 and all(isinstance(dtype, np.dtype) for dtype in dtypes):
            return FrameOfOneType(np.asfortranarray(table.to_numpy()), table.columns)
        columns = tuple(array_of_series(table.iloc[:, j]) for j in range(table.shape[1]))
        return PandasNatives(columns, table.columns)
    if is_polars_dataframe(table):
        return PolarsNatives(tuple(table.get_columns()))
    if not is_pyarrow_table(table):
        return None
    for name, column in zip(table.column_names, table.columns, strict=True):
        _check_arrow(name, column)
    return ArrowNatives(tuple(table.columns), table.schema)


def _check_arrow(name: str, column: Any) -> None:
    """Raise `ParameterError` for a type whose rows Arrow cannot take, or whose dictionaries it cannot unify."""
    import pyarrow as pa  # noqa: PLC0415  heavy, and not a dependency

    try:
        both = pa.chunked_array([*column.chunks, *column.chunks], type=column.type)
        both.unify_dictionaries().take(np.zeros(0, dtype=np.intp))
        if isinstance(column.type, pa.BaseExtensionType):  # Arrow cannot build bool8 arrays from its own values
            pa.array(column.drop_null()[:1].to_pylist(), type=column.type)
    except pa.ArrowException as error:
        kind = "bool_" if "bool" in str(column.type) else "string"
        raise ParameterError(
            f"Column {name!r} has Arrow's type {column.type}, whose rows cannot be taken and combined ({error}). "
            f"Cast it, e.g. `table[{name!r}].cast(pyarrow.{kind}())`."
        ) from error


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
        neighbors[:] = own
        flat = neighbors.reshape(-1, order=self.order)
        for cells in drawn:
            flat[self._positions(cells, n, len(own))] = self._values(cells)
            del cells  # freed before the next cells are made, which then reuse memory in the processor's cache
        return neighbors

    def _positions(self, cells: Cells, n: int, d: int) -> np.ndarray:
        """Return the row-major positions of the cells, ``i d + column``, from ``i + j n``."""
        positions = cells.per_cell(cells.columns - np.arange(len(cells.columns)) * (n * d))
        positions += cells.at * d
        return positions

    def _values(self, cells: Cells) -> np.ndarray:
        """Return the table's values for the cells."""
        sources = cells.per_cell(cells.columns * len(self.table))
        sources += cells.rows
        return self.table.reshape(-1, order="F").take(sources)


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

    def _positions(self, cells: Cells, n: int, d: int) -> np.ndarray:
        """Return the column-major positions of the cells."""
        return cells.flat_positions(n)

    def _frame(self, values: np.ndarray) -> Any:
        """Return a frame with an explicit type, because pandas converts objects that are all texts."""
        import pandas as pd  # noqa: PLC0415  heavy, and not a dependency

        return pd.DataFrame(values, columns=self.labels.view(), dtype=self.table.dtype, copy=False)


class _Columns(ABC):
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
            sources.reshape(-1)[cells.flat_positions(n)] = cells.rows
        return self._assemble([self._mix(j, own, sources[j]) for j, own in enumerate(row)])

    def _mix(self, j: int, own: Any, sources: np.ndarray) -> Any:
        """Return column j of the neighbors, with the instance's own value where sources are -1."""
        drawn = sources >= 0
        both = self._concat(j, own, self.pick(j, sources[drawn]))
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
class PandasNatives(_Columns):
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
        return _dictionary_values(column.__arrow_array__())

    def _take(self, column: Any, rows: np.ndarray) -> Any:
        return column.take(rows)

    def _concat(self, j: int, first: Any, second: Any) -> Any:
        if isinstance(first, np.ndarray):
            return np.concatenate([first, second])
        return type(first)._concat_same_type([first, second])

    def _assemble(self, columns: Sequence[Any]) -> Any:
        """Return a frame with an index from 0; objects get an explicit type, or pandas would convert texts."""
        import pandas as pd  # noqa: PLC0415  heavy, and not a dependency

        by_position = {
            j: pd.Series(column, dtype=object, copy=False) if column.dtype == object else column
            for j, column in enumerate(columns)
        }
        frame = pd.DataFrame(by_position, index=pd.RangeIndex(len(columns[0])), copy=False)
        frame.columns = self.labels.view()  # a view, so that a model that renames them does not rename ours
        return frame


@dataclass(frozen=True, eq=False)
class PolarsNatives(_Columns):
    """The columns of a Polars frame as Series."""

    columns: tuple[Any, ...]

    def from_value(self, j: int, value: Any) -> Any:
        """Return a Series converted by Polars; raise an error for type Null, which would lose the value."""
        import polars as pl  # noqa: PLC0415  heavy, and not a dependency

        name, dtype = self.columns[j].name, self.columns[j].dtype
        if value is not None and dtype == pl.Null:
            raise TypeError("the column's type is Null, which holds no values")
        if isinstance(value, np.datetime64):
            ticks = cast_date(value, f"M8[{getattr(dtype, 'time_unit', 'D')}]").astype(np.int64)
            return pl.Series(name, [int(ticks)]).cast(dtype)
        return pl.Series(name, [value], dtype=dtype)

    def readable(self, column: Any) -> Any:
        """Return the Series, which can be read directly."""
        return column

    def categories(self, j: int) -> list[Any]:
        """Return all categories of an Enum, or else those that the column has."""
        import polars as pl  # noqa: PLC0415  heavy, and not a dependency

        column = self.columns[j]
        if isinstance(column.dtype, pl.Enum):
            return column.dtype.categories.to_list()
        return list(column.drop_nulls().unique(maintain_order=True))

    def _take(self, column: Any, rows: np.ndarray) -> Any:
        return column.gather(rows)

    def _concat(self, j: int, first: Any, second: Any) -> Any:
        import polars as pl  # noqa: PLC0415  heavy, and not a dependency

        return pl.concat([first, second], rechunk=True)  # taking texts from one chunk is twice as fast

    def _assemble(self, columns: Sequence[Any]) -> Any:
        import polars as pl  # noqa: PLC0415  heavy, and not a dependency

        return pl.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class ArrowNatives(_Columns):
    """The columns of an Arrow table as chunked arrays, and its schema."""

    columns: tuple[Any, ...]
    schema: Any

    def from_value(self, j: int, value: Any) -> Any:
        """Return a chunked array of one value, converted by Arrow."""
        return arrow_from_value(value, self.columns[j].type)

    def readable(self, column: Any) -> Any:
        """Return the chunked array, which can be read directly."""
        return column

    def categories(self, j: int) -> list[Any]:
        """Return the categories of all chunks."""
        return _dictionary_values(self.columns[j])

    def _take(self, column: Any, rows: np.ndarray) -> Any:
        return column.take(rows)

    def _concat(self, j: int, first: Any, second: Any) -> Any:
        """Return the concatenation, in which all chunks share one dictionary."""
        import pyarrow as pa  # noqa: PLC0415  heavy, and not a dependency

        both = pa.chunked_array([*first.chunks, *second.chunks], type=self.columns[j].type)
        return both.unify_dictionaries()

    def _assemble(self, columns: Sequence[Any]) -> Any:
        import pyarrow as pa  # noqa: PLC0415  heavy, and not a dependency

        return pa.table(list(columns), schema=self.schema)


def _dictionary_values(column: Any) -> list[Any]:
    """Return the categories of all chunks of an Arrow column."""
    return [value for chunk in column.chunks for value in chunk.dictionary.to_pylist()]
