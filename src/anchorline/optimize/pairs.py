r"""The exact solver with pairs: a column about two literals at once, which costs two of the k terms.

The columns of the problem are d literals and m pairs. With P the pairs of a sum and r the number of terms that
its variant allows, the sum has at most r - 2 |P| single literals. The search enumerates the sets P. The empty set
is the problem without pairs. For every other set, P is projected out exactly, and the best literals beside it are
found by the branch and bound of `anchorline.optimize.exact`, which starts at the node that has already chosen P.

Most sets never become a node. Let P be projected out and Y be fixed multipliers (`anchorline.optimize.bounds`).
With :math:`y_j = a_j^\top Y` and the remaining correlations :math:`\kappa`, a pair q gains :math:`y_q^2`, a
literal j beside it gains :math:`(y_j - \kappa_{qj} y_q)^2 / (1 - \kappa_{qj}^2)`, and by diagonal dominance l
literals gain at most the sum of the l largest of these, each divided by :math:`1 - \rho_j`. A set whose bound is
not below the best sum is closed, and its bound is kept.
"""

import time
from dataclasses import dataclass, fields, replace

import numpy as np

from anchorline.errors import NumericalError
from anchorline.optimize.bounds import Centered, Projection, project, saddle
from anchorline.optimize.exact import Limits, Node, Pool, Queue, _branch, _report, solve_exact
from anchorline.optimize.problem import Problem, Solution, Status, Variant

PAIR_COST = 2  # terms: the reader holds two facts
_INDEFINITE = 1 - 1e-9  # a rho from here on may be 1 but for rounding


@dataclass(frozen=True, eq=False)
class PairProblem:
    """A problem whose first ``n_singles`` columns are literals and whose other columns are pairs of literals."""

    problem: Problem
    n_singles: int

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return self.problem.n_literals - self.n_singles

    def cost(self, contributions: np.ndarray) -> int:
        """Number of terms that literals and pairs cost, without the starting level."""
        used = np.asarray(contributions) != 0
        return int(used.sum() + (PAIR_COST - 1) * used[self.n_singles :].sum())


def budgets(problem: Problem) -> tuple[Variant, Variant]:
    """Return the variants with and without starting level; ``size`` is what literals and pairs may cost."""
    box, total = np.inf if problem.box is None else problem.box, problem.prediction - problem.origin
    return Variant(problem.k - 1, problem.prediction - box, problem.prediction + box), Variant(
        problem.k, total, total
    )


def solve_with_pairs(paired: PairProblem, limits: Limits) -> Solution:
    """Find the best sum of at most k terms, of which a pair costs two, and prove it or return the gap.

    The best sum without pairs is a candidate, so that the objective is never worse than without pairs.
    """
    start, d = time.perf_counter(), paired.n_singles
    alone = replace(
        paired.problem,
        evidence=paired.problem.evidence.restricted(np.arange(d)),
        groups=None if paired.problem.groups is None else paired.problem.groups[:d],
    )
    first = solve_exact(alone, limits)
    contributions = np.concatenate([first.contributions, np.zeros(paired.n_pairs)])
    first = replace(first, contributions=contributions)
    if first.status is Status.INFEASIBLE or not paired.n_pairs or paired.problem.k < PAIR_COST:
        return first
    deadline = np.inf if limits.time_limit is None else start + limits.time_limit
    max_nodes = np.inf if limits.node_limit is None else limits.node_limit
    search = _Search(replace(paired, problem=paired.problem.scaled), max_nodes - first.n_nodes, deadline)
    search.take(first, paired.problem.unit)
    try:
        search.run()
    except NumericalError:
        search.pool.close(0.0)
    status = Status.LIMIT if search.stopped or first.status is Status.LIMIT else Status.OPTIMAL
    found = _report(search.pool, first.n_nodes + search.n_nodes, status, paired.problem.unit)
    if found.objective < first.objective:
        return found
    return replace(first, status=found.status, lower_bound=min(found.lower_bound, first.objective))


