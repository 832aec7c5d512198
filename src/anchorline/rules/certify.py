"""Certifies a rule on fresh neighbors, in rounds, until it is decided whether it holds as often as asked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from anchorline.guarantees.measuring import FEWEST_UNBROKEN, Count
from anchorline.guarantees.verdicts import Limits
from anchorline.optimize.boxes import Draws
from anchorline.result.explanation import Share
from anchorline.result.rule import RuleVerdict
from anchorline.rules.samples import Asking
from anchorline.search.measure import unbroken_donors

_FIRST, _LARGEST = 300, 4000  # neighbors of a stream in the first round, and in any
_LUCK = 2.0  # standard errors by which further neighbors may be better than those so far
_MEASURED = 2000  # neighbors of a stream if no share was asked for
_ROUNDING = 1e-12
MOST_TRIES = 4  # rules that are tried on fresh neighbors, one after the other


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """What fresh neighbors say about a rule: with its facts, and of the law without a broken fact (or None).

    ``failures`` are those of the lower and upper limits; ``draws`` are the neighbors of both kinds.
    """

    drawn: Count
    law: Count | None
    failures: Limits
    target: float | None
    draws: tuple[Draws, ...] = ()

    @property
    def counts(self) -> list[Count]:
        """What `holds` is the smallest of."""
        return [self.drawn] if self.law is None else [self.drawn, self.law]

    @property
    def share(self) -> Share:
        """The smaller share, with limits for the smaller of both true shares."""
        smallest = min(self.counts, key=lambda count: count.value)
        low, high = self.limits()
        return Share(smallest.value, low, high, smallest.n, all(count.is_exact for count in self.counts))

    def limits(self, more: float = 0.0, luck: float = 0.0) -> Limits:
        """Return the limits of the smaller share, or those after ``more`` neighbors that are luckier."""
        both = [count.limits(self.failures, more, luck) for count in self.counts]
        return min(low for low, _ in both), min(high for _, high in both)

    @property
    def is_without_exception(self) -> bool:
        """Whether every neighbor kept the decision."""
        return all(count.value == 1 for count in self.counts)

    def proven(self) -> "Certificate":
        """Return the certificate of a rule that is proven to hold always."""
        exact = [Count(1.0, count.n, is_exact=True) for count in self.counts]
        return replace(self, drawn=exact[0], law=exact[1] if len(exact) > 1 else None)

    @property
    def verdict(self) -> RuleVerdict:
        """What the limits establish."""
        low, high = self.limits()
        if self.target is None:
            return RuleVerdict.MEASURED
        if all(count.is_exact for count in self.counts) and low >= 1 - _ROUNDING:
            return RuleVerdict.ALWAYS
        if low >= self.target - _ROUNDING:
            return RuleVerdict.HOLDS
        return RuleVerdict.FALLS_SHORT if high < self.target - _ROUNDING else RuleVerdict.UNDECIDED


def failures_of(confidence: float, attempt: int) -> Limits:
    """Return how probable it may be that the limits of one of two shares ever fail, in the given attempt.

    The first attempt has half of what is left beside the share of all neighbors, the next a quarter, and so on, so
    that all limits hold together, whichever rule is stated in the end.
    """
    unit = (1.0 - confidence) / 10 * 0.5 ** min(attempt + 1, MOST_TRIES - 1)
    return 3 * unit, unit


def failures_of_all(confidence: float) -> Limits:
    """Return how probable it may be that the limits of the share of all neighbors fail."""
    return (1.0 - confidence) / 10, (1.0 - confidence) / 10


def certify(
    asking: Asking, facts: Sequence[int], target: float | None, attempt: int, most: int, unbroken: float
) -> Certificate:
    """Draw neighbors, at most ``most``, until it is decided whether they keep the decision as often as asked.

    ``unbroken`` is the share of the law's neighbors that break none of the facts.
    """
    case, asks_law = asking.case, unbroken >= FEWEST_UNBROKEN
    failures = failures_of(case.settings.confidence, attempt)
    found = Certificate(Count(), Count() if asks_law else None, failures, target)
    draws, batch = list[Draws](), 0
    while (sizes := _sizes(found, most)) != (0, 0):
        stream = f"rule/{attempt}"
        donors = case.draw(f"{stream}/facts", batch, sizes[0], facts)
        law = donors[:, :0]
        if sizes[1]:
            law = unbroken_donors(case, f"{stream}/law", batch, sizes[1], facts, unbroken)
        stays = asking.stays(case.ask(np.hstack([donors, law])))
        most -= stays.size
        n = donors.shape[1]
        drawn, of_law = stays[:n], stays[n:]
        draws.append(Draws(case.neighborhood.cells(donors), drawn, np.ones(n)))
        if found.law is not None and len(of_law):
            cells = case.neighborhood.cells(law)
            draws.append(Draws(cells, of_law, np.ones(len(of_law)), are_of_law=True))
        more = found.law if found.law is None else found.law.added(of_law)
        found, batch = Certificate(found.drawn.added(drawn), more, failures, target), batch + 1
    return replace(found, draws=tuple(draws))


def may_hold(found: Certificate, most: int) -> bool:
    """Return whether it is open that a rule holds, and in reach with as many more neighbors."""
    if found.target is None or most <= 0:
        return False
    low, high = found.limits()
    reachable = found.limits(most / len(found.counts), _LUCK)[0]
    return low < found.target <= min(high, reachable)


def _sizes(found: Certificate, most: int) -> tuple[int, int]:
    """Return how many neighbors of each stream to ask about next; none if it is decided, or out of reach."""
    streams = [found.drawn, *([] if found.law is None else [found.law])]
    if found.drawn.n and found.target is None:
        return 0, 0
    if found.drawn.n and not may_hold(found, most):
        return 0, 0
    wanted = []
    for count in streams:
        is_open = found.target is None or count.limits(found.failures)[0] < found.target
        first = _MEASURED if found.target is None else _FIRST
        wanted.append(min(_LARGEST, max(first, count.n // 2)) if is_open else 0)
    if sum(wanted) > most:
        wanted = [size * max(most, 0) // sum(wanted) for size in wanted]
    return wanted[0], wanted[1] if len(wanted) > 1 else 0
