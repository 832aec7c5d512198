"""Reads one row, in any of the accepted forms, into values of the training table's own types."""

import datetime as dt
import decimal
import difflib
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np

from anchorline.errors import InstanceError
from anchorline.spaces.columns import (
    BOOLEAN,
    CATEGORY,
    DATE,
    NUMBER,
    Column,
    dense,
    is_sparse,
    kind_of,
    level_of,
    listed,
    read_values,
    row_values,
    to_narwhals,
)
from anchorline.spaces.natives import Natives
from anchorline.spaces.values import Lookup, identity_for_model, to_python

_MAX_HINTS = 1000  # names that are searched for a similar one: searching 100,000 would take seconds


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The constraints of a column's data type.

    ``whole``: it holds whole numbers only. ``categories`` maps the text of every category that the type lists to
    the category itself; it is None if the type accepts any text. ``zoned``: it has a time zone. ``days``: it
    holds dates without a time of day. ``ambiguous``: different values may have the same reading, as in a column of
    Python objects, or among the categories 1 and "1". ``decimal``: it holds decimal numbers.
    """

    whole: bool = False
    categories: Mapping[str, Any] | None = None
    zoned: bool = False
    days: bool = False
    ambiguous: bool = False
    decimal: bool = False


@dataclass(frozen=True, eq=False)
class Schema:
    """Names, kinds and native columns of the training table, which every row must match.

    The rows are in canonical order, so that nothing can depend on the order in which they were given. What was
    row i of the given table is now at ``positions[i]``.
    """

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    natives: Natives
    types: tuple[ColumnType, ...]
    positions: np.ndarray
    _lookups: dict[int, Lookup] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_lookups": {}}  # rebuilt when they are needed

    @property
    def n_rows(self) -> int:
        """The number of training rows."""
        return len(self.columns[0].values)

    def read(self, instance: Any) -> tuple[tuple[Any, ...], tuple[Column, ...]]:
        """Return the row's native and read columns of one value each; raise `InstanceError` if it is not a row."""
        if isinstance(instance, int | np.integer) and not isinstance(instance, bool):
            if not -self.n_rows <= instance < self.n_rows:
                raise InstanceError(f"Row {instance} does not exist; the table has rows 0 to {self.n_rows - 1}.")
            at = int(self.positions[instance])
            read = [Column(own.kind, own.values[at : at + 1], own.missing[at : at + 1]) for own in self.columns]
            return self.natives.row(at), tuple(read)
        natives = tuple(self.cast(j, value) for j, value in enumerate(self._values(instance)))
        return natives, tuple(self.reading(j, native) for j, native in enumerate(natives))

    def reading(self, j: int, native: Any) -> Column:
        """Read a native column of one value in the way its training column was read."""
        own, value = self.columns[j].kind, to_python(native[0])
        kind = kind_of(value)
        if own == CATEGORY:
            text = "" if kind is None else level_of(value, kind)
            return Column(CATEGORY, np.array([text], dtype=object), np.array([kind is None]))
        read = read_values(self.natives.readable(native), self.names[j], InstanceError)
        if read.missing[0]:  # a missing value alone has no kind
            return Column(own, np.zeros(1), read.missing)
        return read

    def unseen(self, columns: Sequence[Column]) -> dict[str, str]:
        """Return the columns in which no training row is like the row, with what is new."""
        notes = {self.names[j]: self._lookup(j).unseen(cell) for j, cell in enumerate(columns)}
        return {name: note for name, note in notes.items() if note}

    def unclear(self, instance: Any) -> list[str]:
        """Return the columns whose JSON value does not determine the value that a model receives.

        In these columns, a training row has the same JSON value as this row but another value, or no training row
        has this value and the column may hold it in several types.
        """
        unclear = []
        for j, (native, read) in enumerate(zip(*self.read(instance), strict=True)):
            column, json_text = self.columns[j], repr(plain(read, native))
            same = column.missing if read.missing[0] else (column.values == read.values[0]) & ~column.missing
            rows = np.flatnonzero(same)
            others = self.natives.pick(j, rows)
            cells = [Column(column.kind, column.values[[row]], column.missing[[row]]) for row in rows]
            matches = [i for i, cell in enumerate(cells) if repr(plain(cell, others[i : i + 1])) == json_text]
            unseen = self.types[j].ambiguous and not len(rows)  # JSON does not record the type of the value
            if unseen or {identity_for_model(others[i]) for i in matches} - {identity_for_model(native[0])}:
                unclear.append(self.names[j])
        return unclear

    def _values(self, instance: Any) -> list[Any]:
        """Return the row's values in the order of the columns."""
        given = _as_mapping(instance)
        if given is None:
            values = _as_sequence(instance)
            if len(values) != len(self.names):
                raise InstanceError(
                    f"The row has {len(values)} values; it must have {len(self.names)}, in this order: "
                    f"{listed(self.names)}. You can also pass a dict: {{{self.names[0]!r}: ...}}."
                )
            return values
        missing = [name for name in self.names if name not in given]
        if missing:
            similar = _similar(missing[0], given.keys() - {*self.names}, 1)
            hint = f" Should {similar[0]!r} be {missing[0]!r}?" if similar else ""
            raise InstanceError(
                f"The row lacks {listed(missing)}; it has {listed(given)}.{hint} "
                "Pass every column of the training table, with None for missing values."
            )
        return [given[name] for name in self.names]

    def cast(self, j: int, value: Any) -> Any:
        """Return a native column of one value, in the training column's type."""
        value = to_python(value)
        column, name = self.columns[j], self.names[j]
        if _is_missing(value):
            return self._cast_missing(j, value)
        try:
            if column.kind == CATEGORY:
                return self._cast_level(j, value)
            converted = {NUMBER: _number, BOOLEAN: _boolean, DATE: _date}[column.kind](value, self.types[j])
            cast = self._cast_ambiguous if self.types[j].ambiguous else self._cast_exact
            return cast(j, converted)
        except InstanceError as error:
            raise InstanceError(f"Column {name!r}: {error}") from None
        except Exception as error:
            raise InstanceError(
                f"Column {name!r} is {value!r}; it must hold {column.kind}, as in the training table ({error})."
            ) from error

    def _cast_exact(self, j: int, value: Any) -> Any:
        """Return the value in the column's type; raise an error if it would be rounded, except to a float."""
        native = self.natives.from_value(j, value)
        if self.columns[j].kind == NUMBER:
            held = to_python(native[0])
            lost = math.isinf(held) != math.isinf(value) if isinstance(held, float) else held != value
            if lost:
                raise OverflowError(f"the column's type cannot hold it, only {held!r}")
        return native

    def _cast_ambiguous(self, j: int, value: Any) -> Any:
        """Return the training value with the same reading, because it may be 1.0 for 1; else the given value."""
        match = self._training_value(j, float(value), value)
        if match is None or (isinstance(value, int) and to_python(match[0]) != value):  # beyond 2^53
            return self.natives.from_value(j, value)
        return match

    def _training_value(self, j: int, reading: Any, value: Any) -> Any:
        """Return the training column's own value with this reading as a native column, or None if it has none."""
        row = self._lookup(j).find_row(reading, value)
        return None if row is None else self.natives.pick(j, np.array([row]))

    def _lookup(self, j: int) -> Lookup:
        if j not in self._lookups:
            self._lookups[j] = Lookup(partial(self.natives.pick, j), self.columns[j], self.types[j].ambiguous)
        return self._lookups[j]

    def _cast_missing(self, j: int, value: Any) -> Any:
        """Return a missing value in the form that the training column uses."""
        match = self._training_value(j, None, value)
        if match is not None:
            return match
        try:
            return self.natives.from_value(j, value if self.types[j].ambiguous else None)
        except Exception as error:
            raise InstanceError(
                f"Column {self.names[j]!r} is missing in the row; the training table has all its values, and the "
                f"column's type cannot represent a missing one ({error}). Pass a value."
            ) from error

    def _cast_level(self, j: int, value: Any) -> Any:
        """Return the training table's own value with the same text; a new one if the type lists no categories."""
        kind = kind_of(value)
        if kind not in (NUMBER, BOOLEAN, CATEGORY):
            raise InstanceError(f"{value!r} is a {kind}; it must be a text, or a number or boolean.")
        text = level_of(value, kind)
        match = self._training_value(j, text, value)
        if match is not None:
            return match
        categories = self.types[j].categories
        if categories is None:
            as_given = self.types[j].ambiguous and not self._lookup(j).only_texts
            return self.natives.from_value(j, value if as_given else text)
        if text not in categories:
            similar = _similar(text, categories, 3)
            hint = f"Did you mean {listed(similar)}?" if similar else f"Choose from {listed(categories)}."
            raise InstanceError(f"{value!r} is not a category of the training table. {hint}")
        return self.natives.from_value(j, categories[text])


