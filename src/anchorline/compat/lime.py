"""LIME's tabular explainer by its own names: what people typed keeps working, and now adds up."""

import contextlib
import hashlib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from anchorline.compat.lime_explanation import LimeExplanation
from anchorline.errors import ParameterError, PredictorError, PredictorOutputError
from anchorline.explainer import Explainer
from anchorline.result.explanation import Explanation
from anchorline.spaces.table import Table

MODES = ("classification", "regression")
SELECTIONS = ("auto", "none", "forward_selection", "lasso_path", "highest_weights")
_BINS = {"quartile": 4, "decile": 10, "entropy": 4}
_ENTROPY_DEPTH = 3  # of the tree whose splits cut a column: at most eight intervals
_CLOSE = "neighbors are drawn close to the row, and all of them weigh the same"
# Keywords of steps that are not taken here: the default, and what is done instead.
_INSTEAD: dict[str, tuple[Any, str]] = {
    "kernel_width": (None, _CLOSE),
    "kernel": (None, _CLOSE),
    "distance_metric": ("euclidean", _CLOSE),
    "sample_around_instance": (False, "every neighbor keeps most of the row's own values"),
    "sampling_method": ("gaussian", "values of neighbors are taken from training rows"),
    "model_regressor": (None, "the best sum of the length asked for is searched, and proved to be the best"),
    "verbose": (False, "nothing is printed; type print(result.explanations[label])"),
}


