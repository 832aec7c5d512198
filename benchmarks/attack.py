"""The attack of Slack et al. (2020): a biased model that answers innocently where a row looks made up.

For every explainer, the attacker trains a discriminator on real rows and on the rows that this explainer makes up.
Where it takes a row for real, the model decides by the sensitive attribute alone, and elsewhere by a column of
random values. The discriminator must let 95% of other real rows pass, because the bias is to act on them.
"""

import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from anchorline.spaces.options import NEIGHBORS
from anchorline.spaces.table import Table
from benchmarks.datasets import available, read_dataset
from benchmarks.realism import lime_rows, made_up
from benchmarks.tables import RawTask, _LimeOnTable
from benchmarks.tasks import SEED

K = 5
N_EXPLAINED = 30
N_ATTACKED = 1000  # training rows around which the attacker makes up rows
N_EACH = 4  # made-up rows for each of them
N_QUERIES = 5000
N_BACKGROUND = 10  # rows of KernelSHAP's background
PASSING = 0.95  # real rows that the discriminator must let pass
INNOCENT = "unrelated"


@dataclass(frozen=True, eq=False)
class Victims:
    """A table, its sensitive attribute, and the value that the biased model punishes."""

    name: str
    frame: Any
    sensitive: str
    value: str


def victims(data: Path, tables: Collection[str] = ()) -> Iterator[Victims]:
    """Yield COMPAS, with one column per category, and Credit Approval, without rows that lack a value."""
    present = {row.id for row in available(data, tables)}
    if 42192 in present:
        raw = read_dataset(data, 42192).frame
        frame = raw[["age", "priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count"]].astype(float)
        frame["sex"] = np.where(raw["sex"] == 1, "male", "female")
        for name, prefix in (("age_group", "age_cat_"), ("race", "race_"), ("charge", "c_charge_degree_")):
            columns = [column for column in raw if column.startswith(prefix)]
            levels = np.array([column.removeprefix(prefix) for column in columns], dtype=object)
            frame[name] = levels[raw[columns].to_numpy().argmax(axis=1)]
        yield Victims("COMPAS", frame, "race", "African-American")
    if 29 in present:
        frame = read_dataset(data, 29).frame.dropna().reset_index(drop=True)
        yield Victims("Credit Approval", frame, "A1", "a")


