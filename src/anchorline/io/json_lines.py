"""JSON lines: one object a line, one plain value a name."""

import json
import math
from collections.abc import Callable
from typing import Any

from anchorline.errors import TableFileError


def parse_json_lines(text: str, name: str) -> dict[str, list[Any]]:
    """Columns of a text with one JSON object a line; None where a name is absent or null."""
    columns: dict[str, list[Any]] = {}
    n_rows = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        for key, value in _parsed(line, number, name).items():
            if isinstance(value, (dict, list)):
                raise TableFileError(f"{name!r}, line {number}: {key!r} is no plain value. Flatten it.")
            if key not in columns:
                columns[key] = [None] * n_rows
            columns[key].append(None if value != value else value)  # noqa: PLR0124  only NaN differs from itself
        n_rows += 1
        for column in columns.values():
            if len(column) < n_rows:
                column.append(None)
    if not columns:
        raise TableFileError(f"{name!r} has no columns: all of its objects are empty.")
    return {key: _one_type(column, key, name) for key, column in columns.items()}


def _parsed(line: str, number: int, name: str) -> dict[str, Any]:
    try:
        row = _DECODER.decode(line)
        if "\\" in line:  # an escape can stand for half a character, which no file of texts holds
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
        raise TableFileError(f"{name!r}, line {number}: no JSON: {error}") from error
    if not isinstance(row, dict):
        raise TableFileError(f"{name!r}, line {number}: a {type(row).__name__}; needed an object {{...}}.")
    return row


def _held(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """Read digits as numbers of a kind; those that no float holds are an error and not infinity."""

    def read(digits: str) -> Any:
        if math.isinf(float(digits)):
            raise OverflowError(digits if len(digits) <= 20 else f"{digits[:20]}... ({len(digits)} characters)")
        return kind(digits)

    return read


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return row


_DECODER = json.JSONDecoder(object_pairs_hook=_without_repetition, parse_int=_held(int), parse_float=_held(float))


def _one_type(column: list[Any], key: str, name: str) -> list[Any]:
    """The column, if its values are alike; whole numbers among others, or beside missing ones, as floats."""
    kinds = {type(value) for value in column if value is not None}
    if kinds <= {int, float}:
        huge = any(isinstance(value, int) and not -(2**63) <= value < 2**63 for value in column)
        if kinds == {int} and None not in column and not huge:
            return column
        return [None if value is None else float(value) for value in column]
    if len(kinds) > 1:
        found = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise TableFileError(f"{name!r}: column {key!r} holds {found}; needed one type.")
    return column
