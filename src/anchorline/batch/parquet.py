"""Explanations as Parquet files: written one row group at a time, atomically, and with reproducible bytes."""

import contextlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from anchorline.errors import FormatError, MissingDependencyError
from anchorline.io.files import open_atomically
from anchorline.result.explanations import COLUMNS, REASON_COLUMNS, RULE_COLUMNS, Record
from anchorline.result.frames import RowIds

ROWS_PER_GROUP = 256  # fixed for reproducible bytes, and small so that long explanations need little memory
_IDENTITY = b"anchorline.batch"
_ID = b"anchorline.id"  # the name of the column that identifies rows


def write_parquet(
    path: str | PathLike[str],
    records: Iterable[Mapping[str, Any]],
    identity: Mapping[str, Any] | None = None,
    ids: RowIds | None = None,
    kinds: Mapping[str, str] = COLUMNS,
    checksums: bool = False,
) -> None:
    """Write records, as they arrive, to a file that then replaces ``path``; raise `OutputFileError` on failure.

    ``ids`` become the second column. ``kinds`` are the other columns, with their types. With ``checksums``, a
    reader notices changed bytes.
    """
    pa, pq = _arrow()
    schema = _schema(pa, identity, ids, kinds)
    # Explanations and rules all differ, so neither statistics nor a dictionary would be of use for them.
    summarized = [name for name in schema.names if name not in ("explanation", "rule")]
    layout: dict[str, Any] = {"write_statistics": summarized, "use_dictionary": summarized}
    layout |= {"compression": "zstd", "write_page_checksum": checksums}
    with open_atomically(path) as file, pq.ParquetWriter(file, schema, **layout) as writer:
        remaining = iter(records if ids is None else _with_ids(records, ids))
        while group := list(itertools.islice(remaining, ROWS_PER_GROUP)):
            columns = [pa.array([record.get(field.name) for record in group], field.type) for field in schema]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=ROWS_PER_GROUP)


def _with_ids(records: Iterable[Mapping[str, Any]], ids: RowIds) -> Iterator[Record]:
    padded = itertools.chain(ids.values, itertools.repeat(None))  # the records decide how many rows there are
    return ({**record, ids.name: value} for record, value in zip(records, padded, strict=False))


def read_parquet(
    path: str | PathLike[str], columns: Iterable[str] = (*COLUMNS, *RULE_COLUMNS, *REASON_COLUMNS)
) -> Iterator[Record]:
    """Yield the records of a file, or of all files of a folder, as clusters write them, one row group at a time.

    Records without a column ``row`` are numbered in the order of the numbers in the file names.
    """
    records = (record for file in _files(Path(path)) for record in _records(file, columns))
    return ({"row": place} | record for place, record in enumerate(records))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.parquet"), key=_natural_key)
    if not files:
        raise FormatError(
            f"The folder {str(path)!r} has no file whose name ends in .parquet. Name a folder with explanations."
        )
    return files


def _natural_key(file: Path) -> list[str | int]:
    """Return a sort key that puts part.10 after part.9: texts and numbers alternate."""
    return [int(text) if text.isdecimal() else text for text in re.split(r"([0-9]+)", file.name)]


def _records(path: Path, columns: Iterable[str]) -> Iterator[Record]:
    with _opened(path, page_checksum_verification=True) as file:
        names = file.schema_arrow.names
        missing = [name for name in COLUMNS if name not in names]
        if missing:
            raise FormatError(
                f"{str(path)!r} lacks the column {missing[0]!r}, so it does not hold explanations. Name a "
                "file that `anchorline batch` or `to_parquet` wrote."
            )
        wanted = [name for name in ("row", *columns) if name in names]
        for i in range(file.num_row_groups):
            yield from file.read_row_group(i, columns=wanted).to_pylist()


@contextlib.contextmanager
def _opened(path: Path, **options: Any) -> Iterator[Any]:
    pa, pq = _arrow()
    try:
        with pq.ParquetFile(path, **options) as file:
            yield file
    except FormatError:
        raise
    except (OSError, ValueError, IndexError, pa.ArrowException) as error:
        raise FormatError(f"{str(path)!r} cannot be read: {error}") from error


def read_ids(path: str | PathLike[str]) -> RowIds | None:
    """Return the ids of the rows of a file, or of all files of a folder; None if it was written without ids."""
    names, values = set(), list[Any]()
    for part in _files(Path(path)):
        with _opened(part) as file:
            name = (file.schema_arrow.metadata or {}).get(_ID, b"").decode()
            if name and file.num_row_groups:  # Arrow 18 cannot read a file without rows
                values += file.read(columns=[name]).column(0).to_pylist()
        names.add(name)
    name, *others = names
    return None if others or not name else RowIds.from_values(name, values)


def read_identity(path: Path) -> dict[str, Any] | None:
    """Return the identity of the batch that wrote this file; None if a batch did not write it."""
    with contextlib.suppress(FormatError), _opened(path) as file:
        stored = (file.schema_arrow.metadata or {}).get(_IDENTITY)
        return None if stored is None else dict(json.loads(stored))
    return None


def _schema(pa: Any, identity: Mapping[str, Any] | None, ids: RowIds | None, kinds: Mapping[str, str]) -> Any:
    types = {"text": pa.string(), "number": pa.float64()}
    fields = [("row", pa.int64()), *((name, types[kind]) for name, kind in kinds.items())]
    metadata = {} if identity is None else {_IDENTITY: json.dumps(identity, sort_keys=True).encode()}
    if ids is not None:
        found = pa.array(ids.values).type
        fields.insert(1, (ids.name, pa.string() if pa.types.is_null(found) else found))
        metadata[_ID] = ids.name.encode()
    return pa.schema(fields, metadata=metadata or None)


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow  # noqa: PLC0415  heavy, and not a dependency
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        raise MissingDependencyError.for_package("pyarrow", "batch") from None
    return pyarrow, pyarrow.parquet
