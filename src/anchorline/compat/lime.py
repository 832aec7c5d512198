"""LIME's explainers by their own names: calls that explain keep working, and the weights now add up."""

import contextlib
import functools
import hashlib
import inspect
import json
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any, ParamSpec, TypeVar

import numpy as np

from anchorline.errors import (
    AnchorlineError,
    MissingDependencyError,
    ParameterError,
    PredictorError,
    PredictorOutputError,
    names_similar_keywords,
)
from anchorline.explainer import Explainer
from anchorline.facts import Fact
from anchorline.model.outputs import owner_of
from anchorline.model.predictor import failure_text
from anchorline.render.report import fragment
from anchorline.render.statements import fact_text, own_text
from anchorline.result.explanation import Explanation
from anchorline.settings import FEWEST_QUERIES, Settings, checked_count
from anchorline.spaces.columns import dense, is_sparse
from anchorline.spaces.regions import Image
from anchorline.spaces.table import Table
from anchorline.spaces.text import Text

_P = ParamSpec("_P")
_R = TypeVar("_R")
_MODES = ("classification", "regression")
_ROWS_OF_STATS = 1000  # rows that stand for a column's statistics
_ALL = 100_000  # LIME's default number of regions, which stands for all of them
_REGRESSION = 1  # the label that LIME gives to the output of a regression
_CLOSE = "neighbors are drawn close to the row, and all of them have the same weight"
_BEST = "the best sum of at most num_features facts is found"
_INSTEAD = {  # of keywords for steps that anchorline does not have
    "kernel_width": _CLOSE,
    "kernel": _CLOSE,
    "distance_metric": _CLOSE,
    "sample_around_instance": "every neighbor keeps about half of the row's own values",
    "sampling_method": "the values of neighbors come from training rows",
    "model_regressor": _BEST,
    "feature_selection": _BEST,
    "verbose": "nothing is printed; type print(result)",
}


