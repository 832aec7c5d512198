r"""The verdict: whether facts explain an output, as far as limits that hold together can say.

Let :math:`\ell` be the loss while the facts hold, and :math:`L` the loss over all neighbors. A loss is the share
of neighbors in which the output changes. A decision changes if it is another one; a number changes if it moves by
more than what counts as "about the same". The share of the changes that holding the facts prevents is
:math:`1 - \ell / L`.

A random draw may equal the case and then cannot change the output. Such draws are not neighbors: all shares are
shares of the draws that differ from the case, see `among_neighbors`.

The verdict is a function of the true losses. Limits that hold together are a rectangle which contains the true
losses with the joint confidence. A verdict is given only if all points of the rectangle agree on it. Therefore it
is wrong with at most the failure probability that the limits share, and costs none of its own.
"""

import enum
import math
from dataclasses import dataclass
from typing import Any

from anchorline.guarantees.intervals import Estimate, exact_estimate

# Most readers call an output reliable if it stays in 19 of 20 cases, and a tendency if it stays in 4 of 5.
TRUSTWORTHY_STABILITY, WEAK_STABILITY = 0.95, 0.80
GOOD, BAD = 1 - TRUSTWORTHY_STABILITY, 1 - WEAK_STABILITY
PREVENTED = 0.75  # the facts prevent three of four changes
_ABOVE_GOOD = math.nextafter(GOOD, 1.0)
_ROUNDING = 1e-9


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
    WEAK = "The facts do not explain the output: other attributes also decide, or the facts add too little."
    UNRELIABLE = "The output often changes although the facts hold. Do not rely on this explanation."
    UNDECIDED = "The neighbors measured are too few to choose between verdicts. Measure more of them (n_certify)."
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


_FROM_GOOD_TO_BAD = (Verdict.ROBUST, Verdict.TRUSTWORTHY, Verdict.WEAK, Verdict.UNRELIABLE)


class Effect(enum.Enum):
    """How the loss while the facts hold compares with the loss over all neighbors, by joint limits."""

    HELPS = "The loss is smaller while the facts hold."
    UNCLEAR = "The limits overlap."
    HARMS = "The loss is larger while the facts hold."


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """Limits of the losses while the facts hold (``held``) and over all neighbors (``free``), as (low, high).

    If a loss is at most `GOOD`, the output stays; above `BAD` it often changes.

    >>> facts_help = Losses(held=(0.01, 0.03), free=(0.35, 0.38))
    >>> facts_help.verdict.name, facts_help.effect.name, round(facts_help.least_prevented, 2)
    ('TRUSTWORTHY', 'HELPS', 0.91)
    >>> Losses(held=(0.0, 0.01), free=(0.0, 0.01)).verdict.name
    'ROBUST'
    """

    held: tuple[float, float]
    free: tuple[float, float]

    @classmethod
    def from_shares(
        cls, stability: Estimate, baseline: Estimate, reach: float = 1.0, held_reach: float = 1.0
    ) -> "Losses":
        r"""Return the shares of neighbors in which the output changes, from shares of draws in which it stays.

        .. math:: \ell = (1 - \text{stability}) / \text{held reach}, \quad L = (1 - \text{baseline}) / \text{reach}

        ``reach`` is the probability that a draw differs from the case, and ``held_reach`` the same while the
        facts hold.

        >>> from anchorline.guarantees import estimate_share
        >>> Losses.from_shares(estimate_share(990, 1000), estimate_share(400, 1000)).verdict.name
        'TRUSTWORTHY'
        """
        shares = among_neighbors(stability, held_reach), among_neighbors(baseline, reach)
        held, free = ((1 - share.high, 1 - share.low) for share in shares)
        return cls(held=held, free=free)

    @property
    def effect(self) -> Effect:
        """Whether the facts help, harm, or cannot be distinguished from chance."""
        if self.held[1] < self.free[0]:
            return Effect.HELPS
        return Effect.HARMS if self.held[0] > self.free[1] else Effect.UNCLEAR

    @property
    def least_prevented(self) -> float:
        r"""The bad end of the share of the changes that holding the facts prevents, :math:`1 - \ell / L`."""
        return 1 - self.held[1] / self.free[0] if self.free[0] > 0 else -math.inf

    @property
    def most_prevented(self) -> float:
        """The good end of the share of the changes that holding the facts prevents."""
        return 1 - self.held[0] / self.free[1] if self.free[1] > 0 else -math.inf

    @property
    def verdict(self) -> Verdict:
        """The verdict that all points of the rectangle agree on."""
        possible = self.possible
        return possible[0] if len(possible) == 1 else Verdict.UNDECIDED

    @property
    def possible(self) -> list[Verdict]:
        """The verdicts of all points of the rectangle, from good to bad.

        Those at the corners suffice, and where the rectangle contains a limit of the rule, those at the limit.
        """
        held, free = {*self.held, _inside(BAD, self.held)}, {*self.free, _inside(_ABOVE_GOOD, self.free)}
        found = {judge(one, other) for one in held for other in free}
        return [verdict for verdict in _FROM_GOOD_TO_BAD if verdict in found]


def _inside(limit: float, ends: tuple[float, float]) -> float:
    """Return a limit if it lies between the ends, and else the nearer end."""
    return min(max(limit, ends[0]), ends[1])


def judge(held: float, free: float) -> Verdict:
    """Return the verdict on known losses.

    >>> judge(held=0.02, free=0.3).name, judge(held=0.1, free=0.3).name, judge(held=0.3, free=0.3).name
    ('TRUSTWORTHY', 'WEAK', 'UNRELIABLE')
    """
    if free <= GOOD:
        return Verdict.ROBUST
    if held > BAD:
        return Verdict.UNRELIABLE
    return Verdict.TRUSTWORTHY if held <= min(GOOD, (1 - PREVENTED) * free) else Verdict.WEAK


def among_neighbors(share: Estimate, reach: float) -> Estimate:
    r"""Return the share of neighbors in which the output stays, given the same share of all draws.

    .. math:: 1 - (1 - \text{share}) / \text{reach}

    A draw differs from the case with the known probability ``reach``, and stays the same otherwise. If no draw
    differs, nothing can change.

    >>> from anchorline.guarantees import exact_estimate
    >>> among_neighbors(exact_estimate(0.95, 64), 0.5).value, among_neighbors(exact_estimate(1.0, 64), 0.0).value
    (0.9, 1.0)
    """
    if reach <= 0:
        return exact_estimate(1.0, share.n_samples)
    return share.map(lambda stays: _snapped(1 - (1 - stays) / reach))


def _snapped(share: float) -> float:
    """Return a share between 0 and 1, without the rounding of a division."""
    return 0.0 if share < _ROUNDING else 1.0 if share > 1 - _ROUNDING else round(share, 12)


def title(verdict: Verdict, losses: Losses | None) -> str:
    """Return the verdict in the words that readers see; an open one names what is possible.

    >>> title(Verdict.UNDECIDED, Losses(held=(0.1, 0.3), free=(0.5, 0.6)))
    'undecided between a weak and an unreliable explanation'
    """
    if verdict is not Verdict.UNDECIDED or losses is None or len(losses.possible) < 2:
        return verdict.title
    words = [("an " if each.title[0] in "aeiou" else "a ") + each.title for each in losses.possible]
    words = [*(word.removesuffix(" explanation") for word in words[:-1]), words[-1]]
    return f"undecided between {', '.join(words[:-1])} and {words[-1]}"
