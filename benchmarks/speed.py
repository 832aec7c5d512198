"""Speed: explanations beside those of release 0.1, KernelSHAP and TreeSHAP, in processor seconds of one run.

What is compared takes turns row by row, so that a busy machine slows all of it.
"""

import functools
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from anchorline.search.sources import Search
from anchorline.settings import Settings
from anchorline.spaces.table import Table
from benchmarks.codes import codes_of, frame_of
from benchmarks.datasets import available
from benchmarks.models import fitted_model, pipeline_of
from benchmarks.needs import require
from benchmarks.release01 import Release01, python_of_01
from benchmarks.tasks import SEED

N_ROWS = 20
N_SLOW = 3  # rows that KernelSHAP explains with its defaults
N_EQUAL = 11  # and at equal queries
N_BACKGROUND = 100
N_TREES = 100
BLACK_BOXES = ("network", "svm", "neighbors", "linear")
SLOW_TABLES = ("Credit Approval", "Heart Disease")

Row = dict[str, Any]


def speed(data: Path, n_rows: int = N_ROWS) -> Iterator[Row]:
    """Yield one row per comparison: what is to be reached, the ratio of medians, and both medians."""
    python = python_of_01()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if python is not None:
            yield from boosted(data, python, n_rows)
        for name in SLOW_TABLES:
            for row in available(data, [name]):
                for model in BLACK_BOXES:
                    table, frame, fitted = fitted_model(data, row.id, model)
                    yield from beside_kernel_shap(f"{model}, {table}", frame, fitted, min(n_rows, N_EQUAL))
        yield from trees(python, n_rows)


def _searched(explainer: Explainer, row: int) -> Search:
    return explainer.source(explainer.case(row, Settings())).search()


def _row(where: str, figure: str, goal: float | None, ours: Sequence[float], theirs: Sequence[float]) -> Row:
    """Return one row of results: the ratio of the medians of two series of times."""
    own, other = statistics.median(ours), statistics.median(theirs)
    return {
        "where": where,
        "figure": figure,
        "rows": len(ours),
        "to_reach": goal,
        "reached": own / other,
        "our_seconds": own,
        "seconds_beside": other,
    }


def processor_seconds(call: Callable[[], Any]) -> float:
    """Return the processor time of one call in this process, in seconds."""
    start = time.process_time()
    call()
    return time.process_time() - start


def boosted(data: Path, python: str, n_rows: int = N_ROWS, tables: Sequence[str] = ()) -> Iterator[Row]:
    """Yield the time of default explanations of boosted probabilities over that of release 0.1."""
    ratios = []
    for row in available(data, tables):
        if row.kind == "classification":
            name, frame, model = fitted_model(data, row.id, "boosting")
            times = _beside_01(python, model, frame, n_rows)
            ratios.append(_row(f"boosting, {name}", "explain over 0.1", 0.5, *times))
            yield ratios[-1]
    own, other = ([row[key] for row in ratios] for key in ("our_seconds", "seconds_beside"))
    whole = _row("boosting, all tables", "explain over 0.1, median of tables", 0.5, own, other)
    yield whole | {"reached": statistics.median(row["reached"] for row in ratios)}


def _beside_01(python: str, model: Any, frame: Any, n_rows: int) -> tuple[list[float], list[float]]:
    explainer, ours, theirs = Explainer(model, Table(frame)), list[float](), list[float]()
    rows = np.random.default_rng(SEED).choice(len(frame), size=min(n_rows + 1, len(frame)), replace=False).tolist()
    with Release01(python, model, frame) as old:
        for row in rows:
            ours.append(processor_seconds(functools.partial(explainer.explain, row)))
            theirs.append(old.explain(row).seconds)
    return ours[1:], theirs[1:]


