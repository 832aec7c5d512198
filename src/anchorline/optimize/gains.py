"""Bounds on what candidates of groups gain at given multipliers; `anchorline.optimize.groups` derives them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anchorline.optimize.dependence import exact_factors
from anchorline.optimize.groups import ALIGNED, UNBOUNDED, VANISHING, Blocks, Spans, inflation, sizes_of

_MAX_DIRECTIONS = 800  # all their correlations take about as long as five nodes
_MAX_RANKS = 4  # rests of a group that its parts lack; each may triple the number of parts
_LIGHT = 0.2  # the smallest weight of a group, as a share of the largest
_FLOOR = 1e-50  # added to every gain, so that 0 times an unbounded factor is unbounded


def factors(kappa: np.ndarray, weights: np.ndarray, r: int) -> np.ndarray:
    """Factors (3, G) of parts of 1, 2 and 3 of the r candidates, from norms ``kappa`` (G, G) of whole groups."""
    n, n_top = len(weights), min(r - 1, len(weights))
    sums = np.zeros((3, n))  # of the r - 1, r - 2 and r - 3 largest
    if n_top > 0:
        sizes = kappa * weights
        top = np.partition(sizes, n - n_top, axis=1)[:, n - n_top :] if n_top < n else sizes
        sums_of_largest = np.cumsum(np.sort(top, axis=1)[:, ::-1], axis=1)
        for part, size in enumerate(range(r - 1, max(r - 4, 0), -1)):
            sums[part] = sums_of_largest[:, min(size, n_top) - 1]
    return inflation(sums / weights)


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of groups that may be chosen together, with their factors 1 / (1 - rho)."""

    starts: np.ndarray  # (G,) position of the first candidate of each group
    sizes: np.ndarray  # (G,) number of candidates
    index: np.ndarray  # (n,) group of each candidate
    one: np.ndarray  # (n,) factors of single candidates
    pairs: np.ndarray  # (2, P) positions of pairs of a group that may be chosen together
    owners: np.ndarray  # (P,) their groups
    overlaps: np.ndarray  # (P,) correlations of the pairs
    two: np.ndarray  # (P,) factors of pairs
    more: "Whole | None"  # the largest parts of more than two candidates
    weights: np.ndarray  # (G,) that the factors depend on

    @cached_property
    def room(self) -> tuple[np.ndarray, bool]:
        """Share (P,) of the second of each pair that the first does not explain, and whether all are solid."""
        room = 1 - self.overlaps**2
        return room, bool(room.min(initial=1.0) > VANISHING)

    @property
    def steps(self) -> int:
        """Number of ascent steps that pay: they cost less than the nodes that a good bound at a root saves."""
        return 6 if len(self.two) else 2

    @classmethod
    def of(
        cls,
        blocks: Blocks,
        y: np.ndarray,
        rests: np.ndarray,
        r: int,
        exact: tuple[np.ndarray, float] | None = None,
    ) -> "Parts":
        """Split the candidates without the forbidden ``rests`` (c, n) of two or more literals.

        ``y`` (n,) are values of a'Y at multipliers that are about right, which give good weights. ``exact`` are
        all correlations (n, n), with a bound on their rounding errors; without them, or if there are many parts,
        factors are those of whole groups.
        """
        table, index = blocks.table, blocks.index
        allowed = (table[:, :, None] < table[:, None, :]) & (table >= 0)[:, :, None]
        both = np.ascontiguousarray(rests[sizes_of(rests) == 2])
        first, second = both.argmax(axis=1), both.shape[1] - 1 - both[:, ::-1].argmax(axis=1)
        begins = table[index[first], 0]
        allowed[index[first], first - begins, second - begins] = False
        owners, i, j = np.nonzero(allowed)
        pairs, overlaps = np.stack([table[owners, i], table[owners, j]]), blocks.inner[owners, i, j]
        weights = np.maximum.reduceat(np.abs(y), table[:, 0])
        weights = np.maximum(weights, max(_LIGHT * float(weights.max()), 1e-30))
        larger, sets = _largest_parts(blocks, rests if r > 2 else None)
        spans = Spans.of(sets, blocks.inner[larger]) if len(sets) else None
        if exact is not None and len(index) + len(owners) + sets.size <= _MAX_DIRECTIONS:
            one, two, three = exact_factors(*exact, (index, owners, larger), pairs, spans, weights, r)
        else:
            each = factors(blocks.kappa, weights, r)
            one, two, three = each[0, index], each[1, owners], each[2, larger]
        more = None if spans is None else Whole(larger, spans, three)
        return cls(table[:, 0], np.bincount(index), index, one, pairs, owners, overlaps, two, more, weights)

    def gains(self, y: np.ndarray, lost: np.ndarray, r: int) -> "Gains":
        """Gains of the candidates' values ``y`` (n,) of a'Y, of which rounding may have lost ``lost``."""
        return Gains.of(self, y, lost, r)