class _Search:
    """The enumeration of the sets of pairs, and what it has found so far."""

    def __init__(self, paired: PairProblem, max_nodes: float, deadline: float) -> None:
        self.paired, self.max_nodes, self.deadline = paired, max_nodes, deadline
        self.problem = paired.problem
        self.pool = Pool(self.problem)
        self.centered = Centered.from_evidence(self.problem.evidence, self.problem.groups)
        self.singles = np.arange(paired.n_singles)
        self.n_nodes, self.stopped = 0, False

    def take(self, first: Solution, unit: float) -> None:
        """Start from the best sum without pairs, and from its bound."""
        for variant in budgets(self.problem):
            if len(first.support) <= variant.size:
                self.pool.offer(first.support, variant)
        self.pool.close(first.lower_bound / unit**2)
        self.support = first.support

    def run(self) -> None:
        """Search all sets of pairs, from small to large, in both variants."""
        every = np.arange(self.paired.n_singles, self.problem.n_literals)
        sets = [_Set(variant, (), every, self._start(variant), 0.0) for variant in budgets(self.problem)]
        while sets and not self.stopped:
            sets = self._extend(sets)
        for left in sets:  # not extended, because a limit was reached
            self.pool.close(left.bound)

    def _start(self, variant: Variant) -> tuple[float, float]:
        """Return the multipliers of the sum without pairs."""
        projection = project(self.centered, tuple(self.support.tolist()), np.zeros(0, dtype=np.intp))
        eta, mu = saddle(projection.form, variant.low, variant.high, projection.line)
        return float(eta), float(mu)

    @property
    def _is_over(self) -> bool:
        return self.n_nodes >= self.max_nodes or time.perf_counter() > self.deadline

    def _extend(self, sets: "list[_Set]") -> "list[_Set]":
        """Add one more pair to every set; search beside the larger sets, and return those that may grow."""
        larger: list[_Set] = []
        queue: Queue = []
        for place, each in enumerate(sets):
            if each.left < PAIR_COST or not len(each.pairs):
                continue
            if self._is_over:
                self.stopped = True
                for open_set in sets[place:]:
                    self.pool.close(open_set.bound)
                break
            self.n_nodes += 1
            larger += self._with_one_more(each, queue)
            if each.chosen:  # the next sets profit from a better sum
                self._beside(queue)
        self._beside(queue)
        return larger

    def _with_one_more(self, each: "_Set", queue: Queue) -> "list[_Set]":
        """Queue the nodes of a set with one more pair whose bounds are below the cutoff; return the sets."""
        bounds = _bounds_with(self.centered, each, self.singles)
        order = np.argsort(bounds, kind="stable")
        pairs, bounds = each.pairs[order], np.maximum(bounds[order], 0.0)
        n_kept = int(np.searchsorted(bounds, self.pool.cutoff))
        if n_kept < len(bounds):
            self.pool.close(float(bounds[n_kept]))
        left, larger = each.left - PAIR_COST, []
        for i, pair in enumerate(pairs.tolist()):
            chosen = (*each.chosen, pair)
            for node in self._nodes(each, chosen, left) if i < n_kept else ():
                queue.append((float(bounds[i]), len(queue), node))
            if left >= PAIR_COST:
                larger.append(_Set(each.variant, chosen, pairs[i + 1 :], each.multipliers, each.bound))
        return larger

    def _nodes(self, each: "_Set", chosen: tuple[int, ...], left: int) -> list[Node]:
        """Return the nodes beside chosen pairs: of sets without a circuit, and once of sets with a circuit."""
        variant = replace(each.variant, size=len(chosen) + left)
        nodes = [Node(variant, chosen, self.singles if left else self.singles[:0], each.multipliers)]
        groups = self.centered.groups
        if left and groups is not None and len(groups.circuits) and variant.low == variant.high:
            free = replace(variant, low=-np.inf, high=np.inf)
            nodes.append(Node(free, chosen, self.singles, (each.multipliers[0], 0.0), circuit=True))
        return nodes

    def _beside(self, queue: Queue) -> None:
        """Search for the best literals beside the queued sets."""
        queue.sort(key=lambda entry: entry[:2])  # a sorted list is a heap
        if queue:
            self.pool.problem = _Beside.of(self.problem, len(queue[0][2].chosen))
        self.n_nodes += _branch(self.centered, queue, self.pool, self.max_nodes - self.n_nodes, self.deadline)
        if queue:
            self.pool.close(queue[0][0])
            self.stopped = self.stopped or queue[0][0] < self.pool.cutoff
        queue.clear()


@dataclass(frozen=True, eq=False)
class _Beside(Problem):
    """The problem beside ``n_pairs`` chosen pairs: a support has that many columns fewer than it costs."""

    n_pairs: int = 0

    @classmethod
    def of(cls, problem: Problem, n_pairs: int) -> "_Beside":
        return cls(**{field.name: getattr(problem, field.name) for field in fields(Problem)}, n_pairs=n_pairs)

    @property
    def variants(self) -> tuple[Variant, ...]:
        return tuple(
            replace(variant, size=variant.size - (PAIR_COST - 1) * self.n_pairs) for variant in budgets(self)
        )


@dataclass(frozen=True, eq=False)
class _Set:
    """A set of chosen pairs, and the pairs that may join it; ``bound`` is below every sum that contains it."""

    variant: Variant
    chosen: tuple[int, ...]
    pairs: np.ndarray
    multipliers: tuple[float, float]
    bound: float

    @property
    def left(self) -> int:
        """Number of terms that are left."""
        return self.variant.size - PAIR_COST * len(self.chosen)


