"""Anchors of other packages, for comparisons: they run in child processes with environments of their own.

``ANCHORLINE_ALIBI`` names the Python executable of an environment with alibi, which needs NumPy 1, and
``ANCHORLINE_EXPLAINIVERSE`` that of one with explainiverse. Both need the scikit-learn that fits the models here:

    python -m venv alibi && alibi/bin/python -m pip install alibi click scikit-learn==<version here>

The model runs inside the child, so that the processor time of an explanation is that of the package and the model
alone. This module imports nothing of the library.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from benchmarks.child import serve

VARIABLES = {"alibi": "ANCHORLINE_ALIBI", "explainiverse": "ANCHORLINE_EXPLAINIVERSE"}
BATCH = 100  # alibi's default; explainiverse asks about one row at a time by default, which takes minutes

Box = list[tuple[int, float, float]]  # (column, low, high): low < value <= high
Found = tuple[Box, bool, float]  # facts, whether they are said to reach the threshold, and the precision


def alibi_anchors(model: Any, table: np.ndarray, levels: dict[int, int], k: int, share: float, seed: int) -> Any:
    """Return a function from a row's number to alibi's anchor, with its default settings and at most k bounds."""
    from alibi.explainers import AnchorTabular

    class Exact(AnchorTabular):  # type: ignore[misc]
        """Remembers the anchor's bounds, which alibi prints with two decimals only."""

        def add_names_to_exp(self, explanation: dict[str, Any]) -> None:
            self.chosen = list(explanation["feature"])
            super().add_names_to_exp(explanation)

    names = [f"x{column}" for column in range(table.shape[1])]
    categories = {column: [str(level) for level in range(n)] for column, n in levels.items()}
    explainer = Exact(model.predict_proba, names, categorical_names=categories, seed=seed)
    explainer.fit(table)
    sampler = explainer.samplers[0]

    def box() -> Box:
        bins, _, _ = sampler.get_features_index(tuple(explainer.chosen))
        own = {sampler.enc2feat_idx[each]: each for each in explainer.chosen if each in sampler.cat_lookup}
        facts = [(column, *_level(sampler.cat_lookup[each])) for column, each in own.items()]
        for column, allowed in bins.items():
            edges = [-np.inf, *sampler.disc.lambdas[column].keywords["qts"], np.inf]
            facts.append((column, float(edges[min(allowed)]), float(edges[max(allowed) + 1])))
        return facts

    def explain(row: int) -> Found:
        found = explainer.explain(table[row], threshold=share, max_anchor_size=k)
        precision = float(np.ravel(found.precision)[0])
        return box(), precision >= share, precision

    return explain


def _level(code: float) -> tuple[float, float]:
    """Return a category as bounds of its code."""
    return float(code) - 0.5, float(code) + 0.5


def explainiverse_anchors(
    model: Any, table: np.ndarray, levels: dict[int, int], k: int, share: float, seed: int
) -> Any:
    """Return a function from a row's number to explainiverse's certified anchor of at most k bounds.

    It knows numbers only: bounds of codes are sets of categories.
    """
    from explainiverse.adapters.sklearn_adapter import SklearnAdapter
    from explainiverse.explainers.rule_based.anchor_tabular import AnchorTabularExplainer

    names = [f"x{column}" for column in range(table.shape[1])]
    classes = [f"class {each}" for each in model.classes_]
    adapter = SklearnAdapter(model, feature_names=names, class_names=classes)
    explainer = AnchorTabularExplainer(
        adapter, table, names, classes, threshold=share, max_anchor_size=k, batch_size=BATCH, random_state=seed
    )

    def explain(row: int) -> Found:
        found = explainer.explain(table[row]).explanation_data
        bounds = dict[int, tuple[float, float]]()
        for each in found["rule_conditions"]:
            low, high = bounds.get(each["feature_index"], (-np.inf, np.inf))
            if each["operator"] == ">":
                low = max(low, each["threshold"])
            else:
                high = min(high, each["threshold"])
            bounds[each["feature_index"]] = (low, high)
        box = [(column, low, high) for column, (low, high) in bounds.items()]
        return box, bool(found["is_certified_anchor"]), float(found["precision"])

    return explain


class Recoded(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A model of codes, asked about codes in which a missing category is one more level instead of -1."""

    def __init__(self, model: Any, levels: dict[int, int]) -> None:
        self.model, self.levels, self.classes_ = model, levels, model.classes_
        self._columns = np.array(list(levels), dtype=np.intp)
        self._missing = np.array([n - 1 for n in levels.values()], dtype=float)

    def _codes(self, rows: np.ndarray) -> np.ndarray:
        codes = np.array(rows, dtype=float)
        codes[:, self._columns] = np.where(codes[:, self._columns] == self._missing, -1, codes[:, self._columns])
        return codes

    def predict_proba(self, rows: np.ndarray) -> np.ndarray:
        """Return probabilities (n, classes)."""
        return np.asarray(self.model.predict_proba(self._codes(rows)))

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """Return classes (n,)."""
        return np.asarray(self.model.predict(self._codes(rows)))


def main(file: str, package: str) -> None:
    """Answer requests about the model and table of a file; runs in the package's environment."""

    def start() -> Callable[[dict[str, Any]], dict[str, Any]]:
        model, table, levels, settings = joblib.load(file)
        make = {"alibi": alibi_anchors, "explainiverse": explainiverse_anchors}[package]
        explain = make(Recoded(model, levels) if levels else model, table, levels, **settings)

        def answer(request: dict[str, Any]) -> dict[str, Any]:
            begin = time.process_time()
            box, claims, precision = explain(request["row"])
            seconds = time.process_time() - begin
            return {"box": box, "claims": claims, "precision": precision, "seconds": seconds}

        return answer

    serve(start)


if __name__ == "__main__":
    main(*sys.argv[1:])
