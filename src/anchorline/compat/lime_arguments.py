"""Arguments of LIME's tabular explainer: checked, and converted to the arguments of `Table` and `Explainer`."""

import contextlib
import hashlib
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from anchorline.compat.lime_discretizer import same_split
from anchorline.errors import InstanceError, ParameterError, PredictorOutputError

MODES = ("classification", "regression")
SELECTIONS = ("auto", "none", "forward_selection", "lasso_path", "highest_weights")
BINS = {"quartile": 4, "decile": 10, "entropy": 4}
_ENTROPY_DEPTH = 3  # of the tree whose splits cut a column: at most eight intervals
_CALLER = 4  # the stack level of the caller of a method that checks its keywords, seen from a function here
_CLOSE = "neighbors are drawn close to the row, and all of them have the same weight"
# Keywords of steps that anchorline does not have: the default, and what anchorline does instead.
_INSTEAD: dict[str, tuple[Any, str]] = {
    "kernel_width": (None, _CLOSE),
    "kernel": (None, _CLOSE),
    "distance_metric": ("euclidean", _CLOSE),
    "sample_around_instance": (False, "every neighbor keeps most of the row's own values"),
    "sampling_method": ("gaussian", "the values of neighbors come from training rows"),
    "model_regressor": (None, "anchorline finds the best sum of the requested length, and proves that it is best"),
    "discretize_continuous": (
        True,
        "a weight belongs to a fact such as '37 <= age < 48', not to the number itself",
    ),
    "verbose": (False, "nothing is printed; type print(result.explanations[label])"),
}


def warn_without_effect(**given: Any) -> None:
    """Warn of every keyword that differs from its default; the warning points to the user's call."""
    for name, value in given.items():
        default, instead = _INSTEAD[name]
        if value is not default and not (isinstance(value, type(default)) and value == default):
            warnings.warn(f"{name} has no effect in anchorline: {instead}.", UserWarning, stacklevel=_CALLER)


def warn_of_statistics() -> None:
    """Warn that neighbors do not come from training rows; the warning points to the user's call."""
    warnings.warn(
        "training_data_stats was given, so neighbors get values from rows that were generated from these "
        "statistics, with columns independent of each other. What is measured is true of such rows. Training rows "
        "are better: pass them as training_data, without training_data_stats.",
        UserWarning,
        stacklevel=_CALLER,
    )


def check_choices(mode: str, feature_selection: str, discretizer: Any) -> None:
    """Raise an error for a choice that does not exist here; warn of one that has no effect."""
    if mode not in MODES:
        raise ParameterError(f"mode is {mode!r}, but it must be one of {', '.join(MODES)}.")
    check_selection(feature_selection, _CALLER + 1)
    if isinstance(discretizer, str) and discretizer not in BINS:
        raise ParameterError(
            f"discretizer is {discretizer!r}, but it must be one of {', '.join(BINS)}. For your own cut points, "
            "use anchorline.Table(cuts={'age': [30, 40, 50]}) with anchorline.Explainer."
        )


def check_selection(feature_selection: str, stacklevel: int = _CALLER) -> None:
    """Raise an error for a selection of features that does not exist; warn of one that has no effect."""
    if feature_selection not in SELECTIONS:
        raise ParameterError(
            f"feature_selection is {feature_selection!r}, but it must be one of {', '.join(SELECTIONS)}."
        )
    if feature_selection not in ("auto", "none"):
        warnings.warn(
            f"feature_selection={feature_selection!r} has no effect in anchorline: it finds the best choice of "
            "features, and proves that it is best.",
            UserWarning,
            stacklevel=stacklevel,
        )


def column_names(training_data: Any, feature_names: Any) -> tuple[list[str], bool]:
    """Return the column names, and whether the training data carries them itself."""
    own = getattr(training_data, "column_names", getattr(training_data, "columns", None))
    given = None
    if feature_names is not None:
        given = [str(name) for name in as_list(feature_names, "feature_names", "feature_names=['age', 'pay']")]
    if own is None:
        shape = np.shape(training_data)
        numbered = [f"x{j}" for j in range(shape[1] if len(shape) == 2 else 0)]
        return numbered if given is None else given, False
    names = [str(name) for name in own]
    if given not in (None, names):
        raise ParameterError(f"feature_names differ from the frame's own names, {names[:8]}. Leave them out.")
    return names, True


def categorical_columns(names: list[str], features: Any, value_names: Any) -> dict[str, dict[Any, str]]:
    """Return the names of the values of every categorical column, by column name."""
    if value_names is not None and not isinstance(value_names, Mapping):
        raise ParameterError(
            f"categorical_names is a {type(value_names).__name__}, but it must be a dict {{column: [names]}}."
        )
    listed = [] if features is None else as_list(features, "categorical_features", "categorical_features=[0]")
    columns: dict[str, dict[Any, str]] = {_column_name(key, names): {} for key in listed}
    for key, given in (value_names or {}).items():
        example = f"categorical_names={{{key!r}: ['no', 'yes']}}"
        texts = as_list(given, f"categorical_names[{key!r}]", example)
        pairs = given.items() if isinstance(given, Mapping) else enumerate(texts)
        columns[_column_name(key, names)] = {value: str(text) for value, text in pairs}
    return columns


