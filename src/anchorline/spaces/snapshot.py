"""A copy of a table: the user may change it later, or the memory that it was made of."""

from typing import Any

import numpy as np
from narwhals.dependencies import is_pandas_dataframe, is_polars_dataframe, is_pyarrow_table


def snapshot(table: Any) -> Any:
    """The same table in memory of its own; anything else as it is.

    Polars and Arrow tables never change, but many a one is a view of NumPy arrays, which do.
    """
    if isinstance(table, np.ndarray):
        return table.copy()
    if is_pandas_dataframe(table):
        return _pandas(table)
    if is_polars_dataframe(table):
        return table[np.arange(len(table))]
    return _arrow(table) if is_pyarrow_table(table) else table


def _pandas(table: Any) -> Any:
    """Columns that are Arrow's are not copied with the frame."""
    import pandas as pd  # noqa: PLC0415  heavy, and not a dependency

    copied, everything = table.copy(), np.arange(len(table))
    for j, dtype in enumerate(copied.dtypes):
        if isinstance(dtype, pd.ArrowDtype):
            copied.isetitem(j, copied.iloc[:, j].array.take(everything))
    return copied


def _arrow(table: Any) -> Any:
    """By writing and reading, which keeps types and chunks as they are."""
    import pyarrow as pa  # noqa: PLC0415  heavy, and not a dependency

    sink = pa.BufferOutputStream()
    try:
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        return pa.ipc.open_stream(sink.getvalue()).read_all()
    except pa.ArrowException:  # a type that cannot be written cannot be picked from, either: told later
        return table
