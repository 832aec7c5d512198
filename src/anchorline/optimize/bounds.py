r"""Lower bounds for the exact solver, by duality and diagonal dominance.

Center the statistics: ``S = cov F``, ``s = cov(F, t)``, ``b = mean F``, ``tbar = mean t``. Then the
fidelity error is ``var t + u'Su - 2 s'u + (tbar - b'u)^2``. The square is the only strong coupling, and duality
removes it: for every eta, and for every price mu of the sum of the contributions,

.. math:: q(u) \ge \operatorname{var} t + u^\top S u - 2 (s + \eta b + \mu \mathbf 1)^\top u
          + 2 \eta \bar t - \eta^2 + 2 \min(\mu\,\text{low}, \mu\,\text{high})

Write ``Y = (1, eta, mu)``. Projecting the chosen literals out of S leaves one vector
``a_j = (s~, b~, 1~)_j / sqrt(D~_j)`` in R^3 per remaining literal. The chosen literals leave the 3 x 3 matrix
``sum a a'``, which is subtracted from the *form* ``[[var t, tbar, 0], [tbar, -1, 0], [0, 0, 0]]``.
For a set T of r more literals the bound is ``Y' form Y + 2 min(mu low, mu high) - sum_T g_j`` with

.. math:: g_j = \frac{(a_j^\top Y)^2}{1 - \rho_j}, \qquad
          \rho_j \ge \text{sum of the } r - 1 \text{ largest } |\tilde\kappa_{ij}|

where :math:`\tilde\kappa` are the remaining correlations. The bound holds because a correlation matrix minus
``diag(1 - rho)`` is diagonally dominant. With r = 1, rho = 0 and the best Y, the bound is the exact value
(`saddle`). The variant without starting level is the special case low = high.

A literal whose projected variance vanishes (always flipped, a complement, a duplicate) gets the variance `RIDGE`
instead. This adds a penalty of at most ``RIDGE u_j^2`` and avoids special cases. It also puts numbers of size
1 / RIDGE into the form, whose differences lose most of their digits. Therefore every bound is lowered by the most
that rounding may have added: a bound may be loose, never invalid.
"""

from dataclasses import dataclass

import numpy as np

from anchorline.optimize.evidence import Evidence

RIDGE = 1e-13
_VANISHING = 1e-11  # a projected variance below this share of the original variance is rounding noise
_ROUNDING = 64 * np.finfo(np.float64).eps  # rounding error of a difference, as a share of its two sides


@dataclass(frozen=True, eq=False)
class Centered:
    """Centered statistics of a sample, shared by all nodes; read-only."""

    covariance: np.ndarray  # S, (d, d)
    variances: np.ndarray  # diagonal of S, (d,)
    rows: np.ndarray  # s, b and 1, (3, d)
    form: np.ndarray  # (3, 3)
    row_max: np.ndarray  # largest |correlation| of each literal with another literal

    @classmethod
    def from_evidence(cls, evidence: Evidence) -> "Centered":
        """Center the moments of the evidence. Cost d^2."""
        b, tbar = evidence.flip_means, evidence.drop_mean
        covariance = evidence.second_moments - b[:, None] * b
        # The unit is the largest standard deviation, so that rare flips do not look degenerate.
        unit = float(np.diagonal(covariance).max(initial=0.0)) or 1.0
        covariance /= unit
        variances = np.maximum(np.diagonal(covariance), 0.0)
        rows = np.stack([evidence.cross_moments - tbar * b, b, np.ones_like(b)]) / np.sqrt(unit)
        form = np.array([[evidence.drop_square - tbar**2, tbar, 0], [tbar, -1, 0], [0, 0, 0]])
        scale = 1 / np.sqrt(np.maximum(variances, RIDGE))
        correlations = np.abs(covariance)
        correlations *= scale
        np.fill_diagonal(correlations, 0)
        row_max = correlations.max(axis=1, initial=0) * scale
        return cls(covariance, variances, rows, form, row_max)


