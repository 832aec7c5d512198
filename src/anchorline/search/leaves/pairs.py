r"""The second moment of a sum of trees, as a sum over pairs of leaves.

.. math:: E f^2 = \sum_{\ell, m} v_\ell v_m \prod_a q_{\ell m a}

:math:`q_{\ell m a}` is the probability of the values of attribute a that both leaves admit. The leaves m stand
side by side. Going down from the root, every edge multiplies the probability of "this edge and leaf m" by a factor
that depends on the edge and on the last edge of the same attribute above leaf m only, so it is read from a table.
Only edges and leaves that a neighbor can reach count. Cost: reachable edges times reachable leaves, halved.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anchorline.search.leaves.moments import reached
from anchorline.search.leaves.paths import Paths
from anchorline.search.leaves.sets import Sets

_MAX_CELLS = 2**18  # edges times leaves that are computed together, so that they fit into the processor's cache
_FEWEST = 1e-300  # below this, a probability is rounding


@dataclass(frozen=True, eq=False)
class Attribute:
    """How one attribute is drawn: ``sets`` are what its edges admit, and ``kept`` (edges,) those of its own value.

    ``counts`` (ways, cells) are the training rows per cell of each way; ``weights`` (1 + ways,) the probabilities
    of the outcomes. With ``redrawn``, the first row of counts is that of keeping the literal.
    """

    sets: Sets
    kept: np.ndarray
    counts: np.ndarray
    weights: np.ndarray
    redrawn: bool = False

    def joint(self, edges: np.ndarray) -> np.ndarray:
        """Return the probabilities (m, m) of the values that both of two of the edges (m,) admit."""
        counts, weights = self.counts, self.weights if self.redrawn else self.weights[1:]
        per_row = weights / np.maximum(counts.sum(axis=1), 1)
        total = self.sets.both(edges, counts[weights > 0], per_row[weights > 0])
        if not self.redrawn:
            total += self.weights[0] * np.outer(self.kept[edges], self.kept[edges])
        return total


def n_pairs(paths: Paths, masses: np.ndarray) -> int:
    """Return how many edges and leaves `second_moment` would combine; ``masses`` (edges,) as in `reached`."""
    alive = reached(paths, masses[:, None])[:, 0] > 0
    return int(np.count_nonzero(alive)) * int(np.count_nonzero(alive[paths.leaf_edges])) // 2


def second_moment(
    paths: Paths, attributes: Sequence[Attribute | None], masses: np.ndarray, values: np.ndarray
) -> float:
    """Return the mean square of the sum of the leaf values (leaves,) that a neighbor reaches.

    ``attributes`` holds one entry per attribute, None where no test is on it; ``masses`` (edges,) are the
    probabilities of the attribute's set at each edge.
    """
    chances = reached(paths, masses[:, None])[:, 0]
    alive = chances > 0
    leaves = np.flatnonzero(alive[paths.leaf_edges])
    if not len(leaves):
        return 0.0
    table = _Table.of(paths, attributes, alive, leaves)
    trees, weighted = paths.leaf_trees[leaves], chances[paths.leaf_edges[leaves]] * values[leaves]
    leaf_values = np.zeros(paths.n_edges)
    leaf_values[paths.leaf_edges] = values
    total = 0.0
    levels = [level[alive[level]] for level in paths.levels]
    tree_of = _trees_of(paths)
    for first, last in _blocks(levels, tree_of, trees):
        start = int(np.searchsorted(trees, first))
        twice = np.where(trees[start:] < last, 1.0, 2.0) * weighted[start:]  # later trees meet these trees once
        own = [level[(tree_of[level] >= first) & (tree_of[level] < last)] for level in levels]
        total += _block_sum(paths, table, own, twice, start, leaf_values)
    return total


def _block_sum(
    paths: Paths,
    table: "_Table",
    levels: Sequence[np.ndarray],
    weighted: np.ndarray,
    start: int,
    leaf_values: np.ndarray,
) -> float:
    """Return the sum over the leaves below the edges of these levels and the leaves from ``start`` on."""
    total, rows = 0.0, weighted[None]
    places = np.zeros(paths.n_edges + 1, dtype=np.intp)
    for level in levels:
        if not len(level):
            break
        rows = rows[places[paths.above[level]]]
        rows *= table.factors(level, paths.attribute[level], start)
        at = np.flatnonzero(leaf_values[level])
        total += float((rows[at].sum(axis=1) * leaf_values[level[at]]).sum())
        places[level] = np.arange(len(level))
    return total


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """The factors of all edges in one array: edge e and leaf m share ``flat[offsets[e] + sets[attribute, m]]``."""

    flat: np.ndarray
    offsets: np.ndarray
    sets: np.ndarray

    @classmethod
    def of(
        cls, paths: Paths, attributes: Sequence[Attribute | None], alive: np.ndarray, leaves: np.ndarray
    ) -> "_Table":
        last = _last_edges(paths, leaves)
        offsets, sets = np.zeros(paths.n_edges, dtype=np.intp), np.zeros(last.shape, dtype=np.intp)
        parts, size = [np.ones(1)], 1
        for a, attribute in enumerate(attributes):
            edges = np.arange(paths.slices[a].start, paths.slices[a].stop)
            edges = edges[alive[edges]]
            if attribute is None or not len(edges):
                continue
            ratios, numbers = _ratios(paths, attribute, edges, paths.slices[a].start)
            offsets[edges] = size + np.arange(len(edges)) * ratios.shape[1]
            sets[a] = numbers[last[a]]
            parts.append(ratios.ravel())
            size += ratios.size
        return cls(np.concatenate(parts), offsets, sets)

    def factors(self, edges: np.ndarray, attributes: np.ndarray, start: int) -> np.ndarray:
        """Return the factors (edges, leaves from ``start`` on) of some edges."""
        at = self.sets[attributes, start:]
        at += self.offsets[edges, None]
        return self.flat.take(at)


def _ratios(paths: Paths, attribute: Attribute, edges: np.ndarray, start: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, per edge of an attribute and per set, the probability of the edge given the edge before and the set.

    The last set is that of leaves without a test on the attribute. Also returns the number of the set of every
    edge, with that of leaves without a test in the last place.
    """
    sets, number = np.unique(attribute.sets.kinds[edges - start], return_inverse=True)
    first = np.zeros(len(sets), dtype=np.intp)
    first[number[::-1]] = edges[::-1]  # one edge for each distinct set
    joint = attribute.joint(first - start)
    own = joint.diagonal()
    joint = np.block([[joint, own[:, None]], [own[None], np.ones((1, 1))]])
    numbers = np.full(paths.n_edges + 1, len(sets), dtype=np.intp)
    numbers[edges] = number
    earlier = joint[numbers[paths.before[edges]]]
    ratios = np.divide(joint[number], earlier, out=np.zeros_like(earlier), where=earlier > _FEWEST)
    return np.minimum(ratios, 1.0, out=ratios), numbers


