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
_MAX_LISTED = 50_000  # sets of one node, which bounds the memory
_SPARE = 0.1  # from here on, the bound on a set's smallest eigenvalue is precise enough
_SOLID = 1e-3  # a set with a smaller eigenvalue is nearly dependent, and fitted by itself
_MAX_FITTED = 20  # such sets of one node


def few(n: int, r: int, n_nodes: float = 1) -> bool:
    """Whether the sets of r of n candidates take at most as long as some nodes."""
    return math.comb(n, r) <= min(max(1, n_nodes) * MAX_SETS, _MAX_LISTED)


def combinations(n: int, r: int) -> np.ndarray:
    """All sets (N, r) of r of n positions."""
    return _combinations(n, r).astype(np.intp)


@lru_cache(maxsize=128)
def _combinations(n: int, r: int) -> np.ndarray:
    """All sets in the smallest type, because they are kept."""
    each, kind = itertools.chain.from_iterable(itertools.combinations(range(n), r)), np.min_scalar_type(n)
    return np.fromiter(each, dtype=kind, count=r * math.comb(n, r)).reshape(-1, r)


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

    If all eigenvalues of :math:`K_T` are at least :math:`\lambda`, errors :math:`\nu` of the vectors change the
    form by at most :math:`2 |A| |\nu| / \lambda`, and errors :math:`\delta` of the correlations by :math:`|A|^2
    \delta / \lambda^2`. Nearly dependent sets get the value :math:`-\infty`, so that they are fitted. None if a
    candidate has no variance, or if there are many such sets. Cost N r^3.
    """
    if projection.pins is not None or not (projection.variances > 0).all():
        return None
    scale, residuals, r = 1 / np.sqrt(projection.variances), projection.residuals, sets.shape[1]
    inner = centered.covariance[candidates[:, None], candidates] - residuals.T @ residuals
    inner *= scale[:, None] * scale
    np.fill_diagonal(inner, 1.0)
    each = inner[sets[:, :, None], sets[:, None, :]]
    blur = ROUNDING * r * float((centered.variances[candidates] / projection.variances).max())
    smallest = _smallest_eigenvalues(each) - blur
    dependent = smallest < _SOLID
    if np.count_nonzero(dependent) > _MAX_FITTED:
        return None
    each[dependent], smallest[dependent] = np.eye(r), 1.0
    vectors = projection.vectors[:, sets].transpose(1, 2, 0)  # (N, r, 3)
    taken = vectors.transpose(0, 2, 1) @ np.linalg.solve(each, vectors)
    lengths, noise = (np.sqrt((a**2)[:, sets].sum(axis=2)) for a in (projection.vectors, projection.noise))
    blurred = lengths[:, None] * (noise + lengths * (blur / smallest)) / smallest
    errors = projection.errors[:, :, None] + (blurred + blurred.transpose(1, 0, 2))
    form = projection.form[:, :, None] - taken.transpose(1, 2, 0)
    values = lowered(form, errors, *saddle(form, low, high, projection.line), low, high)
    values[dependent] = -np.inf
    return values


def _smallest_eigenvalues(each: np.ndarray) -> np.ndarray:
    """Lower bounds (N,) on the eigenvalues of correlation matrices (N, r, r).

    By Gershgorin's theorem, they are at least 1 minus the other correlations of a literal. Only where this is
    little are they computed.
    """
    bounds = 2 - np.abs(each).sum(axis=2).max(axis=1, initial=1.0)
    little = bounds < _SPARE
    if little.any():
        bounds[little] = np.linalg.eigvalsh(each[little])[:, 0]
    return np.asarray(bounds)
