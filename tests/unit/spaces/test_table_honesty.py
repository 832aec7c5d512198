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
TABLE = al.Table(FRAME, literals="intervals")


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
    decided = "ABC"[at_x.argmax()]
    assert f'"{decided}" stays the predicted class in' in str(e)
    assert (f'The model predicts "{decided}"; this explains P({output}), ' in str(e)) == (output != decided)
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
    assert e.certificate.decision == "number"
    assert e.certificate.decided is None
    assert not e.parameters["probability"]


@pytest.mark.filterwarnings("ignore::anchorline.errors.SetupWarning")  # a wide range
def test_clipping_is_reported_and_does_not_affect_how_often_the_output_stays():
    frame = FRAME.assign(b=FRAME["a"] + 0.01 * FRAME["b"])
    frame.loc[0, "c"] = 3.0

    def model(rows):
        far = np.abs(rows["a"] - rows["b"]) > 0.5
        return np.where(far, 100.0, np.clip(rows["c"], -1, 1))

    e = al.Explainer(model, al.Table(frame)).explain(0, k=2, n_samples=2000)
    assert e.certificate.n_clipped_inside > 0
    assert e.verdict is al.Verdict.UNRELIABLE
    assert (
        "outputs were beyond those on the training table and clipped: the sum treats each as the nearest" in str(e)
    )
    assert "no upper limit" not in str(e)
    assert "both understated, because outputs were clipped" in e.certificate.details()
    assert "wider output_range" not in str(e)
    assert al.Explanation.from_json(e.to_json()).certificate == e.certificate
    options = {"same_within": e.parameters["same_within"], "output_range": (-1, 1)}
    narrow = al.Explainer(model, al.Table(frame), **options).explain(0, k=2, n_samples=2000)
    assert "outputs were beyond output_range and clipped" in str(narrow)
    assert "Pass a wider output_range=(lowest, highest)." in str(narrow)
    wide = al.Explainer(model, al.Table(frame), **options | {"output_range": (-1, 100)})
    wide = wide.explain(0, k=2, n_samples=2000).certificate
    assert (wide.n_clipped, wide.baseline_stability) == (0, narrow.certificate.baseline_stability)
    frontier = al.Explainer(model, al.Table(frame)).frontier(0, ks=[1], n_samples=500)
    assert "beyond those on the training table" in str(frontier)


def test_one_extreme_output_does_not_make_every_change_small():
    """A tenth of the range would be 1,000, in which all other outputs lie."""
    frame = FRAME.assign(a=np.linspace(0, 100, len(FRAME)))
    frame.loc[0, "a"] = 10_000.0
    explainer = al.Explainer(lambda rows: np.asarray(rows["a"], dtype=float), al.Table(frame), output="price")
    e = explainer.explain(len(FRAME) // 2, k=1, n_samples=1000)
    assert e.parameters["same_within"] == 9.0  # a tenth of the range of the middle 90%
    assert e.verdict is al.Verdict.UNRELIABLE
    assert "No fact is held, and the output changes by more than 9 in 3" in str(e)
    assert (
        "An output counts as unchanged if it moves by at most 9, a tenth of the range that holds the middle 90%"
        in (e.explain_itself())
    )
    own = al.Explainer(explainer.model, al.Table(frame), same_within=20_000).explain(0, k=1, n_samples=1000)
    assert own.verdict is al.Verdict.ROBUST
    assert "The output changes by more than 20000 in no neighbor drawn, even if no fact is held." in str(own)
    assert "if it moves by at most 20000, as the maker of the explanation requested." in own.explain_itself()


@pytest.mark.parametrize("distance", [-1, np.nan, "far"])
def test_a_distance_must_be_a_number(distance):
    with pytest.raises(ParameterError, match=r"same_within is .* Type same_within=1.0"):
        al.Explainer(three_classes, TABLE, same_within=distance)


def test_a_decision_has_no_distance():
    explainer = al.Explainer(three_classes, TABLE, classes=["A", "B", "C"], same_within=0.1)
    with pytest.raises(ParameterError, match="Leave same_within out"):
        explainer.explain(0)


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