class LimeTabularExplainer:
    """Explain rows of a table by the names that ``lime.lime_tabular.LimeTabularExplainer`` has for it.

    Weights are contributions in the output's own units: intercept and weights of a label add up to the
    model's own output for it, and every label's `anchorline.Explanation` comes with its certificate.

    Parameters
    ----------
    training_data
        A 2-D array, categories coded as integers; or a pandas, Polars or Arrow frame with any columns.
    mode
        "classification" or "regression".
    training_labels
        Used by ``discretizer="entropy"`` only.
    feature_names
        Column names of an array; without them x0, x1, ...
    categorical_features
        Numbers (or names) of the columns that hold categories.
    categorical_names
        Column to what its values are called: ``{2: ["female", "male"]}``. Such a column holds categories.
    kernel_width, kernel, verbose, sample_around_instance
        Have no meaning here: anything but the default warns, and says what is done instead.
    class_names
        What the columns of the model's answers are called; by default the labels the model itself tells,
        else "0", "1", ... In regression, one name is that of the output; as in LIME, others have no meaning.
    feature_selection
        "none" takes all features, whatever num_features says. Any other way of choosing warns: the best
        choice is searched, and proved.
    discretize_continuous
        Facts about numbers are intervals: False is refused where there are any.
    discretizer
        Where numbers are cut: "quartile", "decile", or "entropy" (splits of a small decision tree a column
        on training_labels). For cut points of your own see ``anchorline.Table(cuts=...)``.
    random_state
        A seed. None is the seed 0: the same call gives the same bytes. Of a generator the state is read and
        never changed.
    training_data_stats
        Refused: neighbors are put together from training rows, not from their statistics.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = np.column_stack([rng.normal(40, 9, 500).round(), rng.integers(0, 2, 500)])
    >>> def predict_proba(rows):
    ...     p = 1 / (1 + np.exp(4 - rows[:, 0] / 10 - rows[:, 1]))
    ...     return np.column_stack([1 - p, p])
    >>> explainer = LimeTabularExplainer(
    ...     rows, feature_names=["age", "member"], class_names=["no", "yes"], categorical_features=[1],
    ...     categorical_names={1: ["no", "yes"]},
    ... )
    >>> result = explainer.explain_instance(np.array([52, 1]), predict_proba, num_features=2)
    >>> [(text, round(weight, 2)) for text, weight in result.as_list()]
    [('age >= 46', 0.14), ('member = yes', 0.08)]
    >>> bool(abs(result.intercept[1] + sum(w for _, w in result.as_list()) - result.predict_proba[1]) < 1e-12)
    True
    """

    def __init__(
        self,
        training_data: Any,
        mode: str = "classification",
        training_labels: Any = None,
        feature_names: Sequence[str] | None = None,
        categorical_features: Iterable[int | str] | None = None,
        categorical_names: Mapping[Any, Any] | None = None,
        kernel_width: float | None = None,
        kernel: Callable[..., Any] | None = None,
        verbose: bool = False,
        class_names: Sequence[Any] | None = None,
        feature_selection: str = "auto",
        discretize_continuous: bool = True,
        discretizer: str = "quartile",
        sample_around_instance: bool = False,
        random_state: Any = None,
        training_data_stats: Mapping[str, Any] | None = None,
    ) -> None:
        _warn_of(
            kernel_width=kernel_width,
            kernel=kernel,
            verbose=verbose,
            sample_around_instance=sample_around_instance,
        )
        _check_choices(mode, feature_selection, discretizer, training_data_stats)
        names, self._own_names = _names(training_data, feature_names)
        categorical = _categories(names, categorical_features, categorical_names)
        if not discretize_continuous and len(categorical) < len(names):
            raise ParameterError(
                "discretize_continuous is False: weights would be slopes of numbers; here they are contributions "
                "of facts such as '37 <= age < 48'. Leave it out, or pass all columns as categorical_features."
            )
        cuts = {}
        if discretizer == "entropy":
            cuts = _entropy_cuts(training_data, training_labels, mode, names, categorical)
        self.table = Table(
            training_data,
            names=None if self._own_names else names,
            n_bins=_BINS[discretizer],
            cuts=cuts,
            categorical=categorical,
        )
        self.mode, self.feature_names = mode, list(self.table.names)
        self.class_names = _class_names(class_names, mode)
        self.seed, self._all_features = _seed(random_state), feature_selection == "none"

    def explain_instance(
        self,
        data_row: Any,
        predict_fn: Any,
        labels: Iterable[int] = (1,),
        top_labels: int | None = None,
        num_features: int = 10,
        num_samples: int = 5000,
        distance_metric: str = "euclidean",
        model_regressor: Any = None,
        sampling_method: str = "gaussian",
    ) -> LimeExplanation:
        """Explain one row's prediction: one explanation a label, each measured on its own.

        Parameters
        ----------
        data_row
            The row: an array, a list, a dict, a Series, or a frame of one row.
        predict_fn
            From rows, as the training data came, to (n, c) probabilities; in regression to n numbers.
        labels
            Columns of the answers to explain.
        top_labels
            Explain so many columns of the highest outputs instead.
        num_features
            Most facts beside the intercept: k is num_features + 1. Where a sum is best without an intercept,
            its place goes to one more fact.
        num_samples
            Neighbors to search with; as many fresh ones (at most 10,000) measure what was found.
        distance_metric, model_regressor, sampling_method
            Have no meaning here: anything but the default warns, and says what is done instead.

        Returns
        -------
        LimeExplanation
            As LIME's: ``as_list``, ``as_map``, ``local_pred``, ``intercept``, ``score``, ...; and
            ``explanations``, ours by label.

        Examples
        --------
        >>> rows = np.random.default_rng(0).normal(size=(200, 3))
        >>> explainer = LimeTabularExplainer(rows, mode="regression", class_names=["price"])
        >>> result = explainer.explain_instance([2, 0, -2], lambda rows: 3 * rows[:, 0] - rows[:, 2])
        >>> [text for text, weight in result.as_list()][:2], result.predicted_value
        (['x0 >= 0.663', 'x2 < -0.732'], 8.0)
        """
        _warn_of(distance_metric=distance_metric, model_regressor=model_regressor, sampling_method=sampling_method)
        if isinstance(num_features, bool) or not isinstance(num_features, int | np.integer) or num_features < 1:
            raise ParameterError(f"num_features is {num_features!r}; needed a whole number >= 1.")
        n_features = len(self.feature_names) if self._all_features else int(num_features)
        labels_of_row = type(getattr(data_row, "index", None)).__name__
        if not self._own_names and labels_of_row == "RangeIndex" and getattr(data_row, "ndim", None) == 1:
            data_row = data_row.to_numpy()  # a Series whose labels name nothing

        def explain(explainer: Explainer) -> Explanation:
            return explainer.explain(data_row, k=n_features + 1, n_samples=num_samples, seed=self.seed)

        if self.mode == "regression":
            output = None if self.class_names is None else self.class_names[0]
            explainer = Explainer(predict_fn, self.table, output=output, task="number")
            answer = _answer(explainer, self.table, data_row)
            if answer.size != 1 or answer.dtype.kind not in "fiub":
                raise PredictorOutputError(
                    f"mode is 'regression', but predict_fn answers to one row with {answer.dtype} of shape "
                    f"{answer.shape}; needed one number a row."
                )
            return LimeExplanation(
                mode=self.mode, explanations={1: explain(explainer)}, feature_names=tuple(self.feature_names)
            )
        explainer = Explainer(predict_fn, self.table, classes=self.class_names)
        outputs = _answer(explainer, self.table, data_row).reshape(-1)
        chosen, top = _chosen(labels, top_labels, outputs)
        names = explainer.target.classes or range(len(outputs))
        return LimeExplanation(
            mode=self.mode,
            explanations={
                label: explain(Explainer(predict_fn, self.table, column=label, classes=self.class_names))
                for label in chosen
            },
            feature_names=tuple(self.feature_names),
            class_names=[str(name) for name in names],
            predict_proba=outputs,
            top_labels=top,
        )


