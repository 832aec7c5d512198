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
from anchorline.spaces.donors import MAX_ROWS, Donors, Ranked
from anchorline.spaces.likeness import TOTAL_BITS
from anchorline.spaces.natives import Cells

POOL = 1024  # rows that are compared per neighbor
_MAX_POOL = 4096  # if the rows that break each single attribute are more than 1,024
_PATTERNS = 4096  # patterns of draws that are compared at once
_MAX_BITS = 62  # attributes whose patterns are numbered; more have hardly any equal patterns
_COST = 2**TOTAL_BITS
_PLACE_BITS = 30 - TOTAL_BITS  # a key is a cost and a place in the pool, in 31 bits
_NONE = np.iinfo(np.int32).max  # the key of a row that breaks no drawn literal: larger than any other


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
        as may donate, of at most 4,096 together. Then, up to 1,024, the rows that are like the instance in most
        attributes: an attribute that may change counts at most as much as its mean cost.
        """
        costs, total, broken = self.donors.costs, self.donors.total, self.donors.ways != 0
        n_each = max(1, min(self.donors.n_donors, _MAX_POOL // len(costs)))
        pairs = zip(costs, broken, strict=True)
        each = [_smallest(total - own, np.flatnonzero(breaks), n_each) for own, breaks in pairs]
        chosen = np.unique(np.concatenate(each))
        rest = np.setdiff1d(np.flatnonzero(broken.any(axis=0)), chosen)
        typical = total - np.maximum(costs - self.unit, 0).sum(axis=0, dtype=total.dtype)
        return np.union1d(chosen, _smallest(typical, rest, max(0, POOL - len(chosen))))

    @cached_property
    def _factors(self) -> np.ndarray:
        """What a drawn attribute adds to the key of a row, (d, pool): 2^16 if the row breaks it, less its cost."""
        dtype = np.float32 if len(self.donors.costs) < 2 ** (24 - TOTAL_BITS) else np.float64
        broken, costs = self.donors.ways[:, self.pool] != 0, self.donors.costs[:, self.pool]
        return np.asarray(_COST * broken.astype(dtype) - costs.astype(dtype))

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
            drawn = self._ranked(wanted).drawn(words.take(len(neighbors)))
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
        parts = [self._best(wanted[:, first[i : i + _PATTERNS]]) for i in range(0, len(first), _PATTERNS)]
        best = np.concatenate(parts)
        counts = np.count_nonzero(best != _NONE, axis=1)
        donors = self.pool[np.minimum(best & (2**_PLACE_BITS - 1), len(self.pool) - 1)]
        return Ranked(donors[inverse], counts[inverse], np.zeros(n, dtype=bool))

    def _best(self, wanted: np.ndarray) -> np.ndarray:
        """Return the smallest keys per pattern (d, n), sorted; a key is the cost of what is kept, then the place.

        All numbers in the product are whole and have at most 24 bits, so that sums are exact in any order.
        """
        keys = (wanted.T.astype(self._factors.dtype) @ self._factors).astype(np.int32)
        keys -= 1
        breaks_none = keys < 0
        keys &= _COST - 1  # 2^16 - 1 less the cost of what is drawn
        keys += (self.donors.total[self.pool] - (_COST - 1)).astype(np.int32)
        keys <<= _PLACE_BITS
        keys += np.arange(keys.shape[1], dtype=np.int32)
        keys[breaks_none] = _NONE
        m = min(self.donors.n_donors, keys.shape[1])
        if keys.shape[1] > m:
            keys.partition(m - 1, axis=1)
        return np.sort(keys[:, :m], axis=1)


def _smallest(costs: np.ndarray, rows: np.ndarray, n: int) -> np.ndarray:
    """Return the n of some rows whose costs (N,) are smallest; among equal ones, the first rows win."""
    keys = costs[rows].astype(np.uint32) * np.uint32(MAX_ROWS) + rows.astype(np.uint32)
    if len(keys) > n > 0:
        keys.partition(n - 1)
    return np.asarray(keys[:n] % MAX_ROWS, dtype=np.intp)
