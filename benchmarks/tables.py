"""Raw tables with a gradient-boosting pipeline: explanations by anchorline and by LIME of the same model."""

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from anchorline.model.outputs import resolve
from anchorline.optimize import Status
from anchorline.spaces.table import Table
from benchmarks.datasets import Dataset, available, read_dataset
from benchmarks.tasks import N_INSTANCES, SEED, Stopwatch

TABLES = (179, 40536, 42352, 44024, 46328, 29)  # adult, speed dating, student, California, Seoul, credit approval
K = 5
N_QUERIES = 10_001  # the row, 5,000 to search, 5,000 to certify; LIME draws the same number
N_MEASURED = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class RawTask:
    """A frame, a pipeline fitted to it, and the positions of the rows to explain."""

    name: str
    frame: Any
    model: Any
    positions: tuple[int, ...]
    is_classifier: bool


def load_task(data: Path, dataset_id: int) -> RawTask:
    """Train the pipeline on the whole raw table, and choose rows without a missing number.

    LIME does not accept missing numbers, although anchorline does.
    """
    dataset = _with_dates(read_dataset(data, dataset_id))
    frame, is_classifier = dataset.frame, dataset.kind == "classification"
    model = _pipeline(frame, is_classifier).fit(frame, dataset.target)
    complete = np.flatnonzero(~frame[_number_columns(frame)].isna().any(axis=1).to_numpy())
    chosen = np.random.default_rng(SEED).choice(complete, size=N_INSTANCES, replace=False)
    return RawTask(dataset.name, frame, model, tuple(int(i) for i in chosen), is_classifier)


def _with_dates(dataset: Dataset) -> Dataset:
    """Convert dates that the file holds as text."""
    import pandas as pd

    frame = dataset.frame.copy()
    for name in frame.columns:
        if name.lower() == "date":
            frame[name] = pd.to_datetime(frame[name])
    return Dataset(dataset.id, dataset.name, dataset.kind, frame, dataset.target)


def _number_columns(frame: Any) -> list[str]:
    return [str(name) for name in frame.select_dtypes(include=["number", "datetime"]).columns]


