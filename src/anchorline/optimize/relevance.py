r"""Supports chosen for relevance itself: the direct problem (P2) for rules "no literal of S is flipped".

The event of a rule has the known probability :math:`P[A_S]`, so the error of a rule is

.. math:: R(S) = \bigl(\mathbb E\,t^2 - \mathrm{cover}(S)\bigr) / P[A_S], \qquad
          \mathrm{cover}(S) = \mathbb E\,[\,t^2;\ \text{some literal of } S \text{ is flipped}\,]

Where every literal is an attribute, :math:`P[A_S] = (1-p)^s`, and the best rule of each size s is weighted maximum
coverage. Where an attribute has several literals, a rule about s attributes covers at most :math:`C_s`, the most
that all literals of s attributes cover, and its event has at most the probability :math:`Q_s`, the product of the
s largest :math:`P[A_{\{j\}}]` of literals of different attributes. Therefore :math:`(\mathbb E\,t^2 - C_s) / Q_s`
bounds the error of every rule about s attributes, whichever of their literals it states and however many. It is
seldom the error of a rule, so such a rule is seldom proven best.

Single swaps on the ratio estimator (the mean of t^2 over the rows in the event) then improve each support, and an
anchored fit by fidelity gives its contributions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from anchorline.optimize.coverage import Coverage, CoverageProblem, solve_coverage
from anchorline.optimize.exact import Limits, is_over
from anchorline.optimize.problem import Problem, Status
from anchorline.optimize.rows import SampleRows

_CANCELLATION = 1e-12  # contributions cancel if their sum is at most this share of their sizes, as in sampling
_MAX_LISTED = 20  # all 2^s sums are computed for at most this many literals
_ROUNDING = 1e-14  # rounding error of a bound, as a share of the weight
_GAIN = 1e-12  # a smaller share of an error does not matter


class Odds(Protocol):
    """The known probabilities of events."""

    def probability_unbroken(self, support: Sequence[int]) -> float:
        """Probability that no literal of a support is flipped."""

    def largest_unbroken(self, n_attributes: int) -> float:
        """Largest such probability for literals of that many attributes."""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A support with its contributions, its error by the coverage estimator, and the bound for its size."""

    support: tuple[int, ...]
    error: float
    lower_bound: float
    complete: bool  # whether the search over this size was complete
    contributions: np.ndarray
    intercept: float


def relevant_rules(
    rows: SampleRows, problem: Problem, odds: Odds, limits: Limits, other: tuple[int, ...] = ()
) -> list[Rule]:
    """Return the best rule of every size that k terms allow, its polished version, and the rule of ``other``."""
    rules: list[Rule] = []
    search = _RuleSearch.from_sample(rows, problem, odds, limits)
    for size in _allowed_sizes(problem):
        best, bound = search.best(size)
        same_size = [other] if len(other) == size else []
        for support in dict.fromkeys([best.support, polish(rows, best.support), *same_size]):
            rule = search.fit_rule(support, bound, best.status is Status.OPTIMAL)
            rules += [] if rule is None else [rule]
    return rules


def shortest_rule(
    rows: SampleRows, problem: Problem, odds: Odds, max_error: float, limits: Limits
) -> tuple[Rule | None, bool]:
    """Return the rule of fewest literals whose relevance error is at most ``max_error``, and whether it is proved.

    The search tries the sizes from 0 to ``problem.k - 1`` with the coverage estimator. At least 100 rows of a
    drawn sample must be expected in an event. The rule is None if no size reaches the error. The flag is True if
    a bound rules out every smaller size.
    """
    proven, search = True, _RuleSearch.from_sample(rows, problem, odds, limits)
    for size in range(min(problem.k - 1, problem.n_literals) + 1):
        best, bound = search.best(size)
        if search.n_rows * odds.probability_unbroken(best.support) < _min_event_weight(rows):
            return None, False
        support = best.support
        if problem.groups is not None:  # other literals of the same attributes may hold the output better
            support = min(support, polish(rows, support), key=search.error)
        if search.error(support) <= max_error * (1 + _GAIN):
            rule = search.fit_rule(support, bound, best.status is Status.OPTIMAL)
            if rule is not None:  # otherwise no sum of this size lies in the box
                return rule, proven
        else:
            proven = proven and bound > max_error
    return None, proven


def rule_error(rows: SampleRows, support: tuple[int, ...], odds: Odds) -> float:
    """``(E t^2 - cover) / P[A]``, summed over the event, because the difference is inexact at large p."""
    inside = ~rows.flips[:, list(support)].any(axis=1)
    weight = float((rows.row_weights * rows.drops**2)[inside].sum())
    expected = float(rows.row_weights.sum()) * odds.probability_unbroken(support)
    return weight / expected if expected else np.inf


