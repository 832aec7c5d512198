"""`Tree` and `join`: trees with their own numbers of nodes, put together into one `Ensemble`."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anchorline.model.trees.ensemble import LEAF, Ensemble
from anchorline.model.wrappers import NotReadableError

MAX_VALUES = 2**26  # nodes times outputs, half a gigabyte


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
    return Ensemble(
        feature=_all(trees, "feature", np.intp),
        threshold=_all(trees, "threshold", np.float64),
        left=_all(trees, "left", np.intp) + np.repeat(roots, sizes),
        right=_all(trees, "right", np.intp) + np.repeat(roots, sizes),
        missing_left=_all(trees, "missing_left", np.bool_),
        category_set=category_set,
        values=_leaf_values(trees, roots, sizes, len(base)),
        roots=roots,
        base=np.asarray(base, dtype=np.float64),
        categories=tuple(np.unique(np.asarray(part, dtype=np.int64)) for part in tested.values()),
        strict=strict,
        dtype=np.dtype(dtype),
    )


def _leaf_values(trees: Sequence[Tree], roots: np.ndarray, sizes: np.ndarray, n_outputs: int) -> np.ndarray:
    """Return what each node adds to each output: nothing if it is not a leaf."""
    values = np.zeros((sizes.sum(), n_outputs))
    for tree, root, size in zip(trees, roots, sizes, strict=True):
        columns = slice(None) if tree.output is None else [tree.output]
        is_leaf = tree.feature == LEAF
        values[root : root + size, columns] = np.where(is_leaf[:, None], tree.values.reshape(size, -1), 0.0)
    return values


def bits(words: np.ndarray) -> np.ndarray:
    """Return the positions of the bits that are set in words of 32 bits.

    Examples
    --------
    >>> bits(np.array([0b1010, 1], dtype=np.uint32)).tolist()
    [1, 3, 32]
    """
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
    return Tree(
        feature=tree.feature[kept],
        threshold=tree.threshold[kept],
        left=moved[tree.left[kept]],
        right=moved[tree.right[kept]],
        missing_left=tree.missing_left[kept],
        values=tree.values[kept],
        output=tree.output,
        categories={int(moved[node]): part for node, part in tree.categories.items() if node in kept},
    )


def _all(trees: Sequence[Tree], name: str, dtype: type) -> np.ndarray:
    return np.concatenate([getattr(tree, name) for tree in trees]).astype(dtype)
