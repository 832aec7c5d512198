r"""Supports chosen for relevance itself: the direct problem (P2), for rules "no literal of S is flipped".

The event of such a rule has the known probability :math:`(1-p)^{|S|}`, so for each size s, minimising

.. math:: R_s(S) = \bigl(\mathbb E\,t^2 - \mathrm{cover}(S)\bigr) / (1-p)^s, \qquad
          \mathrm{cover}(S) = \mathbb E\,[\,t^2;\ \text{some literal of } S \text{ is flipped}\,]

is weighted maximum coverage. Each support is then polished by single swaps on the ratio estimator (mean of
t^2 over the rows left in the event), and given contributions by fidelity, anchored.
"""

from dataclasses import dataclass

import numpy as np

from anchorline.optimize.coverage import Coverage, CoverageProblem, solve_coverage
from anchorline.optimize.evidence import SampleRows
from anchorline.optimize.exact import Limits
from anchorline.optimize.problem import Problem, Status

_CANCELS = 1e-12  # as in sampling: contributions that add up to less than this share of their sizes cancel
_MAX_LISTED = 20  # literals whose 2^s sums are looked through
_LOST = 1e-14  # share of the weight that rounding may hide from a bound


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A support of one size, and what the coverage estimator says: its error, and a bound for its size."""

    support: tuple[int, ...]
    error: float
    lower_bound: float
    complete: bool  # whether the search over this size was
    contributions: np.ndarray
    intercept: float


def relevant_rules(
    rows: SampleRows, problem: Problem, flip_probability: float, limits: Limits, other: tuple[int, ...] = ()
) -> list[Rule]:
    """The best rules of every size from 0 on that k terms allow, with polished ones and ``other`` beside them."""
    rules: list[Rule] = []
    search = _Search.of(rows, problem, flip_probability, limits)
    for size in _sizes(problem):
        best, bound = search.best(size)
        same_size = [other] if len(other) == size else []
        for support in dict.fromkeys([best.support, polish(rows, best.support), *same_size]):
            rule = search.fitted(support, bound, best.status is Status.OPTIMAL)
            rules += [] if rule is None else [rule]
    return rules


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Coverage over one sample, read as relevance errors."""

    rows: SampleRows
    problem: Problem
    coverage: CoverageProblem
    total: float
    n_rows: float
    flip_probability: float
    limits: Limits

    @classmethod
    def of(cls, rows: SampleRows, problem: Problem, flip_probability: float, limits: Limits) -> "_Search":
        weights = rows.row_weights * rows.drops**2
        coverage, n_rows = CoverageProblem.of(rows.flips, weights), float(rows.row_weights.sum())
        bounded = _bounded(limits, problem.n_literals)
        return cls(rows, problem, coverage, float(weights.sum()), n_rows, flip_probability, bounded)

    def expected_rows(self, size: int) -> float:
        """Weight expected in the event of a rule of that size."""
        return float(self.n_rows * (1 - self.flip_probability) ** size)

    def error(self, support: tuple[int, ...]) -> float:
        """``(E t^2 - cover) / (1 - p)^s``, from the rows left: the difference loses its digits at large p."""
        left, expected = ~self.rows.flips[:, list(support)].any(axis=1), self.expected_rows(len(support))
        weight = float((self.rows.row_weights * self.rows.drops**2)[left].sum())
        return weight / expected if expected else np.inf

    def best(self, size: int) -> tuple[Coverage, float]:
        """The best support of that size, and a lower bound of every such rule's error, whatever was rounded."""
        found, expected = solve_coverage(self.coverage, size, self.limits), self.expected_rows(size)
        least = self.total * (1 - _LOST) - found.upper_bound
        return found, max(0.0, least / expected) if expected else 0.0

    def fitted(self, support: tuple[int, ...], bound: float, complete: bool) -> Rule | None:
        """Contributions by fidelity on that support, anchored; None where the box forbids them."""
        error = self.error(support)
        index, problem = np.array(support, dtype=np.intp), self.problem
        for variant in problem.variants:
            fitted = problem.fit_variant(index, variant)
            if fitted is not None:
                fixed = variant.low == variant.high
                contributions = _kept_apart(fitted[0], index, fixed)
                intercept = fitted[1] if fixed else problem.prediction - float(contributions.sum())
                return Rule(support, max(error, bound), bound, complete, contributions, intercept)
        return None


