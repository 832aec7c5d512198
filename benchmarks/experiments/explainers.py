"""All explainers behind one interface: a function from a task to answers."""

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anchorline.paper import Evidence, Neighborhood, Problem, Sample, iht_step, solve
from anchorline.paper.backends import import_backend
from benchmarks.experiments.maple import fit_maple
from benchmarks.experiments.protocol import MAX_LITERALS, NON_ZERO, TIME_LIMIT, Setting
from benchmarks.tasks import Benchmark, Stopwatch

N_BACKGROUND = 20  # background rows of KernelSHAP; two of a thousand literals are not flipped in any of them
SLISE_EPSILON = 0.1  # the error that SLISE tolerates, which has no default: 5% of the output's range


@dataclass(frozen=True, eq=False)
class Task:
    """One instance, the sample of neighbors that all explainers share, and its problem, with the paper's box."""

    benchmark: Benchmark
    instance: np.ndarray
    setting: Setting
    seed: int
    around: Neighborhood
    sample: Sample
    problem: Problem
    sample_seconds: float

    @classmethod
    def from_benchmark(cls, benchmark: Benchmark, instance: np.ndarray, setting: Setting, seed: int) -> "Task":
        """Draw the sample and query the model about it."""
        around = Neighborhood(benchmark.predict, instance, setting.sigma, seed)
        start = time.perf_counter()
        sample = around.sample(setting.m)
        problem = Problem(Evidence.from_sample(sample.flips, sample.drops), setting.k, around.prediction)
        return cls(benchmark, instance, setting, seed, around, sample, problem, time.perf_counter() - start)

    @property
    def flips(self) -> np.ndarray:
        """The sample, (m, d) booleans."""
        return self.sample.flips

    @property
    def neighbors(self) -> np.ndarray:
        """The sample as rows of -1 and +1, (m, d)."""
        return np.where(self.flips, -self.instance, self.instance)

    @property
    def outputs(self) -> np.ndarray:
        """The model's outputs for the neighbors, (m,)."""
        return np.asarray(self.prediction - 2 * self.sample.drops)

    @property
    def prediction(self) -> float:
        """The model's output for the instance."""
        return self.around.prediction


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """An explanation by any method: contributions (d,), an intercept, and the method's claims about them."""

    contributions: np.ndarray
    intercept: float
    status: str = "HEURISTIC"
    lower_bound: float = math.nan
    n_nodes: int = 0


Method = Callable[[Task], dict[str, Answer]]


@dataclass(frozen=True, slots=True)
class TimedAnswers:
    """Answers by name, the time they took together, and the rows queried beside the shared sample."""

    answers: dict[str, Answer]
    seconds: float
    cpu_seconds: float
    model_seconds: float
    n_queries: int


def ask(method: str, task: Task) -> TimedAnswers:
    """Run one method on a task and measure its time, without that of the shared sample."""
    watch = Stopwatch(task.benchmark.predict)
    watched = replace(task, benchmark=replace(task.benchmark, predict=watch))
    wall, cpu = time.perf_counter(), time.process_time()
    answers = METHODS[method](watched)
    seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
    return TimedAnswers(answers, seconds, cpu_seconds, watch.seconds, watch.n_rows)


def can_solve(method: str, n_literals: int) -> bool:
    """Return whether a method accepts this number of literals."""
    return n_literals <= MAX_LITERALS.get(method, n_literals)


def _by_solver(name: str, **limits: Any) -> Method:
    def run(task: Task) -> dict[str, Answer]:
        steps: dict[str, Any] = {"step": iht_step(task.setting.sigma)} if name == "iht" else {}
        solution = solve(task.problem, name, **limits, **steps)
        status, bound = solution.status.name, solution.lower_bound
        return {name: Answer(solution.contributions, solution.intercept, status, bound, solution.n_nodes)}

    return run


def _lime(task: Task) -> dict[str, Answer]:
    """Run LIME on Boolean columns; it draws its own m neighbors, with the frequencies of the task's sample.

    Its indicator, 1 where a column keeps its value, is (1 + z x) / 2, so half of a weight belongs to the literal
    and half to the intercept. At k = 1 the answer is the intercept alone, which is the sample mean.
    """
    setting, d = task.setting, len(task.instance)
    contributions = np.zeros(d)
    if setting.k == 1:
        return {"lime": Answer(contributions, float(task.outputs.mean()))}
    explainer = lime_explainer(task.neighbors, task.seed)
    explanation = explainer.explain_instance(
        task.instance, task.benchmark.predict, num_features=setting.k - 1, num_samples=setting.m
    )
    contributions = lime_contributions(explanation, d)
    return {"lime": Answer(contributions, float(explanation.intercept[1]) + float(contributions.sum()))}


