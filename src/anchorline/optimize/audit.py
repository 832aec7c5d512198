"""Recompute the claims of a `Solution` from its `Problem` alone."""

import numpy as np

from anchorline.errors import CertificateError
from anchorline.optimize.problem import Problem, Solution, Status

_ROUNDING = 1e-12  # of sums, as a share of their terms
_TOLERANCE = 1e-9  # of objectives, as a share of mean t^2


def check(problem: Problem, solution: Solution) -> None:
    """Raise `CertificateError` unless objective, anchor, sparsity and box are as claimed.

    The lower bound is not recomputed here, because only another proof can confirm it.
    """
    if solution.status is Status.INFEASIBLE:
        return
    u, intercept = solution.contributions, solution.intercept
    residual, terms = abs(intercept + u.sum() - problem.prediction), abs(intercept) + np.abs(u).sum()
    if not residual <= _ROUNDING * max(terms, abs(problem.prediction)):
        raise CertificateError(
            f"The terms miss the prediction by {residual:.3g}, but they may miss it by at most {_ROUNDING:g} of "
            "the size of the terms, which is rounding."
        )
    objective = problem.objective(u)
    if not abs(objective - solution.objective) <= _TOLERANCE * max(problem.evidence.drop_square, objective):
        raise CertificateError(
            f"The solution claims the objective {solution.objective!r}, but recomputing it gives {objective!r}."
        )
    if solution.status is Status.RELAXED:
        return
    n_terms = problem.n_terms(u, intercept)
    if n_terms > problem.k:
        raise CertificateError(f"The solution has {n_terms} terms, but at most k = {problem.k} are allowed.")
    largest = max(np.abs(u).max(initial=0.0), 0.0 if intercept == problem.origin else abs(intercept))
    if problem.box is not None and solution.status is not Status.HEURISTIC and largest > problem.box:
        raise CertificateError(
            f"A term has the size {largest!r}, but no term may be larger than the box {problem.box}."
        )
