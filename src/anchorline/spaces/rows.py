"""The training table, and rows that fit it: whatever form a row has, its values get the table's own types.

A value that a type cannot hold raises an error; nothing is truncated, wrapped around or lost silently.
"""

import datetime as dt
import decimal
import difflib
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np

from anchorline.errors import InstanceError, ParameterError, listed
from anchorline.spaces.columns import (
    BOOLEAN,
    CATEGORY,
    DATE,
    EXACT,
    NUMBER,
    Column,
    array_of,
    categories_of,
    dense,
    identities_of,
    identity_for_model,
    is_sparse,
    kind_of,
    level_of,
    level_text,
    names_in,
    opaque_text,
    read_date,
    read_table,
    read_values,
    row_values,
    text_of,
    to_narwhals,
    to_python,
)
from anchorline.spaces.natives import Natives, natives_of

_MAX_HINTS = 1000  # names that are searched for a similar one: searching 100,000 would take seconds
_MISSING = np.float64(np.nan).view(np.uint64)  # one key for all missing values, whatever their bits
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, so that multiplication loses nothing


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The constraints of a column's data type.

    ``whole``: it holds whole numbers only. ``categories`` maps the text of every category that the type lists to
    the category itself; it is None if the type accepts any text. ``zoned``: it has a time zone. ``days``: it
    holds dates without a time of day. ``ambiguous``: different values may have the same reading, as in a column of
    Python objects, or among the categories 1 and "1". ``decimal``: it holds decimal numbers. ``opaque``: it never
    changes, and may hold anything.
    """

    whole: bool = False
    categories: Mapping[str, Any] | None = None
    zoned: bool = False
    days: bool = False
    ambiguous: bool = False
    decimal: bool = False
    opaque: bool = False

    @classmethod
    def of(cls, dtype: Any, natives: Natives, j: int, opaque: bool) -> "ColumnType":
        """Return the constraints of column j, given its type in NumPy or narwhals."""
        if isinstance(dtype, np.dtype):
            return cls(whole=dtype.kind in "iu", ambiguous=dtype.kind == "O", opaque=opaque)
        if isinstance(dtype, nw.Categorical | nw.Enum):
            categories = natives.categories(j)
            by_text = {level_text(value): value for value in categories}
            return cls(categories=by_text, ambiguous=len(by_text) < len(categories), opaque=opaque)
        type_name = natives.type_name(j).lower()  # narwhals lacks some types
        return cls(
            whole=dtype.is_integer(),
            zoned=isinstance(dtype, nw.Datetime) and dtype.time_zone is not None,
            days=isinstance(dtype, nw.Date),
            ambiguous=type_name == "object",
            decimal=type_name.startswith("decimal"),
            opaque=opaque,
        )


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

    @classmethod
    def of(cls, frame: Any, names: Sequence[str] | None, fixed: Collection[str] = ()) -> "Schema":
        """Read a training table; raise `ParameterError` if it cannot be used. All its values are copied.

        ``fixed`` columns may hold anything.
        """
        table, own_names = read_table(frame)
        natives = natives_of(table if isinstance(table, np.ndarray) else table.to_native())
        if natives is None:
            raise ParameterError(
                f"The table is a {type(frame).__module__}.{type(frame).__name__}; it must be a pandas, Polars or "
                "Arrow table or a 2-D array. Convert it, e.g. `frame.to_pandas()`."
            )
        if 0 in table.shape:
            raise ParameterError(
                f"The table has shape {table.shape}; it must have at least one row and one column."
            )
        checked_names = _checked_names(names, own_names, table.shape[1])
        given = (
            table.T if isinstance(table, np.ndarray) else table.iter_columns()
        )  # by position is slow on wide frames
        columns = [
            read_values(column, name, None if name in fixed else ParameterError)
            for column, name in zip(given, checked_names, strict=True)
        ]
        own = [table.dtype] * len(columns) if isinstance(table, np.ndarray) else table.schema.values()
        types = [
            ColumnType.of(dtype, natives, j, opaque=checked_names[j] in fixed and columns[j].kind == CATEGORY)
            for j, dtype in enumerate(own)
        ]
        del table, given  # freed while the rows are sorted
        natives, columns, order = _in_canonical_order(natives, columns, types)
        positions = np.empty_like(order)
        positions[order] = np.arange(len(order))
        return cls(tuple(checked_names), tuple(columns), natives, tuple(types), positions)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "fields"}

    @property
    def n_rows(self) -> int:
        """The number of training rows."""
        return len(self.columns[0].values)

    @cached_property
    def fields(self) -> "tuple[Field, ...]":
        """The columns one by one."""
        parts = zip(self.names, self.columns, self.types, strict=True)
        return tuple(Field(j, name, column, kind, self.natives) for j, (name, column, kind) in enumerate(parts))

    def read(self, instance: Any, optional: Collection[str] = ()) -> tuple[tuple[Any, ...], tuple[Column, ...]]:
        """Return the row's native and read columns of one value each; raise `InstanceError` if it is not a row.

        A row may lack the ``optional`` columns, which the model never receives.
        """
        if isinstance(instance, int | np.integer) and not isinstance(instance, bool):
            if not -self.n_rows <= instance < self.n_rows:
                raise InstanceError(f"Row {instance} does not exist; the table has rows 0 to {self.n_rows - 1}.")
            at = int(self.positions[instance])
            return self.natives.row(at), tuple(column.at(at) for column in self.columns)
        natives = tuple(map(Field.cast, self.fields, self._values(instance, optional)))
        return natives, tuple(map(Field.reading, self.fields, natives))

    def _values(self, instance: Any, optional: Collection[str]) -> list[Any]:
        """Return the row's values in the order of the columns; what it may lack is that of a training row."""
        given = _as_mapping(instance, self.names)
        if given is None:
            values = _as_sequence(instance)
            needed = [name for name in self.names if name not in optional]
            if len(values) not in (len(self.names), len(needed)):
                raise InstanceError(
                    f"The row has {len(values)} values; it must have {len(self.names)}, in this order: "
                    f"{listed(self.names)}. You can also pass a dict: {{{self.names[0]!r}: ...}}."
                )
            given = dict(zip(self.names if len(values) == len(self.names) else needed, values, strict=True))
        lacking = {name: j for j, name in enumerate(self.names) if name not in given}
        missing = [name for name in lacking if name not in optional]
        if missing:
            similar = _similar(missing[0], given.keys() - {*self.names}, 1)
            hint = f" Should {similar[0]!r} be {missing[0]!r}?" if similar else ""
            raise InstanceError(
                f"The row lacks {listed(missing)}; it has {listed(given)}.{hint} "
                "Pass every column of the training table, with None for missing values."
            )
        given |= {name: self.natives.pick(j, np.zeros(1, dtype=np.intp))[0] for name, j in lacking.items()}
        return [given[name] for name in self.names]

    def read_part(self, part: Any) -> tuple[Natives, tuple[Column, ...]] | None:
        """Read many rows at once, a part of a frame (narwhals) or of a 2-D array, as if one by one.

        Returns None if its columns are not those of the table. Raises `InstanceError` for a value that the table's
        types cannot hold.
        """
        if isinstance(part, np.ndarray) and part.ndim == 2 and part.shape[1] == len(self.names):
            given = list(part.T)
        elif isinstance(part, nw.DataFrame):
            by_name = dict(zip(names_in(self.names, part.columns), part.iter_columns(), strict=True))
            if len(by_name) < part.shape[1] or not {*self.names} <= {*by_name}:
                return None
            given = [by_name[name] for name in self.names]
        else:
            return None
        natives, columns = zip(*map(Field.read_many, self.fields, given), strict=True)
        return self.natives.of_columns(natives), columns


