r"""Lower bounds for the exact solver, by duality and diagonal dominance.

Centre the statistics: ``S = cov F``, ``s = cov(F, t)``, ``b = mean F``, ``tbar = mean t``. Then the
fidelity error is ``var t + u'Su - 2 s'u + (tbar - b'u)^2``, and the square, the only strong coupling,
goes away by duality: for every eta, and every mu that prices the sum of the contributions,

.. math:: q(u) \ge \operatorname{var} t + u^\top S u - 2 (s + \eta b + \mu \mathbf 1)^\top u
          + 2 \eta \bar t - \eta^2 + 2 \min(\mu\,\text{low}, \mu\,\text{high})

Write ``Y = (1, eta, mu)``. Projecting chosen literals out of S leaves every remaining literal a
vector ``a_j = (s~, b~, 1~)_j / sqrt(D~_j)`` in R^3, and the chosen ones the 3 x 3 matrix
``sum a a'`` that is taken from the *form* ``[[var t, tbar, 0], [tbar, -1, 0], [0, 0, 0]]``.
For a set T of r more literals the bound is ``Y' form Y + 2 min(mu low, mu high) - sum_T g_j`` with

.. math:: g_j = \frac{(a_j^\top Y)^2}{1 - \rho_j}, \qquad
          \rho_j \ge \text{sum of the } r - 1 \text{ largest } |\tilde\kappa_{ij}|

where :math:`\tilde\kappa` are the correlations left: a correlation matrix minus ``diag(1 - rho)`` is
diagonally dominant. With r = 1, rho = 0 and the best Y, it is the exact value (`saddle`). The case without
intercept is only low = high.

A literal whose projected variance vanishes (always flipped, a complement, a duplicate) gets the
variance `RIDGE` instead: a penalty of at most ``RIDGE u_j^2``, and no special case anywhere. It also puts
numbers of size 1 / RIDGE into the form, whose differences lose most of their digits. So whatever rounding may
have added is taken off: a bound may come out lower than it is, never higher.
"""

from dataclasses import dataclass

import numpy as np

from anchorline.optimize.evidence import Evidence

RIDGE = 1e-13
_VANISHES = 1e-11  # projected variance, as a share of its own, that is rounding noise
_LOST = 64 * np.finfo(np.float64).eps  # share of a difference's two sides that rounding may have added to it


@dataclass(frozen=True, eq=False)
class Centered:
    """Centred statistics of a sample, shared by all nodes; read-only."""

    covariance: np.ndarray  # S, (d, d)
    variances: np.ndarray  # its diagonal
    rows: np.ndarray  # s, b and 1, (3, d)
    form: np.ndarray  # (3, 3)
    row_max: np.ndarray  # largest |correlation| of each literal with another

    @classmethod
    def of(cls, evidence: Evidence) -> "Centered":
        """Centre the moments. Cost d^2."""
        b, tbar = evidence.flip_means, evidence.drop_mean
        covariance = evidence.second_moments - b[:, None] * b
        # In units of the largest standard deviation, so that rare flips do not look degenerate.
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
    """What is left of the candidates once the chosen literals are projected out."""

    form: np.ndarray  # the form less the chosen literals', (3, 3)
    vectors: np.ndarray  # a_j, (3, n)
    residuals: np.ndarray  # rows of the projection, (p, n): S~ = S - residuals' residuals
    variances: np.ndarray  # D~, (n,), at least RIDGE

    def values(self, low: float, high: float) -> np.ndarray:
        """Exact value of the chosen literals with each candidate added, (n,)."""
        a = self.vectors
        form = self.form[:, :, None] - a[:, None, :] * a[None, :, :]
        return saddle(form, low, high)[0]

    def restrict(self, kept: np.ndarray) -> "Projection":
        """Keep some of the candidates, given by position."""
        return Projection(self.form, self.vectors[:, kept], self.residuals[:, kept], self.variances[kept])


def project(centered: Centered, chosen: tuple[int, ...], candidates: np.ndarray) -> Projection:
    """Project the chosen literals out: one rank-one update for each. Cost p^2 n."""
    p = len(chosen)
    index = np.concatenate([np.array(chosen, dtype=np.intp), candidates])
    residuals = centered.covariance[np.array(chosen, dtype=np.intp)[:, None], index]
    own = centered.variances[index]
    rows, variances, form = centered.rows[:, index], own.copy(), centered.form.copy()
    for i in range(p):
        if variances[i] <= _VANISHES * own[i] + RIDGE:
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
    gone = variances[p:] <= _VANISHES * own[p:] + RIDGE
    rows = rows[:, p:]
    rows[0, gone] = 0.0  # cov(0, t) = 0: what is left is rounding
    rows[1:, gone] = np.where(np.abs(rows[1:, gone]) <= 1e-9, 0.0, rows[1:, gone])
    left = np.where(gone, RIDGE, variances[p:])
    return Projection(form, rows / np.sqrt(left), residuals[:, p:], left)


