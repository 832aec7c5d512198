"""Explanations of every kind, made honestly, hold: `verify` accuses nobody."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor

import anchorline as al
from anchorline.result.verification import Outcome

D = 14
RNG = np.random.default_rng(0)
INPUTS = pd.DataFrame({"a": RNG.normal(size=300), "b": RNG.normal(size=300), "c": RNG.integers(0, 3, 300)})
TARGET = INPUTS["a"] + INPUTS["b"] * (INPUTS["c"] > 0)
FOREST = RandomForestClassifier(10, max_depth=4, random_state=0).fit(INPUTS, TARGET > 0)
BOOSTED = GradientBoostingClassifier(n_estimators=10, random_state=0).fit(INPUTS, TARGET > 0)
REGRESSOR = RandomForestRegressor(10, max_depth=4, random_state=0).fit(INPUTS, TARGET)
WEIGHTS = np.random.default_rng(1).normal(size=(D, 5)) / 3


def smooth(rows):
    return np.tanh(np.tanh(rows @ WEIGHTS[: rows.shape[1]]) @ [1.0, -1.0, 0.5, 0.5, -0.7])


def label(rows):
    return np.where(smooth(rows) > 0, "yes", "no")


def on_cube(model, d=D, choices=None, **settings):
    x = np.random.default_rng(2).choice([-1, 1], d)
    return model, al.Hypercube(), lambda seed: x, choices or {}, settings


def on_table(model, choices=None, table=None, **settings):
    return model, al.Table(INPUTS, **table or {}), lambda seed: INPUTS.iloc[seed], choices or {}, settings


KINDS = {
    "numbers": on_cube(smooth),
    "threshold": on_cube(smooth, choices={"threshold": 0.1}),
    "labels": on_cube(label, choices={"task": "label"}),
    "listed": on_cube(smooth, d=8),
    "alternatives": on_cube(smooth, alternatives=3),
    "few": on_cube(smooth, choices={"threshold": 0.1}, queries=100),
    "classes": on_table(BOOSTED),
    "realistic": on_table(BOOSTED, table={"neighbors": "realistic"}),
    "margins": on_table(BOOSTED, {"output_scale": "margin"}),
    "another class": on_table(FOREST, {"output": False}),
    "leaves": on_table(FOREST),
    "regression": on_table(REGRESSOR),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_honest_explanation_holds(kind):
    """It may stay open where the truth lies next to one of the limits, so several seeds are tried."""
    model, space, row, choices, settings = KINDS[kind]
    outcomes = []
    for seed in range(3):
        e = al.Explainer(model, space, **choices).explain(row(seed), seed=seed, **settings)
        outcomes.append(al.verify(e.to_json(), model, space, seed=seed).outcome)
    assert Outcome.DOES_NOT_HOLD not in outcomes
    assert outcomes.count(Outcome.HOLDS) >= 2
