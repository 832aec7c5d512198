"""Attacks with valid requests: expensive ones, repeated facts; other users are answered within their time."""

import asyncio
import concurrent.futures
import itertools
import threading
import time

import httpx
import numpy as np
import pytest

import anchorline as al
from anchorline.optimize.exact import interruption
from anchorline.studio import guard as guard_module
from anchorline.studio import job_queue
from anchorline.studio.access import Access
from anchorline.studio.guard import Guard
from anchorline.studio.job_queue import JobQueue, checkpoint
from anchorline.studio.limits import StudioLimits
from anchorline.studio.metrics import Metrics
from anchorline.studio.problems import Problem
from anchorline.studio.proxy import Proxy
from anchorline.studio.schemas import ChangesRequest, FrontierRequest
from helpers.studio import becomes_true, client_of, live

TIMEOUT = 6.0
EXPENSIVE = {"k": 20, "objective": "relevance", "n_certify": 200}


def wide_explainer(n_columns=57, n_rows=300):
    rng = np.random.default_rng(0)
    weights = rng.normal(size=n_columns)

    def score(rows):
        rows = np.asarray(rows, dtype=float)
        return np.tanh(0.2 * rows @ weights + 0.3 * rows[:, 0] * rows[:, 1])

    table = al.Table(rng.normal(size=(n_rows, n_columns)))
    explainer = al.Explainer(score, table, output="score", output_range=(-1, 1))
    explainer.check()
    return explainer


@pytest.fixture(scope="module")
def server():
    with live(wide_explainer(), limits=StudioLimits(timeout=TIMEOUT)) as running:
        yield running


