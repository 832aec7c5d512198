r"""Do the facts hold the output? Under laws that no explainer uses, beside LIME, SHAP and release 0.1.

The columns of facts take values of random rows for which the facts are true, all others values of random rows:
(a) of all, (b) of the 50 nearest. Figure: the error that remains over that with nothing held,

.. math:: \frac{E[(f(x) - f(z))^2 \mid \text{facts}]}{E[(f(x) - f(z))^2]}
"""

import contextlib
import statistics
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.stats import ttest_rel

from anchorline.explainer import Explainer
from anchorline.spaces.table import Table
from benchmarks.datasets import available
from benchmarks.held import Held, Task, our_facts
from benchmarks.models import fitted_model
from benchmarks.release01 import Release01, python_of_01
from benchmarks.rivals import KernelShap, Lime, Old, TreeShap
from benchmarks.tasks import SEED

MODELS = ("boosting", "forest")
SIZES = (3, 5)
LAWS = ("all rows", "nearest rows")
N_ROWS = 20
N_NEAREST = 50
N_DRAWS = 2000
PEERS = ("lime", "kernel_shap", "tree_shap", "old")
LEVEL = 0.05

Errors = dict[tuple[str, int, str], list[float]]  # by law, number of facts and method: one figure per row


class Method(Protocol):
    """What names facts about a row."""

    def facts(self, row: int, k: int) -> list[Held]:
        """Return at most k facts."""


class Ours:
    """The sum of at most k facts."""

    def __init__(self, task: Task, explainer: Explainer) -> None:
        self.task, self._explainer = task, explainer

    def facts(self, row: int, k: int) -> list[Held]:
        """Return at most k facts about a row."""
        (found,) = self._explainer.frontier(self.task.frame.iloc[[row]], ks=[k]).points  # searches as `explain`
        return our_facts(found.facts, self.task.frame)


def facts(
    data: Path, tables: Collection[str] = (), n_rows: int = N_ROWS, models: Sequence[str] = MODELS
) -> Iterator[dict[str, Any]]:
    """Yield one row per law, number of facts, table and model, then the averages and tests over all tables."""
    measured, python = dict[tuple[str, str], Errors](), python_of_01()
    for row in available(data, tables):
        for model in models:
            errors = measured[row.name, model] = table_errors(*load(data, row.id, model), n_rows, python)
            for law in LAWS:
                for k in SIZES:
                    figures = _columns(python) | _means(errors, law, k)
                    yield {"law": law, "facts": k, "table": row.name, "model": model, **figures}
    for law in LAWS:
        for k in SIZES:
            figures = _columns(python) | _overall(measured, law, k)
            yield {"law": law, "facts": k, "table": "all", "model": "all", **figures}


def _columns(python: str | None) -> dict[str, Any]:
    """Return the names of all figures, without values."""
    peers = PEERS if python is not None else PEERS[:-1]
    names = ["rows", "stated", "ours", *peers, *(f"pooled_{name}" for name in ("ours", *peers))]
    return dict.fromkeys([*names, *(f"{sign}_than_{name}" for name in peers for sign in ("higher", "lower"))])


