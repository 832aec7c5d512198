"""Benchmarks of the engine: proofs on the paper's tasks, overhead compared with LIME, memory, import time."""

import functools
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from anchorline.optimize import Status
from anchorline.spaces.hypercube import Hypercube
from benchmarks.tasks import Benchmark, Stopwatch

PAPER = {"k": 5, "sigma": 1.0, "n_samples": 5000}
BEYOND = tuple({"k": 8, "sigma": sigma, "n_samples": m} for sigma in (0.0, 2.0, 3.0) for m in (1000, 20_000))
NEARBY = (
    {"k": 8, "sigma": 1.0, "n_samples": 5000},
    *({"k": 5, "sigma": sigma, "n_samples": 5000} for sigma in (0.0, 2.0, 3.0)),
    *({"k": 5, "sigma": 1.0, "n_samples": m} for m in (1000, 20_000)),
)


def proofs(
    benchmarks: Iterable[Benchmark], settings: dict[str, Any], time_limit: float
) -> Iterator[dict[str, Any]]:
    """Explain all instances of every benchmark; yield one row per benchmark with the proofs and the gaps."""
    for benchmark in benchmarks:
        explainer = Explainer(benchmark.predict, Hypercube(benchmark.names))
        seconds, gaps = [], []
        for instance in benchmark.instances:
            start = time.perf_counter()
            explanation = explainer.explain(
                instance,
                sampling="draw",
                n_certify=0,
                time_limit=time_limit,
                node_limit=None,
                keep_noise=True,  # the paper's question: the best sum of k terms, whatever its facts
                **settings,
            )
            seconds.append(time.perf_counter() - start)
            certificate = explanation.certificate
            if certificate.status is not Status.OPTIMAL:
                gaps.append(certificate.optimality_gap / certificate.objective)
        yield {
            "benchmark": benchmark.name,
            "d": benchmark.dimension,
            **settings,
            "time_limit": time_limit,
            "tasks": len(seconds),
            "proven": len(seconds) - len(gaps),
            "median_seconds": statistics.median(seconds),
            "slowest_seconds": max(seconds),
            "largest_relative_gap": max(gaps, default=0.0),
        }


def race_lime(
    benchmarks: Iterable[Benchmark], n_queries: int = 5000, repeats: int = 3
) -> Iterator[dict[str, Any]]:
    """Yield the overhead (time outside the model) of LIME and anchorline, with the same number of queries.

    anchorline runs twice: with all queries for the search, and with half of them for the certificate.
    """
    for benchmark in benchmarks:
        competitors = {
            "lime": _lime_on(benchmark, n_queries),
            "ours": _ours_on(benchmark, n_queries - 1, 0),
            "certified": _ours_on(benchmark, n_queries // 2, n_queries - 1 - n_queries // 2),
        }
        # The first use imports packages, which is not measured.
        competitors["certified"](benchmark.instances[0], Stopwatch(benchmark.predict))
        runs: dict[str, list[TimedRun]] = {name: [] for name in competitors}
        for instance in benchmark.instances[:repeats]:
            for name, competitor in competitors.items():
                runs[name].append(_timed(benchmark, functools.partial(competitor, instance)))
        if {run.n_rows for each in runs.values() for run in each} != {n_queries}:
            raise AssertionError("The competitors did not use the same number of queries.")
        overhead = {name: statistics.median(run.overhead for run in each) for name, each in runs.items()}
        total = {name: statistics.median(run.total for run in each) for name, each in runs.items()}
        yield {
            "benchmark": benchmark.name,
            "d": benchmark.dimension,
            "queries": n_queries,
            "lime_overhead_seconds": overhead["lime"],
            "our_overhead_seconds": overhead["ours"],
            "overhead_ratio": overhead["lime"] / overhead["ours"],
            "end_to_end_ratio": total["lime"] / total["ours"],
            "certified_overhead_ratio": overhead["lime"] / overhead["certified"],
            "certified_end_to_end_ratio": total["lime"] / total["certified"],
        }


@dataclass(frozen=True, slots=True)
class TimedRun:
    """One run: its total time, the time outside the model, and the number of rows queried."""

    total: float
    overhead: float
    n_rows: int


Competitor = Callable[[np.ndarray, Stopwatch], None]


def _ours_on(benchmark: Benchmark, n_samples: int, n_certify: int) -> Competitor:
    def run(instance: np.ndarray, predict: Stopwatch) -> None:
        explainer = Explainer(predict, Hypercube(benchmark.names))
        explainer.explain(instance, k=5, n_samples=n_samples, n_certify=n_certify, sampling="draw")

    return run


def _timed(benchmark: Benchmark, run: Callable[[Stopwatch], None]) -> TimedRun:
    watch = Stopwatch(benchmark.predict)
    start = time.perf_counter()
    run(watch)
    total = time.perf_counter() - start
    return TimedRun(total, total - watch.seconds, watch.n_rows)


def lime_explainer(benchmark: Benchmark) -> Any:
    """Return a LIME explainer with its default settings on Boolean columns."""
    from lime.lime_tabular import LimeTabularExplainer

    columns = np.random.default_rng(48).choice([-1.0, 1.0], size=(1000, benchmark.dimension))
    return LimeTabularExplainer(
        columns,
        mode="regression",
        categorical_features=list(range(benchmark.dimension)),
        discretize_continuous=False,
        random_state=48,
    )


def _lime_on(benchmark: Benchmark, n_queries: int) -> Competitor:
    """Return a run of LIME with k - 1 features, beside its intercept."""
    explainer = lime_explainer(benchmark)

    def run(instance: np.ndarray, predict: Stopwatch) -> None:
        explainer.explain_instance(instance, predict, num_features=4, num_samples=n_queries)

    return run


_MEMORY = """
import numpy as np, anchorline as al
signs = np.random.default_rng(0).choice([-1.0, 1.0], 180)
slopes = np.random.default_rng(1).normal(size=180) / 20
al.explain(lambda z: np.tanh(z @ slopes), signs, n_samples=10**6)  # and the same number to certify
peak = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]  # ru_maxrss may be the parent's
print(int(peak[0].split()[1]) / 1024)
"""


def memory() -> dict[str, Any]:
    """Return the peak resident memory of one explanation from 10^6 samples at d = 180, in MB."""
    done = subprocess.run([sys.executable, "-c", _MEMORY], capture_output=True, text=True, check=True)
    return {"n_samples": 10**6, "d": 180, "peak_mb": round(float(done.stdout), 1)}


def import_time(repeats: int = 9) -> dict[str, Any]:
    """Return the time of ``import anchorline`` in a new process over that of ``import numpy``, as medians."""
    seconds: dict[str, list[float]] = {"numpy": [], "anchorline": []}
    for _ in range(repeats):
        for name, times in seconds.items():
            code = f"import time; s = time.perf_counter(); import {name}; print(time.perf_counter() - s)"
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            times.append(float(done.stdout))
    numpy_seconds, own_seconds = (statistics.median(seconds[name]) for name in ("numpy", "anchorline"))
    ratio = own_seconds / numpy_seconds
    return {"numpy_seconds": numpy_seconds, "anchorline_seconds": own_seconds, "ratio": ratio}
