"""Changes as results: JSON and its schema, frames, texts, pages, pickles."""

import base64
import hashlib
import json
import pickle

import numpy as np
import pandas as pd
import pytest

from anchorline.changes.result import Changes
from anchorline.errors import FormatError, ParameterError, TamperedError
from anchorline.explainer import Explainer
from anchorline.result.explanation import Explanation
from anchorline.spaces.hypercube import Hypercube
from anchorline.spaces.regions import Image, Signal
from anchorline.spaces.text import Text
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


EXPLAINER = Explainer(model, FRAME, classes=["approved", "declined"])
ROW = {"debt": 9000, "purpose<b>": "car", "age": 40}
CHANGES = EXPLAINER.changes(ROW)


def test_the_text_says_in_one_sentence_what_changes():
    assert str(CHANGES) == (
        "The model's decision becomes approved with one change: "
        "debt 6,250 instead of 9,000 (then P(declined) = 0.20)."
    )


def test_the_details_say_how_surely_it_turns_and_what_was_tried():
    lines = CHANGES.details().split("\n")
    assert lines[0] == "Change 1, with bounds: debt < 6,500 turns it with every training value (26 tried)."
    assert lines[1].startswith(
        "Change 1: distance from the nearest training row 0.038; of real rows, the median is"
    )
    assert lines[-1].startswith("Tried: 103 of 103 changes of one fact")
    assert lines[-1].endswith(f"; {CHANGES.n_queries:,} queries.")


@pytest.mark.parametrize(
    ("wishes", "text"),
    [
        ({"target": "< 0.7"}, "P(declined) falls below 0.7 with one change: debt 6,250 instead of 9,000 (then"),
        (
            {"target": ">= 0.85"},
            "P(declined) reaches 0.85 with one change: purpose<b> business instead of car (then",
        ),
        ({"target": "-0.1"}, "P(declined) falls to 0.6 with one change: debt 6,250 instead of 9,000 (then"),
        (
            {"target": "> 0.8"},
            "P(declined) rises above 0.8 with one change: purpose<b> business instead of car (then",
        ),
        (
            {"target": ">= 0.95"},
            "No change of up to three facts to values in the table makes P(declined) reach 0.95.",
        ),
        (
            {"fixed": ["debt"]},
            "No allowed change of up to three facts to values in the table changes the model's decision.",
        ),
        ({"k": 1, "fixed": ["debt"]}, "No allowed change of one fact to a value in the table changes the model's"),
        ({"fixed": ["debt"], "queries": 40}, "None of the allowed changes tried changes the model's decision."),
        ({"examples": "rows", "k": 1}, "None of the table rows tried changes the model's decision."),
    ],
)
def test_goals_and_denials_are_short_sentences(wishes, text):
    assert str(EXPLAINER.changes(ROW, **wishes)).startswith(text)


def test_several_changes_have_a_line_each_and_rows_say_that_they_exist():
    lines = str(EXPLAINER.changes(ROW, examples="rows")).split("\n")
    assert lines[0] == "The model's decision becomes approved with any of these changes:"
    assert lines[1].startswith("  debt 4,250 instead of 9,000 and age 42 instead of 40 (then P(declined) = 0.20)")
    assert lines[-1] == "With these values, it is a row of the table."


def test_several_decisions_are_named_with_their_changes():
    def model(rows):
        return np.array(["a", "b", "c"])[np.digitize(rows["x"], [3, 6])]

    frame = pd.DataFrame({"x": np.arange(9.0), "y": np.arange(9) % 4})
    found = Explainer(model, frame, task="label").changes({"x": 4.0, "y": 1})
    assert str(found).split("\n") == [
        "The model's decision becomes another with any of these changes:",
        "  x 2 instead of 4 (then a)",
        "  x 6 instead of 4 (then c)",
    ]
    only = Explainer(model, frame, task="label").changes({"x": 4.0, "y": 1}, target="c")
    assert str(only) == "The model's decision becomes c with one change: x 6 instead of 4."


def test_a_threshold_on_a_probability_names_the_decision_and_shows_that_it_turned():
    explainer = Explainer(model, FRAME, classes=["approved", "declined"], output="declined", threshold=0.2)
    text = str(explainer.changes({**ROW, "debt": 0}, n=1, target="> 0.2"))
    assert text.startswith("P(declined) rises above 0.2 with one change: ")
    becomes = str(Explainer(model, FRAME, classes=["no", "yes"], output="yes", threshold=0.5).changes(ROW, n=1))
    assert becomes.startswith("The model's decision becomes no with one change: debt 6,250 instead of 9,000")


def test_numbers_have_their_names_and_units():
    explainer = Explainer(lambda rows: rows["debt"] / 10.0, FRAME, output="price [USD]", task="number")
    assert str(explainer.changes(ROW, target="<= 650", n=1)) == (
        "The model's price falls to 650 USD with one change: debt 6,500 instead of 9,000 (then price = 650 USD)."
    )


