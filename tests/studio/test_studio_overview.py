"""The summary of many cases, over HTTP."""

import csv
import io
import json
import threading
import time
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.spaces.table import Table
from anchorline.studio import cohort as cohort_module
from anchorline.studio.catalog import Catalog
from anchorline.studio.cohort import Cohort, CohortCache, Truth, progress_of
from anchorline.studio.job_queue import JobCanceledError
from anchorline.studio.problems import Problem
from helpers.studio import (
    HOSTILE,
    SlowModel,
    becomes_true,
    client_of,
    cohort_explainer,
    cohort_table,
    hostile_explainer,
    live,
    slow_explainer,
)


@pytest.fixture(scope="module")
def server():
    truth = cohort_table()[1]
    with live(cohort_explainer(), name="loans", truth=("approved?", truth)) as running:
        yield running


def whole(client, **body):
    """Ask until the answer is complete, as the page does; return it and all progress before."""
    seen = []
    for _ in range(200):
        response = client.post("/v1/overview", json=body)
        assert response.status_code == 200, response.text
        answer = response.json()
        seen.append(answer["progress"])
        if answer["is_done"]:
            return answer, seen
    raise AssertionError("The summary was never complete.")


@pytest.fixture(scope="module")
def answer(client):
    return whole(client, n_rows=30, k=3)[0]


@pytest.fixture(scope="module")
def many():
    """The same cases, explained by the library."""
    frame, _ = cohort_table()
    chosen = np.sort(np.random.default_rng(0).choice(len(frame), 30, replace=False))
    model = cohort_explainer().model
    explainer = Explainer(model, Table(frame), classes=["declined", "approved"], output="approved")
    return chosen, explainer.explain_many(frame.iloc[chosen].reset_index(drop=True), k=3)


def test_facts_and_verdicts_are_those_of_the_library(answer, many):
    chosen, explained = many
    summary, expected = answer["summary"], explained.summary()
    assert (answer["found"], answer["n_sampled"], answer["n_explained"]) == (120, 30, 30)
    assert summary["output"] == "P(approved)"
    assert {each["code"]: each["count"] for each in summary["verdicts"]} == dict(expected.verdicts)
    listed = [(each["name"], each["n_rows"], each["adds"], each["typical_size"]) for each in summary["attributes"]]
    assert listed == [(each.name, each.n_rows, each.adds, each.typical_size) for each in expected.attributes]
    for each in summary["verdicts"]:
        rows = [row for row, e in enumerate(explained) if e.verdict.value == each["code"]]
        assert each["cases"] == chosen[rows].tolist()
    for each in summary["attributes"]:
        rows = [row for row, e in enumerate(explained) if each["name"] in {fact.attribute for fact in e.facts}]
        assert each["cases"] == chosen[rows].tolist()
    least = [(each["position"], each["code"], each["low"]) for each in summary["least_explained"]]
    assert {*least} == {(chosen[row], code, low) for row, code, low in expected.least_explained}


def test_the_table_has_a_line_per_case(client, answer, many):
    chosen, explained = many
    response = client.post("/v1/overview/table", json={"n_rows": 30, "k": 3})
    assert response.headers["content-type"].startswith("text/csv")
    assert "attachment" in response.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert [int(row["case"]) for row in rows] == chosen.tolist()
    assert [float(row["prediction"]) for row in rows] == [e.prediction for e in explained]
    assert [row["verdict"] for row in rows] == [e.verdict.value for e in explained]
    assert all(row["facts"].count(": ") == len(e.facts) for row, e in zip(rows, explained, strict=True))


def test_decisions_are_compared_with_the_truth(answer):
    frame, truth = cohort_table()
    decided = np.where(cohort_explainer().model(frame).argmax(axis=1), "approved", "declined")
    outcomes = answer["outcomes"]
    assert {each["label"]: each["count"] for each in outcomes["decisions"]} == {
        label: int((decided == label).sum()) for label in ("approved", "declined")
    }
    assert outcomes["right"]["value"] == pytest.approx((decided == truth).mean())
    assert outcomes["right"]["low"] < outcomes["right"]["value"] < outcomes["right"]["high"]
    labels = outcomes["confusion"]["labels"]
    for i, actual in enumerate(labels):
        for j, chosen in enumerate(labels):
            assert outcomes["confusion"]["counts"][i][j] == ((truth == actual) & (decided == chosen)).sum()


