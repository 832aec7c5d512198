"""Sums over the leaves of one model on one table: the moments of whole neighborhoods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.model.trees import Ensemble
from anchorline.search.leaves.joining import Features, NotSeparableError
from anchorline.search.leaves.pairs import Attribute, Factors, Tests
from anchorline.search.leaves.paths import Paths
from anchorline.search.leaves.sets import MAX_LISTED, Marginal, OrderedSets, n_listed, sets_of
from anchorline.spaces.base import Law, Source
from anchorline.spaces.table_rows import RowWays


@dataclass(frozen=True, eq=False)
class LeafSums:
    """The trees of a model joined with a table; ``marginals`` holds one entry per attribute, None if unused."""

    ensemble: Ensemble
    features: Features
    paths: Paths
    marginals: tuple[Marginal | None, ...]

    @classmethod
    def of(cls, ensemble: Ensemble, features: Features) -> "LeafSums":
        """Join trees with the features of a table; raise `NotSeparableError` if these are too many."""
        attributes = features.units.table.attributes
        n_attributes = len(attributes)
        owners = np.where(features.owners < n_attributes, features.owners, -1)
        paths = Paths.of(ensemble, owners, n_attributes)
        marginals = [
            _marginal(ensemble, paths, features, a, attributes[a].name)
            if paths.slices[a].start < paths.slices[a].stop
            else None
            for a in range(n_attributes)
        ]
        return cls(ensemble, features, paths, tuple(marginals))

    @property
    def n_attributes(self) -> int:
        """Number of attributes of the table."""
        return len(self.marginals)

    @cached_property
    def constant(self) -> np.ndarray:
        """Features that are the same in every training row, and whose value a test uses: (m,) of their numbers."""
        tested = np.unique(self.ensemble.feature[self.paths.node])
        return np.asarray(tested[self.features.owners[tested] < 0])

    def unlike_training(self, values: np.ndarray) -> np.ndarray:
        """Return which rows of features (n, m) have a value that no training row has where all have the same."""
        own, known = values[:, self.constant], self.features.values[0, self.constant]
        return np.asarray(((own != known) & ~(np.isnan(own) & np.isnan(known))).any(axis=1))

    @cached_property
    def _ordered(self) -> tuple[np.ndarray, np.ndarray]:
        """The first cell that every edge admits and the one after the last; none where cells are not ordered."""
        lows, highs = np.zeros(self.paths.n_edges, np.int32), np.zeros(self.paths.n_edges, np.int32)
        for attribute, marginal in enumerate(self.marginals):
            if marginal is not None and isinstance(marginal.sets, OrderedSets):
                edges = self.paths.slices[attribute]
                lows[edges], highs[edges] = marginal.sets.lows, marginal.sets.highs
        return lows[:, None], highs[:, None]

    def kept(self, values: np.ndarray) -> np.ndarray:
        """Return which edges admit each row of features (n, m): booleans (edges, n)."""
        paths, (lows, highs) = self.paths, self._ordered
        cells = np.full((self.n_attributes + 1, len(values)), -1, dtype=np.int32)
        others = []
        for attribute, marginal in enumerate(self.marginals):
            if marginal is not None:
                own = values[:, marginal.columns]
                if isinstance(marginal.sets, OrderedSets) and not np.isnan(own).any():
                    cells[attribute] = marginal.sets.cells(own)
                else:
                    others.append((attribute, marginal.sets.admit(own)))
        at = cells.take(paths.attribute, axis=0)
        kept = (at >= lows) & (at < highs)
        for attribute, admitted in others:
            kept[paths.slices[attribute]] = admitted
        still = paths.slices[-1]
        for edge in range(still.start, still.stop):  # features that never change: one test per edge is enough
            node = int(paths.node[edge])
            passed = self.ensemble.passes(node, values[:, self.ensemble.feature[node]])
            kept[edge] = passed == paths.is_left[edge]
        return kept

    def shares(self, values: np.ndarray, drawn: "Drawn") -> np.ndarray:
        """Return which share of the values of every outcome each edge admits, (1 + ways, edges, n).

        ``values`` (n, m) are the features of n rows, and ``drawn`` says where their attributes take values from.
        """
        shares = np.zeros((drawn.weights.shape[1], self.paths.n_edges, len(values)))
        shares[0] = self.kept(values)
        redrawn = drawn.sizes[:, 0] > 0
        for attribute, marginal in enumerate(self.marginals):
            if marginal is not None:
                edges, at = self.paths.slices[attribute], redrawn[attribute]
                begins, sizes = drawn.begins[attribute], drawn.sizes[attribute]
                if at.any():
                    shares[0, edges][:, at] = marginal.shares_of(begins[0, at], sizes[0, at])
                for way in range(1, len(shares)):
                    shares[way, edges] = marginal.shares_of(begins[way], sizes[way])
        return shares

    def weighted(self, shares: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the probabilities of the outcomes with a value of the edge's set, (1 + ways, edges, n).

        ``weights`` (attributes, 1 + ways, n) are the probabilities of the outcomes.
        """
        still = np.zeros((1, *weights.shape[1:]))
        still[:, 0] = 1.0  # features that never change
        pairs = zip(shares, np.concatenate([weights, still]).transpose(1, 0, 2), strict=True)
        return np.stack([share * own.take(self.paths.attribute, axis=0) for share, own in pairs])

    def drops(self, answers: Any, means: Any, covariances: np.ndarray, half_ranges: Any) -> tuple[Any, np.ndarray]:
        """Return the mean drop of rows with these answers, and its covariances, from the moments of the output."""
        return (answers - (means + self.paths.constant[0])) / (2 * half_ranges), -covariances / (2 * half_ranges)

    def rounding(self, half_ranges: Any) -> Any:
        """Return the size of covariances that may be rounding errors, on the scale of the drops."""
        return 1e-12 * np.minimum(1.0, np.abs(self.paths.values[:, 0]).max(initial=0.0) / half_ranges)

    @cached_property
    def _tests(self) -> tuple[Tests | None, ...]:
        """The tests of every attribute, None where there are none."""
        return tuple(
            None if marginal is None else Tests.of(self.paths, number, marginal.sets)
            for number, marginal in enumerate(self.marginals)
        )

    def factors(
        self,
        values: np.ndarray,
        sources: Mapping[int, Source],
        weights: np.ndarray,
        alive: np.ndarray,
    ) -> list[Factors | None]:
        """Return the factors of every attribute of one row, whose outcomes have these weights (d, 1 + ways).

        ``sources`` are those of the attributes that can change. Only edges that are ``alive`` (edges,), and their
        leaves, count; None where there are none.
        """
        found, leaves = list[Factors | None](), np.flatnonzero(alive[self.paths.leaf_edges])
        for number, (marginal, tests) in enumerate(zip(self.marginals, self._tests, strict=True)):
            own = alive[self.paths.slices[number]]
            if marginal is None or tests is None or not own.any():
                found.append(None)
            else:
                drawn = _drawn_attribute(marginal, sources.get(number), values, weights[number])
                found.append(Factors.of(tests, drawn, own, leaves))
        return found


