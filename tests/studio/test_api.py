"""The interface: every answer is the library's own, work is bounded, and the process ends well."""

import asyncio
import concurrent.futures
import json
import logging
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import anchorline as al
from anchorline.errors import InstanceError
from anchorline.render import html
from anchorline.studio.app import Studio
from anchorline.studio.cache import Cache, key_of
from anchorline.studio.demo import demo_explainer
from anchorline.studio.limits import Limits
from anchorline.studio.metrics import Metrics
from anchorline.studio.schemas import ExplainRequest, FrontierRequest, KServeRequest, WhatIfRequest
from anchorline.studio.views import frontier_answer
from anchorline.studio.work import Work
from helpers.studio import SlowModel, live, slow_explainer, soon

QUICK = {"n_samples": 400, "n_certify": 400}


@pytest.fixture(scope="module")
def explainer():
    return demo_explainer(400)


@pytest.fixture(scope="module")
def server(explainer):
    with live(explainer, name="loans", limits=Limits(max_samples=2000)) as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    headers = {"Authorization": f"Bearer {server.token}"}
    with httpx.Client(base_url=server.base, headers=headers, timeout=30) as opened:
        yield opened


def client_of(server, **options):
    return httpx.Client(base_url=server.base, headers={"Authorization": f"Bearer {server.token}"}, **options)


def test_an_explanation_is_the_librarys_byte_for_byte(client, explainer):
    expected = explainer.explain(3, k=4, sigma=1.5, seed=7, alternatives=2, **QUICK).to_json().encode()
    asked = {"row": 3, "k": 4, "sigma": 1.5, "seed": 7, "alternatives": 2, **QUICK}
    first, second = client.post("/explain", json=asked), client.post("/explain", json=asked)
    assert first.content == second.content == expected
    assert first.headers["content-type"] == "application/json"
    row = dict(zip(explainer.space.names, explainer.space.at(3).instance, strict=True))
    assert client.post("/explain", json=asked | {"row": row}).content == expected


def test_a_class_can_be_chosen(client, explainer):
    for label in ("approved", "declined"):
        expected = al.Explainer(explainer.model, explainer.space, output=label).explain(3, **QUICK)
        assert client.post("/explain", json={"row": 3, "output": label, **QUICK}).text == expected.to_json()
    assert client.post("/explain", json={"row": 3, "output": "maybe"}).status_code == 422


def scores(frame):
    """Probabilities of three classes, of which the third is never the most probable one."""
    a, b = np.asarray(frame["a"], dtype=float), np.asarray(frame["b"], dtype=float)
    raised = np.exp(np.column_stack([a, b - 2, np.full(len(a), -9.0)]))
    return raised / raised.sum(axis=1, keepdims=True)


def desk_of(model, frame, **options):
    return Studio(al.Explainer(model, al.Table(frame), **options), token=None).desk


@pytest.fixture(scope="module")
def frame():
    """Numbers that float64 cannot hold, and infinite ones, beside those that decide."""
    rng = np.random.default_rng(0)
    columns = {"a": rng.normal(size=60), "b": rng.integers(0, 5, 60), "big": rng.integers(2**53, 2**60, 60)}
    return pd.DataFrame(columns | {"far": [1.5, np.inf, -np.inf, np.nan, *rng.normal(size=56)]})


def test_a_report_and_its_frontier_are_about_the_class_asked_for(frame):
    row = int(scores(frame)[:, 0].argmax())  # most probable: A
    for asked in ("B", "A", "B"):  # in every order: what is kept of one class is not another's
        desk = desk_of(scores, frame, classes=["A", "B", "C"])
        for label in (asked, "C", asked):
            own = al.Explainer(scores, al.Table(frame), classes=["A", "B", "C"], output=label)
            expected = own.frontier(row, **QUICK)
            request = FrontierRequest(row=row, output=label, **QUICK)
            assert desk.frontier(request) == json.dumps(frontier_answer(expected), separators=(",", ":")).encode()
            page = html.page(own.explain(row, k=3, **QUICK), expected)
            assert desk.report(ExplainRequest(row=row, k=3, output=label, **QUICK)).decode() == page


