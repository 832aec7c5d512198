"""Tables from CSV, Parquet, Arrow and JSON-lines files, alike on every backend."""

import gzip
import zlib
from collections.abc import Callable, Collection, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from anchorline.errors import MissingDependencyError, ParameterError, TableFileError
from anchorline.io import columnar
from anchorline.io.csv_text import parse_csv, parse_rows
from anchorline.io.json_lines import parse_json_lines

BACKENDS = ("pandas", "polars", "pyarrow")
MAX_BYTES = 4 * 2**30  # of text, unpacked
_TEXTS: dict[str, Callable[..., dict[str, list[Any]]]] = {
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
    r"""Read a table: CSV, Parquet, Arrow or Feather, or JSON lines; text also packed with gzip.

    In CSV only the empty text is missing: ``NA`` and ``nan`` are categories like any other. Columns become
    whole numbers, numbers, booleans (True and False, none missing) or texts. A column with a number that no
    float holds, such as ``1e400`` or an identifier of 400 digits, is one of texts.

    Parameters
    ----------
    path
        A file called .csv, .tsv, .txt, .jsonl, .ndjson (each also with .gz), .parquet, .pq, .arrow, .ipc or
        .feather.
    columns
        The columns wanted, in this order; all if None.
    backend
        "pandas", "polars" or "pyarrow"; the first that is installed if None.
    separator
        Of CSV fields; if None, the comma, semicolon, tab or bar that gives every record the same number.
    decimal
        "." or "," in CSV numbers. None: "," where nothing else makes sense: fields not separated by commas,
        no number with a point, and not every comma followed by exactly three digits.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = file.write_text("age;town\n31;NA\n;Lens\n")
    >>> read_table(file, backend="pyarrow").to_pydict()
    {'age': [31.0, None], 'town': ['NA', 'Lens']}
    """
    if backend is not None and backend not in BACKENDS:
        raise ParameterError(f"backend is {backend!r}; needed one of {', '.join(map(repr, BACKENDS))}, or None.")
    if decimal not in (None, ".", ","):
        raise ParameterError(f"decimal is {decimal!r}; needed '.', ',' or None.")
    chosen = backend or _first_backend()
    suffix, name = _suffix(path), fspath(path)
    raw = _read(path)
    if suffix in _COLUMNAR:
        return columnar.read(raw, _COLUMNAR[suffix], chosen, columns, name)
    options = {"separator": separator, "decimal": decimal} if _TEXTS[suffix] is parse_csv else {}
    found = _TEXTS[suffix](_decoded(raw, name), name, **options)
    return columnar.frame_of(_pick(found, columns, name), chosen)


def read_rows(path: str | PathLike[str], *, numbers: Collection[str]) -> Any:
    r"""Read rows that belong to a table read before: dictionaries from CSV; from other files what they hold.

    CSV does not tell types, and a few rows may look like others than the table they belong to: ``007`` is a
    number unless the table has ``A1`` there, too. So the table has to tell: every cell is read alone, as a
    number or boolean in the columns ``numbers``, and elsewhere as the text that is written. One thing only
    the whole file tells: ``1,234`` is 1.234 if another number, such as ``2,5``, has a comma beyond doubt a
    decimal one, and else stays a text.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = file.write_text("age,code\n31,007\n,22\n")
    >>> read_rows(file, numbers=["age"])
    [{'age': 31, 'code': '007'}, {'age': None, 'code': '22'}]
    """
    if _TEXTS.get(_suffix(path)) is not parse_csv:
        return read_table(path)
    return parse_rows(_decoded(_read(path), fspath(path)), fspath(path), numbers)


def _suffix(path: str | PathLike[str]) -> str:
    """A file's kind, by its name."""
    file = Path(path)
    packed = _is_packed(file)
    suffix = Path(file.stem).suffix.lower() if packed else file.suffix.lower()
    if suffix not in _TEXTS and (packed or suffix not in _COLUMNAR):
        known = ", ".join([*_TEXTS, *_COLUMNAR])
        raise TableFileError(f"{fspath(path)!r} is of no kind known by its name; needed {known} (text also .gz).")
    return suffix


def _is_packed(file: Path) -> bool:
    return file.suffix.lower() == ".gz"


def _decoded(raw: bytes, name: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        other = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin1"  # its mark comes first
        raise TableFileError(
            f"{name!r} is not UTF-8 (line {line}, byte {error.start}). Type: iconv -f {other} -t utf-8 file > new"
        ) from error


def _pick(found: dict[str, Any], columns: Sequence[str] | None, name: str) -> dict[str, Any]:
    """The wanted columns, in the wanted order."""
    columnar.check_wanted(list(found), columns, name)
    return found if columns is None else {column: found[column] for column in columns}


def _read(path: str | PathLike[str]) -> bytes:
    """A file's content, unpacked."""
    file, name = Path(path), fspath(path)
    try:
        with gzip.open(file, "rb") if _is_packed(file) else file.open("rb") as opened:
            raw = opened.read(MAX_BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TableFileError(f"{name!r} is damaged: {error}.") from error
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = getattr(error, "strerror", None) or error
        raise TableFileError(f"{name!r} cannot be read: {reason}.") from error
    if len(raw) > MAX_BYTES:
        raise TableFileError(f"{name!r} has more than {MAX_BYTES:,} bytes of content.")
    if not raw.strip():
        raise TableFileError(f"{name!r} is empty.")
    return bytes(raw)


def _first_backend() -> str:
    from importlib.util import find_spec  # noqa: PLC0415

    for backend in BACKENDS:
        if find_spec(backend) is not None:
            return backend
    raise MissingDependencyError.for_package("pandas", "cli")
