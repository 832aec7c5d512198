"""The studio under load: server and clients in two processes; every answer is compared with the library's.

``python -m benchmarks.studio DIR`` measures; ``--hostile`` prints only the rows about hostile clients and about
the memory after many requests, ``--memory`` the latter alone, and ``--start`` the one about the start of the
demonstration. With ``--serve``, it runs the server.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from anchorline.spaces.table import Table
from benchmarks.raw import load_task
from benchmarks.report import write_json, write_page

ADULT = 179  # 14 attributes, 48,842 rows
TOKEN = "a-token-of-the-benchmark-alone"
COMPUTED = {1: 16, 8: 48, 64: 96}  # requests by number of clients; each is computed with the default settings
CACHED = {1: 1000, 8: 4000, 64: 8000}  # requests by number of clients; each is answered from the cache
WARM, ENDURANCE = 500, 5_000  # mixed requests after which the memory is read
SMALL = {"queries": 100, "k": 4}  # of the endurance run, which measures the server and not the search
N_SMALL = 240  # more different requests than the cache holds, so that some are always computed
CACHE_BYTES = 2_000_000
MAX_SECONDS = 1800  # per measurement
WIDE = 57  # columns of the table that hostile clients attack
STARTS = 5  # starts of the demonstration
# What honest clients ask of the wide table: a change of one of four columns.
CHANGE = {"k": 1, "n": 1, "target": "+0.2", "fixed": [f"x{j}" for j in range(4, WIDE)]}
LARGE_BODY = json.dumps({"row": {f"c{i}": i for i in range(60_000)}}).encode()  # which is refused
ROUNDS, PER_ROUND = 8, 60  # rounds without and with hostile clients, in turns, and honest requests per round
PEOPLE, OPENED = 40, 160  # people who open cases at once, and the cases per round
SUMMARY = 1000  # cases of a summary, beside `explain_many` of as many

Request = tuple[str, Any, str | None]  # path, body and the expected answer, if it is known


def load_explainer(data: Path) -> Explainer:
    """Return an explainer of gradient boosting on Adult, which is the same in both processes."""
    task = load_task(data, ADULT)
    return Explainer(task.model, Table(task.frame))


def wide_explainer(n_rows: int = 20_000) -> Explainer:
    """Return an explainer of a synthetic model on 57 columns, for searches of 20 facts."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=WIDE)

    def score(rows: Any) -> np.ndarray:
        values = np.asarray(rows, dtype=float)
        return np.asarray(np.tanh(0.2 * values @ weights + 0.3 * values[:, 0] * values[:, 1]))

    table = Table(rng.normal(size=(n_rows, WIDE)))
    explainer = Explainer(score, table, output="score", output_range=(-1, 1))
    explainer.check()
    return explainer


def serve(data: Path, *, wide: int) -> None:
    """Run the server."""
    from anchorline.studio.access import StudioLimits
    from anchorline.studio.display import Model
    from anchorline.studio.server import prepare

    limits = StudioLimits(cache_bytes=CACHE_BYTES, queue=64)
    explainer = wide_explainer(wide) if wide else load_explainer(data)
    prepare(Model(explainer=explainer), on_ready=lambda link: print(link, flush=True), port=0, limits=limits).run()


