"""Weighted maximum coverage: find the s literals whose flips cover the most weight, with a proof or a gap."""

import heapq
import math
import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anchorline.errors import ParameterError, SampleError
from anchorline.optimize.coverage_bounds import bound_children, bound_members
from anchorline.optimize.exact import Limits, is_over
from anchorline.optimize.problem import Status

_Node = tuple[tuple[int, ...], np.ndarray]  # chosen literals, and the candidates that may still join them
TOLERANCE = 1e-10  # a node that cannot gain this share of the weight is closed, and its bound is kept
_MAX_EXACT_COUNT = 2**24  # float32 counts rows exactly up to this number
_EQUAL = 1e-12  # weights whose relative difference is at most this count as equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The chosen literals of one size, with ``covered <= best cover on the sample <= upper_bound``."""

    support: tuple[int, ...]
    covered: float
    upper_bound: float
    status: Status
    n_nodes: int = 0

    @property
    def gap(self) -> float:
        """Upper bound on how far the best cover on this sample is above this one."""
        return max(0.0, self.upper_bound - self.covered)


@dataclass(frozen=True, kw_only=True, eq=False)
class CoverageProblem:
    r"""Weighted rows, each covered by the literals that are flipped in it; the searches of all sizes share them.

    .. math:: \mathrm{cover}(S) = \sum_i \omega_i \max_{j \in S} F_{ij}

    Rows without weight or without a flip are left out, because no choice changes whether they are covered. Flips
    are stored as bits, n d / 8 bytes. If all weights are equal, products count rows in float32. Otherwise weights
    are rounded up to a grid of at most :math:`2^{-51}` of their sum. Both are exact in any order of summation, so
    the number of threads does not matter.
    """

    bits: np.ndarray
    weights: np.ndarray
    n_literals: int

    @classmethod
    def from_flips(cls, flips: np.ndarray, weights: np.ndarray) -> "CoverageProblem":
        """Store the rows (n, d) of 0/1 that matter, with their weights (n,) >= 0. Mutates nothing.

        Examples
        --------
        >>> CoverageProblem.from_flips([[1, 0], [0, 1], [0, 0]], [1.0, 0.0, 2.0]).weights.tolist()
        [1.0]
        """
        flips, weights = np.asarray(flips, dtype=bool), np.array(weights, dtype=np.float64)
        if flips.ndim != 2 or weights.shape != flips.shape[:1]:
            raise SampleError(
                f"Flips have shape {flips.shape} and weights have shape {weights.shape}. "
                "They must have the shapes (n, d) and (n,). Type one weight per row of flips."
            )
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise SampleError(
                "A weight is negative or not finite. Every weight must be finite and at least 0. "
                "Type the squared drops times the row weights."
            )
        grid = 2.0 ** max(math.frexp(float(weights.sum()))[1] - 52, -1000)
        weights, bits = np.ceil(weights / grid) * grid, np.packbits(flips, axis=1)
        rows = (weights > 0) & bits.any(axis=1)
        return cls(bits=bits[rows], weights=weights[rows], n_literals=flips.shape[1])

    def __post_init__(self) -> None:
        self.bits.setflags(write=False)
        self.weights.setflags(write=False)

    @cached_property
    def total(self) -> float:
        """The weight that all literals cover together."""
        return float(self.weights.sum())

    @cached_property
    def unit(self) -> float | None:
        """The common weight of the rows; None if the weights differ or there are too many rows."""
        if not len(self.weights) or len(self.weights) >= _MAX_EXACT_COUNT:
            return None
        low, high = self.weights.min(), self.weights.max()
        return float(self.weights.mean()) if high - low <= _EQUAL * low else None

    @cached_property
    def overlaps(self) -> np.ndarray:
        """Weight that two literals both cover (d, d), with single literals on the diagonal. Cost n d^2, once."""
        pairs = self.product(self.table(np.arange(len(self.weights)), np.arange(self.n_literals)))
        pairs.setflags(write=False)
        return pairs

    def table(self, rows: np.ndarray, literals: np.ndarray) -> np.ndarray:
        """Flips of some rows and literals as numbers, multiplied by the row weights unless those are all equal."""
        flips = np.unpackbits(self.bits[rows], axis=1, count=self.n_literals)
        if len(literals) < self.n_literals or (np.diff(literals) != 1).any():
            flips = flips.take(literals, axis=1)
        if self.unit is not None:
            return flips.astype(np.float32)
        return np.asarray(flips * self.weights[rows][:, None])

    def product(self, table: np.ndarray) -> np.ndarray:
        """Weight that two columns of a `table` both cover, in float64."""
        if self.unit is None:
            return np.asarray(table.T @ (table > 0).astype(np.float64))
        return np.asarray((table.T @ table).astype(np.float64) * self.unit)

    def covers(self, support: tuple[int, ...]) -> np.ndarray:
        """Whether the support covers each row (n,)."""
        covered = np.zeros(len(self.weights), dtype=bool)
        for literal in support:
            covered |= (self.bits[:, literal >> 3] & (128 >> (literal & 7))) != 0
        return covered

    def covered(self, support: tuple[int, ...]) -> float:
        """Weight that a support covers, summed over the rows in float64."""
        return float(self.weights[self.covers(support)].sum())