@dataclass(frozen=True, slots=True, eq=False)
class _RuleSearch:
    """The coverage problem of one sample, with covers converted to relevance errors."""

    rows: SampleRows
    problem: Problem
    coverage: CoverageProblem
    literals: np.ndarray  # one per attribute, as the coverage problem numbers them
    total: float
    n_rows: float
    odds: Odds
    limits: Limits

    @classmethod
    def from_sample(cls, rows: SampleRows, problem: Problem, odds: Odds, limits: Limits) -> "_RuleSearch":
        weights = rows.row_weights * rows.drops**2
        literals, flips = _attributes(rows.flips, problem.groups)
        coverage, n_rows = CoverageProblem.from_flips(flips, weights), float(rows.row_weights.sum())
        bounded = _with_node_limit(limits, len(literals))
        return cls(rows, problem, coverage, literals, float(weights.sum()), n_rows, odds, bounded)

    def error(self, support: tuple[int, ...]) -> float:
        """The error of a rule by the coverage estimator."""
        return rule_error(self.rows, support, self.odds)

    def best(self, size: int) -> tuple[Coverage, float]:
        """The support of that size that covers most, and a bound on every rule about that many attributes."""
        coverage = solve_coverage(self.coverage, size, self.limits)
        expected = self.n_rows * self.odds.largest_unbroken(size)
        uncovered = self.total * (1 - _ROUNDING) - coverage.upper_bound
        support = tuple(self.literals[list(coverage.support)].tolist())
        return replace(coverage, support=support), max(0.0, uncovered / expected) if expected else 0.0

    def fit_rule(self, support: tuple[int, ...], bound: float, complete: bool) -> Rule | None:
        """The rule of a support, with anchored contributions fitted by fidelity; None if the box forbids them."""
        error = self.error(support)
        index, problem = np.array(support, dtype=np.intp), self.problem
        for variant in problem.variants:
            fitted = problem.fit_variant(index, variant)
            if fitted is not None:
                fixed_sum = variant.low == variant.high  # without starting level
                contributions = separate(problem, fitted[0], index, fixed_sum=fixed_sum)
                intercept = fitted[1] if fixed_sum else problem.intercept(contributions)
                return Rule(support, max(error, bound), bound, complete, contributions, intercept)
        return None


