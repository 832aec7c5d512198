"""Changes of few facts that turn a decision: anchorline beside DiCE (random and genetic), on raw tables.

Peers that are not installed are marked. DiCE: ``pip install dice-ml``.
"""

import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from anchorline.spaces.choices import APART, column_values
from anchorline.spaces.table import Table
from benchmarks.datasets import available, published, read_dataset
from benchmarks.tables import _number_columns, _pipeline
from benchmarks.tasks import SEED

TABLES = (29, 42192, 43672, 179)  # credit approval, COMPAS, heart disease, adult
N_ROWS = 10
PEERS = {"dice random": "dice_ml", "dice genetic": "dice_ml"}
Finder = Callable[[int], list[dict[str, Any]]]  # from the position of a row to examples, as whole rows


class CountingModel:
    """A fitted classifier that counts the rows that it is queried about."""

    def __init__(self, model: Any) -> None:
        self.model, self.n_rows, self.classes_ = model, 0, model.classes_

    def predict_proba(self, rows: Any) -> Any:
        """Return the probabilities."""
        self.n_rows += len(rows)
        return self.model.predict_proba(rows)

    def predict(self, rows: Any) -> Any:
        """Return the most probable classes."""
        return self.classes_[self.predict_proba(rows).argmax(axis=1)]


def compare_changes(data: Path, ids: Sequence[int] = TABLES, n_rows: int = N_ROWS) -> Iterator[dict[str, Any]]:
    """Yield one row per table and method: validity, changed attributes, distance, realism, queries and seconds."""
    present = {row.id for row in available(data)}
    for dataset_id in ids:
        if dataset_id in present:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield from _compare(data, dataset_id, n_rows)


def _compare(data: Path, dataset_id: int, n_rows: int) -> Iterator[dict[str, Any]]:
    dataset = read_dataset(data, dataset_id)
    complete = ~dataset.frame.isna().any(axis=1).to_numpy()  # DiCE takes no missing values
    frame = dataset.frame[complete].reset_index(drop=True)
    numbers = _number_columns(frame)
    frame = frame.astype(dict.fromkeys(numbers, "float64")).astype(
        {name: object for name in frame.columns if name not in numbers}
    )
    labels = (dataset.target[complete] == np.unique(dataset.target)[0]).astype(int)
    model = CountingModel(_pipeline(frame, True).fit(frame, labels))
    rows = np.random.default_rng(SEED).choice(len(frame), size=n_rows, replace=False).tolist()
    finders: dict[str, Finder | None] = {
        "anchorline": _ours(model, frame, n=1),
        "anchorline, 3 changes": _ours(model, frame, n=3),
    }
    for name, package in PEERS.items():
        installed = find_spec(package) is not None
        finders[name] = _dice(model, frame, labels, numbers, name.split()[1]) if installed else None
    metric = Metric(frame)
    for name, finder in finders.items():
        result: dict[str, Any] = {"table": published(dataset_id).name, "method": name, "rows": n_rows}
        if finder is None:
            yield result | {"note": f"{PEERS[name]} is not installed"}
            continue
        yield result | _measured(model, frame, metric, finder, rows)


def _measured(
    model: CountingModel, frame: Any, metric: "Metric", finder: Finder, rows: Sequence[int]
) -> dict[str, Any]:
    import pandas as pd

    found, valid, changed, distances, realism, queries, seconds = 0, 0, [], [], [], [], []
    for row in rows:
        model.n_rows, start = 0, time.perf_counter()
        examples = finder(row)
        seconds.append(time.perf_counter() - start)
        queries.append(model.n_rows)
        if not examples:
            continue
        both = pd.concat([frame.iloc[[row]], pd.DataFrame(examples[:1]).astype(frame.dtypes.to_dict())])
        decisions = model.model.predict_proba(both).argmax(axis=1)
        found += 1
        valid += int(decisions[0] != decisions[1])
        apart = metric.apart(frame.iloc[row].to_dict(), examples[0])
        changed.append(sum(distance > 0 for distance in apart.values()))
        distances.append(sum(apart.values()))
        realism.append(metric.nearest(examples[0], leaving_out=row))
    return {
        "found": found,
        "valid": valid,
        "median_changed": statistics.median(changed) if changed else None,
        "median_distance": statistics.median(distances) if distances else None,
        "median_nearest_row": statistics.median(realism) if realism else None,
        "median_queries": statistics.median(queries),
        "median_seconds": statistics.median(seconds),
    }


