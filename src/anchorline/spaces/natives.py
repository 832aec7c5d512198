"""Rows in the table's own types: pandas, Polars, Arrow or NumPy, never converted, only picked.

A neighbor is put together by picking each column's value from one of the table's rows, or from the
instance, which stands behind them. So data types, category sets, whole numbers and the way of being
missing are kept without a word about any of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


class Natives(Protocol):
    """The columns of a table in the table's own library; pickles, so that batches can be shared out."""

    @property
    def columns(self) -> Sequence[Any]:
        """Native columns."""

    def one(self, j: int, value: Any) -> Any:
        """A native column of one value (None: missing) with the type of column j, or any error."""

    def behind(self, j: int, column: Any) -> Any:
        """Column j followed by another of its type."""

    def categories(self, j: int) -> list[Any]:
        """The categories that the type of column j lists, those of no row included."""

    def pick(self, column: Any, rows: np.ndarray) -> Any:
        """Rows of a native column, copied."""

    def assemble(self, columns: Sequence[Any]) -> Any:
        """A table of native columns."""


def snapshot(table: Any) -> Any:
    """A copy where the user could change the table later; Polars and Arrow never change."""
    return table.copy() if isinstance(table, np.ndarray) or _library(table) == "pandas" else table


def natives_of(table: Any) -> Natives | None:
    """The native columns of a pandas, Polars or Arrow table or a 2-D array; None for anything else."""
    if isinstance(table, np.ndarray):
        return ArrayNatives(table)
    library = _library(table)
    if library == "pandas":
        columns = tuple(table.iloc[:, j].array for j in range(table.shape[1]))  # no index to carry along
        return PandasNatives(columns, tuple(table.dtypes), table.columns)
    if library == "polars":
        return PolarsNatives(tuple(table.get_columns()))
    return ArrowNatives(table) if library == "pyarrow" else None


def _library(table: Any) -> str:
    return type(table).__module__.partition(".")[0]


@dataclass(frozen=True, eq=False)
class ArrayNatives:
    """Columns of a 2-D array."""

    table: np.ndarray

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        """Views of the columns."""
        return tuple(self.table.T)

    def one(self, j: int, value: Any) -> np.ndarray:
        """Texts as long as they are; all else of the array's type."""
        dtype = self.table.dtype
        _check_nullable(value, dtype)
        return np.array([value], dtype=None if dtype.kind in "US" else dtype)

    def behind(self, j: int, column: np.ndarray) -> np.ndarray:
        """One after the other."""
        return np.concatenate([self.table[:, j], column])

    def categories(self, j: int) -> list[Any]:
        """None: an array lists no categories."""
        return []

    def pick(self, column: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """A copy of some rows."""
        return np.asarray(column[rows])

    def assemble(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """A 2-D array."""
        return np.column_stack(columns)


@dataclass(frozen=True, eq=False)
class PandasNatives:
    """Extension arrays, their types and the labels of the columns."""

    columns: tuple[Any, ...]
    dtypes: tuple[Any, ...]
    labels: Any

    def one(self, j: int, value: Any) -> Any:
        """As pandas converts it, which refuses what the type cannot hold."""
        _check_nullable(value, self.dtypes[j])
        return self._series(j, [value]).array

    def categories(self, j: int) -> list[Any]:
        """As the column's type lists them."""
        return list(self.columns[j].categories)

    def behind(self, j: int, column: Any) -> Any:
        """One after the other."""
        import pandas as pd  # noqa: PLC0415  heavy, and not a dependency

        both = [self._series(j, self.columns[j]), self._series(j, column)]
        return pd.concat(both, ignore_index=True).array

    def pick(self, column: Any, rows: np.ndarray) -> Any:
        """A copy of some rows."""
        return column.take(rows)

    def assemble(self, columns: Sequence[Any]) -> Any:
        """A frame with the training table's labels and an index from 0."""
        import pandas as pd  # noqa: PLC0415  heavy, and not a dependency

        series = {j: self._series(j, column) for j, column in enumerate(columns)}
        frame = pd.DataFrame(series, index=pd.RangeIndex(len(columns[0])), copy=False)
        frame.columns = self.labels
        return frame

    def _series(self, j: int, values: Any) -> Any:
        """With the type said: pandas takes objects that are all texts for its own texts, None for NaN."""
        import pandas as pd  # noqa: PLC0415  heavy, and not a dependency

        return pd.Series(values, dtype=self.dtypes[j], copy=False)


@dataclass(frozen=True, eq=False)
class PolarsNatives:
    """Polars Series."""

    columns: tuple[Any, ...]

    def one(self, j: int, value: Any) -> Any:
        """As Polars converts it; a column of the type Null would lose the value in silence."""
        import polars as pl  # noqa: PLC0415  heavy, and not a dependency

        if value is not None and self.columns[j].dtype == pl.Null:
            raise TypeError("the column's type is Null: it holds no values at all")
        return pl.Series(self.columns[j].name, [value], dtype=self.columns[j].dtype)

    def behind(self, j: int, column: Any) -> Any:
        """One after the other."""
        import polars as pl  # noqa: PLC0415  heavy, and not a dependency

        return pl.concat([self.columns[j], column])

    def categories(self, j: int) -> list[Any]:
        """Of an Enum, all; else those of the column."""
        import polars as pl  # noqa: PLC0415  heavy, and not a dependency

        column = self.columns[j]
        if isinstance(column.dtype, pl.Enum):
            return column.dtype.categories.to_list()
        return list(column.drop_nulls().unique(maintain_order=True))

    def pick(self, column: Any, rows: np.ndarray) -> Any:
        """A copy of some rows."""
        return column.gather(rows)

    def assemble(self, columns: Sequence[Any]) -> Any:
        """A Polars frame."""
        import polars as pl  # noqa: PLC0415  heavy, and not a dependency

        return pl.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class ArrowNatives:
    """Columns of an Arrow table."""

    table: Any

    @property
    def columns(self) -> tuple[Any, ...]:
        """Chunked arrays."""
        return tuple(self.table.columns)

    def one(self, j: int, value: Any) -> Any:
        """As Arrow converts it; categories are encoded as the column's are."""
        import pyarrow as pa  # noqa: PLC0415  heavy, and not a dependency

        kind = self.table.schema.types[j]
        if pa.types.is_dictionary(kind):
            return pa.array([value], type=kind.value_type).dictionary_encode().cast(kind)
        return pa.array([value], type=kind)

    def behind(self, j: int, column: Any) -> Any:
        """One after the other, categories numbered alike."""
        import pyarrow as pa  # noqa: PLC0415  heavy, and not a dependency

        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        both = pa.chunked_array([*self.table.column(j).chunks, *chunks], type=self.table.schema.types[j])
        return both.unify_dictionaries().combine_chunks()

    def categories(self, j: int) -> list[Any]:
        """Those of all chunks."""
        return [value for chunk in self.table.column(j).chunks for value in chunk.dictionary.to_pylist()]

    def pick(self, column: Any, rows: np.ndarray) -> Any:
        """A copy of some rows."""
        return column.take(rows)

    def assemble(self, columns: Sequence[Any]) -> Any:
        """An Arrow table of the training table's schema."""
        import pyarrow as pa  # noqa: PLC0415  heavy, and not a dependency

        return pa.table(list(columns), schema=self.table.schema)


def _check_nullable(value: Any, dtype: Any) -> None:
    """Refuse a missing value where NumPy would write False, or cannot write it."""
    if value is None and isinstance(dtype, np.dtype) and dtype.kind in "iub":
        raise TypeError(f"{dtype} has no missing values")