def lime_explainer(columns: np.ndarray, seed: int) -> Any:
    """Return LIME on Boolean columns, which draws with the frequencies in ``columns`` (n, d)."""
    tabular = import_backend("lime.lime_tabular", extra="peers")
    return tabular.LimeTabularExplainer(
        columns,
        mode="regression",
        categorical_features=list(range(columns.shape[1])),
        discretize_continuous=False,
        random_state=seed,
    )


def lime_contributions(explanation: Any, n_literals: int) -> np.ndarray:
    """Return LIME's explanation as contributions (d,): half of the weight of each indicator."""
    contributions = np.zeros(n_literals)
    for j, weight in explanation.local_exp[1]:
        contributions[j] = weight / 2
    return contributions


def _maple(task: Task) -> dict[str, Answer]:
    """Run MAPLE on the task's sample; its coefficients of z are the contributions times the signs of x."""
    coefficients, intercept = fit_maple(task.neighbors, task.outputs, task.seed).explain(task.instance)
    return {"maple": Answer(coefficients * task.instance, intercept)}


def _kernel_shap(task: Task) -> dict[str, Answer]:
    r"""Return KernelSHAP's k - 1 largest values, unchanged and re-anchored.

    The values are converted to the linear function that has them as Shapley values: with :math:`b_j` the share
    of background rows that flip literal j, :math:`\phi_j = 2 b_j u_j`. The sum of the dropped values is the
    anchoring gap; re-anchoring moves the intercept to close it.
    """
    background = task.neighbors[:N_BACKGROUND]
    values, base = shapley_values(task.benchmark.predict, background, task.instance, task.seed)
    shares = task.flips[:N_BACKGROUND].mean(axis=0)
    kept = largest_indices(values, task.setting.k - 1)
    contributions = np.zeros(len(values))
    contributions[kept] = values[kept] / (2 * shares[kept])
    intercept = base - float(contributions @ (1 - 2 * shares))
    return {"shap": Answer(contributions, intercept), "shap anchored": _anchored(contributions, task)}


def shapley_values(
    predict: Callable[[np.ndarray], np.ndarray],
    background: np.ndarray,
    instance: np.ndarray,
    seed: int,
    n_samples: int | str = "auto",
) -> tuple[np.ndarray, float]:
    """Return KernelSHAP's values (d,) and its base value, with ``n_samples`` coalitions and default settings."""
    with seeded(seed), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its import uses deprecated functions of matplotlib
        shap = import_backend("shap", extra="peers")
        explainer = shap.KernelExplainer(predict, background)
        values = explainer.shap_values(instance, nsamples=n_samples, silent=True)
    base = float(np.asarray(explainer.expected_value).ravel()[0])
    return np.asarray(values, dtype=np.float64), base


def _slise(task: Task) -> dict[str, Answer]:
    """Run SLISE on the task's sample, through the instance: the dense answer, and its k - 1 largest terms."""
    with seeded(task.seed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        slise = import_backend("slise", extra="peers")
        explanation = slise.explain(task.neighbors, task.outputs, SLISE_EPSILON, task.instance, task.prediction)
    coefficients = np.asarray(explanation.coefficients, dtype=np.float64)
    contributions = coefficients[1:] * task.instance
    top = np.zeros(len(contributions))
    kept = largest_indices(contributions, task.setting.k - 1)
    top[kept] = contributions[kept]
    return {"slise": Answer(contributions, float(coefficients[0])), "slise anchored": _anchored(top, task)}


def _anchored(contributions: np.ndarray, task: Task) -> Answer:
    return Answer(contributions, task.prediction - float(contributions.sum()))


def largest_indices(values: np.ndarray, size: int) -> np.ndarray:
    """Return the indices of the ``size`` values that are largest in absolute value, without zeros."""
    order = np.argsort(-np.abs(values), kind="stable")[:size]
    return np.asarray(order[np.abs(values[order]) > NON_ZERO])


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed NumPy's global generator, which shap and slise use, and restore its state afterwards."""
    state = np.random.get_state()  # noqa: NPY002  they accept no generator
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


METHODS: dict[str, Method] = {
    "exact": _by_solver("exact", time_limit=TIME_LIMIT),
    "iht": _by_solver("iht"),
    "relaxation": _by_solver("relaxation"),
    "lime": _lime,
    "maple": _maple,
    "gurobi": _by_solver("gurobi", time_limit=TIME_LIMIT),
    "scip": _by_solver("scip", time_limit=TIME_LIMIT),
    "shap": _kernel_shap,
    "slise": _slise,
}
