"""Errors as clients see them: RFC 9457's problem+json, without traces, tied to the logs by the request's id."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from anchorline.errors import (
    AnchorlineError,
    BudgetError,
    FormatError,
    InfeasibleError,
    InstanceError,
    ModelInputError,
    ParameterError,
    PredictorError,
    PredictorOutputError,
)
from anchorline.render.characters import printable

MEDIA_TYPE = "application/problem+json"
_MAX_DETAIL = 1000
_CLIENTS = (InstanceError, ParameterError, FormatError, BudgetError, InfeasibleError, ModelInputError)


class Problem(Exception):
    """A refusal: HTTP status, a sentence for the client, further members and headers."""

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
        """The problem as JSON; text from the client comes back printable and cut."""
        told = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": printable(self.detail)[:_MAX_DETAIL],
            "request_id": request_id,
        }
        return json.dumps(told | self.members).encode()


def problem_of(error: AnchorlineError) -> Problem:
    """What a client is told of one of the library's errors.

    A model's own words stay in the logs: they may quote rows, paths and credentials.
    """
    if isinstance(error, PredictorError | PredictorOutputError):
        cause = error.__cause__
        if isinstance(cause, ModelInputError):  # one of ours, raised inside the model
            return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(cause))
        return Problem(HTTPStatus.BAD_GATEWAY, "The model failed on this row or its neighbors; the log says how.")
    if isinstance(error, _CLIENTS):
        return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "No explanation could be computed; the log says why.")
