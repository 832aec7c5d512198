"""Best-first branch and bound, which proves the best explanation of at most k terms."""

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from anchorline.errors import NumericalError
from anchorline.paper.bounds import Bound, Centered, Node, Projection, cheap_rho, climb, exact_rho, project, saddle
from anchorline.paper.problem import UNLIMITED, Limits, Problem, Solution, Status, Variant

_TOLERANCE = 1e-10  # a node that cannot gain this share of mean t^2 is closed, and its bound is kept
_MAX_GAP = 1e-9  # a proof that leaves a larger gap, as a share of mean t^2, is none
_SHARP = 1e-12  # rounding errors that change the objective by a smaller share do not matter
_FEW_CANDIDATES = 64  # for at most this many, computing all pairs at once is as cheap as the cheap bound first
_MAX_ALL_PAIRS = 400  # all pairwise correlations of a node are computed for at most this many candidates
_NODES_BEFORE_RESTART = 32  # most proofs end sooner; the others start again here from a better first guess

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
    """Improve the incumbent; return the number of nodes and whether a limit stopped the search."""
    deadline = np.inf if limits.time_limit is None else time.perf_counter() + limits.time_limit
    max_nodes = np.inf if limits.node_limit is None else limits.node_limit
    attempts = [(False, _NODES_BEFORE_RESTART), (True, max_nodes)]  # whether the first guess uses swaps; nodes
    attempts = attempts if max_nodes > _NODES_BEFORE_RESTART else attempts[1:]
    centered = Centered.from_evidence(problem.evidence)
    guesses: list[tuple[int, ...]] = [(), ()]
    n_nodes, proven, stopped, open_nodes = 0, 0.0, False, Queue()
    for swap, until in attempts:
        roots = _roots(centered, guesses, best, swap=swap)
        open_nodes = [(proven, order, root) for order, root in enumerate(roots)]
        n_nodes += _branch(centered, open_nodes, best, until - n_nodes, deadline)
        stopped = bool(open_nodes) and open_nodes[0][0] < best.cutoff
        if not stopped or time.perf_counter() > deadline:
            break
        proven = open_nodes[0][0]  # bounds every open node; closed nodes are above the cutoff
    if open_nodes:
        best.close(open_nodes[0][0])
    return n_nodes, stopped


def _branch(centered: Centered, open_nodes: Queue, best: _Incumbent, max_nodes: float, deadline: float) -> int:
    """Expand the node of smallest bound until no node can gain or a limit is reached; return the node count."""
    n_nodes, order = 0, len(open_nodes)
    while (
        open_nodes and open_nodes[0][0] < best.cutoff and n_nodes < max_nodes and time.perf_counter() <= deadline
    ):
        best.check()
        bound, _, node = heapq.heappop(open_nodes)
        n_nodes += 1
        for child_bound, child in _expand(centered, node, best):
            order += 1
            heapq.heappush(open_nodes, (max(bound, child_bound), order, child))
    return n_nodes


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
