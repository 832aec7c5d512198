"""The JSON form of an explanation: sealed by a SHA-256, and checked when it is read."""

import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from anchorline.errors import FormatError, TamperedError
from anchorline.result.canonical import canonical_json
from anchorline.spaces.base import Literal, Pairs

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


def sealed(body: Mapping[str, Any]) -> str:
    """Return the content as JSON with its seal inside: the SHA-256 of the rest in canonical form (RFC 8785)."""
    return _plain_json({**body, "sha256": _digest(canonical_json(body))})


def parsed(text: str, name: str = "explanation") -> dict[str, Any]:
    """Read a sealed text; raise `FormatError` unless size, depth, keys, seal, schema and consistency are right.

    ``name`` is that of the schema: "explanation" or "changes".
    """
    if not isinstance(text, str):
        raise FormatError(
            f"The input is of type {type(text).__name__}, but it must be the text that `to_json` returns."
        )
    if len(text) > MAX_CHARACTERS:
        raise FormatError(f"The text has {len(text)} characters; the limit is {MAX_CHARACTERS}.")
    try:
        body = json.loads(text, object_pairs_hook=_without_repetition)
        if not isinstance(body, dict) or body.get("schema_version") != SCHEMA_VERSION:
            version = body.get("schema_version") if isinstance(body, dict) else type(body).__name__
            raise FormatError(f"schema_version is {version!r}; this release reads {SCHEMA_VERSION}.")
        claimed = body.pop("sha256", None)
        seals = _digest(canonical_json(body)), _digest(_plain_json(body))  # the second from before RFC 8785
        if claimed not in seals:
            raise TamperedError("The SHA-256 does not match the text, which was changed or cut.")
        rules = schema(name)
        _check(body | {"sha256": claimed}, rules, f"the {name}", rules.get("$defs", {}))
    except FormatError:
        raise
    except (ValueError, RecursionError, OverflowError) as error:
        raise FormatError(f"The text is not JSON: {error}") from error
    if name == "explanation":
        _check_consistency(body)
    return body


@functools.cache
def schema(name: str = "explanation") -> dict[str, Any]:
    """Return the JSON Schema of `Explanation.to_json` or `Changes.to_json`, which is shipped with the package."""
    from importlib import resources  # noqa: PLC0415  pulls in zipfile and tempfile

    file = resources.files("anchorline.result").joinpath(f"schemas/{name}-{SCHEMA_VERSION}.json")
    text = file.read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def _plain_json(body: Mapping[str, Any]) -> str:
    """Return one text for one content: sorted keys, no spaces, ASCII, no NaN; floats round-trip exactly."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False, default=dict)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    body = dict(pairs)
    if len(body) < len(pairs):
        raise FormatError("A key occurs twice in the text, so that two readers could read different contents.")
    return body


def _check(value: Any, rules: Mapping[str, Any], where: str, definitions: Mapping[str, Any]) -> None:
    """Check a value against the part of JSON Schema that our own schemas use."""
    if "$ref" in rules:
        rules = definitions[rules["$ref"].rsplit("/", 1)[1]]
    types = rules.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_is(value, name) for name in types):
        raise FormatError(f"{where} is {value!r:.60}, but it must be {' or '.join(types)}.")
    if ("const" in rules and not _equal(value, rules["const"])) or (
        "enum" in rules and value not in rules["enum"]
    ):
        raise FormatError(f"{where} is {value!r:.60}, but it must be {rules.get('const', rules.get('enum'))!r}.")
    if _is(value, "number"):
        _check_limits(value, rules, where)
    if isinstance(value, dict):
        missing = sorted(set(rules.get("required", ())) - set(value))
        extra = sorted(set(value) - set(rules.get("properties", value)))
        if missing:
            raise FormatError(f"{where} lacks the key {missing[0]!r}.")
        if extra and rules.get("additionalProperties") is False:
            raise FormatError(f"{where} has the unexpected key {extra[0]!r}.")
        for key, below in rules.get("properties", {}).items():
            if key in value:
                _check(value[key], below, key, definitions)
    if isinstance(value, list):
        if not rules.get("minItems", 0) <= len(value) <= rules.get("maxItems", len(value)):
            raise FormatError(f"{where} has {len(value)} entries, which is too many or too few.")
        first = rules.get("prefixItems", [])
        for i, item in enumerate(value):
            _check(item, first[i] if i < len(first) else rules.get("items", {}), f"{where}[{i}]", definitions)


def _check_limits(value: float, rules: Mapping[str, Any], where: str) -> None:
    float(value)  # OverflowError for integers beyond any float
    inside = rules.get("minimum", value) <= value <= rules.get("maximum", value)
    above = "exclusiveMinimum" not in rules or value > rules["exclusiveMinimum"]
    below = "exclusiveMaximum" not in rules or value < rules["exclusiveMaximum"]
    if not (inside and above and below):
        raise FormatError(f"{where} is {value!r}, which is out of range.")


def _is(value: Any, name: str) -> bool:
    return isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def _equal(value: Any, constant: Any) -> bool:
    return type(value) is type(constant) and bool(value == constant)


def _check_consistency(body: Mapping[str, Any]) -> None:
    """Check fields against each other: numbers of terms, bound, residual, lengths."""
    certificate, contributions = body["certificate"], body["contributions"]
    n_facts = sum(value != 0 for value in contributions)
    residual = abs(body["intercept"] + sum(contributions) - body["prediction"])
    n_pairs = len(body.get("pairs", []))
    claims = {
        "literals": len(body["literals"]) == len(contributions),
        "pairs": _has_its_pairs(body),
        "instance": not str(body["parameters"]["space"]).startswith("hypercube:")
        or len(body["instance"]) == len(contributions) - n_pairs,
        "n_facts": certificate["n_facts"] == n_facts,
        "n_terms": certificate["n_terms"] == n_facts + n_pairs + (body["intercept"] != 0),
        "lower_bound": certificate["lower_bound"] <= certificate["objective"] + 1e-9,
        "anchoring_residual": abs(certificate["anchoring_residual"] - residual)
        <= 1e-9 * max(abs(body["prediction"]), body["half_range"]),
    }
    wrong = [name for name, holds in claims.items() if not holds]
    if wrong:
        raise TamperedError(f"The explanation contradicts itself in {', '.join(wrong)}.")


def _has_its_pairs(body: Mapping[str, Any]) -> bool:
    """Return whether the last literals are the pairs, with the texts and the numbers that pairs have."""
    pairs, kind = body.get("pairs", []), body["parameters"].get("pairs")
    d = len(body["literals"]) - len(pairs)
    if body["certificate"].get("n_pairs", 0) != len(pairs) or (pairs and kind not in ("and", "parity")):
        return False
    if not all(0 <= i < j < d for i, j in pairs) or not all(body["contributions"][d:]):
        return False
    literals = [Literal(*texts) for texts in body["literals"]]
    return list(Pairs(np.array(pairs).reshape(-1, 2), kind == "parity").literals(literals[:d])) == literals[d:]
