"""The comparison of changes with DiCE, on a small table."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import changes
from benchmarks.report import markdown_table


def test_our_changes_turn_decisions_and_missing_peers_are_said(data, monkeypatch):
    monkeypatch.setattr(changes, "find_spec", lambda name: None)
    rows = list(changes.compare_changes(data, [42192], n_rows=3))
    assert [row["method"] for row in rows[:3]] == ["anchorline", "anchorline, rows", "anchorline, 3 changes"]
    for row in rows[:3]:
        assert row["valid"] == row["found"] == 3
    assert [row["method"] for row in rows[3:]] == ["dice random (not installed)", "dice genetic (not installed)"]
    assert markdown_table(rows).count("\n") == 6


def test_distances_are_those_of_quantiles():
    frame = pd.DataFrame({"age": [10.0, 20.0, 30.0, 40.0], "color": np.array(list("abab"), dtype=object)})
    metric = changes.Metric(frame)
    assert metric.apart({"age": 10.0, "color": "a"}, {"age": 30.0, "color": "b"}) == {"age": 0.5, "color": 0.5}
    assert metric.nearest({"age": 40.0, "color": "a"}, leaving_out=0) == pytest.approx(0.125)
