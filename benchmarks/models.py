"""Models on raw tables: numbers, categories and missing values as they are, prepared in a pipeline."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.codes import codes_of
from benchmarks.datasets import Dataset, read_dataset
from benchmarks.tasks import SEED

N_TRAINING = 3000


def fitted_model(data: Path, dataset_id: int, model: str) -> tuple[str, Any, Any]:
    """Train a model on at most ``N_TRAINING`` rows of a raw table; return the table's name, rows and model."""
    dataset, sample = training_rows(data, dataset_id)
    frame, target = _prepared(dataset, sample)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # networks that stop early
        fitted = pipeline_of(frame, model, dataset.kind == "classification").fit(frame, target)
        return dataset.name, frame, fitted


def training_rows(data: Path, dataset_id: int) -> tuple[Dataset, np.ndarray]:
    """Return a raw table, and the numbers of the rows on which `fitted_model` trains."""
    dataset, rng = read_dataset(data, dataset_id), np.random.default_rng(SEED)
    return dataset, rng.choice(len(dataset.frame), size=min(N_TRAINING, len(dataset.frame)), replace=False)


def _prepared(dataset: Dataset, sample: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return the rows of a sample, with text as categories and without dates, and their scaled targets."""
    frame = dataset.frame.iloc[sample].reset_index(drop=True)
    frame = frame.drop(columns=[name for name in frame if str(name).lower() == "date"])
    texts = [name for name in frame if frame[name].dtype.kind not in "biuf"]
    target = dataset.target[sample]
    if dataset.kind == "regression":
        target = (target - target.mean()) / target.std()
    return frame.astype(dict.fromkeys(texts, "category")), target


def pipeline_of(frame: Any, model: str, is_classifier: bool) -> Any:
    """Return an unfitted pipeline that encodes and scales columns, and ends in a model of this name."""
    from sklearn import ensemble, linear_model, neighbors, neural_network, svm
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
        "neighbors": getattr(neighbors, f"KNeighbors{kind}"),
        "svm": lambda: svm.SVC(probability=True, random_state=SEED) if is_classifier else svm.SVR(),
    }[model]()
    return make_pipeline(FunctionTransformer(codes_of), encode, last)