def _last_edges(paths: Paths, leaves: np.ndarray) -> np.ndarray:
    """Return the last edge of every attribute above each leaf, (attributes + 1, leaves), or the root."""
    last = np.full((len(paths.slices), len(leaves)), paths.n_edges, dtype=np.intp)
    above, edges, at = np.append(paths.above, paths.n_edges), paths.leaf_edges[leaves], np.arange(len(leaves))
    while len(edges):
        attributes = paths.attribute[edges]
        fresh = last[attributes, at] == paths.n_edges
        last[attributes[fresh], at[fresh]] = edges[fresh]
        edges = above[edges]
        at, edges = at[edges < paths.n_edges], edges[edges < paths.n_edges]
    return last


def _trees_of(paths: Paths) -> np.ndarray:
    """Return the tree of every edge."""
    return np.asarray(paths.leaf_trees[paths.first])


def _blocks(levels: Sequence[np.ndarray], tree_of: np.ndarray, trees: np.ndarray) -> list[tuple[int, int]]:
    """Return consecutive trees, as (first, last), whose widest level times the leaves beside it fits."""
    n_trees = int(trees[-1]) + 1
    widest = np.max([np.bincount(tree_of[level], minlength=n_trees) for level in levels], axis=0)
    beside = len(trees) - np.searchsorted(trees, np.arange(n_trees))
    blocks, first, size = [], 0, 0
    for tree, cells in enumerate((widest * beside).tolist()):
        if size and size + cells > _MAX_CELLS:
            blocks.append((first, tree))
            first, size = tree, 0
        size += cells
    return [*blocks, (first, n_trees)]
