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

MAX_ROWS = 2**13  # rows of the table that may donate; a random sample of larger tables
CANDIDATES = 128  # rows that are compared for one neighbor; a power of two
_PATTERNS = 1024  # patterns of draws that are compared at once, so that their keys stay in the cache
_LACKING = 2**TOTAL_BITS  # the cost of a way that a candidate lacks: more than all unlikeness
_MAX_LACKING = (
    62  # more are not counted, so that keys fit into 31 bits: lacking ways, unlikeness, place among the candidates
)
_WORST = (_MAX_LACKING + 1) * _LACKING - 1
_LACKING_BITS = TOTAL_BITS + CANDIDATES.bit_length() - 1  # where the number of lacking ways begins in a key


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
    _factors: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=dict)
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
        """Return the best donors per neighbor, among the candidates that have the rarest way that is wanted.

        The best lack the fewest ways, and are the most alike.
        """
        attributes, ways = self.outcomes.T
        needed = wanted[attributes] == ways[:, None]
        rarest = np.argsort(self._sizes, kind="stable")
        pivots = rarest[needed[rarest].argmax(axis=0)]
        order = np.argsort(pivots, kind="stable")
        needed = needed.T[order].astype(np.float32)
        is_settled = (draws != wanted)[attributes] & (draws[attributes] == ways[:, None])
        settled = is_settled.T[order].astype(np.float32) if is_settled.any() else None
        best = np.full((len(order), self.n_donors), np.iinfo(np.int32).max, dtype=np.int32)
        donors = np.empty(best.shape, dtype=np.intp)
        ends = [*(np.flatnonzero(np.diff(pivots[order])) + 1).tolist(), len(order)]
        for start, stop in itertools.pairwise([0, *ends]):
            pivot = int(pivots[order[start]])
            for first in range(start, stop, _PATTERNS):
                part = slice(first, min(first + _PATTERNS, stop))
                keys = self._keys(pivot, needed[part], None if settled is None else settled[part])
                best[part, : keys.shape[1]] = smallest_keys(keys, self.n_donors)
            candidates = self._candidates_of(pivot)
            donors[start:stop] = candidates[np.minimum(best[start:stop] & (CANDIDATES - 1), len(candidates) - 1)]
        lacking, back = best >> _LACKING_BITS, np.empty_like(order)
        back[order] = np.arange(len(order))
        counts = np.count_nonzero(lacking == lacking[:, :1], axis=1)
        return Ranked(donors[back], counts[back], lacking[back, 0] > 0)

    def _candidates_of(self, pivot: int) -> np.ndarray:
        """Return the rows with an outcome that come first in the order of ``ranks``, at most 128."""
        if pivot not in self._candidates:
            attribute, way = self.outcomes[pivot]
            rows = np.flatnonzero(self.ways[attribute] == way)
            keys = self.ranks[rows] - self.costs[attribute, rows].astype(np.uint32)  # below 2^17
            keys *= np.uint32(MAX_ROWS)
            keys += rows.astype(np.uint32)
            if len(keys) > CANDIDATES:
                keys.partition(CANDIDATES - 1)
            self._candidates[pivot] = (np.sort(keys[:CANDIDATES]) % MAX_ROWS).astype(np.intp)
        return self._candidates[pivot]

    def _keys(self, pivot: int, needed: np.ndarray, settled: np.ndarray | None) -> np.ndarray:
        """Return a number (n, candidates) per pattern and candidate: lacking ways, unlikeness, place.

        All numbers in the products are whole and have at most 24 bits, so that sums are exact in any order.
        """
        if pivot not in self._factors:
            candidates, (attributes, ways) = self._candidates_of(pivot), self.outcomes.T
            costs = self.costs[:, candidates][attributes].astype(np.float32)
            lacks = self.ways[:, candidates][attributes] != ways[:, None]
            penalties = _LACKING * lacks.astype(np.float32) - costs
            scale = np.float32(CANDIDATES)
            self._factors[pivot] = scale * penalties, scale * costs, scale * self.total[candidates]
        penalties, costs, total = self._factors[pivot]
        sums = needed @ penalties
        sums += total
        if settled is not None:
            sums -= settled @ costs
        if len(penalties) > _MAX_LACKING:
            np.minimum(sums, CANDIDATES * _WORST, out=sums)
        keys = sums.astype(np.int32)
        keys += np.arange(keys.shape[1], dtype=np.int32)
        return np.asarray(keys)


def smallest_keys(keys: np.ndarray, n: int) -> np.ndarray:
    """Return the n smallest keys of every row, sorted; changes the order of the given ones."""
    if keys.shape[1] > n:
        keys.partition(n - 1, axis=1)
    return np.sort(keys[:, :n], axis=1)


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
