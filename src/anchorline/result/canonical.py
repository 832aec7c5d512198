"""Canonical JSON by RFC 8785, so that a seal can be checked in any language.

Integers beyond 2^53 lie outside the RFC. They keep all their digits, so that a changed digit breaks the seal.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

_STRING = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")')
_WHOLE = re.compile(r"(?<=\d)\.0(?![\de])")
_NEGATIVE_ZERO = re.compile(r"-0(?![\d.])")
_EXPONENTIAL = re.compile(r"\d[\d.]*e[+-]\d+")


def canonical_json(body: Any) -> str:
    """Return the text that RFC 8785 assigns to a content: sorted keys, no spaces, numbers as in ECMAScript.

    >>> canonical_json({"b": [1.0, 1e-7, 1e21, -0.0], "a": "€"})
    '{"a":"€","b":[1,1e-7,1e+21,0]}'
    """
    text = _compact(body, sort_keys=True)
    if not text.isascii() and max(text) > "\uffff":
        text = _compact(_sorted(body), sort_keys=False)
    parts = _STRING.split(text)  # strings, which stay as they are, at odd places
    parts[::2] = map(_with_ecmascript_numbers, parts[::2])
    return "".join(parts)


def _compact(body: Any, *, sort_keys: bool) -> str:
    return json.dumps(
        body, sort_keys=sort_keys, separators=(",", ":"), allow_nan=False, ensure_ascii=False, default=dict
    )


def _sorted(body: Any) -> Any:
    """Sort keys by their UTF-16 code units, which differs from Python's order beyond the basic plane."""
    if isinstance(body, Mapping):
        keys = sorted(body, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return {key: _sorted(body[key]) for key in keys}
    return [_sorted(item) for item in body] if isinstance(body, (list, tuple)) else body


def _with_ecmascript_numbers(part: str) -> str:
    """Rewrite floats from Python's notation, which differs in whole numbers, minus zero and exponents."""
    part = _NEGATIVE_ZERO.sub("0", _WHOLE.sub("", part))
    return _EXPONENTIAL.sub(lambda match: _ecmascript(match[0]), part) if "e" in part else part


def _ecmascript(token: str) -> str:
    """Return a positive number in exponential notation as ECMAScript writes it."""
    mantissa, _, exponent = token.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits, point = (whole + fraction).rstrip("0"), len(whole) + int(exponent)  # digits before the point
    if 0 < point <= 21:
        return digits.ljust(point, "0")
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    return f"{digits[0]}{'.' + digits[1:] if digits[1:] else ''}e{point - 1:+d}"
