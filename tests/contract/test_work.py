"""A guard of speed that counts work, never seconds: nodes, queries, calls of the model and calls of functions.

A limit is what the work was when it was written, plus a tenth; of nodes a half, because rounding may add some.
A change that needs more raises it, and says why.
"""

import sys

import numpy as np
import pytest

import anchorline as al
from anchorline.search.investigate import investigate
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
    settings = Settings.from_keywords(k=k, n_samples=5000, sampling="draw", n_certify=0, keep_noise=True)
    found = investigate(al.Explainer(Counted(d), al.Hypercube()).prepare([1] * d, settings)).solution
    assert found.status.name == "OPTIMAL"
    assert found.n_nodes <= nodes


def test_the_model_is_asked_once_per_neighbor_in_few_calls():
    model = Counted(30)
    e = al.Explainer(model, al.Hypercube()).explain([1] * 30)
    assert model.rows == [1, 4096, 904, 2500, 2500]
    assert e.certificate.n_queries == sum(model.rows)


def test_a_row_of_few_samples_calls_few_functions():
    """The fixed cost of a row is that of its function calls, because its arrays are tiny."""
    cube = al.Explainer(Counted(10), al.Hypercube(), output_range=(-1, 1))
    table = al.Explainer(Counted(4), np.random.default_rng(0).normal(size=(500, 4)), output_range=(-1, 1))
    settings = {"k": 3, "n_samples": 32, "n_certify": 0}
    counts = []
    for explainer, rows in ((cube, np.random.default_rng(1).choice([-1, 1], (20, 10))), (table, range(20))):
        explainer.explain(rows[0], **settings)  # the first row does what is done once
        counts.append(np.mean([functions_called(lambda: explainer.explain(row, **settings)) for row in rows]))  # noqa: B023
    assert counts[0] <= 910
    assert counts[1] <= 1050


def test_a_sum_with_noise_is_not_proven_to_be_discarded(monkeypatch):
    """Where no fact has a clear effect, the search among all facts ends with its first guess."""
    from anchorline.search import investigate as module

    searched = []
    solve_posed = module.solve_posed
    monkeypatch.setattr(
        module,
        "solve_posed",
        lambda problem, *rest: searched.append(problem.n_literals) or solve_posed(problem, *rest),
    )
    e = al.Explainer(Counted(40), al.Hypercube()).explain([1] * 40, n_samples=64, n_certify=0)
    assert e.certificate.n_left_out > 0
    assert max(searched) < 40


def test_wide_rows_count_few_pairs(monkeypatch):
    """Of 1,200 literals, a search reads the pairs of a few."""
    from anchorline.optimize.wide import PairCounts

    counted = []
    count = PairCounts.counted
    monkeypatch.setattr(PairCounts, "counted", lambda self, *rest: counted.append(1) or count(self, *rest))
    al.Explainer(Counted(1200), al.Hypercube()).explain([1] * 1200, n_samples=2000, n_certify=0)
    assert len(counted) <= 11
