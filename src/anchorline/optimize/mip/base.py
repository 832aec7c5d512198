"""What the adapters of outside solvers share: the program in numbers, lazy imports, the report."""

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
from anchorline.optimize.problem import Problem, Solution, Status

_KEPT = 0.999  # share of the least eigenvalue given to the diagonal, so that the rest stays convex
_PROVES = 1e-4  # share of mean t^2 that an answer called optimal may be above its bound
LOST = 1e-7  # in units of the program: how far a backend's bound may be above what it bounds
_MIN_UNIT = 1e-4  # smaller ones would make coefficients that no backend takes well
_SINGULAR = 1e-9  # a least eigenvalue below this is rounding: nothing to give


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    r"""The paper's (MIP) on statistics, for a problem with a box.

    .. math:: \min_{u, u_0, z}\ u^\top G u - 2 h^\top u + \tfrac1n\|t\|_2^2 \quad\text{s.t.}\quad
              u_0 + \textstyle\sum_j u_j = f(x),\ z_0 + \textstyle\sum_j z_j \le k,\
              |u_j| \le \text{box}\, z_j,\
              (-\text{box} - c)\, z_0 \le u_0 - c \le (\text{box} - c)\, z_0,\ z \in \{0, 1\}^{d+1}

    ``second`` is G (d, d), ``cross`` is h (d,), ``constant`` the mean of t^2, all in units of about that mean:
    the backends' tolerances are absolute. The intercept is no term
    where it equals the ``origin`` c; where c is outside the box it always is one
    (``intercept_counts``: :math:`z_0 = 1`). The box is the big M, and it is part of the problem.
    """

    second: np.ndarray
    cross: np.ndarray
    constant: float
    k: int
    prediction: float
    box: float
    origin: float

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Read the program off a problem; `ParameterError` without a box."""
        evidence, unit = problem.evidence, _unit(problem)
        return cls(
            second=evidence.second_moments / unit,
            cross=evidence.cross_moments / unit,
            constant=evidence.drop_square / unit,
            k=int(problem.k),
            prediction=float(problem.prediction),
            box=require_box(problem),
            origin=float(problem.origin),
        )

    @property
    def n_literals(self) -> int:
        """Number of literals d."""
        return len(self.cross)

    @property
    def intercept_counts(self) -> bool:
        """Whether the intercept is a term whatever its value."""
        return abs(self.origin) > self.box

    def split(self) -> tuple[np.ndarray, np.ndarray]:
        r"""Diagonal D (d,) and convex rest R (d, d) with :math:`G = \mathrm{diag}(D) + R`.

        .. math:: D_j = \lambda\, G_{jj},\quad \lambda = 0.999\, \lambda_{\min}(G_{ij} / \sqrt{G_{ii} G_{jj}})

        Flips are nearly independent, so D is most of what is convex in G; D is zero where G is
        singular. A solver may bound :math:`D_j u_j^2` by its perspective
        :math:`D_j u_j^2 / z_j`, which is far tighter than the box. Cost d^3.
        """
        root = np.sqrt(np.diagonal(self.second))
        used = root > 0  # a literal that never flips has an empty row: leave it out
        scaled = (self.second / np.outer(root + ~used, root + ~used))[np.ix_(used, used)]
        least = float(np.linalg.eigvalsh(scaled)[0]) if used.any() else 0.0
        diagonal = (_KEPT * least if least > _SINGULAR else 0.0) * root**2
        return diagonal, self.second - np.diag(diagonal)


def _unit(problem: Problem) -> float:
    return min(max(problem.evidence.drop_square, _MIN_UNIT), 1.0)


def require_box(problem: Problem) -> float:
    """Return the box, or raise `ParameterError`: an invented bound would prove nothing."""
    if problem.box is None:
        raise ParameterError(
            "box is None, and this solver bounds every term by the box. "
            "Give a box, as in Problem(..., box=1.0), or use the solver 'exact', which needs none."
        )
    return float(problem.box)


def import_backend(package: str, extra: str) -> Any:
    """Import an optional package on first use, or name the extra that brings it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingDependencyError.for_package(package, extra) from error


def status_of(answer: object, statuses: Mapping[Any, Status], backend: str) -> Status:
    """Translate a backend's status; one we do not know raises `BackendError`, it is never guessed."""
    if answer not in statuses:
        raise BackendError(
            f"{backend} ended with status {answer!r}, which is none of {', '.join(map(str, statuses))}. "
            "Nothing is known of the answer; use the solver 'exact'."
        )
    return statuses[answer]


def report(
    problem: Problem, support: np.ndarray | None, dual_bound: float, status: Status, n_nodes: int
) -> Solution:
    """Build the solution from a support: refitted inside the box, with our objective, not the backend's.

    ``support`` is None where the backend found nothing; at a limit the intercept alone then answers
    if it may. The dual bound, in the program's units, holds up to the backend's tolerance: that is taken off.
    """
    contributions, intercept = np.zeros(problem.n_literals), float(problem.prediction)
    objective, lower_bound = np.inf, max(0.0, (dual_bound - LOST) * _unit(problem))
    if status is not Status.INFEASIBLE:
        try:
            contributions, intercept = problem.fit(np.zeros(0, dtype=np.intp) if support is None else support)
            objective = problem.objective(contributions)
        except NumericalError:
            status = Status.NUMERICAL
        except InfeasibleError as error:
            if support is not None:
                raise BackendError(f"The backend chose terms that only its tolerance allows. {error}") from error
    if status is Status.OPTIMAL and objective - lower_bound > _PROVES * problem.evidence.drop_square:
        status = Status.LIMIT  # of its own tolerance, which is absolute
    return Solution(
        contributions=contributions,
        intercept=intercept,
        objective=objective,
        lower_bound=0.0 if status in (Status.INFEASIBLE, Status.NUMERICAL) else min(objective, lower_bound),
        status=status,
        n_nodes=n_nodes,
    )