def test_the_class_of_a_view_can_be_asked_for(frame):
    """As the page does to compare two cases; a class that nobody named is none that can be asked for."""
    for classes in (["A", "B", "C"], None):
        desk = desk_of(scores, frame, classes=classes)
        view = json.loads(desk.explain_view(ExplainRequest(row=1, **QUICK)))
        again = json.loads(desk.explain_view(ExplainRequest(row=1, output=view["class"], **QUICK)))
        assert again["sum"] == view["sum"]


def test_relevance_can_be_asked_for(client, explainer):
    expected = explainer.explain(2, k=3, objective="relevance", **QUICK)
    got = client.post("/explain", json={"row": 2, "k": 3, "objective": "relevance", **QUICK})
    assert got.text == expected.to_json()


def test_a_frontier_is_the_librarys(client, explainer):
    expected = explainer.frontier(5, ks=[1, 3, 4], sigma=2.0, **QUICK)
    found = client.post("/frontier", json={"row": 5, "ks": [4, 1, 3], "sigma": 2.0, **QUICK}).json()
    assert [point["k"] for point in found["points"]] == [1, 3, 4]
    for point, told in zip(expected.points, found["points"], strict=True):
        assert told["contributions"] == point.contributions.tolist()
        assert told["intercept"] == point.intercept
        assert told["fidelity_error"]["high"] == point.fidelity_error.high
        assert told["status"] == point.status.name
    assert found["prediction"] == expected.prediction
    assert found["n_queries"] == expected.n_queries


def test_an_explanation_is_verified_as_text_and_as_object(client):
    text = client.post("/explain", json={"row": 3, **QUICK}).text
    for given in (text, json.loads(text)):
        assert client.post("/verify", json={"explanation": given}).json()["outcome"] == "holds"
    forged = client.post("/verify", json={"explanation": text.replace('"k":5', '"k":4')}).json()
    assert not forged["holds"]
    assert "SHA-256" in forged["reasons"][0]
    assert client.post("/verify", json={"explanation": {}}).json()["outcome"] == "cannot tell"


def test_rows_are_found_paged_and_sorted(client, explainer):
    frame = explainer.space.examples().__next__()
    whole = client.get("/rows", params={"limit": 200}).json()
    assert (whole["total"], whole["found"], len(whole["rows"])) == (400, 400, 200)
    assert whole["columns"] == list(frame.columns)
    assert [row["position"] for row in whole["rows"]] == list(range(200))
    assert whole["rows"][7]["values"][:3] == [frame["age"][7], frame["income"][7], frame["debt"][7]]
    answers = explainer.model.predict(frame)
    assert [row["answer"] for row in whole["rows"]] == answers[:200].tolist()
    found = client.get("/rows", params={"search": "DECLINED purpose=car", "limit": 200, "sort": "high"}).json()
    expected = (answers == "declined") & (frame["purpose"] == "car")
    assert found["found"] == expected.sum() > 10
    values = [row["value"] for row in found["rows"]]
    assert values == sorted(values, reverse=True)
    part = client.get("/rows", params={"search": "declined purpose=car", "offset": 3, "limit": 2, "sort": "high"})
    assert part.json()["rows"] == found["rows"][3:5]
    assert client.get("/rows", params={"search": "#17"}).json()["rows"][0]["position"] == 17
    assert client.get("/rows", params={"search": "#400"}).json()["found"] == 0
    assert client.get("/rows", params={"search": "no such words"}).json()["rows"] == []


