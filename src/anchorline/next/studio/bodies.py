"""Checks of JSON request bodies: depth, duplicate keys, finite numbers and valid Unicode."""

import json
import math
import re
from typing import Any, NoReturn

from anchorline.next.studio.problems import Problem

# The pattern skips strings, so that brackets inside them do not count. An unterminated string extends to the end
# of the body. Possessive quantifiers (*+, ++) prevent backtracking, which would take quadratic time because every
# quote inside an unterminated string would be tried as the start of another string.
_TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def check_json(body: bytes, max_depth: int) -> None:
    """Raise `Problem` 400 unless the body is valid JSON of depth at most ``max_depth``.

    Numbers must be finite, keys must be unique within their object, and texts must be valid Unicode.
    """
    _check_depth(body, max_depth)
    try:
        content = json.loads(
            body.decode("utf-8"),
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
            object_pairs_hook=_unique_keys,
        )
        if _SURROGATE.search(body):
            json.dumps(content, ensure_ascii=False).encode()  # raises for a lone surrogate
    except UnicodeError:
        raise Problem(400, "The body is not valid UTF-8. Send JSON encoded as UTF-8.") from None
    except (ValueError, RecursionError) as error:
        raise Problem(400, f"The body is not valid JSON: {error}") from None


def _check_depth(body: bytes, max_depth: int) -> None:
    depth = 0
    for token in _TOKENS.finditer(body):
        if token[0] in (b"[", b"{"):
            depth += 1
            if depth > max_depth:
                raise Problem(400, f"The body is nested more than {max_depth} levels deep.")
        elif token[0] in (b"]", b"}"):
            depth -= 1


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _finite_float(text: str) -> float:
    if not math.isfinite(float(text)):
        raise ValueError(f"{text[:20]} exceeds the range of a float")
    return float(text)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    body = dict(pairs)
    if len(body) < len(pairs):
        raise ValueError("an object contains the same key twice")
    return body
