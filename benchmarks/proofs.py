"""How often the best sum of facts is proven, and how long that takes, on tables and on thousands of columns."""

import statistics
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import numpy as np

from anchorline.explainer import Explainer
from anchorline.optimize.choose import best_sum
from anchorline.optimize.moments import Moments, adjusted, sampled
from anchorline.optimize.sums import Status, solve
from anchorline.settings import Settings
from anchorline.spaces.table import Table
from benchmarks.datasets import available
from benchmarks.models import fitted_model
from benchmarks.release01 import Release01, largest_size, python_of_01
from benchmarks.tasks import SEED

SIZES = (3, 4, 6, 8)
N_ROWS = 10
N_SEARCH = 2000
DIMENSIONS = (1000, 3000)
N_TRAINING = 2000
N_WIDE = 5  # rows of many columns that are timed
LAWS: tuple[Literal["independent", "realistic"], ...] = ("independent", "realistic")


def proofs(data: Path, n_rows: int = N_ROWS, sizes: Sequence[int] = SIZES) -> Iterator[dict[str, Any]]:
    """Yield one row per table, law and number of facts: the share of proven sums, and the time of the search."""
    for row in available(data):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            name, frame, model = fitted_model(data, row.id, "boosting")
            task: Literal["number"] | None = None if hasattr(model, "predict_proba") else "number"
            rng, size = np.random.default_rng(SEED), min(n_rows, len(frame))
            chosen = rng.choice(len(frame), size=size, replace=False).tolist()
            for law in LAWS:
                explainer = Explainer(model, Table(frame, neighbors=law), task=task)
                yield from _searched(name, law, [moments_at(explainer, i)[0] for i in chosen], sizes)


def wide_proofs(dimensions: Sequence[int] = DIMENSIONS, sizes: Sequence[int] = SIZES) -> Iterator[dict[str, Any]]:
    """Yield the same for one row of many columns of numbers; then time and memory of the search over 0.1's.

    ``time_ratio`` and ``memory_ratio`` are those of whole searches, in processes of their own, model included; the
    first search of each, which prepares the table, counts only for memory. ``search_ratio`` compares search and
    proof alone: what follows on the model's answers. Times are medians of five rows.
    """
    python = python_of_01()
    for d in dimensions:
        frame, model = wide_model(d)
        moments, seconds = moments_at(Explainer(model, Table(frame), task="number"), 0)
        for row in _searched(f"{d:,} columns", "independent", [moments], sizes):
            yield row | {"moments_seconds": seconds}
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            own_seconds, own_search, own_megabytes = pool.submit(_search, frame, model).result()
        row = {"table": f"{d:,} columns", "law": "whole search", "k": 4}
        row |= {"median_seconds": own_seconds, "search_seconds": own_search, "megabytes": own_megabytes}
        if python is not None:
            with Release01(python, model, frame) as old:
                found = [old.explain(i, n_samples=N_SEARCH, n_certify=0) for i in range(N_WIDE + 1)]
            megabytes = sum(each.megabytes for each in found)
            seconds = statistics.median(each.seconds for each in found[1:])
            search = statistics.median(each.search_seconds for each in found[1:])
            ratio = own_megabytes / megabytes if megabytes else None  # 0: not beyond what loading had needed
            row |= {"time_ratio": own_seconds / seconds, "search_ratio": own_search / search}
            row |= {"memory_ratio": ratio, "seconds_of_01": seconds}
            row |= {"search_seconds_of_01": search, "megabytes_of_01": megabytes}
        yield row


def wide_model(d: int) -> tuple[Any, Any]:
    """Return a table of d columns of numbers, of which twelve matter, and a model that is not linear in them."""
    import pandas as pd
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    rng = np.random.default_rng([SEED, d])
    frame = pd.DataFrame(rng.normal(size=(N_TRAINING, d)), columns=[f"x{j}" for j in range(d)])
    target = np.tanh(3 * frame.iloc[:, :12].to_numpy()) @ rng.normal(size=12)
    return frame, make_pipeline(FunctionTransformer(np.tanh), Ridge(1e3)).fit(frame, target)


def _search(frame: Any, model: Any) -> tuple[float, float, float]:
    """Return processor times of searches with 2,000 neighbors, of moments and choice alone, and memory of all."""
    explainer, size = Explainer(model, Table(frame), task="number"), largest_size()
    whole, alone = list[float](), list[float]()
    for row in range(N_WIDE + 1):
        start = time.process_time()
        explainer.frontier(row, ks=[4], queries=2 * N_SEARCH + 1)
        whole.append(time.process_time() - start)
    size = largest_size() - size
    for row in range(N_WIDE + 1):
        moments, seconds = moments_at(explainer, row)
        start = time.process_time()
        best_sum(moments, 4)
        alone.append(seconds + time.process_time() - start)
    return statistics.median(whole[1:]), statistics.median(alone[1:]), size


def moments_at(explainer: Explainer, row: int) -> tuple[Moments, float]:
    """Return the moments of neighbors of a row of the table, and their processor seconds, without the model's."""
    settings = Settings(queries=N_SEARCH + 2)
    case = explainer.case(row, settings)
    case.predictor.open(case.neighborhood.original)
    donors = case.draw("search", 0, N_SEARCH)
    drops, cells = case.ask(donors).drops, case.neighborhood.cells(donors)
    candidates = case.neighborhood.candidates
    started = time.process_time()
    if case.neighborhood.is_product:
        moments = adjusted(candidates, cells, drops, settings.replace_probability)
    else:
        moments = sampled(candidates, cells, drops)
    return moments, time.process_time() - started


def _searched(name: str, law: str, problems: Sequence[Moments], sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    for k in sizes:
        best, stated, seconds = [], [], []
        for moments in problems:
            started = time.process_time()
            best.append(solve(moments, k))
            seconds.append(time.process_time() - started)
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
