"""Readers of the trees of scikit-learn, XGBoost, LightGBM and CatBoost.

Treelite reads many of these formats too, and was tried first (4.8). It refuses XGBoost's native categories since
XGBoost 3.1, histogram gradient boosting with categories of texts, single decision trees, and CatBoost, and it
answers wrongly where LightGBM takes zeros for missing values. It would also be one more compiled dependency. The
formats themselves are plain arrays or texts, so every library has a reader of its own here.

Nothing that is read is trusted: `anchorline.model.trees.agrees` compares it with the model's own answers.
"""

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.model.loaders.boosters import LightgbmModel, XgboostModel, from_booster
from anchorline.model.loaders.rows import InputRows
from anchorline.model.outputs import NotReadableError
from anchorline.model.trees.ensemble import LEAF, Ensemble, Tree, bits, join, without_unreachable

Grown = tuple[Sequence[Tree], np.ndarray]  # trees, and what is added to every answer, (outputs,)


def dense(inputs: Any, absent: float = 0.0) -> np.ndarray:
    """Return a frame, an array or a sparse matrix of numbers as float64, with ``absent`` where none is stored."""
    from sklearn.utils import check_array  # noqa: PLC0415  heavy

    checked = check_array(inputs, accept_sparse="coo", dtype=np.float64, ensure_all_finite=False)
    if isinstance(checked, np.ndarray):
        return checked
    full = np.full(checked.shape, absent)
    full[checked.row, checked.col] = checked.data
    return full


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trees:
    """What a reader finds in one fitted model, whichever of its answers is explained.

    ``link`` is how the model turns the sum of its trees into its answers: "identity", "logistic", "softmax", or
    another name. ``grow`` reads the trees. ``encode`` turns the inputs of this model, a frame, an array or a
    sparse matrix, into features. ``sums_in`` is the type in which the library adds leaf values up; for ``strict``
    and ``dtype`` see `Ensemble`.
    """

    grow: Callable[[], Grown]
    link: str = "identity"
    encode: Callable[[Any], np.ndarray] = dense
    strict: bool = False
    dtype: str = "float32"
    sums_in: str = "float64"

    def ensemble(self) -> Ensemble:
        """Return the sum of trees."""
        trees, base = self.grow()
        return join(trees, base=base, strict=self.strict, dtype=self.dtype)


# ---- scikit-learn

_SKLEARN_LINKS = {
    **{"IdentityLink": "identity", "LogitLink": "logistic", "MultinomialLogit": "softmax"},
    **{"LogLink": "exponential"},
}


def _averaged(members: list[tuple[Any, np.ndarray | None]], estimator: Any) -> Trees:
    """Read a tree or a forest, whose answer is the average of its trees, each with columns of its own or all."""
    if isinstance(getattr(estimator, "classes_", None), list):
        raise NotReadableError("the model answers with the classes of several outputs")

    def grow() -> Grown:
        trees = [
            _sklearn_tree(tree, tree.value.reshape(tree.node_count, -1) / len(members), columns=columns)
            for tree, columns in members
        ]
        return trees, np.zeros(trees[0].values.shape[1])

    return Trees(grow=grow)


def _bagging(estimator: Any) -> Trees:
    members = list(zip(estimator.estimators_, estimator.estimators_features_, strict=True))
    if not all(hasattr(member, "tree_") for member, _ in members):
        raise NotReadableError(f"the members of the {type(estimator).__name__} are not single decision trees")
    classes = getattr(estimator, "classes_", None)
    if classes is not None and not all(len(member.classes_) == len(classes) for member, _ in members):
        raise NotReadableError("some bagged trees do not know all classes")
    return _averaged([(member.tree_, columns) for member, columns in members], estimator)


def _gradient_boosting(estimator: Any) -> Trees:
    """Read gradient boosting. Its first guess must be a constant, which every row then has as its base."""
    guess = estimator.init_
    is_constant = getattr(guess, "strategy", "") not in ("stratified", "uniform")  # of dummy estimators
    is_dummy = type(guess).__name__.startswith("Dummy") and is_constant
    if not (is_dummy or (isinstance(guess, str) and guess == "zero")):
        raise NotReadableError(f"the boosting starts from the answers of another model ({type(guess).__name__})")

    def grow() -> Grown:
        trees = [
            _sklearn_tree(member.tree_, estimator.learning_rate * member.tree_.value[:, 0, 0], output)
            for stage in estimator.estimators_
            for output, member in enumerate(stage)
        ]
        row = np.zeros((1, estimator.n_features_in_), dtype=np.float32)
        return trees, estimator._raw_predict_init(row)[0]

    return Trees(grow=grow, link=_sklearn_link(estimator))


