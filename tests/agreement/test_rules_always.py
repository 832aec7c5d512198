"""What trees are said to decide always, against every combination of values that may occur."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier

from anchorline.explainer import Explainer
from anchorline.rules.always import prover_of
from anchorline.settings import Settings
from anchorline.spaces.table import Table

MODELS = {
    "tree": lambda seed: DecisionTreeClassifier(max_depth=4, random_state=seed),
    "forest": lambda seed: RandomForestClassifier(4, max_depth=3, random_state=seed),
    "extra": lambda seed: ExtraTreesClassifier(3, max_depth=4, random_state=seed),
    "boosted": lambda seed: GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=seed),
    "histogram": lambda seed: HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=3, random_state=seed),
    "number": lambda seed: RandomForestRegressor(3, max_depth=3, random_state=seed),
}


def a_task(kind, seed):
    """Return a small table with missing values if the model takes them, a model, and a row that may be new."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 5))
    values = rng.integers(0, rng.integers(2, 6, size=d), size=(60, d)).astype(float)
    target = values @ rng.normal(size=d) + rng.normal(size=60)
    if kind == "histogram":
        values[rng.random(values.shape) < 0.1] = np.nan
    if kind != "number":
        target = np.digitize(target, np.quantile(target, [0.4, 0.7] if seed % 2 else [0.5]))
    frame = pd.DataFrame(values, columns=[f"c{j}" for j in range(d)])
    row = frame.iloc[[int(rng.integers(60))]].copy()
    if seed % 3 == 0:
        row.iloc[0, 0] = 2.5
    return frame, MODELS[kind](seed).fit(frame, target), row


def every_copy(frame, row, facts, table):
    """Return all combinations of the values of the table for which the facts are true, and the row's own."""
    columns = []
    for name in frame:
        values = frame[name]
        for fact in facts:
            if fact.column == name:
                values = values[table.is_true(fact, table.schema.columns)[_order(frame, table)]]
        columns.append(pd.unique(np.append(values, row[name])))
    return pd.DataFrame(list(itertools.product(*columns)), columns=frame.columns)


def _order(frame, table):
    """Return the place of each row of the frame among the rows of the table, which are in another order."""
    rows = [
        tuple(each) for each in np.nan_to_num(np.array(table.schema.natives.rows(np.arange(len(frame)))), nan=-1)
    ]
    places = {}
    for place, each in enumerate(rows):
        places.setdefault(each, place)
    return [places[tuple(each)] for each in np.nan_to_num(frame.to_numpy(), nan=-1)]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("seed", range(12))
def test_what_is_called_always_is_so_for_every_value(kind, seed):
    frame, model, row = a_task(kind, seed)
    table = Table(frame)
    explainer = Explainer(model, table)
    case = explainer.case(row, Settings())
    case.predictor.open(case.neighborhood.original)
    within = 0.5 if kind == "number" else None
    prover = prover_of(explainer.trees, replace(case, within=within))
    assert prover is not None
    rng, candidates = np.random.default_rng(seed), case.neighborhood.candidates
    for _ in range(12):
        views = rng.permutation(np.unique(candidates.views))[
            : int(rng.integers(0, len(np.unique(candidates.views)) + 1))
        ]
        facts = [int(rng.choice(np.flatnonzero(candidates.views == view))) for view in views]
        stated = [case.neighborhood.fact(fact) for fact in facts]
        copies = every_copy(frame, row, stated, table)
        answers, own = model.predict(copies), model.predict(row)[0]
        stays = np.abs(answers - own) <= within if within else answers == own
        found = prover.is_always(facts)
        assert found is None or found == bool(stays.all()), (stated, found)


@pytest.mark.parametrize("kind", [each for each in MODELS if each != "number"])
@pytest.mark.parametrize("seed", range(6))
def test_a_rule_that_holds_always_does(kind, seed):
    frame, model, row = a_task(kind, seed)
    table = Table(frame)
    rule = Explainer(model, table).rule(row, holds=1, k=4)
    if rule.verdict.value == "always":
        assert rule.holds.low == 1
        copies = every_copy(frame, row, rule.facts, table)
        assert (model.predict(copies) == model.predict(row)[0]).all()


@pytest.mark.filterwarnings("ignore::anchorline.errors.SetupWarning")
def test_a_stump_always_decides_by_its_fact():
    frame = pd.DataFrame({"a": np.arange(100.0), "b": np.random.default_rng(0).random(100)})
    model = DecisionTreeClassifier(max_depth=1).fit(frame, frame["a"] >= 50)
    rule = Explainer(model, Table(frame)).rule(frame.iloc[[80]])
    assert [(fact.column, fact.kind, fact.low) for fact in rule.facts] == [("a", "at_least", 50)]
    assert rule.verdict.value == "always"
    assert rule.coverage == 0.5