def _as_in_lime(call: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorate one of LIME's calls: an unknown keyword raises, and one without an effect warns if it is given."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        signature = inspect.signature(function)

        @names_similar_keywords(call)
        @functools.wraps(function)
        def checked(*arguments: _P.args, **keywords: _P.kwargs) -> _R:
            for name, value in signature.bind(*arguments, **keywords).arguments.items():
                default = signature.parameters[name].default
                is_default = value is default or (isinstance(value, type(default)) and value == default)
                if name in _INSTEAD and not is_default:
                    text = f"{name} has no effect in anchorline: {_INSTEAD[name]}."
                    warnings.warn(text, UserWarning, stacklevel=3)  # points to the user's call
            return function(*arguments, **keywords)

        return checked

    return decorate


# ---- results


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LimeExplanation:
    """Explanations of one case by label, with LIME's names for their parts.

    ``intercept[label]`` and the weights of a label add up to the model's own output. A weight is what a fact adds
    to the average over neighbors; LIME's weight is the whole effect of a fact, ``explanations[label].effects``. As
    in LIME, ``score`` and ``local_pred`` belong to the label explained last, and label 0 of a regression has the
    weights of label 1 with opposite signs. ``as_list`` and ``as_map`` have ``n_listed`` entries if there are as
    many columns or words: what is in no fact of the sum has weight 0.

    Examples
    --------
    >>> from anchorline.compat import LimeTabularExplainer
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> explainer = LimeTabularExplainer(rows, mode="regression", feature_names=["a", "b"])
    >>> result = explainer.explain_instance([2.0, 0.1], lambda rows: rows[:, 0])
    >>> result.local_pred, result.predicted_value, result.explanations[1].is_proven
    (array([2.]), 2.0, True)
    """

    mode: str
    explanations: Mapping[int, Explanation]
    feature_names: tuple[str, ...]
    predict_proba: np.ndarray | None = None
    top_labels: list[int] | None = None
    n_listed: int = 0

    @cached_property
    def local_exp(self) -> dict[int, list[tuple[int, float]]]:
        """(Column number, weight) pairs by label, largest first; numbers of words, or of regions."""
        weights = {
            label: [(number, weight) for number, _, weight in self._weights(label)] for label in self.explanations
        }
        if self.mode == "regression":
            weights = {0: [(column, 0.0 - weight) for column, weight in weights[_REGRESSION]], **weights}
        return weights

    @property
    def intercept(self) -> dict[int, float]:
        """The base of every sum, which is its average over neighbors, by label."""
        return {label: self._explanation(label).base for label in self.local_exp}

    @property
    def score(self) -> float:
        """The share of the output's mean squared change on fresh neighbors that the sum explains, or NaN.

        LIME's R2 compares with the neighbors' mean, on the sample of the fit, so it is another number.
        """
        fit = self._last.fit
        return np.nan if fit is None else fit.r2

    @property
    def local_pred(self) -> np.ndarray:
        """The value of the sum for the row, of shape (1,), which equals the model's output."""
        return np.array([self._last.prediction])

    @property
    def predicted_value(self) -> float | None:
        """The model's output in regression, else None."""
        return self.explanations[_REGRESSION].prediction if self.mode == "regression" else None

    def available_labels(self) -> list[int]:
        """Return the labels that were explained; the predicted label is first if top_labels was given."""
        return list(self.top_labels or self.explanations)

    def as_list(self, label: int = 1) -> list[tuple[str, float]]:
        """Return (fact, weight) pairs, largest first; in regression the label does not matter."""
        return [(text, weight) for _, text, weight in self._weights(label)]

    def as_map(self) -> dict[int, list[tuple[int, float]]]:
        """Return (column number, weight) pairs by label, largest first."""
        return self.local_exp

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self.explanations)})"

    def __str__(self) -> str:
        return "\n\n".join(str(self._explanation(label)) for label in self.available_labels())

    def _repr_html_(self) -> str:
        return "".join(fragment(self._explanation(label)) for label in self.available_labels())

    @property
    def _last(self) -> Explanation:
        return list(self.explanations.values())[-1]

    def _number(self, fact: Fact) -> int:
        """Return the number by which LIME knows what a fact is about."""
        return self.feature_names.index(fact.column)

    def _explanation(self, label: int) -> Explanation:
        explanation = self.explanations.get(_REGRESSION if self.mode == "regression" else label)
        if explanation is None:
            available = self.available_labels()
            raise ParameterError(
                f"Label {label!r} was not explained. The explained labels are {available}. Type "
                f"label={available[0]}, or explain_instance(row, predict_fn, labels=(...,))."
            )
        return explanation

    def _weights(self, label: int) -> list[tuple[int, str, float]]:
        """Return the number, the text and the weight of every fact, and then of what has weight 0."""
        explanation = self._explanation(label)
        pairs = zip(explanation.facts, explanation.contributions.tolist(), strict=True)
        weights = [(self._number(fact), self._text(fact, explanation), weight) for fact, weight in pairs]
        listed = {number for number, _, _ in weights}
        others = [number for number in range(len(self.feature_names)) if number not in listed]
        for number in others[: max(0, self.n_listed - len(weights))]:
            weights.append((number, self._text(self._own(number, explanation), explanation), 0.0))
        return weights

    def _text(self, fact: Fact, explanation: Explanation) -> str:
        is_number = fact.kind == "equals" and isinstance(fact.value, float)
        return f"{fact.column} = {own_text(fact)}" if is_number else fact_text(fact, explanation.space)

    def _own(self, number: int, explanation: Explanation) -> Fact:
        """Return the fact that a column has the row's own value."""
        name, value = self.feature_names[number], [*explanation.instance][number]
        is_missing = value is None or (isinstance(value, float) and np.isnan(value))
        return Fact(name, name, "missing") if is_missing else Fact(name, name, "equals", value=value)


# ---- tables


