"""What every loader shares: the caller's `Options`, and reading the bytes of a model file."""

from dataclasses import dataclass
from pathlib import Path

from anchorline.errors import ModelFileError
from anchorline.model.loaders.http_limits import HttpLimits

_HEAD_BYTES = 512


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller allows: extra types in a skops file, unpickling, and the limits of an HTTP model."""

    trust: tuple[str, ...]
    trust_pickle: bool
    http: HttpLimits


def read_head(path: Path) -> bytes:
    """Return the first bytes of a model file; raise `ModelFileError` if it is unreadable or empty."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except IsADirectoryError:
        raise ModelFileError(f"{str(path)!r} is a folder. Type the name of a model file.") from None
    except (OSError, ValueError) as error:  # ValueError if the name holds a null character
        reason = getattr(error, "strerror", None) or error
        raise ModelFileError(f"The model {str(path)!r} cannot be read: {reason}.") from error
    if not head:
        raise ModelFileError(f"The model {str(path)!r} is empty.")
    return head


def read_whole(path: Path, max_bytes: int) -> bytes:
    """Return all bytes of a model file; raise `ModelFileError` if there are more than ``max_bytes``."""
    read_head(path)
    with path.open("rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ModelFileError(f"The model {str(path)!r} is too large; the limit is {max_bytes:,} bytes.")
    return content
