"""What the server logs: every record with its time and the id of its request, errors with their traceback."""

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime

from anchorline.render.characters import printable

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)


class LogFormatter(logging.Formatter):
    """Writes records as text, or as JSON with one line each.

    Messages may quote data: control characters appear as escapes, and lines of a traceback are indented, so that
    no text can pretend to be another record.
    """

    def __init__(self, *, as_json: bool = False) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        message, request = printable(record.getMessage()), request_id.get()
        trace = self.formatException(record.exc_info) if record.exc_info else None
        if self._as_json:
            line = {"time": time, "level": record.levelname.lower(), "logger": record.name, "message": message}
            return json.dumps(line | {"request_id": request, "traceback": trace})
        where = f" id={request}" if request is not None and request not in message else ""
        head = f"{time} {record.levelname} {record.name}: {message}{where}"
        return "\n".join([head, *(f"  | {printable(part)}" for part in (trace or "").splitlines())])
