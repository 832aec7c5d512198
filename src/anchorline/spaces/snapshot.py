"""Copies of tables, because users may later change a table or the memory that it views."""

from typing import Any

import numpy as np
from narwhals.dependencies import is_pandas_dataframe, is_polars_dataframe, is_pyarrow_table


def snapshot(table: Any) -> Any:
    """Return a copy of the table in its own memory; return any other object unchanged.

    Polars and Arrow tables are immutable, but many of them are views of NumPy arrays, which are not.
    """
    if isinstance(table, np.ndarray):
        return table.copy()
    if is_pandas_dataframe(table):
        return _copy_pandas(table)
    if is_polars_dataframe(table):
        return table[np.arange(len(table))]
    return _copy_arrow(table) if is_pyarrow_table(table) else table


def _copy_pandas(table: Any) -> Any:
    """Copy a frame and its Arrow columns, which ``DataFrame.copy`` does not copy."""
    import pandas as pd  # noqa: PLC0415  heavy, and not a dependency

    copied, every_row = table.copy(), np.arange(len(table))
    for j, dtype in enumerate(copied.dtypes):
        if isinstance(dtype, pd.ArrowDtype):
            copied.isetitem(j, copied.iloc[:, j].array.take(every_row))
    return copied


def _copy_arrow(table: Any) -> Any:
    """Copy a table by writing and reading it, which preserves types and chunks."""
    import pyarrow as pa  # noqa: PLC0415  heavy, and not a dependency

    sink = pa.BufferOutputStream()
    try:
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        return pa.ipc.open_stream(sink.getvalue()).read_all()
    except pa.ArrowException:  # Arrow cannot write this type; a later check refuses it
        return table