def test_the_truth_is_listed_with_the_rows(client):
    rows = client.get("/v1/rows", params={"limit": 20}).json()["rows"]
    assert [row["truth"] for row in rows] == cohort_table()[1][:20].tolist()
    assert client.get("/page/about").json()["target"] == "approved?"


def test_a_complete_summary_is_kept(server, client, answer):
    before = server.studio.metrics.value("anchorline_model_rows_total", model="")
    again, seen = whole(client, n_rows=30, k=3)
    assert again == answer
    assert len(seen) == 1
    assert server.studio.metrics.value("anchorline_model_rows_total", model="") == before


def test_searches_without_cases_and_wrong_requests(client):
    empty, _ = whole(client, search="income>1000")
    assert (empty["found"], empty["summary"]) == (0, None)
    for body in ({"n_rows": 10_000}, {"search": "x" * 300}, {"k": 99}, {"output": "nothing"}, {"extra": 1}):
        response = client.post("/v1/overview", json=body)
        assert (response.status_code, response.headers["content-type"]) == (422, "application/problem+json")


def test_work_has_progress_and_stops_when_nobody_asks():
    """A slow model: the first answer comes within seconds, and others are answered meanwhile."""
    model = SlowModel(0.1)
    with live(slow_explainer(model)) as running, client_of(running, timeout=30) as client:
        start = time.monotonic()
        first = client.post("/v1/overview", json={"n_rows": 40}).json()
        assert not first["is_done"]
        assert 0 < first["progress"] < 1
        assert time.monotonic() - start < 10
        asked = {"url": f"{running.base}/v1/overview", "headers": client.headers, "timeout": 30}
        calls = model.calls
        time.sleep(0.5)
        assert model.calls == calls
        other = threading.Thread(target=lambda: httpx.post(**asked, json={"n_rows": 40}))
        other.start()
        assert client.get("/v1/rows?limit=1").status_code == 200
        assert client.post("/v1/overview", json={"n_rows": 40}).json()["n_explained"] >= first["n_explained"]
        other.join()


def test_texts_from_data_are_escaped_and_other_targets_named():
    """Markup is text; a target that no answer equals is named, and a wrong number of values is refused."""
    explainer = hostile_explainer()
    with live(explainer, truth=(HOSTILE, ["1"] * 120)) as running, client_of(running, timeout=30) as client:
        found, _ = whole(client, n_rows=6, k=3)
        assert found["outcomes"]["mismatch"][0] == ["1"]
        assert "\u202e" not in found["outcomes"]["target"]
        assert all("\u202e" not in each["name"] for each in found["summary"]["attributes"])
    with pytest.raises(ParameterError, match="2 values for 120 cases"), live(explainer, truth=("x", [1, 2])):
        pass


def test_numbers_are_compared_with_the_truth():
    frame, _ = cohort_table()
    explainer = Explainer(lambda rows: rows["income"].to_numpy() * 2.0 + 1, Table(frame), output="price")
    truth = ("price", frame["income"] * 2.0)
    with live(explainer, truth=truth) as running, client_of(running, timeout=30) as client:
        found, _ = whole(client, n_rows=5, k=2)
    assert found["outcomes"]["numbers"]["mean_absolute_error"] == pytest.approx(1)


@pytest.mark.parametrize("kind", [float, int])
def test_classes_that_are_floats_meet_their_outcomes(kind):
    """A model fitted on 0.0 and 1.0 answers so, whether the target holds 0.0 and 1.0 or 0 and 1."""
    frame, truth = cohort_table()
    rows, y = frame[["income", "age"]], (truth == "approved").astype(float)
    explainer = Explainer(LogisticRegression().fit(rows, y), Table(rows))
    with live(explainer, truth=("paid", y.astype(kind))) as running, client_of(running, timeout=30) as client:
        outcomes = whole(client, n_rows=2, k=2)[0]["outcomes"]
        listed = client.get("/v1/rows?limit=20").json()["rows"]
    assert "mismatch" not in outcomes
    assert outcomes["confusion"]["labels"] == ["0.0", "1.0"]
    assert [row["truth"] for row in listed] == [str(value) for value in y[:20]]
    assert {row["answer"] for row in listed} <= {"0.0", "1.0"}