@dataclass(frozen=True, eq=False)
class Whole:
    """Large parts of groups, of which only the gain of the span is known."""

    owners: np.ndarray  # (B,) their groups
    spans: Spans  # of rows of `Blocks.table`, with some candidates replaced by -1
    factors: np.ndarray  # (B,)

    def gains(self, y: np.ndarray, lost: np.ndarray) -> np.ndarray:
        """Bounds on the gains (B,)."""
        return np.asarray((self.spans.gains(y, lost) + _FLOOR) * self.factors)


def _largest_parts(blocks: Blocks, rests: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Groups (B,) and candidates (B, m) of the largest parts that hold none of their group's first rests entirely.

    Only parts of more than two candidates count. If ``rests`` is None, no more than two are taken.
    """
    counts = np.bincount(blocks.index)
    if rests is None or counts.max() <= 2:
        return counts[:0], blocks.table[:0]
    groups = blocks.index[rests.argmax(axis=1)]
    counts[groups[counts[groups] == 3]] = 0  # without a candidate of its rest, such a group has two at most
    owners, rests, groups = np.flatnonzero(counts > 2), rests[counts[groups] > 3], groups[counts[groups] > 3]
    sets, sizes, order = blocks.table[owners], sizes_of(rests), np.argsort(groups, kind="stable")
    ranks = np.empty(len(rests), dtype=np.intp)  # of the rests of each group
    ranks[order] = np.arange(len(rests)) - np.searchsorted(groups[order], groups[order])
    for rank in range(min(_MAX_RANKS, 1 + int(ranks.max(initial=-1)))):
        rest = np.full(len(blocks.table), -1)
        rest[groups[ranks == rank]] = np.flatnonzero(ranks == rank)
        rest = rest[owners]
        held = rests[rest[:, None], sets] & (sets >= 0) & (rest >= 0)[:, None]
        split = (rest >= 0) & (np.count_nonzero(held, axis=1) == sizes[rest])
        rows, places = np.nonzero(held & split[:, None])
        fewer = sets[rows]
        fewer[np.arange(len(rows)), places] = -1
        owners, sets = np.concatenate([owners[~split], owners[rows]]), np.concatenate([sets[~split], fewer])
    large = np.count_nonzero(sets >= 0, axis=1) > 2
    return owners[large], sets[large]


@dataclass(frozen=True, eq=False)
class Gains:
    """Bounds on what parts of groups gain at given multipliers."""

    parts: Parts
    singles: np.ndarray  # (n,)
    doubles: np.ndarray  # (P,)
    larger: np.ndarray | None  # (G,) parts of more than two; None if there are none
    increments: np.ndarray  # (at most 3, G)
    top: tuple[list[float], list[int]]  # the largest increments in decreasing order, and their groups

    @classmethod
    def of(cls, parts: Parts, y: np.ndarray, lost: np.ndarray, r: int) -> "Gains":
        """Gains of the candidates' values ``y`` (n,) of a'Y, of which rounding may have lost ``lost``."""
        squares = (np.abs(y) + lost) ** 2 + _FLOOR
        singles, doubles, larger = squares * parts.one, parts.two, None
        best = np.maximum.reduceat(singles, parts.starts)
        increments = best[None]
        if len(doubles):
            doubles = _pair_gains(parts, y, lost, squares)
            two = best.copy()
            np.maximum.at(two, parts.owners, doubles)
            if parts.more is not None:
                larger = two.copy()
                np.maximum.at(larger, parts.more.owners, parts.more.gains(y, lost))
            increments = _majorant(best, two, larger)
        return cls(parts, singles, doubles, larger, increments, _largest(increments, r))

    def total(self, r: int) -> float:
        """Largest gain of r candidates."""
        return sum(self.top[0][:r])

    def taken(self, a: np.ndarray, r: int) -> np.ndarray:
        """What the best set takes from the form, (3, 3); at most two literals per group count."""
        parts, vectors = self.parts, []
        groups = self.top[1][:r]
        for group in set(groups):
            own = np.flatnonzero(parts.owners == group) if groups.count(group) > 1 else ()
            if len(own):
                best = own[self.doubles[own].argmax()]
                (i, j), overlap, scale = parts.pairs[:, best], parts.overlaps[best], np.sqrt(parts.two[best])
                if 1 - overlap**2 > VANISHING:
                    vectors.append((a[:, j] - overlap * a[:, i]) * (scale / np.sqrt(1 - overlap**2)))
            else:
                i = parts.starts[group]  # candidates of a group are adjacent
                i += self.singles[i : i + parts.sizes[group]].argmax()
                scale = np.sqrt(parts.one[i])
            vectors.append(a[:, i] * scale)
        columns = np.array(vectors)
        return np.asarray(columns.T @ columns)

    def others(self, r: int, depth: int) -> np.ndarray:
        """Sums (depth, G) of the r - m largest increments of the other groups, for m = 1, ..., depth."""
        values, owners = self.top
        counts = [max(r - m, 0) for m in range(1, depth + 1)]
        others = np.empty((depth, len(self.parts.starts)))
        others[:] = [[sum(values[:count])] for count in counts]
        for owner in set(owners):
            rest = [value for value, group in zip(values, owners, strict=True) if group != owner]
            others[:, owner] = [sum(rest[:count]) for count in counts]
        return others

    def reach(self, r: int) -> np.ndarray:
        """Largest gain of r candidates that hold each candidate, (n,)."""
        index, held = self.parts.index, self._of_parts_with()
        others = self.others(r, len(held))[:, index]
        reach = held[0] + others[0]
        for m in range(1, len(held)):
            np.maximum(reach, held[m] + others[m], out=reach)
        return np.asarray(reach)

    def _of_parts_with(self) -> list[np.ndarray]:
        """Gains (n,) of the best parts of one, two and more literals that hold each candidate."""
        gains = [self.singles]
        if len(self.doubles):
            double = np.zeros(len(self.singles))
            for places in self.parts.pairs:
                np.maximum.at(double, places, self.doubles)
            gains.append(double)
        if self.larger is not None:
            gains.append(self.larger[self.parts.index])
        return gains

    def children(self, base: float, floor: float, cutoff: float, r: int) -> tuple[np.ndarray, np.ndarray, float]:
        """As `bounds.Bound.children`; no bound is below ``floor``."""
        reach, increments = self.reach(r), self.increments.copy()
        alive = np.maximum(base - reach, floor) < cutoff  # no set bounded below the cutoff holds the others
        order = np.argsort(-self.singles, kind="stable")
        order = order[alive[order]]
        bounds: list[float] = []
        for pos in order[: max(0, len(order) - r + 1)].tolist():
            bound = max(floor, base - sum(_largest(increments, r)[0][:r]))
            if bound >= cutoff:
                return order, np.array(bounds), bound
            bounds.append(max(bound, base - float(reach[pos])))
            alive[pos] = False
            group = int(self.parts.index[pos])
            increments[:, group] = self._increments(alive, group)
        return order, np.array(bounds), np.inf

    def _increments(self, alive: np.ndarray, group: int) -> np.ndarray:
        """Increments of a group of which some candidates (n,) are left."""
        own = alive & (self.parts.index == group)
        best = self.singles[own].max(initial=0.0, keepdims=True)
        if not len(self.doubles):
            return np.asarray(best)
        two = np.maximum(best, self.doubles[own[self.parts.pairs].all(axis=0)].max(initial=0.0))
        larger = self.larger
        if larger is not None:
            larger = larger[[group]] if np.count_nonzero(own) > 2 else two
        return np.asarray(_majorant(best, two, larger)[:, 0])


def _pair_gains(parts: Parts, y: np.ndarray, lost: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Gains (P,) of the pairs of a group: the first literal, and what the second one adds."""
    (first, second), overlaps, (room, is_solid) = parts.pairs, parts.overlaps, parts.room
    ahead, behind = y[first], y[second]
    added = np.abs(behind - overlaps * ahead) + lost[second] + np.abs(overlaps) * lost[first]
    if is_solid:
        return np.asarray((squares[first] + added**2 / room) * parts.two)
    zero = added <= ALIGNED * (np.abs(ahead) + np.abs(behind)) + 4 * (lost[first] + lost[second])
    solid = room > VANISHING
    gains = np.where(solid, added**2 / np.where(solid, room, 1.0), np.where(zero, 0.0, UNBOUNDED))
    return np.asarray((squares[first] + gains) * parts.two)


def _majorant(one: np.ndarray, two: np.ndarray, more: np.ndarray | None) -> np.ndarray:
    """Increments (2 or 3, G) of the least concave majorant of (0, one, two, more)."""
    if more is None:
        increments = np.empty((2, len(one)))
        first = np.maximum(one, two / 2, out=increments[0])
        np.subtract(two, first, out=increments[1])
        return increments
    first = np.maximum(np.maximum(one, two / 2), more / 3)
    second = np.maximum(two, (first + more) / 2)
    return np.stack([first, second - first, more - second])


def _largest(increments: np.ndarray, r: int) -> tuple[list[float], list[int]]:
    """The largest increments that r candidates can take, with r - 1 of other groups, and their groups."""
    flat, (levels, n_groups) = increments.ravel(), increments.shape
    n_top = min(r - 1 + levels, len(flat))
    top = np.argpartition(flat, len(flat) - n_top)[len(flat) - n_top :] if n_top < len(flat) else np.arange(n_top)
    top = top[np.argsort(-flat[top], kind="stable")]
    return flat[top].tolist(), (top % n_groups).tolist()