class LimeTabularExplainer:
    """Explain rows of a table with the names that ``lime.lime_tabular.LimeTabularExplainer`` uses.

    The arguments are LIME's. Those for steps that are not taken here have no effect, and warn if they are given:
    ``kernel_width``, ``kernel``, ``verbose``, ``feature_selection``, ``sample_around_instance``, and
    ``discretize_continuous=False``, because a weight belongs to a fact such as "age >= 40".

    Parameters
    ----------
    training_data
        A 2-D array with categories coded as integers, a SciPy sparse matrix of at most 50 million cells, or a
        pandas, Polars or Arrow frame with any columns.
    feature_names
        Column names of an array. Without names, ``feature_names`` is "0", "1", ... as in LIME, and facts say x0,
        x1, ..., because "0 >= 0.66" looks like a statement about the number 0.
    class_names
        The names of the columns of the model's answers; None for the labels that the model itself has, or else
        "0", "1", ... In regression, a single name is the name of the output.
    discretizer
        "quartile" for the cut points that fit best; "decile", "entropy" (with ``training_labels``) or a
        discretizer of LIME to offer its cut points, too. With a discretizer of LIME, copies are drawn even if
        leaves of trees could be read, and its own random state is part of the seed.
    training_data_stats
        LIME's statistics of columns that are cut. 1,000 rows with these statistics then take the place of the
        training data.
    random_state
        A seed. None is seed 0, so that the same call gives the same bytes. A generator's state is never changed.

    Attributes
    ----------
    table
        The `anchorline.Table` of the training data.
    feature_values, feature_frequencies
        By number, the values of each column in ``categorical_features`` that was given, and the share of each.

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
    >>> [text for text, weight in result.as_list()]
    ['age >= 40', 'member = yes']
    >>> bool(abs(result.intercept[1] + sum(w for _, w in result.as_list()) - result.predict_proba[1]) < 1e-12)
    True
    """

    @_as_in_lime("LimeTabularExplainer")
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
        discretizer: Any = "quartile",
        sample_around_instance: bool = False,
        random_state: Any = None,
        training_data_stats: Mapping[str, Any] | None = None,
    ) -> None:
        _check_mode(mode)
        self._sparse = type(training_data) if is_sparse(training_data) else None
        rows = dense(training_data, ParameterError)
        names, self._has_own_names = _column_names(rows, feature_names)
        categorical = _categorical_columns(names, categorical_features, categorical_names)
        numbers = [j for j, name in enumerate(names) if name not in categorical]
        if numbers and not discretize_continuous:
            text = (
                "discretize_continuous has no effect in anchorline: a weight belongs to a fact, such as age >= 40."
            )
            warnings.warn(text, UserWarning, stacklevel=4)  # points to the user's call
        if training_data_stats is not None:
            rows = _rows_of(training_data_stats, names, numbers)
        self._numbers = rows if isinstance(rows, np.ndarray) and rows.dtype.kind in "biuf" else None
        cuts = {names[j]: cut for j, cut in _cuts_of(discretizer, self._numbers, numbers, training_labels).items()}
        self._keywords: dict[str, Any] = {"categorical": categorical, "cuts": cuts or None}
        self.table = Table(rows, names=None if self._has_own_names else names, **self._keywords)
        self.categorical_features = [j for j in range(len(names)) if discretize_continuous or j not in numbers]
        self.feature_values: dict[int, list[Any]] = {}
        self.feature_frequencies: dict[int, np.ndarray] = {}
        if self._numbers is not None:
            for j in sorted({*range(len(names))} - {*numbers}):
                values, counts = np.unique(self._numbers[:, j], return_counts=True)
                self.feature_values[j], self.feature_frequencies[j] = values.tolist(), counts / counts.sum()
        self.mode = mode
        if mode == "regression" and np.asarray(class_names, dtype=object).shape != (1,):
            class_names = None  # LIME ignores class names there; a single one is the name of the output
        self.class_names = _class_labels(class_names)
        is_numbered = feature_names is None and not self._has_own_names
        self.feature_names = [str(j) for j in range(len(names))] if is_numbered else list(self.table.names)
        self.seed = _seed_from(random_state)
        own = getattr(discretizer, "random_state", None)
        self._draws = not isinstance(discretizer, str)
        if isinstance(own, np.random.RandomState) and own is not np.random.mtrand._rand:  # the global generator
            self.seed = _digest(f"{self.seed} {_seed_from(own)}")

    @_as_in_lime("explain_instance")
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
        """Explain one row's prediction, with one independent explanation per label.

        ``predict_fn`` maps rows, in the form of the training data, to (n, c) probabilities; in regression, to n
        numbers. A method of a scikit-learn estimator that was fitted on frames with the same columns receives
        frames. ``num_features`` is the most facts, and ``num_samples`` the most rows that the model is asked
        about, per label; one more answer, to the row itself, chooses the labels.

        Examples
        --------
        >>> rows = np.random.default_rng(0).normal(size=(200, 3))
        >>> explainer = LimeTabularExplainer(rows, mode="regression", class_names=["price"])
        >>> result = explainer.explain_instance([2, 0, -2], lambda rows: 3 * rows[:, 0] - rows[:, 2])
        >>> [column for column, weight in result.as_map()[1] if weight], result.predicted_value
        ([0, 2], 8.0)
        """
        settings = _settings_from(num_features, num_samples, self.seed)
        # The labels 0, 1, ... of a Series do not name the columns of an array.
        is_numbered = np.ndim(data_row) == 1 and type(getattr(data_row, "index", None)).__name__ == "RangeIndex"
        row = data_row.to_numpy() if is_numbered and not self._has_own_names else data_row
        table = self._table_for(predict_fn)
        ask = predict_fn if self._sparse is None else _OfSparse(predict_fn, self._sparse)
        if self.mode == "classification":
            explainer = self._as_asked(Explainer(ask, table, classes=self.class_names))
            found = _explain_labels(explainer, row, labels, top_labels, settings)
            return LimeExplanation(feature_names=table.names, n_listed=int(num_features), **found)
        output = None if self.class_names is None else self.class_names[0]
        explainer = self._as_asked(Explainer(ask, table, output=output, task="number"))
        answer = _answer_to(explainer, row)
        if answer.size != 1 or answer.dtype.kind not in "fiub":
            raise PredictorOutputError(
                f"mode is 'regression', but predict_fn returns {answer.dtype} of shape {answer.shape} for one "
                "row. It must return one number per row. For class probabilities, type mode='classification'."
            )
        explained = {_REGRESSION: explainer.explain_with(row, settings)}
        return LimeExplanation(
            mode=self.mode, explanations=explained, feature_names=table.names, n_listed=int(num_features)
        )

    def _as_asked(self, explainer: Explainer) -> Explainer:
        return explainer.without_trees() if self._draws else explainer

    def _table_for(self, predict_fn: Any) -> Table:
        """Return the table, as a frame for an estimator that was fitted on frames with these columns."""
        names = getattr(owner_of(predict_fn), "feature_names_in_", ())
        is_needed = self._numbers is not None and self._sparse is None and tuple(names) == self.table.names
        return self._table_of_frame if is_needed and find_spec("pandas") else self.table

    @cached_property
    def _table_of_frame(self) -> Table:
        import pandas as pd  # noqa: PLC0415  optional

        frame = pd.DataFrame(self._numbers, columns=list(self.table.names))
        return Table(frame, **self._keywords)


