"""External solvers against the exact one: SCIP and Gurobi agree with it, and the relaxation is below it."""

import itertools
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn import datasets
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier, MLPRegressor

from anchorline.errors import BackendError, MissingDependencyError, ParameterError
from anchorline.optimize import Evidence, Problem, Status, audit, solve
from anchorline.optimize.mip import gurobi, scip
from anchorline.optimize.mip.base import Program, status_of
from anchorline.optimize.relaxation import Polytope
from helpers.problems import generate

MIPS = ("scip", "gurobi")
BOXED = (*MIPS, "relaxation")
AGREE = 1e-6  # the promised agreement; the observed one is about 1e-15, and 1e-8 for SCIP's bounds
PER_TEST = 20


@dataclass(frozen=True)
class Task:
    """A model trained on real data, one of its rows, and the settings of the problem."""

    data: str
    d: int
    model: str
    k: int = 4
    sigma: float = 1.0
    n: int = 2000
    output: str = "label"  # -1 or +1; the origin of "probability" is -1, that of "number" is outside the box

    def __str__(self):
        return f"{self.data}-{self.d}-{self.model}-k{self.k}-{self.output}"


TASKS = [
    Task("breast_cancer", 10, "boosting", k=3, n=1000),
    Task("breast_cancer", 15, "network", k=5, output="probability"),
    Task("breast_cancer", 20, "boosting", k=4, output="probability"),
    Task("breast_cancer", 25, "network", k=4, sigma=2.0, n=5000),
    Task("breast_cancer", 30, "boosting", k=5, n=5000),
    Task("breast_cancer", 40, "network", k=4, n=5000),
    Task("wine", 8, "network", k=3, n=1000),
    Task("wine", 13, "boosting", k=4, output="probability"),
    Task("wine", 16, "network", k=5, sigma=0.5),
    Task("wine", 20, "boosting", k=3, sigma=2.0),
    Task("wine", 24, "network", k=4, output="probability"),
    Task("iris", 8, "boosting", k=3, n=1000),
    Task("iris", 12, "network", k=4, output="probability"),
    Task("iris", 16, "network", k=3),
    Task("diabetes", 8, "network", k=3, n=1000, output="number"),
    Task("diabetes", 10, "boosting", k=5, output="number"),
    Task("diabetes", 15, "network", k=4, output="number"),
    Task("diabetes", 20, "boosting", k=4, sigma=2.0, n=5000, output="number"),
    Task("diabetes", 25, "boosting", k=3, output="number"),
    Task("digits", 12, "network", k=5, n=1000),
    Task("digits", 16, "boosting", k=4, output="probability"),
    Task("digits", 20, "network", k=4, output="probability"),
    Task("digits", 25, "boosting", k=3),
    Task("digits", 32, "network", k=4, n=5000, output="probability"),
    Task("digits", 40, "boosting", k=5, sigma=0.5),
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


def train(task, rows, target):
    """Return a function from rows to numbers in [-1, +1], and the scaled value of a zero output."""
    if task.output == "number":
        low, high = target.min(), target.max()
        kinds = {"network": MLPRegressor, "boosting": GradientBoostingRegressor}
        target = 2 * (target - low) / (high - low) - 1
        origin = float(-2 * low / (high - low) - 1)
    else:
        kinds = {"network": MLPClassifier, "boosting": GradientBoostingClassifier}
        target, origin = target % 2 == 0, -1.0 if task.output == "probability" else 0.0
    options = {"network": {"hidden_layer_sizes": (16,), "max_iter": 60}, "boosting": {"n_estimators": 20}}
    model = kinds[task.model](random_state=0, **options[task.model])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows, target)
    if task.output == "probability":
        return lambda z: 2 * model.predict_proba(z)[:, 1] - 1, origin
    if task.output == "label":
        return lambda z: np.where(model.predict(z), 1.0, -1.0), origin
    return lambda z: np.clip(model.predict(z), -1, 1), origin


