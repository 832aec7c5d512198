"""The studio under load: server and clients in two processes, every answer compared with the library's own.

``python -m benchmarks.studio DIR`` measures by itself; ``... DIR --serve`` is the server's process.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
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
from benchmarks.report import write_json, write_page
from benchmarks.tables import load_task

ADULT = 179  # 14 attributes, 48,842 rows
TOKEN = "a-token-of-the-benchmark-alone"
CHROMIUM = Path("/usr/bin/chromium")
COMPUTED = {1: 16, 8: 48, 64: 96}  # clients to requests, each computed: 5,000 samples and 5,000 to certify
KEPT = {1: 1000, 8: 4000, 64: 8000}  # the same, each from the cache
ENDURANCE = 10_000
SMALL = {"n_samples": 50, "n_certify": 0, "k": 4}  # of the endurance run: the server is what is measured
N_SMALL = 240  # different ones: more than the cache holds, so that some are always computed anew
CACHE_ENTRIES = 200
MAX_SECONDS = 600  # of one measurement


def load_explainer(data: Path) -> Explainer:
    """Gradient boosting on the table of adults: the same in both processes."""
    task = load_task(data, ADULT)
    return Explainer(task.model, Table(task.frame))


def serve(data: Path) -> None:
    """The server's process."""
    from anchorline.studio.limits import StudioLimits
    from anchorline.studio.server import prepare

    limits = StudioLimits(cache_entries=CACHE_ENTRIES, queue=64)
    prepare(load_explainer(data), on_ready=lambda link: print(link, flush=True), port=0, limits=limits).run()


