"""What grows with rows, columns and facts, and what a million explanations cost.

The growth is measured on generated tables and a model that is cheap to ask, so that the library's own work shows.
The cost is measured on gradient boosting, by the local processes, Dask and Spark, which explain the same rows.
"""

import importlib
import os
import statistics
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from anchorline.result.explanation import Explanation
from anchorline.spaces.table import Table
from benchmarks.needs import require
from benchmarks.tasks import SEED

N_EXPLAINED = 9  # rows per point of a curve; the first is not timed
CURVES = {
    "rows": (1_000, 10_000, 100_000, 1_000_000),
    "columns": (10, 30, 100, 300, 1_000, 3_000),
    "facts": (1, 2, 4, 8, 16),
}
ROWS, COLUMNS, FACTS = 10_000, 30, 4  # what does not vary
N_ENGINES, N_ALONE = 10_000, 1_000  # rows that every engine explains, and one process

Row = dict[str, Any]


def growth() -> Iterator[Row]:
    """Yield the points of the curves."""
    for along, sizes in CURVES.items():
        for size in sizes:
            yield point(along, size)


def point(along: str, size: int) -> Row:
    """Return medians of default explanations: processor seconds, the model's part of them, and memory."""
    at = {"rows": ROWS, "columns": COLUMNS, "facts": FACTS} | {along: size}
    rng = np.random.default_rng(SEED)
    table = rng.normal(size=(at["rows"], at["columns"])).astype(np.float32)
    weights = np.where(np.arange(at["columns"]) < 12, rng.normal(size=at["columns"]), 0.0).astype(np.float32)
    asked = [0, 0.0]

    def score(rows: np.ndarray) -> np.ndarray:
        start = time.process_time()
        answers = 1 / (1 + np.exp(-(np.asarray(rows, dtype=np.float32) @ weights)))
        asked[0], asked[1] = asked[0] + len(rows), asked[1] + time.process_time() - start
        return np.column_stack([1 - answers, answers])

    start = time.process_time()
    explainer = Explainer(score, Table(table), classes=["no", "yes"])
    explainer.explain(0, k=at["facts"])
    first, seconds, alone, queries = time.process_time() - start, list[float](), list[float](), list[int]()
    for row in range(1, N_EXPLAINED):
        asked[:], start = [0, 0.0], time.process_time()
        explainer.explain(row, k=at["facts"])
        seconds.append(time.process_time() - start)
        queries.append(int(asked[0]))
        alone.append(asked[1])
    tracemalloc.start()
    explainer.explain(N_EXPLAINED, k=at["facts"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "along": along,
        "size": size,
        "seconds": statistics.median(seconds),
        "model_alone": statistics.median(alone),
        "queries": round(statistics.median(queries)),
        "memory_mb": peak / 1e6,
        "first_seconds": first,
    }


def boosted(n_rows: int) -> tuple[Explainer, Any]:
    """Return an explainer of gradient boosting on a generated credit table, and rows to explain."""
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng(SEED)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 15)), columns=[f"x{j}" for j in range(15)]).round(3)
    score = frame.x0 + frame.x1 * (frame.x2 > 0) - frame.x3**2 / 2 + rng.normal(size=n_rows) / 2
    model = HistGradientBoostingClassifier(random_state=SEED).fit(frame, score > 0)
    return Explainer(model, Table(frame)), frame


def engines(n: int = N_ENGINES) -> Iterator[Row]:
    """Yield per engine how fast it explains the same rows; and what a million explanations of one process cost."""
    require({"dask": "dask", "pyspark": "spark", "pandas": "bench"})
    warnings.simplefilter("ignore")
    explainer, frame = boosted(n)
    explainer.explain(0)
    start, own = time.perf_counter(), time.process_time()
    alone = explainer.explain_many(frame[:N_ALONE])
    pace, processor = len(alone) / (time.perf_counter() - start), (time.process_time() - own) / len(alone)
    queries = statistics.fmean(each.queries.total for each in alone if isinstance(each, Explanation))
    cores, expected = os.cpu_count() or 1, _texts(alone.records)
    million = {"queries_a_million": round(1e6 * queries), "core_hours_a_million": 1e6 * processor / 3600}
    yield {"engine": "one process", "rows": len(alone), "times_as_fast": 1.0, "same_bytes": True, **million}
    runs: dict[str, Callable[[], list[str]]] = {
        f"{cores} processes": lambda: _texts(explainer.explain_many(frame, n_jobs=cores).records),
        f"Dask, {cores} processes": lambda: _by_dask(explainer, frame, cores),
        f"Spark, {cores} cores": lambda: _by_spark(explainer, frame, cores),
    }
    for name, run in runs.items():
        start = time.perf_counter()
        texts = run()
        faster = len(texts) / (time.perf_counter() - start) / pace
        is_same = texts[: len(expected)] == expected
        yield {"engine": name, "rows": len(texts), "times_as_fast": faster, "same_bytes": is_same}


def _texts(records: Sequence[Row]) -> list[str]:
    return [str(record["explanation"]) for record in records]


def _sorted(frame: Any) -> list[str]:
    """Return the explanations in the order of the rows."""
    return [str(text) for text in frame.sort_values("id")["explanation"]]


def _by_dask(explainer: Explainer, frame: Any, cores: int) -> list[str]:
    import dask

    dataframe: Any = importlib.import_module("dask.dataframe")

    from anchorline.batch.dask import explain

    partitions = dataframe.from_pandas(frame.assign(id=range(len(frame))), npartitions=4 * cores)
    with dask.config.set(scheduler="processes", num_workers=cores):
        return _sorted(explain(partitions, explainer, id="id").compute())


def _by_spark(explainer: Explainer, frame: Any, cores: int) -> list[str]:
    from pyspark.sql import SparkSession

    from anchorline.batch.spark import explain

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with tempfile.TemporaryDirectory() as folder:
        builder = SparkSession.builder.master(f"local[{cores}]")
        for name, value in {
            "spark.ui.enabled": "false",
            "spark.log.level": "OFF",
            "spark.ui.showConsoleProgress": "false",
            "spark.local.dir": folder,
            "spark.sql.warehouse.dir": folder,
        }.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            rows = session.createDataFrame(frame.assign(id=range(len(frame)))).repartition(4 * cores)
            return _sorted(explain(rows, explainer, id="id").toPandas())
        finally:
            session.stop()
