"""What was tested, in words: the values of neighbors, the case itself, cut-offs, and requested errors."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import anchorline as al
from anchorline.optimize.problem import Status
from anchorline.render.neighbors import case_values, mean_over_neighbors, neighbor_sentence, values_sentence
from anchorline.render.text import on_the_sample
from anchorline.search.sampling import cancelling_event
from anchorline.settings import Settings


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    columns = {
        "age": rng.integers(20, 70, 400),
        "debt": rng.integers(0, 99, 400),
        "late": rng.integers(0, 30, 400),
    }
    return pd.DataFrame(columns).assign(city=rng.choice(["Rome", "Oslo"], 400))


def score(rows):
    return (
        np.asarray(rows["age"]) / 70 - np.asarray(rows["debt"]) / 99 + 0.2 * (np.asarray(rows["city"]) == "Rome")
    )


def explained(frame, row=7, **table):
    return al.Explainer(score, al.Table(frame, **table), output="score").explain(row, k=4)


def test_held_values_are_named_and_others_were_not_tested(frame):
    e = explained(frame, literals="intervals")
    assert e.certificate.keeps_values
    intervals = [term.literal.text for term in sorted(e.terms, key=lambda term: term.index)]
    untested = [text for text in intervals if not text.startswith("city = ")]
    assert len(untested) == 2
    assert values_sentence(e) == f"Other values with {' or '.join(untested)} were not tested."
    assert values_sentence(e) in str(e)
    assert values_sentence(e) in e.to_html()
    assert f"age stays {frame['age'][7]}" in e.as_rule()


def test_bounds_say_how_many_neighbors_keep_the_values(frame):
    middle = int(((frame["age"] - 45).abs() + (frame["debt"] - 50).abs()).argmin())
    e = explained(frame, middle, literals="bounds")
    assert not e.certificate.keeps_values
    case = al.Explainer(score, al.Table(frame, literals="bounds"), output="score").prepare(
        middle, Settings.from_keywords(k=4)
    )
    flips = case.stream_inside(cancelling_event(e.scaled, case.law), "test", 40_000)
    draws, _ = flips.rows(0, 40_000)
    draws = draws[draws.any(axis=1)]  # neighbors differ from the case
    names = [column for column in frame if any(term.literal.name == column for term in e.terms)]
    unchanged = ~draws[:, [list(frame).index(name) for name in names]].any(axis=1)
    stated = int(values_sentence(e).partition("at least ")[2].partition("%")[0])
    assert stated / 100 <= unchanged.mean() + 0.01
    assert stated / 100 == pytest.approx(unchanged.mean(), abs=0.02)
    assert "the values behind them are those of this case. Other values with " in values_sentence(e)
    assert e.certificate.keeps_some
    n = len(e.terms)
    assert (
        f"While the values behind these {n} facts stay or move to other intervals in which the facts hold,"
        in str(e)
    )


def test_a_bound_is_tested_beyond_the_interval_of_the_own_value():
    """Training values in the case's own interval are never drawn, and neither rule nor sentence claims them."""
    rows = pd.DataFrame({"age": np.repeat(np.arange(50.0), 2) * 2, "city": ["Rome", "Oslo"] * 50})
    table = al.Table(rows, literals="bounds", cuts={"age": [30, 60]})
    e = al.Explainer(lambda x: np.where(np.asarray(x["age"]) < 60, 1.0, 0.0), table, output="young").explain(
        47, k=2
    )
    assert [term.literal.text for term in e.terms] == ["age < 60"]
    assert "age stays 46 or is below 30" in e.as_rule()
    assert values_sentence(e).endswith("Other values with 30 <= age < 60 were not tested.")


def test_nothing_is_said_about_values_that_were_not_measured(frame):
    e = al.Explainer(score, al.Table(frame), output="score").explain(7, n_certify=0)
    assert values_sentence(e) == ""


def test_the_values_of_a_case_that_is_drawn_anew_are_shown(frame):
    for e in (explained(frame, within="redraw"), explained(frame, groups={"money": ["debt", "late"]})):
        copy = al.Explanation.from_json(e.to_json())
        assert copy.values == e.values
        shown = case_values(copy)
        assert shown["age"] == str(frame["age"][7])
        assert str(frame["debt"][7]) in (shown.get("debt") or shown["money"])
        assert f">{frame['age'][7]}<" in e.to_html()
    assert case_values(e)["money"] == f"debt = {frame['debt'][7]}, late = {frame['late'][7]}"


