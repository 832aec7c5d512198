r"""Estimates with finite-sample intervals, for a number of samples that is fixed in advance.

Intervals for shares are exact binomial intervals. Intervals for means come from bets against candidate means.

For losses in [0, 1] with mean m, and bets :math:`\lambda_i \ge 0` that are each chosen before loss i is known,

.. math:: K_t(m) = \prod_{i \le t} \frac{1 + \lambda_i X_i}{1 + \lambda_i m}

is a non-negative martingale that starts at 1. By Ville's inequality the probability that it ever reaches
:math:`2/\alpha` is at most :math:`\alpha/2`. It decreases in m, so if it reaches this value at m, the mean lies
above m. The largest m where it does is the lower limit. The upper limit is 1 minus the lower limit of
:math:`1 - X`.

This is the capital of Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting"
(2023), for the bet :math:`\lambda/(1 + \lambda m)`. It needs no truncation, because a bet never exceeds the
capital. The data enter only through :math:`\sum \ln(1 + \lambda_i X_i)`, which does not depend on m.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anchorline.errors import ParameterError
from anchorline.guarantees._checks import checked_confidence, checked_count, checked_delta, checked_positive
from anchorline.guarantees.rounding import rounded_down, rounded_up

Floats = NDArray[np.float64]

ROUNDING = 1e-9
"""A loss outside the range by at most this share of the range is attributed to rounding and clipped."""

NEWTON_STEPS = 200
"""Limit that is never reached, because about ten steps suffice. Stopping early would only widen an interval."""


@dataclass(frozen=True)
class Interval:
    """Two limits that contain an unknown number with at least the given confidence.

    Each single limit fails with probability at most (1 - confidence) / 2.

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

    ``exact`` is True if the number was computed over every case and not estimated. Then both limits equal the
    number, and the confidence is 1. ``method`` names the construction of the interval: "binomial", "betting",
    "sequence", "enumeration" or "leaves".

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
        if not self.low <= self.value <= self.high:  # also catches NaN
            raise ParameterError(
                f"value is {self.value!r}, but it must be between low={self.low!r} and high={self.high!r}. "
                "Type the mean of the sample that gave the limits."
            )
        if self.exact and not (self.low == self.high and self.confidence == 1.0):
            raise ParameterError(
                f"exact is True with limits {self.low!r} to {self.high!r} at confidence {self.confidence!r}. "
                "It must have low = value = high and confidence 1. Type exact_estimate(value, n_samples)."
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
        """Return the estimate of a monotone function of the number, for example its root or its complement.

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
        limits = f"{rounded_down(self.low)} to {rounded_up(self.high)}"
        return f"{self.value:.3g} ({100 * self.confidence:.4g}% interval {limits})"


def exact_estimate(value: float, n_samples: int, method: str = "enumeration") -> Estimate:
    r"""Return the estimate of a number that was computed over all ``n_samples`` weighted cases, without chance.

    With the method "leaves", ``n_samples`` are the leaves of trees that were summed over instead.

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
        method=method,
    )


def estimate_share(n_events: int, n_samples: int, confidence: float = 0.95) -> Estimate:
    r"""Estimate a probability from a count, with :func:`binomial_interval`.

    .. math:: \text{value} = x / n

    >>> print(estimate_share(979, 1000))
    0.979 (95% interval 0.968 to 0.987)
    """
    interval = binomial_interval(n_events, n_samples, confidence)
    return estimate_from(n_events / n_samples, interval, n_samples, "binomial")


def estimate_mean(losses: ArrayLike, loss_range: float = 1.0, confidence: float = 0.95) -> Estimate:
    r"""Estimate a mean loss, with :func:`betting_interval`.

    .. math:: \text{value} = \frac1n \sum_i X_i

    >>> print(estimate_mean(np.full(1000, 0.5), loss_range=4.0))
    0.5 (95% interval 0.494 to 0.516)
    """
    checked = checked_losses(losses, loss_range)
    interval = betting_interval(checked, loss_range, confidence)
    return estimate_from(float(checked.mean()), interval, checked.size, "betting")


def binomial_interval(n_events: int, n_samples: int, confidence: float = 0.95) -> Interval:
    r"""Return the exact (Clopper-Pearson) interval for a probability, from a count.

    .. math:: \Pr[\mathrm{Bin}(n, \text{low}) \ge x] = \alpha/2 = \Pr[\mathrm{Bin}(n, \text{high}) \le x],
              \qquad \alpha = 1 - \text{confidence}

    The interval covers every probability with at least this confidence. ``n_samples`` must be fixed in advance.

    >>> interval = binomial_interval(21, 1000)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.013, 0.0319)
    """
    from scipy.special import betaincinv  # noqa: PLC0415  (`import anchorline` loads NumPy only)

    n, x = checked_count("n_samples", n_samples), checked_count("n_events", n_events, minimum=0)
    if x > n:
        raise ParameterError(
            f"n_events is {x} and n_samples is {n}, but n_events must not exceed n_samples. "
            "Type the arguments in the order n_events, n_samples."
        )
    confidence = checked_confidence(confidence)
    tail = (1.0 - confidence) / 2
    low = 0.0 if x == 0 else float(betaincinv(x, n - x + 1, tail))
    high = (
        1.0 if x == n else 1.0 - float(betaincinv(n - x, x + 1, tail))
    )  # mirrored, because 1 - tail loses digits
    return interval_around(x / n, low, high, confidence)


