"""Speed, row by row: where anchorline was slow, what was to be reached, what is reached, and what a peer takes.

Every section measures one row of the table in docs/speed.md. All times are processor time, unless processes share
the work, and what is compared takes turns in one run.
"""

import functools
import json
import pickle
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from anchorline.optimize import Status
from anchorline.spaces.hypercube import Hypercube
from anchorline.spaces.table import Table
from benchmarks import peers
from benchmarks.engine import import_time
from benchmarks.needs import require
from benchmarks.tasks import SEED, Stopwatch, load_benchmark, load_tanh

Row = dict[str, Any]


def _row(
    where: str, figure: str, before: Any, goal: Any, reached: Any, seconds: tuple[float, float] | None = None
) -> Row:
    """One row of the table; ``figure`` says what the numbers are. ``seconds`` are ours and the peer's, if any."""
    ours, peer = (None, None) if seconds is None else seconds
    return {
        "where": where,
        "figure": figure,
        "before": before,
        "to_reach": goal,
        "reached": reached,
        "our_seconds": ours,
        "seconds_beside": peer,
    }


def processor_seconds(call: Callable[[], Any]) -> float:
    """Return the processor time of one call in this process, in seconds."""
    start = time.process_time()
    call()
    return time.process_time() - start


def against_kernel_shap(dimensions: Iterable[int] = (17, 69, 190, 644, 1652), n: int = 5) -> Iterator[Row]:
    """Yield the time outside the model as a share of KernelSHAP's, at equal queries, on networks of d inputs."""
    for d in dimensions:
        benchmark, overheads = load_tanh(dimension=d), []
        for instance in benchmark.instances[: n + 1]:
            columns = peers._columns(benchmark, instance, SEED)
            theirs = Stopwatch(benchmark.predict, time.process_time)
            total = processor_seconds(functools.partial(peers._shap(instance, columns, 5000, SEED), theirs))
            ours = Stopwatch(benchmark.predict, time.process_time)
            own = processor_seconds(functools.partial(peers._ours(instance, theirs.n_rows, SEED), ours))
            overheads.append((own - ours.seconds, total - theirs.seconds))
        reached, peer = (statistics.median(times) for times in zip(*overheads[1:], strict=True))
        before = 2.4 if d == 1652 else None
        yield _row(f"d = {d}", "overhead over KernelSHAP's", before, 1.0, reached / peer, (reached, peer))


def relevance_queries(n_rows: int = 5) -> Iterator[Row]:
    """Yield the time of direct relevance and of the shortest explanation over that of the queries they ask."""
    frame, model = credit_pipeline()
    watch = Stopwatch(model.predict_proba, time.process_time)
    explainer = Explainer(watch, Table(frame), classes=model.classes_)
    explainer.explain(0, n_samples=100)
    calls = {
        'objective="relevance"': functools.partial(explainer.explain, objective="relevance", sampling="draw"),
        "shortest": functools.partial(explainer.shortest, max_relevance_error=0.05, sampling="draw"),
    }
    for name, call in calls.items():
        totals, inside = [], []
        for row in range(1, n_rows + 1):
            watch.seconds = 0.0
            totals.append(processor_seconds(functools.partial(call, row)))
            inside.append(watch.seconds)
        seconds, queries = statistics.median(totals), statistics.median(inside)
        yield _row(
            f"{name}, d = 20, one-hot pipeline",
            "time over that of its queries",
            None,
            2.0,
            seconds / queries,
            (seconds, queries),
        )


