r"""Best-first branch and bound, which proves the best explanation of at most k terms.

Its lower bounds come from duality and diagonal dominance. Center the statistics: ``S = cov F``,
``s = cov(F, t)``, ``b = mean F``, ``tbar = mean t``. Then the fidelity error is
``var t + u'Su - 2 s'u + (tbar - b'u)^2``. The square is the only strong coupling, and duality removes it: for
every eta, and for every price mu of the sum of the contributions,

.. math:: q(u) \ge \operatorname{var} t + u^\top S u - 2 (s + \eta b + \mu \mathbf 1)^\top u
          + 2 \eta \bar t - \eta^2 + 2 \min(\mu\,\text{low}, \mu\,\text{high})

Write ``Y = (1, eta, mu)``. Projecting the chosen literals out of S leaves one vector
``a_j = (s~, b~, 1~)_j / sqrt(D~_j)`` in R^3 per remaining literal. The chosen literals leave the 3 x 3 matrix
``sum a a'``, which is subtracted from the *form* ``[[var t, tbar, 0], [tbar, -1, 0], [0, 0, 0]]``.
For a set T of r more literals the bound is ``Y' form Y + 2 min(mu low, mu high) - sum_T g_j`` with

.. math:: g_j = \frac{(a_j^\top Y)^2}{1 - \rho_j}, \qquad
          \rho_j \ge \text{sum of the } r - 1 \text{ largest } |\tilde\kappa_{ij}|

where :math:`\tilde\kappa` are the remaining correlations. The bound holds because a correlation matrix minus
``diag(1 - rho)`` is diagonally dominant. With r = 1, rho = 0 and the best Y, the bound is the exact value
(`saddle`).

A literal whose projected variance vanishes (always flipped, a complement, a duplicate) gains nothing if
``b~ eta + 1~ mu = 0``, and without limit otherwise. Therefore it restricts the multipliers (eta, mu) to a line,
and two such literals with different (b~, 1~) restrict them to zero (`Projection.line`).

All statistics are in units of the drops (`Problem.scaled`), so that every constant here is relative. Every bound
is the value of the formula at some multipliers, minus the most that rounding may have added.
"""

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anchorline.errors import NumericalError
from anchorline.paper.problem import UNLIMITED, Evidence, Limits, Problem, Solution, Status, Variant

_TOLERANCE = 1e-10  # a node that cannot gain this share of mean t^2 is closed, and its bound is kept
_MAX_GAP = 1e-9  # a proof that leaves a larger gap, as a share of mean t^2, is none
_SHARP = 1e-12  # rounding errors that change the objective by a smaller share do not matter
_FEW_CANDIDATES = 64  # for at most this many, computing all pairs at once is as cheap as the cheap bound first
_MAX_ALL_PAIRS = 400  # all pairwise correlations of a node are computed for at most this many candidates
_NODES_BEFORE_RESTART = 32  # most proofs end sooner; the others start again here from a better first guess
_VANISHING = 1e-11  # a share of the variance below this is rounding noise
_ALIGNED = 1e-9  # a remaining coefficient below this share of its size is rounding noise
_INDEFINITE = 1 - 1e-9  # a rho from here on may be 1 but for rounding
_ROUNDING = 64 * np.finfo(np.float64).eps  # rounding error of a difference, as a share of its two sides
_NO_BOUND = -1e30  # a bound below this is worthless, because an objective is never negative


