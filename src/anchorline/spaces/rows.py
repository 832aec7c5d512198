"""One row, however it comes, as values of the training table's own types."""

import datetime as dt
import decimal
import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np

from anchorline.columns import BOOLEAN, CATEGORY, DATE, NUMBER, Column, kind_of, level_of, listed, read_values
from anchorline.errors import InstanceError
from anchorline.spaces.attributes import level_texts
from anchorline.spaces.natives import Natives, as_seen


@dataclass(frozen=True, slots=True)
class Type:
    """What a column's data type promises: whole numbers only, listed categories, a time zone, no times.

    ``categories`` are the listed ones by their texts, as the table writes them; None: any text will do.
    ``loose``: it promises nothing, the values are Python objects.
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
    _seen: dict[int, dict[Any, int]] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_seen": {}}  # found again where it is needed

    @property
    def n_rows(self) -> int:
        """Training rows."""
        return len(self.columns[0].values)

    def read(self, instance: Any) -> tuple[tuple[Any, ...], tuple[Column, ...]]:
        """The row's columns of one value each, native and as read; `InstanceError` if this is no row."""
        if isinstance(instance, int | np.integer) and not isinstance(instance, bool):
            if not -self.n_rows <= instance < self.n_rows:
                raise InstanceError(f"Row {instance} was asked for; the table has rows 0 to {self.n_rows - 1}.")
            at = np.array([int(instance) % self.n_rows])
            natives = tuple(self.natives.pick(j, at) for j in range(len(self.names)))
            read = [Column(column.kind, column.values[at], column.missing[at]) for column in self.columns]
        else:
            natives = tuple(self._cast(j, value) for j, value in enumerate(self._values(instance)))
            values = map(self.natives.readable, natives)
            read = [read_values(*pair, InstanceError) for pair in zip(values, self.names, strict=True)]
        return natives, tuple(as_kind(one, own.kind) for one, own in zip(read, self.columns, strict=True))

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
            if {as_seen(others[i]) for i in as_told} - {as_seen(native[0])}:
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
            near = difflib.get_close_matches(missing[0], [name for name in given if name not in self.names], 1)
            hint = f" Did you mean {missing[0]!r} by {near[0]!r}?" if near else ""
            raise InstanceError(
                f"The row lacks {listed(missing)}; it has {listed(given)}.{hint} "
                "Give every column of the training table; None where a value is missing."
            )
        return [given[name] for name in self.names]

    def _cast(self, j: int, value: Any) -> Any:
        """A native column of one value, of the training column's type."""
        value = _unwrapped(value)
        column, name = self.columns[j], self.names[j]
        if _is_missing(value):
            return self._hole(j, value)
        try:
            if column.kind == CATEGORY:
                return self._level(j, value)
            to_plain = {NUMBER: _number, BOOLEAN: _boolean, DATE: _date}[column.kind]
            given, value = value, to_plain(value, self.types[j])
            if self.types[j].loose:
                where = np.flatnonzero((column.values == value) & ~column.missing)
                if len(where):
                    return self._like(j, where, given)
            return self.natives.one(j, value)
        except InstanceError as error:
            raise InstanceError(f"Column {name!r}: {error}") from None
        except Exception as error:
            raise InstanceError(
                f"Column {name!r} is {value!r}; needed {column.kind}, as in the training table ({error})."
            ) from error

    def _like(self, j: int, where: np.ndarray, value: Any) -> Any:
        """Of training rows that read alike the one whose value a model cannot tell from the given; else the first.

        An object column may hold both None and NaN, or 1, 1.0 and "1"; a column of floats both null and NaN.
        """
        first, own = self.natives.pick(j, where[:1]), as_seen(value)
        if as_seen(_unwrapped(first[0])) == own:
            return first
        if j not in self._seen:
            column = self.natives.pick(j, np.arange(self.n_rows))
            self._seen[j] = {as_seen(_unwrapped(native)): at for at, native in enumerate(column)}
        at = self._seen[j].get(own)
        return first if at is None else self.natives.pick(j, np.array([at]))

    def _hole(self, j: int, value: Any) -> Any:
        """A missing value, as the training column writes it."""
        where = np.flatnonzero(self.columns[j].missing)
        if len(where):
            return self._like(j, where, value)
        try:
            return self.natives.one(j, None)
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
        text, column = level_of(value, kind), self.columns[j]
        where = np.flatnonzero((column.values == text) & ~column.missing)
        if len(where):
            return self._like(j, where, value)
        categories = self.types[j].categories
        if categories is None:
            return self.natives.one(j, text)
        if text not in categories:
            near = difflib.get_close_matches(text, categories, 3)
            hint = f"Did you mean {listed(near)}?" if near else f"Known are {listed(categories)}."
            raise InstanceError(f"{value!r} is no category of the training table. {hint}")
        return self.natives.one(j, categories[text])


