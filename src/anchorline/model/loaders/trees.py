"""`check_trees`: checks the trees of a loaded model, because they index memory by numbers from the file."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from anchorline.errors import ModelFileError

# Modules of estimators that pass their own rows to their trees, and that store the number of columns.
_FAMILIES = tuple(f"sklearn.ensemble._{name}" for name in ("forest", "gb", "iforest", "bagging", "weight", "hist"))
_FAMILIES += ("sklearn.tree.",)
_TREE, _PREDICTOR = "sklearn.tree._tree.Tree", "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"


def check_trees(model: Any, name: str) -> None:
    """Raise `ModelFileError` if a tree has a child or a column out of range; scikit-learn does not check this."""
    for tree, n_columns in _trees(model, None, set()):
        if not (_is_sound_tree if _type(tree) == _TREE else _is_sound_predictor)(tree, n_columns):
            raise ModelFileError(
                f"{name!r} holds a tree that refers to nodes or columns out of range: the file is damaged, or "
                "was made to do harm."
            )


def _type(thing: Any) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _trees(thing: Any, n_columns: int | None, visited: set[int]) -> Iterator[tuple[Any, int | None]]:
    """Yield every tree inside an object, with the number of columns of the rows that it will get."""
    if _type(thing) in (_TREE, _PREDICTOR):
        yield thing, n_columns
        return
    if isinstance(thing, (str, bytes, int, float, type(None))) or id(thing) in visited:
        return
    visited.add(id(thing))
    if isinstance(thing, np.ndarray):
        parts: Any = thing.ravel().tolist() if thing.dtype == object else ()
    elif isinstance(thing, dict):
        parts = thing.values()
    elif isinstance(thing, (list, tuple, set)):
        parts = thing
    else:
        attributes = getattr(thing, "__dict__", {})
        n_columns = _columns_passed_on(thing, attributes.get("n_features_in_"), n_columns)
        parts = attributes.values()
    for part in parts:
        yield from _trees(part, n_columns, visited)


def _columns_passed_on(thing: Any, own: Any, received: int | None) -> int | None:
    """Return the number of columns of the rows that an object passes to its parts, or None if it is unknown.

    ``own`` is the object's ``n_features_in_``, ``received`` the number of columns that it gets itself.
    """
    if not type(thing).__module__.startswith(_FAMILIES):
        return int(own) if isinstance(own, (int, np.integer)) else None
    if not isinstance(own, (int, np.integer)):
        return 0  # no column is safe, because scikit-learn would take rows of any width
    return int(own) if received is None else min(int(own), received)


def _is_sound_tree(tree: Any, n_columns: int | None) -> bool:
    n_nodes, left, right = tree.node_count, np.asarray(tree.children_left), np.asarray(tree.children_right)
    if n_nodes < 1 or len(left) != n_nodes or len(tree.value) != n_nodes:
        return False
    split = left != -1
    ordered = _children_follow(left[split], right[split], np.flatnonzero(split), n_nodes)
    columns = np.asarray(tree.feature)[split]
    limit = min(n_columns or 0, tree.n_features)
    return ordered and bool(np.all((columns >= 0) & (columns < limit)))


def _is_sound_predictor(predictor: Any, n_columns: int | None) -> bool:
    nodes = getattr(predictor, "nodes", None)
    if not isinstance(nodes, np.ndarray) or nodes.ndim != 1 or nodes.dtype.names is None or not len(nodes):
        return False
    split = nodes["is_leaf"] == 0
    inner = nodes[split]
    left, right = inner["left"].astype(np.int64), inner["right"].astype(np.int64)
    columns = inner["feature_idx"].astype(np.int64)
    categorical = inner[inner["is_categorical"] != 0]["bitset_idx"].astype(np.int64)
    n_sets = min(len(predictor.raw_left_cat_bitsets), len(predictor.binned_left_cat_bitsets))
    return (
        _children_follow(left, right, np.flatnonzero(split), len(nodes))
        and bool(np.all((columns >= 0) & (columns < (n_columns or 0))))
        and bool(np.all((categorical >= 0) & (categorical < n_sets)))
    )


def _children_follow(left: np.ndarray, right: np.ndarray, parents: np.ndarray, n_nodes: int) -> bool:
    """Return whether every child is a later node of the tree, so that every path stays inside and ends."""
    children = np.concatenate([left, right])
    return bool(np.all((children > np.tile(parents, 2)) & (children < n_nodes)))