def direct_proofs(data: Path, cache: Path, n: int = 5, time_limit: float = 20.0) -> Iterator[Row]:
    """Yield how many searches for relevance are complete on the paper's tasks, and the largest gap of the others.

    After a complete search, the best rule on its sample is proven. A second sample may still choose another one.
    Above 40 literals, the limit of nodes is replaced by a limit of time per number of facts.
    """
    for id, d in ((29, 17), (43672, 37), (44962, 40), (42352, 69), (46132, 188)):
        benchmark = load_benchmark(data, id, cache=cache)
        explainer, gaps = Explainer(benchmark.predict, Hypercube()), []
        longer: dict[str, Any] = {"node_limit": None, "time_limit": time_limit} if d > 40 else {}
        explain = functools.partial(explainer.explain, objective="relevance", sampling="draw", n_certify=0)
        for instance in benchmark.instances[:n]:
            found = explain(instance, **longer).certificate
            is_complete = found.status in (Status.OPTIMAL, Status.CHOSEN)
            gaps.append(0.0 if is_complete else found.optimality_gap / found.objective)
        goal, where = n if d <= 40 else -(-n // 2), f"{benchmark.name}, d = {benchmark.dimension}"
        yield _row(where, f"complete searches of {n}", None, goal, gaps.count(0.0))
        if d > 40:
            figure = "largest gap, relative to the objective"
            yield _row(where, figure, None, 0.1, max(gaps))


def large_k(n: int = 2, time_limit: float = 20.0) -> Iterator[Row]:
    """Yield how many sums of 8 terms are proven on a network of 1652 inputs, and the slowest proof."""
    for sigma, m in (
        (1.0, 5000),
        (0.0, 1000),
        (0.0, 20_000),
        (2.0, 1000),
        (2.0, 20_000),
        (3.0, 1000),
        (3.0, 20_000),
    ):
        benchmark, seconds, proven = load_tanh(), [], 0
        explainer = Explainer(benchmark.predict, Hypercube())
        settings: dict[str, Any] = {"k": 8, "sigma": sigma, "n_samples": m, "sampling": "draw", "n_certify": 0}
        for instance in benchmark.instances[:n]:
            call = functools.partial(
                explainer.explain, instance, time_limit=time_limit, keep_noise=True, **settings
            )
            start = time.process_time()
            proven += call(node_limit=None).certificate.status is Status.OPTIMAL
            seconds.append(time.process_time() - start)
        yield _row(
            f"k = 8, d = 1652, sigma = {sigma:g}, m = {m}",
            f"proven of {n} in {time_limit:g} s",
            None,
            n,
            proven,
            (max(seconds), time_limit),
        )


_WIDE = """
import json, time
from anchorline.explainer import Explainer
from anchorline.spaces.hypercube import Hypercube
from benchmarks.tasks import Stopwatch, load_tanh
task = load_tanh(dimension=10_000)
rows, proven, outside = {n}, 0, []
def peak():
    lines = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(lines[0].split()[1]) / 1024
task.predict(task.instances)
before = peak()
for x in task.instances[:rows]:
    watch = Stopwatch(task.predict, time.process_time)
    start = time.process_time()
    e = Explainer(watch, Hypercube()).explain(x, k=5, sampling="draw", n_certify=0)
    outside.append(time.process_time() - start - watch.seconds)
    proven += e.certificate.status.name == "OPTIMAL"
print(json.dumps([sorted(outside)[rows // 2], peak(), before, proven]))
"""


def wide(n: int = 10) -> Iterator[Row]:
    """Yield the time outside the model, the peak memory and the proofs at d = 10,000, in a process of its own."""
    seconds, peak, before, proven = json.loads(_in_new_process(_WIDE.format(n=n)))
    where = "d = 10,000, tanh network, k = 5"
    yield _row(where, "seconds outside the model", 78.0, 5.0, seconds)
    yield _row(where, "peak memory in MB", 3300, 500, peak)
    yield _row(where, "of which before the first row", None, None, before)
    yield _row(where, f"proven of {n}", n, n, proven)


def against_predict(n_rows: int = 7) -> Iterator[Row]:
    """Yield the time of an explanation over that of one call with as many rows, and over that in the model."""
    for name in ("boosting", "forest", "logistic regression"):
        frame, model = credit_pipeline(name)
        watch = Stopwatch(model.predict_proba, time.process_time)
        explainer = Explainer(watch, Table(frame), classes=model.classes_)
        many = frame.sample(10_001, replace=True, random_state=SEED).reset_index(drop=True)
        explainer.explain(0, sampling="draw")
        times = []
        for row in range(1, n_rows + 1):
            bare = processor_seconds(functools.partial(model.predict_proba, many))
            watch.seconds = 0.0
            call = functools.partial(explainer.explain, row, sampling="draw")
            times.append((processor_seconds(call), bare, watch.seconds))
        total, bare, inside = (statistics.median(each) for each in zip(*times, strict=True))
        where = f"{name}, 20 columns, one-hot"
        yield _row(where, "explain over one predict of 10,001 rows", 3.1, 1.5, total / bare, (total, bare))
        yield _row(where, "explain over the time inside the model", None, None, total / inside, (total, inside))


def small_tasks(n_rows: int) -> Iterator[tuple[str, Callable[[np.ndarray], np.ndarray], Any, Any]]:
    """Yield where trivial models are explained, the model, its space, and the rows to explain."""
    rng = np.random.default_rng(SEED)
    signs, table = rng.choice([-1.0, 1.0], (n_rows, 10)), rng.normal(size=(500, 4))
    slopes = np.array([0.4, -0.3, 0.2, 0.1])
    yield "hypercube, d = 10", lambda z: np.tanh(z[:, :4] @ slopes), Hypercube(), signs
    yield "table of 4 numbers", lambda z: np.tanh(z @ slopes), Table(table), range(n_rows)


def fixed_cost(n_rows: int = 200) -> Iterator[Row]:
    """Yield the processor milliseconds of a row with a trivial model and 32 samples, without a certificate."""
    for where, model, space, rows in small_tasks(n_rows):
        explainer = Explainer(model, space, output_range=(-1, 1))
        call = functools.partial(explainer.explain, k=3, n_samples=32, n_certify=0)
        times = [processor_seconds(functools.partial(call, row)) for row in rows]
        yield _row(where, "milliseconds per row", 8.5, 1.5, 1000 * statistics.median(times))


def first_use(n: int = 5) -> Iterator[Row]:
    """Yield the time of the import, and that of the first explanation on the command line, in new processes."""
    measured = import_time()
    yield _row("import anchorline", "over import numpy", 3.2, 1.5, measured["ratio"])
    frame, model = credit_pipeline()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "model.pkl").write_bytes(pickle.dumps(model))
        frame.to_csv(place / "rows.csv", index=False)
        explain = [
            "-m",
            "anchorline",
            "explain",
            "model.pkl",
            "--data",
            "rows.csv",
            "--row",
            "0",
            "--trust-pickle",
        ]
        load = "import pickle, pandas; pickle.load(open('model.pkl', 'rb')); pandas.read_csv('rows.csv')"
        pairs = [(_child_seconds(explain, place), _child_seconds(["-c", load], place)) for _ in range(n)]
    ours, loading = (statistics.median(times) for times in zip(*pairs, strict=True))
    yield _row(
        "anchorline explain, new process", "seconds beyond loading", None, 1.5, ours - loading, (ours, loading)
    )