@dataclass(frozen=True, eq=False)
class Field:
    """Column j of the training table: how a value gets its type, and which row has it.

    The *reading* of a value is its text or number, or None if the value is missing. Values with the same reading
    may still differ for a model: an object column may hold both None and NaN, or 1, 1.0 and "1", and a column of
    floats both null and NaN. So a training value is looked up by its reading and by its identity.
    """

    j: int
    name: str
    column: Column
    column_type: ColumnType
    natives: Natives

    def cast(self, value: Any) -> Any:
        """Return a native column of one value, in the training column's type."""
        if self.column_type.opaque:  # a training value with the same text, else the value as it is
            known = self._known(opaque_text(to_python(value)), value)
            return self.natives.from_value(self.j, value) if known is None else known
        value, kind = to_python(value), self.column.kind
        if np.isnat(value) if isinstance(value, np.datetime64) else kind_of(value) is None:
            return self._missing(value)
        try:
            if kind == CATEGORY:
                return self._level(value)
            if kind == DATE:
                moment = _date(value, self.column_type)
                is_object = self.column_type.ambiguous
                return self._date_object(value, moment) if is_object else self.natives.from_value(self.j, moment)
            if kind == BOOLEAN and not isinstance(value, bool) and value not in (0, 1):
                raise InstanceError(
                    f"{value!r} is neither true nor false; in the training table this column holds booleans."
                )
            return self._held(bool(value) if kind == BOOLEAN else _number(value, self.column_type))
        except InstanceError as error:
            raise InstanceError(f"Column {self.name!r}: {error}") from None
        except Exception as error:
            raise InstanceError(
                f"Column {self.name!r} is {value!r}; it must hold {kind}, as in the training table ({error})."
            ) from error

    def _held(self, number: Any) -> Any:
        """Return a number in the column's type; raise an error if it would be rounded, except to a float.

        Among Python objects, the training value with the same reading is returned, because it may be 1.0 for 1.
        """
        if self.column_type.ambiguous:
            known = self._known(float(number), number)
            if known is None or (isinstance(number, int) and to_python(known[0]) != number):  # beyond 2^53
                return self.natives.from_value(self.j, number)
            return known
        native = self.natives.from_value(self.j, number)
        held = to_python(native[0])
        if math.isinf(held) != math.isinf(number) if isinstance(held, float) else held != number:
            raise OverflowError(f"the column's type cannot hold it, only {held!r}")
        return native

    def _date_object(self, value: Any, moment: np.datetime64) -> Any:
        """Return a date of a column of Python objects, in the type of the training values."""
        known = self._known(float(moment.astype("M8[us]").astype(np.int64)), value)
        if known is not None:
            return known
        sample = self.natives.pick(self.j, np.flatnonzero(~self.column.missing)[:1])[0]
        own = moment.astype("M8[us]").item()
        if hasattr(sample, "start_time"):  # a period of pandas
            return self.natives.from_value(self.j, type(sample)(own, freq=sample.freq))
        if not isinstance(sample, dt.datetime):
            return self.natives.from_value(self.j, own.date())
        return self.natives.from_value(self.j, type(sample).fromisoformat(own.isoformat()))

    def _missing(self, value: Any) -> Any:
        """Return a missing value in the form that the training column uses."""
        known = self._known(None, value)
        if known is not None:
            return known
        try:
            return self.natives.from_value(self.j, value if self.column_type.ambiguous else None)
        except Exception as error:
            raise InstanceError(
                f"Column {self.name!r} is missing in the row; the training table has all its values, and the "
                f"column's type cannot represent a missing one ({error}). Pass a value."
            ) from error

    def _level(self, value: Any) -> Any:
        """Return the training table's own value with the same text; a new one if the type lists no categories."""
        kind, categories = kind_of(value), self.column_type.categories
        if kind not in (NUMBER, BOOLEAN, CATEGORY):
            raise InstanceError(f"{value!r} is a {kind}; it must be a text, or a number or boolean.")
        text = level_of(value, kind)
        known = self._known(text, value)
        if known is not None:
            return known
        if kind == CATEGORY and not isinstance(value, str) and self._has_only_texts:
            raise InstanceError(
                f"{value!r} is a {type(value).__name__}; it must be a text, or a number or boolean."
            )
        if categories is None:
            as_given = self.column_type.ambiguous and not self._has_only_texts
            return self.natives.from_value(self.j, value if as_given else text)
        if text not in categories:
            similar = _similar(text, categories, 3)
            hint = f"Did you mean {listed(similar)}?" if similar else f"Choose from {listed(categories)}."
            raise InstanceError(f"{value!r} is not a category of the training table. {hint}")
        return self.natives.from_value(self.j, categories[text])

    def _known(self, reading: Any, value: Any) -> Any:
        """Return the training value with this reading that a model cannot distinguish from ``value``.

        Return the first value with this reading if none is the same, and None if no row has this reading.
        """
        first = self._first_rows.get(reading)
        if first is None:
            return None
        row = self._identical_rows.get(identity_for_model(value), first)
        return self.natives.pick(self.j, np.array([row]))

    @cached_property
    def _first_rows(self) -> dict[Any, int]:
        """The first row per reading; numbers and dates of an unambiguous type need only that of missing values."""
        values, missing = self.column.values, self.column.missing
        by_value = self.column_type.ambiguous or self.column.kind == CATEGORY
        rows = np.arange(len(values)) if by_value else np.flatnonzero(missing)[:1]
        readings = values[rows].astype(object)
        readings[missing[rows]] = None
        return dict(zip(readings[::-1].tolist(), rows[::-1].tolist(), strict=True))

    @cached_property
    def _identical_rows(self) -> dict[tuple[type, str], int]:
        """The first row per identity, where values with the same reading can differ."""
        rows = np.arange(len(self.column.values))
        if not self.column_type.ambiguous:  # floats have several missing values, unless they are NumPy's own
            rows = rows[self.column.missing & (self.column.kind == NUMBER)]
        native = self.natives.pick(self.j, rows)
        if isinstance(native, np.ndarray) and not native.dtype.hasobject:
            return {}
        return dict(zip(identities_of(native)[::-1], rows[::-1].tolist(), strict=True))

    @cached_property
    def _has_only_texts(self) -> bool:
        """Whether all values are texts; if so, a new value must be a text as well."""
        column = self.natives.pick(self.j, np.flatnonzero(~self.column.missing))
        return all(isinstance(to_python(value), str) for value in column)

    def reading(self, native: Any) -> Column:
        """Read a native column of one value in the way its training column was read."""
        own, value = self.column.kind, to_python(native[0])
        kind = kind_of(value)
        if self.column_type.opaque and kind not in (NUMBER, BOOLEAN, CATEGORY, None):
            return Column(CATEGORY, np.array([opaque_text(value)], dtype=object), np.zeros(1, dtype=bool))
        if own == CATEGORY:
            text = "" if kind is None else level_of(value, kind)
            return Column(CATEGORY, np.array([text], dtype=object), np.array([kind is None]))
        read = read_values(self.natives.readable(native), self.name, InstanceError)
        if read.missing[0]:  # a missing value alone has no kind
            return Column(own, np.zeros(1), read.missing)
        return read

    def read_many(self, given: Any) -> tuple[Any, Column]:
        """Return a column in the table's own type, and as it was read; each distinct value is read once."""
        kind, values = self.column.kind, given
        if not isinstance(given, np.ndarray):
            values = given.to_native()
            values = values.to_numpy() if isinstance(getattr(values, "dtype", None), np.dtype) else None
        if values is not None and values.dtype.kind in "fiub" and kind in (NUMBER, BOOLEAN):
            model = self.natives.pick(self.j, np.arange(1))
            if isinstance(model, np.ndarray) and model.dtype == values.dtype:  # the usual case
                floats = values.astype(np.float64)
                return values.copy(), Column(kind, floats, np.isnan(floats))
        given = given.tolist() if isinstance(given, np.ndarray) else row_values(given)
        numbered: dict[Any, int] = {}
        keys = map(identity_for_model, given)
        at = np.array([numbered.setdefault(key, len(numbered)) for key in keys], dtype=np.intp)
        natives = [self.cast(given[row]) for row in np.unique(at, return_index=True)[1].tolist()]
        cells = [self.reading(native) for native in natives]
        found = np.concatenate([cell.values for cell in cells])[at]
        missing = np.concatenate([cell.missing for cell in cells])[at]
        native, kind = self.natives.joined(self.j, natives, at), cells[0].kind
        is_text = kind == CATEGORY
        return native, categories_of(found.tolist(), missing) if is_text else Column(kind, found, missing)

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