@contextmanager
def served(data: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start a server process; yield it and its port."""
    command = [sys.executable, "-m", "benchmarks.studio", str(data), "--serve", *options]
    environment = os.environ | {
        "ANCHORLINE_STUDIO_TOKEN": TOKEN,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        address = re.search(r":(\d+)/", process.stdout.readline())
        assert address is not None, "the server did not start"
        yield process, int(address[1])
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


@dataclass(slots=True)
class Connection:
    """One client, with a connection that it keeps open for all its requests."""

    port: int
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, path: str, body: Any = None) -> tuple[int, bytes]:
        """Send a request; return the status and the content of the answer."""
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        writer.write(request_bytes(path, body))
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = re.search(r"content-length: (\d+)", head)
        assert length is not None, head
        content = await reader.readexactly(int(length[1]))
        return int(head.split(" ", 2)[1]), content

    def close(self) -> None:
        """Close the connection."""
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


def request_bytes(path: str, body: Any = None) -> bytes:
    """Return the bytes of a complete request with the token."""
    content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    method = "GET" if body is None else "POST"
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


@dataclass(slots=True)
class Tally:
    """The outcomes of many requests."""

    wrong: int = 0
    refused: int = 0
    lost: int = 0
    seconds: list[float] = field(default_factory=list)

    def row(self, what: str, clients: int, duration: float, **more: Any) -> dict[str, Any]:
        """Return a row of the results; all rows have the same columns."""
        row = {"what": what, "clients": clients, "requests": len(self.seconds) + self.lost}
        row |= {"wrong": self.wrong, "refused": self.refused, "lost": self.lost}
        row["per_second"] = len(self.seconds) / duration if self.seconds else None
        for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99)):
            row[name] = 1000 * float(np.quantile(self.seconds, share)) if self.seconds else None
        rest = {"memory_before_mb": None, "memory_after_mb": None, "seconds": duration}
        return row | rest | more


async def load(port: int, clients: int, requests: Sequence[Request]) -> tuple[Tally, float]:
    """Distribute the requests over the clients, and compare each answer with the expected text."""
    tally, waiting = Tally(), iter(requests)

    async def work() -> None:
        connection = Connection(port)
        for path, body, expected in waiting:
            start = time.perf_counter()
            try:
                status, content = await connection.ask(path, body)
            except (OSError, asyncio.IncompleteReadError):
                tally.lost += 1
                connection.close()
                continue
            tally.seconds.append(time.perf_counter() - start)
            tally.refused += status == 429
            is_expected = expected is None or content.decode() == expected
            tally.wrong += status not in (200, 202, 429) or (status == 200 and not is_expected)
        connection.close()

    start = time.perf_counter()
    async with asyncio.timeout(MAX_SECONDS):
        await asyncio.gather(*(work() for _ in range(clients)))
    return tally, time.perf_counter() - start


def expected_answers(explainer: Explainer, bodies: Sequence[dict[str, Any]]) -> list[Request]:
    """Return each request with the library's answer, computed in this process; those with a target are changes."""
    requests: list[Request] = []
    for body in bodies:
        keywords = {key: body[key] for key in body if key != "row"}
        if "target" in body:
            found: Any = explainer.changes(body["row"], queries=20_000, **keywords)
            requests.append(("/v1/changes", body, found.to_json()))
        else:
            requests.append(("/v1/explain", body, explainer.explain(body["row"], **keywords).to_json()))
    return requests


async def resident_memory(port: int) -> float:
    """Return the resident memory of the server, in megabytes."""
    connection = Connection(port)
    _, content = await connection.ask("/metrics")
    connection.close()
    match = re.search(rb"process_resident_memory_bytes ([0-9.e+]+)", content)
    return float(match[1]) / 1e6 if match else float("nan")


async def start_bad_clients(port: int) -> list[asyncio.StreamWriter]:
    """Start clients that send half a request, disconnect early or read nothing; return the open connections."""
    connections = []
    for number in range(60):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        body = {"row": number, "seed": 7000 + number}
        if number % 3 == 0:
            writer.write(request_bytes("/v1/explain", body)[:-5])
        elif number % 3 == 1:
            writer.write(request_bytes("/v1/explain", body))
            await writer.drain()
            writer.close()
            continue
        else:
            writer.write(request_bytes("/v1/rows?limit=200") * 20)
        connections.append(writer)
    return connections


def under_load(port: int, explainer: Explainer) -> Iterator[dict[str, Any]]:
    """Measure computed answers, then answers from the cache, for 1, 8 and 64 clients."""
    first = 0
    for clients, n in COMPUTED.items():
        requests = expected_answers(explainer, [{"row": row} for row in range(first, first + n)])
        first += n
        tally, duration = asyncio.run(load(port, clients, requests))
        yield tally.row("computed", clients, duration)
    for clients, n in CACHED.items():
        repeated = [requests[i % len(requests)] for i in range(n)]  # the last requests are in the cache
        tally, duration = asyncio.run(load(port, clients, repeated))
        yield tally.row("from the cache", clients, duration)


def mixed_requests() -> list[Request]:
    """Return requests of every kind about different rows, most of which are computed, in a random order."""
    requests: list[Request] = []
    rng = np.random.default_rng(0)
    for row in map(int, rng.integers(0, 20_000, ENDURANCE)):
        small = {"row": row, **SMALL}
        kinds: list[tuple[str, Any]] = [
            ("/v1/explain", small),
            ("/page/explain", small),
            ("/page/report", small),
            ("/v1/rule", {"row": row, "queries": 100, "k": 2}),
            ("/v1/what-if", small | {"edits": {"x1": 0.5}}),
            ("/v1/changes", {"row": row, **CHANGE}),
            ("/v1/overview", {"search": f"#{row}", "n_rows": 1, "k": 1, "sigma": 8.0}),
            (f"/v1/rows?search=x0>{row / 10_000}&offset={row}&limit=20", None),
        ]
        requests.append((*kinds[int(rng.integers(len(kinds)))], None))
    return requests


def endurance(data: Path) -> dict[str, Any]:
    """Measure a server's memory after the first mixed requests, and after all of them."""
    requests = mixed_requests()
    with served(data, "--wide", "20000") as (_, port):
        warm, _ = asyncio.run(load(port, 8, requests[:WARM]))
        before = asyncio.run(resident_memory(port))
        tally, duration = asyncio.run(load(port, 8, requests[WARM:]))
        after = asyncio.run(resident_memory(port))
    tally.wrong, tally.lost = tally.wrong + warm.wrong, tally.lost + warm.lost
    what = f"{ENDURANCE:,} mixed requests: memory is {after / before:.2f} times that after {WARM}"
    memory = {"memory_before_mb": before, "memory_after_mb": after}
    return tally.row(what, 8, duration, requests=ENDURANCE, **memory)


def beside_bad_clients(port: int, small: Sequence[Request]) -> dict[str, Any]:
    """Measure ordinary clients beside slow clients and clients that disconnect."""

    async def run() -> tuple[Tally, float]:
        connections = await start_bad_clients(port)
        outcome = await load(port, 4, small[:200])
        for writer in connections:
            writer.close()
        return outcome

    tally, duration = asyncio.run(run())
    return tally.row("beside 60 slow or disconnecting clients", 4, duration)


def hostile_request(number: int, seed: int) -> tuple[str, Any]:
    """Return the most expensive legal request of one kind."""
    most = {"row": seed, "k": 20, "seed": seed}
    kinds: list[tuple[str, Any]] = [
        ("/v1/explain", most | {"queries": 20_000, "alternatives": 10, "sigma": 0.0}),
        ("/v1/changes", most | {"n": 10, "target": "+50"}),
        ("/v1/changes", most | {"n": 10, "target": "+50", "examples": "rows"}),
        ("/v1/overview", {"n_rows": 1000, "k": 20, "sigma": 0.001 * (seed % 20)}),
        ("/v1/rule", most | {"queries": 20_000, "holds": 1.0, "sigma": 0.0}),
        ("/v1/explain", LARGE_BODY)
        if seed % 2
        else ("/v1/what-if", most | {"broken": ["x1"] * 4096, "edits": {}}),
        (f"/v1/rows?search=word{seed}+{seed}.5&sort=high&limit=200", None),
        ("/v1/rows?limit=200", None),
    ]
    return kinds[number % len(kinds)]


async def attack(port: int, number: int, seed: int) -> None:
    """Be one hostile client until canceled; every eighth one never reads its answers."""
    while True:
        seed += 1
        path, body = hostile_request(number, seed)
        connection = Connection(port)
        try:
            if number % 8 < 7:
                await connection.ask(path, body)
                continue
            connection.streams = await asyncio.open_connection("127.0.0.1", port)
            connection.streams[1].write(request_bytes(path) * 20)
            await asyncio.sleep(1.0)
        except (OSError, asyncio.IncompleteReadError):
            await asyncio.sleep(0.1)
        finally:
            connection.close()


def in_turns(port: int, clients: int, parts: Sequence[Sequence[Request]], who: str) -> Iterator[dict[str, Any]]:
    """Measure honest clients alone and beside 8 hostile ones, in turns on one server."""

    async def run(part: Sequence[Request], hostile: int, seed: int) -> tuple[Tally, float]:
        attackers = [asyncio.ensure_future(attack(port, number, seed)) for number in range(hostile)]
        await asyncio.sleep(1.0)
        outcome = await load(port, clients, part)
        for attacker in attackers:
            attacker.cancel()
        await asyncio.gather(*attackers, return_exceptions=True)
        return outcome

    tallies, durations = {0: Tally(), 8: Tally()}, {0: 0.0, 8: 0.0}
    for i, part in enumerate(parts):
        hostile = 8 * (i % 2 == 0)
        tally, duration = asyncio.run(run(part, hostile if i else 0, 1000 * i))
        if i == 0:
            continue  # a server that has just started is slower, which is nobody's attack
        total = tallies[hostile]
        total.wrong, total.refused = total.wrong + tally.wrong, total.refused + tally.refused
        total.lost, durations[hostile] = total.lost + tally.lost, durations[hostile] + duration
        total.seconds += tally.seconds
    p99 = {hostile: float(np.quantile(tally.seconds, 0.99)) for hostile, tally in tallies.items()}
    yield tallies[0].row(f"{clients} {who} alone", clients, durations[0])
    what = f"{clients} {who} beside 8 hostile clients: p99 is {p99[8] / p99[0]:.2f} times that without"
    yield tallies[8].row(what, clients, durations[8])


def in_parts(requests: Sequence[Request], size: int) -> list[Sequence[Request]]:
    """Return the requests of one round each."""
    return [requests[i : i + size] for i in range(0, len(requests), size)]


def beside_hostile_clients(data: Path) -> Iterator[dict[str, Any]]:
    """Measure 8 clients of the interface and 40 people with pages, with and without attacks; then the memory."""
    explainer = wide_explainer()
    bodies = [
        {"row": row} | (CHANGE if row % 4 == 3 else {"queries": 1000, "k": 4})
        for row in range((2 * ROUNDS + 1) * PER_ROUND)
    ]
    requests = expected_answers(explainer, bodies)
    opened: list[Request] = [("/page/explain", {"row": row}, None) for row in range((2 * ROUNDS + 1) * OPENED)]
    with served(data, "--wide", "20000") as (_, port):
        yield from in_turns(port, 8, in_parts(requests, PER_ROUND), "honest clients")
    explainer = wide_explainer(50_000)
    with served(data, "--wide", "50000") as (_, port):
        yield summary(port, explainer)
        yield from in_turns(port, PEOPLE, in_parts(opened, OPENED), "people who open cases")
    yield endurance(data)


def summary(port: int, explainer: Explainer) -> dict[str, Any]:
    """Measure a summary of many cases beside `explain_many` of as many."""
    start = time.perf_counter()
    explainer.explain_many(list(range(SUMMARY)))
    alone = time.perf_counter() - start

    async def ask() -> tuple[str, float]:
        connection, start = Connection(port), time.perf_counter()
        _, content = await connection.ask("/v1/overview", {"n_rows": SUMMARY})
        while (job := json.loads(content))["state"] == "running":
            await asyncio.sleep(0.05)
            _, content = await connection.ask(f"/v1/jobs/{job['id']}")
        connection.close()
        return job["state"], time.perf_counter() - start

    state, seconds = asyncio.run(ask())
    tally = Tally(wrong=int(state != "done"), seconds=[seconds])
    return tally.row(f"summary of {SUMMARY:,} cases: {seconds / alone:.2f} times explain_many", 1, seconds)


def shut_down(process: "subprocess.Popen[str]", port: int, explainer: Explainer) -> dict[str, Any]:
    """Send SIGTERM while requests run; the server answers them, and its process ends."""
    requests = expected_answers(explainer, [{"row": row, "seed": 99} for row in range(4)])

    async def run() -> tuple[Tally, float, float]:
        running = asyncio.ensure_future(load(port, 4, requests))
        await asyncio.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        sent = time.perf_counter()
        return *(await running), sent

    tally, duration, sent = asyncio.run(run())
    code = process.wait(10)
    seconds = time.perf_counter() - sent
    what = f"SIGTERM during 4 requests: exit {code}"
    return tally.row(what, 4, duration, seconds=seconds, per_second=None)


def measure(data: Path) -> Iterator[dict[str, Any]]:
    """Yield every row of the section."""
    explainer = load_explainer(data)
    with served(data) as (process, port):
        yield from under_load(port, explainer)
        small = expected_answers(explainer, [{"row": row, **SMALL} for row in range(N_SMALL)])
        yield beside_bad_clients(port, small)
        yield shut_down(process, port, explainer)
    yield from beside_hostile_clients(data)
    yield start_of_demo()


@contextmanager
def demonstration() -> Iterator[str]:
    """Run ``anchorline serve --demo``; yield the printed link."""
    command = [sys.executable, "-m", "anchorline", "serve", "--demo", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().removeprefix("Open ").strip()
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def start_of_demo() -> dict[str, Any]:
    """Measure the time from the command to the printed link; a first start, which reads from disk, is left out."""
    tally, began = Tally(), time.perf_counter()
    for _ in range(1 + STARTS):
        start = time.perf_counter()
        with demonstration() as link:
            tally.seconds.append(time.perf_counter() - start)
        assert link.startswith("http://"), "the server did not start"
    del tally.seconds[0]
    duration = time.perf_counter() - began
    return tally.row("anchorline serve --demo to its link", 1, duration, per_second=None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the results; or, with --serve, run the server."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studio", description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--wide", type=int, default=0, help="with --serve: rows of the table that is attacked")
    parser.add_argument("--hostile", action="store_true", help="print only the rows about hostile clients")
    parser.add_argument("--memory", action="store_true", help="print only the row about the memory of the server")
    parser.add_argument("--start", action="store_true", help="print only the row about the start of the demo")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    chosen = parser.parse_args(arguments)
    if chosen.serve:
        serve(chosen.data, wide=chosen.wide)
        return 0
    if chosen.hostile or chosen.memory or chosen.start:
        for row in beside_hostile_clients(chosen.data) if chosen.hostile else ():
            print(row, flush=True)
        if chosen.memory and not chosen.hostile:
            print(endurance(chosen.data), flush=True)
        if chosen.start:
            print(start_of_demo(), flush=True)
        return 0
    rows = []
    for row in measure(chosen.data):
        rows.append(row)
        print(row, flush=True)
        write_json(chosen.out, "studio", rows)
    write_page(chosen.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
