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
