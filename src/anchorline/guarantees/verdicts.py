r"""The verdict: whether facts explain an output, as far as limits that hold together can say.

Let :math:`\ell` be the loss while the facts hold, and :math:`L` the loss over all neighbors. A loss is the share
of neighbors in which the output changes. A decision changes if it is another one; a number changes if it moves by
more than what counts as "about the same". The share of the loss that holding the facts prevents is
:math:`1 - \ell / L`.

Some neighbors equal the case, and they always count as unchanged. Therefore a loss is called small or large as a
share of the neighbors that differ from the case.

The verdict is a function of the true losses. Limits that hold together are a rectangle which contains the true
losses with the joint confidence. A verdict is given only if all points of the rectangle agree on it. Therefore it
is wrong with at most the failure probability that the limits share, and costs none of its own.
"""

import enum
import math
from dataclasses import dataclass
from typing import Any

from anchorline.guarantees.intervals import Estimate

# Most readers call an output reliable if it stays in 19 of 20 cases, and a tendency if it stays in 4 of 5.
TRUSTWORTHY_STABILITY, WEAK_STABILITY = 0.95, 0.80
GOOD, BAD = 1 - TRUSTWORTHY_STABILITY, 1 - WEAK_STABILITY
PREVENTED = 0.75  # the facts prevent three of four changes


class Verdict(enum.Enum):
    """Whether the facts explain the output; the value of each member is its meaning.

    The verdict is about the explanation. It does not say whether the output is right.
    """

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

    @property
    def title(self) -> str:
        """The words that readers see.

        >>> Verdict.TRUSTWORTHY.title, Verdict.UNKNOWN.title
        ('trustworthy explanation', 'not measured')
        """
        return _TITLES[self.name]

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return getattr, (Verdict, self.name)  # by name, so that pickles survive a reworded text


_TITLES = {
    "TRUSTWORTHY": "trustworthy explanation",
    "ROBUST": "robust answer",
    "WEAK": "weak explanation",
    "UNRELIABLE": "unreliable explanation",
    "UNDECIDED": "undecided",
    "UNKNOWN": "not measured",
}


class Effect(enum.Enum):
    """How the loss while the facts hold compares with the loss over all neighbors, by joint limits."""

    HELPS = "The loss is smaller while the facts hold."
    UNCLEAR = "The limits overlap."
    HARMS = "The loss is larger while the facts hold."


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    r"""Limits of the losses while the facts hold (``held``) and over all neighbors (``free``), as (low, high).

    ``reach`` is the probability that a neighbor differs from the case at all, and ``held_reach`` the same while
    the facts hold. The losses among neighbors that differ are :math:`L / \text{reach}` and
    :math:`\ell / \text{held reach}`. If these are at most `GOOD`, the output stays; above `BAD` it often changes.

    >>> facts_help = Losses(held=(0.01, 0.03), free=(0.35, 0.38))
    >>> facts_help.verdict.name, facts_help.effect.name, round(facts_help.least_prevented, 2)
    ('TRUSTWORTHY', 'HELPS', 0.91)
    >>> Losses(held=(0.0, 0.01), free=(0.0, 0.01)).verdict.name
    'ROBUST'
    """

    held: tuple[float, float]
    free: tuple[float, float]
    reach: float = 1.0
    held_reach: float = 1.0

    @classmethod
    def from_shares(
        cls, stability: Estimate, baseline: Estimate, reach: float = 1.0, held_reach: float = 1.0
    ) -> "Losses":
        r"""Return the shares of neighbors in which the output changes.

        .. math:: \ell = 1 - \text{stability}, \qquad L = 1 - \text{baseline}

        If no neighbor differs from the case while the facts hold, nothing changes, whatever the interval says.

        >>> from anchorline.guarantees import estimate_share
        >>> Losses.from_shares(estimate_share(990, 1000), estimate_share(400, 1000)).verdict.name
        'TRUSTWORTHY'
        """
        held, free = ((1 - share.high, 1 - share.low) for share in (stability, baseline))
        held = held if held_reach > 0 else (0.0, 0.0)
        return cls(held=held, free=free, reach=reach, held_reach=held_reach)

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
    def most_prevented(self) -> float:
        """The good end of the share of the loss that holding the facts prevents."""
        return 1 - self.held[0] / self.free[1] if self.free[1] > 0 else -math.inf

    @property
    def verdict(self) -> Verdict:
        """The verdict that all points of the rectangle agree on.

        "Weak" states only that nothing better is true: to condemn, the good end of the loss must be bad.
        """
        if self.held[0] > BAD * self.held_reach:
            return Verdict.UNRELIABLE
        if self.effect is Effect.HARMS:
            return Verdict.WEAK
        possible = self.possible
        return possible.pop() if len(possible) == 1 else Verdict.UNDECIDED

    @property
    def possible(self) -> set[Verdict]:
        """The verdicts at the corners of the rectangle.

        If they agree, so do all points: praise is a convex region, and so is its union with "robust".
        """
        return {self._judge(held, free) for held in self.held for free in self.free}

    def _judge(self, held: float, free: float) -> Verdict:
        """Return the verdict on known losses."""
        if held > GOOD * self.held_reach:
            return Verdict.WEAK
        if free <= GOOD * self.reach:
            return Verdict.ROBUST
        return Verdict.TRUSTWORTHY if held <= (1 - PREVENTED) * free else Verdict.WEAK
