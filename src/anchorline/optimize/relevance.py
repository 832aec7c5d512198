r"""Supports chosen for relevance itself: the direct problem (P2) for rules "no literal of S is flipped".

The event of a rule has the known probability :math:`(1-p)^{|S|}`. Therefore, for each size s, minimizing

.. math:: R_s(S) = \bigl(\mathbb E\,t^2 - \mathrm{cover}(S)\bigr) / (1-p)^s, \qquad
          \mathrm{cover}(S) = \mathbb E\,[\,t^2;\ \text{some literal of } S \text{ is flipped}\,]

is weighted maximum coverage. Single swaps on the ratio estimator (the mean of t^2 over the rows in the event) then
improve each support, and an anchored fit by fidelity gives its contributions.
"""

from dataclasses import dataclass

import numpy as np

from anchorline.optimize.coverage import Coverage, CoverageProblem, solve_coverage
from anchorline.optimize.evidence import SampleRows
from anchorline.optimize.exact import Limits
from anchorline.optimize.problem import Problem, Status

_CANCELLATION = 1e-12  # contributions cancel if their sum is at most this share of their sizes, as in sampling
_MAX_LISTED = 20  # all 2^s sums are computed for at most this many literals
_ROUNDING = 1e-14  # rounding error of a bound, as a share of the weight


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
    rows: SampleRows, problem: Problem, flip_probability: float, limits: Limits, other: tuple[int, ...] = ()
) -> list[Rule]:
    """Return the best rule of every size that k terms allow, its polished version, and the rule of ``other``."""
    rules: list[Rule] = []
    search = _RuleSearch.from_sample(rows, problem, flip_probability, limits)
    for size in _allowed_sizes(problem):
        best, bound = search.best(size)
        same_size = [other] if len(other) == size else []
        for support in dict.fromkeys([best.support, polish(rows, best.support), *same_size]):
            rule = search.fit_rule(support, bound, best.status is Status.OPTIMAL)
            rules += [] if rule is None else [rule]
    return rules


def shortest_rule(
    rows: SampleRows, problem: Problem, flip_probability: float, max_error: float, limits: Limits
) -> tuple[Rule | None, bool]:
    """Return the rule of fewest literals whose relevance error is at most ``max_error``, and whether it is proved.

    The search tries the sizes from 0 to ``problem.k - 1`` with the coverage estimator. At least 100 rows of a
    drawn sample must be expected in an event. The rule is None if no size reaches the error. The flag is True if
    a bound rules out every smaller size.
    """
    proven, search = True, _RuleSearch.from_sample(rows, problem, flip_probability, limits)
    for size in range(min(problem.k - 1, problem.n_literals) + 1):
        if search.expected_rows(size) < _min_event_weight(rows):
            return None, False
        best, bound = search.best(size)
        if search.error(best.support) <= max_error + 1e-12:
            rule = search.fit_rule(best.support, bound, best.status is Status.OPTIMAL)
            if rule is not None:  # otherwise no sum of this size lies in the box
                return rule, proven
        else:
            proven = proven and bound > max_error
    return None, proven


def rule_error(rows: SampleRows, support: tuple[int, ...], flip_probability: float) -> float:
    """``(E t^2 - cover) / (1 - p)^s``, summed over the event, because the difference is inexact at large p."""
    inside = ~rows.flips[:, list(support)].any(axis=1)
    weight = float((rows.row_weights * rows.drops**2)[inside].sum())
    expected = float(rows.row_weights.sum()) * (1 - flip_probability) ** len(support)
    return weight / expected if expected else np.inf