def _similar(word: str, names: Collection[str], n: int) -> list[str]:
    """Return up to n of the names that are similar to the word, or none if there are too many names to search."""
    return difflib.get_close_matches(word, names, n) if len(names) <= _MAX_HINTS else []


def plain(column: Column, native: Any) -> str | int | float | bool | None:
    """Return the single value of a native column for JSON; dates become ISO texts with microseconds."""
    if column.missing[0]:
        return None
    if column.kind == DATE:
        return str(np.datetime64(int(column.values[0]), "us"))
    if column.kind == CATEGORY:
        return str(column.values[0])
    if column.kind == BOOLEAN:
        return bool(column.values[0])
    value = native[0]
    return _plain_number(value.as_py() if hasattr(value, "as_py") else value)


def _plain_number(value: Any) -> str | int | float:
    if isinstance(value, (int, np.integer)):
        return int(value)
    number = float(value)
    if not math.isfinite(number):
        return "Infinity" if number > 0 else "-Infinity"  # JSON has no number for it
    # Whole floats become integers, because the library, not the row, decides whether a column holds floats.
    whole = number.is_integer() and abs(number) < 2**53 and (number or math.copysign(1, number) > 0)
    return int(number) if whole else number


def _as_mapping(instance: Any) -> dict[str, Any] | None:
    """Return names and values of a dict, a pandas Series or a frame of one row; None for a plain sequence."""
    if is_sparse(instance):  # some sparse matrices are mappings of positions
        return None
    frame = to_narwhals(instance, InstanceError, eager_only=True)
    if isinstance(frame, nw.DataFrame):
        if len(frame) != 1:
            many = " To explain all rows, type `explainer.explain_many(frame)`." if len(frame) else ""
            raise InstanceError(
                f"The frame has {len(frame)} rows; it must have one. Type, say, `frame[:1]`.{many}"
            )
        pairs = [(str(column.name), row_values(column)[0]) for column in frame.iter_columns()]
    elif isinstance(instance, Mapping) or (hasattr(instance, "index") and hasattr(instance, "items")):
        pairs = [(str(name), value) for name, value in instance.items()]
    else:
        return None
    values = dict(pairs)
    if len(values) < len(pairs):
        twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
        raise InstanceError(
            f"The row has {listed(twice)} more than once; every column must occur once. Rename one of them."
        )
    return values


