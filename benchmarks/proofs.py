"""How often the best sum of facts is proven, and how long that takes, on tables and on thousands of columns."""

import statistics
import time
import tracemalloc
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from anchorline.optimize.choose import best_sum
from anchorline.optimize.moments import Moments, adjusted, sampled
from anchorline.optimize.sums import Status, solve
from anchorline.settings import Settings
from anchorline.spaces.table import Table
from benchmarks.datasets import available
from benchmarks.models import fitted_model
from benchmarks.tasks import SEED

SIZES = (3, 4, 6, 8)
N_ROWS = 10
N_SEARCH = 2000
DIMENSIONS = (1000, 3000)
N_TRAINING = 2000
LAWS = ("independent", "realistic")


def proofs(data: Path, n_rows: int = N_ROWS, sizes: Sequence[int] = SIZES) -> Iterator[dict[str, Any]]:
    """Yield one row per table, law and number of facts: the share of proven sums, and the time of the search."""
    for row in available(data):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            name, frame, model = fitted_model(data, row.id, "boosting")
            task = None if hasattr(model, "predict_proba") else "number"
            rng, size = np.random.default_rng(SEED), min(n_rows, len(frame))
            chosen = rng.choice(len(frame), size=size, replace=False).tolist()
            for law in LAWS:
                explainer = Explainer(model, Table(frame, neighbors=law), task=task)
                yield from _searched(name, law, [moments_at(explainer, i)[0] for i in chosen], sizes)


def wide_proofs(dimensions: Sequence[int] = DIMENSIONS, sizes: Sequence[int] = SIZES) -> Iterator[dict[str, Any]]:
    """Yield the same for one row of many columns of numbers; beside it the time of the moments, and the memory."""
    for d in dimensions:
        rng = np.random.default_rng([SEED, d])
        effects = rng.normal(size=12)

        def predict(rows: Any, effects: np.ndarray = effects) -> np.ndarray:
            values = np.asarray(rows, dtype=float)
            inside = (values[:, :12] > np.linspace(-1, 1, 12)) @ effects + 0.1 * values[:, 1] * values[:, 2]
            return np.asarray(np.tanh(inside))

        table = Table(rng.normal(size=(N_TRAINING, d)))
        moments, seconds = moments_at(Explainer(predict, table, output_range=(-1, 1)), 0)
        for row in _searched(f"{d:,} columns", "independent", [moments], sizes):
            tracemalloc.start()
            solve(moments, row["k"])
            memory = tracemalloc.get_traced_memory()[1] / 1e6
            tracemalloc.stop()
            yield row | {"moments_seconds": seconds, "megabytes": memory}


def moments_at(explainer: Explainer, row: int) -> tuple[Moments, float]:
    """Return the moments of neighbors of a row of the table, and the seconds that they take, without the model."""
    settings = Settings(queries=N_SEARCH + 2)
    case = explainer.case(row, settings)
    case.predictor.open(case.neighborhood.original)
    donors = case.draw("search", 0, N_SEARCH)
    drops, cells = case.ask(donors).drops, case.neighborhood.cells(donors)
    candidates = case.neighborhood.candidates
    started = time.perf_counter()
    if case.neighborhood.is_product:
        moments = adjusted(candidates, cells, drops, settings.replace_probability)
    else:
        moments = sampled(candidates, cells, drops)
    return moments, time.perf_counter() - started


def _searched(name: str, law: str, problems: Sequence[Moments], sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    for k in sizes:
        best, stated, seconds = [], [], []
        for moments in problems:
            started = time.perf_counter()
            best.append(solve(moments, k))
            seconds.append(time.perf_counter() - started)
            stated.append(best_sum(moments, k))
        yield {
            "table": name,
            "law": law,
            "k": k,
            "facts": round(statistics.mean(moments.candidates.n_facts for moments in problems)),
            "proven": statistics.mean(solution.status is Status.PROVEN for solution in best),
            "stated_proven": statistics.mean(solution.status is Status.PROVEN for solution in stated),
            "median_seconds": statistics.median(seconds),
            "most_seconds": max(seconds),
            "most_nodes": max(solution.n_nodes for solution in best),
        }