class _OfSparse:
    """A function of sparse matrices, as one of arrays; a method still belongs to its estimator."""

    def __init__(self, ask: Any, sparse_type: Callable[[Any], Any]) -> None:
        self._ask, self._sparse_type = ask, sparse_type
        if hasattr(ask, "__self__"):
            self.__self__, self.__name__ = ask.__self__, ask.__name__

    def __call__(self, rows: Any) -> Any:
        """Return the answers to rows."""
        return self._ask(self._sparse_type(rows))


def _check_mode(mode: str) -> None:
    if mode not in _MODES:
        raise ParameterError(f"mode is {mode!r}, but it must be one of {', '.join(_MODES)}.")


def _cuts_of(
    discretizer: Any, rows: np.ndarray | None, columns: list[int], training_labels: Any
) -> dict[int, list[float]]:
    """Return the cut points of a discretizer by column, as LIME computes them; those of quartiles are ours."""
    if isinstance(discretizer, str) and discretizer == "quartile":
        return {}
    if not isinstance(discretizer, str) and isinstance(getattr(discretizer, "mins", None), Mapping):
        cuts = {j: np.asarray(ends[1:], dtype=float) for j, ends in discretizer.mins.items() if j in columns}
    elif not isinstance(discretizer, str) or discretizer not in ("decile", "entropy"):
        raise ParameterError(
            f"discretizer is {discretizer!r}, but it must be 'quartile', 'decile', 'entropy' or a discretizer of "
            "LIME. For cut points of your own, use anchorline.Table(X, cuts={'age': [30, 40, 50]}) with "
            "anchorline.Explainer."
        )
    elif rows is None:
        raise ParameterError(
            f"discretizer is {discretizer!r}, which needs an array of numbers as training_data. Leave it out; for "
            "cut points of your own, use anchorline.Table(X, cuts={'age': [30, 40]}) with anchorline.Explainer."
        )
    elif discretizer == "decile":
        cuts = {j: np.nanpercentile(rows[:, j], np.arange(10, 100, 10)) for j in columns}
    else:
        cuts = {j: _cuts_by_class(rows[:, j], training_labels) for j in columns}
    return {j: np.unique(cut[np.isfinite(cut)]).tolist() for j, cut in cuts.items() if np.isfinite(cut).any()}


