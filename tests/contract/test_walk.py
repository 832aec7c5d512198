"""One explanation goes straight through the rooms: calls and returns seldom lead from one room to another."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import anchorline as al
from benchmarks.structure import switches

ROWS = np.random.default_rng(0).normal(size=(200, 5))
FOREST = RandomForestRegressor(5, max_depth=4, random_state=0).fit(ROWS, ROWS[:, 0] + ROWS[:, 1] * ROWS[:, 2])


def weigh(rows):
    return rows @ [3.0, 2.0, 1.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("model", "space", "most"),  # the switches of the day it was written, plus a fifth
    [
        (weigh, al.Table(ROWS), 250),
        (weigh, al.Table(ROWS, neighbors="realistic"), 340),
        (FOREST, al.Table(ROWS), 230),
        (lambda z: z[:, 0] / 2 - z[:, 1] * z[:, 2] / 4, al.Hypercube(), 250),
    ],
    ids=["table", "realistic", "leaves", "hypercube"],
)
def test_one_explanation_seldom_changes_rooms(model, space, most):
    explainer = al.Explainer(model, space)
    first, second = (ROWS[0], ROWS[1]) if isinstance(space, al.Table) else ([-1] * 30, [1] * 30)
    explainer.explain(first, k=4)  # once per explainer: imports, checks of the setup, trees of the model
    assert switches(lambda: explainer.explain(second, k=4), "anchorline") <= most