@dataclass(frozen=True, slots=True, eq=False)
class _RuleSearch:
    """The coverage problem of one sample, with covers converted to relevance errors."""

    rows: SampleRows
    problem: Problem
    coverage: CoverageProblem
    total: float
    n_rows: float
    flip_probability: float
    limits: Limits

    @classmethod
    def from_sample(
        cls, rows: SampleRows, problem: Problem, flip_probability: float, limits: Limits
    ) -> "_RuleSearch":
        weights = rows.row_weights * rows.drops**2
        coverage, n_rows = CoverageProblem.from_flips(rows.flips, weights), float(rows.row_weights.sum())
        bounded = _with_node_limit(limits, problem.n_literals)
        return cls(rows, problem, coverage, float(weights.sum()), n_rows, flip_probability, bounded)

    def expected_rows(self, size: int) -> float:
        """Expected weight in the event of a rule of that size."""
        return float(self.n_rows * (1 - self.flip_probability) ** size)

    def error(self, support: tuple[int, ...]) -> float:
        """The error of a rule by the coverage estimator."""
        return rule_error(self.rows, support, self.flip_probability)

    def best(self, size: int) -> tuple[Coverage, float]:
        """The best support of that size, and a lower bound on the error of every rule of that size."""
        coverage, expected = solve_coverage(self.coverage, size, self.limits), self.expected_rows(size)
        uncovered = self.total * (1 - _ROUNDING) - coverage.upper_bound
        return coverage, max(0.0, uncovered / expected) if expected else 0.0

    def fit_rule(self, support: tuple[int, ...], bound: float, complete: bool) -> Rule | None:
        """The rule of a support, with anchored contributions fitted by fidelity; None if the box forbids them."""
        error = self.error(support)
        index, problem = np.array(support, dtype=np.intp), self.problem
        for variant in problem.variants:
            fitted = problem.fit_variant(index, variant)
            if fitted is not None:
                fixed_sum = variant.low == variant.high  # without starting level
                contributions = _separate(fitted[0], index, fixed_sum)
                intercept = fitted[1] if fixed_sum else problem.prediction - float(contributions.sum())
                return Rule(support, max(error, bound), bound, complete, contributions, intercept)
        return None


def polish(rows: SampleRows, support: tuple[int, ...]) -> tuple[int, ...]:
    """Swap single literals while the mean of t^2 over the rows in the event decreases."""
    flips, weights = rows.flips, rows.row_weights
    squares = weights * rows.drops**2
    best, min_weight = _event_mean(rows, flips, support), _min_event_weight(rows)
    improved = bool(support)
    while improved:
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
            if ratios[other] < best - 1e-12:
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
    """Limits with a number of nodes that keeps the coverage search within seconds.

    A node costs about d^2. The limit allows proofs for up to about 70 literals.
    """
    max_nodes = int(min(5000, 2e7 // d**2 + 1))
    return Limits(limits.time_limit, max_nodes if limits.node_limit is None else min(max_nodes, limits.node_limit))


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


def _separate(contributions: np.ndarray, support: np.ndarray, fixed_sum: bool) -> np.ndarray:
    """Move the contributions by about 1e-9 if some of them vanish or cancel.

    The rule is "these facts hold". A literal without a contribution, or two contributions that cancel, would
    change its event. Each literal moves by a different amount, toward zero (zeros move away from it), so that no
    contributions cancel any more. The effect on the fit is negligible.
    """
    values = contributions[support]
    if not len(support) or not _has_cancelling_subset(values):
        return contributions
    signs = np.where(values > 0, -1.0, np.where(values < 0, 1.0, 1.0))
    moved = values + signs * 1e-9 * np.sqrt(np.arange(2, len(support) + 2))  # incommensurable amounts
    if fixed_sum:
        largest = int(np.argmax(np.abs(values)))
        moved[largest] -= moved.sum() - values.sum()
    separated = contributions.copy()
    separated[support] = moved
    return separated


def _has_cancelling_subset(values: np.ndarray) -> bool:
    """Whether some non-empty subset of these contributions adds up to zero."""
    if len(values) > _MAX_LISTED:
        return True  # too many to list, and separating them does no harm
    sums = np.zeros(1)
    for value in values:
        sums = np.append(sums, sums + value)
    return bool((np.abs(sums) <= _CANCELLATION * np.abs(values).sum()).sum() > 1)