def plain(column: Column, native: Any) -> str | int | float | bool | None:
    """Return the single value of a native column for JSON; dates become ISO texts with microseconds."""
    if column.missing[0]:
        return None
    if column.kind == DATE:
        return str(np.datetime64(int(column.values[0]), "us"))
    if column.kind in (CATEGORY, BOOLEAN):
        return str(column.values[0]) if column.kind == CATEGORY else bool(column.values[0])
    value: int | float = to_python(native[0])
    if not isinstance(value, int):
        value = float(value)
        if not math.isfinite(value):
            return "Infinity" if value > 0 else "-Infinity"  # JSON has no number for it
        # Whole floats become integers, because the library, not the row, decides whether a column holds floats.
        if value.is_integer() and abs(value) < 2**53 and (value or math.copysign(1, value) > 0):
            return int(value)
    return value


def read_reference(schema: Schema, reference: Any) -> tuple[Natives, Sequence[Column]]:
    """Read the rows from which values are drawn in the types of the table, in canonical order."""
    try:
        part, _ = read_table(reference)
    except ParameterError:
        shape = getattr(reference, "shape", None)
        if shape is not None and len(shape) == 2:
            raise
        given = f"of type {type(reference).__name__}" + (f" and of shape {shape}" if shape else "")
        raise ParameterError(
            f"reference is {given}, but it must be a frame of rows, 'all' or 'near'. Type "
            "reference=frame[frame['approved']], or reference='near'."
        ) from None
    if 0 in part.shape:
        raise ParameterError(
            f"reference has shape {part.shape}; it must have at least one row. Leave it out to draw "
            "values from the whole table."
        )
    try:
        read = schema.read_part(part)
    except InstanceError as error:
        raise ParameterError(f"reference does not fit the table. {error}") from error
    if read is None:
        raise ParameterError(
            f"reference must have the columns of the table: {listed(schema.names)}. Type, say, "
            "reference=frame[frame['approved']]."
        )
    return _in_canonical_order(*read, schema.types)[:2]


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
    checked = own or given or [f"x{j}" for j in range(n_columns)]
    if len(set(checked)) < len(checked):
        raise ParameterError(f"Column names must differ, but they are {listed(checked)}. Rename one column.")
    return checked


