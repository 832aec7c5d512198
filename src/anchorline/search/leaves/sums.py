"""Sums over the leaves of one model on one table: the moments of whole neighborhoods."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anchorline.model.trees import Ensemble
from anchorline.search.leaves.joining import Features, NotSeparableError
from anchorline.search.leaves.pairs import Attribute, Factors
from anchorline.search.leaves.paths import Paths
from anchorline.search.leaves.sets import MAX_LISTED, Marginal, n_listed, sets_of
from anchorline.spaces.base import Law, Source


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

    def kept(self, values: np.ndarray) -> np.ndarray:
        """Return which edges admit each row of features (n, m): booleans (edges, n)."""
        paths, kept = self.paths, np.empty((self.paths.n_edges, len(values)), dtype=bool)
        for attribute, marginal in enumerate(self.marginals):
            if marginal is not None:
                kept[paths.slices[attribute]] = marginal.sets.admit(values[:, marginal.columns])
        still = paths.slices[-1]
        for edge in range(still.start, still.stop):  # features that never change: one test per edge is enough
            node = int(paths.node[edge])
            passed = self.ensemble.passes(node, values[:, self.ensemble.feature[node]])
            kept[edge] = passed == paths.is_left[edge]
        return kept

    def parts(self, values: np.ndarray, sources: Sequence[Sequence[Source]], weights: np.ndarray) -> np.ndarray:
        """Return, per outcome, the probability of the outcome with a value of the edge's set.

        ``values`` (n, m) are the features of n rows, ``sources`` where their attributes take values from, and
        ``weights`` (attributes, 1 + ways, n) the probabilities of the outcomes. The result has the shape
        (1 + ways, edges, n).
        """
        kept, paths = self.kept(values), self.paths
        by_attribute = [{source.attribute: source for source in each} for each in sources]
        parts = np.zeros((weights.shape[1], paths.n_edges, len(values)))
        parts[0] = kept
        for attribute, marginal in enumerate(self.marginals):
            if marginal is not None:
                edges = paths.slices[attribute]
                blocks = [each.get(attribute) for each in by_attribute]
                _redraw(marginal, [block.kept if block else (0, 0) for block in blocks], parts[0, edges])
                parts[0, edges] *= weights[attribute, 0]
                for way in range(1, len(parts)):
                    at = [block.ways[way - 1] if block and way <= len(block.ways) else (0, 0) for block in blocks]
                    parts[way, edges] = _drawn(marginal, at) * weights[attribute, way]
        return parts

    def factors(
        self, number: int, values: np.ndarray, source: Source | None, weights: np.ndarray, masses: np.ndarray
    ) -> Factors | None:
        """Return the factors of one attribute of one row, whose outcomes have these weights (1 + ways,)."""
        marginal = self.marginals[number]
        if marginal is None:
            return None
        kept = marginal.sets.admit(values[:, marginal.columns])[:, 0]
        return Factors.of(self.paths, number, _drawn_attribute(marginal, source, kept, values, weights), masses)


def _drawn_attribute(
    marginal: Marginal, source: Source | None, kept: np.ndarray, values: np.ndarray, weights: np.ndarray
) -> Attribute:
    """Return how an attribute of one row is drawn."""
    redrawn = source is not None and source.kept[1] > 0
    blocks = [] if source is None else [source.kept, *source.ways]
    used = [
        (block, weight) for block, weight in zip(blocks, weights.tolist(), strict=False) if block[1] and weight
    ]
    counts = [marginal.per_cell(*block) for block, _ in used]
    per_row = [weight / block[1] for block, weight in used]
    own = 0.0 if redrawn else float(weights[0])
    cell = int(marginal.sets.cells(values[:, marginal.columns])[0])
    if own and cell >= 0:
        counts.append(np.bincount([cell], minlength=marginal.sets.n_cells))
        per_row, own = [*per_row, own], 0.0
    table = np.array(counts).reshape(len(counts), marginal.sets.n_cells)
    return Attribute(marginal.sets, table, np.array(per_row), kept, own)


def weights_of(laws: Sequence[Law], sources: Sequence[Sequence[Source]], n_attributes: int) -> np.ndarray:
    """Return the probabilities (attributes, 1 + ways, n) of the outcomes of every attribute of a table.

    Attributes that cannot be broken keep their value.
    """
    n_ways = max(law.shares.shape[1] for law in laws)
    weights = np.zeros((n_attributes, 1 + n_ways, len(laws)))
    weights[:, 0] = 1.0
    for row, (law, own) in enumerate(zip(laws, sources, strict=True)):
        numbers, p = [source.attribute for source in own], law.flip_probability
        weights[numbers, 0, row] = 1 - p
        weights[numbers, 1 : 1 + law.shares.shape[1], row] = p * law.shares
    return weights


def _drawn(marginal: Marginal, blocks: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the shares (edges, n) of the training rows in n blocks that each edge admits; 0 for empty blocks."""
    numbers: dict[tuple[int, int], int] = {}
    at = [numbers.setdefault(block, len(numbers)) for block in blocks]
    each = [marginal.shares(*block) if block[1] else None for block in numbers]
    n_edges = next((len(shares) for shares in each if shares is not None), 1)
    columns = np.stack([np.zeros(n_edges) if shares is None else shares for shares in each], axis=1)
    return columns[:, at]


def _redraw(marginal: Marginal, blocks: Sequence[tuple[int, int]], kept: np.ndarray) -> None:
    """Replace what a row keeps by the shares of the training rows it is redrawn from; mutates ``kept``."""
    redrawn = np.array([size > 0 for _, size in blocks])
    if redrawn.any():
        kept[:, redrawn] = _drawn(marginal, [block for block in blocks if block[1]])


def _marginal(ensemble: Ensemble, paths: Paths, features: Features, attribute: int, name: str) -> Marginal:
    edges = paths.slices[attribute]
    columns = np.unique(ensemble.feature[paths.node[edges]]).tolist()
    values = features.values[:, columns]
    is_listed = len(columns) > 1 or bool((ensemble.category_set[paths.node[edges]] >= 0).any())
    if is_listed and n_listed(paths, attribute, values) > MAX_LISTED:
        raise NotSeparableError(f"the trees distinguish too many combinations of values of {name!r}")
    sets = sets_of(ensemble, paths, attribute, columns, values)
    return Marginal(columns, sets, sets.cells(values))
