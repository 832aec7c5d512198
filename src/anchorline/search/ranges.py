"""The range, the usual spread and the mean of a model's outputs on the examples of a space."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from anchorline.errors import BudgetError, ParameterError
from anchorline.model.predictor import ask, split_answer
from anchorline.model.target import Target

_MIDDLE = (0.05, 0.95)  # quantiles between which most outputs lie


def mean_on_examples(space: Any, target: Target, parameters: Mapping[str, Any], label: Any) -> float:
    """Return the mean output over the examples, all of which are queried; ``parameters`` are an explanation's.

    Where labels are explained, ``label`` counts as +1, and any other as -1.
    """
    column, label = parameters["column"], label if parameters["task"] == "label" else None
    if not hasattr(space, "examples"):
        raise ParameterError(
            f"The space is a {type(space).__name__}, which has no training rows. Only a Table has a training mean."
        )
    outputs = []
    for inputs in space.examples():
        answers = ask(target.ask, inputs, len(inputs), "number" if label is None else "label")
        scores = split_answer(target, answers)[0]
        scores = scores if label is None else np.where(scores == label, 1.0, -1.0)
        outputs.append(scores if scores.ndim == 1 else scores[:, column or 0])
    return float(np.concatenate(outputs).mean())


def refuse_to_learn(column: int | None) -> tuple[float, float, float]:
    """Raise the error about a range that cannot be learned, because queries are limited."""
    raise BudgetError(
        "The range of the outputs is not known, and learning it from the training table takes queries beyond "
        "max_queries. Pass output_range=(lowest, highest), or first call explainer.learn_range()."
    )


def ranges_on_examples(space: Any, target: Target) -> tuple[list[float], list[float], list[float]]:
    """Return the lowest and highest answer to the examples, and the spread of the middle 90% of the answers.

    There is one number per column. All examples are queried. Unlike the range, the spread hardly depends on a few
    extreme answers.
    """
    parts = []
    for inputs in space.examples():
        n_rows = len(inputs)
        answers = ask(target.ask, inputs, n_rows, target.task or "number")
        scores = split_answer(target, answers)[0].reshape(n_rows, -1)
        parts.append(scores.astype(np.float64))
    scores = np.concatenate(parts)
    with np.errstate(over="ignore"):  # such a range is refused
        low, high = np.quantile(scores, _MIDDLE, axis=0, method="inverted_cdf")
        return scores.min(axis=0).tolist(), scores.max(axis=0).tolist(), (high - low).tolist()
