"""Solvers of (MIP) against the exact one: SCIP and Gurobi agree with it, and the relaxation is below it."""

import itertools
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn import datasets
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

from anchorline.errors import BackendError, MissingDependencyError, ParameterError
from anchorline.paper import Evidence, Problem, Status, backends, check, solve
from anchorline.paper.backends import GUROBI_STATUSES, SCIP_STATUSES, Polytope, Program, status_of
from helpers.paper_oracle import generate

MIPS = ("scip", "gurobi")
BOXED = (*MIPS, "relaxation")
AGREE = 1e-6  # the promised agreement; the observed one is about 1e-15, and 1e-8 for SCIP's bounds

# Data, d, k, sigma, n, and whether the model returns labels, probabilities or numbers.
TASKS = [
    ("breast_cancer", 10, 3, 1.0, 1000, "label"),
    ("breast_cancer", 20, 4, 1.0, 2000, "probability"),
    ("wine", 16, 5, 0.5, 2000, "label"),
    ("wine", 24, 4, 1.0, 2000, "probability"),
    ("iris", 12, 4, 1.0, 2000, "probability"),
    ("diabetes", 10, 5, 1.0, 2000, "number"),
    ("diabetes", 25, 3, 2.0, 2000, "number"),
    ("digits", 30, 4, 0.5, 2000, "probability"),
]


def binarize(table, d, rng):
    """Choose d columns "value > quantile" of -1 and +1, with more quantiles if the medians are too few."""
    varied, n_cuts = [], 0
    while len(varied) < d:
        n_cuts += 1
        cuts = np.quantile(table, np.arange(1, n_cuts + 1) / (n_cuts + 1), axis=0)
        columns = np.hstack([np.where(table > cut, 1.0, -1.0) for cut in cuts]).T
        varied = [column for column in columns if abs(column.mean()) < 0.96]
    chosen = np.sort(rng.permutation(len(varied))[:d])
    return np.column_stack([varied[i] for i in chosen])


def pose(data, d, k, sigma, n, output):
    """Train a model, pick a row, draw flips, query the model, and build the problem."""
    rng = np.random.default_rng([d, k, n])
    table, target = getattr(datasets, f"load_{data}")(return_X_y=True)
    rows = binarize(table, d, rng)
    if output == "number":
        low, high = target.min(), target.max()
        model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(rows, target)

        def predict(z):
            return np.clip(2 * (model.predict(z) - low) / (high - low) - 1, -1, 1)
    else:
        model = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(rows, target % 2 == 0)

        def predict(z):
            scores = 2 * model.predict_proba(z)[:, 1] - 1
            return scores if output == "probability" else np.where(scores > 0, 1.0, -1.0)

    x = rows[rng.integers(len(rows))]
    flips = rng.random((n, d)) < 1 / (1 + np.exp(sigma))
    prediction = float(predict(x[None])[0])
    drops = (prediction - predict(np.where(flips, -x, x))) / 2
    return Problem(Evidence.from_sample(flips, drops), k, prediction)


@pytest.fixture(scope="module")
def posed():
    """The problems of all tasks, each with the exact answer."""
    problems = [pose(*task) for task in TASKS]
    return [(problem, solve(problem).require_optimal()) for problem in problems]


def boxed_problem(seed):
    """The generated problem of this seed, always with a box."""
    given = generate(seed)
    evidence = Evidence.from_sample(given.flips, given.drops, given.weights)
    return Problem(evidence, given.k, given.prediction, box=given.box or 1.0)


def assert_same(problem, answer, exact):
    check(problem, answer)
    assert answer.status is exact.status
    if exact.status is not Status.INFEASIBLE:
        assert answer.objective == pytest.approx(exact.objective, abs=AGREE)
        assert answer.lower_bound <= exact.objective + 1e-9
        assert answer.gap <= AGREE


def wide_problem(d, n=2000):
    """A problem with many literals that all have a small effect."""
    rng = np.random.default_rng(d)
    flips = rng.random((n, d)) < 0.27
    drops = (np.tanh(1.0) - np.tanh(1.0 - flips @ rng.exponential(4 / d, d))) / 2
    return Problem(Evidence.from_sample(flips, drops), 5, float(np.tanh(1.0)))


@pytest.mark.parametrize("method", MIPS)
@pytest.mark.parametrize("i", range(len(TASKS)), ids=lambda i: f"{TASKS[i][0]}-{TASKS[i][1]}-{TASKS[i][-1]}")
def test_trained_models_agree(posed, i, method):
    problem, exact = posed[i]
    assert problem.evidence.drop_square > 1e-4
    assert_same(problem, solve(problem, method), exact)


@pytest.mark.parametrize(("method", "n"), [("scip", 30), ("gurobi", 80)])
def test_generated_problems_agree(method, n):
    at_box = 0
    for problem in map(boxed_problem, range(n)):
        exact = solve(problem)
        assert_same(problem, solve(problem, method), exact)
        largest = max(np.abs(exact.contributions).max(), abs(exact.intercept))
        at_box += exact.objective < np.inf and largest >= problem.box - 1e-9
    assert at_box >= 5


