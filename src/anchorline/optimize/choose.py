r"""Which facts are stated: the best sum without noise, in its simplest form; and what else fits as well.

*As many facts* means: at most as many. A further fact never fits worse, because its effect may be 0. Therefore the
best of all sums of at most k facts is also the best of those of exactly k, if there are as many attributes.
"""

import heapq
import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from anchorline.optimize.moments import Moments
from anchorline.optimize.sums import Limits, Solution, Status, extended, fit, solve

TIE = 0.01  # of Var t: sums whose errors differ by less are equally good, and a fact that gains less is left out
_GAP = 0.001  # of Var t: what the search may leave to a better sum, small beside a tie
_ROUNDING = 1e-12  # of Var t


def best_sum(moments: Moments, k: int, limits: Limits | None = None) -> Solution:
    """Return the sum of at most ``k`` facts that is stated.

    Facts whose covariance with the drops may be chance are not offered, because they could still be of use to fit
    the mean. Of the best sum, facts that gain less than 1% of Var t, or not significantly more than chance, are
    left out; the search runs again with as many facts as are left, until all of them matter. Then every fact is
    replaced by the simplest about the same attribute, as long as the sum stays within 1% of Var t of the best.

    PROVEN then means: no sum of at most as many facts, of those that are offered, fits better by more than 1% of
    Var t.
    """
    limits, deadline = _started(limits)
    limits = replace(limits, gap=_GAP * moments.variance)
    offered = evident(moments)
    n_nodes = 0
    while True:
        solution = solve(moments, k, _left(limits, deadline), offered)
        n_nodes += solution.n_nodes
        k = len(_that_matter(moments, solution, limits))
        if k == len(solution.facts):
            return replace(_simplest(moments, solution, _most(moments, solution)), n_nodes=n_nodes)


def lead(moments: Moments, solution: Solution) -> float:
    r"""By how many standard errors a sum fits better than with a fact about another attribute in place of one.

    The gain :math:`g_j = c_j^2 / S_{jj}` of a fact has about the variance :math:`4 g_j\,\text{noise}_j / n`. It is
    infinite if no other attribute is offered.
    """
    groups, facts = moments.candidates.groups, solution.facts
    others = np.flatnonzero(evident(moments) & ~np.isin(groups, groups[list(facts)]))
    smallest = math.inf
    for fact in facts if len(others) else ():
        errors = extended(moments, [j for j in facts if j != fact], others)
        pair = [fact, int(others[np.argmin(errors)])]
        variance = 4 * float(np.sum(moments.c[pair] ** 2 / moments.S[pair] * moments.noise[pair])) / moments.n_rows
        ahead = float(errors.min()) - solution.objective
        smallest = min(smallest, ahead / math.sqrt(variance) if variance > 0 else math.inf)
    return smallest


def frontier(moments: Moments, ks: Sequence[int], limits: Limits | None = None) -> tuple[Solution, ...]:
    """Return the sums that are stated with at most each of several numbers of facts; see `best_sum`."""
    limits, deadline = _started(limits)
    return tuple(best_sum(moments, k, _left(limits, deadline)) for k in ks)


def alternatives(
    moments: Moments, solution: Solution, n: int, limits: Limits | None = None
) -> tuple[Solution, ...]:
    """Return up to ``n`` other sums of as many facts that fit as well as a sum that is stated, best first.

    Their errors are within 1% of Var t of the best, and there is one per set of attributes, in its simplest form.
    A sum about another set of attributes does without one attribute of the first. So sums are found by
    forbidding, one by one, the attributes of sums that were found before.
    """
    groups, offered = moments.candidates.groups, evident(moments)
    k = len(solution.facts)
    most = _most(moments, solution)
    found = {_attributes(moments, solution)}
    others: list[Solution] = []
    tried: set[frozenset[int]] = set()
    order = itertools.count()
    queue: list[tuple[float, int, frozenset[int], Solution]] = [(-math.inf, next(order), frozenset(), solution)]
    while queue and len(others) < n and k > 0:
        _, _, forbidden, current = heapq.heappop(queue)
        if _attributes(moments, current) not in found:
            found.add(_attributes(moments, current))
            others.append(_simplest(moments, current, most))
        for attribute in sorted(_attributes(moments, current)):
            without = forbidden | {attribute}
            if without in tried:
                continue
            tried.add(without)
            other = solve(moments, k, limits, offered & ~np.isin(groups, list(without)))
            if other.objective <= most and len(other.facts) == k:
                heapq.heappush(queue, (other.objective, next(order), without, other))
    return tuple(others)


