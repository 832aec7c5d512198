"""One row, however it comes, as values of the training table's own types."""

import datetime as dt
import decimal
import difflib
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping
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
    kind_of,
    level_of,
    listed,
    opened,
    read_values,
    row_values,
)
from anchorline.spaces.natives import Natives
from anchorline.spaces.values import Lookup, as_seen, unwrapped

_MAX_HINTS = 1000  # names among which a near one is looked for: of 100,000 it would take seconds


@dataclass(frozen=True, slots=True)
class Type:
    """What a column's data type promises: whole numbers only, listed categories, a time zone, no times.

    ``categories`` are the listed ones by their texts, as the table writes them; None: any text will do.
    ``loose``: values that read alike may differ: Python objects, or the categories 1 and "1".
    """

    whole: bool = False
    categories: Mapping[str, Any] | None = None
    zoned: bool = False
    days: bool = False
    loose: bool = False
    decimal: bool = False


@dataclass(frozen=True, eq=False)
class Schema:
    """Names, kinds and native columns of the training table: what a row has to fit."""

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    natives: Natives
    types: tuple["Type", ...]
    _lookups: dict[int, Lookup] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_lookups": {}}  # made again where they are needed

    @property
    def n_rows(self) -> int:
        """Training rows."""
        return len(self.columns[0].values)

    def read(self, instance: Any) -> tuple[tuple[Any, ...], tuple[Column, ...]]:
        """The row's columns of one value each, native and as read; `InstanceError` if this is no row."""
        if isinstance(instance, int | np.integer) and not isinstance(instance, bool):
            if not -self.n_rows <= instance < self.n_rows:
                raise InstanceError(f"Row {instance} was asked for; the table has rows 0 to {self.n_rows - 1}.")
            at = int(instance) % self.n_rows
            read = [Column(own.kind, own.values[at : at + 1], own.missing[at : at + 1]) for own in self.columns]
            return self.natives.row(at), tuple(read)
        natives = tuple(self._cast(j, value) for j, value in enumerate(self._values(instance)))
        return natives, tuple(self._reading(j, native) for j, native in enumerate(natives))

    def _reading(self, j: int, native: Any) -> Column:
        """A native column of one value, read as its training column was."""
        own, value = self.columns[j].kind, unwrapped(native[0])
        kind = kind_of(value)
        if own == CATEGORY:
            text = "" if kind is None else level_of(value, kind)
            return Column(CATEGORY, np.array([text], dtype=object), np.array([kind is None]))
        read = read_values(self.natives.readable(native), self.names[j], InstanceError)
        if read.missing[0]:  # of a hole alone no kind is known
            return Column(own, np.zeros(1), read.missing)
        return read

    def unclear(self, instance: Any) -> list[str]:
        """Columns in which a training row is told like this row but has another value, as a model may see it."""
        found = []
        for j, (native, read) in enumerate(zip(*self.read(instance), strict=True)):
            column, told = self.columns[j], repr(plain(read, native))
            same = column.missing if read.missing[0] else (column.values == read.values[0]) & ~column.missing
            where = np.flatnonzero(same)
            others = self.natives.pick(j, where)
            rows = [Column(column.kind, column.values[[at]], column.missing[[at]]) for at in where]
            as_told = [i for i, row in enumerate(rows) if repr(plain(row, others[i : i + 1])) == told]
            unseen = self.types[j].loose and not len(where)  # what is told does not tell its type
            if unseen or {as_seen(others[i]) for i in as_told} - {as_seen(native[0])}:
                found.append(self.names[j])
        return found

    def _values(self, instance: Any) -> list[Any]:
        """The row's values in the order of the columns."""
        given = _as_mapping(instance)
        if given is None:
            values = _as_sequence(instance)
            if len(values) != len(self.names):
                raise InstanceError(
                    f"The row has {len(values)} values; needed {len(self.names)}, in this order: "
                    f"{listed(self.names)}. Or give a dict: {{{self.names[0]!r}: ...}}."
                )
            return values
        missing = [name for name in self.names if name not in given]
        if missing:
            near = _near(missing[0], given.keys() - {*self.names}, 1)
            hint = f" Did you mean {missing[0]!r} by {near[0]!r}?" if near else ""
            raise InstanceError(
                f"The row lacks {listed(missing)}; it has {listed(given)}.{hint} "
                "Give every column of the training table; None where a value is missing."
            )
        return [given[name] for name in self.names]

    def _cast(self, j: int, value: Any) -> Any:
        """A native column of one value, of the training column's type."""
        value = unwrapped(value)
        column, name = self.columns[j], self.names[j]
        if _is_missing(value):
            return self._hole(j, value)
        try:
            if column.kind == CATEGORY:
                return self._level(j, value)
            own = {NUMBER: _number, BOOLEAN: _boolean, DATE: _date}[column.kind](value, self.types[j])
            return self._loose(j, own) if self.types[j].loose else self._strict(j, own)
        except InstanceError as error:
            raise InstanceError(f"Column {name!r}: {error}") from None
        except Exception as error:
            raise InstanceError(
                f"Column {name!r} is {value!r}; needed {column.kind}, as in the training table ({error})."
            ) from error

    def _strict(self, j: int, value: Any) -> Any:
        """The value in the column's type; refused where that would round it, though floats may lose digits."""
        native = self.natives.one(j, value)
        if self.columns[j].kind == NUMBER:
            held = unwrapped(native[0])
            lost = math.isinf(held) != math.isinf(value) if isinstance(held, float) else held != value
            if lost:
                raise OverflowError(f"its type cannot hold it, only {held!r}")
        return native

    def _loose(self, j: int, value: Any) -> Any:
        """The training table's own number or boolean that reads alike, else the given one; 1 may be 1.0 there."""
        known = self._known(j, float(value), value)
        if known is None or (isinstance(value, int) and unwrapped(known[0]) != value):  # beyond 2^53
            return self.natives.one(j, value)
        return known

    def _known(self, j: int, reading: Any, value: Any) -> Any:
        """The training column's own value that is read so, as a column; None where there is none."""
        row = self._lookup(j).row(reading, value)
        return None if row is None else self.natives.pick(j, np.array([row]))

    def _lookup(self, j: int) -> Lookup:
        if j not in self._lookups:
            self._lookups[j] = Lookup(partial(self.natives.pick, j), self.columns[j], self.types[j].loose)
        return self._lookups[j]

    def _hole(self, j: int, value: Any) -> Any:
        """A missing value, as the training column writes it."""
        known = self._known(j, None, value)
        if known is not None:
            return known
        try:
            return self.natives.one(j, value if self.types[j].loose else None)
        except Exception as error:
            raise InstanceError(
                f"Column {self.names[j]!r} is missing in the row; in the training table it never is, and its "
                f"type cannot say so ({error}). Fill it in."
            ) from error

    def _level(self, j: int, value: Any) -> Any:
        """The training table's own value of the same text; a new one where the type lists no categories."""
        kind = kind_of(value)
        if kind not in (NUMBER, BOOLEAN, CATEGORY):
            raise InstanceError(f"{value!r} is a {kind}; needed a text, or a number or boolean told as one.")
        text = level_of(value, kind)
        known = self._known(j, text, value)
        if known is not None:
            return known
        categories = self.types[j].categories
        if categories is None:
            as_given = self.types[j].loose and not self._lookup(j).only_texts
            return self.natives.one(j, value if as_given else text)
        if text not in categories:
            near = _near(text, categories, 3)
            hint = f"Did you mean {listed(near)}?" if near else f"Known are {listed(categories)}."
            raise InstanceError(f"{value!r} is no category of the training table. {hint}")
        return self.natives.one(j, categories[text])


