"""Rows in the table's own types: pandas, Polars, Arrow or NumPy, never converted, only picked.

A neighbor is put together by picking each column's value from one of the table's rows, or from the
instance, which stands behind them. So data types, category sets, whole numbers and the way of being
missing are kept without a word about any of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Natives:
    """The columns of a table in the table's own library.

    ``columns`` are native columns; ``one(j, value)`` makes a native column of one value with the type of
    column j, or raises; ``behind(j, column)`` is column j followed by another of its type;
    ``assemble(columns)`` makes a table of native columns; ``pick(column, rows)`` takes rows of one.
    """

    columns: tuple[Any, ...]
    one: Callable[[int, Any], Any]
    behind: Callable[[int, Any], Any]
    pick: Callable[[Any, np.ndarray], Any]
    assemble: Callable[[Sequence[Any]], Any]


def natives_of(table: Any) -> Natives | None:
    """The native columns of a pandas, Polars or Arrow table or a 2-D array; None for anything else."""
    library = type(table).__module__.partition(".")[0]
    if isinstance(table, np.ndarray):
        return _of_array(table)
    return {"pandas": _of_pandas, "polars": _of_polars, "pyarrow": _of_arrow}.get(library, lambda _: None)(table)


def _of_array(table: np.ndarray) -> Natives:
    return Natives(
        columns=tuple(table.T),
        one=lambda j, value: np.array([value], dtype=None if table.dtype.kind in "US" else table.dtype),
        behind=lambda j, column: np.concatenate([table[:, j], column]),
        pick=lambda column, rows: column[rows],
        assemble=np.column_stack,
    )


def _of_pandas(table: Any) -> Natives:
    import pandas as pd  # noqa: PLC0415  heavy, and not a dependency

    dtypes, labels = list(table.dtypes), table.columns
    columns = tuple(table.iloc[:, j].array for j in range(table.shape[1]))  # arrays: no index to carry along

    def behind(j: int, column: Any) -> Any:
        return pd.concat([pd.Series(columns[j], copy=False), pd.Series(column)], ignore_index=True).array

    def assemble(picked: Sequence[Any]) -> Any:
        frame = pd.DataFrame(dict(enumerate(picked)), index=pd.RangeIndex(len(picked[0])), copy=False)
        frame.columns = labels
        return frame

    return Natives(
        columns=columns,
        one=lambda j, value: pd.Series([value], dtype=dtypes[j]).array,
        behind=behind,
        pick=lambda column, rows: column.take(rows),
        assemble=assemble,
    )


def _of_polars(table: Any) -> Natives:
    import polars as pl  # noqa: PLC0415  heavy, and not a dependency

    columns = table.get_columns()
    return Natives(
        columns=tuple(columns),
        one=lambda j, value: pl.Series(columns[j].name, [value], dtype=columns[j].dtype),
        behind=lambda j, column: pl.concat([columns[j], column]),
        pick=lambda column, rows: column.gather(rows),
        assemble=pl.DataFrame,
    )


def _of_arrow(table: Any) -> Natives:
    import pyarrow as pa  # noqa: PLC0415  heavy, and not a dependency

    def one(j: int, value: Any) -> Any:
        kind = table.schema.types[j]
        if pa.types.is_dictionary(kind):
            return pa.array([value], type=kind.value_type).dictionary_encode().cast(kind)
        return pa.array([value], type=kind)

    def behind(j: int, column: Any) -> Any:
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        both = pa.chunked_array([*table.column(j).chunks, *chunks], type=table.schema.types[j])
        return both.unify_dictionaries().combine_chunks()

    return Natives(
        columns=tuple(table.columns),
        one=one,
        behind=behind,
        pick=lambda column, rows: column.take(rows),
        assemble=lambda columns: pa.table(list(columns), schema=table.schema),
    )
