"""The columns of CSV text and of JSON lines; an ambiguity is always reported.

CSV may have byte-order marks, semicolons, quotes or decimal commas. The readers of pandas, Polars and Arrow
disagree about missing values, booleans and long numbers, and none of them
names the line of a wrong record. So Python's own splits the text, and all backends get the same columns.
"""

import csv
import io
import json
import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from anchorline.errors import TableFileError

_log = logging.getLogger(__name__)
_SEPARATORS = (",", ";", "\t", "|")
_DETECTION_RECORDS = 100
# Only ASCII digits are digits. The quantifiers are possessive, so that no text takes long.
_INTEGER = re.compile(r"[+-]?[0-9]++")
_NUMBER = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_COMMA_NUMBER = re.compile(_NUMBER.pattern.replace(r"\.", ","))
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3},[0-9]{3}")  # ambiguous: thousands, or three decimals
_INT64 = 2**63
_MAX_FIELD = 2**24


def parse_csv(
    text: str, name: str, *, separator: str | None = None, decimal: str | None = None
) -> dict[str, list[Any]]:
    """Return the columns of a CSV text as integers, floats, booleans or texts, with None for missing values."""
    header, columns, separator = _split_columns(text, name, separator)
    commas = decimal == "," or (decimal is None and separator != "," and _has_decimal_commas(columns, name))
    return {title: _convert_column(column, commas) for title, column in zip(header, columns, strict=True)}


def parse_rows(text: str, name: str, numbers: Collection[str]) -> list[dict[str, Any]]:
    """Return the rows of a CSV text, with every cell read alone, except that decimal commas depend on all cells.

    In the columns ``numbers``, a cell becomes an integer, a float or a boolean if it looks like one. All other
    cells are texts exactly as written. Missing values are None.
    """
    header, columns, separator = _split_columns(text, name, None)
    named = list(zip(header, columns, strict=True))
    commas = separator != "," and _has_decimal_commas([cells for title, cells in named if title in numbers], name)
    cells_read_alone = {cell for title, cells in named if title in numbers for cell in cells}
    read = {cell: _convert_column((cell,), commas)[0] for cell in cells_read_alone}
    converted = [[read[cell] if title in numbers else cell or None for cell in cells] for title, cells in named]
    return [dict(zip(header, row, strict=True)) for row in zip(*converted, strict=True)]


def _split_columns(text: str, name: str, separator: str | None) -> tuple[list[str], list[tuple[str, ...]], str]:
    """Return the titles and the columns of a CSV text, and its separator."""
    if "\0" in text:
        raise TableFileError(f"{name!r} contains null characters, so it is not a text file.")
    separator = separator or _detect_separator(text)
    previous_limit = csv.field_size_limit(_MAX_FIELD)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        records = [(reader.line_num, record) for record in reader if record]
    except (csv.Error, TypeError) as error:  # TypeError: the separator has several characters
        raise TableFileError(f"{name!r} cannot be read as CSV: {error} (separator {separator!r}).") from error
    finally:
        csv.field_size_limit(previous_limit)
    if not records:
        raise TableFileError(f"{name!r} is empty.")
    header = records.pop(0)[1]
    _check_header(header, name)
    for line, record in records:
        if len(record) != len(header):
            raise TableFileError(
                f"{name!r}, line {line} has {len(record)} fields, but the header has {len(header)} (separator "
                f"{separator!r})."
            )
    if not records:
        raise TableFileError(f"{name!r} has a header but no rows.")
    return header, list(zip(*(record for _, record in records), strict=True)), separator


def _detect_separator(text: str) -> str:
    """Return the separator that splits the first records into the most fields of equal number.

    If no separator gives equal numbers, return the most frequent one in the header.
    """
    best, max_width = None, 1
    for separator in _SEPARATORS:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        try:
            records = zip(range(_DETECTION_RECORDS), reader, strict=False)
            widths = {len(record) for _, record in records if record}
        except csv.Error:
            continue
        if len(widths) == 1 and (width := widths.pop()) > max_width:
            best, max_width = separator, width
    header = text.partition("\n")[0]
    return best or max(_SEPARATORS, key=header.count)