def _unwrapped(value: Any) -> Any:
    """A Python value, of NumPy's; dates stay, which Python's cannot hold as exactly."""
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value


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
    if isinstance(value, int | np.integer):
        return int(value)
    number = float(value)
    if not math.isfinite(number):
        return "Infinity" if number > 0 else "-Infinity"  # JSON has no number for it
    # Whole floats are told as integers: whether a library holds a column as floats says nothing of the row.
    return int(number) if abs(number) < 2**53 and str(number).endswith(".0") and str(number) != "-0.0" else number


def as_kind(column: Column, kind: str) -> Column:
    """A column of one value, read alone, as the kind of its training column."""
    if column.missing[0]:
        return Column(kind, np.array([""] if kind == CATEGORY else [0.0], dtype=object), column.missing)
    if kind == CATEGORY and column.kind != CATEGORY:
        return Column(kind, np.array([text for text, _ in level_texts(column)], dtype=object), column.missing)
    return column


def _as_mapping(instance: Any) -> dict[str, Any] | None:
    """Names to values, of a dict, a pandas Series or a frame of one row; None of a bare sequence."""
    frame = nw.from_native(instance, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        if len(frame) != 1:
            raise InstanceError(f"The frame has {len(frame)} rows; needed one. Type, say, `frame[:1]`.")
        # By position: frame[0] of whole-number labels would be a row.
        return {str(name): frame[:, j].to_list()[0] for j, name in enumerate(frame.columns)}
    if isinstance(instance, Mapping) or (hasattr(instance, "index") and hasattr(instance, "items")):
        return {str(name): value for name, value in instance.items()}
    return None


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


def _number(value: Any, column_type: Type) -> int | float | decimal.Decimal:
    if kind_of(value) not in (NUMBER, BOOLEAN) and not _is_told_infinity(value):
        raise InstanceError(f"{value!r} is no number; in the training table this column holds numbers.")
    if column_type.decimal and isinstance(value, int | decimal.Decimal):
        return decimal.Decimal(value)
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


def _date(value: Any, column_type: Type) -> Any:
    """A datetime; without time zone it is taken as UTC where the column has one."""
    value, told = read_date(value), value
    if not isinstance(value, dt.date):
        raise InstanceError(f"{told!r} is no date; needed one like '2018-03-04' or '2018-03-04 12:30'.")
    zoned = getattr(value, "tzinfo", None) is not None
    if zoned and not column_type.zoned:
        raise InstanceError(f"{told!r} has a time zone; in the training table this column has none. Leave it out.")
    if not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    if column_type.days:
        if value.time() != dt.time():
            raise InstanceError(f"{told!r} has a time of day; this column holds days. Leave it out.")
        return value.date()
    return value.replace(tzinfo=dt.UTC) if column_type.zoned and not zoned else value


def read_date(value: Any) -> Any:
    """A text or NumPy date as Python's date; anything else as it is."""
    if isinstance(value, str):
        try:
            return dt.datetime.fromisoformat(value)
        except ValueError:
            return value
    return value.astype("datetime64[us]").item() if isinstance(value, np.datetime64) else value


def types_of(table: Any, natives: Natives) -> tuple[Type, ...]:
    """What the columns' data types promise."""
    if isinstance(table, np.ndarray):
        kind = table.dtype.kind
        return tuple(Type(whole=kind in "iu", loose=kind == "O") for _ in range(table.shape[1]))
    dtypes: list[Any] = list(nw.from_native(table, eager_only=True).schema.values())
    return tuple(
        Type(
            whole=dtype.is_integer(),
            categories=_by_text(natives.categories(j)) if isinstance(dtype, nw.Categorical | nw.Enum) else None,
            zoned=isinstance(dtype, nw.Datetime) and dtype.time_zone is not None,
            days=isinstance(dtype, nw.Date),
            loose=dtype == nw.Object,
            decimal=dtype == nw.Decimal,
        )
        for j, dtype in enumerate(dtypes)
    )


def _by_text(categories: Iterable[Any]) -> dict[str, Any]:
    return {level_of(value, kind_of(value) or CATEGORY): value for value in categories}
