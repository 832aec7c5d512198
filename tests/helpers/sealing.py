"""Forging for tests: a valid checksum for an explanation that was changed."""

import hashlib
import json
import re

from anchorline.result.json_format import canonical_json


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
