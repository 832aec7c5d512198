"""Rows as a loaded model gets them: columns by name from any frame, or by position from an array."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from anchorline.errors import ModelInputError

_log = logging.getLogger(__name__)


class InputRows:
    """Columns of a pandas, Polars or Arrow frame, or of a 2-D array, whose columns have no names."""

    def __init__(self, inputs: Any) -> None:
        self.names: list[str] | None = None
        self._columns: list[Any]
        frame = _frame_of(inputs)
        if frame is not None:
            self.names = [str(name) for name in frame.columns]
            # By position: frame[0] of whole-number labels would be a row.
            self._columns, self.n_rows = [frame[:, j] for j in range(frame.shape[1])], len(frame)
            return
        array = np.asarray(inputs)
        if array.ndim != 2:
            raise ModelInputError(f"The model got an array of shape {array.shape}; needed (rows, columns).")
        self._columns, self.n_rows = list(array.T), len(array)

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return len(self._columns)

    def called(self, position: int) -> str:
        """How a column is named in messages."""
        return repr(self.names[position]) if self.names is not None else f"number {position}"

    def positions(self, wanted: Sequence[str], alike: Callable[[str], str] = str) -> list[int]:
        """Where the columns are that the model wants; names are compared after ``alike``.

        Columns the model does not want are left out; one it wants and does not get is an error.
        """
        if self.names is None:
            if self.n_columns != len(wanted):
                raise ModelInputError(
                    f"The model needs {len(wanted)} columns ({listed(wanted)}) and got {self.n_columns}."
                )
            return list(range(len(wanted)))
        exact = {name: i for i, name in enumerate(self.names)}
        similar: dict[str, list[int]] = {}
        for i, name in enumerate(self.names):
            similar.setdefault(alike(name), []).append(i)
        found = [exact.get(name, similar[name][0] if len(similar.get(name, ())) == 1 else None) for name in wanted]
        missing = [name for name, position in zip(wanted, found, strict=True) if position is None]
        if missing:
            raise ModelInputError(
                f"The model needs the columns {listed(missing)}, which the data lack; they have "
                f"{listed(self.names)}. Rename them, or give other data."
            )
        if len(set(found)) < self.n_columns:
            left_out = [name for i, name in enumerate(self.names) if i not in found]
            _log.debug("columns the model does not use: %s", left_out)
        return [position for position in found if position is not None]

    def exactly(self, n_columns: int | None) -> list[int]:
        """All positions, for a model that knows its columns by their order only."""
        if n_columns is not None and n_columns != self.n_columns:
            names = f": {listed(self.names)}" if self.names is not None else ""
            raise ModelInputError(
                f"The model needs {n_columns} columns and got {self.n_columns}{names}. It knows them by their "
                "order only: give the columns it was trained on, and no other."
            )
        return list(range(self.n_columns))

    def is_category(self, position: int) -> bool:
        """Whether a column's type lists categories; an array's never does."""
        column = self._columns[position]
        return not isinstance(column, np.ndarray) and type(column.dtype).__name__ in ("Categorical", "Enum")

    def values(self, position: int) -> np.ndarray:
        """One column, (n_rows,): numbers, booleans, dates, or objects."""
        column = self._columns[position]
        if isinstance(column, np.ndarray):
            values = column
        elif self.is_category(position):
            # Arrow's arrays of categories have another one where one is missing; its lists have None.
            values = np.fromiter(column.to_list(), dtype=object)
        else:
            values = np.asarray(column.to_numpy())
        if values.dtype.kind in "mM" and np.datetime_data(values.dtype)[0] == "ns":
            return values.astype(f"{values.dtype.kind}8[us]")  # of nanoseconds, Python would make bare counts
        return values

    def numbers(self, position: int) -> np.ndarray:
        """One column as float64; NaN where it is missing."""
        values = self.values(position)
        if values.dtype.kind in "fiub":
            return values.astype(np.float64)
        try:
            return np.array([np.nan if is_missing(v) else _number(v) for v in values.tolist()], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ModelInputError(
                f"Column {self.called(position)} holds values such as {_first(values)!r:.60}; the model needs "
                "numbers there."
            ) from error

    def texts(self, position: int) -> list[str]:
        """One column as texts; the empty text where it is missing."""
        return ["" if is_missing(value) else plain_text(value) for value in self.values(position).tolist()]

    def integers(self, position: int) -> np.ndarray:
        """One column as int64, if it holds whole numbers that fit and none is missing."""
        values = self.values(position)
        numbers = values if values.dtype.kind in "iu" else self.numbers(position)
        fit = (numbers >= -(2**63)) & (numbers < 2**63)  # False of NaN, too
        bad = np.flatnonzero(~(fit & (numbers == np.rint(numbers))))
        if bad.size:
            found = values.tolist()[bad[0]]
            raise ModelInputError(
                f"Column {self.called(position)} holds {found!r:.60}; the model needs whole numbers there, none "
                "missing and none beyond 64 bits."
            )
        return numbers.astype(np.int64)

    def codes(self, position: int, categories: Sequence[Any], unknown: float | None = np.nan) -> np.ndarray:
        """The place of every value in ``categories``, as float64; NaN where it is missing.

        ``unknown`` stands for what is not among them; None: that is an error.
        """
        places: dict[Any, float] = {_key(value): float(i) for i, value in enumerate(categories)}
        texts = {plain_text(value): float(i) for i, value in enumerate(categories)}
        coded = np.full(self.n_rows, np.nan)
        for i, value in enumerate(self.values(position).tolist()):
            if is_missing(value):
                continue
            place = places.get(_key(value), texts.get(plain_text(value), unknown))
            if place is None:
                raise ModelInputError(
                    f"Column {self.called(position)} holds {value!r:.60}, which the model does not know; it knows "
                    f"{listed(map(str, categories))}."
                )
            coded[i] = place
        return coded


def is_missing(value: Any) -> bool:
    """Whether a Python value stands for nothing: None, NaN, or pandas' own."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def plain_text(value: Any) -> str:
    """A value as a category's text: 1.0 as 1."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def listed(names: Any) -> str:
    """Up to eight names for a message."""
    names = list(names)
    shown = ", ".join(repr(str(name)) for name in names[:8])
    return f"{shown}, ... ({len(names)})" if len(names) > 8 else shown or "none"


def _frame_of(inputs: Any) -> Any:
    """A narwhals frame, or None for what is no frame."""
    if isinstance(inputs, np.ndarray):
        return None
    import narwhals as nw  # noqa: PLC0415  on first use

    frame = nw.from_native(inputs, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _key(value: Any) -> Any:
    return value if isinstance(value, str) else float(value) if isinstance(value, (int, float)) else str(value)


def _number(value: Any) -> float:
    if isinstance(value, (str, bytes)):
        raise TypeError("a text")
    return float(value)


def _first(values: np.ndarray) -> Any:
    return next((value for value in values.tolist() if not is_missing(value) and not _is_number(value)), None)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number))
