"""Verification of rules: every figure is derived again, whatever was changed is found, and honest rules hold."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier

from anchorline.explainer import Explainer
from anchorline.result.rule import Rule, RuleVerdict
from anchorline.result.verification import Outcome
from anchorline.spaces.hypercube import Hypercube
from anchorline.spaces.regions import Image, Signal
from anchorline.spaces.table import Table
from anchorline.spaces.text import Text
from anchorline.verify import verify
from helpers.sealing import changed, places_of, resealed, with_change

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, 400),
        "income": RNG.normal(40, 12, 400).round(1),
        "town": RNG.integers(0, 3, 400),
    }
)
FRAME.loc[::9, "income"] = np.nan
SCORE = FRAME["age"] / 60 - FRAME["income"].fillna(30) / 50 + (FRAME["town"] == 0) * 0.3
CLASSIFIER = HistGradientBoostingClassifier(max_iter=10).fit(FRAME, np.where(SCORE > 0.2, "late", "paid"))
REGRESSOR = RandomForestRegressor(5, random_state=0).fit(FRAME, SCORE * 100)
THREE = HistGradientBoostingClassifier(max_iter=5).fit(FRAME, np.digitize(SCORE, [-0.2, 0.3]))
NAMES = ["paid", "owner", "new", "late"]


def vote(rows):
    return 0.5 * rows[:, 0] + 0.2 * rows[:, 1] * rows[:, 2]


def chances(frame):
    return CLASSIFIER.predict_proba(frame)


def loss(frame):
    return REGRESSOR.predict(frame)


def made_rules():
    by_drawing = Explainer(chances, FRAME).rule(FRAME.iloc[3])
    of_a_number = Explainer(loss, FRAME, output="loss [EUR]").rule(FRAME.iloc[0])
    by_listing = Explainer(vote, Hypercube(NAMES), threshold=0.1, output="score").rule([1, 1, -1, 1])
    assert [rule.queries.source for rule in (by_drawing, of_a_number, by_listing)] == ["drawn", "drawn", "listed"]
    assert all(rule.facts for rule in (by_drawing, of_a_number, by_listing))
    return {
        "drawn": (by_drawing, chances, FRAME),
        "number": (of_a_number, loss, FRAME),
        "listed": (by_listing, vote, Hypercube(NAMES)),
    }


RULES = made_rules()
PLACES = places_of({name: rule for name, (rule, *_) in RULES.items()})


@pytest.mark.parametrize("name", RULES)
def test_a_rule_holds(name):
    rule, model, space = RULES[name]
    answer = verify(rule.to_json(), model, space, seed=5)
    assert answer.holds, str(answer)
    assert str(answer).startswith("The rule holds: all ")
    assert ("listed" in answer.codes) == (name == "listed")
    assert (answer.verdict is None) == (name == "listed")
    assert set(answer.fresh) <= {"holds_drawn", "holds_law", "all"}


@pytest.mark.parametrize(("name", "place"), PLACES, ids=[f"{name}-{place}" for name, place in PLACES])
def test_every_changed_figure_is_found(name, place):
    rule, model, space = RULES[name]
    lower = partial(changed, by=-1e-6)  # some figures are at most 1
    answer = verify(with_change(rule, place, lower), model, space, seed=5)
    assert not answer.holds
    assert answer.codes[0] not in ("not_confirmed", "contradicted"), "chance found it"


@pytest.mark.parametrize(
    ("model", "keywords", "settings"),
    [
        (CLASSIFIER, {"output": "paid"}, {}),
        (CLASSIFIER, {"threshold": 0.3}, {"holds": 0.9}),
        (CLASSIFIER, {"output": ("late", "paid")}, {"k": 2}),
        (CLASSIFIER, {"output_scale": "margin"}, {"sigma": 0.5}),
        (CLASSIFIER, {"task": "label"}, {"holds": None, "k": 1}),
        (THREE, {}, {"confidence": 0.9}),
        (THREE.predict_proba, {"output": 1}, {"seed": 7}),
        (REGRESSOR, {"threshold": 20}, {}),
        (REGRESSOR.predict, {"output": "loss [EUR]"}, {"within": 25}),
        (lambda array: array[:, 0] / 100, {"input": "array"}, {}),
    ],
)
@pytest.mark.parametrize("queries", ["auto", 3000])
def test_every_kind_of_output_is_verified_from_its_record(model, keywords, settings, queries):
    frame = FRAME.fillna(0)
    rule = Explainer(model, frame, **keywords).rule(frame.iloc[1], queries=queries, **settings)
    answer = verify(rule.to_json(), model, frame, seed=2)
    assert answer.outcome is Outcome.HOLDS, str(answer)
    assert Rule.from_json(rule.to_json()) == rule


@pytest.mark.parametrize(
    "options",
    [
        {"neighbors": "realistic"},
        {"groups": {"person": ["age", "income"]}, "cuts": {"age": [30]}},
        {"reference": FRAME.iloc[:50], "fixed": ["town"]},
        {"categorical": {"town": {0: "Lens", 1: "Arras", 2: "Douai"}}},
    ],
)
def test_every_option_of_a_table(options):
    rule = Explainer(CLASSIFIER, Table(FRAME, **options)).rule(FRAME.iloc[7])
    assert verify(rule.to_json(), CLASSIFIER, Table(FRAME, **options), seed=1).holds
    assert verify(rule.to_json(), CLASSIFIER, FRAME).codes == ("other_space",)


def praise(texts):
    return np.array([0.2 + 0.6 * ("good" in text) - 0.1 * ("but" in text) for text in texts])


def brightness(images):
    return np.asarray(images, dtype=float).mean(axis=tuple(range(1, np.ndim(images)))) / 255


@pytest.mark.parametrize(
    ("model", "space", "instance"),
    [
        (praise, Text(), "a good film, but long"),
        (
            praise,
            Text(),
            "a good film, but long, and with more words than anybody can list, so that some are drawn",
        ),
        (
            brightness,
            Image(segments="grid", n_segments=4),
            np.random.default_rng(0).integers(0, 255, (16, 16, 3)).astype(np.uint8),
        ),
        (lambda rows: np.abs(rows).mean(axis=1), Signal(segments=6), np.sin(np.arange(60) / 5)),
    ],
)
def test_texts_images_and_signals(model, space, instance):
    rule = Explainer(model, space, threshold=0.3).rule(instance)
    assert verify(rule.to_json(), model, space, seed=1).holds
    assert verify(rule.to_json(), model, space, instance=instance, seed=1).holds


def test_another_model_table_or_row_is_told_apart():
    rule, model, space = RULES["drawn"]
    assert verify(rule, model, space.iloc[1:]).codes == ("other_space",)
    assert verify(rule, THREE.predict_proba, space).codes[0] in ("other_model", "other_answers")
    assert verify(rule, model, space, instance=FRAME.iloc[4]).codes == ("other_instance",)
    varying = np.random.default_rng(2)
    listed, model, cube = RULES["listed"]
    answer = verify(listed, lambda rows: model(rows) + varying.normal(0, 0.3, len(rows)), cube)
    assert (answer.outcome, answer.codes) == (Outcome.CANNOT_TELL, ("varies",))


def test_rounding_of_another_machine_is_no_difference():
    rounding = np.random.default_rng(1)

    def rounded(model):
        def answers(rows):
            found = np.asarray(model(rows))
            return found * (1 + 1e-13 * rounding.standard_normal(len(rows)).reshape(-1, *[1] * (found.ndim - 1)))

        return answers

    for name in ("number", "listed"):
        rule, model, space = RULES[name]
        assert verify(rule, rounded(model), space, seed=1).holds


def test_a_rule_of_a_function_is_verified_with_the_fitted_trees():
    rule, _, space = RULES["number"]
    assert verify(rule, REGRESSOR, space, seed=1).holds


TREE = DecisionTreeClassifier(max_depth=4, random_state=0).fit(FRAME.fillna(0), SCORE > 0.2)


def hiding(change):
    """A model with the classes of the tree that does not show it, and that differs in some rows."""

    class Hiding:
        classes_ = TREE.classes_

        def predict_proba(self, rows):
            scores = TREE.predict_proba(rows)
            scores[change(rows)] = scores[change(rows)][:, ::-1]
            return scores

        def predict(self, rows):
            return self.classes_[self.predict_proba(rows).argmax(axis=1)]

    return Hiding()


def test_always_needs_the_trees_and_no_counterexample():
    frame = FRAME.fillna(0)
    rule = Explainer(TREE, frame).rule(frame.iloc[3], holds=1)
    assert (rule.verdict, rule.queries.source) == (RuleVerdict.ALWAYS, "leaves")
    assert verify(rule.to_json(), TREE, frame, seed=1).holds

    same = verify(rule.to_json(), hiding(lambda rows: np.zeros(len(rows), dtype=bool)), frame, seed=1)
    assert (same.outcome, same.codes) == (Outcome.CANNOT_TELL, ("no_leaves",))
    rare = verify(
        rule.to_json(), hiding(lambda rows: (rows["income"] == frame["income"][7]).to_numpy()), frame, seed=1
    )
    assert rare.outcome is Outcome.DOES_NOT_HOLD
    assert set(rare.codes) == {"counterexample"}
    assert "change the decision" in str(rare)


def test_facts_that_are_not_offered_are_refuted_without_trees():
    frame = FRAME.fillna(0)
    rule = Explainer(TREE, frame).rule(frame.iloc[3], holds=1)
    body = json.loads(rule.to_json())
    end = "low" if body["facts"][0]["low"] is not None else "high"
    body["facts"][0][end] -= 0.123
    answer = verify(resealed(body), hiding(lambda rows: np.zeros(len(rows), dtype=bool)), frame, seed=1)
    assert (answer.outcome, answer.codes) == (Outcome.DOES_NOT_HOLD, ("not_computed",))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("confidence", [0.95, 0.51])
def test_an_honest_rule_is_never_refuted(seed, confidence):
    """Not even at a low confidence, at which limits of honest makers are often wrong, but never by much."""
    model = (chances, loss, vote_of_many)[seed % 3]
    space = Hypercube() if model is vote_of_many else Table(FRAME)
    row = np.random.default_rng(seed).choice([-1, 1], 14) if model is vote_of_many else FRAME.iloc[seed + 20]
    rule = Explainer(model, space).rule(row, seed=seed, confidence=confidence)
    assert rule.verdict in set(RuleVerdict)
    assert verify(rule.to_json(), model, space, seed=seed).outcome is not Outcome.DOES_NOT_HOLD


def vote_of_many(rows):
    weights = np.random.default_rng(5).normal(size=14)
    return np.where(np.sin(rows @ weights / 2) > 0, "yes", "no")
