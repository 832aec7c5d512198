"""Code that the adapters of external solvers share: the program, lazy imports, statuses and the report."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from anchorline.errors import (
    BackendError,
    InfeasibleError,
    MissingDependencyError,
    NumericalError,
    ParameterError,
)
from anchorline.paper.problem import Problem, Solution, Status

BOUND_TOLERANCE = 1e-7  # in units of the program; a backend's bound may be too high by this much
_DIAGONAL_SHARE = 0.999  # share of the smallest eigenvalue moved to the diagonal; the rest stays convex
_MAX_OPTIMAL_GAP = 1e-4  # an optimal answer may be above its bound by at most this share of mean t^2
_MIN_UNIT = 1e-4  # a smaller unit would make coefficients too large for the backends
_SINGULAR = 1e-9  # a smallest eigenvalue below this is rounding, and no share of it can be moved


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    r"""The paper's (MIP) in terms of the statistics, for a problem with a box.

    .. math:: \min_{u, u_0, z}\ u^\top G u - 2 h^\top u + \tfrac1n\|t\|_2^2 \quad\text{s.t.}\quad
              u_0 + \textstyle\sum_j u_j = f(x),\ z_0 + \textstyle\sum_j z_j \le k,\
              |u_j| \le \text{box}\, z_j,\ |u_0| \le \text{box}\, z_0,\ z \in \{0, 1\}^{d+1}

    ``second`` is G (d, d), ``cross`` is h (d,) and ``constant`` is the mean of t^2. All are in units of about that
    mean, because the backends' tolerances are absolute. The box is the big M, and it is part of the problem.
    """

    second: np.ndarray
    cross: np.ndarray
    constant: float
    k: int
    prediction: float
    box: float

    @classmethod
    def from_problem(cls, problem: Problem) -> Self:
        """Build the program of a problem; raise `ParameterError` if the problem has no box."""
        evidence, unit = problem.evidence, _unit(problem)
        return cls(
            second=evidence.second_moments / unit,
            cross=evidence.cross_moments / unit,
            constant=evidence.drop_square / unit,
            k=int(problem.k),
            prediction=float(problem.prediction),
            box=require_box(problem),
        )

    @property
    def n_literals(self) -> int:
        """Number of literals d."""
        return len(self.cross)

    def split(self) -> tuple[np.ndarray, np.ndarray]:
        r"""Diagonal D (d,) and convex rest R (d, d) with :math:`G = \mathrm{diag}(D) + R`.

        .. math:: D_j = \lambda\, G_{jj},\quad \lambda = 0.999\, \lambda_{\min}(G_{ij} / \sqrt{G_{ii} G_{jj}})

        Flips are nearly independent, so D holds most of the convexity of G. D is zero if G is singular. A solver
        may bound :math:`D_j u_j^2` by its perspective :math:`D_j u_j^2 / z_j`, which is far tighter than the box.
        Cost d^3.
        """
        root = np.sqrt(np.diagonal(self.second))
        used = root > 0  # a literal that never flips has an empty row and is left out
        scaled = (self.second / np.outer(root + ~used, root + ~used))[np.ix_(used, used)]
        smallest = float(np.linalg.eigvalsh(scaled)[0]) if used.any() else 0.0
        diagonal = (_DIAGONAL_SHARE * smallest if smallest > _SINGULAR else 0.0) * root**2
        return diagonal, self.second - np.diag(diagonal)


def _unit(problem: Problem) -> float:
    return min(max(problem.evidence.drop_square, _MIN_UNIT), 1.0)


def require_box(problem: Problem) -> float:
    """Return the box; raise `ParameterError` if there is none, because an invented bound would prove nothing."""
    if problem.box is None:
        raise ParameterError(
            "box is None, but this solver needs a box, which bounds every term. "
            "Type Problem(..., box=1.0), or use the solver 'exact', which needs no box."
        )
    return float(problem.box)


def import_backend(package: str, extra: str) -> Any:
    """Import an optional package on first use, or raise `MissingDependencyError`, which names the extra."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingDependencyError.for_package(package, extra) from error


def status_of(answer: object, statuses: Mapping[Any, Status], backend: str) -> Status:
    """Translate a backend's status; an unknown status raises `BackendError`."""
    if answer not in statuses:
        raise BackendError(
            f"{backend} ended with status {answer!r}, but it must be one of {', '.join(map(str, statuses))}. "
            "Its answer cannot be interpreted. Use the solver 'exact' instead."
        )
    return statuses[answer]


def report(
    problem: Problem, support: np.ndarray | None, dual_bound: float, status: Status, n_nodes: int
) -> Solution:
    """Build the solution of a support: refit it inside the box and recompute the objective.

    ``support`` is None if the backend found no solution. At a limit, the answer is then the intercept alone, if
    that is feasible. The dual bound, in units of the program, holds up to the tolerance of the backend, which is
    subtracted.
    """
    contributions, intercept = np.zeros(problem.n_literals), float(problem.prediction)
    objective, lower_bound = np.inf, max(0.0, (dual_bound - BOUND_TOLERANCE) * _unit(problem))
    if status is not Status.INFEASIBLE:
        try:
            contributions, intercept = problem.fit(np.zeros(0, dtype=np.intp) if support is None else support)
            objective = problem.objective(contributions)
        except NumericalError:
            status = Status.NUMERICAL
        except InfeasibleError as error:
            if support is not None:
                raise BackendError(
                    f"The backend chose terms that are feasible only within its tolerance. {error}"
                ) from error
    if status is Status.OPTIMAL and objective - lower_bound > _MAX_OPTIMAL_GAP * problem.evidence.drop_square:
        status = Status.LIMIT  # the backend stopped at its own tolerance, which is absolute
    return Solution(
        contributions=contributions,
        intercept=intercept,
        objective=objective,
        lower_bound=0.0 if status in (Status.INFEASIBLE, Status.NUMERICAL) else min(objective, lower_bound),
        status=status,
        n_nodes=n_nodes,
    )
