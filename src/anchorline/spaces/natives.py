"""Rows in the table's own types: cells of pandas, Polars, Arrow or NumPy are copied, never converted.

A neighbor is the instance with some cells copied from training rows. So data types, category sets, whole numbers
and the representation of missing values are preserved without special cases.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from narwhals.dependencies import (
    get_pandas,
    get_polars,
    get_pyarrow,
    is_pandas_dataframe,
    is_polars_dataframe,
    is_pyarrow_table,
)

from anchorline.errors import ParameterError

_COPIED = 8  # times as many rows as are drawn take as long to copy as the drawn ones take to select


def natives_of(table: Any) -> "Natives | None":
    """Return a pandas, Polars or Arrow table or a 2-D array as natives; None for any other object."""
    if isinstance(table, np.ndarray):
        return ArrayNatives(tuple(table.T))
    if is_pandas_dataframe(table):
        dtypes = set(table.dtypes)
        if len(dtypes) == 1 and isinstance(dtypes.pop(), np.dtype):  # thousands of columns at once
            return ArrayNatives(tuple(table.to_numpy().T), table.columns.view())
        arrays = (
            column.to_numpy() if isinstance(column.dtype, np.dtype) else column.array
            for _, column in table.items()
        )
        return ArrayNatives(tuple(arrays), table.columns.view())
    if is_polars_dataframe(table):
        return PolarsNatives(tuple(table.get_columns()))
    if is_pyarrow_table(table):
        for name, column in zip(table.column_names, table.columns, strict=True):
            _check_arrow(name, column)
        return ArrowNatives(tuple(table.columns), table.schema)
    return None


class Natives(ABC):
    """A table in its own library; it can be pickled, so that other processes can explain rows."""

    columns: tuple[Any, ...]

    def pick(self, j: int, rows: np.ndarray) -> Any:
        """Return a copy of some rows of column j as a native column."""
        return self._take(self.columns[j], rows)

    def row(self, i: int) -> tuple[Any, ...]:
        """Return a copy of row i as native columns of one value each."""
        return tuple(self.pick(j, np.array([i])) for j in range(len(self.columns)))

    def rows(self, rows: np.ndarray) -> Any:
        """Return a table of some rows."""
        return self._assemble([self.pick(j, rows) for j in range(len(self.columns))])

    def joined(self, j: int, cells: Sequence[Any], at: np.ndarray) -> Any:
        """Return a native column of the type of column j; its row i is the only value of ``cells[at[i]]``."""
        both = cells[0]
        for cell in cells[1:]:
            both = self._concat(j, both, cell)
        return self._take(both, at)

    def of_columns(self, columns: Iterable[Any]) -> "Natives":
        """Return a table of other rows, given as native columns of the same types."""
        return dataclasses.replace(self, columns=tuple(columns))  # type: ignore[type-var]  # each is a dataclass

    def reordered(self, orders: Iterable[tuple[int, np.ndarray]]) -> "Natives":
        """Return a copy with every column in an order of its own; orders come one by one, to save memory."""
        columns = list(self.columns)
        for j, order in orders:
            columns[j] = self.pick(j, order)
        return self.of_columns(columns)

    def neighbors(self, row: Sequence[Any], sources: np.ndarray) -> Any:
        """Return a table of n copies of ``row`` (native columns of one value each) with some other cells.

        ``sources`` (columns, n) are the rows of this table that the cells come from, -1 for the own one.
        """
        return self._assemble([self._mixed(j, own, sources[j]) for j, own in enumerate(row)])

    def _mixed(self, j: int, own: Any, sources: np.ndarray) -> Any:
        column = self.columns[j]
        if len(column) <= _COPIED * len(sources):
            return self._take(self._concat(j, own, column), sources + 1)
        drawn = sources >= 0
        both = self._concat(j, own, self.pick(j, sources[drawn])) if drawn.any() else own
        return self._take(both, np.where(drawn, np.cumsum(drawn), 0))

    @abstractmethod
    def from_value(self, j: int, value: Any) -> Any:
        """Return a native column of one value with the type of column j, or raise any error.

        None is a missing value; dates are NumPy dates in UTC.
        """

    def readable(self, column: Any) -> Any:
        """Return a native column as a Series of its library, or as an array."""
        return column

    def type_name(self, j: int) -> str:
        """Return what the library calls the type of column j."""
        return str(self.columns[j].dtype)

    def categories(self, j: int) -> list[Any]:
        """Return the categories that the type of column j lists, including those that no row has."""
        return [value for chunk in self.columns[j].chunks for value in chunk.dictionary.to_pylist()]

    def _take(self, column: Any, rows: np.ndarray) -> Any:
        return column.take(rows)

    @abstractmethod
    def _concat(self, j: int, first: Any, second: Any) -> Any:
        """Return the concatenation of two native columns that have the type of column j."""

    @abstractmethod
    def _assemble(self, columns: Sequence[Any]) -> Any:
        """Return a table of these native columns."""


@dataclass(frozen=True, eq=False)
class ArrayNatives(Natives):
    """NumPy or pandas arrays: the columns of a pandas frame with these ``labels``, or of a 2-D array."""

    columns: tuple[Any, ...]
    labels: Any = None

    def from_value(self, j: int, value: Any) -> Any:
        """Return an array of one value, converted by NumPy or pandas; texts of NumPy may be longer."""
        dtype = self.columns[j].dtype
        if isinstance(dtype, np.dtype):
            return _numpy_value(value, dtype)
        pd = get_pandas()
        if isinstance(dtype, pd.ArrowDtype):
            return pd.arrays.ArrowExtensionArray(_arrow_value(value, dtype.pyarrow_dtype))
        if isinstance(value, np.datetime64) and isinstance(dtype, pd.PeriodDtype):
            value = pd.Period(pd.Timestamp(value), freq=dtype.freq)
        elif isinstance(value, np.datetime64):
            value = pd.Timestamp(_cast_date(value, f"M8[{dtype.unit}]"), tz="UTC")
        return pd.Series([value], dtype=dtype).array

    def readable(self, column: Any) -> Any:
        """Return a NumPy array unchanged, and a pandas array as a Series."""
        return column if isinstance(column, np.ndarray) else get_pandas().Series(column, copy=False)

    def categories(self, j: int) -> list[Any]:
        """Return the categories that the column's type lists, or those of an Arrow dictionary."""
        column = self.columns[j]
        if isinstance(column.dtype, get_pandas().CategoricalDtype):
            return list(column.categories)
        return ArrowNatives((column.__arrow_array__(),), None).categories(0)

    def _mixed(self, j: int, own: Any, sources: np.ndarray) -> Any:
        column = self.columns[j]
        if not isinstance(column, np.ndarray):
            return super()._mixed(j, own, sources)
        return np.where(sources < 0, own, column.take(sources, mode="clip"))  # -1 lies before the first row

    def _concat(self, j: int, first: Any, second: Any) -> Any:
        if isinstance(first, np.ndarray):
            return np.concatenate([first, second])
        return type(first)._concat_same_type([first, second])

    def _assemble(self, columns: Sequence[Any]) -> Any:
        """Return an array, or a frame with an index from 0, in the layout in memory that models expect of each.

        Objects of a frame get an explicit type, or pandas would convert texts.
        """
        n_rows, dtypes = len(columns[0]), {column.dtype for column in columns}
        if self.labels is None or (len(dtypes) == 1 and isinstance(columns[0], np.ndarray)):
            order: Any = "C" if self.labels is None else "F"
            cells = np.empty(
                (n_rows, len(columns)), np.result_type(*dtypes), order
            )  # the longest texts may be new
            for j, column in enumerate(columns):
                cells[:, j] = column
            if self.labels is None:
                return cells
            return get_pandas().DataFrame(cells, columns=self.labels.view(), dtype=cells.dtype, copy=False)
        pd = get_pandas()
        index = pd.RangeIndex(n_rows)  # one object, or pandas would align every series with it
        by_position = {
            j: pd.Series(column, dtype=object, index=index, copy=False) if column.dtype == object else column
            for j, column in enumerate(columns)
        }
        frame = pd.DataFrame(by_position, index=index, copy=False)
        frame.columns = self.labels.view()  # a view, so that a model that renames them does not rename ours
        return frame