@dataclass(frozen=True, eq=False)
class Centered:
    """Centered statistics of a sample, shared by all nodes; read-only."""

    covariance: np.ndarray  # S, (d, d)
    variances: np.ndarray  # diagonal of S, (d,)
    rows: np.ndarray  # s, b and 1, (3, d)
    form: np.ndarray  # (3, 3)

    @classmethod
    def from_evidence(cls, evidence: Evidence) -> "Centered":
        """Center the moments of the evidence. Cost d^2."""
        b, tbar, second = evidence.flip_means, evidence.drop_mean, evidence.second_moments
        variances = second.diagonal() - b * b
        # The unit is the largest standard deviation, so that rare flips do not look degenerate.
        unit = float(variances.max(initial=0.0)) or 1.0
        variances = np.where(variances <= _ROUNDING * second.diagonal(), 0.0, variances) / unit
        rows = np.stack([evidence.cross_moments - tbar * b, b, np.ones_like(b)]) / np.sqrt(unit)
        form = np.array([[evidence.drop_square - tbar**2, tbar, 0], [tbar, -1, 0], [0, 0, 0]])
        return cls((second - np.multiply.outer(b, b)) / unit, variances, rows, form)

    @cached_property
    def row_max(self) -> np.ndarray:
        """Largest absolute correlation of each literal with another literal, (d,)."""
        scale = np.where(self.variances > 0, 1 / np.sqrt(np.where(self.variances > 0, self.variances, 1.0)), 0.0)
        sizes = np.abs(self.covariance) * scale[:, None] * scale
        np.fill_diagonal(sizes, 0.0)
        return np.asarray(sizes.max(axis=1, initial=0.0))


@dataclass(frozen=True, slots=True)
class Node:
    """The chosen literals, the candidates that may still join them, and the multipliers of the parent's bound."""

    variant: Variant
    chosen: tuple[int, ...]
    candidates: np.ndarray
    multipliers: tuple[float, float]  # eta, mu

    @property
    def limits(self) -> tuple[float, float]:
        """The limits of the sum of the contributions."""
        return self.variant.low, self.variant.high

    @property
    def left(self) -> int:
        """Number of literals that may still be chosen."""
        return self.variant.size - len(self.chosen)


@dataclass(frozen=True, eq=False)
class Projection:
    """The candidates after the chosen literals have been projected out.

    ``line`` is the line to which degenerate chosen literals restrict the multipliers; None stands for all
    multipliers, and (0, 0) for none. ``pins`` holds (b~, 1~) of degenerate candidates that would restrict them
    further, and zeros elsewhere; it is None if no candidate would. ``errors`` and ``noise`` bound the rounding
    errors of ``form`` and ``vectors``.
    """

    form: np.ndarray  # the form minus the part of the chosen literals, (3, 3)
    errors: np.ndarray  # (3, 3)
    line: np.ndarray | None  # (2,)
    vectors: np.ndarray  # a_j, (3, n), zero for degenerate candidates
    noise: np.ndarray  # (3, n)
    pins: np.ndarray | None  # (2, n)
    residuals: np.ndarray  # one row per chosen literal, (p, n): S~ = S - residuals' residuals
    variances: np.ndarray  # D~, (n,), zero for degenerate candidates

    def values(self, low: float, high: float) -> np.ndarray:
        """Objective of the chosen literals plus one candidate, for each candidate, (n,), lowered by rounding."""
        a, sizes = self.vectors, np.abs(self.vectors)
        form = self.form[:, :, None] - a[:, None, :] * a[None, :, :]
        eta, mu = saddle(form, low, high, self.line)
        if self.pins is not None:
            pinned = self.pins.any(axis=0)
            line = np.zeros(2) if self.line is not None else _across(self.pins[:, pinned])
            eta[pinned], mu[pinned] = saddle(self.form[:, :, None], low, high, line)
        errors = self.errors[:, :, None] + 2 * sizes[:, None, :] * self.noise
        with np.errstate(invalid="ignore"):  # without a price, infinite limits do not matter
            price = np.where(mu == 0, 0.0, 2 * np.minimum(mu * low, mu * high))
        lost = _quadratic(errors + _ROUNDING * np.abs(form), np.abs(eta), np.abs(mu))
        return np.asarray(_quadratic(form, eta, mu) + price - lost - _ROUNDING * np.abs(price))

    def restrict(self, kept: np.ndarray) -> "Projection":
        """Keep the candidates at the given positions."""
        pins = None if self.pins is None or not self.pins[:, kept].any() else self.pins[:, kept]
        columns = (self.vectors[:, kept], self.noise[:, kept], pins, self.residuals[:, kept], self.variances[kept])
        return Projection(self.form, self.errors, self.line, *columns)

    def base(self, eta: float, mu: float, limits: tuple[float, float]) -> float:
        """``Y' form Y + 2 min(mu low, mu high)``, minus the most that rounding may have added."""
        y, errors = np.array([1.0, eta, mu]), self.errors + _ROUNDING * np.abs(self.form)
        price = 0.0 if mu == 0 else 2 * min(mu * limits[0], mu * limits[1])
        value = float(y @ self.form @ y) + price
        return value - (float(np.abs(y) @ errors @ np.abs(y)) + _ROUNDING * abs(price))

    @property
    def common_line(self) -> np.ndarray | None:
        """The line of multipliers at which every degenerate candidate gains nothing."""
        line = self.line
        for pin in () if self.pins is None else self.pins.T[self.pins.any(axis=0)]:
            line = _narrowed(line, pin)
        return line


