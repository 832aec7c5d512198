"""Forging for tests: a valid checksum for an explanation that was changed."""

import hashlib
import json
import re

from anchorline.result.json_format import canonical_json
from anchorline.verify.check import leaves_of


def resealed(body):
    """Return the JSON text of a changed explanation with a checksum that fits the change."""
    body = {key: value for key, value in body.items() if key != "sha256"}
    return json.dumps(
        body | {"sha256": hashlib.sha256(canonical_json(body).encode("utf-8", "surrogatepass")).hexdigest()}
    )


def with_change(result, place, change):
    """Return the JSON text of a result in which one figure, at a place such as ``rows.alike``, was changed."""
    body = json.loads(result.to_json())
    *path, last = re.findall(r"[^.\[\]]+", place)
    at = body
    for step in path:
        at = at[int(step) if isinstance(at, list) else step]
    last = int(last) if isinstance(at, list) else last
    at[last] = change(at[last])
    return resealed(body)


def places_of(results):
    """(name, place) of every figure that a verifier derives again.

    It repeats settings as they are recorded: other values that lead to the same figures are as true.
    """
    places = [(name, place) for name, result in results.items() for place in leaves_of(result.to_json())]
    return [each for each in places if not re.match(r"settings|kind$|schema_version$", each[1])]


def changed(value, by=1e-6):
    """Another value of the same type; of a number, by so little that only computing it again finds the change."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value + by * max(1.0, abs(value))
    if isinstance(value, list):
        return [*value, "more"]
    return 0.5 if value is None else f"{value}x"
