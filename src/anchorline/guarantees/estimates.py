"""What a measurement carries: a value, the interval around it, and how it was obtained."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from anchorline.errors import ParameterError
from anchorline.guarantees._checks import checked_count


@dataclass(frozen=True)
class Interval:
    """Two limits that hold an unknown number with at least the given confidence.

    Each limit alone fails with probability at most (1 - confidence) / 2.

    >>> interval = Interval(0.1, 0.3, confidence=0.95)
    >>> 0.2 in interval, round(interval.width, 3)
    (True, 0.2)
    """

    low: float
    high: float
    confidence: float

    def __post_init__(self) -> None:
        _check_limits(self.low, self.high, self.confidence)

    @property
    def width(self) -> float:
        """Distance between the limits."""
        return self.high - self.low

    def __contains__(self, number: float) -> bool:
        return self.low <= number <= self.high


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A measured number with its finite-sample interval.

    ``exact`` says that the number was computed over every case rather than estimated; then both limits
    equal it and the confidence is 1. ``method`` names how the interval was made: "binomial", "betting",
    "sequence" or "enumeration".

    >>> print(Estimate(value=0.9, low=0.8, high=1.0, n_samples=50, confidence=0.95, method="binomial"))
    0.9 (95% interval 0.8 to 1)
    """

    value: float
    low: float
    high: float
    n_samples: int
    confidence: float
    exact: bool = False
    method: str

    def __post_init__(self) -> None:
        _check_limits(self.low, self.high, self.confidence)
        checked_count("n_samples", self.n_samples)
        if not self.low <= self.value <= self.high:  # catches NaN
            raise ParameterError(
                f"value is {self.value!r}; needed a number between low={self.low!r} and high={self.high!r}. "
                "Type the mean of the same sample that gave the limits."
            )
        if self.exact and not (self.low == self.high and self.confidence == 1.0):
            raise ParameterError(
                f"exact came with limits {self.low!r} to {self.high!r} at confidence {self.confidence!r}; "
                "needed low = value = high and confidence 1. Type exact_estimate(value, n_samples)."
            )

    @property
    def interval(self) -> Interval:
        """The limits without the value."""
        return Interval(self.low, self.high, self.confidence)

    @property
    def width(self) -> float:
        """Distance between the limits."""
        return self.high - self.low

    def map(self, function: Callable[[float], float]) -> "Estimate":
        """Return the estimate of a monotone function of the number, such as its root or complement.

        >>> error = Estimate(value=0.04, low=0.01, high=0.09, n_samples=9, confidence=0.95, method="betting")
        >>> root = error.map(math.sqrt)
        >>> root.value, root.low, root.high
        (0.2, 0.1, 0.3)
        """
        low, high = sorted((float(function(self.low)), float(function(self.high))))
        return replace(self, value=float(function(self.value)), low=low, high=high)

    def __str__(self) -> str:
        if self.exact:
            return f"{self.value:.3g} (exact)"
        return f"{self.value:.3g} ({100 * self.confidence:.4g}% interval {self.low:.3g} to {self.high:.3g})"


def exact_estimate(value: float, n_samples: int) -> Estimate:
    r"""Wrap a number computed over all ``n_samples`` weighted cases: nothing is left to chance.

    .. math:: \text{low} = \text{value} = \text{high}

    >>> print(exact_estimate(0.25, n_samples=1024))
    0.25 (exact)
    """
    value = float(value)
    return Estimate(
        value=value,
        low=value,
        high=value,
        n_samples=n_samples,
        confidence=1.0,
        exact=True,
        method="enumeration",
    )


def _check_limits(low: float, high: float, confidence: float) -> None:
    if not (low <= high and math.isfinite(low) and math.isfinite(high)):
        raise ParameterError(
            f"The limits are {low!r} and {high!r}; needed two finite numbers, low first. "
            "Type Interval(low, high, confidence)."
        )
    if not 0.0 < confidence <= 1.0:
        raise ParameterError(f"confidence is {confidence!r}; needed a number in (0, 1]. Type confidence=0.95.")
