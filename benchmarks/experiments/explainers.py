"""Explainers behind one small interface: a task in, answers out."""

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from anchorline.optimize import Problem, solve
from anchorline.optimize.evidence import Evidence, SampleRows
from anchorline.optimize.mip.base import import_backend
from anchorline.search.case import Case
from anchorline.search.investigate import gather, pose
from anchorline.settings import Settings
from anchorline.spaces.hypercube import Hypercube
from benchmarks.engine import Stopwatch
from benchmarks.experiments.maple import fit_maple
from benchmarks.experiments.protocol import MAX_LITERALS, NON_ZERO, TIME_LIMIT, Setting
from benchmarks.tasks import Benchmark

N_BACKGROUND = 20  # rows behind KernelSHAP: two of a thousand literals are then never flipped among them
SLISE_EPSILON = 0.1  # SLISE has no default for the error it tolerates: 5% of the output's range


@dataclass(frozen=True, eq=False)
class Task:
    """One instance, and the one sample of neighbors that all explainers share."""

    benchmark: Benchmark
    instance: np.ndarray
    setting: Setting
    seed: int
    case: Case
    evidence: Evidence
    rows: SampleRows
    sample_seconds: float

    @classmethod
    def of(cls, benchmark: Benchmark, instance: np.ndarray, setting: Setting, seed: int) -> "Task":
        """Draw the sample and ask the model about it."""
        settings = Settings.from_keywords(
            k=setting.k, sigma=setting.sigma, n_samples=setting.m, sampling="draw", seed=seed
        )
        case = Explainer(benchmark.predict, Hypercube()).prepare(instance, settings)
        start = time.perf_counter()
        evidence, rows = gather(case, case.stream("search", setting.m), keep=True)
        assert rows is not None  # kept
        seconds = time.perf_counter() - start
        return cls(benchmark, instance, setting, seed, case, evidence, rows, seconds)

    @cached_property
    def problem(self) -> Problem:
        """The sample as a problem, in the paper's box."""
        return pose(self.evidence, self.case.predictor, self.case.settings)

    @cached_property
    def flips(self) -> np.ndarray:
        """The sample, (m, d) booleans."""
        return self.rows.flips

    @property
    def neighbors(self) -> np.ndarray:
        """The sample as rows of -1 and +1, (m, d)."""
        return np.where(self.flips, -self.instance, self.instance)

    @property
    def outputs(self) -> np.ndarray:
        """What the model says of them, (m,)."""
        return np.asarray(self.prediction - 2 * self.rows.drops)

    @property
    def prediction(self) -> float:
        """What the model says of the instance."""
        return self.case.predictor.scaled_prediction


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """An explanation by anyone: contributions (d,), an intercept, and what is claimed of them."""

    contributions: np.ndarray
    intercept: float
    status: str = "HEURISTIC"
    lower_bound: float = math.nan
    n_nodes: int = 0


Method = Callable[[Task], dict[str, Answer]]


@dataclass(frozen=True, slots=True)
class Timed:
    """Answers by name, the time they took together, and the rows asked beside the shared sample."""

    answers: dict[str, Answer]
    seconds: float
    cpu_seconds: float
    model_seconds: float
    n_queries: int


def ask(method: str, task: Task) -> Timed:
    """Run one method on a task, on the clock; the shared sample is not on it."""
    watch = Stopwatch(task.benchmark.predict)
    watched = replace(task, benchmark=replace(task.benchmark, predict=watch))
    wall, cpu = time.perf_counter(), time.process_time()
    answers = METHODS[method](watched)
    seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
    return Timed(answers, seconds, cpu_seconds, watch.seconds, watch.n_rows)


def can_solve(method: str, n_literals: int) -> bool:
    """Whether a method takes so many literals."""
    return n_literals <= MAX_LITERALS.get(method, n_literals)


def iht_step(sigma: float) -> float:
    r"""The paper's step, :math:`\tfrac{18}{19}\cosh^2(\sigma/2)`."""
    return 18 / 19 * math.cosh(sigma / 2) ** 2


def _by_solver(name: str, **limits: Any) -> Method:
    def run(task: Task) -> dict[str, Answer]:
        steps: dict[str, Any] = {"step": iht_step(task.setting.sigma)} if name == "iht" else {}
        found = solve(task.problem, name, **limits, **steps)
        return {
            name: Answer(found.contributions, found.intercept, found.status.name, found.lower_bound, found.n_nodes)
        }

    return run


def _direct(task: Task) -> dict[str, Answer]:
    """Our search for relevance itself; draws 20,000 neighbors of its own, and 10,000 to choose."""
    setting = task.setting
    e = Explainer(task.benchmark.predict, Hypercube()).explain(
        task.instance,
        objective="relevance",
        k=setting.k,
        sigma=setting.sigma,
        sampling="draw",
        n_certify=0,
        seed=task.seed,
    )
    return {"direct": Answer(e.contributions, e.intercept, e.certificate.status.name)}


