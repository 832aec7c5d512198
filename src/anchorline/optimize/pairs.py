r"""The exact solver with pairs: a column about two literals at once, which costs two of the k terms.

The columns of the problem are d literals and m pairs. With P the pairs of a sum and r the number of terms that
its variant allows, the sum has at most r - 2 |P| single literals. The search enumerates the sets P. The empty set
is the problem without pairs. For every other set, P is projected out exactly, and the best literals beside it are
found by the branch and bound of `anchorline.optimize.exact`, which starts at the node that has already chosen P.

Most sets never become a node: `anchorline.optimize.pair_bounds` bounds all sets with one more pair at once, and a
set whose bound is not below the best sum is closed, and its bound is kept.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from anchorline.errors import NumericalError
from anchorline.optimize.bounds import Alone, Centered, Node, climb, project, saddle
from anchorline.optimize.exact import Limits, Pool, Queue, branch, is_over, report, solve_exact
from anchorline.optimize.pair_bounds import PAIR_COST, PairColumns, bounds_with
from anchorline.optimize.problem import Problem, Solution, Status, Variant
from anchorline.optimize.splits import split

_CLIMBS = 4  # each takes two steps
_MAX_FLOOR = 600  # columns
_NOISE = 1e-13  # smaller shares of the variance are rounding noise


@dataclass(frozen=True, eq=False)
class PairProblem:
    """A problem whose first columns are literals and whose last columns are pairs.

    ``members`` (m, 2) are the two literals of every pair, or -1 for a literal that is not among the columns. They
    make the bounds tight, and do not affect the best objective.
    """

    problem: Problem
    members: np.ndarray

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.members)

    @property
    def n_singles(self) -> int:
        """Number of literals."""
        return self.problem.n_literals - self.n_pairs

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
    if status is Status.LIMIT:
        search.pool.closed = max(search.pool.closed, _floor(search.centered))
    found = report(search.pool, first.n_nodes + search.n_nodes, status, paired.problem.unit)
    if found.objective < first.objective:
        return found
    return replace(first, status=found.status, lower_bound=min(found.lower_bound, first.objective))


def _floor(centered: Centered) -> float:
    """Return what all literals and pairs together leave of the drops: a bound for every sum, however long.

    It is 0 if there are too many columns to compute it in a moment. Cost n^3.
    """
    if len(centered.variances) > _MAX_FLOOR:
        return 0.0
    shares, vectors = np.linalg.eigh(centered.covariance)
    solid = shares > _NOISE * shares.max(initial=0.0)
    gain = float(((centered.rows[0] @ vectors[:, solid]) ** 2 / shares[solid]).sum())
    return max(0.0, float(centered.form[0, 0]) * (1 - 1e-9) - gain)


class _Search:
    """The enumeration of the sets of pairs, and what it has found so far."""

    def __init__(self, paired: PairProblem, max_nodes: float, deadline: float) -> None:
        self.paired, self.max_nodes, self.deadline = paired, max_nodes, deadline
        self.problem = paired.problem
        self.pool = Pool(self.problem)
        self.centered = Centered.from_evidence(self.problem.evidence, self.problem.groups)
        self.columns = PairColumns.of(self.centered, paired.members)
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
        variants = [variant for variant in budgets(self.problem) if variant.size >= PAIR_COST]
        sets = [_Set(variant, (), self.columns.pairs, self._start(variant), 0.0) for variant in variants]
        while sets:
            sets = self._extend(sets)

    def _start(self, variant: Variant) -> tuple[float, float]:
        """Return multipliers that give a good bound without pairs; all multipliers are valid with pairs, too."""
        limits, singles = (variant.low, variant.high), self.columns.singles
        chosen = project(self.centered, tuple(self.support.tolist()), singles[:0])
        eta, mu = saddle(chosen.form, *limits, chosen.line)
        multipliers, alone = (float(eta), float(mu)), Alone.of(np.zeros(len(singles)))
        for _ in range(_CLIMBS if len(singles) > variant.size else 0):
            multipliers = climb(
                project(self.centered, (), singles), alone, variant.size, limits, multipliers
            ).multipliers
        return multipliers

    @property
    def _is_over(self) -> bool:
        return self.n_nodes >= self.max_nodes or is_over(self.deadline)

    def _extend(self, sets: "list[_Set]") -> "list[_Set]":
        """Add one more pair to every set; search beside the larger sets, and return those that may grow."""
        larger: list[_Set] = []
        queue: Queue = []
        for each in sorted(sets, key=lambda one: one.bound):
            open_ = each.bound < self.pool.cutoff
            if not open_ or self._is_over:
                self.stopped = self.stopped or open_
                self.pool.close(each.bound)
                continue
            self.n_nodes += 1
            larger += self._with_one_more(each, queue)
            if each.chosen:  # the next sets profit from a better sum
                self._beside(queue)
        self._beside(queue)
        return larger

    def _with_one_more(self, each: "_Set", queue: Queue) -> "list[_Set]":
        """Queue the nodes of a set with one more pair whose bounds are below the cutoff; return the sets."""
        left, limits = each.left - PAIR_COST, (each.variant.low, each.variant.high)
        own, deep, multipliers = bounds_with(self.columns, each.chosen, each.pairs, left, limits, each.multipliers)
        order = np.argsort(own, kind="stable")
        pairs, own, deep = (
            each.pairs[order],
            np.maximum(own[order], each.bound),
            np.maximum(deep[order], each.bound),
        )
        n_kept = int(np.searchsorted(own, self.pool.cutoff))
        if n_kept < len(own):
            self.pool.close(float(own[n_kept]))
        for bound, pair in zip(own[:n_kept].tolist(), pairs.tolist(), strict=False):
            for value, node in self._nodes(each.variant, (*each.chosen, pair), left, multipliers):
                queue.append((max(bound, value), len(queue), node))
        if left < PAIR_COST:
            return []
        return [
            _Set(each.variant, (*each.chosen, pair), pairs[i:], multipliers, bound)
            for i, (bound, pair) in enumerate(zip(deep[:-1].tolist(), pairs[:-1].tolist(), strict=True), 1)
        ]

    def _nodes(
        self, variant: Variant, chosen: tuple[int, ...], left: int, multipliers: tuple[float, float]
    ) -> Iterator[tuple[float, Node]]:
        """Return the nodes beside chosen pairs, with bounds."""
        variant, singles = replace(variant, size=len(chosen) + left), self.columns.singles
        return split(self.centered, Node(variant, chosen, singles if left else singles[:0], multipliers))

    def _beside(self, queue: Queue) -> None:
        """Search for the best literals beside the queued sets."""
        queue.sort(key=lambda entry: entry[:2])  # a sorted list is a heap
        if queue:
            self.pool.problem = _Beside.of(self.problem, len(queue[0][2].chosen))
        self.n_nodes += branch(self.centered, queue, self.pool, self.max_nodes - self.n_nodes, self.deadline)
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
