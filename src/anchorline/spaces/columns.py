"""Columns of any table: one reader for frames and arrays, and short texts for their values.

Internally, all columns except categories are float64: dates count microseconds, booleans are 0 and 1.
"""

import datetime as dt
import decimal
import json
import math
import numbers
import re
import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from anchorline.errors import ParameterError, SetupWarning, listed

NUMBER, BOOLEAN, CATEGORY, DATE = "numbers", "booleans", "categories", "dates"

_DATES = frozenset({"date", "datetime", "Period", "Timestamp"})  # the types of single dates
_TEXTS = frozenset({"Interval", "Timedelta", "timedelta", "time"})  # read as categories, by their texts
EXACT = 2.0**53  # at and above this, different whole numbers may be the same float
MAX_DENSE_CELLS = 50_000_000  # cells of a sparse matrix that are expanded without asking: 400 MB of float64
_MAX_WHOLE = 2.0**64  # above this, no column type holds whole numbers, and floats are written as 2e+20


class Ranks(NamedTuple):
    """Categories as numbers: their distinct texts, sorted, and the place (n,) of every row's text among them."""

    levels: tuple[str, ...]
    places: NDArray[Any]

    @classmethod
    def of(cls, texts: list[str]) -> "Ranks":
        """Return the ranks of texts."""
        levels = tuple(sorted(set(texts)))
        found = map({level: place for place, level in enumerate(levels)}.__getitem__, texts)  # a loop is slower
        return cls(levels, np.fromiter(found, dtype=np.min_scalar_type(len(levels)), count=len(texts)))

    @property
    def texts(self) -> NDArray[Any]:
        """The text of every row, (n,); equal texts are one object."""
        return np.array(self.levels, dtype=object).take(self.places)


@dataclass(frozen=True, slots=True)
class Column:
    """One column: float64 values, or str objects for categories; entries marked missing hold arbitrary values.

    ``ranks`` are those of the categories of whole tables, or None.
    """

    kind: str
    values: NDArray[Any]
    missing: NDArray[np.bool_]
    ranks: Ranks | None = None

    def at(self, row: int) -> "Column":
        """Return one value as a column."""
        return Column(self.kind, self.values[row : row + 1], self.missing[row : row + 1])

    def taken(self, rows: NDArray[np.intp]) -> "Column":
        """Return some rows of the column."""
        if self.ranks is None:
            return Column(self.kind, self.values.take(rows), self.missing.take(rows))
        ranks = self.ranks._replace(places=self.ranks.places.take(rows))
        return Column(self.kind, ranks.texts, self.missing.take(rows), ranks)


def digest_columns(digest: Any, columns: Iterable[Column]) -> None:
    """Add the kinds and the values of columns to a hash."""
    for column in columns:
        digest.update(column.kind.encode() + column.missing.tobytes())
        values = np.where(column.missing, "" if column.kind == CATEGORY else 0.0, column.values)
        digest.update(json.dumps(values.tolist()).encode() if column.kind == CATEGORY else values.tobytes())


def shortest_number(low: float, high: float, near: float) -> float:
    """Return the shortest number above ``low`` and at most ``high``: of those as short, ``near`` rounded up.

    Shortness counts decimal places: 40 is shorter than 38, and 7.2 is shorter than 7.15.

    Examples
    --------
    >>> shortest_number(7.1417, 7.225, 7.1506), shortest_number(29417.0, 29573.0, 29480.0)
    (7.2, 29500.0)
    """
    with decimal.localcontext(prec=60):
        first, last, wanted = (decimal.Decimal(repr(float(end))) for end in (low, high, near))
        largest = max(first.adjusted(), last.adjusted())
        for exponent in range(largest, largest - 20, -1):
            unit = decimal.Decimal(1).scaleb(exponent)
            least, most = math.floor(first / unit) + 1, math.floor(last / unit)
            number = float(min(max(math.ceil(wanted / unit), least), most) * unit)
            if least <= most and low < number <= high:
                return number
    return high