def betting_interval(losses: ArrayLike, loss_range: float = 1.0, confidence: float = 0.95) -> Interval:
    r"""Return a variance-adaptive interval for the mean of losses in ``[0, loss_range]``.

    .. math:: \text{low} = \max\Bigl\{m : \max_{t \le n} \prod_{i \le t}
              \frac{1 + \lambda_i X_i}{1 + \lambda_i m} \ge \frac2\alpha\Bigr\}, \qquad
              \lambda_i = \sqrt{2 q_i} + \hat\mu_i q_i, \qquad
              q_i = \frac{\ln(2/\alpha)}{n \hat\sigma^2_i}

    for losses scaled to [0, 1]; the upper limit follows from their complements. Mean and variance are those of the
    losses before i and of one imaginary loss, half 0 and half 1. Losses are read in the given order, which must
    not depend on their values. Their number must be fixed in advance; to stop by looking at the interval, use
    :class:`BettingSequence`. The bet is renewed whenever the number of losses has grown by 1/16. The cost is
    O(n) once, then O(log n) per Newton step.

    >>> losses = np.random.default_rng(0).beta(0.5, 5.0, size=5000)
    >>> interval = betting_interval(losses)
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.087, 0.095)
    """
    checked = checked_losses(losses, loss_range)
    if checked.size == 0:
        raise ParameterError("losses are empty, but they must hold at least one loss. Type, say, n_samples=1000.")
    confidence = checked_confidence(confidence)
    shares = checked / loss_range
    threshold = math.log(2.0 / (1.0 - confidence))
    low = loss_range * _betting_limit(shares, threshold)
    high = loss_range * (1.0 - _betting_limit(1.0 - shares, threshold))
    return interval_around(float(checked.mean()), low, high, confidence)


def split_delta(delta: float, look: int) -> float:
    r"""Return the share of a failure probability for the ``look``-th look, counted from 1.

    .. math:: \delta_j = \frac{\delta}{j (j + 1)}, \qquad \sum_{j \ge 1} \delta_j = \delta

    Plan the looks in advance (100, 200, 400, ... samples) and compute the j-th fixed-size interval at confidence
    :math:`1 - \delta_j`. All intervals together hold with confidence :math:`1 - \delta`, so the sampling may stop
    at any of them.

    >>> [round(split_delta(0.06, look), 4) for look in (1, 2, 3)]
    [0.03, 0.01, 0.005]
    """
    look = checked_count("look", look)
    return checked_delta(delta) / (look * (look + 1))


def flip_sum_limit(flip_probability: float, square_sum: float, largest: float, delta: float) -> float:
    r"""Return a limit for a weighted sum of independent flips, centered at its mean.

    .. math:: \Pr\Bigl[\bigl|\textstyle\sum_i (F_i - p)\, r_i\bigr| > x\Bigr] \le \delta \quad\text{for}\quad
              x = \min\Bigl(\sqrt{2 \kappa Q L},\ \tfrac{M L}{3} + \sqrt{\tfrac{M^2 L^2}{9} + 2 p (1-p) Q L}\Bigr)

    with flips of probability p, weights r that do not depend on them, :math:`Q = \sum_i r_i^2` (``square_sum``),
    :math:`M = \max_i |r_i|` (``largest``) and :math:`L = \ln(2/\delta)`. The first limit is that of Kearns and
    Saul, whose factor :math:`\kappa = (1 - 2p) / (2 \ln\frac{1-p}{p})` is close to the variance of a flip unless p
    is small; the second is Bernstein's. Both hold for every number of samples.

    >>> round(flip_sum_limit(0.27, square_sum=50.0, largest=1.0, delta=0.05), 2)
    9.24
    """
    p, log = float(flip_probability), math.log(2.0 / checked_delta(delta))
    if not 0 < p < 1:
        return 0.0  # such flips are not random
    odds = math.log((1 - p) / p)
    factor = 0.25 if abs(odds) < 1e-6 else (1 - 2 * p) / (2 * odds)
    third = largest * log / 3
    bernstein = third + math.sqrt(third**2 + 2 * p * (1 - p) * square_sum * log)
    return min(math.sqrt(2 * factor * square_sum * log), bernstein)


