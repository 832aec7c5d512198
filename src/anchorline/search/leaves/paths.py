"""A sum of trees as edges: which attribute decides at each edge, and what lies above and below it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anchorline.model.trees import Ensemble

_LEAF = -1


@dataclass(frozen=True, eq=False)
class Paths:
    """The edges of all trees, sorted by attribute; edge e leads from a test to one of its two children.

    An index equal to ``n_edges`` stands for the root, above all edges. ``above`` is the edge before on the path,
    and ``before`` is the last edge before on the path whose test is on the same attribute. Edges of attribute a
    are those in ``slices[a]``; the last attribute stands for all features that never change. Leaves are numbered
    from left to right, tree after tree, and the first leaf below edge e is ``first[e]``.

    ``ranks`` numbers the edges by depth: level after level, and in each level first the left and then the right
    edges of the same tests. ``levels`` holds, per level, how many tests it has and the ranks of the edges above
    them, which are empty for the roots.

    ``node`` and ``is_left`` say which test the edge belongs to and which answer it stands for. ``leaf_edges`` are
    the edges that end in leaves, ``leaf_trees`` their trees, and ``values`` (leaves, outputs) their values minus
    ``centers`` (trees, outputs), so that large values do not cancel. ``constant`` (outputs,) is the sum of the
    base and of all centers.
    """

    above: np.ndarray
    before: np.ndarray
    ranks: np.ndarray
    levels: tuple[tuple[int, np.ndarray], ...]
    attribute: np.ndarray
    slices: tuple[slice, ...]
    node: np.ndarray
    is_left: np.ndarray
    first: np.ndarray
    leaf_edges: np.ndarray
    leaf_trees: np.ndarray
    values: np.ndarray
    constant: np.ndarray

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.above)

    @cached_property
    def by_rank(self) -> np.ndarray:
        """The edges in the order of their ranks."""
        return np.argsort(self.ranks)

    @cached_property
    def above_ranks(self) -> np.ndarray:
        """The rank of the edge above every edge, plus 1, in the order of ranks; 0 stands for the root."""
        ranks = np.append(self.ranks + 1, 0)
        return np.asarray(ranks[self.above[self.by_rank]])

    @cached_property
    def children(self) -> np.ndarray:
        """The left and the right edge below every edge, and below the root of every tree, (edges + trees, 2).

        -1 where an edge ends in a leaf. The root of tree i is in row ``n_edges + i``.
        """
        n_edges, n_trees = self.n_edges, int(self.leaf_trees[-1]) + 1 if self.n_leaves else 0
        children = np.full((n_edges + n_trees, 2), -1, dtype=np.intp)
        owner = np.where(self.above < n_edges, self.above, n_edges + self.trees)
        children[owner, np.where(self.is_left, 0, 1)] = np.arange(n_edges)
        return children

    @cached_property
    def as_lists(self) -> tuple[list[list[int]], list[int]]:
        """``children`` and ``attribute`` as lists, which are faster to read one by one."""
        return self.children.tolist(), self.attribute.tolist()

    @cached_property
    def last_edges(self) -> np.ndarray:
        """The last edge of every attribute above each leaf, (attributes + 1, leaves), or the root."""
        last = np.full((len(self.slices), self.n_leaves), self.n_edges, dtype=np.intp)
        edges, at = self.leaf_edges, np.arange(self.n_leaves)
        while len(edges):
            attributes = self.attribute[edges]
            fresh = last[attributes, at] == self.n_edges
            last[attributes[fresh], at[fresh]] = edges[fresh]
            edges = self.above[edges]
            at, edges = at[edges < self.n_edges], edges[edges < self.n_edges]
        return last

    @cached_property
    def trees(self) -> np.ndarray:
        """The tree of every edge, counted among trees that have a test."""
        return np.asarray(self.leaf_trees[self.first])

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees that have a test."""
        return len(self.leaf_edges)

    @classmethod
    def of(cls, ensemble: Ensemble, owners: np.ndarray, n_attributes: int) -> "Paths":
        """Return the edges of an ensemble; ``owners`` (features,) are attributes, -1 if a feature never changes.

        Cost: the number of edges times the largest depth.
        """
        levels = _levels(ensemble)
        parents = np.full(len(ensemble.feature), _LEAF, dtype=np.intp)
        for nodes in levels[:-1]:
            parents[ensemble.left[nodes]] = parents[ensemble.right[nodes]] = nodes
        children = np.concatenate([np.empty(0, dtype=np.intp), *(_children(ensemble, each) for each in levels)])
        owner = owners[ensemble.feature[parents[children]]]
        owner = np.where(owner < 0, n_attributes, owner)
        order = np.argsort(owner, kind="stable")  # edges of an attribute stay in the order of their depth
        ranks = np.full(len(ensemble.feature), -1, dtype=np.intp)
        ranks[children] = np.arange(len(children))
        children, owner = children[order], owner[order]
        numbers = np.full(len(ensemble.feature), len(children), dtype=np.intp)
        numbers[children] = np.arange(len(children))
        above, node = numbers[parents[children]], parents[children]
        first = _first_leaves(ensemble, levels)
        ends = np.searchsorted(owner, np.arange(n_attributes + 2))
        leaves, trees = _leaves(ensemble, levels, first)
        centers = _centers(ensemble.values[leaves], trees)
        return cls(
            above=above,
            before=_same_attribute(above, owner),
            ranks=order,
            levels=tuple((len(nodes), ranks[nodes][ranks[nodes] >= 0]) for nodes in levels[:-1]),
            attribute=owner,
            slices=tuple(slice(a, b) for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)),
            node=node,
            is_left=ensemble.left[node] == children,
            first=first[children],
            leaf_edges=numbers[leaves],
            leaf_trees=trees,
            values=ensemble.values[leaves] - centers[trees],
            constant=ensemble.base + centers.sum(axis=0) + _root_values(ensemble),
        )


