"""Pairs of facts: fidelity and relevance with and without them, the share proven in time, and other gaps."""

import functools
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from anchorline.explainer import Explainer
from anchorline.optimize import Status
from anchorline.result.explanation import Explanation
from anchorline.spaces.hypercube import Hypercube
from anchorline.spaces.table import Table
from benchmarks.datasets import available
from benchmarks.models import fitted_model
from benchmarks.tasks import CACHE, SEED, load_benchmark

N_ROWS = 5
N_FRESH = 20_000
K = 5
TIME_LIMIT = 10.0
MAX_DIMENSION = 40  # of the paper's tasks
Explain = Callable[..., tuple[Explanation, float]]


def compare_pairs(
    data: Path, cache: Path = CACHE, *, n_rows: int = N_ROWS, model: str = "boosting"
) -> Iterator[dict[str, Any]]:
    """Yield one row per task and kind of pairs: of the paper's tasks up to 40 literals, and of raw tables."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a model whose answer is always the same is a case, too
        for row in available(data):
            if row.dimension <= MAX_DIMENSION:
                yield from _on_hypercube(data, row.id, cache, n_rows)
        for row in available(data):
            yield from _on_table(data, row.id, model, n_rows)


def _on_hypercube(data: Path, dataset_id: int, cache: Path, n_rows: int) -> Iterator[dict[str, Any]]:
    benchmark = load_benchmark(data, dataset_id, cache=cache)
    explainer = Explainer(benchmark.predict, Hypercube(), output_range=(-1.0, 1.0), task="number")
    instances = [x.tolist() for x in benchmark.instances[:n_rows]]
    for keep_noise in (False, True):
        explain = functools.partial(_explained, explainer, keep_noise=keep_noise)
        yield from _compared(benchmark.name, "hypercube", explain, instances, ("and", "parity"))


def _on_table(data: Path, dataset_id: int, model: str, n_rows: int) -> Iterator[dict[str, Any]]:
    name, frame, fitted = fitted_model(data, dataset_id, model)
    chosen = np.random.default_rng(SEED).choice(len(frame), size=min(n_rows, len(frame)), replace=False)
    explainer = Explainer(fitted, Table(frame, literals="bounds"))
    yield from _compared(name, "table", functools.partial(_explained, explainer), chosen.tolist(), ("and",))


def _explained(explainer: Explainer, instance: Any, **keywords: Any) -> tuple[Explanation, float]:
    """Return an explanation measured on fresh neighbors, and the seconds that it took."""
    start = time.perf_counter()
    settings = {"k": K, "n_certify": 2 * N_FRESH, "time_limit": TIME_LIMIT, "sampling": "draw", "seed": SEED}
    found = explainer.explain(instance, **settings, **keywords)  # type: ignore[arg-type]
    return found, time.perf_counter() - start


def _compared(
    name: str, space: str, explain: Explain, instances: Sequence[Any], kinds: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield one row per kind of pairs; without pairs the same rows are explained once."""
    without = [explain(instance) for instance in instances]
    for kind in kinds:
        rows = [explain(instance, pairs=kind) for instance in instances]
        found = [one for one, _ in rows]
        others = [one for one, _ in without]
        open_ = [one.certificate for one in found if one.certificate.status is not Status.OPTIMAL]
        yield {
            "task": name,
            "space": space,
            "literals": len(others[0].literals),
            "pairs": kind,
            "candidates": "all" if found[0].parameters["keep_noise"] else "with a clear effect",
            "candidate_pairs": _median_candidates(found),
            "rows_with_a_pair": f"{sum(bool(one.pairs) for one in found)} of {len(found)}",
            **_errors(found, others, "fidelity"),
            **_errors(found, others, "relevance"),
            "largest_excess_on_the_sample": max(
                one.certificate.objective - other.certificate.objective
                for one, other in zip(found, others, strict=True)
            ),
            "proven": f"{len(found) - len(open_)} of {len(found)}",
            "largest_gap_of_the_rest": max((one.optimality_gap / one.objective for one in open_), default=None),
            "median_seconds": statistics.median(seconds for _, seconds in rows),
            "median_seconds_without": statistics.median(seconds for _, seconds in without),
        }


def _median_candidates(found: Sequence[Explanation]) -> int:
    searched = [one.certificate.pairs_searched for one in found]
    return int(statistics.median(counts[0] for counts in searched if counts is not None))


def _errors(found: Sequence[Explanation], others: Sequence[Explanation], kind: str) -> dict[str, float]:
    """Return both mean errors on fresh neighbors, and Student's paired 95% interval of their difference."""
    own, reference = (
        np.array([getattr(one.certificate, f"{kind}_error").value for one in each]) for each in (found, others)
    )
    differences = own - reference
    half = float(student.ppf(0.975, len(own) - 1) * differences.std(ddof=1) / math.sqrt(len(own)))
    base = float(reference.mean())
    return {
        f"{kind}_without": base,
        f"{kind}_with": float(own.mean()),
        f"{kind}_lower_by_percent": 100 * float((reference - own).mean()) / base if base > 0 else 0.0,
        f"{kind}_paired_low": float(differences.mean()) - half,
        f"{kind}_paired_high": float(differences.mean()) + half,
    }
