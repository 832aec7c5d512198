"""Values that no training row has are accepted, and the explanation names them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import anchorline as al
from anchorline.render.terminal import table as terminal_table

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, 100),
        "vehicle": RNG.choice(["car", "bus"], 100),
        "bought": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, 100), unit="D"),
        "id": np.arange(100),
    }
)
FRAME.loc[0, ["age", "vehicle"]] = [79, "car"]
ROW = {"age": 40, "vehicle": "bus", "bought": "2021-03-04", "id": 5}
FEW = {"k": 2, "n_samples": 200, "n_certify": 200}


def score(rows):
    return np.asarray(rows["age"], dtype=float) / 1000


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas])
@pytest.mark.parametrize(
    ("changes", "unseen"),
    [
        ({}, {}),
        ({"age": 79}, {}),
        ({"age": 900}, {"age": "900 is above every training value (highest: 79)"}),
        ({"age": -1}, {"age": "-1 is below every training value (lowest: 18)"}),
        ({"vehicle": "spaceship"}, {"vehicle": "no training row has 'spaceship'"}),
        ({"vehicle": None}, {"vehicle": "no training row lacks a value"}),
        ({"id": 900}, {}),
    ],
)
def test_a_new_value_is_named(convert, changes, unseen):
    table = al.Table(convert(FRAME), fixed=["id"])
    e = al.Explainer(score, table, output_range=(-0.1, 1)).explain_with(
        ROW | changes, al.settings.Settings.from_keywords(**FEW)
    )
    assert dict(e.unseen) == unseen
    assert al.Explanation.from_json(e.to_json()) == e
    assert ('"unseen"' in e.to_json()) == bool(unseen)
    assert e.verify(score, table, seed=1).holds


def test_a_date_after_all_others_is_named():
    assert "2030-01-01 is above" in al.Table(FRAME).at(ROW | {"bought": "2030-01-01"}).unseen["bought"]


def test_every_text_of_the_explanation_says_so():
    explainer = al.Explainer(score, al.Table(FRAME), output_range=(-0.1, 1))
    e = explainer.explain_with(ROW | {"vehicle": "<b>", "age": 900}, al.settings.Settings.from_keywords(**FEW))
    assert "unlike the training table. age: 900 is above every training value" in str(e)
    assert "unlike the training table" in terminal_table(e, width=200)
    assert "no training row has '&lt;b&gt;'" in e.to_html().replace("&#x27;", "'")
    assert "unlike" not in str(explainer.explain_with(1, al.settings.Settings.from_keywords(**FEW)))


def test_training_rows_are_like_the_table():
    table = al.Table(FRAME)
    assert not any(table.at(row).unseen for row in range(100))