def _attributes(flips: np.ndarray, groups: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """For every attribute, its literal with most flips, and the rows in which any of its literals is flipped."""
    if groups is None:
        return np.arange(flips.shape[1]), flips
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    counts = np.count_nonzero(flips, axis=0)
    literals = np.array([each[np.argmax(counts[each])] for each in members], dtype=np.intp)
    return literals, np.column_stack([flips[:, each].any(axis=1) for each in members])


def polish(rows: SampleRows, support: tuple[int, ...]) -> tuple[int, ...]:
    """Swap single literals while the mean of t^2 over the rows in the event decreases."""
    flips, weights = rows.flips, rows.row_weights
    squares = weights * rows.drops**2
    best, min_weight = _event_mean(rows, flips, support), _min_event_weight(rows)
    improved = bool(support)
    while improved and not is_over(np.inf):
        improved = False
        for literal in support:
            rest = tuple(j for j in support if j != literal)
            inside = ~flips[:, list(rest)].any(axis=1)
            unflipped = ~flips[inside]
            size, loss = (np.einsum("i,ij->j", part[inside], unflipped) for part in (weights, squares))
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = np.where(size >= min_weight, loss / size, np.inf)
            ratios[list(rest)] = np.inf
            other = int(np.argmin(ratios))
            if ratios[other] < best * (1 - _GAIN):
                support, best, improved = tuple(sorted((*rest, other))), float(ratios[other]), True
                break
    return support


def measured_relevance(rows: SampleRows, contributions: np.ndarray) -> float:
    """Mean of t^2 over the rows whose flipped contributions cancel; inf if there are too few of these rows."""
    support = np.flatnonzero(contributions)
    values = contributions[support]
    sums = np.zeros(len(rows.drops))
    for column, value in zip(rows.flips[:, support].T, values, strict=True):
        sums += column * value
    inside = np.abs(sums) <= _CANCELLATION * np.abs(values).sum()
    weights = rows.row_weights
    if weights[inside].sum() < _min_event_weight(rows):
        return np.inf
    return float((weights * rows.drops**2)[inside].sum() / weights[inside].sum())


def _with_node_limit(limits: Limits, d: int) -> Limits:
    """Limits with a number of nodes that keeps the coverage search within seconds, unless there is no limit.

    A node costs about d^2. The limit allows proofs for up to about 40 literals, five of which are chosen.
    """
    if limits.node_limit is None:
        return limits
    return Limits(limits.time_limit, min(limits.node_limit, int(min(20_000, 2e7 // d**2 + 1))))


def _min_event_weight(rows: SampleRows) -> float:
    """Smallest weight that an event must have: 100 rows of a drawn sample, any weight of an enumerated one."""
    return 100.0 if rows.weights is None else 1e-300


def _event_mean(rows: SampleRows, flips: np.ndarray, support: tuple[int, ...]) -> float:
    """Mean of t^2 over the rows in the event of a support; inf if the event has too little weight."""
    inside, weights = ~flips[:, list(support)].any(axis=1), rows.row_weights
    size = weights[inside].sum()
    return float((weights * rows.drops**2)[inside].sum() / size) if size >= _min_event_weight(rows) else np.inf


def _allowed_sizes(problem: Problem) -> range:
    """Sizes that k terms allow: k literals leave no room for the intercept, which a zero prediction needs."""
    without_intercept = len(problem.variants) > 1 and problem.prediction != problem.origin
    return range(min(problem.k - (0 if without_intercept else 1), problem.n_literals) + 1)


def separate(problem: Problem, contributions: np.ndarray, support: np.ndarray, *, fixed_sum: bool) -> np.ndarray:
    r"""Move the contributions of a support a little if some of them vanish or cancel.

    The rule is "these facts hold". A literal without a contribution, or contributions that cancel, would change
    its event. With a step :math:`\delta`, literal j moves to a multiple of :math:`2^{s+1} \delta`, and further by
    :math:`2^j \delta`. The sum of some of them is then a multiple of :math:`2^{s+1} \delta` plus different powers
    of 2 times :math:`\pm\delta`, which is never zero, for any number s of literals. If the sum of all must not
    change, one literal takes the difference, and the step is chosen so that the sum is an odd multiple of
    :math:`\delta / 2`, and therefore not a sum of other literals. Of several ways to move, the first one that
    keeps all terms in the box is taken. Mutates nothing.
    """
    values = contributions[support]
    if not len(support) or not _has_cancelling_subset(values):
        return contributions
    box = np.inf if problem.box is None else problem.box
    takers = np.argsort(-np.abs(values), kind="stable")
    ways = [] if fixed_sum else [(None, direction) for direction in (0, 1, -1)]
    for taker, direction in [*ways, *((int(taker), 0) for taker in takers)]:
        moved = _moved(values, taker, direction, problem.unit)
        fits = taker is not None or abs(problem.prediction - moved.sum()) <= box
        if fits and np.abs(moved).max() <= box and not _has_cancelling_subset(moved):
            separated = contributions.copy()
            separated[support] = moved
            return separated
    return contributions


def _moved(values: np.ndarray, taker: int | None, direction: int, unit: float) -> np.ndarray:
    """Move all values up (1), down (-1) or toward zero (0); literal ``taker``, if given, keeps their sum."""
    total, size, step = float(values.sum()), len(values), 4 * _CANCELLATION * max(np.abs(values).sum(), unit)
    if size > _MAX_LISTED:  # only zeros must move, and other values hardly
        step *= 2.0 ** (_MAX_LISTED - size)
    if taker is not None and total != 0:
        step = abs(total) / (np.floor(abs(total) / step) + 0.5)
    coarse, codes = step * 2.0 ** (size + 1), step * 2.0 ** np.arange(size)
    if direction:
        moved = direction * (np.ceil(direction * values / coarse) * coarse + codes)
    else:
        whole = np.floor(np.abs(values) / coarse) * coarse
        moved = np.where(values < 0, -1.0, 1.0) * np.where(whole > 0, whole - codes, codes)
    if taker is not None:
        moved[taker] = total - (moved.sum() - moved[taker])
    return np.asarray(moved)


def _has_cancelling_subset(values: np.ndarray) -> bool:
    """Whether some non-empty subset of these contributions adds up to zero; True also if one of them is zero.

    More than 20 literals are not listed, because their event is not measured: then only zeros count.
    """
    if len(values) > _MAX_LISTED:
        return bool((values == 0).any())
    sums = np.zeros(1)
    for value in values:
        sums = np.append(sums, sums + value)
    return bool((np.abs(sums) <= _CANCELLATION * np.abs(values).sum()).sum() > 1)
