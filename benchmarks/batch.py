"""Many rows: rows a second, two processes against one, time beside the model, and memory that does not grow."""

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

from anchorline.batch.local import Events, Plan, stream
from anchorline.batch.partition import Work, rows_of
from anchorline.batch.run import RunChoices, run_batch
from anchorline.explainer import Explainer

DIMENSIONS = (20, 50, 200)
SIZES = (1_000, 10_000, 100_000)
_TRAIN_ROWS = 2_000
_SECONDS = 20.0  # of work for one process, so that starting a second does not count
_TURNS = 3
_TIMED_ROWS = 100  # to tell the model's share: as many as outlast a machine's mood


def speed() -> Iterator[dict[str, Any]]:
    """Rows a second of a gradient-boosting model on a pandas frame, default settings, one thread everywhere."""
    for d in DIMENSIONS:
        frame, model = _boosted(d)
        bare, total = _share_of_model(frame, model)
        n_rows = max(20, int(_SECONDS / total))
        alone, both, apart = _rates(frame.iloc[:n_rows], model, frame)
        yield {
            "d": d,
            "rows": n_rows,
            "queries_a_row": 10_001,
            "rows_a_second": alone,
            "with_2_processes": both,
            "speedup": both / alone,
            "speedup_of_two_apart": apart / alone,
            "seconds_a_row": total,
            "in_the_model": bare,
            "total_over_model": total / bare,
        }


def memory() -> Iterator[dict[str, Any]]:
    """Peak resident memory of a whole batch, file to file, by a quick model: this process, and its workers."""
    for n_rows in SIZES:
        words = [sys.executable, "-m", "benchmarks.batch", str(n_rows)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        yield json.loads(done.stdout.splitlines()[-1])


def _boosted(d: int) -> tuple[Any, Any]:
    import pandas as pd
    from sklearn.datasets import make_regression
    from sklearn.ensemble import HistGradientBoostingRegressor

    inputs, target = make_regression(_TRAIN_ROWS, d, n_informative=min(d, 20), noise=10.0, random_state=0)
    frame = pd.DataFrame(inputs, columns=[f"x{j}" for j in range(d)])
    return frame, HistGradientBoostingRegressor(random_state=0).fit(frame, target)


def _share_of_model(frame: Any, model: Any) -> tuple[float, float]:
    """Median seconds a row inside the model, and in all; processor time, which other programs do not lengthen."""
    spent = 0.0

    def predict(inputs: Any) -> Any:
        nonlocal spent
        start = time.process_time()
        answers = model.predict(inputs)
        spent += time.process_time() - start
        return answers

    explainer = Explainer(predict, frame, task="number")
    explainer.explain(0)  # learns the range, loads what is loaded on first use
    pairs = []
    for row in range(1, _TIMED_ROWS + 1):
        spent, start = 0.0, time.process_time()
        explainer.explain(row)
        pairs.append((spent, time.process_time() - start))
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def _rates(rows: Any, model: Any, frame: Any) -> list[float]:
    """Rows a second of one process, of two, and of two batches of one at once; by turns, for the machine's moods.

    The last shares nothing but the machine: no batch of two processes can be expected to do better.
    """
    turns = []
    for _ in range(_TURNS):
        one, two = (_rate(rows, model, frame, n_jobs) for n_jobs in (1, 2))
        with ThreadPoolExecutor(2) as threads:
            apart = sum(threads.map(lambda _: _rate(rows, model, frame, 1), range(2)))
        turns.append((one, two, apart))
    return [statistics.median(turn) for turn in zip(*turns, strict=True)]


def _rate(rows: Any, model: Any, frame: Any, n_jobs: int) -> float:
    """Rows a second of so many worker processes, from the first row that comes to the last."""
    explainer = Explainer(model, frame)
    work, plan = Work.from_keywords(explainer), Plan(n_jobs=n_jobs, isolate=True)
    with contextlib.closing(stream(rows_of(rows, explainer), work, plan, Events())) as found:
        next(found)
        start = time.perf_counter()
        n_rows = sum(1 for _ in found)
    return n_rows / (time.perf_counter() - start)


def _cheap(inputs: np.ndarray) -> np.ndarray:
    """A model that takes no time."""
    return np.asarray(np.tanh(inputs @ np.array([0.4, -0.3, 0.2, 0.1])))


def _measure_memory(n_rows: int) -> dict[str, Any]:
    import resource

    rng = np.random.default_rng(0)
    explainer = Explainer(_cheap, rng.normal(size=(500, 4)), output_range=(-1, 1))
    work = Work.from_keywords(explainer, k=3, n_samples=32, n_certify=0)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "why.parquet"
        report = run_batch(rows_of(rng.normal(size=(n_rows, 4)), explainer), work, out, {}, RunChoices(n_jobs=2))
        size = out.stat().st_size
    assert report.n_failed == 0
    peak = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return {
        "rows": n_rows,
        "peak_MB": int(peak[0].split()[1]) / 1024,  # ru_maxrss may be that of who started this process
        "largest_worker_MB": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
        "file_MB": size / 2**20,
        "rows_a_second": n_rows / (time.perf_counter() - start),
    }


if __name__ == "__main__":
    print(json.dumps(_measure_memory(int(sys.argv[1]))))
