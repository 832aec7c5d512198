"""The summary of many cases, over HTTP."""

import concurrent.futures
import csv
import io
import json
import time

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.spaces.table import Table
from anchorline.studio import cohort as cohort_module
from anchorline.studio import long_jobs
from anchorline.studio.access import Proxy, StudioLimits
from anchorline.studio.catalog import Catalog
from anchorline.studio.cohort import Cohort, Truth, progress_of
from anchorline.studio.display import Model
from anchorline.studio.job_queue import JobCanceledError
from anchorline.studio.long_jobs import Work
from anchorline.studio.problems import Problem
from helpers.studio import (
    HOSTILE,
    SlowModel,
    becomes_true,
    begun,
    client_of,
    cohort_explainer,
    cohort_table,
    finish,
    hostile_explainer,
    live,
    slow_explainer,
)


@pytest.fixture(scope="module")
def server():
    truth = cohort_table()[1]
    with live(cohort_explainer(), name="loans", truth=("approved?", truth)) as running:
        yield running


@pytest.fixture(scope="module")
def answer(client):
    return finish(client, "/v1/overview", n_rows=30, k=3)[0]


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
    response = client.get(f"{begun(client, '/v1/overview', n_rows=30, k=3)}/result?format=csv")
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
    again, seen = finish(client, "/v1/overview", n_rows=30, k=3)
    assert again == answer
    assert {*seen} <= {0.0, 1.0}
    assert server.studio.metrics.value("anchorline_model_rows_total", model="") == before


def test_searches_without_cases_and_wrong_requests(client):
    empty, _ = finish(client, "/v1/overview", search="income>1000")
    assert (empty["found"], empty["summary"]) == (0, None)
    for body in ({"n_rows": 10_000}, {"search": "x" * 300}, {"k": 99}, {"output": "nothing"}, {"extra": 1}):
        response = client.post("/v1/overview", json=body)
        assert (response.status_code, response.headers["content-type"]) == (422, "application/problem+json")


def test_a_job_goes_on_by_itself_and_a_canceled_one_can_begin_where_it_was():
    """A slow model: the first result comes within seconds, and others are answered meanwhile."""
    model = SlowModel(0.1)
    with live(slow_explainer(model)) as running, client_of(running, timeout=30) as client:
        job = begun(client, "/v1/overview", n_rows=40)
        assert becomes_true(lambda: client.get(f"{job}/result").status_code == 200, 10)
        first = client.get(f"{job}/result").json()
        assert not first["is_done"]
        assert 0 < first["progress"] < 1
        assert client.get("/v1/rows?limit=1").status_code == 200
        assert becomes_true(lambda: client.get(f"{job}/result").json()["n_explained"] > first["n_explained"], 20)
        assert client.delete(job).status_code == 204
        assert becomes_true(lambda: running.studio.jobs.n_running == 0)
        assert client.get(job).json()["state"] == "canceled"
        stopped, calls = client.get(f"{job}/result").json(), model.calls
        assert not stopped["is_done"]
        assert len(client.get(f"{job}/result?format=csv").text.splitlines()) >= stopped["n_explained"] + 1
        time.sleep(0.5)
        assert model.calls == calls
        again = begun(client, "/v1/overview", n_rows=40)
        assert becomes_true(lambda: client.get(f"{again}/result").status_code == 200, 10)
        assert client.get(f"{again}/result").json()["n_explained"] >= stopped["n_explained"]


def test_texts_from_data_are_escaped_and_other_targets_named():
    """Markup is text; a target that no answer equals is named, and a wrong number of values is refused."""
    explainer = hostile_explainer()
    with live(explainer, truth=(HOSTILE, ["1"] * 120)) as running, client_of(running, timeout=30) as client:
        found, _ = finish(client, "/v1/overview", n_rows=6, k=3)
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
        found, _ = finish(client, "/v1/overview", n_rows=5, k=2)
    assert found["outcomes"]["numbers"]["mean_absolute_error"] == pytest.approx(1)


