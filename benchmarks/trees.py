"""Sums of trees explained from their leaves: speed and quality beside TreeSHAP, and noise beside sampling."""

import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from anchorline.result.explanation import Explanation
from anchorline.spaces.table import Table
from benchmarks.datasets import available
from benchmarks.tasks import SEED
from benchmarks.verdicts import fitted_model

K = 5
DIMENSIONS = (15, 50, 200)
N_TREES = 100
N_TIMED = 500  # rows for the fast ones; sampling and certificates take a part of them
N_SLOW = 20
N_ROWS = 10
N_FRESH = 20_000
N_SEEDS = 20


def tree_speed(dimensions: Sequence[int] = DIMENSIONS, n_rows: int = N_TIMED) -> Iterator[dict[str, Any]]:
    """Yield milliseconds of one processor per row, by number of columns and model, all measured in one run."""
    for d in dimensions:
        for name, model, frame in _generated(d):
            explainer = Explainer(model, Table(frame))
            assert explainer.explain(0, k=K, n_certify=0).certificate.by_leaves  # it also reads the trees, once
            seconds = _interleaved(_timed_calls(explainer, model, frame), n_rows)
            ms = {key: round(1000 * value, 3) for key, value in seconds.items()}
            yield {
                "columns": d,
                "model": name,
                **{f"{key}_ms": value for key, value in ms.items()},
                "trees_over_shap": seconds["trees"] / seconds["shap"],
                "many_over_shap": seconds["trees_many"] / seconds["shap"],
                "sampling_over_trees": seconds["sampling"] / seconds["trees"],
                "certified_over_certified_sampling": seconds["trees_certified"] / seconds["sampling_certified"],
            }


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


def _timed_calls(
    explainer: Explainer, model: Any, frame: Any
) -> dict[str, tuple[Callable[[Sequence[int]], Any], bool]]:
    """Return the calls to time: functions of row numbers, and whether they are fast enough for all rows."""
    import shap

    tree_shap = shap.TreeExplainer(model)

    def one_by_one(**keywords: Any) -> Callable[[Sequence[int]], Any]:
        return lambda rows: [explainer.explain(row, k=K, **keywords) for row in rows]

    return {
        "shap": (lambda rows: tree_shap.shap_values(frame.iloc[rows]), True),
        "trees": (one_by_one(n_certify=0), True),
        "trees_many": (lambda rows: explainer.explain_many(frame.iloc[rows], k=K, n_certify=0), True),
        "trees_certified": (one_by_one(), False),
        "sampling": (one_by_one(n_certify=0, sampling="draw"), False),
        "sampling_certified": (one_by_one(sampling="draw"), False),
    }


def _interleaved(
    calls: dict[str, tuple[Callable[[Sequence[int]], Any], bool]], n_rows: int, n_turns: int = 5
) -> dict[str, float]:
    """Return processor seconds per row; the calls take turns, so that a busy machine slows all of them."""
    spent, counted = dict.fromkeys(calls, 0.0), dict.fromkeys(calls, 0)
    for turn in range(n_turns):
        for name, (call, is_fast) in calls.items():
            size = max(1, (n_rows if is_fast else min(N_SLOW, n_rows)) // n_turns)
            rows = list(range(turn * size, (turn + 1) * size))
            start = time.process_time()
            call(rows)
            spent[name] += time.process_time() - start
            counted[name] += size
    return {name: spent[name] / counted[name] for name in calls}


def tree_quality(data: Path, n_rows: int = N_ROWS) -> Iterator[dict[str, Any]]:
    """Yield errors of our facts and of as many attributes with the largest SHAP values, on fresh neighbors."""
    for name, model, frame, explainer in _read_tables(data):
        values = _shap_of_attributes(explainer, model, frame)
        rows = _chosen(frame, n_rows)
        pairs = [_measured(explainer, row, values) for row in rows]
        kept = [pair for pair in pairs if pair is not None]
        ours, theirs = ([pair[side] for pair in kept] for side in (0, 1))
        yield {
            "table": name,
            "model": type(model[-1]).__name__,
            "rows": len(kept),
            "mean_facts": statistics.mean(pair[2] for pair in kept) if kept else None,
            **_means(
                "relevance_error", [one.relevance_error for one in ours], [one.relevance_error for one in theirs]
            ),
            **_means("stability", [one.stability for one in ours], [one.stability for one in theirs]),
        }


def _means(name: str, ours: Sequence[Any], theirs: Sequence[Any]) -> dict[str, float | None]:
    """Return the mean of an estimate for both sides; None where it is not measured, as stability of a number."""
    known = [(a.value, b.value) for a, b in zip(ours, theirs, strict=True) if a is not None and b is not None]
    if not known:
        return {name: None, f"shap_{name}": None}
    return {name: statistics.mean(a for a, _ in known), f"shap_{name}": statistics.mean(b for _, b in known)}


def _measured(explainer: Explainer, row: int, values: Callable[[int, int | None], np.ndarray]) -> Any:
    """Return the assessments of our facts and of SHAP's, and their number; None if we find no fact."""
    e = explainer.explain(row, k=K, n_certify=0)
    n_facts = int(np.count_nonzero(e.contributions))
    if n_facts == 0:
        return None
    shap_values = values(row, e.parameters["column"])
    top = np.argsort(-np.abs(shap_values), kind="stable")[:n_facts]
    kept = np.zeros(len(e.contributions))
    kept[top] = np.where(shap_values[top] == 0, 1e-12, shap_values[top])
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


def tree_noise(data: Path, n_rows: int = N_ROWS, n_seeds: int = N_SEEDS) -> Iterator[dict[str, Any]]:
    """Yield the share of rows whose facts or numbers change between seeds: by sampling, and from leaves."""
    for name, model, frame, explainer in _read_tables(data):
        rows = _chosen(frame, n_rows)
        shares = {}
        for sampling in ("draw", "auto"):
            found = [
                [
                    _facts(explainer.explain(row, k=K, n_certify=0, seed=seed, sampling=sampling))
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


def _read_tables(data: Path) -> Iterator[tuple[str, Any, Any, Explainer]]:
    """Yield tables with models whose trees are read: forests, boosted numbers, and margins of boosted classes."""
    for published in available(data):
        for kind in ("boosting", "forest"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # findings about the tables, which are not measured here
                name, frame, model = fitted_model(data, published.id, kind)
                scale = "margin" if kind == "boosting" and hasattr(model, "classes_") else None
                explainer = Explainer(model, Table(frame), output_scale=scale)
                if explainer.explain(0, k=K, n_certify=0).certificate.by_leaves:
                    yield name, model, frame, explainer


def _chosen(frame: Any, n_rows: int) -> list[int]:
    """Return numbers of rows, the same at every run."""
    rng = np.random.default_rng(SEED)
    chosen: list[int] = rng.choice(len(frame), size=min(n_rows, len(frame)), replace=False).tolist()
    return chosen