def polish(rows: SampleRows, support: tuple[int, ...]) -> tuple[int, ...]:
    """Swap single literals while the mean of t^2 over the rows left in the event falls."""
    flips, weights = rows.flips, rows.row_weights
    squares = weights * rows.drops**2
    best, least = _ratio(rows, flips, support), _least(rows)
    improved = bool(support)
    while improved:
        improved = False
        for literal in support:
            rest = tuple(j for j in support if j != literal)
            left = ~flips[:, list(rest)].any(axis=1)
            unflipped = ~flips[left]
            size, loss = (np.einsum("i,ij->j", part[left], unflipped) for part in (weights, squares))
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = np.where(size >= least, loss / size, np.inf)
            ratios[list(rest)] = np.inf
            other = int(np.argmin(ratios))
            if ratios[other] < best - 1e-12:
                support, best, improved = tuple(sorted((*rest, other))), float(ratios[other]), True
                break
    return support


def measured_relevance(rows: SampleRows, contributions: np.ndarray) -> float:
    """Mean of t^2 over the rows whose flipped contributions cancel; inf where too few are left."""
    support = np.flatnonzero(contributions)
    values = contributions[support]
    sums = np.zeros(len(rows.drops))
    for column, value in zip(rows.flips[:, support].T, values, strict=True):
        sums += column * value
    inside = np.abs(sums) <= _CANCELS * np.abs(values).sum()
    weights = rows.row_weights
    if weights[inside].sum() < _least(rows):
        return np.inf
    return float((weights * rows.drops**2)[inside].sum() / weights[inside].sum())


def _bounded(limits: Limits, d: int) -> Limits:
    """A node of the coverage search costs about d^2: seconds in all, and proofs up to about 70 literals."""
    most = int(min(5000, 2e7 // d**2 + 1))
    return Limits(limits.time_limit, most if limits.node_limit is None else min(most, limits.node_limit))


def _least(rows: SampleRows) -> float:
    """What must be left in an event: 100 rows of a drawn sample, anything of an enumerated one."""
    return 100.0 if rows.weights is None else 1e-300


def _ratio(rows: SampleRows, flips: np.ndarray, support: tuple[int, ...]) -> float:
    left, weights = ~flips[:, list(support)].any(axis=1), rows.row_weights
    size = weights[left].sum()
    return float((weights * rows.drops**2)[left].sum() / size) if size >= _least(rows) else np.inf


def _sizes(problem: Problem) -> range:
    """Sizes that k terms allow: k literals leave no intercept, which a zero prediction needs."""
    without_intercept = len(problem.variants) > 1 and problem.prediction != problem.origin
    return range(min(problem.k - (0 if without_intercept else 1), problem.n_literals) + 1)


def _kept_apart(contributions: np.ndarray, support: np.ndarray, fixed_sum: bool) -> np.ndarray:
    """The same contributions, moved by about 1e-9 where some vanish or cancel.

    The rule is "these facts hold"; a literal of no contribution, or two that cancel, would change the event
    it is read as. Each literal moves by another amount, towards zero (zeros away from it), so that none
    cancel any more; the fit does not notice.
    """
    values = contributions[support]
    if not len(support) or not _cancels(values):
        return contributions
    signs = np.where(values > 0, -1.0, np.where(values < 0, 1.0, 1.0))
    moved = values + signs * 1e-9 * np.sqrt(np.arange(2, len(support) + 2))  # incommensurable amounts
    if fixed_sum:
        largest = int(np.argmax(np.abs(values)))
        moved[largest] -= moved.sum() - values.sum()
    apart = contributions.copy()
    apart[support] = moved
    return apart


def _cancels(values: np.ndarray) -> bool:
    """Whether some non-empty set of these contributions adds up to nothing."""
    if len(values) > _MAX_LISTED:
        return True  # some may: moving them apart does no harm
    sums = np.zeros(1)
    for value in values:
        sums = np.append(sums, sums + value)
    return bool((np.abs(sums) <= _CANCELS * np.abs(values).sum()).sum() > 1)


def shortest_rule(
    rows: SampleRows, problem: Problem, flip_probability: float, most_error: float, limits: Limits
) -> tuple[Rule | None, bool]:
    """The fewest literals whose relevance error is at most ``most_error``, and whether fewer are ruled out.

    Sizes are tried from 0 upward by the coverage estimator; at least 100 rows of a drawn sample must be
    expected in an event. The first element is None where no size does; ``problem.k - 1`` is the most.
    """
    proven, search = True, _Search.of(rows, problem, flip_probability, limits)
    for size in range(min(problem.k - 1, problem.n_literals) + 1):
        if search.expected_rows(size) < _least(rows):
            return None, False
        best, bound = search.best(size)
        if search.error(best.support) <= most_error + 1e-12:
            rule = search.fitted(best.support, bound, best.status is Status.OPTIMAL)
            if rule is not None:  # else no sum of this size lies in the box, whatever its literals
                return rule, proven
        else:
            proven = proven and bound > most_error
    return None, proven