def project(centered: Centered, chosen: tuple[int, ...], candidates: np.ndarray) -> Projection:
    """Project the chosen literals out, with one rank-one update per literal. Cost p^2 n."""
    p, line, one = len(chosen), None, centered.rows[2, :1]
    index = np.concatenate([np.array(chosen, dtype=np.intp), candidates])
    residuals = centered.covariance[np.array(chosen, dtype=np.intp)[:, None], index]
    original = centered.variances[index]
    rows, variances, form = centered.rows[:, index], original.copy(), centered.form.copy()
    noise, errors = _ROUNDING * np.abs(rows), _ROUNDING * np.abs(form)
    for i in range(p):
        if variances[i] <= _VANISHING * original[i]:
            residuals[i] = 0.0
            if (pin := _without_noise(rows[1:, i], one)).any():
                line = _narrowed(line, pin)
            continue
        root = np.sqrt(variances[i])
        residuals[i] /= root
        vector = rows[:, i] / root
        rows -= vector[:, None] * residuals[i]
        variances -= residuals[i] ** 2
        residuals[i + 1 :] -= residuals[i, i + 1 : p, None] * residuals[i]
        form -= vector[:, None] * vector
        errors += 2 * np.abs(vector)[:, None] * (noise[:, i] / root)
    rows, noise, remaining = rows[:, p:], noise[:, p:], variances[p:]
    degenerate, pins = remaining <= _VANISHING * original[p:], None
    if degenerate.any():
        pins = np.where(degenerate, _without_noise(rows[1:], one), 0.0)
        if line is not None:  # a pin across the line restricts nothing
            pins[:, np.abs(line @ pins) <= _ALIGNED * np.hypot(*pins)] = 0.0
        pins = pins if pins.any() else None
        remaining = np.where(degenerate, 0.0, remaining)
    scale = np.where(degenerate, 0.0, 1 / np.sqrt(np.where(degenerate, 1.0, remaining)))
    return Projection(form, errors, line, rows * scale, noise * scale, pins, residuals[:, p:], remaining)


def _without_noise(rows: np.ndarray, one: np.ndarray) -> np.ndarray:
    """The remaining (b~, 1~) of degenerate literals, in units in which 1 is ``one``, with rounding removed."""
    return np.where(np.abs(rows) <= _ALIGNED * one, 0.0, rows)


def _narrowed(line: np.ndarray | None, pin: np.ndarray) -> np.ndarray:
    """The part of a line of multipliers (None: of all multipliers) across a non-zero pin."""
    if line is None:
        return _across(pin)
    return line if abs(line @ pin) <= _ALIGNED * np.hypot(*pin) else np.zeros(2)


def _across(pins: np.ndarray) -> np.ndarray:
    """The directions (eta, mu) of length 1 with ``b~ eta + 1~ mu = 0``."""
    return np.asarray(np.stack([-pins[1], pins[0]]) / np.hypot(*pins))


