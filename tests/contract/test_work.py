"""A guard of speed that counts work, never seconds: nodes, queries, calls of the model and calls of functions.

A limit is what the work was when it was written, plus a tenth; of nodes a half, because rounding may add some.
A change that needs more raises it, and says why.
"""

import sys

import numpy as np
import pytest

import anchorline as al
from anchorline.optimize.choose import best_sum
from anchorline.settings import Settings


class Counted:
    """A random network that counts its calls and rows."""

    def __init__(self, d, seed=0):
        rng = np.random.default_rng(seed)
        self.weights = rng.normal(size=(20, d)) / np.sqrt(d)
        self.outputs = rng.normal(size=20) / 3
        self.rows = []

    def __call__(self, z):
        self.rows.append(len(z))
        return np.tanh(np.tanh(np.asarray(z) @ self.weights.T) @ self.outputs)


def functions_called(call):
    """How many functions of anchorline a call enters."""
    n, before = 0, sys.getprofile()

    def note(frame, event, argument):
        nonlocal n
        n += event == "call" and frame.f_globals.get("__name__", "").startswith("anchorline.")

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return n


@pytest.mark.parametrize(("d", "k", "nodes"), [(20, 5, 12), (100, 5, 14), (300, 8, 26)])
def test_a_proof_takes_few_nodes(d, k, nodes):
    found = []

    def choose(moments, k, limits):
        found.append(best_sum(moments, k, limits))
        return found[-1]

    explainer = al.Explainer(Counted(d), al.Hypercube())
    assert explainer.explain_with([1] * d, Settings(k=k), choose=choose).is_proven
    assert found[-1].n_nodes <= nodes


def test_the_model_is_asked_once_per_neighbor_in_few_calls():
    model = Counted(30)
    e = al.Explainer(model, al.Hypercube(), threshold=0.0).explain([1] * 30)
    assert model.rows[:2] == [1, 2000]
    assert len(model.rows) <= 14
    assert e.queries.total == sum(model.rows)


def test_a_row_of_few_samples_calls_few_functions():
    """The fixed cost of a row is that of its function calls, because its arrays are tiny."""
    cube = al.Explainer(Counted(10), al.Hypercube(), output_range=(-1, 1))
    table = al.Explainer(Counted(4), np.random.default_rng(0).normal(size=(500, 4)), output_range=(-1, 1))
    counts = []
    for explainer, rows in ((cube, np.random.default_rng(1).choice([-1, 1], (20, 10))), (table, range(20))):
        explainer.explain(rows[0], k=3, queries=32)  # the first row does what is done once
        calls = [functions_called(lambda: explainer.explain(row, k=3, queries=32)) for row in rows]  # noqa: B023
        counts.append(float(np.mean(calls)))
    assert counts[0] <= 680, counts
    assert counts[1] <= 730, counts
