"""BEExAI's own metrics on its own models, for its explainers and for ours.

BEExAI splits and scales the tables, trains the models, and computes every figure. Ours plugs in as one of its
explainers: each fact's contribution belongs to the fact's column, and all other columns get 0.
"""

import contextlib
import functools
import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from beexai.dataset.dataset import Dataset
from beexai.evaluate.metrics.get_results import get_all_metrics
from beexai.explanation.explaining import CaptumExplainer, GeneralExplainer
from beexai.training.train import Trainer
from beexai.utils.time_seed import set_seed

from anchorline import Explainer, Table
from benchmarks.datasets import available, read_dataset
from benchmarks.outside.child import run
from benchmarks.tasks import SEED

TABLES = (44024, 46328, 42192, 43672, 179, 29)  # California, Seoul bikes, COMPAS, heart disease, adult, credit
MODELS = {"regression": ("XGBRegressor", "NeuralNetwork"), "classification": ("XGBClassifier", "NeuralNetwork")}
THEIRS = {"Lime": "LIME", "KernelShap": "KernelSHAP", "ShapleyValueSampling": "Shapley sampling"}
TASKS = {"regression": "numbers", "classification": "classes"}
N_TABLE = 4000
K = 4
N_MORE = 500  # queries of LIME and KernelSHAP where they get more than the 25 of BEExAI


class Asked:
    """A model as BEExAI asks it, with tensors or arrays; it counts the rows."""

    def __init__(self, model: Any) -> None:
        self._model, self.n_rows = model, 0

    def predict(self, rows: Any) -> Any:
        """Return labels or numbers."""
        return self._answer(self._model.predict, rows)

    def predict_proba(self, rows: Any) -> Any:
        """Return probabilities."""
        return self._answer(self._model.predict_proba, rows)

    def _answer(self, ask: Any, rows: Any) -> Any:
        self.n_rows += len(rows)
        with torch.no_grad():
            found = np.asarray(ask(np.asarray(rows, dtype=np.float32)))
        found = found.reshape(-1) if found.shape[1:] == (1,) else found
        return torch.from_numpy(found) if isinstance(rows, torch.Tensor) else found


class Ours(GeneralExplainer):  # type: ignore[misc]
    """Our sums as attributions, scaled as BEExAI scales those of its own explainers."""

    def __init__(self, model: Asked, task: str, table: Table, names: list[str], k: int) -> None:
        super().__init__(model, task)
        self._names, self._k = names, k
        outputs = (0, 1) if task == "classification" else (None,)
        ask = model.predict_proba if task == "classification" else model.predict
        classes = [0, 1] if task == "classification" else None

        def answers(rows: Any) -> Any:  # not the method, because its object's `predict` would be asked as well
            return ask(rows)

        self._explainers = [
            Explainer(answers, table, output=output, input="array", classes=classes) for output in outputs
        ]

    def init_explainer(self) -> None:
        """Nothing is prepared."""

    def explain(self, x_test: torch.Tensor, label: Any = None, absolute: bool = False) -> torch.Tensor:
        """Return the attributions (n, d)."""
        found = torch.zeros(x_test.shape)
        labels = np.zeros(len(x_test), dtype=int) if label is None else np.asarray(label, dtype=int)
        for place, (row, which) in enumerate(zip(np.asarray(x_test, dtype=np.float64), labels, strict=True)):
            e = self._explainers[which].explain(pd.DataFrame([row], columns=self._names), k=self._k)
            for fact, contribution in zip(e.facts, e.contributions, strict=True):
                found[place, self._names.index(fact.column)] = float(contribution)
        found = torch.abs(found) if absolute else found
        return found / torch.norm(found)