@pytest.mark.parametrize("method", MIPS)
@pytest.mark.parametrize(
    "limit", [{"time_limit": 0.0}, {"time_limit": 1e-3}, {"node_limit": 0}, {"node_limit": 1}]
)
def test_a_limit_leaves_a_valid_bound(posed, method, limit):
    problem, exact = posed[-1]
    answer = solve(problem, method, **limit)
    check(problem, answer)
    assert answer.status is Status.LIMIT or answer.n_nodes <= limit["node_limit"]  # proved at the root
    assert 0 <= answer.lower_bound <= exact.objective
    assert exact.objective - 1e-9 <= answer.objective <= problem.evidence.drop_square


@pytest.mark.parametrize("method", MIPS)
def test_a_limit_without_any_answer(method):
    """The intercept alone is outside the box here, so that no fallback answer exists."""
    problem = Problem(boxed_problem(0).evidence, 4, 0.9, box=0.3)
    answer = solve(problem, method, time_limit=0.0)
    assert answer.status is Status.LIMIT
    assert answer.objective == np.inf
    assert answer.lower_bound <= solve(problem).require_optimal().objective


@pytest.mark.parametrize("method", BOXED)
def test_infeasible(method):
    problem = Problem(boxed_problem(0).evidence, 2, 0.9, box=0.3)
    answer = solve(problem, method)
    assert answer.status is solve(problem).status is Status.INFEASIBLE
    assert answer.objective == np.inf


@pytest.mark.parametrize("method", BOXED)
def test_a_box_is_needed(method):
    problem = Problem(boxed_problem(0).evidence, 2, 0.5, box=None)
    with pytest.raises(ParameterError, match=r"box=1\.0.*'exact'"):
        solve(problem, method)


@pytest.mark.parametrize(
    ("method", "package", "extra"),
    [
        ("scip", "pyscipopt", "scip"),
        ("gurobi", "gurobipy", "gurobi"),
        ("relaxation", "cvxpy", "relax"),
        ("relaxation", "clarabel", "relax"),
    ],
)
def test_a_missing_package_is_named(monkeypatch, method, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=rf"`{package}`.*pip install 'anchorline\[{extra}\]'"):
        solve(Problem(boxed_problem(0).evidence, 2, 0.5), method)


@pytest.mark.parametrize("statuses", [SCIP_STATUSES, GUROBI_STATUSES])
def test_an_unknown_status_raises(statuses):
    with pytest.raises(BackendError, match="'exact'"):
        status_of("gone fishing", statuses, "The backend")


def test_gurobi_statuses_have_their_numbers():
    codes = pytest.importorskip("gurobipy").GRB.Status
    named = {
        codes.OPTIMAL: Status.OPTIMAL,
        codes.INFEASIBLE: Status.INFEASIBLE,
        codes.INF_OR_UNBD: Status.INFEASIBLE,
    }
    named |= dict.fromkeys((codes.NODE_LIMIT, codes.TIME_LIMIT, codes.MEM_LIMIT), Status.LIMIT)
    assert named | {codes.NUMERIC: Status.NUMERICAL} == GUROBI_STATUSES


def test_the_license_of_the_wheel_is_reported(monkeypatch):
    """A full license would solve the problem, so the test raises the error that Gurobi raises without one."""
    gurobipy = pytest.importorskip("gurobipy")

    def refuse(*_, **__):
        raise gurobipy.GurobiError(gurobipy.GRB.Error.SIZE_LIMIT_EXCEEDED, "Model too large")

    monkeypatch.setattr(backends, "_build_gurobi", refuse)
    with pytest.raises(BackendError, match=r"100 literals.*ends at 99.*'exact'"):
        solve(wide_problem(100, n=500), "gurobi")


def test_the_license_of_the_wheel_reaches_99():
    problem = wide_problem(99, n=500)
    answer = solve(problem, "gurobi", time_limit=1.0)
    check(problem, answer)
    assert answer.lower_bound <= solve(problem, time_limit=5.0).objective + 1e-9


@pytest.mark.parametrize("method", MIPS)
def test_the_backends_are_quiet(capfd, method):
    solve(boxed_problem(0), method)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


@pytest.mark.parametrize("seed", range(24))
def test_the_split_is_a_split(seed):
    program = Program.from_problem(boxed_problem(seed))
    diagonal, rest = program.split()
    size = np.abs(program.second).max()
    assert np.allclose(np.diag(diagonal) + rest, program.second, rtol=0, atol=1e-15 * size)
    assert (diagonal >= 0).all()
    assert np.linalg.eigvalsh(rest)[0] >= -1e-12 * size


def test_the_relaxation_is_below_the_optimum():
    for seed in range(80):
        problem = boxed_problem(seed)
        exact, answer = solve(problem), solve(problem, "relaxation")
        check(problem, answer)
        if answer.status is Status.INFEASIBLE:
            assert exact.status is Status.INFEASIBLE, f"seed {seed}"
            continue
        assert answer.status is Status.RELAXED, f"seed {seed}"
        assert answer.lower_bound <= exact.objective + 1e-9, f"seed {seed}"
        assert answer.objective <= exact.objective + 1e-9, f"seed {seed}"
        assert answer.gap <= AGREE, f"seed {seed}"  # duality proves Clarabel's answer


