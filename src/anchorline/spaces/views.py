"""Views: how the values of an attribute are divided into cells, and the facts about one row that follow.

A column is one view; a group of columns has one per column. The cells of numbers and dates lie between cuts; a
category has the cells "this one" and "all others"; the last cell of every view holds missing values.

A cut is known by the lowest value above it: rows with that value or more lie above, and all others below. It is
written as the shortest decimal or date in the gap below that value, so that ``income < 39,000`` is stated rather
than ``income < 39,187.5``; moving a cut inside its gap changes no row.

- Values that more than 5% of the rows hold have a cut on each side; so have all values if there are few.
- The other rows are cut into 20 parts at quantiles, each at the shortest number within 0.5% of the rows.
- On both sides of the explained row, cuts at the ranks 8, 16, 32, ... reach rare regions; each is at the shortest
  number from there to an eighth farther.
- The user's own cuts are added as they are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.facts import Candidates, Fact
from anchorline.spaces.columns import BOOLEAN, CATEGORY, DATE, NUMBER, Column, date_text, level_of, shortest_number
from anchorline.spaces.groups import Attribute
from anchorline.spaces.pools import Ladders, Pool, SortedColumn
from anchorline.spaces.rows import ColumnType

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
_LONGEST_VALUE = 10  # characters of a value that a fact equals; a longer one has a bound beside it
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
        edges, levels, after, atoms = zip(*each, strict=True) if each else [()] * 4
        self._edges, self._atoms = _padded(edges, np.nan), _padded(atoms, np.nan)
        self._after, is_cut = _padded(after, False), ~np.isnan(self._edges)
        lowest = np.where(is_cut, self._edges, 0.0)
        rungs = self.frame.rungs_below(lowest)
        self._below, self._pool_below = self.frame.below(rungs), self.pool.below(self.pool.rungs_below(lowest))
        before = np.where(rungs > 0, self.frame.value(np.maximum(rungs - 1, 0)), -np.inf)
        lengths = self._by_kind(_lengths, before, lowest).astype(np.int64)
        self._scores = np.where(is_cut, _padded(levels, 0) * _LENGTHS + lengths + 1, 0)

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
        own_below = self.frame.below(own_rungs)
        below = np.concatenate([self._below, own_below], axis=1)
        own_below = own_below if self.pool is self.frame else self.pool.below(self.pool.rungs_below(edges))
        pool_below = np.concatenate([self._pool_below, own_below], axis=1)
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
        short = self._by_kind(_short, low, high)
        return np.asarray(np.clip(self.frame.rungs_below(short), first, last))

    def _by_kind(self, function: Callable[..., np.ndarray], low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return what a function of gaps and their kind returns, (columns, ...)."""
        found = np.empty_like(low)
        for kind in set(self.kinds):
            own = np.flatnonzero([each == kind for each in self.kinds])
            found[own] = function(low[own], high[own], kind)
        return found

    def edge(self, column: int, upper: float, own: float) -> float:
        """Return the shortest number, or date in microseconds, in the gap of a cut that has ``upper`` above it.

        ``own`` is the value of the row, which counts as one of the values that lie below or above.
        """
        if column in self.given and upper in self.given[column]:
            return upper
        lower = own if own < upper else -np.inf
        for values in (self.frame.of(column), self.pool.of(column)):
            lower = max([lower, *values[: values.searchsorted(upper)][-1:].tolist()])
        if self.kinds[column] == DATE:
            return float(_short(np.array([lower]), np.array([upper]), DATE)[0])
        if np.isinf(lower):
            lower = max(2 * min(upper, 0.0) - 1, -_LARGEST)
        if np.isinf(upper):
            upper = min(2 * max(lower, 0.0) + 1, _LARGEST)
        return shortest_number(lower, upper, lower / 2 + upper / 2) if lower < upper else np.inf

    def holds_only(self, column: int, own: float, low: float | None, high: float | None) -> bool:
        """Return whether all rows of frame and pool from ``low`` to below ``high`` have the value ``own``."""
        for values in (self.frame.of(column), self.pool.of(column)):
            first, last = (None if end is None else int(values.searchsorted(end)) for end in (low, high))
            inside = values[first:last]
            if len(inside) > 1 or (len(inside) and inside[0] != own):
                return False
        return True


