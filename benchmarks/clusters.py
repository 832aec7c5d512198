"""``python -m benchmarks.clusters ENGINE ROWS``: prints the seconds that an engine takes for rows in one piece."""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from anchorline.explainer import Explainer
from anchorline.spaces.table import Table
from benchmarks.speed import credit_pipeline

_SETTINGS: dict[str, Any] = {"k": 4, "queries": 601}
_N_CORES = 2


@contextmanager
def _dask(n_partitions: int = 1) -> Iterator[Callable[..., Any]]:
    import dask.dataframe
    import distributed

    from anchorline.batch.dask import explain

    library, dd = cast("Any", distributed), cast("Any", dask.dataframe)  # their functions have no types
    with (
        library.LocalCluster(n_workers=_N_CORES, threads_per_worker=1, dashboard_address=":0") as cluster,
        library.Client(cluster),
    ):
        yield lambda rows, explainer: explain(
            dd.from_pandas(rows, npartitions=n_partitions), explainer, **_SETTINGS
        ).compute()


@contextmanager
def _ray() -> Iterator[Callable[..., Any]]:
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DATA_DISABLE_PROGRESS_BARS": "1"}
    import ray

    from anchorline.batch.ray import explain

    ray.init(num_cpus=_N_CORES, include_dashboard=False, log_to_driver=False, object_store_memory=2**30)
    try:
        yield lambda rows, explainer: explain(ray.data.from_pandas(rows), explainer, **_SETTINGS).to_pandas()
    finally:
        ray.shutdown()


@contextmanager
def _spark() -> Iterator[Callable[..., Any]]:
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    from pyspark.sql import SparkSession

    from anchorline.batch.spark import explain

    with tempfile.TemporaryDirectory() as folder:
        options = {
            "spark.master": f"local[{_N_CORES}]",
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "512m",
            "spark.log.level": "OFF",
            "spark.local.dir": folder,
            "spark.sql.warehouse.dir": folder,
        }
        builder = SparkSession.builder
        for name, value in options.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            yield lambda rows, explainer: explain(
                session.createDataFrame(rows).coalesce(1), explainer, **_SETTINGS
            ).toPandas()
        finally:
            session.stop()


_ENGINES = {"dask_split": lambda: _dask(8), "dask": _dask, "ray": _ray, "spark": _spark}


def main(engine: str, n_rows: int) -> None:
    """Print the wall-clock seconds of one engine, after a first run of few rows that starts its workers."""
    frame, model = credit_pipeline("logistic regression", n_rows)
    explainer = Explainer(model, Table(frame[:1000]))
    with _ENGINES[engine]() as run:
        run(frame[:64], explainer)
        start = time.perf_counter()
        result = run(frame, explainer)
        seconds = time.perf_counter() - start
    if len(result) != n_rows or result["error_type"].notna().any():
        raise AssertionError(f"{engine} did not explain all rows.")
    print(seconds)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
