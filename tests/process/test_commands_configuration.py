"""The configuration file and the environment variables of `anchorline serve`."""

from types import SimpleNamespace

import pandas as pd
import pytest

from anchorline.cli.app import run
from anchorline.studio.display import Display

MODEL = """
import numpy as np

def score(rows):
    high = rows["income"].to_numpy() / 100
    return np.column_stack([1 - high, high])
"""
FILE = """
model = "scorer:score"
data = "train.csv"
target = "paid"
cases = "today.csv"
class = ["no", "yes"]
immutable = ["age"]
max-queries = 500
port = 0

[names]
income = "Yearly income"

[units]
income = "USD"

[labels]
no = "declined"
yes = "approved"

[groups]
person = ["age", "sex"]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "scorer.py").write_text(MODEL)
    columns = {"age": [30 + i % 9 for i in range(40)], "sex": ["f", "m"] * 20, "income": range(40, 80)}
    frame = pd.DataFrame(columns).assign(paid=["yes", "no"] * 20)
    frame.to_csv(tmp_path / "train.csv", index=False)
    frame.iloc[:7].to_csv(tmp_path / "today.csv", index=False)
    (tmp_path / "config.toml").write_text(FILE.replace("class =", "classes ="))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.fixture
def served(monkeypatch):
    found = []

    def prepare(explainer, **options):
        found.append((explainer, options))
        return SimpleNamespace(run=lambda: None, has_signal=False)

    monkeypatch.setattr("anchorline.studio.server.prepare", prepare)
    return found


def test_a_file_names_the_options_and_typed_ones_come_first(folder, served, monkeypatch):
    monkeypatch.setenv("ANCHORLINE_STUDIO_MAX_QUERIES", "600")
    monkeypatch.setenv("ANCHORLINE_STUDIO_QUEUE", "5")
    assert run(["serve", "--config", "config.toml", "--port", "8400"]) == 0
    explainer, given = served[0]
    assert (given["port"], given["limits"].max_queries, given["limits"].queue) == (8400, 600, 5)
    assert explainer.space.groups == {"person": ["age", "sex"]}
    names = {"names": {"income": "Yearly income"}, "units": {"income": "USD"}, "immutable": ["age"]}
    assert given["display"] == Display(**names, labels={"no": "declined", "yes": "approved"})
    assert len(given["cases"]) == 7
    assert given["truth"] == ("paid", ["yes", "no"] * 3 + ["yes"])


def test_everything_is_checked_without_serving(folder, capsys):
    assert run(["serve", "--config", "config.toml", "--check"]) == 0
    assert capsys.readouterr().out == "Everything is in order.\n"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("prot = 1", "Did you mean port?"),
        ("port = [1]", "must be one value"),
        ("port = 'x'", "port"),
        ("[names]\nnothing = 'x'", "names has 'nothing', which is not a column"),
        ("[names]\nage = 'sex'", "names has 'sex' twice"),
        ("[labels]\nmaybe = 'x'", "labels has 'maybe', which is not a class"),
        ("[units]\nage = 3", "must be a table"),
        ("[groups]\nage = 'sex'", "a list of columns"),
        ("immutable = 'height'", "immutable has 'height'"),
        ("port = ", "is not TOML"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(folder, capsys, line, says):
    head = 'model = "scorer:score"\ndata = "train.csv"\ntarget = "paid"\nclasses = ["no", "yes"]\n'
    (folder / "bad.toml").write_text(head + line)
    assert run(["serve", "--config", "bad.toml", "--check"]) == 2
    assert says in capsys.readouterr().err


def test_a_file_that_is_missing_is_told(folder, capsys):
    assert run(["serve", "--config", "nothing.toml"]) == 2
    assert "cannot be read" in capsys.readouterr().err