def test_two_expensive_requests_stop_nobody_and_return_their_best(server, client):
    """The search runs for a quarter of the time, twice: without a limit, then with the limit in its record."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        expensive = [pool.submit(client.post, "/explain", json={"row": row, **EXPENSIVE}) for row in (0, 1)]
        assert becomes_true(lambda: server.studio.jobs.n_running == 2)
        seconds = []
        for row in range(2, 6):
            start = time.perf_counter()
            body = {"row": row, "n_samples": 500, "n_certify": 200, "k": 2}
            assert client.post("/explain", json=body).status_code == 200
            seconds.append(time.perf_counter() - start)
        assert max(seconds) < TIMEOUT, seconds
        for answer in (one.result() for one in expensive):
            if answer.status_code == 200:  # always on an idle machine
                content = answer.json()
                certificate = content["certificate"]
                assert certificate["status"] == "LIMIT"
                assert certificate["lower_bound"] <= certificate["objective"]
                assert content["parameters"]["time_limit"] == TIMEOUT / 4
            else:
                assert answer.status_code == 503
    assert becomes_true(lambda: server.studio.jobs.n_running == 0)


def test_searches_of_a_wide_table_stop_nobody(server):
    """Eight words in 57 columns, by two clients without a pause."""
    stop = threading.Event()

    def search():
        with client_of(server, timeout=30) as hostile:
            for number in itertools.count():
                if stop.is_set():
                    return
                words = "+".join(f"word{number}{i}" for i in range(8))
                assert hostile.get(f"/rows?search={words}&sort=high&limit=200").status_code == 200

    with concurrent.futures.ThreadPoolExecutor(2) as pool, client_of(server, timeout=30) as honest:
        searches = [pool.submit(search) for _ in range(2)]
        start = time.perf_counter()
        for row in range(10, 13):
            body = {"row": row, "n_samples": 500, "n_certify": 200, "k": 2}
            assert honest.post("/explain", json=body).status_code == 200
        stop.set()
        assert time.perf_counter() - start < TIMEOUT
        for one in searches:
            one.result()


def test_the_solver_stops_when_the_client_leaves(server, client):
    with pytest.raises(Exception, match="timed out"):
        client.post("/explain", json={"row": 7, **EXPENSIVE}, timeout=1.0)
    assert becomes_true(lambda: server.studio.jobs.n_running == 0, seconds=2.0)


def test_a_frontier_that_takes_too_long_keeps_its_bounds():
    """With a quarter of 0.4 s, the search over up to 20 of 57 facts ends early, point by point."""
    with (
        live(wide_explainer(), limits=StudioLimits(timeout=0.4)) as server,
        client_of(server, timeout=30) as client,
    ):
        server.studio.jobs.limits = StudioLimits(timeout=30)  # the answer itself may take longer
        content = client.post("/frontier", json={"row": 0, "ks": [2, 12, 20], "n_certify": 0}).json()
    points = {point["k"]: point for point in content["points"]}
    assert all(point["lower_bound"] <= point["objective"] for point in points.values())
    assert "LIMIT" in {points[12]["status"], points[20]["status"]}


def test_repeated_facts_cost_no_more_than_one(server, client, monkeypatch):
    counts = []
    inside = type(server.studio.catalog.cases).breaking_values

    def counted(self, neighborhood, name):
        counts.append(name)
        return inside(self, neighborhood, name)

    monkeypatch.setattr(type(server.studio.catalog.cases), "breaking_values", counted)
    body = {"row": 0, "n_samples": 200, "n_certify": 0}
    literals = client.post("/frontier", json={**body, "ks": [1]}).json()["literals"]
    facts = list(dict.fromkeys(literal["name"] for literal in literals))  # several facts may have one name
    assert client.post("/what-if", json={**body, "broken": facts[:1] * 4096}).status_code == 200
    assert counts == facts[:1]
    counts.clear()
    assert client.post("/what-if", json={**body, "broken": [*facts, *facts]}).status_code == 200
    assert counts == facts
    assert FrontierRequest(row=0, ks=[2, 1, 2, 2]).ks == [2, 1]
    assert ChangesRequest(row=0, fixed=["a"] * 4096).fixed == ["a"]
    counts.clear()
    refused = client.post("/what-if", json={**body, "broken": [f"unknown {i}" for i in range(4096)]})
    assert (refused.status_code, len(counts)) == (422, 1)


def run_jobs(jobs, functions):
    """Run functions as jobs of one queue, each submitted as soon as the last one has begun; return their ends."""

    async def run():
        jobs.start()
        tasks = []
        for function in functions:
            begun = threading.Event()
            tasks.append(
                asyncio.ensure_future(jobs.run(None, lambda f=function, b=begun: f(b), asyncio.Event().wait))
            )
            await asyncio.to_thread(begun.wait, 0.4)
        return await asyncio.gather(*tasks)

    return asyncio.run(run())


def test_a_long_job_makes_room_for_short_ones():
    """One thread: the long job has begun, and still the short one, which came later, ends first."""
    ends = []

    def long(begun):
        begun.set()
        end = time.perf_counter() + 1.5
        while time.perf_counter() < end:
            assert not interruption.get()()
            time.sleep(0.001)
        ends.append("long")
        return b""

    def short(begun):
        begun.set()
        checkpoint()
        ends.append("short")
        return b""

    jobs = JobQueue(StudioLimits(workers=1), Metrics())
    run_jobs(jobs, [long, short, short])
    assert ends == ["short", "short", "long"]
    assert jobs.n_running == 0


def test_too_many_long_jobs_end_the_longest(monkeypatch):
    monkeypatch.setattr(job_queue, "_MAX_PAUSED", 2)
    monkeypatch.setattr(job_queue, "_SLICE", 0.02)

    def long(begun):
        begun.set()
        while True:
            checkpoint()
            time.sleep(0.001)

    jobs = JobQueue(StudioLimits(workers=1, timeout=3), Metrics())
    with pytest.raises(Problem, match="Too many expensive requests"):
        run_jobs(jobs, [long] * 5)


def test_large_bodies_are_checked_one_at_a_time_while_others_are_answered(monkeypatch):
    """Before, six clients that sent bodies of 60,000 values delayed others from 0.04 to 8 seconds."""
    running, most = [0], [0]

    def check(body, max_depth):
        running[0] += 1
        most[0] = max(most[0], running[0])
        time.sleep(0.05)
        running[0] -= 1

    monkeypatch.setattr(guard_module, "check_json", check)
    monkeypatch.setattr(guard_module, "_MAX_LARGE", 3)
    guard = Guard(None, Access(None, frozenset()), StudioLimits(), Metrics(), b"", Proxy())

    async def run():
        large = [asyncio.ensure_future(guard._check(b" " * guard_module._LARGE)) for _ in range(5)]
        ticks = 0
        while not all(task.done() for task in large):
            await asyncio.sleep(0.005)
            ticks += 1
        return [task.exception() for task in large], ticks

    outcomes, ticks = asyncio.run(run())
    assert [outcome and outcome.status for outcome in outcomes] == [None, None, None, 429, 429]
    assert most == [1]
    assert ticks >= 10  # the server went on meanwhile
    assert guard._n_large == 0


def test_bodies_of_strangers_are_not_read(server):
    """The paths that need no token need no body, either."""
    for path in ("/health", "/static/style.css"):
        answer = httpx.post(f"{server.base}{path}", content=b"{" * 100_000)
        assert answer.status_code == 405
