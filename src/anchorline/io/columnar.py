"""Parquet and Arrow files, and frames of plain columns, on pandas, Polars or pyarrow."""

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any

from anchorline.errors import AnchorlineError, MissingDependencyError, ParameterError, TableFileError


def frame_of(columns: dict[str, list[Any]], backend: str) -> Any:
    """A frame of plain columns; None is missing."""
    if backend == "pandas":
        pandas = imported("pandas")
        return pandas.DataFrame({name: _pandas_column(values, pandas) for name, values in columns.items()})
    if backend == "polars":
        return imported("polars").DataFrame(columns)
    return imported("pyarrow").table(columns)


def read(raw: bytes, kind: str, backend: str, columns: Sequence[str] | None, name: str) -> Any:
    """A frame from the bytes of a Parquet or Arrow file; its columns are called the same on every backend."""
    imported(backend)
    with _told(f"{name!r} is no {kind} file"):
        table = _opened(raw, kind, backend)
    names = list(table.column_names if hasattr(table, "column_names") else table.columns)
    _check_names(names, len(table), name)
    return _converted(table.select(_wanted(names, columns, name)), backend, name)


def check_wanted(names: Sequence[str], columns: Sequence[str] | None, name: str) -> None:
    """Complain of wanted columns that are not there, or are wanted twice."""
    missing = [column for column in columns or () if column not in names]
    if missing:
        raise TableFileError(f"{name!r} has no column {missing[0]!r}; it has {', '.join(map(repr, names[:20]))}.")
    twice = [column for column, count in Counter(columns or ()).items() if count > 1]
    if twice:
        raise ParameterError(f"columns names {twice[0]!r} twice.")


def imported(package: str) -> Any:
    """A backend, or the error that names the extra."""
    from importlib import import_module  # noqa: PLC0415

    try:
        return import_module(package)
    except ImportError as error:
        raise MissingDependencyError.for_package(package, "cli") from error


def _pandas_column(values: list[Any], pandas: Any) -> Any:
    """Texts keep pandas' own type for them, and a column of nothing is one of numbers."""
    if all(value is None for value in values):
        return pandas.Series(values, dtype="float64")
    return values


@contextlib.contextmanager
def _told(what: str, then: str = "") -> Iterator[None]:
    """Whatever another library raises becomes the error that tells what of the file cannot be read."""
    try:
        yield
    except (AnchorlineError, MemoryError):
        raise
    except BaseException as error:
        # Where Polars gives up it raises a PanicException, which is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        raise TableFileError(f"{what}: {reason}. {then}".rstrip()) from error


def _opened(raw: bytes, kind: str, backend: str) -> Any:
    """An Arrow table, or Polars' own frame where that is wanted and pyarrow is missing."""
    try:
        table = _arrow_table(raw, kind)
    except ImportError:
        if backend != "polars":
            raise MissingDependencyError.for_package("pyarrow", "cli") from None
        return _polars_frame(raw, kind)
    table.validate(full=True)  # else texts that are none fail later, wherever they are looked at
    return table


def _arrow_table(raw: bytes, kind: str) -> Any:
    import pyarrow  # noqa: PLC0415
    import pyarrow.ipc  # noqa: PLC0415
    import pyarrow.parquet  # noqa: PLC0415

    if kind == "parquet":
        return pyarrow.parquet.read_table(BytesIO(raw))
    if raw.startswith(b"FEA1"):
        import pyarrow.feather  # noqa: PLC0415

        return pyarrow.feather.read_table(BytesIO(raw))
    opened = pyarrow.ipc.open_file if raw.startswith(b"ARROW1") else pyarrow.ipc.open_stream
    return opened(BytesIO(raw)).read_all()


def _polars_frame(raw: bytes, kind: str) -> Any:
    polars = imported("polars")
    if kind == "parquet":
        return polars.read_parquet(BytesIO(raw))
    return (polars.read_ipc if raw.startswith(b"ARROW1") else polars.read_ipc_stream)(BytesIO(raw))


def _converted(table: Any, backend: str, name: str) -> Any:
    """The table in the backend; where that fails, the error of the first column that fails alone."""
    advice = "Write the file anew with numbers, texts, booleans and dates only."
    try:
        with _told(f"{name!r} cannot be read into {backend}", advice):
            return _in_backend(table, backend, name)
    except TableFileError:
        for field in table.schema:
            with _told(f"{name!r}: column {field.name!r} ({field.type}) cannot be read into {backend}", advice):
                _in_backend(table.select([field.name]), backend, name)
        raise


def _in_backend(table: Any, backend: str, name: str) -> Any:
    if backend == "pyarrow":
        return table
    if backend == "polars":
        return imported("polars").DataFrame(table)
    frame = table.replace_schema_metadata({"pandas": _notes(table, name)}).to_pandas()
    frame.columns = table.column_names
    return frame


def _notes(table: Any, name: str) -> str:
    """What pandas noted of the columns' types; its index is a column here, and its labels are texts."""
    with _told(f"{name!r} holds notes by pandas that cannot be read", "Write the file anew."):
        noted, names = (table.schema.pandas_metadata or {}).get("columns", []), set(table.column_names)
        types = [note for note in noted if note.get("field_name", note.get("name")) in names]
        return json.dumps({"columns": types, "index_columns": [], "column_indexes": []})


def _check_names(names: list[str], n_rows: int, name: str) -> None:
    twice = [column for column, count in Counter(names).items() if count > 1]
    if twice:
        raise TableFileError(f"{name!r} has two columns called {twice[0]!r}. Rename one.")
    if not names or not n_rows:
        raise TableFileError(f"{name!r} has no {'rows' if names else 'columns'}.")


def _wanted(names: list[str], columns: Sequence[str] | None, name: str) -> list[str]:
    """The columns asked for; or all but pandas' stored index."""
    check_wanted(names, columns, name)
    if columns is not None:
        return list(columns)
    return [column for column in names if not re.fullmatch(r"__index_level_\d+__", column)]