def checked_losses(losses: ArrayLike, loss_range: float) -> Floats:
    """Return losses as a vector of floats in ``[0, loss_range]``, or raise ``ParameterError``."""
    loss_range = checked_positive("loss_range", loss_range, example=1.0)
    vector = np.asarray(losses, dtype=np.float64)
    if vector.ndim != 1:
        raise ParameterError(
            f"losses have shape {vector.shape}, but they must hold one loss per sample. Type losses.ravel()."
        )
    if vector.size == 0:
        return vector
    smallest, largest = float(vector.min()), float(vector.max())
    slack = ROUNDING * loss_range
    if not (smallest >= -slack and largest <= loss_range + slack):  # also catches NaN
        raise ParameterError(
            f"losses range from {smallest!r} to {largest!r}, but they must lie between 0 and "
            f"loss_range={loss_range!r}. Type a loss_range that no possible loss exceeds."
        )
    return vector if smallest >= 0.0 and largest <= loss_range else np.clip(vector, 0.0, loss_range)


def largest_refuted(log_capital: Callable[[float], tuple[float, float]], threshold: float) -> float:
    r"""Return the largest m whose log-capital reaches ``threshold``, or 0 if no m does.

    ``log_capital(m)`` returns value and slope. It is convex and decreasing in m, because it is a maximum or a
    log-sum-exp of sums of :math:`-\ln(1 + \lambda m)`. Therefore Newton's method from 0 approaches the limit
    from below, and every iterate is refuted too.
    """
    m = 0.0
    for _ in range(NEWTON_STEPS):
        value, slope = log_capital(m)
        if value <= threshold:
            break
        step = (threshold - value) / slope
        m += step
        if step <= 1e-13 * m:
            break
    return m


def interval_around(mean: float, low: float, high: float, confidence: float) -> Interval:
    """Return the interval, extended to the sample mean if an unlucky order of losses excluded the mean."""
    return Interval(min(low, mean), max(high, mean), confidence)


def estimate_from(value: float, interval: Interval, n_samples: int, method: str) -> Estimate:
    """Return the estimate with this value and interval."""
    return Estimate(
        value=value,
        low=interval.low,
        high=interval.high,
        n_samples=n_samples,
        confidence=interval.confidence,
        method=method,
    )


def _check_limits(low: float, high: float, confidence: float) -> None:
    if not (low <= high and math.isfinite(low) and math.isfinite(high)):
        raise ParameterError(
            f"The limits are {low!r} and {high!r}, but they must be two finite numbers with the lower one first. "
            "Type Interval(low, high, confidence)."
        )
    if not 0.0 < confidence <= 1.0:
        raise ParameterError(
            f"confidence is {confidence!r}, but it must be a number in (0, 1]. Type confidence=0.95."
        )


@functools.lru_cache(maxsize=64)
def _bet_blocks(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return where the bet is renewed, and for how many losses each bet holds.

    It is renewed at each of the first 32 losses, and then at every increase of their number by 1/16.
    """
    starts = [0]
    while (following := starts[-1] + max(1, starts[-1] // 16)) < n:
        starts.append(following)
    positions, sizes = np.array(starts), np.diff(starts, append=n)
    positions.setflags(write=False)
    sizes.setflags(write=False)
    return positions, sizes


def _plug_in_bets(sums: Floats, squares: Floats, starts: NDArray[np.intp], budget: float) -> Floats:
    r"""Return one bet per block, from the sums over the blocks before it.

    .. math:: \sqrt{2q} + \hat\mu q, \qquad q = \text{budget} / \hat\sigma^2

    The first term is best for small bets. The second follows the best bet if the losses hardly vary, where the
    bet should be close to the whole capital.
    """
    total, total_square = np.cumsum(sums) - sums, np.cumsum(squares) - squares
    mean = (0.5 + total) / (starts + 1)
    scatter = total_square - 2 * mean * total + starts * mean**2
    ratio = budget * (starts + 1) / (0.25 + np.maximum(scatter, 0.0))  # rounding can make the scatter negative
    bets: Floats = np.sqrt(2 * ratio) + mean * ratio
    return bets


def _betting_limit(shares: Floats, threshold: float) -> float:
    """Return the lower limit for the mean of ``shares`` in [0, 1]."""
    starts, sizes = _bet_blocks(shares.size)
    sums, squares = np.add.reduceat(shares, starts), np.add.reduceat(shares * shares, starts)
    bets = _plug_in_bets(sums, squares, starts, threshold / shares.size)
    growth = np.add.reduceat(np.log1p(np.repeat(bets, sizes) * shares), starts)

    def log_capital(m: float) -> tuple[float, float]:
        path = np.cumsum(growth - sizes * np.log1p(bets * m))
        last = int(np.argmax(path)) + 1
        slope = -np.sum((sizes * bets / (1.0 + bets * m))[:last])
        return float(path[last - 1]), float(slope)

    return largest_refuted(log_capital, threshold)