def pose(task):
    """Train a model, pick a row, draw flips, query the model, and build the problem."""
    rng = np.random.default_rng([*map(ord, str(task))])
    table, target = getattr(datasets, f"load_{task.data}")(return_X_y=True)
    rows = binarize(table, task.d, rng)
    predict, origin = train(task, rows, target)
    instance = rows[rng.integers(len(rows))]
    flips = rng.random((task.n, rows.shape[1])) < 1 / (1 + np.exp(task.sigma))
    prediction = float(predict(instance[None])[0])
    drops = (prediction - predict(np.where(flips, -instance, instance))) / 2
    return Problem(Evidence.from_sample(flips, drops), task.k, prediction, origin=origin)


@pytest.fixture(scope="module")
def posed():
    """A function that returns the problem and the exact answer of a task, and computes each once."""
    cache = {}

    def lookup(task):
        if task not in cache:
            problem = pose(task)
            cache[task] = problem, solve(problem).require_optimal()
        return cache[task]

    return lookup


def boxed_problem(seed):
    """The generated problem of this seed, always with a box."""
    sample = generate(seed)
    evidence = Evidence.from_sample(sample.flips, sample.drops, sample.weights)
    return Problem(evidence, sample.k, sample.prediction, box=sample.box or 1.0, origin=sample.origin)


def assert_same(problem, answer, exact):
    audit.check(problem, answer)
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
@pytest.mark.parametrize("task", TASKS, ids=str)
def test_real_tasks_agree(posed, task, method):
    problem, exact = posed(task)
    assert problem.n_literals == task.d <= 40
    assert_same(problem, solve(problem, method), exact)


def test_the_tasks_are_what_they_claim(posed):
    assert len(TASKS) >= 20
    assert {task.data for task in TASKS} == {"breast_cancer", "wine", "iris", "diabetes", "digits"}
    origins = {posed(task)[0].origin for task in TASKS}
    assert {0.0, -1.0} < origins
    assert min(origins) < -1.0
    assert all(posed(task)[0].evidence.drop_square > 1e-4 for task in TASKS)


@pytest.mark.parametrize(
    ("method", "start"),
    [("scip", 0), ("scip", 20)] + [("gurobi", start) for start in range(0, 160, PER_TEST)],
)
def test_generated_problems_agree(method, start):
    for seed in range(start, start + PER_TEST):
        problem = boxed_problem(seed)
        assert_same(problem, solve(problem, method), solve(problem))


def test_the_generated_problems_meet_box_and_origin():
    """Among the first forty problems, the box is active or the origin is not zero often enough."""
    problems = [boxed_problem(seed) for seed in range(40)]
    answers = [solve(problem) for problem in problems]
    largest = [max(np.abs(a.contributions).max(), abs(a.intercept)) for a in answers]
    at_box = [
        b >= p.box - 1e-9 for p, a, b in zip(problems, answers, largest, strict=True) if a.objective < np.inf
    ]
    assert sum(at_box) >= 5
    assert sum(p.origin != 0 and abs(p.origin) <= p.box for p in problems) >= 5
    assert sum(abs(p.origin) > p.box for p in problems) >= 3
    used = [a.intercept == p.origin != 0 for p, a in zip(problems, answers, strict=True)]
    assert sum(used) >= 2  # an intercept at a non-zero origin, which is not a term


@pytest.mark.parametrize("method", MIPS)
@pytest.mark.parametrize(
    "limit", [{"time_limit": 0.0}, {"time_limit": 1e-3}, {"node_limit": 0}, {"node_limit": 1}]
)
def test_a_limit_leaves_a_valid_bound(posed, method, limit):
    problem, exact = posed(Task("digits", 40, "boosting", k=5, sigma=0.5))
    answer = solve(problem, method, **limit)
    audit.check(problem, answer)
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


@pytest.mark.parametrize("module", [scip, gurobi])
def test_an_unknown_status_raises(module):
    with pytest.raises(BackendError, match="'exact'"):
        status_of("gone fishing", module.STATUSES, "The backend")


def test_gurobi_statuses_have_their_numbers():
    codes = pytest.importorskip("gurobipy").GRB.Status
    named = {
        codes.OPTIMAL: Status.OPTIMAL,
        codes.INFEASIBLE: Status.INFEASIBLE,
        codes.INF_OR_UNBD: Status.INFEASIBLE,
    }
    named |= dict.fromkeys((codes.NODE_LIMIT, codes.TIME_LIMIT, codes.MEM_LIMIT), Status.LIMIT)
    assert named | {codes.NUMERIC: Status.NUMERICAL} == gurobi.STATUSES


