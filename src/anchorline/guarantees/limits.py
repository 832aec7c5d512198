r"""Limits that hold at every look together, for a share and for the R2 of a sum.

A limit is refuted by a bet: capital that starts at 1, is never negative, and cannot be expected to grow if the
limit is true. By Ville's inequality it ever reaches 1 / failure with a probability of at most ``failure``,
whenever one looks and for whatever reason one stops. A mixture of bets is a bet.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np

from anchorline.errors import ParameterError
from anchorline.result.explanation import Share

Pair = tuple[float, float]
"""What belongs to the lower and to the upper limit."""

_SHARE_BETS = tuple((bet, math.log1p(bet)) for bet in (2.0**power for power in range(-4, 6)))
"""Bets of odds 1 + bet against a limit, and how a success lets the logarithm of the capital grow.

At .95, 2^-3 suits a share of .955, 2^2 one of .99, and 2^5 one of 1. Arrays of so few numbers would be slower.
"""

_LOG_BETS = math.log(len(_SHARE_BETS))

_NEWTON_STEPS = 100
"""Limit that is never reached, because about four steps suffice. Stopping early would only widen an interval."""

_FIT_BETS = np.append(2.0 ** np.arange(-7, 0), [0.75, 0.9, 0.97])
"""Bets against a ratio, as parts of the capital that the worst case would lose."""

_FIT_COST = -np.log1p(-_FIT_BETS) - _FIT_BETS

_R2 = np.arange(999, -1, -1) / 1000
_RATIOS = np.arange(1, 1001) / 1000
"""Ratios 1 - R2 that bets are placed on: limits of R2 are rounded outwards to 0.001."""

_TUNED_FOR = 500
"""Number of neighbors at which approximate limits are narrowest."""

_FEWEST = 100
"""With fewer neighbors, a mean of squares is not yet normal enough for an approximate limit."""


@functools.lru_cache(maxsize=4096)  # rounds ask for the same limits again and again
def lower_limit(kept: float, n: float, failure: float) -> float:
    r"""Return the lower limit of a share, of which ``kept`` of ``n`` draws are examples; 0 without draws.

    .. math:: \max\Bigl\{m : \frac{1}{|\Lambda|} \sum_{\lambda \in \Lambda}
              \frac{(1 + \lambda)^{\text{kept}}}{(1 + \lambda m)^n} \ge \frac{1}{\text{failure}}\Bigr\}

    Each term is the likelihood ratio of a share with odds 1 + λ times those of m. The limit is ever too high with
    probability at most ``failure``, over all n together. The upper limit is that of the complement.

    The logarithm of this capital is convex and decreasing in m. The best single bet gives a refuted m in closed
    form; Newton's method from there approaches the limit from below, and every iterate is refuted too.

    Examples
    --------
    >>> round(lower_limit(979, 1000, 0.025), 4), round(1 - lower_limit(21, 1000, 0.025), 4)
    (0.9605, 0.9908)
    """
    if n == 0:
        return 0.0
    needed = _LOG_BETS - math.log(failure)
    m = max(0.0, *(math.expm1((kept * growth - needed) / n) / bet for bet, growth in _SHARE_BETS))
    for _ in range(_NEWTON_STEPS):
        logs = [kept * growth - n * math.log1p(bet * m) for bet, growth in _SHARE_BETS]
        largest = max(logs)
        weights = [math.exp(log - largest) for log in logs]
        total = sum(weights)
        slope = n * sum(w * bet / (1.0 + bet * m) for w, (bet, _) in zip(weights, _SHARE_BETS, strict=True))
        step = (largest + math.log(total) - needed) * total / slope
        if not step > 1e-13 * m:
            break
        m += step
    return min(m, kept / n)


@dataclass(frozen=True, slots=True)
class Count:
    """How many of n neighbors keep the decision, or the probability that they do if all are listed."""

    kept: float = 0.0
    n: int = 0
    is_exact: bool = False

    def added(self, stays: np.ndarray) -> "Count":
        """Return the count with more neighbors."""
        if self.is_exact:
            raise ParameterError(
                "All neighbors of this stream were listed, so no more can be drawn. "
                "Type Measurement(...) to start again."
            )
        return Count(self.kept + int(np.count_nonzero(stays)), self.n + stays.size)

    @classmethod
    def listed(cls, stays: np.ndarray, weights: np.ndarray) -> "Count":
        """Return the exact share over all neighbors with their probabilities, which may be unscaled."""
        return cls(float(weights[stays].sum() / weights.sum()), stays.size, is_exact=True)

    @property
    def value(self) -> float:
        """The share that keeps the decision."""
        return self.kept if self.is_exact or self.n == 0 else self.kept / self.n

    def limits(self, failures: Pair, more: float = 0.0, luck: float = 0.0) -> Pair:
        """Return the limits, or those after ``more`` neighbors that are by ``luck`` standard errors better."""
        return self.limit(0, failures, more, luck), self.limit(1, failures, more, luck)

    def limit(self, side: int, failures: Pair, more: float = 0.0, luck: float = 0.0) -> float:
        """Return the lower (0) or the upper (1) of the limits."""
        if self.is_exact:
            return self.kept
        kept, n = self.kept, self.n + more
        if more:
            smoothed = (self.kept + 2) / (self.n + 4)
            rate = self.value + luck * math.sqrt(smoothed * (1 - smoothed) / (self.n + 4))
            kept += more * min(max(rate, 0.0), 1.0)
        return 1.0 - lower_limit(n - kept, n, failures[1]) if side else lower_limit(kept, n, failures[0])

    def share(self, failures: Pair) -> Share | None:
        """Return the share with its limits, or None if nothing was asked."""
        if self.n == 0:
            return None
        low, high = self.limits(failures)
        return Share(self.value, low, high, self.n, self.is_exact)


@dataclass(frozen=True, slots=True)
class Squares:
    """Sums over neighbors from which the fit of a sum follows: of drops t, their squares, and squared errors.

    ``error`` is the sum of u = (t - s)^2 and ``base`` that of w = t^2; ``error2``, ``base2`` and ``both`` are the
    sums of u^2, w^2 and u w. ``largest_error`` and ``largest_base`` bound u and w, or are None if outputs have no
    known bounds. Sums are additive.
    """

    largest_error: float | None = None
    largest_base: float | None = None
    n: int = 0
    drops: float = 0.0
    error: float = 0.0
    base: float = 0.0
    error2: float = 0.0
    base2: float = 0.0
    both: float = 0.0

    @classmethod
    def bounded(cls, drops: tuple[float, float], effects: np.ndarray) -> "Squares":
        """Return empty sums for drops within known limits, and a sum of any of these effects."""
        low, high = drops
        least, most = float(effects[effects < 0].sum()), float(effects[effects > 0].sum())
        return cls(max(high - least, most - low) ** 2, max(high, -low) ** 2)

    def added(self, drops: np.ndarray, sums: np.ndarray, weights: np.ndarray | None = None) -> "Squares":
        """Return the sums with more neighbors, weighted by probabilities if these are all neighbors."""
        u, w = (drops - sums) ** 2, drops**2
        if self.largest_error is not None and self.largest_base is not None:
            u = _within(u, self.largest_error)
            w = _within(w, self.largest_base)
        parts = (drops, u, w, u * u, w * w, u * w)
        if weights is not None:
            parts = tuple(part * weights for part in parts)
        totals = [float(part.sum()) for part in parts]
        old = (self.drops, self.error, self.base, self.error2, self.base2, self.both)
        new = (a + b for a, b in zip(old, totals, strict=True))
        return Squares(self.largest_error, self.largest_base, self.n + drops.size, *new)

    @property
    def r2(self) -> float:
        """1 - mean u / mean w; 0 for a sum that is worse than none, and 1 if nothing is left to explain."""
        if self.base == 0:
            return float(self.error == 0)
        return max(0.0, 1.0 - self.error / self.base)

    def limit(self, side: int, failure: float, more: float = 0.0, luck: float = 0.0) -> float:
        r"""Return the lower (0) or the upper (1) limit of R2, a multiple of 0.001.

        R2 is at least 1 - g if :math:`E[g w - u] \ge 0`. For outputs with known bounds, the limit g is refuted by

        .. math:: \frac{1}{|\Lambda|} \sum_{\lambda \in \Lambda}
                  \exp\Bigl(\lambda \sum_i x_i - (-\ln(1 - \lambda) - \lambda) \sum_i x_i^2\Bigr)
                  \ge \frac1{\text{fail}}, \qquad x = \frac{g w - u}{\max u}

        which never exceeds the capital of the bets :math:`1 + \lambda x` (Fan's inequality). That capital grows
        with g, so no g below the true one is ever refuted unless the true one is: the smallest refuted g is a
        limit. The other limit follows with u and w exchanged. Otherwise, by the asymptotic confidence sequence of
        Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), one-sided: g is refuted if the mean of g w - u
        exceeds

        .. math:: \hat\sigma \sqrt{\frac{2 (n \rho^2 + 1)}{n^2 \rho^2}
                  \ln\Bigl(1 + \frac{\sqrt{n \rho^2 + 1}}{2\,\text{fail}}\Bigr)}

        R2 below 0 counts as 0. With ``more``, these are the limits after as many further neighbors that fit better
        by ``luck`` standard errors than those so far.
        """
        return float(side) if self.n == 0 else _fit_limit(self, side, failure, more, luck)

    def refuted(
        self, scale: float | np.ndarray, largest: float | None, failure: float, more: float, luck: float
    ) -> np.ndarray:
        """Return for which ratios g it is refuted that the mean of scale (g w - u) is at most 0."""
        n = self.n
        mean = scale * (_RATIOS * self.base - self.error) / n
        square = scale**2 * (_RATIOS**2 * self.base2 - 2 * _RATIOS * self.both + self.error2) / n
        deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
        total = n + more
        mean = mean + luck * deviation / math.sqrt(n) * (more / total)
        if largest is None:
            allowed = deviation * _asymptotic_width(total, failure)
            return (mean > allowed) & (n >= _FEWEST)
        if largest == 0:
            return mean > 0
        gain, cost = total * mean / largest, total * square / largest**2
        logs = np.multiply.outer(gain, _FIT_BETS) - np.multiply.outer(cost, _FIT_COST)
        peak = logs.max(axis=-1)
        capital = peak + np.log(np.exp(logs - peak[..., None]).mean(axis=-1))
        refuted: np.ndarray = capital >= -math.log(failure)
        return refuted


@functools.lru_cache(maxsize=256)  # a verdict, its rounds and its figures ask for the same limits
def _fit_limit(squares: Squares, side: int, failure: float, more: float, luck: float) -> float:
    if side:
        too_small = squares.refuted(-1.0 / _RATIOS, squares.largest_base, failure, more, -luck)
        high = float(_R2[too_small][-1]) if too_small.any() else 1.0
        return high if more else max(high, squares.r2)
    too_large = squares.refuted(1.0, squares.largest_error, failure, more, luck)
    low = float(_R2[too_large.argmax()]) if too_large.any() else 0.0
    return low if more else min(low, squares.r2)


def mean_width(deviation: np.ndarray, n: int, failure: float, tuned_for: int) -> np.ndarray:
    r"""Return by how much means of n independent rows may be off, by approximate limits that hold at every look.

    .. math:: \hat\sigma \sqrt{\frac{2 (n \rho^2 + 1)}{n^2 \rho^2}
              \ln \frac{\sqrt{n \rho^2 + 1}}{\text{failure}}}

    A mean is ever further away with probability at most ``failure``, both sides and all n together, if means are
    normal; ``deviation`` is the standard deviation of single rows. Limits are narrowest at ``tuned_for`` rows.
    """
    return deviation * _asymptotic_width(n, failure / 2, tuned_for)


def _asymptotic_width(n: float, failure: float, tuned_for: int = _TUNED_FOR) -> float:
    tuned = -2 * math.log(2 * failure)
    tuned = n * (tuned + math.log(tuned + 1)) / tuned_for + 1
    return math.sqrt(2 * tuned / (n * (tuned - 1)) * math.log1p(math.sqrt(tuned) / (2 * failure)))


def _within(squares: np.ndarray, largest: float) -> np.ndarray:
    """Return squares without what rounding added; raise if an output lies outside its known bounds."""
    most = float(squares.max(initial=0.0))
    if not most <= largest + 1e-9 * max(largest, 1.0):  # also catches NaN
        raise ParameterError(
            f"An output differs from its sum or from the prediction by {math.sqrt(most):.6g}, but the known range "
            f"of outputs allows {math.sqrt(largest):.6g}. Type an output_range that no output leaves."
        )
    clipped: np.ndarray = np.minimum(squares, largest)
    return clipped