def _warn_of(**given: Any) -> None:
    """Warn of every keyword that is not its default; the caller's caller typed it."""
    for name, value in given.items():
        default, instead = _INSTEAD[name]
        if value is not default and not (isinstance(value, type(default)) and value == default):
            warnings.warn(f"{name} has no effect in anchorline: {instead}.", UserWarning, stacklevel=3)


def _check_choices(mode: str, feature_selection: str, discretizer: Any, stats: Any) -> None:
    if mode not in MODES:
        raise ParameterError(f"mode is {mode!r}; needed one of {', '.join(MODES)}.")
    if feature_selection not in SELECTIONS:
        raise ParameterError(f"feature_selection is {feature_selection!r}; needed one of {', '.join(SELECTIONS)}.")
    if feature_selection not in ("auto", "none"):
        warnings.warn(
            f"feature_selection={feature_selection!r} has no effect in anchorline: the best choice is searched, "
            "and proved to be the best.",
            UserWarning,
            stacklevel=3,
        )
    if not isinstance(discretizer, str) or discretizer not in _BINS:
        raise ParameterError(
            f"discretizer is {discretizer!r}; needed one of {', '.join(_BINS)}. For cut points of your own use "
            "anchorline.Table(cuts={'age': [30, 40, 50]}) with anchorline.Explainer."
        )
    if stats is not None:
        raise ParameterError(
            "training_data_stats was given; neighbors are put together from training rows, so statistics are not "
            "enough. Leave it out, and give training_data: some thousand rows will do."
        )


def _names(training_data: Any, feature_names: Any) -> tuple[list[str], bool]:
    """Column names, and whether they are the table's own."""
    own = getattr(training_data, "column_names", getattr(training_data, "columns", None))
    given = None
    if feature_names is not None:
        given = [str(name) for name in _list(feature_names, "feature_names", "feature_names=['age', 'pay']")]
    if own is None:
        shape = np.shape(training_data)
        numbered = [f"x{j}" for j in range(shape[1] if len(shape) == 2 else 0)]
        return numbered if given is None else given, False
    names = [str(name) for name in own]
    if given not in (None, names):
        raise ParameterError(f"feature_names differ from the frame's own names, {names[:8]}. Leave them out.")
    return names, True


def _categories(names: list[str], features: Any, called: Any) -> dict[str, dict[Any, str]]:
    """Categorical columns by name, each with what its values are called."""
    if called is not None and not isinstance(called, Mapping):
        raise ParameterError(f"categorical_names is a {type(called).__name__}; needed {{column: [names]}}.")
    listed = [] if features is None else _list(features, "categorical_features", "categorical_features=[0]")
    found: dict[str, dict[Any, str]] = {_column(key, names): {} for key in listed}
    for key, told in (called or {}).items():
        typed = f"categorical_names={{{key!r}: ['no', 'yes']}}"
        named = _list(told, f"categorical_names[{key!r}]", typed)
        pairs = told.items() if isinstance(told, Mapping) else enumerate(named)
        found[_column(key, names)] = {value: str(text) for value, text in pairs}
    return found


def _list(given: Any, what: str, typed: str) -> list[Any]:
    """What was given as a list; neither a single value nor a text, a list of its letters, is meant as one."""
    with contextlib.suppress(TypeError):
        if not isinstance(given, str):
            return list(given)
    raise ParameterError(f"{what} is {given!r}; needed a list. Type {typed}.")


def _column(key: Any, names: list[str]) -> str:
    if isinstance(key, str) and key in names:
        return key
    if isinstance(key, int | np.integer) and not isinstance(key, bool) and 0 <= key < len(names):
        return names[key]
    raise ParameterError(f"A categorical column is {key!r}; needed a column's number, 0 to {len(names) - 1}.")


