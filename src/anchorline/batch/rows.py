"""The rows of frames, arrays and lists, and the column that identifies them for their owner.

That column is found in the rows, checked, and kept out of the explanation.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.result.explanations import (
    COLUMNS,
    FACT_COLUMNS,
    REASON_COLUMNS,
    RULE_COLUMNS,
    Failure,
    Record,
)
from anchorline.result.frames import RowIds
from anchorline.spaces.columns import array_of, dense, row_values, to_narwhals

RESERVED_NAMES = frozenset({"row", *COLUMNS, *RULE_COLUMNS, *REASON_COLUMNS})  # of the result
_TAKEN = RESERVED_NAMES | FACT_COLUMNS.keys()
_VALUES_PER_READ = 50_000  # a few megabytes


class FrameRows:
    """Rows of a frame, array or list, in the form that the space reads, a few at a time.

    `take` reads ahead, because reading one value of a column takes as long as reading a thousand.
    """

    def __init__(self, frame: Any, by_name: bool) -> None:
        self._frame, self._by_name = frame, by_name
        self._first, self._buffer = 0, list[Any]()

    def __len__(self) -> int:
        return len(self._frame)

    def take(self, start: int, stop: int) -> list[Any]:
        """Return the rows from ``start`` to ``stop``."""
        stop = min(stop, len(self))
        if not self._first <= start <= stop <= self._first + len(self._buffer):
            n_columns = self._frame.shape[1] if hasattr(self._frame, "shape") else 1
            read_ahead = start + _VALUES_PER_READ // max(1, n_columns)
            self._first, self._buffer = start, self._rows(start, max(stop, read_ahead))
        return self._buffer[start - self._first : stop - self._first]

    def _rows(self, start: int, stop: int) -> list[Any]:
        part = self._frame[start:stop]
        if isinstance(part, np.ndarray | list | tuple):
            return list(part)
        columns = {str(column.name): row_values(column) for column in part.iter_columns()}  # names may be numbers
        if self._by_name:
            return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        return [list(values) for values in zip(*columns.values(), strict=True)]


def rows_of(frame: Any, explainer: Explainer) -> FrameRows:
    """Return the rows of a pandas, Polars or Arrow frame, a 2-D array or a list of rows."""
    instances = explainer.space.instances(frame)
    if instances is not None:
        return FrameRows(instances, by_name=False)
    by_name, frame = explainer.space.schema is not None, array_of(dense(frame, ParameterError))
    if isinstance(frame, np.ndarray):
        if frame.ndim != 2:
            raise ParameterError(
                f"The array has shape {frame.shape}; it must be (n, d). For one row, use `explain`."
            )
        return FrameRows(frame, by_name)
    if isinstance(frame, list | tuple):
        return FrameRows(frame, by_name)
    import narwhals as nw  # noqa: PLC0415  heavy

    table = to_narwhals(frame, ParameterError)
    if isinstance(table, nw.LazyFrame):
        raise ParameterError(
            f"Got a lazy {type(frame).__name__}, whose rows are not loaded. Collect it, or use "
            "anchorline.batch.dask, .ray or .spark."
        )
    if not isinstance(table, nw.DataFrame):
        raise ParameterError(
            f"Got a {type(frame).__name__}. Pass a pandas, Polars or Arrow frame, a 2-D array or a list of rows."
        )
    return FrameRows(table, by_name)


def check_id(id: str | None, columns: Sequence[str]) -> None:
    """Raise `ParameterError` if ``id`` is not a column of the frame, or has the name of a column of the result."""
    if id is None:
        return
    if id not in columns:
        raise ParameterError(
            f"id is {id!r}, but it must be the name of a column of the frame: {', '.join(map(repr, columns))}."
        )
    if id in RESERVED_NAMES:
        raise ParameterError(f"id is {id!r}, the name of a column of the result. Rename your column.")


def rows_with_ids(frame: Any, explainer: Explainer, id: str | None) -> tuple[FrameRows, RowIds | None]:
    """Return the rows of a frame and the column ``id``; warn if two rows have the same id."""
    rows = rows_of(frame, explainer)
    if id is None:
        return rows, None
    ids = ids_of(frame, id)
    if ids.duplicates():
        warnings.warn(
            f"{_duplicates_text(ids, 'id')} All rows are explained, but their ids do not tell them apart.",
            UserWarning,
            stacklevel=4,  # of who calls `Explainer.explain_many`
        )
    table = to_narwhals(frame, ParameterError)
    if explainer.space.schema is not None or not hasattr(table, "columns"):
        return rows, ids
    # A space without names reads values by position, so the id is removed, or it would be read as a value.
    return rows_of(table.drop(next(name for name in table.columns if str(name) == id)).to_native(), explainer), ids


def unique_ids(frame: Any, id: str | None, option: str) -> RowIds | None:
    """Return the column ``id``; raise `ParameterError` if two rows have the same id. ``option`` is its keyword."""
    if id is None:
        return None
    ids = ids_of(frame, id, option)
    if ids.duplicates():
        raise ParameterError(
            f"{_duplicates_text(ids, option)} Ids must differ, so that each identifies one row. Name another "
            f"column, or omit {option}: the file numbers the rows in its column 'row'."
        )
    return ids


def ids_of(frame: Any, id: str, option: str = "id") -> RowIds:
    """Return the column ``id`` of a frame or of a list of dictionaries."""
    if id in _TAKEN:
        raise ParameterError(f"{option} is {id!r}, the name of a column of the result. Rename your column.")
    if isinstance(frame, list | tuple) and all(isinstance(row, Mapping) for row in frame):
        for place, row in enumerate(frame):
            if id not in row:
                raise _missing_error(option, id, list(row), f"row {place}")
        return RowIds.from_values(id, (row[id] for row in frame))
    table = to_narwhals(frame, ParameterError)
    if not hasattr(table, "columns"):
        raise ParameterError(
            f"{option} is {id!r}, but a {type(frame).__name__} without column names was given. Pass a frame or a "
            f"list of dictionaries, or omit {option}."
        )
    names = {str(name): name for name in table.columns}
    if id not in names:
        raise _missing_error(option, id, list(names), "the rows")
    return RowIds.from_values(id, row_values(table[names[id]]))


def failure_of(place: int, record: Record, ids: RowIds | None) -> Failure:
    """Return the failure that a record describes."""
    return Failure(place, record["error"], record["error_type"], None if ids is None else ids.label(place))


def _missing_error(option: str, id: str, columns: Sequence[Any], where: str) -> ParameterError:
    found = ", ".join(map(repr, columns))
    return ParameterError(f"{option} is {id!r}, but it must be the name of a column of {where}: {found:.300}.")


def _duplicates_text(ids: RowIds, option: str) -> str:
    duplicates = ids.duplicates()
    (value, (one, other, *_)), n = next(iter(duplicates.items())), len(duplicates)
    first = f"{value!r:.60} in rows {one} and {other}" if value is not None else f"none in rows {one} and {other}"
    counted = "one value" if n == 1 else f"{n:,} values"
    return f"{option} is {ids.name!r}, a column with {counted} in more than one row: {first}{', ...' * (n > 1)}."
