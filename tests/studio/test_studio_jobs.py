"""The job queue, the caches, the metrics, and the end of the process."""

import asyncio
import concurrent.futures
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

import anchorline
from anchorline.studio.access import StudioLimits
from anchorline.studio.job_queue import JobQueue, checkpoint, request_key, running_seconds
from anchorline.studio.observability import Metrics
from anchorline.studio.schemas import RowsRequest
from helpers.studio import SlowModel, becomes_true, client_of, live, slow_explainer, studio_of


def test_a_full_queue_says_when_to_come_again():
    limits = StudioLimits(queue=1, workers=1)
    with live(slow_explainer(SlowModel(0.4)), limits=limits) as server, client_of(server, timeout=30) as client:

        def ask(seed):
            return client.post("/v1/explain", json={"row": 1, "seed": seed, "queries": 200})

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(ask, range(8)))
        refused = [answer for answer in answers if answer.status_code == 429]
        assert refused
        assert all(1 <= int(answer.headers["retry-after"]) <= 60 for answer in refused)
        assert {answer.status_code for answer in answers} == {200, 429}
        assert ask(99).status_code == 200


def test_equal_requests_are_computed_once():
    model = SlowModel(0.3)
    explainer = slow_explainer(model)
    with live(explainer) as server, client_of(server, timeout=30) as client:
        model.calls = 0  # without those about the table
        body = {"row": 1, "queries": 60}
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda _: client.post("/v1/explain", json=body).content, range(6)))
        assert len(set(answers)) == 1
        together = model.calls
        assert client.post("/v1/explain", json=body | {"seed": 1}).status_code == 200
        assert model.calls == 2 * together


@pytest.mark.parametrize("route", ["explain", "rule"])
def test_time_is_limited_and_the_work_stops(route):
    model = SlowModel(0.3)
    limits = StudioLimits(timeout=0.5, max_queries=50_000, workers=1)
    with live(slow_explainer(model), limits=limits) as server, client_of(server, timeout=30) as client:
        got = client.post(f"/v1/{route}", json={"row": 1, "queries": 50_000})  # 13 batches
        assert (got.status_code, got.json()["status"]) == (503, 503)
        time.sleep(0.7)
        assert model.calls < 5
        assert server.studio.metrics.value("anchorline_jobs_total", outcome="timed out") == 1
        assert client.get("/v1/rows").status_code == 200


def test_work_stops_when_the_client_leaves():
    model = SlowModel(0.3)
    limits = StudioLimits(max_queries=50_000, workers=1)
    with live(slow_explainer(model), limits=limits) as server:
        body = json.dumps({"row": 1, "queries": 50_000})
        head = f"POST /v1/explain HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        with socket.create_connection(("127.0.0.1", int(server.base.rpartition(":")[2]))) as caller:
            caller.sendall(head.encode())
            assert becomes_true(lambda: model.calls, 10)
        assert becomes_true(lambda: server.studio.metrics.value("anchorline_jobs_total", outcome="left") == 1, 10)
        assert becomes_true(lambda: not server.studio.jobs.n_running, 10)
        assert 1 <= model.calls < 5


def test_a_request_after_one_that_left_is_computed_anew():
    """This holds even immediately after: a request never joins a canceled job."""

    async def run():
        jobs = JobQueue(StudioLimits(workers=1), Metrics())
        begun, release = threading.Event(), threading.Event()

        def slow():
            begun.set()
            release.wait(5)
            return b"first"

        first = asyncio.ensure_future(jobs.run("key", slow, lambda: asyncio.sleep(60)))
        await asyncio.to_thread(begun.wait, 5)
        first.cancel()
        second = asyncio.ensure_future(jobs.run("key", lambda: b"second", lambda: asyncio.sleep(60)))
        await asyncio.sleep(0.05)
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert await second == b"second"
        assert jobs.cache.get("key") == b"second"

    asyncio.run(run())


def test_cheap_requests_that_keep_arriving_do_not_starve_a_longer_one():
    """One worker that is never idle: a job of half a second ends soon, and the cheap ones go on meanwhile."""
    jobs, ended = JobQueue(StudioLimits(workers=1), Metrics()), []

    def work(name, seconds):
        start = time.perf_counter()
        while running_seconds() < seconds:
            checkpoint()
            time.sleep(0.002)
        ended.append((name, time.perf_counter() - start))
        return b""

    async def run():
        stays = lambda: asyncio.sleep(60)  # noqa: E731
        ask = lambda name, seconds: jobs.run(None, lambda: work(name, seconds), stays)  # noqa: E731

        async def cheap():
            while not longer.done():
                await ask("cheap", 0.05)

        longer = asyncio.ensure_future(ask("longer", 0.5))
        await asyncio.sleep(0.05)
        await asyncio.wait_for(asyncio.gather(longer, *(cheap() for _ in range(4))), 20)

    asyncio.run(run())
    before = [name for name, _ in ended[: [name for name, _ in ended].index("longer")]]
    assert 2 <= len(before) <= 200