class _Search:
    """The best support so far, the open nodes, and the largest bound of the closed nodes."""

    def __init__(self, problem: CoverageProblem, size: int, limits: Limits) -> None:
        self.problem, self.size = problem, size
        self.deadline = np.inf if limits.time_limit is None else time.perf_counter() + limits.time_limit
        self.node_limit = np.inf if limits.node_limit is None else limits.node_limit
        self.support: tuple[int, ...] = ()
        self.best, self.closed, self.stopped = -np.inf, 0.0, False
        self.n_nodes = self.n_pushed = 0
        self.open: list[tuple[float, int, _Node]] = []

    @property
    def cutoff(self) -> float:
        """A node with a bound at or below the cutoff is closed."""
        return self.best + TOLERANCE * self.problem.total

    def close(self, bound: float) -> None:
        """Record the bound of a part of the search space that is not searched."""
        self.closed = max(self.closed, bound)

    def offer(self, support: tuple[int, ...]) -> None:
        """Keep a support of full size if it covers more.

        A shorter one is offered only if every full set holds a dropped literal, and is never kept.
        """
        covered = self.problem.covered(support)
        if covered > self.best and len(support) == self.size:
            self.best, self.support = covered, tuple(sorted(support))

    def push(self, bound: float, chosen: tuple[int, ...], candidates: np.ndarray) -> None:
        """Open a node."""
        self.n_pushed += 1
        heapq.heappush(self.open, (-bound, self.n_pushed, (chosen, candidates)))

    def visit(self) -> bool:
        """Count one more node and return True; return False, now and from then on, if a limit is reached."""
        limit_reached = self.n_nodes >= self.node_limit or is_over(self.deadline)
        self.stopped = self.stopped or limit_reached
        self.n_nodes += not self.stopped
        return not self.stopped


def solve_coverage(problem: CoverageProblem, size: int, limits: Limits) -> Coverage:
    r"""Find the ``size`` literals (or all, if there are fewer) that cover the most weight, by branch and bound.

    The search is best-first. It uses the bound of `bound_members` at every node and a closed form for the last
    two literals. The first incumbent is greedy selection, improved by single swaps. At a limit the upper bound is
    the largest bound of the open nodes. A node with n uncovered rows and m candidates costs p n m^2 when it is
    bounded among its siblings and n m^2 when it is opened; both count as a node.

    Examples
    --------
    >>> problem = CoverageProblem.from_flips([[1, 1, 0], [1, 0, 1], [0, 1, 0]], [1.0, 1.0, 2.0])
    >>> answer = solve_coverage(problem, 2, Limits())
    >>> answer.support, answer.covered, answer.status.name
    ((0, 1), 4.0, 'OPTIMAL')
    """
    if size < 0:
        raise ParameterError(f"size is {size}, but it must be at least 0. Type, say, size=3.")
    search = _Search(problem, min(size, problem.n_literals), limits)
    _first_guess(search)
    gains = np.diagonal(problem.overlaps)
    bound = np.sort(gains)[len(gains) - search.size :].sum()
    search.push(min(float(bound), problem.total), (), np.arange(problem.n_literals))
    while search.open and -search.open[0][0] > search.cutoff:
        if not search.visit():
            break
        _expand(search, -search.open[0][0], heapq.heappop(search.open)[2])
    if search.open:
        search.close(-search.open[0][0])
    return Coverage(
        support=search.support,
        covered=search.best,
        upper_bound=max(search.best, search.closed),
        status=Status.LIMIT if search.stopped else Status.OPTIMAL,
        n_nodes=search.n_nodes,
    )


