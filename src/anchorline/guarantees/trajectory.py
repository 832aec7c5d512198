r"""The iterates of Algorithm 1, compared with the bounds that the paper proves for them.

Here an explanation is the vector of its terms, with the intercept first: :math:`w_t` for an iterate,
:math:`\widehat w` for the best sum of at most k terms in the box. The proofs need Assumption 1 for all columns,
including that of a flipping constant. If the constant never flips, pass the result of
``check_regularity(..., constant=True)``; the same proofs then hold with the constants of that sample.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from anchorline.errors import ParameterError
from anchorline.guarantees._checks import checked_count
from anchorline.guarantees.regularity import Regularity, largest_norm
from anchorline.guarantees.theorems import iht_constants, iht_residual_bound


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
