"""Intervals, bounds and thresholds as literals: errors on fresh neighbors of raw tables, proofs and cost."""

import math
import statistics
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from anchorline.explainer import Explainer
from anchorline.optimize import Problem, Solution, Status, restricted, solve
from anchorline.search.investigate import gather, pose, solve_posed
from anchorline.settings import Settings
from anchorline.spaces.table import Table
from benchmarks.batch import boosted
from benchmarks.datasets import available, read_dataset
from benchmarks.models import fitted_model
from benchmarks.tasks import SEED, Stopwatch

KINDS = ("intervals", "bounds", "thresholds")  # compared with the first
MODELS = ("boosting", "forest")
N_ROWS = 10
N_FRESH = 20_000
K = 5
TIME_LIMIT = 10.0
DIMENSIONS = (8, 13, 30, 60, 120)
N_TIMED = 5  # of these times the least counts, because other programs only add to it


def compare_literals(data: Path, models: Sequence[str] = MODELS, n_rows: int = N_ROWS) -> Iterator[dict[str, Any]]:
    """Yield one row per table, model and kind of literals; differences from intervals are paired by row."""
    pairs = [(row.id, model) for row in available(data) for model in models]
    for dataset_id, model in pairs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a model whose answer is always the same is a case, too
            yield from _compare(data, dataset_id, model, n_rows, len(pairs))


def _compare(data: Path, dataset_id: int, model: str, n_rows: int, n_pairs: int) -> Iterator[dict[str, Any]]:
    name, frame, fitted = fitted_model(data, dataset_id, model)
    positions = (
        np.random.default_rng(SEED).choice(len(frame), size=min(n_rows, len(frame)), replace=False).tolist()
    )
    measured = {
        literals: [_measure(fitted, space, row) for row in positions]
        for literals in KINDS
        for space in [Table(frame, literals=literals)]
    }
    for literals, rows in measured.items():
        yield {
            "table": name,
            "model": model,
            "literals": literals,
            "attributes": frame.shape[1],
            "candidates": int(statistics.median(row["candidates"] for row in rows)),
            **_errors(rows, measured["intervals"], "fidelity"),
            "fidelity_joint_low": _joint_low(rows, measured["intervals"], "fidelity", n_pairs),
            **_errors(rows, measured["intervals"], "relevance"),
            "relevance_joint_low": _joint_low(rows, measured["intervals"], "relevance", n_pairs),
            "median_event_probability": statistics.median(row["event_probability"] for row in rows),
            "proven": f"{sum(row['proven'] for row in rows)} of {len(rows)}",
            "median_solver_seconds": statistics.median(row["solver_seconds"] for row in rows),
            "median_time_over_queries": statistics.median(row["time_over_queries"] for row in rows),
        }


def compare_on_few_columns(
    data: Path, models: Sequence[str] = MODELS, n_rows: int = N_ROWS
) -> Iterator[dict[str, Any]]:
    """Yield relevance by k on tables of at most K columns, whose facts may hold every column.

    Then the only neighbor is the row itself, nothing can vary, and the relevance error is 0 whatever the model
    does. Such rows are counted, and both kinds of literals are compared with and without them.
    """
    few = [row for row in available(data) if _n_columns(data, row.id) <= K]
    for row in few:
        for model in models:
            name, frame, fitted = fitted_model(data, row.id, model)
            size = min(n_rows, len(frame))
            positions = np.random.default_rng(SEED).choice(len(frame), size=size, replace=False).tolist()
            for k in range(2, K + 1):
                measured = [
                    [_measure(fitted, space, position, k) for position in positions]
                    for literals in KINDS[:2]
                    for space in [Table(frame, literals=literals)]
                ]
                yield {
                    "table": name,
                    "model": model,
                    "columns": frame.shape[1],
                    "k": k,
                    **_where_varied(*measured),
                }


def _n_columns(data: Path, dataset_id: int) -> int:
    """Return the number of columns that `fitted_model` uses, which are all but dates."""
    return sum(str(name).lower() != "date" for name in read_dataset(data, dataset_id).frame)


def _where_varied(intervals: Sequence[dict[str, Any]], bounds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Compare relevance on all rows, and on those in which something can vary with both kinds of literals."""
    varied = [
        pair for pair in zip(intervals, bounds, strict=True) if all(not row["nothing_varies"] for row in pair)
    ]
    everywhere = _errors(bounds, intervals, "relevance")
    compared = dict.fromkeys(everywhere)
    if len(varied) > 1:
        own, others = [pair[1] for pair in varied], [pair[0] for pair in varied]
        compared = {**compared, **_errors(own, others, "relevance")}
    return {
        "nothing_varies_with_intervals": f"{sum(row['nothing_varies'] for row in intervals)} of {len(intervals)}",
        "nothing_varies_with_bounds": f"{sum(row['nothing_varies'] for row in bounds)} of {len(bounds)}",
        "relevance_of_intervals": statistics.mean(row["relevance"] for row in intervals),
        "relevance_of_bounds": everywhere["relevance_error"],
        "paired_low": everywhere["relevance_paired_low"],
        "paired_high": everywhere["relevance_paired_high"],
        "rows_that_vary_with_both": len(varied),
        "their_relevance_lower_by_percent": compared["relevance_lower_by_percent"],
        "their_paired_low": compared["relevance_paired_low"],
        "their_paired_high": compared["relevance_paired_high"],
    }


def _errors(rows: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]], kind: str) -> dict[str, float]:
    """Return the mean error, and its difference from that of intervals with Student's paired 95% interval."""
    differences = _differences(rows, others, kind)
    half = _half_width(differences, 0.05)
    mean, base = float(differences.mean()), statistics.mean(row[kind] for row in others)
    return {
        f"{kind}_error": statistics.mean(row[kind] for row in rows),
        f"{kind}_lower_by_percent": -100 * mean / base if base > 0 else 0.0,
        f"{kind}_paired_low": mean - half,
        f"{kind}_paired_high": mean + half,
    }


def _joint_low(rows: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]], kind: str, n_pairs: int) -> float:
    """Return the lower limit of the difference, such that the intervals of all pairs hold together (Bonferroni).

    If it is above 0, the error is significantly higher.
    """
    differences = _differences(rows, others, kind)
    return float(differences.mean()) - _half_width(differences, 0.05 / n_pairs)


