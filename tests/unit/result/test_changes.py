"""Changes as results: JSON and its schema, frames, texts, pages, pickles."""

import json
import pickle

import jsonschema
import numpy as np
import pandas as pd
import pytest

import anchorline as al
from anchorline.errors import FormatError, TamperedError
from anchorline.result.json_format import schema
from helpers.sealing import resealed

FRAME = pd.DataFrame(
    {
        "debt": np.repeat(np.arange(0, 10_000, 250), 5),
        "purpose<b>": ["car", "home", "travel", "business", "car\x1b[2J"] * 40,
        "age": np.arange(200) % 61 + 18,
    }
)


def model(frame):
    late = frame["debt"].to_numpy() >= 6500
    risk = 0.2 + 0.5 * late + 0.2 * (frame["purpose<b>"] == "business").to_numpy()
    return np.column_stack([1 - risk, risk])


EXPLAINER = al.Explainer(model, FRAME, classes=["approved", "declined"])
ROW = {"debt": 9000, "purpose<b>": "car", "age": 40}
CHANGES = EXPLAINER.changes(ROW)


def test_the_text_says_what_changes_how_surely_and_what_was_tried():
    lines = str(CHANGES).split("\n")
    assert lines[0] == "The model decides 'declined' (P(declined) = 0.7). This change gives another decision:"
    assert lines[1] == "1. debt = 6250 instead of 9000: 'approved' (P(declined) = 0.2)."
    assert lines[2] == "   debt < 6500: turns it with every training value (26 tried)."
    assert lines[-1].startswith("Tried: all ")


def test_the_option_has_its_figures():
    option = CHANGES[0]
    assert option.facts == ("debt < 6500",)
    assert option.values == {"debt": 6250}
    assert CHANGES.changed() == ROW | {"debt": 6250}
    assert option.n_facts == CHANGES.fewest == 1
    assert option.moves[0].distance == pytest.approx((9000 - 6250) / 250 / 40)
    assert option.cost == option.moves[0].distance
    assert (option.reliability.value, option.reliability.exact) == (1.0, True)
    assert option.realism.distance >= 0
    assert 0 <= option.realism.share <= 1
    assert len(CHANGES) == 1
    assert list(CHANGES) == [option]
    assert repr(CHANGES) == f"Changes(1 found, fewest facts: 1, {CHANGES.n_queries:,} queries)"


def test_json_round_trips_and_follows_the_schema():
    text = CHANGES.to_json()
    jsonschema.Draft202012Validator.check_schema(schema("changes"))
    jsonschema.validate(json.loads(text), schema("changes"))
    again = al.Changes.from_json(text)
    assert again == CHANGES
    assert hash(again) == hash(CHANGES)
    assert again.to_json() == text
    assert pickle.loads(pickle.dumps(CHANGES)) == CHANGES
    assert EXPLAINER.changes(ROW).to_json() == text


def test_changed_texts_are_refused():
    with pytest.raises(TamperedError):
        al.Changes.from_json(CHANGES.to_json().replace("6250", "6500"))
    with pytest.raises(FormatError):
        al.Changes.from_json("{}")
    with pytest.raises(FormatError, match="lacks the key"):
        al.Changes.from_json(EXPLAINER.explain(ROW, n_samples=50).to_json())
    with pytest.raises(FormatError):
        al.Explanation.from_json(CHANGES.to_json())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda body: body["options"][0]["moves"][0].update(columns=["income"]), "columns"),
        (lambda body: body["fixed"].update(debt="held"), "fixed"),
        (lambda body: body["options"][0].update(label="declined"), "goal"),
        (lambda body: body["instance"].pop(), "instance"),
        (lambda body: body["levels"][0].update(n_facts=2), "levels"),
    ],
)
def test_contradictions_are_refused_even_with_a_seal(change, words):
    body = json.loads(CHANGES.to_json())
    change(body)
    with pytest.raises(TamperedError, match=words):
        al.Changes.from_json(resealed(body))


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames_have_one_row_per_move(backend):
    frame = CHANGES.to_frame(backend)
    assert len(frame) == 1
    assert {"option", "fact", "before", "after", "reliability"} <= set(
        frame.column_names if backend == "pyarrow" else frame.columns
    )


def test_pages_escape_what_comes_from_data():
    found = EXPLAINER.changes({**ROW, "purpose<b>": "business"}, target=">= 0.95", n=1)
    assert not len(found)
    wide = EXPLAINER.changes({**ROW, "debt": 0}, target="< 0.7", n=3)
    for text in (wide.to_html(), wide._repr_html_()):
        assert "purpose<b>" not in text
        assert "purpose&lt;b&gt;" in text
        assert "<script" not in text
    assert "\x1b" not in str(EXPLAINER.changes({**ROW, "purpose<b>": "car\x1b[2J", "debt": 0}, target="< 0.7"))


def test_reports_and_frames_of_many_rows_show_changes():
    names = ["<b>a</b>", "b"]
    explainer = al.Explainer(lambda z: (z[:, 0] > 0) * 2 - 1, al.Hypercube(names))
    explanation, found = explainer.explain([1, 1], k=2), explainer.changes([1, 1])
    report = explanation.to_html(changes=found)
    assert "What would change it?" in report
    assert "&lt;b&gt;a&lt;/b&gt; = -1" in report
    assert "<b>a</b>" not in report
    assert "What would change it?" not in explanation.to_html()
    with pytest.raises(al.AnchorlineError, match="changes belong to another row"):
        explanation.to_html(changes=explainer.changes([-1, 1]))
    many = explainer.explain_many([[1, 1], [1, 0], [-1, 1]], k=2, errors="keep")
    frame = many.to_frame(changes=explainer.changes)
    assert frame["change"].fillna("").tolist() == ["<b>a</b> = -1", "", "<b>a</b> = +1"]
    assert frame["change_facts"].fillna(0).tolist() == [1, 0, 1]
    assert "change" not in many.to_frame()