def _sklearn_tree(
    tree: Any, values: np.ndarray, output: int | None = None, columns: np.ndarray | None = None
) -> Tree:
    is_leaf = tree.children_left == LEAF
    own = np.where(is_leaf, 0, tree.feature)
    return Tree(
        feature=np.where(is_leaf, LEAF, own if columns is None else np.asarray(columns)[own]),
        threshold=tree.threshold,
        left=tree.children_left,
        right=tree.children_right,
        missing_left=np.asarray(tree.missing_go_to_left, dtype=bool),
        values=values,
        output=output,
    )


def _histogram_boosting(estimator: Any) -> Trees:
    """Read histogram gradient boosting, which has missing values and categories of its own.

    Its own preprocessing turns categories into whole numbers, and unknown ones into missing values.
    """

    def grow() -> Grown:
        stages = estimator._predictors
        trees = [_histogram_tree(part, output) for stage in stages for output, part in enumerate(stage)]
        return trees, np.ravel(estimator._baseline_prediction)

    def encode(inputs: Any) -> np.ndarray:
        return np.asarray(estimator._preprocess_X(inputs, reset=False), dtype=np.float64)

    link = _sklearn_link(estimator)
    return Trees(grow=grow, link=link, encode=encode, dtype="float64")


def _histogram_tree(predictor: Any, output: int) -> Tree:
    nodes, sets = predictor.nodes, predictor.raw_left_cat_bitsets
    tests_categories = np.flatnonzero((nodes["is_leaf"] == 0) & (nodes["is_categorical"] == 1))
    return Tree(
        feature=np.where(nodes["is_leaf"] == 1, LEAF, nodes["feature_idx"].astype(np.intp)),
        threshold=nodes["num_threshold"],
        left=nodes["left"],
        right=nodes["right"],
        missing_left=nodes["missing_go_to_left"] == 1,
        values=nodes["value"],
        output=output,
        categories={node: bits(sets[nodes["bitset_idx"][node]]) for node in tests_categories.tolist()},
    )


def _sklearn_link(estimator: Any) -> str:
    name = type(estimator._loss.link).__name__
    return _SKLEARN_LINKS.get(name, name)


# ---- XGBoost

_OF_PROBABILITY = ("binary:logistic", "binary:logitraw", "reg:logistic")  # the base score is a probability
_XGBOOST_IDENTITY = (
    *("binary:logitraw", "reg:squarederror", "reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror"),
    *("reg:quantileerror", "rank:pairwise", "rank:ndcg", "rank:map"),
)
_XGBOOST_LINKS = {
    **dict.fromkeys(_XGBOOST_IDENTITY, "identity"),
    **{"binary:logistic": "logistic", "multi:softprob": "softmax", "multi:softmax": "softmax"},
}


def _xgboost(model: XgboostModel, missing: float = np.nan) -> Trees:
    """Read a loaded model; ``missing`` is the number that stands for missing values."""

    def grow() -> Grown:
        learner = json.loads(model.booster.save_raw("json"))["learner"]
        booster, settings = learner["gradient_booster"], learner["learner_model_param"]
        if booster["name"] == "gblinear":
            raise NotReadableError("the booster is linear and has no trees")
        content = booster.get("gbtree", booster)["model"]  # dart stores its trees one level lower
        starts, last = content["iteration_indptr"], model.iterations[1]  # until the best iteration, if not 0
        parts = content["trees"][: int(starts[min(last, len(starts) - 1) if last else -1])]
        weights = booster.get("weight_drop") or content.get("weight_drop") or [1.0] * len(parts)  # moved in 3.4
        base = np.array(json.loads(f"[{settings['base_score'].strip('[]')}]"), dtype=np.float32)
        if model.objective in _OF_PROBABILITY:
            base = -np.log(np.float32(1) / base - np.float32(1))
        n_outputs = max(1, int(settings["num_class"]), int(settings.get("num_target", "1")))
        trees = [_xgboost_tree(*each) for each in zip(parts, content["tree_info"], weights, strict=False)]
        return trees, np.broadcast_to(base.astype(np.float64), n_outputs)

    def encode(inputs: Any) -> np.ndarray:
        # What a sparse matrix lacks is missing.
        features = dense(inputs, np.nan) if hasattr(inputs, "tocoo") else model.features(inputs)
        with np.errstate(over="ignore"):
            return np.where(features.astype(np.float32) == np.float32(missing), np.nan, features)

    link = _XGBOOST_LINKS.get(model.objective, model.objective)
    return Trees(grow=grow, link=link, encode=encode, strict=True, sums_in="float32")