def _differences(rows: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]], kind: str) -> np.ndarray:
    return np.array([row[kind] - other[kind] for row, other in zip(rows, others, strict=True)])


def _half_width(differences: np.ndarray, alpha: float) -> float:
    """Return half the width of Student's interval with confidence 1 - alpha."""
    n = len(differences)
    return float(student.ppf(1 - alpha / 2, n - 1) * differences.std(ddof=1) / math.sqrt(n))


def _measure(model: Any, space: Table, row: int, k: int = K) -> dict[str, Any]:
    """Explain one row, time the solver alone and the whole, and measure the sum on fresh neighbors."""
    settings = Settings.from_keywords(k=k, n_certify=0, time_limit=TIME_LIMIT)
    is_classifier = hasattr(model, "predict_proba")
    watch = Stopwatch(model.predict_proba if is_classifier else model.predict)
    explainer = Explainer(
        watch, space, **({"classes": list(model.classes_)} if is_classifier else {"task": "number"})
    )
    case = explainer.prepare(row, settings)
    evidence, _ = gather(case, case.stream("search", int(settings.n_samples)))
    problem = pose(case, evidence)
    start = time.perf_counter()
    solution = solve_posed(problem, settings)
    solver_seconds = time.perf_counter() - start
    contributions, _ = case.predictor.in_own_units(solution.contributions, solution.intercept)
    truth = explainer.assess(row, contributions, n_fresh=N_FRESH, seed=SEED + 1)
    watch.seconds, start = 0.0, time.perf_counter()
    explainer.explain(row, k=k, time_limit=TIME_LIMIT)
    nothing_drawn = (1 - settings.flip_probability) ** case.law.n_attributes
    return {
        "candidates": case.n_literals,
        "fidelity": truth.fidelity_error.value,
        "relevance": truth.relevance_error.value,
        "event_probability": truth.event_probability,
        "nothing_varies": math.isclose(truth.event_probability, nothing_drawn, rel_tol=1e-9),
        "proven": solution.status is Status.OPTIMAL,
        "solver_seconds": solver_seconds,
        "time_over_queries": (time.perf_counter() - start) / watch.seconds,
    }


def time_proofs(data: Path, n_rows: int = N_ROWS) -> Iterator[dict[str, Any]]:
    """Yield the solver's time on bounds and on intervals of the same neighbors, for raw and generated tables."""
    for row in available(data):
        name, frame, fitted = fitted_model(data, row.id, "boosting")
        yield _time_proofs(name, frame, fitted, n_rows)
    for d in DIMENSIONS:
        frame, fitted = boosted(d)
        yield _time_proofs("generated", frame, fitted, n_rows)


def _time_proofs(name: str, frame: Any, fitted: Any, n_rows: int) -> dict[str, Any]:
    """Solve both problems of every row in turn, so that both meet the same load of the machine."""
    explainer, settings = Explainer(fitted, Table(frame, literals="bounds")), Settings.from_keywords(k=K)
    seconds, solutions = list[tuple[float, float]](), list[Solution]()
    n_rows = min(n_rows, len(frame))
    for row in np.random.default_rng(SEED).choice(len(frame), size=n_rows, replace=False).tolist():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case = explainer.prepare(row, settings)
        evidence, _ = gather(case, case.stream("search", int(settings.n_samples)))
        bounds = pose(case, evidence)
        first = np.unique(case.law.groups, return_index=True)[1]  # the statement about an attribute comes first
        intervals = replace(restricted(bounds, first), groups=None)
        timed = [[_timed(problem) for problem in (intervals, bounds)] for _ in range(N_TIMED)]
        seconds.append((min(each[0][0] for each in timed), min(each[1][0] for each in timed)))
        solutions.append(timed[0][1][1])
    return {
        "table": name,
        "attributes": frame.shape[1],
        "candidates": int(statistics.median(len(solution.contributions) for solution in solutions)),
        "proven": f"{sum(solution.status is Status.OPTIMAL for solution in solutions)} of {len(solutions)}",
        "largest_relative_gap": max(solution.gap / (solution.objective or 1.0) for solution in solutions),
        "median_milliseconds_intervals": 1000 * statistics.median(each[0] for each in seconds),
        "median_milliseconds_bounds": 1000 * statistics.median(each[1] for each in seconds),
        "slowest_milliseconds_bounds": 1000 * max(each[1] for each in seconds),
        "median_ratio": statistics.median(each[1] / each[0] for each in seconds),
    }


def _timed(problem: Problem) -> tuple[float, Solution]:
    """Return the processor time of a search, and what it found; nothing is kept from earlier searches."""
    problem = replace(problem, evidence=replace(problem.evidence))
    start = time.process_time()
    solution = solve(problem, time_limit=TIME_LIMIT)
    return time.process_time() - start, solution