@dataclass(frozen=True, eq=False)
class Projection:
    """The candidates after the chosen literals have been projected out."""

    form: np.ndarray  # the form minus the part of the chosen literals, (3, 3)
    vectors: np.ndarray  # a_j, (3, n)
    residuals: np.ndarray  # one row per chosen literal, (p, n): S~ = S - residuals' residuals
    variances: np.ndarray  # D~, (n,), at least RIDGE

    def values(self, low: float, high: float) -> np.ndarray:
        """Exact objective of the chosen literals plus one candidate, for each candidate, (n,)."""
        a = self.vectors
        form = self.form[:, :, None] - a[:, None, :] * a[None, :, :]
        return saddle(form, low, high)[0]

    def restrict(self, kept: np.ndarray) -> "Projection":
        """Keep the candidates at the given positions."""
        return Projection(self.form, self.vectors[:, kept], self.residuals[:, kept], self.variances[kept])


def project(centered: Centered, chosen: tuple[int, ...], candidates: np.ndarray) -> Projection:
    """Project the chosen literals out, with one rank-one update per literal. Cost p^2 n."""
    p = len(chosen)
    index = np.concatenate([np.array(chosen, dtype=np.intp), candidates])
    residuals = centered.covariance[np.array(chosen, dtype=np.intp)[:, None], index]
    original = centered.variances[index]
    rows, variances, form = centered.rows[:, index], original.copy(), centered.form.copy()
    for i in range(p):
        if variances[i] <= _VANISHING * original[i] + RIDGE:
            residuals[i] = 0.0
            vector = np.array([0.0, rows[1, i], rows[2, i]]) / np.sqrt(RIDGE)
        else:
            root = np.sqrt(variances[i])
            residuals[i] /= root
            vector = rows[:, i] / root
            rows -= vector[:, None] * residuals[i]
            variances -= residuals[i] ** 2
            residuals[i + 1 :] -= residuals[i, i + 1 : p, None] * residuals[i]
        form -= vector[:, None] * vector
    degenerate = variances[p:] <= _VANISHING * original[p:] + RIDGE
    rows = rows[:, p:]
    rows[0, degenerate] = 0.0  # cov(0, t) = 0, so the remaining value is rounding
    rows[1:, degenerate] = np.where(np.abs(rows[1:, degenerate]) <= 1e-9, 0.0, rows[1:, degenerate])
    remaining = np.where(degenerate, RIDGE, variances[p:])
    return Projection(form, rows / np.sqrt(remaining), residuals[:, p:], remaining)


