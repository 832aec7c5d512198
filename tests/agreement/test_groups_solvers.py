"""Runners-up, IHT, SCIP and Gurobi on bounds and intervals of attributes, against enumeration of every support."""

import numpy as np
import pytest

from anchorline.optimize import Evidence, Problem, Status, audit, solve
from anchorline.optimize.exact import Limits, solve_runners_up
from helpers.attributes import generate_grouped
from helpers.oracle import enumerate_objective
from helpers.proofs import check_runners_up


def drawn_attributes(seed, missing):
    """Flips of two or three attributes with two bounds and an interval each, and random drops."""
    rng = np.random.default_rng([41, seed])
    chances = [0.4, 0.25, 0.25, 0.1] if missing else [0.5, 0.25, 0.25, 0.0]
    drawn = rng.choice([0, -1, 1, 9], p=chances, size=(60, int(rng.integers(2, 4))))
    lost = drawn == 9
    below, above = (drawn == -1) | lost, (drawn == 1) | lost
    flips = np.stack([below, above, below | above], axis=2).reshape(len(drawn), -1)
    return flips, rng.uniform(-1, 1, len(drawn)), np.repeat(np.arange(drawn.shape[1]), 3), rng


@pytest.mark.parametrize("missing", [False, True])
def test_runners_up_are_the_next_best_of_all_supports(missing):
    for seed in range(15):
        flips, drops, groups, rng = drawn_attributes(seed, missing)
        k, n_best = int(rng.integers(2, 5)), int(rng.integers(2, 7))
        problem = Problem(Evidence.from_sample(flips, drops), k, 0.6, box=None, groups=groups)
        check_runners_up(problem, flips, drops, n_best, seed)


@pytest.mark.parametrize("k", [3, 4, 5])
def test_two_bounds_are_stated_instead_of_a_bound_and_the_interval(k):
    """The last attribute is the only one with an effect, so that with k = 5 all its literals would fit in."""
    for seed in range(10):
        flips, _, _, rng = drawn_attributes(seed, missing=False)
        flips = flips[:, -3:]
        drops = np.round((flips @ [0.3, -0.1, 0.0] + rng.normal(0, 0.01, len(flips))) * 2**20) / 2**20
        problem = Problem(Evidence.from_sample(flips, drops), k, 0.6, groups=np.zeros(3, dtype=int))
        assert solve(problem).support.tolist() == [0, 1]
        first, second = solve_runners_up(problem, Limits(), 2)[0]
        assert first.terms == (0, 1)
        assert second.objective > first.objective + 1e-6  # not the same sum in other words


def test_iht_is_never_below_the_enumerated_optimum():
    for seed in range(12):
        flips, drops, groups, _ = drawn_attributes(seed, missing=seed % 2 == 1)
        problem = Problem(Evidence.from_sample(flips, drops), 3, 0.6, box=None, groups=groups)
        solution = solve(problem, "iht")
        truth = enumerate_objective(flips, drops, np.ones(len(drops)), 3, 0.6, None, 0.0)
        assert solution.status is Status.HEURISTIC
        assert solution.objective >= truth - 1e-9, f"seed {seed}"
        assert problem.n_terms(solution.contributions, solution.intercept) <= 3


@pytest.mark.parametrize("method", ["scip", "gurobi"])
def test_other_solvers_agree_with_enumeration(method):
    seeds = [seed for seed in range(120) if generate_grouped(seed).box == 1.0 and generate_grouped(seed).k > 1]
    for seed in seeds[:12]:
        sample = generate_grouped(seed)
        rest = (sample.k, sample.prediction, sample.box, sample.origin)
        truth = enumerate_objective(sample.flips, sample.drops, sample.row_weights, *rest)
        evidence = Evidence.from_sample(sample.flips, sample.drops, sample.weights)
        problem = Problem(evidence, *rest, groups=sample.groups)
        solution = solve(problem, method)
        if np.isinf(truth):
            assert solution.status is Status.INFEASIBLE, f"seed {seed}"
            continue
        assert solution.status is Status.OPTIMAL, f"seed {seed}"
        assert solution.objective == pytest.approx(truth, abs=1e-6), f"seed {seed}"
        audit.check(problem, solution)
