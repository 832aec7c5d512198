"""Reads the training table of a space into a schema, its rows in canonical order."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.spaces.columns import dense, listed, read_columns, read_table
from anchorline.spaces.libraries import natives_from_table
from anchorline.spaces.order import canonical_order
from anchorline.spaces.rows import Schema, types_of
from anchorline.spaces.snapshot import snapshot


def read_training_table(frame: Any, names: Sequence[str] | None) -> Schema:
    """Return the schema of a copy of the training table; raise `ParameterError` if the table cannot be used."""
    table, _ = read_table(dense(frame, ParameterError), ParameterError)
    # A copy, because the user may change the frame later.
    native = snapshot(table if isinstance(table, np.ndarray) else table.to_native())
    table, given = read_table(native, ParameterError)
    natives = natives_from_table(native)
    if natives is None:
        raise ParameterError(
            f"The table is a {type(frame).__module__}.{type(frame).__name__}; it must be a pandas, Polars or "
            "Arrow table or a 2-D array. Convert it, e.g. `frame.to_pandas()`."
        )
    if 0 in table.shape:
        raise ParameterError(f"The table has shape {table.shape}; it must have at least one row and one column.")
    column_names = _checked_names(names, given, table.shape[1])
    columns, types = read_columns(table, column_names, ParameterError), types_of(native, natives)
    del table, native  # freed while the rows are sorted
    order = canonical_order(columns, natives, types)
    ordered = [column.taken(order) for column in columns]
    natives = natives.reordered((j, order) for j in range(len(columns)))
    positions = np.empty_like(order)
    positions[order] = np.arange(len(order))
    return Schema(tuple(column_names), tuple(ordered), natives, types, positions)


def _checked_names(names: Sequence[str] | None, own: list[str] | None, n_columns: int) -> list[str]:
    """Return the table's own column names, or else the given ones, or else x0, x1, ...; names must differ."""
    if names is not None and (isinstance(names, str) or not isinstance(names, Iterable)):
        raise ParameterError(
            f"names is {names!r}; it must be a list of column names. Type names=['age', 'member']."
        )
    given = None if names is None else [str(name) for name in names]
    if given is not None and (own is not None or len(given) != n_columns):
        reason = "a frame has its own names" if own is not None else f"the array has {n_columns} columns"
        raise ParameterError(
            f"names has {len(given)} entries, but {reason}. Omit names, or name every column of an array."
        )
    column_names = own or given or [f"x{j}" for j in range(n_columns)]
    if len(set(column_names)) < len(column_names):
        raise ParameterError(f"Column names must differ, but they are {listed(column_names)}. Rename one column.")
    return column_names