def _cuts_by_class(values: np.ndarray, labels: Any) -> np.ndarray:
    """Return the thresholds of a tree of depth 3, at most seven, which separate the classes by one column."""
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415  slow to import

    if labels is None or np.shape(labels) != values.shape:
        raise ParameterError(
            f"discretizer is 'entropy', which needs the class of each of the {len(values)} rows. Type "
            "training_labels=y."
        )
    tree = DecisionTreeClassifier(criterion="entropy", max_depth=3, random_state=0)
    tree.fit(values[:, None], labels)
    return np.sort(tree.tree_.threshold[tree.tree_.children_left > -1])


def _rows_of(stats: Mapping[str, Any], names: list[str], numbers: list[int]) -> np.ndarray:
    """Return rows whose columns have LIME's statistics; the columns are independent, as in altered copies.

    A value of ``feature_values`` is the number of a bin of a column of numbers, otherwise the value itself. As
    many rows hold it as its share of ``feature_frequencies`` says. Within a bin, values are those that lie evenly
    in a normal distribution with the bin's mean and standard deviation, cut at the bin's ends, as LIME draws them.
    """
    rng = np.random.default_rng(0)
    columns = []
    for j in range(len(names)):
        try:
            values = np.asarray(stats["feature_values"][j], dtype=float)
            shares = np.cumsum(np.asarray(stats["feature_frequencies"][j], dtype=float))
            counts = np.diff(np.round(shares / shares[-1] * _ROWS_OF_STATS).astype(int), prepend=0)
            column = values.repeat(counts)
            if j in numbers:
                bins = zip(values.astype(int).tolist(), counts.tolist(), strict=True)
                column = np.concatenate([_within(stats, j, one, count) for one, count in bins])
        except (LookupError, TypeError, ValueError, ZeroDivisionError) as error:
            raise ParameterError(
                f"training_data_stats lacks what LIME's has for column {j} ({type(error).__name__}: {error}). It "
                "needs means, stds, mins and maxs of every bin, feature_values and feature_frequencies, by the "
                "number of the column. Or pass training rows as training_data, of which 1,000 are enough."
            ) from None
        columns.append(rng.permutation(column))
    return np.column_stack(columns)


def _within(stats: Mapping[str, Any], column: int, one: int, count: int) -> np.ndarray:
    """Return the values of one bin of a column."""
    from scipy.stats import truncnorm  # noqa: PLC0415  slow to import

    low, high, mean, std = (float(stats[key][column][one]) for key in ("mins", "maxs", "means", "stds"))
    if low == high:
        return np.full(count, low)
    evenly = (np.arange(count) + 0.5) / max(count, 1)
    return np.asarray(truncnorm.ppf(evenly, (low - mean) / std, (high - mean) / std, mean, std))


def _column_names(training_data: Any, feature_names: Any) -> tuple[list[str], bool]:
    """Return the column names, and whether the training data carries them itself."""
    own = getattr(training_data, "column_names", getattr(training_data, "columns", None))
    given = None
    if feature_names is not None:
        given = [str(name) for name in _as_list(feature_names, "feature_names", "feature_names=['age', 'pay']")]
    if own is None:
        n_columns = 0 if np.ndim(training_data) < 2 else np.shape(training_data)[1]
        return given or [f"x{j}" for j in range(n_columns)], False
    names = [str(name) for name in own]
    if given not in (None, names):
        raise ParameterError(f"feature_names differ from the frame's own names, {names[:8]}. Leave them out.")
    return names, True


def _categorical_columns(names: list[str], features: Any, value_names: Any) -> dict[str, dict[Any, str]]:
    """Return the names of the values of every categorical column, by column name."""
    if value_names is not None and not isinstance(value_names, Mapping):
        raise ParameterError(
            f"categorical_names is a {type(value_names).__name__}, but it must be a dict {{column: [names]}}."
        )
    listed = [] if features is None else _as_list(features, "categorical_features", "categorical_features=[0]")
    columns: dict[str, dict[Any, str]] = {_column_name(key, names): {} for key in listed}
    for key, given in (value_names or {}).items():
        example = f"categorical_names={{{key!r}: ['no', 'yes']}}"
        texts = _as_list(given, f"categorical_names[{key!r}]", example)
        pairs = given.items() if isinstance(given, Mapping) else enumerate(texts)
        columns[_column_name(key, names)] = {value: str(text) for value, text in pairs}
    return columns


