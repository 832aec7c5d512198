"""Files of cases that users open: explained like those of --cases, for one user only, and forgotten."""

import io
import json

import numpy as np
import pandas as pd
import pytest

import anchorline as al
from anchorline.studio import opened
from anchorline.studio.access import Proxy, StudioLimits
from anchorline.studio.contents import Contents
from anchorline.studio.display import Display
from anchorline.studio.opened import KEEP_SECONDS, MAX_UPLOAD, OpenFiles
from anchorline.studio.problems import Problem
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

LIMITS = StudioLimits(max_upload=MAX_UPLOAD)
FRAME, TRUTH = cohort_table()
OTHERS = pd.DataFrame({"income": [30, 60, 80], "owner": ["yes", "no", "yes"], "age": [20, 30, 40]})
OUTCOMES = ["declined", "declined", "approved"]


@pytest.fixture(scope="module")
def server():
    with live(cohort_explainer(), truth=("paid", TRUTH), limits=LIMITS) as running:
        yield running


def send(client, raw, name="others.csv", **headers):
    headers = {"Content-Type": "application/octet-stream", **headers}
    return client.post("/v1/file", params={"name": name}, content=raw, headers=headers)


def opened_as(answer):
    assert answer.status_code == 200, answer.text
    return {"X-Anchorline-File": answer.json()["id"]}


def content_of(frame, kind):
    if kind == "csv":
        return frame.to_csv(index=False).encode()
    sink = io.BytesIO()
    frame.to_parquet(sink)
    return sink.getvalue()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_is_read_and_explained_as_the_cases_of_a_server_are(client, kind):
    content = content_of(OTHERS.assign(paid=OUTCOMES, more=1), kind)
    answer = send(client, content, f"others.{kind}")
    assert {**answer.json(), "id": "", "digest": ""} == {
        "id": "",
        "name": f"others.{kind}",
        "rows": 3,
        "digest": "",
    }
    own = opened_as(answer)
    given = OTHERS if kind == "parquet" else OTHERS.to_dict("records")
    with (
        live(cohort_explainer(), cases=given, truth=("paid", OUTCOMES)) as other,
        client_of(other, timeout=30) as same,
    ):
        for path, body in {
            "/v1/explain": {"row": 1},
            "/page/explain": {"row": 2, "k": 2},
            "/v1/rule": {"row": 0},
            "/v1/what-if": {"row": 0, "edits": {"income": 70}},
            "/v1/changes": {"row": 0},
            "/v1/whole/groups": {"attribute": "owner"},
            "/v1/whole/thresholds": {},
        }.items():
            mine, theirs = client.post(path, json=body, headers=own), same.post(path, json=body)
            assert (mine.status_code, mine.content) == (200, theirs.content), path
        for search in ("", "wrong decisions", "income>50", "#2"):
            query = {"search": search}
            assert (
                client.get("/v1/rows", params=query, headers=own).json()
                == same.get("/v1/rows", params=query).json()
            )
    about = client.get("/page/about", headers=own).json()
    assert (about["rows"], about["file"]["name"], about["are_training"]) == (3, f"others.{kind}", False)
    # Without the header, nothing has changed.
    assert client.get("/v1/rows").json()["total"] == len(FRAME)
    assert client.get("/page/about").json()["file"] is None


def test_a_summary_and_searches_are_about_the_file(client):
    own = opened_as(send(client, content_of(OTHERS, "csv")))
    client.headers.update(own)
    answer, _ = finish(client, "/v1/overview")
    job = begun(client, "/v1/overview", k=1)
    with client.stream("GET", f"{job}/events") as response:
        assert '"is_done":true' in response.read().decode()
    for name in own:
        del client.headers[name]
    assert (answer["found"], answer["n_explained"], answer["outcomes"]["n"]) == (3, 3, 3)
    rows = client.get("/v1/rows", params={"search": "verdict!=undecided"}, headers=own).json()
    assert rows["explained"]["text"].startswith("3 of 3 cases are explained")
    assert client.get("/v1/rows", params={"search": "verdict!=undecided"}).json()["found"] == 0


def test_nothing_is_kept_after_a_file_is_closed(server, client):
    before = len(server.studio.jobs.cache)
    own = opened_as(send(client, content_of(OTHERS, "csv")))
    client.post("/v1/explain", json={"row": 1}, headers=own)
    jobs = [
        client.post("/v1/overview", json={"sigma": sigma}, headers=own).headers["location"] for sigma in (1, 2)
    ]
    assert becomes_true(lambda: client.get(jobs[0], headers=own).json()["state"] == "done", 10)
    assert len(server.studio.jobs.cache) == before
    assert client.delete("/v1/file", headers=own).status_code == 204
    assert [client.get(job).status_code for job in jobs] == [404, 404]
    assert becomes_true(lambda: server.studio.jobs.n_running == 0)
    refused = client.post("/v1/explain", json={"row": 1}, headers=own)
    assert (refused.status_code, refused.json()["type"]) == (404, "urn:anchorline:file-closed")
    assert client.get("/v1/rows", headers=own).status_code == 404
    assert client.delete("/v1/file", headers=own).status_code == 204  # it is closed already


