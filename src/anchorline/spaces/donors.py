"""Values for neighbors that could exist: all attributes that change take them from one training row, a donor.

Which attributes change, and in which way, is drawn before and independently. A donor has the wanted ways, and is
one of the rows that are most like the instance in the attributes that do not change.
"""

import functools
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
CANDIDATES = 256  # the most rows that are compared for one neighbor, a power of two
FEWEST = 32  # the fewest
COMPARED = 2048  # values that are compared for one neighbor, which decides how many rows are
_PATTERNS = 1024  # patterns of draws that are compared at once, so that their keys stay in the cache
MAX_BROKEN = 3  # broken rules that are counted
BROKEN = 2**TOTAL_BITS  # the cost of a broken rule: more than all unlikeness
_LACKING = (MAX_BROKEN + 1) * BROKEN  # that of a way that a candidate lacks: more than all broken rules
_MAX_LACKING = 30  # more are not counted, so that costs have 23 bits, and 31 with the place among the candidates
_WORST = (_MAX_LACKING + 1) * _LACKING - 1


class Rules(NamedTuple):
    """Which of N rows have a value that another value of the instance excludes.

    ``changing`` (P,) and ``kept`` (P,) are pairs of attributes: the row's value in the first is excluded by the
    instance's value in the second, which is -1 if it never changes. ``broken`` (P, N) says of which rows this is
    true.
    """

    changing: np.ndarray
    kept: np.ndarray
    broken: np.ndarray

    def at_stake(self, changes: np.ndarray, draws: np.ndarray) -> np.ndarray:
        """Return which pairs (n, P) matter: the first attribute changes (n, d), the second is not drawn (n, d)."""
        if not len(self.changing):
            return np.zeros((len(draws), 0), dtype=np.float32)
        kept = np.concatenate([draws == 0, np.ones((len(draws), 1), dtype=bool)], axis=1)
        return np.asarray(changes[:, self.changing] & kept[:, self.kept], dtype=np.float32)

    def costs(self, at_stake: np.ndarray, broken: np.ndarray) -> np.ndarray:
        """Return the costs (n, rows) of rules that are broken (P, rows), given the pairs at stake, (n, P)."""
        counts = at_stake @ broken
        np.minimum(counts, MAX_BROKEN, out=counts)
        counts *= BROKEN
        return np.asarray(counts)


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
    rules: Rules
    n_donors: int
    _factors: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def cells(self, draws: np.ndarray, words: RandomWords) -> Iterator[Cells]:
        """Yield the cells to draw, given draws (d, n)."""
        yield from Cells.from_sources(self.columns, self.choose(draws, words))

    def choose(self, draws: np.ndarray, words: RandomWords) -> np.ndarray:
        """Return the row (d, n) from which each attribute takes its value, given draws (d, n); -1 where none.

        Every round chooses one donor per neighbor that still needs one, in order, and takes one word for each.
        The donor gives all values that are wanted and that it has.
        """
        drawn = np.ascontiguousarray(draws.T, dtype=self.ways.dtype)
        wanted = drawn if self._sizes.all() else drawn * self._exists(drawn)
        neighbors, sources = np.arange(len(drawn)), np.full(draws.size, -1, dtype=np.int32)
        left = np.flatnonzero(wanted.max(axis=1, initial=0))
        while len(left):
            neighbors, drawn, wanted = neighbors[left], drawn[left], wanted[left]
            ranked = self._ranked(drawn, wanted)
            donors = self._compared[0][ranked.pools, ranked.drawn(words.take(len(left)))]
            is_given = (self._ways_by_row[donors] == wanted) & (wanted != 0)
            at = np.flatnonzero(is_given)
            by = at // len(draws)
            sources[(at - by * len(draws)) * draws.shape[1] + neighbors[by]] = self.rows[donors[by]]
            wanted, left = wanted * ~is_given, np.flatnonzero(ranked.is_lacking)
        return sources.reshape(draws.shape)

    @cached_property
    def _ways_by_row(self) -> np.ndarray:
        return np.ascontiguousarray(self.ways.T)

    def _exists(self, drawn: np.ndarray) -> np.ndarray:
        """Return which drawn ways (n, d) some row has; only a way that leaves a value as it is can have none."""
        sizes = np.zeros((len(self.ways), int(self.outcomes[:, 1].max()) + 1), dtype=bool)
        sizes[self.outcomes[:, 0], self.outcomes[:, 1]] = self._sizes > 0
        return np.asarray(sizes[np.arange(len(sizes)), drawn])

    @cached_property
    def _sizes(self) -> np.ndarray:
        """How many rows have each outcome, (o,)."""
        return np.array([np.count_nonzero(self.ways[i] == way) for i, way in self.outcomes], dtype=np.intp)

    @cached_property
    def _pivots(self) -> "list[Pivot]":
        """What candidates can have in common, first what few rows have: a way, or a way that keeps a rule.

        The latter are only those that fewer than half of the rows with that way have.
        """
        ways = zip(self.outcomes.tolist(), self._sizes.tolist(), strict=True)
        pivots = [Pivot(size, attribute, way, -1) for (attribute, way), size in ways]
        for pair, attribute in enumerate(self.rules.changing.tolist()):
            for one in [each for each in pivots if each.pair < 0 and each.attribute == attribute]:
                size = one.size - int(np.sum(self.rules.broken[pair] & (self.ways[attribute] == one.way)))
                if 0 < size < one.size / 2:
                    pivots.append(Pivot(size, attribute, one.way, pair))
        return sorted(pivots)

    @cached_property
    def _bases(self) -> np.ndarray | None:
        """Factors (d,) that number all patterns of draws; None if there are so many that hardly any are equal."""
        n_ways = np.bincount(self.outcomes[:, 0], minlength=len(self.ways)) + 1
        exact = np.cumprod(n_ways.astype(object))
        return None if exact[-1] >= 2**40 else np.array([1, *exact[:-1]], dtype=np.int64)

    def _ranked(self, drawn: np.ndarray, wanted: np.ndarray) -> "Ranked":
        """Return the best donors per neighbor (n, d); equal draws have equal donors, which are sought once."""
        if self._bases is None or (wanted != drawn).any():
            return self._best(drawn, wanted)
        _, first, inverse = np.unique(drawn @ self._bases, return_index=True, return_inverse=True)
        ranked = self._best(drawn[first], wanted[first])
        return Ranked(*(each[inverse] for each in ranked))

    def _best(self, drawn: np.ndarray, wanted: np.ndarray) -> "Ranked":
        """Return the best donors per neighbor; those that keep a rule must not lack more ways than others."""
        at_stake = self.rules.at_stake(wanted != 0, drawn)
        ranked = self._nearest(wanted, at_stake, self._pivots_of(wanted, at_stake))
        again = np.flatnonzero(ranked.is_lacking & (self._pivot_columns[2][ranked.pools] >= 0))
        if len(again):
            others = self._nearest(wanted[again], at_stake[again], self._pivots_of(wanted[again], None))
            for old, new in zip(ranked, others, strict=True):
                old[again] = new
        return ranked

    def _pivots_of(self, wanted: np.ndarray, at_stake: np.ndarray | None) -> np.ndarray:
        """Return the first pivot that each neighbor needs, (n,); the first that is a way, without pairs."""
        attributes, ways, pairs, weights = self._pivot_columns
        has = np.ascontiguousarray(wanted.T)[attributes] == ways
        of_rules = np.flatnonzero(pairs >= 0)
        if len(of_rules):
            has[of_rules] &= False if at_stake is None else at_stake.T[pairs[of_rules]] > 0
        return np.asarray(weights[0, 0] - (weights * has).max(axis=0), dtype=np.intp)

    @cached_property
    def _pivot_columns(self) -> tuple[np.ndarray, ...]:
        """Attributes, ways and pairs of the pivots, and weights: the first pivot has the largest."""
        _, attributes, ways, pairs = np.array(self._pivots).T
        weights = np.arange(len(pairs), 0, -1)[:, None].astype(np.uint8 if len(pairs) < 256 else np.uint32)
        return attributes, ways[:, None].astype(self.ways.dtype), pairs, weights

    def _nearest(self, wanted: np.ndarray, at_stake: np.ndarray, pivots: np.ndarray) -> "Ranked":
        """Return the best donors per neighbor, among the candidates that have its pivot.

        The best lack the fewest ways, break the fewest rules, and are the most alike. Neighbors are taken in the
        order of their pivots, so that those with the same candidates are compared together.
        """
        self._prepare(np.flatnonzero(np.bincount(pivots)).tolist())
        order = np.argsort(pivots.astype(np.int16 if len(self._pivots) < 2**15 else np.intp), kind="stable")
        best = np.full((len(order), self.n_donors), np.iinfo(np.int32).max, dtype=np.int32)
        for first in range(0, len(order), _PATTERNS):
            part = order[first : first + _PATTERNS]
            keys = self._keys(wanted[part], at_stake[part], pivots[part])
            keys.sort(axis=1)
            best[part, : keys.shape[1]] = keys[:, : self.n_donors]
        return Ranked.of(best, CANDIDATES, pivots)

    def _keys(self, wanted: np.ndarray, at_stake: np.ndarray, pivots: np.ndarray) -> np.ndarray:
        """Return a number (n, candidates) per neighbor: lacking ways, broken rules, unlikeness, place.

        All numbers in the products are whole and have at most 24 bits, so that sums are exact in any order.
        Neighbors with the same of the ``pivots`` (n,) are adjacent.
        """
        attributes, ways = self.outcomes.T
        needed = (wanted[:, attributes] == ways.astype(wanted.dtype)).astype(np.float32)
        keys = np.empty((len(pivots), self._n_compared), dtype=np.float32)
        broken = np.empty_like(keys) if len(self.rules.broken) else None
        ends = [*(np.flatnonzero(pivots[1:] != pivots[:-1]) + 1).tolist(), len(pivots)]
        for start, stop in itertools.pairwise([0, *ends]):
            penalties, rules = self._factors[pivots.item(start)]
            np.matmul(needed[start:stop], penalties, out=keys[start:stop])
            if broken is not None:
                np.matmul(at_stake[start:stop], rules, out=broken[start:stop])
        if broken is not None:
            keys += CANDIDATES * BROKEN * np.minimum(broken, MAX_BROKEN)
        if len(self.ways) > _MAX_LACKING:
            np.minimum(keys, CANDIDATES * _WORST, out=keys)
        places, sizes = np.arange(self._n_compared, dtype=np.int32), self._compared[1][pivots]
        whole = keys.astype(np.int32)
        whole += places
        if sizes.min() < self._n_compared:
            whole[places >= sizes[:, None]] = np.iinfo(np.int32).max
        return whole

    @property
    def _n_compared(self) -> int:
        """How many rows are compared for one neighbor, if there are as many."""
        return min(CANDIDATES, max(FEWEST, COMPARED // len(self.ways)))

    @property
    def _compared(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows that are compared for each pivot, (pivots, 256), and their numbers; `_prepare` writes them."""
        known: tuple[np.ndarray, np.ndarray] | None = self.__dict__.get("_compared_rows")
        if known is None:  # two threads that come first get the same arrays
            n = len(self._pivots)
            made = np.zeros((n, CANDIDATES), dtype=np.int32), np.zeros(n, dtype=np.int32)
            return self.__dict__.setdefault("_compared_rows", made)  # type: ignore[no-any-return]
        return known

    def _prepare(self, pivots: list[int]) -> None:
        """Find the candidates of pivots, and what a needed way adds to their keys, unless this was done before.

        The pivot is always needed, and adds the unlikeness in all attributes.
        """
        new, (candidates, sizes) = [pivot for pivot in pivots if pivot not in self._factors], self._compared
        for pivot in new:
            found = self._candidates_of(pivot)
            candidates[pivot, : len(found)], sizes[pivot] = found, len(found)
        (attributes, ways), n = self.outcomes.T, self._n_compared
        rows = candidates[new, :n].reshape(-1)
        lacks = self.ways[:, rows][attributes] != ways[:, None].astype(self.ways.dtype)
        factors = np.float32(_LACKING) * lacks
        factors -= self.costs[:, rows].astype(np.float32)[attributes]
        factors *= CANDIDATES
        by_pivot = factors.reshape(len(ways), -1, n).transpose(1, 0, 2).copy()  # a product reads one part of it
        own = [self._outcome_numbers[self._pivots[pivot][1:3]] for pivot in new]
        by_pivot[np.arange(len(new)), own] += (CANDIDATES * self.total[rows]).reshape(-1, n)
        broken = self.rules.broken[:, rows].astype(np.float32)
        for i, pivot in enumerate(new):
            self._factors[pivot] = by_pivot[i], broken[:, i * n : (i + 1) * n]

    @cached_property
    def _outcome_numbers(self) -> dict[tuple[int, int], int]:
        return {(attribute, way): i for i, (attribute, way) in enumerate(self.outcomes.tolist())}

    def _candidates_of(self, pivot: int) -> np.ndarray:
        """Return the rows with a pivot that come first in the order of ``ranks``, as many as are compared."""
        _, attribute, way, pair = self._pivots[pivot]
        has_pivot = self.ways[attribute] == way
        rows = np.flatnonzero(has_pivot if pair < 0 else has_pivot & ~self.rules.broken[pair])
        keys = self.ranks[rows] - self.costs[attribute, rows].astype(np.uint32)  # below 2^17
        keys *= np.uint32(MAX_ROWS)
        keys += rows.astype(np.uint32)
        return np.asarray(np.sort(some_smallest(keys, self._n_compared)) % MAX_ROWS)


def some_smallest(keys: np.ndarray, n: int) -> np.ndarray:
    """Return the n smallest keys of every row, in any order; changes the order of the given ones."""
    if keys.shape[-1] > n:
        keys.partition(n - 1, axis=-1)
    return keys[..., :n]


class Pivot(NamedTuple):
    """What ``size`` rows have in common: a way of an attribute, and, unless it is -1, the kept rule of a pair."""

    size: int
    attribute: int
    way: int
    pair: int


class Ranked(NamedTuple):
    """Donors of n neighbors as places in a pool, (n, n_donors), the best first, and how many there are, (n,).

    ``is_lacking`` says whether they lack wanted ways, and ``pools`` where to look the places up, both (n,).
    """

    places: np.ndarray
    counts: np.ndarray
    is_lacking: np.ndarray
    pools: np.ndarray

    @classmethod
    def of(cls, best: np.ndarray, scale: int, pools: np.ndarray) -> "Ranked":
        """Return what sorted keys (n, n_donors) say, of which the place is the remainder by ``scale``.

        Only those count that lack as few ways, and break as few rules, as the best one.
        """
        levels = best // (scale * BROKEN)
        is_best = np.ascontiguousarray((levels == levels[:, :1]).T).view(np.uint8)
        return cls(best & (scale - 1), is_best.sum(axis=0, dtype=np.intp), levels[:, 0] > MAX_BROKEN, pools)

    def drawn(self, words: np.ndarray) -> np.ndarray:
        """Return one place per neighbor, (n,): of c donors, the one with rank i is drawn with weight c - i."""
        m = self.places.shape[1]
        totals, ends = _ends(m)
        at = (words.astype(np.int64) * totals[self.counts]) >> 32
        ranks = ends.searchsorted(at + (totals[-1] + 1) * self.counts, side="right") - m * self.counts
        return np.asarray(self.places[np.arange(len(ranks)), ranks])


@functools.cache
def _ends(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of c donors together (m + 1,), and where each of them ends, for all c in one line."""
    ends = np.cumsum(np.maximum(np.arange(m + 1)[:, None] - np.arange(m), 0), axis=1)
    return ends[:, -1], (ends + (ends[-1, -1] + 1) * np.arange(m + 1)[:, None]).reshape(-1)