def text_of(value: Any, kind: str) -> str:
    """Return a short text for a value: a number to six digits, a date without a time of day at midnight."""
    if kind == NUMBER and not (abs(value) < 1e15 and value == int(value)):
        text = f"{value:.6g}"
        return plain_number(text) if "e" in text else text
    if kind == DATE:
        return date_text(value).replace("T", " ")
    # Quoted, because a sentence that ends in an empty category looks unfinished.
    return repr(value) if kind == CATEGORY and value[:1] in ("", "'") else level_of(value, kind)


def date_text(value: float, zoned: bool = False) -> str:
    """Write a date in microseconds as an ISO text, without a time of day at midnight.

    Examples
    --------
    >>> date_text(0.0), date_text(60e6, zoned=True)
    ('1970-01-01', '1970-01-01T00:01Z')
    """
    text = str(np.datetime64(round(value), "us")).removesuffix(".000000").removesuffix(":00")
    return text + "Z" if zoned else text.removesuffix("T00:00")


def level_of(value: Any, kind: str) -> str:
    """Return the text of a value as a category: the same for 1, 1.0 and "1", and distinct for distinct numbers."""
    if kind == CATEGORY:
        return str(value)
    if kind == BOOLEAN:
        return str(bool(value))
    number = float(value)  # OverflowError beyond 1e308
    if isinstance(value, numbers.Integral) or (number.is_integer() and abs(number) < _MAX_WHOLE):
        return str(int(value))  # through float, several integers beyond 2^53 would get one text
    return plain_number(repr(number))


def level_text(value: Any) -> str:
    """Return the text of a value as a category, which is the same for 1, 1.0 and "1"."""
    return level_of(value, kind_of(value) or CATEGORY)


def plain_number(text: str) -> str:
    """Write 1e+06 as 1000000 and 40.0 as 40; keep the exponent where the number would be long."""
    value = float(text)
    if not 1e-4 <= abs(value) < 1e15:
        return text.removesuffix(".0")
    return np.format_float_positional(value, trim="-")


def to_narwhals(native: Any, error: type[Exception], *, eager_only: bool = False) -> Any:
    """Return a frame of any library as a narwhals frame; return any other object unchanged."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(native, arrow.RecordBatch):  # not supported by narwhals
        native = arrow.Table.from_batches([native])
    try:
        return nw.from_native(native, eager_only=eager_only, pass_through=True)
    except nw.exceptions.DuplicateError as cause:
        raise error(f"Column names must differ: {' '.join(str(cause).split())}. Rename one column.") from cause


def is_sparse(table: Any) -> bool:
    """Return whether an object is a sparse matrix or array of SciPy, which is not imported."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(table))


def dense(table: Any, error: type[Exception]) -> Any:
    """Return a sparse matrix or array as a dense array, and any other object unchanged; refuse a large one."""
    if not is_sparse(table):
        return table
    n_cells = math.prod(table.shape)
    if n_cells > MAX_DENSE_CELLS:
        size = " x ".join(f"{length:,}" for length in table.shape)
        raise error(
            f"The table is a sparse {type(table).__name__} of {size} = {n_cells:,} cells; a sparse table may have "
            f"at most {MAX_DENSE_CELLS:,}, because it is expanded to a dense array. Pass fewer rows, say "
            "`X.tocsr()[:1000]`, or, if the dense array fits into memory, `X.toarray()`."
        )
    return table.toarray()


def column_names(names: Iterable[Any]) -> list[str]:
    """Return the names of columns as texts; columns that are merely counted are called x0, x1, ...

    Examples
    --------
    >>> column_names([0, 1]), column_names(["age", 1]), column_names([("person", "age")])
    (['x0', 'x1'], ['age', '1'], ['person_age'])
    """
    names = list(names)
    if all(isinstance(name, int | np.integer) and name == j for j, name in enumerate(names)):
        return [f"x{j}" for j in range(len(names))]
    return ["_".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in names]


