"""Explanations as Parquet files: written row group by row group, whole or not at all, the same bytes always."""

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from anchorline.errors import FormatError, MissingDependencyError
from anchorline.io.files import open_atomically
from anchorline.result.explanations import COLUMNS, Record

ROWS_A_GROUP = 256  # fixed, for the same bytes; few, so that memory does not grow with long explanations
_IDENTITY = b"anchorline.batch"


def write_parquet(
    path: str | PathLike[str], records: Iterable[Mapping[str, Any]], identity: Mapping[str, Any] | None = None
) -> None:
    """Write records, as they come, beside the place; then rename. `OutputFileError` says what went wrong."""
    pa, pq = _arrow()
    schema = _schema(pa, identity)
    told = [name for name in schema.names if name != "explanation"]  # no two are alike: nothing to sum up
    layout = {"compression": "zstd", "write_statistics": told, "use_dictionary": told}
    with open_atomically(path) as file, pq.ParquetWriter(file, schema, **layout) as writer:
        remaining = iter(records)
        while group := list(itertools.islice(remaining, ROWS_A_GROUP)):
            columns = [pa.array([record[field.name] for record in group], field.type) for field in schema]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=ROWS_A_GROUP)


def read_parquet(path: str | PathLike[str]) -> Iterator[Record]:
    """The records of a file, a row group at a time; or of all files of a folder, as clusters write them.

    Where no column ``row`` tells a row's place, it is counted, in the order of the files' numbers.
    """
    records = itertools.chain.from_iterable(map(_records, _files(Path(path))))
    return ({"row": place} | record for place, record in enumerate(records))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.parquet"), key=_numbered)
    if not files:
        raise FormatError(f"{str(path)!r} has no file called .parquet: it does not hold explanations.")
    return files


def _numbered(file: Path) -> list[str | int]:
    """To sort part.10 behind part.9: texts and numbers take turns."""
    return [int(text) if text.isdecimal() else text for text in re.split(r"([0-9]+)", file.name)]


def _records(path: Path) -> Iterator[Record]:
    pa, pq = _arrow()
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            missing = [name for name in COLUMNS if name not in names]
            if missing:
                raise FormatError(f"{str(path)!r} has no column {missing[0]!r}: it does not hold explanations.")
            wanted = [name for name in ("row", *COLUMNS) if name in names]
            for i in range(file.num_row_groups):
                yield from file.read_row_group(i, columns=wanted).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise FormatError(f"{str(path)!r} cannot be read: {error}") from error


def identity_of(path: Path) -> dict[str, Any] | None:
    """What the batch that wrote this file was made of; None if no batch did."""
    pa, pq = _arrow()
    try:
        kept = (pq.read_schema(path).metadata or {}).get(_IDENTITY)
        return None if kept is None else dict(json.loads(kept))
    except (OSError, ValueError, pa.ArrowException):
        return None


def _schema(pa: Any, identity: Mapping[str, Any] | None) -> Any:
    types = {"text": pa.string(), "number": pa.float64()}
    fields = [("row", pa.int64()), *((name, types[kind]) for name, kind in COLUMNS.items())]
    kept = None if identity is None else {_IDENTITY: json.dumps(identity, sort_keys=True).encode()}
    return pa.schema(fields, metadata=kept)


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow  # noqa: PLC0415  heavy, and not a dependency
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        raise MissingDependencyError.for_package("pyarrow", "batch") from None
    return pyarrow, pyarrow.parquet
