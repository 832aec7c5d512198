"""One value of a table: told apart as a model does, found in the training table, held in a column's own type.

A value that a type cannot hold raises an error; nothing is truncated, wrapped around or lost in silence.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.spaces.columns import CATEGORY, NUMBER, Column


def unwrapped(value: Any) -> Any:
    """A Python value, of NumPy's or Arrow's; NumPy's dates stay, which Python's cannot hold as exactly."""
    if hasattr(value, "as_py"):
        return value.as_py()
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value


def as_seen(value: Any) -> tuple[type, str]:
    """What a model may tell a value from others by: 0 and -0, None and NaN, 1 and "1" are two."""
    value = value.as_py() if hasattr(value, "as_py") else value
    return type(value), repr(value)


def alike(column: Any) -> bool:
    """Whether a model sees one value in a native column."""
    if isinstance(column, np.ndarray) and not column.dtype.hasobject:
        cells = np.ascontiguousarray(column).view(np.uint8).reshape(len(column), -1)
        return bool((cells == cells[0]).all())
    return len({as_seen(value) for value in column}) == 1


@dataclass(frozen=True, eq=False)
class Lookup:
    """Training rows of one column by their values; ``pick`` returns the native values of given rows.

    A value is *read* as a text or number, as None if missing.

    What is read alike may still be told apart by a model: an object column may hold both None and NaN, or 1,
    1.0 and "1"; a column of floats both null and NaN. So a row is looked for by both.
    """

    pick: Callable[[np.ndarray], Any]
    column: Column
    loose: bool

    def row(self, reading: Any, value: Any) -> int | None:
        """Of the rows read so the one whose value a model cannot tell from the given; else the first."""
        first = self._firsts.get(reading)
        if first is None:
            return None
        own = as_seen(value)
        if as_seen(unwrapped(self.pick(np.array([first]))[0])) == own:
            return first
        others = self._other_holes if reading is None else self._other_values
        return others.get(own, first)

    @cached_property
    def only_texts(self) -> bool:
        """Whether all values are texts: then a new one has to be one, too."""
        column = self.pick(np.flatnonzero(~self.column.missing))
        return all(isinstance(value, str) for value in column)

    @cached_property
    def _firsts(self) -> dict[Any, int]:
        """The first row of every reading; of numbers and dates of a strict type only holes are looked for."""
        values, missing = self.column.values, self.column.missing
        by_value = self.loose or self.column.kind == CATEGORY
        rows = np.arange(len(values)) if by_value else np.flatnonzero(missing)[:1]
        read = values[rows].astype(object)
        read[missing[rows]] = None
        return dict(zip(read[::-1].tolist(), rows[::-1].tolist(), strict=True))

    @cached_property
    def _other_holes(self) -> dict[tuple[type, str], int]:
        """Only floats and objects can be missing in more than one way."""
        several = self.loose or self.column.kind == NUMBER
        return self._others(np.flatnonzero(self.column.missing)) if several else {}

    @cached_property
    def _other_values(self) -> dict[tuple[type, str], int]:
        return self._others(np.flatnonzero(~self.column.missing)) if self.loose else {}

    def _others(self, rows: np.ndarray) -> dict[tuple[type, str], int]:
        """Of these rows the first of every value seen; without those that `_firsts` has."""
        column = self.pick(rows)
        if isinstance(column, np.ndarray) and not column.dtype.hasobject:
            return {}  # what NumPy's types read alike is alike
        found: dict[tuple[type, str], int] = {}
        for at, value in zip(rows.tolist(), column, strict=True):
            found.setdefault(as_seen(unwrapped(value)), at)
        firsts = set(self._firsts.values())
        return {seen: at for seen, at in found.items() if at not in firsts}


def bare(series: Any) -> Any:
    """A pandas Series without its index: a NumPy array where the type is NumPy's."""
    return series.to_numpy() if isinstance(series.dtype, np.dtype) else series.array


def arrow_one(value: Any, kind: Any) -> Any:
    """A chunked array of one value; categories are encoded as the column's are."""
    import pyarrow as pa  # noqa: PLC0415  heavy, and not a dependency

    if isinstance(value, np.datetime64):
        moment = as_date(value, f"M8[{getattr(kind, 'unit', 'D')}]")
        return pa.chunked_array([pa.array(np.array([moment])).cast(kind)])
    if pa.types.is_dictionary(kind):
        return pa.chunked_array([pa.array([value], type=kind.value_type).dictionary_encode().cast(kind)])
    return pa.chunked_array([pa.array([value], type=kind)])


def pandas_one(value: Any, dtype: Any) -> Any:
    """An array of one value, as pandas converts it, which refuses more than NumPy; numbers alike, only faster."""
    import pandas as pd  # noqa: PLC0415  heavy, and not a dependency

    if isinstance(dtype, np.dtype) and dtype.kind in "fiubM":
        return numpy_one(value, dtype)
    if isinstance(dtype, pd.ArrowDtype):
        return pd.arrays.ArrowExtensionArray(arrow_one(value, dtype.pyarrow_dtype))
    if isinstance(value, np.datetime64):
        value = pd.Timestamp(as_date(value, f"M8[{dtype.unit}]"), tz="UTC")
    return bare(pd.Series([value], dtype=dtype))


def numpy_one(value: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """An array of one value; refuses what NumPy would turn into another one in silence."""
    if value is None and dtype.kind in "iub":
        raise TypeError(f"{dtype} has no missing values")
    if dtype.kind == "M" and value is not None:
        value = as_date(value, dtype)
    with np.errstate(over="ignore"):
        return np.array([value], dtype=None if dtype.kind in "US" else dtype)


def as_date(moment: np.datetime64, dtype: Any) -> np.datetime64:
    """The same moment in a column's unit; refuses what NumPy would cut or wrap around in silence."""
    found: np.datetime64 = moment.astype(dtype)
    if found.astype(moment.dtype) != moment:
        raise OverflowError(f"{found.dtype} cannot hold it")
    return found
