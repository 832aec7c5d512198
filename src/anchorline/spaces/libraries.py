"""Tables of Polars and Arrow as natives, and the natives of any table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from narwhals.dependencies import is_pandas_dataframe, is_polars_dataframe, is_pyarrow_table

from anchorline.errors import ParameterError
from anchorline.spaces.arrays import ArrayNatives, FrameOfOneType
from anchorline.spaces.natives import (
    ColumnNatives,
    Natives,
    PandasNatives,
    dictionary_values,
)
from anchorline.spaces.values import array_of_series, arrow_from_value, cast_date


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
class PolarsNatives(ColumnNatives):
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
class ArrowNatives(ColumnNatives):
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
        return dictionary_values(self.columns[j])

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
