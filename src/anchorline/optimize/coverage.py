"""Weighted maximum coverage: the s literals whose flips cover the most weight, with a proof or a gap."""

import heapq
import math
import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anchorline.errors import ParameterError, SampleError
from anchorline.optimize.exact import Limits
from anchorline.optimize.problem import Status

_Node = tuple[tuple[int, ...], np.ndarray]  # chosen literals, and the ones that may still join them
TOLERANCE = 1e-10  # what cannot gain this share of the weight is closed; its bound is kept
_COUNTABLE = 2**24  # float32 counts rows exactly up to here
_FEW = 1e-12  # weights this close are equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The literals found for one size: ``covered <= best cover on the sample <= upper_bound``."""

    support: tuple[int, ...]
    covered: float
    upper_bound: float
    status: Status
    n_nodes: int = 0

    @property
    def gap(self) -> float:
        """How far the best cover on this sample may be above this one."""
        return max(0.0, self.upper_bound - self.covered)


@dataclass(frozen=True, kw_only=True, eq=False)
class CoverageProblem:
    r"""Rows with weights, each covered by the literals flipped in it; shared by the searches of all sizes.

    .. math:: \mathrm{cover}(S) = \sum_i \omega_i \max_{j \in S} F_{ij}

    Rows without weight or without a flip are left out: no choice covers or misses them. Flips are kept
    as bits, n d / 8 bytes. Where all weights are equal, products count rows in float32; else weights are
    rounded up to a grid of at most :math:`2^{-51}` of their sum. Both are exact in any order, so by any
    number of threads.
    """

    bits: np.ndarray
    weights: np.ndarray
    n_literals: int

    @classmethod
    def of(cls, flips: np.ndarray, weights: np.ndarray) -> "CoverageProblem":
        """Keep the rows (n, d) of 0/1 that matter, with their weights (n,) >= 0. Mutates nothing.

        Examples
        --------
        >>> CoverageProblem.of([[1, 0], [0, 1], [0, 0]], [1.0, 0.0, 2.0]).weights.tolist()
        [1.0]
        """
        flips, weights = np.asarray(flips, dtype=bool), np.array(weights, dtype=np.float64)
        if flips.ndim != 2 or weights.shape != flips.shape[:1]:
            raise SampleError(f"Flips {flips.shape} and weights {weights.shape}; needed (n, d) and (n,).")
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise SampleError("A weight is negative or not finite; pass squared drops times row weights.")
        grid = 2.0 ** max(math.frexp(float(weights.sum()))[1] - 52, -1000)
        weights, bits = np.ceil(weights / grid) * grid, np.packbits(flips, axis=1)
        rows = (weights > 0) & bits.any(axis=1)
        return cls(bits=bits[rows], weights=weights[rows], n_literals=flips.shape[1])

    def __post_init__(self) -> None:
        self.bits.setflags(write=False)
        self.weights.setflags(write=False)

    @cached_property
    def total(self) -> float:
        """The weight that all literals together cover."""
        return float(self.weights.sum())

    @cached_property
    def unit(self) -> float | None:
        """The weight of every row where it is the same, else None."""
        if not len(self.weights) or len(self.weights) >= _COUNTABLE:
            return None
        low, high = self.weights.min(), self.weights.max()
        return float(self.weights.mean()) if high - low <= _FEW * low else None

    @cached_property
    def overlaps(self) -> np.ndarray:
        """Weight covered by both of two literals (d, d), by one on the diagonal. Cost n d^2, once."""
        pairs = self.product(self.table(np.arange(len(self.weights)), np.arange(self.n_literals)))
        pairs.setflags(write=False)
        return pairs

    def table(self, rows: np.ndarray, literals: np.ndarray) -> np.ndarray:
        """Flips of some rows and literals as numbers, times the row's weight unless equal."""
        flips = np.unpackbits(self.bits[rows], axis=1, count=self.n_literals)
        if len(literals) < self.n_literals or (np.diff(literals) != 1).any():
            flips = flips.take(literals, axis=1)
        if self.unit is not None:
            return flips.astype(np.float32)
        return np.asarray(flips * self.weights[rows][:, None])

    def product(self, table: np.ndarray) -> np.ndarray:
        """Weight covered by both of two columns of a `table`, in float64."""
        if self.unit is None:
            return np.asarray(table.T @ (table > 0).astype(np.float64))
        return np.asarray((table.T @ table).astype(np.float64) * self.unit)

    def covers(self, support: tuple[int, ...]) -> np.ndarray:
        """Whether each row is covered (n,)."""
        covered = np.zeros(len(self.weights), dtype=bool)
        for literal in support:
            covered |= (self.bits[:, literal >> 3] & (128 >> (literal & 7))) != 0
        return covered

    def covered(self, support: tuple[int, ...]) -> float:
        """Weight covered by a support, summed from the rows in float64."""
        return float(self.weights[self.covers(support)].sum())


