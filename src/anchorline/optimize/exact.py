"""Best-first branch and bound, which proves the best sum of at most k terms."""

import heapq
import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

import numpy as np

from anchorline.errors import NumericalError
from anchorline.optimize.blocks import allowed, rests_among, screen_groups
from anchorline.optimize.bounds import (
    Alone,
    Bound,
    Centered,
    Node,
    Projection,
    cheap_rho,
    climb,
    exact_rho,
    project,
    saddle,
)
from anchorline.optimize.groups import completing
from anchorline.optimize.problem import Problem, Solution, Status, Variant
from anchorline.optimize.sets import MAX_SETS, combinations, few, values_of_sets, without
from anchorline.optimize.splits import Splits, with_bounds

TOLERANCE = 1e-10  # a node that cannot gain this share of mean t^2 is closed, and its bound is kept
_MAX_GAP = 1e-9  # a proof that leaves a larger gap, as a share of mean t^2, is none
_SHARP = 1e-12  # rounding errors that change the objective by a smaller share do not matter
_INSIDE = 1e-9  # a value inside the box by at least this share is not on its side
_FEW_CANDIDATES = 64  # for at most this many, computing all pairs at once is as cheap as the cheap bound first
_MAX_ALL_PAIRS = 400  # all pairwise correlations of a node are computed for at most this many candidates
_NODES_BEFORE_RESTART = 32  # most proofs end sooner; the others start again here from a better first guess


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the time in seconds and on the number of search nodes; None means no limit."""

    time_limit: float | None = None
    node_limit: int | None = None


# Called at every step of a search in this thread. True ends the search with its best result so far, as a time
# limit does. The function may also wait, or raise to abandon the search.
interruption: ContextVar[Callable[[], bool]] = ContextVar("interruption", default=lambda: False)


def is_over(deadline: float) -> bool:
    """Return whether a search must end, because its deadline has passed or it was interrupted."""
    return interruption.get()() or time.perf_counter() > deadline


Queue = list[tuple[float, int, Node]]  # a heap of (bound, order of arrival, node)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A support fitted inside the box."""

    objective: float
    contributions: np.ndarray
    intercept: float

    @property
    def terms(self) -> tuple[int, ...]:
        """The literals with a contribution, which identify the candidate."""
        return tuple(np.flatnonzero(self.contributions).tolist())

    def scaled(self, unit: float) -> "Candidate":
        """The candidate in other units; exact if ``unit`` is a power of 2."""
        return Candidate(self.objective * unit * unit, self.contributions * unit, self.intercept * unit)


@dataclass
class Pool:
    """The best candidates so far, in order of their objective, and the smallest bound of the closed nodes."""

    problem: Problem
    size: int = 1
    ranked: list[Candidate] = field(default_factory=list)
    closed: float = np.inf
    limited: bool = False  # whether the box changed the fit of a sum with starting level
    n_unlisted: float = 0  # nodes so far, minus those that listing their sets took as long as
    sums: np.ndarray | None = None  # those of `Groups`

    @property
    def objective(self) -> float:
        """The best objective so far."""
        return self.ranked[0].objective if self.ranked else np.inf

    @property
    def cutoff(self) -> float:
        """A node with a bound at or above the cutoff is closed, because none of its sums would enter the pool."""
        if len(self.ranked) < self.size:
            return np.inf
        last = self.ranked[-1].objective
        return last - TOLERANCE * max(self.problem.evidence.drop_square, last)

    def tolerance(self, share: float, objective: float) -> float:
        """A share of mean t^2, or of an objective that is larger; if all drops are zero, of the unit."""
        return share * max(self.problem.evidence.drop_square or 1.0, objective)

    def close(self, bound: float) -> None:
        """Record the bound of a part of the search space that is not searched."""
        self.closed = min(self.closed, bound)

    def offer(self, support: np.ndarray, variant: Variant) -> None:
        """Fit a support inside the box, or one `with_bounds`, and keep the sum if it is new and among the best."""
        sums, free = self.sums, self.problem.variants[0]
        plainer = None if sums is None else with_bounds(support, variant, free, sums)
        if plainer is not None and _is_inside(self.problem, self.problem.fit_variant(*plainer)):
            support, variant = plainer
        # Sorting makes the rounding independent of the order in which the search chose the literals.
        fitted = self.problem.fit_variant(np.sort(support), variant)
        self.limited |= variant.low < variant.high and not _is_inside(self.problem, fitted)
        if fitted is None:
            return
        if np.count_nonzero(fitted[0]) < len(support):  # the fit dropped negligible terms; the bound counts them
            self.close(self.problem.smallest_objective(np.sort(support), variant))
        new = Candidate(self.problem.objective(fitted[0]), *fitted)
        blur = self.problem.evidence.blur(fitted[0])  # with other roundings the support may fit better
        if blur > self.tolerance(_SHARP, new.objective):
            self.close(new.objective - blur)
        if any(old.terms == new.terms and old.objective <= new.objective for old in self.ranked):
            return
        kept = [old for old in self.ranked if old.terms != new.terms] + [new]
        self.ranked = sorted(kept, key=lambda candidate: candidate.objective)[: self.size]


