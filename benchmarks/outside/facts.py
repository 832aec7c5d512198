"""Calibrated Explanations, SLISE and LORE beside our sums, under the neutral laws of `benchmarks.facts`.

The same facts are held and the same copies are drawn for all: what remains of the error when up to k facts hold.
Calibrated Explanations and LORE state facts of their own; SLISE ranks columns, which get LIME's quartile bins.
"""

import contextlib
import io
import re
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.codes import codes_of
from benchmarks.datasets import available
from benchmarks.facts import LAWS, SIZES, Method, Ours, load, nearest, remaining
from benchmarks.held import Held, Task
from benchmarks.models import training_rows
from benchmarks.outside.child import run
from benchmarks.rivals import filled, largest, quartile_fact
from benchmarks.tasks import SEED

TABLES = (42192, 179, 44024, 46328)  # with rows beside those of the training, which calibration needs
MODELS = ("boosting", "forest")
WITH_LORE = (42192,)  # it takes seconds per row, and classes only
N_CALIBRATION = 500
N_SLISE = 1000
TOLERANCE = 0.05  # of the range of the outputs, within which SLISE's linear model is to stay; there is no default
SIGNS = {
    "<=": np.less_equal,
    "<": np.less,
    ">": np.greater,
    ">=": np.greater_equal,
    "=": np.equal,
    "!=": np.not_equal,
}


class Calibrated:
    """Calibrated Explanations: factual rules, those with the largest weights first."""

    def __init__(self, task: Task, data: Path, dataset_id: int) -> None:
        from calibrated_explanations import WrapCalibratedExplainer

        self.task, self._table = task, filled(task.codes)
        dataset, sample = training_rows(data, dataset_id)
        others = np.setdiff1d(np.arange(len(dataset.frame)), sample)
        others = np.random.default_rng(SEED).choice(others, N_CALIBRATION, replace=False)
        rows = filled(codes_of(dataset.frame.iloc[others][list(task.frame)].astype(task.frame.dtypes.to_dict())))
        target = dataset.target[others]
        if not task.is_classifier:
            target = (target - dataset.target[sample].mean()) / dataset.target[sample].std()
        texts = [place for place, dtype in enumerate(task.frame.dtypes) if dtype == "category"]
        self._explainer = WrapCalibratedExplainer(task.model[1:])
        names = [f"x{place}" for place in range(len(task.frame.columns))]
        self._explainer.calibrate(rows, target, feature_names=names, categorical_features=texts)

    def facts(self, row: int, k: int) -> list[Held]:
        """Return at most k facts about a row."""
        rules = self._explainer.explain_factual(self._table[[row]])[0].get_rules()
        order = np.argsort(-np.abs(np.array(rules["weight"], dtype=float)), kind="stable")[:k]
        return [held(self._table, rules["rule"][place]) for place in order]


