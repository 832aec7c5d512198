"""What the law of neighbors changes for the reader, and what it costs."""

import statistics
import time
import warnings
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from anchorline.spaces.options import NEIGHBORS
from anchorline.spaces.table import Table
from benchmarks.datasets import available
from benchmarks.models import fitted_model
from benchmarks.realism import made_up
from benchmarks.tasks import SEED, Stopwatch

K = 5
N_ROWS = 10
TIME_LIMIT = 2.0  # seconds for a proof; the best sum found by then counts
N_FRESH = 4000
DIMENSIONS = (14, 50)
N_TRAINING = 20_000
N_TIMED = 9  # turns of every law; the median counts
MANY = 1_000_000


def laws(data: Path, tables: Collection[str] = (), n_rows: int = N_ROWS) -> Iterator[dict[str, Any]]:
    """Yield one row per table and law: explanations found under one law, measured under all of them."""
    for row in available(data, tables):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield from _crossed(*fitted_model(data, row.id, "boosting"), n_rows)


def _crossed(name: str, frame: Any, model: Any, n_rows: int) -> Iterator[dict[str, Any]]:
    explainers = {
        law: Explainer(model, Table(frame, neighbors=law, groups="auto"), **_options(model)) for law in NEIGHBORS
    }
    rows = np.random.default_rng(SEED).choice(len(frame), size=min(n_rows, len(frame)), replace=False).tolist()
    found = {
        law: [each.explain(i, k=K, sampling="draw", n_certify=0, time_limit=TIME_LIMIT) for i in rows]
        for law, each in explainers.items()
    }
    for law, explanations in found.items():
        result: dict[str, Any] = {"table": name, "found_under": law}
        for other, explainer in explainers.items():
            pairs = zip(rows, explanations, strict=True)
            measured = [explainer.assess(i, e.contributions, n_fresh=N_FRESH) for i, e in pairs]
            result[f"relevance_{other}"] = statistics.mean(each.relevance_error.value for each in measured)
            stable = [each.stability.value for each in measured if each.stability is not None]
            result[f"stability_{other}"] = statistics.mean(stable) if stable else None
        pairs = zip(explanations, found["independent"], strict=True)
        result["same_facts"] = sum(set(a.support) == set(b.support) for a, b in pairs) / len(rows)
        pairs = zip(explanations, found["independent"], strict=True)
        result["same_first_fact"] = sum(_first(a) == _first(b) for a, b in pairs) / len(rows)
        yield result


def _first(explanation: Any) -> int | None:
    return explanation.terms[0].index if explanation.terms else None


def _options(model: Any) -> dict[str, Any]:
    return {} if hasattr(model, "predict_proba") else {"task": "number"}


def law_cost(dimensions: Sequence[int] = DIMENSIONS) -> Iterator[dict[str, Any]]:
    """Yield the time outside the model by law, and the time to make 1,000 neighbors from a million rows."""
    for d in dimensions:
        yield _cost(d)


def _cost(d: int) -> dict[str, Any]:
    frame = mixed_frame(N_TRAINING, d)
    watches = {law: Stopwatch(_score, time.process_time) for law in NEIGHBORS}
    explainers = {
        law: Explainer(watches[law], Table(frame, neighbors=law), output_range=(-1, 1)) for law in NEIGHBORS
    }
    for each in explainers.values():
        each.explain(0, k=K)
    seconds: dict[str, list[float]] = {law: [] for law in NEIGHBORS}
    for turn in range(N_TIMED):
        for law, each in explainers.items():
            watches[law].seconds, start = 0.0, time.process_time()
            each.explain(1 + turn, k=K)
            seconds[law].append(time.process_time() - start - watches[law].seconds)
    ratios = {
        law: statistics.median(a / b for a, b in zip(seconds[law], seconds["independent"], strict=True))
        for law in NEIGHBORS[1:]
    }
    many = mixed_frame(MANY, d) if d <= DIMENSIONS[0] else None
    result: dict[str, Any] = {"attributes": d, "training_rows": N_TRAINING}
    result["independent_milliseconds"] = 1000 * statistics.median(seconds["independent"])
    result |= {f"{law}_ratio": ratio for law, ratio in ratios.items()}
    for law in NEIGHBORS[1:]:
        result[f"{law}_ms_per_1000_of_million"] = None if many is None else _batch_time(many, law)
    return result


def _batch_time(frame: Any, law: str) -> float:
    """Return the milliseconds of one processor for 1,000 of 5,000 neighbors of a row, of which there are five."""
    table = Table(frame, neighbors=law)
    made_up(table, frame.iloc[0], 10, 0)  # builds the index
    times = []
    for i in range(1, 6):
        start = time.process_time()
        made_up(table, frame.iloc[i], 5000, i)
        times.append((time.process_time() - start) / 5)
    return 1000 * statistics.median(times)


def mixed_frame(n: int, d: int) -> Any:
    """Return numbers and categories, every column dependent on three hidden numbers; a third are categories."""
    import pandas as pd

    rng = np.random.default_rng(SEED)
    hidden = rng.normal(size=(n, 3))
    columns: dict[str, Any] = {}
    for j in range(d):
        values = hidden @ rng.normal(size=3) + 0.5 * rng.normal(size=n)
        if j % 3 == 2:
            cuts = np.quantile(values, [0.3, 0.55, 0.8])
            columns[f"c{j}"] = pd.Categorical.from_codes(np.digitize(values, cuts), ["a", "b", "c", "d"])
        else:
            columns[f"x{j}"] = values
    return pd.DataFrame(columns)


def _score(rows: Any) -> np.ndarray:
    return np.asarray(np.tanh(rows["x0"].to_numpy() - 0.5 * rows["x1"].to_numpy() + 0.2 * rows["x3"].to_numpy()))
