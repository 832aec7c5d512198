"""Are the facts the same with another seed? Mean Jaccard index of pairs of seeds, of attributes and of facts."""

import itertools
import statistics
import warnings
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from anchorline.explainer import Explainer
from benchmarks.datasets import available
from benchmarks.facts import load
from benchmarks.held import Task

MODELS = ("boosting", "forest")
N_ROWS = 10
N_SEEDS = 10


def seeds(
    data: Path,
    tables: Collection[str] = (),
    n_rows: int = N_ROWS,
    n_seeds: int = N_SEEDS,
    models: Sequence[str] = MODELS,
) -> Iterator[dict[str, Any]]:
    """Yield one row per table and model, then the means over all, and over those whose neighbors are drawn.

    Leaves of trees give the same facts for every seed.
    """
    rows = list[dict[str, Any]]()
    for row in available(data, tables):
        for model in models:
            task, explainer = load(data, row.id, model)
            rows.append({"table": row.name, "model": model, **table_seeds(task, explainer, n_rows, n_seeds)})
            yield rows[-1]
    drawn = [row for row in rows if row["source"] == "drawn"]
    for source, some in (("all", rows), ("drawn", drawn)):
        if some:
            figures = ("facts", "same_attributes", "same_facts")
            means = {figure: statistics.mean(row[figure] for row in some) for figure in figures}
            n_explained = sum(row["rows"] for row in some)
            yield {"table": "all", "model": "all", "rows": n_explained, "source": source, **means}


def table_seeds(task: Task, explainer: Explainer, n_rows: int, n_seeds: int) -> dict[str, Any]:
    """Explain some rows with every seed; only the search depends on it, so nothing is measured."""
    of_attributes, of_facts, sizes = list[float](), list[float](), list[int]()
    rows = task.chosen(n_rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in rows:
            instance, found = task.frame.iloc[[row]], []
            for seed in range(n_seeds):
                (point,) = explainer.frontier(instance, ks=[4], seed=seed).points
                found.append(point.facts)
            sizes += [len(facts) for facts in found]
            of_attributes.append(mean_jaccard([{fact.attribute for fact in facts} for facts in found]))
            of_facts.append(mean_jaccard([{*facts} for facts in found]))
        n_asked = explainer.frontier(task.frame.iloc[[rows[0]]], ks=[4]).n_queries
    return {
        "rows": len(rows),
        "source": "leaves" if n_asked < 100 else "drawn",
        "facts": statistics.mean(sizes),
        "same_attributes": statistics.mean(of_attributes),
        "same_facts": statistics.mean(of_facts),
    }


def mean_jaccard(sets: Sequence[Collection[Any]]) -> float:
    """Return the mean over pairs of sets of the size of what both have over that of what either has.

    Examples
    --------
    >>> mean_jaccard([{"age", "sex"}, {"age"}, {"age"}])
    0.6666666666666666
    >>> mean_jaccard([set(), set()])
    1.0
    """
    indices = []
    for one, other in itertools.combinations([{*each} for each in sets], 2):
        indices.append(len(one & other) / len(one | other) if one | other else 1.0)
    return statistics.mean(indices)