def _as_sequence(instance: Any) -> list[Any]:
    if isinstance(instance, str | bytes) or not (hasattr(instance, "__len__") or is_sparse(instance)):
        raise InstanceError(
            f"The row is a {type(instance).__name__}; it must be a dict, a Series, a frame of one row, a list of "
            "values in the order of the columns, or the position of a training row."
        )
    if isinstance(instance, np.ndarray) or is_sparse(instance):
        if instance.ndim != 1 and not (instance.ndim == 2 and instance.shape[0] == 1):
            many = " To explain all rows, type `explainer.explain_many(rows)`." if instance.ndim == 2 else ""
            raise InstanceError(
                f"The row has shape {instance.shape}; it must be one row. Type, say, `rows[0]`.{many}"
            )
        instance = dense(instance, InstanceError).reshape(-1)
    values = list(instance)
    if values and all(isinstance(value, list | tuple | dict | np.ndarray) for value in values):
        raise InstanceError(
            f"The row is a {type(instance).__name__} of rows; it must be one row. Type, say, "
            "`rows[0]`. To explain all rows, type `explainer.explain_many(rows)`."
        )
    return values


def _is_missing(value: Any) -> bool:
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return kind_of(value) is None


def _number(value: Any, column_type: ColumnType) -> Any:
    if kind_of(value) not in (NUMBER, BOOLEAN) and not _is_infinity_text(value):
        raise InstanceError(
            f"{value!r} is not a number; this column holds numbers. Pass one without quotes, or None."
        )
    if column_type.decimal:
        return decimal.Decimal(str(value))  # the number as it is written: 7.8, not 7.79999...
    if column_type.ambiguous and not isinstance(value, str):
        return value
    if not column_type.whole:
        return float(value)
    if value in (math.inf, -math.inf) or int(value) != value:
        raise InstanceError(f"{value!r} is not a whole number; this column holds whole numbers only.")
    return int(value)


