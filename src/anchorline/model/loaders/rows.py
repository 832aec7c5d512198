"""`InputRows`: the rows for a loaded model, with columns by name from any frame or by position from an array."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from anchorline.errors import ModelInputError, listed


class FileModel:
    """A model that a file holds: a callable on frames and 2-D arrays that returns numbers, labels or class scores.

    ``classes_`` are the labels of the columns of scores, and ``feature_names_in_`` the columns that the model
    needs; None if they are not known. ``has_external_data`` says whether the model needs further files.
    """

    classes_: list[Any] | None = None
    feature_names_in_: list[str] | None = None
    has_external_data = False

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r})"


class InputRows:
    """The columns of a pandas, Polars or Arrow frame, or of a 2-D array, whose columns have no names."""

    def __init__(self, inputs: Any) -> None:
        self.names: list[str] | None = None
        frame = inputs
        if not isinstance(inputs, np.ndarray):
            import narwhals as nw  # noqa: PLC0415  imported on first use

            frame = nw.from_native(inputs, eager_only=True, pass_through=True)
            if isinstance(frame, nw.DataFrame):
                self.names = [str(name) for name in frame.columns]
        frame = np.asarray(frame) if self.names is None else frame
        if len(frame.shape) != 2:
            raise ModelInputError(
                f"The model got an array of shape {frame.shape}, but the shape must be (rows, columns)."
            )
        # By position, because frame[0] would be a row if the column labels are integers.
        self._columns: list[Any] = [frame[:, j] for j in range(frame.shape[1])]
        self.n_rows = len(frame)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self._columns)

    def column_label(self, position: int) -> str:
        """Return the name of a column for messages."""
        return repr(self.names[position]) if self.names is not None else f"number {position}"

    def positions(self, wanted: Sequence[str], rewrite: Callable[[str], str] = str) -> list[int]:
        """Return the positions of the columns that the model needs, in the order of ``wanted``.

        A column matches by its name, or by its name as ``rewrite`` returns it if no other column has the same.
        Other columns are ignored. A missing one raises `ModelInputError`.
        """
        if self.names is None:
            if self.n_columns != len(wanted):
                raise ModelInputError(
                    f"The model got {self.n_columns} columns, but it needs {len(wanted)}: {listed(wanted)}."
                )
            return list(range(len(wanted)))
        rewritten = [rewrite(name) for name in self.names]
        counts = Counter(rewritten)
        exact = {name: i for i, name in enumerate(self.names)}
        similar = {name: i for i, name in enumerate(rewritten) if counts[name] == 1}
        matches = [exact.get(name, similar.get(name)) for name in wanted]
        missing = [name for name, position in zip(wanted, matches, strict=True) if position is None]
        if missing:
            raise ModelInputError(
                f"The data have the columns {listed(self.names)} and lack {listed(missing)}, which the "
                "model needs. Rename the columns, or pass other data."
            )
        return [position for position in matches if position is not None]

    def all_positions(self, n_columns: int | None) -> list[int]:
        """Return all positions, for a model that identifies its columns by their order only.

        ``n_columns`` is the number that the model needs, or None if it takes any number.
        """
        if n_columns is not None and n_columns != self.n_columns:
            names = f" ({listed(self.names)})" if self.names is not None else ""
            raise ModelInputError(
                f"The model got {self.n_columns} columns{names}, but it needs {n_columns}. It identifies columns "
                "by their order only, so pass exactly the columns that it was trained on."
            )
        return list(range(self.n_columns))

    def is_category(self, position: int) -> bool:
        """Return whether a column's type has a list of categories; False for a column of an array."""
        column = self._columns[position]
        return not isinstance(column, np.ndarray) and type(column.dtype).__name__ in ("Categorical", "Enum")

    def values(self, position: int) -> np.ndarray:
        """Return one column of shape (n_rows,): numbers, booleans, dates, or objects."""
        values = self._columns[position]
        if self.is_category(position):
            # Arrow's arrays hold a wrong category in place of a missing one; its lists hold None.
            values = np.fromiter(values.to_list(), dtype=object)
        elif self.names is not None:
            values = values.to_numpy()
        values = np.asarray(values)
        if values.dtype.kind in "mM" and np.datetime_data(values.dtype)[0] == "ns":
            return values.astype(f"{values.dtype.kind}8[us]")  # tolist() would turn nanoseconds into integers
        return values

    def numbers(self, position: int) -> np.ndarray:
        """Return one column as float64, with NaN for missing values."""
        values = self.values(position)
        if values.dtype.kind in "fiub":
            return values.astype(np.float64)
        numbers = np.full(self.n_rows, np.nan)
        for i, value in enumerate(values.tolist()):
            try:
                if isinstance(value, str | bytes):
                    raise TypeError("a text")
                numbers[i] = np.nan if is_missing(value) else float(value)
            except (TypeError, ValueError) as error:
                raise ModelInputError(
                    f"Column {self.column_label(position)} holds {value!r:.60}; the model needs numbers there."
                ) from error
        return numbers

    def texts(self, position: int) -> list[str]:
        """Return one column as texts, with the empty text for missing values."""
        return ["" if is_missing(value) else plain_text(value) for value in self.values(position).tolist()]

    def integers(self, position: int) -> np.ndarray:
        """Return one column as int64; raise unless every value is a whole number of at most 64 bits."""
        values = self.values(position)
        numbers = values if values.dtype.kind in "iu" else self.numbers(position)
        fit = (numbers >= -(2**63)) & (numbers < 2**63)  # False for NaN
        bad = np.flatnonzero(~(fit & (numbers == np.rint(numbers))))
        if bad.size:
            value = values.tolist()[bad[0]]
            raise ModelInputError(
                f"Column {self.column_label(position)} holds {value!r:.60}; the model needs whole numbers there, "
                "none missing and none beyond 64 bits."
            )
        return numbers.astype(np.int64)

    def codes(self, position: int, categories: Sequence[Any], unknown: float | None = np.nan) -> np.ndarray:
        """Return the position of every value in ``categories`` as float64, with NaN for missing values.

        ``unknown`` is the code of a value that is not in ``categories``; if it is None, such a value raises
        `ModelInputError`.
        """

        def key(value: Any) -> Any:
            return (
                value if isinstance(value, str) else float(value) if isinstance(value, int | float) else str(value)
            )

        places: dict[Any, float] = {key(value): float(i) for i, value in enumerate(categories)}
        texts = {plain_text(value): float(i) for i, value in enumerate(categories)}
        coded = np.full(self.n_rows, np.nan)
        for i, value in enumerate(self.values(position).tolist()):
            if is_missing(value):
                continue
            place = places.get(key(value), texts.get(plain_text(value), unknown))
            if place is None:
                raise ModelInputError(
                    f"Column {self.column_label(position)} holds {value!r:.60}, but it must hold one of the "
                    f"categories that the model was trained on: {listed(map(str, categories))}."
                )
            coded[i] = place
        return coded


def is_missing(value: Any) -> bool:
    """Return whether a Python value stands for a missing one: None, NaN, or pandas' NA and NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def plain_text(value: Any) -> str:
    """Return a value as the text of a category; 1.0 becomes "1"."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)
