"""The optimizer: it finds contributions from flips and drops, and never touches models or tables.

Evidence, the problem, its solvers, their bounds and the audit of their answers live here.
May import: errors, grid.
"""

import math
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from anchorline.errors import NumericalError, ParameterError
from anchorline.grid import DROP_GRID
from anchorline.optimize.bounds import Centered as _Centered
from anchorline.optimize.evidence import Evidence
from anchorline.optimize.exact import Limits, solve_exact
from anchorline.optimize.exact import Pool as _Pool
from anchorline.optimize.exact import Shared as _Shared
from anchorline.optimize.exact import roots_of as _roots_of
from anchorline.optimize.iht import solve_iht
from anchorline.optimize.problem import Problem, Solution, Status
from anchorline.optimize.rows import SampleRows

METHODS = ("exact", "gurobi", "iht", "relaxation", "scip")
_RESOLVED = 64 / DROP_GRID  # drops of this root mean square, a millionth of the range, have six binary digits


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


def guess(problem: Problem) -> tuple[float, np.ndarray, _Shared]:
    """Return the objective and the literals of a sum that is found greedily; an exact search can start there.

    The objective is infinite if no sum was found. Pass the third value as ``shared`` to `solve`.

    Examples
    --------
    >>> evidence = Evidence.from_sample([[1, 0], [0, 1], [1, 1]], [0.5, 0.0, 0.5])
    >>> guess(Problem(evidence, k=2, prediction=0.75))[:2]
    (0.0, array([0]))
    """
    scaled, pool = problem.scaled, _Pool(problem.scaled)
    shared = _Shared(_Centered.from_evidence(scaled.evidence, scaled.groups), grows=False)
    pool.sums = None if shared.centered.groups is None else shared.centered.groups.sums
    with suppress(NumericalError):
        shared.begun = pool, _roots_of(scaled, shared, pool, swap=False)
    if not pool.ranked:
        return np.inf, np.zeros(0, dtype=np.intp), shared
    best = pool.ranked[0].scaled(problem.unit)
    return best.objective, np.flatnonzero(best.contributions), shared


def as_resolved(problem: Problem, solution: Solution) -> Solution:
    """Withhold the proof if the output changes so little that the rounding of drops decides between sums.

    Every drop is rounded by at most half a step of the grid. By the triangle inequality, the root of an objective
    changes by at most that, so that a gap of four such changes holds for the outputs themselves.

    Examples
    --------
    >>> evidence = Evidence.from_sample([[1, 0], [0, 1], [1, 1]], [2e-7, 0.0, 2e-7])
    >>> problem = Problem(evidence, k=2, prediction=0.75)
    >>> as_resolved(problem, solve(problem)).status.name
    'NUMERICAL'
    """
    if not 0 < problem.evidence.drop_square < _RESOLVED**2 or solution.status is not Status.OPTIMAL:
        return solution
    bound = max(0.0, math.sqrt(solution.lower_bound) - 2 / DROP_GRID) ** 2
    return replace(solution, status=Status.NUMERICAL, lower_bound=min(bound, solution.objective))


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
    "as_resolved",
    "guess",
    "restricted",
    "solve",
    "spread_out",
]