def _pipeline(frame: Any, is_classifier: bool) -> Any:
    """Return a pipeline: categories one-hot, dates as days, numbers unchanged; the trees handle missing values."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

    dates = [str(name) for name in frame.select_dtypes(include=["datetime"]).columns]
    texts = [name for name in frame.columns if name not in _number_columns(frame)]
    columns = ColumnTransformer(
        [
            ("texts", OneHotEncoder(handle_unknown="ignore", sparse_output=False, min_frequency=5), texts),
            ("dates", FunctionTransformer(_days), dates),
        ],
        remainder="passthrough",
    )
    booster = HistGradientBoostingClassifier if is_classifier else HistGradientBoostingRegressor
    return make_pipeline(columns, booster(random_state=SEED))


def _days(frame: Any) -> Any:
    return frame.astype("datetime64[s]").astype("int64") / 86_400


def compare_on_tables(data: Path, ids: Sequence[int] = TABLES) -> Iterator[dict[str, Any]]:
    """Yield one row per table: the errors of anchorline and of LIME by our assessment, and their cost."""
    present = {row.id for row in available(data)}
    for dataset_id in ids:
        if dataset_id in present:
            yield _compare(load_task(data, dataset_id))


def _compare(task: RawTask) -> dict[str, Any]:
    space = Table(task.frame)
    lime = _LimeOnTable(task)
    rows = [_compare_row(task, space, lime, position) for position in task.positions]
    result: dict[str, Any] = {"table": task.name, "attributes": task.frame.shape[1], "rows": len(rows)}
    result["proven"] = sum(row["proven"] for row in rows)
    for name in rows[0]:
        values = [row[name] for row in rows if row[name] is not None]
        if name != "proven":
            result[f"median_{name}"] = statistics.median(values) if values else None
    result["median_overhead_ratio"] = statistics.median(row["lime_overhead"] / row["overhead"] for row in rows)
    return result


def _compare_row(task: RawTask, space: Table, lime: "_LimeOnTable", position: int) -> dict[str, Any]:
    """Explain one row with both and time them, then measure both on the same fresh neighbors."""
    ask = resolve(task.model).ask
    watch = Stopwatch(ask)
    explainer = Explainer(watch, space, **_options(task))
    # The first use learns the range of a regressor and imports packages, which is not measured.
    explainer.explain(position, n_samples=100)
    watch.seconds, start = 0.0, time.perf_counter()
    explanation = explainer.explain(position, k=K)
    overhead, ours_in_model = time.perf_counter() - start - watch.seconds, watch.seconds
    column, row = explanation.parameters["column"], task.frame.iloc[[position]]
    lime_watch = Stopwatch(lambda coded: ask(lime.decoded(coded)))  # the time of decoding does not count as LIME's
    start = time.perf_counter()
    weights, intercept = lime.explain(row, lime_watch, column)
    lime_overhead = time.perf_counter() - start - lime_watch.seconds
    names = [literal.name for literal in explanation.literals]
    lime_contributions = np.array([weights.get(name, 0.0) / 2 for name in names])  # indicators are (1 + z x) / 2
    measured = explainer.assess(position, explanation.contributions, n_fresh=N_MEASURED)
    lime_measured = explainer.assess(
        position, lime_contributions, intercept + float(lime_contributions.sum()), n_fresh=N_MEASURED
    )
    half = explanation.half_range
    return {
        "proven": explanation.certificate.status is Status.OPTIMAL,
        "relevance_error": measured.relevance_error.value,
        "lime_relevance_error": lime_measured.relevance_error.value,
        "fidelity_error": measured.fidelity_error.value,
        "lime_fidelity_error": lime_measured.fidelity_error.value,
        "stability": None if measured.stability is None else measured.stability.value,
        "lime_stability": None if lime_measured.stability is None else lime_measured.stability.value,
        "anchoring_gap": explanation.certificate.anchoring_residual / half,
        "lime_anchoring_gap": abs(intercept + sum(weights.values()) - explanation.prediction) / half,
        "overhead": overhead,
        "lime_overhead": lime_overhead,
        "overhead_over_model": overhead / ours_in_model,
    }


def _options(task: RawTask) -> dict[str, Any]:
    return {"classes": list(task.model.classes_)} if task.is_classifier else {"task": "number"}


class _LimeOnTable:
    """LIME with its default settings on the same frame.

    Categories are coded and missing numbers filled for LIME; codes are decoded for the model.
    """

    def __init__(self, task: RawTask) -> None:
        from lime.lime_tabular import LimeTabularExplainer

        self._names = [str(name) for name in task.frame.columns]
        numbers = set(_number_columns(task.frame))
        self._levels = {
            name: sorted(task.frame[name].fillna("").astype(str).unique())
            for name in self._names
            if name not in numbers
        }
        self._types = task.frame.dtypes
        coded = self._coded(task.frame)
        self._fill = np.nanmedian(coded, axis=0)
        texts = [self._names.index(name) for name in self._levels]
        self._explainer = LimeTabularExplainer(
            np.where(np.isnan(coded), self._fill, coded),
            mode="classification" if task.is_classifier else "regression",
            feature_names=self._names,
            categorical_features=texts,
            categorical_names={i: self._levels[self._names[i]] for i in texts},
            random_state=SEED,
        )
        self._is_classifier = task.is_classifier

    def explain(self, row: Any, ask: Any, column: int | None) -> tuple[dict[str, float], float]:
        """Return the weights by column name, and the intercept; k - 1 features, the same number of queries."""
        labels = {"labels": (column,)} if self._is_classifier else {}
        explanation = self._explainer.explain_instance(
            self._coded(row)[0],
            ask,
            num_features=K - 1,
            num_samples=N_QUERIES,
            **labels,
        )
        label = column if self._is_classifier else 1
        weights = {self._names[j]: float(weight) for j, weight in explanation.local_exp[label]}
        return weights, float(explanation.intercept[label])

    def _coded(self, frame: Any) -> np.ndarray:
        columns = []
        for name in self._names:
            if name in self._levels:
                number = {level: i for i, level in enumerate(self._levels[name])}
                columns.append(frame[name].fillna("").astype(str).map(number).to_numpy(dtype=np.float64))
            elif self._types[name].kind == "M":
                columns.append(_days(frame[[name]])[name].to_numpy(dtype=np.float64))
            else:
                columns.append(frame[name].to_numpy(dtype=np.float64))
        return np.column_stack(columns)

    def decoded(self, coded: np.ndarray) -> Any:
        """Convert coded rows to a frame like that on which the model was trained."""
        import pandas as pd

        columns: dict[str, Any] = {}
        for j, name in enumerate(self._names):
            if name in self._levels:
                levels = np.array(self._levels[name], dtype=object)[coded[:, j].astype(int)]
                columns[name] = pd.Series(np.where(levels == "", None, levels)).astype(self._types[name])
            elif self._types[name].kind == "M":
                columns[name] = pd.to_datetime(coded[:, j], unit="D").astype(self._types[name])
            else:
                columns[name] = coded[:, j]
        return pd.DataFrame(columns)