def saddle(form: np.ndarray, low: float, high: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Largest value of ``Y' form Y + 2 min(mu low, mu high)`` over eta and mu, and where: (value, eta, mu).

    ``form`` is (3, 3) or (3, 3, n). Eliminate eta; then the sum of the contributions at mu = 0 is
    ``-h13``, and if it lies a distance e outside [low, high] the value rises by ``e^2 / -h33``. Each of
    these is rounded to where the value is lower.
    """
    ratio12, ratio23 = form[0, 1] / form[1, 1], form[1, 2] / form[1, 1]
    taken11, taken13, taken33 = form[0, 1] * ratio12, form[0, 1] * ratio23, form[1, 2] * ratio23
    h11, h13, h33 = form[0, 0] - taken11, form[0, 2] - taken13, form[2, 2] - taken33
    h11 = h11 - _LOST * (np.abs(form[0, 0]) + np.abs(taken11))
    h33 = np.minimum(h33 + _LOST * (form[2, 2] + taken33), -1e-30)  # both below 0; 0 without literals
    excess = np.minimum(np.maximum(-h13, low), high) + h13
    lost13 = _LOST * (np.abs(form[0, 2]) + np.abs(taken13))
    excess = np.sign(excess) * np.maximum(np.abs(excess) - lost13, 0.0)
    mu = -excess / h33
    return h11 + excess * mu, -ratio12 - mu * ratio23, mu


def cheap_rho(centered: Centered, projection: Projection, candidates: np.ndarray, others: int) -> np.ndarray:
    """Upper bound of rho in O(n), from each literal's largest correlation before any projection.

    With q_i the norm of i's projection on the chosen literals, ``|corr~_ij| <= (|corr_ij| + q_i q_j)
    / sqrt((1 - q_i^2) (1 - q_j^2))``, which grows with q_j: take the largest.
    """
    if others == 0 or not len(candidates):
        return np.zeros(len(candidates))
    gone = projection.variances <= RIDGE  # such a literal correlates with nothing
    own = np.where(gone, 1.0, centered.variances[candidates])
    squares = np.where(gone, 0.0, (projection.residuals**2).sum(axis=0) / own)
    largest = squares.max()
    top = np.where(gone, 0.0, centered.row_max[candidates] + np.sqrt(squares * largest))
    return np.asarray(others * top / np.sqrt((1 - squares) * (1 - largest)))


def exact_rho(centered: Centered, projection: Projection, candidates: np.ndarray, others: int) -> np.ndarray:
    """Sum of the ``others`` largest correlations, in size, that each candidate has left with another. Cost n^2."""
    n = len(candidates)
    if others == 0 or n <= 1:
        return np.zeros(n)
    left = centered.covariance[candidates[:, None], candidates]
    for row in projection.residuals:
        left -= row[:, None] * row
    scale = 1 / np.sqrt(projection.variances)
    scale[projection.variances <= RIDGE] = 0.0  # a literal that is gone correlates with nothing
    correlations = np.abs(left) * scale[:, None] * scale
    np.fill_diagonal(correlations, 0)
    if others >= n - 1:
        return np.asarray(correlations.sum(axis=1))
    return np.asarray(np.partition(correlations, n - others, axis=1)[:, n - others :].sum(axis=1))


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound ``base - sum of the r largest gains``, separable over the candidates."""

    base: float
    gains: np.ndarray
    multipliers: tuple[float, float]  # eta, mu
    value: float

    def screen(self, cutoff: float, r: int) -> tuple[np.ndarray, float]:
        """Positions of candidates that may be in a set bounded below ``cutoff``, and the others' bound."""
        n = len(self.gains)
        top = np.partition(self.gains, n - r)[n - r :]
        others = np.inf if np.isinf(top[1:]).any() else top[1:].sum()  # partition puts the least first
        bounds = np.maximum(self.base - others - self.gains, self.value)
        return np.flatnonzero(bounds < cutoff), float(bounds[bounds >= cutoff].min(initial=np.inf))

    def forces_best(self, cutoff: float, r: int) -> bool:
        """Whether every set bounded below ``cutoff`` has the candidate of the largest gain."""
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
    """Bound what ``r`` more candidates can reach, from multipliers ``start``, climbing a few steps.

    Each step takes the r largest gains and moves to the best multipliers for that set; the bound is
    concave in them, so this rises fast, and every step's bound is valid. ``limits`` is (low, high).
    """
    a, n = projection.vectors, len(rho)
    hopeless = rho >= 1  # such a literal may gain anything
    scale = 1 / np.where(hopeless, 1.0, 1 - rho)
    any_hopeless, sizes = bool(hopeless.any()), np.abs(projection.form)
    best, top, (eta, mu) = None, None, start
    for _ in range(steps):
        if top is not None:
            _, eta, mu = map(float, saddle(projection.form - (a[:, top] * scale[top]) @ a[:, top].T, *limits))
        gains = (a[0] + eta * a[1] + mu * a[2]) ** 2 * scale
        if any_hopeless:
            gains[hopeless] = np.inf
        top = np.argpartition(gains, n - r)[n - r :] if n > r else np.arange(n)
        y = np.array([1.0, eta, mu])
        price = 0.0 if mu == 0 else 2 * min(mu * limits[0], mu * limits[1])
        base = float(y @ projection.form @ y) + price
        base -= _LOST * (float(np.abs(y) @ sizes @ np.abs(y)) + abs(price))
        bound = Bound(base, gains, (eta, mu), base - float(gains[top].sum()))
        if best is None or bound.value > best.value:
            best = bound
        if not np.isfinite(bound.value):
            break
    assert best is not None
    return best