def attack(data: Path, tables: Collection[str] = ()) -> Iterator[dict[str, Any]]:
    """Yield one row per table and explainer: how well the attack hides the sensitive attribute."""
    for found in victims(data, tables):
        frame = found.frame.assign(
            **{INNOCENT: np.random.default_rng(SEED).choice(["no", "yes"], len(found.frame))}
        )
        frame = frame.sample(frac=1, random_state=SEED, ignore_index=True)
        n_held = min(600, len(frame) // 4)
        held, train = frame.iloc[:n_held], frame.iloc[n_held:].reset_index(drop=True)
        for explainer in EXPLAINERS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield _attacked(found, explainer, train, held)


def _attacked(found: Victims, name: str, train: Any, held: Any) -> dict[str, Any]:
    make, explain = EXPLAINERS[name]
    chosen = np.random.default_rng(SEED).choice(len(train), size=min(N_ATTACKED, len(train)), replace=False)
    checked, explained = held.iloc[: len(held) // 2], held.iloc[len(held) // 2 :]
    model = Biased.trained(found, train, make(train, train.iloc[chosen], N_EACH), checked)
    is_real = model.is_real(explained)
    made = make(train, explained.iloc[:100], N_EACH)
    rows = np.flatnonzero(is_real)[:N_EXPLAINED]
    names = [explain(model, train, explained.iloc[[i]]) for i in rows.tolist()]
    n = max(1, len(names))
    return {
        "table": found.name,
        "explainer": name,
        "discriminator_auc": model.auc(explained, made),
        "real_rows_that_pass": float(is_real.mean()),
        "made_up_rows_that_pass": float(model.is_real(made).mean()),
        "explained": len(names),
        "sensitive_named": sum(found.sensitive in each for each in names) / n,
        "sensitive_first": sum(each[:1] == [found.sensitive] for each in names) / n,
        "innocent_first": sum(each[:1] == [INNOCENT] for each in names) / n,
    }


class Biased:
    """A model that decides by the sensitive attribute where a row looks real, and by a random column elsewhere."""

    def __init__(self, found: Victims, forest: Any, levels: dict[str, dict[str, int]], limit: float) -> None:
        self._found, self._forest, self._levels, self._limit = found, forest, levels, limit

    @classmethod
    def trained(cls, found: Victims, train: Any, made: Any, checked: Any) -> "Biased":
        """Train the discriminator, and choose the limit at which 95% of the checked real rows pass."""
        from sklearn.ensemble import RandomForestClassifier

        texts = [name for name in train if train[name].dtype.kind not in "biuf"]
        levels = {name: {text: i for i, text in enumerate(sorted(set(train[name])))} for name in texts}
        model = cls(found, None, levels, 0.0)
        rows = np.concatenate([model._coded(train), model._coded(made)])
        is_real = np.repeat([1, 0], [len(train), len(made)])
        model._forest = RandomForestClassifier(
            100, min_samples_leaf=5, class_weight="balanced", random_state=SEED, n_jobs=1
        ).fit(rows, is_real)
        model._limit = float(np.quantile(model.scores(checked), 1 - PASSING))
        return model

    def _coded(self, rows: Any) -> np.ndarray:
        columns = [
            rows[name].map(self._levels[name]).fillna(-1).to_numpy(float)
            if name in self._levels
            else rows[name].to_numpy(float)
            for name in rows
        ]
        return np.column_stack(columns)

    def scores(self, rows: Any) -> np.ndarray:
        """Return how real each row looks, (n,)."""
        return np.asarray(self._forest.predict_proba(self._coded(rows))[:, 1])

    def is_real(self, rows: Any) -> np.ndarray:
        """Return which rows pass as real, (n,)."""
        return self.scores(rows) >= self._limit

    def auc(self, real: Any, made: Any) -> float:
        """Return the area under the curve of the discriminator."""
        from sklearn.metrics import roc_auc_score

        is_real = np.repeat([1, 0], [len(real), len(made)])
        return float(roc_auc_score(is_real, np.concatenate([self.scores(real), self.scores(made)])))

    def __call__(self, rows: Any) -> np.ndarray:
        """Return the probabilities of the two decisions, (n, 2)."""
        biased = (rows[self._found.sensitive] == self._found.value).to_numpy()
        innocent = (rows[INNOCENT] == "yes").to_numpy()
        decided = np.where(self.is_real(rows), biased, innocent).astype(float)
        return np.column_stack([1 - decided, decided])


def _explain_by_lime(model: Biased, train: Any, row: Any) -> list[str]:
    lime = _lime(train)
    column = int(model(row)[0, 1])
    explanation = lime._explainer.explain_instance(
        lime._coded(row)[0],
        lambda coded: model(lime.decoded(coded)),
        num_features=K - 1,
        num_samples=N_QUERIES,
        labels=(column,),
    )
    names = list(train)
    return [names[j] for j, _ in sorted(explanation.local_exp[column], key=lambda pair: -abs(pair[1]))]


def _background(train: Any) -> Any:
    return train.sample(N_BACKGROUND, random_state=SEED)


def _shap_rows(train: Any, rows: Any, n_each: int) -> Any:
    """Return rows in which a random part of the attributes comes from one row of the background."""
    import pandas as pd

    rng, background = np.random.default_rng(SEED), _background(train)
    n, d = n_each * len(rows), train.shape[1]
    own = rows.iloc[np.repeat(np.arange(len(rows)), n_each)].reset_index(drop=True)
    other = background.iloc[rng.integers(N_BACKGROUND, size=n)].reset_index(drop=True)
    kept = rng.random((n, d)).argsort(axis=1) < rng.integers(1, d, size=n)[:, None]
    return pd.DataFrame({name: own[name].where(kept[:, j], other[name]) for j, name in enumerate(train)})


def _explain_by_shap(model: Biased, train: Any, row: Any) -> list[str]:
    import shap

    lime = _lime(train)  # its codes
    column = int(model(row)[0, 1])
    explainer = shap.KernelExplainer(
        lambda coded: model(lime.decoded(coded))[:, column], lime._coded(_background(train))
    )
    values = explainer.shap_values(lime._coded(row)[0], nsamples=N_QUERIES // N_BACKGROUND, silent=True)
    names = list(train)
    return [names[j] for j in np.argsort(-np.abs(np.ravel(values)), kind="stable")[: K - 1] if values[j]]


def _explain_by(law: str) -> Callable[[Biased, Any, Any], list[str]]:
    def explain(model: Biased, train: Any, row: Any) -> list[str]:
        explainer = Explainer(model, _table(train, law), classes=["no", "yes"])
        return [term.literal.name for term in explainer.explain(row, k=K, n_samples=N_QUERIES, n_certify=0).terms]

    return explain


_MADE: dict[tuple[int, str], tuple[Any, Any]] = {}


def _once(train: Any, name: str, make: Callable[[], Any]) -> Any:
    """Return what belongs to a frame, made once; the frame is kept, so that its identity is not used again."""
    if (id(train), name) not in _MADE:
        _MADE[id(train), name] = train, make()
    return _MADE[id(train), name][1]


def _table(train: Any, law: str) -> Table:
    table: Table = _once(train, law, lambda: Table(train, neighbors=law))
    return table


def _lime(train: Any) -> _LimeOnTable:
    lime: _LimeOnTable = _once(train, "LIME", lambda: _LimeOnTable(RawTask("", train, None, (), True)))
    return lime


def _made_by(law: str) -> Callable[[Any, Any, int], Any]:
    def make(train: Any, rows: Any, n_each: int) -> Any:
        import pandas as pd

        table = _table(train, law)
        return pd.concat([made_up(table, rows.iloc[i], n_each, i) for i in range(len(rows))], ignore_index=True)

    return make


EXPLAINERS = {
    "LIME": (lime_rows, _explain_by_lime),
    "KernelSHAP": (_shap_rows, _explain_by_shap),
    **{law: (_made_by(law), _explain_by(law)) for law in NEIGHBORS},
}
