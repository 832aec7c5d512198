"""The whole model over HTTP: every figure is counted again here, row by row."""

import numpy as np
import pytest

from anchorline.samples import loans
from anchorline.studio.access import StudioLimits
from anchorline.studio.demo import demo_explainer
from anchorline.studio.whole import thresholds
from helpers.studio import (
    HOSTILE,
    client_of,
    cohort_explainer,
    cohort_table,
    finish,
    hostile_explainer,
    live,
    loan_scores,
)


@pytest.fixture(scope="module")
def server():
    with live(cohort_explainer(), truth=("paid", cohort_table()[1])) as running:
        yield running


def test_how_an_attribute_acts_is_the_mean_of_rows_with_each_value(client):
    frame, _ = cohort_table()
    for name in frame.columns:
        answer = client.post("/v1/whole/acting", json={"attribute": name}).json()
        assert (answer["output"], answer["name"], answer["n_rows"]) == ("P(approved)", name, 120)
        for point in answer["points"]:
            value = point["text"] if name == "owner" else int(point["text"])
            scores = loan_scores(frame.assign(**{name: value}))[:, 1]
            low, high = np.quantile(scores, [0.1, 0.9])
            assert [point[key] for key in ("mean", "low", "high")] == pytest.approx([scores.mean(), low, high])
        values = [point["text"] for point in answer["points"]]
        assert len(values) == len({*values}) == min(20, frame[name].nunique())
        assert name in answer["text"]
        assert len(answer["text"].split()) <= 25
    assert "hardly changes" in client.post("/v1/whole/acting", json={"attribute": "age"}).json()["text"]


def test_groups_are_counted_and_their_limits_contain_the_shares(client):
    frame, truth = cohort_table()
    decided = np.where(loan_scores(frame)[:, 1] > 0.5, "approved", "declined")
    answer = client.post("/v1/whole/groups", json={"attribute": "owner"}).json()
    assert answer["label"] == "approved"
    for group in answer["groups"]:
        members = frame["owner"] == group["text"]
        assert group["n"] == members.sum()
        assert group["decided"]["value"] == pytest.approx((decided[members] == "approved").mean())
        assert group["wrong"]["value"] == pytest.approx((decided[members] != truth[members]).mean())
        for share in (group["decided"], group["wrong"]):
            assert share["low"] <= share["value"] <= share["high"]
    ages = client.post("/v1/whole/groups", json={"attribute": "age"}).json()["groups"]
    assert sum(group["n"] for group in ages) == len(frame)
    some = client.post(
        "/v1/whole/groups", json={"attribute": "age", "search": "owner=yes", "output": "declined"}
    ).json()
    assert sum(group["n"] for group in some["groups"]) == (frame["owner"] == "yes").sum()
    assert some["label"] == "declined"


def test_groups_that_differ_by_chance_are_said_to(client):
    text = client.post("/v1/whole/groups", json={"attribute": "income"}).json()["text"]
    assert text.endswith("more than chance.")
    assert "chance" in client.post("/v1/whole/groups", json={"attribute": "age"}).json()["text"]


def test_thresholds_are_counted_both_ways(client):
    frame, truth = cohort_table()
    scores, is_approved = loan_scores(frame)[:, 1], truth == "approved"
    answer = client.post("/v1/whole/thresholds", json={}).json()
    assert (answer["own"], answer["n"], answer["label"]) == (0.5, 120, "approved")
    for point in answer["points"]:
        decided = scores >= point["threshold"]
        assert point["wrongly"] == pytest.approx((decided & ~is_approved).mean())
        assert point["missed"] == pytest.approx((~decided & is_approved).mean())
    margins = scores[is_approved][:, None] - scores[~is_approved]
    assert answer["area"] == pytest.approx(((margins > 0) + (margins == 0) / 2).mean())
    assert f"higher in {answer['area']:.1%}" in answer["text"]


def test_scores_of_one_class_alone_have_no_area():
    answer = thresholds(np.array([0.2, 0.7]), np.array([True, True]), "approved", 0.5)
    assert answer["area"] is None
    assert "ROC" not in answer["text"]


def test_rules_cover_the_cases(client):
    answer, _ = finish(client, "/v1/whole/rules", n_rows=20)
    kinds = [line["kind"] for line in answer["lines"]]
    assert (answer["n_explained"], kinds[0]) == (20, "cover")
    assert 1 <= kinds.count("rule") <= 6
    rules = [line for line in answer["lines"] if line["kind"] == "rule"]
    assert all(line["row"] in line["cases"] for line in rules)
    assert [len(line["cases"]) for line in rules] == [line["alike"] for line in answer["lines"] if "alike" in line]
    assert sum(line.get("alike", 0) for line in answer["lines"]) >= 15


@pytest.mark.parametrize("body", [{}, {"attribute": "nothing"}, {"attribute": "age", "search": "age>1000"}])
def test_questions_without_an_answer_are_refused(client, body):
    assert client.post("/v1/whole/groups", json=body).status_code == 422


def test_missing_values_dates_and_booleans_are_groups_and_values_too():
    explainer = demo_explainer(300)
    with live(explainer, limits=StudioLimits(max_queries=900)) as server, client_of(server, timeout=60) as client:
        frame, _ = loans(300)
        for name in frame.columns:
            groups = client.post("/v1/whole/groups", json={"attribute": name}).json()["groups"]
            assert sum(group["n"] for group in groups) == 300
            acting = client.post("/v1/whole/acting", json={"attribute": name}).json()
            assert acting["n_rows"] * len(acting["points"]) <= 900
        assert "missing" in {
            each["text"]
            for each in client.post("/v1/whole/groups", json={"attribute": "employed_years"}).json()["groups"]
        }
        owner = client.post("/v1/whole/acting", json={"attribute": "owner"}).json()
        assert {point["text"] for point in owner["points"]} == {"True", "False"}
        assert client.post("/v1/whole/thresholds", json={}).status_code == 422  # no outcomes are known


def test_texts_from_data_have_no_control_characters():
    with live(hostile_explainer()) as server, client_of(server) as client:
        for name in (HOSTILE, "cell"):
            for what in ("acting", "groups"):
                answer = client.post(f"/v1/whole/{what}", json={"attribute": name})
                assert answer.status_code == 200
                assert "\\u001b" not in answer.text
