"""Maximum coverage against enumeration of every support, with and without limits."""

import itertools
import os

import numpy as np
import pytest

from anchorline.errors import ParameterError, SampleError
from anchorline.optimize import Limits, Status
from anchorline.optimize.coverage import CoverageProblem, solve_coverage
from anchorline.optimize.coverage_bounds import bound_members

N_PROBLEMS = 2_000
PER_TEST = 50
SOAK = int(os.environ.get("ANCHORLINE_SOAK", "0"))  # `make soak` runs this many other problems
STARTS = range(10_000, 10_000 + SOAK, PER_TEST) if SOAK else range(0, N_PROBLEMS, PER_TEST)
TROUBLES = ("none", "duplicates", "always", "never", "zero_weights", "ties", "one_row", "no_weight", "no_rows")


def generate(seed):
    """Flips (n, d), weights (n,) and the kind of trouble that they contain."""
    rng = np.random.default_rng(seed)
    trouble = TROUBLES[seed % len(TROUBLES)]
    d = int(rng.integers(1, 11))
    n = {"one_row": 1, "no_rows": 0}.get(trouble, int(rng.integers(2, 80)))
    flips = rng.random((n, d)) < rng.choice([0.05, 0.15, 0.27, 0.5])
    weights = rng.random(n) ** 2 * 10.0 ** rng.integers(-3, 4)
    if trouble == "duplicates":
        flips[:, rng.integers(d, size=d // 2)] = flips[:, [0]]
    elif trouble == "always":
        flips[:, rng.integers(d)] = True
    elif trouble == "never":
        flips[:, rng.integers(d, size=(d + 1) // 2)] = False
    elif trouble == "zero_weights":
        weights[rng.random(n) < 0.5] = 0.0
    elif trouble == "ties":
        weights = rng.choice([0.0, 0.25], size=n)
    elif trouble == "no_weight":
        weights[:] = 0.0
    return flips, weights, trouble


def cover(flips, weights, support):
    return sum(weight for row, weight in zip(flips, weights, strict=True) if row[list(support)].any())


def enumerate_cover(flips, weights, size):
    """The largest weight that ``size`` columns cover, over all choices of columns."""
    size = min(size, flips.shape[1])
    supports = np.array(list(itertools.combinations(range(flips.shape[1]), size)), dtype=int)
    missed = np.ones((len(flips), len(supports)), dtype=bool)
    for position in range(size):
        missed &= ~flips[:, supports[:, position]]
    return float((weights @ ~missed).max())


def real_looking(seed, n, d, smooth=False):
    """Independent flips, and weights that are a threshold function or a smooth function of them."""
    rng = np.random.default_rng(seed)
    flips = rng.random((n, d)) < 0.27
    score = flips @ (rng.exponential(size=d) ** 1.5 * rng.choice([1.0, 1.0, -0.5], size=d))
    if smooth:
        return flips, 1 / (1 + np.exp(-2 * (score - np.median(score)) / score.std())) ** 2
    return flips, (score > np.median(score)).astype(float)


def check(answer, flips, weights, size):
    assert len(answer.support) == min(size, flips.shape[1])
    assert list(answer.support) == sorted(set(answer.support))
    assert answer.covered == pytest.approx(cover(flips, weights, answer.support), abs=1e-12 * weights.sum())
    assert answer.gap == answer.upper_bound - answer.covered >= 0


@pytest.mark.generated
@pytest.mark.parametrize("start", STARTS)
def test_coverage_is_the_enumerated_optimum(start):
    for seed in range(start, start + PER_TEST):
        flips, weights, _ = generate(seed)
        problem = CoverageProblem.from_flips(flips, weights)
        slack, before = 1e-9 * weights.sum(), 0.0
        for size in range(flips.shape[1] + 2):
            answer = solve_coverage(problem, size, Limits())
            truth = enumerate_cover(flips, weights, size)
            assert answer.status is Status.OPTIMAL, f"seed {seed}, size {size}"
            assert answer.covered == pytest.approx(truth, abs=slack), f"seed {seed}, size {size}"
            assert answer.gap <= slack, f"seed {seed}, size {size}"
            assert answer.covered >= before - slack, f"seed {seed}, size {size}"
            check(answer, flips, weights, size)
            before = answer.covered


@pytest.mark.parametrize("node_limit", [0, 1, 3])
def test_at_a_limit_the_bound_is_still_above_the_optimum(node_limit):
    stopped = 0
    samples = [generate(seed)[:2] for seed in range(400)]
    samples += [real_looking(seed, 100, 10, smooth=seed % 2 > 0) for seed in range(100)]
    for number, (flips, weights) in enumerate(samples):
        problem, slack = CoverageProblem.from_flips(flips, weights), 1e-9 * weights.sum()
        for size in range(1, flips.shape[1], 2):
            limited = solve_coverage(problem, size, Limits(node_limit=node_limit))
            truth = enumerate_cover(flips, weights, size)
            assert limited.n_nodes <= node_limit
            assert limited.upper_bound >= truth - slack, f"sample {number}, size {size}"
            assert limited.covered <= truth + slack, f"sample {number}, size {size}"
            if limited.status is Status.OPTIMAL:
                assert limited.gap <= slack, f"sample {number}, size {size}"
            stopped += limited.status is Status.LIMIT
            check(limited, flips, weights, size)
    assert stopped > 20


def test_out_of_time_at_once_the_bound_is_valid():
    flips, weights = real_looking(0, 2_000, 30)
    problem = CoverageProblem.from_flips(flips, weights)
    limited, full = (solve_coverage(problem, 4, Limits(time_limit=seconds)) for seconds in (0.0, None))
    assert limited.status is Status.LIMIT
    assert limited.covered <= full.covered <= limited.upper_bound


def test_out_of_time_inside_a_node_the_bound_is_valid(monkeypatch):
    """The clock runs out after a given number of calls, and the unvisited nodes stay open."""
    flips, weights = real_looking(1, 1_000, 14, smooth=True)
    problem = CoverageProblem.from_flips(flips, weights)
    truth = enumerate_cover(flips, weights, 5)
    stopped = 0
    for n_calls in range(0, 40, 3):
        clock = itertools.count()
        monkeypatch.setattr("anchorline.optimize.coverage.time.perf_counter", lambda clock=clock: next(clock))
        limited = solve_coverage(problem, 5, Limits(time_limit=n_calls + 0.5))
        monkeypatch.undo()
        assert limited.covered <= truth + 1e-9 * problem.total
        assert limited.upper_bound >= truth - 1e-9 * problem.total
        stopped += limited.status is Status.LIMIT
    assert stopped > 3


@pytest.mark.parametrize("smooth", [False, True])
def test_coverage_is_the_enumerated_optimum_on_real_looking_samples(smooth):
    flips, weights = real_looking(2, 5_000, 20, smooth)
    truth = enumerate_cover(flips, weights, 3)
    answer = solve_coverage(CoverageProblem.from_flips(flips, weights), 3, Limits())
    assert answer.covered == pytest.approx(truth, abs=1e-9 * weights.sum())
    assert answer.status is Status.OPTIMAL


@pytest.mark.parametrize("smooth", [False, True])
def test_deep_searches_are_the_enumerated_optimum(smooth):
    """With few rows and many ties the first guess is often wrong, and the search reaches every level."""
    nodes = 0
    for seed in range(15):
        flips, weights = real_looking(seed, 200, 12, smooth)
        problem = CoverageProblem.from_flips(flips, weights)
        for size in (4, 5, 6):
            answer = solve_coverage(problem, size, Limits())
            truth = enumerate_cover(flips, weights, size)
            assert answer.covered == pytest.approx(truth, abs=1e-9 * weights.sum()), f"seed {seed}, size {size}"
            nodes += answer.n_nodes
    assert nodes > 100


def test_every_set_respects_the_bound_of_each_of_its_members():
    for seed in range(100):
        flips, weights, _ = generate(seed)
        overlaps = flips.T.astype(float) @ (flips * weights[:, None])
        for size in range(1, flips.shape[1] + 1):
            bounds = bound_members(overlaps, size)
            for support in itertools.islice(itertools.combinations(range(flips.shape[1]), size), 40):
                covered = cover(flips, weights, support)
                assert covered <= bounds[list(support)].min() + 1e-9 * weights.sum(), f"seed {seed}"


def test_the_generated_problems_hold_every_kind_of_trouble():
    counts = dict.fromkeys([*TROUBLES, "d1", "d10"], 0)
    for seed in range(N_PROBLEMS):
        flips, _, trouble = generate(seed)
        counts[trouble] += 1
        counts["d1"] += flips.shape[1] == 1
        counts["d10"] += flips.shape[1] == 10
    assert min(counts.values()) >= 150, counts


def test_the_same_problem_has_the_same_answer():
    flips, weights = real_looking(3, 3_000, 25)
    first, second = (
        solve_coverage(CoverageProblem.from_flips(flips.copy(), weights.copy()), 4, Limits()) for _ in range(2)
    )
    assert first == second


def test_ties_go_to_the_first_literals():
    flips = np.ones((3, 5), dtype=bool)
    assert solve_coverage(CoverageProblem.from_flips(flips, np.ones(3)), 2, Limits()).support == (0, 1)


def test_a_problem_owns_its_arrays():
    flips, weights = np.eye(3, dtype=bool), np.array([1.0, 2.0, 3.0])
    problem = CoverageProblem.from_flips(flips, weights)
    flips[:], weights[:] = False, 0.0
    assert solve_coverage(problem, 2, Limits()).support == (1, 2)
    with pytest.raises(ValueError, match="read-only"):
        problem.weights[0] = 5.0


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(SampleError, match="must have the shapes"):
        CoverageProblem.from_flips(np.ones((3, 2)), np.ones(2))
    with pytest.raises(SampleError, match="negative"):
        CoverageProblem.from_flips(np.ones((2, 2)), np.array([1.0, -1.0]))
    with pytest.raises(SampleError, match="finite"):
        CoverageProblem.from_flips(np.ones((2, 2)), np.array([1.0, np.nan]))
    with pytest.raises(ParameterError, match="size"):
        solve_coverage(CoverageProblem.from_flips(np.ones((2, 2)), np.ones(2)), -1, Limits())