def as_list(given: Any, what: str, example: str) -> list[Any]:
    """Return an iterable as a list; a single value or a text raises an error that shows an example to type."""
    with contextlib.suppress(TypeError):
        if not isinstance(given, str):
            return list(given)
    raise ParameterError(f"{what} is {given!r}, but it must be a list. Type {example}.")


def _column_name(key: Any, names: list[str]) -> str:
    if isinstance(key, str) and key in names:
        return key
    if isinstance(key, int | np.integer) and not isinstance(key, bool) and 0 <= key < len(names):
        return names[key]
    raise ParameterError(
        f"A categorical column is {key!r}, but it must be a column's number, 0 to {len(names) - 1}."
    )


def class_labels(class_names: Any, mode: str) -> list[Any] | None:
    """Return the labels of the model's columns; in regression, a single name is the name of the output."""
    if class_names is None:
        return None
    if mode == "regression":  # LIME ignores them
        names = list(class_names) if isinstance(class_names, Iterable) and not isinstance(class_names, str) else []
        return names if len(names) == 1 else None
    return as_list(class_names, "class_names", "class_names=['no', 'yes']")


def seed_from(random_state: Any) -> int:
    """Return a seed for every random state that LIME accepts; a generator's state is read, not changed."""
    if random_state is None:
        return 0
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        state: Any = random_state.get_state(legacy=False)
    elif isinstance(random_state, np.random.Generator):
        state = random_state.bit_generator.state
    else:
        raise ParameterError(
            f"random_state is {random_state!r}, but it must be a whole number >= 0, None (seed 0), a RandomState "
            "or a Generator."
        )
    text = repr(_arrays_to_lists(state))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big")


def _arrays_to_lists(state: Any) -> Any:
    """Replace arrays by lists, because the repr of a long array leaves entries out."""
    if isinstance(state, Mapping):
        return {key: _arrays_to_lists(entry) for key, entry in state.items()}
    return state.tolist() if isinstance(state, np.ndarray) else state


def entropy_cuts(
    training_data: Any, labels: Any, mode: str, names: list[str], categorical: Mapping[str, Any]
) -> dict[str, list[float]]:
    """Return cut points for every column of numbers: the splits of a small decision tree on that column alone."""
    if labels is None or mode == "regression":
        raise ParameterError(
            "discretizer is 'entropy', which cuts where classes change, so it needs training_labels of classes. "
            "Pass training_labels, or type discretizer='quartile'."
        )
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415  heavy

    rows, classes, cuts = np.asarray(training_data), np.asarray(labels), {}
    if rows.ndim != 2 or classes.shape != rows.shape[:1]:
        raise ParameterError(
            f"training_labels has shape {classes.shape}, but it must have one label per row, {rows.shape[:1]}."
        )
    for j, name in enumerate(names):
        try:
            column = rows[:, j].astype(np.float64)
        except (TypeError, ValueError):  # texts are categories
            continue
        known = np.isfinite(column)
        if name in categorical or not known.any():
            continue
        tree = DecisionTreeClassifier(criterion="entropy", max_depth=_ENTROPY_DEPTH, random_state=0)
        grown = tree.fit(column[known, None], classes[known]).tree_
        splits = grown.threshold[grown.children_left >= 0]
        cuts[name] = [same_split(cut, column) for cut in splits] or [float(np.median(column[known]))]
    return cuts


def check_one_row(row: Any) -> None:
    """Raise an error if several rows were given."""
    shape = getattr(row, "shape", None) or np.shape(row if isinstance(row, list | tuple) else 0)
    if len(shape) == 2 and shape[0] != 1:
        raise InstanceError(
            f"data_row has shape {tuple(shape)}, but it must be one row. Type rows[0], or frame.iloc[0]. To "
            "explain several rows, call explain_instance for each of them."
        )


def choose_labels(
    labels: Any, top_labels: Any, outputs: np.ndarray, names: list[str]
) -> tuple[list[int], list[int] | None]:
    """Return the columns to explain and, if ``top_labels`` was given, the same columns with the highest first."""
    if len(outputs) < 2:
        raise PredictorOutputError(
            "mode is 'classification', but predict_fn returns one value per row instead of (n, c) probabilities. "
            "Pass `model.predict_proba`. If the value is a number to explain, type mode='regression'. For a "
            "classifier without probabilities, type anchorline.Explainer(model, table, task='label')."
        )
    if top_labels:
        if isinstance(top_labels, bool) or not isinstance(top_labels, int | np.integer) or top_labels < 0:
            raise ParameterError(f"top_labels is {top_labels!r}, but it must be a number of labels, at least 1.")
        highest_last = [int(label) for label in np.argsort(outputs)[-top_labels:]]
        return highest_last, highest_last[::-1]
    chosen = as_list(labels, "labels", f"labels=({labels!r},)")
    wrong = [label for label in chosen if label not in range(len(outputs)) or isinstance(label, bool)]
    if wrong or not chosen:
        numbers = tuple(names.index(label) if label in names else label for label in chosen)
        hint = f" Type labels={numbers}." if wrong and set(numbers) <= set(range(len(outputs))) else ""
        last = len(outputs) - 1
        raise ParameterError(
            f"labels is {chosen!r}, but it must list columns of the model's answers, 0 to {last}.{hint}"
        )
    return [int(label) for label in chosen], None