def test_long_decimals_are_cut_away_from_the_old_value():
    frame = pd.DataFrame({"x": np.sqrt(np.arange(40.0)), "y": 1e6 + np.arange(40) % 5 / 7})
    up = Explainer(lambda rows: rows["x"], frame, task="number", threshold=3.2)
    assert "x 3.317 instead of 1.414 (then" in str(up.changes(2, n=1))  # sqrt(11) is 3.3166
    assert "x 3.162 instead of 5.477 (then" in str(up.changes(30, n=1))  # sqrt(10) is 3.1623
    near = Explainer(lambda rows: rows["y"], frame, task="number", threshold=1e6 + 0.1)
    assert "y 1,000,000.1429 instead of 1,000,000.0000 (then output = 1,000,000.1429)" in str(near.changes(0, n=1))


def test_probabilities_near_0_are_not_printed_as_0():
    def sure(rows):
        share = np.where(rows["debt"] < 5000, 0.0013, 0.9)
        return np.column_stack([1 - share, share])

    found = Explainer(sure, FRAME, classes=["no", "yes"]).changes(ROW, n=1)
    assert str(found).endswith("(then P(yes) = 0.001).")


@pytest.mark.parametrize(
    ("share", "threshold", "says"),
    [
        (0.495831, 0.5, "(then P(yes) = 0.496)"),
        (0.46, 0.5, "(then P(yes) = 0.46)"),
        (0.5999, 0.6, "(then P(yes) = 0.5999)"),
        (0.5999995159, 0.6, "(then P(yes) is just below 0.6)"),
    ],
)
def test_a_probability_beside_the_threshold_has_the_decimals_that_show_that_it_turned(share, threshold, says):
    def near(rows):
        likely = np.where(rows["debt"] < 5000, share, 0.9)
        return np.column_stack([1 - likely, likely])

    explainer = Explainer(near, FRAME, classes=["no", "yes"], output="yes", threshold=threshold)
    assert str(explainer.changes(ROW, n=1)).endswith(f"{says}.")
    other = Explainer(lambda rows: 1 - near(rows), FRAME, classes=["no", "yes"], output="yes", threshold=0.4)
    if threshold == 0.6 and share > 0.5999:
        assert "(then P(yes) is just above 0.4)" in str(other.changes(ROW, n=1))


def test_the_two_ends_of_a_number_have_as_many_decimals():
    frame = pd.DataFrame({"x": np.arange(40) / 20, "code": ["1.1", "1.10"] * 20})
    up = Explainer(lambda rows: rows["x"] + 5 * (rows["code"] == "1.1"), frame, task="number", threshold=0.95)
    assert "x 0.95 instead of 0.90" in str(up.changes({"x": 0.9, "code": "1.10"}, fixed=["code"], n=1))
    assert "code 1.1 instead of 1.10" in str(up.changes({"x": 0.9, "code": "1.10"}, fixed=["x"], n=1))


def test_smaller_changes_are_denied_where_that_is_proven():
    explainer = Explainer(
        lambda rows: np.where((rows["debt"] < 5000) & (rows["age"] > 50), "yes", "no"), FRAME, task="label"
    )
    lines = str(explainer.changes(ROW, n=1)).split("\n")
    assert lines[0] == (
        "The model's decision becomes yes with two changes: debt 4,750 instead of 9,000 and age 51 instead of 40."
    )
    assert lines[1:] == ["No single change to a value in the table does it."]


def test_words_and_regions_go():
    bad = Explainer(
        lambda texts: np.array(["bad" if "no" in each else "good" for each in texts]), Text(), task="label"
    )
    assert str(bad.changes("no\x1b[2J way")) == 'The model\'s decision becomes good with one change: without "no".'
    image = np.zeros((8, 8))
    image[:4, :4] = 1.0
    bright = Explainer(lambda x: x[:, :4, :4].mean(axis=(1, 2)), Image("grid", 0, n_segments=4), threshold=0.5)
    assert str(bright.changes(image)) == (
        "The model's output falls below 0.5 with one change: without region 1 (top left) (then output = 0)."
    )


def test_numbers_as_labels_are_called_classes_and_units_by_their_names():
    three = Explainer(lambda texts: np.array([int("a" in each) for each in texts]), Text(), task="label")
    assert str(three.changes("a b")) == 'The model\'s decision becomes class 0 with one change: without "a".'
    assert str(three.changes("b c")) == "No change of up to three words changes the model's decision."
    assert "changes of two words, of two attributes" in three.changes("b c").details()
    signal = Explainer(lambda x: x[:, 0], Signal(4, hidden=0), threshold=-1.0)
    assert str(signal.changes(np.arange(8.0), k=1)) == (
        "No change of one stretch makes the model's output fall below -1."
    )


