"""Tables from CSV, Parquet, Arrow and JSON-lines files, with the same content in every backend."""

import contextlib
import gzip
import importlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from importlib.util import find_spec
from io import BytesIO
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from anchorline.errors import AnchorlineError, MissingDependencyError, ParameterError, TableFileError
from anchorline.io.texts import check_distinct, parse_csv, parse_json_lines, parse_rows

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
    backend = backend or default_backend()
    suffix, name, raw = _suffix(path), fspath(path), _read_bytes(path)
    if suffix in _COLUMNAR:
        return _read_columnar(raw, _COLUMNAR[suffix], backend, columns, name)
    options = {"separator": separator, "decimal": decimal} if _TEXT_PARSERS[suffix] is parse_csv else {}
    parsed = _TEXT_PARSERS[suffix](decode(raw, name), name, **options)
    _check_selection(list(parsed), columns, name)
    chosen = parsed if columns is None else {column: parsed[column] for column in columns}
    return _build_frame(chosen, backend)


def default_backend() -> str:
    """Return the first backend that is installed."""
    backend = next((each for each in BACKENDS if find_spec(each) is not None), None)
    if backend is None:
        raise MissingDependencyError.for_package("pandas", "cli")
    return backend


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
    return parse_rows(decode(_read_bytes(path), fspath(path)), fspath(path), numbers)


def _suffix(path: str | PathLike[str]) -> str:
    """Return the suffix that gives the kind of a file, without .gz."""
    file = Path(path)
    gzipped = file.suffix.lower() == ".gz"
    suffix = Path(file.stem if gzipped else file).suffix.lower()
    if suffix not in _TEXT_PARSERS and (gzipped or suffix not in _COLUMNAR):
        known = ", ".join([*_TEXT_PARSERS, *_COLUMNAR])
        raise TableFileError(
            f"{fspath(path)!r} has an unknown suffix. The name must end in {known} (text files also in .gz)."
        )
    return suffix


def decode(raw: bytes, name: str) -> str:
    """Return UTF-8 text; raise `TableFileError` that says where it is not."""
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


def _build_frame(columns: dict[str, list[Any]], backend: str) -> Any:
    """Return a frame of plain columns, in which None is a missing value."""
    module = _import_backend(backend)
    if backend == "pyarrow":
        return module.table(columns)
    if backend == "pandas":  # a column without values is one of numbers
        columns = {
            name: module.Series(values, dtype="float64") if all(value is None for value in values) else values
            for name, values in columns.items()
        }
    return module.DataFrame(columns)


def _read_columnar(raw: bytes, kind: str, backend: str, columns: Sequence[str] | None, name: str) -> Any:
    """Return a frame from the bytes of a Parquet or Arrow file, with the same column names in every backend."""
    _import_backend(backend)
    with _convert_errors(f"{name!r} is not a valid {kind} file"):
        table = _open_table(raw, kind, backend)
    names = list(table.column_names if hasattr(table, "column_names") else table.columns)
    check_distinct(names, name)
    if not names or not len(table):
        raise TableFileError(f"{name!r} has no {'rows' if names else 'columns'}.")
    _check_selection(names, columns, name)
    if columns is None:  # all except the index that pandas stored
        columns = [column for column in names if not re.fullmatch(r"__index_level_\d+__", column)]
    return frame_of(table.select(list(columns)), backend, name)


def _check_selection(names: Sequence[str], columns: Sequence[str] | None, name: str) -> None:
    """Raise an error if a selected column is missing from the file or selected twice."""
    missing = [column for column in columns or () if column not in names]
    if missing:
        raise TableFileError(f"{name!r} has no column {missing[0]!r}. It has {', '.join(map(repr, names[:20]))}.")
    duplicates = [column for column, count in Counter(columns or ()).items() if count > 1]
    if duplicates:
        raise ParameterError(f"columns names {duplicates[0]!r} twice, but each name may appear once.")


def _import_backend(package: str) -> Any:
    """Return the module of a backend, or raise an error that names the extra to install."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingDependencyError.for_package(package, "cli") from error


@contextlib.contextmanager
def _convert_errors(problem: str, advice: str = "") -> Iterator[None]:
    """Raise `TableFileError` with the problem and the advice for any error of another library."""
    try:
        yield
    except (AnchorlineError, MemoryError):
        raise
    except BaseException as error:
        # Polars can raise a PanicException, which is not a subclass of Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        raise TableFileError(f"{problem}: {reason}. {advice}".rstrip()) from error


def _open_table(raw: bytes, kind: str, backend: str) -> Any:
    """Return an Arrow table, or a Polars frame if that is the backend and pyarrow is not installed."""
    try:
        import pyarrow.ipc  # noqa: PLC0415  heavy, and not a dependency
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        if backend != "polars":
            raise MissingDependencyError.for_package("pyarrow", "cli") from None
        polars = _import_backend("polars")
        if kind == "parquet":
            return polars.read_parquet(BytesIO(raw))
        return (polars.read_ipc if raw.startswith(b"ARROW1") else polars.read_ipc_stream)(BytesIO(raw))
    if kind == "parquet":
        table = pyarrow.parquet.read_table(BytesIO(raw))
    elif raw.startswith(b"FEA1"):
        import pyarrow.feather  # noqa: PLC0415

        table = pyarrow.feather.read_table(BytesIO(raw))
    else:
        open_reader = pyarrow.ipc.open_file if raw.startswith(b"ARROW1") else pyarrow.ipc.open_stream
        table = open_reader(BytesIO(raw)).read_all()
    table.validate(full=True)  # otherwise invalid UTF-8 raises only later, wherever the text is first read
    return table


def frame_of(table: Any, backend: str, name: str) -> Any:
    """Return the table in the backend; a failure raises the error of the first column that fails alone."""
    advice = "Rewrite the file with numbers, texts, booleans and dates only."
    try:
        with _convert_errors(f"{name!r} cannot be read into {backend}", advice):
            return _to_backend(table, backend, name)
    except TableFileError:
        for field in table.schema:
            problem = f"{name!r}: column {field.name!r} ({field.type}) cannot be read into {backend}"
            with _convert_errors(problem, advice):
                _to_backend(table.select([field.name]), backend, name)
        raise


def _to_backend(table: Any, backend: str, name: str) -> Any:
    if backend == "pyarrow":
        return table
    if backend == "polars":
        return _import_backend("polars").DataFrame(table)
    frame = table.replace_schema_metadata({"pandas": _pandas_metadata(table, name)}).to_pandas()
    frame.columns = table.column_names
    return frame


def _pandas_metadata(table: Any, name: str) -> str:
    """Return the column types that pandas stored, without its index and its column labels.

    The stored index becomes a column like any other, and the labels become texts.
    """
    with _convert_errors(f"{name!r} has pandas metadata that cannot be read", "Rewrite the file."):
        entries, names = (table.schema.pandas_metadata or {}).get("columns", []), set(table.column_names)
        types = [entry for entry in entries if entry.get("field_name", entry.get("name")) in names]
        return json.dumps({"columns": types, "index_columns": [], "column_indexes": []})