@pytest.mark.parametrize("kind", [float, int])
def test_classes_that_are_floats_meet_their_outcomes(kind):
    """A model fitted on 0.0 and 1.0 answers so, whether the target holds 0.0 and 1.0 or 0 and 1."""
    frame, truth = cohort_table()
    rows, y = frame[["income", "age"]], (truth == "approved").astype(float)
    explainer = Explainer(LogisticRegression().fit(rows, y), Table(rows))
    with live(explainer, truth=("paid", y.astype(kind))) as running, client_of(running, timeout=30) as client:
        outcomes = finish(client, "/v1/overview", n_rows=2, k=2)[0]["outcomes"]
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


def events_of(response):
    """Yield the name and the content of every event of a stream."""
    name = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


@pytest.mark.parametrize("path", ["/v1/overview", "/v1/whole/rules"])
def test_a_job_is_followed_until_it_is_done(client, path):
    job = begun(client, path, n_rows=12, k=2, sigma=0.9)
    with client.stream("GET", f"{job}/events", timeout=60) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["x-accel-buffering"] == "no"
        events = list(events_of(response))
    assert [name for name, _ in events] == ["progress"] * (len(events) - 1) + ["done"]
    progress = [state["progress"] for _, state in events]
    assert progress == sorted(progress)
    assert events[-1][1]["result"] == client.get(f"{job}/result").json()
    assert {name: each for name, each in events[-1][1].items() if name != "result"} == client.get(job).json()
    with client.stream("GET", f"{job}/events", timeout=60) as response:
        assert list(events_of(response)) == events[-1:]


def test_a_job_that_nobody_asks_about_is_canceled(monkeypatch):
    monkeypatch.setattr(long_jobs, "_UNASKED_SECONDS", 0.5)
    with live(slow_explainer(SlowModel(0.03))) as server, client_of(server, timeout=30) as client:
        job = begun(client, "/v1/overview", n_rows=50)
        with client.stream("GET", f"{job}/events") as response:
            next(events_of(response))
        assert becomes_true(lambda: server.studio.jobs.n_running == 0, seconds=6)
        before = server.studio.metrics.value("anchorline_model_rows_total", model="")
        time.sleep(1.0)
        assert server.studio.metrics.value("anchorline_model_rows_total", model="") == before
        assert client.get(job).json()["state"] == "canceled"


def test_what_is_wrong_is_the_answer_or_the_end_of_the_job():
    with live(slow_explainer(SlowModel(0.0))) as server, client_of(server, timeout=30) as client:
        assert client.post("/v1/overview", json={"search": "x", "output": "none"}).status_code == 422
        step = iter_of(b'{"is_done":false,"progress":0.1}', Problem(422, "It broke."))
        server.studio.served[""].service.overview = lambda body: Work(step, has_steps=True)
        job = begun(client, "/v1/overview")
        with client.stream("GET", f"{job}/events") as response:
            events = list(events_of(response))
        assert events[-1][0] == "problem"
        assert events[-1][1]["problem"]["detail"] == "It broke."
        assert events[-1][1]["state"] == client.get(job).json()["state"] == "failed"
        assert (client.get(f"{job}/result").status_code, client.get(f"{job}/result").json()["detail"]) == (
            422,
            "It broke.",
        )
        server.studio.served[""].service.overview = lambda body: Work(iter_of(KeyError("a bug")))
        job = begun(client, "/v1/overview")
        assert becomes_true(lambda: client.get(f"{job}/result").status_code == 500)


def test_any_request_is_a_job_if_the_client_prefers_so(client):
    now = client.post("/v1/explain", json={"row": 3, "queries": 200})
    later = client.post("/v1/explain", json={"row": 3, "queries": 200}, headers={"Prefer": "respond-async"})
    assert (now.status_code, later.status_code) == (200, 202)
    job = later.headers["location"]
    assert becomes_true(lambda: client.get(job).json()["state"] == "done")
    assert client.get(f"{job}/result").content == now.content
    with client.stream("GET", f"{job}/events") as response:
        [(name, state)] = events_of(response)
    assert (name, state["result"]) == ("done", now.json())
    assert client.get(f"{job}/result?format=csv").status_code == 422
    assert client.delete(job).status_code == 204
    assert client.get(job).status_code == 404