class _Search:
    """The best support so far, the open nodes, and the largest bound among what was closed."""

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
        """Bounds at or below this close a node."""
        return self.best + TOLERANCE * self.problem.total

    def close(self, bound: float) -> None:
        """Remember the bound of something that is not searched."""
        self.closed = max(self.closed, bound)

    def offer(self, support: tuple[int, ...]) -> None:
        """Keep a support if it is whole (else some dropped literal is in every set) and covers more."""
        covered = self.problem.covered(support)
        if covered > self.best and len(support) == self.size:
            self.best, self.support = covered, tuple(sorted(support))

    def push(self, bound: float, chosen: tuple[int, ...], candidates: np.ndarray) -> None:
        """Open a node."""
        self.n_pushed += 1
        heapq.heappush(self.open, (-bound, self.n_pushed, (chosen, candidates)))

    def visit(self) -> bool:
        """Count one node more, unless a limit forbids it; that is remembered."""
        late = self.n_nodes >= self.node_limit or time.perf_counter() > self.deadline
        self.stopped = self.stopped or late
        self.n_nodes += not self.stopped
        return not self.stopped


def solve_coverage(problem: CoverageProblem, size: int, limits: Limits) -> Coverage:
    r"""Find the ``size`` literals (all, if there are fewer) that cover the most weight, by branch and bound.

    Best-first, with the bound of `bound_members` at every node and a closed form for the last two
    literals; the first incumbent is greedy selection improved by single swaps. At a limit the upper
    bound is the largest over open nodes. A node, with n uncovered rows and m candidates, is one product:
    p n m^2 when it is bounded, among its siblings, and n m^2 again when it is opened; each counts.

    Examples
    --------
    >>> problem = CoverageProblem.of([[1, 1, 0], [1, 0, 1], [0, 1, 0]], [1.0, 1.0, 2.0])
    >>> answer = solve_coverage(problem, 2, Limits())
    >>> answer.support, answer.covered, answer.status.name
    ((0, 1), 4.0, 'OPTIMAL')
    """
    if size < 0:
        raise ParameterError(f"size is {size}; needed 0 or more.")
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


def bound_members(overlaps: np.ndarray, size: int) -> np.ndarray:
    r"""Bound, for each literal, the cover of every set of ``size`` literals that holds it.

    A row that :math:`1 \le c \le r` literals of T cover counts :math:`c - \frac2r\binom c2 =
    c (r + 1 - c) / r` in the sum below, which is concave in c and 1 at both c = 1 and c = r, hence at
    least 1; a row that none covers counts 0. So (Kwerel's inequality) for :math:`|T| = r`

    .. math:: \mathrm{cover}(T) \le \sum_{i \in T} g_i - \frac2r \sum_{\{i, k\} \subseteq T} g_{ik}

    With j in T, twice the overlaps among the others are at least the r - 2 smallest of each of them:

    .. math:: \mathrm{cover}(T) \le g_j + \sum_{i \in T \setminus j}
              \Bigl(g_i - \frac2r g_{ij} - \frac1r \min_{|K| = r - 2} \sum_{k \in K} g_{ik}\Bigr)

    and the r - 1 largest terms bound them all. So do those of :math:`g_i - g_{ij}`, the gains once j is
    chosen; the smaller of the two is returned. For r = 2 it is the best pair's cover itself.
    ``overlaps`` (m, m), m >= r, has the gains on its diagonal. Cost m^2. Mutates nothing.

    Examples
    --------
    >>> bound_members(np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 1.0]]), 2).tolist()
    [3.0, 3.0, 3.0]
    """
    gains = np.diagonal(overlaps)
    if size == 1:
        return np.array(gains)
    kwerel, star = (_sum_of_largest(terms, size - 1) for terms in _others(overlaps, size))
    return np.asarray(gains + np.minimum(kwerel, star))


