"""The schema of the interface: FastAPI's own, with the explanation's JSON Schema inside."""

import copy
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from anchorline.result.json_format import schema
from anchorline.studio.problems import MEDIA_TYPE
from anchorline.studio.schemas import ProblemAnswer

_STATUSES = {
    400: "The body is not JSON, or nested too deeply.",
    401: "The token is missing or wrong.",
    403: "The request comes from another site.",
    404: "There is nothing at this address.",
    408: "The request took too long to arrive.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    421: "The Host header does not name this server.",
    422: "The request does not fit the schema, the table or the limits.",
    429: "Too much is waiting; Retry-After says when to try again.",
    502: "The model failed.",
    503: "No answer in time, or the server is shutting down.",
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": told,
        "content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemAnswer.__name__}"}}},
    }
    for status, told in _STATUSES.items()
}


def explained() -> dict[int | str, dict[str, Any]]:
    """The answer that is an explanation's own JSON."""
    reference = {"$ref": "#/components/schemas/Explanation"}
    return {200: {"description": "The explanation.", "content": {"application/json": {"schema": reference}}}}


def describe(app: FastAPI) -> dict[str, Any]:
    """The whole schema, made once."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        parts = made.setdefault("components", {}).setdefault("schemas", {})
        parts[ProblemAnswer.__name__] = ProblemAnswer.model_json_schema()
        own = copy.deepcopy(schema())
        for name, part in own.pop("$defs", {}).items():
            parts[f"Explanation_{name}"] = _moved(part)
        for name in ("$schema", "$id"):
            own.pop(name, None)
        parts["Explanation"] = _moved(own)
        for path in made["paths"].values():
            for operation in path.values():
                operation["responses"].get("422", {}).get("content", {}).pop("application/json", None)
        parts.pop("HTTPValidationError", None)
        parts.pop("ValidationError", None)
        app.openapi_schema = made
    return app.openapi_schema


def _moved(part: Any) -> Any:
    """References to the schema's own definitions, as references to components."""
    if isinstance(part, dict):
        return {
            key: below.replace("#/$defs/", "#/components/schemas/Explanation_") if key == "$ref" else _moved(below)
            for key, below in part.items()
        }
    return [_moved(below) for below in part] if isinstance(part, list) else part
