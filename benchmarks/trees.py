"""Sums of trees explained from their leaves: speed and quality beside TreeSHAP, and noise beside sampling."""

import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from anchorline.result.explanation import Explanation
from anchorline.search.assess import assess
from anchorline.search.leaves.investigating import investigate_by_leaves
from anchorline.search.leaves.row import MAX_PAIRS
from anchorline.search.sampling import cancelling_event
from anchorline.settings import Settings
from anchorline.spaces.table import Table
from benchmarks.datasets import available
from benchmarks.models import fitted_model
from benchmarks.tasks import SEED

K = 5
DIMENSIONS = (15, 50, 200)
N_TREES = 100
N_TIMED = 500  # rows for the fast ones; sampling and certificates take a part of them
N_SLOW = 6
N_ASSEMBLED = 50
N_PAIRS = 20_000_000  # pairs of leaves that are added up at most
N_ROWS = 10
N_FRESH = 20_000
N_SEEDS = 20
N_SEEDED = 5  # rows that are explained with every seed


def tree_speed(dimensions: Sequence[int] = DIMENSIONS, n_rows: int = N_TIMED) -> Iterator[dict[str, Any]]:
    """Yield milliseconds of one processor per row, by number of columns and model, all measured in one run."""
    for d in dimensions:
        for name, model, frame in _generated(d):
            seconds = _interleaved(_timed_calls(model, frame, n_rows))
            ms = {f"{key}_ms": None if value is None else round(1000 * value, 3) for key, value in seconds.items()}
            ratios = {key: _ratio(seconds[over], seconds[under]) for key, (over, under) in _RATIOS.items()}
            yield {"columns": d, "model": name, **ms, **ratios}


_RATIOS = {
    "many_over_shap": ("trees_many", "shap"),
    "intervals_over_shap": ("intervals_many", "shap"),
    "sampling_over_many": ("sampling", "trees_many"),
    "relevance_over_queries": ("exact_relevance", "queries"),
    "exact_over_queries": ("exact_errors", "queries"),
    "certified_over_certified_sampling": ("trees_certified", "sampling_certified"),
}


def _ratio(over: float | None, under: float | None) -> float | None:
    return None if over is None or under is None else over / under


def _generated(d: int) -> Iterator[tuple[str, Any, Any]]:
    """Yield models of 100 trees, fitted on 2,000 rows of d numbers."""
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

    rng = np.random.default_rng(SEED)
    frame = pd.DataFrame(rng.normal(size=(2000, d)), columns=[f"x{j}" for j in range(d)])
    target = 2 * frame.x0 + frame.x1 * frame.x2 + np.sin(frame.x3) + rng.normal(size=2000) / 4
    models = {
        "histogram boosting": HistGradientBoostingRegressor(max_iter=N_TREES, random_state=SEED),
        "forest": RandomForestRegressor(N_TREES, max_depth=8, n_jobs=1, random_state=SEED),
    }
    for name, model in models.items():
        yield name, model.fit(frame, target), frame


def _timed_calls(model: Any, frame: Any, n_rows: int) -> dict[str, tuple[Callable[[], Any], int]]:
    """Return the calls to time, each with its number of rows."""
    import shap

    tree_shap, slow = shap.TreeExplainer(model), range(min(N_SLOW, n_rows))
    intervals = Explainer(model, Table(frame, literals="intervals"))
    default = Explainer(model, Table(frame))
    for explainer in (intervals, default):  # they read the trees, and compare answers together and one by one
        assert all(isinstance(one, Explanation) for one in explainer.explain_many(frame[:2], k=K, n_certify=0))
    sums = [_sum_of(default, row) for row in slow]
    few, some = frame.iloc[slow], frame.iloc[: min(N_ASSEMBLED, n_rows)]

    def query() -> None:
        for case, contributions in sums:
            assess(case, contributions, n_samples=5000, confidence=0.95)

    def exactly(*, relevance_only: bool) -> bool:
        each = [_exact_errors(case, sum_, relevance_only=relevance_only) for case, sum_ in sums]
        return None not in each

    def many(explainer: Explainer, rows: Any, **keywords: Any) -> Callable[[], Any]:
        return lambda: explainer.explain_many(rows, k=K, **keywords)

    return {
        "shap": (lambda: tree_shap.shap_values(frame.iloc[:n_rows]), n_rows),
        "trees_many": (many(default, frame.iloc[:n_rows], n_certify=0), n_rows),
        "intervals_many": (many(intervals, frame.iloc[:n_rows], n_certify=0), n_rows),
        "trees_assembled": (lambda: list(default.explain_many(some, k=K, n_certify=0)), len(some)),
        "sampling": (many(default, few, n_certify=0, sampling="draw"), len(slow)),
        "trees_certified": (many(default, few), len(slow)),
        "sampling_certified": (many(default, few, sampling="draw"), len(slow)),
        "exact_relevance": (lambda: exactly(relevance_only=True), len(slow)),
        "exact_errors": (lambda: exactly(relevance_only=False), len(slow)),
        "queries": (query, len(slow)),
    }


