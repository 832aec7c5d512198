"""Reads the trees of XGBoost from the JSON in which it saves its models."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from anchorline.model.loaders.xgboost_file import XgboostModel
from anchorline.model.trees.building import Tree, join, without_unreachable
from anchorline.model.trees.ensemble import LEAF, Ensemble
from anchorline.model.trees.reading import Trees
from anchorline.model.trees.scikit import dense
from anchorline.model.wrappers import NotReadableError

_LOGISTIC = ("binary:logistic", "binary:logitraw", "reg:logistic")  # objectives whose base score is a probability
_IDENTITY = (
    *("binary:logitraw", "reg:squarederror", "reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror"),
    *("reg:quantileerror", "rank:pairwise", "rank:ndcg", "rank:map"),
)
_LINKS = dict.fromkeys(_IDENTITY, "identity") | dict.fromkeys(("multi:softprob", "multi:softmax"), "softmax")
_LINKS |= {"binary:logistic": "logistic"}


def read_estimator(estimator: Any) -> Trees:
    """Read an estimator of XGBoost, whose objective may be a function."""
    if callable(estimator.objective) and hasattr(estimator, "classes_"):
        raise NotReadableError("the classifier has a custom objective, whose link is not known")
    return read_model(XgboostModel(estimator.get_booster().copy(), "booster"), float(estimator.missing))


def read_model(model: XgboostModel, missing: float = np.nan) -> Trees:
    """Read a booster, or a model that was loaded from its file; ``missing`` is the number for missing values."""

    def build() -> Ensemble:
        learner = json.loads(model.booster.save_raw("json"))["learner"]
        booster, settings = learner["gradient_booster"], learner["learner_model_param"]
        if booster["name"] == "gblinear":
            raise NotReadableError("the booster is linear and has no trees")
        content, weights = booster.get("gbtree", booster)["model"], booster.get("weight_drop")
        n_trees = _n_trees(content, model.iterations[1])
        trees = [
            _tree(tree, content["tree_info"][number], 1.0 if weights is None else weights[number])
            for number, tree in enumerate(content["trees"][:n_trees])
        ]
        return join(trees, base=_base(settings, model.objective), strict=True, dtype="float32")

    link = _LINKS.get(model.objective, model.objective)
    return Trees(link=link, build=build, encode=_Encoder(model, missing), library="XGBoost", sums_in="float32")


class _Encoder:
    """XGBoost's features: one value may stand for missing ones, and what a sparse matrix lacks is missing."""

    def __init__(self, model: XgboostModel, missing: float) -> None:
        self._model, self._missing = model, np.float32(missing)

    def __call__(self, inputs: Any) -> np.ndarray:
        is_sparse = hasattr(inputs, "tocoo")
        features = dense(inputs, np.nan) if is_sparse else self._model.features(inputs)
        with np.errstate(over="ignore"):
            return np.where(features.astype(np.float32) == self._missing, np.nan, features)


def _n_trees(content: dict[str, Any], n_iterations: int) -> int:
    """Return how many trees answer: all, or those until the best iteration."""
    starts = content["iteration_indptr"]
    return int(starts[min(n_iterations, len(starts) - 1) if n_iterations else -1])


def _base(settings: dict[str, str], objective: str) -> np.ndarray:
    """Return the base score of every output, on the scale of the sum of trees."""
    n_outputs = max(1, int(settings["num_class"]), int(settings.get("num_target", "1")))
    score = np.array(json.loads(f"[{settings['base_score'].strip('[]')}]"), dtype=np.float32)
    if objective in _LOGISTIC:
        score = -np.log(np.float32(1) / score - np.float32(1))
    return np.broadcast_to(score.astype(np.float64), n_outputs)


def _tree(tree: dict[str, Any], output: int, weight: float) -> Tree:
    """Return a tree of XGBoost's. Its categories go right, so the sides of their nodes change places."""
    left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
    is_leaf, default_left = left == LEAF, np.array(tree["default_left"], dtype=bool)
    limits = np.array(tree["split_conditions"], dtype=np.float32).astype(np.float64)
    has_vectors = int(tree["tree_param"]["size_leaf_vector"]) > 1
    swapped = ~is_leaf & (np.array(tree["split_type"]) == 1)
    found = Tree(
        feature=np.where(is_leaf, LEAF, tree["split_indices"]),
        threshold=limits,
        left=np.where(swapped, right, left),
        right=np.where(swapped, left, right),
        missing_left=np.where(swapped, ~default_left, default_left),
        values=weight * (_leaf_vectors(tree, is_leaf) if has_vectors else limits),
        output=None if has_vectors else output,
        categories=_categories(tree),
    )
    return without_unreachable(found)


def _leaf_vectors(tree: dict[str, Any], is_leaf: np.ndarray) -> np.ndarray:
    """Return the values of leaves that hold one number per output, (nodes, outputs)."""
    if "leaf_weights" not in tree:
        raise NotReadableError("its leaves hold several numbers each, in a format of an older XGBoost")
    size = int(tree["tree_param"]["size_leaf_vector"])
    weights = np.array(tree["leaf_weights"], dtype=np.float32).reshape(-1, size)
    values = np.zeros((len(is_leaf), size))
    values[is_leaf] = weights[np.array(tree["right_children"])[is_leaf]]
    return values


def _categories(tree: dict[str, Any]) -> dict[int, np.ndarray]:
    parts = zip(tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True)
    return {node: np.array(tree["categories"][start : start + size]) for node, start, size in parts}


READERS: dict[str, Callable[[Any], Trees]] = {
    "XGBModel": read_estimator,
    "Booster": lambda booster: read_model(XgboostModel(booster.copy(), "booster")),
    "XgboostModel": read_model,
}
