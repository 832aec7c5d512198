"""What goes wrong: problem+json (RFC 9457) without tracebacks for clients, and a log with everything else.

The request's id in the problem leads to the log.
"""

import json
import logging
import re
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from anchorline.errors import (
    AnchorlineError,
    BudgetError,
    FavorableError,
    FormatError,
    InstanceError,
    ModelInputError,
    ParameterError,
    PredictorError,
    PredictorOutputError,
    ProhibitedError,
    ReasonsError,
    UnmappedError,
)
from anchorline.render.characters import printable

logger = logging.getLogger("anchorline.studio")
MEDIA_TYPE = "application/problem+json"
INTERNAL_ERROR = "The server failed to answer the request. The server's log contains the error."
_MAX_DETAIL = 1000
TYPES = {  # of problems, by status; reasons that cannot be stated have their own
    400: "malformed",
    401: "token",
    403: "foreign",
    404: "not-found",
    405: "method",
    408: "slow",
    409: "unfinished",
    410: "canceled",
    413: "large",
    415: "media-type",
    421: "host",
    422: "invalid",
    429: "busy",
    500: "error",
    502: "model",
    503: "unavailable",
}
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
_REASONS: dict[type[AnchorlineError], tuple[str, str]] = {  # the type of the problem, and what the operator can do
    FavorableError: ("favorable", ""),
    ProhibitedError: ("prohibited", "The model must be corrected."),
    UnmappedError: ("unmapped", "Add them to the file of --codes."),
    ReasonsError: ("no-reasons", "Start the server with --reference near or another file."),
}
_PYTHON = re.compile(r" (?:If scores|Correct the model|Add them, |Type ).*", re.DOTALL)
_CLIENT_ERRORS = (InstanceError, ParameterError, FormatError, BudgetError, ModelInputError)


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


class Problem(Exception):
    """A refused request: the HTTP status, a sentence for the client, further JSON members and headers."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        members: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.members = status, detail, members or {}
        self.headers = {**(headers or {}), **({} if retry_after is None else {"Retry-After": str(retry_after)})}

    def body(self, request_id: str) -> bytes:
        """Return the problem as JSON; the detail, which may quote the client, is made printable and truncated."""
        content = {
            "type": f"urn:anchorline:{TYPES.get(self.status, 'error')}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": printable(self.detail)[:_MAX_DETAIL],
            "request_id": request_id,
        }
        return json.dumps({**content, **self.members}).encode()

    def response(self, request_id: str) -> Response:
        """Return the answer to a request with this id."""
        return Response(self.body(request_id), self.status, self.headers, MEDIA_TYPE)


def problem_from_error(error: AnchorlineError) -> Problem:
    """Return the problem that a client receives for one of the library's errors, and log the error.

    A model's own error messages stay in the log, because they may quote rows, paths and credentials.
    """
    cause = error.__cause__
    if isinstance(cause, ModelInputError):  # raised by anchorline inside the model
        error = cause
    if isinstance(error, _CLIENT_ERRORS):
        logger.info("request %s: %s", request_id.get(), printable(str(error)))
        return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
    if isinstance(error, ReasonsError):  # its last sentence is for Python
        logger.info("request %s: %s", request_id.get(), printable(str(error)))
        kind, advice = _REASONS[type(error)]
        detail = f"{_PYTHON.sub('', str(error))} {advice}".strip()
        return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, members={"type": f"urn:anchorline:{kind}"})
    logger.error("request %s: %s", request_id.get(), printable(str(error)), exc_info=error)
    if isinstance(error, PredictorError | PredictorOutputError):
        detail = "The model failed on this row or its altered copies. The server's log contains the error."
        return Problem(HTTPStatus.BAD_GATEWAY, detail)
    detail = "The explanation could not be computed. The server's log contains the error."
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail)