def test_the_license_of_the_wheel_is_reported(monkeypatch):
    """A full license would solve the problem, so the test raises the error that Gurobi raises without one."""
    gurobipy = pytest.importorskip("gurobipy")

    def refuse(*_, **__):
        raise gurobipy.GurobiError(gurobipy.GRB.Error.SIZE_LIMIT_EXCEEDED, "Model too large")

    monkeypatch.setattr(gurobi, "_build", refuse)
    with pytest.raises(BackendError, match=r"100 literals.*ends at 99.*'exact'"):
        solve(wide_problem(100, n=500), "gurobi")


def test_the_license_of_the_wheel_reaches_99():
    problem = wide_problem(99, n=500)
    answer = solve(problem, "gurobi", time_limit=1.0)
    audit.check(problem, answer)
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


@pytest.mark.parametrize("start", range(0, 300, PER_TEST))
def test_the_relaxation_is_below_the_optimum(start):
    for seed in range(start, start + PER_TEST):
        problem = boxed_problem(seed)
        exact, answer = solve(problem), solve(problem, "relaxation")
        audit.check(problem, answer)
        if answer.status is Status.INFEASIBLE:
            assert exact.status is Status.INFEASIBLE, f"seed {seed}"
            continue
        assert answer.status is Status.RELAXED, f"seed {seed}"
        assert answer.lower_bound <= exact.objective + 1e-9, f"seed {seed}"
        assert answer.objective <= exact.objective + 1e-9, f"seed {seed}"
        assert answer.gap <= AGREE, f"seed {seed}"  # duality proves Clarabel's answer


def minimum_by_simplex(polytope, slopes):
    """Solve the same linear program in u, u_0 and bounds on their absolute values."""
    size, box, origin = polytope.n_literals + 1, polytope.box, polytope.center
    intercept = (min(-box, origin), max(box, origin))  # at the origin it is not a term and may leave the box
    shift = np.append(np.zeros(size - 1), polytope.center)
    eye, one, none = np.eye(size), np.ones((1, size)), np.zeros((1, size))
    return linprog(
        np.concatenate([slopes, np.zeros(1 + size)]),
        A_ub=np.block([[eye, -eye], [-eye, -eye], [none, one]]),
        b_ub=np.concatenate([shift, -shift, [polytope.radius]]),
        A_eq=np.hstack([one, none]),
        b_eq=[polytope.prediction],
        bounds=[(-polytope.box, polytope.box)] * (size - 1) + [intercept] + [(0, None)] * size,
        method="highs-ds",
    )


def test_the_linear_bound_is_the_minimum():
    """The duality formula equals the minimum of the primal program for random slopes."""
    rng = np.random.default_rng(0)
    n_checked = 0
    for problem in map(boxed_problem, range(120)):
        polytope, slopes = Polytope.from_problem(problem), rng.normal(size=problem.n_literals)
        primal = minimum_by_simplex(polytope, slopes)
        assert polytope.is_empty == (primal.status == 2)
        if primal.status == 0:
            assert polytope.linear_lower_bound(slopes) == pytest.approx(primal.fun, abs=1e-9)
            n_checked += 1
    assert n_checked >= 100


def test_the_relaxation_of_many_literals():
    problem = wide_problem(644)
    answer = solve(problem, "relaxation")
    audit.check(problem, answer)
    assert answer.gap <= AGREE
    assert answer.lower_bound <= solve(problem, time_limit=5.0).objective + 1e-9
    assert np.count_nonzero(np.abs(answer.contributions) > 1e-6) > problem.k


def test_the_relaxation_at_a_time_limit_is_still_a_bound():
    problem = wide_problem(150)
    answer = solve(problem, "relaxation", time_limit=1e-6)
    audit.check(problem, answer)
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
    samples = [(rng.random((60, 8)) < 0.3, rng.uniform(-0.2, 0.2, 60)) for _ in range(40)]
    problems = [Problem(Evidence.from_sample(*sample), 3, 0.3) for sample in samples]
    before = list(warnings.filters)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda problem: solve(problem, "relaxation"), problems))
    assert warnings.filters == before