def test_outcomes_are_written_as_the_classes_are():
    truth = Truth("paid", [1.0, 0.0, None, 2.0, "v2"], 5)
    assert truth.texts(range(5), ["0", "1"]) == ["1", "0", None, "2", "v2"]
    assert truth.texts(range(5), ["0.0", "1.0", "v2.0"]) == ["1.0", "0.0", None, "2", "v2"]
    assert truth.texts(range(4), ["1", "1.0"]) == ["1", "0", None, "2"]


def test_a_canceled_case_is_explained_later_unless_it_took_a_requests_time(monkeypatch):
    """Such a case is left out and named, and others are explained."""
    explainer, clock = cohort_explainer(), [0.0]
    monkeypatch.setattr(cohort_module, "running_seconds", lambda: clock[0])

    def explain(position):
        if position == 2:
            clock[0] += 20.0 if clock[0] else 5.0
            raise JobCanceledError
        return explainer.explain(position, k=2, queries=60)

    cohort, failed = Cohort(Catalog(explainer), "income<30", 120, explain, case_seconds=10.0), []
    cohort.positions = cohort.answered = cohort.found = np.array([1, 2, 3])
    for _ in range(2):
        with pytest.raises(JobCanceledError):
            cohort.step(60)
        failed.append(progress_of(cohort)["failed"])
    assert failed == [[], [2]]
    cohort.step(60)
    assert cohort.is_done
    assert [position for position, _ in cohort.explained] == [1, 3]


def test_summaries_that_are_computed_do_not_displace_each_other(monkeypatch):
    """Before, more cohorts than fit into memory began again with every request, and nobody got a summary."""
    monkeypatch.setattr(cohort_module, "_MAX_COHORTS", 2)
    cache = CohortCache()
    built = {name: SimpleNamespace(is_done=False, is_busy=False, used=0.0) for name in "abcd"}

    def ask(name):
        return cache.get_or_build(name, None, lambda: built[name])

    assert (ask("a"), ask("b"), ask("a")) == (built["a"], built["b"], built["a"])
    with pytest.raises(Problem, match="2 other summaries") as refused:
        ask("c")
    assert refused.value.headers["Retry-After"] == "5"
    built["a"].is_done = True
    assert ask("c") is built["c"]
    assert list(cache._cohorts) == ["b", "c"]
    monkeypatch.setattr(cohort_module, "_IDLE_SECONDS", -1.0)
    built["b"].is_busy = True  # a request goes on with it, however long ago it began
    assert ask("d") is built["d"]
    assert list(cache._cohorts) == ["b", "d"]


def events_of(response):
    """Yield the name and the content of every event of a stream."""
    name = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


@pytest.mark.parametrize("path", ["/v1/overview", "/v1/whole/rules"])
def test_a_summary_is_followed_until_it_is_done(client, path):
    body = {"n_rows": 12, "k": 2, "sigma": 0.9}
    with client.stream("POST", f"{path}/events", json=body, timeout=60) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["x-accel-buffering"] == "no"
        events = list(events_of(response))
    assert [name for name, _ in events] == ["progress"] * (len(events) - 1) + ["done"]
    progress = [answer["progress"] for _, answer in events]
    assert progress == sorted(progress)
    assert events[-1][1] == client.post(path, json=body).json()


def test_the_work_ends_when_nobody_follows_any_more():
    with live(slow_explainer(SlowModel(0.03))) as server, client_of(server, timeout=30) as client:
        with client.stream("POST", "/v1/overview/events", json={"n_rows": 50}) as response:
            next(events_of(response))
        assert becomes_true(lambda: server.studio.jobs.n_running == 0, seconds=6)
        before = server.studio.metrics.value("anchorline_model_rows_total", model="")
        time.sleep(1.0)
        assert server.studio.metrics.value("anchorline_model_rows_total", model="") == before


def test_what_is_wrong_ends_the_stream_as_an_event():
    model = SlowModel(0.0)
    with live(slow_explainer(model)) as server, client_of(server, timeout=30) as client:
        wrong = client.post("/v1/overview/events", json={"search": "x", "output": "none"})
        assert wrong.status_code == 422
        server.studio.served[""].service.overview = iter_of(b'{"is_done":false}', Problem(422, "It broke."))
        with client.stream("POST", "/v1/overview/events", json={}) as response:
            events = list(events_of(response))
    assert [name for name, _ in events] == ["progress", "problem"]
    assert events[1][1]["detail"] == "It broke."


def iter_of(*answers):
    """Return a function that returns these answers in turn, and raises those that are errors."""
    left = list(answers)

    def answer(*arguments):
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    return answer
