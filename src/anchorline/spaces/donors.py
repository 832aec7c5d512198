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
    _factors: dict[int, tuple[np.ndarray, ...]] = field(default_factory=dict)

    def cells(self, draws: np.ndarray, words: RandomWords) -> Iterator[Cells]:
        """Yield the cells to draw, given draws (d, n)."""
        yield from Cells.from_sources(self.columns, self.choose(draws, words))

    def choose(self, draws: np.ndarray, words: RandomWords) -> np.ndarray:
        """Return the row (d, n) from which each attribute takes its value, given draws (d, n); -1 where none.

        Every round chooses one donor per neighbor that still needs one, in order, and takes one word for each.
        The donor gives all values that are wanted and that it has.
        """
        drawn = np.ascontiguousarray(draws.T, dtype=self.ways.dtype)
        wanted = drawn.copy() if self._sizes.all() else drawn * self._exists(drawn)
        sources = np.full(drawn.shape, -1, dtype=np.int32)
        neighbors = np.flatnonzero(wanted.any(axis=1))
        while len(neighbors):
            own = wanted[neighbors]
            ranked = self._ranked(drawn[neighbors], own)
            donors, lacking = ranked.drawn(words.take(len(neighbors))), np.flatnonzero(ranked.is_lacking)
            given = own != 0
            given[lacking] &= self._ways_by_row[donors[lacking]] == own[lacking]
            sources[neighbors] = np.where(given, self.rows[donors, None], sources[neighbors])
            neighbors = neighbors[lacking]
            wanted[neighbors] = own[lacking] * ~given[lacking]
        return np.ascontiguousarray(sources.T)

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
        """Factors (d,) that number all patterns of draws; None if there are too many of them."""
        n_ways = np.bincount(self.outcomes[:, 0], minlength=len(self.ways)) + 1
        exact = np.cumprod(n_ways.astype(object))
        return None if exact[-1] >= 2**62 else np.array([1, *exact[:-1]], dtype=np.int64)

    def _ranked(self, drawn: np.ndarray, wanted: np.ndarray) -> "Ranked":
        """Return the best donors per neighbor (n, d); equal draws have equal donors, which are sought once."""
        if self._bases is None or (wanted != drawn).any():
            return self._best(drawn, wanted)
        _, first, inverse = np.unique(drawn @ self._bases, return_index=True, return_inverse=True)
        ranked = self._best(drawn[first], wanted[first])
        return Ranked(*(each[inverse] for each in ranked))

    def _best(self, drawn: np.ndarray, wanted: np.ndarray) -> "Ranked":
        """Return the best donors per neighbor; those that keep a rule must not lack more ways than others."""
        patterns = Patterns.of(self, drawn, wanted)
        pairs = np.array([pivot.pair for pivot in self._pivots])
        pivots = self._pivots_of(wanted, patterns)
        ranked = self._nearest(patterns, pivots)
        again = np.flatnonzero(ranked.is_lacking & (pairs[pivots] >= 0))
        if len(again):
            others = self._nearest(patterns.part(again), self._pivots_of(wanted[again], None))
            for old, new in zip(ranked, others, strict=True):
                old[again] = new
        return ranked

    def _pivots_of(self, wanted: np.ndarray, patterns: "Patterns | None") -> np.ndarray:
        """Return the first pivot that each neighbor needs, (n,); without patterns, the first that is a way."""
        _, attributes, ways, pairs = np.array(self._pivots).T
        needed, of_rules = wanted[:, attributes] == ways, np.flatnonzero(pairs >= 0)
        if len(of_rules):
            needed[:, of_rules] &= False if patterns is None else patterns.at_stake[:, pairs[of_rules]] > 0
        return np.asarray(needed.argmax(axis=1))

    def _nearest(self, patterns: "Patterns", pivots: np.ndarray) -> "Ranked":
        """Return the best donors per neighbor, among the candidates that have its pivot.

        The best lack the fewest ways, break the fewest rules, and are the most alike.
        """
        order = np.argsort(pivots, kind="stable")
        needed, at_stake = (each[order] for each in patterns)
        best = np.full((len(order), self.n_donors), np.iinfo(np.int32).max, dtype=np.int32)
        ends = [*(np.flatnonzero(np.diff(pivots[order])) + 1).tolist(), len(order)]
        for start, stop in itertools.pairwise([0, *ends]):
            pivot = int(pivots[order[start]])
            for first in range(start, stop, _PATTERNS):
                part = slice(first, min(first + _PATTERNS, stop))
                keys = self._keys(pivot, needed[part], at_stake[part])
                best[part, : keys.shape[1]] = some_smallest(keys, self.n_donors)
        best.sort(axis=1)
        best[order] = best.copy()
        levels = best // (CANDIDATES * BROKEN)
        donors = self._candidates[pivots[:, None], best & (CANDIDATES - 1)]
        return Ranked(donors, np.count_nonzero(levels == levels[:, :1], axis=1), levels[:, 0] > MAX_BROKEN)

    @cached_property
    def _candidates(self) -> np.ndarray:
        """The rows that are compared for each pivot, (pivots, 256); filled in by `_candidates_of`."""
        return np.zeros((len(self._pivots), CANDIDATES), dtype=np.int32)

    def _candidates_of(self, pivot: int) -> np.ndarray:
        """Return the rows with a pivot that come first in the order of ``ranks``, as many as are compared."""
        _, attribute, way, pair = self._pivots[pivot]
        has_pivot = self.ways[attribute] == way
        rows = np.flatnonzero(has_pivot if pair < 0 else has_pivot & ~self.rules.broken[pair])
        keys = self.ranks[rows] - self.costs[attribute, rows].astype(np.uint32)  # below 2^17
        keys *= np.uint32(MAX_ROWS)
        keys += rows.astype(np.uint32)
        most = min(CANDIDATES, max(FEWEST, COMPARED // len(self.ways)))
        candidates = np.sort(some_smallest(keys, most)) % MAX_ROWS
        self._candidates[pivot, : len(candidates)] = candidates
        return np.asarray(candidates)

    def _keys(self, pivot: int, needed: np.ndarray, at_stake: np.ndarray) -> np.ndarray:
        """Return a number (n, candidates) per pattern: lacking ways, broken rules, unlikeness, place.

        All numbers in the products are whole and have at most 24 bits, so that sums are exact in any order.
        """
        if pivot not in self._factors:
            self._factors[pivot] = self._factors_of(pivot)
        penalties, total, broken = self._factors[pivot]
        sums = needed @ penalties
        sums += total
        if len(broken):
            sums += CANDIDATES * self.rules.costs(at_stake, broken)
        if len(self.ways) > _MAX_LACKING:
            np.minimum(sums, CANDIDATES * _WORST, out=sums)
        keys = sums.astype(np.int32)
        keys += np.arange(keys.shape[1], dtype=np.int32)
        return np.asarray(keys)

    def _factors_of(self, pivot: int) -> tuple[np.ndarray, ...]:
        """Return what a needed way adds to the keys of candidates, what they are before, and the broken rules."""
        candidates, (attributes, ways) = self._candidates_of(pivot), self.outcomes.T
        costs = self.costs[:, candidates].astype(np.float32)[attributes]
        lacks = self.ways[:, candidates][attributes] != ways[:, None]
        scale = np.float32(CANDIDATES)
        broken = self.rules.broken[:, candidates].astype(np.float32)
        return scale * (_LACKING * lacks - costs), scale * self.total[candidates], broken


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


class Patterns(NamedTuple):
    """What n neighbors need: ways (n, o), and pairs that must not break a rule (n, P)."""

    needed: np.ndarray
    at_stake: np.ndarray

    @classmethod
    def of(cls, donors: Donors, drawn: np.ndarray, wanted: np.ndarray) -> "Patterns":
        """Return what neighbors need that have these draws (n, d), of which some are still wanted."""
        attributes, ways = donors.outcomes.T
        needed = (wanted[:, attributes] == ways).astype(np.float32)
        return cls(needed, donors.rules.at_stake(wanted != 0, drawn))

    def part(self, rows: slice | np.ndarray) -> "Patterns":
        """Return those of some neighbors."""
        return Patterns(self.needed[rows], self.at_stake[rows])


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
