"""The column that identifies rows for their owner: found in the rows, checked, and kept out of the explanation."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from anchorline.batch.partition import RESERVED_NAMES, FrameRows, rows_of
from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.result.explanations import FACT_COLUMNS
from anchorline.result.frames import RowIds
from anchorline.spaces.columns import row_values, to_narwhals

_TAKEN = RESERVED_NAMES | FACT_COLUMNS.keys()


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


def _missing_error(option: str, id: str, columns: Sequence[Any], where: str) -> ParameterError:
    found = ", ".join(map(repr, columns))
    return ParameterError(f"{option} is {id!r}, but it must be the name of a column of {where}: {found:.300}.")


def _duplicates_text(ids: RowIds, option: str) -> str:
    duplicates = ids.duplicates()
    (value, (one, other, *_)), n = next(iter(duplicates.items())), len(duplicates)
    first = f"{value!r:.60} in rows {one} and {other}" if value is not None else f"none in rows {one} and {other}"
    counted = "one value" if n == 1 else f"{n:,} values"
    return f"{option} is {ids.name!r}, a column with {counted} in more than one row: {first}{', ...' * (n > 1)}."
