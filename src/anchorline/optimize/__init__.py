"""The optimizer: it finds contributions from flips and drops, and never touches models or tables.

Evidence, the problem, its solvers, their bounds and the audit of their answers live here.
May import: errors, grid.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.optimize.evidence import Evidence
from anchorline.optimize.exact import Limits, solve_exact
from anchorline.optimize.iht import solve_iht
from anchorline.optimize.problem import Problem, Solution, Status
from anchorline.optimize.rows import SampleRows

METHODS = ("exact", "gurobi", "iht", "relaxation", "scip")


def solve(
    problem: Problem,
    method: str = "exact",
    *,
    time_limit: float | None = None,
    node_limit: int | None = None,
    **settings: Any,
) -> Solution:
    """Solve a problem by one of `METHODS`; at a limit, return the best known answer with its gap.

    Examples
    --------
    >>> evidence = Evidence.from_sample([[1, 0], [0, 1], [1, 1]], [0.5, 0.0, 0.5])
    >>> solution = solve(Problem(evidence, k=2, prediction=0.75))
    >>> solution.contributions.round(9).tolist(), solution.intercept, solution.status.name
    ([0.5, 0.0], 0.25, 'OPTIMAL')
    """
    limits = Limits(time_limit, node_limit)
    match method:
        case "exact":
            return solve_exact(problem, limits, **settings)
        case "iht":
            return solve_iht(problem, limits, **settings)
        case "relaxation":
            from anchorline.optimize.relaxation import solve_relaxation  # noqa: PLC0415  optional

            return solve_relaxation(problem, limits, **settings)
        case "scip":
            from anchorline.optimize.mip.scip import solve_with_scip  # noqa: PLC0415  optional

            return solve_with_scip(problem, limits, **settings)
        case "gurobi":
            from anchorline.optimize.mip.gurobi import solve_with_gurobi  # noqa: PLC0415  optional

            return solve_with_gurobi(problem, limits, **settings)
    raise ParameterError(
        f"The solver {method!r} is unknown. It must be one of {', '.join(METHODS)}. Type method='exact'."
    )


def restricted(problem: Problem, literals: np.ndarray) -> Problem:
    """Return the same problem with some of its literals only, given by their indices; see `spread_out`.

    Examples
    --------
    >>> evidence = Evidence.from_sample([[1, 0], [0, 1], [1, 1]], [0.5, 0.0, 0.5])
    >>> restricted(Problem(evidence, k=2, prediction=0.75), np.array([0])).n_literals
    1
    """
    groups = None if problem.groups is None else problem.groups[literals]
    return replace(problem, evidence=problem.evidence.restricted(literals), groups=groups)


def spread_out(contributions: np.ndarray, literals: np.ndarray, n_literals: int) -> np.ndarray:
    """Return dense contributions (n_literals,) from those of a problem that was restricted to ``literals``.

    Examples
    --------
    >>> spread_out(np.array([0.5, -0.25]), np.array([0, 2]), 4).tolist()
    [0.5, 0.0, -0.25, 0.0]
    """
    dense = np.zeros(n_literals)
    dense[literals] = contributions
    return dense


__all__ = [
    "METHODS",
    "Evidence",
    "Limits",
    "Problem",
    "SampleRows",
    "Solution",
    "Status",
    "restricted",
    "solve",
    "spread_out",
]