def _column_name(key: Any, names: list[str]) -> str:
    if isinstance(key, str) and key in names:
        return key
    if isinstance(key, int | np.integer) and not isinstance(key, bool) and 0 <= key < len(names):
        return names[key]
    raise ParameterError(
        f"A categorical column is {key!r}, but it must be a column's number, 0 to {len(names) - 1}."
    )


# ---- texts


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LimeTextExplanation(LimeExplanation):
    """Explanations of one text by label; `as_list` returns (word, weight) pairs.

    ``words`` are the words of the text, one per fact that may be stated, in the order in which they first occur.
    """

    words: tuple[str, ...] = ()

    def _text(self, fact: Fact, explanation: Explanation) -> str:
        return self.words[self._number(fact)]

    def _own(self, number: int, explanation: Explanation) -> Fact:
        name = self.feature_names[number]
        return Fact(name, name, "present", value=self.words[number])


class LimeTextExplainer:
    r"""Explain texts with the names that ``lime.lime_text.LimeTextExplainer`` uses.

    The arguments are LIME's. With ``bow``, all occurrences of a word are one fact, and are deleted; otherwise
    every occurrence is a fact of its own, and ``mask_string`` takes its place. `LimeTabularExplainer` says the
    rest.

    Examples
    --------
    >>> def predict_proba(texts):
    ...     p = [0.9 if "great" in text else 0.2 for text in texts]
    ...     return [[1 - one, one] for one in p]
    >>> explainer = LimeTextExplainer(class_names=["bad", "good"])
    >>> result = explainer.explain_instance("A great, great day", predict_proba, num_features=1)
    >>> [(word, round(weight, 2)) for word, weight in result.as_list()], result.explanations[1].is_proven
    ([('great', 0.19)], True)
    """

    @_as_in_lime("LimeTextExplainer")
    def __init__(
        self,
        kernel_width: float = 25,
        kernel: Callable[..., Any] | None = None,
        verbose: bool = False,
        class_names: Sequence[Any] | None = None,
        feature_selection: str = "auto",
        split_expression: str | Callable[[str], Sequence[str]] = r"\W+",
        bow: bool = True,
        mask_string: str | None = None,
        random_state: Any = None,
        char_level: bool = False,
    ) -> None:
        self.class_names = _class_labels(class_names)
        self.bow, self.seed = bool(bow), _seed_from(random_state)
        mask = mask_string if mask_string is not None else chr(0) if char_level else "UNKWORDZ"
        unit: Any = list if char_level else split_expression
        if not callable(unit):
            unit = _Splitter(unit)
        self.space = Text(unit, "delete" if bow else mask, "all" if bow else "each")
        if not char_level:
            self.space.singular, self.space.noun = "word", "words"

    @_as_in_lime("explain_instance")
    def explain_instance(
        self,
        text_instance: str,
        classifier_fn: Any,
        labels: Iterable[int] = (1,),
        top_labels: int | None = None,
        num_features: int = 10,
        num_samples: int = 5000,
        distance_metric: str = "cosine",
        model_regressor: Any = None,
    ) -> LimeTextExplanation:
        """Explain one text's prediction; ``classifier_fn`` maps a list of texts to (n, c) probabilities.

        Examples
        --------
        >>> share = lambda texts: [[1 - len(text) / 99, len(text) / 99] for text in texts]
        >>> LimeTextExplainer(class_names=["short", "long"]).explain_instance("a bb cccc", share).as_map()[1][0][0]
        2
        """
        settings = _settings_from(num_features, num_samples, self.seed)
        explainer = Explainer(classifier_fn, self.space, classes=self.class_names)
        found = _explain_labels(explainer, text_instance, labels, top_labels, settings)
        there = self.space.at(text_instance)
        first: dict[str, str] = {}
        for word in there.pieces[1::2]:
            first.setdefault(unicodedata.normalize("NFC", word), word)
        return LimeTextExplanation(
            feature_names=there.names,
            n_listed=int(num_features),
            words=tuple(first.values()) if self.bow else there.pieces[1::2],
            **found,
        )


