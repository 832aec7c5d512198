"""One value in a column's own type, or any error: nothing is cut, wrapped around or lost in silence."""

from typing import Any

import numpy as np


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
