"""A certificate states about a table only what is true of the model."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

import anchorline as al
from anchorline.errors import BudgetError, ParameterError, PredictorOutputError
from anchorline.settings import Settings

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(400, 4)), columns=list("abcd"))
TABLE = al.Table(FRAME)


def three_classes(rows):
    """Return probabilities of three classes: A and B compete, C is improbable."""
    a = rows["a"].to_numpy()
    scores = np.exp(np.column_stack([a, -a, np.full(len(a), -2.5)]))
    return scores / scores.sum(axis=1, keepdims=True)


def share_unchanged(answers, at_x):
    return float((answers.argmax(axis=1) == at_x.argmax()).mean())


@pytest.mark.parametrize("output", ["A", "B", "C"])
def test_of_any_class_the_decision_is_which_one_is_most_probable(output):
    explainer = al.Explainer(three_classes, TABLE, classes=["A", "B", "C"], output=output)
    e = explainer.explain(0, k=1, n_samples=500, n_certify=8000)
    at_x = three_classes(FRAME[:1])[0]
    assert e.certificate.decision == ("own class" if output == "ABC"[at_x.argmax()] else "class")
    neighborhood = TABLE.at(0)
    rng = np.random.Generator(np.random.Philox(5))
    flips = rng.random((8000, 4)) < e.parameters["flip_probability"]
    flips[:, e.support] = False
    share = share_unchanged(three_classes(neighborhood.realize(flips, rng)), at_x)
    assert e.certificate.stability.low - 0.01 <= share <= e.certificate.stability.high + 0.01
    assert "the predicted class stays the same" in str(e)
    assert "predicted class" in e.as_rule()


def test_scores_that_add_up_to_one_by_chance_are_no_probabilities():
    at_x = FRAME["a"].iloc[0]

    def scores(rows):
        return np.column_stack([rows["a"].to_numpy() * 0 + 0.3, 0.7 + rows["a"].to_numpy() - at_x])

    with pytest.raises(PredictorOutputError, match="not everywhere"):
        al.Explainer(scores, TABLE).explain(0, n_samples=500)


def test_several_numbers_are_no_classes():
    many = RandomForestRegressor(3, random_state=0).fit(FRAME, np.column_stack([FRAME["a"] > 0, FRAME["a"] <= 0]))
    with pytest.raises(ParameterError, match="Pass column="):
        al.Explainer(many, TABLE).explain(0)
    e = al.Explainer(many, TABLE, column=1).explain(0, n_samples=500)
    assert e.certificate.decision is None
    assert e.certificate.stability is None
    assert not e.parameters["probability"]


@pytest.mark.filterwarnings("ignore::anchorline.errors.SetupWarning")  # a wide range
def test_clipping_while_the_reasons_stay_is_reported_and_never_trustworthy():
    frame = FRAME.assign(b=FRAME["a"] + 0.01 * FRAME["b"])
    frame.loc[0, "c"] = 3.0

    def model(rows):
        far = np.abs(rows["a"] - rows["b"]) > 0.5
        return np.where(far, 100.0, np.clip(rows["c"], -1, 1))

    e = al.Explainer(model, al.Table(frame)).explain(0, k=2, n_samples=2000)
    assert e.certificate.n_clipped_inside > 0
    assert e.verdict is al.Verdict.UNDECIDED
    assert "the output moves further than reported here" in str(e)
    assert "outputs were beyond those on the training table and clipped" in str(e)
    assert "wider output_range" not in str(e)
    assert al.Explanation.from_json(e.to_json()).certificate == e.certificate
    narrow = al.Explainer(model, al.Table(frame), output_range=(-1, 1)).explain(0, k=2, n_samples=2000)
    assert "outputs were beyond output_range and clipped" in str(narrow)
    assert "Pass a wider output_range=(lowest, highest)." in str(narrow)
    frontier = al.Explainer(model, al.Table(frame)).frontier(0, ks=[1], n_samples=500)
    assert "beyond those on the training table" in str(frontier)
    wide = al.Explainer(model, al.Table(frame), output_range=(-1, 100)).explain(0, k=2, n_samples=2000)
    assert wide.certificate.n_clipped_inside == 0
    assert wide.verdict is al.Verdict.UNRELIABLE


@pytest.mark.filterwarnings("ignore::anchorline.errors.SetupWarning")  # a model of one class
def test_facts_that_do_not_matter_are_said_not_to():
    def steady(rows):
        p = 0.02 + 0.01 * np.tanh(rows["c"].to_numpy())
        return np.column_stack([p, 1 - p])

    assert "cannot be distinguished: the facts may not matter" in str(
        al.Explainer(steady, TABLE).explain(0, k=2, n_samples=2000)
    )


def test_redraw_says_that_a_value_is_kept_where_there_is_nothing_to_draw():
    table = al.Table(FRAME, cuts={"a": [-10, 10]}, within="redraw")
    row = dict(FRAME.iloc[0]) | {"a": 60.0}
    literal = next(literal for literal in table.at(row).literals if literal.name == "a")
    assert literal.text == "a >= 10"
    assert literal.held == "a keeps its value 60"


def test_learning_the_range_is_no_way_around_max_queries():
    batch_sizes = []

    def model(rows):
        batch_sizes.append(len(rows))
        return rows["a"].to_numpy() * 10

    explainer = al.Explainer(model, TABLE)
    with pytest.raises(BudgetError, match="output_range"):
        explainer.explain(0, max_queries=200, n_samples=100)
    assert sum(batch_sizes) == 1
    assert explainer.learn_range() == (FRAME["a"].min() * 10, FRAME["a"].max() * 10)
    batch_sizes.clear()
    e = explainer.explain(0, max_queries=200, n_samples=100)
    assert sum(batch_sizes) == e.certificate.n_queries <= 200


@pytest.mark.parametrize(("name", "value"), [("probability", True), ("threshold", 0.5), ("column", 0)])
def test_verify_believes_no_parameter(name, value):
    """An explanation that was recomputed with one forged parameter does not hold, although its hash is valid."""

    def model(rows):
        return np.tanh(np.asarray(rows["a"] if hasattr(rows, "columns") else rows[:, 0]))

    explainer = al.Explainer(model, TABLE, output="default", output_range=(-1, 1))
    e = explainer.explain(0, k=2, n_samples=300)
    forged = {**e.parameters, name: value}
    again = explainer.explain_with(list(e.instance), Settings.from_dict(e.parameters), forged)
    assert not al.verify(again.to_json(), model, TABLE).holds


def test_a_model_that_needs_frames_gets_advice_on_what_to_type():
    class Picky:
        n_features_in_ = 4

        def predict(self, rows):
            return rows["a"]

    with pytest.raises(al.AnchorlineError, match="input='frame'"):
        al.Explainer(Picky(), TABLE).explain(0)