def theirs(model: Asked, task: str, name: str, **options: Any) -> GeneralExplainer:
    """Return one of BEExAI's explainers, ready; options go to Captum's `attribute`."""
    explainer = CaptumExplainer(model, task, name, sklearn=True)
    captum = explainer.init_explainer()
    captum.attribute = functools.partial(captum.attribute, **options)
    return explainer


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep what BEExAI prints and its progress bars off the screen."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def split(data: Path, dataset_id: int) -> tuple[str, str, list[pd.DataFrame]]:
    """Return a table's name, its task, and BEExAI's split: numbers scaled, categories as codes."""
    dataset = read_dataset(data, dataset_id)
    frame = dataset.frame.drop(columns=[name for name in dataset.frame if str(name).lower() == "date"])
    texts = [name for name in frame if frame[name].dtype.kind not in "biuf"]
    frame = frame.astype(dict.fromkeys(texts, object))
    is_number = dataset.kind == "regression"
    target = dataset.target if is_number else np.unique(dataset.target, return_inverse=True)[1]
    frame = frame.assign(target=target).dropna()
    frame = frame.sample(min(N_TABLE, len(frame)), random_state=SEED).reset_index(drop=True)
    scaling = {"x_num_scaler_name": "standard", "x_cat_encoder_name": "ordinalencoder"}
    scaling |= {"y_scaler_name": "standard"} if is_number else {}
    set_seed(SEED)
    return dataset.name, dataset.kind, list(Dataset(frame, "target").get_train_test(0.2, scaling))


def trained(name: str, kind: str, x_train: pd.DataFrame, y_train: pd.Series) -> Any:
    """Return one of BEExAI's models, fitted."""
    options = (
        {"input_dim": x_train.shape[1], "output_dim": 2} if name == "NeuralNetwork" else {"random_state": SEED}
    )
    trainer = Trainer(name, kind, options)
    trainer.train(x_train.to_numpy(np.float32), y_train.to_numpy(), epochs=200)
    trainer.model.eval() if name == "NeuralNetwork" else None
    return trainer.model


def explainers(model: Asked, kind: str, x_train: pd.DataFrame) -> dict[str, GeneralExplainer]:
    """Return BEExAI's explainers and ours, by the names that the page shows."""
    names, frame = [str(name) for name in x_train], x_train.astype("float64")
    found = {shown: theirs(model, kind, name) for name, shown in THEIRS.items()}
    for name in ("Lime", "KernelShap"):
        found[f"{THEIRS[name]}, {N_MORE} queries"] = theirs(model, kind, name, n_samples=N_MORE)
    found["anchorline"] = Ours(model, kind, Table(frame), names, k=K)
    from_zero = Table(frame, reference=pd.DataFrame(np.zeros((1, len(names))), columns=names))
    found["anchorline, from zero"] = Ours(model, kind, from_zero, names, k=K)
    found["anchorline, from zero, all columns"] = Ours(model, kind, from_zero, names, k=len(names))
    return found


def measure(data: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield one row per table, model and explainer."""
    n_rows = 8 if quick else 40
    ids = [row.id for row in available(data) if row.id in TABLES]
    for dataset_id in ids[:2] if quick else ids:
        table_name, kind, (x_train, x_test, y_train, _) = split(data, dataset_id)
        x = torch.tensor(x_test.to_numpy(np.float32)[:n_rows])
        for model_name in MODELS[kind]:
            with quiet():
                set_seed(SEED)
                model = Asked(trained(model_name, kind, x_train, y_train))
            label = None if kind == "regression" else model.predict(x).long()
            for shown, explainer in explainers(model, kind, x_train).items():
                with quiet():
                    row = figures(model, explainer, x, label)
                about = {"task": f"models of {TASKS[kind]}", "table": table_name, "model": model_name}
                yield about | {"method": shown, "rows": len(x)} | row


def figures(model: Asked, explainer: GeneralExplainer, x: torch.Tensor, label: Any) -> dict[str, Any]:
    """Return BEExAI's metrics of one explainer, and what its attributions cost per row."""
    set_seed(SEED)
    model.n_rows, start = 0, time.process_time()
    found = explainer.explain(x, label=label, absolute=label is None)
    seconds, queries = (time.process_time() - start) / len(x), model.n_rows / len(x)
    set_seed(SEED)  # the same noise for every explainer
    metrics = get_all_metrics(
        x,
        label,
        model,
        explainer,
        auc_metric="mse" if label is None else "accuracy",
        attributions=found,
    )
    values = {name: float(value) for name, value in metrics.iloc[0].items()}
    used = float((found != 0).sum(dim=1).float().mean())
    return values | {"columns_used": used, "queries": queries, "seconds": seconds}


if __name__ == "__main__":
    run(measure)
