"""Numbers as short texts that stay true: what is at least a number is rounded down, what is at most one, up."""

import decimal
import math

_DIGITS = 3
_NOISE = 1e-9  # a number this close to a short one is the short one, up to the rounding of its computation


def rounded_down(number: float, digits: int = _DIGITS) -> str:
    """Return a number with few digits that does not exceed it.

    >>> rounded_down(0.1339), rounded_down(-2.5551), rounded_down(0.3), rounded_down(1 - 1e-12)
    ('0.133', '-2.56', '0.3', '1')
    """
    return _rounded(number, digits, decimal.ROUND_FLOOR)


def rounded_up(number: float, digits: int = _DIGITS) -> str:
    """Return a number with few digits that is not less.

    >>> rounded_up(0.1331), rounded_up(-2.5551), rounded_up(0.3), rounded_up(1234.5)
    ('0.134', '-2.55', '0.3', '1.24e+03')
    """
    return _rounded(number, digits, decimal.ROUND_CEILING)


def _rounded(number: float, digits: int, rounding: str) -> str:
    nearest = f"{number:.{digits}g}"
    if not math.isfinite(number) or abs(float(nearest) - number) <= _NOISE * abs(number):
        return nearest
    context = decimal.Context(prec=digits, rounding=rounding)
    return f"{float(context.create_decimal(repr(float(number)))):.{digits}g}"
