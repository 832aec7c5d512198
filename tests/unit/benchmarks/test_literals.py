"""The comparison of kinds of literals: the same rows, paired with those of intervals."""

import gzip

import numpy as np
import pandas as pd
import pytest

from benchmarks import literals


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{j}": rng.normal(size=300).round(2) for j in range(4)})
    frame["target"] = np.where(frame["x0"] > 0.3, 2.0, 0.0) + frame["x1"]
    with gzip.open(tmp_path / "44024-california-housing.csv.gz", "wt") as file:
        frame.to_csv(file, index=False)
    return tmp_path


def test_every_kind_is_measured_on_the_same_rows(data, monkeypatch):
    monkeypatch.setattr(literals, "N_FRESH", 400)
    rows = list(literals.compare_literals(data, models=["boosting"], n_rows=3))
    assert [row["literals"] for row in rows] == ["intervals", "bounds", "thresholds"]
    assert rows[0]["fidelity_paired_low"] == rows[0]["fidelity_paired_high"] == 0
    for row in rows:
        assert row["proven"] == "3 of 3"
        assert row["fidelity_paired_low"] <= row["fidelity_error"] - rows[0]["fidelity_error"]
        assert row["fidelity_error"] - rows[0]["fidelity_error"] <= row["fidelity_paired_high"]
        assert row["fidelity_joint_low"] == row["fidelity_paired_low"]  # of a single pair of table and model
        assert row["candidates"] >= rows[0]["candidates"]
        assert row["median_time_over_queries"] > 1


def test_proofs_are_timed_on_raw_and_generated_tables(data, monkeypatch):
    monkeypatch.setattr(literals, "DIMENSIONS", (5,))
    monkeypatch.setattr(literals, "N_TIMED", 1)
    rows = list(literals.time_proofs(data, n_rows=2))
    assert [(row["table"], row["attributes"]) for row in rows] == [("California Housing", 4), ("generated", 5)]
    for row in rows:
        assert row["proven"] == "2 of 2"
        assert row["largest_relative_gap"] < 1e-9
        assert row["candidates"] > row["attributes"]
        assert 0 < row["median_milliseconds_bounds"] <= row["slowest_milliseconds_bounds"]


def test_rows_in_which_nothing_can_vary_are_counted_and_left_out(data, monkeypatch):
    monkeypatch.setattr(literals, "N_FRESH", 400)
    rows = list(literals.compare_on_few_columns(data, models=["boosting"], n_rows=3))
    assert [row["k"] for row in rows] == [2, 3, 4, 5]
    by_k = {row["k"]: row for row in rows}
    assert by_k[2]["nothing_varies_with_intervals"] == by_k[2]["nothing_varies_with_bounds"] == "0 of 3"
    assert by_k[2]["rows_that_vary_with_both"] == 3
    assert by_k[2]["their_paired_low"] == by_k[2]["paired_low"]
    for row in rows:
        if row["nothing_varies_with_intervals"] == "3 of 3":
            assert row["relevance_of_intervals"] == 0
            assert row["rows_that_vary_with_both"] == 0
            assert row["their_paired_low"] is None


def test_without_the_rows_in_which_nothing_can_vary():
    held, free = {"nothing_varies": True, "relevance": 0.0}, {"nothing_varies": False, "relevance": 0.25}
    other = {"nothing_varies": False, "relevance": 0.125}
    row = literals._where_varied([held, free, free], [free, other, other])
    assert (row["nothing_varies_with_intervals"], row["nothing_varies_with_bounds"]) == ("1 of 3", "0 of 3")
    assert row["rows_that_vary_with_both"] == 2
    assert row["their_relevance_lower_by_percent"] == 50
    assert row["paired_low"] < 0 < row["paired_high"]
    assert row["their_paired_high"] == -0.125
