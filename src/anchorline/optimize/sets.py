r"""The sets of a node's candidates, all at once, if there are few of them.

Let r literals be left to choose. For a set T of r candidates, the chosen literals and T leave the form minus
:math:`A_T K_T^{-1} A_T^\top`, with the remaining vectors :math:`A_T` (3, r) and correlations :math:`K_T` of T, so
that its value is that of the best multipliers for this form, as in the last step of the search.
"""

import itertools
import math
from functools import lru_cache

import numpy as np

from anchorline.optimize.bounds import ROUNDING, Centered, Projection, lowered, saddle

MAX_SETS = 600  # take about as long as one node
_SPARE = 0.1  # the smallest eigenvalue of a set for which this is precise enough


def few(n: int, r: int) -> bool:
    """Whether there are few sets of r of n candidates."""
    return math.comb(n, r) <= MAX_SETS


@lru_cache(maxsize=256)
def combinations(n: int, r: int) -> np.ndarray:
    """All sets (N, r) of r of n positions."""
    sets = np.array(list(itertools.combinations(range(n), r)), dtype=np.intp).reshape(-1, r)
    sets.setflags(write=False)
    return sets


def without(sets: np.ndarray, rests: np.ndarray) -> np.ndarray:
    """The sets (N, r) that hold none of the ``rests`` (c, n) entirely."""
    if not len(rests):
        return sets
    held = rests[:, sets].sum(axis=2) == rests.sum(axis=1)[:, None]
    return np.asarray(sets[~held.any(axis=0)])


def values_of_sets(
    centered: Centered, projection: Projection, candidates: np.ndarray, sets: np.ndarray, low: float, high: float
) -> np.ndarray | None:
    r"""Objective of the chosen literals plus each set of candidates, (N,), lowered by rounding.

    If the other correlations of a literal of a set add up to at most :math:`1 - \lambda`, then by Gershgorin's
    theorem all eigenvalues of :math:`K_T` are at least :math:`\lambda`, so that errors :math:`\nu` of the vectors
    change the form by at most :math:`2 |A| |\nu| / \lambda`, and errors :math:`\delta` of the correlations by
    :math:`|A|^2 \delta / \lambda^2`. None if a set is so dependent that this is too much. Cost N r^3.
    """
    if projection.line is not None or projection.pins is not None or not (projection.variances > 0).all():
        return None
    scale, residuals = 1 / np.sqrt(projection.variances), projection.residuals
    inner = centered.covariance[candidates[:, None], candidates] - residuals.T @ residuals
    inner *= scale[:, None] * scale
    np.fill_diagonal(inner, 1.0)
    each = inner[sets[:, :, None], sets[:, None, :]]
    spare = 2 - float(np.abs(each).sum(axis=2).max(initial=1.0))
    if spare < _SPARE:
        return None
    vectors = projection.vectors[:, sets].transpose(1, 2, 0)  # (N, r, 3)
    taken = vectors.transpose(0, 2, 1) @ np.linalg.solve(each, vectors)
    lengths, noise = (np.sqrt((a**2)[:, sets].sum(axis=2)) for a in (projection.vectors, projection.noise))
    growth = float((centered.variances[candidates] / projection.variances).max())
    blurred = lengths[:, None] * (noise + lengths * (ROUNDING * sets.shape[1] * growth / spare)) / spare
    errors = projection.errors[:, :, None] + (blurred + blurred.transpose(1, 0, 2))
    form = projection.form[:, :, None] - taken.transpose(1, 2, 0)
    return lowered(form, errors, *saddle(form, low, high), low, high)