def _near(word: str, known: Collection[str], n: int) -> list[str]:
    """Up to n of the known that may have been meant."""
    return difflib.get_close_matches(word, known, n) if len(known) <= _MAX_HINTS else []


def plain(column: Column, native: Any) -> str | int | float | bool | None:
    """The only value of a native column as JSON can hold it; dates as ISO texts, microseconds kept."""
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
    # Whole floats are told as integers: whether a library holds a column as floats says nothing of the row.
    whole = number.is_integer() and abs(number) < 2**53 and (number or math.copysign(1, number) > 0)
    return int(number) if whole else number


def _as_mapping(instance: Any) -> dict[str, Any] | None:
    """Names to values, of a dict, a pandas Series or a frame of one row; None of a bare sequence."""
    frame = opened(instance, InstanceError, eager_only=True)
    if isinstance(frame, nw.DataFrame):
        if len(frame) != 1:
            raise InstanceError(f"The frame has {len(frame)} rows; needed one. Type, say, `frame[:1]`.")
        pairs = [(str(column.name), row_values(column)[0]) for column in frame.iter_columns()]
    elif isinstance(instance, Mapping) or (hasattr(instance, "index") and hasattr(instance, "items")):
        pairs = [(str(name), value) for name, value in instance.items()]
    else:
        return None
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
        raise InstanceError(f"The row has {listed(twice)} more than once; needed every column once. Rename one.")
    return found