def _first_guess(search: _Search) -> None:
    """Offer greedy selection, improved by the best single swap until no swap helps."""
    problem, size = search.problem, search.size
    table = problem.table(np.arange(len(problem.weights)), np.arange(problem.n_literals))
    chosen: tuple[int, ...] = ()
    while len(chosen) < size:
        gains = (~problem.covers(chosen)).astype(table.dtype) @ table
        gains[list(chosen)] = -1.0
        chosen = (*chosen, int(np.argmax(gains)))
    search.offer(chosen)
    while 0 < size < problem.n_literals and not is_over(np.inf):
        before, chosen = search.cutoff, search.support
        rests = [tuple(j for j in chosen if j != literal) for literal in chosen]
        missed = np.stack([~problem.covers(rest) for rest in rests]).astype(table.dtype)
        scale = 1.0 if problem.unit is None else problem.unit
        values = (missed @ table) * scale + np.array([[problem.covered(rest)] for rest in rests])
        values[:, list(chosen)] = -1.0
        position, literal = divmod(int(np.argmax(values)), problem.n_literals)
        search.offer((*rests[position], literal))
        if search.best <= before:
            return


def _expand(search: _Search, bound: float, node: _Node) -> None:
    """Close the node, or open its children."""
    problem, (chosen, candidates) = search.problem, node
    left = search.size - len(chosen)
    if len(candidates) <= left:  # taking all of them is at least as good as any subset
        return search.offer((*chosen, *candidates.tolist()))
    if left <= 2:  # true only at the root, because parents finish other nodes
        return _finish(search, 0.0, chosen, candidates, problem.overlaps, left)
    covers = problem.covers(chosen)
    base, rows = float(problem.weights[covers].sum()), np.flatnonzero(~covers)
    table = problem.table(rows, candidates) if chosen else None  # the overlaps of the root are known
    overlaps = problem.overlaps if table is None else problem.product(table)
    kept, bounds = _screen(search, base, overlaps, left)
    if len(kept) <= left:
        return search.offer((*chosen, *candidates[kept].tolist()))
    order = kept[np.argsort(-bounds, kind="stable")]
    table = problem.table(rows, candidates[order]) if table is None else table.take(order, axis=1)
    return _branch(search, bound, (chosen, candidates[order]), base, table, overlaps[np.ix_(order, order)])


def _branch(
    search: _Search, bound: float, node: _Node, base: float, table: np.ndarray, overlaps: np.ndarray
) -> None:
    """Open the children; each takes one candidate and drops the ones before it.

    The overlaps of a child are those of the node minus those on the rows that its own literal covers.
    """
    left, gains = search.size - len(node[0]), np.diagonal(overlaps)
    bounds = np.minimum(base + bound_children(overlaps, left), bound)
    buffer = np.empty((np.count_nonzero(table, axis=0).max(), table.shape[1]), table.dtype)
    for i, child_bound in enumerate(bounds.tolist()):
        chosen, candidates = (*node[0], int(node[1][i])), node[1][i + 1 :]
        if child_bound <= search.cutoff:
            search.close(child_bound)
        elif not search.visit():
            search.push(child_bound, chosen, candidates)
        elif left == 3:
            _finish_three(search, base + gains[i], chosen, candidates, table, overlaps, buffer)
        else:
            shared = _rows_with(table, i, buffer)[:, i + 1 :]
            pairs = overlaps[i + 1 :, i + 1 :] - search.problem.product(shared)
            kept, tighter = _screen(search, base + gains[i], pairs, left - 1)
            if len(kept) < left:
                search.offer((*chosen, *candidates[kept].tolist()))
            else:
                search.push(min(float(tighter.max()), child_bound), chosen, candidates[kept])


