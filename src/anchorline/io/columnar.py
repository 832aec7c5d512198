"""Parquet and Arrow files, and frames of plain columns, in pandas, Polars or pyarrow."""

import contextlib
import importlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any

from anchorline.errors import AnchorlineError, MissingDependencyError, ParameterError, TableFileError


def build_frame(columns: dict[str, list[Any]], backend: str) -> Any:
    """Return a frame of plain columns, in which None is a missing value."""
    module = import_backend(backend)
    if backend == "pyarrow":
        return module.table(columns)
    if backend == "pandas":  # a column without values is one of numbers
        columns = {
            name: module.Series(values, dtype="float64") if all(value is None for value in values) else values
            for name, values in columns.items()
        }
    return module.DataFrame(columns)


def read(raw: bytes, kind: str, backend: str, columns: Sequence[str] | None, name: str) -> Any:
    """Return a frame from the bytes of a Parquet or Arrow file, with the same column names in every backend."""
    import_backend(backend)
    with _convert_errors(f"{name!r} is not a valid {kind} file"):
        table = _open_table(raw, kind, backend)
    names = list(table.column_names if hasattr(table, "column_names") else table.columns)
    duplicates = [column for column, count in Counter(names).items() if count > 1]
    if duplicates:
        raise TableFileError(f"{name!r} has two columns called {duplicates[0]!r}. Rename one of them.")
    if not names or not len(table):
        raise TableFileError(f"{name!r} has no {'rows' if names else 'columns'}.")
    check_selection(names, columns, name)
    if columns is None:  # all except the index that pandas stored
        columns = [column for column in names if not re.fullmatch(r"__index_level_\d+__", column)]
    return _convert(table.select(list(columns)), backend, name)


def check_selection(names: Sequence[str], columns: Sequence[str] | None, name: str) -> None:
    """Raise an error if a selected column is missing from the file or selected twice."""
    missing = [column for column in columns or () if column not in names]
    if missing:
        raise TableFileError(f"{name!r} has no column {missing[0]!r}. It has {', '.join(map(repr, names[:20]))}.")
    duplicates = [column for column, count in Counter(columns or ()).items() if count > 1]
    if duplicates:
        raise ParameterError(f"columns names {duplicates[0]!r} twice, but each name may appear once.")


def import_backend(package: str) -> Any:
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
        polars = import_backend("polars")
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


def _convert(table: Any, backend: str, name: str) -> Any:
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
        return import_backend("polars").DataFrame(table)
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
