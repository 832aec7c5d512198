"""The OpenAPI document: FastAPI's own, extended by the JSON Schema of an explanation."""

import copy
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from anchorline.result.json_format import schema
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


def explanation_response() -> dict[int | str, dict[str, Any]]:
    """Return the description of a response that is an explanation's own JSON."""
    reference = {"$ref": "#/components/schemas/Explanation"}
    return {200: {"description": "The explanation.", "content": {"application/json": {"schema": reference}}}}


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
        explanation = copy.deepcopy(schema())
        for name, definition in explanation.pop("$defs", {}).items():
            components[f"Explanation_{name}"] = _with_component_references(definition)
        for name in ("$schema", "$id"):
            explanation.pop(name, None)
        components["Explanation"] = _with_component_references(explanation)
        for path in document["paths"].values():
            for operation in path.values():
                operation["responses"].get("422", {}).get("content", {}).pop("application/json", None)
        components.pop("HTTPValidationError", None)
        components.pop("ValidationError", None)
        app.openapi_schema = document
    return app.openapi_schema


def _with_component_references(part: Any) -> Any:
    """Return a part of a JSON Schema as clients are generated from it.

    References to ``$defs`` become references to components. Numbers and booleans that are constant become an
    example of their type, because generators write invalid code for them.
    """
    if isinstance(part, list):
        return [_with_component_references(value) for value in part]
    if not isinstance(part, dict):
        return part
    constant = part.get("const")
    if isinstance(constant, bool | int):
        part = {key: value for key, value in part.items() if key != "const"}
        part |= {"type": "boolean" if isinstance(constant, bool) else "integer", "examples": [constant]}
    return {
        key: value.replace("#/$defs/", "#/components/schemas/Explanation_")
        if key == "$ref"
        else _with_component_references(value)
        for key, value in part.items()
    }
