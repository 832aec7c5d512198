r"""How well do the facts fit? Fidelity error over baseline on fresh neighbors of the law, beside 0.1 and LIME.

Every method names as many facts as ours. Their effects are refitted on neighbors of the law by least squares,
anchored at the prediction, so that only the choice of facts is compared:

.. math:: \min_v \frac{E[(t - \sum_j v_j F_j)^2]}{E[t^2]}, \qquad t = f(x) - f(z)
"""

import contextlib
import statistics
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from benchmarks.datasets import available
from benchmarks.facts import Method, Ours, load
from benchmarks.held import REPLACE, Held, Task
from benchmarks.release01 import Release01, python_of_01
from benchmarks.rivals import Lime, Old
from benchmarks.tasks import SEED

MODELS = ("boosting", "forest")
N_ROWS = 20
N_FITTED = 10_000
N_FRESH = 20_000
K = 4


def fit(
    data: Path, tables: Collection[str] = (), n_rows: int = N_ROWS, models: Sequence[str] = MODELS
) -> Iterator[dict[str, Any]]:
    """Yield one row per table and model: mean errors over baseline, and how much worse ours is, in percent."""
    rows, python = list[dict[str, Any]](), python_of_01()
    for row in available(data, tables):
        for model in models:
            ratios = table_ratios(*load(data, row.id, model), n_rows, python)
            rows.append({"table": row.name, "model": model, "rows": len(ratios["ours"]), **_figures(ratios)})
            yield rows[-1]
    whole: dict[str, Any] = {"table": "all", "model": "all", "rows": sum(row["rows"] for row in rows)}
    for key in list(rows[0])[3:]:
        whole[key] = statistics.mean(row[key] for row in rows if row[key] is not None)
    yield whole


def _figures(ratios: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Return means per method, and by how many percent the mean of ours is above that of each other one."""
    names = [name for name in ratios if name != "facts"]
    means = {name: statistics.mean(ratios[name]) if ratios[name] else None for name in ("facts", *names)}
    worse = {f"percent_above_{name}": _percent_above(means["ours"], means[name]) for name in names[1:]}
    return {**means, **worse}


def _percent_above(value: float | None, other: float | None) -> float | None:
    return None if value is None or not other else 100 * (value / other - 1)


def table_ratios(task: Task, explainer: Explainer, n_rows: int, python: str | None) -> dict[str, list[float]]:
    """Return the error over baseline of each method for some rows; 'facts' are their numbers of facts."""
    with contextlib.ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = Ours(task, explainer)
        others: dict[str, Method] = {"lime": Lime(task)}
        if python is not None:
            choices = {} if task.is_classifier else {"task": "number"}
            others["old"] = Old(task, stack.enter_context(Release01(python, task.model, task.frame, **choices)))
        ratios: dict[str, list[float]] = {name: [] for name in ("facts", "ours", *others)}
        for row in task.chosen(n_rows):
            held = ours.facts(row, K)
            sample = neighbors(task, row)
            if not held or not sample[1].any():  # nothing to explain
                continue
            ratios["facts"].append(len(held))
            ratios["ours"].append(error_over_baseline(task, held, *sample))
            for name, method in others.items():
                ratios[name].append(error_over_baseline(task, method.facts(row, len(held)), *sample))
    return ratios


def neighbors(task: Task, row: int) -> tuple[np.ndarray, np.ndarray]:
    """Return donors (groups, n) of neighbors of the law, the row itself for values it keeps, and drops (n,)."""
    rng, n = np.random.default_rng([SEED, row]), N_FITTED + N_FRESH
    donors = np.full((len(task.together), n), row)
    for each in donors:
        drawn = rng.random(n) < REPLACE
        each[drawn] = rng.integers(len(task.codes), size=int(drawn.sum()))
    outputs = task.outputs(np.vstack([task.codes[[row]], task.copies(donors)]), row)
    return donors, outputs[0] - outputs[1:]


def error_over_baseline(task: Task, held: Sequence[Held], donors: np.ndarray, drops: np.ndarray) -> float:
    """Return the error of the refitted sum of these facts on fresh neighbors, over the error without facts."""
    places = {column: number for number, group in enumerate(task.together) for column in group}
    broken = np.array([~fact.rows[donors[places[fact.column]]] for fact in held], dtype=float).reshape(
        -1, len(drops)
    )
    effects = np.linalg.lstsq(broken[:, :N_FITTED].T, drops[:N_FITTED], rcond=None)[0]
    fresh = drops[N_FITTED:]
    return float(np.mean((fresh - effects @ broken[:, N_FITTED:]) ** 2) / np.mean(fresh**2))
