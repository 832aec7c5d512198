"""Files written whole or not at all, and small ones read with a limit."""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO

from anchorline.errors import FormatError, OutputFileError

MAX_EXPLANATION_BYTES = 64 * 2**20  # what `Explanation.from_json` reads
_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than allowed",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "you have no right to write there",
    errno.EPERM: "you have no right to write there",
    errno.ENOENT: "the folder does not exist",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.EISDIR: "it is a folder",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EBADF: "it is closed",
}


def write_atomically(path: str | PathLike[str], content: str | bytes) -> None:
    """Write a file so that a reader finds the old content or the new one, and never a part of it.

    It is written beside its place, brought to the disk, then renamed. Whatever goes wrong, an interrupt
    included, the file beside is removed and the old one stays; `OutputFileError` says why. A device or a
    pipe (``/dev/stdout``) is written to directly: it cannot be replaced.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> write_atomically(folder / "report.txt", "done")
    >>> (folder / "report.txt").read_text(), len(list(folder.iterdir()))
    ('done', 1)
    """
    with replacing(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextlib.contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to bit by bit, with the promises of `write_atomically`."""
    try:
        with _opened(Path(path)) as file:
            yield file
    except (BrokenPipeError, OutputFileError):
        raise  # the reader went away: nothing to report
    except OSError as error:
        raise OutputFileError(f"{fspath(path)!r} cannot be written: {reason_of(error)}.") from error


def reason_of(error: Exception) -> str:
    """Why something could not be written, in plain words."""
    known = _REASONS.get(getattr(error, "errno", None) or 0)
    return known or getattr(error, "strerror", None) or str(error)


def _mode(place: Path) -> int | None:
    try:
        return place.stat().st_mode
    except FileNotFoundError:
        return None
    except ValueError as error:  # a null character in the name
        raise OSError(errno.EINVAL, str(error)) from error


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    old = _mode(path)
    if old is not None and stat.S_ISDIR(old):
        raise IsADirectoryError(errno.EISDIR, "")
    if old is not None and not stat.S_ISREG(old):
        with path.open("wb") as device:
            yield device
        return
    place = Path(os.path.realpath(path))  # a link stays a link
    # The name starts anew: a long one would leave no room for the ending.
    beside = place.with_name(f".anchorline-{secrets.token_hex(8)}.part")
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if old is not None:
            with contextlib.suppress(OSError):
                beside.chmod(stat.S_IMODE(old))
        beside.replace(place)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    _sync_folder(place.parent)


def _sync_folder(folder: Path) -> None:
    """Bring the new name to the disk, where folders can be opened."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_explanation(path: str | PathLike[str]) -> str:
    """The text of an explanation's JSON file, for `Explanation.from_json` or `verify`; `FormatError` if none.

    Examples
    --------
    >>> read_explanation("/nowhere.json")
    Traceback (most recent call last):
    ...
    anchorline.errors.FormatError: '/nowhere.json' cannot be read: No such file or directory.
    """
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_EXPLANATION_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FormatError(f"{fspath(path)!r} cannot be read: {reason}.") from error
    if len(raw) > MAX_EXPLANATION_BYTES:
        raise FormatError(f"{fspath(path)!r} has more than {MAX_EXPLANATION_BYTES:,} bytes: no explanation.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"{fspath(path)!r} is no explanation: it is no text in UTF-8.") from error