def test_what_if_shows_both_answers(client, explainer):
    e = explainer.explain(3, k=5, **QUICK)
    broken = [term.literal.name for term in e.terms[:2]]
    told = client.post("/what-if", json={"row": 3, "broken": broken, **QUICK}).json()
    contributions = sum(term.contribution for term in e.terms[:2])
    assert told["expected"] == pytest.approx(e.prediction - 2 * contributions, abs=1e-12)
    assert [e.literals[i].name for i, gone in enumerate(told["is_broken"]) if gone] == sorted(
        broken, key=[literal.name for literal in e.literals].index
    )
    column = list(explainer.model.classes_).index(e.output)
    answer = explainer.model.predict_proba(explainer.space.at(told["row"]).original)[0, column]
    assert told["prediction"] == answer
    assert told["decision_stays"] == (answer > 0.5) == (told["answer"] == e.output)


def test_what_if_heeds_edits_and_refuses_nonsense(client):
    same = client.post("/what-if", json={"row": 3, **QUICK}).json()
    assert not any(same["is_broken"])
    assert same["prediction"] == same["expected"] == same["original"]
    edited = client.post("/what-if", json={"row": 3, "edits": {"purpose": "home", "owner": True}, **QUICK}).json()
    assert edited["row"]["purpose"] == "home"
    assert edited["row"]["owner"] is True
    for edits in ({"nothing": 1}, {"age": "old"}, {"applied": "soon"}):
        assert client.post("/what-if", json={"row": 3, "edits": edits}).status_code == 422
    assert client.post("/what-if", json={"row": 3, "broken": ["nothing"]}).status_code == 422


@pytest.mark.parametrize(
    ("options", "decide"),
    [
        ({"classes": "ABC"}, lambda rows: scores(rows)[0].argmax()),
        ({"classes": "CBA", "threshold": 0.3}, lambda rows: scores(rows)[0, 0] >= 0.3),
        ({"classes": "ABC", "task": "number", "column": 0}, lambda rows: None),
        ({"task": "label"}, lambda rows: scores(rows)[0].argmax()),
    ],
    ids=["class", "threshold", "number", "label"],
)
def test_a_decision_stays_as_the_certificate_means_it(frame, options, decide):
    def model(rows):
        return scores(rows).argmax(axis=1) if options.get("task") == "label" else scores(rows)

    classes = list(options["classes"]) if "classes" in options else None
    desk = desk_of(model, frame, **options | {"classes": classes})
    row, output = int(scores(frame)[:, 0].argmax()), None if classes is None else "C"
    decided = decide(frame.iloc[[row]])
    for edits in ({}, {"a": -3.0, "b": 4}, {"a": -3.0}, {"a": 9.0, "b": 4}, {"b": 1}):
        told = json.loads(desk.what_if(WhatIfRequest(row=row, edits=edits, output=output, **QUICK)))
        expected = None if decided is None else decide(frame.iloc[[row]].assign(**edits)) == decided
        assert told["decision_stays"] is (None if expected is None else bool(expected))


