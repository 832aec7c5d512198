"""The table of what explainers of trees can explain."""

import numpy as np
import pytest

from benchmarks import tree_support
from benchmarks.tree_support import Form


def test_we_read_every_case(monkeypatch):
    monkeypatch.setattr(tree_support, "N_EXPLAINED", 4)
    monkeypatch.setattr(tree_support, "PEERS", {"no_such_package": None})
    rows = list(tree_support.tree_support())
    assert [row["anchorline"] for row in rows] == ["adds up"] * 11
    assert {row["no_such_package"] for row in rows} == {"not installed"}


@pytest.mark.parametrize(
    ("total", "outcome"),
    [
        (lambda form, rows: form.model.predict(rows), "adds up"),
        (lambda form, rows: form.model.predict(rows) + 10.0, "off by 1000% of the range"),
        (lambda form, rows: 1 / 0, "refuses (ZeroDivisionError: division by zero)"),
    ],
)
def test_outcomes(total, outcome):
    class Line:
        def predict(self, rows):
            return np.linspace(0, 1, len(rows))

    import pandas as pd

    form = Form(Line(), pd.DataFrame({"a": np.arange(30.0)}))
    assert tree_support._outcome("numpy", total, [form]) == outcome
