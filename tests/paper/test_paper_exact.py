"""The exact solver of (P4) against enumeration of every support, with and without the box."""

import itertools
import os

import numpy as np
import pytest

from anchorline.errors import CertificateError, InfeasibleError, NotOptimalError, ParameterError, SampleError
from anchorline.paper import Evidence, Problem, Solution, Status, check, exact, solve
from helpers.paper_oracle import TROUBLES, enumerate_objective, generate, moments
from helpers.referee import Referee

N_PROBLEMS = 800
PER_TEST = 40
SOAK = int(os.environ.get("ANCHORLINE_SOAK", "0"))  # `make soak` runs this many other problems
STARTS = range(10_000, 10_000 + SOAK, PER_TEST) if SOAK else range(0, N_PROBLEMS, PER_TEST)


def problem_of(given, **changes):
    evidence = Evidence.from_sample(given.flips, given.drops, given.weights)
    return Problem(evidence, given.k, given.prediction, **{"box": given.box} | changes)


def on_grid(drops):
    return np.rint(np.clip(drops, -1, 1) * 2**26) / 2**26


def check_against(truth, problem, seed):
    """Check that the solver finds the enumerated optimum, infinite if there is none, and proves it."""
    solution = solve(problem)
    if np.isinf(truth):
        assert solution.status is Status.INFEASIBLE, f"seed {seed}"
        return
    assert solution.status is Status.OPTIMAL, f"seed {seed}"
    assert solution.objective == pytest.approx(truth, abs=1e-9), f"seed {seed}"
    assert solution.lower_bound <= truth + 1e-9, f"seed {seed}"
    assert solution.gap <= 1e-9, f"seed {seed}"
    check(problem, solution)


@pytest.mark.generated
@pytest.mark.parametrize("start", STARTS)
def test_exact_is_the_enumerated_optimum(start):
    for seed in range(start, start + PER_TEST):
        given = generate(seed)
        check_against(given.best(), problem_of(given), seed)


def test_the_generated_problems_hold_every_kind_of_trouble():
    counts = dict.fromkeys([*TROUBLES, "k_above_d", "d1", "d12", "fewer_rows", "no_box"], 0)
    for seed in range(N_PROBLEMS):
        given = generate(seed)
        n, d = given.flips.shape
        counts[given.trouble] += 1
        counts["k_above_d"] += given.k > d
        counts["d1"] += d == 1
        counts["d12"] += d == 12
        counts["fewer_rows"] += n < d
        counts["no_box"] += given.box is None
    assert min(counts.values()) >= 20, counts


def test_the_box_is_active_on_literals_and_on_the_intercept():
    on_literal = on_intercept = 0
    for seed in range(240):
        given = generate(seed)
        if given.box is None:
            continue
        solution = solve(problem_of(given))
        if solution.status is Status.OPTIMAL:
            on_literal += np.abs(solution.contributions).max(initial=0) > given.box - 1e-9
            on_intercept += abs(solution.intercept) > given.box - 1e-9 and given.box != abs(given.prediction)
    assert on_literal >= 10
    assert on_intercept >= 4


def test_exact_is_the_enumerated_optimum_where_the_cheap_bound_comes_first(monkeypatch):
    """The cheap bound comes first for more than 64 candidates, which are too many for enumeration."""
    monkeypatch.setattr(exact, "_FEW_CANDIDATES", 0)
    for seed in range(N_PROBLEMS, N_PROBLEMS + 40):
        given = generate(seed)
        check_against(given.best(), problem_of(given), seed)


@pytest.mark.parametrize("seed", range(3))
def test_exact_is_the_enumerated_optimum_of_many_literals(seed):
    rng = np.random.default_rng([29, seed])
    flips = rng.random((200, 70)) < 0.3
    flips[:, 1] = ~flips[:, 0]
    flips[:, 2] = flips[:, 3]
    drops = on_grid(flips @ (rng.normal(size=70) * (rng.random(70) < 0.1)) * 0.2 + 0.1 * rng.normal(size=200))
    truth = enumerate_objective(flips, drops, np.ones(200), 2, 0.3, 1.0)
    check_against(truth, Problem(Evidence.from_sample(flips, drops), 2, 0.3), seed)


@pytest.mark.parametrize("start", range(0, 300, 100))
def test_exact_is_the_enumerated_optimum_where_literals_are_nearly_always_flipped(start):
    """The bounds then hold differences of very large numbers, whose rounding must not prune the optimum."""
    for seed in range(start, start + 100):
        rng = np.random.default_rng([17, seed])
        n, d, k = int(rng.choice([5, 20, 60, 300, 1000])), int(rng.integers(2, 6)), int(rng.integers(1, 4))
        flips = rng.random((n, d)) < rng.choice([0.5, 0.9, 0.99, 0.999])
        flips[:, 0] = True
        if d > 3 and rng.random() < 0.3:
            flips[:, 1] = ~flips[:, 2]
        drops = on_grid(flips @ rng.uniform(-0.4, 0.4, size=d) + 0.05 * rng.normal(size=n))
        prediction = float(rng.uniform(-1, 1))
        truth = enumerate_objective(flips, drops, np.ones(n), k, prediction, 1.0)
        check_against(truth, Problem(Evidence.from_sample(flips, drops), k, prediction), seed)


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


