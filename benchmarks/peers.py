"""``anchorline bench peers``: compares anchorline with LIME and KernelSHAP at equal numbers of queries."""

import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.spaces.hypercube import Hypercube
from benchmarks.datasets import PUBLISHED, require_any
from benchmarks.experiments.explainers import (
    N_BACKGROUND,
    largest_indices,
    lime_contributions,
    lime_explainer,
    shapley_values,
)
from benchmarks.needs import PEERS, READING, require
from benchmarks.report import write_json, write_page
from benchmarks.tasks import CACHE, SEED, Benchmark, Stopwatch, load_benchmarks

K = 5  # the terms of a sum, its intercept among them
FLIPS = 1 / (1 + math.e)  # the probability with which a coordinate differs at sigma = 1
N_MEASURED = 50_000
Competitor = Callable[[Callable[[np.ndarray], np.ndarray]], np.ndarray]  # from a model to contributions (d,)


@dataclass(frozen=True, slots=True)
class TimedExplanation:
    """The processor seconds of one explanation, those outside the model, its queries and its relevance error."""

    seconds: float
    overhead: float
    n_queries: int
    relevance_error: float


def race_peers(
    benchmarks: Iterable[Benchmark], n_queries: int = 5000, n_instances: int = 5, seed: int = SEED
) -> Iterator[dict[str, Any]]:
    """Yield one row per benchmark: the cost and the relevance error of the peers, as multiples of anchorline's.

    KernelSHAP runs first; the others get the number of queries that it used, at most ``n_queries``. Ours may need
    fewer.
    """
    if n_queries < 5 * N_BACKGROUND:
        raise ParameterError(f"n_queries is {n_queries}; KernelSHAP needs at least {5 * N_BACKGROUND}.")
    for benchmark in benchmarks:
        _warm_up(benchmark, seed)
        runs: dict[str, list[TimedExplanation]] = {"shap": [], "lime": [], "ours": []}
        for instance in benchmark.instances[:n_instances]:
            columns = _columns(benchmark, instance, seed)
            shap = _timed(benchmark, instance, _shap(instance, columns, n_queries, seed))
            runs["shap"].append(shap)
            runs["lime"].append(_timed(benchmark, instance, _lime(instance, columns, shap.n_queries, seed)))
            runs["ours"].append(_timed(benchmark, instance, _ours(instance, shap.n_queries, seed)))
        yield _row(benchmark, runs, seed)


def _warm_up(benchmark: Benchmark, seed: int) -> None:
    """Run every competitor once without measuring, because imports and compilation happen on first use."""
    instance = benchmark.instances[0]
    columns = _columns(benchmark, instance, seed)
    few = 5 * N_BACKGROUND
    for competitor in (
        _shap(instance, columns, few, seed),
        _lime(instance, columns, few, seed),
        _ours(instance, few, seed),
    ):
        competitor(benchmark.predict)


def relevance_error(benchmark: Benchmark, x: np.ndarray, contributions: np.ndarray, seed: int = 99) -> float:
    """Return the mean squared drop over fresh neighbors that keep every coordinate with a contribution."""
    flips = np.random.default_rng(seed).random((N_MEASURED, benchmark.dimension)) < FLIPS
    flips[:, contributions != 0] = False
    drops = benchmark.predict(x[None, :]) - benchmark.predict(np.where(flips, -x, x))
    return float(np.mean(drops**2))


def _row(benchmark: Benchmark, runs: dict[str, list[TimedExplanation]], seed: int) -> dict[str, Any]:
    queries = {run.n_queries for name in ("lime", "shap") for run in runs[name]}
    most = max(run.n_queries for run in runs["ours"])  # we stop when the verdict is decided
    if len(queries) != 1 or most > min(queries):
        raise AssertionError(
            f"The competitors did not use the same number of queries: {sorted({*queries, most})}."
        )
    overhead = {name: statistics.median(run.overhead for run in each) for name, each in runs.items()}
    total = {name: statistics.median(run.seconds for run in each) for name, each in runs.items()}
    error = {name: statistics.fmean(run.relevance_error for run in each) for name, each in runs.items()}
    row: dict[str, Any] = {
        "benchmark": benchmark.name,
        "d": benchmark.dimension,
        "seed": seed,
        "instances": len(runs["ours"]),
        "queries": queries.pop(),
        "our_overhead_seconds": overhead["ours"],
        "our_relevance_error": error["ours"],
    }
    for name in ("lime", "shap"):
        row[f"{name}_overhead_ratio"] = overhead[name] / overhead["ours"]
        row[f"{name}_end_to_end_ratio"] = total[name] / total["ours"]
        row[f"{name}_relevance_ratio"] = error[name] / error["ours"] if error["ours"] > 0 else None
    return row


def _timed(benchmark: Benchmark, instance: np.ndarray, competitor: Competitor) -> TimedExplanation:
    # Processor time does not depend on other programs.
    watch = Stopwatch(benchmark.predict, time.process_time)
    start = time.process_time()
    contributions = competitor(watch)
    seconds = time.process_time() - start
    error = relevance_error(benchmark, instance, contributions)
    return TimedExplanation(seconds, seconds - watch.seconds, watch.n_rows, error)


def _columns(benchmark: Benchmark, instance: np.ndarray, seed: int) -> np.ndarray:
    """Draw neighbors of the instance at sigma = 1, for LIME's frequencies and KernelSHAP's background."""
    rng = np.random.default_rng([seed, benchmark.dimension])
    flips = rng.random((1000, benchmark.dimension)) < FLIPS
    return np.where(flips, -instance, instance)


def _shap(instance: np.ndarray, columns: np.ndarray, n_queries: int, seed: int) -> Competitor:
    background = columns[:N_BACKGROUND]
    shares = (background != instance).mean(axis=0)

    def run(predict: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        # KernelSHAP also queries the background and the instance, beside its coalitions.
        n_samples = (n_queries - N_BACKGROUND - 1) // N_BACKGROUND
        values, _ = shapley_values(predict, background, instance, seed, n_samples)
        kept, contributions = largest_indices(values, K - 1), np.zeros(len(instance))
        contributions[kept] = values[kept] / (2 * shares[kept])
        return contributions

    return run


def _lime(instance: np.ndarray, columns: np.ndarray, n_queries: int, seed: int) -> Competitor:
    explainer = lime_explainer(columns, seed)

    def run(predict: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        explanation = explainer.explain_instance(instance, predict, num_features=K - 1, num_samples=n_queries)
        return lime_contributions(explanation, len(instance))

    return run


def _ours(instance: np.ndarray, n_queries: int, seed: int) -> Competitor:
    def run(predict: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        found = Explainer(predict, Hypercube()).explain(instance, k=K - 1, queries=n_queries, seed=seed)
        return np.asarray(found.coef * instance)

    return run


def race(
    data: Path,
    *,
    cache: Path | None = None,
    out: Path = Path("benchmarks/results"),
    n_queries: int = 5000,
    n_instances: int = 5,
) -> None:
    """Compare with LIME and KernelSHAP on every available benchmark; print and store each row immediately."""
    require(READING | PEERS)
    require_any(data, [row.id for row in PUBLISHED])
    benchmarks = sorted(load_benchmarks(data, cache=cache or CACHE), key=lambda b: b.dimension)
    rows: list[dict[str, Any]] = []
    for row in race_peers(benchmarks, n_queries, n_instances):
        rows.append(row)
        print("  ", ", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
        write_json(out, "peers", rows)
        write_page(out)
