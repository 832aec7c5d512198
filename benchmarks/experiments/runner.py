"""A run that survives a kill: every finished unit is stored in a file, and a restart skips finished units."""

import json
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from benchmarks.experiments.protocol import Unit
from benchmarks.experiments.results import write
from benchmarks.experiments.series import Row, run_unit


@dataclass(frozen=True, slots=True)
class Store:
    """Finished units, one small file per unit, named by the unit's key."""

    directory: Path

    def has(self, unit: Unit) -> bool:
        """Return whether the unit is finished."""
        return self._file(unit).exists()

    def write(self, unit: Unit, rows: Sequence[Row]) -> None:
        """Store the rows of a finished unit."""
        write(self._file(unit), json.dumps({"unit": unit.title, "rows": list(rows)}))

    def rows(self, units: Iterable[Unit]) -> list[Row]:
        """Return the rows of the finished units, in the order of the units."""
        rows: list[Row] = []
        for unit in units:
            if self.has(unit):
                rows += json.loads(self._file(unit).read_text(encoding="utf-8"))["rows"]
        return rows

    def coverage(self, units: Iterable[Unit]) -> dict[tuple[str, str, str], tuple[int, int]]:
        """Count the finished and the planned units by series, group and protocol."""
        counts: dict[tuple[str, str, str], tuple[int, int]] = {}
        for unit in units:
            done, planned = counts.get((unit.series, unit.group, unit.protocol), (0, 0))
            counts[unit.series, unit.group, unit.protocol] = done + self.has(unit), planned + 1
        return counts

    def _file(self, unit: Unit) -> Path:
        return self.directory / f"{unit.key}.json"


@dataclass
class RunProgress:
    """Prints the progress of a run, its rate and the remaining time, estimated from the costs of the units."""

    n_units: int
    cost: float
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    n_done: int = 0
    done: float = 0.0
    start: float = field(default_factory=time.monotonic)

    def report(self, unit: Unit, seconds: float, failure: str | None) -> None:
        """Print one line about a unit that has ended."""
        self.n_done, self.done = self.n_done + 1, self.done + unit.cost
        elapsed = time.monotonic() - self.start
        left = elapsed * (self.cost - self.done) / self.done
        rate = 60 * self.n_done / max(elapsed, 1e-9)
        outcome = f"{seconds:.1f} s" if failure is None else f"FAILED: {failure}"
        print(
            f"[{self.n_done}/{self.n_units}] {rate:.0f} units/min, {_format_duration(left)} left: "
            f"{unit.title}, {outcome}",
            file=self.stream,
            flush=True,
        )


def run(
    units: Sequence[Unit], store: Store, data: Path | None, cache: Path, *, workers: int = 2
) -> dict[Unit, str]:
    """Run every unit that is not in the store; return the failed units with their errors.

    A failed unit is printed and skipped, so that one bad table does not end the whole run.
    """
    todo = [unit for unit in units if not store.has(unit)]
    progress = RunProgress(len(todo), sum(unit.cost for unit in todo))
    print(
        f"{len(units) - len(todo)} of {len(units)} units were finished before.", file=progress.stream, flush=True
    )
    failed: dict[Unit, str] = {}
    for unit, rows, failure, seconds in _outcomes(todo, data, cache, workers):
        if failure is None:
            store.write(unit, rows)
        else:
            failed[unit] = failure
        progress.report(unit, seconds, failure)
    return failed


Outcome = tuple[Unit, list[Row], str | None, float]


def _outcomes(units: Sequence[Unit], data: Path | None, cache: Path, workers: int) -> Iterator[Outcome]:
    """Yield the outcome of each unit when it ends; the units run in this process (one worker) or in others."""
    if workers <= 1:
        yield from (_attempt(unit, data, cache) for unit in units)
        return
    # Workers are spawned, because a fork of a process with BLAS threads may hang.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = iter(units)
        running: set[Future[Any]] = set()
        # The queue is short, so that an interrupt waits only for the running units.
        running |= {pool.submit(_attempt, unit, data, cache) for unit in islice(waiting, workers + 1)}
        while running:
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {pool.submit(_attempt, unit, data, cache) for unit in islice(waiting, len(finished))}
            yield from (future.result() for future in finished)


def _attempt(unit: Unit, data: Path | None, cache: Path) -> Outcome:
    start = time.perf_counter()
    try:
        rows, failure = run_unit(unit, data, cache), None
    except Exception as error:  # reported; the next run tries the unit again
        rows, failure = [], f"{type(error).__name__}: {error}"
    return unit, rows, failure, time.perf_counter() - start


def _format_duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
