"""LIME's tabular explainer by its own names: existing calls keep working, and the weights now add up."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

from anchorline.compat.lime_arguments import (
    answer_to,
    as_list,
    class_labels,
    explain_labels,
    seed_from,
    settings_from,
    warn_without_effect,
)
from anchorline.compat.lime_explanation import LimeExplanation
from anchorline.errors import InstanceError, ParameterError, PredictorOutputError, names_similar_keywords
from anchorline.explainer import Explainer
from anchorline.settings import Settings
from anchorline.spaces.columns import dense, is_sparse
from anchorline.spaces.table import Table

_MODES = ("classification", "regression")
_CUT = "Numbers are not cut into fixed bins: each fact has the cut points that fit best."


class LimeTabularExplainer:
    """Explain rows of a table with the names that ``lime.lime_tabular.LimeTabularExplainer`` uses.

    Weights are contributions in the units of the output. The intercept and the weights of a label add up to the
    model's own output for that label. A result has the `anchorline.Explanation` of every label.

    Parameters
    ----------
    training_data
        A 2-D array with categories coded as integers, a SciPy sparse matrix of at most 50 million cells, or a
        pandas, Polars or Arrow frame with any columns.
    mode
        "classification" or "regression".
    training_labels
        Not needed, because numbers are not cut by class.
    feature_names
        Column names of an array. Without names, ``feature_names`` is "0", "1", ... as in LIME, and facts say x0,
        x1, ..., because "0 >= 0.66" looks like a statement about the number 0.
    categorical_features
        Numbers (or names) of the columns that hold categories.
    categorical_names
        The names of a column's values, by column: ``{2: ["female", "male"]}``. Each column listed here holds
        categories.
    kernel_width, kernel, verbose, feature_selection, sample_around_instance
        Have no effect here. A value other than the default raises a warning that says what happens instead.
    class_names
        The names of the columns of the model's answers; None for the labels that the model itself has, or else
        "0", "1", ... In regression, a single name is the name of the output; as in LIME, several names have no
        effect.
    discretize_continuous, discretizer, training_data_stats
        Only the defaults are accepted: a fact has the cut points that fit best, and values come from rows.
    random_state
        A seed. None is seed 0, so that the same call gives the same bytes. The state of a generator is read and
        never changed.

    Attributes
    ----------
    table
        The `anchorline.Table` of the training data.
    feature_names, class_names, categorical_names, mode
        As given, with the defaults of LIME.

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

    @names_similar_keywords("LimeTabularExplainer")
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
        warn_without_effect(
            kernel_width=(kernel_width, None),
            kernel=(kernel, None),
            verbose=(verbose, False),
            feature_selection=(feature_selection, "auto"),
            sample_around_instance=(sample_around_instance, False),
        )
        self._sparse = type(training_data) if is_sparse(training_data) else None
        rows = dense(training_data, ParameterError)
        names, self._has_own_names = _column_names(rows, feature_names)
        categorical = _categorical_columns(names, categorical_features, categorical_names)
        are_cut = len(categorical) < len(names)
        _refuse_options(mode, discretizer, discretize_continuous or not are_cut, training_data_stats)
        self.table = Table(rows, names=None if self._has_own_names else names, categorical=categorical)
        self._numbers = rows if isinstance(rows, np.ndarray) and rows.dtype.kind in "biuf" else None
        self._categorical = categorical
        self.mode = mode
        self.class_names = class_labels(class_names) if mode == "classification" else _output_name(class_names)
        is_numbered = feature_names is None and not self._has_own_names
        self.feature_names = [str(j) for j in range(len(names))] if is_numbered else list(self.table.names)
        self.categorical_names = dict(categorical_names or {})
        self.seed = seed_from(random_state)

    @names_similar_keywords("explain_instance")
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

        Parameters
        ----------
        data_row
            The row: an array, a list, a dict, a Series, or a frame of one row.
        predict_fn
            A function from rows, in the form of the training data, to (n, c) probabilities; in regression, to n
            numbers. A method of a scikit-learn estimator that was fitted on frames with the same columns receives
            frames, also if the training data is an array of numbers.
        labels
            Columns of the model's answers to explain.
        top_labels
            Explain this many columns with the highest outputs instead of ``labels``.
        num_features
            The most facts. A fact that gains less than 1%, or whose gain may be due to chance, is left out.
        num_samples
            The most rows that the model is asked about, per label: some find the facts, the others measure them.
            One more answer, to the row itself, chooses the labels.
        distance_metric, model_regressor, sampling_method
            Have no effect here. A value other than the default raises a warning that says what happens instead.

        Returns
        -------
        LimeExplanation
            LIME's result, with ``as_list``, ``as_map``, ``local_pred``, ``intercept``, ``score``, ..., and with
            ``explanations``, the `anchorline.Explanation` of every label.

        Examples
        --------
        >>> rows = np.random.default_rng(0).normal(size=(200, 3))
        >>> explainer = LimeTabularExplainer(rows, mode="regression", class_names=["price"])
        >>> result = explainer.explain_instance([2, 0, -2], lambda rows: 3 * rows[:, 0] - rows[:, 2])
        >>> [column for column, weight in result.as_map()[1]], result.predicted_value
        ([0, 2], 8.0)
        """
        warn_without_effect(
            distance_metric=(distance_metric, "euclidean"),
            model_regressor=(model_regressor, None),
            sampling_method=(sampling_method, "gaussian"),
        )
        settings = settings_from(num_features, num_samples, self.seed)
        row = self._one_row(data_row)
        table = self._table_for(predict_fn)
        if self.mode == "regression":
            return self._explain_number(_Asked(predict_fn, self._sparse), table, row, settings)
        ask = predict_fn if self._sparse is None else _Asked(predict_fn, self._sparse)
        explainer = Explainer(ask, table, classes=self.class_names)
        found = explain_labels(explainer, row, labels, top_labels, settings)
        return LimeExplanation(feature_names=self.table.names, **found)

    def _explain_number(self, ask: "_Asked", table: Table, row: Any, settings: Settings) -> LimeExplanation:
        output = None if self.class_names is None else self.class_names[0]
        explainer = Explainer(ask, table, output=output, task="number")
        answer = answer_to(explainer, row)
        if answer.size != 1 or answer.dtype.kind not in "fiub":
            raise PredictorOutputError(
                f"mode is 'regression', but predict_fn returns {answer.dtype} of shape {answer.shape} for one "
                "row. It must return one number per row. For class probabilities, type mode='classification'."
            )
        return LimeExplanation(
            mode=self.mode,
            explanations={1: explainer.explain_with(row, settings)},
            feature_names=self.table.names,
            min_value=ask.low,
            max_value=ask.high,
        )

    def _one_row(self, row: Any) -> Any:
        """Return the row; several rows raise an error, and labels 0, 1, ... of a Series are not column names."""
        shape = getattr(row, "shape", None) or np.shape(row if isinstance(row, list | tuple) else 0)
        if len(shape) == 2 and shape[0] != 1:
            raise InstanceError(
                f"data_row has shape {tuple(shape)}, but it must be one row. Type rows[0], or frame.iloc[0]. To "
                "explain several rows, call explain_instance for each of them."
            )
        is_numbered = type(getattr(row, "index", None)).__name__ == "RangeIndex" and len(shape) == 1
        return row.to_numpy() if is_numbered and not self._has_own_names else row

    def _table_for(self, predict_fn: Any) -> Table:
        """Return the table, as a frame for an estimator that was fitted on frames with these columns."""
        names = getattr(getattr(predict_fn, "__self__", predict_fn), "feature_names_in_", ())
        is_needed = self._numbers is not None and self._sparse is None and tuple(names) == self.table.names
        return self._table_of_frame if is_needed and find_spec("pandas") else self.table

    @cached_property
    def _table_of_frame(self) -> Table:
        import pandas as pd  # noqa: PLC0415  optional

        frame = pd.DataFrame(self._numbers, columns=list(self.table.names))
        return Table(frame, categorical=self._categorical)


class _Asked:
    """A function of rows, or of sparse matrices, that remembers its lowest and highest number, as LIME does."""

    def __init__(self, ask: Callable[[Any], Any], sparse_type: Callable[[Any], Any] | None) -> None:
        self._ask, self._sparse_type = ask, sparse_type
        self.low, self.high = np.inf, -np.inf
        if hasattr(ask, "__self__"):  # a method still belongs to its estimator
            self.__self__, self.__name__ = ask.__self__, getattr(ask, "__name__", "")

    def __call__(self, rows: Any) -> Any:
        """Return the answers to rows."""
        answers = self._ask(rows if self._sparse_type is None else self._sparse_type(rows))
        numbers = np.asarray(answers)
        if numbers.dtype.kind in "fiub" and numbers.size:
            self.low, self.high = min(self.low, float(numbers.min())), max(self.high, float(numbers.max()))
        return answers


def _refuse_options(mode: str, discretizer: Any, discretize_continuous: bool, stats: Any) -> None:
    """Raise an error for an option of LIME that has no meaning here, with what to do instead."""
    if mode not in _MODES:
        raise ParameterError(f"mode is {mode!r}, but it must be one of {', '.join(_MODES)}.")
    if not isinstance(discretizer, str) or discretizer != "quartile":
        raise ParameterError(
            f"discretizer is {discretizer!r}. {_CUT} Leave it out; for cut points of your own, use "
            "anchorline.Table(X, cuts={'age': [30, 40, 50]}) with anchorline.Explainer."
        )
    if not discretize_continuous:
        raise ParameterError(f"discretize_continuous is False. {_CUT} A weight belongs to a fact. Leave it out.")
    if stats is not None:
        raise ParameterError(
            "training_data_stats was given, but the values of neighbors come from training rows. Leave it out; "
            "pass training rows as training_data, of which a sample of 1,000 is enough."
        )


def _output_name(class_names: Any) -> list[Any] | None:
    """Return the single name of the output of a regression; LIME ignores class names there."""
    names = list(class_names) if isinstance(class_names, Iterable) and not isinstance(class_names, str) else []
    return names if len(names) == 1 else None


def _column_names(training_data: Any, feature_names: Any) -> tuple[list[str], bool]:
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


def _categorical_columns(names: list[str], features: Any, value_names: Any) -> dict[str, dict[Any, str]]:
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


def _column_name(key: Any, names: list[str]) -> str:
    if isinstance(key, str) and key in names:
        return key
    if isinstance(key, int | np.integer) and not isinstance(key, bool) and 0 <= key < len(names):
        return names[key]
    raise ParameterError(
        f"A categorical column is {key!r}, but it must be a column's number, 0 to {len(names) - 1}."
    )
