"""What ``anchorline bench peers`` does: ours, LIME and KernelSHAP at equal queries, in one run, as ratios."""

import functools
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.settings import Settings
from anchorline.spaces.hypercube import Hypercube
from benchmarks.datasets import PUBLISHED, require_any
from benchmarks.engine import Stopwatch
from benchmarks.experiments.explainers import (
    N_BACKGROUND,
    largest,
    lime_contributions,
    lime_explainer,
    shapley_values,
)
from benchmarks.needs import PEERS, READING, require
from benchmarks.relevance import relevance_error
from benchmarks.report import write_json, write_page
from benchmarks.tasks import CACHE, SEED, Benchmark, load_benchmarks

K = 5
Side = Callable[[Callable[[np.ndarray], np.ndarray]], np.ndarray]  # a model in, contributions (d,) out


@dataclass(frozen=True, slots=True)
class Lap:
    """One explanation: all its processor seconds, those outside the model, its queries, its relevance error."""

    seconds: float
    overhead: float
    n_queries: int
    relevance_error: float


def race_peers(
    benchmarks: Iterable[Benchmark], n_queries: int = 5000, n_instances: int = 5, seed: int = SEED
) -> Iterator[dict[str, Any]]:
    """One row a benchmark: what the peers cost and are worth, as multiples of ours.

    KernelSHAP goes first; the others get exactly as many queries as it asked, at most ``n_queries``.
    """
    if n_queries < 5 * N_BACKGROUND:
        raise ParameterError(f"n_queries is {n_queries}; needed at least {5 * N_BACKGROUND} for KernelSHAP.")
    for benchmark in benchmarks:
        _warm_up(benchmark, seed)
        laps: dict[str, list[Lap]] = {"shap": [], "lime": [], "ours": []}
        for instance in benchmark.instances[:n_instances]:
            columns = _columns(benchmark, instance, seed)
            asked = _lap(benchmark, instance, _shap(instance, columns, n_queries, seed))
            laps["shap"].append(asked)
            laps["lime"].append(_lap(benchmark, instance, _lime(instance, columns, asked.n_queries, seed)))
            laps["ours"].append(_lap(benchmark, instance, _ours(instance, asked.n_queries, seed)))
        yield _row(benchmark, laps, seed)


def _warm_up(benchmark: Benchmark, seed: int) -> None:
    """Every side once off the record: imports and compilation happen on first use."""
    instance = benchmark.instances[0]
    columns = _columns(benchmark, instance, seed)
    few = 5 * N_BACKGROUND
    for side in (
        _shap(instance, columns, few, seed),
        _lime(instance, columns, few, seed),
        _ours(instance, few, seed),
    ):
        side(benchmark.predict)


def _row(benchmark: Benchmark, laps: dict[str, list[Lap]], seed: int) -> dict[str, Any]:
    queries = {lap.n_queries for each in laps.values() for lap in each}
    if len(queries) != 1:
        raise AssertionError(f"The sides did not ask the same number of queries: {sorted(queries)}.")
    overhead = {name: statistics.median(lap.overhead for lap in each) for name, each in laps.items()}
    total = {name: statistics.median(lap.seconds for lap in each) for name, each in laps.items()}
    error = {name: statistics.fmean(lap.relevance_error for lap in each) for name, each in laps.items()}
    row: dict[str, Any] = {
        "benchmark": benchmark.name,
        "d": benchmark.dimension,
        "seed": seed,
        "instances": len(laps["ours"]),
        "queries": queries.pop(),
        "our_overhead_seconds": overhead["ours"],
        "our_relevance_error": error["ours"],
    }
    for name in ("lime", "shap"):
        row[f"{name}_overhead_ratio"] = overhead[name] / overhead["ours"]
        row[f"{name}_end_to_end_ratio"] = total[name] / total["ours"]
        row[f"{name}_relevance_ratio"] = error[name] / error["ours"] if error["ours"] > 0 else None
    return row


def _lap(benchmark: Benchmark, instance: np.ndarray, side: Side) -> Lap:
    watch = Stopwatch(benchmark.predict, time.process_time)  # which a busy machine does not change
    start = time.process_time()
    contributions = side(watch)
    seconds = time.process_time() - start
    error = relevance_error(benchmark, instance, contributions)
    return Lap(seconds, seconds - watch.seconds, watch.n_rows, error)


def _columns(benchmark: Benchmark, instance: np.ndarray, seed: int) -> np.ndarray:
    """Neighbors of the instance at sigma = 1, for LIME's shares and KernelSHAP's background; no query."""
    rng = np.random.default_rng([seed, benchmark.dimension])
    flips = rng.random((1000, benchmark.dimension)) < Settings().flip_probability
    return np.where(flips, -instance, instance)


def _shap(instance: np.ndarray, columns: np.ndarray, n_queries: int, seed: int) -> Side:
    background = columns[:N_BACKGROUND]
    shares = (background != instance).mean(axis=0)

    def run(predict: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        # Beside its coalitions it asks about the background and the instance.
        n_samples = (n_queries - N_BACKGROUND - 1) // N_BACKGROUND
        values, _ = shapley_values(predict, background, instance, seed, n_samples)
        kept, contributions = largest(values, K - 1), np.zeros(len(instance))
        contributions[kept] = values[kept] / (2 * shares[kept])
        return contributions

    return run


def _lime(instance: np.ndarray, columns: np.ndarray, n_queries: int, seed: int) -> Side:
    explainer = lime_explainer(columns, seed)

    def run(predict: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        found = explainer.explain_instance(instance, predict, num_features=K - 1, num_samples=n_queries)
        return lime_contributions(found, len(instance))

    return run


def _ours(instance: np.ndarray, n_queries: int, seed: int) -> Side:
    def run(predict: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        explain = functools.partial(Explainer(predict, Hypercube()).explain, sampling="draw", n_certify=0)
        return np.asarray(explain(instance, k=K, n_samples=n_queries - 1, seed=seed).contributions)

    return run


def race(
    data: Path,
    *,
    cache: Path | None = None,
    out: Path = Path("benchmarks/results"),
    n_queries: int = 5000,
    n_instances: int = 5,
) -> None:
    """Race LIME and KernelSHAP on every benchmark at hand, telling each row as it comes."""
    require(READING | PEERS)
    require_any(data, [row.id for row in PUBLISHED])
    benchmarks = sorted(load_benchmarks(data, cache=cache or CACHE), key=lambda b: b.dimension)
    rows: list[dict[str, Any]] = []
    for row in race_peers(benchmarks, n_queries, n_instances):
        rows.append(row)
        print("  ", ", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
        write_json(out, "peers", rows)
        write_page(out)