def _xgboost_tree(tree: dict[str, Any], output: int, weight: float) -> Tree:
    """Return a tree of XGBoost's. Its categories go right, so the sides of their nodes change places."""
    left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
    is_leaf, default_left = left == LEAF, np.array(tree["default_left"], dtype=bool)
    values = limits = np.array(tree["split_conditions"], dtype=np.float32).astype(np.float64)
    size = int(tree["tree_param"]["size_leaf_vector"])
    if size > 1:
        if "leaf_weights" not in tree:
            raise NotReadableError("its leaves hold several numbers each, in a format of an older XGBoost")
        values = np.zeros((len(is_leaf), size))
        values[is_leaf] = np.array(tree["leaf_weights"], dtype=np.float32).reshape(-1, size)[right[is_leaf]]
    swapped = ~is_leaf & (np.array(tree["split_type"]) == 1)
    sets = zip(tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True)
    found = Tree(
        feature=np.where(is_leaf, LEAF, tree["split_indices"]),
        threshold=limits,
        left=np.where(swapped, right, left),
        right=np.where(swapped, left, right),
        missing_left=np.where(swapped, ~default_left, default_left),
        values=weight * values,
        output=None if size > 1 else output,
        categories={node: np.array(tree["categories"][start : start + n]) for node, start, n in sets},
    )
    return without_unreachable(found)


# ---- LightGBM

_LIGHTGBM_IDENTITY = (
    *("", "custom", "regression", "regression_l1", "huber", "fair", "quantile", "mape"),
    *("lambdarank", "rank_xendcg"),
)
_LIGHTGBM_LINKS = {**dict.fromkeys(_LIGHTGBM_IDENTITY, "identity"), "binary": "logistic", "multiclass": "softmax"}
_NONE, _ZERO = 0, 1  # of the types of missing values: no type of their own, or zeros
_NEAR_ZERO = float(np.float32(1e-35))  # LightGBM takes numbers up to this size for zeros


def _lightgbm(model: LightgbmModel) -> Trees:
    """Read a loaded model. It cuts categories to whole numbers, and with zero_as_missing, zeros are missing."""
    head, *parts = model.booster.model_to_string().partition("\nend of trees")[0].split("\nTree=")
    settings = dict(line.partition("=")[::2] for line in head.splitlines())
    n_outputs = int(settings["num_tree_per_iteration"])
    blocks = [dict(line.partition("=")[::2] for line in part.splitlines()[1:]) for part in parts]
    if any(block.get("is_linear", "0") != "0" for block in blocks):
        raise NotReadableError("the leaves hold linear models (linear_tree=True)")
    weight = n_outputs / len(blocks) if "average_output" in settings else 1.0
    zero_is_missing, categorical = _tested(blocks, categorical=False), _tested(blocks, categorical=True)

    def grow() -> Grown:
        trees = [_lightgbm_tree(block, number % n_outputs, weight) for number, block in enumerate(blocks)]
        return trees, np.zeros(n_outputs)

    def encode(inputs: Any) -> np.ndarray:
        features = dense(inputs) if hasattr(inputs, "tocoo") else np.array(model.features(inputs))
        features = np.asarray(features, dtype=np.float64)
        features[np.abs(features) <= _NEAR_ZERO] = 0.0
        zeros = features[:, zero_is_missing]
        features[:, zero_is_missing] = np.where(zeros == 0, np.nan, zeros)
        features[:, categorical] = np.trunc(features[:, categorical])
        return features

    name, *options = settings.get("objective", "").split(" ")
    link = _LIGHTGBM_LINKS.get(name, name) if "sqrt" not in options else "the square of the sum"
    return Trees(grow=grow, link=link, encode=encode, dtype="float64")