def _sum_of(explainer: Explainer, row: int) -> tuple[Any, np.ndarray]:
    """Return the case of a row and its best sum, scaled."""
    case = explainer.prepare(row, Settings.from_keywords(k=K, n_certify=0))
    return case, investigate_by_leaves(case).solution.contributions


def _exact_errors(case: Any, contributions: np.ndarray, *, relevance_only: bool) -> float | None:
    """Compute relevance and baseline error as sums over pairs of leaves; None if there are too many of them."""
    leaves, event = replace(case.leaves), cancelling_event(contributions, case.law)  # a copy remembers nothing
    weights = [] if relevance_only else [leaves.weights]
    weights += [leaves.weights_given(event, number) for number in range(len(event.shares))]
    found = [leaves.mean_square(each, MAX_PAIRS if relevance_only else N_PAIRS) for each in weights]
    return None if None in found else sum(found)


def _interleaved(calls: dict[str, tuple[Callable[[], Any], int]], n_turns: int = 3) -> dict[str, float | None]:
    """Return processor seconds per row; the calls take turns, so that a busy machine slows all of them.

    None for calls that return False, because they could not do what is timed.
    """
    spent: dict[str, list[float]] = {name: [] for name in calls}
    failed = set()
    for _ in range(n_turns):
        for name, (call, _) in calls.items():
            start = time.process_time()
            if call() is False:
                failed.add(name)
            spent[name].append(time.process_time() - start)
    means = {name: statistics.mean(spent[name]) / n_rows for name, (_, n_rows) in calls.items()}
    return {name: None if name in failed else mean for name, mean in means.items()}


def tree_quality(data: Path, n_rows: int = N_ROWS) -> Iterator[dict[str, Any]]:
    """Yield errors of our facts and of as many attributes with the largest SHAP values, on fresh neighbors.

    Once for the sum of intervals that fits best, whose facts hold values as SHAP's attributes do; once for the
    default, whose facts are bounds, which hold less; and once for ``objective="relevance"``, whose facts hold the
    output best.
    """
    for name, model, frame, explainers in _read_tables(data):
        rows = _chosen(frame, n_rows)
        for literals, objective in (("intervals", "fidelity"), ("bounds", "fidelity"), ("bounds", "relevance")):
            explainer = explainers[literals]
            values = _shap_of_attributes(explainer, model, frame)
            pairs = [_measured(explainer, row, values, objective) for row in rows]
            kept = [pair for pair in pairs if pair is not None]
            yield {
                "table": name,
                "model": type(model[-1]).__name__,
                "literals": literals,
                "objective": objective,
                "rows": len(kept),
                "mean_facts": statistics.mean(pair[2] for pair in kept) if kept else None,
                **_means("relevance_error", kept),
                **_means("stability", kept),
            }


def _means(name: str, pairs: Sequence[Any]) -> dict[str, float | None]:
    """Return the mean of an estimate for both sides, and the standard error of their difference, row by row."""
    estimates = [(getattr(ours, name), getattr(theirs, name)) for ours, theirs, _ in pairs]
    known = [(a.value, b.value) for a, b in estimates if a is not None and b is not None]
    names = (name, f"shap_{name}", f"{name}_difference_error")
    if len(known) < 2:
        return dict.fromkeys(names)
    differences = [a - b for a, b in known]
    means = (statistics.mean(a for a, _ in known), statistics.mean(b for _, b in known))
    return dict(zip(names, (*means, statistics.stdev(differences) / len(known) ** 0.5), strict=True))


