"""A table that a stranger sent: read in a process of its own, with little memory and time, and without a file.

The library that reads Parquet is not written for hostile files: a few bytes can ask for gigabytes, and a damaged
file may end the process. Here that process is one that nobody misses.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from io import BytesIO
from typing import Any, BinaryIO

from anchorline.errors import AnchorlineError, TableFileError
from anchorline.io.tables import decode, default_backend, frame_of
from anchorline.io.texts import check_distinct, parse_rows

KINDS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet"}
_SECONDS, _MEMORY = 20.0, 2 * 2**30  # of the process; the libraries reserve half a gigabyte before they read
_MOST_CONTENT = 64 * 2**20  # bytes of the table, however few the file has
_MOST_CHARACTERS = 100_000  # of a text
_KEPT = ("PATH", "SYSTEMROOT", "LANG", "LC_ALL")  # environment variables; a token is none of them
_POLL = 0.05  # seconds


def read_isolated(
    raw: bytes,
    name: str,
    numbers: Collection[str],
    columns: Sequence[str],
    most_rows: int,
    check: Callable[[], None] | None = None,
) -> Any:
    """Return the rows of a CSV file as dictionaries, and those of a Parquet file as a frame.

    Parameters
    ----------
    raw, name
        The content of the file, and its name, which says of what kind it is.
    numbers
        The columns in which a cell of CSV is a number or a boolean if it looks like one, as in `read_rows`.
    columns
        The columns to return, as far as the file has them.
    most_rows
        The most rows that the file may have.
    check
        Called several times per second; an error that it raises ends the process.

    Raises `TableFileError` for any other file, or if the process takes too much memory or time.
    """
    kind = KINDS.get(os.path.splitext(name)[1].lower())
    if kind is None:
        raise TableFileError(f"{name!r} is neither CSV nor Parquet. Its name must end in {', '.join(KINDS)}.")
    if not raw.strip():
        raise TableFileError(f"{name!r} is empty.")
    head = {"kind": kind, "name": name, "numbers": [*numbers], "columns": [*columns], "most_rows": most_rows}
    answer = _ask(json.dumps(head).encode() + b"\n" + raw, check)
    about, _, content = answer.partition(b"\n")
    try:
        said = json.loads(about)
    except ValueError:
        raise TableFileError(
            f"{name!r} cannot be read with {_MEMORY // 2**30} GB of memory in {_SECONDS:g} seconds, or is damaged."
        ) from None
    if "error" in said:
        raise TableFileError(said["error"])
    if kind == "csv":
        return json.loads(content)
    import pyarrow.ipc  # noqa: PLC0415  heavy

    return frame_of(pyarrow.ipc.open_stream(BytesIO(content)).read_all(), default_backend(), name)


def _ask(question: bytes, check: Callable[[], None] | None) -> bytes:
    """Return what the process answers, cut off after `_MOST_CONTENT` bytes; nothing if it takes too long."""
    environment = {key: os.environ[key] for key in _KEPT if key in os.environ}
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "ARROW_DEFAULT_MEMORY_POOL": "system"}
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    answer: list[bytes] = []
    talk = threading.Thread(target=_talk, args=(process.stdin, process.stdout, question, answer), daemon=True)
    talk.start()
    end = time.monotonic() + 2 * _SECONDS  # the processor may be busy
    try:
        while talk.is_alive() and time.monotonic() < end:
            talk.join(_POLL)
            if check is not None:
                check()
    finally:
        process.kill()
        process.wait()
        talk.join()
        process.stdout.close()
    return answer[0] if answer else b""


def _talk(question_pipe: BinaryIO, answer_pipe: BinaryIO, question: bytes, answer: list[bytes]) -> None:
    with contextlib.suppress(OSError, ValueError):  # the process has ended
        question_pipe.write(question)
    with contextlib.suppress(OSError):
        question_pipe.close()
    with contextlib.suppress(OSError, ValueError):
        answer.append(answer_pipe.read(_MOST_CONTENT + 2**20))


def answer_question(question: bytes) -> bytes:
    """Return a line of JSON, which may be an error, and the rows as JSON or as a stream of Arrow."""
    head, _, raw = question.partition(b"\n")
    about = json.loads(head)
    try:
        content = (_rows if about["kind"] == "csv" else _table)(raw, **about)
        if len(content) > _MOST_CONTENT:
            raise TableFileError(f"{about['name']!r} has more than {_MOST_CONTENT // 2**20} MB of content.")
    except AnchorlineError as error:
        return json.dumps({"error": str(error)}).encode() + b"\n"
    return b"{}\n" + content


def _rows(
    raw: bytes, name: str, kind: str, numbers: Sequence[str], columns: Sequence[str], most_rows: int
) -> bytes:
    rows = parse_rows(decode(raw, name), name, {*numbers})
    _check_rows(len(rows), most_rows, name)
    kept = [{key: row[key] for key in columns if key in row} for row in rows]
    for row in kept:
        for key, value in row.items():
            if isinstance(value, str):
                _check_text(len(value), key, name)
    return json.dumps(kept).encode()


def _table(
    raw: bytes, name: str, kind: str, numbers: Sequence[str], columns: Sequence[str], most_rows: int
) -> bytes:
    import pyarrow as pa  # noqa: PLC0415  heavy
    import pyarrow.compute as pc  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        file = pq.ParquetFile(BytesIO(raw))
        names = file.schema_arrow.names
        check_distinct(names, name)
        _check_rows(file.metadata.num_rows, most_rows, name)
        table = file.read([key for key in columns if key in names], use_threads=False)
        table.validate(full=True)
    except (AnchorlineError, MemoryError):
        raise
    except Exception as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        raise TableFileError(f"{name!r} is not a valid Parquet file: {reason}.") from error
    _check_rows(len(table), most_rows, name)  # what the file says may be wrong
    for key, column in zip(table.column_names, table.columns, strict=True):
        values = [chunk.dictionary for chunk in column.chunks] if pa.types.is_dictionary(column.type) else [column]
        for each in values:
            if pa.types.is_string(each.type) or pa.types.is_large_string(each.type):
                _check_text(pc.max(pc.binary_length(each)).as_py() or 0, key, name)
    if table.nbytes > _MOST_CONTENT:
        raise TableFileError(f"{name!r} has more than {_MOST_CONTENT // 2**20} MB of content.")
    sink = BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _check_rows(n: int, most: int, name: str) -> None:
    if n > most:
        raise TableFileError(f"{name!r} has {n:,} rows; the maximum is {most:,}.")
    if n < 1:
        raise TableFileError(f"{name!r} has no rows.")


def _check_text(n: int, column: str, name: str) -> None:
    if n > _MOST_CHARACTERS:
        raise TableFileError(f"{name!r} has a text of {n:,} characters in {column!r}; the maximum is 100,000.")


def _limit() -> None:
    try:
        import resource  # noqa: PLC0415  not on Windows
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CPU, (int(_SECONDS), int(_SECONDS)))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # nothing is written to disk
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    _limit()
    with open(1, "wb") as answers:
        answers.write(answer_question(sys.stdin.buffer.read()))