def beside_kernel_shap(where: str, frame: Any, model: Any, n_rows: int = N_EQUAL) -> Iterator[Row]:
    """Yield the time of explanations over that of KernelSHAP, with its defaults and at equal queries.

    Both ask the same pipeline, which takes frames. KernelSHAP works on arrays of codes, and converts them.
    """
    import shap

    def predict(rows: np.ndarray) -> np.ndarray:
        return np.asarray(model.predict_proba(frame_of(rows, frame)))

    codes, rng = codes_of(frame), np.random.default_rng(SEED)
    chosen = rng.choice(len(frame), size=n_rows + 1 + N_BACKGROUND, replace=False)
    kernel = shap.KernelExplainer(predict, codes[chosen[-N_BACKGROUND:]])
    explainer = Explainer(model, Table(frame))
    ours, default, equal = list[float](), list[float](), list[float]()
    for row in chosen[: n_rows + 1].tolist():
        start = time.process_time()
        n_queries = explainer.explain(row).queries.total
        ours.append(time.process_time() - start)
        values = functools.partial(kernel.shap_values, codes[row], silent=True)
        equal.append(processor_seconds(functools.partial(values, nsamples=max(n_queries // N_BACKGROUND, 2))))
        if 1 < len(ours) <= N_SLOW + 1:  # the first explanation is not timed
            default.append(processor_seconds(values))
    yield _row(where, "explain over KernelSHAP", 0.5, ours[1 : N_SLOW + 1], default)
    yield _row(where, "explain over KernelSHAP, equal queries", 1.2, ours[1:], equal[1:])


def trees(python: str | None, n_rows: int = N_ROWS, libraries: Sequence[str] = ()) -> Iterator[Row]:
    """Yield the time of the search and of whole explanations of trees, over TreeSHAP's and over release 0.1."""
    import shap

    for name, model, frame in tree_models(libraries):
        explainer, tree_shap = Explainer(model, Table(frame)), shap.TreeExplainer(model)
        times: dict[str, list[float]] = {
            each: [] for each in ("search", "whole", "shap", "old_search", "old_whole")
        }
        old = None if python is None else Release01(python, model, frame)
        for row in range(n_rows + 1):
            other = n_rows + 1 + row  # another row, because what is known about a row may be kept
            search = functools.partial(_searched, explainer, row)
            times["search"].append(processor_seconds(search))
            times["whole"].append(processor_seconds(functools.partial(explainer.explain, other)))
            shap_values = functools.partial(tree_shap.shap_values, frame.iloc[[row]])
            times["shap"].append(processor_seconds(shap_values))
            if old is not None:
                times["old_search"].append(old.explain(row, n_certify=0).seconds)
                times["old_whole"].append(old.explain(other).seconds)
        ours = {each: seconds[1:] for each, seconds in times.items()}
        yield _row(name, "search over TreeSHAP", None, ours["search"], ours["shap"])
        if old is not None:
            old.__exit__()
            yield _row(name, "search over 0.1's", 1.3, ours["search"], ours["old_search"])
            yield _row(name, "explain over 0.1", 0.5, ours["whole"], ours["old_whole"])


def tree_models(libraries: Sequence[str] = ()) -> Iterator[tuple[str, Any, Any]]:
    """Yield regressors of 100 trees, fitted on 2,000 rows of 15 numbers; of some libraries, or of all."""
    import pandas as pd
    from catboost import CatBoostRegressor
    from lightgbm import LGBMRegressor
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from xgboost import XGBRegressor

    rng = np.random.default_rng(SEED)
    frame = pd.DataFrame(rng.normal(size=(2000, 15)), columns=[f"x{j}" for j in range(15)])
    target = 2 * frame.x0 + frame.x1 * frame.x2 + np.sin(frame.x3) + rng.normal(size=2000) / 4
    models: dict[str, Callable[[], Any]] = {
        "scikit-learn boosting": lambda: HistGradientBoostingRegressor(max_iter=N_TREES, random_state=SEED),
        "scikit-learn forest": lambda: RandomForestRegressor(N_TREES, max_depth=8, random_state=SEED),
        "XGBoost": lambda: XGBRegressor(n_estimators=N_TREES, n_jobs=1, random_state=SEED),
        "LightGBM": lambda: LGBMRegressor(n_estimators=N_TREES, n_jobs=1, random_state=SEED, verbose=-1),
        "CatBoost": lambda: CatBoostRegressor(
            iterations=N_TREES, thread_count=1, random_seed=SEED, verbose=False, allow_writing_files=False
        ),
    }
    for name, make in models.items():
        if not libraries or name in libraries:
            yield name, make().fit(frame, target), frame


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


def quick() -> None:
    """Print the main ratios, on generated data and with few rows."""
    require({"pandas": "bench", "shap": "peers"})
    frame, _ = credit_pipeline(n_rows=400)
    target = np.where(frame["x0"] + (frame["c1"] == "b") > 0, "good", "bad")
    frame = frame.astype({name: "category" for name in frame if str(name).startswith("c")})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in BLACK_BOXES:
            fitted = pipeline_of(frame, model, is_classifier=True).fit(frame, target)
            _print(beside_kernel_shap(f"{model}, generated", frame, fitted, 1))
        _print(trees(python_of_01(), 5, ["scikit-learn boosting", "scikit-learn forest"]))


def _print(rows: Iterator[Row]) -> None:
    for row in rows:
        goal = "" if row["to_reach"] is None else f"  (to reach {row['to_reach']:g})"
        print(f"{row['where']:<40} {row['figure']:<42} {row['reached']:>8.3g}{goal}", flush=True)


def import_time(repeats: int = 9) -> dict[str, Any]:
    """Return the time of ``import anchorline`` in a new process over that of ``import numpy``, as medians."""
    seconds: dict[str, list[float]] = {"numpy": [], "anchorline": []}
    for _ in range(repeats):
        for name, times in seconds.items():
            code = f"import time; s = time.perf_counter(); import {name}; print(time.perf_counter() - s)"
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            times.append(float(done.stdout))
    numpy_seconds, own_seconds = (statistics.median(seconds[name]) for name in ("numpy", "anchorline"))
    ratio = own_seconds / numpy_seconds
    return {"numpy_seconds": numpy_seconds, "anchorline_seconds": own_seconds, "ratio": ratio}
