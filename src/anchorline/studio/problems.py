"""Errors as clients receive them: problem+json (RFC 9457) without tracebacks.

The request's id in the body leads to the log, which holds the details.
"""

import json
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from anchorline.errors import (
    AnchorlineError,
    BudgetError,
    FormatError,
    InstanceError,
    ModelInputError,
    ParameterError,
    PredictorError,
    PredictorOutputError,
)
from anchorline.render.characters import printable
from anchorline.studio.logs import request_id

logger = logging.getLogger("anchorline.studio")
MEDIA_TYPE = "application/problem+json"
_MAX_DETAIL = 1000
_CLIENT_ERRORS = (InstanceError, ParameterError, FormatError, BudgetError, ModelInputError)


class Problem(Exception):
    """A refused request: the HTTP status, a sentence for the client, further JSON members and headers."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        members: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail
        self.members, self.headers = dict(members or {}), dict(headers or {})

    def body(self, request_id: str) -> bytes:
        """Return the problem as JSON; the detail, which may quote the client, is made printable and truncated."""
        content = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": printable(self.detail)[:_MAX_DETAIL],
            "request_id": request_id,
        }
        return json.dumps(content | self.members).encode()


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
    logger.error("request %s: %s", request_id.get(), printable(str(error)), exc_info=error)
    if isinstance(error, PredictorError | PredictorOutputError):
        detail = "The model failed on this row or its altered copies. The server's log contains the error."
        return Problem(HTTPStatus.BAD_GATEWAY, detail)
    detail = "The explanation could not be computed. The server's log contains the error."
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail)
