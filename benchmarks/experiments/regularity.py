r"""Assumption 1 of the paper on a given sample, and the trajectory of Algorithm 1 beside the bounds proved for it.

Literal j of a row is the agreement :math:`a_j = 1 - 2 F_j`, with mean :math:`\nu = 1 - 2p = \tanh(\sigma/2)` and
variance :math:`\lambda = 4 p (1 - p)`. Centered at the *population* mean it is :math:`\bar a_j = -2 (F_j - p)`.
Therefore the moments :math:`b = \overline{F}` and :math:`G = \overline{F F^\top}` determine everything:

.. math:: \widehat H = \overline{\bar a \bar a^\top} = 4 (G - p\, b \mathbf 1^\top - p\, \mathbf 1 b^\top + p^2),
          \qquad \bar\zeta = \overline{\bar a} = -2 (b - p)

**The constant.** The paper's lemma assumes that every coordinate flips, the constant included. The constant here
never flips. It is a literal with :math:`b_0 = 0` and zeros in G. Its entry :math:`\widehat H_{00} = 4 p^2 =
e^{-\sigma} \lambda` is below the paper's :math:`\alpha = \tfrac{17}{18} \lambda` once :math:`\sigma > \ln(18/17)`,
for every sample. Therefore only the literals are checked. ``constant=True`` instead adds that column and checks
the condition that the convergence proofs really use, the paper's Definition "Orthogonal RSC/RSS": bounds along
*anchored* directions, whose entries sum to zero. In these directions even an infinite sample has no more convexity
than :math:`\lambda (1 + (s - 1) e^{-\sigma}) / s`.

**The trajectory.** There an explanation is the vector of its terms, with the intercept first: :math:`w_t` for an
iterate, :math:`\widehat w` for the best sum of at most k terms in the box. The proofs need Assumption 1 for all
columns, including that of a flipping constant. If the constant never flips, pass the result of
``check_regularity(..., constant=True)``; the same proofs then hold with the constants of that sample.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from anchorline.errors import ParameterError, SampleError
from anchorline.guarantees.intervals import checked_count, checked_positive
from anchorline.paper.theorems import iht_constants, iht_residual_bound

Verdict = Literal["certified", "refuted", "cannot tell"]

_ROUNDING = 1e-12  # relative, and far larger than the error of the computed eigenvalues
_DESCENTS = 64  # number of supports from which a local search starts


@dataclass(frozen=True, kw_only=True)
class Regularity:
    r"""Extreme curvatures :math:`w^\top \widehat H w / \|w\|^2` over sparse w: attained values and proved limits.

    ``lowest`` and ``highest`` are attained on ``lowest_support`` and ``highest_support``, so they can refute
    Assumption 1. No w with at most ``order`` non-zeros has a curvature outside ``certified_low`` to
    ``certified_high``, so these can certify it. ``mean_norm`` is the exact norm of property (ii), and Assumption 1
    allows at most ``mean_tolerance``. If the constant was added, it is column 0, and literal j is column j + 1.
    `check_regularity` builds this object.

    >>> sample = check_regularity(np.array([0.5, 0.5]), np.array([[0.5, 0.25], [0.25, 0.5]]), 0.5, k=1)
    >>> sample.verdict, sample.lowest, round(sample.rho, 4)
    ('certified', 1.0, 0.1053)
    """

    order: int
    alpha: float
    beta: float
    lowest: float
    highest: float
    lowest_support: tuple[int, ...]
    highest_support: tuple[int, ...]
    certified_low: float
    certified_high: float
    mean_norm: float
    mean_tolerance: float

    @property
    def convexity(self) -> Verdict:
        """Whether every curvature is at least alpha."""
        return _verdict(self.certified_low >= self.alpha, self.lowest < self.alpha * (1 - _ROUNDING))

    @property
    def smoothness(self) -> Verdict:
        """Whether every curvature is at most beta."""
        return _verdict(self.certified_high <= self.beta, self.highest > self.beta * (1 + _ROUNDING))

    @property
    def centering(self) -> Verdict:
        """Whether property (ii) holds at the tolerance of Assumption 1; the answer is never undecided."""
        return "certified" if self.mean_norm <= self.mean_tolerance else "refuted"

    @property
    def verdict(self) -> Verdict:
        """Whether Assumption 1 holds: certified if all three parts are, refuted if one part is."""
        parts = (self.convexity, self.smoothness, self.centering)
        return _verdict(all(part == "certified" for part in parts), "refuted" in parts)

    @property
    def rho(self) -> float:
        r"""Contraction rate of Algorithm 1 that is proved for this sample, at step :math:`1/\beta`.

        .. math:: \rho = 2 \max\{1 - \ell/\beta,\; h/\beta - 1\}, \qquad [\ell, h] \text{ certified}

        A rate of 1 or more guarantees nothing. The rate is at most 4/19 if Assumption 1 is certified. The paper's
        rate is 51/152, because it adds 1/8 for the part of the gradient along x, by property (ii). But
        explanations lie in a hyperplane normal to x, so the projection onto them ignores that part, and property
        (ii) is not needed.
        """
        return 2 * max(1 - self.certified_low / self.beta, self.certified_high / self.beta - 1)


def check_regularity(
    flip_means: np.ndarray,
    second_moments: np.ndarray,
    flip_probability: float,
    k: int,
    *,
    order: int | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    constant: bool = False,
    n_supports: int = 1000,
    rng: np.random.Generator | None = None,
) -> Regularity:
    r"""Check Assumption 1 on the moments of one sample: ``flip_means`` (d,) and ``second_moments`` (d, d).

    .. math:: \alpha \|w\|_2^2 \le w^\top \widehat H w \le \beta \|w\|_2^2
              \quad\text{and}\quad |\bar\zeta^\top w| \le \omega \|w\|_2
              \quad\text{for all } \|w\|_0 \le s

    with :math:`\omega = \beta / (16 \nu \sqrt s)`. The default order is s = 3k, and the defaults of alpha and beta
    are the paper's :math:`\alpha, \beta = \lambda (1 \mp \tfrac1{18})`. Lemma "Orthogonal RSC/RSS", properties (i)
    and (ii).

    - A support can *refute* it. The search tries ``n_supports`` random supports and each column with the s - 1
      columns it correlates with most. From the best of these it takes power steps truncated to s entries.
    - The better of two bounds can *certify* it. Gershgorin: each eigenvalue of a block lies within
      :math:`r_j = \sum` of the s - 1 largest :math:`|\widehat H_{ij}|, i \ne j`, of some :math:`\widehat
      H_{jj}`. Interlacing: it lies between the extreme eigenvalues of the whole :math:`\widehat H`. The first
      bound is better if d is far above s^2, otherwise the second; at s >= d the second is exact.
    - Property (ii) needs no search, because its supremum is the l2 norm of the s largest :math:`|\bar\zeta_j|`.

    ``constant`` adds the column that never flips as column 0 and restricts w to sum zero. Property (ii) is then
    void. Cost O(d^3 + (d + n_supports) s^3). ``rng`` draws the random supports; by default it is a generator with
    a fixed seed. Mutates nothing.

    >>> flips = np.random.default_rng(0).random((40_000, 6)) < 0.5
    >>> check_regularity(flips.mean(0), flips.T.astype(float) @ flips / 40_000, 0.5, k=2).verdict
    'certified'
    >>> few = flips[:100]
    >>> check_regularity(few.mean(0), few.T.astype(float) @ few / 100, 0.5, k=2).verdict
    'refuted'
    """
    p = checked_positive("flip_probability", flip_probability, 0.5, example=0.27)
    constants = iht_constants(math.log((1 - p) / p))
    alpha = constants.alpha if alpha is None else checked_positive("alpha", alpha, example=0.7)
    beta = constants.beta if beta is None else checked_positive("beta", beta, example=0.8)
    k, n_supports = checked_count("k", k), checked_count("n_supports", n_supports, minimum=0)
    requested_order = 3 * k if order is None else checked_count("order", order, minimum=2 if constant else 1)
    void = constant or constants.nu == 0

    means, matrix = _centered(flip_means, second_moments, p, constant)
    order = min(requested_order, len(means))  # a larger order gives the same condition
    spectrum = _eigenvalues(matrix, constant)
    low, high = _certified(matrix, spectrum, order)
    starts = _starts(matrix, order, n_supports, np.random.default_rng(0) if rng is None else rng)
    lowest, lowest_support = _search(matrix, starts, float(spectrum[-1]), constant)
    negated, highest_support = _search(-matrix, starts, -float(spectrum[0]), constant)
    return Regularity(
        order=order,
        alpha=alpha,
        beta=beta,
        lowest=lowest,
        highest=-negated,
        lowest_support=lowest_support,
        highest_support=highest_support,
        certified_low=low,
        certified_high=high,
        mean_norm=largest_norm(means, order),
        mean_tolerance=math.inf if void else beta / (16 * constants.nu * math.sqrt(requested_order)),
    )


def largest_norm(values: np.ndarray, order: int) -> float:
    r"""Return the largest l2 norm of ``order`` coordinates, the maximum of a linear form on sparse unit vectors.

    .. math:: \sup_{\|u\|_0 \le s,\ \|u\|_2 = 1} |v^\top u| = \max_{|S| \le s} \|v_S\|_2

    Property (ii) is this number for the centered means. For the gradient at the optimum it is :math:`\xi`.

    >>> largest_norm(np.array([3.0, -1.0, 4.0]), 2)
    5.0
    """
    ordered = np.sort(np.abs(np.asarray(values, dtype=np.float64)))[::-1]
    return float(np.linalg.norm(ordered[: checked_count("order", order)]))


def _verdict(certified: bool, refuted: bool) -> Verdict:
    return "certified" if certified else "refuted" if refuted else "cannot tell"


def _centered(
    flip_means: np.ndarray, second_moments: np.ndarray, p: float, constant: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and second moments of the agreements, centered at the population mean, with the constant first."""
    b, gram = np.asarray(flip_means, dtype=np.float64), np.asarray(second_moments, dtype=np.float64)
    if b.ndim != 1 or not b.size or gram.shape != (b.size, b.size):
        raise SampleError(
            f"Flip means have shape {b.shape} and second moments {gram.shape}, but they must have the shapes (d,) "
            "and (d, d) with d >= 1. Type evidence.flip_means, evidence.second_moments."
        )
    if not (np.isfinite(b).all() and np.isfinite(gram).all()):
        raise SampleError(
            "Flip means or second moments hold NaN or infinite values, but all of them must be finite. "
            "Type evidence.flip_means, evidence.second_moments."
        )
    if constant:
        b, gram = np.append(0.0, b), np.pad(gram, (1, 0))
    return -2 * (b - p), 4 * (gram - p * b[:, None] - p * b + p * p)