def _check_header(header: list[str], name: str) -> None:
    are_numbers = all(_NUMBER.fullmatch(title) or _COMMA_NUMBER.fullmatch(title) for title in header)
    if are_numbers and (len({*header}) < len(header) or not all(title.isdigit() for title in header)):
        raise TableFileError(
            f"{name!r} has no header, because its first line holds only numbers. Add a first line with the names "
            "of the columns."
        )
    for position, title in enumerate(header, start=1):
        if not title.strip():
            raise TableFileError(
                f"{name!r} has no name for column {position}. Name the column in the first line, or leave it out "
                "(`frame.to_csv(file, index=False)`)."
            )
    check_distinct(header, name)


def check_distinct(names: Sequence[str], name: str) -> None:
    """Raise `TableFileError` if two columns have the same name."""
    duplicates = [title for title, count in Counter(names).items() if count > 1]
    if duplicates:
        raise TableFileError(f"{name!r} has two columns called {duplicates[0]!r}. Rename one of them.")


def _has_decimal_commas(columns: Sequence[tuple[str, ...]], name: str) -> bool:
    """Return whether the numbers of a file certainly have decimal commas; log a warning if they only may."""
    possible = certain = False
    for column in columns:
        values = {value.strip() for value in column} - {""}
        if _match(_NUMBER, values) and not _match(_INTEGER, values):
            return False  # this column has decimal points
        with_comma = [value for value in values if "," in value]
        if with_comma and _match(_COMMA_NUMBER, values):
            possible, certain = True, certain or not _match(_THOUSANDS, with_comma)
    if possible and not certain:
        _log.warning(
            "%r has numbers whose commas may separate thousands or decimals, so they were read as texts. Write "
            "1.234 or 1234 for 1,234, or in Python call read_table(..., decimal=',').",
            name,
        )
    return certain


def _convert_column(column: tuple[str, ...], commas: bool) -> list[Any]:
    """Return a column's values in the narrowest type that holds all of them."""
    stripped_of = {value: value.strip() for value in set(column)}
    present = {*stripped_of.values()} - {""}
    is_full, to_value = "" not in stripped_of.values(), dict[str, Any]()
    if is_full and _match(_INTEGER, present) and all(map(_fits_int64, present)):
        to_value = {value: int(value) for value in present}
    elif _match(_NUMBER, present) or (commas and _match(_COMMA_NUMBER, present)):
        to_value = {value: float(value.replace(",", ".")) for value in present}
        if any(map(math.isinf, to_value.values())):  # a number that no float holds is a text
            return [value or None for value in column]
    elif is_full and {value.lower() for value in present} <= {"true", "false"}:
        to_value = {value: value.lower() == "true" for value in present}
    else:
        return [value or None for value in column]
    return [to_value.get(stripped_of[value]) for value in column]


def _match(pattern: re.Pattern[str], values: Iterable[str]) -> bool:
    return all(map(pattern.fullmatch, values))


def _fits_int64(integer: str) -> bool:
    """Return whether digits are a 64-bit integer; Python refuses to convert very many digits."""
    return len(integer) < 19 or (len(integer) < 99 and -_INT64 <= int(integer) < _INT64)


def parse_json_lines(text: str, name: str) -> dict[str, list[Any]]:
    """Return the columns of a text with one JSON object per line, with None where a name is absent or null."""
    lines = enumerate(text.split("\n"), start=1)
    rows = [_parse_line(line, number, name) for number, line in lines if line.strip()]
    keys = dict.fromkeys(key for row in rows for key in row)
    if not keys:
        raise TableFileError(f"{name!r} has no columns, because all of its objects are empty.")
    return {key: _unify_types([row.get(key) for row in rows], key, name) for key in keys}


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
    for key, value in row.items():
        if isinstance(value, (dict, list)):
            raise TableFileError(
                f"{name!r}, line {number}: {key!r} is a {type(value).__name__}, but it must be a plain value. "
                "Flatten it."
            )
    return {key: None if value != value else value for key, value in row.items()}  # noqa: PLR0124  NaN


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
