"""The comparison with and without pairs: the same rows, and never a worse fit on the sample."""

import gzip

import numpy as np
import pandas as pd
import pytest

from benchmarks import pairs


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{j}": rng.normal(size=300).round(2) for j in range(4)})
    frame["target"] = 2.0 * ((frame["x0"] > 0.3) & (frame["x1"] > 0)) + frame["x2"]
    with gzip.open(tmp_path / "44024-california-housing.csv.gz", "wt") as file:
        frame.to_csv(file, index=False)
    return tmp_path


def test_every_kind_is_measured_on_the_same_rows(data, tmp_path, monkeypatch):
    monkeypatch.setattr(pairs, "N_FRESH", 400)
    monkeypatch.setattr(pairs, "MAX_DIMENSION", 0)  # training the paper's network takes too long
    (row,) = pairs.compare_pairs(data, tmp_path / "cache", n_rows=3)
    assert (row["space"], row["pairs"], row["candidates"]) == ("table", "and", "with a clear effect")
    assert row["proven"] == "3 of 3"
    assert row["largest_gap_of_the_rest"] is None
    assert row["largest_excess_on_the_sample"] <= 0
    for kind in ("fidelity", "relevance"):
        difference = row[f"{kind}_with"] - row[f"{kind}_without"]
        assert row[f"{kind}_paired_low"] <= difference <= row[f"{kind}_paired_high"]
