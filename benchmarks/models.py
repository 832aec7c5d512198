"""Models on raw tables: numbers, categories and missing values as they are, with usual preparation in a pipeline."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import Dataset, read_dataset
from benchmarks.tasks import SEED

N_TRAINING = 3000


def fitted_model(data: Path, dataset_id: int, model: str) -> tuple[str, Any, Any]:
    """Train a model on at most ``N_TRAINING`` rows of a raw table; return the table's name, rows and model."""
    dataset, rng = read_dataset(data, dataset_id), np.random.default_rng(SEED)
    sample = rng.choice(len(dataset.frame), size=min(N_TRAINING, len(dataset.frame)), replace=False)
    frame, target = _prepared(dataset, sample)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # networks that stop early
        fitted = _pipeline(frame, model, dataset.kind == "classification").fit(frame, target)
        return dataset.name, frame, fitted


def _prepared(dataset: Dataset, sample: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return the rows of a sample, with text as categories and without dates, and their scaled targets."""
    frame = dataset.frame.iloc[sample].reset_index(drop=True)
    frame = frame.drop(columns=[name for name in frame if str(name).lower() == "date"])
    texts = [name for name in frame if frame[name].dtype.kind not in "biuf"]
    target = dataset.target[sample]
    if dataset.kind == "regression":
        target = (target - target.mean()) / target.std()
    return frame.astype(dict.fromkeys(texts, "category")), target


def _pipeline(frame: Any, model: str, is_classifier: bool) -> Any:
    from sklearn import ensemble, linear_model, neural_network
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

    texts = [place for place, name in enumerate(frame) if frame[name].dtype == "category"]
    numbers = [place for place in range(frame.shape[1]) if place not in texts]
    one_hot = OneHotEncoder(handle_unknown="ignore", min_frequency=5, sparse_output=False)
    scaled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    encode = ColumnTransformer([("texts", one_hot, texts), ("numbers", scaled, numbers)])
    kind = "Classifier" if is_classifier else "Regressor"
    last = {
        "linear": lambda: linear_model.LogisticRegression(max_iter=500) if is_classifier else linear_model.Ridge(),
        "forest": lambda: getattr(ensemble, f"RandomForest{kind}")(20, max_depth=10, random_state=SEED),
        "boosting": lambda: getattr(ensemble, f"HistGradientBoosting{kind}")(max_iter=40, random_state=SEED),
        "network": lambda: getattr(neural_network, f"MLP{kind}")(
            hidden_layer_sizes=(32,), max_iter=200, random_state=SEED
        ),
    }[model]()
    return make_pipeline(FunctionTransformer(_codes), encode, last)


def _codes(frame: Any) -> np.ndarray:
    """Return numbers as they are and categories as codes, because encoding text takes most of the time."""
    columns = (column for _, column in frame.items())
    return np.column_stack(
        [
            (column.cat.codes if column.dtype == "category" else column).to_numpy(dtype=np.float64)
            for column in columns
        ]
    )
