"""Parquet and Arrow files, and frames of plain columns, on pandas, Polars or pyarrow."""

import re
from collections import Counter
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from anchorline.errors import MissingDependencyError, ParameterError, TableFileError


def frame_of(columns: dict[str, list[Any]], backend: str) -> Any:
    """A frame of plain columns; None is missing."""
    if backend == "pandas":
        pandas = imported("pandas")
        return pandas.DataFrame({name: _pandas_column(values, pandas) for name, values in columns.items()})
    if backend == "polars":
        return imported("polars").DataFrame(columns)
    return imported("pyarrow").table(columns)


def read(raw: bytes, kind: str, backend: str, columns: Sequence[str] | None, name: str) -> Any:
    """A frame from the bytes of a Parquet or Arrow file."""
    try:
        table = _arrow_table(raw, kind)
    except ImportError:
        if backend != "polars":
            raise MissingDependencyError.of("pyarrow", "cli") from None
        return _checked(_polars_frame(raw, kind, name), columns, name)
    except Exception as error:  # pyarrow's own, OSError among them
        raise TableFileError(f"{name!r} is no {kind} file: {' '.join(str(error).split())}") from error
    names = [str(column) for column in table.column_names]
    _check_names(names, table.num_rows, name)
    wanted = _wanted(names, columns, name)
    if backend == "pyarrow":
        return table.select(wanted)
    if backend == "polars":
        return imported("polars").from_arrow(table.select(wanted))
    frame = table.to_pandas()  # before columns are picked: pandas' notes name its index
    return frame.reset_index(drop=set(wanted) <= set(frame.columns))[wanted]


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
        raise MissingDependencyError.of(package, "cli") from error


def _pandas_column(values: list[Any], pandas: Any) -> Any:
    """Texts keep pandas' own type for them, and a column of nothing is one of numbers."""
    if all(value is None for value in values):
        return pandas.Series(values, dtype="float64")
    return values


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


def _polars_frame(raw: bytes, kind: str, name: str) -> Any:
    polars = imported("polars")
    try:
        if kind == "parquet":
            return polars.read_parquet(BytesIO(raw))
        return (polars.read_ipc if raw.startswith(b"ARROW1") else polars.read_ipc_stream)(BytesIO(raw))
    except Exception as error:
        raise TableFileError(f"{name!r} is no {kind} file: {error}") from error


def _checked(frame: Any, columns: Sequence[str] | None, name: str) -> Any:
    _check_names(list(frame.columns), len(frame), name)
    return frame.select(_wanted(list(frame.columns), columns, name))


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
