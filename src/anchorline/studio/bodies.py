"""JSON from outside: refused where it is nested deeply, says a key twice, or holds what JSON cannot hold."""

import json
import math
import re
from typing import Any, NoReturn

from anchorline.studio.problems import Problem

# Strings are skipped, so that brackets in them do not count. One without an end reaches to the end of the body,
# and nothing is tried twice (*+, ++): else each quote in it would be taken for another beginning.
_TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def check_json(body: bytes, max_depth: int) -> None:
    """Raise `Problem` 400 unless the body is JSON of this depth at most, finite and in proper Unicode."""
    _check_depth(body, max_depth)
    try:
        found = json.loads(
            body.decode("utf-8"),
            parse_constant=_refuse_constant,
            parse_float=_finite,
            object_pairs_hook=_without_repetition,
        )
        if _SURROGATE.search(body):
            json.dumps(found, ensure_ascii=False).encode()  # half a character cannot be written
    except UnicodeError:
        raise Problem(400, "The body is not proper UTF-8.") from None
    except (ValueError, RecursionError) as error:
        raise Problem(400, f"The body is not JSON: {error}") from None


def _check_depth(body: bytes, max_depth: int) -> None:
    depth = 0
    for token in _TOKENS.finditer(body):
        if token[0] in (b"[", b"{"):
            depth += 1
            if depth > max_depth:
                raise Problem(400, f"The body is nested more than {max_depth} deep.")
        elif token[0] in (b"]", b"}"):
            depth -= 1


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON's")


def _finite(text: str) -> float:
    if not math.isfinite(float(text)):
        raise ValueError(f"{text[:20]} is beyond any float")
    return float(text)


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    body = dict(pairs)
    if len(body) < len(pairs):
        raise ValueError("a key stands twice")
    return body
