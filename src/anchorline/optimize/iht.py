"""Iterative hard thresholding (Algorithm 1 of the paper), on statistics."""

import time
from collections.abc import Callable

import numpy as np

from anchorline.optimize.exact import Limits
from anchorline.optimize.problem import Problem, Solution, Status
from anchorline.optimize.projection import project_sparse_sum

MAX_ITERATIONS = 5000
_STALL = 1e-13  # an iteration that moves no contribution by more than this has converged
_DIVERGED = 1e6  # contributions are at most 1 in size; these will not come back


def solve_iht(
    problem: Problem,
    limits: Limits,
    *,
    step: float | None = None,
    max_iterations: int = MAX_ITERATIONS,
    watch: Callable[[np.ndarray, float], None] | None = None,
) -> Solution:
    r"""Gradient steps on all terms, each projected onto the anchored k-sparse sums; best iterate kept.

    With agreements :math:`A = 1 - 2F` and the constant literal in front, the terms :math:`v = (u_0 - c,
    u)` move by :math:`v \leftarrow \Pi(v - \eta\,\tfrac1n A^\top(A v - y))`, :math:`y = f(x) - c - 2t`,
    from :math:`v = (f(x) - c, 0)`. Everything is read off the moments: one iteration costs O(dk).
    ``step`` is :math:`\tfrac{18}{19}\cosh^2(\sigma/2)`; by default sigma is read off the share of flips.
    No box, no bound: the status is HEURISTIC. May diverge on small samples.
    ``watch`` is called with the terms :math:`v` (to be read, not changed) and the objective of every
    iterate, the start first.
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
        if not _STALL < change < _DIVERGED or time.perf_counter() > deadline:
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
    r"""Gradient of :math:`L(v) = \tfrac1{2n}\|A v - y\|^2`, twice the objective, at v of sum f(x) - c.

    ``A v - y = 2 (t - F u)``, so it is ``2 mean A (t - F u)``. Cost O(d) per non-zero term.
    """
    evidence = problem.evidence
    support = np.flatnonzero(terms[1:])
    values = terms[1:][support]
    mean = evidence.drop_mean - float(evidence.flip_means[support] @ values)  # mean of t - F u
    cross = evidence.cross_moments - evidence.second_moments[:, support] @ values  # mean of F (t - F u)
    return np.append(2 * mean, 2 * (mean - 2 * cross))
