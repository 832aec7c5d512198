"""From a unit of work to its rows: every series of the experiments, one function each."""

import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.optimize import solve
from benchmarks.datasets import load_dataset
from benchmarks.experiments.explainers import Task, ask, can_solve, iht_step
from benchmarks.experiments.metrics import Meter
from benchmarks.experiments.protocol import GROUPS, SWEEPS, SYNTHETIC_ID, Setting, Unit, dataset_name
from benchmarks.tasks import (
    Benchmark,
    Protocol,
    encoded,
    fitted,
    load_benchmark,
    load_correlated,
    predictor_of,
)

Row = dict[str, Any]
N_FOLDS = 5


def run_unit(unit: Unit, data: Path | None, cache: Path) -> list[Row]:
    """Measure a unit; every row says where it comes from, its seed included."""
    about = {
        "series": unit.series,
        "protocol": unit.protocol,
        "dataset_id": unit.dataset_id,
        "dataset": dataset_name(unit.dataset_id),
        "instance": unit.instance,
        "seed": unit.seed,
    }
    return [about | row for row in _SERIES[unit.series](unit, data, cache)]


def _table(unit: Unit, data: Path | None, cache: Path) -> Iterator[Row]:
    """The common point k = 5, sigma = 1, m = 5000: what Tables 2 and 3 and two figures are made of."""
    task = _task(unit, Setting(), data, cache)
    meter = Meter(task, unit.scale.n_draws)
    for method in GROUPS[unit.group]:
        yield from _answers(method, task, meter)


def _sweep(unit: Unit, data: Path | None, cache: Path) -> Iterator[Row]:
    """One parameter over its grid, the same instance and the same seed at every point."""
    known: dict[float, dict[bytes, float]] = {}  # events already measured, by sigma
    for setting in unit.scale.settings(unit.series):
        task = _task(unit, setting, data, cache)
        meter = Meter(task, unit.scale.n_draws, _inside=known.setdefault(setting.sigma, {}))
        for method in SWEEPS[unit.series]:
            yield from _answers(method, task, meter, generalization=False)


def _answers(method: str, task: Task, meter: Meter, *, generalization: bool = True) -> Iterator[Row]:
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
            **meter.row(answer, generalization=generalization),
        }


def _convergence(unit: Unit, data: Path | None, cache: Path) -> Iterator[Row]:
    """IHT against the optimum, in the box and without it, for every sigma."""
    for setting in unit.scale.settings(unit.series):
        task = _task(unit, setting, data, cache)
        unboxed = replace(task.problem, box=None)
        for name, found in (
            ("exact", solve(task.problem, "exact")),
            ("exact without box", solve(unboxed, "exact")),
            ("iht", solve(task.problem, "iht", step=iht_step(setting.sigma))),
        ):
            row = {"method": name, "empirical_fidelity": found.objective, "status": found.status.name}
            yield _point(task) | row


def _anytime(unit: Unit, data: Path | None, cache: Path) -> Iterator[Row]:
    """The exact solver stopped after so many nodes: what it has and what it has proven by then."""
    for setting in unit.scale.settings(unit.series):
        task = _task(unit, setting, data, cache)
        for n_nodes in unit.scale.nodes:
            start = time.perf_counter()
            found = solve(task.problem, "exact", node_limit=n_nodes)
            yield {
                **_point(task),
                "method": "exact",
                "node_limit": n_nodes,
                "n_nodes": found.n_nodes,
                "seconds": time.perf_counter() - start,
                "empirical_fidelity": found.objective,
                "lower_bound": found.lower_bound,
                "status": found.status.name,
            }
            if found.status.name == "OPTIMAL":
                break


def _folds(unit: Unit, data: Path | None, _: Path) -> Iterator[Row]:
    """One fold of the 5-fold loss of Table 1, with the table's shape."""
    from sklearn.model_selection import KFold

    dataset, encoder, rows, target = _encoded(data, unit.dataset_id)
    splits = list(KFold(N_FOLDS, shuffle=True, random_state=unit.seed).split(rows))
    train, test = splits[unit.instance]
    start = time.perf_counter()
    model = fitted(dataset.kind, rows[train], target[train], unit.seed)
    gaps = target[test] - predictor_of(dataset.kind, model)(rows[test])
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
    return Task.of(benchmark, benchmark.instances[unit.instance], setting, unit.seed)


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
    return dataset, *encoded(dataset)
