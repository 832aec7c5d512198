"""The OpenAPI document: FastAPI's own, with the problems that every request may be answered with."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from anchorline.studio.problems import MEDIA_TYPE
from anchorline.studio.schemas import ProblemAnswer

_STATUSES = {
    400: "The body is not valid JSON, or it is nested too deeply.",
    401: "The token is missing or wrong.",
    403: "The request comes from another site.",
    404: "No resource exists at this address.",
    408: "The request took too long to arrive.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    421: "The Host header does not name this server.",
    422: "The request violates the schema, the table's columns or the limits.",
    429: "Too many requests are waiting. Retry-After holds the seconds to wait.",
    502: "The model failed.",
    503: "The answer took too long, or the server is shutting down.",
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": description,
        "content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemAnswer.__name__}"}}},
    }
    for status, description in _STATUSES.items()
}


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """Return the whole OpenAPI document, which is built on the first call."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            routes=app.routes,
            servers=app.servers or None,
        )
        components = document.setdefault("components", {}).setdefault("schemas", {})
        components[ProblemAnswer.__name__] = ProblemAnswer.model_json_schema()
        for path in document["paths"].values():
            for operation in path.values():
                operation["responses"].get("422", {}).get("content", {}).pop("application/json", None)
        components.pop("HTTPValidationError", None)
        components.pop("ValidationError", None)
        app.openapi_schema = document
    return app.openapi_schema