def _class_names(class_names: Any, mode: str) -> list[Any] | None:
    if class_names is None:
        return None
    if mode == "regression":  # LIME ignores them; a single name is the output's
        names = list(class_names) if isinstance(class_names, Iterable) and not isinstance(class_names, str) else []
        return names if len(names) == 1 else None
    return _list(class_names, "class_names", "class_names=['no', 'yes']")


def _seed(random_state: Any) -> int:
    """A seed from all that LIME takes; a generator's state is read, not changed."""
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
            f"random_state is {random_state!r}; needed a whole number >= 0, None (the seed 0), a RandomState or a "
            "Generator."
        )
    text = repr(_listed(state))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big")


def _listed(state: Any) -> Any:
    """Arrays as lists: their repr leaves entries out."""
    if isinstance(state, Mapping):
        return {key: _listed(below) for key, below in state.items()}
    return state.tolist() if isinstance(state, np.ndarray) else state


def _entropy_cuts(
    training_data: Any, labels: Any, mode: str, names: list[str], categorical: Mapping[str, Any]
) -> dict[str, list[float]]:
    """Cut points of every column of numbers: where a small decision tree on it alone splits the labels."""
    if labels is None or mode == "regression":
        raise ParameterError("discretizer='entropy' cuts where classes part: needed training_labels, of classes.")
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415  heavy

    rows, classes, cuts = np.asarray(training_data), np.asarray(labels), {}
    if rows.ndim != 2 or classes.shape != rows.shape[:1]:
        raise ParameterError(f"training_labels have shape {classes.shape}; needed one a row, {rows.shape[:1]}.")
    for j, name in enumerate(names):
        try:
            column = rows[:, j].astype(np.float64)
        except (TypeError, ValueError):  # texts: categories
            continue
        known = np.isfinite(column)
        if name in categorical or not known.any():
            continue
        tree = DecisionTreeClassifier(criterion="entropy", max_depth=_ENTROPY_DEPTH, random_state=0)
        grown = tree.fit(column[known, None], classes[known]).tree_
        splits = grown.threshold[grown.children_left >= 0]
        cuts[name] = [_short(cut, np.unique(column[known])) for cut in splits] or [float(np.median(column[known]))]
    return cuts


def _short(cut: float, values: np.ndarray) -> float:
    """The number of fewest digits that parts the sorted values where the cut does."""
    at = int(np.clip(np.searchsorted(values, cut), 1, len(values) - 1))
    roundings = (float(f"{cut:.{digits}g}") for digits in range(1, 18))  # 17 digits give any float back
    return next((short for short in roundings if values[at - 1] < short <= values[at]), float(values[at]))


def _answer(explainer: Explainer, table: Table, row: Any) -> np.ndarray:
    """What the model says of the row itself, (1, c), or (1,) of one number."""
    original = table.at(row).original
    try:
        return np.asarray(explainer.target.ask(original))
    except Exception as error:
        raise PredictorError(
            f"predict_fn raised {type(error).__name__}: {error} (asked for one row, a {type(original).__name__})."
        ) from error


def _chosen(labels: Any, top_labels: Any, outputs: np.ndarray) -> tuple[list[int], list[int] | None]:
    """The columns to explain, and those of the highest outputs, highest first, if they were asked for."""
    if len(outputs) < 2:
        raise PredictorOutputError(
            "mode is 'classification', but predict_fn answers with one value a row; needed (n, c) probabilities: "
            "pass `model.predict_proba`. For a model without them: anchorline.Explainer(model, table, "
            "task='label')."
        )
    if top_labels:
        if isinstance(top_labels, bool) or not isinstance(top_labels, int | np.integer) or top_labels < 0:
            raise ParameterError(f"top_labels is {top_labels!r}; needed how many, a whole number >= 1.")
        highest = [int(label) for label in np.argsort(outputs)[-top_labels:]]
        return highest, highest[::-1]
    chosen = _list(labels, "labels", f"labels=({labels!r},)")
    wrong = [label for label in chosen if label not in range(len(outputs)) or isinstance(label, bool)]
    if wrong or not chosen:
        raise ParameterError(
            f"labels is {chosen!r}; needed numbers of columns of the answers, 0 to {len(outputs) - 1}."
        )
    return [int(label) for label in chosen], None
