"""Values for neighbors that could exist: all attributes that change take them from one training row, a donor.

Which attributes change, and in which way, is drawn before and independently. A donor has the wanted ways, and is
one of the rows that are most like the instance in the attributes that do not change.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from anchorline.spaces.attributes import RandomWords
from anchorline.spaces.likeness import TOTAL_BITS
from anchorline.spaces.natives import Cells

MAX_ROWS = 2**15  # rows of the table that may donate; a random sample of larger tables
BLOCK = 512  # candidates that are compared at once
MAX_CANDIDATES = 4 * BLOCK
_PATTERNS = 4096  # patterns of draws that are compared at once
_LACKING = 2**TOTAL_BITS  # the cost of a way that a candidate lacks: more than all unlikeness
_MAX_LACKING = (
    62  # more are not counted, so that keys fit into 31 bits: lacking ways, unlikeness, place in a block
)
_WORST = (_MAX_LACKING + 1) * _LACKING - 1
_LACKING_BITS = TOTAL_BITS + 9  # where the number of lacking ways begins in a key


@dataclass(frozen=True, eq=False)
class Donors:
    """The N rows that may donate values to the neighbors of one row, with d attributes that may change.

    ``costs`` (d, N) are the rows' unlikeness per attribute, and ``total`` (N,) that of all attributes together.
    ``ways`` (d, N) says in which way a row differs from the instance, or 0. ``outcomes`` (o, 2) lists the
    attribute and the way of everything that can be drawn. ``columns`` (largest group, d) are the columns of the
    attributes. ``ranks`` (N,) is the order in which rows are looked at: their unlikeness, and three quarters of
    the mean cost per attribute in which they do not differ, because rows that differ have more wanted ways.
    """

    rows: np.ndarray
    costs: np.ndarray
    total: np.ndarray
    ranks: np.ndarray
    ways: np.ndarray
    outcomes: np.ndarray
    columns: np.ndarray
    n_donors: int
    _blocks: dict[tuple[int, int], tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=dict)
    _candidates: dict[int, np.ndarray] = field(default_factory=dict)

    def cells(self, draws: np.ndarray, words: RandomWords) -> Iterator[Cells]:
        """Yield the cells to draw, given draws (d, n)."""
        yield from Cells.from_sources(self.columns, self.choose(draws, words))

    def choose(self, draws: np.ndarray, words: RandomWords) -> np.ndarray:
        """Return the row (d, n) from which each attribute takes its value, given draws (d, n); -1 where none.

        Every round chooses one donor per neighbor that still needs one, in order, and takes one word for each.
        The donor gives all values that are wanted and that it has.
        """
        wanted = draws.astype(self.ways.dtype)
        if not self._sizes.all():
            wanted[~self._exists(draws)] = 0
        sources = np.full(draws.shape, -1, dtype=np.int32)
        neighbors = np.flatnonzero(wanted.any(axis=0))
        while len(neighbors):
            each = slice(None) if len(neighbors) == draws.shape[1] else neighbors
            ranked = self._ranked(draws[:, each], wanted[:, each])
            donors = ranked.drawn(words.take(len(neighbors)))
            given = wanted[:, each] != 0
            lacking = np.flatnonzero(ranked.is_lacking)
            given[:, lacking] = self.ways[:, donors[lacking]] == wanted[:, neighbors[lacking]]
            given[:, lacking] &= wanted[:, neighbors[lacking]] != 0
            sources[:, each] = np.where(given, self.rows[donors], sources[:, each])
            neighbors = neighbors[lacking]
            wanted[:, neighbors] *= ~given[:, lacking]
        return sources

    def _exists(self, draws: np.ndarray) -> np.ndarray:
        """Return which drawn ways some row has; only a way in which a value stays as it is can have none."""
        n_ways = int(self.outcomes[:, 1].max()) + 1
        sizes = np.zeros((len(self.ways), n_ways), dtype=np.intp)
        sizes[self.outcomes[:, 0], self.outcomes[:, 1]] = self._sizes
        return np.asarray(np.take_along_axis(sizes, draws.astype(np.intp), axis=1) > 0)

    @cached_property
    def _sizes(self) -> np.ndarray:
        """How many rows have each outcome, (o,)."""
        return np.array([np.count_nonzero(self.ways[i] == way) for i, way in self.outcomes], dtype=np.intp)

    @cached_property
    def _bases(self) -> np.ndarray | None:
        """Factors (d,) that number all patterns of draws; None if there are too many of them."""
        n_ways = np.bincount(self.outcomes[:, 0], minlength=len(self.ways)) + 1
        exact = np.cumprod(n_ways.astype(object))
        return None if exact[-1] >= 2**62 else np.array([1, *exact[:-1]], dtype=np.int64)

    def _ranked(self, draws: np.ndarray, wanted: np.ndarray) -> "Ranked":
        """Return the best donors per neighbor; equal draws have equal donors, which are sought once."""
        if self._bases is None or (wanted != draws).any():
            return self._nearest(draws, wanted)
        _, first, inverse = np.unique(self._bases @ draws, return_index=True, return_inverse=True)
        ranked = self._nearest(draws[:, first], wanted[:, first])
        return Ranked(ranked.donors[inverse], ranked.counts[inverse], ranked.is_lacking[inverse])

    def _nearest(self, draws: np.ndarray, wanted: np.ndarray) -> "Ranked":
        """Return the best donors per neighbor, among the candidates that have the rarest way that is wanted."""
        attributes, ways = self.outcomes.T
        needed = wanted[attributes] == ways[:, None]
        rarest = np.argsort(self._sizes, kind="stable")
        pivots = rarest[needed[rarest].argmax(axis=0)]
        order = np.argsort(pivots, kind="stable")
        needed = np.ascontiguousarray(needed.T)[order]
        settled = ((draws != wanted)[attributes] & (draws[attributes] == ways[:, None])).T[order]
        found = []
        ends = [*(np.flatnonzero(np.diff(pivots[order])) + 1).tolist(), len(order)]
        for start, stop in itertools.pairwise([0, *ends]):
            for first in range(start, stop, _PATTERNS):
                part = slice(first, min(first + _PATTERNS, stop))
                found.append(self._look(int(pivots[order[start]]), needed[part], settled[part]))
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return Ranked(*(np.concatenate(parts)[back] for parts in zip(*found, strict=True)))

    def _look(self, pivot: int, needed: np.ndarray, settled: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return donors, counts and lack of one pivot: those lacking the fewest ways, the most alike first.

        If no candidate of a block has all needed ways, the next block is looked at. Donors come from one block.
        """
        candidates = self._candidates_of(pivot)
        needed = needed.astype(np.float32)
        settled_too = settled.astype(np.float32) if settled.any() else None
        best = self._best_of_block(pivot, 0, needed, settled_too)
        starts = np.zeros((len(needed), 1), dtype=np.intp)
        for first in range(BLOCK, len(candidates), BLOCK):
            open_ = np.flatnonzero(best[:, 0] >> _LACKING_BITS)
            if not len(open_):
                break
            part = None if settled_too is None else settled_too[open_]
            keys = self._best_of_block(pivot, first, needed[open_], part)
            lacks_fewer = keys[:, 0] >> _LACKING_BITS < best[open_, 0] >> _LACKING_BITS
            best[open_[lacks_fewer]], starts[open_[lacks_fewer]] = keys[lacks_fewer], first
        lacking = best >> _LACKING_BITS
        counts = np.count_nonzero(lacking == lacking[:, :1], axis=1)
        places = np.minimum((best & (BLOCK - 1)) + starts, len(candidates) - 1)
        return candidates[places], counts, lacking[:, 0] > 0

    def _best_of_block(self, pivot: int, first: int, needed: np.ndarray, settled: np.ndarray | None) -> np.ndarray:
        """Return the smallest keys of one block, sorted, (n, n_donors); missing ones are larger than any key."""
        keys, m = self._keys(pivot, first, needed, settled), self.n_donors
        if keys.shape[1] > m:
            keys.partition(m - 1, axis=1)
        best = np.sort(keys[:, :m], axis=1)
        if best.shape[1] == m:
            return best
        return np.pad(best, ((0, 0), (0, m - best.shape[1])), constant_values=np.iinfo(np.int32).max)

    def _candidates_of(self, pivot: int) -> np.ndarray:
        """Return the rows with an outcome, in the order in which they are looked at; at most 2,048."""
        if pivot not in self._candidates:
            attribute, way = self.outcomes[pivot]
            rows = np.flatnonzero(self.ways[attribute] == way)
            keys = self.ranks[rows] - self.costs[attribute, rows].astype(np.uint32)  # below 2^17
            keys *= np.uint32(MAX_ROWS)
            keys += rows.astype(np.uint32)
            if len(keys) > MAX_CANDIDATES:
                keys.partition(MAX_CANDIDATES - 1)
            self._candidates[pivot] = (np.sort(keys[:MAX_CANDIDATES]) % MAX_ROWS).astype(np.intp)
        return self._candidates[pivot]

    def _keys(self, pivot: int, first: int, needed: np.ndarray, settled: np.ndarray | None) -> np.ndarray:
        """Return a number (n, block) per pattern and candidate: lacking ways, unlikeness, place in the block.

        All numbers in the products are whole and have at most 24 bits, so that sums are exact in any order.
        """
        if (pivot, first) not in self._blocks:
            block, (attributes, ways) = self._candidates_of(pivot)[first : first + BLOCK], self.outcomes.T
            costs = self.costs[:, block][attributes].astype(np.float32)
            lacks = self.ways[:, block][attributes] != ways[:, None]
            penalties = _LACKING * lacks.astype(np.float32) - costs
            self._blocks[pivot, first] = BLOCK * penalties, BLOCK * costs, np.float32(BLOCK) * self.total[block]
        penalties, costs, total = self._blocks[pivot, first]
        sums = needed @ penalties
        sums += total
        if settled is not None:
            sums -= settled @ costs
        if len(penalties) > _MAX_LACKING:
            np.minimum(sums, BLOCK * _WORST, out=sums)
        keys = sums.astype(np.int32)
        keys += np.arange(keys.shape[1], dtype=np.int32)
        return np.asarray(keys)


class Ranked(NamedTuple):
    """Donors of n neighbors, (n, n_donors), the best first; how many there are; whether they lack wanted ways."""

    donors: np.ndarray
    counts: np.ndarray
    is_lacking: np.ndarray

    def drawn(self, words: np.ndarray) -> np.ndarray:
        """Return one donor per neighbor, (n,): of c donors, the one with rank i is drawn with weight c - i."""
        m = self.donors.shape[1]
        ends = np.cumsum(np.maximum(np.arange(m + 1)[:, None] - np.arange(m), 0), axis=1)
        at = words.astype(np.uint64) * ends[self.counts, -1].astype(np.uint64) >> np.uint64(32)
        ranks = np.count_nonzero(ends[self.counts] <= at[:, None].astype(np.intp), axis=1)
        return np.asarray(self.donors[np.arange(len(ranks)), ranks])
