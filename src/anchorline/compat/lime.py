"""LIME's tabular explainer by its own names: existing calls keep working, and the weights now add up."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from anchorline.compat.lime_arguments import (
    BINS,
    categorical_columns,
    check_choices,
    choose_labels,
    class_labels,
    column_names,
    entropy_cuts,
    seed_from,
    warn_without_effect,
)
from anchorline.compat.lime_explanation import LimeExplanation
from anchorline.errors import ParameterError, PredictorError, PredictorOutputError
from anchorline.explainer import Explainer
from anchorline.result.explanation import Explanation
from anchorline.spaces.table import Table


class LimeTabularExplainer:
    """Explain rows of a table with the names that ``lime.lime_tabular.LimeTabularExplainer`` uses.

    Weights are contributions in the units of the output. The intercept and the weights of a label add up to the
    model's own output for that label. The `anchorline.Explanation` of every label has a certificate.

    Parameters
    ----------
    training_data
        A 2-D array with categories coded as integers, or a pandas, Polars or Arrow frame with any columns.
    mode
        "classification" or "regression".
    training_labels
        The classes of the training rows, used only by ``discretizer="entropy"``.
    feature_names
        Column names of an array; None for x0, x1, ...
    categorical_features
        Numbers (or names) of the columns that hold categories.
    categorical_names
        The names of a column's values, by column: ``{2: ["female", "male"]}``. Each column listed here holds
        categories.
    kernel_width, kernel, verbose, sample_around_instance
        Have no effect here. A value other than the default raises a warning that says what happens instead.
    class_names
        The names of the columns of the model's answers; None for the labels that the model itself has, or else
        "0", "1", ... In regression, a single name is the name of the output; as in LIME, several names have no
        effect.
    feature_selection
        "none" uses all features, whatever num_features is. Every other method except "auto" raises a warning,
        because anchorline finds the best choice and proves that it is best.
    discretize_continuous
        Facts about numbers are intervals, so False raises an error if there is a column of numbers.
    discretizer
        Where numbers are cut: "quartile", "decile", or "entropy" (the splits of one small decision tree per
        column on training_labels). For your own cut points see ``anchorline.Table(cuts=...)``.
    random_state
        A seed. None is seed 0, so that the same call gives the same bytes. The state of a generator is read and
        never changed.
    training_data_stats
        Raises an error, because neighbors are built from training rows and not from their statistics.

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
        warn_without_effect(
            kernel_width=kernel_width,
            kernel=kernel,
            verbose=verbose,
            sample_around_instance=sample_around_instance,
        )
        check_choices(mode, feature_selection, discretizer, training_data_stats)
        names, self._has_own_names = column_names(training_data, feature_names)
        categorical = categorical_columns(names, categorical_features, categorical_names)
        if not discretize_continuous and len(categorical) < len(names):
            raise ParameterError(
                "discretize_continuous is False, so weights would be slopes of numbers, but here they are "
                "contributions of facts such as '37 <= age < 48'. Leave it out, or pass all columns as "
                "categorical_features."
            )
        cuts = {}
        if discretizer == "entropy":
            cuts = entropy_cuts(training_data, training_labels, mode, names, categorical)
        self.table = Table(
            training_data,
            names=None if self._has_own_names else names,
            n_bins=BINS[discretizer],
            cuts=cuts,
            categorical=categorical,
        )
        self.mode, self.feature_names = mode, list(self.table.names)
        self.class_names = class_labels(class_names, mode)
        self.seed, self._all_features = seed_from(random_state), feature_selection == "none"

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
            numbers.
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
        (['x0 >= 0.663', 'x2 < -0.732'], 8.0)
        """
        warn_without_effect(
            distance_metric=distance_metric, model_regressor=model_regressor, sampling_method=sampling_method
        )
        if isinstance(num_features, bool) or not isinstance(num_features, int | np.integer) or num_features < 1:
            raise ParameterError(f"num_features is {num_features!r}, but it must be a whole number >= 1.")
        n_features = len(self.feature_names) if self._all_features else int(num_features)
        row_index = type(getattr(data_row, "index", None)).__name__
        if not self._has_own_names and row_index == "RangeIndex" and getattr(data_row, "ndim", None) == 1:
            data_row = data_row.to_numpy()  # the labels of such a Series are not column names

        def explain(explainer: Explainer) -> Explanation:
            return explainer.explain(data_row, k=n_features + 1, n_samples=num_samples, seed=self.seed)

        if self.mode == "regression":
            return self._explain_number(data_row, predict_fn, explain)
        explainer = Explainer(predict_fn, self.table, classes=self.class_names)
        outputs = _predict_row(explainer, self.table, data_row).reshape(-1)
        chosen, highest_first = choose_labels(labels, top_labels, outputs)
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
            top_labels=highest_first,
        )

    def _explain_number(
        self, row: Any, predict_fn: Any, explain: Callable[[Explainer], Explanation]
    ) -> LimeExplanation:
        output = None if self.class_names is None else self.class_names[0]
        explainer = Explainer(predict_fn, self.table, output=output, task="number")
        answer = _predict_row(explainer, self.table, row)
        if answer.size != 1 or answer.dtype.kind not in "fiub":
            raise PredictorOutputError(
                f"mode is 'regression', but predict_fn returns {answer.dtype} of shape {answer.shape} for one "
                "row. It must return one number per row."
            )
        return LimeExplanation(
            mode=self.mode, explanations={1: explain(explainer)}, feature_names=tuple(self.feature_names)
        )


def _predict_row(explainer: Explainer, table: Table, row: Any) -> np.ndarray:
    """Return the model's answer for the row itself, of shape (1, c), or (1,) for a single number."""
    original = table.at(row).original
    try:
        return np.asarray(explainer.target.ask(original))
    except Exception as error:
        raise PredictorError(
            f"predict_fn raised {type(error).__name__}: {error} (called with one row, "
            f"a {type(original).__name__})."
        ) from error
