"""The range of a model's outputs on the examples of a space."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from anchorline.errors import BudgetError, ParameterError
from anchorline.model.predictor import ask, split_answer
from anchorline.model.target import Target


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


def ranges_on_examples(space: Any, target: Target) -> tuple[list[float], list[float]]:
    """Return the lowest and highest answer to the examples, one number per column; all examples are queried."""
    ends = []
    for inputs in space.examples():
        n_rows = len(inputs)
        answers = ask(target.ask, inputs, n_rows, target.task or "number")
        scores = split_answer(target, answers)[0].reshape(n_rows, -1)
        ends += [scores.min(axis=0), scores.max(axis=0)]
    both = np.array(ends, dtype=np.float64)
    return both.min(axis=0).tolist(), both.max(axis=0).tolist()


def refuse_to_learn(column: int | None) -> tuple[float, float]:
    """Raise `BudgetError`, because learning the range takes queries beyond a limit."""
    raise BudgetError(
        "The range of the outputs is not known, and learning it from the training table takes queries "
        "beyond max_queries. Pass output_range=(lowest, highest), or first call explainer.learn_range()."
    )