LIBRARIES = {
    "pandas": lambda frame: frame,
    "nullable": lambda frame: frame.astype({"b": "Int64", "big": "Int64"}),
    "Polars": lambda frame: pl.from_pandas(frame, nan_to_null=True),
    "Arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_values_are_the_tables_own_and_come_back(frame, library):
    if library == "Arrow":  # a table of Arrow's is not read with numbers beyond 2^53
        frame = frame.assign(big=frame["big"] // 2**10)
    desk, big = desk_of(scores, LIBRARIES[library](frame), classes=["A", "B", "C"]), frame["big"].tolist()
    told = json.loads(desk.rows("", "position", 0, 60))
    assert [row["values"][2] for row in told["rows"]] == [str(n) if n >= 2**53 else n for n in big]
    expected = frame["far"].astype(object).where(frame["far"].notna(), None)
    far = expected.replace({np.inf: "Infinity", -np.inf: "-Infinity"}).tolist()
    assert [row["values"][3] for row in told["rows"]] == far
    assert json.loads(desk.rows(f"big={big[7]}", "position", 0, 9))["rows"] == [told["rows"][7]]
    for position in {0, *map(far.index, ("Infinity", "-Infinity", None))}:
        values = told["rows"][position]["values"]
        row = dict(zip(told["columns"], values, strict=True))
        expected = desk.explain(ExplainRequest(row=position, **QUICK))
        assert json.loads(expected)["instance"][2] == big[position]
        for sent in (row, row | {"big": big[position]}):
            assert desk.explain(ExplainRequest(row=sent, **QUICK)) == expected
        kserve = json.loads(desk.kserve(KServeRequest(instances=[values, row], parameters=QUICK)))
        assert kserve["explanations"] == [json.loads(expected)] * 2


def test_a_typical_value_is_a_training_rows_and_edits_are_exact(frame):
    desk, big = desk_of(scores, frame, classes=["A", "B", "C"]), frame["big"].tolist()
    told = json.loads(desk.what_if(WhatIfRequest(row=3, broken=["big"], **QUICK)))
    assert int(told["row"]["big"]) in set(big) - {big[3]}
    for edit in (str(big[3] + 1), big[3] + 1):
        told = json.loads(desk.what_if(WhatIfRequest(row=3, edits={"big": edit, "far": "-Infinity"}, **QUICK)))
        assert (told["row"]["big"], told["row"]["far"]) == (str(big[3] + 1), "-Infinity")
    for edit in ("12", "1e300", "9" * 400, "9" * 5000, "0" * 20):  # no whole number that a browser cannot hold
        with pytest.raises(InstanceError, match="'big'"):
            desk.what_if(WhatIfRequest(row=3, edits={"big": edit}, **QUICK))


def test_texts_of_digits_stay_texts_where_the_column_holds_texts(frame):
    desk = desk_of(scores, frame.assign(big=frame["big"].astype(str)), classes=["A", "B", "C"])
    row = json.loads(desk.rows("", "position", 5, 1))["rows"][0]["values"]
    kserve = json.loads(desk.kserve(KServeRequest(instances=[row], parameters=QUICK)))
    assert kserve["explanations"] == [json.loads(desk.explain(ExplainRequest(row=5, **QUICK)))]
    with pytest.raises(InstanceError, match="5 values"):
        desk.kserve(KServeRequest(instances=[[*row, "9" * 20]], parameters=QUICK))


def test_kserve_explains_instances_in_order(client, explainer):
    rows = [explainer.space.at(i).instance for i in (4, 9)]
    asked = {"instances": [rows[0], dict(zip(explainer.space.names, rows[1], strict=True))], "parameters": QUICK}
    got = client.post("/v1/models/loans:explain", json=asked)
    expected = [explainer.explain(i, **QUICK) for i in (4, 9)]
    assert got.json()["predictions"] == [e.prediction for e in expected]
    assert all(e.to_json() in got.text for e in expected)
    assert client.get("/v1/models").json() == {"models": ["loans"]}
    assert client.get("/v1/models/loans").json() == {"name": "loans", "ready": True}
    assert client.post("/v1/models/other:explain", json=asked).status_code == 404


def test_the_page_is_told_numbers_that_add_up(client):
    for path, asked in (("/page/explain", {"k": 5}), ("/page/frontier", {"ks": [5]})):
        view = client.post(path, json={"row": 3, **asked, **QUICK}).json()
        shown = view["sum"] if "sum" in view else view["points"][0]["sum"]
        parts = [term["number"] for term in shown["terms"]]
        parts += [shown["intercept"]["number"]] if shown["intercept"] else []
        assert sum(round(1000 * float(part)) for part in parts) == round(1000 * float(shown["total"]["number"]))


def test_a_report_is_one_page(client):
    got = client.post("/page/report", json={"row": 3, **QUICK})
    assert got.text.startswith("<!DOCTYPE html>")
    assert "attachment" in got.headers["content-disposition"]
    assert "How many" in got.text


def test_health_and_metrics(client, server):
    assert httpx.get(f"{server.base}/health").json() == {"status": "ok"}
    assert client.get("/health").json()["rows"] == 400
    assert client.post("/explain", json={"row": 3, **QUICK}).status_code == 200  # so that there is one to count
    text = client.get("/metrics").text
    assert re.search(r'anchorline_requests_total\{route="/explain",method="POST",status="200"\} \d+', text)
    assert re.search(r"anchorline_model_rows_total \d+", text)
    assert re.search(r"process_resident_memory_bytes \d+", text)
    buckets = [int(n) for n in re.findall(r'_bucket\{route="/explain",le="[^"]+"\} (\d+)', text)]
    assert buckets == sorted(buckets)


def test_errors_are_problems_with_the_requests_id(client, caplog):
    with caplog.at_level(logging.INFO, logger="anchorline.studio"):
        got = client.post("/explain", json={"row": 5000}, headers={"X-Request-ID": "mine-42"})
        assert soon(lambda: any("id=mine-42" in record.getMessage() for record in caplog.records))
    assert (got.status_code, got.headers["content-type"]) == (422, "application/problem+json")
    assert got.json()["detail"] == "Row 5000 does not exist; the table has rows 0 to 399."
    assert got.json()["request_id"] == got.headers["x-request-id"] == "mine-42"
    invalid = client.post("/explain", json={"row": 1, "k": 0}).json()
    assert invalid["errors"][0]["where"] == ["body", "k"]
    assert client.get("/nowhere").json()["status"] == 404
    assert client.get("/explain").json()["status"] == 405
    assert client.post("/explain", json={"row": 1, "n_samples": 2001}).status_code == 422


def test_the_schema_has_examples_and_no_outside_reference(client):
    described = client.get("/openapi.json").json()
    text = json.dumps(described)
    assert set(re.findall(r'"\$ref": "([^"]+)"', text)) <= {
        f"#/components/schemas/{name}" for name in described["components"]["schemas"]
    }
    for name in ("ExplainRequest", "FrontierRequest", "VerifyRequest", "WhatIfRequest", "KServeRequest"):
        assert described["components"]["schemas"][name]["examples"]
    posts = [one["post"] for path, one in described["paths"].items() if "post" in one]
    assert all("application/problem+json" in one["responses"]["429"]["content"] for one in posts)
    assert all(one["security"] for one in posts)


@pytest.mark.parametrize("kind", ["number", "label"])
def test_numbers_and_labels_are_shown_too(kind):
    rng = np.random.default_rng(0)
    table = al.Table(rng.normal(size=(80, 3)), names=["a", "b", "c"])

    def model(rows):
        score = 3 * rows[:, 0] - rows[:, 1]
        return score if kind == "number" else np.where(score > 0, "up", "down")

    with live(al.Explainer(model, table, output="trend")) as server, client_of(server, timeout=30) as client:
        view = client.post("/page/explain", json={"row": 1, **QUICK}).json()
        assert view["verdict"]["name"] != "unknown"
        assert view["gauges"][0]["kind"] == ("change" if kind == "number" else "stability")
        told = client.post("/what-if", json={"row": 1, "broken": ["a"], **QUICK}).json()
        assert told["decision_stays"] is None if kind == "number" else told["prediction"] in (-1, 1)
        assert client.get("/rows?sort=high&limit=3").status_code == 200


def test_a_full_queue_says_when_to_come_again():
    limits = Limits(queue=1, workers=1)
    with live(slow_explainer(SlowModel(0.4)), limits=limits) as server, client_of(server, timeout=30) as client:

        def ask(seed):
            return client.post("/explain", json={"row": 1, "seed": seed, "n_samples": 50, "n_certify": 0})

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(ask, range(8)))
        refused = [answer for answer in answers if answer.status_code == 429]
        assert refused
        assert all(1 <= int(answer.headers["retry-after"]) <= 60 for answer in refused)
        assert {answer.status_code for answer in answers} == {200, 429}
        assert ask(99).status_code == 200


def test_equal_requests_are_computed_once():
    model = SlowModel(0.3)
    with live(slow_explainer(model)) as server, client_of(server, timeout=30) as client:
        asked = {"row": 1, "n_samples": 50, "n_certify": 0}
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda _: client.post("/explain", json=asked).content, range(6)))
        assert len(set(answers)) == 1
        assert model.calls == 1


