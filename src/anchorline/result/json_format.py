"""The JSON form of an explanation: canonical, sealed by a SHA-256, checked when read."""

import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from anchorline.errors import FormatError, TamperedError

SCHEMA_VERSION = 1
MAX_CHARACTERS = 64 * 2**20
_TYPES: dict[str, type | tuple[type, ...]] = {
    "boolean": bool,
    "string": str,
    "array": list,
    "object": dict,
    "number": (int, float),
    "integer": int,
    "null": type(None),
}


def canonical_json(body: Mapping[str, Any]) -> str:
    """One text for one content: sorted keys, no spaces, ASCII, no NaN; floats come back exactly."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False, default=dict)


def sealed(body: Mapping[str, Any]) -> str:
    """The canonical form with its own SHA-256 inside."""
    return canonical_json({**body, "sha256": _digest(body)})


def parsed(text: str) -> dict[str, Any]:
    """Read a sealed text: size, depth, keys, digest, schema and consistency are checked; `FormatError`."""
    if not isinstance(text, str):
        raise FormatError(f"Got {type(text).__name__}; needed the text that `to_json` returns.")
    if len(text) > MAX_CHARACTERS:
        raise FormatError(f"The text has {len(text)} characters; at most {MAX_CHARACTERS} are read.")
    try:
        body = json.loads(text, object_pairs_hook=_without_repetition)
        if not isinstance(body, dict) or body.get("schema_version") != SCHEMA_VERSION:
            found = body.get("schema_version") if isinstance(body, dict) else type(body).__name__
            raise FormatError(f"schema_version is {found!r}; this release reads {SCHEMA_VERSION}.")
        claimed = body.pop("sha256", None)
        if claimed != _digest(body):
            raise TamperedError("The SHA-256 does not fit the text: it was changed or cut.")
        _check(body | {"sha256": claimed}, schema(), "the explanation")
    except FormatError:
        raise
    except (ValueError, RecursionError, OverflowError) as error:
        raise FormatError(f"Not JSON: {error}") from error
    _check_consistency(body)
    return body


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON Schema of `Explanation.to_json`, as shipped."""
    from importlib import resources  # noqa: PLC0415  pulls in zipfile and tempfile

    text = resources.files("anchorline.result").joinpath("schemas/explanation-1.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical_json(body).encode()).hexdigest()


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    body = dict(pairs)
    if len(body) < len(pairs):
        raise FormatError("A key stands twice in the text: two readers could read two things.")
    return body


def _check(value: Any, rules: Mapping[str, Any], where: str) -> None:
    """Check a value against the part of JSON Schema that our own schema uses."""
    if "$ref" in rules:
        rules = schema()["$defs"][rules["$ref"].rsplit("/", 1)[1]]
    types = rules.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_is(value, name) for name in types):
        raise FormatError(f"{where} is {value!r:.60}; needed {' or '.join(types)}.")
    if ("const" in rules and not _equal(value, rules["const"])) or (
        "enum" in rules and value not in rules["enum"]
    ):
        raise FormatError(f"{where} is {value!r:.60}; needed {rules.get('const', rules.get('enum'))!r}.")
    if _is(value, "number"):
        _check_limits(value, rules, where)
    if isinstance(value, dict):
        missing = sorted(set(rules.get("required", ())) - set(value))
        extra = sorted(set(value) - set(rules.get("properties", value)))
        if missing or (extra and rules.get("additionalProperties") is False):
            raise FormatError(f"{where} lacks {missing} or has {extra} too much.")
        for key, below in rules.get("properties", {}).items():
            if key in value:
                _check(value[key], below, key)
    if isinstance(value, list):
        if not rules.get("minItems", 0) <= len(value) <= rules.get("maxItems", len(value)):
            raise FormatError(f"{where} has {len(value)} entries.")
        first = rules.get("prefixItems", [])
        for i, item in enumerate(value):
            _check(item, first[i] if i < len(first) else rules.get("items", {}), f"{where}[{i}]")


def _check_limits(value: float, rules: Mapping[str, Any], where: str) -> None:
    float(value)  # OverflowError for integers beyond any float
    inside = rules.get("minimum", value) <= value <= rules.get("maximum", value)
    above = "exclusiveMinimum" not in rules or value > rules["exclusiveMinimum"]
    below = "exclusiveMaximum" not in rules or value < rules["exclusiveMaximum"]
    if not (inside and above and below):
        raise FormatError(f"{where} is {value!r}, out of range.")


def _is(value: Any, name: str) -> bool:
    return isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def _equal(value: Any, constant: Any) -> bool:
    return type(value) is type(constant) and bool(value == constant)


def _check_consistency(body: Mapping[str, Any]) -> None:
    """What one field says of another: numbers of terms, bound, residual, lengths."""
    certificate, contributions = body["certificate"], body["contributions"]
    n_facts = sum(value != 0 for value in contributions)
    residual = abs(body["intercept"] + sum(contributions) - body["prediction"])
    claims = {
        "literals": len(body["literals"]) == len(contributions),
        "instance": not str(body["parameters"]["space"]).startswith("hypercube:")
        or len(body["instance"]) == len(contributions),
        "n_facts": certificate["n_facts"] == n_facts,
        "n_terms": certificate["n_terms"] == n_facts + (body["intercept"] != 0),
        "lower_bound": certificate["lower_bound"] <= certificate["objective"] + 1e-9,
        "anchoring_residual": abs(certificate["anchoring_residual"] - residual)
        <= 1e-9 * max(abs(body["prediction"]), body["half_range"]),
    }
    wrong = [name for name, holds in claims.items() if not holds]
    if wrong:
        raise TamperedError(f"The explanation contradicts itself in {', '.join(wrong)}.")