@dataclass(frozen=True, eq=False)
class PolarsNatives(Natives):
    """The columns of a Polars frame as Series."""

    columns: tuple[Any, ...]

    def from_value(self, j: int, value: Any) -> Any:
        """Return a Series converted by Polars; raise an error for type Null, which would lose the value."""
        pl = get_polars()
        name, dtype = self.columns[j].name, self.columns[j].dtype
        if value is not None and dtype == pl.Null:
            raise TypeError("the column's type is Null, which holds no values")
        if isinstance(value, np.datetime64):
            moment = _cast_date(value, f"M8[{dtype.time_unit if dtype == pl.Datetime else 'D'}]")
            return pl.Series(name, [int(moment.astype(np.int64))]).cast(dtype)
        return pl.Series(name, [value], dtype=dtype)

    def categories(self, j: int) -> list[Any]:
        """Return all categories of an Enum, or else those that the column has."""
        pl = get_polars()
        column = self.columns[j]
        is_enum = column.dtype == pl.Enum
        return list(column.dtype.categories if is_enum else column.drop_nulls().unique(maintain_order=True))

    def _take(self, column: Any, rows: np.ndarray) -> Any:
        return column.gather(rows)

    def _concat(self, j: int, first: Any, second: Any) -> Any:
        pl = get_polars()
        return pl.concat([first, second], rechunk=True)  # taking texts from one chunk is twice as fast

    def _assemble(self, columns: Sequence[Any]) -> Any:
        pl = get_polars()
        return pl.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class ArrowNatives(Natives):
    """The columns of an Arrow table as chunked arrays, and its schema."""

    columns: tuple[Any, ...]
    schema: Any

    def from_value(self, j: int, value: Any) -> Any:
        """Return a chunked array of one value, converted by Arrow."""
        return _arrow_value(value, self.columns[j].type)

    def type_name(self, j: int) -> str:
        """Return what Arrow calls the type of column j."""
        return str(self.columns[j].type)

    def _concat(self, j: int, first: Any, second: Any) -> Any:
        """Return the concatenation, in which all chunks share one dictionary."""
        pa = get_pyarrow()
        both = pa.chunked_array([*first.chunks, *second.chunks], type=self.columns[j].type)
        return both.unify_dictionaries()

    def _assemble(self, columns: Sequence[Any]) -> Any:
        pa = get_pyarrow()
        return pa.table(list(columns), schema=self.schema)