def _basis(size: int, anchored: bool) -> np.ndarray:
    """Orthonormal columns that span all directions, or the directions of sum zero if anchored."""
    if not anchored:
        return np.eye(size)
    return np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, 1:]]))[0][:, 1:]


def _eigenvalues(blocks: np.ndarray, anchored: bool) -> np.ndarray:
    """Eigenvalues, ascending, of symmetric matrices (..., s, s), on the directions of sum zero if anchored."""
    basis = _basis(blocks.shape[-1], anchored)
    return np.linalg.eigvalsh(basis.T @ blocks @ basis if anchored else blocks)


def _certified(matrix: np.ndarray, spectrum: np.ndarray, order: int) -> tuple[float, float]:
    """Limits of every eigenvalue of every block of ``order`` columns, by Gershgorin or interlacing."""
    off = np.abs(matrix)
    np.fill_diagonal(off, 0.0)
    largest = np.partition(off, len(off) - order, axis=1)[:, len(off) - order :]
    radii = largest.sum(axis=1) - largest.min(axis=1)  # the s - 1 largest
    diagonal = np.diagonal(matrix)
    low = max(float((diagonal - radii).min()), float(spectrum[0]))
    high = min(float((diagonal + radii).max()), float(spectrum[-1]))
    return low - _ROUNDING * high, high * (1 + _ROUNDING)