def _as_sequence(instance: Any) -> list[Any]:
    if isinstance(instance, str | bytes) or not hasattr(instance, "__len__"):
        raise InstanceError(
            f"The row is a {type(instance).__name__}; needed a dict, a Series, a frame of one row, a list of "
            "values in the order of the columns, or the position of a training row."
        )
    if isinstance(instance, np.ndarray):
        if instance.ndim == 2 and len(instance) == 1:
            instance = instance[0]
        if instance.ndim != 1:
            raise InstanceError(f"The row has shape {instance.shape}; needed one row. Type, say, `rows[0]`.")
    return list(instance)


def _is_missing(value: Any) -> bool:
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return kind_of(value) is None


def _number(value: Any, column_type: Type) -> Any:
    if kind_of(value) not in (NUMBER, BOOLEAN) and not _is_told_infinity(value):
        raise InstanceError(f"{value!r} is no number; in the training table this column holds numbers.")
    if column_type.decimal:
        return decimal.Decimal(str(value))  # as it is written: 7.8, not 7.79999...
    if column_type.loose and not isinstance(value, str):
        return value
    if not column_type.whole:
        return float(value)
    if value in (math.inf, -math.inf) or int(value) != value:
        raise InstanceError(f"{value!r} is no whole number; this column holds whole numbers only.")
    return int(value)


def _is_told_infinity(value: Any) -> bool:
    """As `plain` tells it."""
    return isinstance(value, str) and value in ("Infinity", "-Infinity")


def _boolean(value: Any, column_type: Type) -> bool:
    if isinstance(value, bool) or value in (0, 1):
        return bool(value)
    raise InstanceError(f"{value!r} is neither true nor false; in the training table this column holds booleans.")


def _date(value: Any, column_type: Type) -> np.datetime64:
    """A moment in UTC; without time zone it is taken as UTC where the column has one."""
    found = read_date(value)
    if found is None:
        raise InstanceError(f"{value!r} is no date; needed one like '2018-03-04' or '2018-03-04 12:30'.")
    moment, zoned = found
    if zoned and not column_type.zoned:
        raise InstanceError(
            f"{value!r} has a time zone; in the training table this column has none. Leave it out."
        )
    if column_type.days and moment.astype("M8[D]") != moment:
        raise InstanceError(f"{value!r} has a time of day; this column holds days. Leave it out.")
    return moment


def read_date(value: Any) -> tuple[np.datetime64, bool] | None:
    """A moment in UTC, of a date, its text or NumPy's, and whether it has a time zone; None: it is no date."""
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else (value, False)
    beyond = getattr(value, "nanosecond", 0)  # of pandas; Python's dates end at microseconds, and cut texts there
    if isinstance(value, str):
        digits = re.search(r"[.,]\d{6}(\d{1,3})", value)
        beyond = int(digits[1].ljust(3, "0")) if digits else 0
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
    exact = moment + np.timedelta64(beyond, "ns") if beyond else moment
    return (exact, zoned) if exact.astype("M8[us]") == moment else None  # nanoseconds end in 2262


def types_of(table: Any, natives: Natives) -> tuple[Type, ...]:
    """What the columns' data types promise."""
    if isinstance(table, np.ndarray):
        kind = table.dtype.kind
        return tuple(Type(whole=kind in "iu", loose=kind == "O") for _ in range(table.shape[1]))
    dtypes: list[Any] = list(nw.from_native(table, eager_only=True).schema.values())
    return tuple(_type_of(dtype, natives, j) for j, dtype in enumerate(dtypes))


def _type_of(dtype: Any, natives: Natives, j: int) -> Type:
    if isinstance(dtype, nw.Categorical | nw.Enum):
        categories = natives.categories(j)
        by_text = {level_of(value, kind_of(value) or CATEGORY): value for value in categories}
        return Type(categories=by_text, loose=len(by_text) < len(categories))
    empty = natives.pick(j, np.zeros(0, dtype=np.intp))
    called = str(empty.type if hasattr(empty, "type") else empty.dtype).lower()  # not all are known to narwhals
    return Type(
        whole=dtype.is_integer(),
        zoned=isinstance(dtype, nw.Datetime) and dtype.time_zone is not None,
        days=isinstance(dtype, nw.Date),
        loose=called == "object",
        decimal=called.startswith("decimal"),
    )