def _levels(ensemble: Ensemble) -> list[np.ndarray]:
    """Return the nodes with tests by depth, and an empty last level; trees without a test have no level."""
    levels, nodes = [], np.asarray(ensemble.roots, dtype=np.intp)
    while True:
        nodes = nodes[ensemble.feature[nodes] != _LEAF]
        levels.append(nodes)
        if not len(nodes):
            return levels
        nodes = _children(ensemble, nodes)


def _children(ensemble: Ensemble, nodes: np.ndarray) -> np.ndarray:
    return np.concatenate([ensemble.left[nodes], ensemble.right[nodes]]).astype(np.intp)


def _first_leaves(ensemble: Ensemble, levels: Sequence[np.ndarray]) -> np.ndarray:
    """Return the number of the first leaf below every node."""
    n_below = (ensemble.feature == _LEAF).astype(np.intp)
    for nodes in reversed(levels):
        n_below[nodes] = n_below[ensemble.left[nodes]] + n_below[ensemble.right[nodes]]
    first, roots = np.zeros(len(n_below), dtype=np.intp), levels[0]
    first[roots] = np.cumsum(n_below[roots]) - n_below[roots]
    for nodes in levels:
        first[ensemble.left[nodes]] = first[nodes]
        first[ensemble.right[nodes]] = first[nodes] + n_below[ensemble.left[nodes]]
    return first


def _leaves(ensemble: Ensemble, levels: Sequence[np.ndarray], first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the leaves from left to right, and the number of the tree of each among trees that have a test."""
    children = np.concatenate([np.empty(0, dtype=np.intp), *(_children(ensemble, nodes) for nodes in levels)])
    leaves = children[ensemble.feature[children] == _LEAF]
    leaves = leaves[np.argsort(first[leaves])]
    starts = first[levels[0]]
    return leaves, np.searchsorted(starts, np.arange(len(leaves)), side="right") - 1


def _centers(values: np.ndarray, trees: np.ndarray) -> np.ndarray:
    """Return the middle of the leaf values of every tree that has a test, (trees, outputs)."""
    n_trees = int(trees[-1]) + 1 if len(trees) else 0
    low, high = (np.full((n_trees, values.shape[1]), end) for end in (np.inf, -np.inf))
    np.minimum.at(low, trees, values)
    np.maximum.at(high, trees, values)
    return np.asarray(low / 2 + high / 2)


def _root_values(ensemble: Ensemble) -> np.ndarray:
    """Return the sum of the values of trees that are a single leaf."""
    alone = ensemble.roots[ensemble.feature[ensemble.roots] == _LEAF]
    return np.asarray(ensemble.values[alone].sum(axis=0))


def _same_attribute(above: np.ndarray, attribute: np.ndarray) -> np.ndarray:
    """Return the last edge before each edge on its path that has the same attribute."""
    n_edges = len(above)
    padded_above, padded = np.append(above, n_edges), np.append(attribute, -1)
    before = above.copy()
    while True:
        wrong = np.flatnonzero((before < n_edges) & (padded[before] != attribute))
        if not len(wrong):
            return before
        before[wrong] = padded_above[before[wrong]]