def saddle(
    form: np.ndarray, low: float, high: float, line: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Maximize ``Y' form Y + 2 min(mu low, mu high)``; return (eta, mu), on the ``line`` if one is given.

    ``form`` is (3, 3) or (3, 3, n), and ``line`` is (2,) or (2, n). After eta is eliminated, the sum of the
    contributions at mu = 0 is ``-h13``. If this sum lies a distance e outside [low, high], the best mu is
    ``e / -h33``. On a line (eta, mu) = step (v1, v2) the limits are ``v2 low`` and ``v2 high``.
    """
    if line is None:
        ratio12, ratio23 = form[0, 1] / form[1, 1], form[1, 2] / form[1, 1]
        slope, curvature = form[0, 2] - form[0, 1] * ratio23, form[2, 2] - form[1, 2] * ratio23
        mu = _best_step(slope, curvature, low, high)
        return -ratio12 - mu * ratio23, mu
    slope = form[0, 1] * line[0] + form[0, 2] * line[1]
    curvature = form[1, 1] * line[0] ** 2 + 2 * form[1, 2] * line[0] * line[1] + form[2, 2] * line[1] ** 2
    with np.errstate(invalid="ignore"):  # without a price, infinite limits do not matter
        ends = np.where(line[1] == 0, 0.0, np.stack(np.broadcast_arrays(line[1] * low, line[1] * high)))
    step = _best_step(slope, curvature, np.minimum(*ends), np.maximum(*ends))
    return step * line[0], step * line[1]


def _best_step(
    slope: np.ndarray, curvature: np.ndarray, low: np.ndarray | float, high: np.ndarray | float
) -> np.ndarray:
    """The step x that maximizes ``2 slope x + curvature x^2 + 2 min(low x, high x)``."""
    return np.asarray((np.minimum(np.maximum(-slope, low), high) + slope) / -np.minimum(curvature, -1e-30))


def _quadratic(form: np.ndarray, eta: np.ndarray, mu: np.ndarray) -> np.ndarray:
    first = form[0, 0] + eta * (2 * form[0, 1] + eta * form[1, 1])
    return np.asarray(first + mu * (2 * (form[0, 2] + eta * form[1, 2]) + mu * form[2, 2]))


def cheap_rho(centered: Centered, projection: Projection, candidates: np.ndarray, others: int) -> np.ndarray:
    """Upper bound of rho in O(n), from the largest correlation of each literal before any projection.

    With q_i the norm of the projection of literal i on the chosen literals, ``|corr~_ij| <= (|corr_ij| + q_i q_j)
    / sqrt((1 - q_i^2) (1 - q_j^2))``. This grows with q_j, so the largest q_j gives the bound.
    """
    if others == 0 or not len(candidates):
        return np.zeros(len(candidates))
    degenerate = projection.variances == 0  # a degenerate literal correlates with nothing
    original = np.where(degenerate, 1.0, centered.variances[candidates])
    squares = np.where(degenerate, 0.0, (projection.residuals**2).sum(axis=0) / original)
    largest = squares.max()
    top = np.where(degenerate, 0.0, centered.row_max[candidates] + np.sqrt(squares * largest))
    return np.asarray(others * top / np.sqrt((1 - squares) * (1 - largest)))


def exact_rho(centered: Centered, projection: Projection, candidates: np.ndarray, others: int) -> np.ndarray:
    """Sum of the ``others`` largest absolute correlations that each candidate has left. Cost n^2."""
    n = len(candidates)
    if others == 0 or n <= 1:
        return np.zeros(n)
    sizes = centered.covariance[candidates[:, None], candidates]
    for row in projection.residuals:
        sizes -= row[:, None] * row
    degenerate = projection.variances == 0  # a degenerate literal correlates with nothing
    scale = np.where(degenerate, 0.0, 1 / np.sqrt(np.where(degenerate, 1.0, projection.variances)))
    sizes *= scale[:, None]
    sizes *= scale
    np.abs(sizes, out=sizes)
    np.fill_diagonal(sizes, 0.0)
    if others < n - 1:
        sizes = np.partition(sizes, n - others, axis=1)[:, n - others :]
    return np.asarray(sizes.sum(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A lower bound at given multipliers: ``value = base - largest gain of r candidates``."""

    base: float
    gains: np.ndarray  # of each candidate, (n,); infinite where it has no bound
    scale: np.ndarray  # 1 / (1 - rho), (n,)
    top: np.ndarray  # positions of the r largest gains
    multipliers: tuple[float, float]  # eta, mu

    @property
    def value(self) -> float:
        """The bound."""
        return self.base - float(self.gains[self.top].sum())

    def screen(self, cutoff: float) -> tuple[np.ndarray, float]:
        """Positions of the candidates that a set bounded below ``cutoff`` may hold, and the bound of the rest."""
        others = np.sort(self.gains[self.top])[1:].sum()
        bounds = np.maximum(self.base - (self.gains + others), self.value)
        return np.flatnonzero(bounds < cutoff), float(bounds[bounds >= cutoff].min(initial=np.inf))

    def children(self, cutoff: float, r: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Candidates in the order of their gains, bounds of the children below ``cutoff``, and that of the rest.

        Child i takes candidate i and lacks the earlier ones. Sets that run past the end are subsets of others.
        """
        order = np.argsort(-self.gains, kind="stable")
        bounds = np.maximum(self.base - np.correlate(self.gains[order], np.ones(r)), self.value)
        n = int(np.searchsorted(bounds, cutoff))
        return order, bounds[:n], float(bounds[n]) if n < len(bounds) else np.inf


def climb(
    projection: Projection, rho: np.ndarray, r: int, limits: tuple[float, float], start: tuple[float, float]
) -> Bound:
    """Bound the objective that ``r`` more candidates can reach: the better of two choices of the multipliers.

    The first choice is ``start``. The second one is the best for the set that gains most at the first. The bound
    is concave in the multipliers, so it rises fast, and every bound is valid.
    """
    line, (eta, mu) = projection.common_line, start
    if line is not None:
        eta, mu = (line @ start) * line if np.isfinite(limits).all() else np.zeros(2)
    first = _bound_at(projection, rho, r, limits, float(eta), float(mu))
    if not first.value > _NO_BOUND:
        return first
    best = projection.vectors[:, first.top]
    form = projection.form - (best * first.scale[first.top]) @ best.T
    second = _bound_at(projection, rho, r, limits, *map(float, saddle(form, *limits, line)))
    return second if second.value > first.value else first


def _bound_at(
    projection: Projection, rho: np.ndarray, r: int, limits: tuple[float, float], eta: float, mu: float
) -> Bound:
    unbounded, n, y = rho >= _INDEFINITE, len(rho), np.array([1.0, eta, mu])
    scale = 1 / np.where(unbounded, 1.0, 1 - rho)
    gains = (np.abs(y @ projection.vectors) + np.abs(y) @ projection.noise) ** 2 * scale
    gains[unbounded] = np.inf
    top = np.argpartition(gains, n - r)[n - r :] if n > r else np.arange(n)
    return Bound(projection.base(eta, mu, limits), gains, scale, top, (eta, mu))


Queue = list[tuple[float, int, Node]]  # a heap of (bound, order of arrival, node)


def solve_exact(problem: Problem, limits: Limits = UNLIMITED) -> Solution:
    r"""Prove the optimum of `Problem` by best-first branch and bound on its statistics.

    The bounds ignore only the box on single literals, which the fit of a whole support respects. The first
    incumbent is greedy selection, which single swaps improve if the proof is long. The bound at a limit is the
    smallest one of the open nodes. Cost d^2, then O(n) to O(n^2) per node with n surviving candidates.
    """
    best = _Incumbent(problem.scaled, limits.check)
    try:
        n_nodes, stopped = _search(problem.scaled, limits, best)
    except NumericalError:
        return best.report(0, Status.NUMERICAL, problem.unit)
    return best.report(n_nodes, Status.LIMIT if stopped else Status.OPTIMAL, problem.unit)


@dataclass
class _Incumbent:
    """The best sum so far, and the smallest bound of the closed nodes; everything is in units of the drops."""

    problem: Problem
    check: Callable[[], object]
    objective: float = np.inf
    fitted: tuple[np.ndarray, float] | None = None  # contributions and intercept
    closed: float = np.inf

    @property
    def cutoff(self) -> float:
        """A node with a bound at or above the cutoff is closed, because none of its sums would be better."""
        return self.objective - self.tolerance(_TOLERANCE) if self.fitted else np.inf

    def tolerance(self, share: float) -> float:
        """A share of mean t^2, or of an objective that is larger; if all drops are zero, of the unit."""
        return share * max(self.problem.evidence.drop_square or 1.0, self.objective)

    def close(self, bound: float) -> None:
        """Record the bound of a part of the search space that is not searched."""
        self.closed = min(self.closed, bound)

    def offer(self, support: np.ndarray, variant: Variant) -> None:
        """Fit a support inside the box, and keep the sum if it is better."""
        support = np.sort(support)  # so that rounding does not depend on the order of the search
        fitted = self.problem.fit_variant(support, variant)
        if fitted is None:
            return
        if np.count_nonzero(fitted[0]) < len(support):  # the fit dropped negligible terms; the bound counts them
            self.close(self.problem.smallest_objective(support, variant))
        objective, blur = self.problem.objective(fitted[0]), self.problem.evidence.blur(fitted[0])
        if blur > _SHARP * max(self.problem.evidence.drop_square or 1.0, objective):
            self.close(objective - blur)  # with other roundings the support may fit better
        if objective < self.objective:
            self.objective, self.fitted = objective, fitted

    def report(self, n_nodes: int, status: Status, unit: float) -> Solution:
        """The best sum, in the units of the problem."""
        if self.fitted is None:  # the first guess would have found a sum if any were feasible
            status = Status.INFEASIBLE
        contributions, intercept = self.fitted or (np.zeros(self.problem.n_literals), self.problem.prediction)
        evidence = self.problem.evidence
        if evidence.rare_square > self.tolerance(_MAX_GAP):
            status = Status.NUMERICAL
        bound = 0.0 if status is Status.NUMERICAL else max(0.0, min(self.objective, self.closed))
        unsure = max(self.objective - bound, evidence.blur(contributions))
        if status is Status.OPTIMAL and unsure > self.tolerance(_MAX_GAP):
            status = Status.NUMERICAL
        return Solution(
            contributions=contributions * unit,
            intercept=intercept * unit,
            objective=self.objective * unit * unit,
            lower_bound=bound * unit * unit,
            status=status,
            n_nodes=n_nodes,
        )


def _search(problem: Problem, limits: Limits, best: _Incumbent) -> tuple[int, bool]:
    """Improve the incumbent; return the number of nodes and whether a limit stopped the search.

    The node of smallest bound is expanded until no node can gain.
    """
    deadline = np.inf if limits.time_limit is None else time.perf_counter() + limits.time_limit
    max_nodes = np.inf if limits.node_limit is None else limits.node_limit
    attempts = [(False, _NODES_BEFORE_RESTART), (True, max_nodes)]  # whether the first guess uses swaps; nodes
    attempts = attempts if max_nodes > _NODES_BEFORE_RESTART else attempts[1:]
    centered = Centered.from_evidence(problem.evidence)
    guesses: list[tuple[int, ...]] = [(), ()]
    n_nodes, proven, stopped, open_nodes = 0, 0.0, False, Queue()
    for swap, until in attempts:
        roots = _roots(centered, guesses, best, swap=swap)
        open_nodes, order = [(proven, order, root) for order, root in enumerate(roots)], len(roots)
        while stopped := bool(open_nodes) and open_nodes[0][0] < best.cutoff:
            if n_nodes >= until or time.perf_counter() > deadline:
                break
            best.check()
            bound, _, node = heapq.heappop(open_nodes)
            n_nodes += 1
            for child_bound, child in _expand(centered, node, best):
                order += 1
                heapq.heappush(open_nodes, (max(bound, child_bound), order, child))
        if not stopped or time.perf_counter() > deadline:
            break
        proven = open_nodes[0][0]  # bounds every open node; closed nodes are above the cutoff
    if open_nodes:
        best.close(open_nodes[0][0])
    return n_nodes, stopped


def _roots(centered: Centered, guesses: list[tuple[int, ...]], best: _Incumbent, *, swap: bool) -> list[Node]:
    """Return the root node of every variant, with the multipliers of a guess that extends the last guess."""
    roots, everything = [], np.arange(len(centered.variances))
    for i, variant in enumerate(best.problem.variants):
        guesses[i] = _guess(centered, variant, guesses[0] if swap else guesses[i] or guesses[0], best, swap=swap)
        if variant.size:
            projection = project(centered, guesses[i], np.zeros(0, dtype=np.intp))
            eta, mu = saddle(projection.form, variant.low, variant.high, projection.line)
            roots.append(Node(variant, (), everything, (float(eta), float(mu))))
    return roots


def _guess(
    centered: Centered, variant: Variant, chosen: tuple[int, ...], best: _Incumbent, *, swap: bool
) -> tuple[int, ...]:
    """Offer the greedy extension of ``chosen``; with ``swap``, improve it by single swaps while they help."""
    value, gain = np.inf, _TOLERANCE * best.problem.evidence.drop_square
    while len(chosen) < variant.size:
        best.check()
        chosen, value = _add_best(centered, chosen, variant)
    improved = swap and len(chosen) > 1
    while improved:
        improved = False
        for literal in chosen:
            best.check()
            rest = tuple(j for j in chosen if j != literal)
            other, other_value = _add_best(centered, rest, variant)
            if other_value < value - gain:
                chosen, value, improved = other, other_value, True
    if not best.cutoff <= value < np.inf:  # inf if ``chosen`` was complete, because its value is unknown
        best.offer(np.array(chosen, dtype=np.intp), variant)
    return chosen


def _add_best(centered: Centered, chosen: tuple[int, ...], variant: Variant) -> tuple[tuple[int, ...], float]:
    others = np.delete(np.arange(len(centered.variances)), list(chosen))
    values = project(centered, chosen, others).values(variant.low, variant.high)
    pos = int(np.argmin(values))
    return (*chosen, int(others[pos])), float(values[pos])


def _expand(centered: Centered, node: Node, best: _Incumbent) -> list[tuple[float, Node]]:
    """Close the node, or return its children with their bounds, best first."""
    left, chosen = node.left, np.array(node.chosen, dtype=np.intp)
    if len(node.candidates) <= left:  # taking all of them is at least as good as any subset
        best.offer(np.append(node.candidates, chosen), node.variant)
        return []
    projection = project(centered, node.chosen, node.candidates)
    if left == 1:
        values = projection.values(*node.limits)
        for pos in np.argsort(values, kind="stable"):  # without the box, which may reject the first
            if values[pos] >= best.cutoff:
                best.close(float(values[pos]))
                break
            best.offer(np.append(node.candidates[pos], chosen), node.variant)
        return []
    candidates, bound = _screen(centered, projection, node, best)
    if len(candidates) <= left:
        if len(candidates):
            best.offer(np.append(candidates, chosen), node.variant)
        return []
    order, bounds, closed = bound.children(best.cutoff, left)
    best.close(closed)
    candidates = candidates[order]
    return [
        (value, Node(node.variant, (*node.chosen, taken), candidates[i:], bound.multipliers))
        for i, (value, taken) in enumerate(zip(bounds.tolist(), candidates.tolist(), strict=False), 1)
    ]


def _screen(centered: Centered, projection: Projection, node: Node, best: _Incumbent) -> tuple[np.ndarray, Bound]:
    """Drop the candidates that cannot be part of a better set, and repeat until no more can be dropped.

    The correlations are computed in two stages: first an O(n) bound, then all pairs of the surviving candidates.
    If the first stage drops no candidate but leaves only one child, the second stage waits for that child, where
    its bound is tighter.
    """
    candidates, left, multipliers = node.candidates, node.left, node.multipliers
    exact = len(candidates) <= _FEW_CANDIDATES
    while True:
        best.check()
        rho = (exact_rho if exact else cheap_rho)(centered, projection, candidates, left - 1)
        bound = climb(projection, rho, left, node.limits, multipliers)
        kept, closed = bound.screen(best.cutoff)
        best.close(closed)
        done = exact or len(candidates) > _MAX_ALL_PAIRS or len(bound.children(best.cutoff, left)[1]) == 1
        if len(kept) <= left or (done and len(kept) == len(candidates)):
            return candidates[kept], bound
        candidates, projection, multipliers = candidates[kept], projection.restrict(kept), bound.multipliers
        exact = len(candidates) <= _MAX_ALL_PAIRS
