"""Many rows of a table, read together: column by column, in the same way as one by one."""

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from anchorline.spaces.columns import BOOLEAN, NUMBER, Column, row_values
from anchorline.spaces.natives import Natives
from anchorline.spaces.rows import Schema
from anchorline.spaces.values import identity_for_model


def read_rows(schema: Schema, part: Any) -> tuple[Natives, tuple[Column, ...]] | None:
    """Read a part of a frame (narwhals) or of a 2-D array in the table's own types.

    Returns None if its columns are not those of the table. Raises `InstanceError` for a value that the table's
    types cannot hold, as reading rows one by one does.
    """
    given = _columns_of(part, schema.names)
    if given is None:
        return None
    natives, columns = zip(*(_read(schema, j, column) for j, column in enumerate(given)), strict=True)
    return schema.natives.of_columns(natives), columns


def _columns_of(part: Any, names: Sequence[str]) -> list[Any] | None:
    """Return the columns in the order of the table; None if they are not all there, once each."""
    if isinstance(part, np.ndarray):
        return list(part.T) if part.ndim == 2 and part.shape[1] == len(names) else None
    if not isinstance(part, nw.DataFrame):
        return None
    by_name = {str(column.name): column for column in part.iter_columns()}
    return [by_name[name] for name in names] if len(by_name) == part.shape[1] and {*names} <= {*by_name} else None


def _read(schema: Schema, j: int, column: Any) -> tuple[Any, Column]:
    """Return a column in the table's own type, and as it was read; each distinct value is read once."""
    own = schema.columns[j]
    numbers = _numbers(column)
    if numbers is not None and own.kind in (NUMBER, BOOLEAN) and not schema.types[j].ambiguous:
        model = schema.natives.pick(j, np.arange(1))
        if isinstance(model, np.ndarray) and model.dtype == numbers.dtype:
            values = numbers.astype(np.float64)
            missing = np.isnan(values)
            native = np.where(missing, np.nan, numbers).astype(model.dtype) if missing.any() else numbers.copy()
            return native, Column(own.kind, values, missing)
    given = column.tolist() if isinstance(column, np.ndarray) else row_values(column)
    numbered: dict[Any, int] = {}
    keys = map(identity_for_model, given)
    at = np.array([numbered.setdefault(key, len(numbered)) for key in keys], dtype=np.intp)
    first = np.unique(at, return_index=True)[1].tolist()
    natives = [schema.cast(j, given[row]) for row in first]
    cells = [schema.reading(j, native) for native in natives]
    values_of = np.concatenate([cell.values for cell in cells])[at]
    missing_of = np.concatenate([cell.missing for cell in cells])[at]
    return schema.natives.joined(j, natives, at), Column(cells[0].kind, values_of, missing_of)


def _numbers(column: Any) -> np.ndarray | None:
    """Return a column of NumPy's own numbers or booleans as an array, without a copy; None for any other."""
    values = column
    if not isinstance(column, np.ndarray):
        native = column.to_native()
        values = native.to_numpy() if isinstance(getattr(native, "dtype", None), np.dtype) else None
    return values if isinstance(values, np.ndarray) and values.dtype.kind in "fiub" else None
