"""The benchmarks of sums of trees, on few rows of a small table."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from anchorline import Explainer, Table
from benchmarks import trees


@pytest.fixture
def tables(monkeypatch):
    """One small table and a forest on it, instead of those of the paper."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 5)), columns=list("abcde"))
    forest = RandomForestRegressor(5, max_depth=3, random_state=0)
    model = make_pipeline(StandardScaler(), forest).fit(frame, frame.a + frame.b * frame.c)
    explainers = {kind: Explainer(model, Table(frame, literals=kind)) for kind in ("intervals", "bounds")}
    for explainer in explainers.values():
        explainer.explain(0, n_certify=0)
    monkeypatch.setattr(trees, "_read_tables", lambda data: [("small", model, frame, explainers)])
    monkeypatch.setattr(trees, "N_FRESH", 500)


@pytest.mark.usefixtures("tables")
def test_leaves_give_the_same_sum_for_every_seed():
    (row,) = trees.tree_noise(None, n_rows=2, n_seeds=3)
    assert row["trees_other_facts"] == row["trees_other_numbers"] == 0
    assert row["sampling_other_numbers"] == 1


@pytest.mark.usefixtures("tables")
def test_facts_are_measured_beside_those_of_shap():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = list(trees.tree_quality(None, n_rows=2))
    assert [row["objective"] for row in rows] == ["fidelity", "fidelity", "relevance"]
    assert [row["literals"] for row in rows] == ["intervals", "bounds", "bounds"]
    for row in rows:
        assert row["rows"] == 2
        assert 0 <= row["relevance_error"] <= 1
        assert 0 <= row["shap_relevance_error"] <= 1
        assert 0 <= row["stability"] <= 1


def test_calls_take_turns():
    order = []
    calls = {"fast": (lambda: order.append("fast"), 6), "slow": (lambda: order.append("slow"), 2)}
    spent = trees._interleaved(calls, n_turns=3)
    assert order == ["fast", "slow"] * 3
    assert set(spent) == {"fast", "slow"}
    assert trees._interleaved({"too much": (lambda: False, 1)}) == {"too much": None}
