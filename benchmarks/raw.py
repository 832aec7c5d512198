"""Raw tables with a gradient-boosting pipeline that encodes categories and dates, as a user would fit it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import Dataset, read_dataset
from benchmarks.tasks import N_INSTANCES, SEED


@dataclass(frozen=True, slots=True, eq=False)
class RawTask:
    """A frame, a pipeline fitted to it, and the positions of the rows to explain."""

    name: str
    frame: Any
    model: Any
    positions: tuple[int, ...]
    is_classifier: bool


def load_task(data: Path, dataset_id: int) -> RawTask:
    """Train the pipeline on the whole raw table, and choose rows without a missing number."""
    dataset = _with_dates(read_dataset(data, dataset_id))
    frame, is_classifier = dataset.frame, dataset.kind == "classification"
    model = boosting_pipeline(frame, is_classifier).fit(frame, dataset.target)
    complete = np.flatnonzero(~frame[number_columns(frame)].isna().any(axis=1).to_numpy())
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


def number_columns(frame: Any) -> list[str]:
    """Return the names of columns of numbers and dates."""
    return [str(name) for name in frame.select_dtypes(include=["number", "datetime"]).columns]


def boosting_pipeline(frame: Any, is_classifier: bool) -> Any:
    """Return a pipeline: categories one-hot, dates as days, numbers unchanged; the trees handle missing values."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

    dates = [str(name) for name in frame.select_dtypes(include=["datetime"]).columns]
    texts = [name for name in frame.columns if name not in number_columns(frame)]
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
