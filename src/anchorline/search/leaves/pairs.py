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

from anchorline.search.leaves.paths import Paths
from anchorline.search.leaves.sets import Sets

_FEWEST = 1e-300  # below this, a probability is rounding


@dataclass(frozen=True, eq=False)
class Attribute:
    """How one attribute is drawn: ``counts`` (ways, cells) of rows per cell, and the probability of each row.

    ``per_row`` (ways,) is that probability. With probability ``own``, the attribute has a value that is in no cell
    of a training row, and that the edges of ``kept`` (edges,) admit.
    """

    sets: Sets
    counts: np.ndarray
    per_row: np.ndarray
    kept: np.ndarray
    own: float

    def joint(self, edges: np.ndarray) -> np.ndarray:
        """Return the probabilities (m, m) of the values that both of two of the edges (m,) admit."""
        total = self.sets.both(edges, self.counts, self.per_row)
        if self.own:
            total += self.own * np.outer(self.kept[edges], self.kept[edges])
        return total


def n_pairs(paths: Paths, chances: np.ndarray) -> int:
    """Return how many edges and leaves `second_moment` would combine; ``chances`` (edges,) are as there."""
    alive = chances > 0
    return int(np.count_nonzero(alive)) * int(np.count_nonzero(alive[paths.leaf_edges])) // 2


def second_moment(
    paths: Paths, factors: Sequence["Factors | None"], chances: np.ndarray, values: np.ndarray
) -> float:
    """Return the mean square of the sum of the leaf values (leaves,) that a neighbor reaches.

    ``factors`` holds one entry per attribute, None where no test on it can have two answers; ``chances`` (edges,)
    are the probabilities that a neighbor reaches the end of each edge.
    """
    alive = chances > 0
    leaves = np.flatnonzero(alive[paths.leaf_edges])
    if not len(leaves):
        return 0.0
    trees, weighted = paths.leaf_trees[leaves], chances[paths.leaf_edges[leaves]] * values[leaves]
    leaf_values = np.zeros(paths.n_edges)
    leaf_values[paths.leaf_edges] = values
    walk = _Walk(*paths.as_lists, alive.tolist(), leaf_values.tolist(), factors)
    n_trees, total = int(paths.leaf_trees[-1]) + 1, 0.0
    starts = np.searchsorted(trees, np.arange(n_trees + 1)).tolist()
    for tree in range(n_trees):
        beside = 2 * weighted[starts[tree] :]  # every pair of two trees counts twice
        beside[: starts[tree + 1] - starts[tree]] /= 2
        total += walk.total(paths.n_edges + tree, beside, starts[tree])
    return total


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """By how much the left edges of one attribute shrink what is beside them.

    ``ratios`` (left edges, sets) are the probabilities of the edge given the edge before and a set. ``rows`` maps
    left edges to rows, and ``sets`` (leaves,) are the sets of the leaves that a neighbor can reach.
    """

    ratios: np.ndarray
    rows: dict[int, int]
    sets: np.ndarray

    @classmethod
    def of(cls, paths: Paths, number: int, attribute: Attribute, alive: np.ndarray) -> "Factors":
        """Return the factors of an attribute; only edges that are ``alive`` (edges,), and their leaves, count."""
        start, stop = paths.slices[number].start, paths.slices[number].stop
        edges = start + np.flatnonzero(alive[start:stop])
        lefts = edges[paths.is_left[edges]]
        leaves = np.flatnonzero(alive[paths.leaf_edges])
        sets, number_of = np.unique(attribute.sets.kinds[edges - start], return_inverse=True)
        first = np.zeros(len(sets), dtype=np.intp)
        first[number_of[::-1]] = edges[::-1]  # one edge for each distinct set
        numbers = np.full(stop - start + 1, len(sets), dtype=np.intp)  # the last stands for the root
        numbers[edges - start] = number_of
        before = numbers[np.minimum(paths.before[lefts], stop) - start]
        ratios = _ratios(attribute.joint(first - start), numbers[lefts - start], before)
        last_edges = np.minimum(paths.last_edges[number][leaves], stop) - start
        return cls(ratios, {edge: row for row, edge in enumerate(lefts.tolist())}, numbers[last_edges])


@dataclass(frozen=True, slots=True, eq=False)
class _Walk:
    """What `second_moment` needs to go down one tree after another, as lists, which are faster to read."""

    children: list[list[int]]
    attribute: list[int]
    alive: list[bool]
    leaf_values: list[float]
    factors: Sequence["Factors | None"]

    def total(self, root: int, beside: np.ndarray, start: int) -> float:
        """Return the sum over the leaves of one tree and the leaves from ``start`` on.

        ``beside`` (leaves,) are the values of the latter, times their probabilities. What reaches a test goes left
        or right, so the right side is the difference. Only the sum is needed of what reaches a leaf.
        """
        total, waiting = 0.0, [(root, beside, float(beside.sum()))]
        while waiting:
            edge, row, size = waiting.pop()
            left, right = self.children[edge]
            if left < 0:
                total += size * self.leaf_values[edge]
            elif not self.alive[left]:
                waiting.append((right, row, size))
            elif not self.alive[right]:
                waiting.append((left, row, size))
            else:
                part = self._shrunk(left, start)
                part *= row
                part_size = float(np.add.reduce(part))
                waiting.append((left, part, part_size))
                has_test = self.children[right][0] >= 0
                waiting.append((right, row - part if has_test else row, size - part_size))
        return total

    def _shrunk(self, edge: int, start: int) -> np.ndarray:
        """Return the factors (leaves,) of a left edge with the leaves from ``start`` on."""
        factors = self.factors[self.attribute[edge]]
        assert factors is not None  # a test with two answers
        return np.asarray(factors.ratios[factors.rows[edge]].take(factors.sets[start:], mode="clip"))


def _ratios(joint: np.ndarray, own: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Return, per left edge and per set, the probability of the edge given the edge before and the set.

    ``joint`` (sets, sets) are probabilities of two sets, ``own`` and ``before`` (left edges,) are the sets of the
    edges and of the edges before. One more set stands for leaves without a test on the attribute.
    """
    size = len(joint)
    padded = np.ones((size + 1, size + 1))
    padded[:-1, :-1] = joint
    padded[-1, :-1] = padded[:-1, -1] = joint.diagonal()
    earlier, ratios = padded.take(before, axis=0), padded.take(own, axis=0)
    ratios /= np.maximum(earlier, _FEWEST, out=earlier)
    return np.minimum(ratios, 1.0, out=ratios)