def _others(overlaps: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The two kinds of terms of `bound_members`, for each j (rows) and i (columns), -inf where i = j."""
    lonely = gains = np.diagonal(overlaps)
    if size > 2:
        pairs = overlaps.copy()
        np.fill_diagonal(pairs, np.inf)
        pairs.partition(size - 3, axis=1)
        lonely = gains - pairs[:, : size - 2].sum(axis=1) / size
    kwerel = lonely - (2.0 / size) * overlaps
    star = gains - overlaps
    np.fill_diagonal(kwerel, -np.inf)
    np.fill_diagonal(star, -np.inf)
    return kwerel, star


def _sum_of_largest(terms: np.ndarray, count: int) -> np.ndarray:
    """Sum of the ``count`` largest entries of each row."""
    if count == 1:
        return np.asarray(terms.max(axis=1))
    first = terms.shape[1] - count
    return np.asarray(np.partition(terms, first, axis=1)[:, first:].sum(axis=1))


def _first_guess(search: _Search) -> None:
    """Offer greedy selection, improved by the best single swap while one helps."""
    problem, size = search.problem, search.size
    table = problem.table(np.arange(len(problem.weights)), np.arange(problem.n_literals))
    chosen: tuple[int, ...] = ()
    while len(chosen) < size:
        gains = (~problem.covers(chosen)).astype(table.dtype) @ table
        gains[list(chosen)] = -1.0
        chosen = (*chosen, int(np.argmax(gains)))
    search.offer(chosen)
    while 0 < size < problem.n_literals:
        before, chosen = search.cutoff, search.support
        rests = [tuple(j for j in chosen if j != literal) for literal in chosen]
        missed = np.stack([~problem.covers(rest) for rest in rests]).astype(table.dtype)
        scale = 1.0 if problem.unit is None else problem.unit
        values = (missed @ table) * scale + np.array([[problem.covered(rest)] for rest in rests])
        values[:, list(chosen)] = -1.0
        place, literal = divmod(int(np.argmax(values)), problem.n_literals)
        search.offer((*rests[place], literal))
        if search.best <= before:
            return


def _expand(search: _Search, bound: float, node: _Node) -> None:
    """Close the node, or open its children."""
    problem, (chosen, candidates) = search.problem, node
    left = search.size - len(chosen)
    if len(candidates) <= left:  # all of them together dominate every subset
        return search.offer((*chosen, *candidates.tolist()))
    if left <= 2:  # only the root: elsewhere the parent finishes
        return _finish(search, 0.0, chosen, candidates, problem.overlaps, left)
    covers = problem.covers(chosen)
    base, rows = float(problem.weights[covers].sum()), np.flatnonzero(~covers)
    table = problem.table(rows, candidates) if chosen else None  # the root's overlaps are known
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
    """Open the children: each takes one candidate and drops those before it.

    A child's overlaps are the node's less those on the rows its own literal covers.
    """
    left, gains = search.size - len(node[0]), np.diagonal(overlaps)
    bounds = np.minimum(base + _bound_children(overlaps, left), bound)
    room = np.empty((np.count_nonzero(table, axis=0).max(), table.shape[1]), table.dtype)
    for i, child_bound in enumerate(bounds.tolist()):
        chosen, candidates = (*node[0], int(node[1][i])), node[1][i + 1 :]
        if child_bound <= search.cutoff:
            search.close(child_bound)
        elif not search.visit():
            search.push(child_bound, chosen, candidates)
        elif left == 3:
            _finish_three(search, base + gains[i], chosen, candidates, table, overlaps, room)
        else:
            shared = _rows_with(table, i, room)[:, i + 1 :]
            pairs = overlaps[i + 1 :, i + 1 :] - search.problem.product(shared)
            kept, sharper = _screen(search, base + gains[i], pairs, left - 1)
            if len(kept) < left:
                search.offer((*chosen, *candidates[kept].tolist()))
            else:
                search.push(min(float(sharper.max()), child_bound), chosen, candidates[kept])


def _bound_children(overlaps: np.ndarray, left: int) -> np.ndarray:
    """Bound sets by their first literal: `bound_members` with later literals only, where enough follow."""
    n_children = len(overlaps) - left + 1
    later = np.triu(np.ones((n_children, len(overlaps)), dtype=bool), 1)
    kwerel, star = (
        _sum_of_largest(np.where(later, terms[:n_children], -np.inf), left - 1)
        for terms in _others(overlaps, left)
    )
    return np.asarray(np.diagonal(overlaps)[:n_children] + np.minimum(kwerel, star))


def _rows_with(table: np.ndarray, column: int, room: np.ndarray) -> np.ndarray:
    """The rows in which a column is flipped, written to ``room``: a new array each time costs more."""
    rows = np.flatnonzero(table[:, column])
    return table.take(rows, axis=0, out=room[: len(rows)], mode="clip")  # clip: the mode without a buffer


def _finish_three(
    search: _Search,
    base: float,
    chosen: tuple[int, ...],
    candidates: np.ndarray,
    table: np.ndarray,
    overlaps: np.ndarray,
    room: np.ndarray,
) -> None:
    r"""Add the best two candidates after literal i, the last chosen; ``table`` has the rows missed before i.

    Outside i, j and k overlap in :math:`g_{jk} - g_{ijk} \ge (g_{jk} - \min(g_{ij}, g_{ik}))_+`. Literals
    that make no pair good enough with this (the best tree of Hunter's inequality) are left out of the
    product that tells the true overlaps.
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
        pairs = pairs - search.problem.product(_rows_with(table, i, room)[:, i + 1 :])
        return _finish(search, base, chosen, candidates, pairs, 2)
    search.close(float(np.delete(bounds, kept).max()))
    shared = table[np.flatnonzero(table[:, i])[:, None], kept + i + 1]
    pairs = pairs[np.ix_(kept, kept)] - search.problem.product(shared)
    return _finish(search, base, chosen, candidates[kept], pairs, 2)


def _finish(
    search: _Search, base: float, chosen: tuple[int, ...], candidates: np.ndarray, overlaps: np.ndarray, left: int
) -> None:
    """Add the best one or two candidates, told by the overlaps alone."""
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
    """Drop candidates no better set can hold, again with what is left, to a fixed point; their bounds."""
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
