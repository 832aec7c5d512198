"""Iterative hard thresholding (Algorithm 1 of the paper), computed from the statistics."""

import time
from collections.abc import Callable

import numpy as np

from anchorline.optimize.exact import Limits, is_over
from anchorline.optimize.problem import Problem, Solution, Status
from anchorline.optimize.projection import project_sparse_sum

MAX_ITERATIONS = 5000
_STALL = 1e-13  # an iteration that moves no contribution by more than this has converged
_DIVERGED = 1e6  # contributions have sizes up to 1, so an iterate this far away does not return


def solve_iht(
    problem: Problem,
    limits: Limits,
    *,
    step: float | None = None,
    max_iterations: int = MAX_ITERATIONS,
    watch: Callable[[np.ndarray, float], None] | None = None,
) -> Solution:
    r"""Take gradient steps, project each iterate onto the anchored k-sparse sums, and return the best iterate.

    With agreements :math:`A = 1 - 2F` and the constant literal as first column, the terms :math:`v = (u_0 - c,
    u)` move by :math:`v \leftarrow \Pi(v - \eta\,\tfrac1n A^\top(A v - y))`, :math:`y = f(x) - c - 2t`,
    from :math:`v = (f(x) - c, 0)`. The moments determine every step, and one iteration costs O(dk).
    ``step`` is :math:`\tfrac{18}{19}\cosh^2(\sigma/2)`; by default sigma is derived from the share of flips.
    IHT ignores the box and computes no bound, so the status is HEURISTIC. It may diverge on small samples.
    ``watch`` is called for every iterate, starting point included, with the terms :math:`v` (which it must not
    change) and their objective.
    """
    evidence, total = problem.evidence, problem.prediction - problem.origin
    if step is None:
        share = min(max(float(evidence.flip_means.mean()), 1e-6), 1 - 1e-6) if problem.n_literals else 0.5
        step = 18 / 19 / (4 * share * (1 - share))  # cosh^2(sigma / 2) = 1 / (4 p (1 - p))
    deadline = np.inf if limits.time_limit is None else time.perf_counter() + limits.time_limit
    terms = np.zeros(problem.n_literals + 1)
    terms[0] = total
    best, best_objective = terms, evidence.drop_square
    if watch is not None:
        watch(terms, best_objective)
    for _ in range(max_iterations):
        moved = project_sparse_sum(terms - step * gradient(problem, terms), problem.k, total)
        objective = problem.objective(moved[1:])
        if watch is not None:
            watch(moved, objective)
        if objective < best_objective:
            best, best_objective = moved, objective
        change = np.abs(moved - terms).max()
        if not _STALL < change < _DIVERGED or is_over(deadline):
            break
        terms = moved
    contributions = best[1:]
    intercept = problem.prediction - float(contributions.sum()) if best[0] != 0 else problem.origin
    return Solution(
        contributions=contributions,
        intercept=intercept,
        objective=problem.objective(contributions),
        status=Status.HEURISTIC,
    )


def gradient(problem: Problem, terms: np.ndarray) -> np.ndarray:
    r"""Gradient of :math:`L(v) = \tfrac1{2n}\|A v - y\|^2`, twice the objective, at terms v of sum f(x) - c.

    Because ``A v - y = 2 (t - F u)``, the gradient is ``2 mean A (t - F u)``. Cost O(d) per non-zero term.
    """
    evidence = problem.evidence
    support = np.flatnonzero(terms[1:])
    values = terms[1:][support]
    mean = evidence.drop_mean - float(evidence.flip_means[support] @ values)  # mean of t - F u
    cross = evidence.cross_moments - evidence.second_moments[:, support] @ values  # mean of F (t - F u)
    return np.append(2 * mean, 2 * (mean - 2 * cross))
