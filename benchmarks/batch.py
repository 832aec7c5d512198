"""Many rows: the rate of one and two processes, the time outside the model, and the memory of a batch."""

import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.batch.local import ExecutionPlan, RunEvents, stream
from anchorline.batch.partition import Work, rows_of
from anchorline.batch.run import RunOptions, run_batch
from anchorline.explainer import Explainer
from anchorline.spaces.table import Table
from benchmarks.tasks import Stopwatch

DIMENSIONS = (20, 50, 200)
SIZES = (1_000, 10_000, 100_000)
_TRAIN_ROWS = 2_000
_SECONDS = 20.0  # work of one process, long enough that starting a second process does not count
_N_ROUNDS = 3
_TIMED_ROWS = 100  # enough to average out changes in the speed of the machine


def speed() -> Iterator[dict[str, Any]]:
    """Yield the rows per second of gradient boosting on a pandas frame, with one thread per process."""
    for d in DIMENSIONS:
        frame, model = boosted(d)
        in_model, total = _seconds_per_row(frame, model)
        n_rows = max(20, int(_SECONDS / total))
        one, two, separate = _rates(frame.iloc[:n_rows], model, frame)
        yield {
            "d": d,
            "rows": n_rows,
            "rows_a_second": one,
            "with_2_processes": two,
            "speedup": two / one,
            "speedup_of_two_apart": separate / one,
            "seconds_a_row": total,
            "in_the_model": in_model,
            "total_over_model": total / in_model,
        }


def memory() -> Iterator[dict[str, Any]]:
    """Yield the peak resident memory of a whole batch with a fast model, for the main process and its workers."""
    for n_rows in SIZES:
        command = [sys.executable, "-m", "benchmarks.batch", str(n_rows)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        yield json.loads(done.stdout.splitlines()[-1])


def boosted(d: int) -> tuple[Any, Any]:
    """Return a generated frame of d numbers, and gradient boosting that was fitted to it."""
    import pandas as pd
    from sklearn.datasets import make_regression
    from sklearn.ensemble import HistGradientBoostingRegressor

    inputs, target = make_regression(_TRAIN_ROWS, d, n_informative=min(d, 20), noise=10.0, random_state=0)
    frame = pd.DataFrame(inputs, columns=[f"x{j}" for j in range(d)])
    return frame, HistGradientBoostingRegressor(random_state=0).fit(frame, target)


def _seconds_per_row(frame: Any, model: Any) -> tuple[float, float]:
    """Return the median seconds per row inside the model, and in total.

    The seconds are processor time, which does not depend on other programs.
    """
    watch = Stopwatch(model.predict, time.process_time)
    explainer, measured = Explainer(watch, Table(frame), task="number"), list[tuple[float, float]]()
    for row in range(_TIMED_ROWS + 1):
        watch.seconds, start = 0.0, time.process_time()
        explainer.explain(row)
        if row:  # the first row also asks about the table, and does the imports of the first use
            measured.append((watch.seconds, time.process_time() - start))
    inside, total = (statistics.median(times) for times in zip(*measured, strict=True))
    return inside, total


def _rates(rows: Any, model: Any, frame: Any) -> list[float]:
    """Return the rows per second of one process, of two processes, and of two separate batches at the same time.

    The three are measured in alternation, because the speed of the machine varies. The two separate batches share
    only the machine, so a batch of two processes cannot be expected to be faster.
    """
    rounds = []
    for _ in range(_N_ROUNDS):
        one, two = (_rate(rows, model, frame, n_jobs) for n_jobs in (1, 2))
        with ThreadPoolExecutor(2) as threads:
            separate = sum(threads.map(lambda _: _rate(rows, model, frame, 1), range(2)))
        rounds.append((one, two, separate))
    return [statistics.median(rates) for rates in zip(*rounds, strict=True)]


def _rate(rows: Any, model: Any, frame: Any, n_jobs: int) -> float:
    """Return the rows per second of ``n_jobs`` worker processes, measured from the first row to the last."""
    explainer = Explainer(model, frame).without_trees()
    work, plan = Work.from_keywords(explainer), ExecutionPlan(n_jobs=n_jobs, isolate=True)
    with contextlib.closing(stream(rows_of(rows, explainer), work, plan, RunEvents())) as records:
        next(records)
        start = time.perf_counter()
        n_rows = sum(1 for _ in records)
    return n_rows / (time.perf_counter() - start)


def _fast_model(inputs: np.ndarray) -> np.ndarray:
    """Return the answers of a model that takes almost no time."""
    return np.asarray(np.tanh(inputs @ np.array([0.4, -0.3, 0.2, 0.1])))


def _measure_memory(n_rows: int) -> dict[str, Any]:
    import resource

    rng = np.random.default_rng(0)
    explainer = Explainer(_fast_model, rng.normal(size=(500, 4)), output_range=(-1, 1))
    work = Work.from_keywords(explainer, k=3, queries=64)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "why.parquet"
        report = run_batch(rows_of(rng.normal(size=(n_rows, 4)), explainer), work, out, {}, RunOptions(n_jobs=2))
        size = out.stat().st_size
    assert report.n_failed == 0
    peak = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return {
        "rows": n_rows,
        "peak_MB": int(peak[0].split()[1]) / 1024,  # ru_maxrss may be that of the parent process
        "largest_worker_MB": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
        "file_MB": size / 2**20,
        "rows_a_second": n_rows / (time.perf_counter() - start),
    }


if __name__ == "__main__":
    print(json.dumps(_measure_memory(int(sys.argv[1]))))
