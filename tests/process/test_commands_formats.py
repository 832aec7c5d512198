"""Rows, options and output formats of the command line."""

import json
import os

import numpy as np
import pandas as pd
import pytest

from anchorline.io import read_table
from anchorline.model.loaders import load_model
from anchorline.result.explanation import Explanation
from anchorline.result.explanations import Explanations
from helpers.command_lines import FEW, explain


def test_several_rows_as_json_lines(run_here, place, tmp_path):
    done = run_here(*explain("scorer:score", "--row", 3, "--row", 4, "--format", "json"))
    assert done.returncode == 0, done.stderr
    first, second = (Explanation.from_json(line) for line in done.stdout.splitlines())
    rows = read_table(place / "train.csv", backend="pandas").drop(columns="approved").iloc[[3, 4]]
    rows.to_csv(tmp_path / "rows.csv", index=False)
    done = run_here(*explain("scorer:score", "--rows", tmp_path / "rows.csv", "--out", tmp_path / "why.json"))
    assert done.returncode == 0, done.stderr
    again = [Explanation.from_json(line) for line in (tmp_path / "why.json").read_text().splitlines()]
    assert [e.to_json() for e in again] == [first.to_json(), second.to_json()]


@pytest.fixture
def mixed(tmp_path):
    """A folder with a table as CSV and as Feather, whose texts look like numbers, and with rows as CSV."""
    n = 60
    frame = pd.DataFrame({"code": (["007", "22", "33", "A1"] * n)[:n], "x": [i / n for i in range(n)]})
    frame["maybe"] = (["true", None, "false"] * n)[:n]
    frame.to_csv(tmp_path / "train.csv", index=False)
    frame["flag"] = [i % 3 == 0 for i in range(n)]
    frame["day"] = pd.date_range("2018-03-04", periods=n)
    frame["level"] = pd.Categorical(([1, 2, 3] * n)[:n])
    frame.to_feather(tmp_path / "train.feather")
    rows = "code,x,maybe,flag,day,level\n22,0.5,true,true,2018-03-07,1.0\n007,1,true,0,20180309,2\n"
    (tmp_path / "rows.csv").write_text(rows)
    return tmp_path


@pytest.mark.parametrize("data", ["train.csv", "train.feather"])
def test_rows_from_csv_have_the_types_of_the_training_table(run_here, mixed, monkeypatch, data):
    monkeypatch.chdir(mixed)
    options = ["--data", data, "--output", "score", "--queries", 500]
    done = run_here("explain", "scorer:coded", *options, "--rows", "rows.csv", "--format", "json")
    assert done.returncode == 0, done.stderr
    explanations = [Explanation.from_json(line) for line in done.stdout.splitlines()]
    assert [e.prediction for e in explanations] == pytest.approx([0.75, 0.3])
    assert [e.instance[:3] for e in explanations] == [("22", 0.5, "true"), ("007", 1, "true")]
    if data == "train.feather":
        days = "2018-03-07T00:00:00.000000", "2018-03-09T00:00:00.000000"
        assert [e.instance[3:] for e in explanations] == [(True, days[0], "1"), (False, days[1], "2")]
    done = run_here("batch", "rows.csv", "--model", "scorer:coded", *options, "--out", "why.parquet")
    assert done.returncode == 0, done.stderr
    assert [*Explanations.from_parquet(mixed / "why.parquet")] == explanations


def test_pages_and_pictures(run_here, tmp_path):
    done = run_here(*explain("scorer:score", "--row", 3, "--row", 4, "--out", tmp_path / "why-{row}.html"))
    assert (done.returncode, done.stdout) == (0, "")
    assert sorted(os.listdir(tmp_path)) == ["why-3.html", "why-4.html"]
    assert "<html" in (tmp_path / "why-3.html").read_text()
    done = run_here(*explain("scorer:score", "--row", 3, "--out", tmp_path / "why.png"))
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")


def test_labels_that_are_no_texts(run_here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3))).to_parquet(tmp_path / "train.parquet")
    (tmp_path / "first.py").write_text("def score(rows):\n    return rows['0']\n")
    options = ["--data", "train.parquet", "--row", 0, *FEW]
    done = run_here("explain", "first:score", *options)
    assert done.returncode == 0, done.stderr


def test_options_reach_the_explanation(run_here, place, tmp_path):
    whole = read_table(place / "train.csv", backend="pandas")
    whole[:60].to_csv(tmp_path / "reference.csv", index=False)
    options = ["--fixed", "children", "--group", "place=town; or place,note", "--cut", "net income=-1,1.5"]
    options += ["--seed", 7, "--sigma", 2, "--alternatives", 2, "--confidence", 0.9, "--time-limit", 60]
    options += ["--output", "rate [EUR]", "--output-range", 0, 1, "--threshold", 0.5, "--neighbors", "realistic"]
    options += ["--reference", tmp_path / "reference.csv", "--categorical", "children"]
    done = run_here(*explain("scorer:score", "--row", 3, "--format", "json", *options))
    assert done.returncode == 0, done.stderr
    explanation = Explanation.from_json(done.stdout.strip())
    assert dict(explanation.settings) == {
        "k": 3,
        "sigma": 2.0,
        "queries": 300,
        "seed": 7,
        "alternatives": 2,
        "confidence": 0.9,
        "time_limit": 60.0,
    }
    output = explanation.output
    assert (output.name, output.unit, output.threshold) == ("rate", "EUR", 0.5)
    assert output.choices.output_range == (0.0, 1.0)
    assert explanation.space["neighbors"] == "realistic"
    assert {fact.attribute for fact in explanation.facts} <= {"net income", "place"}
    assert explanation.queries.total <= 300


@pytest.mark.parametrize("output", ["no", "0"])
def test_a_class_is_chosen_by_its_label_or_number(run_here, place, output):
    done = run_here(*explain("model.onnx", "--row", 3, "--output", output, "--format", "json"))
    assert done.returncode == 0, done.stderr
    frame = read_table(place / "train.csv", backend="pandas").drop(columns="approved").iloc[[3]]
    assert json.loads(done.stdout)["prediction"] == load_model(place / "model.onnx")(frame)[0, 0]


@pytest.mark.parametrize("out", [None, "frontier.png", "frontier.txt"])
def test_frontier(run_here, tmp_path, out):
    more = [] if out is None else ["--out", tmp_path / out]
    done = run_here("frontier", "scorer:score", "--data=train.csv", "--row", 3, "--queries", 300, "-k", 3, *more)
    assert done.returncode == 0, done.stderr
    if out == "frontier.png":
        assert (tmp_path / out).read_bytes().startswith(b"\x89PNG")
        return
    text = done.stdout if out is None else (tmp_path / out).read_text()
    assert "typical error" in text
    assert [line.split()[0] for line in text.splitlines()[1:5]] == ["0", "1", "2", "3"]


def test_text_is_what_print_shows_and_details_are_added(run_here):
    done = run_here(*explain("scorer:score", "--row", 3))
    record = run_here(*explain("scorer:score", "--row", 3, "--format", "json"))
    explanation = Explanation.from_json(record.stdout.strip())
    assert done.stdout == f"{explanation}\n"
    assert done.stdout.startswith("Model's output: ")
    assert "\x1b" not in done.stdout
    details = run_here(*explain("scorer:score", "--row", 3, "--details"))
    assert details.stdout == f"{explanation.details()}\n"