def _numbers(block: dict[str, str], name: str, dtype: type = np.int64) -> np.ndarray:
    return np.array(block.get(name, "").split(), dtype=dtype)


def _tested(blocks: list[dict[str, str]], *, categorical: bool) -> list[int]:
    """Return the features whose tests test categories, or else take zeros for missing; all of them must do so."""
    chosen: dict[bool, set[int]] = {True: set(), False: set()}
    for block in blocks:
        kinds = _numbers(block, "decision_type")
        does = kinds & 1 == 1 if categorical else (kinds >> 2 & 3 == _ZERO) & (kinds & 1 == 0)
        for answer, feature in zip(does.tolist(), _numbers(block, "split_feature").tolist(), strict=True):
            chosen[answer].add(feature)
    if chosen[True] & chosen[False]:
        raise NotReadableError("the trees test the same feature in two ways, because training was continued")
    return sorted(chosen[True])


def _lightgbm_tree(block: dict[str, str], output: int, weight: float) -> Tree:
    """Return a tree of LightGBM's: its tests, then its leaves, which it numbers -1, -2, ..."""
    leaves, kinds = _numbers(block, "leaf_value", np.float64), _numbers(block, "decision_type")
    tests_categories, default_left, missing = kinds & 1 == 1, kinds & 2 == 2, kinds >> 2 & 3
    n_tests, at_leaves = len(kinds), np.zeros(len(leaves))
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


# ---- CatBoost

_CATBOOST_LINKS = {
    **{"Logloss": "logistic", "CrossEntropy": "logistic", "MultiClass": "softmax"},
    **{"Poisson": "exponential", "Tweedie": "exponential", "MultiClassOneVsAll": "one logistic per class"},
}
_UNREADABLE = {
    "OnlineCtr": "statistics of categories; one_hot_max_size avoids them",
    "text_features": "texts",
    "embedding_features": "embeddings",
}
_Test = tuple[int, float, bool, int | None]  # feature, border, whether missing goes left, category that goes left


def _catboost(model: Any) -> Trees:
    content = _catboost_file(model)
    features, grown = content["features_info"], content.get("oblivious_trees", content.get("trees", ()))
    text = json.dumps([features, grown])
    for kind, words in _UNREADABLE.items():
        if f'"{kind}"' in text:
            raise NotReadableError(f"the trees of CatBoost test {words}")
    numeric = {part["feature_index"]: part for part in features.get("float_features", ())}
    categorical = {part["feature_index"]: part for part in features.get("categorical_features", ())}
    columns = {part["flat_feature_index"]: part.get("values", []) for part in categorical.values()}
    hashes: dict[str, int] = {}

    def test(split: dict[str, Any]) -> _Test:
        if split["split_type"] == "FloatFeature":
            part = numeric[split["float_feature_index"]]
            return part["flat_feature_index"], split["border"], part["nan_value_treatment"] != "AsTrue", None
        part = categorical[split["cat_feature_index"]]
        return part["flat_feature_index"], 0.0, False, part["values"].index(split["value"])

    def grow() -> Grown:
        weight, base = content["scale_and_bias"]
        nested = [_nested(tree, len(base)) if "leaf_values" in tree else tree for tree in grown]
        return [_catboost_tree(tree, test, weight, len(base)) for tree in nested], base

    def encode(inputs: Any) -> np.ndarray:
        """Return numbers, and of categories the places of their hashes among those that trees test."""
        rows = InputRows(inputs)
        texts = {j: [str(value) for value in rows.values(j).tolist()] for j in columns}
        if not hashes.keys() >= {text for column in texts.values() for text in column}:
            hashes.update(_catboost_hashes(model, inputs, sorted(columns)))
        places = {j: {hashed: place for place, hashed in enumerate(tested)} for j, tested in columns.items()}
        encoded = [
            np.array([places[j].get(hashes[text], -1) for text in texts[j]]) if j in texts else rows.numbers(j)
            for j in range(rows.n_columns)
        ]
        return np.column_stack(encoded).astype(np.float64)

    loss = content["model_info"]["params"]["loss_function"]["type"]
    return Trees(grow=grow, link=_CATBOOST_LINKS.get(loss, "identity"), encode=encode)


