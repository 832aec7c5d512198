"""JSON lines: one object per line, one plain value per name."""

import json
import math
from collections.abc import Callable
from typing import Any

from anchorline.errors import TableFileError


def parse_json_lines(text: str, name: str) -> dict[str, list[Any]]:
    """Return the columns of a text with one JSON object per line, with None where a name is absent or null."""
    columns: dict[str, list[Any]] = {}
    n_rows = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        for key, value in _parse_line(line, number, name).items():
            if isinstance(value, (dict, list)):
                raise TableFileError(
                    f"{name!r}, line {number}: {key!r} is a {type(value).__name__}, but it must be a plain value. "
                    "Flatten it."
                )
            if key not in columns:
                columns[key] = [None] * n_rows
            columns[key].append(None if value != value else value)  # noqa: PLR0124  only NaN differs from itself
        n_rows += 1
        for column in columns.values():
            if len(column) < n_rows:
                column.append(None)
    if not columns:
        raise TableFileError(f"{name!r} has no columns, because all of its objects are empty.")
    return {key: _unify_types(column, key, name) for key, column in columns.items()}


def _parse_line(line: str, number: int, name: str) -> dict[str, Any]:
    try:
        row = _DECODER.decode(line)
        if "\\" in line:  # an escape can stand for half a surrogate pair, which cannot be encoded as UTF-8
            json.dumps(row, ensure_ascii=False).encode()
    except OverflowError as error:
        raise TableFileError(
            f"{name!r}, line {number}: {error} is too large a number. Write a smaller one, or a text in quotes."
        ) from error
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise TableFileError(
            f"{name!r}, line {number}: {half} is half a character. Write both halves, or leave it out."
        ) from error
    except (ValueError, RecursionError) as error:
        raise TableFileError(f"{name!r}, line {number} is not valid JSON: {error}") from error
    if not isinstance(row, dict):
        raise TableFileError(
            f"{name!r}, line {number} is a {type(row).__name__}, but it must be an object {{...}}."
        )
    return row


def _finite(digits: str, to_number: Callable[[str], Any] = float) -> Any:
    """Return digits as a number; raise an error, instead of returning infinity, if no float holds them."""
    if math.isinf(float(digits)):
        raise OverflowError(digits if len(digits) <= 20 else f"{digits[:20]}... ({len(digits)} characters)")
    return to_number(digits)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("a name appears twice in one object")
    return row


_DECODER = json.JSONDecoder(
    object_pairs_hook=_distinct, parse_int=lambda digits: _finite(digits, int), parse_float=_finite
)


def _unify_types(column: list[Any], key: str, name: str) -> list[Any]:
    """Return the column if its values have one type; integers next to floats or missing values become floats."""
    types = {type(value) for value in column if value is not None}
    if types <= {int, float}:
        huge = any(isinstance(value, int) and not -(2**63) <= value < 2**63 for value in column)
        if types == {int} and None not in column and not huge:
            return column
        return [None if value is None else float(value) for value in column]
    if len(types) > 1:
        type_names = " and ".join(sorted(value_type.__name__ for value_type in types))
        raise TableFileError(f"{name!r}: column {key!r} holds {type_names}, but it must hold one type.")
    return column