def minimum_by_simplex(polytope, slopes):
    """Solve the same linear program in u, u_0 and bounds on their absolute values."""
    size, box = polytope.n_literals + 1, polytope.box
    eye, one, none = np.eye(size), np.ones((1, size)), np.zeros((1, size))
    return linprog(
        np.concatenate([slopes, np.zeros(1 + size)]),
        A_ub=np.block([[eye, -eye], [-eye, -eye], [none, one]]),
        b_ub=np.append(np.zeros(2 * size), polytope.radius),
        A_eq=np.hstack([one, none]),
        b_eq=[polytope.prediction],
        bounds=[(-box, box)] * size + [(0, None)] * size,
        method="highs-ds",
    )


def test_the_linear_bound_is_the_minimum():
    """The duality formula equals the minimum of the primal program for random slopes."""
    rng = np.random.default_rng(0)
    n_checked = 0
    for problem in map(boxed_problem, range(80)):
        polytope, slopes = Polytope.from_problem(problem), rng.normal(size=problem.n_literals)
        primal = minimum_by_simplex(polytope, slopes)
        assert polytope.is_empty == (primal.status == 2)
        if primal.status == 0:
            assert polytope.linear_lower_bound(slopes) == pytest.approx(primal.fun, abs=1e-9)
            n_checked += 1
    assert n_checked >= 70


def test_the_relaxation_of_many_literals():
    problem = wide_problem(300)
    answer = solve(problem, "relaxation")
    check(problem, answer)
    assert answer.gap <= AGREE
    assert answer.lower_bound <= solve(problem, time_limit=5.0).objective + 1e-9
    assert np.count_nonzero(np.abs(answer.contributions) > 1e-6) > problem.k


def test_the_relaxation_at_a_time_limit_is_still_a_bound():
    problem = wide_problem(150)
    answer = solve(problem, "relaxation", time_limit=1e-6)
    check(problem, answer)
    assert answer.status is Status.RELAXED
    assert answer.lower_bound <= solve(problem, "relaxation").objective + 1e-9


@pytest.mark.parametrize(("solver", "scale"), [("scip", 1e-4), ("gurobi", 1e-5)])
def test_a_backend_whose_tolerance_is_larger_than_the_drops_proves_nothing(solver, scale):
    flips = (np.arange(256)[:, None] >> np.arange(8)) & 1
    signs = 1 - 2 * flips
    outputs = signs[:, 0] + 0.7 * signs[:, 1] - 0.5 * signs[:, 2] + 0.3 * signs[:, 3] * signs[:, 4]
    drops = np.rint(scale * (outputs[0] - outputs) * 2**25) / 2**26
    problem = Problem(Evidence.from_sample(flips, drops), 4, 0.5)
    exact, answer = solve(problem), solve(problem, solver)
    assert exact.status is Status.OPTIMAL
    assert answer.lower_bound <= exact.objective
    assert answer.status is Status.LIMIT or answer.objective <= exact.objective * (1 + 1e-3)


@pytest.mark.parametrize("method", MIPS)
@pytest.mark.parametrize("scale", [1.0, 1e-2, 1e-3, 1e-4])
def test_no_bound_is_above_the_optimum_where_outputs_hardly_move(method, scale):
    flips = np.array(list(itertools.product([0, 1], repeat=6)), dtype=bool)
    signs = 1.0 - 2.0 * flips
    outputs = scale * (signs[:, 0] + 0.5 * signs[:, 1] * signs[:, 2] + 0.3 * signs[:, 3]) / 2
    drops = np.rint((outputs[0] - outputs) / 2 * 2**26) / 2**26
    problem = Problem(Evidence.from_sample(flips, drops), 3, float(outputs[0]))
    exact, answer = solve(problem), solve(problem, method)
    assert answer.lower_bound <= exact.objective
    if answer.status is Status.OPTIMAL:
        assert answer.objective <= exact.objective * (1 + 1e-4)


def test_scip_ends_where_outputs_hardly_move():
    flips = [[1, 0, 0, 0, 0, 0], [0] * 6, [0, 1, 0, 1, 1, 1], [0, 1, 0, 1, 0, 0], [0, 1, 1, 0, 0, 0]]
    drops = np.array([6205, 481, 5751, 6457, 12592]) / 2**26
    problem = Problem(Evidence.from_sample(flips, drops), 3, -1.5e-4)
    answer = solve(problem, "scip", node_limit=20_000)
    assert answer.n_nodes < 20_000
    assert answer.lower_bound <= solve(problem).objective


def test_relaxations_in_threads_leave_warnings_as_they_were():
    rng = np.random.default_rng(0)
    samples = [(rng.random((60, 8)) < 0.3, rng.uniform(-0.2, 0.2, 60)) for _ in range(24)]
    problems = [Problem(Evidence.from_sample(*sample), 3, 0.3) for sample in samples]
    before = list(warnings.filters)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda problem: solve(problem, "relaxation"), problems))
    assert warnings.filters == before
