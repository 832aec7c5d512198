"""Attacks with valid requests: expensive ones, repeated facts; other users are answered within their time."""

import asyncio
import concurrent.futures
import itertools
import threading
import time

import httpx
import numpy as np
import pytest

from anchorline.explainer import Explainer
from anchorline.spaces.table import Table
from anchorline.studio import guard as guard_module
from anchorline.studio.access import Access, Proxy, StudioLimits
from anchorline.studio.guard import Guard
from anchorline.studio.job_queue import JobQueue, checkpoint, running_seconds
from anchorline.studio.observability import Metrics
from anchorline.studio.schemas import ChangesRequest, WhatIfRequest
from helpers.studio import becomes_true, client_of, live

TIMEOUT = 6.0
EXPENSIVE = {"k": 20, "alternatives": 10}


def wide_explainer(n_columns=57, n_rows=300):
    rng = np.random.default_rng(0)
    weights = rng.normal(size=n_columns)

    def score(rows):
        rows = np.asarray(rows, dtype=float)
        return np.tanh(0.2 * rows @ weights + 0.3 * rows[:, 0] * rows[:, 1])

    table = Table(rng.normal(size=(n_rows, n_columns)))
    explainer = Explainer(score, table, output="score", output_range=(-1, 1))
    explainer.check()
    return explainer


@pytest.fixture(scope="module")
def server():
    with live(wide_explainer(), limits=StudioLimits(timeout=TIMEOUT)) as running:
        yield running


def test_expensive_requests_stop_nobody(server, client):
    """Each worker has an expensive request, and still others are answered in time."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        expensive = [pool.submit(client.post, "/v1/explain", json={"row": row, **EXPENSIVE}) for row in (0, 1)]
        start = time.perf_counter()
        for row in range(2, 6):
            assert client.post("/v1/explain", json={"row": row, "queries": 500, "k": 2}).status_code == 200
        assert time.perf_counter() - start < TIMEOUT
        assert {one.result().status_code for one in expensive} <= {200, 503}
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
                assert hostile.get(f"/v1/rows?search={words}&sort=high&limit=200").status_code == 200

    with concurrent.futures.ThreadPoolExecutor(2) as pool, client_of(server, timeout=30) as honest:
        searches = [pool.submit(search) for _ in range(2)]
        start = time.perf_counter()
        for row in range(10, 13):
            body = {"row": row, "queries": 200, "k": 2}
            assert honest.post("/v1/explain", json=body).status_code == 200
        stop.set()
        assert time.perf_counter() - start < TIMEOUT
        for one in searches:
            one.result()


def test_the_work_stops_when_the_client_leaves(server, client):
    with pytest.raises(Exception, match="timed out"):
        client.post("/v1/explain", json={"row": 7, "sigma": 0, **EXPENSIVE}, timeout=0.2)
    assert becomes_true(lambda: server.studio.jobs.n_running == 0, seconds=2.0)


def test_repeated_names_cost_no_more_than_one():
    assert ChangesRequest(row=0, fixed=["a"] * 4096).fixed == ["a"]
    assert WhatIfRequest(row=0, broken=["a", "b"] * 2048).broken == ["a", "b"]


def run_jobs(jobs, functions):
    """Run functions as jobs of one queue, each submitted as soon as the last one has begun; return their ends."""

    async def run():
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
            checkpoint()
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


def test_long_jobs_make_room_and_are_not_starved():
    """Short jobs keep arriving and come first; still both long ones end before the last of them."""
    ends = []

    def work(begun, seconds, name):
        begun.set()
        while running_seconds() < seconds:
            checkpoint()
            time.sleep(0.001)
        ends.append(name)
        return b""

    short = [lambda begun: work(begun, 0.1, "short")] * 100
    long = [lambda begun: work(begun, 0.4, "first"), lambda begun: work(begun, 0.4, "second")]
    jobs = JobQueue(StudioLimits(workers=1), Metrics())
    run_jobs(jobs, [*long, *short])
    assert {"first", "second"} <= set(ends[:-1])
    assert ends.index("first") > 2


def test_large_bodies_are_checked_one_at_a_time_while_others_are_answered(monkeypatch):
    """Before, six clients that sent bodies of 60,000 values delayed others from 0.04 to 8 seconds."""
    running, most = [0], [0]

    def check(body):
        running[0] += 1
        most[0] = max(most[0], running[0])
        time.sleep(0.05)
        running[0] -= 1

    monkeypatch.setattr(guard_module, "check_json", check)
    monkeypatch.setattr(guard_module, "_MAX_LARGE", 3)
    guard = Guard({}, Access(None, frozenset()), StudioLimits(), Metrics(), b"", Proxy())

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


def test_later_steps_of_a_long_job_do_not_pass_for_new_ones():
    """One worker: a step that goes on with a long job ends after the short ones that came later."""
    jobs, ends = JobQueue(StudioLimits(workers=1), Metrics()), []

    def work(name, seconds):
        end = running_seconds() + seconds
        while running_seconds() < end:
            checkpoint()
            time.sleep(0.001)
        ends.append(name)
        return b""

    async def run():
        stays = lambda: asyncio.sleep(60)  # noqa: E731
        step = asyncio.ensure_future(jobs.run(None, lambda: work("step", 0.2), stays, before=1.0))
        await asyncio.sleep(0.05)
        short = [jobs.run(None, lambda: work("short", 0.1), stays) for _ in range(4)]
        await asyncio.gather(step, *short)

    asyncio.run(run())
    assert ends.index("step") >= 2
