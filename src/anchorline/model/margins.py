"""Margins of classifiers: the scores inside the link function that turns them into probabilities."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.model.wrappers import NotReadableError, unwrap

SCALES = (None, "probability", "margin")
# How `predict` returns margins, in libraries whose classifiers have no `decision_function`.
_KEYWORDS: dict[str, dict[str, Any]] = {
    "catboost": {"prediction_type": "RawFormulaVal"},
    "lightgbm": {"raw_score": True},
    "xgboost": {"output_margin": True},
}
_OF_LOG_ODDS = ("HistGradientBoostingClassifier", "LogisticRegression", "LogisticRegressionCV")


@dataclass(frozen=True, slots=True)
class Margins:
    """A classifier that is queried for margins, one column per class.

    Two classes have one margin, that of the second class; the margin of the first class is its negative.
    """

    ask: Callable[..., Any]
    steps: tuple[Callable[[Any], Any], ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, inputs: Any) -> np.ndarray:
        """Return the margins, (n, classes)."""
        for step in self.steps:
            inputs = step(inputs)
        margins = np.asarray(self.ask(inputs, **self.keywords), dtype=np.float64)
        margins = margins[:, 0] if margins.ndim == 2 and margins.shape[1] == 1 else margins
        return margins if margins.ndim == 2 else np.column_stack([-margins, margins])


def margins_of(model: Any, classes: Sequence[Any] | None) -> tuple[Margins, str]:
    """Return how to query a classifier for its margins, and their name: "log-odds" or "margin".

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> model = HistGradientBoostingClassifier().fit([[1.0], [2.0]], ["no", "yes"])
    >>> margins, name = margins_of(model, model.classes_)
    >>> margins(np.array([[1.5]])).tolist(), name
    ([[-0.0, 0.0]], 'log-odds')
    """
    try:
        inner, steps = unwrap(model)
    except NotReadableError:
        inner, steps = model, ()
    library = type(inner).__module__.partition(".")[0]
    margins: Margins | None = None
    if library in _KEYWORDS and callable(getattr(inner, "predict", None)):
        margins = Margins(inner.predict, steps, _KEYWORDS[library])
    elif callable(getattr(model, "decision_function", None)):
        margins = Margins(model.decision_function)
    elif callable(getattr(inner, "margins", None)):  # a loaded file
        margins = Margins(inner.margins, steps)
    if margins is None or classes is None or len(classes) < 2:
        raise ParameterError(
            f"output_scale is 'margin', but a {type(model).__name__} has no margins of classes; it must be a "
            "boosted classifier of scikit-learn, XGBoost, LightGBM or CatBoost, or have `decision_function` and "
            "`classes_`. Leave output_scale out to explain what the model returns."
        )
    return margins, "log-odds" if len(classes) == 2 and _gives_log_odds(inner) else "margin"


def _gives_log_odds(model: Any) -> bool:
    """Return whether the one margin of a classifier of two classes is the logarithm of the odds."""
    names = {cls.__name__ for cls in type(model).__mro__}
    if "GradientBoostingClassifier" in names:
        return bool(model.loss == "log_loss")
    if "LGBMClassifier" in names:
        return bool(model.objective_ == "binary" and model.get_params().get("sigmoid", 1) == 1)
    if "CatBoostClassifier" in names:
        return model.get_all_params().get("loss_function") in ("Logloss", "CrossEntropy")
    objective = getattr(model, "objective", None)  # of XGBoost, and of loaded files
    return bool(names & {*_OF_LOG_ODDS}) or objective in ("binary:logistic", "binary sigmoid:1")