@pytest.mark.parametrize("node_limit", [0, 1, 2, 5])
def test_at_a_limit_the_bound_is_still_below_the_optimum(node_limit):
    stopped = 0
    for seed in range(60):
        problem = problem_of(generate(seed))
        limited, full = solve(problem, node_limit=node_limit), solve(problem)
        if full.status is Status.INFEASIBLE:
            continue
        stopped += limited.status is Status.LIMIT
        assert limited.lower_bound <= full.objective + 1e-9, f"seed {seed}"
        assert limited.objective >= full.objective - 1e-9, f"seed {seed}"
        check(problem, limited)
    assert stopped > 3 or node_limit == 5


def test_more_terms_never_fit_worse():
    for seed in range(40):
        given = generate(seed)
        evidence = Evidence.from_sample(given.flips, given.drops, given.weights)
        objectives = [solve(Problem(evidence, k, given.prediction, box=None)).objective for k in range(1, 7)]
        assert all(b <= a + 1e-9 for a, b in itertools.pairwise(objectives)), f"seed {seed}"


def test_the_order_of_the_literals_does_not_matter():
    rng = np.random.default_rng(0)
    for seed in range(40):
        given = generate(seed)
        order = rng.permutation(given.flips.shape[1])
        evidence = Evidence.from_sample(given.flips[:, order], given.drops, given.weights)
        shuffled = Problem(evidence, given.k, given.prediction, box=given.box)
        assert solve(shuffled).objective == pytest.approx(solve(problem_of(given)).objective, abs=1e-9)


def test_a_proof_that_begins_again_keeps_the_bound_it_had():
    rng = np.random.default_rng(3)
    flips, drops = rng.random((400, 60)) < 0.5, np.clip(rng.normal(size=400) * 0.3, -1, 1)
    problem = Problem(Evidence.from_sample(flips, drops), 8, 0.3)
    bounds = [solve(problem, node_limit=limit).lower_bound for limit in (33, 34, 40, 64)]
    assert bounds == sorted(bounds)
    assert bounds[0] > 0.08


# --- every scale, against enumeration in rational numbers -----------------------------------------------------


def scaled(seed):
    """Return the rows of a problem and its settings; drops, terms and weights have very different sizes."""
    rng = np.random.default_rng([23, seed])
    d, k = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    n = int(rng.integers(1, d + 2)) if rng.random() < 0.2 else int(rng.integers(5, 30))
    flips = rng.random((n, d)) < rng.uniform(0.1, 0.9)
    for kind in rng.choice(["always", "never", "complement", "duplicate", "rare"], rng.integers(0, 4)):
        i, j = rng.integers(0, d, 2)
        columns = {"always": True, "never": False, "complement": ~flips[:, j], "duplicate": flips[:, j]}
        flips[:, i] = columns.get(kind, np.arange(n) == 0)
    drops = flips @ (rng.normal(size=d) * (rng.random(d) < 0.7)) + rng.normal(size=n) * rng.choice(
        [0.0, 1e-3, 0.3]
    )
    weights = rng.uniform(0.01, 1, n) * 10.0 ** rng.uniform(-12, 12) if rng.random() < 0.4 else None
    unit, reach = 10.0 ** rng.uniform(-12, 12), 10.0 ** rng.choice([0, 0, 0, 1, 3, 5, 6, 7, 9, 11])
    prediction = float(rng.choice([0.0, 1.0, -1.0, rng.uniform(-2, 2)])) * unit * reach
    box = None if rng.random() < 0.3 else float(rng.choice([0.3, 0.7, 1.0, 1.0, 3.0])) * unit * reach
    return flips, drops * unit, weights, k, prediction, box


def check_scaled(seed):
    """Compare one problem with the referee; all errors are shares of the mean squared drop or of the optimum."""
    flips, drops, weights, k, prediction, box = scaled(seed)
    problem = Problem(Evidence.from_sample(flips, drops, weights), k, prediction, box=box)
    ones = np.ones(len(drops))
    referee = Referee(flips, drops, ones if weights is None else weights, k, prediction, box, 0.0)
    best, solution = referee.best(), solve(problem)
    if solution.status is Status.INFEASIBLE:
        assert best is None
        return solution.status
    if best is None:  # the solver may still reach a prediction that is out of reach by rounding only
        return solution.status
    scale = float(max(referee.square, best)) or prediction**2  # or the square of the sum, if the model is constant
    u, intercept, best = solution.contributions, solution.intercept, float(best)
    assert solution.status in (Status.OPTIMAL, Status.NUMERICAL)
    assert solution.lower_bound <= best + 1e-11 * scale
    if solution.status is Status.OPTIMAL:
        assert abs(float(referee.objective(u)) - solution.objective) <= 1e-9 * scale
        assert solution.objective <= best + 1e-9 * scale
    assert np.count_nonzero(u) + (intercept != 0) <= k
    assert box is None or max(np.abs(u).max(initial=0), abs(intercept)) <= box
    assert abs(u.sum() + intercept - prediction) <= 1e-12 * (np.abs(u).sum() + abs(intercept) + abs(prediction))
    check(problem, solution)
    return solution.status