def names_in(own: Iterable[str], names: Iterable[Any]) -> list[str]:
    """Return given names of columns as a table with the names ``own`` has them: 0 may be its column x0."""
    known = {*own}
    texts = ["_".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in names]
    return [f"x{text}" if text not in known and f"x{text}" in known else text for text in texts]


def array_of(given: Any) -> Any:
    """Return a tensor, or an array whose mask hides some cells, as a plain array; any other object unchanged."""
    if hasattr(given, "detach"):
        return given.detach().cpu().numpy()
    if isinstance(given, np.ma.MaskedArray):
        is_masked = bool(np.ma.getmaskarray(given).any())
        holes: Any = given.astype(float) if is_masked and given.dtype.kind in "fiub" else given.astype(object)
        return holes.filled(np.nan) if is_masked else given.data
    return given


def _frame_of_records(X: Any) -> Any:
    """Return a structured array, a list of dictionaries or a dictionary of columns as a pandas frame."""
    is_records = isinstance(X, np.ndarray) and X.dtype.names is not None and X.ndim == 1
    is_dicts = isinstance(X, list | tuple) and X and all(isinstance(row, Mapping) for row in X)
    if not (is_records or is_dicts or isinstance(X, Mapping)):
        return X
    try:
        import pandas as pd  # noqa: PLC0415  heavy, and not a dependency

        return pd.DataFrame(X)
    except (ImportError, ValueError) as error:
        raise ParameterError(
            f"The table is a {type(X).__name__} with names, which pandas cannot read as a frame ({error}). Pass a "
            "pandas, Polars or Arrow frame, or a 2-D array and names=[...]."
        ) from error


def _collected(frame: nw.LazyFrame[Any], X: Any) -> nw.DataFrame[Any]:
    """Return a lazy frame's rows in memory, with a note."""
    own = f"{type(X).__module__.partition('.')[0]}.{type(X).__name__}".replace("_", "")
    is_polars = frame.implementation.is_polars()
    try:
        found = frame.collect() if is_polars else frame.collect(backend="pandas")
    except Exception as error:
        raise ParameterError(
            f"The table is a {own}, which could not be collected ({error}). Collect it first, e.g. by "
            "`X.collect()` from Polars, `X.df()` from DuckDB or `X.compute()` from Dask."
        ) from error
    form = "Polars" if is_polars else "pandas"
    warnings.warn(
        SetupWarning(f"The {own} was collected: {len(found):,} rows in a {form} frame.", "collected"), stacklevel=2
    )
    return found


def read_table(X: Any) -> tuple[Any, list[str] | None]:
    """Return a narwhals frame and its names, or a 2-D array and None; raise `ParameterError` for other objects."""
    if X is None:
        raise ParameterError(
            "The table is None; it must be the frame or 2-D array that the model was trained on. Type "
            "Explainer(model, table)."
        )
    if type(X).__name__ == "Dataset" and hasattr(X, "to_dataframe"):
        raise ParameterError(
            "The table is an xarray.Dataset; it must be a pandas, Polars or Arrow frame, or a 2-D array. Type "
            "`X.to_dataframe().reset_index()`, or only the columns that the model takes: "
            "`X.to_dataframe()[['age', 'member']]`."
        )
    X = _frame_of_records(array_of(dense(X, ParameterError)))
    frame = to_narwhals(X, ParameterError)
    if isinstance(frame, nw.LazyFrame):
        frame = _collected(frame, X)
    if isinstance(frame, nw.DataFrame):
        return frame, column_names(frame.columns)
    if hasattr(X, "columns"):  # an array would lose its column names
        raise ParameterError(
            f"X is a {type(X).__module__}.{type(X).__name__}; it must be a pandas, Polars or Arrow frame, or a "
            "2-D array. Convert it, e.g. with `X.collect()` from Polars, `X.compute()` from dask, or "
            "`X.to_pandas()`."
        )
    if isinstance(X, str | PathLike):
        path = str(X)
        raise ParameterError(
            f"The table is the text or path {path!r}; it must be a pandas, Polars or Arrow frame, or a 2-D array. "
            f"Read the file first: type `frame = anchorline.io.read_table({path!r})`, and pass `frame`."
        )
    if type(X).__name__ == "Series":
        raise ParameterError(
            f"The table is a Series of {len(X)} values; it must be a frame of all columns that the model takes, "
            "or a 2-D array. Type, say, `al.Table(frame)`, or, if the model takes only this column, "
            "`al.Table(series.to_frame())`."
        )
    # Lists of rows become object arrays, because NumPy would turn [25, "red"] into two texts.
    array = np.array(X, dtype=object) if isinstance(X, list | tuple) else np.asarray(X)
    if array.ndim != 2:
        if array.ndim == 1:
            raise ParameterError(
                f"The table is of type {type(X).__name__} and shape {array.shape}, as labels are; it must be a "
                "frame or a 2-D array of all columns that the model takes. Type Explainer(model, table)."
            )
        raise ParameterError(
            f"X is a {type(X).__name__} of shape {array.shape}; it must be a 2-D array, or a pandas, Polars or "
            "Arrow frame."
        )
    return array, None