class _Splitter:
    """Cuts a text at a regular expression, as LIME does."""

    def __init__(self, expression: str) -> None:
        try:
            self._pattern = re.compile(f"(?:{expression})")
        except (re.error, TypeError) as error:
            raise ParameterError(
                f"split_expression is {expression!r}, which is not a regular expression: {error}. Type "
                r"split_expression=r'\W+'."
            ) from None
        self.__qualname__ = f"split at {expression!r}"  # what identifies the space

    def __call__(self, text: str) -> list[tuple[int, int]]:
        """Return the spans between what the expression matches."""
        ends = [0, *(end for match in self._pattern.finditer(text) for end in match.span()), len(text)]
        return [(start, stop) for start, stop in zip(ends[::2], ends[1::2], strict=True) if start < stop]


# ---- images


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LimeImageExplanation(LimeExplanation):
    """Explanations of one image by label; ``segments`` are the numbers of the pixels' regions, as in LIME."""

    image: np.ndarray
    segments: np.ndarray

    def _number(self, fact: Fact) -> int:
        return int(fact.column.removeprefix("region "))

    def get_image_and_mask(
        self,
        label: int,
        positive_only: bool = True,
        negative_only: bool = False,
        hide_rest: bool = False,
        num_features: int = 5,
        min_weight: float = 0.0,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the image with the regions of a label, and a mask for `skimage.segmentation.mark_boundaries`."""
        if positive_only and negative_only:
            raise ParameterError("positive_only and negative_only are both True. Set one of them to False.")
        self._explanation(label)  # raises if the label was not explained
        weights = [(region, weight) for region, weight in self.local_exp[label] if abs(weight) >= min_weight]
        if positive_only or negative_only:
            weights = [pair for pair in weights if (pair[1] > 0) == positive_only]
        shown = np.zeros(self.image.shape) if hide_rest else self.image.copy()
        mask = np.zeros(self.segments.shape, self.segments.dtype if self.segments.dtype.kind == "i" else np.int64)
        for region, weight in weights[:num_features]:
            inside = self.segments == region
            shown[inside] = self.image[inside]
            mask[inside] = 1 if positive_only or negative_only or weight > 0 else -1
            if not (positive_only or negative_only):
                shown[inside, int(weight > 0)] = self.image.max()  # red subtracts, green adds, as in LIME
        return shown, mask


class LimeImageExplainer:
    """Explain images with the names that ``lime.lime_image.LimeImageExplainer`` uses.

    The arguments are LIME's; `LimeTabularExplainer` says what is different. ``explanations[label].plot()`` draws
    the regions.

    Examples
    --------
    >>> image = np.full((4, 4, 3), 200, dtype=np.uint8)
    >>> def predict_proba(images):
    ...     p = images[:, 0, 0, 0] / 255
    ...     return np.column_stack([1 - p, p])
    >>> quarters = lambda image: np.arange(4).reshape(2, 2).repeat(2, axis=0).repeat(2, axis=1)
    >>> result = LimeImageExplainer().explain_instance(
    ...     image, predict_proba, top_labels=1, hide_color=0, num_features=1, segmentation_fn=quarters)
    >>> result.local_exp[1][0][0], result.get_image_and_mask(1)[1].tolist()[0]
    (0, [1, 1, 0, 0])
    """

    @_as_in_lime("LimeImageExplainer")
    def __init__(
        self,
        kernel_width: float = 0.25,
        kernel: Callable[..., Any] | None = None,
        verbose: bool = False,
        feature_selection: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.seed = _seed_from(random_state)

    @_as_in_lime("explain_instance")
    def explain_instance(
        self,
        image: Any,
        classifier_fn: Any,
        labels: Iterable[int] = (1,),
        hide_color: Any = None,
        top_labels: int | None = 5,
        num_features: int = _ALL,
        num_samples: int = 1000,
        batch_size: int = 10,
        segmentation_fn: Callable[[np.ndarray], Any] | None = None,
        distance_metric: str = "cosine",
        model_regressor: Any = None,
        random_seed: int | None = None,
    ) -> LimeImageExplanation:
        """Explain one image's prediction; ``classifier_fn`` maps images (n, h, w, 3) to (n, c) probabilities.

        As in LIME, a gray image becomes one of three channels, regions come from quickshift unless
        ``segmentation_fn`` returns others, and hidden regions have their mean color unless ``hide_color`` is
        given. ``num_features`` is the most regions of a sum, 8 by default. ``batch_size`` has no effect.
        """
        pixels = np.asarray(image)
        pixels = np.stack([pixels] * 3, axis=-1) if pixels.ndim == 2 else pixels
        seed = self.seed % 1000 if random_seed is None else random_seed
        segments = np.asarray(_quickshift(pixels, seed) if segmentation_fn is None else segmentation_fn(pixels))
        space = Image(segments, "mean" if hide_color is None else hide_color)
        k = Image.default_k if num_features == _ALL else num_features
        settings = _settings_from(k, num_samples, self.seed)
        found = _explain_labels(Explainer(classifier_fn, space), pixels, labels, top_labels, settings)
        regions = tuple(f"region {number}" for number in np.unique(segments).tolist())
        return LimeImageExplanation(feature_names=regions, image=pixels, segments=segments, **found)


def _quickshift(image: np.ndarray, seed: int) -> np.ndarray:
    """Return the regions that LIME finds by default."""
    try:
        from skimage import segmentation  # noqa: PLC0415  heavy, and optional
    except ImportError as error:
        raise MissingDependencyError.for_package("skimage", "image") from error
    quickshift: Any = segmentation.quickshift  # it has no types
    return np.asarray(quickshift(image, kernel_size=4, max_dist=200, ratio=0.2, rng=seed))


# ---- what the explainers share


def _as_list(given: Any, what: str, example: str) -> list[Any]:
    """Return an iterable as a list; a single value or a text raises an error that shows an example to type."""
    with contextlib.suppress(TypeError):
        if not isinstance(given, str):
            return list(given)
    raise ParameterError(f"{what} is {given!r}, but it must be a list. Type {example}.")


def _class_labels(class_names: Any) -> list[Any] | None:
    """Return the labels of the columns of the model's answers; None if the model itself knows them."""
    return None if class_names is None else _as_list(class_names, "class_names", "class_names=['no', 'yes']")


def _seed_from(random_state: Any) -> int:
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
    return _digest(json.dumps(state, default=np.ndarray.tolist, sort_keys=True))


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big")


def _settings_from(num_features: Any, num_samples: Any, seed: int) -> Settings:
    """Return what LIME's numbers mean here: the most facts, and the most rows that the model is asked about."""
    numbers = [int(each) if isinstance(each, np.integer) else each for each in (num_features, num_samples)]
    checked_count("num_features", numbers[0], 1, "num_features=5")
    checked_count("num_samples", numbers[1], FEWEST_QUERIES, "num_samples=5000")
    return Settings(k=numbers[0], queries=numbers[1], seed=seed)


def _explain_labels(
    explainer: Explainer, instance: Any, labels: Iterable[int], top_labels: int | None, settings: Settings
) -> dict[str, Any]:
    """Explain some labels of one instance, each independently; return fields of `LimeExplanation`."""
    outputs = _answer_to(explainer, instance).reshape(-1)
    chosen, highest_first = _choose(labels, top_labels, outputs)
    return {
        "mode": "classification",
        "explanations": {label: explainer.explaining(label).explain_with(instance, settings) for label in chosen},
        "predict_proba": outputs,
        "top_labels": highest_first,
    }


def _answer_to(explainer: Explainer, instance: Any) -> np.ndarray:
    """Return the model's answer to the instance, (1, c), or (1,) for a single number; not yet checked."""
    target, original = explainer.target, explainer.space.at(instance).original
    try:
        answer = np.asarray(target.ask(original))
    except AnchorlineError:
        raise
    except Exception as error:
        raise PredictorError(failure_text(error, target.ask, original, 1)) from error
    return answer[:, :-1] if target.asks_predict and answer.ndim == 2 else answer  # the last is the class it names


def _choose(labels: Any, top_labels: Any, outputs: np.ndarray) -> tuple[list[int], list[int] | None]:
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
    chosen = _as_list(labels, "labels", f"labels=({labels!r},)")
    if not chosen or any(label not in range(len(outputs)) or isinstance(label, bool) for label in chosen):
        last = len(outputs) - 1
        raise ParameterError(
            f"labels is {chosen!r}, but it must list columns of the model's answers, 0 to {last}."
        )
    return [int(label) for label in chosen], None