def load(data: Path, id: int, model: str) -> tuple[Task, Explainer]:
    """Return a table with a fitted model, and our explainer of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        name, frame, fitted = fitted_model(data, id, model)
        explainer = Explainer(fitted, Table(frame), task=None if hasattr(fitted, "predict_proba") else "number")
        return Task.of(name, model, frame, fitted, explainer), explainer


def table_errors(task: Task, explainer: Explainer, n_rows: int, python: str | None) -> Errors:
    """Return what remains of the error with the facts of every method, for some rows of a table."""
    errors: Errors = {}
    with contextlib.ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        methods: dict[str, Method] = {
            "ours": Ours(task, explainer),
            "lime": Lime(task),
            "kernel_shap": KernelShap(task),
            "tree_shap": TreeShap(task),
        }
        if python is not None:
            choices = {} if task.is_classifier else {"task": "number"}
            methods["old"] = Old(task, stack.enter_context(Release01(python, task.model, task.frame, **choices)))
        for row in task.chosen(n_rows):
            _add_row(errors, task, methods, row)
    return errors


def _add_row(errors: Errors, task: Task, methods: Mapping[str, Method], row: int) -> None:
    named = {(name, k): method.facts(row, k) for name, method in methods.items() for k in SIZES}
    for law in LAWS:
        donors = np.arange(len(task.codes)) if law == LAWS[0] else nearest(task.codes, row)
        baseline = remaining(task, row, (), donors)
        if baseline < 1e-12:  # nothing ever changes
            continue
        for (name, k), held in named.items():
            error = remaining(task, row, held, donors)
            figures = {name: error / baseline, f"{name}_facts": len(held), f"{name}_error": error}
            figures |= {"baseline": baseline} if name == "ours" else {}
            for figure, value in figures.items():
                errors.setdefault((law, k, figure), []).append(value)


def nearest(codes: np.ndarray, row: int) -> np.ndarray:
    """Return the 50 rows most like a row: mean distance of ranks, where equal values are 0 apart."""
    ranks = np.stack([np.unique(column, return_inverse=True)[1] for column in codes.T], axis=1)
    distances = np.abs(ranks - ranks[row]) / np.maximum(ranks.max(axis=0), 1)
    return np.argsort(distances.mean(axis=1), kind="stable")[:N_NEAREST]


def remaining(task: Task, row: int, held: Sequence[Held], donors: np.ndarray) -> float:
    """Return the mean squared drop of copies in which the facts hold; all methods meet the same random numbers."""
    rng = np.random.default_rng([SEED, row])
    drawn = np.empty((len(task.together), N_DRAWS), dtype=np.intp)
    for number, group in enumerate(task.together):
        uniform = rng.random(N_DRAWS)
        facts = [fact.rows for fact in held if fact.column in group]
        pool = np.flatnonzero(np.logical_and.reduce(facts)) if facts else donors
        drawn[number] = pool[(uniform * len(pool)).astype(np.intp)]
    outputs = task.outputs(np.vstack([task.codes[[row]], task.copies(drawn)]), row)
    return float(np.mean((outputs[0] - outputs[1:]) ** 2))


def _means(errors: Errors, law: str, k: int) -> dict[str, Any]:
    """Return mean figures of all methods, and, as pooled, the ratio of mean errors instead of the mean ratio."""
    ours = errors.get((law, k, "ours"), [])
    row: dict[str, Any] = {"rows": len(ours)}
    if not ours:
        return row
    row["stated"] = statistics.mean(errors[law, k, "ours_facts"])
    names = [name for name in ("ours", *PEERS) if (law, k, name) in errors]
    row |= {name: statistics.mean(errors[law, k, name]) for name in names}
    baseline = sum(errors[law, k, "baseline"])
    return row | {f"pooled_{name}": sum(errors[law, k, f"{name}_error"]) / baseline for name in names}


def _overall(measured: Mapping[tuple[str, str], Errors], law: str, k: int) -> dict[str, Any]:
    """Return averages over tables, and on how many ours is significantly higher or lower, by Holm's correction."""
    known = [errors for errors in measured.values() if (law, k, "ours") in errors]
    row: dict[str, Any] = {"rows": sum(len(errors[law, k, "ours"]) for errors in known)}
    row["stated"] = statistics.mean(statistics.mean(errors[law, k, "ours_facts"]) for errors in known)
    names = ["ours", *(name for name in PEERS if all((law, k, name) in errors for errors in known))]
    means = [_means(errors, law, k) for errors in known]
    row |= {name: statistics.mean(each[name] for each in means) for name in names}
    row |= {f"pooled_{name}": statistics.mean(each[f"pooled_{name}"] for each in means) for name in names}
    for name in names[1:]:
        tests = [ttest_rel(errors[law, k, "ours"], errors[law, k, name]) for errors in known]
        ps = np.array([1.0 if np.isnan(test.pvalue) else test.pvalue for test in tests])
        is_higher = np.array([test.statistic > 0 for test in tests])
        significant = holm(ps)
        row[f"higher_than_{name}"] = int(np.sum(significant & is_higher))
        row[f"lower_than_{name}"] = int(np.sum(significant & ~is_higher))
    return row


def holm(p_values: np.ndarray, level: float = LEVEL) -> np.ndarray:
    """Return which of several tests are significant together, by Holm's procedure.

    Examples
    --------
    >>> holm(np.array([0.04, 0.001, 0.02])).tolist()
    [True, True, True]
    >>> holm(np.array([0.04, 0.03, 0.001])).tolist()
    [False, False, True]
    """
    order = np.argsort(p_values, kind="stable")
    passed = p_values[order] <= level / np.arange(len(p_values), 0, -1)
    significant = np.zeros(len(p_values), dtype=bool)
    significant[order] = np.logical_and.accumulate(passed)
    return significant
