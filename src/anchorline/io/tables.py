"""Tables from CSV, Parquet, Arrow and JSON-lines files, alike on every backend."""

import gzip
import zlib
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from anchorline.errors import MissingDependencyError, ParameterError, TableFileError
from anchorline.io import columnar
from anchorline.io.csv_text import parse_csv
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
    whole numbers, numbers, booleans (True and False, none missing) or texts.

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
    file, name = Path(path), fspath(path)
    packed = file.suffix.lower() == ".gz"
    suffix = Path(file.stem).suffix.lower() if packed else file.suffix.lower()
    if suffix not in _TEXTS and (packed or suffix not in _COLUMNAR):
        raise TableFileError(
            f"{name!r} is of no kind known by its name; needed {', '.join([*_TEXTS, *_COLUMNAR])} (text also .gz)."
        )
    raw = _read(file, name, packed)
    if suffix in _COLUMNAR:
        return columnar.read(raw, _COLUMNAR[suffix], chosen, columns, name)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise TableFileError(
            f"{name!r} is not UTF-8 (line {line}, byte {error.start}). Type: iconv -f latin1 -t utf-8 file > new"
        ) from error
    options = {"separator": separator, "decimal": decimal} if _TEXTS[suffix] is parse_csv else {}
    found = _TEXTS[suffix](text, name, **options)
    return columnar.frame_of(_pick(found, columns, name), chosen)


def _pick(found: dict[str, Any], columns: Sequence[str] | None, name: str) -> dict[str, Any]:
    """The wanted columns, in the wanted order."""
    columnar.check_wanted(list(found), columns, name)
    return found if columns is None else {column: found[column] for column in columns}


def _read(file: Path, name: str, packed: bool) -> bytes:
    try:
        with gzip.open(file, "rb") if packed else file.open("rb") as opened:
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
    raise MissingDependencyError.of("pandas", "cli")
