"""Files that are written completely or not at all, and explanation files that are read with a size limit."""

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

MAX_EXPLANATION_BYTES = 64 * 2**20  # the limit of `Explanation.from_json`
_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is exceeded",
    errno.EFBIG: "the file would be larger than allowed",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "you do not have permission to write there",
    errno.EPERM: "you do not have permission to write there",
    errno.ENOENT: "the folder does not exist",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.EISDIR: "it is a folder",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EBADF: "it is closed",
}


def write_atomically(path: str | PathLike[str], content: str | bytes) -> None:
    """Write a file so that a reader finds either the old content or the new content, and never a part.

    The content is written to a temporary file in the same folder and fsynced, and the temporary file is then
    renamed. If anything fails, an interrupt included, the temporary file is removed and the old file stays;
    `OutputFileError` gives the reason. A device or a pipe (``/dev/stdout``) is written directly, because it
    cannot be replaced.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> write_atomically(folder / "report.txt", "done")
    >>> (folder / "report.txt").read_text(), len(list(folder.iterdir()))
    ('done', 1)
    """
    with open_atomically(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextlib.contextmanager
def open_atomically(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Open a binary file for writing in several steps, with the guarantees of `write_atomically`."""
    try:
        with _open_temporary(Path(path)) as file:
            yield file
    except (BrokenPipeError, OutputFileError):
        raise  # a reader that closed the pipe is not an error to report
    except OSError as error:
        raise OutputFileError(f"{fspath(path)!r} cannot be written: {reason_of(error)}.") from error


def reason_of(error: Exception) -> str:
    """Return why a file could not be written, in plain English."""
    reason = _REASONS.get(getattr(error, "errno", None) or 0)
    return reason or getattr(error, "strerror", None) or str(error)


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None
    except ValueError as error:  # the name contains a null character
        raise OSError(errno.EINVAL, str(error)) from error


@contextlib.contextmanager
def _open_temporary(path: Path) -> Iterator[BinaryIO]:
    old_mode = _mode(path)
    if old_mode is not None and stat.S_ISDIR(old_mode):
        raise IsADirectoryError(errno.EISDIR, "")
    if old_mode is not None and not stat.S_ISREG(old_mode):
        with path.open("wb") as device:
            yield device
        return
    target = Path(os.path.realpath(path))  # a symbolic link stays a link, and its target is replaced
    # The temporary name does not contain the target's name, which may already have the maximum length.
    temporary = target.with_name(f".anchorline-{secrets.token_hex(8)}.part")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if old_mode is not None:
            with contextlib.suppress(OSError):
                temporary.chmod(stat.S_IMODE(old_mode))
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Fsync the folder, so that the new name is on the disk; ignored where folders cannot be opened."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_explanation(path: str | PathLike[str]) -> str:
    """Return the text of an explanation's JSON file, for `Explanation.from_json` or `verify`.

    Raises `FormatError` if the file cannot be read, is too large or is not UTF-8.

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
        raise FormatError(
            f"{fspath(path)!r} has more than {MAX_EXPLANATION_BYTES:,} bytes, so it is not an explanation."
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"{fspath(path)!r} is not an explanation: the file is not valid UTF-8.") from error