def _rows_with(table: np.ndarray, column: int, buffer: np.ndarray) -> np.ndarray:
    """The rows in which a column is flipped, written to ``buffer``, because a new array each time costs more."""
    rows = np.flatnonzero(table[:, column])
    return table.take(rows, axis=0, out=buffer[: len(rows)], mode="clip")  # other modes copy


def _finish_three(
    search: _Search,
    base: float,
    chosen: tuple[int, ...],
    candidates: np.ndarray,
    table: np.ndarray,
    overlaps: np.ndarray,
    buffer: np.ndarray,
) -> None:
    r"""Add the best two candidates after literal i, the last chosen one.

    ``table`` holds the rows that the literals chosen before i leave uncovered.

    Outside the rows of i, literals j and k overlap in
    :math:`g_{jk} - g_{ijk} \ge (g_{jk} - \min(g_{ij}, g_{ik}))_+`. Literals without a pair that is good enough
    under this bound (the best tree of Hunter's inequality) are left out of the product of the true overlaps.
    """
    i = len(overlaps) - len(candidates) - 1
    with_i, pairs = overlaps[i, i + 1 :], overlaps[i + 1 :, i + 1 :]
    gains = np.diagonal(pairs) - with_i
    outside = np.maximum(pairs - np.minimum(with_i[:, None], with_i), 0.0)
    bounds = base + (gains[:, None] + gains - outside).max(axis=1)
    kept = np.flatnonzero(bounds > search.cutoff)
    if not len(kept):
        return search.close(float(bounds.max()))
    if 2 * len(kept) > len(candidates):
        pairs = pairs - search.problem.product(_rows_with(table, i, buffer)[:, i + 1 :])
        return _finish(search, base, chosen, candidates, pairs, 2)
    search.close(float(np.delete(bounds, kept).max()))
    shared = table[np.flatnonzero(table[:, i])[:, None], kept + i + 1]
    pairs = pairs[np.ix_(kept, kept)] - search.problem.product(shared)
    return _finish(search, base, chosen, candidates[kept], pairs, 2)


def _finish(
    search: _Search, base: float, chosen: tuple[int, ...], candidates: np.ndarray, overlaps: np.ndarray, left: int
) -> None:
    """Add the best one or two candidates, which the overlaps determine."""
    values = np.diagonal(overlaps)[:, None]
    if left == 2:
        values = values + values.T - overlaps
        np.fill_diagonal(values, -np.inf)
    best = divmod(int(np.argmax(values)), values.shape[1])
    value = base + float(values[best])
    if value <= search.cutoff:
        return search.close(value)
    return search.offer((*chosen, *candidates[list(best[:left])].tolist()))


def _screen(search: _Search, base: float, overlaps: np.ndarray, left: int) -> tuple[np.ndarray, np.ndarray]:
    """Drop the candidates that no better set can hold, and repeat until no more can be dropped.

    Returns the positions of the kept candidates and their bounds.
    """
    kept = np.arange(len(overlaps))
    while True:
        bounds = np.minimum(base + bound_members(overlaps, left), search.problem.total)
        alive = bounds > search.cutoff
        if alive.all():
            return kept, bounds
        search.close(float(bounds[~alive].max()))
        kept, bounds = kept[alive], bounds[alive]
        if len(kept) <= left:
            return kept, bounds
        overlaps = overlaps[np.ix_(alive, alive)]
