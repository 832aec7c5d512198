"""CSV as people write it: byte-order marks, semicolons, quotes, decimal commas; nothing guessed in silence."""

import csv
import io
import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Any

from anchorline.errors import TableFileError

_log = logging.getLogger(__name__)
_SEPARATORS = (",", ";", "\t", "|")
_SNIFFED_RECORDS = 100
# Digits are ASCII. Possessive: all values of a column are matched at once, and no text takes long.
_INTEGER = r"[+-]?[0-9]++"
_NUMBER = r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
_COMMA_NUMBER = _NUMBER.replace(r"\.", ",")
_THOUSANDS = r"[+-]?[0-9]{1,3},[0-9]{3}"  # or three decimals: nobody can tell
_INT64 = 2**63
_INFINITE = {math.inf, -math.inf}
_MAX_FIELD = 2**24


def parse_csv(
    text: str, name: str, *, separator: str | None = None, decimal: str | None = None
) -> dict[str, list[Any]]:
    """Columns of a CSV text: integers, floats, booleans or texts, None where missing."""
    header, columns, separator = _columns(text, name, separator)
    commas = decimal == "," or (decimal is None and separator != "," and _has_decimal_commas(columns, name))
    return {title: _typed(column, commas) for title, column in zip(header, columns, strict=True)}


def parse_rows(text: str, name: str, numbers: Collection[str]) -> list[dict[str, Any]]:
    """Rows of a CSV text, every cell read alone but for its decimal commas: those are the whole file's.

    In the columns ``numbers`` cells are whole numbers, numbers or booleans where they look like it; all else
    are texts exactly as written; None where missing.
    """
    header, columns, separator = _columns(text, name, None)
    counted = [column for title, column in zip(header, columns, strict=True) if title in numbers]
    commas = separator != "," and _has_decimal_commas(counted, name)
    read = []
    for title, column in zip(header, columns, strict=True):
        of = {cell: _typed((cell,), commas)[0] if title in numbers else cell or None for cell in set(column)}
        read.append([of[cell] for cell in column])
    return [dict(zip(header, row, strict=True)) for row in zip(*read, strict=True)]


def _columns(text: str, name: str, separator: str | None) -> tuple[list[str], list[tuple[str, ...]], str]:
    """Titles and cells of a CSV text, and what separates them."""
    if "\0" in text:
        raise TableFileError(f"{name!r} holds null characters: it is no text.")
    separator = separator or _sniffed(text)
    records = _records(text, separator, name)
    if not records:
        raise TableFileError(f"{name!r} is empty.")
    header = records.pop(0)[1]
    _check_header(header, name)
    for line, record in records:
        if len(record) != len(header):
            raise TableFileError(
                f"{name!r}, line {line}: {len(record)} fields; the header has {len(header)} (separator "
                f"{separator!r})."
            )
    if not records:
        raise TableFileError(f"{name!r} has a header and no rows.")
    return header, list(zip(*(record for _, record in records), strict=True)), separator


def _records(text: str, separator: str, name: str) -> list[tuple[int, list[str]]]:
    """Every record that is not blank, with its last line's number."""
    before = csv.field_size_limit(_MAX_FIELD)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        return [(reader.line_num, record) for record in reader if record]
    except (csv.Error, TypeError) as error:  # TypeError: a separator of several characters
        raise TableFileError(f"{name!r} cannot be read as CSV: {error} (separator {separator!r}).") from error
    finally:
        csv.field_size_limit(before)


def _sniffed(text: str) -> str:
    """The separator that splits the first records alike, and most; else the header's most frequent one."""
    best, most = None, 1
    for separator in _SEPARATORS:
        widths = set()
        try:
            reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
            for _, record in zip(range(_SNIFFED_RECORDS), reader, strict=False):
                if record:
                    widths.add(len(record))
        except csv.Error:
            continue
        if len(widths) == 1 and (width := widths.pop()) > most:
            best, most = separator, width
    first = text.partition("\n")[0]
    return best or max(_SEPARATORS, key=first.count)


def _all_are(pattern: str, values: Iterable[str]) -> bool:
    """Whether every value is of the pattern; none holds the null character, which parts them here."""
    return re.fullmatch(f"(?:{pattern}\0)*+", "".join(f"{value}\0" for value in values)) is not None


def _check_header(header: list[str], name: str) -> None:
    twice = [title for title, count in Counter(header).items() if count > 1]
    whole = all(title.isdigit() for title in header)
    if _all_are(f"(?:{_NUMBER}|{_COMMA_NUMBER})", header) and (twice or not whole):
        raise TableFileError(f"{name!r} has no header: its first line holds numbers only. Add a line with names.")
    for place, title in enumerate(header, start=1):
        if not title.strip():
            raise TableFileError(
                f"{name!r} has no name for column {place}. Name it in the first line, or leave it out "
                "(`frame.to_csv(file, index=False)`)."
            )
    if twice:
        raise TableFileError(f"{name!r} has two columns called {twice[0]!r}. Rename one.")


def _has_decimal_commas(columns: list[tuple[str, ...]], name: str) -> bool:
    """Whether the numbers of a file have decimal commas, beyond doubt."""
    doubtful = False
    sure = False
    for column in columns:
        values = {value.strip() for value in column} - {""}
        if not values:
            continue
        if not _all_are(_INTEGER, values) and _all_are(_NUMBER, values):
            return False  # decimal points
        with_comma = [value for value in values if "," in value]
        if with_comma and _all_are(_COMMA_NUMBER, values):
            doubtful = True
            sure = sure or not _all_are(_THOUSANDS, with_comma)
    if doubtful and not sure:
        _log.warning(
            "%r: commas in numbers may separate thousands or decimals; kept as texts. Write 1.234 or 1234 "
            "for 1,234; in Python, read_table(..., decimal=',') tells, too.",
            name,
        )
    return sure


def _typed(column: tuple[str, ...], commas: bool) -> list[Any]:
    """One column's values in the narrowest type that holds all of them."""
    values = {value: value.strip() for value in set(column)}
    present = {value for value in values.values() if value}
    if not present:
        return [None] * len(column)
    convert = _converter(present, missing="" in values.values(), commas=commas)
    if convert is not None:
        known = {value: convert(stripped) if stripped else None for value, stripped in values.items()}
        if _INFINITE.isdisjoint(known.values()):
            return [known[value] for value in column]
    return [value if value != "" else None for value in column]


def _converter(present: set[str], missing: bool, commas: bool) -> Callable[[str], Any] | None:
    """What makes the narrowest type of all values; None of texts. What no float can hold becomes infinite."""
    if not missing and _all_are(_INTEGER, present) and all(map(_fits, present)):
        return int
    if _all_are(_NUMBER, present):
        return float
    if commas and _all_are(_COMMA_NUMBER, present):
        return lambda value: float(value.replace(",", "."))
    if not missing and {value.lower() for value in present} <= {"true", "false"}:
        return lambda value: value.lower() == "true"
    return None


def _fits(integer: str) -> bool:
    """Whether digits are a number of 64 bits; Python refuses to count those of very long ones."""
    return len(integer) < 19 or (len(integer) < 99 and -_INT64 <= int(integer) < _INT64)
