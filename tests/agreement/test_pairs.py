"""The exact solver with pairs, against enumeration of every support in which a pair costs two terms."""

import itertools
import os

import numpy as np
import pytest

from anchorline.optimize import Evidence, Limits, Problem, Status, solve
from anchorline.optimize.pairs import PairProblem, solve_with_pairs
from helpers.attributes import generate_grouped
from helpers.oracle import enumerate_objective
from helpers.problems import generate

N_SEEDS = 100
PER_TEST = 25
MAX_LITERALS = 8
SOAK = int(os.environ.get("ANCHORLINE_SOAK", "0"))  # `make soak` runs this many other problems
STARTS = range(10_000, 10_000 + SOAK, PER_TEST) if SOAK else range(0, N_SEEDS, PER_TEST)
KINDS = {"and": np.logical_or, "parity": np.logical_xor}


def posed(sample, groups, kind, k):
    """The columns of all pairs of different attributes, and the problem with them."""
    d, flips = sample.flips.shape[1], sample.flips.astype(bool)
    members = [(i, j) for i, j in itertools.combinations(range(d), 2) if groups[i] != groups[j]]
    pairs = [KINDS[kind](flips[:, i], flips[:, j]) for i, j in members]
    numbers = np.concatenate([groups, 1000 + np.arange(len(pairs))]) if len(set(groups)) < d else None
    evidence = Evidence.from_sample(np.column_stack([flips, *pairs]), sample.drops, sample.weights)
    problem = Problem(evidence, k, sample.prediction, sample.box, sample.origin, numbers)
    return pairs, PairProblem(problem, np.array(members, dtype=np.intp).reshape(-1, 2))


def check(sample, groups, kind, name):
    k = min(sample.k, 5 if sample.box is None and len(groups) <= 6 else 4)
    pairs, paired = posed(sample, groups, kind, k)
    rest = (k, sample.prediction, sample.box, sample.origin)
    truth = enumerate_objective(sample.flips, sample.drops, sample.row_weights, *rest, pairs)
    solution = solve_with_pairs(paired, Limits())
    if np.isinf(truth):
        assert solution.status is Status.INFEASIBLE, name
        return 0
    cost = paired.cost(solution.contributions) + (solution.intercept != sample.origin)
    assert solution.status is Status.OPTIMAL, name
    assert cost <= k, name
    assert solution.objective == pytest.approx(truth, abs=1e-9), name
    assert solution.lower_bound <= truth + 1e-9, name
    assert paired.problem.objective(solution.contributions) == pytest.approx(solution.objective, abs=1e-12), name
    assert solution.contributions.sum() + solution.intercept == pytest.approx(sample.prediction, abs=1e-9), name
    return int(paired.cost(solution.contributions) > np.count_nonzero(solution.contributions))


@pytest.mark.generated
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start", STARTS)
def test_pairs_reach_the_enumerated_optimum(start, kind):
    n_with_pairs = 0
    for seed in range(start, start + PER_TEST):
        sample, grouped = generate(seed), generate_grouped(seed)
        if sample.flips.shape[1] <= MAX_LITERALS:
            n_with_pairs += check(sample, np.arange(sample.flips.shape[1]), kind, f"seed {seed}, {kind}")
        if len(grouped.groups) <= MAX_LITERALS:
            n_with_pairs += check(grouped, grouped.groups, kind, f"attributes, seed {seed}, {kind}")
    assert n_with_pairs > 0  # otherwise nothing was tested


def network(seed, d, n=3000, p=0.269):
    """Flips of a smooth random network on the hypercube, its drops, and its prediction."""
    rng = np.random.default_rng([41, seed])
    flips = rng.random((n, d)) < p
    x = rng.choice([-1.0, 1.0], size=d)
    inner, outer = 2 * rng.normal(size=(d, 12)) / np.sqrt(d), rng.normal(size=12) / 3

    def predict(rows):
        return np.tanh(np.tanh(rows @ inner) @ outer)

    prediction = float(predict(x[None])[0])
    return flips, (prediction - predict(x * (1 - 2.0 * flips))) / 2, prediction


@pytest.mark.parametrize("kind", KINDS)
def test_eight_literals_of_a_network_agree_with_enumeration(kind):
    flips, drops, prediction = network(1, 8, n=200)
    members = list(itertools.combinations(range(8), 2))
    pairs = [KINDS[kind](flips[:, i], flips[:, j]) for i, j in members]
    truth = enumerate_objective(flips, drops, np.ones(len(drops)), 5, prediction, None, 0.0, pairs)
    evidence = Evidence.from_sample(np.column_stack([flips, *pairs]), drops)
    paired = PairProblem(Problem(evidence, 5, prediction, None), np.array(members))
    solution = solve_with_pairs(paired, Limits()).require_optimal()
    assert solution.objective == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_at_a_limit_the_bound_is_valid_and_the_sum_not_worse_than_without_pairs(kind):
    flips, drops, prediction = network(7, 14)
    members = np.array(list(itertools.combinations(range(14), 2)))
    columns = KINDS[kind](flips[:, members[:, 0]], flips[:, members[:, 1]])
    evidence = Evidence.from_sample(np.column_stack([flips, columns]), drops)
    alone = solve(Problem(Evidence.from_sample(flips, drops), 5, prediction))
    paired = PairProblem(Problem(evidence, 5, prediction), members)
    best = solve_with_pairs(paired, Limits()).require_optimal()
    assert best.objective <= alone.objective
    for node_limit in (0, 3, 20, 60, 150):
        found = solve_with_pairs(paired, Limits(node_limit=node_limit))
        assert found.objective >= best.objective - 1e-12
        assert found.lower_bound <= best.objective + 1e-12
        if node_limit >= 20:
            assert found.objective <= alone.objective + 1e-12
    assert solve_with_pairs(paired, Limits(time_limit=0.0)).status is Status.LIMIT
