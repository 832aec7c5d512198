"""The verdict: what limits that hold together say about the facts.

The verdict is a function of true shares, or of the true R2. Limits that hold together are a box that contains the
true figures with the joint confidence. A verdict is given only if its condition is true in the whole box, so that
it costs no failure probability of its own:

=================== =================================== ==========================================
verdict             classes and thresholds              numbers
=================== =================================== ==========================================
robust              all.low >= .95                      all.low >= .95
explained           holds.low >= .95                    r2.low >= .75
partly_explained    1 - holds.low <= (1 - all.high)/2   r2.low >= .5
not_explained       holds.high < .95 and                r2.high < .5
                    1 - holds.high > (1 - all.low)/2
undecided           none of these                       none of these
=================== =================================== ==========================================

The first that applies is given. ``holds`` is the smaller of two shares, so its limits are the smaller lower and
the smaller upper limit. For numbers, ``all`` is the share of neighbors whose output differs from f(x) by at most
2% of the table's 5-95% spread. A share says what a reader takes from "hardly anything changes it", in the same
words as for classes; it needs no bounds of the outputs, whereas one extreme output would decide a mean difference.
If facts hold in 95% of neighbors, they explain the decision even where they remove less than half of few changes;
therefore `not_explained` needs both lines.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from anchorline.result.explanation import Verdict

Limits = tuple[float, float]


class Sides(Protocol):
    """Limits, 0 for the lower and 1 for the upper one, which may be computed where a condition looks at them."""

    def __getitem__(self, side: int, /) -> float:
        """Return a limit."""


STAYS = 0.95
"""Share of neighbors that must keep a decision."""

EXPLAINED_R2, PARTLY_R2 = 0.75, 0.5
"""R2 at which the typical error is halved, and at which half of the squared differences are explained."""

SAME_WITHIN = 0.02
"""Part of the table's 5-95% spread within which a number counts as the same."""

_ROUNDING = 1e-12  # of exact shares, which are sums of probabilities


def _is_at_least(limit: float, line: float) -> bool:
    return limit >= line - _ROUNDING


# A condition compares the limits of all neighbors with those of what the facts achieve: `holds`, or R2.
Condition = Callable[[Sides, Sides], bool]


def _robust(of_all: Sides, of_facts: Sides) -> bool:
    return _is_at_least(of_all[0], STAYS)


DECISIONS: Mapping[Verdict, Condition] = {
    Verdict.ROBUST: _robust,
    Verdict.EXPLAINED: lambda of_all, holds: _is_at_least(holds[0], STAYS),
    Verdict.PARTLY_EXPLAINED: lambda of_all, holds: _is_at_least(holds[0], (1 + of_all[1]) / 2),
    Verdict.NOT_EXPLAINED: lambda of_all, holds: not _is_at_least(holds[1], min(STAYS, (1 + of_all[0]) / 2)),
}
"""The conditions for classes, thresholds and labels, best verdict first."""

NUMBERS: Mapping[Verdict, Condition] = {
    Verdict.ROBUST: _robust,
    Verdict.EXPLAINED: lambda of_all, r2: _is_at_least(r2[0], EXPLAINED_R2),
    Verdict.PARTLY_EXPLAINED: lambda of_all, r2: _is_at_least(r2[0], PARTLY_R2),
    Verdict.NOT_EXPLAINED: lambda of_all, r2: not _is_at_least(r2[1], PARTLY_R2),
}
"""The conditions for numbers, best verdict first."""


def decide(conditions: Mapping[Verdict, Condition], of_all: Sides, of_facts: Sides) -> Verdict:
    """Return the best verdict whose condition the limits establish.

    Examples
    --------
    >>> decide(DECISIONS, (0.6, 0.7), (0.96, 0.99)), decide(DECISIONS, (0.6, 0.7), (0.80, 0.96))
    (<Verdict.EXPLAINED: 'explained'>, <Verdict.UNDECIDED: 'undecided'>)
    """
    for verdict, is_established in conditions.items():
        if is_established(of_all, of_facts):
            return verdict
    return Verdict.UNDECIDED
