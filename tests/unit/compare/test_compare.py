"""Comparing models: what is planted is found and named, what is the same is silent, and errors say what to do."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import anchorline as al
from anchorline.compare.models import CompareSettings, compare_models, comparing
from anchorline.compare.pairs import halves
from anchorline.errors import ParameterError, PredictorError, TamperedError
from anchorline.result.comparison import Move, Outcome
from benchmarks import compare as planted


def frame_of(n=300, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    return frame.assign(group=rng.choice(["x", "y"], n))


def linear(**weights):
    def score(rows):
        return sum(w * rows[name].to_numpy() for name, w in weights.items())

    return score


OLD, NEW = linear(a=1.0, b=1.0), linear(a=1.0, b=-1.0)


@pytest.fixture(scope="module")
def turned():
    return al.compare(OLD, NEW, frame_of(), n=40, output="score [EUR]", groups=["group"], max_decisions=0.05)


@pytest.mark.parametrize("kind", planted.KINDS)
def test_planted_differences_are_found_and_named_and_nothing_else_is(kind):
    assert sum(planted.planted(seed, kind) for seed in range(2)) == 2


def test_effects_of_additive_models_are_what_plain_means_say(turned):
    """The mean square of a column's effect is that of its distance from the pool's mean, by its weight."""
    frame = frame_of()
    by_name = {each.attribute: each for each in turned.attributes}
    for name in ("a", "b"):
        expected = float(np.sqrt(np.square(frame[name] - frame[name].mean()).mean()))
        assert by_name[name].old == pytest.approx(expected, rel=0.25)
    assert by_name["b"].move is Move.TURNED
    assert by_name["a"].move is Move.SAME
    assert by_name["a"].change < 0.15  # noise of the other column alone


def test_shares_are_those_of_the_rows(turned):
    frame = frame_of()
    old, new = OLD(frame), NEW(frame)
    low, high = np.quantile(old, (0.05, 0.95))
    expected = np.abs(old - new) > 0.1 * (high - low)
    assert turned.decisions.value == pytest.approx(expected.mean())
    for part in turned.parts:
        inside = frame["group"] == part.value
        assert part.share.value == pytest.approx(expected[inside].mean())
        assert part.share.low <= part.share.value <= part.share.high


def test_a_comparison_is_a_record_that_cannot_be_changed(turned):
    text = turned.to_json()
    assert type(turned).from_json(text) == turned
    body = json.loads(text)
    body["decisions"]["value"] = 0.0
    with pytest.raises(TamperedError):
        type(turned).from_json(json.dumps(body))
    assert (
        al.compare(OLD, NEW, frame_of(), n=40, output="score [EUR]", groups=["group"], max_decisions=0.05)
        == turned
    )


def test_gates_follow_the_limits(turned):
    assert turned.outcome is Outcome.FAILED
    assert (
        al.compare(
            OLD,
            OLD.__class__(OLD.__code__, OLD.__globals__, closure=OLD.__closure__),
            frame_of(),
            n=30,
            max_decisions=0.05,
            max_reasons=0.2,
            protect=["a"],
        ).outcome
        is Outcome.PASSED
    )
    tests = ET.fromstring(turned.to_junit())
    assert tests.get("failures") == "1"
    assert "allowed at most 5%" in tests.find("testcase/failure").get("message")


def test_an_undecided_gate_asks_more_rows_and_stays_undecided():
    old, new = linear(a=1.0), linear(a=1.0, b=0.02)
    found = al.compare(old, new, frame_of(90), n=30, max_decisions=0.01)
    assert found.decisions.low <= 0.01 < found.decisions.high
    assert found.outcome is Outcome.UNDECIDED


def test_names_from_data_stay_text_in_every_view():
    hostile = "<img src=x onerror=alert(1)>"
    frame = frame_of().rename(columns={"b": hostile})
    old = lambda rows: rows["a"].to_numpy() + rows[hostile].to_numpy()  # noqa: E731
    new = lambda rows: rows["a"].to_numpy() - rows[hostile].to_numpy()  # noqa: E731
    found = al.compare(old, new, frame, n=30, output=hostile, protect=[hostile])
    for markup in (found.to_html(), found._repr_html_(), found.to_junit()):
        assert "<img" not in markup
    ET.fromstring(found.to_junit())


def test_rules_that_the_new_model_breaks_come_with_a_copy_that_shows_it():
    frame = frame_of()

    def yes(weight):
        def ask(rows):
            return np.where(rows["a"].to_numpy() + weight * rows["b"].to_numpy() > 0, "yes", "no")

        return ask

    found = al.compare(yes(0.2), yes(1.5), frame, n=30, rules=8, task="label")
    assert found.n_rules == 8
    assert found.rules
    for rule in found.rules:
        assert rule.new.high < 0.95 <= rule.old.low
        copy = pd.DataFrame([rule.example], columns=frame.columns)
        assert yes(1.5)(copy)[0] != rule.old_decision


@pytest.mark.parametrize(
    ("arguments", "keywords", "says"),
    [
        ((OLD, NEW, frame_of(), frame_of()[["a", "b"]]), {}, "lack the column 'c'"),
        ((OLD, NEW, frame_of()), {"groups": ["age"]}, "groups has 'age'"),
        ((OLD, NEW, frame_of()), {"protect": "a"}, r"Type protect=\['a'\]"),
        ((OLD, NEW, frame_of()), {"protect": ["age"]}, "the attributes are a, b, c"),
        ((OLD, NEW, frame_of()), {"max_decisions": 2}, "max_decisions=0.02"),
        ((OLD, OLD, frame_of()), {}, "last_month, this_month"),
        ((OLD, NEW, frame_of(), frame_of(29)), {}, "29 rows to compare, but at least 30"),
        ((OLD, NEW, frame_of(), frame_of()[:0]), {}, "no rows to compare"),
        ((OLD, NEW, frame_of()), {"sigma": 0}, "Type sigma=1.0"),
        ((OLD, NEW, al.Table(frame_of())), {}, r"compare\(old, new, table, frame\)"),
        ((OLD, lambda rows: np.where(OLD(rows) > 0, "yes", "no"), frame_of()), {}, "returns scores or numbers"),
    ],
)
def test_errors_are_one_line_that_says_what_to_do(arguments, keywords, says):
    with pytest.raises(ParameterError, match=says) as error:
        al.compare(*arguments, **keywords)
    assert "\n" not in str(error.value)


def test_an_error_names_the_model_that_failed():
    def fails(rows):
        raise ValueError("no disk")

    for which, models in (("old", (fails, NEW)), ("new", (OLD, fails))):
        with pytest.raises(PredictorError, match=f"^The {which} model cannot be compared. .*no disk"):
            al.compare(*models, frame_of())


def test_classes_must_be_the_same():
    def proba(rows):
        yes = 1 / (1 + np.exp(-OLD(rows)))
        return np.column_stack([1 - yes, yes])

    class Model:
        def __init__(self, classes):
            self.classes_ = np.array(classes)

        def predict_proba(self, rows):
            return proba(rows)

        def predict(self, rows):
            return self.classes_[proba(rows).argmax(axis=1)]

    with pytest.raises(ParameterError, match="Compare models with the same classes"):
        al.compare(Model(["no", "yes"]), Model(["declined", "approved"]), frame_of())
    same = al.compare(Model(["no", "yes"]), Model(["no", "yes"]), frame_of(), n=30)
    assert not same.changed
    assert same.decisions.value == 0


def test_equal_rows_have_noise_of_their_own():
    """In a table of 16 different rows, a column that acts alike in both models is not said to act differently."""
    for seed in (8, 9):  # which failed when equal rows had equal copies
        rows = np.random.default_rng(seed).integers(0, 2, (400, 4)).astype(float)
        found = al.compare(lambda z: z.sum(axis=1), lambda z: z.sum(axis=1) + z[:, 1], rows, n=100, output="y")
        assert [each.attribute for each in found.changed] == ["x1"]


def test_rare_differences_do_not_look_like_those_of_other_attributes():
    """Few copies redraw a value at sigma 3: means of few rare numbers are mostly below those of many."""
    rng, copies = np.random.default_rng(1), 512
    agree = n = 0
    for _ in range(2000):
        donors = np.where(rng.random((1, copies)) < 0.095, 0, -1)
        first, second = halves(donors, (rng.random(copies) < 0.02).astype(float))[:, 0]
        agree, n = agree + (first * second > 0), n + (first * second != 0)
    assert n > 100
    assert abs(agree / n - 0.5) < 4 * 0.5 / np.sqrt(n)


def test_a_gate_on_an_attribute_limits_the_rise_of_its_typical_size():
    """From 1 to 1.2 is a rise by 0.2, although the root of the difference of squares is 0.66."""
    spread = np.subtract(*np.quantile(OLD(frame_of()), (0.95, 0.05)))
    found = al.compare(OLD, linear(a=1.0, b=1.1), frame_of(), n=150, protect=["b", "a"])
    gate, other = found.gates
    size = float(np.sqrt(np.square(frame_of()["b"] - frame_of()["b"].mean()).mean()))
    assert gate.most == pytest.approx(0.05 * spread)
    assert gate.figure.low <= 0.1 * size <= gate.figure.high
    assert gate.figure.value == pytest.approx(0.1 * size, abs=0.05)
    assert other.figure.low <= 0 <= other.figure.high


def test_an_estimator_is_compared_with_a_function_of_its_columns_and_1_is_1_point_0():
    frame = frame_of()[["a", "b", "c"]]
    target = (frame["a"] > 0).astype(int)
    one, other = LogisticRegression().fit(frame, target), LogisticRegression().fit(frame, target.astype(float))
    named = LogisticRegression().fit(frame, np.where(target, "yes", "no"))
    for old, new in ((one, other), (named, named.predict_proba), (named.predict_proba, named)):
        found = al.compare(old, new, frame, n=30)
        assert found.decisions.value == 0
        assert not found.changed


def test_models_that_always_differ_leave_a_gate_on_reasons_open():
    found = al.compare(OLD, lambda rows: OLD(rows) + 100, frame_of(), n=30, max_reasons=0.5, protect=["a"])
    assert found.decisions.value == 1
    assert found.reasons is None
    assert [gate.outcome for gate in found.gates] == [Outcome.UNDECIDED, Outcome.PASSED]
    assert "Of 150 rows explained, none is answered alike and has an old explanation that holds." in str(found)


def test_constant_models_and_more_rows_than_there_are():
    found = al.compare(lambda z: np.zeros(len(z)), lambda z: np.zeros(len(z)), frame_of(60), protect=["a"], n=200)
    assert found.n_explained == 60
    assert found.outcome is Outcome.PASSED
    assert not found.changed


def test_labels_have_no_output_to_read():
    def decide(weight):
        return lambda rows: np.where(rows["a"].to_numpy() + weight * rows["b"].to_numpy() > 0, "yes", "no")

    found = al.compare(decide(0.2), decide(2.0), frame_of(), n=30, task="label")
    changed = [each for each in found.rows if each.old_decision != each.new_decision]
    assert changed
    assert all((each.old, each.new) == (1.0, 0.0) for each in changed)
    assert "1.0 →" not in str(found)


def test_thresholds_have_names_for_their_sides():
    found = al.compare(OLD, NEW, frame_of(), n=30, threshold=0.5)
    assert {part.value for part in found.parts} == {"below 0.5", "at or above 0.5"}


def test_sides_of_a_threshold_of_a_probability_are_printed_as_the_classes():
    def classify(weight):
        def probabilities(rows):
            yes = 1 / (1 + np.exp(-rows["a"].to_numpy() - weight * rows["b"].to_numpy()))
            return np.column_stack([1 - yes, yes])

        return probabilities

    choices = {"classes": ["no", "yes"], "output": "yes", "threshold": 0.5}
    text = str(al.compare(classify(0.2), classify(2.0), frame_of(), n=30, **choices))
    assert "no → yes" in text
    assert "0.5" not in text.partition("by part of the rows")[2].partition("Attributes")[0]


@pytest.mark.parametrize("rules", [0, 5])
def test_progress_grows_with_every_row(rules):
    frame, ended = frame_of(), []
    settings = CompareSettings(n=30, rules=rules)
    arguments = (OLD, OLD, al.Table(frame), frame, settings, {"output": "score"})

    def noting():
        ended.append((yield from comparing(*arguments)))

    shares = list(noting())
    assert ended[0].to_json() == compare_models(*arguments).to_json()
    assert len(shares) == ended[0].n_explained + rules
    assert shares[0] == 0
    assert shares == sorted({*shares})
    assert shares[-1] == pytest.approx(1 - 1 / len(shares))


def test_a_comparison_is_checked_by_comparing_again(turned):
    assert "repeat the call of compare" in str(al.verify(turned.to_json(), OLD, frame_of()))


def test_an_effect_within_the_noise_is_not_printed_as_zero(turned):
    """What is left after the noise is taken off may be nothing, although the attribute has an effect."""
    lost = tuple(replace(each, new=0.0) if each.attribute == "b" else each for each in turned.attributes)
    text = str(replace(turned, attributes=lost))
    assert "→ too small to measure" in text
    assert "→ 0 " not in text
