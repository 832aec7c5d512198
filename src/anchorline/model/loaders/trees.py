"""Trees from files index memory by numbers in the file: look at them before they are used."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from anchorline.errors import ModelFileError

# These hand their own rows on to their trees, and know how many columns those have.
_FAMILIES = tuple(f"sklearn.ensemble._{name}" for name in ("forest", "gb", "iforest", "bagging", "weight", "hist"))
_FAMILIES += ("sklearn.tree.",)
_TREE, _PREDICTOR = "sklearn.tree._tree.Tree", "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"


def check_trees(model: Any, name: str) -> None:
    """Refuse a model with a tree whose children or columns lie outside; scikit-learn itself does not look."""
    for tree, n_columns in _trees(model, None, set()):
        if not (_is_sound_tree if _type(tree) == _TREE else _is_sound_predictor)(tree, n_columns):
            raise ModelFileError(
                f"{name!r} holds a tree that points outside itself: it is damaged, or was made to do harm."
            )


def _type(thing: Any) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _trees(thing: Any, n_columns: int | None, seen: set[int]) -> Iterator[tuple[Any, int | None]]:
    """Every tree below a thing, with the number of columns of the rows it will be shown."""
    if _type(thing) in (_TREE, _PREDICTOR):
        yield thing, n_columns
        return
    if isinstance(thing, (str, bytes, int, float, type(None))) or id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        below: Any = thing.ravel().tolist() if thing.dtype == object else ()
    elif isinstance(thing, dict):
        below = thing.values()
    elif isinstance(thing, (list, tuple, set)):
        below = thing
    else:
        attributes = getattr(thing, "__dict__", {})
        n_columns = _columns_shown(thing, attributes.get("n_features_in_"), n_columns)
        below = attributes.values()
    for part in below:
        yield from _trees(part, n_columns, seen)


def _columns_shown(thing: Any, own: Any, handed_on: int | None) -> int | None:
    """How many columns the rows have that a thing shows to its parts; None if that is not its own to say."""
    if not type(thing).__module__.startswith(_FAMILIES):
        return int(own) if isinstance(own, (int, np.integer)) else None
    if not isinstance(own, (int, np.integer)):
        return 0  # scikit-learn would then take rows of any width
    return int(own) if handed_on is None else min(int(own), handed_on)


def _is_sound_tree(tree: Any, n_columns: int | None) -> bool:
    n_nodes, left, right = tree.node_count, np.asarray(tree.children_left), np.asarray(tree.children_right)
    if n_nodes < 1 or len(left) != n_nodes or len(tree.value) != n_nodes:
        return False
    split = left != -1
    inside = _lead_on(left[split], right[split], np.flatnonzero(split), n_nodes)
    columns = np.asarray(tree.feature)[split]
    limit = min(n_columns or 0, tree.n_features)
    return inside and bool(np.all((columns >= 0) & (columns < limit)))


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
        _lead_on(left, right, np.flatnonzero(split), len(nodes))
        and bool(np.all((columns >= 0) & (columns < (n_columns or 0))))
        and bool(np.all((categorical >= 0) & (categorical < n_sets)))
    )


def _lead_on(left: np.ndarray, right: np.ndarray, parents: np.ndarray, n_nodes: int) -> bool:
    """Whether every child is a later node: then each is inside, and no path is endless."""
    children = np.concatenate([left, right])
    return bool(np.all((children > np.tile(parents, 2)) & (children < n_nodes)))
