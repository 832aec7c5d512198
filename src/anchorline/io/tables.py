"""Tables from CSV, Parquet, Arrow and JSON-lines files, with the same content in every backend."""

import gzip
import zlib
from collections.abc import Callable, Collection, Sequence
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from anchorline.errors import MissingDependencyError, ParameterError, TableFileError
from anchorline.io import columnar
from anchorline.io.csv_text import parse_csv, parse_rows
from anchorline.io.json_lines import parse_json_lines

BACKENDS = ("pandas", "polars", "pyarrow")
MAX_BYTES = 4 * 2**30  # of content, after decompression
_TEXT_PARSERS: dict[str, Callable[..., dict[str, list[Any]]]] = {
    ".csv": parse_csv,
    ".tsv": parse_csv,
    ".txt": parse_csv,
    ".jsonl": parse_json_lines,
    ".ndjson": parse_json_lines,
}
_COLUMNAR = {".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow"}


def read_table(
    path: str | PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    backend: str | None = None,
    separator: str | None = None,
    decimal: str | None = None,
) -> Any:
    r"""Read a table from a CSV, Parquet, Arrow, Feather or JSON-lines file; text may be compressed with gzip.

    In CSV only an empty cell is missing: ``NA`` and ``nan`` are categories like any other. A column becomes
    integers, floats, booleans (if every cell is True or False and none is missing) or texts. A column that has
    a number that no float holds, such as ``1e400`` or an identifier of 400 digits, becomes texts.

    Parameters
    ----------
    path
        A file whose name ends in .csv, .tsv, .txt, .jsonl, .ndjson (each also with .gz), .parquet, .pq, .arrow,
        .ipc or .feather.
    columns
        The columns to return, in this order; None for all columns.
    backend
        "pandas", "polars" or "pyarrow"; None for the first of these that is installed.
    separator
        The separator of CSV fields; None for the comma, semicolon, tab or bar that gives every record the same
        number of fields.
    decimal
        "." or "," in CSV numbers. None selects "," only if the fields are not separated by commas, no number has
        a decimal point, and at least one comma is not followed by exactly three digits; otherwise ".".

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = file.write_text("age;town\n31;NA\n;Lens\n")
    >>> read_table(file, backend="pyarrow").to_pydict()
    {'age': [31.0, None], 'town': ['NA', 'Lens']}
    """
    if backend is not None and backend not in BACKENDS:
        raise ParameterError(
            f"backend is {backend!r}, but it must be one of {', '.join(map(repr, BACKENDS))}, or None."
        )
    if decimal not in (None, ".", ","):
        raise ParameterError(f"decimal is {decimal!r}, but it must be '.', ',' or None.")
    installed = (each for each in BACKENDS if find_spec(each) is not None)
    chosen_backend = backend or next(installed, None)
    if chosen_backend is None:
        raise MissingDependencyError.for_package("pandas", "cli")
    suffix, name = _suffix(path), fspath(path)
    raw = _read_bytes(path)
    if suffix in _COLUMNAR:
        return columnar.read(raw, _COLUMNAR[suffix], chosen_backend, columns, name)
    options = {"separator": separator, "decimal": decimal} if _TEXT_PARSERS[suffix] is parse_csv else {}
    parsed = _TEXT_PARSERS[suffix](_decode(raw, name), name, **options)
    columnar.check_selection(list(parsed), columns, name)
    chosen = parsed if columns is None else {column: parsed[column] for column in columns}
    return columnar.build_frame(chosen, chosen_backend)


def read_rows(path: str | PathLike[str], *, numbers: Collection[str]) -> Any:
    r"""Read rows for a table that was read before: dictionaries from CSV, a frame from any other file.

    A CSV file does not store types, and a few rows can look like another type than their table: ``007`` looks
    like a number although the same column of the table also has ``A1``. Therefore ``numbers`` lists the table's
    columns of numbers and booleans. A cell in these columns is read alone, as a number or a boolean if it looks
    like one. A cell in any other column is a text exactly as written. Only decimal commas depend on the whole
    file: ``1,234`` is 1.234 if another number, such as ``2,5``, certainly has a decimal comma, and otherwise
    stays a text.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = file.write_text("age,code\n31,007\n,22\n")
    >>> read_rows(file, numbers=["age"])
    [{'age': 31, 'code': '007'}, {'age': None, 'code': '22'}]
    """
    if _TEXT_PARSERS.get(_suffix(path)) is not parse_csv:
        return read_table(path)
    return parse_rows(_decode(_read_bytes(path), fspath(path)), fspath(path), numbers)


def _suffix(path: str | PathLike[str]) -> str:
    """Return the suffix that gives the kind of a file, without .gz."""
    file = Path(path)
    gzipped = file.suffix.lower() == ".gz"
    suffix = Path(file.stem if gzipped else file).suffix.lower()
    if suffix not in _TEXT_PARSERS and (gzipped or suffix not in _COLUMNAR):
        known = ", ".join([*_TEXT_PARSERS, *_COLUMNAR])
        raise TableFileError(
            f"{fspath(path)!r} has a name of unknown kind. The name must end in {known} (text files also in .gz)."
        )
    return suffix


def _decode(raw: bytes, name: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin1"  # the byte-order mark
        raise TableFileError(
            f"{name!r} is not UTF-8 (line {line}, byte {error.start}). Convert the file, then read the new file. "
            f"Type: iconv -f {encoding} -t utf-8 file > new"
        ) from error


def _read_bytes(path: str | PathLike[str]) -> bytes:
    """Return the content of a file, decompressed."""
    file, name = Path(path), fspath(path)
    try:
        with gzip.open(file, "rb") if file.suffix.lower() == ".gz" else file.open("rb") as opened:
            raw = opened.read(MAX_BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TableFileError(f"{name!r} is damaged: {error}.") from error
    except (OSError, ValueError) as error:  # ValueError: the name contains a null character
        reason = getattr(error, "strerror", None) or error
        raise TableFileError(f"{name!r} cannot be read: {reason}.") from error
    if len(raw) > MAX_BYTES:
        raise TableFileError(f"{name!r} has more than {MAX_BYTES:,} bytes of content.")
    if not raw.strip():
        raise TableFileError(f"{name!r} is empty.")
    return bytes(raw)
