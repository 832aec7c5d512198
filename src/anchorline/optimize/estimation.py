r"""Evidence from few rows: effects are estimated for all literals together, moments of flips are not estimated.

Let C be the covariance matrix of the flips, which the law of the draws determines, and b their probabilities.
The best sum of at most k terms depends on C, b, the mean drop and :math:`\mathrm{cov}(F, t)` only. The last two
are the only ones that the model's answers have to tell. Write

.. math:: t = c + (F - b)\,g + r, \qquad \mathrm{cov}(F, r) = 0,

the regression of drops on all flips. Then :math:`\mathrm{cov}(F, t) = C g` exactly, whatever the model is, and
the mean drop is c. The plain estimate of :math:`\mathrm{cov}(F_j, t)` averages :math:`F_j t`, and its noise
contains the effects of all other literals. An estimate by way of g contains the noise of r only. With few rows, g
needs a ridge: coefficients of standardized flips are pulled towards zero, by an amount that generalized
cross-validation chooses. Everything is computed from sums, so samples may be streamed and added.
"""

from dataclasses import dataclass

import numpy as np

from anchorline.optimize.evidence import Evidence

_RIDGES = np.logspace(-3.0, 2.5, 23)  # per literal and row, of standardized flips
_GRID = 2.0**30  # estimates are rounded, so that the order of additions in a linear-algebra library changes no bit


@dataclass(frozen=True, kw_only=True, eq=False)
class EstimatedEvidence(Evidence):
    """Known moments of the flips and estimated moments of the drops; ``sample`` is what was observed."""

    sample: Evidence


def estimate_evidence(sample: Evidence, means: np.ndarray, covariances: np.ndarray) -> EstimatedEvidence:
    r"""Return the evidence that a sample gives about a law with known flip means (d,) and covariances (d, d).

    The moments of the result are :math:`G = C + b b^\top`, :math:`h = C g + b c`, the mean c, and
    :math:`\mathrm{mean}\,t^2 = c^2 + \widehat{\mathrm{var}}\,t`. So objectives are estimates of the error over all
    neighbors, not errors on the sample. Cost d^3. The sample must not be weighted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> flips = (rng.random((60, 8)) < 0.25).astype(int)
    >>> sample = Evidence.from_sample(flips, 0.5 * flips[:, 0] + 0.25 * flips[:, 1])
    >>> known = estimate_evidence(sample, np.full(8, 0.25), np.diag(np.full(8, 0.1875)))
    >>> known.flip_means[0].item(), known.cross_moments[:3].round(2).tolist()
    (0.25, [0.14, 0.09, 0.05])
    """
    effects, mean = _regress(sample, means, np.diagonal(covariances))
    slopes, n = covariances @ effects, float(sample.n_rows)
    second = covariances + np.outer(means, means)
    variance = _variance(sample) * n / max(1.0, n - 1)
    square = mean**2 + max(variance, float(effects @ slopes))  # the effects cannot explain more than there is
    return EstimatedEvidence(
        sample=sample,
        n_rows=sample.n_rows,
        weight=n,
        flip_sums=n * means,
        pair_sums=n * second,
        cross_sums=n * np.column_stack([slopes + means * mean, np.zeros((len(means), 3))]),
        drop_sums=(n * mean, 0.0, 0.0, 0.0),
        square_sums=(n * square, 0.0, 0.0, 0.0, 0.0, 0.0),
    )


def _regress(sample: Evidence, means: np.ndarray, variances: np.ndarray) -> tuple[np.ndarray, float]:
    r"""Return the effects g (d,) and the mean drop c.

    With standardized flips, ridge :math:`\lambda` and the eigenvalues :math:`w_i` of their covariance on the
    sample, a coefficient along eigenvector i is divided by :math:`w_i + \lambda`. The ridge minimizes the mean
    squared residual over the squared share of degrees of freedom that are left.
    """
    observed, n = sample.flip_means, sample.n_rows
    scale = np.where(variances > 0, 1 / np.sqrt(np.where(variances > 0, variances, 1.0)), 0.0)
    covariances = (sample.second_moments - np.outer(observed, observed)) * np.outer(scale, scale)
    cross = (sample.cross_moments - observed * sample.drop_mean) * scale
    values, vectors = np.linalg.eigh(covariances)
    values, along = np.maximum(values, 0.0), vectors.T @ cross
    ridges = _RIDGES[:, None] * (max(len(means), 1) / n)
    kept = values / (values + ridges)
    fitted = (along**2 / (values + ridges) * (2 - kept)).sum(axis=1)
    left = np.maximum(1 - (1 + kept.sum(axis=1)) / n, 1 / n**2)  # share of degrees of freedom
    residual = np.maximum(_variance(sample) - fitted, 0.0)
    best = len(ridges) - 1 - int(np.argmin((residual / left**2)[::-1]))  # the largest ridge, if several are best
    effects = _rounded(vectors @ (along / (values + ridges[best])) * scale)
    mean = float(_rounded(np.array(sample.drop_mean - (observed - means) @ effects)))
    return effects, mean


def _variance(sample: Evidence) -> float:
    return max(0.0, sample.drop_square - sample.drop_mean**2)


def _rounded(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.rint(values * _GRID) / _GRID)