def _is_inside(problem: Problem, fitted: tuple[np.ndarray, float] | None) -> bool:
    """Whether a fit exists, and no side of the box holds it back."""
    if fitted is None or problem.box is None:
        return fitted is not None
    return max(float(np.abs(fitted[0]).max(initial=0.0)), abs(fitted[1])) < problem.box * (1 - _INSIDE)


def solve_exact(problem: Problem, limits: Limits, shared: "Shared | None" = None) -> Solution:
    r"""Prove the optimum of `Problem` by best-first branch and bound on its statistics.

    The bounds (`bounds.py`) ignore only the box on single literals, which the fit of a whole support respects. The
    first incumbent is greedy selection, which single swaps improve if the proof is long. The bound at a limit is
    the smallest one of the open nodes. Cost d^2, then O(n) to O(n^2) per node with n surviving candidates.
    """
    pool = Pool(problem.scaled) if shared is None or shared.begun is None else shared.begun[0]
    try:
        n_nodes, stopped = _search(problem.scaled, limits, pool, shared)
    except NumericalError:
        return report(pool, 0, Status.NUMERICAL, problem.unit)
    return report(pool, n_nodes, Status.LIMIT if stopped else Status.OPTIMAL, problem.unit)


def solve_path(problems: list[Problem], limits: Limits) -> list[Solution]:
    """Solve problems on the same evidence for increasing k; each search extends the last first guess."""
    shared = Shared(Centered.from_evidence(problems[0].scaled.evidence, problems[0].groups)) if problems else None
    return [solve_exact(problem, limits, shared) for problem in problems]


def solve_runners_up(problem: Problem, limits: Limits, n_best: int = 2) -> tuple[list[Candidate], bool]:
    """Return the ``n_best`` best sums with different supports, best first, and whether the search was complete."""
    pool = Pool(problem.scaled, n_best)
    _, stopped = _search(problem.scaled, limits, pool)
    return [found.scaled(problem.unit) for found in pool.ranked], not stopped


@dataclass
class Shared:
    """State that searches on the same evidence share: centered statistics, and the last guess per variant."""

    centered: Centered
    grows: bool = True  # whether k grows from search to search, so that guesses extend proven sums
    begun: tuple[Pool, list[Node]] | None = None  # pool and roots of a search that only guessed
    guesses: list[tuple[int, ...]] = field(default_factory=lambda: [(), ()])


def _search(problem: Problem, limits: Limits, pool: Pool, shared: Shared | None = None) -> tuple[int, bool]:
    """Fill the pool; return the number of nodes and whether a limit stopped the search."""
    deadline = np.inf if limits.time_limit is None else time.perf_counter() + limits.time_limit
    max_nodes = np.inf if limits.node_limit is None else limits.node_limit
    attempts = [(False, _NODES_BEFORE_RESTART), (True, max_nodes)]  # whether the first guess uses swaps; nodes
    attempts = attempts if max_nodes > _NODES_BEFORE_RESTART else attempts[1:]
    if shared is None:
        shared = Shared(Centered.from_evidence(problem.evidence, problem.groups))
    elif shared.grows:  # swaps rarely improve a guess that extends the guess for a smaller k
        attempts = [(False, max_nodes)]
    n_nodes, proven, complete, open_nodes, groups = 0, 0.0, False, Queue(), shared.centered.groups
    for swap, until in attempts:
        splits, before = None, pool.objective
        pool.sums = None if groups is None else groups.sums
        roots = shared.begun[1] if shared.begun and not swap else roots_of(problem, shared, pool, swap=swap)
        shared.begun = None  # another search must not take over this pool
        if groups is not None:
            splits = Splits(shared.centered, roots, alone=pool.size == 1)
        if splits is None or not open_nodes or pool.objective < before:  # otherwise there is nothing new to use
            open_nodes = _queue(((0.0, root) for root in roots) if splits is None else splits.nodes(), proven, 0)
            complete = splits is None or not splits.is_free
        n_nodes += branch(shared.centered, open_nodes, pool, until - n_nodes, deadline)
        if splits is not None and pool.limited and not complete:
            complete = True
            more = _queue(splits.left_out(), proven, 1 + max((entry[1] for entry in open_nodes), default=0))
            open_nodes = sorted([*open_nodes, *more])
            n_nodes += branch(shared.centered, open_nodes, pool, until - n_nodes, deadline)
        stopped = bool(open_nodes) and open_nodes[0][0] < pool.cutoff
        if not stopped or is_over(deadline):
            break
        proven = open_nodes[0][0]  # bounds every open node; closed nodes are above the cutoff
    if open_nodes:
        pool.close(open_nodes[0][0])
    return n_nodes, stopped