def test_a_page_allows_its_own_style_sheet_only():
    page = CHANGES.to_html()
    style = page.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'" in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_option_has_its_figures():
    option = CHANGES[0]
    assert option.moves[0].bound.high == 6500
    assert option.values == {"debt": 6250}
    assert CHANGES.changed() == ROW | {"debt": 6250}
    assert len(option.moves) == CHANGES.fewest == 1
    assert option.moves[0].distance == pytest.approx((9000 - 6250) / 250 / 40)
    assert option.cost == option.moves[0].distance
    assert (option.share.value, option.share.is_exact) == (1.0, True)
    assert option.realism.distance >= 0
    assert 0 <= option.realism.share <= 1
    assert len(CHANGES) == 1
    assert list(CHANGES) == [option]
    assert repr(CHANGES) == f"Changes(1 found, fewest facts: 1, {CHANGES.n_queries:,} queries)"


def test_json_and_pickles_round_trip():
    text = CHANGES.to_json()
    again = Changes.from_json(text)
    assert again == CHANGES
    assert hash(again) == hash(CHANGES)
    assert again.to_json() == text
    assert pickle.loads(pickle.dumps(CHANGES)) == CHANGES
    assert EXPLAINER.changes(ROW).to_json() == text
    with pytest.raises(TypeError):
        again.labels["debt"] = {}


def test_changed_texts_are_refused():
    with pytest.raises(TamperedError):
        Changes.from_json(CHANGES.to_json().replace("6250", "6500"))
    with pytest.raises(FormatError):
        Changes.from_json("{}")
    with pytest.raises(FormatError):
        Changes.from_json("[]")
    with pytest.raises(FormatError, match="kind is"):
        Explanation.from_json(CHANGES.to_json())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda body: body["options"][0]["moves"][0].update(columns=["income"]), "one that does not exist"),
        (lambda body: body["held"].append("debt"), "a column that is held fixed"),
        (lambda body: body["options"][0].update(decision="declined"), "does not reach the goal"),
        (lambda body: body["instance"].pop(), "The number of values of the instance"),
        (lambda body: body["levels"][0].update(n_facts=2), "The levels are not in order"),
        (lambda body: body["settings"].update(k=None, fixed=["debt"]), "a column that is held fixed"),
        (lambda body: body["options"][0].update(moves=[]), "more facts than allowed"),
    ],
)
def test_contradictions_are_refused_even_with_a_seal(change, words):
    body = json.loads(CHANGES.to_json())
    change(body)
    with pytest.raises(TamperedError, match=words):
        Changes.from_json(resealed(body))


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.pop("goal"),
        lambda body: body.update(goal={}),
        lambda body: body.update(goal=7),
        lambda body: body.update(settings={}),
        lambda body: body.update(space={}),
        lambda body: body.update(options=None),
        lambda body: body.update(instance=None),
        lambda body: body.update(n_queries="many"),
        lambda body: body["options"][0].update(share=[1]),
        lambda body: body["options"][0]["moves"][0].update(extra=1),
        lambda body: body["options"][0]["moves"][0].update(bound={"kind": "below"}),
        lambda body: body["goal"].update(kind="<", wanted="low"),
    ],
)
def test_wrong_shapes_are_refused_and_never_crash(change):
    body = json.loads(CHANGES.to_json())
    change(body)
    with pytest.raises((FormatError, TamperedError)):
        Changes.from_json(resealed(body))


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames_have_one_row_per_move(backend):
    frame = CHANGES.to_frame(backend)
    assert len(frame) == 1
    names = {"option", "attribute", "before", "after", "distance", "cost", "output", "decision", "share"}
    assert names <= set(frame.column_names if backend == "pyarrow" else frame.columns)


def test_pages_escape_what_comes_from_data():
    wide = EXPLAINER.changes({**ROW, "debt": 0}, target="< 0.7", n=3)
    for text in (wide.to_html(), wide._repr_html_()):
        assert "purpose<b>" not in text
        assert "purpose&lt;b&gt;" in text
        assert "<script" not in text


def test_control_characters_never_reach_a_terminal():
    found = EXPLAINER.changes({**ROW, "purpose<b>": "car\x1b[2J"}, target=">= 0.85")
    for text in (str(found), found.details(), found.to_html(), found._repr_html_(), repr(found)):
        assert "\x1b" not in text
    names = ["a\x1b[31m\n", "b\u202e"]
    cube = Explainer(lambda z: (z[:, 0] > 0) * 2 - 1, Hypercube(names)).changes([1, 1])
    assert str(cube).count("\n") == 0
    assert not {"\x1b", "\u202e"} & {*str(cube), *cube.details()}


def test_an_example_of_words_is_not_a_row():
    bad = Explainer(
        lambda texts: np.array(["bad" if "no" in each else "good" for each in texts]), Text(), task="label"
    )
    with pytest.raises(ParameterError, match="not a row of columns"):
        bad.changes("no way").changed()
