r"""The journal of a batch: one line a finished row, appended, each with its own checksum.

The first line says what the batch is made of. A process that is killed leaves at worst a torn last line, which
is dropped when the batch goes on. ``CRC JSON\n``, in ASCII.
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
from anchorline.result.explanations import Record

FORMAT = "anchorline batch journal 1"
_KEPT = " Nothing finished is lost: when this is mended, go on with resume (--resume)."
_SYNC_SECONDS = 2.0  # how much work a power cut may cost; a killed process costs none of what was written


class Journal:
    """An open journal; `append` rows, in order, and `tick` now and then to bring them to the disk."""

    def __init__(self, path: Path, descriptor: int, n_rows: int, dropped: int = 0) -> None:
        self.path, self.n_rows, self.dropped = path, n_rows, dropped
        self._descriptor, self._synced, self._is_dirty = descriptor, time.monotonic(), False

    @classmethod
    def begin(cls, path: Path, identity: Mapping[str, Any]) -> "Journal":
        """A new journal; what the batch is made of stands in its first line."""
        with _told(path, promise=""):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        journal = cls(path, descriptor, 0)
        _lock(descriptor, path)
        journal._write({"format": FORMAT, "identity": identity})
        journal._sync()
        return journal

    @classmethod
    def resume(cls, path: Path, identity: Mapping[str, Any]) -> "Journal":
        """Go on with a journal of the very same batch; a torn end is cut off."""
        with _told(path):
            descriptor = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        try:
            _lock(descriptor, path)
            began_with, n_rows, end = _survey(path)
            if began_with is None:  # killed while its first line was written
                with _told(path):
                    dropped = os.fstat(descriptor).st_size
                    os.ftruncate(descriptor, 0)
                journal = cls(path, descriptor, 0, dropped)
                journal._write({"format": FORMAT, "identity": identity})
                return journal
            check_identity(began_with, identity, str(path))
            with _told(path):
                dropped = os.fstat(descriptor).st_size - end
                os.ftruncate(descriptor, end)
                os.lseek(descriptor, end, os.SEEK_SET)
            return cls(path, descriptor, n_rows, dropped)
        except BaseException:
            os.close(descriptor)
            raise

    @classmethod
    def lock_only(cls, path: Path) -> "Journal":
        """Hold a journal so that nobody else works on it, whatever is in it."""
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        _lock(descriptor, path)
        return cls(path, descriptor, 0)

    def append(self, record: Record) -> None:
        """Write the next row's record; it survives the death of this process from here on."""
        if record["row"] != self.n_rows:
            raise JournalError(f"Row {record['row']} came where row {self.n_rows} was due.")
        self._write(record)
        self.n_rows += 1

    def tick(self) -> None:
        """Bring what was written to the disk, if it is time."""
        if self._is_dirty and time.monotonic() - self._synced >= _SYNC_SECONDS / 2:
            self._sync()

    def close(self) -> None:
        """Bring all to the disk and let go of the file."""
        try:
            if self._is_dirty:
                self._sync()
        finally:
            os.close(self._descriptor)

    def _write(self, entry: Mapping[str, Any]) -> None:
        text = json.dumps(entry, separators=(",", ":"), allow_nan=False).encode("ascii")
        line = b"%08x %b\n" % (zlib.crc32(text), text)
        with _told(self.path):
            while line:
                line = line[os.write(self._descriptor, line) :]
        self._is_dirty = True

    def _sync(self) -> None:
        with _told(self.path):
            os.fsync(self._descriptor)
        self._synced, self._is_dirty = time.monotonic(), False


def records(path: Path) -> Iterator[Record]:
    """The rows of a journal, one at a time."""
    for n, (entry, _) in enumerate(_entries(path)):
        if n:
            yield entry


def check_identity(began_with: Mapping[str, Any], identity: Mapping[str, Any], where: str) -> None:
    """Refuse to go on with anything but the very same batch, and say what is different."""
    now = json.loads(json.dumps(identity))
    names = [name for name in {**began_with, **now} if began_with.get(name) != now.get(name)]
    if names:
        told = "; ".join(_difference(name, began_with.get(name), now.get(name)) for name in names)
        raise JournalError(
            f"{where!r} belongs to another batch: {told}. Give back what it began with, or begin anew with "
            "overwrite (--overwrite)."
        )


def _difference(name: str, before: Any, now: Any) -> str:
    if isinstance(before, dict) and isinstance(now, dict):
        changed = [key for key in {**before, **now} if before.get(key) != now.get(key)]
        return ", ".join(f"{name} {key} was {before.get(key)!r:.40}, is {now.get(key)!r:.40}" for key in changed)
    return f"{name} was {before!r:.40}, is {now!r:.40}"


def _survey(path: Path) -> tuple[dict[str, Any] | None, int, int]:
    """What the batch began with, the number of whole lines of rows, and where they end."""
    identity, n_rows, end = None, -1, 0
    for entry, stop in _entries(path):
        if identity is None:
            if entry.get("format") != FORMAT or not isinstance(entry.get("identity"), dict):
                raise JournalError(f"{str(path)!r} is no journal of a batch of this release. Remove or rename it.")
            identity = entry["identity"]
        elif entry.get("row") != n_rows:
            break  # not ours, or out of order: what follows is explained again
        n_rows, end = n_rows + 1, stop
    if identity is None and path.stat().st_size and not _begins_like_a_journal(path):
        raise JournalError(f"{str(path)!r} is no journal of a batch. Remove or rename it.")
    return identity, max(0, n_rows), end


def _begins_like_a_journal(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(200)
    start = b'{"format":"anchorline batch journal'
    return start.startswith(head[9 : 9 + len(start)]) and b"\n" not in head


def _entries(path: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """Every whole line and where it ends, up to the first that is torn or changed."""
    end = 0
    with _told(path), path.open("rb") as file:
        for line in file:
            end += len(line)
            if len(line) < 10 or not line.endswith(b"\n") or line[:9] != b"%08x " % zlib.crc32(line[9:-1]):
                return
            yield json.loads(line[9:]), end


def _lock(descriptor: int, path: Path) -> None:
    """Nobody else writes here; the lock goes with the process, however it ends."""
    try:
        import fcntl  # noqa: PLC0415  not on Windows
    except ImportError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise JournalError(f"Another process is working on {str(path)!r}. Wait for it, or end it.") from None
    except OSError:
        return  # a file system without locks
    try:
        same = os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        same = False
    if not same:  # opened while its owner finished and removed it
        raise JournalError(f"Another process has just finished with {str(path)!r}. Start again.")


@contextlib.contextmanager
def _told(path: Path, promise: str = _KEPT) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputFileError(f"{str(path)!r} cannot be written: {reason_of(error)}.{promise}") from error
