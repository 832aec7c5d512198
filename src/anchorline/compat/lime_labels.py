"""What LIME's text and image explainers share: several labels of one instance, explained one by one."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.compat.lime_arguments import choose_labels
from anchorline.errors import ParameterError, PredictorError
from anchorline.explainer import Explainer
from anchorline.model.predictor import split_answer
from anchorline.result.explanation import Explanation
from anchorline.settings import Settings
from anchorline.spaces.base import Space


@dataclass(frozen=True, eq=False)
class Labels:
    """Explanations by label, the names and outputs of all labels, and the labels with the highest outputs."""

    explanations: dict[int, Explanation]
    names: list[str]
    outputs: np.ndarray
    top: list[int] | None


def explain_labels(
    space: Space,
    instance: Any,
    predict_fn: Any,
    class_names: list[Any] | None,
    labels: Iterable[int],
    top_labels: int | None,
    settings: Settings,
) -> Labels:
    """Explain some labels of one instance, each independently of the others."""
    explainer = Explainer(predict_fn, space, classes=class_names)
    original = space.at(instance).original
    try:
        answer = np.asarray(explainer.target.ask(original))
    except Exception as error:
        raise PredictorError(
            f"The model raised {type(error).__name__}: {error} (called with one input, a "
            f"{type(original).__name__})."
        ) from error
    outputs = split_answer(explainer.target, answer)[0].reshape(-1)
    names = [str(name) for name in explainer.target.classes or range(len(outputs))]
    chosen, highest_first = choose_labels(labels, top_labels, outputs, names)
    explanations = {
        label: Explainer(predict_fn, space, column=label, classes=class_names).explain_with(instance, settings)
        for label in chosen
    }
    return Labels(explanations, names, outputs, highest_first)


def check_number_of_features(num_features: Any) -> int:
    """Return the number of features; raise `ParameterError` unless it is a whole number of at least 1."""
    if isinstance(num_features, bool) or not isinstance(num_features, int | np.integer) or num_features < 1:
        raise ParameterError(f"num_features is {num_features!r}, but it must be a whole number >= 1.")
    return int(num_features)