class Slise:
    """SLISE: the columns whose terms in its linear model are the largest, on columns encoded as for the model."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._encoded = np.asarray(task.model[1].transform(task.codes), dtype=float)
        names = task.model[1].get_feature_names_out()
        self._owners = np.array([int(found[1]) for name in names if (found := re.search(r"__x(\d+)", name))])
        self._rows = np.random.default_rng(SEED).choice(len(task.codes), N_SLISE, replace=False)
        self._terms = dict[int, np.ndarray]()

    def facts(self, row: int, k: int) -> list[Held]:
        """Return at most k facts about a row."""
        if row not in self._terms:
            import slise

            outputs = self.task.outputs(self.task.codes[np.append(self._rows, row)], row)
            tolerance = TOLERANCE * float(np.ptp(outputs))
            x = self._encoded[row]
            found = slise.explain(self._encoded[self._rows], outputs[:-1], tolerance, x, float(outputs[-1]))
            terms = found.coefficients[1:] * (x - self._encoded.mean(axis=0))
            self._terms[row] = np.bincount(self._owners, terms, minlength=self.task.codes.shape[1])
        return [quartile_fact(self.task, column, row) for column in largest(self._terms[row], k)]


class Lore:
    """LORE with its genetic neighborhoods: the first columns of its rule, from the root of its tree on."""

    def __init__(self, task: Task) -> None:
        from lore_sa.bbox import AbstractBBox
        from lore_sa.dataset import TabularDataset
        from lore_sa.lore import TabularGeneticGeneratorLore

        class Box(AbstractBBox):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__(task.model)

            def predict(self, rows: Any) -> Any:
                return task.scores(np.asarray(rows, dtype=float)).argmax(axis=1).astype(str)

            def predict_proba(self, rows: Any) -> Any:
                return task.scores(np.asarray(rows, dtype=float))

        self.task, self._table, self._rules = task, filled(task.codes), dict[int, list[Held]]()
        names = [f"x{place}" for place in range(self._table.shape[1])]
        frame = pd.DataFrame(self._table, columns=names).assign(decision=Box().predict(self._table))
        texts = [names[place] for place, dtype in enumerate(task.frame.dtypes) if dtype == "category"]
        dataset = TabularDataset(frame, class_name="decision", categorial_columns=[*texts, "decision"])
        self._explainer = TabularGeneticGeneratorLore(Box(), dataset)

    def facts(self, row: int, k: int) -> list[Held]:
        """Return at most k facts about a row."""
        if row not in self._rules:
            rule = self._explainer.explain(self._table[row])["rule"]
            joined: dict[int, np.ndarray] = {}
            for premise in rule["premises"]:
                fact = held(self._table, f"{premise['attr']} {premise['op']} {premise['val']}")
                joined[fact.column] = joined.get(fact.column, True) & fact.rows
            self._rules[row] = [Held(column, rows) for column, rows in joined.items()]
        return [fact for fact in self._rules[row] if fact.rows.any()][:k]


def held(table: np.ndarray, text: str) -> Held:
    """Return a printed fact such as "x3 <= 1.5" as the rows for which it is true."""
    found = re.fullmatch(r"x(\d+) (<=|>=|!=|<|>|=) (\S+)", text.strip())
    if found is None:
        raise ValueError(f"The fact {text!r} cannot be read.")
    return Held(int(found[1]), SIGNS[found[2]](table[:, int(found[1])], float(found[3])))


def measure(data: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield one row per table, model, law, number of facts and method, and one per method that fails."""
    n_rows = 3 if quick else 10
    ids = [row.id for row in available(data) if row.id in TABLES]
    for dataset_id in ids[:1] if quick else ids:
        for model in MODELS[:1] if quick else MODELS:
            task, explainer = load(data, dataset_id, model)
            makers = {
                "anchorline": lambda task=task, explainer=explainer: Ours(task, explainer),
                "Calibrated Explanations": lambda task=task, at=dataset_id: Calibrated(task, data, at),
                "SLISE": lambda task=task: Slise(task),
            }
            if dataset_id in WITH_LORE:
                makers["LORE"] = lambda task=task: Lore(task)
            rows, errors = task.chosen(n_rows), dict[tuple[str, int, str], list[float]]()
            for name, make in makers.items():
                try:
                    seconds = _add(errors, name, task, make, rows)
                except Exception as error:  # whatever a package raises is shown
                    message = f"{type(error).__name__}: {error}".splitlines()[0][:200]
                    yield {"method": f"{name}, {task.name}, {model}", "error": message}
                    continue
                for law in LAWS:
                    for k in SIZES:
                        found, none = errors[law, k, name], errors[law, k, "none"]
                        yield {"table": task.name, "model": model, "law": law, "facts": k, "method": name} | {
                            "rows": len(found),
                            "stated": float(np.mean(errors[law, k, f"{name} facts"])),
                            "remaining": float(np.mean(np.divide(found, none))),
                            "pooled": float(np.sum(found) / np.sum(none)),
                            "seconds": seconds,
                        }


def _add(
    errors: dict[tuple[str, int, str], list[float]], name: str, task: Task, make: Any, rows: list[int]
) -> float:
    """Measure one method on all rows; return its median processor seconds per row, without what it prepares."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method: Method = make()
        method.facts(next(row for row in range(len(task.codes)) if row not in rows), SIZES[0])  # compiles
        seconds = []
        for row in rows:
            start = time.process_time()
            named = {k: method.facts(row, k) for k in SIZES}
            seconds.append(time.process_time() - start)
            for law in LAWS:
                donors = np.arange(len(task.codes)) if law == LAWS[0] else nearest(task.codes, row)
                baseline = remaining(task, row, (), donors)
                for k in SIZES:
                    if baseline >= 1e-12:
                        figures = {name: remaining(task, row, named[k], donors), f"{name} facts": len(named[k])}
                        figures |= {"none": baseline} if name == "anchorline" else {}
                        for figure, value in figures.items():
                            errors.setdefault((law, k, figure), []).append(value)
    return float(np.median(seconds))


if __name__ == "__main__":
    run(measure)