def test_false_values_do_not_verify(frame):
    e = explained(frame, within="redraw")
    assert e.verify(score, al.Table(frame, within="redraw")).outcome.value == "holds"
    assert "also those that stay in their interval" in neighbor_sentence(e)
    assert values_sentence(e) == ""  # values change while the facts hold
    forged = dataclasses.replace(e, values=dict(e.values) | {"age": "18"})
    reasons = forged.verify(score, al.Table(frame, within="redraw")).reasons
    assert any(reason.startswith("values[age] is stated as '18'") for reason in reasons)


def test_a_neighbor_differs_from_the_case():
    e = al.explain(lambda z: z[:, 0] / 2, [1] * 6)
    assert neighbor_sentence(e) == (
        "A neighbor is this case with each of its 6 values reversed with probability 27%, independently of each "
        "other, and at least one reversed."
    )
    assert neighbor_sentence(al.explain(lambda z: z[:, 0] / 2, [1])) == (
        "A neighbor is this case with its value reversed with probability 27%."
    )


def test_values_that_are_drawn_anew_may_be_the_same(frame):
    e = explained(frame, draw="marginal")
    assert neighbor_sentence(e).endswith(
        "each of its 4 values drawn anew with probability 27%, independently of each other, and at least one "
        "drawn anew; new values are those of any training row, and may be the same."
    )
    assert e.verify(score, al.Table(frame, draw="marginal")).outcome.value == "holds"
    assert "may be the same" not in neighbor_sentence(explained(frame))


def test_the_mean_of_so_few_neighbors_is_not_shown():
    assert mean_over_neighbors(al.explain(lambda z: z[:, 0] / 2, [1] * 6, sigma=50)) is None


def test_the_cutoff_of_a_threshold_classifier_is_named(frame):
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import FixedThresholdClassifier

    rows = frame[["age", "debt", "late"]]
    decided = np.where(score(frame) > 0, "yes", "no")
    model = FixedThresholdClassifier(LogisticRegression(max_iter=500), threshold=0.8, pos_label="yes")
    e = al.Explainer(model.fit(rows, decided), al.Table(rows)).explain(7)
    sentence = 'The model predicts "yes" if P(yes) is at least 0.8, and "no" otherwise.'
    assert sentence in str(e)
    assert e.as_rule().startswith(sentence)
    assert "otherwise" not in str(al.Explainer(model.estimator_, al.Table(rows)).explain(7))


def shortest(model, **keywords):
    return al.Explainer(model, al.Hypercube(), output="f", **keywords).shortest([1] * 8, max_relevance_error=0.01)


def test_the_requested_error_is_stated_in_the_units_of_the_output():
    e = shortest(lambda z: 50 * (0.5 * z[:, 0] + 0.4 * z[:, 1] + 0.02 * z[:, 2]), output_range=(-50, 50))
    assert e.certificate.n_facts == 2
    assert on_the_sample(e.certificate).endswith(
        ": with these 2 facts held, the typical move of the output (root mean square) is at most 10, the limit "
        "set; with any one fact held, it is larger."
    )
    limit = dataclasses.replace(e.certificate, status=Status.LIMIT)
    assert on_the_sample(limit).startswith("With these 2 facts held, the typical move of the output (root mean")
    assert "requested" not in on_the_sample(e.certificate)
    label = shortest(lambda z: np.where(z[:, 0] + z[:, 1] > 0, "a", "b"))
    assert on_the_sample(label.certificate).endswith(
        ": with these 2 facts held, the label changes in at most 1% of draws; with any one fact held, in more."
    )


def test_no_second_sample_is_mentioned_if_all_neighbors_were_queried():
    def model(z):
        return np.sign(z[:, 0] + 0.6 * z[:, 1] + 0.6 * z[:, 2]) / 2

    queried = al.explain(model, [1] * 8, k=3, objective="relevance").certificate
    assert queried.exhaustive
    for status in (Status.OPTIMAL, Status.CHOSEN, Status.LIMIT):
        text = on_the_sample(dataclasses.replace(queried, status=status))
        assert "second sample" not in text
        assert "first sample" not in text
    drawn = dataclasses.replace(queried, status=Status.CHOSEN, exhaustive=False)
    assert "preferred by a second sample" in on_the_sample(drawn)
