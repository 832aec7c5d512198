"""Single values of a table: how a model distinguishes them, which training row has them, how a column stores them.

A value that a type cannot hold raises an error; nothing is truncated, wrapped around or lost silently.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.spaces.columns import CATEGORY, NUMBER, Column, text_of


def to_python(value: Any) -> Any:
    """Convert a NumPy or Arrow scalar to Python; keep NumPy dates, because Python dates are less exact."""
    if hasattr(value, "as_py"):
        return value.as_py()
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value


def identity_for_model(value: Any) -> tuple[type, str]:
    """Return a key that differs for values that a model may distinguish: 0 and -0, None and NaN, 1 and "1"."""
    value = value.as_py() if hasattr(value, "as_py") else value
    return type(value), repr(value)


@dataclass(frozen=True, eq=False)
class Lookup:
    """Training rows of one column by their values; ``pick`` returns the native values of given rows.

    The *reading* of a value is its text or number, or None if the value is missing.

    Values with the same reading may still differ for a model: an object column may hold both None and NaN, or
    1, 1.0 and "1"; a column of floats may hold both null and NaN. So a row is looked up by its reading and by its
    identity. ``ambiguous`` columns are those in which values that are not missing can differ in this way.
    """

    pick: Callable[[np.ndarray], Any]
    column: Column
    ambiguous: bool

    def find_row(self, reading: Any, value: Any) -> int | None:
        """Return the row with this reading whose value a model cannot distinguish from ``value``.

        Return the first row with this reading if none has the same value, and None if no row has this reading.
        """
        first = self._first_rows.get(reading)
        if first is None:
            return None
        own = identity_for_model(value)
        if identity_for_model(to_python(self.pick(np.array([first]))[0])) == own:
            return first
        others = self._other_missing if reading is None else self._other_values
        return others.get(own, first)

    def unseen(self, cell: Column) -> str:
        """Return why no training row is like a value: a new category, or beyond all numbers or dates; else ""."""
        if cell.missing[0]:
            return "" if self.column.missing.any() else "no training row lacks a value"
        value, kind = cell.values[0], self.column.kind
        if kind == CATEGORY:
            return "" if value in self._first_rows else f"no training row has {value!r}"
        if self._ends is None:
            return "no training row has a value"
        low, high = self._ends
        if value < low:
            return f"{text_of(value, kind)} is below every training value (lowest: {text_of(low, kind)})"
        if value > high:
            return f"{text_of(value, kind)} is above every training value (highest: {text_of(high, kind)})"
        return ""

    @cached_property
    def _ends(self) -> tuple[float, float] | None:
        """The lowest and highest number or date; None if all are missing."""
        values = self.column.values[~self.column.missing]
        return (float(values.min()), float(values.max())) if len(values) else None

    @cached_property
    def only_texts(self) -> bool:
        """Whether all values are texts; if so, a new value must be a text as well."""
        column = self.pick(np.flatnonzero(~self.column.missing))
        return all(isinstance(value, str) for value in column)

    @cached_property
    def _first_rows(self) -> dict[Any, int]:
        """The first row per reading; numbers and dates of an unambiguous type need only that of missing values."""
        values, missing = self.column.values, self.column.missing
        by_value = self.ambiguous or self.column.kind == CATEGORY
        rows = np.arange(len(values)) if by_value else np.flatnonzero(missing)[:1]
        readings = values[rows].astype(object)
        readings[missing[rows]] = None
        return dict(zip(readings[::-1].tolist(), rows[::-1].tolist(), strict=True))

    @cached_property
    def _other_missing(self) -> dict[tuple[type, str], int]:
        """Rows with other missing values; only floats and objects have more than one missing value."""
        several = self.ambiguous or self.column.kind == NUMBER
        return self._others(np.flatnonzero(self.column.missing)) if several else {}

    @cached_property
    def _other_values(self) -> dict[tuple[type, str], int]:
        return self._others(np.flatnonzero(~self.column.missing)) if self.ambiguous else {}

    def _others(self, rows: np.ndarray) -> dict[tuple[type, str], int]:
        """Return the first of these rows per identity, without the rows in `_first_rows`."""
        column = self.pick(rows)
        if isinstance(column, np.ndarray) and not column.dtype.hasobject:
            return {}  # values of NumPy's own types with the same reading are identical
        by_identity: dict[tuple[type, str], int] = {}
        for row, value in zip(rows.tolist(), column, strict=True):
            by_identity.setdefault(identity_for_model(to_python(value)), row)
        firsts = set(self._first_rows.values())
        return {identity: row for identity, row in by_identity.items() if row not in firsts}


def array_of_series(series: Any) -> Any:
    """Return the array of a pandas Series: a NumPy array if the type is NumPy's, else a pandas array."""
    return series.to_numpy() if isinstance(series.dtype, np.dtype) else series.array


def arrow_from_value(value: Any, kind: Any) -> Any:
    """Return a chunked array of one value; categories are encoded as in the column."""
    import pyarrow as pa  # noqa: PLC0415  heavy, and not a dependency

    if isinstance(value, np.datetime64):
        moment = cast_date(value, f"M8[{getattr(kind, 'unit', 'D')}]")
        return pa.chunked_array([pa.array(np.array([moment])).cast(kind)])
    if pa.types.is_dictionary(kind):
        return pa.chunked_array([pa.array([value], type=kind.value_type).dictionary_encode().cast(kind)])
    return pa.chunked_array([pa.array([value], type=kind)])


def pandas_from_value(value: Any, dtype: Any) -> Any:
    """Return an array of one value, converted by pandas, which refuses more than NumPy.

    NumPy converts numbers in the same way, only faster.
    """
    import pandas as pd  # noqa: PLC0415  heavy, and not a dependency

    if isinstance(dtype, np.dtype) and dtype.kind in "fiubM":
        return numpy_from_value(value, dtype)
    if isinstance(dtype, pd.ArrowDtype):
        return pd.arrays.ArrowExtensionArray(arrow_from_value(value, dtype.pyarrow_dtype))
    if isinstance(value, np.datetime64):
        value = pd.Timestamp(cast_date(value, f"M8[{dtype.unit}]"), tz="UTC")
    return array_of_series(pd.Series([value], dtype=dtype))


def numpy_from_value(value: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Return an array of one value; raise an error where NumPy would change the value silently."""
    if value is None and dtype.kind in "iub":
        raise TypeError(f"{dtype} has no missing values")
    if dtype.kind == "M" and value is not None:
        value = cast_date(value, dtype)
    with np.errstate(over="ignore"):
        return np.array([value], dtype=None if dtype.kind in "US" else dtype)


def cast_date(moment: np.datetime64, dtype: Any) -> np.datetime64:
    """Return the same moment in a column's unit; raise an error where NumPy would truncate or wrap silently."""
    converted: np.datetime64 = moment.astype(dtype)
    if converted.astype(moment.dtype) != moment:
        raise OverflowError(f"{converted.dtype} cannot hold it")
    return converted
