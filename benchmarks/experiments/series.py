"""The functions that compute the rows of a unit of work, one function per series of the experiments."""

import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.paper import iht_step, solve
from benchmarks.datasets import load_dataset
from benchmarks.experiments.explainers import Task, ask, can_solve
from benchmarks.experiments.metrics import Evaluator
from benchmarks.experiments.protocol import GROUPS, SWEEPS, SYNTHETIC_ID, Setting, Unit, dataset_name
from benchmarks.tasks import (
    Benchmark,
    Protocol,
    as_predictor,
    encode_dataset,
    load_benchmark,
    load_correlated,
    train_network,
)

Row = dict[str, Any]
N_FOLDS = 5


def run_unit(unit: Unit, data: Path | None, cache: Path) -> list[Row]:
    """Measure a unit and return its rows; every row names its origin and its seed."""
    origin = {
        "series": unit.series,
        "protocol": unit.protocol,
        "dataset_id": unit.dataset_id,
        "dataset": dataset_name(unit.dataset_id),
        "instance": unit.instance,
        "seed": unit.seed,
    }
    return [origin | row for row in _SERIES[unit.series](unit, data, cache)]


def _table(unit: Unit, data: Path | None, cache: Path) -> Iterator[Row]:
    """Measure at the common point k = 5, sigma = 1, m = 5000, for Tables 2 and 3 and two figures."""
    task = _task(unit, Setting(), data, cache)
    evaluator = Evaluator(task, unit.scale.n_draws)
    for method in GROUPS[unit.group]:
        yield from _answers(method, task, evaluator)


def _sweep(unit: Unit, data: Path | None, cache: Path) -> Iterator[Row]:
    """Vary one parameter over its grid, with the same instance and seed at every point."""
    event_errors: dict[float, dict[bytes, float]] = {}  # relevance errors of measured events, by sigma
    for setting in unit.scale.settings(unit.series):
        task = _task(unit, setting, data, cache)
        evaluator = Evaluator(task, unit.scale.n_draws, _event_errors=event_errors.setdefault(setting.sigma, {}))
        for method in SWEEPS[unit.series]:
            yield from _answers(method, task, evaluator, generalization=False)


def _answers(method: str, task: Task, evaluator: Evaluator, *, generalization: bool = True) -> Iterator[Row]:
    if not can_solve(method, len(task.instance)):
        return
    timed = ask(method, task)
    for name, answer in timed.answers.items():
        yield {
            **_point(task),
            "method": name,
            "seconds": timed.seconds,
            "cpu_seconds": timed.cpu_seconds,
            "model_seconds": timed.model_seconds,
            "sample_seconds": task.sample_seconds,
            "n_queries": timed.n_queries,
            **evaluator.row(answer, generalization=generalization),
        }


def _convergence(unit: Unit, data: Path | None, cache: Path) -> Iterator[Row]:
    """Compare IHT with the optimum, with and without the box, for every sigma."""
    for setting in unit.scale.settings(unit.series):
        task = _task(unit, setting, data, cache)
        unboxed = replace(task.problem, box=None)
        for name, solution in (
            ("exact", solve(task.problem, "exact")),
            ("exact without box", solve(unboxed, "exact")),
            ("iht", solve(task.problem, "iht", step=iht_step(setting.sigma))),
        ):
            row = {"method": name, "empirical_fidelity": solution.objective, "status": solution.status.name}
            yield _point(task) | row


def _anytime(unit: Unit, data: Path | None, cache: Path) -> Iterator[Row]:
    """Stop the exact solver at increasing node limits; yield its objective and its bound at each limit."""
    for setting in unit.scale.settings(unit.series):
        task = _task(unit, setting, data, cache)
        for n_nodes in unit.scale.nodes:
            start = time.perf_counter()
            solution = solve(task.problem, "exact", node_limit=n_nodes)
            yield {
                **_point(task),
                "method": "exact",
                "node_limit": n_nodes,
                "n_nodes": solution.n_nodes,
                "seconds": time.perf_counter() - start,
                "empirical_fidelity": solution.objective,
                "lower_bound": solution.lower_bound,
                "status": solution.status.name,
            }
            if solution.status.name == "OPTIMAL":
                break


def _folds(unit: Unit, data: Path | None, _: Path) -> Iterator[Row]:
    """Measure one fold of the 5-fold loss in Table 1, and the shape of the data set."""
    from sklearn.model_selection import KFold

    dataset, encoder, rows, target = _encoded(data, unit.dataset_id)
    splits = list(KFold(N_FOLDS, shuffle=True, random_state=unit.seed).split(rows))
    train, test = splits[unit.instance]
    start = time.perf_counter()
    model = train_network(dataset.kind, rows[train], target[train], unit.seed)
    gaps = target[test] - as_predictor(dataset.kind, model)(rows[test])
    kept = set(encoder.attributes_)
    numeric = [
        name
        for name, column in dataset.frame.items()
        if str(name) in kept and column.dtype.kind in "iuf" and column.nunique() > encoder.n_bins
    ]
    yield {
        "method": "model",
        "d": rows.shape[1],
        "loss": float(np.mean(gaps**2) / 4),
        "seconds": time.perf_counter() - start,
        "n_rows": len(rows),
        "n_raw": dataset.frame.shape[1],
        "n_numeric": len(numeric),
        "n_categorical": len(kept) - len(numeric),
    }


_SERIES: dict[str, Callable[[Unit, Path | None, Path], Iterator[Row]]] = {
    "table": _table,
    "sweep_k": _sweep,
    "sweep_sigma": _sweep,
    "sweep_m": _sweep,
    "convergence": _convergence,
    "anytime": _anytime,
    "folds": _folds,
}


def _task(unit: Unit, setting: Setting, data: Path | None, cache: Path) -> Task:
    benchmark = _benchmark(unit.dataset_id, unit.protocol, data, cache, unit.seed)
    return Task.from_benchmark(benchmark, benchmark.instances[unit.instance], setting, unit.seed)


def _point(task: Task) -> Row:
    setting = task.setting
    return {"d": len(task.instance), "k": setting.k, "sigma": setting.sigma, "m": setting.m}


@functools.lru_cache(maxsize=40)
def _benchmark(dataset_id: int, protocol: Protocol, data: Path | None, cache: Path, seed: int) -> Benchmark:
    if dataset_id == SYNTHETIC_ID:
        return load_correlated(cache=cache, seed=seed)
    return load_benchmark(data, dataset_id, cache=cache, seed=seed, protocol=protocol)


@functools.lru_cache(maxsize=4)
def _encoded(data: Path | None, dataset_id: int) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    dataset = load_dataset(data, dataset_id)
    return dataset, *encode_dataset(dataset)