def _starts(matrix: np.ndarray, order: int, n_supports: int, rng: np.random.Generator) -> np.ndarray:
    """Return supports (r, order): each column with the columns it correlates with most, and random supports."""
    d = len(matrix)
    if order == d:
        return np.arange(d)[None, :]
    near = np.abs(matrix)
    np.fill_diagonal(near, np.inf)  # the column itself always comes first
    return np.vstack([_largest(near, order), _largest(rng.random((n_supports, d)), order)])


def _search(
    matrix: np.ndarray, starts: np.ndarray, ceiling: float, anchored: bool
) -> tuple[float, tuple[int, ...]]:
    """Smallest eigenvalue over the starting supports and the descents from the best of them, and its support."""
    values = _eigenvalues(matrix[starts[:, :, None], starts[:, None, :]], anchored)[:, 0]
    basis = _basis(starts.shape[1], anchored)
    best = np.argsort(values, kind="stable")[:_DESCENTS]
    value, support = min((_descend(matrix, starts[i], ceiling, basis) for i in best), key=lambda result: result[0])
    return value, tuple(sorted(support.tolist()))


def _descend(
    matrix: np.ndarray, support: np.ndarray, ceiling: float, basis: np.ndarray
) -> tuple[float, np.ndarray]:
    r"""Lower the smallest eigenvalue of a block by power steps on its eigenvector, cut to the s largest entries.

    The step :math:`v \mapsto (c I - H) v` with ``ceiling`` :math:`c \ge \lambda_{\max}(H)` favors small curvature.
    The smallest eigenvalue of each new support is its score. The descent ends when the score does not improve.
    """
    best, best_support = math.inf, support
    while True:
        values, vectors = np.linalg.eigh(basis.T @ matrix[np.ix_(support, support)] @ basis)
        if not values[0] < best - _ROUNDING * abs(ceiling):
            return best, best_support
        best, best_support = float(values[0]), support
        vector = basis @ vectors[:, 0]
        step = -matrix[:, support] @ vector
        step[support] += ceiling * vector
        support = _largest(np.abs(step)[None, :], len(support))[0]


