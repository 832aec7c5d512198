"""Changes of few facts that turn a decision: anchorline beside DiCE (``pip install dice-ml``), on raw tables."""

import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np

from anchorline.explainer import Explainer
from anchorline.spaces.table import Table
from benchmarks.datasets import available, published, read_dataset
from benchmarks.raw import boosting_pipeline, number_columns
from benchmarks.tasks import SEED

APART = 0.5  # the distance between two categories
TABLES = (29, 42192, 43672, 179)  # credit approval, COMPAS, heart disease, adult
N_ROWS = 10
Finder = Callable[[int], list[dict[str, Any]]]  # from the position of a row to examples, as whole rows
DICE = ("dice random", "dice genetic")


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


def peer(name: str, model: CountingModel, frame: Any, labels: np.ndarray, numbers: Sequence[str]) -> Finder | None:
    """Return the finder of a method in `DICE`; None if DiCE is not installed."""
    if find_spec("dice_ml") is None:
        return None
    import dice_ml

    method = name.split()[1]
    table = dice_ml.Data(
        dataframe=frame.assign(outcome=labels), continuous_features=list(numbers), outcome_name="outcome"
    )
    wrapped = dice_ml.Model(model=model, backend="sklearn", model_type="classifier")
    dice = dice_ml.Dice(table, wrapped, method=method)

    def find(row: int) -> list[dict[str, Any]]:
        options = {"random_seed": SEED} if method == "random" else {}
        try:
            answer = dice.generate_counterfactuals(
                frame.iloc[[row]], total_CFs=1, desired_class="opposite", verbose=False, **options
            )
        except Exception as error:  # DiCE raises if it finds none
            print(f"     dice {method}, row {row}: {type(error).__name__}: {error}"[:150], flush=True)
            return []
        examples = answer.cf_examples_list[0].final_cfs_df
        return [] if examples is None else examples.drop(columns="outcome").to_dict("records")

    return find


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
    numbers = number_columns(frame)
    frame = frame.astype(dict.fromkeys(numbers, "float64")).astype(
        {name: object for name in frame.columns if name not in numbers}
    )
    labels = (dataset.target[complete] == np.unique(dataset.target)[0]).astype(int)
    model = CountingModel(boosting_pipeline(frame, True).fit(frame, labels))
    rows = np.random.default_rng(SEED).choice(len(frame), size=n_rows, replace=False).tolist()
    finders: dict[str, Finder | None] = {
        "anchorline": _ours(model, frame, n=1),
        "anchorline, rows": _ours(model, frame, n=1, examples="rows"),
        "anchorline, 3 changes": _ours(model, frame, n=3),
    }
    finders |= {name: peer(name, model, frame, labels, numbers) for name in DICE}
    metric, answers = Metric(frame), {name: list[Answer]() for name in finders}
    for row in rows:  # the methods take turns, so that all have the same share of the machine
        for name, finder in finders.items():
            if finder is not None:
                answers[name].append(_answer(model, frame, metric, finder, row))
    for name, finder in finders.items():
        result: dict[str, Any] = {"table": published(dataset_id).name, "method": name, "rows": n_rows}
        if finder is None:
            yield result | {"method": f"{name} (not installed)"}
            continue
        yield result | _summary(answers[name], answers["anchorline"], answers["anchorline, rows"])


@dataclass(frozen=True)
class Answer:
    """What a method found for one row, and what it cost; None where it found nothing."""

    is_valid: bool | None
    n_changed: int | None
    distance: float | None
    nearest: float | None
    n_queries: int
    seconds: float


def _answer(model: CountingModel, frame: Any, metric: "Metric", finder: Finder, row: int) -> Answer:
    import pandas as pd

    model.n_rows, start = 0, time.process_time()
    examples = finder(row)
    cost = model.n_rows, time.process_time() - start
    if not examples:
        return Answer(None, None, None, None, *cost)
    both = pd.concat([frame.iloc[[row]], pd.DataFrame(examples[:1]).astype(frame.dtypes.to_dict())])
    decisions = model.model.predict_proba(both).argmax(axis=1)
    apart = metric.apart(frame.iloc[row].to_dict(), examples[0])
    n_changed = sum(distance > 0 for distance in apart.values())
    nearest = metric.nearest(examples[0], leaving_out=row)
    return Answer(bool(decisions[0] != decisions[1]), n_changed, sum(apart.values()), nearest, *cost)


def _summary(answers: Sequence[Answer], ours: Sequence[Answer], our_rows: Sequence[Answer]) -> dict[str, Any]:
    """Return medians; times are compared row by row with both kinds of our examples, values and whole rows."""
    found = [answer for answer in answers if answer.is_valid is not None]

    def median(name: str) -> float | None:
        return statistics.median(getattr(answer, name) for answer in found) if found else None

    def times(other: Sequence[Answer]) -> float:
        return statistics.median(answer.seconds / own.seconds for answer, own in zip(answers, other, strict=True))

    return {
        "found": len(found),
        "valid": sum(bool(answer.is_valid) for answer in found),
        "median_changed": median("n_changed"),
        "median_distance": median("distance"),
        "median_nearest_row": median("nearest"),
        "median_queries": statistics.median(answer.n_queries for answer in answers),
        "median_seconds": statistics.median(answer.seconds for answer in answers),
        "median_times_anchorline": times(ours),
        "median_times_anchorline_rows": times(our_rows),
    }


def _ours(model: CountingModel, frame: Any, n: int, examples: Literal["values", "rows"] = "values") -> Finder:
    def ask(inputs: Any) -> Any:  # not the method, because its object's `predict` would be queried as well
        return model.predict_proba(inputs)

    explainer = Explainer(ask, Table(frame), classes=[0, 1])
    explainer.changes(0, n=1)  # distinct values are found once per table

    def find(row: int) -> list[dict[str, Any]]:
        changes = explainer.changes(row, n=n, examples=examples)
        return [changes.changed(place) for place in range(len(changes))]

    return find


class Metric:
    """Distances in training quantiles, as anchorline defines them, for rows of any values."""

    def __init__(self, frame: Any) -> None:
        numbers = number_columns(frame)
        self._sorted = {str(name): np.sort(frame[name].to_numpy(dtype=float)) for name in numbers}
        self._rows = {
            str(name): self._places(name, column.to_numpy(dtype=float))
            if name in self._sorted
            else column.astype(str).to_numpy()
            for name, column in frame.items()
        }

    def _places(self, name: str, values: np.ndarray) -> np.ndarray:
        """Return the places of numbers among the training rows, from 0 to 1."""
        known = self._sorted[name]
        return (known.searchsorted(values) + known.searchsorted(values, side="right")) / (2 * len(known))

    def _number(self, name: str, value: Any) -> float:
        return float(self._places(name, np.array([float(value)]))[0])

    def apart(self, row: dict[str, Any], other: dict[str, Any]) -> dict[str, float]:
        """Return the distances of two rows by column."""
        distances = {}
        for name in self._rows:
            if name not in self._sorted:
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
        for name in self._rows:
            if name not in self._sorted:
                total += np.where(self._rows[name] == str(row[name]), 0.0, APART)
            else:
                total += np.abs(self._rows[name] - self._number(name, row[name]))
        total[leaving_out] = np.inf
        return float(total.min() / len(self._rows))
