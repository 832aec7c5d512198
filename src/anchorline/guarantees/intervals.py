"""Confidence intervals for a number of samples fixed in advance; they hold at every such number."""

import functools
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anchorline.errors import ParameterError
from anchorline.guarantees._betting import (
    Floats,
    checked_losses,
    estimate_from,
    interval_around,
    largest_refuted,
)
from anchorline.guarantees._checks import checked_confidence, checked_count, checked_delta
from anchorline.guarantees.estimates import Estimate, Interval


def binomial_interval(n_events: int, n_samples: int, confidence: float = 0.95) -> Interval:
    r"""Exact (Clopper-Pearson) interval for a probability, from a count.

    .. math:: \Pr[\mathrm{Bin}(n, \text{low}) \ge x] = \alpha/2 = \Pr[\mathrm{Bin}(n, \text{high}) \le x],
              \qquad \alpha = 1 - \text{confidence}

    Covers every probability with at least the confidence. ``n_samples`` must be fixed in advance.

    >>> interval = binomial_interval(21, 1000)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.013, 0.0319)
    """
    from scipy.special import betaincinv  # noqa: PLC0415  (`import anchorline` loads NumPy only)

    n, x = checked_count("n_samples", n_samples), checked_count("n_events", n_events, least=0)
    if x > n:
        raise ParameterError(
            f"n_events is {x} and n_samples is {n}; needed no more events than samples. "
            "Type the arguments in the order n_events, n_samples."
        )
    confidence = checked_confidence(confidence)
    tail = (1.0 - confidence) / 2
    low = 0.0 if x == 0 else float(betaincinv(x, n - x + 1, tail))
    high = 1.0 if x == n else 1.0 - float(betaincinv(n - x, x + 1, tail))  # mirrored: 1 - tail loses digits
    return interval_around(x / n, low, high, confidence)


def betting_interval(losses: ArrayLike, loss_range: float = 1.0, confidence: float = 0.95) -> Interval:
    r"""Variance-adaptive interval for the mean of losses in ``[0, loss_range]``.

    .. math:: \text{low} = \max\Bigl\{m : \max_{t \le n} \prod_{i \le t}
              \frac{1 + \lambda_i X_i}{1 + \lambda_i m} \ge \frac2\alpha\Bigr\}, \qquad
              \lambda_i = \sqrt{2 q_i} + \hat\mu_i q_i, \qquad
              q_i = \frac{\ln(2/\alpha)}{n \hat\sigma^2_i}

    (for losses scaled to [0, 1]; the upper limit likewise, from their complements), with mean and variance
    of the losses before i and of one imaginary loss, half 0 and half 1. Losses are read in the order given,
    which must not depend on their values. Their number must be fixed in advance: to stop by looking, use
    :class:`BettingSequence`. The bet is renewed whenever the losses seen have grown by 1/16; the cost is
    O(n) once, then O(log n) for each Newton step.

    >>> losses = np.random.default_rng(0).beta(0.5, 5.0, size=5000)
    >>> interval = betting_interval(losses)
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.087, 0.095)
    """
    checked = checked_losses(losses, loss_range)
    if checked.size == 0:
        raise ParameterError("losses are empty; needed at least one. Type n_samples=1000, say.")
    confidence = checked_confidence(confidence)
    shares = checked / loss_range
    starts = _bet_starts(checked.size)
    threshold = math.log(2.0 / (1.0 - confidence))
    low = loss_range * _betting_limit(shares, starts, threshold)
    high = loss_range * (1.0 - _betting_limit(1.0 - shares, starts, threshold))
    return interval_around(float(checked.mean()), low, high, confidence)


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
    0.5 (95% interval 0.495 to 0.515)
    """
    checked = checked_losses(losses, loss_range)
    interval = betting_interval(checked, loss_range, confidence)
    return estimate_from(float(checked.mean()), interval, checked.size, "betting")


def split_delta(delta: float, look: int) -> float:
    r"""Share of a failure probability for the ``look``-th look, counted from 1.

    .. math:: \delta_j = \frac{\delta}{j (j + 1)}, \qquad \sum_{j \ge 1} \delta_j = \delta

    Fixed-size intervals at looks planned in advance (100, 200, 400, ... samples), the j-th at confidence
    :math:`1 - \delta_j`, hold all together with confidence :math:`1 - \delta`: one may stop at any of them.

    >>> [round(split_delta(0.06, look), 4) for look in (1, 2, 3)]
    [0.03, 0.01, 0.005]
    """
    look = checked_count("look", look)
    return checked_delta(delta) / (look * (look + 1))


@functools.lru_cache(maxsize=64)
def _bet_starts(n: int) -> NDArray[np.intp]:
    """Return the positions where a bet is renewed: each of the first 32, then after growth by 1/16."""
    starts = [0]
    while (following := starts[-1] + max(1, starts[-1] // 16)) < n:
        starts.append(following)
    found = np.array(starts)
    found.setflags(write=False)
    return found


def _plug_in_bets(sums: Floats, squares: Floats, starts: NDArray[np.intp], budget: float) -> Floats:
    r"""Return one bet for each block, from the sums over the blocks before it.

    .. math:: \sqrt{2q} + \hat\mu q, \qquad q = \text{budget} / \hat\sigma^2

    The first term is best for small bets; the second follows the best one where losses hardly vary
    and the bet should come close to everything.
    """
    total, total_square = np.cumsum(sums) - sums, np.cumsum(squares) - squares
    mean = (0.5 + total) / (starts + 1)
    scatter = total_square - 2 * mean * total + starts * mean**2
    ratio = budget * (starts + 1) / (0.25 + np.maximum(scatter, 0.0))  # rounding can leave it below 0
    bets: Floats = np.sqrt(2 * ratio) + mean * ratio
    return bets


def _betting_limit(shares: Floats, starts: NDArray[np.intp], threshold: float) -> float:
    """Return the lower limit for the mean of ``shares`` in [0, 1]."""
    sizes = np.diff(starts, append=shares.size)
    sums, squares = np.add.reduceat(shares, starts), np.add.reduceat(shares * shares, starts)
    bets = _plug_in_bets(sums, squares, starts, threshold / shares.size)
    growth = np.add.reduceat(np.log1p(np.repeat(bets, sizes) * shares), starts)

    def log_capital(m: float) -> tuple[float, float]:
        path = np.cumsum(growth - sizes * np.log1p(bets * m))
        last = int(np.argmax(path)) + 1
        slope = -np.sum((sizes * bets / (1.0 + bets * m))[:last])
        return float(path[last - 1]), float(slope)

    return largest_refuted(log_capital, threshold)
