"""What a notebook shows: views of setups and results, progress, and pages that leave the notebook as it is."""

import io
import re

import numpy as np
import pandas as pd
import pytest

from anchorline.batch.progress import ProgressReporter
from anchorline.explainer import Explainer
from anchorline.render.drawings import style_sheet
from anchorline.spaces.hypercube import Hypercube
from anchorline.spaces.table import Table
from anchorline.spaces.text import Text

FRAME = pd.DataFrame(
    {
        "age": [20.0, 30.5, np.nan, 60.0],
        "<b>city": ["Oslo", "Rome", "<i>", "Bern"],
        "since": pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01", "2023-05-06"]),
    }
)


def refuse(rows):
    raise AssertionError("the model is asked")


def test_a_table_shows_its_columns_and_an_explainer_its_model_without_asking_it():
    table = Table(FRAME, fixed=["since"])
    view = table._repr_html_()
    assert repr(table) == "Table(4 rows, 3 columns, 1 fixed)"
    for text in (repr(table), "20 to 60; 25% missing", "&lt;b&gt;city", "&lt;i&gt;, Bern, Oslo, ... (4)", "fixed"):
        assert text in view
    assert "<i>" not in view
    explainer = Explainer(refuse, table)
    assert "<b>Explainer</b> of refuse" in explainer._repr_html_()
    assert repr(explainer) == f"Explainer(refuse, {table!r})"
    assert "Text()" in Explainer(refuse, Text())._repr_html_()
    wide = Table(np.zeros((2, 50)) + np.arange(2)[:, None])._repr_html_()
    assert wide.count("<tr>") == 41
    assert "10 more columns" in wide


def test_a_frontier_is_shown_as_a_chart_with_its_numbers():
    frontier = Explainer(lambda z: z[:, 0] / 2 + z[:, 1] / 8, Hypercube(["a", "b"])).frontier([1, 1], ks=[1, 2])
    view = frontier._repr_html_()
    assert view.startswith('<div class="anchorline"><style>')
    assert "<svg" in view
    assert "How many facts are needed?" in view


def test_every_style_is_that_of_our_own_part_of_the_page():
    text = re.sub(r"/\*.*?\*/|@page \w+ \{.*?\}", "", style_sheet("sum.css", "page.css"), flags=re.DOTALL)
    selectors = re.findall(r"([^{}]+)\{", re.sub(r"@media[^{]+\{", "{", text))
    ours = (".anchorline", "main.anchorline", ':root:has(> head > meta[content="anchorline"])')
    found = [part.strip() for each in selectors for part in re.split(r",(?![^()]*\))", each.rpartition("}")[2])]
    assert len(found) > 50
    assert not [part for part in found if part and not part.startswith(ours)]


@pytest.mark.parametrize(("module", "is_written"), [("ipykernel.iostream", True), ("io", False)])
def test_progress_is_written_below_the_cell_of_a_notebook(module, is_written, monkeypatch):
    stream = type("OutStream", (io.StringIO,), {"__module__": module})()
    monkeypatch.setattr("sys.stderr", stream)
    reporter = ProgressReporter(2, True)
    reporter.count(False)
    reporter.count(True)
    assert ("2 of 2 rows (100%)" in stream.getvalue()) == is_written
