"""Reads the trees, forests and boosted trees of scikit-learn."""

from collections.abc import Callable
from typing import Any

import numpy as np

from anchorline.model.trees.building import Tree, bits, join
from anchorline.model.trees.ensemble import LEAF, Ensemble
from anchorline.model.trees.reading import Trees
from anchorline.model.wrappers import NotReadableError

LINKS = {
    "IdentityLink": "identity",
    "LogitLink": "logistic",
    "MultinomialLogit": "softmax",
    "LogLink": "exponential",
}
_RANDOM = ("stratified", "uniform")  # strategies of dummy estimators that do not answer with a constant


def read_tree(estimator: Any) -> Trees:
    """Read a single decision tree."""
    return _averaged([(estimator.tree_, None)], estimator)


def read_forest(estimator: Any) -> Trees:
    """Read a forest, whose answer is the average of its trees."""
    return _averaged([(member.tree_, None) for member in estimator.estimators_], estimator)


def read_bagging(estimator: Any) -> Trees:
    """Read bagged trees, each of which has columns of its own."""
    members = list(zip(estimator.estimators_, estimator.estimators_features_, strict=True))
    if not all(hasattr(member, "tree_") for member, _ in members):
        raise NotReadableError(f"the members of the {type(estimator).__name__} are not single decision trees")
    classes = getattr(estimator, "classes_", None)
    if classes is not None and not all(len(member.classes_) == len(classes) for member, _ in members):
        raise NotReadableError("some bagged trees do not know all classes")
    return _averaged([(member.tree_, columns) for member, columns in members], estimator)


def _averaged(members: list[tuple[Any, np.ndarray | None]], estimator: Any) -> Trees:
    if isinstance(getattr(estimator, "classes_", None), list):
        raise NotReadableError("the model answers with the classes of several outputs")

    def build() -> Ensemble:
        trees = [
            _tree(tree, tree.value.reshape(tree.node_count, -1) / len(members), columns=columns)
            for tree, columns in members
        ]
        return join(trees, base=np.zeros(trees[0].values.shape[1]), strict=False, dtype="float32")

    return Trees(link="identity", build=build, encode=dense, library="scikit-learn")


def read_boosting(estimator: Any) -> Trees:
    """Read gradient boosting. Its first guess must be a constant, which every row then has as its base."""
    guess = estimator.init_
    is_dummy = type(guess).__name__.startswith("Dummy") and getattr(guess, "strategy", "") not in _RANDOM
    if not (is_dummy or (isinstance(guess, str) and guess == "zero")):
        raise NotReadableError(f"the boosting starts from the answers of another model ({type(guess).__name__})")

    def build() -> Ensemble:
        trees = [
            _tree(member.tree_, estimator.learning_rate * member.tree_.value[:, 0, 0], output)
            for stage in estimator.estimators_
            for output, member in enumerate(stage)
        ]
        row = np.zeros((1, estimator.n_features_in_), dtype=np.float32)
        return join(trees, base=estimator._raw_predict_init(row)[0], strict=False, dtype="float32")

    return Trees(link=_link(estimator), build=build, encode=dense, library="scikit-learn")


def _tree(tree: Any, values: np.ndarray, output: int | None = None, columns: np.ndarray | None = None) -> Tree:
    """Return a tree of scikit-learn's; ``columns`` are those of the table that it gets, by default all."""
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


def read_histogram_boosting(estimator: Any) -> Trees:
    """Read histogram gradient boosting, which has missing values and categories of its own.

    Its own preprocessing turns categories into whole numbers, and unknown ones into missing values.
    """

    def build() -> Ensemble:
        stages = estimator._predictors
        trees = [_histogram_tree(part, output) for stage in stages for output, part in enumerate(stage)]
        return join(trees, base=np.ravel(estimator._baseline_prediction), strict=False, dtype="float64")

    def encode(inputs: Any) -> np.ndarray:
        return np.asarray(estimator._preprocess_X(inputs, reset=False), dtype=np.float64)

    return Trees(link=_link(estimator), build=build, encode=encode, library="scikit-learn")


def _histogram_tree(predictor: Any, output: int) -> Tree:
    nodes = predictor.nodes
    tests_categories = np.flatnonzero((nodes["is_leaf"] == 0) & (nodes["is_categorical"] == 1))
    sets = predictor.raw_left_cat_bitsets
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


def _link(estimator: Any) -> str:
    name = type(estimator._loss.link).__name__
    return LINKS.get(name, name)


def dense(inputs: Any, absent: float = 0.0) -> np.ndarray:
    """Return a frame, an array or a sparse matrix of numbers as float64, with ``absent`` where nothing is stored.

    Examples
    --------
    >>> import scipy.sparse
    >>> dense(scipy.sparse.csr_array([[0.0, 2.0]]), absent=np.nan).tolist()
    [[nan, 2.0]]
    """
    from sklearn.utils import check_array  # noqa: PLC0415  heavy

    checked = check_array(inputs, accept_sparse="coo", dtype=np.float64, ensure_all_finite=False)
    if isinstance(checked, np.ndarray):
        return checked
    full = np.full(checked.shape, absent)
    full[checked.row, checked.col] = checked.data
    return full


_TASKS = ("Classifier", "Regressor")
READERS: dict[str, Callable[[Any], Trees]] = {
    **{f"{kind}{task}": read_tree for kind in ("DecisionTree", "ExtraTree") for task in _TASKS},
    **{f"{kind}{task}": read_forest for kind in ("RandomForest", "ExtraTrees") for task in _TASKS},
    **{f"Bagging{task}": read_bagging for task in _TASKS},
    **{f"GradientBoosting{task}": read_boosting for task in _TASKS},
    **{f"HistGradientBoosting{task}": read_histogram_boosting for task in _TASKS},
}