def _as_mapping(instance: Any, own: Sequence[str]) -> dict[str, Any] | None:
    """Return the names in the table and values of a dict, a Series or a frame of one row; None for a sequence."""
    if is_sparse(instance):  # some sparse matrices are mappings of positions
        return None
    frame = to_narwhals(instance, InstanceError, eager_only=True)
    if isinstance(frame, nw.DataFrame):
        if len(frame) != 1:
            many = " To explain all rows, type `explainer.explain_many(frame)`." if len(frame) else ""
            raise InstanceError(
                f"The frame has {len(frame)} rows; it must have one. Type, say, `frame[:1]`.{many}"
            )
        names = names_in(own, frame.columns)
        pairs = list(zip(names, (row_values(column)[0] for column in frame.iter_columns()), strict=True))
    elif isinstance(instance, np.void) and instance.dtype.names is not None:  # a row of a structured array
        pairs = [(name, instance[name]) for name in instance.dtype.names]
    elif isinstance(instance, Mapping) or (hasattr(instance, "index") and hasattr(instance, "items")):
        items = list(instance.items())
        pairs = list(zip(names_in(own, [name for name, _ in items]), (value for _, value in items), strict=True))
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
    instance = array_of(instance)
    if isinstance(instance, np.ndarray) or is_sparse(instance):
        if instance.ndim != 1 and not (instance.ndim == 2 and instance.shape[0] == 1):
            many = " To explain all rows, type `explainer.explain_many(rows)`." if instance.ndim == 2 else ""
            raise InstanceError(
                f"The row has shape {instance.shape}; it must be one row. Type, say, `rows[0]`.{many}"
            )
        instance = dense(instance, InstanceError).reshape(-1)
    elif isinstance(instance, str | bytes) or not hasattr(instance, "__len__"):
        raise InstanceError(
            f"The row is a {type(instance).__name__}; it must be a dict, a Series, a frame of one row, a list of "
            "values in the order of the columns, or the position of a training row."
        )
    values = list(instance)
    if values and all(isinstance(value, list | tuple | dict | np.ndarray) for value in values):
        raise InstanceError(
            f"The row is a {type(instance).__name__} of rows; it must be one row. Type, say, "
            "`rows[0]`. To explain all rows, type `explainer.explain_many(rows)`."
        )
    return values