def _check_arrow(name: str, column: Any) -> None:
    """Raise `ParameterError` for a type whose rows Arrow cannot take, or whose dictionaries it cannot unify."""
    pa = get_pyarrow()
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


def _arrow_value(value: Any, kind: Any) -> Any:
    """Return a chunked array of one value; categories are encoded as in the column."""
    pa = get_pyarrow()
    if isinstance(value, np.datetime64):
        moment = _cast_date(value, f"M8[{kind.unit if pa.types.is_timestamp(kind) else 'D'}]")
        return pa.chunked_array([pa.array(np.array([moment])).cast(kind)])
    if pa.types.is_dictionary(kind):
        return pa.chunked_array([pa.array([value], type=kind.value_type).dictionary_encode().cast(kind)])
    return pa.chunked_array([pa.array([value], type=kind)])


def _numpy_value(value: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Return an array of one value; raise an error where NumPy would change the value silently."""
    if value is None and dtype.kind in "iub":
        raise TypeError(f"{dtype} has no missing values")
    if dtype.kind == "M" and value is not None:
        value = _cast_date(value, dtype)
    if dtype.kind == "O":  # a list is one value
        held = np.empty(1, dtype=object)
        held[0] = value
        return held
    with np.errstate(over="ignore"):
        return np.array([value], dtype=None if dtype.kind in "US" else dtype)


def _cast_date(moment: np.datetime64, dtype: Any) -> np.datetime64:
    """Return the same moment in a column's unit; raise an error where NumPy would truncate or wrap silently."""
    try:
        converted: np.datetime64 = moment.astype(dtype)
        is_same = converted.astype(moment.dtype) == moment
    except OverflowError:  # of NumPy 2.5 and newer
        is_same = False
    if not is_same:
        raise OverflowError(f"{np.dtype(dtype)} cannot hold it")
    return converted
