"""How reliably a change turns a decision: over all training values that meet its bounds, counted or drawn."""

import math

import numpy as np

from anchorline.guarantees import Estimate, estimate_share, exact_estimate
from anchorline.search.changes.questions import Questions


def reliability(
    questions: Questions, chosen: tuple[int, ...], *, n_measure: int, confidence: float, key: int
) -> Estimate | None:
    r"""Return the share of values on the same sides, at least as far away, with which the change turns.

    .. math:: \sum_{v \in B} \prod_k \frac{c_k(v_k)}{C_k}\,[\text{the decision turns at } v],
              \qquad B = B_1 \times \cdots \times B_s

    where :math:`B_k` are the training values that meet bound k, and :math:`c_k(v)` of :math:`C_k` training rows
    that do have the value v. If B has at most ``n_measure`` members, all are tried. Otherwise the values are drawn
    independently, and the interval is a binomial one. Return None if too few queries are left.
    """
    candidates = questions.candidates
    values = [candidates.beyond(candidate) for candidate in chosen]
    cells = [candidates.distinct(each) for each in values]
    if math.prod(map(len, cells)) <= n_measure:
        grids = np.meshgrid(*cells, indexing="ij")
        combinations = np.column_stack([grid.ravel() for grid in grids])
        weights = [_weights(questions, own, all_values) for own, all_values in zip(cells, values, strict=True)]
        probabilities = np.prod(np.meshgrid(*weights, indexing="ij"), axis=0).ravel()
        reached = _reached(questions, combinations)
        if reached is None:
            return None
        share = 1.0 if reached.all() else float(probabilities[reached].sum())
        return exact_estimate(min(1.0, share), len(combinations))
    if questions.left < n_measure:
        return None
    drawn = np.column_stack([_draw(questions, own, n_measure, (key + k) % 2**128) for k, own in enumerate(values)])
    return estimate_share(int(questions.ask(drawn).reached.sum()), n_measure, confidence)


def _reached(questions: Questions, combinations: np.ndarray) -> np.ndarray | None:
    """Return which combinations turn, (n,); single facts are not asked twice. None if too few queries are left."""
    if combinations.shape[1] > 1:
        return questions.ask(combinations).reached if len(combinations) <= questions.left else None
    cells = questions.candidates.cell[combinations[:, 0]].tolist()
    unknown = np.array([cell not in questions.alone for cell in cells])
    if unknown.sum() > questions.left:
        return None
    questions.ask(combinations[unknown])
    return np.array([questions.alone[cell] for cell in cells])


def _weights(questions: Questions, cells: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the share of the training rows of some values that is in every cell."""
    candidates = questions.candidates
    by_cell = {int(cell): 0.0 for cell in candidates.cell[cells]}
    for cell, count in zip(candidates.cell[values].tolist(), candidates.counts[values].tolist(), strict=True):
        by_cell[cell] += count
    weights = np.array([by_cell[int(cell)] for cell in candidates.cell[cells]])
    return np.asarray(weights / weights.sum())


def _draw(questions: Questions, values: np.ndarray, n: int, key: int) -> np.ndarray:
    """Draw values with the frequencies that they have in the training table."""
    ends = np.cumsum(questions.candidates.counts[values])
    words = np.random.Philox(key=key).random_raw(n)
    return np.asarray(values[np.searchsorted(ends, (words >> 11) * 2.0**-53 * ends[-1], side="right")])