def saddle(form: np.ndarray, low: float, high: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Maximize ``Y' form Y + 2 min(mu low, mu high)`` over eta and mu; return (value, eta, mu).

    ``form`` is (3, 3) or (3, 3, n). After eta is eliminated, the sum of the contributions at mu = 0 is
    ``-h13``. If this sum lies a distance e outside [low, high], the value rises by ``e^2 / -h33``. Each of
    these numbers is rounded in the direction that lowers the value.
    """
    ratio12, ratio23 = form[0, 1] / form[1, 1], form[1, 2] / form[1, 1]
    taken11, taken13, taken33 = form[0, 1] * ratio12, form[0, 1] * ratio23, form[1, 2] * ratio23
    h11, h13, h33 = form[0, 0] - taken11, form[0, 2] - taken13, form[2, 2] - taken33
    h11 = h11 - _ROUNDING * (np.abs(form[0, 0]) + np.abs(taken11))
    h33 = np.minimum(h33 + _ROUNDING * (form[2, 2] + taken33), -1e-30)  # both are negative; 0 without literals
    excess = np.minimum(np.maximum(-h13, low), high) + h13
    lost13 = _ROUNDING * (np.abs(form[0, 2]) + np.abs(taken13))
    excess = np.sign(excess) * np.maximum(np.abs(excess) - lost13, 0.0)
    mu = -excess / h33
    return h11 + excess * mu, -ratio12 - mu * ratio23, mu


def cheap_rho(centered: Centered, projection: Projection, candidates: np.ndarray, others: int) -> np.ndarray:
    """Upper bound of rho in O(n), from the largest correlation of each literal before any projection.

    Let q_i be the norm of the projection of literal i on the chosen literals. Then ``|corr~_ij| <= (|corr_ij|
    + q_i q_j) / sqrt((1 - q_i^2) (1 - q_j^2))``. This grows with q_j, so the largest q_j gives the bound.
    """
    if others == 0 or not len(candidates):
        return np.zeros(len(candidates))
    degenerate = projection.variances <= RIDGE  # a degenerate literal correlates with nothing
    original = np.where(degenerate, 1.0, centered.variances[candidates])
    squares = np.where(degenerate, 0.0, (projection.residuals**2).sum(axis=0) / original)
    largest = squares.max()
    top = np.where(degenerate, 0.0, centered.row_max[candidates] + np.sqrt(squares * largest))
    return np.asarray(others * top / np.sqrt((1 - squares) * (1 - largest)))


def exact_rho(centered: Centered, projection: Projection, candidates: np.ndarray, others: int) -> np.ndarray:
    """Sum of the ``others`` largest absolute correlations that each candidate has left. Cost n^2."""
    n = len(candidates)
    if others == 0 or n <= 1:
        return np.zeros(n)
    remaining = centered.covariance[candidates[:, None], candidates]
    for row in projection.residuals:
        remaining -= row[:, None] * row
    scale = 1 / np.sqrt(projection.variances)
    scale[projection.variances <= RIDGE] = 0.0  # a degenerate literal correlates with nothing
    correlations = np.abs(remaining) * scale[:, None] * scale
    np.fill_diagonal(correlations, 0)
    if others >= n - 1:
        return np.asarray(correlations.sum(axis=1))
    return np.asarray(np.partition(correlations, n - others, axis=1)[:, n - others :].sum(axis=1))


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound ``base - sum of the r largest gains``, with one gain per candidate."""

    base: float
    gains: np.ndarray
    multipliers: tuple[float, float]  # eta, mu
    value: float

    def screen(self, cutoff: float, r: int) -> tuple[np.ndarray, float]:
        """Positions of the candidates that a set bounded below ``cutoff`` may hold, and the bound of the rest."""
        n = len(self.gains)
        top = np.partition(self.gains, n - r)[n - r :]
        others = np.inf if np.isinf(top[1:]).any() else top[1:].sum()  # partition puts the smallest first
        bounds = np.maximum(self.base - others - self.gains, self.value)
        return np.flatnonzero(bounds < cutoff), float(bounds[bounds >= cutoff].min(initial=np.inf))

    def forces_best(self, cutoff: float, r: int) -> bool:
        """Whether every set bounded below ``cutoff`` holds the candidate of the largest gain."""
        n = len(self.gains)
        others = np.sort(np.partition(self.gains, n - r - 1)[n - r - 1 :])[:-1]
        return bool(self.base - others.sum() >= cutoff)


def climb(
    projection: Projection,
    rho: np.ndarray,
    r: int,
    limits: tuple[float, float],
    start: tuple[float, float],
    steps: int = 2,
) -> Bound:
    """Bound the objective that ``r`` more candidates can reach, by a few ascent steps from multipliers ``start``.

    Each step takes the r largest gains and moves to the best multipliers for that set. The bound is concave in
    the multipliers, so it rises fast, and the bound of every step is valid. ``limits`` is (low, high).
    """
    a, n = projection.vectors, len(rho)
    unbounded = rho >= 1  # the gain of such a literal has no bound
    scale = 1 / np.where(unbounded, 1.0, 1 - rho)
    any_unbounded, sizes = bool(unbounded.any()), np.abs(projection.form)
    best, top, (eta, mu) = None, None, start
    for _ in range(steps):
        if top is not None:
            _, eta, mu = map(float, saddle(projection.form - (a[:, top] * scale[top]) @ a[:, top].T, *limits))
        gains = (a[0] + eta * a[1] + mu * a[2]) ** 2 * scale
        if any_unbounded:
            gains[unbounded] = np.inf
        top = np.argpartition(gains, n - r)[n - r :] if n > r else np.arange(n)
        y = np.array([1.0, eta, mu])
        price = 0.0 if mu == 0 else 2 * min(mu * limits[0], mu * limits[1])
        base = float(y @ projection.form @ y) + price
        base -= _ROUNDING * (float(np.abs(y) @ sizes @ np.abs(y)) + abs(price))
        bound = Bound(base, gains, (eta, mu), base - float(gains[top].sum()))
        if best is None or bound.value > best.value:
            best = bound
        if not np.isfinite(bound.value):
            break
    assert best is not None
    return best