def _largest(rows: np.ndarray, count: int) -> np.ndarray:
    """Indices of the ``count`` largest entries of each row, in any order."""
    return np.argpartition(-rows, count - 1, axis=1)[:, :count]


@dataclass(frozen=True, kw_only=True, eq=False)
class Trajectory:
    r"""One number per iterate, start included, with the paper's bounds; `follow_trajectory` builds it.

    ``objectives`` :math:`\widehat{\mathsf F}(w_t)`, ``distances`` :math:`\|w_t - \widehat w\|_2`, ``norms``
    :math:`\|w_t\|_1` and ``gradient_norms``, the largest l2 norm of 3k coordinates of :math:`\nabla L(w_t)`.
    ``xi`` is that norm at :math:`\widehat w`, and ``xi_bound`` is its bound. ``radius`` is B. ``floor`` is
    :math:`2 \xi / \beta`, the distance that one iteration may add after shrinking it by ``rho``.

    >>> start, goal = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    >>> path = follow_trajectory([start, goal], lambda w: 0.0, np.zeros_like, goal, k=1, sigma=0.0)
    >>> path.norms.tolist(), path.contractions.tolist(), path.broken()
    ([1.0, 1.0], [0.0], ())
    """

    objectives: np.ndarray
    distances: np.ndarray
    norms: np.ndarray
    gradient_norms: np.ndarray
    xi: float
    xi_bound: float
    floor: float
    rho: float
    radius: float

    def __post_init__(self) -> None:
        for array in (self.objectives, self.distances, self.norms, self.gradient_norms):
            array.setflags(write=False)

    @property
    def contractions(self) -> np.ndarray:
        r"""Observed contraction factors, one per step.

        .. math:: (\|w_t - \widehat w\| - 2\xi/\beta)_+ / \|w_{t-1} - \widehat w\|

        By the convergence lemma they are at most rho. A factor is 0 if the optimum was already reached and kept.
        """
        above = np.maximum(self.distances[1:] - self.floor, 0.0)
        safe = np.where(self.distances[:-1] > 0, self.distances[:-1], 1.0)
        return np.where(self.distances[:-1] > 0, above / safe, np.where(above > 0, np.inf, 0.0))

    @property
    def distance_bounds(self) -> np.ndarray:
        r"""Bounds :math:`\rho^t \|w_0 - \widehat w\|_2 + 2\xi / (\beta (1 - \rho))`; infinite if rho >= 1."""
        if self.rho >= 1:
            return np.full(len(self.distances), np.inf)
        shrinking: np.ndarray = self.rho ** np.arange(len(self.distances)) * self.distances[0]
        return shrinking + self.floor / (1 - self.rho)

    def broken(self, tolerance: float = 1e-9) -> tuple[str, ...]:
        """Names of the inequalities that fail by more than ``tolerance``; empty if all of them hold.

        "residual" fails if xi is above its bound, "descent" if an objective rises or starts above 1, "radius" if a
        norm is above B, and "contraction" if a step shrinks the distance by less than rho, beyond the floor.
        """
        steps = self.distances[1:] - self.rho * self.distances[:-1] - self.floor
        excess = {
            "residual": self.xi - self.xi_bound,
            "descent": max(self.objectives[0] - 1, np.diff(self.objectives).max(initial=-np.inf)),
            "radius": self.norms.max() - self.radius,
            "contraction": steps.max(initial=-np.inf),
        }
        return tuple(name for name, value in excess.items() if not value <= tolerance)  # NaN counts as a failure