@contextmanager
def served(data: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server process, and its port."""
    command = [sys.executable, "-m", "benchmarks.studio", str(data), "--serve"]
    environment = os.environ | {
        "ANCHORLINE_STUDIO_TOKEN": TOKEN,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        found = re.search(r":(\d+)/", process.stdout.readline())
        assert found is not None, "the server did not start"
        yield process, int(found[1])
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


@dataclass(slots=True)
class Connection:
    """One client: a connection that is kept, and the requests sent over it."""

    port: int
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, path: str, body: Any = None) -> tuple[int, bytes]:
        """Status and content of the answer."""
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
        """Leave."""
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


def request_bytes(path: str, body: Any = None) -> bytes:
    """A whole request with the token."""
    content = b"" if body is None else json.dumps(body).encode()
    method = "GET" if body is None else "POST"
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


@dataclass(slots=True)
class Tally:
    """What came of many requests."""

    wrong: int = 0
    refused: int = 0
    lost: int = 0
    seconds: list[float] = field(default_factory=list)

    def row(self, what: str, clients: int, took: float, **more: Any) -> dict[str, Any]:
        """A row of the results; all rows have the same columns."""
        told = {"what": what, "clients": clients, "requests": len(self.seconds) + self.lost}
        told |= {"wrong": self.wrong, "refused": self.refused, "lost": self.lost}
        told["per_second"] = len(self.seconds) / took if self.seconds else None
        for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99)):
            told[name] = 1000 * float(np.quantile(self.seconds, share)) if self.seconds else None
        rest = {"memory_before_mb": None, "memory_after_mb": None, "seconds": took}
        return told | rest | more


async def load(port: int, clients: int, todo: Sequence[tuple[Any, str]]) -> tuple[Tally, float]:
    """So many clients share the requests; each answer is compared with the text expected of it."""
    tally, waiting = Tally(), iter(todo)

    async def work() -> None:
        connection = Connection(port)
        for body, expected in waiting:
            began = time.perf_counter()
            try:
                status, content = await connection.ask("/explain", body)
            except (OSError, asyncio.IncompleteReadError):
                tally.lost += 1
                connection.close()
                continue
            tally.seconds.append(time.perf_counter() - began)
            tally.refused += status == 429
            tally.wrong += status not in (200, 429) or (status == 200 and content.decode() != expected)
        connection.close()

    began = time.perf_counter()
    async with asyncio.timeout(MAX_SECONDS):
        await asyncio.gather(*(work() for _ in range(clients)))
    return tally, time.perf_counter() - began


def expected_of(explainer: Explainer, bodies: Sequence[dict[str, Any]]) -> list[tuple[Any, str]]:
    """The library's own answers, one by one, in this process."""
    return [
        (body, explainer.explain(body["row"], **{key: body[key] for key in body if key != "row"}).to_json())
        for body in bodies
    ]


async def memory_of(port: int) -> float:
    """Resident memory of the server, in megabytes."""
    connection = Connection(port)
    _, content = await connection.ask("/metrics")
    connection.close()
    found = re.search(rb"process_resident_memory_bytes (\S+)", content)
    return float(found[1]) / 1e6 if found else float("nan")


async def misbehave(port: int) -> list[asyncio.StreamWriter]:
    """Clients that send half a request, ask and leave at once, or ask for much and read nothing."""
    kept = []
    for number in range(60):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        body = {"row": number, "seed": 7000 + number}
        if number % 3 == 0:
            writer.write(request_bytes("/explain", body)[:-5])
        elif number % 3 == 1:
            writer.write(request_bytes("/explain", body))
            await writer.drain()
            writer.close()
            continue
        else:
            writer.write(request_bytes("/rows?limit=200") * 20)
        kept.append(writer)
    return kept


def under_load(port: int, explainer: Explainer) -> Iterator[dict[str, Any]]:
    """Answers computed one by one, then the same from the cache, for 1, 8 and 64 clients."""
    first = 0
    for clients, n in COMPUTED.items():
        todo = expected_of(explainer, [{"row": row} for row in range(first, first + n)])
        first += n
        tally, took = asyncio.run(load(port, clients, todo))
        yield tally.row("computed", clients, took)
    for clients, n in KEPT.items():
        repeated = [todo[i % len(todo)] for i in range(n)]  # the last ones are in the cache
        tally, took = asyncio.run(load(port, clients, repeated))
        yield tally.row("from the cache", clients, took)


def endurance(port: int, small: Sequence[tuple[Any, str]]) -> dict[str, Any]:
    """Memory after a first part of 10,000 requests, and at their end."""
    order = np.random.default_rng(0).integers(0, len(small), ENDURANCE)
    todo = [small[i] for i in order]
    warm, _ = asyncio.run(load(port, 8, todo[: ENDURANCE // 5]))
    before = asyncio.run(memory_of(port))
    tally, took = asyncio.run(load(port, 8, todo[ENDURANCE // 5 :]))
    after = asyncio.run(memory_of(port))
    tally.wrong, tally.lost = tally.wrong + warm.wrong, tally.lost + warm.lost
    return tally.row(
        "10,000 small ones", 8, took, requests=ENDURANCE, memory_before_mb=before, memory_after_mb=after
    )


def among_others(port: int, small: Sequence[tuple[Any, str]]) -> dict[str, Any]:
    """Ordinary clients beside slow ones and ones that leave."""

    async def run() -> tuple[Tally, float]:
        kept = await misbehave(port)
        found = await load(port, 4, small[:200])
        for writer in kept:
            writer.close()
        return found

    tally, took = asyncio.run(run())
    return tally.row("beside 60 slow or leaving clients", 4, took)


def ending(process: "subprocess.Popen[str]", port: int, explainer: Explainer) -> dict[str, Any]:
    """SIGTERM while requests run: they are answered, and the process ends."""
    todo = expected_of(explainer, [{"row": row, "seed": 99} for row in range(4)])

    async def run() -> tuple[Tally, float, float]:
        under_way = asyncio.ensure_future(load(port, 4, todo))
        await asyncio.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        sent = time.perf_counter()
        return *(await under_way), sent

    tally, took, sent = asyncio.run(run())
    code = process.wait(10)
    ended = time.perf_counter() - sent
    return tally.row(f"SIGTERM with 4 under way: exit {code}", 4, took, seconds=ended, per_second=None)


def measure(data: Path) -> Iterator[dict[str, Any]]:
    """Every row of the section."""
    explainer = load_explainer(data)
    with served(data) as (process, port):
        yield from under_load(port, explainer)
        small = expected_of(explainer, [{"row": row, **SMALL} for row in range(N_SMALL)])
        yield endurance(port, small)
        yield among_others(port, small)
        yield ending(process, port, explainer)
    yield from sliders()


def sliders() -> Iterator[dict[str, Any]]:
    """From a slider's event to the picture, on the demo model; nothing where there is no browser."""
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        return
    if not CHROMIUM.exists():
        return
    command = [sys.executable, "-m", "anchorline", "serve", "--demo", "--port", "0"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        link = process.stdout.readline().removeprefix("Open ").strip()
        with sync_playwright() as playwright:
            options = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
            browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=options)
            page = browser.new_page()
            page.goto(f"{link}&case=1")
            page.wait_for_selector("#others li", timeout=60_000)
            yield _moved(page, "k", [str(1 + i % 9) for i in range(4, 40)])
            yield _moved(page, "sigma", [str(0.25 * i) for i in (*range(5, 17), *range(3, -1, -1))])
            browser.close()
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def _moved(page: Any, name: str, values: Sequence[str]) -> dict[str, Any]:
    """Move one slider through new positions, each time until the picture is drawn."""
    tally, began = Tally(), time.perf_counter()
    count = "performance.getEntriesByName('slider-to-picture').length"
    page.evaluate("performance.clearMeasures()")
    for seen, value in enumerate(values):
        page.evaluate(
            "([name, value]) => { const slider = document.getElementById(name); slider.value = value; "
            "slider.dispatchEvent(new Event('input', { bubbles: true })); }",
            [name, value],
        )
        while page.evaluate(count) <= seen:
            page.wait_for_timeout(5)
    found = page.evaluate("performance.getEntriesByName('slider-to-picture').map((entry) => entry.duration)")
    tally.seconds = [milliseconds / 1000 for milliseconds in found]
    page.wait_for_selector("#trust:not(.stale)", timeout=60_000)
    took = time.perf_counter() - began
    return tally.row(f"slider {name} to picture", 1, took, per_second=None, p50_ms=statistics.median(found))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the figures; or serve."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studio", description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    chosen = parser.parse_args(arguments)
    if chosen.serve:
        serve(chosen.data)
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
