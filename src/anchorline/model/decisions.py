"""The class that a classifier's own `predict` names, which need not be the most probable one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.errors import PredictorOutputError

# Classifiers whose `predict` names the first class with the highest `predict_proba`, in all their settings. Of
# every other classifier, `predict` is called too: SVC and NuSVC fit their probabilities separately, CatBoost has a
# threshold, GradientBoostingClassifier resolves ties the other way, and a class of your own may do anything.
MOST_PROBABLE = frozenset(
    {
        *("BaggingClassifier", "BernoulliNB", "CalibratedClassifierCV", "CategoricalNB", "ComplementNB"),
        *("DecisionTreeClassifier", "ExtraTreeClassifier", "ExtraTreesClassifier", "GaussianNB"),
        *("HistGradientBoostingClassifier", "LabelPropagation", "LabelSpreading", "LinearDiscriminantAnalysis"),
        *("LogisticRegression", "LogisticRegressionCV", "MLPClassifier", "MultinomialNB"),
        *("QuadraticDiscriminantAnalysis", "RandomForestClassifier", "VotingClassifier"),
        *("LGBMClassifier", "XGBClassifier", "XGBRFClassifier"),
    }
)
_LIBRARIES = ("lightgbm", "sklearn", "xgboost")


@dataclass(frozen=True, slots=True)
class Cutoff:
    """A classifier of two classes that names the class of ``column`` if its score reaches ``threshold``."""

    scores: Callable[[Any], Any]
    column: int
    threshold: float

    def __call__(self, inputs: Any) -> np.ndarray:
        """Return the scores, and in the last column the number of the class that is named."""
        scores = np.asarray(self.scores(inputs))
        named = np.where(scores[:, self.column] >= self.threshold, self.column, 1 - self.column)
        return np.column_stack([scores, named])


@dataclass(frozen=True, slots=True)
class ByPredict:
    """A classifier that is queried for its scores and for the class that its `predict` names.

    ``classes`` are the labels of the columns; None if they are not known, so that labels are column numbers.
    """

    scores: Callable[[Any], Any]
    predict: Callable[[Any], Any]
    classes: tuple[Any, ...] | None

    def __call__(self, inputs: Any) -> np.ndarray:
        """Return the scores, and in the last column the number of the class that is named."""
        scores = np.asarray(self.scores(inputs))
        if scores.ndim != 2 or scores.shape[1] < 2:
            return scores  # not scores of classes
        return np.column_stack([scores, self._named(np.asarray(self.predict(inputs)), scores)])

    def _named(self, labels: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return the columns of the named classes; of the most probable ones if `predict` returns no labels."""
        labels = labels[:, 0] if labels.shape == (len(scores), 1) else labels
        if labels.shape != (len(scores),) or (labels.dtype.kind == "f" and (labels % 1).any()):
            return np.asarray(scores.argmax(axis=1))
        known = tuple(range(scores.shape[1])) if self.classes is None else self.classes
        columns = {label: j for j, label in enumerate(known)}
        named = [columns.get(label, -1) for label in labels.tolist()]
        if -1 in named:
            raise PredictorOutputError(
                f"The model's `predict` returned {labels[named.index(-1)]!r}, which is not one of its classes "
                f"{list(known)!r:.200}. Pass classes=[...] with the label of every column of `predict_proba`."
            )
        return np.array(named)


def with_own_decision(
    estimator: Any, scores: Callable[[Any], Any], classes: Sequence[Any] | None
) -> Cutoff | ByPredict | None:
    """Return how to query a classifier for its scores and its decision; None if the decision follows from scores.

    ``scores`` is its `predict_proba`. A threshold is read from scikit-learn's threshold classifiers, also where
    they are the last step of a pipeline or the best estimator of a search.
    """
    predict, inner = getattr(estimator, "predict", None), innermost(estimator)
    if not callable(predict):
        return None
    if _has_own_predict(estimator) and _has_own_predict(inner):
        if type(inner).__name__ in MOST_PROBABLE:
            return None
        cutoff = _cutoff(inner)
        if cutoff is not None:
            return Cutoff(scores, *cutoff)
    return ByPredict(scores, predict, None if classes is None else tuple(classes))


def innermost(estimator: Any) -> Any:
    """Return the estimator that a pipeline, a search or a frozen estimator passes its calls to."""
    if type(estimator).__module__.startswith("sklearn."):
        inner = getattr(estimator, "best_estimator_", None)
        if type(estimator).__name__ == "Pipeline":
            inner = estimator.steps[-1][1]
        elif type(estimator).__name__ == "FrozenEstimator":
            inner = estimator.estimator
        if inner is not None:
            return innermost(inner)
    return estimator


def _has_own_predict(estimator: Any) -> bool:
    """Return whether `predict` is the one of a known library's class, and not replaced on the object."""
    owner = getattr(getattr(estimator, "predict", None), "__self__", None)
    return type(owner) is type(estimator) and type(estimator).__module__.partition(".")[0] in _LIBRARIES


def _cutoff(estimator: Any) -> tuple[int, float] | None:
    """Return the column and the threshold of a fitted threshold classifier that uses probabilities."""
    name, classes = type(estimator).__name__, list(getattr(estimator, "classes_", ()))
    inner = getattr(estimator, "estimator_", getattr(estimator, "estimator", None))
    by_probability = getattr(estimator, "response_method", None) in ("auto", "predict_proba")
    if len(classes) != 2 or not by_probability or not hasattr(inner, "predict_proba"):
        return None
    if name == "FixedThresholdClassifier":
        threshold = 0.5 if estimator.threshold == "auto" else float(estimator.threshold)
        positive = estimator.pos_label
    elif name == "TunedThresholdClassifierCV":
        threshold, positive = float(estimator.best_threshold_), estimator._curve_scorer._get_pos_label()
    else:
        return None
    return (1 if positive is None else classes.index(positive)), threshold
