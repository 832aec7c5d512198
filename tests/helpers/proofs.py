"""Checks of what the exact solver claims, shared by problems with and without attributes."""

import numpy as np
import pytest

from anchorline.optimize import Status, audit, solve
from anchorline.optimize.exact import Limits, solve_runners_up
from helpers.oracle import next_best


def check_against(truth, problem, seed):
    """Check that the exact solver finds the enumerated optimum, infinite if there is none, and proves it."""
    solution = solve(problem)
    if np.isinf(truth):
        assert solution.status is Status.INFEASIBLE, f"seed {seed}"
        return
    assert solution.status is Status.OPTIMAL, f"seed {seed}"
    assert solution.objective == pytest.approx(truth, abs=1e-9), f"seed {seed}"
    assert solution.lower_bound <= truth + 1e-9, f"seed {seed}"
    assert solution.gap <= 1e-9, f"seed {seed}"
    audit.check(problem, solution)


def check_runners_up(problem, flips, drops, n_best, seed):
    """Check that the runners-up are the next best of all supports, shorter ones included, each said once."""
    candidates, complete = solve_runners_up(problem, Limits(), n_best)
    best = next_best(flips, drops, problem.k, problem.prediction, n_best, problem.groups)
    assert complete
    assert [candidate.objective for candidate in candidates] == pytest.approx(best, abs=1e-9), f"seed {seed}"
