"""The exact solver on bounds and intervals of attributes, against enumeration of every support."""

import itertools
import os

import numpy as np
import pytest

from anchorline.optimize import Evidence, Problem, Status, blocks, sets, solve
from helpers.attributes import TROUBLES, generate_grouped, generate_thresholds, nested_cuts
from helpers.oracle import enumerate_objective
from helpers.proofs import check_against

N_PROBLEMS = 2000
PER_TEST = 50
SOAK = int(os.environ.get("ANCHORLINE_SOAK", "0"))  # `make soak` runs this many other problems
STARTS = range(10_000, 10_000 + SOAK, PER_TEST) if SOAK else range(0, N_PROBLEMS, PER_TEST)


def check(seed, generate=generate_grouped):
    sample = generate(seed)
    rest = (sample.k, sample.prediction, sample.box, sample.origin)
    truth = enumerate_objective(sample.flips, sample.drops, sample.row_weights, *rest)
    evidence = Evidence.from_sample(sample.flips, sample.drops, sample.weights)
    check_against(truth, Problem(evidence, *rest, groups=sample.groups), seed)


@pytest.mark.generated
@pytest.mark.parametrize("start", STARTS)
def test_exact_is_the_enumerated_optimum_on_attributes(start):
    for seed in range(start, start + PER_TEST):
        check(seed)


@pytest.mark.generated
@pytest.mark.parametrize("n_children", [-1, 1000])  # always exact correlations, and never
@pytest.mark.parametrize("start", range(20_000, 20_000 + SOAK, 20) if SOAK else range(0, 60, 20))
def test_bounds_alone_prove_the_enumerated_optimum_on_thresholds(start, n_children, monkeypatch):
    monkeypatch.setattr(sets, "MAX_SETS", 0)  # otherwise such small problems are listed
    monkeypatch.setattr(blocks, "_FEW_CHILDREN", n_children)
    for seed in range(start, start + 20):
        check(seed, generate_thresholds)


def test_the_generated_problems_hold_every_kind_of_trouble():
    counts = dict.fromkeys([*TROUBLES, "fewer_rows", "no_box", "size_1", "size_2", "size_3", "size_4"], 0)
    for seed in range(N_PROBLEMS):
        sample = generate_grouped(seed)
        counts[sample.trouble] += 1
        counts["fewer_rows"] += len(sample.drops) < len(sample.groups)
        counts["no_box"] += sample.box is None
        for size in np.unique(np.unique(sample.groups, return_counts=True)[1]):
            counts[f"size_{size}"] += 1
    assert min(counts.values()) >= 8, counts


def attributes(seed, n_attributes, n=2000):
    """Attributes with a lower bound, an upper bound and an interval each, and drops with different effects."""
    rng = np.random.default_rng([31, seed])
    drawn = rng.choice([0, -1, 1], p=[0.73, 0.135, 0.135], size=(n, n_attributes))
    below, above = drawn < 0, drawn > 0
    flips = np.stack([below, above, below | above], axis=2).reshape(n, -1)
    weights = rng.normal(size=(2, n_attributes)) / (1 + np.arange(n_attributes))
    drops = np.tanh(0.5 * (below @ weights[0] + above @ weights[1]) + 0.2 * (below[:, 0] & above[:, 1]))
    drops = np.rint(drops * 2**26) / 2**26
    return Evidence.from_sample(flips, drops), np.repeat(np.arange(n_attributes), 3)


def test_sixty_attributes_with_three_literals_each_are_proved_in_few_nodes():
    evidence, groups = attributes(0, 60)
    solution = solve(Problem(evidence, 5, 0.4, groups=groups), node_limit=200).require_optimal()
    plain = solve(Problem(evidence, 5, 0.4), node_limit=200)
    assert plain.status is Status.LIMIT
    assert plain.objective >= solution.objective - 1e-12
    assert plain.lower_bound <= solution.objective


