"""Neighbors to look at: how many attributes change, the output of the model, and that of the sum."""

import numpy as np

from anchorline.search.case import Case


def look(case: Case, n_neighbors: int, contributions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Query fresh neighbors; return numbers of changes, outputs of the model and outputs of the sum, each (n,).

    ``contributions`` (d,) are in the output's own units, and so are the outputs.
    """
    prediction, parts = case.predictor.prediction, []
    for batch in case.query(case.stream("look", n_neighbors)):
        outputs = prediction - 2 * case.predictor.half_range * batch.answer.drops
        n_changed = np.count_nonzero(batch.draws, axis=1)
        parts.append((n_changed, outputs, prediction - 2 * batch.flips @ contributions))
    n_flips, outputs, sums = (np.concatenate(part) for part in zip(*parts, strict=True))
    return n_flips, outputs, sums