def _column_cuts(
    column: SortedColumn, kind: str, n_rows: int, given: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the cuts of one column that do not depend on a row.

    Of each cut, the lowest value above it, how coarse it is, and whether it only ends a heavy value, so that a row
    in its gap lies above it, (cuts,); and the heavy values.
    """
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
    return edges, levels, ends, values[heavy].astype(np.float64)


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
            after = np.minimum(mid + np.array(1, f"m8[{unit}]"), end).astype("M8[us]")
            short = np.where(end > begin, after, short)
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


class Views:
    """The views of a table; ``columns``, ``attributes`` (views,): the column and the attribute that each divides.

    ``frame`` are the rows of the table, and ``pool`` those from which values are drawn; ``ordered`` (views,) says
    which views are cut, and ``cuts`` where the user does. ``labels`` names the levels of some columns.
    """

    def __init__(
        self,
        attributes: Sequence[Attribute],
        frame: Pool,
        pool: Pool,
        types: Sequence[ColumnType],
        cuts: Mapping[int, np.ndarray],
        labels: Mapping[int, Mapping[str, str]],
    ) -> None:
        pairs = [(i, j) for i, attribute in enumerate(attributes) for j in attribute.views]
        self.subjects = tuple(attributes)
        self.attributes = np.array([i for i, _ in pairs], dtype=np.intp)
        self.columns = np.array([j for _, j in pairs], dtype=np.intp)
        self.labels, self.types, self.n_pool = labels, types, pool.n_rows
        self.kinds = kinds = tuple(column.kind for column in frame.columns)
        self.sorted = tuple(pool.sorted[j] for _, j in pairs)
        self.present = np.array([column.n_present for column in self.sorted], dtype=np.intp)
        is_ordered = [kinds[j] in (NUMBER, DATE) and j not in labels for _, j in pairs]
        self.ordered = np.array(is_ordered, dtype=bool)
        self.cut_views = np.flatnonzero(self.ordered)
        cut_columns = self.columns[self.cut_views].tolist()
        given = {v: cuts[j] for v, j in enumerate(cut_columns) if j in cuts}
        self.cuts = Cuts(
            [frame.sorted[j] for j in cut_columns],
            [pool.sorted[j] for j in cut_columns],
            [kinds[j] for j in cut_columns],
            frame.n_rows,
            given,
        )

    def at(self, row: Sequence[Column]) -> "RowViews":
        """Divide the values around a row, which is given as columns of one value each."""
        values = np.array([row[j].values[0] for j in self.columns[self.cut_views].tolist()], dtype=np.float64)
        missing = np.array([row[j].missing[0] for j in self.columns.tolist()], dtype=bool)
        return RowViews(self, tuple(row), self.cuts.around(values, missing[self.cut_views]), missing)


@dataclass(frozen=True, eq=False)
class RowViews:
    """The cells around one row, and the facts about it.

    A pool row has a *place* in each view: its position among the pool rows that are sorted by this column. The
    rows of every cell, except "all other categories", and of every fact are adjacent.
    """

    views: Views
    row: tuple[Column, ...]
    cuts: RowCuts
    missing: np.ndarray

    @cached_property
    def _layout(self) -> "_Layout":
        """The cells of all views, in order."""
        views, cuts = self.views, self.cuts
        sizes = np.full(len(views.columns), 3, dtype=np.intp)
        sizes[views.cut_views] = cuts.counts + 2
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        begins, ends = np.zeros((2, starts[-1]), dtype=np.intp)
        lefts = np.zeros(starts[-1] + 1, dtype=np.int64)
        missing_cells = starts[1:] - 1
        ends[missing_cells - 1] = views.present  # of numbers and dates; for categories, it is replaced below
        begins[missing_cells], ends[missing_cells] = views.present, views.n_pool
        # The cut number i of a view lies between its cells i and i + 1.
        at = starts[views.cut_views].repeat(cuts.counts) + 1
        at += np.arange(len(at)) - (np.cumsum(cuts.counts) - cuts.counts).repeat(cuts.counts)
        begins[at], ends[at - 1], lefts[at] = cuts.below, cuts.below, cuts.scores
        levels = starts[:-1][~views.ordered]
        for v in np.flatnonzero(~views.ordered & ~self.missing).tolist():
            begins[starts[v]], ends[starts[v]] = views.sorted[v].span(self.row[views.columns[v]].values[0])
        ends[levels + 1] = 0
        own = starts[:-1].copy()
        own[views.cut_views] += cuts.own
        own[self.missing] = missing_cells[self.missing]
        counts = ends - begins
        counts[levels + 1] = views.present[~views.ordered] - counts[levels]
        return _Layout(starts, begins, ends, counts, lefts, own)

    @cached_property
    def edges(self) -> tuple[np.ndarray, ...]:
        """Per view, the lowest values above its cuts, ascending; empty for categories.

        A number or date lies in the cell ``edges.searchsorted(value, side="right")`` of its view.
        """
        ends = np.cumsum(self.cuts.counts)
        parts = iter(np.split(self.cuts.edges, ends[:-1]) if len(ends) else [])
        return tuple(next(parts) if ordered else np.zeros(0) for ordered in self.views.ordered.tolist())

    @cached_property
    def candidates(self) -> Candidates:
        """The facts: all runs of cells that contain the row's own and that some pool row breaks.

        Of numbers and dates, these are all bounds and intervals; that a value is not missing is not a fact.
        """
        views, layout, cuts = self.views, self._layout, self.cuts
        starts, own = layout.starts, layout.own
        n_first, n_last = np.ones((2, len(own)), dtype=np.intp)
        cut = views.ordered & ~self.missing
        n_first[cut], n_last[cut] = (own - starts[:-1] + 1)[cut], (starts[1:] - 1 - own)[cut]
        for i, attribute in enumerate(views.subjects):
            if attribute.is_one_hot:
                ofs = np.flatnonzero(views.attributes == i)
                ones = np.array([self.row[j].values[0] == 1 for j in views.columns[ofs].tolist()])
                if ones.sum() == 1:  # nothing is said of the other indicators
                    n_first[ofs[~ones]] = 0
        n_facts = n_first * n_last
        numbers = np.arange(n_facts.sum()) - (np.cumsum(n_facts) - n_facts).repeat(n_facts)
        of = np.arange(len(own)).repeat(n_facts)
        steps, last = np.divmod(numbers, n_last[of])
        first = (own - n_first + 1)[of] + steps
        last += own[of] + 1
        alone = np.zeros(len(own), dtype=bool)
        alone[views.cut_views] = cuts.alone
        whole = cut[of] & (first == starts[of]) & (last == starts[of + 1] - 1) & ~alone[of]
        n_true = layout.ends[last - 1] - layout.begins[first]
        kept = (n_true < views.n_pool) & ~whole
        of, first, last = of[kept], first[kept], last[kept]
        lower, upper = layout.lefts[first], layout.lefts[last]
        heavy = np.zeros(len(own), dtype=bool)
        heavy[views.cut_views] = cuts.heavy  # its own cell says "= value", which is as simple as a bound
        equal = heavy[of] & (last - first == 1)
        ranks = lower + upper + INTERVAL * ((lower > 0) & (upper > 0) & ~equal)
        shares = layout.counts / views.n_pool
        return Candidates(views.attributes, starts, shares, own, of, first, last, ranks)

    def span(self, fact: int) -> tuple[int, int]:
        """Return the places in its view, from start to stop, of the pool rows for which a fact is true."""
        first, last = int(self.candidates.first[fact]), int(self.candidates.last[fact])
        start, stop = int(self._layout.begins[first]), int(self._layout.ends[last - 1])
        return start, stop

    @property
    def places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where the pool rows of every cell start and stop in its view, (cells,), and those of the others."""
        return self._layout.begins, self._layout.ends, self._layout.starts[:-1][~self.views.ordered] + 1

    @cached_property
    def _segments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The cells of the place -1, which is the row's own, and of all places, as runs of adjacent places.

        Where the runs of each view begin (views + 1,), and the cell and the number of places of every run (runs,).
        """
        views, layout = self.views, self._layout
        runs = np.where(views.ordered, np.diff(layout.starts) + 1, 5)
        starts = np.concatenate([[0], np.cumsum(runs)])
        cells = np.arange(starts[-1]) - (starts[:-1] + 1 - layout.starts[:-1]).repeat(runs)
        first = starts[:-1][~views.ordered]  # of categories: others, the own one, others, missing values
        cells[first[:, None] + np.arange(1, 5)] = layout.starts[:-1][~views.ordered, None] + [1, 0, 1, 2]
        cells[starts[:-1]] = layout.own
        counts = layout.counts[cells]
        begins, ends = layout.begins[cells[first + 2]], layout.ends[cells[first + 2]]
        counts[first + 1], counts[first + 3] = begins, views.present[~views.ordered] - ends
        counts[starts[:-1]] = 1
        return starts, cells.astype(np.int32), counts

    def cells(self, view: int, places: np.ndarray) -> np.ndarray:
        """Return the cells of pool rows at these places (n,) of a view; the place -1 stands for the row itself."""
        starts, cells, counts = self._segments
        own, at = slice(int(starts[view]), int(starts[view + 1])), places + 1
        if self.views.n_pool <= 4 * len(places):
            return np.asarray(cells[own].repeat(counts[own])[at])
        return np.asarray(cells[own][np.cumsum(counts[own]).searchsorted(at, side="right")])

    def row_cells(self, columns: Sequence[Column]) -> np.ndarray:
        """Return the cells (views, n) of the values of columns (n,), one per view."""
        starts, cells = self._layout.starts, np.empty((len(columns), len(columns[0].values)), dtype=np.intp)
        for view, column in enumerate(columns):
            if self.views.ordered[view]:
                values = np.where(column.missing, 0.0, column.values)
                own = self.edges[view].searchsorted(values, side="right")
            else:
                own = (column.values != self.row[self.views.columns[view]].values[0]).astype(np.intp)
            cells[view] = starts[view] + np.where(column.missing, starts[view + 1] - starts[view] - 1, own)
        return cells

    def fact(self, fact: int) -> Fact:
        """Return a candidate as a statement; the row's own value is always one for which it is true."""
        candidates, views = self.candidates, self.views
        view = int(candidates.views[fact])
        column, subject = int(views.columns[view]), views.subjects[int(views.attributes[view])]
        name = views.subjects[int(views.attributes[view])].names[subject.positions.index(column)]
        if self.missing[view]:
            return Fact(subject.name, name, "missing")
        value = self.value(column)
        if not views.ordered[view]:
            return Fact(subject.name, name, "equals", value=value)
        start, stop = int(self._layout.starts[view]), int(self._layout.starts[view + 1]) - 1
        edges, own = self.edges[view], float(self.row[column].values[0])
        first, last = int(candidates.first[fact]) - start, int(candidates.last[fact]) - start
        low = float(edges[first - 1]) if first else None
        high = float(edges[last - 1]) if last < stop - start else None
        is_plain = len(str(value)) <= _LONGEST_VALUE or (low is None and high is None)
        if is_plain and views.cuts.holds_only(int(np.searchsorted(views.cut_views, view)), own, low, high):
            return Fact(subject.name, name, "equals", value=value)
        bounds = [None if end is None else self._bound(view, end) for end in (low, high)]
        kind = "between" if None not in bounds else "below" if bounds[0] is None else "at_least"
        return Fact(subject.name, name, kind, low=bounds[0], high=bounds[1], value=value)

    def edge_labels(self, view: int, cells: Sequence[int]) -> tuple[Any, ...]:
        """Return what is written where cells of a view begin, counted from its first."""
        if not self.views.ordered[view] or self.missing[view]:
            return (self.value(int(self.views.columns[view])),) * len(cells)
        return tuple(self._bound(view, float(self.edges[view][cell - 1])) for cell in cells)

    def _bound(self, view: int, end: float) -> Any:
        """Return a cut as it is written, given the lowest value above it."""
        column, place = int(self.views.columns[view]), int(np.searchsorted(self.views.cut_views, view))
        return self._written(column, self.views.cuts.edge(place, end, float(self.row[column].values[0])))

    def value(self, column: int) -> Any:
        """Return the row's own value in a column, for a fact: the name of a level if it has one."""
        cell = self.row[column]
        if cell.missing[0]:
            return None
        value, kind = cell.values[0], self.views.kinds[column]
        if column in self.views.labels:
            level = level_of(value, cell.kind)
            if level in self.views.labels[column]:
                return self.views.labels[column][level]
        if kind == CATEGORY:
            return str(value)
        return bool(value) if kind == BOOLEAN else self._written(column, float(value))

    def _written(self, column: int, value: float) -> Any:
        """Return a number or date for a fact, as JSON can hold it."""
        if self.views.kinds[column] == DATE:
            return date_text(value, self.views.types[column].zoned)
        if np.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        return int(value) if abs(value) < 2**53 and value == int(value) else value


@dataclass(frozen=True, eq=False)
class _Layout:
    """The cells of all views.

    ``starts`` (views + 1,): where the cells of each view begin. ``begins``, ``ends`` (cells,): the places of their
    pool rows, which mean nothing of "all other categories". ``counts`` (cells,): their pool rows. ``lefts``
    (cells + 1,): the score of the cut below each cell, or 0. ``own`` (views,): the row's own cells.
    """

    starts: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    counts: np.ndarray
    lefts: np.ndarray
    own: np.ndarray
