"""The exact solver against enumeration of every support, with and without the box."""

import itertools
import os

import numpy as np
import pytest

from anchorline.optimize import Evidence, Problem, Status, audit, exact, solve
from anchorline.optimize.bounds import Alone, Bound
from helpers.oracle import enumerate_objective
from helpers.problems import TROUBLES, generate
from helpers.proofs import check_against, check_runners_up

N_PROBLEMS = 5_500
PER_TEST = 50
SOAK = int(os.environ.get("ANCHORLINE_SOAK", "0"))  # `make soak` runs this many other problems
STARTS = range(10_000, 10_000 + SOAK, PER_TEST) if SOAK else range(0, N_PROBLEMS, PER_TEST)


def problem_from(sample, **changes):
    settings = {"box": sample.box, "origin": sample.origin} | changes
    evidence = Evidence.from_sample(sample.flips, sample.drops, sample.weights)
    return Problem(evidence, sample.k, sample.prediction, **settings)


@pytest.mark.generated
@pytest.mark.parametrize("start", STARTS)
def test_exact_is_the_enumerated_optimum(start):
    for seed in range(start, start + PER_TEST):
        sample = generate(seed)
        truth = enumerate_objective(
            sample.flips,
            sample.drops,
            sample.row_weights,
            sample.k,
            sample.prediction,
            sample.box,
            sample.origin,
        )
        check_against(truth, problem_from(sample), seed)


def test_exact_is_the_enumerated_optimum_where_the_cheap_bound_comes_first(monkeypatch):
    """The cheap bound comes first for more than 64 candidates, which are too many for enumeration."""
    monkeypatch.setattr(exact, "_FEW_CANDIDATES", 0)
    for seed in range(N_PROBLEMS, N_PROBLEMS + 150):
        sample = generate(seed)
        rest = (sample.k, sample.prediction, sample.box, sample.origin)
        truth = enumerate_objective(sample.flips, sample.drops, sample.row_weights, *rest)
        check_against(truth, problem_from(sample), seed)


@pytest.mark.parametrize("seed", range(6))
def test_exact_is_the_enumerated_optimum_of_many_literals(seed):
    rng = np.random.default_rng([29, seed])
    flips = rng.random((200, 70)) < 0.3
    flips[:, 1] = ~flips[:, 0]
    flips[:, 2] = flips[:, 3]
    drops = flips @ (rng.normal(size=70) * (rng.random(70) < 0.1)) * 0.2 + 0.1 * rng.normal(size=200)
    drops = np.rint(np.clip(drops, -1, 1) * 2**26) / 2**26
    truth = enumerate_objective(flips, drops, np.ones(200), 2, 0.3, 1.0, 0.0)
    check_against(truth, Problem(Evidence.from_sample(flips, drops), 2, 0.3), seed)


def test_a_candidate_is_forced_where_every_better_set_has_it():
    rng = np.random.default_rng(0)
    answers = []
    for _ in range(400):
        n, r = int(rng.integers(3, 8)), int(rng.integers(1, 3))
        values = rng.exponential(size=n) * rng.choice([1.0, np.inf], size=n, p=[0.95, 0.05])
        cutoff = float(rng.uniform(-3, 1))
        better = [
            set(chosen) for chosen in itertools.combinations(range(n), r) if -values[[*chosen]].sum() < cutoff
        ]
        forced = all(int(values.argmax()) in chosen for chosen in better)
        gains = Alone.of(np.zeros(n)).gains(np.sqrt(values), np.zeros(n), r)
        _, bounds, _ = Bound(0.0, gains, (0.0, 0.0), -gains.total(r)).children(cutoff, r)
        assert (len(bounds) <= 1) == forced
        answers.append(forced)
    assert 50 < sum(answers) < 350


def test_a_literal_that_is_always_flipped_beside_rarely_kept_ones():
    """All but one row flip literal 1, and all rows flip literal 0. The columns are nearly equal; only one fits."""
    flips = np.ones((1000, 2), dtype=bool)
    flips[0, 1] = False
    solution = solve(Problem(Evidence.from_sample(flips, np.full(1000, 0.65)), 1, 0.65))
    assert solution.support.tolist() == [0]
    assert solution.objective < 1e-12


def test_a_negligible_term_is_left_out_of_the_sum_but_counted_in_the_bound():
    flips = np.random.default_rng(0).random((400, 3)) < 0.3
    for unit in (1.0, 2.0**-26):
        drops = (flips[:, 0] + flips[:, 1] * 2.0**-22) * unit
        solution = solve(Problem(Evidence.from_sample(flips, drops), 3, 0.5 * unit))
        assert solution.support.tolist() == [0]
        assert solution.lower_bound < solution.objective < 1e-12 * unit**2
        assert solution.lower_bound < 1e-16 * unit**2