def test_time_is_limited_and_the_work_stops():
    model = SlowModel(0.3)
    limits = Limits(timeout=0.5, max_samples=50_000, workers=1)
    with live(slow_explainer(model), limits=limits) as server, client_of(server, timeout=30) as client:
        began = time.perf_counter()
        got = client.post("/explain", json={"row": 1, "n_samples": 50_000, "n_certify": 0})  # 13 batches
        assert (got.status_code, got.json()["status"]) == (503, 503)
        assert time.perf_counter() - began < 2
        time.sleep(0.7)
        assert model.calls < 5
        assert server.studio.metrics.value("anchorline_jobs_total", outcome="timed out") == 1
        assert client.post("/explain", json={"row": 1, "n_samples": 50, "n_certify": 0}).status_code == 200


def test_work_stops_when_the_client_leaves():
    model = SlowModel(0.3)
    limits = Limits(max_samples=50_000, workers=1)
    with live(slow_explainer(model), limits=limits) as server:
        body = json.dumps({"row": 1, "n_samples": 50_000, "n_certify": 0})
        head = f"POST /explain HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        with socket.create_connection(("127.0.0.1", int(server.base.rpartition(":")[2]))) as caller:
            caller.sendall(head.encode())
            time.sleep(0.5)
        time.sleep(0.9)
        assert 1 <= model.calls < 5
        assert server.studio.metrics.value("anchorline_jobs_total", outcome="left") == 1
        assert server.studio.work.n_running == 0


