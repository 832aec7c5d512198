"""The exact solver at every scale of drops and weights, against enumeration in rational numbers."""

import os

import numpy as np
import pytest

from anchorline.errors import SampleError
from anchorline.optimize import Evidence, Problem, Status, audit, solve
from helpers.referee import Referee

N_PROBLEMS = 240
PER_TEST = 20
SOAK = int(os.environ.get("ANCHORLINE_SOAK", "0"))  # `make soak` runs this many other problems
STARTS = range(10_000, 10_000 + SOAK, PER_TEST) if SOAK else range(0, N_PROBLEMS, PER_TEST)


def generate(seed):
    """Return the rows of a problem, its settings, and the size of the drops."""
    rng = np.random.default_rng([23, seed])
    d, k = int(rng.integers(1, 7)), int(rng.integers(1, 5))
    n = int(rng.integers(1, d + 2)) if rng.random() < 0.2 else int(rng.integers(5, 40))
    flips = rng.random((n, d)) < rng.uniform(0.1, 0.9)
    for kind in rng.choice(["always", "never", "complement", "duplicate", "rare"], rng.integers(0, 4)):
        i, j = rng.integers(0, d, 2)
        flips[:, i] = {"always": True, "never": False, "complement": ~flips[:, j], "duplicate": flips[:, j]}.get(
            kind, np.arange(n) == 0
        )
    slopes = rng.normal(size=d) * (rng.random(d) < 0.7)
    drops = flips @ slopes + rng.normal(size=n) * rng.choice([0.0, 1e-3, 0.3])
    drops += (flips[:, 0] & flips[:, -1]) * rng.choice([0.0, 0.5])
    weights = rng.uniform(0.01, 1, n) / n if rng.random() < 0.4 else None
    if weights is not None and rng.random() < 0.5:
        weights = weights * 10.0 ** rng.uniform(-12, 12)
    unit, reach = 10.0 ** rng.uniform(-12, 12), 10.0 ** rng.choice([0, 0, 0, 1, 3, 5, 6, 7, 9, 11, 12])
    prediction = float(rng.choice([0.0, 1.0, -1.0, rng.uniform(-2, 2)])) * unit * reach
    box = None if rng.random() < 0.3 else float(rng.choice([0.3, 0.7, 1.0, 1.0, 3.0])) * unit * reach
    origin = float(rng.choice([0.0, -1.0, 1.7, rng.uniform(-1, 1)])) * unit * reach
    return flips, drops * unit, weights, k, prediction, box, origin


def check(seed):
    """Compare one problem with the referee; all errors are shares of the mean squared drop or of the optimum."""
    flips, drops, weights, k, prediction, box, origin = generate(seed)
    problem = Problem(Evidence.from_sample(flips, drops, weights), k, prediction, box=box, origin=origin)
    # The problem is the one whose weights are rounded to multiples of 2^-50, as evidence says.
    rounded = np.ones(len(drops)) if weights is None else np.rint(weights * 2.0**50) / 2.0**50
    if rounded.sum() <= len(drops) * 2.0**-30:
        with pytest.raises(SampleError, match="add up to 1"):
            solve(problem)
        return None
    referee = Referee(flips, drops, rounded, k, prediction, box, origin)
    best, solution = referee.best(), solve(problem)
    if best is None:  # the solver may still reach a prediction that is out of reach by rounding only
        wider = None if box is None else box * (1 + 1e-14)
        best = Referee(flips, drops, rounded, k, prediction, wider, origin).best()
    if solution.status is Status.INFEASIBLE:
        assert referee.best() is None
        return solution.status
    scale = float(max(referee.square, best))  # or the square of the sum, if the model is constant
    scale = scale or max(abs(prediction), abs(origin)) ** 2
    u, intercept, best = solution.contributions, solution.intercept, float(best)
    assert solution.status in (Status.OPTIMAL, Status.NUMERICAL)
    assert solution.lower_bound <= best + 1e-11 * scale
    if solution.status is Status.OPTIMAL:
        assert abs(float(referee.objective(u)) - solution.objective) <= 1e-9 * scale
        assert solution.objective <= best + 1e-9 * scale
        assert solution.gap <= 1e-9 * scale
    assert np.count_nonzero(u) + (intercept != origin) <= k
    if box is not None:
        assert np.abs(u).max(initial=0) <= box
        assert abs(intercept) <= box or intercept == origin
    assert abs(u.sum() + intercept - prediction) <= 1e-12 * (np.abs(u).sum() + abs(intercept) + abs(prediction))
    audit.check(problem, solution)
    return solution.status


@pytest.mark.generated
@pytest.mark.parametrize("start", STARTS)
def test_status_bound_and_gap_are_true_relative_to_the_problem(start):
    for seed in range(start, start + PER_TEST):
        try:
            check(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def test_only_where_terms_are_far_larger_than_the_drops_rounding_forbids_a_proof():
    statuses = [check(seed) for seed in range(N_PROBLEMS, N_PROBLEMS + 200)]
    assert statuses.count(Status.OPTIMAL) >= 150
    assert statuses.count(Status.NUMERICAL) <= 10
