"""The sets of values to which the edges of trees restrict one attribute, and the shares of training rows in them.

Values that pass the same tests form a *cell*. Every edge admits a set of cells. If all tests of an attribute are
limits of one number, the cells are ordered and a set is an interval of them, with or without the missing value.
Otherwise (categories, groups, several features per attribute) every edge lists its cells.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from anchorline.model.trees import Ensemble
from anchorline.search.leaves.paths import Paths

_MAX_CACHED = 256  # blocks of training rows per attribute; most attributes have fewer than ten
MAX_LISTED = 50_000_000  # cells that all edges of one attribute may list, one byte each


class Sets(Protocol):
    """What each edge of one attribute admits."""

    @property
    def n_cells(self) -> int:
        """Number of cells."""

    def cells(self, values: np.ndarray) -> np.ndarray:
        """Return the cell of every row of feature values (n, features); -1 if no training row is in its cell."""

    def admit(self, values: np.ndarray) -> np.ndarray:
        """Return which edges admit each row of feature values (n, features): booleans (edges, n)."""

    def totals(self, per_cell: np.ndarray) -> np.ndarray:
        """Return the sum over the admitted cells of each edge, (edges,), of numbers per cell (cells,)."""

    @property
    def kinds(self) -> np.ndarray:
        """Numbers (edges,) that are equal for edges that admit the same values."""

    def both(self, edges: np.ndarray, others: np.ndarray, per_cell: np.ndarray) -> np.ndarray:
        """Return sums (m, n), over the cells that an edge (m,) and another one (n,) admit, of numbers (cells,).

        The number of edges stands for the root, which admits all cells.
        """


@dataclass(frozen=True, slots=True, eq=False)
class OrderedSets:
    """Intervals of ordered cells: edge e admits cells ``lows[e]`` to ``highs[e]``, and the last if ``missing[e]``.

    ``limits`` are the sorted limits of the tests. A value is in the cell whose number is the number of limits that
    it does not pass; missing values have a cell of their own, the last.
    """

    limits: np.ndarray
    strict: bool
    dtype: np.dtype
    lows: np.ndarray
    highs: np.ndarray
    missing: np.ndarray

    @property
    def n_cells(self) -> int:
        """Number of cells: one more than limits, and that of missing values."""
        return len(self.limits) + 2

    def cells(self, values: np.ndarray) -> np.ndarray:
        """Return the cell of every value (n, 1)."""
        cast = values[:, 0].astype(self.dtype).astype(np.float64)
        cells = np.searchsorted(self.limits, cast, side="right" if self.strict else "left")
        return np.where(np.isnan(cast), len(self.limits) + 1, cells)

    def admit(self, values: np.ndarray) -> np.ndarray:
        """Return which edges admit each value (n, 1): booleans (edges, n)."""
        cells = self.cells(values)
        inside = (self.lows[:, None] <= cells) & (cells < self.highs[:, None])
        return np.asarray(inside | (self.missing[:, None] & (cells == len(self.limits) + 1)))

    def totals(self, per_cell: np.ndarray) -> np.ndarray:
        """Return the sum over the admitted cells of each edge, from cumulated sums."""
        sums = np.concatenate([[0], np.cumsum(per_cell)])
        inside = sums[np.maximum(self.highs, self.lows)] - sums[self.lows]
        return np.asarray(inside + self.missing * per_cell[-1])

    @property
    def kinds(self) -> np.ndarray:
        """Numbers (edges,) that are equal for edges that admit the same cells."""
        size = self.n_cells
        return np.asarray((self.lows * size + self.highs) * 2 + self.missing)

    def both(self, edges: np.ndarray, others: np.ndarray, per_cell: np.ndarray) -> np.ndarray:
        """Return sums (m, n), over the cells that an edge (m,) and another one (n,) admit, of numbers (cells,)."""
        sums = np.concatenate([[0.0], np.cumsum(per_cell)])  # ordered like cells
        lows, highs = sums[np.append(self.lows, 0)], sums[np.append(self.highs, self.n_cells - 1)]
        total = np.minimum.outer(highs[edges], highs[others])
        total -= np.maximum.outer(lows[edges], lows[others])
        np.maximum(total, 0.0, out=total)
        if per_cell[-1]:
            missing = np.append(self.missing, True)
            total += np.outer(missing[edges], missing[others] * per_cell[-1])
        return np.asarray(total)


@dataclass(frozen=True, slots=True, eq=False)
class ListedSets:
    """Sets of distinct rows of feature values: edge e admits the cells c with ``masks[e, c]``.

    ``passing`` returns which edges admit rows of values, for rows whose values no training row has.
    """

    numbers: dict[bytes, int]
    masks: np.ndarray
    passing: Callable[[np.ndarray], np.ndarray]
    kinds: np.ndarray

    @property
    def n_cells(self) -> int:
        """Number of distinct rows of values."""
        return int(self.masks.shape[1])

    def cells(self, values: np.ndarray) -> np.ndarray:
        """Return the number of every row of values (n, features), or -1."""
        return np.array([self.numbers.get(key, -1) for key in _keys(values)], dtype=np.intp)

    def admit(self, values: np.ndarray) -> np.ndarray:
        """Return which edges admit each row of values (n, features): booleans (edges, n)."""
        cells = self.cells(values)
        admitted = self.masks[:, cells]
        unseen = cells < 0
        if unseen.any():
            admitted[:, unseen] = self.passing(values[unseen])
        return admitted

    def totals(self, per_cell: np.ndarray) -> np.ndarray:
        """Return the sum over the admitted cells of each edge; exact for whole numbers, in any order."""
        return np.asarray(self.masks @ per_cell.astype(np.float64))

    def both(self, edges: np.ndarray, others: np.ndarray, per_cell: np.ndarray) -> np.ndarray:
        """Return sums (m, n), over the cells that an edge (m,) and another one (n,) admit, of numbers (cells,)."""
        masks = np.append(self.masks, np.ones((1, self.n_cells), dtype=bool), axis=0)
        return np.asarray((masks[edges] * per_cell) @ masks[others].T.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Marginal:
    """One attribute: its features that trees test, what its edges admit, and the cell of every row of the pool."""

    columns: list[int]
    sets: Sets
    rows: np.ndarray
    _known: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = field(default_factory=dict, repr=False)

    def per_cell(self, begin: int, size: int) -> np.ndarray:
        """Return how many of the ``size`` rows of the circular pool from ``begin`` on are in each cell."""
        return self._counted(begin, size)[0]

    def shares(self, begin: int, size: int) -> np.ndarray:
        """Return the share of these rows that each edge admits, (edges,); 0 without rows. Counts are exact."""
        return self._counted(begin, size)[1]

    def _counted(self, begin: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return `per_cell` and `shares` of a block of rows."""
        found = self._known.get((begin, size))
        if found is None:  # another thread may empty the dictionary at any time
            if len(self._known) >= _MAX_CACHED:
                self._known.clear()
            n, end = len(self.rows), begin + size
            parts = [self.rows[begin:end], self.rows[: max(0, end - n)]]
            counts = np.bincount(np.concatenate(parts), minlength=self.sets.n_cells)
            found = self._known[begin, size] = counts, self.sets.totals(counts) / max(size, 1)
        return found

    def shares_of(self, begins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return `shares` of n blocks of rows, (edges, n); 0 for empty blocks."""
        blocks = list(zip(begins.tolist(), sizes.tolist(), strict=True))
        numbers = {block: number for number, block in enumerate(dict.fromkeys(blocks))}  # few are distinct
        shares = np.array([self.shares(*block) for block in numbers])
        return shares.take([numbers[block] for block in blocks], axis=0).T


def sets_of(ensemble: Ensemble, paths: Paths, attribute: int, columns: Sequence[int], values: np.ndarray) -> Sets:
    """Return what the edges of an attribute admit; ``values`` (n, m) are those of its features ``columns``."""
    edges = paths.slices[attribute]
    nodes = paths.node[edges]
    if len(columns) == 1 and (ensemble.category_set[nodes] < 0).all():
        return _ordered(ensemble, paths, edges)

    def passing(rows: np.ndarray) -> np.ndarray:
        return _admitting(ensemble, paths, edges, {feature: rows[:, i] for i, feature in enumerate(columns)})

    keys = _keys(values)
    first = {key: row for row, key in reversed([*enumerate(keys)])}
    distinct = sorted(first, key=first.__getitem__)
    masks = passing(values[[first[key] for key in distinct]])
    # Edges are not merged: those that admit the same training rows may admit different values of other rows.
    kinds = np.arange(len(nodes))
    return ListedSets({key: number for number, key in enumerate(distinct)}, masks, passing, kinds)


def n_listed(paths: Paths, attribute: int, values: np.ndarray) -> int:
    """Return how many cells all edges of an attribute would list."""
    edges = paths.slices[attribute]
    return int(edges.stop - edges.start) * len({*_keys(values)})


def _keys(values: np.ndarray) -> list[bytes]:
    """Return rows of values as bytes; all missing values are the same, and so are 0 and -0."""
    canonical = np.where(np.isnan(values), np.nan, values) + 0.0
    return [row.tobytes() for row in np.ascontiguousarray(canonical)]


def _ordered(ensemble: Ensemble, paths: Paths, edges: slice) -> OrderedSets:
    nodes, is_left = paths.node[edges], paths.is_left[edges]
    limits, at = np.unique(ensemble.threshold[nodes], return_inverse=True)
    lows, highs = np.where(is_left, 0, at + 1), np.where(is_left, at + 1, len(limits) + 1)
    missing = ensemble.missing_left[nodes] == is_left
    before = paths.before[edges] - edges.start
    for level in _by_rank(before, paths.n_edges - edges.start):
        lows[level] = np.maximum(lows[level], lows[before[level]])
        highs[level] = np.minimum(highs[level], highs[before[level]])
        missing[level] &= missing[before[level]]
    return OrderedSets(limits, ensemble.strict, ensemble.dtype, lows, highs, missing)


def _by_rank(before: np.ndarray, root: int) -> list[np.ndarray]:
    """Return the edges that have one earlier edge of their attribute, those that have two, and so on."""
    levels, done = [], before == root
    waiting = np.flatnonzero(~done)
    while len(waiting):
        ready = waiting[done[before[waiting]]]
        levels.append(ready)
        done[ready] = True
        waiting = waiting[~done[waiting]]
    return levels


def _admitting(ensemble: Ensemble, paths: Paths, edges: slice, features: dict[int, np.ndarray]) -> np.ndarray:
    """Return which edges admit rows of feature values: booleans (edges, n)."""
    nodes, is_left = paths.node[edges], paths.is_left[edges]
    n = len(next(iter(features.values())))
    admitted = np.empty((len(nodes), n), dtype=bool)
    for node in np.unique(nodes).tolist():
        passed = ensemble.passes(node, features[int(ensemble.feature[node])])
        own = nodes == node
        admitted[own] = np.where(is_left[own, None], passed, ~passed)
    before = paths.before[edges] - edges.start
    for level in _by_rank(before, paths.n_edges - edges.start):
        admitted[level] &= admitted[before[level]]
    return admitted