def million_rows(n_rows: int = 10**6) -> Any:
    """Return a frame of a million rows: 8 numbers and 6 categories."""
    import pandas as pd

    rng = np.random.default_rng(SEED)
    frame = pd.DataFrame({f"x{j}": rng.normal(size=n_rows) for j in range(8)})
    for j in range(6):
        frame[f"c{j}"] = rng.choice(list("abcdefgh"), n_rows)
    return frame


def large_table() -> Iterator[Row]:
    """Yield the time to build a table of a million rows."""
    frame = million_rows()
    seconds = processor_seconds(lambda: Table(frame))
    yield _row("table of 10^6 rows, 14 columns", "seconds to build", 11.0, 3.0, seconds)


def two_processes(n_rows: int = 200, n: int = 3) -> Iterator[Row]:
    """Yield the speed of two processes over one, on few rows of a quick model; wall-clock time, with the start."""
    frame, model = credit_pipeline("logistic regression")
    rounds = []
    for _ in range(n):
        explainer = Explainer(model, Table(frame))
        call = functools.partial(explainer.explain_many, frame[:n_rows])
        rounds.append([_seconds(functools.partial(call, n_jobs=n_jobs)) for n_jobs in (1, 2)])
    one, two = (statistics.median(times) for times in zip(*rounds, strict=True))
    yield _row(f"{n_rows} rows of a quick model", "times as fast with n_jobs=2", 1.0, 1.7, one / two, (two, one))


