r"""Betting against candidate means: what the interval and the sequence share.

For losses in [0, 1] with mean m, and bets :math:`\lambda_i \ge 0` each chosen before loss i is seen,

.. math:: K_t(m) = \prod_{i \le t} \frac{1 + \lambda_i X_i}{1 + \lambda_i m}

is a non-negative martingale that starts at 1, so the probability that it ever reaches :math:`2/\alpha` is at
most :math:`\alpha/2` (Ville's inequality). It decreases in m: where it got there, the mean lies above m. The
largest such m is the lower limit; the upper one is 1 minus the lower limit of :math:`1 - X`.

This is the capital of Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting"
(2023), for the bet :math:`\lambda/(1 + \lambda m)`. It needs no truncation, because one never bets more than
one owns, and what it takes from the data, :math:`\sum \ln(1 + \lambda_i X_i)`, does not depend on m.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anchorline.errors import ParameterError
from anchorline.guarantees._checks import checked_positive
from anchorline.guarantees.estimates import Estimate, Interval

Floats = NDArray[np.float64]

ROUNDING = 1e-9
"""Excess over the loss range, relative to it, that is taken for rounding and clipped."""

NEWTON_STEPS = 200
"""Never met: ten or so are ordinary. Stopping early would only make a limit wider."""


def checked_losses(losses: ArrayLike, loss_range: float) -> Floats:
    """Return losses as a vector of floats in ``[0, loss_range]``, or raise ``ParameterError``."""
    loss_range = checked_positive("loss_range", loss_range, example=1.0)
    vector = np.asarray(losses, dtype=np.float64)
    if vector.ndim != 1:
        raise ParameterError(f"losses have shape {vector.shape}; needed one loss a sample. Type losses.ravel().")
    if vector.size == 0:
        return vector
    least, most = float(vector.min()), float(vector.max())
    slack = ROUNDING * loss_range
    if not (least >= -slack and most <= loss_range + slack):  # catches NaN
        raise ParameterError(
            f"losses go from {least!r} to {most!r}; needed numbers from 0 to loss_range={loss_range!r}. "
            "Type a loss_range that no loss can exceed, seen or unseen."
        )
    return vector if least >= 0.0 and most <= loss_range else np.clip(vector, 0.0, loss_range)


def largest_refuted(log_capital: Callable[[float], tuple[float, float]], threshold: float) -> float:
    r"""Return the largest m whose log-capital reaches ``threshold``, or 0 if none does.

    ``log_capital(m)`` gives value and slope. It is convex and decreasing in m, being a maximum or a
    log-sum-exp of sums of :math:`-\ln(1 + \lambda m)`: Newton's method started at 0 climbs to the limit
    from below, and every point on its way is refuted too.
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
    """Return the interval, stretched to its sample mean where an unlucky order of losses left that out."""
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
