"""Direct relevance compared with the fidelity optimum, IHT and LIME; and the cost of a whole frontier."""

import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from anchorline.optimize import Limits, Problem
from anchorline.optimize.exact import solve_exact
from anchorline.optimize.problem import Variant
from anchorline.search.assess import measure
from anchorline.search.investigate import gather, pose
from anchorline.search.sampling import cancelling_event
from anchorline.settings import Settings
from anchorline.spaces.hypercube import Hypercube
from benchmarks.engine import lime_explainer
from benchmarks.tasks import Benchmark

N_MEASURED = 50_000  # conditional draws per relevance error
_T_975 = 2.262  # Student's t with 9 degrees of freedom, for ten instances


class WithoutIntercept(Problem):
    """The same problem, with all k terms used for literals."""

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The case without intercept only."""
        return super().variants[1:] or super().variants


def compare_relevance(benchmarks: Iterable[Benchmark]) -> Iterator[dict[str, Any]]:
    """Yield one row per benchmark: each method's mean relevance error, and the paired difference to exact."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(_compare_one, benchmarks)


def _compare_one(benchmark: Benchmark) -> dict[str, Any]:
    methods: dict[str, Method] = {
        "exact": _fidelity("exact"),
        "direct": _direct,
        "k_literals": _k_literals,
        "iht": _fidelity("iht"),
        "lime": _lime,
    }
    errors: dict[str, list[float]] = {name: [] for name in methods}
    proven = complete = 0
    for x in benchmark.instances:
        for name, method in methods.items():
            contributions, status = method(benchmark, x)
            errors[name].append(relevance_error(benchmark, x, contributions))
            proven += name == "direct" and status == "OPTIMAL"
            complete += name == "direct" and status in ("OPTIMAL", "CHOSEN")
    differences = np.subtract(errors["direct"], errors["exact"])
    half = _T_975 * differences.std(ddof=1) / np.sqrt(len(differences))
    means = {name: float(np.mean(values)) for name, values in errors.items()}
    return {
        "benchmark": benchmark.name,
        "d": benchmark.dimension,
        **{f"{name}_relevance_error": mean for name, mean in means.items()},
        "direct_less_exact": float(differences.mean()),
        "paired_low": float(differences.mean() - half),
        "paired_high": float(differences.mean() + half),
        "lower_by_percent": 100 * (1 - means["direct"] / means["exact"]) if means["exact"] > 0 else 0.0,
        "direct_proven": proven,
        "direct_complete": complete,
    }


def relevance_error(benchmark: Benchmark, x: np.ndarray, contributions: np.ndarray, seed: int = 99) -> float:
    """Return the mean squared drop over fresh draws from the event of the contributions, by the definition."""
    settings = Settings.from_keywords(seed=seed)
    case = Explainer(benchmark.predict, Hypercube()).prepare(x, settings)
    event = cancelling_event(contributions, case.law)
    flips = case.stream_inside(event, "measure", N_MEASURED)
    return float(np.mean(measure(case, flips, contributions).drops ** 2))


Method = Callable[[Benchmark, np.ndarray], tuple[np.ndarray, str]]


def _fidelity(solver: str) -> Method:
    def run(benchmark: Benchmark, x: np.ndarray) -> tuple[np.ndarray, str]:
        explainer = Explainer(benchmark.predict, Hypercube())
        e = explainer.explain(x, solver=solver, sampling="draw", n_certify=0, keep_noise=True)
        return e.contributions, e.certificate.status.name

    return run


def _direct(benchmark: Benchmark, x: np.ndarray) -> tuple[np.ndarray, str]:
    e = Explainer(benchmark.predict, Hypercube()).explain(x, objective="relevance", sampling="draw", n_certify=0)
    return e.contributions, e.certificate.status.name


def _k_literals(benchmark: Benchmark, x: np.ndarray) -> tuple[np.ndarray, str]:
    """Return the fidelity optimum without intercept, which is part of the gain of direct relevance."""
    settings = Settings.from_keywords(sampling="draw")
    case = Explainer(benchmark.predict, Hypercube()).prepare(x, settings)
    evidence, _ = gather(case, case.stream("search", 5000))
    posed = pose(case, evidence)
    problem = WithoutIntercept(posed.evidence, posed.k, posed.prediction, posed.box, posed.origin)
    solution = solve_exact(problem, Limits(node_limit=10_000))
    return solution.contributions, solution.status.name


def _lime(benchmark: Benchmark, x: np.ndarray) -> tuple[np.ndarray, str]:
    """Return half of LIME's weights: its indicator, 1 where a column keeps its value, is (1 + z x) / 2."""
    explanation = lime_explainer(benchmark).explain_instance(
        x, benchmark.predict, num_features=4, num_samples=5000
    )
    contributions = np.zeros(benchmark.dimension)
    for j, weight in next(iter(explanation.local_exp.values())):
        contributions[j] = weight / 2
    return contributions, "HEURISTIC"


def frontier_cost(benchmarks: Iterable[Benchmark], repeats: int = 10) -> Iterator[dict[str, Any]]:
    """Yield the time of the whole frontier k = 1..8 as a multiple of that of k = 8 alone."""
    for benchmark in benchmarks:
        explainer = Explainer(benchmark.predict, Hypercube())
        whole, alone = [], []
        for x in benchmark.instances[:repeats]:
            start = time.perf_counter()
            explainer.frontier(x, range(1, 9), sampling="draw")
            middle = time.perf_counter()
            explainer.explain(x, k=8, sampling="draw")
            whole.append(middle - start)
            alone.append(time.perf_counter() - middle)
        yield {
            "benchmark": benchmark.name,
            "d": benchmark.dimension,
            "frontier_seconds": statistics.median(whole),
            "largest_k_seconds": statistics.median(alone),
            "ratio": statistics.median(whole) / statistics.median(alone),
        }
