"""Views: how the values of an attribute are divided into cells, and the facts about one row that follow.

A column is one view; a group of columns has one per column. The cells of numbers and dates lie between cuts; a
category has the cells "this one" and "all others"; the last cell of every view holds missing values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.facts import Candidates, Fact
from anchorline.spaces.columns import BOOLEAN, CATEGORY, DATE, NUMBER, Column, level_of
from anchorline.spaces.cuts import INTERVAL, Cuts, RowCuts
from anchorline.spaces.groups import Attribute
from anchorline.spaces.pools import Pool
from anchorline.spaces.rows import ColumnType


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
    def _spans(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the pool rows with the row's own category start and stop, (views,); 0 for views that are cut."""
        spans = np.zeros((2, len(self.views.columns)), dtype=np.intp)
        for v in np.flatnonzero(~self.views.ordered & ~self.missing).tolist():
            spans[:, v] = self.views.sorted[v].span(self.row[self.views.columns[v]].values[0])
        return spans[0], spans[1]

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
        begins[levels], ends[levels] = (each[~views.ordered] for each in self._spans)
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
    def _hidden(self) -> np.ndarray:
        """Views without facts, (views,): of a row with one indicator that is 1, all other indicators."""
        hidden = np.zeros(len(self.views.columns), dtype=bool)
        for i, attribute in enumerate(self.views.subjects):
            if attribute.is_one_hot:
                own = np.flatnonzero(self.views.attributes == i)
                ones = [self.row[j].values[0] == 1 for j in self.views.columns[own].tolist()]
                if sum(ones) == 1:
                    hidden[own] = ~np.array(ones)
        return hidden

    @cached_property
    def candidates(self) -> Candidates:
        """The facts: all runs of cells that contain the row's own and that some pool row breaks.

        Of numbers and dates, these are all bounds and intervals; that a value is not missing is not a fact.
        """
        views, layout, cuts = self.views, self._layout, self.cuts
        starts, own = layout.starts, layout.own
        n_first, n_last = np.ones((2, len(own)), dtype=np.intp)
        cut = np.zeros(len(own), dtype=bool)
        cut[views.cut_views] = True
        cut &= ~self.missing
        n_first[cut], n_last[cut] = (own - starts[:-1] + 1)[cut], (starts[1:] - 1 - own)[cut]
        n_first[self._hidden] = 0
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
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the pool rows of every cell start and stop in its view, (cells,); 0 for all other categories."""
        return self._layout.begins, self._layout.ends

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

    def cells(self, first: int, places: np.ndarray) -> np.ndarray:
        """Return the cells of pool rows at these places (views, n) of the views from ``first`` on.

        The place -1 stands for the row itself.
        """
        starts, cells, counts = self._segments
        n_views, n = places.shape
        start, stop = int(starts[first]), int(starts[first + n_views])
        at, n_pool = places + 1, self.views.n_pool
        if n_pool <= 4 * n:
            at += np.arange(n_views, dtype=at.dtype)[:, None] * (n_pool + 1)
            return np.asarray(cells[start:stop].repeat(counts[start:stop])[at])
        found = np.empty(places.shape, dtype=np.int32)
        for view, row in enumerate(at, first):
            own = slice(int(starts[view]), int(starts[view + 1]))
            found[view - first] = cells[own][np.cumsum(counts[own]).searchsorted(row, side="right")]
        return found

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
        if views.cuts.holds_only(int(np.searchsorted(views.cut_views, view)), own, low, high):
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


def date_text(value: float, zoned: bool = False) -> str:
    """Write a date in microseconds as an ISO text, without a time of day at midnight.

    Examples
    --------
    >>> date_text(0.0), date_text(60e6, zoned=True)
    ('1970-01-01', '1970-01-01T00:01Z')
    """
    text = str(np.datetime64(round(value), "us")).removesuffix(".000000").removesuffix(":00")
    return text + "Z" if zoned else text.removesuffix("T00:00")