def _similar(word: str, names: Collection[str], n: int) -> list[str]:
    """Return up to n of the names that are similar to the word, or none if there are too many names to search."""
    return difflib.get_close_matches(word, names, n) if len(names) <= _MAX_HINTS else []


def _number(value: Any, column_type: ColumnType) -> Any:
    # An infinite number may be the text that `plain` returns for it.
    if kind_of(value) not in (NUMBER, BOOLEAN) and not (
        isinstance(value, str) and value in ("Infinity", "-Infinity")
    ):
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


def _in_canonical_order(
    natives: Natives, columns: Sequence[Column], types: Sequence[ColumnType]
) -> tuple[Natives, list[Column], np.ndarray]:
    """Sort rows, so that nothing depends on the order in which they were given; return their order (n,) as well.

    Rows are sorted by a 64-bit hash of their readings, because sorting by one number takes a fraction of the time
    that sorting by all columns takes. Rows with equal hashes are sorted by all that distinguishes them: readings,
    and values with equal readings that a model may distinguish, such as None and NaN, or 1 and True. So tables of
    the same rows are sorted to the same table, whichever library holds them.
    """
    hashes = np.zeros(len(columns[0].values), dtype=np.uint64)
    for column in columns:
        hashes ^= _keys(column)
        hashes *= _MULTIPLIER
        hashes ^= hashes >> np.uint64(32)
    order = np.argsort(hashes)
    ordered = hashes[order]
    alike = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(alike):
        first, second = order[alike], order[alike + 1]
        # Neighbors in the order suffice: where no two of them differ, no two rows with the same hash differ.
        minor = [key for key in _distinctions(natives, columns, types) if (key[first] != key[second]).any()]
        order = np.lexsort([*minor, hashes]) if minor else order
    natives = natives.reordered((j, order) for j in range(len(columns)))
    return natives, [column.taken(order) for column in columns], order


