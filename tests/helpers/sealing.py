"""A forger's tool: seal a changed explanation again."""

import hashlib

from anchorline.result.json_format import canonical_json


def resealed(body):
    body = {key: value for key, value in body.items() if key != "sha256"}
    return canonical_json(body | {"sha256": hashlib.sha256(canonical_json(body).encode()).hexdigest()})
