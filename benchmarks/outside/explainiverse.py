"""Explainiverse's metrics of faithfulness, for its LIME and KernelSHAP and for our sums as attributions."""

import functools
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from explainiverse import Explanation, SklearnAdapter
from explainiverse.evaluation.faithfulness import (
    compute_faithfulness_correlation,
    compute_pgi,
    compute_pgu,
)
from explainiverse.explainers.attribution import LimeExplainer, ShapExplainer

from anchorline import Explainer, Table
from benchmarks.datasets import available
from benchmarks.facts import load
from benchmarks.held import Task
from benchmarks.outside.child import run
from benchmarks.tasks import SEED

TABLES = (42192, 43672, 44024)  # complete, of numbers only: Explainiverse replaces values by means
MODELS = ("boosting", "forest")
N_BACKGROUND = 50
METRICS: dict[str, Callable[..., float]] = {
    "PGI": functools.partial(compute_pgi, k=2),
    "PGU": functools.partial(compute_pgu, k=2),
    "FaithfulnessCorrelation": functools.partial(compute_faithfulness_correlation, subset_size=2),
}


def methods(task: Task, adapter: Any) -> dict[str, Callable[[int, int | None], Any]]:
    """Return functions from the number of a row and of its output to Explainiverse's explanations."""
    names, rows = list(map(str, task.frame)), task.codes
    background = rows[np.random.default_rng(SEED).choice(len(rows), N_BACKGROUND, replace=False)]
    classes = [str(name) for name in task.model.classes_] if task.is_classifier else ["value"]
    kind = "classification" if task.is_classifier else "regression"
    lime = LimeExplainer(adapter, rows, names, classes, mode=kind, random_state=SEED)
    shap = ShapExplainer(adapter, background, names, classes, task=kind, random_state=SEED)

    frame = task.frame.astype("float64")  # so that means are values that its columns may have

    def ours(**law: Any) -> Callable[[int, int | None], Any]:
        explainer = Explainer(task.model, Table(frame, **law))

        def explain(row: int, output: int | None) -> Any:
            e = explainer.explain(frame.iloc[[row]])
            amounts = dict.fromkeys(names, 0.0)
            amounts |= {str(fact.column): float(c) for fact, c in zip(e.facts, e.contributions, strict=True)}
            return Explanation(
                "anchorline",
                None if output is None else classes[output],
                {"feature_attributions": amounts},
                names,
                {"output_index": output or 0},
            )

        return explain

    mean = pd.DataFrame([rows.mean(axis=0)], columns=task.frame.columns)
    return {
        "LIME": lambda row, output: lime.explain(rows[row], target_class=output),
        "KernelSHAP": lambda row, output: shap.explain(rows[row], target_class=output),
        "anchorline": ours(),
        "anchorline, from the mean": ours(reference=mean),
    }


def measure(data: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield one row per table, model and method: means over the rows on which every method has a value."""
    ids = [row.id for row in available(data) if row.id in TABLES]
    for dataset_id in ids[:1] if quick else ids:
        for model in MODELS[:1] if quick else MODELS:
            task, _ = load(data, dataset_id, model)
            adapter = SklearnAdapter(task.model[1:], list(map(str, task.frame)))
            found: dict[str, list[dict[str, float]]] = {}
            makers = methods(task, adapter)
            for row in task.chosen(5 if quick else 20):
                output = int(task.scores(task.codes[[row]]).argmax()) if task.is_classifier else None
                for name, explain in makers.items():
                    found.setdefault(name, []).append(_figures(task, adapter, explain, row, output))
            for name, each in found.items():
                about = {"task": f"models of {'classes' if task.is_classifier else 'numbers'}", "table": task.name}
                yield about | {"model": model, "method": name, "rows": len(each)} | _means(found, name)


def _figures(task: Task, adapter: Any, explain: Any, row: int, output: int | None) -> dict[str, float]:
    """Return the metrics of one explanation; NaN where Explainiverse says that it is undefined."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explanation = explain(row, output)
    figures = {"seconds": time.process_time() - start}
    for name, metric in METRICS.items():
        try:
            figures[name] = float(metric(adapter, task.codes[row], explanation, background_data=task.codes))
        except ValueError:  # of attributions that tie where it has to choose, such as zeros, or are constant
            figures[name] = np.nan
    return figures


def _means(found: dict[str, list[dict[str, float]]], name: str) -> dict[str, float]:
    means = {}
    for metric in METRICS:
        defined = [
            place
            for place in range(len(found[name]))
            if all(np.isfinite(each[place][metric]) for each in found.values())
        ]
        means[metric] = float(np.mean([found[name][place][metric] for place in defined]))
    undefined = [any(np.isnan(each[metric]) for metric in METRICS) for each in found[name]]
    seconds = float(np.median([each["seconds"] for each in found[name]]))
    return means | {"undefined_rows": float(np.mean(undefined)), "seconds": seconds}


if __name__ == "__main__":
    run(measure)
