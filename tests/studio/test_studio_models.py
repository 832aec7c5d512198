"""The comparison of two models over HTTP: that of the library."""

import numpy as np
import pytest

import anchorline as al
from anchorline.explainer import Explainer
from anchorline.render.comparisons import blocks
from anchorline.result.comparison import Comparison
from anchorline.spaces.table import Table
from anchorline.studio.display import Previous
from helpers.studio import (
    becomes_true,
    begun,
    client_of,
    cohort_explainer,
    cohort_table,
    finish,
    live,
    loan_scores,
)

CHOICES = {"classes": ["declined", "approved"]}


def stricter(frame):
    score = 0.1 + (frame["income"].to_numpy() > 60) * 0.5 + (frame["owner"] == "yes").to_numpy() * 0.3
    return np.column_stack([1 - score, score])


@pytest.fixture(scope="module")
def server():
    frame, _ = cohort_table()
    previous = Previous("last year", stricter, Table(frame), CHOICES)
    with live(Explainer(loan_scores, Table(frame), **CHOICES), previous=previous) as running:
        yield running


def test_the_comparison_is_that_of_the_library(client):
    frame, _ = cohort_table()
    expected = al.compare(stricter, loan_scores, frame, n=40, groups=["owner"], **CHOICES)
    answer, progress = finish(client, "/v1/compare", n=40, by="owner")
    assert progress == sorted(progress)
    assert answer["is_done"]
    found = Comparison.from_json(answer["json"])
    assert (found.decisions, found.parts, found.attributes) == (
        expected.decisions,
        expected.parts,
        expected.attributes,
    )
    said = [(block["title"], block["sentences"], block["rows"]) for block in answer["blocks"]]
    assert said == [(b.title, list(b.sentences), [list(row) for row in b.rows]) for b in blocks(expected)]
    assert client.get("/page/about").json()["previous"] == "last year"


def test_a_comparison_has_progress_and_no_result_before_it_is_done(server, client, monkeypatch):
    monkeypatch.setattr("anchorline.studio.service.STEP_SECONDS", 0.01)
    _, progress = finish(client, "/v1/compare", n=42)
    assert len({*progress}) > 3
    job = begun(client, "/v1/compare", n=43)
    assert becomes_true(lambda: client.get(f"{job}/result").status_code == 200, seconds=10)
    now = client.get(f"{job}/result").json()
    assert (now["is_done"], now["blocks"], now["json"]) == (False, [], "")
    client.delete(job)
    assert becomes_true(lambda: server.studio.jobs.n_running == 0)


def test_what_cannot_be_compared_is_refused(client):
    assert client.post("/v1/compare", json={"by": "nothing"}).status_code == 422
    assert client.post("/v1/compare", json={"n": 5000}).status_code == 422
    with live(cohort_explainer()) as server, client_of(server) as other:
        answer = other.post("/v1/compare", json={})
        assert answer.status_code == 422
        assert "--previous" in answer.json()["detail"]
        assert other.get("/page/about").json()["previous"] is None


def test_one_user_has_one_comparison_at_a_time(client):
    job = begun(client, "/v1/compare", n=200)
    answer = client.post("/v1/compare", json={"n": 41})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "5")
    assert client.delete(job).status_code == 204
    assert becomes_true(lambda: client.get(job).json()["state"] == "canceled")
    assert client.delete(begun(client, "/v1/compare", n=41)).status_code == 204