def _measured(
    explainer: Explainer, row: int, values: Callable[[int, int | None], np.ndarray], objective: Any
) -> Any:
    """Return the assessments of our facts and of SHAP's, and their number; None if we find no fact.

    SHAP's largest attributes are held by the statement about each, which holds their values.
    """
    e = explainer.explain(row, k=K, n_certify=0, objective=objective)
    n_facts = int(np.count_nonzero(e.contributions))
    if n_facts == 0:
        return None
    case = explainer.prepare(row, Settings.from_keywords(k=K))
    neighborhood: Any = case.neighborhood
    attributes = [source.attribute for source in neighborhood.sources]
    statements = np.unique(case.law.groups, return_index=True)[1]  # of each attribute, the first literal
    shap_values = values(row, e.parameters["column"])[attributes]
    top = np.argsort(-np.abs(shap_values), kind="stable")[:n_facts]
    kept = np.zeros(len(e.contributions))
    kept[statements[top]] = np.where(shap_values[top] == 0, 1e-12, shap_values[top])
    ours, theirs = (explainer.assess(row, sums, n_fresh=N_FRESH, k=K) for sums in (e.contributions, kept))
    return ours, theirs, n_facts


def _shap_of_attributes(explainer: Explainer, model: Any, frame: Any) -> Callable[[int, int | None], np.ndarray]:
    """Return a function of a row and a class: SHAP values of encoded columns, added up per attribute."""
    import shap

    joined: Any = explainer.setup.trees.joined(explainer.target)
    owners, n_attributes = joined.features.owners, len(joined.features.units.table.attributes)
    tree_shap = shap.TreeExplainer(model[-1])

    def values(row: int, column: int | None) -> np.ndarray:
        encoded = np.asarray(model[:-1].transform(frame.iloc[[row]]), dtype=float)
        found = np.asarray(tree_shap.shap_values(encoded, check_additivity=False), dtype=float)[0]
        found = found if found.ndim == 1 else found[:, column or 0]
        own = (owners >= 0) & (owners < n_attributes)
        return np.bincount(owners[own], found[own], minlength=n_attributes)

    return values


def tree_noise(data: Path, n_rows: int = N_SEEDED, n_seeds: int = N_SEEDS) -> Iterator[dict[str, Any]]:
    """Yield the share of rows whose facts or numbers change between seeds: by sampling, and from leaves."""
    for name, model, frame, explainers in _read_tables(data):
        rows = _chosen(frame, n_rows)
        shares = {}
        for sampling in ("draw", "auto"):
            found = [
                [
                    _facts(explainers["bounds"].explain(row, k=K, n_certify=0, seed=seed, sampling=sampling))
                    for seed in range(n_seeds)
                ]
                for row in rows
            ]
            shares[sampling] = (
                sum(len({facts for facts, _ in seeds}) > 1 for seeds in found) / len(rows),
                sum(len(set(seeds)) > 1 for seeds in found) / len(rows),
            )
        yield {
            "table": name,
            "model": type(model[-1]).__name__,
            "rows": len(rows),
            "seeds": n_seeds,
            "sampling_other_facts": shares["draw"][0],
            "sampling_other_numbers": shares["draw"][1],
            "trees_other_facts": shares["auto"][0],
            "trees_other_numbers": shares["auto"][1],
        }


def _facts(e: Explanation) -> tuple[tuple[str, ...], tuple[float, ...]]:
    return tuple(sorted(term.literal.text for term in e.terms)), tuple(e.contributions.tolist())


def _read_tables(data: Path) -> Iterator[tuple[str, Any, Any, dict[str, Explainer]]]:
    """Yield tables with models whose trees are read: forests, boosted numbers, and margins of boosted classes.

    Each comes with an explainer per kind of literals.
    """
    for published in available(data):
        for kind in ("boosting", "forest"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # findings about the tables, which are not measured here
                name, frame, model = fitted_model(data, published.id, kind)
                scale = "margin" if kind == "boosting" and hasattr(model, "classes_") else None
                explainers = {
                    literals: Explainer(model, Table(frame, literals=literals), output_scale=scale)
                    for literals in ("intervals", "bounds")
                }
                found = [each.explain(0, k=K, n_certify=0) for each in explainers.values()]
                if all(e.certificate.by_leaves for e in found):
                    yield name, model, frame, explainers


def _chosen(frame: Any, n_rows: int) -> list[int]:
    """Return numbers of rows, the same at every run."""
    rng = np.random.default_rng(SEED)
    chosen: list[int] = rng.choice(len(frame), size=min(n_rows, len(frame)), replace=False).tolist()
    return chosen