def read_values(values: Any, name: str, error: type[Exception] | None) -> Column:
    """Read a single column, a 1-D array or a Series of any library; with no ``error``, it may hold anything."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "iufb":
            return _numeric(BOOLEAN if values.dtype.kind == "b" else NUMBER, values)
        if values.dtype.kind == "M":
            ticks = values.astype("datetime64[us]").astype(np.int64)
            return _numeric(DATE, np.where(np.isnat(values), np.nan, ticks))
        return _column_of_objects(values.tolist(), name, error)
    return _column_of_series(nw.from_native(values, series_only=True), name, error)


def _column_of_series(series: nw.Series[Any], name: str, error: type[Exception] | None) -> Column:
    dtype = series.dtype
    if dtype == nw.Boolean or dtype.is_numeric():
        floats: ArrayLike
        try:
            floats = series.cast(nw.Float64).to_numpy()
        except ValueError:  # Arrow does not round whole numbers to floats; Python does
            floats = [math.nan if value is None else float(value) for value in series.to_list()]
        return _numeric(BOOLEAN if dtype == nw.Boolean else NUMBER, floats)
    if isinstance(dtype, nw.Date | nw.Datetime):  # those with a time zone are read as UTC
        return _numeric(DATE, series.dt.timestamp("us").cast(nw.Float64).to_numpy())
    if dtype == nw.String:
        missing = series.is_null().to_numpy()
        return categories_of((series.fill_null("") if missing.any() else series).to_list(), missing)
    declared = isinstance(dtype, nw.Categorical | nw.Enum)  # in such columns, whole numbers are categories as well
    return _column_of_objects(series.to_list(), name, error, declared)


def row_values(series: nw.Series[Any]) -> list[Any]:
    """Return a column as Python values; dates with nanoseconds as texts, because Python would truncate them."""
    dtype = series.dtype
    if series.implementation.is_polars() and isinstance(dtype, nw.Datetime) and dtype.time_unit == "ns":
        series = series.cast(nw.String)
    return series.to_list()


def _column_of_objects(
    values: list[Any], name: str, error: type[Exception] | None, declared: bool = False
) -> Column:
    """Read Python values: as numbers, booleans or dates if all of them are, else as categories by their texts."""
    kinds = [kind_of(value) for value in values]
    missing = np.array([kind is None for kind in kinds], dtype=bool)
    present = {kind for kind in kinds if kind is not None}
    if present and present <= _DATES and not declared:
        ticks = [math.nan if gone else microseconds(v) for v, gone in zip(values, missing, strict=True)]
        return _numeric(DATE, ticks)
    if not present <= {NUMBER, BOOLEAN, CATEGORY}:
        if error is None:
            shown = ["" if kind is None else opaque_text(v) for v, kind in zip(values, kinds, strict=True)]
            return categories_of(shown, missing)
        raise error(
            f"Column {name!r} holds {listed(sorted(present))}; it must hold numbers, booleans, texts or dates. "
            f"Convert its values to texts, e.g. by str, or, if it need not change, type fixed=[{name!r}]."
        )
    try:
        if present in ({NUMBER}, {BOOLEAN}) and not declared:
            floats = [math.nan if gone else float(v) for v, gone in zip(values, missing, strict=True)]
            return _numeric(present.pop(), floats)
        texts = ["" if k is None else level_of(v, k) for v, k in zip(values, kinds, strict=True)]
    except OverflowError:
        raise (error or ParameterError)(
            f"Column {name!r} holds a number beyond 1e308; every number must fit into a float. Rescale it, or "
            "convert the column to texts."
        ) from None
    return categories_of(texts, missing)


def categories_of(texts: list[str], missing: NDArray[np.bool_]) -> Column:
    """Return a column of these texts, with their ranks, so that texts are looked up once."""
    ranks = Ranks.of(texts)
    return Column(CATEGORY, ranks.texts, missing, ranks)


def _numeric(kind: str, values: ArrayLike) -> Column:
    array = np.asarray(values, dtype=np.float64)
    return Column(kind, array, np.isnan(array))


def kind_of(value: Any) -> str | None:
    """Return the kind of a Python value, None if it is missing, or the name of its type if it is not supported."""
    if isinstance(value, str):
        return CATEGORY
    if isinstance(value, bool | np.bool_):
        return BOOLEAN
    if isinstance(value, numbers.Real | decimal.Decimal):
        return None if value != value else NUMBER  # noqa: PLR0124  isnan fails for integers beyond 1e308
    name = type(value).__name__  # pandas is not imported
    if name in _TEXTS:
        return CATEGORY
    return None if name in ("NoneType", "NAType", "NaTType") else name


def opaque_text(value: Any) -> str:
    """Return a text for a value that never changes, whatever it is."""
    return value if isinstance(value, str) else repr(value)


def read_date(value: Any) -> tuple[np.datetime64, bool] | None:
    """Return the moment of a date or its text in UTC, and whether it has a time zone; None if it is not a date."""
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else (value, False)
    value = getattr(value, "start_time", value)  # of a period of pandas
    # Of pandas dates and of texts; Python dates have microseconds only.
    nanoseconds = getattr(value, "nanosecond", 0)
    if isinstance(value, str):
        digits = re.search(r"[.,]\d{6}(\d{1,3})", value)
        nanoseconds = int(digits[1].ljust(3, "0")) if digits else 0
        try:
            value = dt.datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, dt.date) or value != value:  # noqa: PLR0124  NaT differs from itself
        return None
    zoned = isinstance(value, dt.datetime) and value.tzinfo is not None
    if isinstance(value, dt.datetime) and zoned:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    moment = np.datetime64(value, "us")
    exact = moment + np.timedelta64(nanoseconds, "ns") if nanoseconds else moment
    return (exact, zoned) if exact.astype("M8[us]") == moment else None  # NumPy has nanoseconds until 2262


def microseconds(value: Any) -> float:
    """Return a date as columns hold it; one without a time zone is read as UTC; raise ValueError if it is none."""
    parsed = read_date(value)
    if parsed is None:
        raise ValueError(f"{value!r} is not a date")
    return float(parsed[0].astype("M8[us]").astype(np.int64))


def to_python(value: Any) -> Any:
    """Convert a NumPy or Arrow scalar to Python; keep NumPy dates, because Python dates are less exact."""
    value = _from_arrow(value)
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value


def _from_arrow(value: Any) -> Any:
    return value.as_py() if hasattr(value, "as_py") else value


def identity_for_model(value: Any) -> tuple[type, str]:
    """Return a key that differs for values that a model may distinguish: 0 and -0, None and NaN, 1 and "1"."""
    value = _from_arrow(value)
    return type(value), repr(value)


def identities_of(native: Any) -> list[tuple[type, str]]:
    """Return the identities of the values of a native column."""
    return [identity_for_model(to_python(value)) for value in native]