def _keys(column: Column) -> np.ndarray:
    """Return a number per reading, (n,): equal readings, and only these, have equal numbers."""
    if column.ranks is None:
        keys = np.ascontiguousarray(column.values).view(np.uint64)
    else:
        keys = column.ranks.places.astype(np.uint64)
    return np.where(column.missing, _MISSING, keys) if column.missing.any() else keys


def _distinctions(
    natives: Natives, columns: Sequence[Column], types: Sequence[ColumnType]
) -> Iterator[np.ndarray]:
    """Yield numbers per row (n,) that differ for any two rows that a model may distinguish."""
    for j, (column, column_type) in enumerate(zip(columns, types, strict=True)):
        yield _keys(column)
        native = natives.pick(j, np.arange(0))
        if isinstance(native, np.ndarray) and not native.dtype.hasobject:
            if native.dtype.kind in "iuM":  # as floats, several large ones would be equal
                yield natives.pick(j, np.arange(len(column.values))).view(f"u{native.dtype.itemsize}")
            continue
        if column.kind == DATE and "ns" in natives.type_name(j):
            present = natives.pick(j, np.flatnonzero(~column.missing))
            moments = nw.from_native(natives.readable(present), series_only=True).dt.timestamp("ns")
            yield _spread(moments.to_numpy().astype(np.int64).view(np.uint64), ~column.missing)
        large = column_type.whole and bool((np.abs(column.values[~column.missing]) >= EXACT).any())
        unlike = column_type.ambiguous or column_type.decimal or large
        rows = np.ones_like(column.missing) if unlike else column.missing & (column.kind == NUMBER)  # null and NaN
        if rows.any():
            identities = identities_of(natives.pick(j, np.flatnonzero(rows)))
            texts = [(kind.__module__, kind.__qualname__, text) for kind, text in identities]
            ranks = {text: rank for rank, text in enumerate(sorted(set(texts)))}
            yield _spread(np.array([ranks[text] for text in texts], dtype=np.uint64), rows)


def _spread(keys: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the keys at their rows, and 0 elsewhere."""
    spread = np.zeros(len(rows), dtype=np.uint64)
    spread[rows] = keys
    return spread
