r"""The journal of a batch: one appended line per finished row, each with its own checksum.

The first line holds the identity of the batch. A process that is killed leaves at worst an incomplete last line,
which is dropped when the batch is resumed. Each line is ``CRC JSON\n``, in ASCII.
"""

import contextlib
import json
import os
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from anchorline.errors import JournalError, OutputFileError
from anchorline.io.files import reason_of
from anchorline.next.result.explanations import Record

FORMAT = "anchorline batch journal 1"
_RESUME_HINT = " Finished rows are not lost. Fix the cause, then continue with resume (--resume)."
_SYNC_SECONDS = 2.0  # work that a power cut may cost; if only the process is killed, no written row is lost


class Journal:
    """An open journal; call `append` with each row, in order, and `tick` regularly to sync the file to disk."""

    def __init__(self, path: Path, descriptor: int, n_rows: int, dropped: int = 0) -> None:
        self.path, self.n_rows, self.dropped = path, n_rows, dropped
        self._descriptor, self._synced, self._is_dirty = descriptor, time.monotonic(), False

    @classmethod
    def begin(cls, path: Path, identity: Mapping[str, Any]) -> "Journal":
        """Create a journal whose first line holds the identity of the batch."""
        with _output_errors(path, hint=""):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        journal = cls(path, descriptor, 0)
        _lock(descriptor, path)
        journal._write({"format": FORMAT, "identity": identity})
        journal._sync()
        return journal

    @classmethod
    def resume(cls, path: Path, identity: Mapping[str, Any]) -> "Journal":
        """Open the journal of the same batch and cut off an incomplete end."""
        with _output_errors(path):
            descriptor = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        try:
            _lock(descriptor, path)
            saved_identity, n_rows, end = _scan(path)
            if saved_identity is None:  # the process was killed while it wrote the first line
                with _output_errors(path):
                    dropped = os.fstat(descriptor).st_size
                    os.ftruncate(descriptor, 0)
                journal = cls(path, descriptor, 0, dropped)
                journal._write({"format": FORMAT, "identity": identity})
                return journal
            check_identity(saved_identity, identity, str(path))
            with _output_errors(path):
                dropped = os.fstat(descriptor).st_size - end
                os.ftruncate(descriptor, end)
                os.lseek(descriptor, end, os.SEEK_SET)
            return cls(path, descriptor, n_rows, dropped)
        except BaseException:
            os.close(descriptor)
            raise

    @classmethod
    def lock_only(cls, path: Path) -> "Journal":
        """Lock a journal, whatever its content, so that no other process works on it."""
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        _lock(descriptor, path)
        return cls(path, descriptor, 0)

    def append(self, record: Record) -> None:
        """Write the record of the next row; from then on it survives the death of this process."""
        if record["row"] != self.n_rows:
            raise JournalError(f"Got row {record['row']} instead of row {self.n_rows}. Rows must come in order.")
        self._write(record)
        self.n_rows += 1

    def tick(self) -> None:
        """Sync the file to disk if the last sync is long enough ago."""
        if self._is_dirty and time.monotonic() - self._synced >= _SYNC_SECONDS / 2:
            self._sync()

    def close(self) -> None:
        """Sync the file to disk and close it."""
        try:
            if self._is_dirty:
                self._sync()
        finally:
            os.close(self._descriptor)

    def _write(self, entry: Mapping[str, Any]) -> None:
        text = json.dumps(entry, separators=(",", ":"), allow_nan=False).encode("ascii")
        line = b"%08x %b\n" % (zlib.crc32(text), text)
        with _output_errors(self.path):
            while line:
                line = line[os.write(self._descriptor, line) :]
        self._is_dirty = True

    def _sync(self) -> None:
        with _output_errors(self.path):
            os.fsync(self._descriptor)
        self._synced, self._is_dirty = time.monotonic(), False


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a journal, one row at a time."""
    for n, (entry, _) in enumerate(_entries(path)):
        if n:
            yield entry


def check_identity(saved: Mapping[str, Any], identity: Mapping[str, Any], name: str) -> None:
    """Raise `JournalError`, which lists the differences, unless the saved identity is that of this batch."""
    current = json.loads(json.dumps(identity))
    keys = [key for key in {**saved, **current} if saved.get(key) != current.get(key)]
    if keys:
        differences = "; ".join(_difference(key, saved.get(key), current.get(key)) for key in keys)
        raise JournalError(
            f"{name!r} belongs to another batch: {differences}. Use the original inputs and settings, or start "
            "again with overwrite (--overwrite)."
        )


def _difference(name: str, saved: Any, current: Any) -> str:
    if isinstance(saved, dict) and isinstance(current, dict):
        keys = [key for key in {**saved, **current} if saved.get(key) != current.get(key)]
        return ", ".join(f"{name} {key} was {saved.get(key)!r:.40}, is {current.get(key)!r:.40}" for key in keys)
    return f"{name} was {saved!r:.40}, is {current!r:.40}"


def _scan(path: Path) -> tuple[dict[str, Any] | None, int, int]:
    """Return the identity of the batch, the number of complete rows, and the position where they end."""
    identity, n_rows, end = None, -1, 0
    for entry, stop in _entries(path):
        if identity is None:
            if entry.get("format") != FORMAT or not isinstance(entry.get("identity"), dict):
                raise JournalError(
                    f"{str(path)!r} is not a batch journal of this version of anchorline. Remove or rename it."
                )
            identity = entry["identity"]
        elif entry.get("row") != n_rows:
            break  # a foreign line, or one out of order: the rows from here on are explained again
        n_rows, end = n_rows + 1, stop
    if identity is None and path.stat().st_size and not _begins_like_a_journal(path):
        raise JournalError(f"{str(path)!r} is not a batch journal. Remove or rename it.")
    return identity, max(0, n_rows), end


def _begins_like_a_journal(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(200)
    start = b'{"format":"anchorline batch journal'
    return start.startswith(head[9 : 9 + len(start)]) and b"\n" not in head


def _entries(path: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield every complete line and the position where it ends, up to the first incomplete or changed line."""
    end = 0
    with _output_errors(path), path.open("rb") as file:
        for line in file:
            end += len(line)
            if len(line) < 10 or not line.endswith(b"\n") or line[:9] != b"%08x " % zlib.crc32(line[9:-1]):
                return
            yield json.loads(line[9:]), end


def _lock(descriptor: int, path: Path) -> None:
    """Lock the file for this process; the system releases the lock when the process ends, in whatever way."""
    try:
        import fcntl  # noqa: PLC0415  not on Windows
    except ImportError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise JournalError(
            f"Another process is using {str(path)!r}. Wait until it has finished, or end it."
        ) from None
    except OSError:
        return  # the file system has no locks
    try:
        same = os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        same = False
    if not same:  # the owner finished and removed the file while this process opened it
        raise JournalError(f"Another process has just finished with {str(path)!r}. Start the command again.")


@contextlib.contextmanager
def _output_errors(path: Path, hint: str = _RESUME_HINT) -> Iterator[None]:
    """Turn an `OSError` into an `OutputFileError` that names the file."""
    try:
        yield
    except OSError as error:
        raise OutputFileError(f"{str(path)!r} cannot be written: {reason_of(error)}.{hint}") from error
