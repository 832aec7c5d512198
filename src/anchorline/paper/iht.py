"""Algorithm 1 of the paper, iterative hard thresholding, computed from the statistics, with its projection."""

import time
from collections.abc import Callable

import numpy as np

from anchorline.paper.problem import UNLIMITED, Limits, Problem, Solution, Status

MAX_ITERATIONS = 5000
_STALL = 1e-13  # an iteration that moves no contribution by more than this has converged
_DIVERGED = 1e6  # contributions have sizes up to 1, so an iterate this far away does not return


def project_sparse_sum(values: np.ndarray, k: int, total: float) -> np.ndarray:
    r"""Project onto the vectors with at most ``k`` non-zeros that sum to ``total``.

    .. math:: \min_u \|u - v\|_2 \quad \text{s.t.}\ \|u\|_0 \le k,\ \mathbf 1^\top u = \text{total}

    Lemma "Anchored Sparse Projection", after the change of variables :math:`u = w \odot x`. On a support P the
    best projection shifts every kept value by the same amount. It keeps :math:`\sum_P v_j^2 - (\sum_P v_j -
    \text{total})^2 / |P|` of the squared norm, which is convex in each kept value. Therefore some best support
    consists of the p largest and the k - p smallest values, and the function tries every p. The result is exact
    for every ``total``, including zero, where greedy selection fails. Cost O(d + k log k). Mutates nothing.

    Examples
    --------
    >>> project_sparse_sum(np.array([0.0, 1.0, -1.0]), k=2, total=0.0).tolist()
    [0.0, 1.0, -1.0]
    """
    d = len(values)
    k = min(k, d)
    if 2 * k < d:
        ends = np.argpartition(values, (k, d - k - 1))
        ends = np.concatenate([ends[:k], ends[d - k :]])
    else:
        ends = np.arange(d)
    ends = ends[np.argsort(values[ends], kind="stable")]  # ascending, so the smallest values come first
    ordered = values[ends]
    n_small = np.arange(k + 1)
    sums, squares = np.append(0.0, ordered.cumsum()), np.append(0.0, (ordered**2).cumsum())
    start = len(ends) - (k - n_small)  # position of the first large value
    kept_sum = sums[n_small] + sums[-1] - sums[start]
    kept_square = squares[n_small] + squares[-1] - squares[start]
    best = int(np.argmax(kept_square - (kept_sum - total) ** 2 / k))
    support = np.concatenate([ends[:best], ends[start[best] :]])
    projected = np.zeros(d)
    projected[support] = values[support] - (values[support].sum() - total) / k
    return projected


def solve_iht(
    problem: Problem,
    limits: Limits = UNLIMITED,
    *,
    step: float | None = None,
    max_iterations: int = MAX_ITERATIONS,
    watch: Callable[[np.ndarray, float], None] | None = None,
) -> Solution:
    r"""Take gradient steps, project each iterate onto the anchored k-sparse sums, and return the best iterate.

    With agreements :math:`A = 1 - 2F` and the constant literal as first column, the terms :math:`v = (u_0, u)`
    move by :math:`v \leftarrow \Pi(v - \eta\,\tfrac1n A^\top(A v - y))`, :math:`y = f(x) - 2t`, from
    :math:`v = (f(x), 0)`. The moments determine every step, and one iteration costs O(dk). ``step`` is
    :math:`\tfrac{18}{19}\cosh^2(\sigma/2)`; by default sigma is derived from the share of flips. Algorithm 1
    ignores the box and computes no bound, so the status is HEURISTIC. It may diverge on small samples. ``watch``
    is called for every iterate, starting point included, with the terms v (which it must not change) and their
    objective.
    """
    evidence, total = problem.evidence, problem.prediction
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
    return Solution(
        contributions=contributions,
        intercept=total - float(contributions.sum()) if best[0] != 0 else 0.0,
        objective=problem.objective(contributions),
        status=Status.HEURISTIC,
    )


def gradient(problem: Problem, terms: np.ndarray) -> np.ndarray:
    r"""Gradient of :math:`L(v) = \tfrac1{2n}\|A v - y\|^2`, twice the objective, at terms v of sum f(x).

    Because ``A v - y = 2 (t - F u)``, the gradient is ``2 mean A (t - F u)``. Cost O(d) per non-zero term.
    """
    evidence = problem.evidence
    support = np.flatnonzero(terms[1:])
    values = terms[1:][support]
    mean = evidence.drop_mean - float(evidence.flip_means[support] @ values)  # mean of t - F u
    cross = evidence.cross_moments - evidence.second_moments[:, support] @ values  # mean of F (t - F u)
    return np.append(2 * mean, 2 * (mean - 2 * cross))
