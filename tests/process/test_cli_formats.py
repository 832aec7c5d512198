"""Rows, options and output formats of the command line."""

import json
import os

import numpy as np
import pandas as pd
import pytest

from anchorline import Explanation
from anchorline.io import read_table
from anchorline.model.loaders import load_model
from anchorline.result.explanations import Explanations
from helpers.commands import FEW, explain


def test_several_rows_as_json_lines(run, place, tmp_path):
    done = run(*explain("scorer:score", "--row", 3, "--row", 4, "--format", "json"))
    assert done.returncode == 0, done.stderr
    first, second = (Explanation.from_json(line) for line in done.stdout.splitlines())
    rows = read_table(place / "train.csv", backend="pandas").drop(columns="approved").iloc[[3, 4]]
    rows.to_csv(tmp_path / "rows.csv", index=False)
    done = run(*explain("scorer:score", "--rows", tmp_path / "rows.csv", "--out", tmp_path / "why.json"))
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
def test_rows_from_csv_have_the_types_of_the_training_table(run, mixed, data):
    options = ["--data", data, "--output", "score", "--samples", 300]
    done = run("explain", "scorer:coded", *options, "--rows", "rows.csv", "--format", "json", cwd=mixed)
    assert done.returncode == 0, done.stderr
    explanations = [Explanation.from_json(line) for line in done.stdout.splitlines()]
    assert [e.prediction for e in explanations] == pytest.approx([0.75, 0.3])
    assert [e.instance[:3] for e in explanations] == [("22", 0.5, "true"), ("007", 1, "true")]
    if data == "train.feather":
        days = "2018-03-07T00:00:00.000000", "2018-03-09T00:00:00.000000"
        assert [e.instance[3:] for e in explanations] == [(True, days[0], "1"), (False, days[1], "2")]
    done = run("batch", "rows.csv", "--model", "scorer:coded", *options, "--out", "why.parquet", cwd=mixed)
    assert done.returncode == 0, done.stderr
    assert [*Explanations.from_parquet(mixed / "why.parquet")] == explanations


def test_pages_and_pictures(run, tmp_path):
    done = run(*explain("scorer:score", "--row", 3, "--row", 4, "--out", tmp_path / "why-{row}.html"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(os.listdir(tmp_path)) == ["why-3.html", "why-4.html"]
    assert "<html" in (tmp_path / "why-3.html").read_text()
    done = run(*explain("scorer:score", "--row", 3, "--out", tmp_path / "why.png"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")


def test_labels_that_are_no_texts(run, tmp_path):
    pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3))).to_parquet(tmp_path / "train.parquet")
    (tmp_path / "first.py").write_text("def score(rows):\n    return rows['0']\n")
    options = ["--data", "train.parquet", "--row", 0, *FEW]
    done = run("explain", "first:score", *options, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")


def test_options_reach_the_explanation(run):
    options = ["--fixed", "children", "--group", "place=town; or place,note", "--within", "redraw", "--seed", 7]
    options += [
        "--sigma",
        2,
        "--output",
        "rate",
        "--output-range",
        0,
        1,
        "--threshold",
        0.5,
        "--objective",
        "relevance",
        "--sampling",
        "draw",
        "--literals",
        "thresholds",
    ]
    done = run(*explain("scorer:score", "--row", 3, "--format", "json", *options))
    assert done.returncode == 0, done.stderr
    explanation = Explanation.from_json(done.stdout.strip())
    assert explanation.output == "rate"
    assert {literal.name for literal in explanation.literals} == {"net income", "place"}
    assert sum(literal.name == "net income" for literal in explanation.literals) == 3
    chosen = {name: explanation.parameters[name] for name in ("seed", "objective", "threshold", "sampling")}
    assert chosen == {"seed": 7, "objective": "relevance", "threshold": 0.5, "sampling": "draw"}
    assert list(explanation.parameters["output_range"]) == [0, 1]


def test_pairs_reach_the_explanation(run):
    done = run(*explain("scorer:score", "--row", 3, "--pairs", "and", "--format", "json"))
    assert done.returncode == 0, done.stderr
    explanation = Explanation.from_json(done.stdout)
    assert explanation.parameters["pairs"] == "and"
    assert explanation.certificate.pairs_searched is not None


def test_a_class_is_chosen(run, place):
    done = run(*explain("model.onnx", "--row", 3, "--output", "no", "--format", "json"))
    assert done.returncode == 0, done.stderr
    frame = read_table(place / "train.csv", backend="pandas").drop(columns="approved").iloc[[3]]
    assert json.loads(done.stdout)["prediction"] == load_model(place / "model.onnx")(frame)[0, 0]


@pytest.mark.parametrize("out", [None, "frontier.png", "frontier.txt"])
def test_frontier(run, tmp_path, out):
    more = [] if out is None else ["--out", tmp_path / out]
    done = run("frontier", "scorer:score", "--data=train.csv", "--row", 3, "--samples", 200, "-k", 3, *more)
    assert (done.returncode, done.stderr) == (0, "")
    if out == "frontier.png":
        assert (tmp_path / out).read_bytes().startswith(b"\x89PNG")
        return
    text = done.stdout if out is None else (tmp_path / out).read_text()
    assert "relevance error" in text
    assert [line.split()[0] for line in text.splitlines()[1:4]] == ["1", "2", "3"]
