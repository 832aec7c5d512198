"""Reasons for letters: against logistic points, over seeds, beside the time of `explain` and the choice of SHAP.

The reference are the rows that score just enough, for all methods. Declined are the rows whose probability of the
second class is below the table's 60% quantile, so that there are always some.
"""

import statistics
import time
import warnings
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from anchorline.result.reasons import PRINCIPAL, Reasons
from anchorline.spaces.table import Table
from benchmarks.facts import load
from benchmarks.held import Task
from benchmarks.tasks import SEED

TABLES = (29, 40536, 179, 42192)
MODELS = ("boosting", "forest", "linear")
N_ROWS, N_SEEDS, N_SHAP = 10, 10, 3
_QUANTILE = 0.6
_BACKGROUND = 100  # rows of the reference that SHAP averages over


def reasons(
    data: Path,
    tables: Collection[int] = TABLES,
    n_rows: int = N_ROWS,
    n_seeds: int = N_SEEDS,
    models: Sequence[str] = MODELS,
) -> Iterator[dict[str, Any]]:
    """Yield one row per table and model, and then the shares over all of them."""
    rows = list[dict[str, Any]]()
    for id in tables:
        for model in models:
            task, _ = load(data, id, model)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows.append({"table": task.name, "model": model, **measured(task, n_rows, n_seeds)})
            yield rows[-1]
    clear = sum(row["clear"] for row in rows)
    yield {
        "table": "all",
        "model": "all",
        "attributes": max(row["attributes"] for row in rows),
        "rows": sum(row["rows"] for row in rows),
        "clear": clear,
        "same": sum(row["same"] for row in rows),
        "same_share": sum(row["same"] for row in rows) / max(1, clear),
        "near_ties": statistics.mean(row["near_ties"] for row in rows),
        "as_points": sum(row["as_points"] or 0 for row in rows),
        "of_points": sum(row["of_points"] or 0 for row in rows),
        "seconds": statistics.median(row["seconds"] for row in rows),
        "ratio": max(row["ratio"] for row in rows),
        "queries": statistics.median(row["queries"] for row in rows),
        "as_shap": statistics.mean(row["as_shap"] for row in rows),
        "shap_seconds": statistics.median(row["shap_seconds"] for row in rows),
    }


def measured(task: Task, n_rows: int, n_seeds: int) -> dict[str, Any]:
    """Return what is known of the reasons of some declined rows of a table."""
    outputs = task.scores(task.codes)[:, 1]
    threshold = float(np.quantile(outputs, _QUANTILE))
    table, output = Table(task.frame), task.model.classes_[1]
    explainer = Explainer(task.model, table, output=output, threshold=threshold)
    declined = np.flatnonzero(outputs < threshold)
    chosen = np.random.default_rng(SEED).choice(declined, size=min(n_rows, len(declined)), replace=False).tolist()
    explainer.reasons(task.frame.iloc[[chosen[0]]], reference="near")  # reads trees, and asks about the table
    explainer.explain(task.frame.iloc[[chosen[0]]])
    n_same = n_clear = n_ties = 0
    ours, seconds, usual = list[Reasons](), list[float](), list[float]()
    for row in chosen:
        instance = task.frame.iloc[[row]]
        start = time.perf_counter()
        found = [explainer.reasons(instance, reference="near")]
        middle = time.perf_counter()
        explainer.explain(instance)
        usual.append(time.perf_counter() - middle)
        seconds.append(middle - start)
        found += [explainer.reasons(instance, reference="near", seed=seed) for seed in range(1, n_seeds)]
        n_ties += sum(bool(each.near_ties) for each in found)
        if not any(each.near_ties for each in found):
            n_clear += 1
            n_same += len({frozenset(reason.attribute for reason in each) for each in found}) == 1
        ours.append(found[0])
    as_points, of_points = _points(task, chosen, threshold)
    as_shap, shap_seconds = _beside_shap(task, chosen[:N_SHAP], outputs, ours)
    return {
        "attributes": len(table.attributes),
        "rows": len(chosen),
        "clear": n_clear,
        "same": n_same,
        "same_share": n_same / max(1, n_clear),
        "near_ties": n_ties / (len(chosen) * n_seeds),
        "as_points": as_points,
        "of_points": of_points,
        "seconds": statistics.median(seconds),
        "ratio": statistics.median(seconds) / statistics.median(usual),
        "queries": statistics.median(each.n_queries for each in ours),
        "as_shap": as_shap,
        "shap_seconds": shap_seconds,
    }


def _points(task: Task, chosen: Sequence[int], threshold: float) -> tuple[int | None, int | None]:
    """Return for how many rows reasons of the log-odds are those of logistic points, or None for other models.

    The points that a row lacks of the average of the reference are computed from the model's own log-odds alone.
    Rows with a disclosed near tie count if all reasons by points are stated or disclosed.
    """
    last = task.model[1:]
    if not hasattr(last, "decision_function") or not hasattr(last[-1], "coef_"):
        return None, None
    table, limit = Table(task.frame), float(np.log(threshold / (1 - threshold)))
    choice = {"output": task.model.classes_[1], "output_scale": "margin", "threshold": limit}
    explainer, odds = Explainer(task.model, table, **choice), np.asarray(last.decision_function(task.codes))
    passing = np.sort(odds[odds >= limit])
    edge = passing[min(len(passing), max(100, int(np.ceil(0.1 * len(passing))))) - 1]
    rows = np.flatnonzero((odds >= limit) & (odds <= edge))
    n_right = 0
    for row in chosen:
        lacks = {}
        for attribute in table.attributes:
            changed = np.repeat(task.codes[[row]], len(rows), axis=0)
            places = np.array(attribute.positions)
            changed[:, places] = task.codes[np.ix_(rows, places)]
            lacks[attribute.name] = float(last.decision_function(changed).mean() - odds[row])
        worst = sorted(lacks, key=lambda name: -lacks[name])[:4]
        right = {name for name in worst if lacks[name] >= PRINCIPAL * lacks[worst[0]]}
        found = explainer.reasons(task.frame.iloc[[row]], reference="near")
        stated = {reason.attribute for reason in found}
        n_right += right <= stated | {*found.near_ties} if found.near_ties else right == stated
    return n_right, len(chosen)


def _beside_shap(
    task: Task, chosen: Sequence[int], outputs: np.ndarray, ours: Sequence[Reasons]
) -> tuple[float, float]:
    """Return which share of our reasons SHAP's values put first, too, and its median seconds per row."""
    import shap

    shares, seconds = list[float](), list[float]()
    for row, found in zip(chosen, ours, strict=False):
        low, high = found.reference.low or 0.0, found.reference.high or 0.0
        near = task.codes[(outputs >= low) & (outputs <= high)][:_BACKGROUND]
        masker = shap.maskers.Independent(near, max_samples=len(near))
        start = time.perf_counter()
        explainer = shap.PermutationExplainer(lambda codes: task.scores(codes)[:, 1], masker, seed=SEED)
        values = explainer(task.codes[[row]], max_evals=2 * task.codes.shape[1] + 1, silent=True).values[0]
        seconds.append(time.perf_counter() - start)
        names = [list(task.frame)[place] for place in np.argsort(values)[: len(found)] if values[place] < 0]
        shares.append(sum(bool({*reason.columns} & {*names}) for reason in found) / len(found))
    return statistics.mean(shares), statistics.median(seconds)
