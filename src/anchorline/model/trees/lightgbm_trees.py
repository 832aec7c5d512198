"""Reads the trees of LightGBM from the text in which it saves its models."""

from collections.abc import Callable
from typing import Any

import numpy as np

from anchorline.model.loaders.lightgbm_file import LightgbmModel, from_booster
from anchorline.model.trees.building import Tree, bits, join
from anchorline.model.trees.ensemble import LEAF, Ensemble
from anchorline.model.trees.reading import Trees
from anchorline.model.trees.scikit import dense
from anchorline.model.wrappers import NotReadableError

_IDENTITY = (
    *("", "custom", "regression", "regression_l1", "huber", "fair", "quantile", "mape"),
    *("lambdarank", "rank_xendcg"),
)
_LINKS = dict.fromkeys(_IDENTITY, "identity") | {"binary": "logistic", "multiclass": "softmax"}
_NONE, _ZERO = 0, 1  # of the types of missing values: no type of their own, or zeros
_NEAR_ZERO = float(np.float32(1e-35))  # LightGBM takes numbers up to this size for zeros


def read_estimator(estimator: Any) -> Trees:
    """Read an estimator of LightGBM, whose objective may be a function."""
    if callable(estimator.objective_) and hasattr(estimator, "classes_"):
        raise NotReadableError("the classifier has a custom objective, whose link is not known")
    return read_model(from_booster(estimator.booster_))


def read_model(model: LightgbmModel) -> Trees:
    """Read a booster, or a model that was loaded from its file."""
    head, *parts = model.booster.model_to_string().partition("\nend of trees")[0].split("\nTree=")
    settings = dict(line.partition("=")[::2] for line in head.splitlines())
    n_outputs = int(settings["num_tree_per_iteration"])
    blocks = [dict(line.partition("=")[::2] for line in part.splitlines()[1:]) for part in parts]
    if any(block.get("is_linear", "0") != "0" for block in blocks):
        raise NotReadableError("the leaves hold linear models (linear_tree=True)")
    weight = n_outputs / len(blocks) if "average_output" in settings else 1.0

    def build() -> Ensemble:
        trees = [_tree(block, number % n_outputs, weight) for number, block in enumerate(blocks)]
        return join(trees, base=np.zeros(n_outputs), strict=False, dtype="float64")

    encode = _Encoder(model, _features(blocks, categorical=False), _features(blocks, categorical=True))
    return Trees(link=_link(settings.get("objective", "")), build=build, encode=encode, library="LightGBM")


def _link(objective: str) -> str:
    name, *options = objective.split(" ")
    return _LINKS.get(name, name) if "sqrt" not in options else "the square of the sum"


class _Encoder:
    """LightGBM's features: categories are cut to whole numbers, and with zero_as_missing, zeros are missing."""

    def __init__(self, model: LightgbmModel, zero_is_missing: list[int], categorical: list[int]) -> None:
        self._model, self._zero_is_missing, self._categorical = model, zero_is_missing, categorical

    def __call__(self, inputs: Any) -> np.ndarray:
        features = dense(inputs) if hasattr(inputs, "tocoo") else np.array(self._model.features(inputs))
        features = np.asarray(features, dtype=np.float64)
        features[np.abs(features) <= _NEAR_ZERO] = 0.0
        zeros = features[:, self._zero_is_missing]
        features[:, self._zero_is_missing] = np.where(zeros == 0, np.nan, zeros)
        features[:, self._categorical] = np.trunc(features[:, self._categorical])
        return features


def _numbers(block: dict[str, str], name: str, dtype: type = np.int64) -> np.ndarray:
    return np.array(block.get(name, "").split(), dtype=dtype)


def _kinds(block: dict[str, str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return of every test whether it tests categories, whether missing values go left, and their type."""
    kinds = _numbers(block, "decision_type")
    return kinds & 1 == 1, kinds & 2 == 2, kinds >> 2 & 3


def _features(blocks: list[dict[str, str]], *, categorical: bool) -> list[int]:
    """Return the features whose tests test categories, or else take zeros for missing; all of them must do so."""
    chosen: dict[bool, set[int]] = {True: set(), False: set()}
    for block in blocks:
        tests_categories, _, missing = _kinds(block)
        does = tests_categories if categorical else (missing == _ZERO) & ~tests_categories
        for answer, feature in zip(does.tolist(), _numbers(block, "split_feature").tolist(), strict=True):
            chosen[answer].add(feature)
    if chosen[True] & chosen[False]:
        raise NotReadableError("the trees test the same feature in two ways, because training was continued")
    return sorted(chosen[True])


def _tree(block: dict[str, str], output: int, weight: float) -> Tree:
    """Return a tree of LightGBM's: its tests, then its leaves, which it numbers -1, -2, ..."""
    leaves = _numbers(block, "leaf_value", np.float64)
    tests_categories, default_left, missing = _kinds(block)
    n_tests, at_leaves = len(tests_categories), np.zeros(len(leaves))
    limits = _numbers(block, "threshold", np.float64)
    left, right = (_numbers(block, f"{side}_child") for side in ("left", "right"))
    left, right = (np.where(side < 0, n_tests + ~side, side) for side in (left, right))
    missing_left = np.where(missing == _NONE, limits >= 0, default_left) & ~tests_categories
    ends, words = _numbers(block, "cat_boundaries"), _numbers(block, "cat_threshold")
    numbers = {node: int(limits[node]) for node in np.flatnonzero(tests_categories).tolist()}
    return Tree(
        feature=np.concatenate([_numbers(block, "split_feature"), np.full(len(leaves), LEAF)]),
        threshold=np.concatenate([limits, at_leaves]),
        left=np.concatenate([left, at_leaves]),
        right=np.concatenate([right, at_leaves]),
        missing_left=np.concatenate([missing_left, at_leaves]),
        values=np.concatenate([np.zeros(n_tests), weight * leaves]),
        output=output,
        categories={node: bits(words[ends[number] : ends[number + 1]]) for node, number in numbers.items()},
    )


READERS: dict[str, Callable[[Any], Trees]] = {
    "LGBMModel": read_estimator,
    "Booster": lambda booster: read_model(from_booster(booster)),
    "LightgbmModel": read_model,
}
