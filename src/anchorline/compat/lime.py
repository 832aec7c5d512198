"""LIME's tabular explainer by its own names: existing calls keep working, and the weights now add up."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

from anchorline.compat.lime_arguments import (
    BINS,
    categorical_columns,
    check_choices,
    check_one_row,
    choose_labels,
    class_labels,
    column_names,
    entropy_cuts,
    seed_from,
    warn_of_statistics,
    warn_without_effect,
)
from anchorline.compat.lime_discretizer import Discretizer, cuts_of, values_and_frequencies
from anchorline.compat.lime_explanation import LimeExplanation
from anchorline.compat.lime_statistics import table_from_statistics
from anchorline.errors import ParameterError, PredictorError, PredictorOutputError, names_similar_keywords
from anchorline.explainer import Explainer
from anchorline.model.predictor import split_answer
from anchorline.result.explanation import Explanation
from anchorline.settings import Settings
from anchorline.spaces.columns import dense, is_sparse
from anchorline.spaces.table import Table


class LimeTabularExplainer:
    """Explain rows of a table with the names that ``lime.lime_tabular.LimeTabularExplainer`` uses.

    Weights are contributions in the units of the output. The intercept and the weights of a label add up to the
    model's own output for that label. The `anchorline.Explanation` of every label has a certificate.

    Parameters
    ----------
    training_data
        A 2-D array with categories coded as integers, a SciPy sparse matrix of at most 50 million cells, or a
        pandas, Polars or Arrow frame with any columns.
    mode
        "classification" or "regression".
    training_labels
        The classes of the training rows, used only by ``discretizer="entropy"``.
    feature_names
        Column names of an array. Without names, ``feature_names`` is "0", "1", ... as in LIME, and facts say x0,
        x1, ..., because "0 >= 0.66" looks like a statement about the number 0.
    categorical_features
        Numbers (or names) of the columns that hold categories.
    categorical_names
        The names of a column's values, by column: ``{2: ["female", "male"]}``. Each column listed here holds
        categories.
    kernel_width, kernel, verbose, sample_around_instance, discretize_continuous
        Have no effect here. A value other than the default raises a warning that says what happens instead.
    class_names
        The names of the columns of the model's answers; None for the labels that the model itself has, or else
        "0", "1", ... In regression, a single name is the name of the output; as in LIME, several names have no
        effect.
    feature_selection
        "none" uses all features, whatever num_features is. Every other method except "auto" raises a warning,
        because anchorline finds the best choice and proves that it is best.
    discretizer
        Where numbers are cut: "quartile", "decile", "entropy" (the splits of one small decision tree per column
        on training_labels), or a discretizer of LIME, of which only the cut points are used. For your own cut
        points see ``anchorline.Table(cuts=...)``.
    random_state
        A seed. None is seed 0, so that the same call gives the same bytes. The state of a generator is read and
        never changed.
    training_data_stats
        LIME's statistics of the columns, for want of the training rows, of which only the number of columns is
        then used. Neighbors get values from 2,000 rows that have these statistics, with columns independent of
        each other. A warning says so.

    Attributes
    ----------
    table
        The `anchorline.Table` of the training data.
    feature_names, class_names, categorical_names, mode
        As given, with the defaults of LIME.
    categorical_features
        As in LIME, the numbers of all columns, because numbers are cut into intervals; the columns given with
        ``discretize_continuous=False``.
    discretizer, feature_values, feature_frequencies
        The intervals of every column of numbers, the values of every column (for numbers, the numbers of the
        intervals), and their shares, by column number.

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
            kernel_width=kernel_width,
            kernel=kernel,
            verbose=verbose,
            sample_around_instance=sample_around_instance,
        )
        check_choices(mode, feature_selection, discretizer)
        self._sparse = type(training_data) if is_sparse(training_data) else None
        rows = dense(training_data, ParameterError)
        names, self._has_own_names = column_names(rows, feature_names)
        categorical = categorical_columns(names, categorical_features, categorical_names)
        if len(categorical) < len(names):
            warn_without_effect(discretize_continuous=discretize_continuous)
        cuts: dict[str, list[float]] = {}
        if training_data_stats is not None:
            rows, cuts = table_from_statistics(training_data_stats, names, categorical)
            self._has_own_names = False
            warn_of_statistics()
        elif not isinstance(discretizer, str):
            cuts = cuts_of(discretizer, rows, names)
        elif discretizer == "entropy":
            cuts = entropy_cuts(rows, training_labels, mode, names, categorical)
        n_bins = BINS[discretizer] if isinstance(discretizer, str) else BINS["quartile"]
        own_names = None if self._has_own_names else names
        self._options: dict[str, Any] = {"n_bins": n_bins, "cuts": cuts, "categorical": categorical}
        self._options["literals"] = "intervals"  # LIME states one fact per feature
        self.table = Table(rows, names=own_names, **self._options)
        self._numbers = rows if isinstance(rows, np.ndarray) and rows.dtype.kind in "biuf" else None
        self.mode, self.class_names = mode, class_labels(class_names, mode)
        is_numbered = feature_names is None and not self._has_own_names
        self.feature_names = [str(j) for j in range(len(names))] if is_numbered else list(self.table.names)
        given = [names.index(name) for name in categorical]
        self.categorical_features = list(range(len(names))) if discretize_continuous else given
        self.categorical_names = dict(categorical_names or {})
        self.seed, self._all_features = seed_from(random_state), feature_selection == "none"

    @cached_property
    def discretizer(self) -> Discretizer:
        """The intervals into which numbers are cut, with LIME's ``names`` and ``discretize``."""
        return Discretizer(self.table)

    @cached_property
    def feature_values(self) -> dict[int, list[Any]]:
        """The values of every column, sorted; for numbers, the numbers of the intervals that occur."""
        return values_and_frequencies(self.table)[0]

    @cached_property
    def feature_frequencies(self) -> dict[int, np.ndarray]:
        """The share of every entry of ``feature_values`` in the training rows."""
        return values_and_frequencies(self.table)[1]

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
            Maximum number of facts in addition to the intercept, so that k is num_features + 1. If the best sum
            has no intercept, it can have one more fact.
        num_samples
            Number of neighbors for the search. The same number of fresh neighbors (at most 10,000) measures the
            result.
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
        >>> [text for text, weight in result.as_list()][:2], result.predicted_value
        (['x0 >= 0.67', 'x2 < -0.73'], 8.0)
        """
        warn_without_effect(
            distance_metric=distance_metric, model_regressor=model_regressor, sampling_method=sampling_method
        )
        if isinstance(num_features, bool) or not isinstance(num_features, int | np.integer) or num_features < 1:
            raise ParameterError(f"num_features is {num_features!r}, but it must be a whole number >= 1.")
        n_features = len(self.table.names) if self._all_features else int(num_features)
        check_one_row(data_row)
        row_index = type(getattr(data_row, "index", None)).__name__
        if not self._has_own_names and row_index == "RangeIndex" and getattr(data_row, "ndim", None) == 1:
            data_row = data_row.to_numpy()  # the labels of such a Series are not column names
        if self._sparse is not None:
            predict_fn = _OfSparse(predict_fn, self._sparse)

        def explain(explainer: Explainer) -> Explanation:
            # LIME returns num_features features, whether or not they matter. Without the checks of
            # `Explainer.explain`, which would query the model again for every row and label.
            settings = Settings.from_keywords(
                k=n_features + 1, n_samples=num_samples, seed=self.seed, keep_noise=True
            )
            return explainer.explain_with(data_row, settings)

        if self.mode == "regression":
            return self._explain_number(data_row, predict_fn, explain)
        table = self._table_for(predict_fn)
        explainer = Explainer(predict_fn, table, classes=self.class_names)
        outputs = _predict_row(explainer, table, data_row).reshape(-1)
        names = [str(name) for name in explainer.target.classes or range(len(outputs))]
        chosen, highest_first = choose_labels(labels, top_labels, outputs, names)
        return LimeExplanation(
            mode=self.mode,
            explanations={
                label: explain(Explainer(predict_fn, table, column=label, classes=self.class_names))
                for label in chosen
            },
            feature_names=self.table.names,
            class_names=names,
            predict_proba=outputs,
            top_labels=highest_first,
        )

    def _table_for(self, predict_fn: Any) -> Table:
        """Return the table, as a frame for an estimator that was fitted on frames with these columns."""
        names = getattr(getattr(predict_fn, "__self__", predict_fn), "feature_names_in_", ())
        is_needed = self._numbers is not None and self._sparse is None and tuple(names) == self.table.names
        return self._table_of_frame if is_needed and find_spec("pandas") else self.table

    @cached_property
    def _table_of_frame(self) -> Table:
        import pandas as pd  # noqa: PLC0415  optional

        return Table(pd.DataFrame(self._numbers, columns=list(self.table.names)), **self._options)

    def _explain_number(
        self, row: Any, predict_fn: Any, explain: Callable[[Explainer], Explanation]
    ) -> LimeExplanation:
        output = None if self.class_names is None else self.class_names[0]
        table = self._table_for(predict_fn)
        explainer = Explainer(predict_fn, table, output=output, task="number")
        answer = _predict_row(explainer, table, row)
        if answer.size != 1 or answer.dtype.kind not in "fiub":
            raise PredictorOutputError(
                f"mode is 'regression', but predict_fn returns {answer.dtype} of shape {answer.shape} for one "
                "row. It must return one number per row. For class probabilities, type mode='classification'."
            )
        return LimeExplanation(
            mode=self.mode, explanations={1: explain(explainer)}, feature_names=self.table.names
        )


class _OfSparse:
    """A function of sparse matrices, callable on arrays; a method still belongs to its estimator."""

    def __init__(self, ask: Callable[[Any], Any], sparse_type: Callable[[Any], Any]) -> None:
        self._ask, self._sparse_type = ask, sparse_type
        self.__self__ = getattr(ask, "__self__", None)
        self.__name__ = getattr(ask, "__name__", "")

    def __call__(self, rows: Any) -> Any:
        """Return the answers to rows, which become a matrix of the training data's type."""
        return self._ask(self._sparse_type(rows))


def _predict_row(explainer: Explainer, table: Table, row: Any) -> np.ndarray:
    """Return the model's answer for the row itself, of shape (1, c), or (1,) for a single number."""
    original = table.at(row).original
    try:
        return split_answer(explainer.target, np.asarray(explainer.target.ask(original)))[0]
    except Exception as error:
        raise PredictorError(
            f"predict_fn raised {type(error).__name__}: {error} (called with one row, "
            f"a {type(original).__name__})."
        ) from error
