"""Where numbers and dates are cut, and how a cut is written.

A cut is known by the lowest value above it: rows with that value or more lie above, and all others below. It is
written as the shortest decimal or date in the gap below that value, so that ``income < 39,000`` is stated rather
than ``income < 39,187.5``; moving a cut inside its gap changes no row.

- Values that more than 5% of the rows hold have a cut on each side; so have all values if there are few.
- The other rows are cut into 20 parts at quantiles, each at the shortest number within 0.5% of the rows.
- On both sides of the explained row, cuts at the ranks 8, 16, 32, ... reach rare regions; each is at the shortest
  number from there to an eighth farther.
- The user's own cuts are added as they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from anchorline.spaces.columns import DATE, shortest_number
from anchorline.spaces.pools import Ladders, SortedColumn

ATOM = 0.05  # the share of the rows that makes a value heavy
QUANTILES = 20  # parts into which the other rows are cut; columns with at most as many values are cut everywhere
_WITHIN = 10  # a quantile may move by a tenth of a part to a shorter number
_NEAREST = 8  # the rank of the cut nearest to the explained row
_LEVELS = (20, 10, 5, 4, 2)  # a cut nearest to a median is coarser than one nearest to a quartile, and so on
_LENGTHS = 32  # lengths of numbers that are distinguished
_UNITS = ("Y", "M", "D", "h", "m", "s", "us")  # in which dates are written, the shortest first
_POWERS = np.array([float(f"1e{e}") for e in range(-307, 309)])
_ONE = 307  # the place of 1 among the powers of 10
_LARGEST = float(np.finfo(np.float64).max)
INTERVAL = 1 << 13  # added to the rank of an interval: more than the ranks of any bound


@dataclass(frozen=True, eq=False)
class RowCuts:
    """The cuts of every column for one row, one column after the other.

    ``counts`` (columns,): the number of cuts. ``edges`` (cuts,): the lowest value above each. ``below`` (cuts,):
    the number of pool rows below it. ``scores`` (cuts,): how simple a cut is; a coarse one is simpler than a fine
    one, and then a short number than a long one. ``own`` (columns,): the number of cuts below the row's value.
    ``alone`` (columns,): no row of table or pool has another value. ``heavy`` (columns,): the row has a value with
    a cut on each side.
    """

    counts: np.ndarray
    edges: np.ndarray
    below: np.ndarray
    scores: np.ndarray
    own: np.ndarray
    alone: np.ndarray
    heavy: np.ndarray


class Cuts:
    """The cuts of columns of numbers or dates; ``given`` maps places in ``frame`` to the user's cuts.

    ``frame`` are the columns that are cut, and ``pool`` those from which values are drawn, of ``n_rows`` rows each
    in the frame, missing values included.
    """

    def __init__(
        self,
        frame: Sequence[SortedColumn],
        pool: Sequence[SortedColumn],
        kinds: Sequence[str],
        n_rows: int,
        given: Mapping[int, np.ndarray],
    ) -> None:
        self.kinds, self.given = tuple(kinds), given
        self.frame = Ladders(frame)
        self.pool = self.frame if all(a is b for a, b in zip(frame, pool, strict=True)) else Ladders(pool)
        self._present = np.array([column.n_present for column in frame], dtype=np.int64)
        each = [_column_cuts(column, kinds[v], n_rows, given.get(v)) for v, column in enumerate(frame)]
        self._edges = _padded([cuts.edges for cuts in each], np.nan)
        self._levels = _padded([cuts.levels for cuts in each], 0)
        self._after = _padded([cuts.after for cuts in each], False)
        self._atoms = _padded([cuts.atoms for cuts in each], np.nan)
        is_cut = ~np.isnan(self._edges)
        edges = np.where(is_cut, self._edges, 0.0)
        rungs = self.frame.rungs_below(edges)
        self._below, self._pool_below = self.frame.below(rungs), self._count(edges, rungs)
        gaps = np.where(rungs > 0, self.frame.value(np.maximum(rungs - 1, 0)), -np.inf), edges
        lengths = np.zeros(edges.shape, dtype=np.int64)
        for kind in set(self.kinds):
            own = self._are(kind)
            lengths[own] = _lengths(gaps[0][own], gaps[1][own], kind)
        self._scores = np.where(is_cut, self._levels * _LENGTHS + lengths + 1, 0)

    def _count(self, edges: np.ndarray, rungs: np.ndarray) -> np.ndarray:
        """Return the number of pool rows below edges; ``rungs`` are those of the frame."""
        if self.pool is self.frame:
            return self.frame.below(rungs)
        return self.pool.below(self.pool.rungs_below(edges))

    def around(self, values: np.ndarray, missing: np.ndarray) -> RowCuts:
        """Return the cuts around a row's values (columns,), some of which may be missing."""
        x = np.where(missing, 0.0, values)
        rungs = self.frame.rungs_below(x)
        is_new = (rungs == self.frame.sizes) | (self.frame.value(rungs) != x)
        before = np.where(rungs > 0, self.frame.value(np.maximum(rungs - 1, 0)), np.nan)
        splits = is_new & (self._atoms == before[:, None]).any(axis=1)  # the row lies just above a heavy value
        moved = splits[:, None] & self._after & (self._edges == self.frame.value(rungs)[:, None])
        base = ~np.isnan(self._edges) & ~moved
        near, is_upper, ranks = self._ranks(rungs, is_new)
        own_rungs = np.concatenate([near, rungs[:, None]], axis=1)
        edges = np.concatenate([self.frame.value(near), x[:, None]], axis=1)
        below = np.concatenate([self._below, self.frame.below(own_rungs)], axis=1)
        pool_below = np.concatenate([self._pool_below, self._count(edges, own_rungs)], axis=1)
        edges = np.concatenate([self._edges, edges], axis=1)
        own_scores = np.where(moved, self._scores, 0).max(axis=1, initial=0)
        own_scores[own_scores == 0] = len(_LEVELS) * _LENGTHS + 1
        around = np.broadcast_to(ranks, near.shape)
        scores = np.concatenate([self._scores, around, own_scores[:, None]], axis=1)
        exists = np.where(is_upper, near < self.frame.sizes[:, None], near > 0)
        valid = np.concatenate([base, exists, splits[:, None]], axis=1) & ~missing[:, None]
        above = edges > x[:, None]
        valid &= np.where(above, below < self._present[:, None], below > 0)  # else true of every row, or of none
        keys = (below * 2 + above) * INTERVAL + scores
        keys[~valid] = np.iinfo(np.int64).max
        order = keys.argsort(axis=1, kind="stable")
        keys = np.take_along_axis(keys, order, axis=1) // INTERVAL
        kept = np.take_along_axis(valid, order, axis=1)
        kept[:, 1:] &= keys[:, 1:] != keys[:, :-1]  # of cuts that divide the rows in the same way, the simplest
        flat = (order + np.arange(len(x))[:, None] * order.shape[1])[kept]
        own = (kept & (keys % 2 == 0)).sum(axis=1)
        return RowCuts(
            kept.sum(axis=1),
            edges.reshape(-1)[flat],
            pool_below.reshape(-1)[flat],
            scores.reshape(-1)[flat],
            own,
            ~missing & _only(self.frame, x) & _only(self.pool, x),
            ~missing & (self._atoms == x[:, None]).any(axis=1),
        )

    def _ranks(self, rungs: np.ndarray, is_new: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the rungs above the cuts at the ranks 8, 16, ... on both sides of a row, (columns, cuts).

        Then which are on the upper side (cuts,), and their scores (cuts,): cuts farther from the row are coarser.
        """
        most = int(self._present.max(initial=0))
        distances = _NEAREST << np.arange(max(0, (most // _NEAREST).bit_length()), dtype=np.int64)
        upper, lower = self.frame.below(rungs + ~is_new)[:, None], self.frame.below(rungs)[:, None] + 1
        ends = [distances, distances + distances // _NEAREST]
        ranks = np.concatenate([upper + ends[0], upper + ends[1], lower - ends[0], lower - ends[1]], axis=1)
        near, far, below, beyond = np.split(self.frame.rungs_at_rank(ranks), 4, axis=1)
        first = np.concatenate([near, np.where(beyond > 1, beyond, below) - 1], axis=1)
        last = np.concatenate([np.where(far < self.frame.sizes[:, None], far, near), below - 1], axis=1)
        levels = len(_LEVELS) + 1 + np.arange(len(distances))[::-1]
        scores = np.tile(levels * _LENGTHS + 1, 2)
        return self._shortest(first, last), np.arange(len(scores)) < len(distances), scores

    def _shortest(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Return the rungs from ``first`` to ``last`` with the shortest number or date in the gap below them."""
        low, high = self.frame.value(np.maximum(first - 1, 0)), self.frame.value(last)
        short = np.empty_like(low)
        for kind in set(self.kinds):
            own = self._are(kind)
            short[own] = _short(low[own], high[own], kind)
        return np.asarray(np.clip(self.frame.rungs_below(short), first, last))

    def _are(self, kind: str) -> np.ndarray:
        return np.flatnonzero([each == kind for each in self.kinds])

    def edge(self, column: int, upper: float, own: float) -> float:
        """Return the shortest number, or date in microseconds, in the gap of a cut that has ``upper`` above it.

        ``own`` is the value of the row, which counts as one of the values that lie below or above.
        """
        if column in self.given and upper in self.given[column]:
            return upper
        lower = max(self._next_below(self.frame, column, upper), self._next_below(self.pool, column, upper))
        if own < upper:
            lower = max(lower, own)
        if self.kinds[column] == DATE:
            return float(_short(np.array([lower]), np.array([upper]), DATE)[0])
        if np.isinf(lower):
            lower = max(2 * min(upper, 0.0) - 1, -_LARGEST)
        if np.isinf(upper):
            upper = min(2 * max(lower, 0.0) + 1, _LARGEST)
        return shortest_number(lower, upper, lower / 2 + upper / 2) if lower < upper else np.inf

    def holds_only(self, column: int, own: float, low: float | None, high: float | None) -> bool:
        """Return whether all rows of frame and pool from ``low`` to below ``high`` have the value ``own``."""
        for ladders in {id(each): each for each in (self.frame, self.pool)}.values():
            values = ladders.of(column)
            first, last = (None if end is None else int(values.searchsorted(end)) for end in (low, high))
            inside = values[first:last]
            if len(inside) > 1 or (len(inside) and inside[0] != own):
                return False
        return True

    @staticmethod
    def _next_below(ladders: Ladders, column: int, value: float) -> float:
        values = ladders.of(column)
        at = int(values.searchsorted(value))
        return float(values[at - 1]) if at else -np.inf


@dataclass(frozen=True, eq=False)
class _ColumnCuts:
    """The cuts of one column that do not depend on a row.

    ``edges``, ``levels`` and ``after`` (cuts,): the lowest value above each, how coarse it is, and whether it only
    ends a heavy value, so that a row in its gap lies above it. ``atoms``: the heavy values.
    """

    edges: np.ndarray
    levels: np.ndarray
    after: np.ndarray
    atoms: np.ndarray


def _column_cuts(column: SortedColumn, kind: str, n_rows: int, given: np.ndarray | None) -> _ColumnCuts:
    values, starts = column.values, column.starts
    counts = np.diff(starts)
    heavy = counts > ATOM * n_rows if len(values) > QUANTILES else np.ones(len(values), dtype=bool)
    cuts, after = heavy.copy(), np.zeros(len(values), dtype=bool)
    others = np.cumsum(np.where(heavy, 0, counts))
    if len(others) and others[-1]:
        cuts[_quantiles(values, others, kind)] = True
    after[1:] = heavy[:-1] & ~cuts[1:]
    rungs = np.flatnonzero(cuts | after)
    if given is not None:
        rungs = np.setdiff1d(rungs, np.searchsorted(values, given))
    levels = _coarseness(starts[rungs], column.n_present)
    edges, ends = values[rungs].astype(np.float64), after[rungs]
    if given is not None:
        more = np.zeros(len(given), dtype=bool)
        edges, levels, ends = np.r_[edges, given], np.r_[levels, more], np.r_[ends, more]
    return _ColumnCuts(edges, levels, ends, values[heavy].astype(np.float64))


def _quantiles(values: np.ndarray, below: np.ndarray, kind: str) -> np.ndarray:
    """Return the rungs above the quantiles, given how many rows have each value (m,) or less.

    Of the rungs near a quantile, the one with the shortest number or date in the gap below it is taken.
    """
    n = int(below[-1])
    ranks, most = np.arange(1, QUANTILES) * n // QUANTILES, n // (QUANTILES * _WITHIN)
    first, last = (np.maximum(1, below.searchsorted(ranks + by, side="right")) for by in (-most, most))
    if not most:
        return np.asarray(last)
    rungs = values.searchsorted(_short(values[first - 1], values[last], kind))
    return np.asarray(np.clip(rungs, first, last))


def _coarseness(below: np.ndarray, n: int) -> np.ndarray:
    """Return 1 for the cut nearest to a median, 2 for those nearest to quartiles, and so on, (cuts,)."""
    levels = np.full(len(below), len(_LEVELS), dtype=np.int64)
    if len(below):
        for level, parts in enumerate(_LEVELS):
            wanted = np.arange(1, parts) * (n / parts)
            right = np.clip(below.searchsorted(wanted), 1, max(1, len(below) - 1))
            left = right - 1
            right = np.minimum(right, len(below) - 1)
            levels[np.where(wanted - below[left] <= below[right] - wanted, left, right)] = len(_LEVELS) - level
    return levels


def _only(ladders: Ladders, values: np.ndarray) -> np.ndarray:
    """Return in which columns no other value occurs."""
    return np.asarray(
        (ladders.sizes == 0) | ((ladders.sizes == 1) & (ladders.value(np.zeros_like(ladders.sizes)) == values))
    )


def _lengths(low: np.ndarray, high: np.ndarray, kind: str) -> np.ndarray:
    """Return the length of the shortest number or date in each gap: decimal places, or the unit of the date."""
    if kind == DATE:
        ends = [np.clip(each, -9e18, 9e18).astype(np.int64).view("M8[us]") for each in (low, high)]
        fits = [ends[1].astype(f"M8[{unit}]") > ends[0].astype(f"M8[{unit}]") for unit in _UNITS]
        return np.asarray(np.argmax(fits, axis=0))
    return np.asarray(np.clip(12 - _exponents(low, high), 0, _LENGTHS - 2))


def _exponents(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the largest powers of 10 of which a multiple lies above ``low`` and not above ``high``."""
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.maximum(np.abs(np.where(np.isfinite(low), low, high)), np.abs(high))
        largest = np.clip(_POWERS.searchsorted(size, side="right") - 1, 18, len(_POWERS) - 1)
        units = _POWERS[largest - np.arange(19).reshape(-1, *[1] * largest.ndim)]
        fits = np.floor(high / units) > np.floor(low / units)
        fits[-1] = True
    return np.asarray(largest - fits.argmax(axis=0) - _ONE)


def _short(low: np.ndarray, high: np.ndarray, kind: str) -> np.ndarray:
    """Return the shortest numbers, or dates in microseconds, above ``low`` and at most ``high``, near the middle.

    Numbers are as exact as their division by powers of 10 is, which is enough to choose between cuts.
    """
    if kind == DATE:
        first, last = (np.clip(end, -6e16, 2e17).astype(np.int64).view("M8[us]") for end in (low, high))
        middle, short = first + (last - first) // 2, last
        for unit in reversed(_UNITS):
            begin, mid, end = (moment.astype(f"M8[{unit}]") for moment in (first, middle, last))
            short = np.where(end > begin, np.minimum(mid + 1, end).astype("M8[us]"), short)
        return np.asarray(short.astype(np.int64).astype(np.float64))
    with np.errstate(invalid="ignore", over="ignore"):
        unit = _POWERS[_exponents(low, high) + _ONE]
        short = (
            np.clip(np.round((low / 2 + high / 2) / unit), np.floor(low / unit) + 1, np.floor(high / unit)) * unit
        )
    return np.where(np.isfinite(short), short, high)


def _padded(parts: Sequence[np.ndarray], fill: float) -> np.ndarray:
    """Return arrays of different lengths as the lines of one, (arrays, longest)."""
    widths = np.array([len(part) for part in parts], dtype=np.intp)
    padded = np.full((len(parts), int(widths.max(initial=0))), fill, dtype=np.result_type(fill, *parts[:1]))
    padded[np.arange(padded.shape[1]) < widths[:, None]] = np.concatenate(parts) if parts else []
    return padded
