"""Reads the trees of CatBoost from the JSON in which it saves its models."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.model.loaders.rows import InputRows
from anchorline.model.trees.building import Tree, join
from anchorline.model.trees.ensemble import LEAF, Ensemble
from anchorline.model.trees.reading import Trees
from anchorline.model.wrappers import NotReadableError

_LINKS = {"Logloss": "logistic", "CrossEntropy": "logistic", "MultiClass": "softmax"}
_LINKS |= {"Poisson": "exponential", "Tweedie": "exponential", "MultiClassOneVsAll": "one logistic per class"}
_Node = tuple[int, float, bool, int | None, int, int]  # feature, border, missing left, category, two children
_AT_LEAF: _Node = (LEAF, 0.0, False, None, 0, 0)
_UNREADABLE = {
    "OnlineCtr": "statistics of categories; one_hot_max_size avoids them",
    "text_features": "texts",
    "embedding_features": "embeddings",
}


def read_model(model: Any) -> Trees:
    """Read a fitted or loaded model of CatBoost."""
    content = _saved(model)
    features = content["features_info"]
    _check_kinds(content)
    loss = content["model_info"]["params"]["loss_function"]["type"]

    def build() -> Ensemble:
        weight, base = content["scale_and_bias"]
        grow = _oblivious if "oblivious_trees" in content else _nested
        trees = content.get("oblivious_trees", content.get("trees", ()))
        tests = _Tests(features)
        return join(
            [grow(tree, tests, weight, len(base)) for tree in trees], base=base, strict=False, dtype="float32"
        )

    return Trees(
        link=_LINKS.get(loss, "identity"), build=build, encode=_Encoder(model, features), library="CatBoost"
    )


def _saved(model: Any, pool: Any = None) -> dict[str, Any]:
    """Return the content of the file that CatBoost writes; with a pool, it lists the hashes of its categories."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json", pool=pool)
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def _check_kinds(content: dict[str, Any]) -> None:
    """Raise if trees test anything but numbers and single categories."""
    text = json.dumps([content["features_info"], content.get("oblivious_trees"), content.get("trees")])
    for kind, words in _UNREADABLE.items():
        if f'"{kind}"' in text:
            raise NotReadableError(f"the trees of CatBoost test {words}")


class _Tests:
    """What CatBoost's tests mean: the feature, the border or category, and the side of missing values."""

    def __init__(self, features: dict[str, Any]) -> None:
        self._numbers = {part["feature_index"]: part for part in features.get("float_features", ())}
        self._categories = {part["feature_index"]: part for part in features.get("categorical_features", ())}

    def read(self, split: dict[str, Any]) -> tuple[int, float, bool, int | None]:
        """Return feature, border, whether missing values go left, and the category that goes left, or None."""
        if split["split_type"] == "FloatFeature":
            part = self._numbers[split["float_feature_index"]]
            return part["flat_feature_index"], split["border"], part["nan_value_treatment"] != "AsTrue", None
        part = self._categories[split["cat_feature_index"]]
        return part["flat_feature_index"], 0.0, False, part["values"].index(split["value"])


class _Encoder:
    """CatBoost's features: numbers, and of categories the places of their hashes among those that trees test."""

    def __init__(self, model: Any, features: dict[str, Any]) -> None:
        self._model, self._hashes = model, dict[str, int]()
        columns = features.get("categorical_features", ())
        self._columns = {part["flat_feature_index"]: part.get("values", []) for part in columns}

    def __call__(self, inputs: Any) -> np.ndarray:
        rows = InputRows(inputs)
        texts = {j: [str(value) for value in rows.values(j).tolist()] for j in self._columns}
        if not self._hashes.keys() >= {text for column in texts.values() for text in column}:
            self._learn(inputs)
        columns = [
            np.array([self._place(text, j) for text in texts[j]]) if j in texts else rows.numbers(j)
            for j in range(rows.n_columns)
        ]
        return np.column_stack(columns).astype(np.float64)

    def _place(self, text: str, column: int) -> int:
        hashed, tested = self._hashes[text], self._columns[column]
        return tested.index(hashed) if hashed in tested else -1

    def _learn(self, inputs: Any) -> None:
        """Ask CatBoost for the hashes of the categories in some rows."""
        from catboost import Pool  # noqa: PLC0415

        pool = Pool(inputs, cat_features=sorted(self._columns))
        listed = _saved(self._model, pool)["features_info"]["cat_features_hash"]
        # CatBoost writes these hashes as unsigned numbers, and those of its tests as signed ones.
        self._hashes |= {part["value"]: (part["hash"] + 2**31) % 2**32 - 2**31 for part in listed}


def _oblivious(tree: dict[str, Any], tests: _Tests, weight: float, n_outputs: int) -> Tree:
    """Return a tree whose levels have one test each.

    The last test comes first, so that the leaves from left to right are in CatBoost's order.
    """
    levels = [tests.read(split) for split in reversed(tree.get("splits") or ())]
    nodes = [(*test, 2 * n + 1, 2 * n + 2) for level, test in enumerate(levels) for n in _numbers_of(level)]
    leaves = weight * np.reshape(tree["leaf_values"], (-1, n_outputs))
    return _tree(nodes + [_AT_LEAF] * len(leaves), np.concatenate([np.zeros((len(nodes), n_outputs)), leaves]))


def _numbers_of(level: int) -> range:
    """Return the numbers of the nodes on a level of a complete tree, whose root is 0."""
    return range(2**level - 1, 2 ** (level + 1) - 1)


def _nested(tree: dict[str, Any], tests: _Tests, weight: float, n_outputs: int) -> Tree:
    """Return a tree that CatBoost stores as a test with two trees below it."""
    parts, nodes, values = [tree], [], []
    for part in parts:  # which grows
        if "split" in part:
            nodes.append((*tests.read(part["split"]), len(parts), len(parts) + 1))
            parts += [part["left"], part["right"]]
        else:
            nodes.append(_AT_LEAF)
        values.append(weight * np.broadcast_to(part.get("value", 0.0), n_outputs))
    return _tree(nodes, np.array(values))


def _tree(nodes: list[_Node], values: np.ndarray) -> Tree:
    """Return a tree of nodes. CatBoost sends the tested category right, so these sides change places."""
    feature, threshold, missing_left, category, left, right = zip(*nodes, strict=True)
    swapped = np.array([part is not None for part in category])
    return Tree(
        feature=np.array(feature),
        threshold=np.array(threshold),
        left=np.where(swapped, right, left),
        right=np.where(swapped, left, right),
        missing_left=np.array(missing_left),
        values=values,
        categories={node: np.array([part]) for node, part in enumerate(category) if part is not None},
    )


READERS: dict[str, Callable[[Any], Trees]] = {"CatBoost": read_model}
