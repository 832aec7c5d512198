"""Forging for tests: a valid checksum for an explanation that was changed."""

import hashlib
import json

from anchorline.result.canonical import canonical_json


def resealed(body):
    """Return the JSON text of a changed explanation with a checksum that fits the change."""
    body = {key: value for key, value in body.items() if key != "sha256"}
    return json.dumps(body | {"sha256": hashlib.sha256(canonical_json(body).encode()).hexdigest()})