def _is_infinity_text(value: Any) -> bool:
    """Return whether the value is the text that `plain` returns for an infinite number."""
    return isinstance(value, str) and value in ("Infinity", "-Infinity")


def _boolean(value: Any, column_type: ColumnType) -> bool:
    if isinstance(value, bool) or value in (0, 1):
        return bool(value)
    raise InstanceError(f"{value!r} is neither true nor false; in the training table this column holds booleans.")


def _date(value: Any, column_type: ColumnType) -> np.datetime64:
    """Return a moment in UTC; a value without a time zone is read as UTC if the column has one."""
    parsed = read_date(value)
    if parsed is None:
        raise InstanceError(f"{value!r} is not a date. Type, say, '2018-03-04' or '2018-03-04 12:30'.")
    moment, zoned = parsed
    if zoned and not column_type.zoned:
        raise InstanceError(
            f"{value!r} has a time zone; in the training table this column has none. Remove the time zone."
        )
    if column_type.days and moment.astype("M8[D]") != moment:
        raise InstanceError(f"{value!r} has a time of day; this column holds days. Remove the time of day.")
    return moment


def read_date(value: Any) -> tuple[np.datetime64, bool] | None:
    """Return the moment of a date or its text in UTC, and whether it has a time zone; None if it is not a date."""
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else (value, False)
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


def types_of(table: Any, natives: Natives) -> tuple[ColumnType, ...]:
    """Return the constraints of the columns' data types."""
    if isinstance(table, np.ndarray):
        kind = table.dtype.kind
        return tuple(ColumnType(whole=kind in "iu", ambiguous=kind == "O") for _ in range(table.shape[1]))
    dtypes: list[Any] = list(nw.from_native(table, eager_only=True).schema.values())
    return tuple(_type_of(dtype, natives, j) for j, dtype in enumerate(dtypes))


def _type_of(dtype: Any, natives: Natives, j: int) -> ColumnType:
    if isinstance(dtype, nw.Categorical | nw.Enum):
        categories = natives.categories(j)
        by_text = {level_of(value, kind_of(value) or CATEGORY): value for value in categories}
        return ColumnType(categories=by_text, ambiguous=len(by_text) < len(categories))
    empty = natives.pick(j, np.zeros(0, dtype=np.intp))
    type_name = str(empty.type if hasattr(empty, "type") else empty.dtype).lower()  # narwhals lacks some types
    return ColumnType(
        whole=dtype.is_integer(),
        zoned=isinstance(dtype, nw.Datetime) and dtype.time_zone is not None,
        days=isinstance(dtype, nw.Date),
        ambiguous=type_name == "object",
        decimal=type_name.startswith("decimal"),
    )