def test_a_file_is_forgotten_after_a_while(server, client, monkeypatch):
    monkeypatch.setattr(opened, "KEEP_SECONDS", 0.5)
    own = opened_as(send(client, content_of(OTHERS, "csv")))
    assert client.get("/v1/rows", headers=own).status_code == 200
    assert becomes_true(lambda: not server.studio.files_of_users._entries)  # although no request arrives
    assert client.get("/v1/rows", headers=own).status_code == 404


def test_only_the_user_who_opened_a_file_gets_it():
    proxy = Proxy("127.0.0.1", "X-User")
    with live(cohort_explainer(), limits=LIMITS, proxy=proxy) as running, client_of(running, timeout=30) as client:
        own = opened_as(send(client, content_of(OTHERS, "csv"), **{"X-User": "ann"}))
        assert client.get("/v1/rows", headers=own | {"X-User": "ann"}).json()["total"] == 3
        for user in ({"X-User": "bob"}, {}):
            assert client.get("/v1/rows", headers=own | user).status_code == 404
            client.delete("/v1/file", headers=own | user)
        assert client.get("/v1/rows", headers=own | {"X-User": "ann"}).json()["total"] == 3


def test_files_are_limited_per_user_and_in_all(monkeypatch):
    forgotten = []
    files = OpenFiles(forgotten.append)
    cases = type("Cases", (), {"id": "x"})
    keys = [files.add("ann", "model", cases()) for _ in range(5)]
    with pytest.raises(Problem, match="not open"):
        files.find(keys[0], "ann", "model")  # made room for the last one
    assert files.find(keys[4], "ann", "model")
    assert forgotten == ["x"]
    with pytest.raises(Problem, match="not open"):
        files.find(keys[4], "ann", "other model")
    files.keep({"model"})
    for user in range(12):
        files.add(str(user), "model", cases())
    with pytest.raises(Problem, match="16 files are open") as refused:
        files.add("bob", "model", cases())
    assert refused.value.headers["Retry-After"] == "60"
    files.keep({"model of today"})  # the model was loaded again
    assert len(forgotten) == 17
    files.add("ann", "model of today", cases())
    monkeypatch.setattr(opened, "KEEP_SECONDS", 0.0)
    assert files.forget_idle() is None
    assert KEEP_SECONDS == 1800


def test_users_open_no_files_unless_the_operator_lets_them():
    with live(cohort_explainer()) as running, client_of(running) as client:
        refused = send(client, content_of(OTHERS, "csv"))
        assert (refused.status_code, client.get("/page/about").json()["upload"]) == (422, 0)
        assert refused.json()["detail"] == "This server opens no files of its users. Start it with --upload."


def test_texts_have_no_files():
    texts = Contents(al.Text(), ["A great view", "Slow and cold"])
    classify = lambda texts: np.array([[0.1, 0.9] if "great" in text else [0.6, 0.4] for text in texts])  # noqa: E731
    with live(al.Explainer(classify, texts), limits=LIMITS) as running, client_of(running) as client:
        assert client.get("/page/about").json()["upload"] == 0
        assert "no file of cases" in send(client, b"text\nx\n").json()["detail"]


def test_names_for_readers_hold_for_files():
    display = Display(names={"income": "Monthly income"}, labels={"declined": "Refused"})
    with live(cohort_explainer(), display=display, limits=LIMITS) as running, client_of(running) as client:
        own = opened_as(send(client, content_of(OTHERS, "csv")))
        rows = client.get("/v1/rows", params={"search": "Monthly income<50 answer=refused"}, headers=own).json()
        decided = loan_scores(OTHERS)[:, 1] > 0.5
        assert [row["position"] for row in rows["rows"]] == np.flatnonzero(
            ~decided & (OTHERS["income"] < 50)
        ).tolist()


def test_the_audit_log_says_which_file(tmp_path):
    log = tmp_path / "audit.jsonl"
    with live(cohort_explainer(), limits=LIMITS, audit_log=log) as running, client_of(running) as client:
        answer = send(client, content_of(OTHERS, "csv"))
        client.post("/v1/explain", json={"row": 1}, headers=opened_as(answer))
        client.post("/v1/explain", json={"row": 1})
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["route"], line.get("file")) for line in lines if line["route"] != "server"] == [
        ("file", None),
        ("explain", answer.json()["digest"]),
        ("explain", None),
    ]
