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

    def prepare(model, **options):
        found.append((model, options))
        return SimpleNamespace(run=lambda: None, has_signal=False)

    monkeypatch.setattr("anchorline.studio.server.prepare", prepare)
    return found


def test_a_file_names_the_options_and_typed_ones_come_first(folder, served, monkeypatch):
    monkeypatch.setenv("ANCHORLINE_STUDIO_MAX_QUERIES", "600")
    monkeypatch.setenv("ANCHORLINE_STUDIO_QUEUE", "5")
    assert run(["serve", "--config", "config.toml", "--port", "8400"]) == 0
    model, given = served[0]
    assert (given["port"], given["limits"].max_queries, given["limits"].queue) == (8400, 600, 5)
    assert model.explainer.space.groups == {"person": ["age", "sex"]}
    names = {"names": {"income": "Yearly income"}, "units": {"income": "USD"}, "immutable": ["age"]}
    assert model.display == Display(**names, labels={"no": "declined", "yes": "approved"})
    assert len(model.cases) == 7
    assert model.truth == ("paid", ["yes", "no"] * 3 + ["yes"])


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


SEVERAL = """
port = 0
data = "train.csv"
target = "paid"

[[model]]
name = "loans"
title = "Car loans"
model = "scorer:score"
classes = ["no", "yes"]
immutable = ["age"]
groups.person = ["age", "sex"]

[model.names]
income = "Yearly income"

[[model]]
name = "numbers"
model = "scorer:number"
task = "number"
output-range = [0, 1]
"""


@pytest.fixture
def several(folder):
    with (folder / "scorer.py").open("a") as file:
        file.write("\ndef number(rows):\n    return rows['income'].to_numpy() / 100\n")
    (folder / "several.toml").write_text(SEVERAL)
    return folder


def test_a_file_has_several_models(several, served, monkeypatch):
    """The first options hold for all, unless a model says otherwise or it is typed."""
    monkeypatch.setenv("ANCHORLINE_STUDIO_QUEUE", "5")
    assert run(["serve", "--config", "several.toml", "--threshold", "0.4"]) == 0
    models, given = served[0]
    assert (given["port"], given["limits"].queue) == (0, 5)
    loans, numbers = models["loans"], models["numbers"]
    assert (loans.name, numbers.name) == ("Car loans", "numbers")
    assert loans.display == Display(names={"income": "Yearly income"}, immutable=["age"])
    assert numbers.display == Display()
    assert (loans.explainer.space.groups, numbers.explainer.space.groups) == ({"person": ["age", "sex"]}, {})
    assert (loans.explainer.target.classes, numbers.explainer.target.task) == (("no", "yes"), "number")
    assert [each.explainer.threshold for each in models.values()] == [0.4] * 2
    assert [each.truth[0] for each in models.values()] == ["paid"] * 2


def test_every_model_is_checked(several, capsys):
    assert run(["serve", "--config", "several.toml", "--check"]) == 0
    assert capsys.readouterr().out == "Everything is in order.\n"
    (several / "several.toml").write_text(
        SEVERAL.replace('"scorer:score"', '"scorer:nothing"') + 'cases = "nowhere.csv"'
    )
    assert run(["serve", "--config", "several.toml", "--check"]) == 3
    said = capsys.readouterr().err
    assert "Model 'loans': " in said
    assert "Model 'numbers': 'nowhere.csv'" in said


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("model = []", "has no model. Add [[model]]"),
        ("model = [1]", "Model 1 in 'bad.toml' has no name. Type, below [[model]], name = \"loans\""),
        ("[[model]]\nmodel = 'scorer:score'", "Model 1 in 'bad.toml' has no name"),
        ("[[model]]\nname = 'Car loans'", 'Type, for example, name = "car-loans"'),
        ("[[model]]\nname = 'a'\n[[model]]\nname = 'a'", "two models with the name 'a'. Rename one of them."),
        ("[[model]]\nname = 'a'\nport = 1", "Write it above the first [[model]]."),
        ("[[model]]\nname = 'a'\naudit-log = 'x'", "audit-log is an option of the server"),
        ("[[model]]\nname = 'a'\ntoken = 'x'", "Set ANCHORLINE_STUDIO_TOKEN instead."),
        ("[[model]]\nname = 'a'\nprot = 1", "has the key 'prot', which is not an option."),
        ("[[model]]\nname = 'a'\n[names]\nincome = 'x'", "Write [model.names] below its [[model]]."),
        ("[[model]]\nname = 'a'\n[groups]\nb = ['x']", "Write [model.groups] below its [[model]]."),
        ("[[model]]\nname = 'a'", "Model 'a': `anchorline serve` needs"),
        ("[[model]]\nname = 'a'\nmodel = 'scorer:score'\ndata = 'train.csv'\nthreshold = 'x'", "threshold"),
    ],
)
def test_what_is_wrong_with_several_models_is_told(folder, capsys, text, says):
    (folder / "bad.toml").write_text(text)
    assert run(["serve", "--config", "bad.toml", "--check"]) == 2
    assert says in capsys.readouterr().err


def test_one_model_is_not_typed_beside_several(several, capsys):
    assert run(["serve", "scorer:score", "--config", "several.toml", "--check"]) == 2
    assert "has several models, and another one is given. Leave out one of them." in capsys.readouterr().err
