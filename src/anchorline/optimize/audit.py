"""Recompute the claims of a `Solution` from its `Problem` alone."""

import numpy as np

from anchorline.errors import CertificateError
from anchorline.optimize.problem import Problem, Solution, Status

_ROUNDING = 1e-9


def check(problem: Problem, solution: Solution) -> None:
    """Raise `CertificateError` unless objective, anchor, sparsity and box are as claimed.

    The lower bound is not recomputed here, because only another proof can confirm it.
    """
    if solution.status is Status.INFEASIBLE:
        return
    u, intercept = solution.contributions, solution.intercept
    residual = abs(intercept + u.sum() - problem.prediction)
    if not residual <= 1e-12 * max(1.0, abs(problem.prediction)):
        raise CertificateError(
            f"The terms miss the prediction by {residual:.3g}, but they may miss it by at most 1e-12."
        )
    objective = problem.objective(u)
    if not abs(objective - solution.objective) <= _ROUNDING:
        raise CertificateError(
            f"The solution claims the objective {solution.objective!r}, but recomputing it gives {objective!r}."
        )
    if solution.status is Status.RELAXED:
        return
    n_terms = problem.n_terms(u, intercept)
    if n_terms > problem.k:
        raise CertificateError(f"The solution has {n_terms} terms, but at most k = {problem.k} are allowed.")
    largest = max(np.abs(u).max(initial=0.0), abs(intercept))
    boxed = problem.box is not None and solution.status is not Status.HEURISTIC
    if boxed and problem.box is not None and largest > problem.box + _ROUNDING:
        raise CertificateError(
            f"A term has the size {largest!r}, but no term may be larger than the box {problem.box}."
        )
