"""The range of a model's outputs on the examples of a space."""

from typing import Any

import numpy as np

from anchorline.model.predictor import ask, split_answer
from anchorline.model.target import Target


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
