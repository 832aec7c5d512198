"""A sum of trees in plain arrays, and the single trees of which it is joined."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from anchorline.model.outputs import NotReadableError

LEAF = -1
MAX_VALUES = 2**26  # nodes times outputs, half a gigabyte
_CELLS = 2**16  # pairs of a row and a tree that go down at once, few enough for the caches of the processor


@dataclass(frozen=True, kw_only=True, eq=False)
class Ensemble:
    r"""A sum of trees, :math:`f(z) = \text{base} + \sum_T v_{\ell_T(z)}`, over numeric features z.

    The nodes of all trees are numbered together, tree after tree, each tree from its root; ``roots`` (trees,) are
    the first ones. A node with ``feature`` -1 is a leaf, which adds its ``values`` (nodes, outputs). At any other
    node, a row goes to the node ``left`` if its feature passes the test, otherwise to ``right``; a missing value
    (NaN) goes left where ``missing_left`` is true. The test is ``value < threshold`` if ``strict``, otherwise
    ``value <= threshold``. Where ``category_set`` is not -1, the test is instead that the value, a whole number,
    is one of ``categories[category_set]``, which are sorted. ``base`` (outputs,) is added to every answer.
    ``dtype`` is the type to which the library casts features before it compares them.

    Leaf values include every weight, such as a learning rate, or 1 / number of trees for an average. So the
    answer is always the plain sum.

    Examples
    --------
    >>> stump = Ensemble(
    ...     feature=np.array([0, -1, -1]), threshold=np.array([0.5, 0, 0]), left=np.array([1, 0, 0]),
    ...     right=np.array([2, 0, 0]), missing_left=np.array([True, False, False]),
    ...     category_set=np.full(3, -1), values=np.array([[0.0], [1.0], [2.0]]), roots=np.array([0]),
    ...     base=np.array([10.0]), categories=(), strict=True, dtype=np.dtype("float64"))
    >>> stump.evaluate(np.array([[0.4], [0.5], [np.nan]])).ravel().tolist()
    [11.0, 12.0, 11.0]
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    category_set: np.ndarray
    values: np.ndarray
    roots: np.ndarray
    base: np.ndarray
    categories: tuple[np.ndarray, ...]
    strict: bool
    dtype: np.dtype

    @property
    def n_outputs(self) -> int:
        """Number of answers per row."""
        return len(self.base)

    def weighted(self, weights: Mapping[int, float]) -> "Ensemble":
        """Return a weighted sum of some outputs as one output; trees that add nothing to it are left out."""
        outputs, by = list(weights), np.array(list(weights.values()))
        values = (self.values[:, outputs] * by).sum(axis=1, keepdims=True)
        sizes = np.diff(np.append(self.roots, len(self.feature)))
        adds = np.add.reduceat((self.feature == LEAF) & (values[:, 0] != 0), self.roots) > 0
        kept, moved = np.repeat(adds, sizes), np.repeat(np.cumsum(np.where(adds, 0, sizes)), sizes)
        same = ("feature", "threshold", "missing_left", "category_set")
        return replace(
            self,
            **{name: getattr(self, name)[kept] for name in same},
            left=(self.left - moved)[kept],
            right=(self.right - moved)[kept],
            values=values[kept],
            roots=(self.roots - moved[self.roots])[adds],
            base=(self.base[outputs] * by).sum(keepdims=True),
        )

    def passes(self, node: int, values: np.ndarray) -> np.ndarray:
        """Return which values (n,) of its feature go left at a node."""
        return self.goes_left(np.full(len(values), node), values)

    def goes_left(self, nodes: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return for pairs of a test and a value of its feature, both (n,), whether the value goes left."""
        with np.errstate(over="ignore"):
            return self._pass(nodes, values.astype(self.dtype).astype(np.float64))

    def reached(self, features: np.ndarray) -> np.ndarray:
        """Return the leaf of every tree that rows of features (n, m) reach: numbers of nodes, (n, trees).

        All rows go down all trees together, level by level, and a pair of row and tree is done at its leaf. Cost:
        n times the sum of the depths.
        """
        with np.errstate(over="ignore"):
            values = np.ascontiguousarray(features.astype(self.dtype).astype(np.float64))
        n_rows, n_trees = len(values), len(self.roots)
        nodes = np.tile(self.roots.astype(np.intp), n_rows)
        cells = np.repeat(np.arange(n_rows) * values.shape[1], n_trees)  # where the row begins in flat values
        values = values.ravel()
        children = np.column_stack([self.right, self.left]).ravel()
        alive = np.flatnonzero(self.feature[nodes] != LEAF)
        while len(alive):
            at = nodes[alive]
            passed = self._pass(at, values[cells[alive] + self.feature[at]])
            at = children[2 * at + passed]
            nodes[alive] = at
            alive = alive[self.feature[at] != LEAF]
        return nodes.reshape(n_rows, n_trees)

    def _pass(self, nodes: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return for pairs of a node and a value whether the value goes left."""
        limits = self.threshold[nodes]
        passed = values < limits if self.strict else values <= limits
        if self.categories:
            at = np.flatnonzero(self.category_set[nodes] >= 0)
            passed[at] = self._in_set(self.category_set[nodes[at]], values[at])
        missing = np.isnan(values)
        if missing.any():
            passed[missing] = self.missing_left[nodes[missing]]
        return np.asarray(passed)

    def _in_set(self, sets: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return for pairs of a set of categories and a value whether the set has the value."""
        known, pairs = self._members
        if not len(known):
            return np.zeros(len(values), dtype=bool)
        place = np.searchsorted(known, values).clip(max=len(known) - 1)
        wanted = sets * len(known) + place
        found = pairs[np.searchsorted(pairs, wanted).clip(max=len(pairs) - 1)] == wanted
        return np.asarray(found & (known[place] == values))

    @cached_property
    def _members(self) -> tuple[np.ndarray, np.ndarray]:
        """All categories of the sets, sorted, and pairs of a set and the place of a category, as numbers."""
        members = np.concatenate(self.categories)
        owners = np.repeat(np.arange(len(self.categories)), [len(part) for part in self.categories])
        known = np.unique(members)
        return known, np.sort(owners * len(known) + np.searchsorted(known, members))

    def evaluate(self, features: np.ndarray) -> np.ndarray:
        """Return the answers (n, outputs) to rows of features (n, m). Cost: n times the sum of the depths."""
        answers = np.empty((len(features), self.n_outputs))
        step = max(1, _CELLS // max(1, len(self.roots) * self.n_outputs))
        for start in range(0, len(features), step):
            leaves = self.reached(features[start : start + step])
            answers[start : start + step] = self.base + self.values[leaves].sum(axis=1)
        return answers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tree:
    """The nodes of one tree, numbered from its root 0; the fields are those of `Ensemble`.

    ``values`` are (nodes, outputs), or (nodes,) if the tree adds to the one output ``output`` only. ``categories``
    maps the nodes that test categories to the categories that go left.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    values: np.ndarray
    output: int | None = None
    categories: dict[int, np.ndarray] = field(default_factory=dict)


def join(trees: Sequence[Tree], *, base: np.ndarray, strict: bool, dtype: str) -> Ensemble:
    """Return the sum of the trees and of ``base``."""
    if not trees:
        raise NotReadableError("the model has no trees")
    sizes = np.array([len(tree.feature) for tree in trees])
    if sizes.sum() * len(base) > MAX_VALUES:
        raise NotReadableError(f"its trees have {sizes.sum()} nodes for {len(base)} outputs, which is too many")
    roots = np.cumsum(sizes) - sizes
    numbered = zip(roots.tolist(), trees, strict=True)
    tested = {root + node: part for root, tree in numbered for node, part in tree.categories.items()}
    category_set = np.full(sizes.sum(), -1, dtype=np.intp)
    category_set[list(tested)] = np.arange(len(tested))
    values = np.zeros((sizes.sum(), len(base)))
    for tree, root, size in zip(trees, roots, sizes, strict=True):
        columns = slice(None) if tree.output is None else [tree.output]
        is_leaf = (tree.feature == LEAF)[:, None]
        values[root : root + size, columns] = np.where(is_leaf, tree.values.reshape(size, -1), 0.0)

    def every(name: str, dtype: type) -> np.ndarray:
        return np.concatenate([getattr(tree, name) for tree in trees]).astype(dtype)

    return Ensemble(
        feature=every("feature", np.intp),
        threshold=every("threshold", np.float64),
        left=every("left", np.intp) + np.repeat(roots, sizes),
        right=every("right", np.intp) + np.repeat(roots, sizes),
        missing_left=every("missing_left", np.bool_),
        category_set=category_set,
        values=values,
        roots=roots,
        base=np.asarray(base, dtype=np.float64),
        categories=tuple(np.unique(np.asarray(part, dtype=np.int64)) for part in tested.values()),
        strict=strict,
        dtype=np.dtype(dtype),
    )


def bits(words: np.ndarray) -> np.ndarray:
    """Return the positions of the bits that are set in words of 32 bits."""
    numbers = np.arange(32 * len(words))
    return np.asarray(numbers[(np.asarray(words, dtype=np.int64)[numbers // 32] >> (numbers % 32)) & 1 == 1])


def without_unreachable(tree: Tree) -> Tree:
    """Return the tree without nodes that no row can reach, which pruning leaves behind."""
    order, level = [np.array([0])], np.array([0])
    while len(level):
        inner = level[tree.feature[level] != LEAF]
        level = np.concatenate([tree.left[inner], tree.right[inner]])
        order.append(level)
    kept = np.sort(np.concatenate(order))
    if len(kept) == len(tree.feature):
        return tree
    moved = np.zeros(len(tree.feature), dtype=np.intp)
    moved[kept] = np.arange(len(kept))
    same = ("feature", "threshold", "missing_left", "values")
    return replace(
        tree,
        **{name: getattr(tree, name)[kept] for name in same},
        left=moved[tree.left[kept]],
        right=moved[tree.right[kept]],
        categories={int(moved[node]): part for node, part in tree.categories.items() if node in kept},
    )
