"""Argument checks that the theorems and the intervals share."""

import math
import operator
from collections.abc import Callable
from typing import SupportsFloat, SupportsIndex

from anchorline.errors import ParameterError

LARGEST_SIGMA = 300.0
"""At this sigma signs flip with probability e^-300, so no sample has a flip, and cosh^4 still fits a float."""


def checked_count(name: str, value: SupportsIndex, *, minimum: int = 1) -> int:
    """Return ``value`` as an integer of at least ``minimum``, or raise ``ParameterError``."""
    try:
        count = operator.index(value)
    except TypeError:
        count = minimum - 1
    if count < minimum:
        raise ParameterError(
            f"{name} is {value!r}, but it must be an integer of at least {minimum}. "
            f"Type, say, {name}={minimum + 4}."
        )
    return count


def checked_real(name: str, value: SupportsFloat, low: float, high: float, *, example: float) -> float:
    """Return ``value`` as a finite float in ``[low, high]``, or raise ``ParameterError``."""
    return _checked(name, value, f"[{low:g}, {high:g}]", example, lambda number: low <= number <= high)


def checked_positive(name: str, value: SupportsFloat, high: float = math.inf, *, example: float) -> float:
    """Return ``value`` as a finite float in ``(0, high]``, or raise ``ParameterError``."""
    return _checked(name, value, f"(0, {high:g}]", example, lambda number: 0 < number <= high)


def checked_sigma(sigma: SupportsFloat) -> float:
    """Return the concentration as a float, or raise ``ParameterError``."""
    return checked_real("sigma", sigma, 0.0, LARGEST_SIGMA, example=1.0)


def checked_epsilon(epsilon: SupportsFloat) -> float:
    """Return the tolerance as a float in (0, 1], or raise ``ParameterError``."""
    return checked_positive("epsilon", epsilon, 1.0, example=0.1)


def checked_delta(delta: SupportsFloat) -> float:
    """Return the failure probability as a float in (0, 1], or raise ``ParameterError``."""
    return checked_positive("delta", delta, 1.0, example=0.05)


def checked_confidence(confidence: SupportsFloat) -> float:
    """Return the confidence as a float strictly between 0 and 1, or raise ``ParameterError``."""
    return _checked("confidence", confidence, "(0, 1)", 0.95, lambda number: 0 < number < 1)


def _checked(
    name: str, value: SupportsFloat, interval: str, example: float, fits: Callable[[float], bool]
) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and fits(number)):
        raise ParameterError(
            f"{name} is {value!r}, but it must be a number in {interval}. Type, say, {name}={example:g}."
        )
    return number