def _lime(task: Task) -> dict[str, Answer]:
    """LIME on Boolean columns; it draws its own m, each column by its share in the task's sample.

    Its indicator basis, 1 where a column keeps its value, is (1 + z x) / 2: half of a weight goes to the
    literal, half to the intercept. At k = 1 there is room for the intercept alone: the sample mean.
    """
    setting, d = task.setting, len(task.instance)
    contributions = np.zeros(d)
    if setting.k == 1:
        return {"lime": Answer(contributions, float(task.outputs.mean()))}
    explainer = lime_explainer(task.neighbors, task.seed)
    found = explainer.explain_instance(
        task.instance, task.benchmark.predict, num_features=setting.k - 1, num_samples=setting.m
    )
    contributions = lime_contributions(found, d)
    return {"lime": Answer(contributions, float(found.intercept[1]) + float(contributions.sum()))}


def lime_explainer(columns: np.ndarray, seed: int) -> Any:
    """LIME on Boolean columns, drawing each by its shares in ``columns`` (n, d); its defaults otherwise."""
    tabular = import_backend("lime.lime_tabular", extra="peers")
    return tabular.LimeTabularExplainer(
        columns,
        mode="regression",
        categorical_features=list(range(columns.shape[1])),
        discretize_continuous=False,
        random_state=seed,
    )


def lime_contributions(found: Any, n_literals: int) -> np.ndarray:
    """LIME's answer as contributions (d,): half of each indicator's weight."""
    contributions = np.zeros(n_literals)
    for j, weight in found.local_exp[1]:
        contributions[j] = weight / 2
    return contributions


def _maple(task: Task) -> dict[str, Answer]:
    """MAPLE on the task's sample; its coefficients of z are contributions times the signs of x."""
    coefficients, intercept = fit_maple(task.neighbors, task.outputs, task.seed).explain(task.instance)
    return {"maple": Answer(coefficients * task.instance, intercept)}


def _kernel_shap(task: Task) -> dict[str, Answer]:
    r"""KernelSHAP's k - 1 largest values, as they are and re-anchored.

    They become the linear function whose Shapley values they are: with :math:`b_j` the share of
    background rows that flip literal j, :math:`\phi_j = 2 b_j u_j`. What the dropped values would have
    added is the gap, unless the intercept is moved to close it.
    """
    background = task.neighbors[:N_BACKGROUND]
    values, base = shapley_values(task.benchmark.predict, background, task.instance, task.seed)
    shares = task.flips[:N_BACKGROUND].mean(axis=0)
    kept = largest(values, task.setting.k - 1)
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
    """KernelSHAP's values (d,) and its base value, at its defaults; ``n_samples`` coalitions."""
    with seeded(seed), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its import draws colour maps by functions that will go
        shap = import_backend("shap", extra="peers")
        explainer = shap.KernelExplainer(predict, background)
        values = explainer.shap_values(instance, nsamples=n_samples, silent=True)
    base = float(np.asarray(explainer.expected_value).ravel()[0])
    return np.asarray(values, dtype=np.float64), base


def _slise(task: Task) -> dict[str, Answer]:
    """SLISE on the task's sample, through the instance: dense as it is, and its k - 1 largest re-anchored."""
    with seeded(task.seed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        slise = import_backend("slise", extra="peers")
        found = slise.explain(task.neighbors, task.outputs, SLISE_EPSILON, task.instance, task.prediction)
    coefficients = np.asarray(found.coefficients, dtype=np.float64)
    contributions = coefficients[1:] * task.instance
    top = np.zeros(len(contributions))
    kept = largest(contributions, task.setting.k - 1)
    top[kept] = contributions[kept]
    return {"slise": Answer(contributions, float(coefficients[0])), "slise anchored": _anchored(top, task)}


def _anchored(contributions: np.ndarray, task: Task) -> Answer:
    return Answer(contributions, task.prediction - float(contributions.sum()))


def largest(values: np.ndarray, size: int) -> np.ndarray:
    """Indices of the largest values in size that are not zero."""
    order = np.argsort(-np.abs(values), kind="stable")[:size]
    return np.asarray(order[np.abs(values[order]) > NON_ZERO])


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed NumPy's global generator, which shap and slise draw from, and put it back after."""
    state = np.random.get_state()  # noqa: NPY002  they take no generator
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


METHODS: dict[str, Method] = {
    "exact": _by_solver("exact", time_limit=TIME_LIMIT),
    "iht": _by_solver("iht"),
    "relaxation": _by_solver("relaxation"),
    "direct": _direct,
    "lime": _lime,
    "maple": _maple,
    "gurobi": _by_solver("gurobi", time_limit=TIME_LIMIT),
    "scip": _by_solver("scip", time_limit=TIME_LIMIT),
    "shap": _kernel_shap,
    "slise": _slise,
}