def test_a_request_after_one_that_left_is_computed_anew():
    """Even at once: what was dropped is not joined."""

    async def run():
        work = Work(Limits(workers=1), Metrics())
        work.start()
        begun, release = threading.Event(), threading.Event()

        def slow():
            begun.set()
            release.wait(5)
            return b"first"

        first = asyncio.ensure_future(work.run("key", slow, lambda: asyncio.sleep(60)))
        await asyncio.to_thread(begun.wait, 5)
        first.cancel()
        second = asyncio.ensure_future(work.run("key", lambda: b"second", lambda: asyncio.sleep(60)))
        await asyncio.sleep(0.05)
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert await second == b"second"
        assert work.cache.get("key") == b"second"

    asyncio.run(run())


def test_the_cache_lets_the_oldest_go():
    cache = Cache(entries=2, size=10)
    cache.put("a", b"1234")
    cache.put("b", b"1234")
    assert cache.get("a") == b"1234"
    cache.put("c", b"12")
    assert (cache.get("b"), len(cache), cache.n_bytes) == (None, 2, 6)
    cache.put("d", b"x" * 11)
    assert cache.get("d") is None
    cache.put("a", b"123456789")
    assert (len(cache), cache.n_bytes) == (1, 9)
    assert key_of("explain", {"a": 1, "b": 2}) == key_of("explain", {"b": 2, "a": 1}) != key_of("rows", {"a": 1})


def test_a_signal_ends_the_process_after_what_runs():
    """The command itself: it tells the link, answers, finishes what runs, and ends with 0 within 5 seconds."""
    command = [sys.executable, "-m", "anchorline", "serve", "--demo", "--port", "0"]
    quiet = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(pathlib.Path(al.__file__).parents[1])}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=quiet)
    try:
        line = process.stdout.readline()
        base, _, token = line.removeprefix("Open ").strip().partition("?token=")
        assert len(token) > 40, line
        with concurrent.futures.ThreadPoolExecutor(1) as pool, httpx.Client(base_url=base, timeout=30) as client:
            headers = {"Authorization": f"Bearer {token}"}
            under_way = pool.submit(client.post, "/explain", json={"row": 1, "n_samples": 20_000}, headers=headers)
            time.sleep(0.4)
            began = time.perf_counter()
            process.send_signal(signal.SIGTERM)
            assert under_way.result().status_code == 200
        assert process.wait(8) == 0
        assert time.perf_counter() - began < 5
    finally:
        process.kill()
        process.stdout.close()
        process.wait()