def _bounds_with(centered: Centered, each: _Set, singles: np.ndarray) -> np.ndarray:
    """Return lower bounds, (n,), of the set with one more pair and any literals beside it, but no other pair."""
    low, high, left = each.variant.low, each.variant.high, each.left - PAIR_COST
    projection = project(centered, each.chosen, each.pairs)
    if not left:
        return projection.values(low, high)
    if centered.groups is not None and left > 1:
        return np.full(len(each.pairs), -np.inf)
    beside = project(centered, each.chosen, singles)
    y = np.array([1.0, *each.multipliers])
    base = _base(projection, y, low, high)
    own, gains = _gains(centered, each, projection, singles, beside, y, left)
    return np.asarray(base - own - gains)


def _base(projection: Projection, y: np.ndarray, low: float, high: float) -> float:
    """Return what the chosen pairs leave, at multipliers y = (1, eta, mu)."""
    if projection.line is not None or projection.pins is not None:
        return -np.inf  # degenerate columns restrict the multipliers; `_branch` treats them
    price = 0.0 if y[2] == 0 else 2 * min(y[2] * low, y[2] * high)
    return float(y @ projection.form @ y) + price - float(np.abs(y) @ projection.errors @ np.abs(y)) - 1e-14


def _gains(
    centered: Centered,
    each: _Set,
    projection: Projection,
    singles: np.ndarray,
    beside: Projection,
    y: np.ndarray,
    left: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return what every pair gains, (n,), and the most that ``left`` literals gain beside it, (n,)."""
    lost, lost_beside = np.abs(y) @ projection.noise, np.abs(y) @ beside.noise
    along, along_beside = y @ projection.vectors, y @ beside.vectors
    kappa = _correlations(centered, each.pairs, projection, singles, beside)
    free = 1 - kappa**2
    solid = free > 1e-9
    parts = np.abs(along_beside - kappa * along[:, None]) + lost_beside + lost[:, None]
    gains = np.where(solid, parts**2 / np.where(solid, free, 1.0), np.inf)
    gains[:, beside.variances == 0] = 0.0
    if beside.pins is not None:
        gains[:, beside.pins.any(axis=0)] = np.inf
    if left > 1:
        factors = _factors(centered, singles, beside, kappa, left)
        gains = np.where(gains > 0, gains, 1.0) * np.where(gains > 0, factors, 0.0)
    left = min(left, gains.shape[1])
    top = np.partition(gains, gains.shape[1] - left, axis=1)[:, gains.shape[1] - left :]
    return (np.abs(along) + lost) ** 2, np.asarray(top.sum(axis=1))


def _correlations(
    centered: Centered, pairs: np.ndarray, projection: Projection, singles: np.ndarray, beside: Projection
) -> np.ndarray:
    """Return the remaining correlations of pairs and literals, (n, d)."""
    remaining = centered.covariance[pairs[:, None], singles] - projection.residuals.T @ beside.residuals
    scale = projection.variances[:, None] * beside.variances
    return np.asarray(np.where(scale > 0, remaining / np.sqrt(np.where(scale > 0, scale, 1.0)), 0.0))


def _factors(
    centered: Centered, singles: np.ndarray, beside: Projection, kappa: np.ndarray, left: int
) -> np.ndarray:
    r"""Return 1 / (1 - rho) of every literal beside every pair, (n, d).

    After a pair q is projected out, :math:`|\kappa_{ij}|` is at most :math:`(|\kappa_{ij}| + |\kappa_{qi}
    \kappa_{qj}|) / \sqrt{(1 - \kappa_{qi}^2)(1 - \kappa_{qj}^2)}`.
    """
    among = np.abs(_correlations(centered, singles, beside, singles, beside))
    np.fill_diagonal(among, 0.0)
    others = min(left - 1, len(singles) - 1)
    if others < 1:
        return np.ones_like(kappa)
    largest = np.partition(among, len(singles) - others, axis=1)[:, len(singles) - others :].sum(axis=1)
    sizes = np.abs(kappa)
    top = np.partition(sizes, len(singles) - others, axis=1)[:, len(singles) - others :]
    scale = (1 - sizes**2) * (1 - top[:, -1:] ** 2 if others == 1 else 1 - top.max(axis=1, keepdims=True) ** 2)
    rho = (largest + sizes * top.sum(axis=1, keepdims=True)) / np.sqrt(np.maximum(scale, 1e-12))
    unbounded = rho >= _INDEFINITE
    return np.where(unbounded, np.inf, 1 / np.where(unbounded, 1.0, 1 - rho))