@pytest.mark.parametrize("n_below", [0, 1])
@pytest.mark.parametrize("is_rare", [False, True])
def test_fifty_attributes_with_all_thresholds_are_proved_in_few_nodes(n_below, is_rare):
    rng = np.random.default_rng([33, n_below])
    weights = np.array([1.0, 1.0, 1.0, 0.02])  # quantiles, and a few missing values
    columns = [nested_cuts(5000, 0.27, n_below, 3 - n_below, rng, weights) for _ in range(50)]
    columns += [[rng.random(5000) < 0.003]] if is_rare else []
    flips = np.stack([column for own in columns for column in own], axis=1)
    groups = np.repeat(np.arange(len(columns)), [len(own) for own in columns])
    drops = np.tanh(0.3 * flips @ (rng.normal(size=len(groups)) / (1 + groups)))
    evidence = Evidence.from_sample(flips, np.rint(drops * 2**26) / 2**26)
    solve(Problem(evidence, 5, 0.8, groups=groups), node_limit=400).require_optimal()


def test_small_samples_with_missing_values_are_proved_in_few_nodes():
    rng = np.random.default_rng(34)
    weights = np.array([1.0, 1.0, 0.02])
    columns = [nested_cuts(1000, 0.27, 1, 1, rng, weights) for _ in range(30)]
    flips, groups = np.stack([column for own in columns for column in own], axis=1), np.repeat(np.arange(30), 3)
    drops = np.tanh(0.3 * flips @ (rng.normal(size=90) / (1 + groups)))
    evidence = Evidence.from_sample(flips, np.rint(drops * 2**26) / 2**26)
    solve(Problem(evidence, 5, 0.8, groups=groups), node_limit=200).require_optimal()


def test_a_part_that_gains_nothing_but_depends_on_others_is_not_closed():
    """All draws of two attributes with five literals each: no literal correlates with the drops."""
    cuts = np.array([[0, 1, 0, 0, 1], [1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 1, 1, 0, 1]])
    cuts = np.concatenate([cuts, [[1, 0, 0, 1, 0], [1, 1, 0, 1, 0], [1, 0, 1, 0, 0], [0, 0, 1, 0, 0]]])
    p = np.array([125, 202, 136, 70, 104, 127, 124, 136]) / 256
    half = [(way, sign, p[way] if sign else 1 - p[way]) for way in range(8) for sign in (0, 1)]
    rows = [
        ([*cuts[a], i, *cuts[b], j, z], (i - p[a]) - (j - p[b]), u * v * 2**16)
        for (a, i, u), (b, j, v), z in itertools.product(half, half, (0, 1))
    ]
    flips, drops, weights = (np.array(part) for part in zip(*rows, strict=True))
    groups = np.repeat(np.arange(5), [5, 1, 5, 1, 1])
    problem = Problem(Evidence.from_sample(flips.astype(bool), drops, weights), 9, 50.0, None, groups=groups)
    fitted, _ = problem.fit_variant(np.array([2, 3, 4, 5, 8, 9, 10, 11]), problem.variants[0])
    assert solve(problem).require_optimal().objective <= problem.objective(fitted) + 1e-12


def test_at_a_limit_the_bound_is_still_below_the_optimum():
    for seed in range(60):
        sample = generate_grouped(seed)
        evidence = Evidence.from_sample(sample.flips, sample.drops, sample.weights)
        problem = Problem(evidence, sample.k, sample.prediction, sample.box, sample.origin, sample.groups)
        full = solve(problem)
        for node_limit in (0, 1, 4) if full.status is not Status.INFEASIBLE else ():
            limited = solve(problem, node_limit=node_limit)
            assert limited.lower_bound <= full.objective + 1e-9, f"seed {seed}"
            assert limited.objective >= full.objective - 1e-9, f"seed {seed}"


def test_attributes_with_one_literal_each_need_no_groups():
    for seed in range(40):
        rng = np.random.default_rng([32, seed])
        flips = rng.random((300, 12)) < rng.choice([0.02, 0.3, 0.9], size=12)
        evidence = Evidence.from_sample(flips, np.rint(2**20 * np.tanh(flips @ rng.normal(size=12))) / 2**20)
        plain, grouped = (solve(Problem(evidence, 3, 0.4, groups=groups)) for groups in (None, np.arange(12)))
        assert plain.status is grouped.status is Status.OPTIMAL
        assert grouped.objective == pytest.approx(plain.objective, abs=1e-12)


def test_a_problem_whose_literals_were_all_left_out_is_solved():
    none = np.zeros(0, dtype=np.intp)
    problem = Problem(Evidence.from_sample(np.zeros((4, 0)), [0.5, 0.0, 0.5, 0.0]), 3, 0.25, groups=none)
    solution = solve(problem)
    assert solution.status is Status.OPTIMAL
    assert solution.intercept == 0.25
