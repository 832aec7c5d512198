"""skops files: scikit-learn models that list every type they contain, so that a type can be refused."""

import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import numpy as np

from anchorline.errors import ModelFileError, UntrustedError

_MAX_BYTES = 4 * 2**30  # of the content after unpacking

# Types that ordinary scikit-learn models contain and that skops does not trust by default. Each consists of plain
# numbers and settings, or is a function of arrays without side effects: none opens files, imports modules or
# evaluates code. Trees index memory by numbers in the file, which are checked before the model is used.
# Left out on purpose: k-d trees and ball trees (they index memory too, and nothing checks them), boosters of other
# libraries (raw bytes for their own readers; load their native files instead), scorers, and every type outside
# scikit-learn. A `partial` can do no more than a FunctionTransformer, which skops trusts, because the function
# inside it must be listed too.
_ALLOWED = {
    "functools": ("partial",),
    "numpy": ("dtype",),
    "sklearn._loss.loss": ("HalfTweedieLoss", "HalfTweedieLossIdentity"),
    "sklearn.calibration": ("_CalibratedClassifier", "_SigmoidCalibration"),
    "sklearn.compose._column_transformer": ("_RemainderColsList",),
    "sklearn.ensemble._hist_gradient_boosting.predictor": ("TreePredictor",),
    "sklearn.feature_selection._mutual_info": ("mutual_info_classif", "mutual_info_regression"),
    "sklearn.feature_selection._univariate_selection": ("chi2", "f_classif", "f_regression"),
    "sklearn.gaussian_process._gpc": ("_BinaryGaussianProcessClassifierLaplace",),
    "sklearn.gaussian_process.kernels": (
        *("ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation", "Matern"),
        *("Product", "RBF", "RationalQuadratic", "Sum", "WhiteKernel"),
    ),
    "sklearn.metrics._scorer": ("_PassthroughScorer",),
    "sklearn.model_selection._split": ("KFold", "StratifiedKFold"),
    "sklearn.neural_network._stochastic_optimizers": ("AdamOptimizer", "SGDOptimizer"),
    "sklearn.tree._tree": ("Tree",),
    "sklearn.utils._bunch": ("Bunch",),
    "sklearn.utils._metadata_requests": ("MetadataRequest", "MethodMetadataRequest"),
    "sklearn.utils.validation": ("check_array",),
}
# Modules of estimators that pass their own rows to their trees, and that store the number of columns.
_FAMILIES = tuple(f"sklearn.ensemble._{name}" for name in ("forest", "gb", "iforest", "bagging", "weight", "hist"))
_FAMILIES += ("sklearn.tree.",)


def load(name: str, kind: str, content: bytes, trust: tuple[str, ...]) -> Any:
    """Build the model of a file; refuse types that neither skops nor ``trust`` nor our own list contain."""
    import skops.io  # noqa: PLC0415

    with zipfile.ZipFile(BytesIO(content)) as archive:
        size = sum(member.file_size for member in archive.infolist())
        if "schema.json" not in archive.namelist():
            raise ModelFileError(f"{name!r} is not a skops file: it has no schema.json.")
    if size > _MAX_BYTES:
        raise ModelFileError(f"{name!r} unpacks to {size:,} bytes; the limit is {_MAX_BYTES:,} bytes.")
    trusted = {*trust, *(f"{module}.{part}" for module, parts in _ALLOWED.items() for part in parts)}
    refused = [part for part in skops.io.get_untrusted_types(data=content) if part not in trusted]
    if refused:
        flags = " ".join(f"--trust {part}" for part in refused)
        raise UntrustedError(
            f"{name!r} contains the types {', '.join(refused)}, which are not on the list of trusted types. If "
            f"you trust them, pass trust={refused!r} (on the command line: {flags})."
        )
    model = skops.io.loads(content, trusted=sorted(trusted))
    for tree, n_columns in _trees(model, None, set()):
        is_sound = _is_sound_tree if type(tree).__name__ == "Tree" else _is_sound_predictor
        if not is_sound(tree, n_columns or 0):
            raise ModelFileError(
                f"{name!r} holds a tree that refers to nodes or columns out of range: the file is damaged, or "
                "was made to do harm."
            )
    return model


def _trees(thing: Any, n_columns: int | None, visited: set[int]) -> Iterator[tuple[Any, int | None]]:
    """Yield every tree inside an object, with the number of columns of the rows that it will get."""
    if type(thing).__name__ in ("Tree", "TreePredictor") and type(thing).__module__.startswith("sklearn."):
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
        own, is_family = attributes.get("n_features_in_"), type(thing).__module__.startswith(_FAMILIES)
        if isinstance(own, (int, np.integer)):
            n_columns = min(int(own), n_columns) if is_family and n_columns is not None else int(own)
        else:  # no column is safe in a family, because scikit-learn would take rows of any width
            n_columns = 0 if is_family else None
        parts = attributes.values()
    for part in parts:
        yield from _trees(part, n_columns, visited)


def _is_sound_tree(tree: Any, n_columns: int) -> bool:
    n_nodes, left, right = tree.node_count, np.asarray(tree.children_left), np.asarray(tree.children_right)
    if n_nodes < 1 or len(left) != n_nodes or len(tree.value) != n_nodes:
        return False
    split = left != -1
    ordered = _children_follow(left[split], right[split], np.flatnonzero(split), n_nodes)
    return ordered and _are_below(np.asarray(tree.feature)[split], min(n_columns, tree.n_features))


def _is_sound_predictor(predictor: Any, n_columns: int) -> bool:
    nodes = getattr(predictor, "nodes", None)
    if not isinstance(nodes, np.ndarray) or nodes.ndim != 1 or nodes.dtype.names is None or not len(nodes):
        return False
    split = nodes["is_leaf"] == 0
    inner = nodes[split]
    left, right = inner["left"].astype(np.int64), inner["right"].astype(np.int64)
    n_sets = min(len(predictor.raw_left_cat_bitsets), len(predictor.binned_left_cat_bitsets))
    return (
        _children_follow(left, right, np.flatnonzero(split), len(nodes))
        and _are_below(inner["feature_idx"], n_columns)
        and _are_below(inner["bitset_idx"][inner["is_categorical"] != 0], n_sets)
    )


def _are_below(numbers: np.ndarray, limit: int) -> bool:
    return bool(np.all((numbers.astype(np.int64) >= 0) & (numbers.astype(np.int64) < limit)))


def _children_follow(left: np.ndarray, right: np.ndarray, parents: np.ndarray, n_nodes: int) -> bool:
    """Return whether every child is a later node of the tree, so that every path stays inside and ends."""
    children = np.concatenate([left, right])
    return bool(np.all((children > np.tile(parents, 2)) & (children < n_nodes)))