@pytest.mark.parametrize("start", range(0, 3_000, 500))
def test_exact_is_the_enumerated_optimum_where_literals_are_nearly_always_flipped(start):
    """The bounds then hold differences of very large numbers, whose rounding must not prune the optimum."""
    for seed in range(start, start + 500):
        rng = np.random.default_rng([17, seed])
        n, d, k = int(rng.choice([5, 20, 60, 300, 1000])), int(rng.integers(2, 6)), int(rng.integers(1, 4))
        flips = rng.random((n, d)) < rng.choice([0.5, 0.9, 0.99, 0.999])
        flips[:, 0] = True
        if d > 3 and rng.random() < 0.3:
            flips[:, 1] = ~flips[:, 2]
        drops = flips @ rng.uniform(-0.4, 0.4, size=d) + 0.05 * rng.normal(size=n)
        drops = np.rint(np.clip(drops, -1, 1) * 2**26) / 2**26
        prediction, origin, box = float(rng.uniform(-1, 1)), float(rng.choice([0.0, -1.0])), 1.0
        truth = enumerate_objective(flips, drops, np.ones(n), k, prediction, box, origin)
        problem = Problem(Evidence.from_sample(flips, drops), k, prediction, box=box, origin=origin)
        check_against(truth, problem, seed)


def test_the_generated_problems_hold_every_kind_of_trouble():
    """Every kind of degenerate problem must occur often among the problems of every run."""
    counts = dict.fromkeys([*TROUBLES, "k_above_d", "d1", "d12", "fewer_rows", "origin", "no_box"], 0)
    for seed in range(N_PROBLEMS):
        sample = generate(seed)
        n, d = sample.flips.shape
        counts[sample.trouble] += 1
        counts["k_above_d"] += sample.k > d
        counts["d1"] += d == 1
        counts["d12"] += d == 12
        counts["fewer_rows"] += n < d
        counts["origin"] += sample.origin != 0
        counts["no_box"] += sample.box is None
    assert min(counts.values()) >= 150, counts


def test_the_box_is_active_on_literals_and_on_the_intercept():
    on_literal = on_intercept = 0
    for seed in range(1_500):
        sample = generate(seed)
        if sample.box is None:
            continue
        solution = solve(problem_from(sample))
        if solution.status is Status.OPTIMAL:
            on_literal += np.abs(solution.contributions).max(initial=0) > sample.box - 1e-9
            on_intercept += abs(solution.intercept) > sample.box - 1e-9 and sample.box != abs(sample.prediction)
    assert on_literal >= 50
    assert on_intercept >= 50


@pytest.mark.parametrize("start", range(0, 600, 50))
def test_iht_is_never_below_the_optimum_without_box(start):
    for seed in range(start, start + 50):
        problem = problem_from(generate(seed), box=None)
        heuristic = solve(problem, "iht", max_iterations=300)
        assert heuristic.objective >= solve(problem).objective - 1e-9, f"seed {seed}"
        assert heuristic.status is Status.HEURISTIC
        audit.check(problem, heuristic)


@pytest.mark.parametrize("node_limit", [0, 1, 2, 5])
def test_at_a_limit_the_bound_is_still_below_the_optimum(node_limit):
    stopped = 0
    for seed in range(400):
        sample = generate(seed)
        problem = problem_from(sample)
        limited, full = solve(problem, node_limit=node_limit), solve(problem)
        if full.status is Status.INFEASIBLE:
            continue
        stopped += limited.status is Status.LIMIT
        assert limited.lower_bound <= full.objective + 1e-9, f"seed {seed}"
        assert limited.objective >= full.objective - 1e-9, f"seed {seed}"
        audit.check(problem, limited)
    assert stopped > 20 or node_limit == 5


def test_more_terms_never_fit_worse():
    for seed in range(200):
        sample = generate(seed)
        evidence = Evidence.from_sample(sample.flips, sample.drops, sample.weights)
        objectives = [
            solve(Problem(evidence, k, sample.prediction, box=None, origin=sample.origin)).objective
            for k in range(1, 7)
        ]
        assert all(b <= a + 1e-9 for a, b in itertools.pairwise(objectives)), f"seed {seed}"


def test_the_order_of_the_literals_does_not_matter():
    rng = np.random.default_rng(0)
    for seed in range(200):
        sample = generate(seed)
        order = rng.permutation(sample.flips.shape[1])
        evidence = Evidence.from_sample(sample.flips[:, order], sample.drops, sample.weights)
        shuffled = Problem(evidence, sample.k, sample.prediction, box=sample.box, origin=sample.origin)
        assert solve(shuffled).objective == pytest.approx(solve(problem_from(sample)).objective, abs=1e-9)


def test_runners_up_are_the_next_best_of_all_supports_shorter_ones_included():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        d, k, n_best = int(rng.integers(2, 7)), int(rng.integers(1, 9)), int(rng.integers(2, 9))
        flips, drops = rng.random((80, d)) < 0.4, rng.uniform(-1, 1, 80)
        problem = Problem(Evidence.from_sample(flips, drops), k, 0.6, box=None)
        check_runners_up(problem, flips, drops, n_best, seed)


def test_a_proof_that_begins_again_keeps_the_bound_it_had():
    rng = np.random.default_rng(3)
    flips, drops = rng.random((400, 60)) < 0.5, np.clip(rng.normal(size=400) * 0.3, -1, 1)
    problem = Problem(Evidence.from_sample(flips, drops), 8, 0.3)
    bounds = [solve(problem, node_limit=limit).lower_bound for limit in (33, 34, 40, 64)]
    assert bounds == sorted(bounds)
    assert bounds[0] > 0.08
