"""Facts of other explainers: what LIME, KernelSHAP, TreeSHAP and release 0.1 name, as rows of the table.

LIME states its own quartile bins. SHAP names columns, which are given the same bins, or their category.
"""

import re
import warnings
from typing import Any

import numpy as np

from benchmarks.held import Held, Task
from benchmarks.release01 import Release01, rows_with
from benchmarks.tasks import SEED

N_BACKGROUND = 50
N_LIME = 5000


def quartile_fact(task: Task, column: int, row: int) -> Held:
    """Return the quartile bin of a row's number, its category, or that it is missing."""
    values = task.codes[:, column]
    own = values[row]
    if np.isnan(own):
        return Held(column, np.isnan(values))
    if task.frame.dtypes.iloc[column] == "category":
        return Held(column, values == own)
    quartiles = np.nanpercentile(values, [25, 50, 75])
    bins = np.where(np.isnan(values), -1, np.searchsorted(quartiles, values))  # LIME's bins are closed above
    return Held(column, bins == bins[row])


def largest(values: np.ndarray, k: int) -> list[int]:
    """Return the columns of the k largest absolute values that are not 0."""
    order = np.argsort(-np.abs(values), kind="stable")[:k].tolist()
    return [column for column in order if values[column] != 0]


class Lime:
    """LIME with its default settings; columns that it ranks highest for the explained class."""

    def __init__(self, task: Task) -> None:
        from lime.lime_tabular import LimeTabularExplainer

        self.task, self._filled = task, filled(task.codes)
        is_text = [dtype == "category" for dtype in task.frame.dtypes]
        self._explainer = LimeTabularExplainer(
            self._filled,
            mode="classification" if task.is_classifier else "regression",
            categorical_features=np.flatnonzero(is_text),
            random_state=SEED,
        )

    def facts(self, row: int, k: int) -> list[Held]:
        """Return at most k facts about a row."""
        task = self.task
        label = int(task.scores(task.codes[[row]]).argmax()) if task.is_classifier else 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self._explainer.explain_instance(
                self._filled[row], task.scores, labels=(label,), num_features=k, num_samples=N_LIME
            )
        return [quartile_fact(task, int(column), row) for column, _ in found.as_map()[label]]


class KernelShap:
    """KernelSHAP with its default number of coalitions, and some rows of the table as background."""

    def __init__(self, task: Task) -> None:
        import shap

        self.task = task
        rows = np.random.default_rng(SEED).choice(len(task.codes), size=min(N_BACKGROUND, len(task.codes)))
        self._explainer = shap.KernelExplainer(task.scores, task.codes[rows])
        self._values = dict[int, np.ndarray]()

    def facts(self, row: int, k: int) -> list[Held]:
        """Return at most k facts about a row."""
        if row not in self._values:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = np.asarray(self._explainer.shap_values(self.task.codes[row], silent=True))
            self._values[row] = _of_class(self.task, row, found)
        return [quartile_fact(self.task, column, row) for column in largest(self._values[row], k)]


class TreeShap:
    """Path-dependent TreeSHAP; values of encoded columns are added up per column of the table."""

    def __init__(self, task: Task) -> None:
        import shap

        self.task = task
        encoded = task.model[1].get_feature_names_out()
        found = [re.search(r"__x(\d+)", name) for name in encoded]
        self._owners = np.array([int(each[1]) for each in found if each is not None])
        self._explainer = shap.TreeExplainer(task.model[-1])

    def facts(self, row: int, k: int) -> list[Held]:
        """Return at most k facts about a row."""
        task = self.task
        encoded = np.asarray(task.model[1].transform(task.codes[[row]]))
        found = np.asarray(self._explainer.shap_values(encoded, check_additivity=False))[0]
        values = np.bincount(self._owners, _of_class(task, row, found), minlength=task.codes.shape[1])
        return [quartile_fact(task, column, row) for column in largest(values, k)]


class Old:
    """Release 0.1 with k facts beside its intercept, as its facts read."""

    def __init__(self, task: Task, release: Release01) -> None:
        self.task, self._release = task, release
        self._places = {column: place for place, column in enumerate(task.frame)}

    def facts(self, row: int, k: int) -> list[Held]:
        """Return at most k facts about a row."""
        found = self._release.explain(row, k=k + 1, n_certify=0).facts[:k]  # it may do without an intercept
        return [Held(self._places[name], rows_with(name, text, self.task.frame[name])) for name, text in found]


def _of_class(task: Task, row: int, values: np.ndarray) -> np.ndarray:
    """Return the values (d,) of the explained class from those of all classes, if there are several."""
    if values.ndim == 1:
        return values
    return np.asarray(values[:, int(task.scores(task.codes[[row]]).argmax())])


def filled(codes: np.ndarray) -> Any:
    """Return numbers with medians instead of missing values, which LIME does not accept."""
    return np.where(np.isnan(codes), np.nan_to_num(np.nanmedian(codes, axis=0)), codes)