def _drawn_attribute(
    marginal: Marginal, source: Source | None, values: np.ndarray, weights: np.ndarray
) -> Attribute:
    """Return how an attribute of one row is drawn."""
    redrawn = source is not None and source.kept[1] > 0
    blocks = [] if source is None else [source.kept, *source.ways]
    chances = np.zeros(marginal.sets.n_cells)
    for block, weight in zip(blocks, weights.tolist(), strict=False):
        if block[1] and weight:
            chances += marginal.per_cell(*block) * (weight / block[1])
    own, features = 0.0 if redrawn else float(weights[0]), values[:, marginal.columns]
    cell = int(marginal.sets.cells(features)[0]) if own else -1
    if cell >= 0:
        chances[cell] += own
        own = 0.0
    kept = marginal.sets.admit(features)[:, 0] if own else np.zeros(0, dtype=bool)
    return Attribute(marginal.sets, chances, kept, own)


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """How the attributes of n rows are drawn: the probabilities of their outcomes, and where values come from.

    ``weights`` (attributes, 1 + ways, n) are probabilities. An attribute that cannot be broken keeps its value.
    ``begins`` and ``sizes`` (attributes, 1 + ways, n) are rows of the circular pool. A size of 0 in the first
    place means that the row keeps its own value.
    """

    weights: np.ndarray
    begins: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of_row(cls, law: Law, sources: Sequence[Source], n_attributes: int) -> "Drawn":
        """Return how the attributes of a single row are drawn."""
        n_ways = law.shares.shape[1]
        weights = np.zeros((n_attributes, 1 + n_ways, 1))
        weights[:, 0] = 1.0
        numbers = [source.attribute for source in sources]
        weights[numbers, 0] = 1 - law.flip_probability
        weights[numbers, 1:, 0] = law.flip_probability * law.shares
        begins, sizes = np.zeros((2, *weights.shape), dtype=np.intp)
        for source in sources:
            for way, (begin, size) in enumerate((source.kept, *source.ways)):
                begins[source.attribute, way], sizes[source.attribute, way] = begin, size
        return cls(weights, begins, sizes)

    @classmethod
    def of_rows(cls, ways: RowWays, p: float) -> "Drawn":
        """Return how the attributes of many rows are drawn."""
        sizes = ways.sizes[:, 1:]
        totals = sizes.sum(axis=1)
        weights = np.zeros(ways.sizes.shape)
        weights[:, 0] = np.where(totals, 1 - p, 1.0)
        weights[:, 1:] = p * (sizes / np.maximum(totals, 1)[:, None])
        return cls(weights, ways.begins, ways.sizes)

    def take(self, rows: np.ndarray | slice) -> "Drawn":
        """Return how the attributes of some of the rows are drawn."""
        return Drawn(self.weights[..., rows], self.begins[..., rows], self.sizes[..., rows])


def _marginal(ensemble: Ensemble, paths: Paths, features: Features, attribute: int, name: str) -> Marginal:
    edges = paths.slices[attribute]
    columns = np.unique(ensemble.feature[paths.node[edges]]).tolist()
    values = features.values[:, columns]
    is_listed = len(columns) > 1 or bool((ensemble.category_set[paths.node[edges]] >= 0).any())
    if is_listed and n_listed(paths, attribute, values) > MAX_LISTED:
        raise NotSeparableError(f"the trees distinguish too many combinations of values of {name!r}")
    sets = sets_of(ensemble, paths, attribute, columns, values)
    return Marginal(columns, sets, sets.cells(values))
