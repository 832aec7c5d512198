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
    """How one attribute is drawn: ``chances`` (cells,) are the probabilities of its values by cell.

    With probability ``own``, the attribute has a value that is in no cell of a training row, and that the edges of
    ``kept`` (edges,) admit.
    """

    sets: Sets
    chances: np.ndarray
    kept: np.ndarray
    own: float

    def joint(self, edges: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the probabilities (m, n) of the values that an edge (m,) and another one (n,) admit.

        The number of edges stands for the root, which admits all values.
        """
        total = self.sets.both(edges, others, self.chances)
        if self.own:
            kept = np.append(self.kept, True)
            total += self.own * np.outer(kept[edges], kept[others])
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
    walk = _Walk(*paths.as_lists, alive.tolist(), leaf_values.tolist(), _rows(paths, alive), factors)
    n_trees, total = int(paths.leaf_trees[-1]) + 1, 0.0
    starts = np.searchsorted(trees, np.arange(n_trees + 1)).tolist()
    for tree in range(n_trees):
        beside = 2 * weighted[starts[tree] :]  # every pair of two trees counts twice
        beside[: starts[tree + 1] - starts[tree]] /= 2
        total += walk.total(paths.n_edges + tree, beside, starts[tree])
    return total


@dataclass(frozen=True, slots=True, eq=False)
class Tests:
    """The tests of one attribute, whatever the row.

    ``lefts`` (left edges,) are the left edges, and ``before`` (left edges,) the edges before them. Edges are
    counted from the attribute's first one, and their number stands for the root. The last edges above the leaves
    admit few distinct sets, which ``leaves`` (leaves,) numbers; ``edges`` (sets,) holds one edge of each set.
    """

    lefts: np.ndarray
    before: np.ndarray
    leaves: np.ndarray
    edges: np.ndarray

    @classmethod
    def of(cls, paths: Paths, number: int, sets: Sets) -> "Tests":
        """Return the tests of the attribute with this number."""
        start, stop = paths.slices[number].start, paths.slices[number].stop
        lefts = np.flatnonzero(paths.is_left[start:stop])
        before = np.minimum(paths.before[start + lefts], stop) - start
        last = np.minimum(paths.last_edges[number], stop) - start
        _, first, leaves = np.unique(np.append(sets.kinds, -1)[last], return_index=True, return_inverse=True)
        return cls(lefts, before, leaves, last[first])


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """By how much the left edges of one attribute shrink what is beside them.

    ``ratios`` (left edges, sets) are the probabilities of the edge given the edge before and a set, and ``sets``
    (leaves,) are the sets of the leaves. Edges, sets and leaves are those that a neighbor can reach.
    """

    ratios: np.ndarray
    sets: np.ndarray

    @classmethod
    def of(cls, tests: Tests, attribute: Attribute, alive: np.ndarray, leaves: np.ndarray) -> "Factors":
        """Return the factors of an attribute; only its ``alive`` edges and the leaves of these numbers count."""
        sets, used = tests.leaves[leaves], np.zeros(len(tests.edges), dtype=bool)
        used[sets] = True
        lefts, others = alive[tests.lefts], tests.edges[used]
        ratios = attribute.joint(tests.lefts[lefts], others)
        earlier = attribute.joint(tests.before[lefts], others)
        ratios /= np.maximum(earlier, _FEWEST, out=earlier)
        return cls(np.minimum(ratios, 1.0, out=ratios), (np.cumsum(used) - 1)[sets])


@dataclass(frozen=True, slots=True, eq=False)
class _Walk:
    """What `second_moment` needs to go down one tree after another, as lists, which are faster to read."""

    children: list[list[int]]
    attribute: list[int]
    alive: list[bool]
    leaf_values: list[float]
    rows: list[int]  # of the left edges in the factors of their attributes
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
        return np.asarray(factors.ratios[self.rows[edge]].take(factors.sets[start:], mode="clip"))


def _rows(paths: Paths, alive: np.ndarray) -> list[int]:
    """Return the places of the left edges among those of their attributes that are ``alive`` (edges,)."""
    before = np.append(0, np.cumsum(alive & paths.is_left))[:-1]
    firsts = np.array([attribute.start for attribute in paths.slices], dtype=np.intp)
    rows: list[int] = (before - np.append(before, 0)[firsts][paths.attribute]).tolist()
    return rows