def follow_trajectory(
    iterates: Sequence[np.ndarray],
    objective: Callable[[np.ndarray], float],
    gradient: Callable[[np.ndarray], np.ndarray],
    reference: np.ndarray,
    *,
    k: int,
    sigma: float,
    regularity: Regularity | None = None,
) -> Trajectory:
    r"""Compare the iterates of Algorithm 1, run with the step :math:`1/\beta`, with its lemmas.

    .. math:: \widehat{\mathsf F}(w_t) \le \widehat{\mathsf F}(w_{t-1}) \le 1, \quad
              \|w_t\|_1 \le B = k + 4 \sqrt{k/\alpha}, \quad
              \|w_t - \widehat w\|_2 \le \rho \|w_{t-1} - \widehat w\|_2 + \tfrac{2\xi}{\beta}, \quad
              \xi = \max_{|S| \le 3k} \|\nabla_S L(\widehat w)\|_2 \le 2 \sqrt{3k \widehat{\mathsf F}(\widehat w)}

    Lemmas "Convergence of IHT" and "Trajectory Bounds". ``objective`` is :math:`\widehat{\mathsf F}` and
    ``gradient`` is the gradient of :math:`L = 2 \widehat{\mathsf F}`; both take a vector of terms. ``reference``
    is :math:`\widehat w`. The constants are the paper's. If ``regularity`` is given, its beta, its certified lower
    bound in place of :math:`\alpha`, and its rho are used instead. Collect the iterates with
    ``solve_iht(..., watch=...)``. Calls each function once per iterate. Mutates nothing.

    >>> goal = np.array([0.5, 0.5, 0.0])  # |w - goal|^2 / 4 is the loss of a full sample at sigma = 0
    >>> path = follow_trajectory(
    ...     [np.array([1.0, 0.0, 0.0]), np.array([0.6, 0.4, 0.0]), goal],
    ...     lambda w: float(np.sum((w - goal) ** 2)) / 4,
    ...     lambda w: w - goal,
    ...     goal,
    ...     k=2,
    ...     sigma=0.0,
    ... )
    >>> path.contractions.round(6).tolist(), path.xi, path.broken()
    ([0.2, 0.0], 0.0, ())
    """
    k, paper = checked_count("k", k), iht_constants(sigma)
    alpha, beta, rho = paper.alpha, paper.beta, paper.rho
    if regularity is not None:
        alpha, beta, rho = max(regularity.certified_low, 0.0), regularity.beta, regularity.rho
    steps, goal = np.array(iterates, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if steps.ndim != 2 or goal.shape != steps.shape[1:] or not len(steps):
        raise ParameterError(
            f"Iterates have shape {steps.shape} and the reference has shape {goal.shape}, but they must have the "
            "shapes (t, d + 1) and (d + 1,) with t >= 1. "
            "Type watch=lambda terms, objective: iterates.append(terms)."
        )
    xi = largest_norm(gradient(goal), 3 * k)
    return Trajectory(
        objectives=np.array([objective(terms) for terms in steps], dtype=np.float64),
        distances=np.linalg.norm(steps - goal, axis=1),
        norms=np.abs(steps).sum(axis=1),
        gradient_norms=np.array([largest_norm(gradient(terms), 3 * k) for terms in steps]),
        xi=xi,
        xi_bound=iht_residual_bound(k, objective(goal)),
        floor=2 * xi / beta,
        rho=rho,
        radius=k + 4 * math.sqrt(k / alpha) if alpha > 0 else math.inf,
    )
