"""The audit log: who asked for which case, and when, one JSON object per line."""

import errno
import hashlib
import json
import logging
import os
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any

from anchorline.errors import ParameterError
from anchorline.render.characters import printable
from anchorline.studio.problems import Problem

logger = logging.getLogger("anchorline.studio")
CANNOT_WRITE = "The audit log cannot be written."

_COHORT = ("search", "other", "n_rows", "offset", "limit")  # what a request about many cases says about them


class AuditLog:
    """Appends one line per request about cases to a file; without a path, nothing is written.

    ``failed`` says whether the last line could not be written.
    """

    def __init__(self, path: Path | None) -> None:
        self._lock, self.failed = threading.Lock(), False
        try:
            self._file = None if path is None else path.open("ab", buffering=0)
        except OSError as error:
            raise ParameterError(
                f"The audit log {str(path)!r} cannot be opened: {error.strerror}. Name a file in a folder that "
                "this process may write to."
            ) from error

    def record(
        self, state: Mapping[str, Any], route: str, content: Mapping[str, Any] | None, outcome: str
    ) -> None:
        """Write a line about one request; ``state`` is that of its ASGI scope.

        Raises `Problem` 503 if the line cannot be written: an answer that nobody could account for is not given.
        """
        line = {
            "user": state.get("user"),
            "address": state.get("address"),
            "route": route,
            "case": _case(content or {}),
            **{name: (content or {})[name] for name in _COHORT if name in (content or {})},
            "outcome": outcome,
            "request_id": state.get("request_id"),
        }
        self._write(line)
        if self.failed:
            raise Problem(503, f"{CANNOT_WRITE} No case is explained.", headers={"Retry-After": "60"})

    def resume(self) -> bool:
        """Try to write again after a failure, and return whether it has worked."""
        self._write({"route": "audit", "outcome": "resumed"})
        return not self.failed

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._file is None:
            return
        text = json.dumps({"time": datetime.now(UTC).isoformat(timespec="milliseconds")} | dict(line))
        with self._lock:
            try:
                _append(self._file, text.encode() + b"\n")
                self.failed = False
            except OSError:
                self.failed = True
                logger.exception("The audit log %s cannot be written.", printable(str(self._file.name)))


def _append(file: FileIO, line: bytes) -> None:
    """Append a whole line or nothing: what fits on a full disk is cut off again."""
    size = os.fstat(file.fileno()).st_size
    if file.write(line) < len(line):
        file.truncate(size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _case(content: Mapping[str, Any]) -> Any:
    """Return the number of a case, or a digest of the values of a case that is not in the table."""
    row = content.get("row", content.get("instances", content.get("explanation")))
    if row is None or isinstance(row, int):
        return row
    return "sha256:" + hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()
