"""Quantus's metrics for tables on BEExAI's neural networks, for BEExAI's explainers and ours."""

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import quantus
import torch
from beexai.explanation.explaining import GeneralExplainer
from beexai.utils.time_seed import set_seed
from scipy.stats import spearmanr

from benchmarks.datasets import available
from benchmarks.outside.beexai import TABLES, TASKS, Asked, K, explainers, quiet, split, trained
from benchmarks.outside.child import run
from benchmarks.tasks import SEED


class Flat(torch.nn.Module):  # type: ignore[misc]
    """A network of rows (n, d) for Quantus, whose rows have a channel: (n, 1, d)."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self._network = network

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the outputs (n, classes), or (n, 1)."""
        found: torch.Tensor = self._network(rows.reshape(len(rows), -1).float())
        return found


class Largest(GeneralExplainer):  # type: ignore[misc]
    """The largest amounts of another explainer: what a limit on the number of columns alone costs."""

    def __init__(self, explainer: GeneralExplainer, k: int) -> None:
        super().__init__(explainer.model, explainer.task)
        self._explainer, self._k = explainer, k

    def init_explainer(self) -> None:
        """Nothing is prepared."""

    def explain(self, x_test: torch.Tensor, label: Any = None, absolute: bool = False) -> torch.Tensor:
        """Return the attributions (n, d), with 0 for all but the k largest of a row."""
        found = self._explainer.explain(x_test, label=label, absolute=absolute)
        others = torch.argsort(-torch.abs(found), dim=1)[:, self._k :]
        found = found.scatter(1, others, 0.0)
        return found / torch.norm(found)


def by_row(a: np.ndarray, b: np.ndarray, **_: Any) -> np.ndarray:
    """Return Spearman's correlations row by row; Quantus's own fails for all rows if one is constant."""
    return np.array([spearmanr(*pair)[0] for pair in zip(a, b, strict=True)])


def metrics(d: int) -> dict[str, Any]:
    """Return the metrics for tables that neither need gradients nor explain again; replaced values become zero."""
    zero = {"perturb_baseline": 0.0, "disable_warnings": True}
    return {
        "FaithfulnessCorrelation": quantus.FaithfulnessCorrelation(
            subset_size=max(2, d // 4), return_aggregate=False, **zero
        ),
        "FaithfulnessEstimate": quantus.FaithfulnessEstimate(**zero),
        "MonotonicityCorrelation": quantus.MonotonicityCorrelation(nr_samples=1, similarity_func=by_row, **zero),
        "PixelFlipping": quantus.PixelFlipping(**zero),
        "Complexity": quantus.Complexity(disable_warnings=True),
        "Sparseness": quantus.Sparseness(disable_warnings=True),
    }


def measure(data: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield one row per table and explainer."""
    n_rows = 8 if quick else 20
    ids = [row.id for row in available(data) if row.id in TABLES]
    for dataset_id in ids[:2] if quick else ids:
        name, kind, (x_train, x_test, y_train, _) = split(data, dataset_id)
        x = torch.tensor(x_test.to_numpy(np.float32)[:n_rows])
        with quiet():
            set_seed(SEED)
            network = trained("NeuralNetwork", kind, x_train, y_train)
        model = Asked(network)
        label = None if kind == "regression" else model.predict(x).long()
        all_of_them = explainers(model, kind, x_train)
        all_of_them[f"Shapley sampling, {K} largest"] = Largest(all_of_them["Shapley sampling"], K)
        for shown, explainer in all_of_them.items():
            set_seed(SEED)
            model.n_rows, start = 0, time.process_time()
            with quiet(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = explainer.explain(x, label=label).numpy()
                seconds, queries = (time.process_time() - start) / len(x), model.n_rows / len(x)
                row = figures(network, x.numpy(), label, found)
            used = float((found != 0).sum(axis=1).mean())
            about = {"task": f"models of {TASKS[kind]}", "table": name, "model": "NeuralNetwork", "method": shown}
            yield about | {"rows": len(x)} | row | {"columns_used": used, "queries": queries, "seconds": seconds}


def figures(network: Any, x: np.ndarray, label: Any, found: np.ndarray) -> dict[str, float]:
    """Return the means of Quantus's metrics of some attributions (n, d)."""
    outputs = np.zeros(len(x), dtype=int) if label is None else label.numpy()
    values = {}
    for name, metric in metrics(x.shape[1]).items():
        set_seed(SEED)  # the same columns for every explainer
        scores = metric(
            model=Flat(network).eval(),
            x_batch=x[:, None, :],
            y_batch=outputs,
            a_batch=found[:, None, :],
            channel_first=True,
            softmax=False,  # the network has its own, and one number needs none
        )
        known = np.asarray(scores, dtype=float)
        if known.ndim == 2:  # a curve per row, whose area Quantus computes by a function that NumPy 2.4 lacks
            known = np.trapezoid(known, axis=1)
        values[name] = float(np.nan_to_num(known).mean())  # correlations with what is constant count as 0
    return values


if __name__ == "__main__":
    run(measure)
