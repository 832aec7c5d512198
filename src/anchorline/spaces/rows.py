"""One row, however it comes, as values of the training table's own types."""

import datetime as dt
import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from anchorline.columns import BOOLEAN, CATEGORY, DATE, NUMBER, Column, kind_of, level_of, listed
from anchorline.errors import InstanceError
from anchorline.spaces.attributes import level_texts
from anchorline.spaces.natives import Natives


@dataclass(frozen=True, slots=True)
class Type:
    """What a column's data type promises: whole numbers only, listed categories, a time zone."""

    whole: bool = False
    declared: bool = False
    zoned: bool = False


@dataclass(frozen=True, eq=False)
class Schema:
    """Names, kinds and native columns of the training table: what a row has to fit."""

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    natives: Natives
    types: tuple["Type", ...]

    def read(self, instance: Any) -> tuple[Any, ...]:
        """The row's native columns, one value each; `InstanceError` if it is not a row of this table."""
        n_rows = len(self.columns[0].values)
        if isinstance(instance, int | np.integer) and not isinstance(instance, bool):
            if not -n_rows <= instance < n_rows:
                raise InstanceError(f"Row {instance} was asked for; the table has rows 0 to {n_rows - 1}.")
            at = np.array([int(instance) % n_rows])
            return tuple(self.natives.pick(column, at) for column in self.natives.columns)
        values = self._values(instance)
        return tuple(self._cast(j, value) for j, value in enumerate(values))

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
        value = value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value
        column, name = self.columns[j], self.names[j]
        if _is_missing(value):
            return self._hole(j)
        try:
            if column.kind == CATEGORY:
                return self._level(j, value)
            to_plain = {NUMBER: _number, BOOLEAN: _boolean, DATE: _date}[column.kind]
            return self.natives.one(j, to_plain(value, self.types[j]))
        except InstanceError as error:
            raise InstanceError(f"Column {name!r}: {error}") from None
        except Exception as error:
            raise InstanceError(
                f"Column {name!r} is {value!r}; needed {column.kind}, as in the training table ({error})."
            ) from error

    def _hole(self, j: int) -> Any:
        """A missing value, as the training column writes it."""
        column = self.columns[j]
        if column.missing.any():
            return self.natives.pick(self.natives.columns[j], np.array([int(column.missing.argmax())]))
        if column.kind == BOOLEAN or self.types[j].whole:
            raise InstanceError(
                f"Column {self.names[j]!r} is missing in the row; in the training table it never is, and whole "
                "numbers and booleans have no value for it. Fill it in."
            )
        return self.natives.one(j, math.nan if column.kind == NUMBER else None)

    def _level(self, j: int, value: Any) -> Any:
        """The training table's own value of the same text; a new one where the type lists no categories."""
        kind = kind_of(value)
        text = level_of(value, kind) if kind in (NUMBER, BOOLEAN, CATEGORY) else str(value)
        column = self.columns[j]
        where = np.flatnonzero((column.values == text) & ~column.missing)
        if len(where):
            return self.natives.pick(self.natives.columns[j], where[:1])
        if self.types[j].declared:
            known = sorted({text for text, gone in level_texts(column) if not gone})
            near = difflib.get_close_matches(text, known, 3)
            hint = f"Did you mean {listed(near)}?" if near else f"Known are {listed(known)}."
            raise InstanceError(f"{value!r} is no category of the training table. {hint}")
        return self.natives.one(j, text)


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
    value = value.as_py() if hasattr(value, "as_py") else value
    return int(value) if isinstance(value, int | np.integer) else float(value)


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
        return {str(name): frame[name].to_list()[0] for name in frame.columns}
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


def _number(value: Any, column_type: Type) -> int | float:
    if kind_of(value) not in (NUMBER, BOOLEAN):
        raise InstanceError(f"{value!r} is no number; in the training table this column holds numbers.")
    if not column_type.whole:
        return float(value)
    if float(value) != math.floor(float(value)):
        raise InstanceError(f"{value!r} is no whole number; this column holds whole numbers only.")
    return int(value)


def _boolean(value: Any, column_type: Type) -> bool:
    if isinstance(value, bool) or value in (0, 1):
        return bool(value)
    raise InstanceError(f"{value!r} is neither true nor false; in the training table this column holds booleans.")


def _date(value: Any, column_type: Type) -> Any:
    """A datetime; without time zone it is taken as UTC where the column has one."""
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value)
        except ValueError:
            raise InstanceError(
                f"{value!r} is no date; needed one like '2018-03-04' or '2018-03-04 12:30'."
            ) from None
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if not isinstance(value, dt.date):
        raise InstanceError(f"{value!r} is no date; in the training table this column holds dates.")
    if column_type.zoned and getattr(value, "tzinfo", None) is None:
        return dt.datetime(*value.timetuple()[:6], getattr(value, "microsecond", 0), tzinfo=dt.UTC)
    return value


def types_of(table: Any) -> tuple[Type, ...]:
    """What the columns' data types promise."""
    if isinstance(table, np.ndarray):
        return (Type(whole=table.dtype.kind in "iu"),) * table.shape[1]
    dtypes: list[Any] = list(nw.from_native(table, eager_only=True).schema.values())
    return tuple(
        Type(
            whole=dtype.is_integer(),
            declared=isinstance(dtype, nw.Categorical | nw.Enum),
            zoned=isinstance(dtype, nw.Datetime) and dtype.time_zone is not None,
        )
        for dtype in dtypes
    )