def test_nobody_sees_the_jobs_of_others(tmp_path):
    proxy, models = (
        Proxy("127.0.0.1", "X-User"),
        {"a": Model(explainer=cohort_explainer()), "b": Model(explainer=cohort_explainer())},
    )
    with live(models, proxy=proxy, audit_log=tmp_path / "log") as server, client_of(server, timeout=30) as client:
        mine, others = {"X-User": "ann"}, {"X-User": "bo"}
        job = client.post("/m/a/v1/overview", json={"n_rows": 5}, headers=mine).headers["location"]
        assert job.startswith("/m/a/v1/jobs/")
        for path in (job, f"{job}/result", f"{job}/events"):
            assert client.get(path, headers=others).status_code == 404
            assert client.get(path.replace("/m/a/", "/m/b/"), headers=mine).status_code == 404
        assert client.delete(job, headers=others).status_code == 404
        assert becomes_true(lambda: client.get(job, headers=mine).json()["state"] == "done", 20)
        assert client.get(f"{job}/result?format=csv", headers=mine).status_code == 200
    lines = [
        line for line in map(json.loads, (tmp_path / "log").read_text().splitlines()) if line["route"] != "server"
    ]
    found = [(line["route"], line["outcome"], line["user"], line["model"], line["job"]) for line in lines]
    id = job.rpartition("/")[2]
    assert found == [("overview", each, "ann", "a", id) for each in ("started", "answered")] + [
        ("table", "answered", "ann", "a", id)
    ]


def test_ended_jobs_are_kept_for_a_limited_time_and_number(monkeypatch):
    monkeypatch.setattr(long_jobs, "_MOST_KEPT", 3)
    proxy = Proxy("127.0.0.1", "X-User")
    with live(cohort_explainer(), proxy=proxy) as server, client_of(server, timeout=30) as client:

        def ended(user):
            headers = {"X-User": user, "Prefer": "respond-async"}
            job = client.post("/v1/answer", json={"row": 1}, headers=headers).headers["location"]
            assert becomes_true(lambda: client.get(job, headers=headers).json()["state"] == "done")
            return lambda: client.get(job, headers=headers).status_code

        first = ended("ann")
        others = [ended("bo") for _ in range(4)]
        assert (first(), [each() for each in others]) == (200, [404, 404, 200, 200])
        monkeypatch.setattr(long_jobs, "_KEEP_SECONDS", 0.1)
        last = ended("ann")
        assert becomes_true(lambda: last() == 404)


def test_a_job_waits_for_room_in_a_full_queue():
    limits = StudioLimits(queue=1, workers=1)
    with live(slow_explainer(SlowModel(0.2)), limits=limits) as server, client_of(server, timeout=60) as client:

        def ask(seed):
            return client.post("/v1/explain", json={"row": 1, "seed": seed, "queries": 300}).status_code

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(ask, seed) for seed in range(12)]
            job = begun(client, "/v1/overview", n_rows=1, k=1)
            assert {each.result() for each in asked} == {200, 429}
        assert becomes_true(lambda: client.get(job).json()["state"] == "done", 60)


def test_a_job_whose_end_cannot_be_logged_gives_no_answer(tmp_path):
    with live(cohort_explainer(), audit_log=tmp_path / "log") as server, client_of(server, timeout=30) as client:
        original, calls = server.studio.audit.record, []

        def record(*arguments):
            calls.append(arguments[3])
            if len(calls) > 1:
                raise Problem(503, "The audit log cannot be written.")
            original(*arguments)

        server.studio.audit.record = record
        job = begun(client, "/v1/overview", n_rows=3)
        assert becomes_true(lambda: client.get(job).json()["state"] == "failed")
        assert client.get(f"{job}/result").status_code == 503
        assert client.post("/v1/overview", json={"n_rows": 4}).status_code == 503
        assert calls[:3] == ["started", "answered", "started"]


def iter_of(*answers):
    """Return a function that returns these answers in turn, and raises those that are errors."""
    left = list(answers)

    def answer(*arguments):
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    return answer