def _catboost_file(model: Any, pool: Any = None) -> dict[str, Any]:
    """Return the content of the file that CatBoost writes; with a pool, it lists the hashes of its categories."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json", pool=pool)
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def _catboost_hashes(model: Any, inputs: Any, columns: list[int]) -> dict[str, int]:
    """Return the hashes that CatBoost gives to the categories in some rows."""
    from catboost import Pool  # noqa: PLC0415

    listed = _catboost_file(model, Pool(inputs, cat_features=columns))["features_info"]["cat_features_hash"]
    # CatBoost writes these hashes as unsigned numbers, and those of its tests as signed ones.
    return {part["value"]: (part["hash"] + 2**31) % 2**32 - 2**31 for part in listed}


def _nested(tree: dict[str, Any], n_outputs: int) -> dict[str, Any]:
    """Return a tree whose levels have one test each as a test with two trees below it, and so on.

    The last test comes first, so that the leaves from left to right are in CatBoost's order.
    """
    level = [{"value": value} for value in np.reshape(tree["leaf_values"], (-1, n_outputs))]
    for split in tree.get("splits") or ():
        pairs = zip(level[::2], level[1::2], strict=True)
        level = [{"split": split, "left": left, "right": right} for left, right in pairs]
    return level[0]


def _catboost_tree(tree: dict[str, Any], test: Callable[[Any], _Test], weight: float, n_outputs: int) -> Tree:
    """Return a tree. CatBoost sends the tested category right, so the sides of these nodes change places."""
    parts, nodes, values = [tree], [], []
    for part in parts:  # which grows
        if "split" in part:
            nodes.append((*test(part["split"]), len(parts), len(parts) + 1))
            parts += [part["left"], part["right"]]
        else:
            nodes.append((LEAF, 0.0, False, None, 0, 0))
        values.append(weight * np.broadcast_to(part.get("value", 0.0), n_outputs))
    feature, threshold, missing_left, category, left, right = zip(*nodes, strict=True)
    swapped = np.array([part is not None for part in category])
    return Tree(
        feature=np.array(feature),
        threshold=np.array(threshold),
        left=np.where(swapped, right, left),
        right=np.where(swapped, left, right),
        missing_left=np.array(missing_left),
        values=np.array(values),
        categories={node: np.array([part]) for node, part in enumerate(category) if part is not None},
    )


# ---- by class


def _refuse_own_objective(estimator: Any, objective: Any) -> None:
    if callable(objective) and hasattr(estimator, "classes_"):
        raise NotReadableError("the classifier has a custom objective, whose link is not known")


def _xgboost_estimator(estimator: Any) -> Trees:
    _refuse_own_objective(estimator, estimator.objective)
    return _xgboost(XgboostModel(estimator.get_booster().copy(), "booster"), float(estimator.missing))


def _lightgbm_estimator(estimator: Any) -> Trees:
    _refuse_own_objective(estimator, estimator.objective_)
    return _lightgbm(from_booster(estimator.booster_))


def _single(estimator: Any) -> Trees:
    return _averaged([(estimator.tree_, None)], estimator)


def _forest(estimator: Any) -> Trees:
    return _averaged([(member.tree_, None) for member in estimator.estimators_], estimator)


Reader = Callable[[Any], Trees]
_BY_TASK: dict[str, Reader] = {
    **dict.fromkeys(("DecisionTree", "ExtraTree"), _single),
    **dict.fromkeys(("RandomForest", "ExtraTrees"), _forest),
    **{"Bagging": _bagging, "GradientBoosting": _gradient_boosting, "HistGradientBoosting": _histogram_boosting},
}
# Readers by the first part of a class's module, and by its name. Subclasses are read like their base class, unless
# they change its answers.
READERS: dict[str, dict[str, Reader]] = {
    "anchorline": {"XgboostModel": _xgboost, "LightgbmModel": _lightgbm},  # loaded files
    "catboost": {"CatBoost": _catboost},
    "lightgbm": {"LGBMModel": _lightgbm_estimator, "Booster": lambda booster: _lightgbm(from_booster(booster))},
    "sklearn": {kind + task: each for kind, each in _BY_TASK.items() for task in ("Classifier", "Regressor")},
    "xgboost": {
        "XGBModel": _xgboost_estimator,
        "Booster": lambda booster: _xgboost(XgboostModel(booster.copy(), "booster")),
    },
}