def test_status_bound_and_gap_are_true_relative_to_the_problem():
    statuses = []
    for seed in range(120):
        try:
            statuses.append(check_scaled(seed))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    assert statuses.count(Status.OPTIMAL) >= 84
    assert statuses.count(Status.NUMERICAL) <= 8  # only where terms are far larger than the drops


# --- evidence -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 7, 400, 9_000])
def test_moments_are_those_of_the_rows(n, weighted):
    rng = np.random.default_rng(n)
    flips, drops = rng.random((n, 6)) < 0.3, rng.uniform(-1, 1, n)
    weights = rng.random(n) + 1e-3 if weighted else None
    share = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    evidence, (means, second) = Evidence.from_sample(flips, drops, weights), moments(flips, weights)
    assert evidence.flip_means == pytest.approx(means, abs=1e-12)
    assert evidence.second_moments == pytest.approx(second, abs=1e-12)
    assert evidence.cross_moments == pytest.approx((share * drops) @ flips, abs=1e-12)
    assert evidence.drop_mean == pytest.approx(share @ drops, abs=1e-12)
    assert evidence.drop_square == pytest.approx(share @ drops**2, abs=1e-12)
    u = rng.normal(size=6)
    assert evidence.mean_square(u) == pytest.approx(share @ (drops - flips @ u) ** 2, abs=1e-9)
    for array in (evidence.flip_means, evidence.second_moments, evidence.cross_moments):
        assert not array.flags.writeable


GOOD = ([[1, 0], [0, 1]], [0.5, 0.25])


@pytest.mark.parametrize(
    ("flips", "drops", "weights", "words"),
    [
        ([1, 0], [0.5, 0.25], None, r"\(2,\).*\(n, d\)"),
        ([[1, 0], [0, 1]], [0.5], None, r"\(2, 2\).*\(1,\)"),
        (np.zeros((0, 3)), [], None, r"\(0, 3\).*n >= 1"),
        ([[1, 2], [0, 1]], [0.5, 0.25], None, "0 or 1"),
        ([[1, np.nan], [0, 1]], [0.5, 0.25], None, "0 or 1"),
        (GOOD[0], [0.5, np.nan], None, "finite"),
        (*GOOD, [1.0], r"\(2,\).*\(1,\)"),
        (*GOOD, [1.0, -1.0], "negative"),
        (*GOOD, [1.0, np.inf], "infinite"),
        (*GOOD, [0.0, 0.0], "all zero"),
    ],
)
def test_a_wrong_sample_is_refused(flips, drops, weights, words):
    with pytest.raises(SampleError, match=words):
        Evidence.from_sample(flips, drops, weights)


# --- problems and solutions -----------------------------------------------------------------------------------

EVIDENCE = Evidence.from_sample(*GOOD)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"k": 0}, "k is 0.*k=5"),
        ({"k": 2.5}, r"k is 2\.5.*k=5"),
        ({"k": True}, "k is True"),
        ({"prediction": np.nan}, "prediction is nan"),
        ({"box": 0.0}, r"box is 0\.0.*box=None"),
        ({"box": np.inf}, "box is inf"),
    ],
)
def test_a_wrong_problem_is_refused(changes, words):
    with pytest.raises(ParameterError, match=words):
        Problem(EVIDENCE, **{"k": 2, "prediction": 0.5} | changes)


def test_a_support_that_cannot_reach_the_prediction_is_named():
    with pytest.raises(InfeasibleError, match=r"literals \[0\] cannot add up to the prediction 0\.9.*k=2"):
        Problem(EVIDENCE, 1, 0.9, box=0.3).fit(np.array([0]))


def test_an_unknown_solver_is_named():
    with pytest.raises(ParameterError, match=r"'cplex' is unknown.*scip"):
        solve(Problem(EVIDENCE, 1, 0.5), "cplex")


def test_solutions_check_themselves():
    problem = Problem(EVIDENCE, 2, 0.5)
    good = solve(problem)
    assert good.require_optimal() is good
    claims = {"contributions": good.contributions, "intercept": good.intercept, "objective": good.objective}
    for wrong, words in (
        ({"intercept": good.intercept + 0.1}, "miss the prediction"),
        ({"objective": good.objective + 0.1}, "claims the objective"),
        ({"contributions": [2.0, 0.0], "intercept": -1.5, "objective": 1.15625}, "larger than the box"),
        ({"contributions": [0.2, 0.2], "intercept": 0.1, "objective": 0.04625}, "3 terms"),
    ):
        with pytest.raises(CertificateError, match=words):
            check(problem, Solution(**claims | wrong, status=Status.OPTIMAL))
    with pytest.raises(CertificateError):
        Solution(**claims | {"objective": 0.1}, lower_bound=0.2, status=Status.OPTIMAL)
    with pytest.raises(NotOptimalError, match="Stopped at a limit"):
        Solution(**claims, status=Status.LIMIT).require_optimal()
    with pytest.raises(ValueError, match="read-only"):
        good.contributions[0] = 1.0