def _ours(model: CountingModel, frame: Any, n: int) -> Finder:
    def ask(inputs: Any) -> Any:  # not the method, because its object's `predict` would be queried as well
        return model.predict_proba(inputs)

    explainer = Explainer(ask, Table(frame), classes=[0, 1])
    explainer.changes(0, n=1)  # distinct values are found once per table

    def find(row: int) -> list[dict[str, Any]]:
        changes = explainer.changes(row, n=n)
        return [changes.changed(place) for place in range(len(changes))]

    return find


def _dice(model: CountingModel, frame: Any, labels: np.ndarray, numbers: list[str], method: str) -> Finder:
    import dice_ml

    table = dice_ml.Data(
        dataframe=frame.assign(outcome=labels), continuous_features=numbers, outcome_name="outcome"
    )
    wrapped = dice_ml.Model(model=model, backend="sklearn", model_type="classifier")
    peer = dice_ml.Dice(table, wrapped, method=method)

    def find(row: int) -> list[dict[str, Any]]:
        options = {"random_seed": SEED} if method == "random" else {}
        try:
            answer = peer.generate_counterfactuals(
                frame.iloc[[row]], total_CFs=1, desired_class="opposite", verbose=False, **options
            )
        except Exception as error:  # DiCE raises if it finds none
            print(f"     dice {method}, row {row}: {type(error).__name__}: {error}"[:150], flush=True)
            return []
        examples = answer.cf_examples_list[0].final_cfs_df
        return [] if examples is None else examples.drop(columns="outcome").to_dict("records")

    return find


class Metric:
    """Distances in training quantiles, as anchorline defines them, for rows of any values."""

    def __init__(self, frame: Any) -> None:
        self._table, self._names = Table(frame), [str(name) for name in frame.columns]
        self._values = {name: column_values(self._table.schema, j) for j, name in enumerate(self._names)}
        self._rows = {
            name: np.array([self._number(name, value) for value in frame[name].tolist()])
            if values.places is not None
            else frame[name].astype(str).to_numpy()
            for name, values in self._values.items()
        }

    def _number(self, name: str, value: Any) -> float:
        return self._values[name].place(float(value))

    def apart(self, row: dict[str, Any], other: dict[str, Any]) -> dict[str, float]:
        """Return the distances of two rows by column."""
        distances = {}
        for name, values in self._values.items():
            if values.places is None:
                distances[name] = 0.0 if str(row[name]) == str(other[name]) else APART
            else:
                same = abs(float(row[name]) - float(other[name])) <= 1e-6 * max(1.0, abs(float(row[name])))
                distances[name] = (
                    0.0 if same else abs(self._number(name, row[name]) - self._number(name, other[name]))
                )
                distances[name] = distances[name] if same or distances[name] else 1e-9
        return distances

    def nearest(self, row: dict[str, Any], leaving_out: int) -> float:
        """Return the mean distance over the columns to the nearest training row other than the case itself."""
        total = np.zeros(len(next(iter(self._rows.values()))))
        for name, values in self._values.items():
            if values.places is None:
                total += np.where(self._rows[name] == str(row[name]), 0.0, APART)
            else:
                total += np.abs(self._rows[name] - self._number(name, row[name]))
        total[leaving_out] = np.inf
        return float(total.min() / len(self._rows))
