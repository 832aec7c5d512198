"""Neighbors made of the row and one similar training row, whose values decide which literals break.

Which attributes take a new value is drawn before and independently. The donor breaks the literal of at least one
of them, and is one of the rows that are most like the instance in all others. Its values are taken as they are: a
value for which the literal is true leaves it unbroken.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anchorline.spaces.attributes import RandomWords
from anchorline.spaces.donors import BROKEN, MAX_BROKEN, MAX_ROWS, Donors, Ranked, some_smallest
from anchorline.spaces.natives import Cells

POOL = 256  # rows that are compared for one neighbor, unless more attributes may change
_PATTERNS = 1024  # patterns of draws that are compared at once, so that their keys stay in the cache
_MAX_BITS = 62  # attributes whose patterns are numbered; more have hardly any equal patterns
_WORST = (MAX_BROKEN + 1) * BROKEN  # the cost of a row that breaks no fact: more than all broken rules


@dataclass(frozen=True, eq=False)
class SimilarRows:
    """The training rows that may donate values to the neighbors of one row, with d attributes that may change.

    ``donors`` holds all N rows: their unlikeness per attribute, and the ways in which they differ. ``unit`` is the
    mean cost of an attribute.
    """

    donors: Donors
    unit: int

    @property
    def columns(self) -> np.ndarray:
        """The columns of the attributes, (largest group, d)."""
        return self.donors.columns

    @cached_property
    def pool(self) -> np.ndarray:
        """The rows that are compared, as places among the donors, in order.

        For every attribute, the rows that break its literal and are most like the instance in all others: as many
        as may donate, of at most 128 together, but one at least. Then, up to 256, the rows that are like the
        instance in most attributes: an attribute that may change counts at most as much as its mean cost.
        """
        costs, total, broken = self.donors.costs, self.donors.total, self.donors.ways != 0
        n_each = max(1, min(self.donors.n_donors, POOL // 2 // len(costs)))
        pairs = zip(costs, broken, strict=True)
        each = [_smallest(total - own, np.flatnonzero(breaks), n_each) for own, breaks in pairs]
        is_chosen = np.zeros(len(total), dtype=bool)
        is_chosen[np.concatenate(each)] = True
        typical = total - np.maximum(costs - self.unit, 0).sum(axis=0, dtype=total.dtype)
        rest = np.flatnonzero(broken.any(axis=0) & ~is_chosen)
        is_chosen[_smallest(typical, rest, max(0, POOL - int(is_chosen.sum())))] = True
        return np.flatnonzero(is_chosen)

    @cached_property
    def _scale(self) -> int:
        """A power of two that exceeds every place in the pool."""
        return 1 << (max(POOL, len(self.pool)) - 1).bit_length()

    @cached_property
    def _factors(self) -> tuple[np.ndarray, ...]:
        """What a drawn attribute takes from the key of a row, whether the row breaks it, and broken rules.

        The first line is the key if nothing is drawn: the cost of all attributes, and then the place in the pool.
        """
        scale, pool = self._scale, self.pool
        dtype = np.float32 if scale * BROKEN <= 2**24 else np.float64
        keys = np.vstack(
            [scale * self.donors.total[pool] + np.arange(len(pool)), -scale * self.donors.costs[:, pool]]
        )
        breaks = np.vstack([np.zeros(len(pool), dtype=bool), self.donors.ways[:, pool] != 0])
        broken = self.donors.rules.broken[:, pool].astype(np.float32)
        return keys.astype(dtype), breaks.astype(dtype), broken

    def cells(self, draws: np.ndarray, words: RandomWords) -> Iterator[Cells]:
        """Yield the cells to draw, given draws (d, n)."""
        yield from Cells.from_sources(self.columns, self.choose(draws, words))

    def choose(self, draws: np.ndarray, words: RandomWords) -> np.ndarray:
        """Return the row (d, n) from which each attribute takes its value, given draws (d, n); -1 where none.

        Every neighbor in which something is drawn takes one word, in order.
        """
        wanted = draws != 0
        sources = np.full(draws.shape, -1, dtype=np.int32)
        neighbors = np.flatnonzero(wanted.any(axis=0))
        if len(neighbors):
            wanted = wanted[:, neighbors]
            drawn = self.pool[self._ranked(wanted).drawn(words.take(len(neighbors)))]
            sources[:, neighbors] = np.where(wanted, self.donors.rows[drawn], -1)
        return sources

    def ways(self, sources: np.ndarray) -> np.ndarray:
        """Return in which way each attribute changes, (d, n), for what `choose` returns; 0: its literals hold."""
        places = np.searchsorted(self.donors.rows, np.maximum(sources.max(axis=0), self.donors.rows[0]))
        return np.asarray(self.donors.ways[:, places] * (sources >= 0))

    def _ranked(self, wanted: np.ndarray) -> Ranked:
        """Return the best donors per neighbor; equal draws have equal donors, which are sought once."""
        d, n = wanted.shape
        first = inverse = np.arange(n)
        if d <= _MAX_BITS:
            numbers = (1 << np.arange(d, dtype=np.int64)) @ wanted
            _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
        patterns = wanted[:, first].T
        best = np.concatenate([self._best(patterns[i : i + _PATTERNS]) for i in range(0, len(first), _PATTERNS)])
        ranked = Ranked.of(best, self._scale, np.zeros(len(first), dtype=np.intp))
        return Ranked(*(each[inverse] for each in ranked))

    def _best(self, wanted: np.ndarray) -> np.ndarray:
        """Return the smallest keys per pattern (n, d), sorted: broken rules, the cost of what is kept, the place.

        All numbers in the products are whole and have at most as many bits as a float holds, so that sums are
        exact in any order. Rows that break no fact about what is drawn come last.
        """
        costs, breaks, broken = self._factors
        patterns = np.empty((len(wanted), 1 + wanted.shape[1]), dtype=costs.dtype)
        patterns[:, 0], patterns[:, 1:] = 1, wanted
        keys = (patterns @ costs).astype(np.int32 if costs.dtype == np.float32 else np.int64)
        if len(broken):
            rules = self.donors.rules
            keys += self._scale * rules.costs(rules.at_stake(wanted, wanted), broken).astype(keys.dtype)
        keys[patterns @ breaks == 0] = self._scale * _WORST
        return np.sort(some_smallest(keys, self.donors.n_donors), axis=1)


def _smallest(costs: np.ndarray, rows: np.ndarray, n: int) -> np.ndarray:
    """Return the n of some rows whose costs (N,) are smallest; among equal ones, the first rows win."""
    keys = costs[rows].astype(np.uint32) * np.uint32(MAX_ROWS) + rows.astype(np.uint32)
    if len(keys) > n > 0:
        keys.partition(n - 1)
    return np.asarray(keys[:n] % MAX_ROWS, dtype=np.intp)