def test_the_cache_is_bounded():
    """By the bytes of the answers and of what they take beside them; an answer that does not fit is not stored."""

    async def run(cache_bytes, answers):
        jobs = JobQueue(StudioLimits(cache_bytes=cache_bytes), Metrics())
        for number, answer in enumerate(answers):
            assert await jobs.run(str(number), lambda answer=answer: answer, asyncio.Event().wait) == answer
        assert jobs.cache.currsize <= cache_bytes
        return [int(key) for key in jobs.cache]

    assert asyncio.run(run(10_000, [b"x"] * 20)) == [*range(11, 20)]
    assert asyncio.run(run(10_000, [b"x" * 3000, b"x" * 3000, b"x" * 20_000, b"x" * 3000])) == [1, 3]
    assert asyncio.run(run(0, [b"", b"x"])) == []


def test_an_explanation_is_computed_once_for_its_json_its_view_and_its_report():
    model = SlowModel(0)
    with live(slow_explainer(model)) as server, client_of(server, timeout=30) as client:
        body = {"row": 1, "queries": 60}
        assert client.post("/v1/explain", json=body).status_code == 200
        asked = server.studio.metrics.value("anchorline_model_rows_total", model="")
        for path in ("/page/explain", "/page/report"):
            assert client.post(path, json=body).status_code == 200
        assert server.studio.metrics.value("anchorline_model_rows_total", model="") == asked


def test_the_key_of_a_request_ignores_the_order_of_its_members():
    key = request_key("explain", {"a": 1, "b": 2})
    assert key == request_key("explain", {"b": 2, "a": 1})
    assert key not in (request_key("rows", {"a": 1, "b": 2}), request_key("explain", {"a": 1}))


EXPORTED = {
    "anchorline_requests": "counter",
    "anchorline_request_seconds": "histogram",
    "anchorline_jobs": "counter",
    "anchorline_cache": "counter",
    "anchorline_model_rows": "counter",
    "anchorline_jobs_waiting": "gauge",
    "anchorline_jobs_running": "gauge",
    "anchorline_cache_entries": "gauge",
    "anchorline_cache_bytes": "gauge",
    "process_resident_memory_bytes": "gauge",
}


def test_every_metric_is_valid_and_has_a_help_text():
    metrics = Metrics()
    metrics.requests.labels(route="/v1/rows", method="GET", status="200").inc()
    metrics.request_seconds.labels(route="/v1/rows").observe(0.2)
    text = metrics.text().decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {name: family.type for name, family in families.items()} == EXPORTED
    assert all(family.documentation for family in families.values())
    assert text.count("# HELP ") == text.count("# TYPE ") == len(EXPORTED)
    for name in ("anchorline_requests_total", "anchorline_jobs_total", "anchorline_cache_total"):
        assert f"# HELP {name} " in text


def test_two_studios_in_one_process_count_separately():
    first, second = (studio_of(slow_explainer(SlowModel(0))) for _ in range(2))
    first.served[""].service.rows(RowsRequest(limit=5))
    assert first.metrics.value("anchorline_model_rows_total", model="") == 5  # the rows of the page, and no others
    assert second.metrics.value("anchorline_model_rows_total", model="") == 0
    first.jobs.cache["key"] = b"1234"
    assert b"anchorline_cache_entries 1.0" in first.metrics.text()
    assert b"anchorline_cache_entries 0.0" in second.metrics.text()


def test_a_signal_ends_the_process_after_what_runs():
    """The command prints the link, answers, finishes the running job, and exits with code 0 within 5 seconds."""
    command = [sys.executable, "-m", "anchorline", "serve", "--demo", "--port", "0"]
    token = "a-token-of-the-environment"
    environment = os.environ | {
        "ANCHORLINE_STUDIO_TOKEN": token,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(pathlib.Path(anchorline.__file__).parents[1]),
    }
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    try:
        before = []
        while (line := process.stdout.readline()) and not line.startswith("Open "):
            before.append(line.strip().removeprefix("anchorline: "))
        assert before == [
            "Starting the studio.",
            "Loading the model and the table.",
            "Asking the model for its first answers.",
        ]
        base = line.removeprefix("Open ").strip()
        assert "token" not in base
        with concurrent.futures.ThreadPoolExecutor(1) as pool, httpx.Client(base_url=base, timeout=30) as client:
            headers = {"Authorization": f"Bearer {token}"}
            under_way = pool.submit(
                client.post, "/v1/explain", json={"row": 1, "queries": 20_000}, headers=headers
            )
            time.sleep(0.4)
            start = time.perf_counter()
            process.send_signal(signal.SIGTERM)
            assert under_way.result().status_code == 200
        assert process.wait(8) == 0
        assert time.perf_counter() - start < 5
    finally:
        process.kill()
        process.stdout.close()
        process.wait()