def on_clusters(n_rows: int = 2000) -> Iterator[Row]:
    """Yield the seconds of Dask, Ray and Spark for rows in one piece, beside Dask with eight partitions."""
    for name in ("dask_split", "dask", "ray", "spark"):
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.clusters", name, str(n_rows)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds = float(done.stdout.splitlines()[-1])
        if name == "dask_split":
            beside = seconds
            continue
        before = {"ray": 214 / 116}.get(name)
        figure = "time over that of Dask with 8 partitions"
        yield _row(
            f"{name}, {n_rows:,} rows in one piece", figure, before, 1.0, seconds / beside, (seconds, beside)
        )


def credit_pipeline(name: str = "boosting", n_rows: int = 1000) -> tuple[Any, Any]:
    """Return a generated credit table of 7 numbers and 13 categories, and a pipeline that encodes one-hot."""
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    rng = np.random.default_rng(SEED)
    numbers = {f"x{j}": rng.normal(size=n_rows).round(2) for j in range(7)}
    categories = {f"c{j}": rng.choice(list("abcde"), n_rows) for j in range(13)}
    frame = pd.DataFrame(numbers | categories)
    score = frame["x0"] - frame["x1"] * (frame["c0"] == "a") + 1.5 * (frame["c1"] == "b") - (frame["c2"] == "c")
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), list(categories)),
        (StandardScaler(), list(numbers)),
    )
    model = {
        "boosting": HistGradientBoostingClassifier(random_state=SEED),
        "forest": RandomForestClassifier(100, random_state=SEED),
        "logistic regression": LogisticRegression(max_iter=500),
    }[name]
    target = np.where(score + rng.normal(size=n_rows) / 2 > 0, "good", "bad")
    return frame, make_pipeline(encode, model).fit(frame, target)


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _in_new_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def _child_seconds(arguments: list[str], folder: Path) -> float:
    """Return the processor seconds of Python with these arguments, as a child process in a folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def quick() -> None:
    """Print the main ratios, on generated data and with few rows."""
    require({"pandas": "bench", "shap": "peers"})
    parts = (
        functools.partial(against_kernel_shap, (17, 190, 1652), 2),
        functools.partial(relevance_queries, 2),
        functools.partial(against_predict, 3),
        functools.partial(fixed_cost, 50),
        functools.partial(first_use, 2),
        functools.partial(two_processes, 200, 1),
    )
    for part in parts:
        for row in part():
            reached, goal = (
                f"{row['reached']:.3g}",
                "" if row["to_reach"] is None else f"  (to reach {row['to_reach']:g})",
            )
            print(f"{row['where']:<40} {row['figure']:<42} {reached:>8}{goal}", flush=True)


def sections(data: Path, cache: Path) -> dict[str, Callable[[], Iterator[Row]]]:
    """Return, by name, a function per section of the table."""
    return {
        "speed_shap": against_kernel_shap,
        "speed_relevance": relevance_queries,
        "speed_direct": lambda: direct_proofs(data, cache),
        "speed_large_k": large_k,
        "speed_wide": wide,
        "speed_predict": against_predict,
        "speed_fixed": fixed_cost,
        "speed_start": first_use,
        "speed_table": large_table,
        "speed_clusters": on_clusters,
        "speed_processes": two_processes,
    }
