"""Bounds on what candidates of groups gain at given multipliers; `anchorline.optimize.groups` derives them."""

from dataclasses import dataclass

import numpy as np

from anchorline.optimize.groups import ALIGNED, VANISHING, Parts


@dataclass(frozen=True, eq=False)
class Gains:
    """Bounds on what parts of groups gain at given multipliers."""

    parts: Parts
    singles: np.ndarray  # (n,)
    doubles: np.ndarray | None  # (G, P); None if every group has one candidate
    larger: np.ndarray | None  # (G,) more than two; None if there are no such parts
    whole: np.ndarray | None  # (G,) whole groups; None if no circuit is required
    increments: np.ndarray  # (G, at most 3)

    @classmethod
    def of(cls, parts: Parts, y: np.ndarray, lost: np.ndarray, r: int) -> "Gains":
        """Gains of the candidates' values ``y`` (n,) of a'Y, of which rounding may have lost ``lost``."""
        squares = (np.abs(y) + lost) ** 2
        singles, doubles, larger, whole = _times(squares, parts.one), None, None, None
        best = np.where(parts.table >= 0, singles[parts.table], 0.0).max(axis=1, initial=0.0)
        if parts.table.shape[1] > 1:
            doubles = _times(_pair_gains(parts, y, lost), parts.many[1, :, None])
            if r > 2 and parts.bases is not None:
                owners, spans = parts.bases
                larger = np.zeros(len(parts.table))
                np.maximum.at(larger, owners, _times(spans.gains(y, lost), parts.many[2, owners]))
        if parts.required is not None:
            whole = squares[parts.table[:, 0]] if parts.spans is None else parts.spans.gains(y, lost)
        return cls(parts, singles, doubles, larger, whole, _majorant(best, doubles, larger))

    def total(self, r: int) -> float:
        """Largest gain of r candidates; -inf if they cannot complete a required circuit."""
        if self.parts.required is None:
            return _largest(self.increments, r)
        return float(self._with_circuit(r).max(initial=-np.inf))

    def taken(self, a: np.ndarray, r: int) -> np.ndarray:
        """What the best set takes from the form, (3, 3); at most two literals per group count."""
        parts, flat, levels = self.parts, self.increments.ravel(), self.increments.shape[1]
        top = np.argpartition(flat, len(flat) - r)[len(flat) - r :] if len(flat) > r else np.arange(len(flat))
        groups, counts = (top, np.ones(1)) if levels == 1 else np.unique(top // levels, return_counts=True)
        rows = parts.table[groups[counts == 1] if levels > 1 else groups]
        best = np.where(rows >= 0, self.singles[rows], -1.0).argmax(axis=1)
        single = rows[np.arange(len(rows)), best]
        scale = np.where(np.isfinite(parts.one[single]), parts.one[single], 1.0)
        taken = (a[:, single] * scale) @ a[:, single].T
        for group in groups[counts > 1] if levels > 1 else ():
            assert self.doubles is not None
            pos = int(self.doubles[group].argmax())
            (i, j), overlap = parts.table[group, parts.pairs[:, pos]], parts.overlaps[group, pos]
            if 1 - overlap**2 > VANISHING and np.isfinite(parts.many[1, group]):  # false for NaN
                added = (a[:, j] - overlap * a[:, i]) / np.sqrt(1 - overlap**2)
                taken += (np.outer(a[:, i], a[:, i]) + np.outer(added, added)) * parts.many[1, group]
        return np.asarray(taken)

    def _with_circuit(self, r: int) -> np.ndarray:
        """Largest gain of r candidates that complete each required circuit, -inf if r is too small."""
        assert self.parts.required is not None
        assert self.whole is not None
        owners, sizes = self.parts.required
        gains = _times(self.whole[owners], self.parts.many[np.minimum(sizes, 3) - 1, owners])
        others = _best_others(self.increments, r, int(sizes.max(initial=1)))
        return np.where(sizes <= r, gains + others[owners, sizes - 1], -np.inf)

    def reach(self, r: int) -> np.ndarray:
        """Largest gain of r candidates that hold each candidate, (n,)."""
        index, with_candidate = self.parts.index, self._of_parts_with()
        others = _best_others(self.increments, r, len(with_candidate))
        reach = np.max([part + others[index, m] for m, part in enumerate(with_candidate)], axis=0)
        if self.parts.required is None:
            return np.asarray(reach)
        best = np.full(len(self.parts.table), -np.inf)
        np.maximum.at(best, self.parts.required[0], self._with_circuit(r))
        best = best[index]
        for m, part in enumerate(with_candidate, 1):  # a circuit in another group
            if np.isfinite(total := self.total(r - m)) or total > 0:
                best = np.maximum(best, part + total)
        return np.asarray(np.minimum(reach, best))

    def _of_parts_with(self) -> list[np.ndarray]:
        """Gains (n,) of the best parts of one, two and more literals that hold each candidate."""
        index, table = self.parts.index, self.parts.table
        gains = [self.singles]
        if self.doubles is not None:
            best = np.zeros(table.shape)
            for pos, places in enumerate(self.parts.pairs.T):
                best[:, places] = np.maximum(best[:, places], self.doubles[:, pos, None])
            groups, places = np.nonzero(table >= 0)
            double = np.zeros(len(index))
            double[table[groups, places]] = best[groups, places]
            gains.append(double)
        if self.larger is not None:
            gains.append(self.larger[index])
        return gains

    def children(self, base: float, floor: float, cutoff: float, r: int) -> tuple[np.ndarray, np.ndarray, float]:
        """As `bounds.Bound.children`; no bound is below ``floor``."""
        order = np.argsort(-self.singles, kind="stable")
        reach, increments = self.reach(r), self.increments.copy()
        bounds: list[float] = []
        dropped = np.zeros(len(order), dtype=bool)
        for pos in order[: len(order) - r + 1].tolist():
            bound = max(floor, base - _largest(increments, r))
            if bound >= cutoff:
                return order, np.array(bounds), bound
            bounds.append(max(bound, base - float(reach[pos])))
            dropped[pos] = True
            group = int(self.parts.index[pos])
            increments[group] = self._without(dropped, group)
        return order, np.array(bounds), np.inf

    def _without(self, dropped: np.ndarray, group: int) -> np.ndarray:
        """Increments of a group without the dropped candidates (n,)."""
        row = self.parts.table[group]
        alive = (row >= 0) & ~dropped[row]
        best = self.singles[row[alive]].max(initial=0.0, keepdims=True)
        if self.doubles is None:
            return np.asarray(best)
        doubles = np.where(alive[self.parts.pairs].all(axis=0), self.doubles[group], 0.0)
        larger = None if self.larger is None or alive.sum() <= 2 else self.larger[group, None]
        return np.asarray(_majorant(best, doubles[None], larger)[0])


def _times(values: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The product, infinite wherever the scale is, even for 0."""
    unbounded = np.isinf(scale)
    return np.where(unbounded, np.inf, values * np.where(unbounded, 1.0, scale))


def _pair_gains(parts: Parts, y: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """Gains (G, P) of the pairs of a group: the first literal, and what the second one adds."""
    first, second = parts.table[:, parts.pairs[0]], parts.table[:, parts.pairs[1]]
    overlaps = np.nan_to_num(parts.overlaps)
    room, square = 1 - overlaps**2, (np.abs(y[first]) + lost[first]) ** 2
    added = np.abs(y[second] - overlaps * y[first]) + lost[second] + np.abs(overlaps) * lost[first]
    zero = added <= ALIGNED * (np.abs(y[first]) + np.abs(y[second])) + 4 * (lost[first] + lost[second])
    degenerate = np.where(zero, 0.0, np.inf)
    gains = square + np.where(room > VANISHING, added**2 / np.where(room > VANISHING, room, 1.0), degenerate)
    return np.where(np.isnan(parts.overlaps), 0.0, gains)


def _majorant(one: np.ndarray, doubles: np.ndarray | None, more: np.ndarray | None) -> np.ndarray:
    """Increments (G, at most 3) of the least concave majorant of (0, one, best of doubles, more)."""
    if doubles is None:
        return one[:, None]
    two = np.maximum(one, doubles.max(axis=1, initial=0.0))
    more = two if more is None else np.maximum(two, more)
    first = np.maximum(np.maximum(one, two / 2), more / 3)
    second = np.maximum(two, (first + more) / 2)
    bounded = np.isfinite(first)  # without a bound, the first increment says it all
    steps = (first, np.subtract(second, first, where=bounded, out=np.zeros_like(first)))
    return np.stack([*steps, np.subtract(more, second, where=bounded, out=np.zeros_like(first))], axis=1)


def _largest(values: np.ndarray, r: int) -> float:
    """Sum of the r largest values."""
    flat = values.ravel()
    if r < len(flat):
        flat = flat[np.argpartition(flat, len(flat) - r)[len(flat) - r :]] if r else flat[:0]
    return float(flat.sum())


def _best_others(increments: np.ndarray, r: int, depth: int) -> np.ndarray:
    """Sums (G, depth) of the r - m largest increments of the other groups, for m = 1, ..., depth."""
    n_groups, levels = increments.shape
    flat = increments.ravel()
    n_top = min(max(r - 1, 0) + levels, len(flat))
    top = np.argpartition(flat, len(flat) - n_top)[len(flat) - n_top :]
    top = top[np.argsort(-flat[top], kind="stable")]
    values, owners = flat[top], top // levels
    counts = np.maximum(r - np.arange(1, depth + 1), 0)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    others = np.tile(sums[np.minimum(counts, n_top)], (n_groups, 1))
    for owner in set(owners.tolist()):
        sums = np.concatenate([[0.0], np.cumsum(values[owners != owner])])
        others[owner] = sums[np.minimum(counts, len(sums) - 1)]
    return others
