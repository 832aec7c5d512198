"""Proofs of the paper's problem (P4) on the paper's tasks, and the time of an import."""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from anchorline.paper import Evidence, Neighborhood, Problem, Status, solve
from benchmarks.tasks import Benchmark

K, SIGMA, N_SAMPLES = 5, 1.0, 5000  # the paper's setting


def proofs(benchmarks: Iterable[Benchmark], time_limit: float) -> Iterator[dict[str, Any]]:
    """Solve (P4) for all instances of every benchmark; yield one row per benchmark with proofs and gaps."""
    for benchmark in benchmarks:
        seconds, gaps = [], []
        for instance in benchmark.instances:
            start = time.perf_counter()
            around = Neighborhood(benchmark.predict, instance, SIGMA)
            sample = around.sample(N_SAMPLES)
            evidence = Evidence.from_sample(sample.flips, sample.drops)
            solution = solve(Problem(evidence, K, around.prediction), time_limit=time_limit)
            seconds.append(time.perf_counter() - start)
            if solution.status is not Status.OPTIMAL:
                gaps.append(1 - solution.lower_bound / solution.objective)
        yield {
            "benchmark": benchmark.name,
            "d": benchmark.dimension,
            "time_limit": time_limit,
            "tasks": len(seconds),
            "proven": len(seconds) - len(gaps),
            "median_seconds": statistics.median(seconds),
            "slowest_seconds": max(seconds),
            "largest_relative_gap": max(gaps, default=0.0),
        }


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
