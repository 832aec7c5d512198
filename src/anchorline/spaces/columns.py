"""Columns of any table: read alike from frames and arrays, and their values told in short texts.

Inside, all but categories are float64: dates count microseconds, booleans are 0 and 1.
"""

import decimal
import math
import numbers
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from anchorline.errors import InstanceError

NUMBER, BOOLEAN, CATEGORY, DATE = "numbers", "booleans", "categories", "dates"

# Steps tried when an edge is rounded up, longest first; dates count microseconds: day, second, tick.
_STEPS = {NUMBER: (1,), DATE: (86_400_000_000, 1_000_000, 1)}

EXACT = 2.0**53  # from here on, different whole numbers may be the same float
_MAX_WHOLE = 2.0**64  # beyond, no type of a table holds whole numbers, and floats are told as 2e+20

# How a column of other things becomes one of texts or dates, in the words of the table's own library.
_CONVERT = {
    "pandas": {"texts": "frame[{name}].astype(str)", "dates": "pandas.to_datetime(frame[{name}]{utc})"},
    "polars": {
        "texts": "polars.Series({name}, [str(value) for value in frame[{name}].to_list()])",
        "dates": "polars.Series({name}, frame[{name}].to_list())",
    },
    "pyarrow": {
        "texts": "pyarrow.array([str(value) for value in table[{name}].to_pylist()])",
        "dates": "table[{name}].cast(pyarrow.date32())",
    },
    "numpy": {
        "texts": "X[:, {position}].astype(str)",
        "dates": "pandas.DataFrame({{{name}: pandas.to_datetime(X[:, {position}]{utc})}})",
    },
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: float64, or object holding str for categories; what is missing is arbitrary."""

    kind: str
    values: NDArray[Any]
    missing: NDArray[np.bool_]

    def as_kind(self, kind: str, name: str) -> "Column":
        """Return this column of new rows as the ``kind`` seen in fit."""
        if self.missing.any():
            count, first = int(self.missing.sum()), int(self.missing.argmax())
            raise InstanceError(
                f"Column {name!r} has {count} missing value(s), the first in row {first}; needed all. "
                f"Fill them, e.g. `frame[{name!r}].fillna(...)`, or leave these rows out."
            )
        if kind == self.kind or {kind, self.kind} <= {NUMBER, BOOLEAN}:
            return self
        if kind == CATEGORY and self.kind in (NUMBER, BOOLEAN):
            texts = [level_of(value, self.kind) for value in self.values]
            return Column(CATEGORY, np.array(texts, dtype=object), self.missing)
        raise InstanceError(
            f"Column {name!r} holds {self.kind}; in fit it held {kind}. "
            f"Convert it to the type it had, e.g. `frame.astype({{{name!r}: train[{name!r}].dtype}})`."
        )


def readable_edges(edges: NDArray[np.float64], values: NDArray[np.float64], kind: str) -> list[tuple[float, str]]:
    """Round edges to short texts that split the sorted ``values`` as they do, with what each text says."""
    for step in _STEPS[kind]:
        rounded = np.ceil(edges / step) * step  # among whole values, v >= e exactly when v >= ceil(e)
        if not np.any(values % step) and np.unique(rounded).size == edges.size:
            return [(float(edge), exact_text(edge, kind)) for edge in rounded]
    above = np.searchsorted(values, edges, side="left")
    texts = []
    for edge, low, high in zip(edges, values[above - 1], values[above], strict=True):
        roundings = (f"{edge:.{digits}g}" for digits in range(3, 18))  # 17 digits give any float back
        texts.append(plain_number(next(text for text in roundings if low < float(text) <= high)))
    if len(set(texts)) < len(texts):
        return [(float(edge), exact_text(edge, kind)) for edge in edges]
    return [(float(text), text) for text in texts]


def exact_text(value: float, kind: str) -> str:
    """Tell a number or date so that reading the text gives it back."""
    return level_of(value, kind) if kind == NUMBER else text_of(value, kind)


def text_of(value: Any, kind: str) -> str:
    """Tell a value in a short text: six digits of a number, a date without a midnight."""
    if kind == NUMBER and not (abs(value) < 1e15 and value == int(value)):
        text = f"{value:.6g}"
        return plain_number(text) if "e" in text else text
    if kind == DATE:
        text = str(np.datetime64(round(value), "us")).removesuffix(".000000")
        return text.removesuffix(":00").removesuffix("T00:00").replace("T", " ")
    # An empty category would read as if the sentence broke off.
    return repr(value) if kind == CATEGORY and value[:1] in ("", "'") else level_of(value, kind)


def level_of(value: Any, kind: str) -> str:
    """Name a value as a category: 1, 1.0 and "1" alike, and different numbers differently."""
    if kind == CATEGORY:
        return str(value)
    if kind == BOOLEAN:
        return str(bool(value))
    number = float(value)  # OverflowError beyond 1e308
    if isinstance(value, numbers.Integral) or (number.is_integer() and abs(number) < _MAX_WHOLE):
        return str(int(value))  # no float holds every whole number: beyond 2^53 several would be told alike
    return plain_number(repr(number))


def plain_number(text: str) -> str:
    """Write 1e+06 as 1000000 and 40.0 as 40; leave what would be long."""
    value = float(text)
    if not 1e-4 <= abs(value) < 1e15:
        return text.removesuffix(".0")
    return np.format_float_positional(value, trim="-")


def opened(native: Any, error: type[Exception], *, eager_only: bool = False) -> Any:
    """A frame of any library as narwhals has it; what is no frame as it is."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(native, arrow.RecordBatch):  # a piece of a table; narwhals has none
        native = arrow.Table.from_batches([native])
    try:
        return nw.from_native(native, eager_only=eager_only, pass_through=True)
    except nw.exceptions.DuplicateError as cause:
        raise error(f"Column names must differ: {' '.join(str(cause).split())}. Rename one.") from cause


def read_table(X: Any, error: type[Exception]) -> tuple[Any, list[str] | None]:
    """Return a narwhals frame and its names, or a 2-D array and None."""
    frame = opened(X, error)
    if isinstance(frame, nw.DataFrame):
        return frame, [str(name) for name in frame.columns]
    if isinstance(frame, nw.LazyFrame) or hasattr(X, "columns"):  # as an array it would lose its names
        raise error(
            f"X is a {type(X).__module__}.{type(X).__name__}; needed a pandas, Polars or Arrow frame, or a 2-D "
            "array. Convert it, e.g. `X.collect()` of Polars, `X.compute()` of dask, or `X.to_pandas()`."
        )
    if isinstance(X, np.ma.MaskedArray) and np.ma.getmaskarray(X).any():
        raise error("X is a masked array; needed one without a mask. Type, say, `X.astype(float).filled(np.nan)`.")
    # A list of rows goes through object: numpy would turn [25, "red"] into two texts.
    array = np.array(X, dtype=object) if isinstance(X, list | tuple) else np.asarray(X)
    if array.ndim != 2:
        raise error(
            f"X is a {type(X).__name__} of shape {array.shape}; needed a 2-D array, or a pandas, Polars or "
            "Arrow frame. Reshape your data: `X.reshape(1, -1)` for one row, "
            "`X.toarray()` for a sparse matrix: sparse input is not supported."
        )
    return array, None


def zones_of(table: Any) -> list[str]:
    """What follows every date told of each column: they are read as UTC where it has a time zone."""
    if isinstance(table, np.ndarray):
        return [""] * table.shape[1]
    dtypes: list[Any] = list(table.schema.values())
    return [" UTC" if isinstance(one, nw.Datetime) and one.time_zone is not None else "" for one in dtypes]


def read_columns(table: Any, names: Sequence[str], error: type[Exception]) -> list[Column]:
    """Read all columns of what `read_table` returned, in one pass: a wide frame is slow to ask for each."""
    columns = table.T if isinstance(table, np.ndarray) else table.iter_columns()
    pairs = enumerate(zip(columns, names, strict=True))
    return [read_values(column, name, error, position) for position, (column, name) in pairs]


def read_column(table: Any, position: int, name: str, error: type[Exception]) -> Column:
    """Read one column of what `read_table` returned."""
    return read_values(table[:, position], name, error, position)


def read_values(values: Any, name: str, error: type[Exception], position: int = 0) -> Column:
    """Read a column alone: a 1-D array, or a Series of any library; ``position`` is told in errors."""
    if isinstance(values, np.ndarray):
        return _column_of_array(values, name, error, position)
    return _column_of_series(nw.from_native(values, series_only=True), name, error)


def row_values(series: nw.Series[Any]) -> list[Any]:
    """A column's values for rows, as Python has them; as texts where Python would cut nanoseconds in silence."""
    dtype = series.dtype
    if series.implementation.is_polars() and isinstance(dtype, nw.Datetime) and dtype.time_unit == "ns":
        series = series.cast(nw.String)
    return series.to_list()


def _column_of_series(series: nw.Series[Any], name: str, error: type[Exception]) -> Column:
    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        return _numeric(BOOLEAN if dtype == nw.Boolean else NUMBER, _floats(series))
    if isinstance(dtype, nw.Date | nw.Datetime):  # with a time zone: as UTC
        return _numeric(DATE, series.dt.timestamp("us").cast(nw.Float64).to_numpy())
    if dtype == nw.String:
        values, missing = np.array(series.to_list(), dtype=object), series.is_null().to_numpy()
        values[missing] = ""  # pandas.NA equals nothing, not even itself
        return Column(CATEGORY, values, missing)
    declared = isinstance(dtype, nw.Categorical | nw.Enum)  # then whole numbers are names, too
    refused = _Refused(error, name, series.implementation.name.lower())
    return _column_of_objects(series.to_list(), refused, declared)


def _floats(series: nw.Series[Any]) -> ArrayLike:
    try:
        return series.cast(nw.Float64).to_numpy()
    except ValueError:  # Arrow refuses whole numbers that lose digits; the native values keep them
        return [math.nan if value is None else float(value) for value in series.to_list()]


def _column_of_array(values: NDArray[Any], name: str, error: type[Exception], position: int) -> Column:
    if values.dtype.kind in "iufb":
        return _numeric(BOOLEAN if values.dtype.kind == "b" else NUMBER, values)
    if values.dtype.kind == "M":
        ticks = values.astype("datetime64[us]").astype(np.int64)
        return _numeric(DATE, np.where(np.isnat(values), np.nan, ticks))
    refused = _Refused(error, name, "numpy", position)
    return _column_of_objects(values.tolist(), refused, declared=False)


@dataclass(frozen=True, slots=True)
class _Refused:
    """The errors of a column that cannot be read, in the words of the table's own library."""

    error: type[Exception]
    name: str
    library: str
    position: int = 0

    def kinds(self, present: set[str], zoned: bool) -> Exception:
        """It holds things of these types."""
        wanted = "dates" if present <= {"date", "datetime", "Timestamp"} else "texts"
        convert = _CONVERT.get(self.library, _CONVERT["pandas"])[wanted]
        told = convert.format(name=repr(self.name), position=self.position, utc=", utc=True" if zoned else "")
        return self.error(
            f"Column {self.name!r} holds {listed(sorted(present))}; needed numbers, booleans, texts, or a "
            f"column of dates. Convert it, e.g. `{told}`, or leave it out."
        )

    def size(self) -> Exception:
        """A number is too large."""
        return self.error(f"Column {self.name!r} holds a number beyond 1e308; needed numbers a float can hold.")


def _column_of_objects(values: list[Any], refused: _Refused, declared: bool) -> Column:
    """Read Python values: numbers or booleans if all of them are, else categories by their text."""
    kinds = [kind_of(value) for value in values]
    missing = np.array([kind is None for kind in kinds], dtype=bool)
    present = {kind for kind in kinds if kind is not None}
    if not present <= {NUMBER, BOOLEAN, CATEGORY}:
        raise refused.kinds(present, any(getattr(value, "tzinfo", None) is not None for value in values))
    try:
        if present in ({NUMBER}, {BOOLEAN}) and not declared:
            known = [math.nan if gone else float(v) for v, gone in zip(values, missing, strict=True)]
            return _numeric(present.pop(), known)
        texts = ["" if k is None else level_of(v, k) for v, k in zip(values, kinds, strict=True)]
    except OverflowError:
        raise refused.size() from None
    return Column(CATEGORY, np.array(texts, dtype=object), missing)


def kind_of(value: Any) -> str | None:
    """Return the kind of a Python value, None if it is missing, or the name of a type we refuse."""
    if isinstance(value, str):
        return CATEGORY
    if isinstance(value, bool | np.bool_):
        return BOOLEAN
    if isinstance(value, numbers.Real | decimal.Decimal):
        return None if value != value else NUMBER  # noqa: PLR0124  isnan refuses integers beyond 1e308
    name = type(value).__name__
    return None if name in ("NoneType", "NAType", "NaTType") else name  # pandas' own, without importing it


def _numeric(kind: str, values: ArrayLike) -> Column:
    array = np.asarray(values, dtype=np.float64)
    return Column(kind, array, np.isnan(array))


def listed(names: Iterable[str]) -> str:
    """Up to eight names for a message."""
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:8])
    return f"{shown}, ... ({len(names)})" if len(names) > 8 else shown or "none"
