"""`unwrap`: the fitted model inside pipelines, searches and other wrappers, and what is done to its inputs."""

from collections.abc import Callable
from typing import Any

Steps = tuple[Callable[[Any], Any], ...]


class NotReadableError(Exception):
    """Raised where a model cannot be looked into, with the reason as a clause that follows "because"."""


def unwrap(estimator: Any, visit: Callable[[Any], None] = lambda _: None) -> tuple[Any, Steps]:
    """Return the model inside the wrappers, and the transformations of its inputs, first one first.

    Only wrappers whose answers are those of the inner model are opened. ``visit`` sees each, and the model.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> model = make_pipeline(StandardScaler(), DecisionTreeRegressor()).fit([[1], [2]], [3, 4])
    >>> unwrap(model)[0], len(unwrap(model)[1])
    (DecisionTreeRegressor(), 1)
    """
    visit(estimator)
    names = {cls.__name__ for cls in type(estimator).__mro__}
    if "Pipeline" in names and hasattr(estimator, "steps"):
        inner, steps = unwrap(estimator.steps[-1][1], visit)
        before = (estimator[:-1].transform,) if len(estimator.steps) > 1 else ()
        return inner, (*before, *steps)
    inner = _inside(estimator, names)
    return (estimator, ()) if inner is None else unwrap(inner, visit)


def _inside(estimator: Any, names: set[str]) -> Any:
    """Return the model whose answers a wrapper passes on; None if the estimator is not such a wrapper."""
    if "BaseSearchCV" in names:
        if not hasattr(estimator, "best_estimator_"):
            raise NotReadableError("the search kept no best estimator (refit=False)")
        return estimator.best_estimator_
    if "FrozenEstimator" in names:
        return estimator.estimator
    if names & {"FixedThresholdClassifier", "TunedThresholdClassifierCV"}:
        return estimator.estimator_  # its probabilities are those of the inner model; only `predict` differs
    if "TransformedTargetRegressor" in names:
        transformer = estimator.transformer_
        if type(transformer).__name__ != "FunctionTransformer" or transformer.inverse_func is not None:
            raise NotReadableError(
                "the predictions of the inner model are transformed (TransformedTargetRegressor)"
            )
        return estimator.regressor_
    return None