def evident(moments: Moments) -> np.ndarray:
    r"""Return which facts may be stated: booleans (facts,).

    A fact that is unrelated to the drops is not offered, because it could still be of use to fit their mean. Its
    :math:`c_j^2 / S_{jj}` is its noise / n times the square of a normal variable, or 0 without error: one that is
    offered exceeds what the largest of all facts' is by chance.
    """
    near, offered = moments.near, np.zeros(moments.candidates.n_facts, dtype=bool)
    least = np.maximum(moments.chance[near], _ROUNDING * moments.variance)
    offered[near] = (moments.b[near] > 0) & (moments.c[near] ** 2 > moments.S[near] * least)
    return offered


def _that_matter(moments: Moments, solution: Solution, limits: Limits) -> tuple[int, ...]:
    """Return the facts that are left if those that gain too little are left out, the weakest first."""

    def error(others: tuple[int, ...]) -> float:
        if limits.check is not None:
            limits.check()
        return fit(moments, others)[1]

    facts, objective, chance = solution.facts, solution.objective, moments.chance
    while facts:
        without = [tuple(j for j in facts if j != fact) for fact in facts]
        left = 1.0  # of the noise, which is all of the variance in a sample: what the sum does not explain
        if moments.pairs is not None and moments.variance > 0:
            unexplained = max(objective, 0.0) * moments.n_rows / max(moments.n_rows - len(facts), 1)
            left = min(1.0, unexplained / moments.variance)
        least = np.maximum(TIE * moments.variance, left * chance[list(facts)])
        errors = np.array([error(others) for others in without])
        weakest = int(np.argmin(errors - objective - least))
        if errors[weakest] - objective >= least[weakest]:
            break
        facts, objective = without[weakest], float(errors[weakest])
    return facts


def _most(moments: Moments, solution: Solution) -> float:
    """Return the largest error that is as good as the best, which is not known if there is no proof."""
    tie = TIE * moments.variance
    is_proven = solution.status is Status.PROVEN or solution.gap <= tie
    return tie + (solution.lower_bound if is_proven else solution.objective)


def _simplest(moments: Moments, solution: Solution, most: float) -> Solution:
    """Return the sum with simpler facts about the same attributes, as long as its error is at most a number."""
    facts = solution.facts
    for fact in solution.facts:
        others = tuple(j for j in facts if j != fact)
        same = _simpler(moments, fact)
        errors = extended(moments, others, same)
        fits = np.flatnonzero(errors <= most)
        if len(fits):
            facts = tuple(sorted((*others, int(same[fits[0]]))))
    effects, objective = fit(moments, facts)
    effects.setflags(write=False)
    status = Status.PROVEN if solution.gap <= TIE * moments.variance else solution.status
    return Solution(facts, effects, objective, min(solution.lower_bound, objective), status, solution.n_nodes)


def _simpler(moments: Moments, fact: int) -> np.ndarray:
    """Return the facts about the same attribute that are simpler than one, the simplest first."""
    candidates = moments.candidates
    first, last = np.searchsorted(candidates.groups, candidates.groups[fact] + np.arange(2))
    own = np.arange(first, last)
    own = own[candidates.ranks[own] < candidates.ranks[fact]]
    return np.asarray(own[np.argsort(candidates.ranks[own], kind="stable")])


def _attributes(moments: Moments, solution: Solution) -> frozenset[int]:
    return frozenset(moments.candidates.groups[list(solution.facts)].tolist())


def _started(limits: Limits | None) -> tuple[Limits, float]:
    limits = limits or Limits()
    return limits, math.inf if limits.time_limit is None else time.perf_counter() + limits.time_limit


def _left(limits: Limits, deadline: float) -> Limits:
    if limits.time_limit is None:
        return limits
    return replace(limits, time_limit=max(deadline - time.perf_counter(), 0.0))