def branch(centered: Centered, open_nodes: Queue, pool: Pool, max_nodes: float, deadline: float) -> int:
    """Expand the node of smallest bound until no node can gain or a limit is reached; return the node count."""
    n_nodes, order = 0, max((entry[1] for entry in open_nodes), default=0)
    while open_nodes and open_nodes[0][0] < pool.cutoff and n_nodes < max_nodes and not is_over(deadline):
        bound, _, node = heapq.heappop(open_nodes)
        n_nodes += 1
        for child_bound, child in _expand(centered, node, pool):
            order += 1
            heapq.heappush(open_nodes, (max(bound, child_bound), order, child))
    return n_nodes


def report(pool: Pool, n_nodes: int, status: Status, unit: float) -> Solution:
    """The best sum of the pool, in the units of the problem."""
    problem = pool.problem
    if not pool.ranked:  # the first guess would have found a sum if any were feasible
        status = Status.INFEASIBLE
    nothing = Candidate(np.inf, np.zeros(problem.n_literals), problem.prediction)
    best, bound = pool.ranked[0] if pool.ranked else nothing, 0.0
    if status is not Status.NUMERICAL:
        bound = max(0.0, min(best.objective, pool.closed))
    unsure = max(best.objective - bound, problem.evidence.blur(best.contributions))
    if status is Status.OPTIMAL and unsure > pool.tolerance(_MAX_GAP, best.objective):
        status = Status.NUMERICAL
    best = best.scaled(unit)
    return Solution(
        contributions=best.contributions,
        intercept=best.intercept,
        objective=best.objective,
        lower_bound=bound * unit * unit,
        status=status,
        n_nodes=n_nodes,
    )


def _queue(nodes: Iterable[tuple[float, Node]], proven: float, order: int) -> Queue:
    """A heap of nodes, whose bounds are at least ``proven``."""
    return sorted((max(proven, value), i, node) for i, (value, node) in enumerate(nodes, order))


def roots_of(problem: Problem, shared: Shared, pool: Pool, *, swap: bool) -> list[Node]:
    """Return the root nodes of every variant, with the multipliers of a guess that extends the last guess."""
    roots: list[Node] = []
    centered, guesses = shared.centered, shared.guesses
    for i, variant in enumerate(problem.variants):
        last = guesses[0] if swap else guesses[i] or guesses[0]
        guesses[i] = _guess(centered, variant, last, pool, swap=swap)
        # The best sum has the largest size. The next best ones may be shorter.
        for size in range(variant.size if pool.size == 1 else 0, variant.size + 1):
            part, guess = replace(variant, size=size), guesses[i][:size]
            if size < variant.size:
                pool.offer(np.array(guess, dtype=np.intp), part)
            if size:
                roots.append(_root(centered, part, guess))
    return roots


def _guess(
    centered: Centered, variant: Variant, chosen: tuple[int, ...], pool: Pool, *, swap: bool
) -> tuple[int, ...]:
    """Offer the greedy extension of ``chosen``; with ``swap``, improve it by single swaps while they help."""
    value, gain = np.inf, TOLERANCE * pool.problem.evidence.drop_square
    while len(chosen) < variant.size:
        chosen, value = _add_best(centered, chosen, variant)
    improved = swap and len(chosen) > 1
    while improved and not is_over(np.inf):
        improved = False
        for literal in chosen:
            rest = tuple(j for j in chosen if j != literal)
            other, other_value = _add_best(centered, rest, variant)
            if other_value < value - gain:
                chosen, value, improved = other, other_value, True
    if not pool.cutoff <= value < np.inf:  # inf if ``chosen`` was complete, because its value is unknown
        pool.offer(np.array(chosen, dtype=np.intp), variant)
    return chosen


def _root(centered: Centered, variant: Variant, guess: tuple[int, ...]) -> Node:
    """The root node of a variant, with the multipliers of the guess."""
    projection = project(centered, guess, np.zeros(0, dtype=np.intp))
    eta, mu = saddle(projection.form, variant.low, variant.high, projection.line)
    everything = np.arange(len(centered.variances)) if centered.groups is None else centered.groups.order
    return Node(variant, (), everything, (float(eta), float(mu)))


