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
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anchorline.errors import ParameterError

Floats = NDArray[np.float64]

ROUNDING = 1e-9
"""A loss outside the range by at most this share of the range is attributed to rounding and clipped."""

NEWTON_STEPS = 200
"""Limit that is never reached, because about ten steps suffice. Stopping early would only widen an interval."""


@dataclass(frozen=True)
class Interval:
    """Two limits that contain an unknown number with at least the given confidence.

    Each single limit fails with probability at most (1 - confidence) / 2.
    """

    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class Estimate(Interval):
    """A number that was measured on ``n_samples`` samples, with its interval."""

    value: float
    n_samples: int


def estimate_mean(losses: ArrayLike, loss_range: float = 1.0, confidence: float = 0.95) -> Estimate:
    """Estimate a mean loss, with :func:`betting_interval`.

    >>> estimate = estimate_mean(np.full(1000, 0.5), loss_range=4.0)
    >>> estimate.value, round(estimate.low, 3), round(estimate.high, 3)
    (0.5, 0.495, 0.515)
    """
    checked = checked_losses(losses, loss_range)
    interval = betting_interval(checked, loss_range, confidence)
    return Estimate(interval.low, interval.high, interval.confidence, float(checked.mean()), checked.size)


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

    .. math:: \text{low} = \max\{m : \max_{t \le n} K_t(m) \ge 2/\alpha\}, \qquad
              \lambda_i = \sqrt{2 q_i} + \hat\mu_i q_i, \qquad
              q_i = \frac{\ln(2/\alpha)}{n \hat\sigma^2_i}

    for losses scaled to [0, 1]. The first term of a bet is best for small bets; the second follows the best bet if
    losses hardly vary, where it should be close to the whole capital. Mean and variance are those of the losses
    before i and of one imaginary loss, half 0 and half 1. Losses are read in the given order, which must not
    depend on their values. Their number must be fixed in advance; to stop by looking at the interval, use
    `limits`. The bet is renewed at each of the first 32 losses, and then whenever their number has grown by 1/16.
    The cost is O(n) once, then O(log n) per Newton step.

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


@functools.lru_cache(maxsize=64)
def _bet_blocks(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return where the bet is renewed, and for how many losses each bet holds."""
    starts = [0]
    while (following := starts[-1] + max(1, starts[-1] // 16)) < n:
        starts.append(following)
    positions, sizes = np.array(starts), np.diff(starts, append=n)
    positions.setflags(write=False)
    sizes.setflags(write=False)
    return positions, sizes


def _plug_in_bets(sums: Floats, squares: Floats, starts: NDArray[np.intp], budget: float) -> Floats:
    """Return one bet per block, from the sums over the blocks before it."""
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


# Arguments, here and of the theorems

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
