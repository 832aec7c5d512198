"""Confidence sequences: intervals that stay valid at every look and under every stopping rule."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from anchorline.errors import ParameterError
from anchorline.guarantees._checks import checked_confidence, checked_positive
from anchorline.guarantees.intervals import (
    Estimate,
    Floats,
    Interval,
    checked_losses,
    estimate_from,
    interval_around,
    largest_refuted,
)

BETS = 2.0 ** np.arange(-8, 10)
"""The mixture of bets: 2^-8 suits a million samples, 2^9 suits losses that do not vary."""

FACTORS_PER_LOG = 32
"""Number of factors per logarithm; (1 + 2^9)^32 is far below the largest float."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BettingSequence:
    r"""Confidence sequence for the mean of losses in ``[0, loss_range]``.

    .. math:: \frac{1}{|\Lambda|} \sum_{\lambda \in \Lambda} \prod_{i \le t}
              \frac{1 + \lambda X_i}{1 + \lambda m} < \frac2\alpha

    holds at the true mean m for all t together with probability at least :math:`1 - \alpha/2`, for losses
    scaled to [0, 1] and likewise for their complements. :math:`\Lambda` is :data:`BETS`. The state is one
    number per bet and side. It does not grow with the sample and does not depend on the order of the losses.
    Sequences of disjoint samples can be added. ``update`` returns a new sequence and mutates nothing.

    >>> rng, sequence = np.random.default_rng(0), BettingSequence()
    >>> while sequence.interval().width > 0.02:
    ...     sequence = sequence.update(rng.beta(0.5, 5.0, size=500))
    >>> sequence.n_samples
    1500
    """

    loss_range: float = 1.0
    n_samples: int = 0
    total: float = 0.0
    growth: Floats = field(default_factory=lambda: np.zeros((2, BETS.size)), repr=False)

    def __post_init__(self) -> None:
        checked_positive("loss_range", self.loss_range, example=1.0)
        growth = np.array(self.growth, dtype=np.float64)
        growth.setflags(write=False)
        object.__setattr__(self, "growth", growth)

    def update(self, losses: ArrayLike, counts: ArrayLike | None = None) -> "BettingSequence":
        """Return the sequence after more losses, where ``losses[i]`` occurs ``counts[i]`` times (default: once).

        >>> BettingSequence().update([0.0, 1.0], counts=[979, 21]).n_samples
        1000
        """
        checked = checked_losses(losses, self.loss_range)
        shares = checked / self.loss_range
        if counts is None:
            n_samples, total = checked.size, float(checked.sum())
            growth = [_log_growth(shares), _log_growth(1.0 - shares)]
        else:
            tally = _checked_tally(counts, checked.size)
            n_samples, total = int(tally.sum()), float(checked @ tally)
            growth = [np.log1p(np.outer(BETS, side)) @ tally for side in (shares, 1.0 - shares)]
        return self + BettingSequence(
            loss_range=self.loss_range, n_samples=n_samples, total=total, growth=np.array(growth)
        )

    def __add__(self, other: "BettingSequence") -> "BettingSequence":
        if other.loss_range != self.loss_range:
            raise ParameterError(
                f"The loss ranges are {self.loss_range!r} and {other.loss_range!r}, but they must be equal. "
                "Type BettingSequence(loss_range=...) with the same number for both."
            )
        return BettingSequence(
            loss_range=self.loss_range,
            n_samples=self.n_samples + other.n_samples,
            total=self.total + other.total,
            growth=self.growth + other.growth,
        )

    def interval(self, confidence: float = 0.95) -> Interval:
        """Return the current interval, which is the whole range before the first loss.

        >>> interval = BettingSequence().update([0.0, 1.0], counts=[979, 21]).interval()
        >>> round(interval.low, 4), round(interval.high, 4)
        (0.0088, 0.0407)
        """
        confidence = checked_confidence(confidence)
        if self.n_samples == 0:
            return Interval(0.0, self.loss_range, confidence)
        threshold = math.log(2.0 / (1.0 - confidence))
        low, mirrored = (self._limit(side, threshold) for side in self.growth)
        mean = self.total / self.n_samples
        return interval_around(mean, self.loss_range * low, self.loss_range * (1.0 - mirrored), confidence)

    def estimate(self, confidence: float = 0.95) -> Estimate:
        """Return the mean of the losses so far, with the current interval.

        >>> print(BettingSequence().update([0.0, 1.0], counts=[979, 21]).estimate())
        0.021 (95% interval 0.00876 to 0.0408)
        """
        if self.n_samples == 0:
            raise ParameterError(
                "The sequence holds 0 losses, but it must hold at least one. Type sequence.update(losses) first."
            )
        interval = self.interval(confidence)
        return estimate_from(self.total / self.n_samples, interval, self.n_samples, "sequence")

    def _limit(self, growth: Floats, threshold: float) -> float:
        n = self.n_samples

        def log_capital(m: float) -> tuple[float, float]:
            odds = BETS * m
            logs = growth - n * np.log1p(odds)
            largest = float(logs.max())
            weights = np.exp(logs - largest)
            total = float(weights.sum())
            slope = -n * float(weights @ (BETS / (1.0 + odds))) / total
            return largest + math.log(total / BETS.size), slope

        return largest_refuted(log_capital, threshold)


def _log_growth(shares: Floats) -> Floats:
    r"""Return :math:`\sum_i \ln(1 + \lambda X_i)` per bet, with n products and n / 32 logarithms."""
    table = np.zeros((FACTORS_PER_LOG, -(-shares.size // FACTORS_PER_LOG)))  # the padding gives factors of 1
    table.ravel()[: shares.size] = shares
    return np.array([np.log(np.multiply.reduce(1.0 + bet * table, axis=0)).sum() for bet in BETS])


def _checked_tally(counts: ArrayLike, n_values: int) -> Floats:
    tally = np.asarray(counts, dtype=np.float64)
    if tally.shape != (n_values,) or not np.all((tally >= 0) & (tally == np.floor(tally))):
        raise ParameterError(
            f"counts are {counts!r}, but they must be {n_values} whole numbers, one per loss. "
            "Type losses, counts = np.unique(losses, return_counts=True)."
        )
    return tally