def _add_best(centered: Centered, chosen: tuple[int, ...], variant: Variant) -> tuple[tuple[int, ...], float]:
    others = np.delete(np.arange(len(centered.variances)), list(chosen))
    if centered.groups is not None:
        barred = completing(centered.groups.circuits, chosen)
        if variant.low < variant.high:  # two bounds, rather than a bound and the interval
            barred |= completing(centered.groups.redundant, chosen)
        kept = others[~barred[others]]
        others = kept if len(kept) else others
    values = project(centered, chosen, others).values(variant.low, variant.high)
    pos = int(np.argmin(values))
    return (*chosen, int(others[pos])), float(values[pos])


def _expand(centered: Centered, node: Node, pool: Pool) -> list[tuple[float, Node]]:
    """Close the node, or return its children with their bounds, best first."""
    left, pool.n_unlisted = node.left, pool.n_unlisted + 1
    if node.forbidden is not None:
        node = replace(node, candidates=allowed(centered, node))
    if len(node.candidates) <= left or not left:  # taking all of them is at least as good as any subset
        _offer(pool, node, node.candidates[:left])
        return []
    projection = project(centered, node.chosen, node.candidates)
    if left == 1:
        _offer_best(pool, node, node.candidates[:, None], projection.values(*node.limits))
        return []
    if _offer_all(centered, projection, node, pool):
        return []
    candidates, bound = _screen(centered, projection, node, pool)
    if len(candidates) <= left:
        if len(candidates):
            _offer(pool, node, candidates)
        return []
    if len(candidates) < len(node.candidates) and _are_few(centered, candidates, left, pool):
        return [(bound.value, replace(node, candidates=candidates))]
    order, bounds, closed = bound.children(pool.cutoff, left)
    pool.close(closed)
    candidates = candidates[order]
    return [
        (
            value,
            replace(node, chosen=(*node.chosen, taken), candidates=candidates[i:], multipliers=bound.multipliers),
        )
        for i, (value, taken) in enumerate(zip(bounds.tolist(), candidates.tolist(), strict=False), 1)
    ]


def _are_few(centered: Centered, candidates: np.ndarray, left: int, pool: Pool) -> bool:
    """Whether to list all sets of candidates: if that takes at most as long as the nodes so far."""
    return centered.groups is not None and few(len(candidates), left, pool.n_unlisted)


def _offer_all(centered: Centered, projection: Projection, node: Node, pool: Pool) -> bool:
    """Offer the best of all sets of candidates if they are few; return whether this was done."""
    if not _are_few(centered, node.candidates, node.left, pool):
        return False
    sets = without(combinations(len(node.candidates), node.left), rests_among(node, node.candidates))
    values = values_of_sets(centered, projection, node.candidates, sets, *node.limits)
    if values is not None:
        pool.n_unlisted -= len(values) / MAX_SETS
        _offer_best(pool, node, node.candidates[sets], values)
    return values is not None


def _offer_best(pool: Pool, node: Node, sets: np.ndarray, values: np.ndarray) -> None:
    """Offer the chosen literals with each of the ``sets`` (n, s), in the order of their values without the box."""
    for pos in np.argsort(values, kind="stable"):
        if values[pos] >= pool.cutoff:
            return pool.close(float(values[pos]))
        _offer(pool, node, sets[pos])
    return None


def _offer(pool: Pool, node: Node, literals: np.ndarray) -> None:
    """Offer the chosen literals with some more."""
    pool.offer(np.append(literals, node.chosen).astype(np.intp), node.variant)


def _screen(centered: Centered, projection: Projection, node: Node, pool: Pool) -> tuple[np.ndarray, Bound]:
    """Drop the candidates that cannot be part of a better set, and repeat until no more can be dropped.

    If every literal is a group of its own, the correlations are computed in two stages: first an O(n) bound, then
    all pairs of the surviving candidates. If the first stage drops no candidate but leaves only one child, the
    second stage waits for that child, where its bound is tighter.
    """
    if centered.groups is not None:
        candidates, bound, closed = screen_groups(centered, projection, node, pool.cutoff)
        pool.close(closed)
        return candidates, bound
    candidates, left = node.candidates, node.left
    limits, multipliers = node.limits, node.multipliers
    exact = len(candidates) <= _FEW_CANDIDATES
    while True:
        rho = (exact_rho if exact else cheap_rho)(centered, projection, candidates, left - 1)
        bound = climb(projection, Alone.of(rho), left, limits, multipliers)
        kept, closed = bound.screen(pool.cutoff, left)
        pool.close(closed)
        done = exact or len(candidates) > _MAX_ALL_PAIRS or len(bound.children(pool.cutoff, left)[1]) == 1
        if len(kept) <= left or (done and len(kept) == len(candidates)):
            return candidates[kept], bound
        candidates, projection, multipliers = candidates[kept], projection.restrict(kept), bound.multipliers
        exact = len(candidates) <= _MAX_ALL_PAIRS
