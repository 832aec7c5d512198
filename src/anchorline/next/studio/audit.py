"""The audit log: who asked for which case, and when, one JSON object per line."""

import hashlib
import json
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anchorline.errors import ParameterError

_COHORT = ("search", "other", "n_rows", "offset", "limit")  # what a request about many cases says about them


class AuditLog:
    """Appends one line per request about cases to a file; without a path, nothing is written."""

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.Lock()
        try:
            self._file = None if path is None else path.open("a", encoding="utf-8")
        except OSError as error:
            raise ParameterError(
                f"The audit log {str(path)!r} cannot be opened: {error.strerror}. Name a file in a folder that "
                "this process may write to."
            ) from error

    def record(
        self, state: Mapping[str, Any], route: str, content: Mapping[str, Any] | None, outcome: str
    ) -> None:
        """Write a line about one request; ``state`` is that of its ASGI scope."""
        if self._file is None:
            return
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "user": state.get("user"),
            "address": state.get("address"),
            "route": route,
            "case": _case(content or {}),
            **{name: (content or {})[name] for name in _COHORT if name in (content or {})},
            "outcome": outcome,
            "request_id": state.get("request_id"),
        }
        with self._lock:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()


def _case(content: Mapping[str, Any]) -> Any:
    """Return the number of a case, or a digest of the values of a case that is not in the table."""
    row = content.get("row", content.get("instances", content.get("explanation")))
    if row is None or isinstance(row, int):
        return row
    return "sha256:" + hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()
