r"""The verdict: whether facts explain an output, as far as limits that hold together can say.

Let :math:`\ell` be the loss while the facts hold, and :math:`L` the loss over all neighbors. For a decision, a
loss is the share of neighbors in which the decision changes; for a number, it is the mean square of the change, as
a share of the output range. The share of the loss that holding the facts prevents is :math:`1 - \ell / L`.

The verdict is a function of the true losses. Limits that hold together are a rectangle which contains the true
losses with the joint confidence. A verdict is given only if all points of the rectangle agree on it. Therefore it
is wrong with at most the failure probability that the limits share, and costs none of its own.
"""

import enum
import math
from dataclasses import dataclass
from typing import Any

from anchorline.guarantees.intervals import Estimate

# Most readers call a decision reliable if it stays in 19 of 20 cases, and a tendency if it stays in 4 of 5.
TRUSTWORTHY_STABILITY, WEAK_STABILITY = 0.95, 0.80
# A typical change within a tenth of the output range reads as "about the same"; a quarter is a different answer.
TRUSTWORTHY_CHANGE, WEAK_CHANGE = 0.10, 0.25
# The facts prevent three of four changes; the typical change of a number, a root, is at least halved.
PREVENTED = 0.75


class Verdict(enum.Enum):
    """Whether the facts explain the output; the value of each member is its meaning."""

    TRUSTWORTHY = (
        "The facts explain the output: while they hold, it stays, and holding them prevents at least three of "
        "four changes."
    )
    ROBUST = (
        "Hardly anything within reach changes the output, even if no fact is held. This finding does not depend "
        "on the facts."
    )
    WEAK = "The facts do not explain the output: other attributes decide too, or the facts add too little."
    UNRELIABLE = "The output often changes although the facts hold. Do not rely on this explanation."
    UNDECIDED = "What was measured is not enough to say. Measure more neighbors (n_certify)."
    UNKNOWN = "Not measured. Ask for a certificate (n_certify)."

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return getattr, (Verdict, self.name)  # by name, so that pickles survive a reworded text


class Effect(enum.Enum):
    """How the loss while the facts hold compares with the loss over all neighbors, by joint limits."""

    HELPS = "The loss is smaller while the facts hold."
    UNCLEAR = "The limits overlap."
    HARMS = "The loss is larger while the facts hold."


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    r"""Limits of the losses while the facts hold (``held``) and over all neighbors (``free``), as (low, high).

    A loss of at most ``good`` reads as "the output stays", and of more than ``bad`` as "the output often changes".
    ``reach`` is the probability that a neighbor differs from the case at all; the loss among those that differ is
    :math:`L / \text{reach}`.

    >>> facts_help = Losses(held=(0.01, 0.03), free=(0.35, 0.38), good=0.05, bad=0.20)
    >>> facts_help.verdict.name, facts_help.effect.name, round(facts_help.least_prevented, 2)
    ('TRUSTWORTHY', 'HELPS', 0.91)
    >>> Losses(held=(0.0, 0.01), free=(0.0, 0.01), good=0.05, bad=0.20).verdict.name
    'ROBUST'
    """

    held: tuple[float, float]
    free: tuple[float, float]
    good: float
    bad: float
    reach: float = 1.0

    @classmethod
    def of_decision(cls, stability: Estimate, baseline: Estimate, reach: float = 1.0) -> "Losses":
        r"""Return the shares of neighbors in which the decision changes.

        .. math:: \ell = 1 - \text{stability}, \qquad L = 1 - \text{baseline}

        >>> from anchorline.guarantees import estimate_share
        >>> Losses.of_decision(estimate_share(990, 1000), estimate_share(400, 1000)).verdict.name
        'TRUSTWORTHY'
        """
        held, free = ((1 - share.high, 1 - share.low) for share in (stability, baseline))
        return cls(held=held, free=free, good=1 - TRUSTWORTHY_STABILITY, bad=1 - WEAK_STABILITY, reach=reach)

    @classmethod
    def of_number(
        cls, error: Estimate, baseline: Estimate, reach: float = 1.0, clipped: tuple[bool, bool] = (False, False)
    ) -> "Losses":
        r"""Return the mean squares of the change; ``clipped`` says where outputs moved further than was measured.

        .. math:: \ell = \mathbb E\,[t^2 \mid A], \qquad L = \mathbb E\,t^2

        A loss that was measured on clipped outputs has no upper limit.

        >>> from anchorline.guarantees import exact_estimate
        >>> errors = exact_estimate(0.001, 64), exact_estimate(0.04, 64)
        >>> Losses.of_number(*errors).verdict.name, Losses.of_number(*errors, clipped=(True, True)).verdict.name
        ('TRUSTWORTHY', 'UNDECIDED')
        """
        held, free = (
            (mean.low, math.inf if beyond else mean.high)
            for mean, beyond in zip((error, baseline), clipped, strict=True)
        )
        return cls(held=held, free=free, good=TRUSTWORTHY_CHANGE**2, bad=WEAK_CHANGE**2, reach=reach)

    @property
    def effect(self) -> Effect:
        """Whether the facts help, harm, or cannot be distinguished from chance."""
        if self.held[1] < self.free[0]:
            return Effect.HELPS
        return Effect.HARMS if self.held[0] > self.free[1] else Effect.UNCLEAR

    @property
    def least_prevented(self) -> float:
        r"""The bad end of the share of the loss that holding the facts prevents, :math:`1 - \ell / L`."""
        return 1 - self.held[1] / self.free[0] if self.free[0] > 0 else -math.inf

    @property
    def verdict(self) -> Verdict:
        """The verdict that all points of the rectangle agree on.

        "Weak" states only that nothing better is true: to condemn, the good end of the loss must be bad.
        """
        if self.held[0] > self.bad:
            return Verdict.UNRELIABLE
        if self.effect is Effect.HARMS:
            return Verdict.WEAK
        # If the corners agree, so do all points: praise is a convex region, and so is its union with "robust".
        corners = {self._judge(held, free) for held in self.held for free in self.free}
        return corners.pop() if len(corners) == 1 else Verdict.UNDECIDED

    def _judge(self, held: float, free: float) -> Verdict:
        """Return the verdict on known losses."""
        if held > self.good:
            return Verdict.WEAK
        if free <= self.good * self.reach:
            return Verdict.ROBUST
        return Verdict.TRUSTWORTHY if held <= (1 - PREVENTED) * free else Verdict.WEAK
