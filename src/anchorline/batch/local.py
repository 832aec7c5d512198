"""Many rows on one machine: worker processes, or threads, or this very process; answers in order."""

import contextlib
import logging
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Unpack

from anchorline.batch.blas import one_blas_thread
from anchorline.batch.partition import FrameRows, Work, key_of, packed, rows_of
from anchorline.batch.progress import Meter, Progress
from anchorline.batch.workers import Crew, explain_rows, learn
from anchorline.errors import ParameterError, RowError, UnpackableError, WorkerError
from anchorline.explainer import Explainer, Ranges
from anchorline.result.explanations import Explanations, Failure, Record, failed_record
from anchorline.settings import Keywords

_log = logging.getLogger(__name__)
_CHUNK_SECONDS = 0.25  # of work sent at once: less costs messages, more is lost when a worker dies
_MAX_ROWS = 16
_CHUNKS_A_WORKER = 3  # begun and not yet taken: keeps workers busy, bounds memory
_TICK_SECONDS = 1.0
_MAX_EMPTY_DEATHS = 3  # workers that die before any row: something else is wrong


@dataclass
class Events:
    """What happened on the way: worker processes started again, rows that took too long, rows that killed."""

    restarts: int = 0
    timeouts: list[int] = field(default_factory=list)
    deaths: list[int] = field(default_factory=list)
    threads: str | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How rows are worked off: so many workers, each row within so many seconds, from some row on.

    ``isolate`` asks for worker processes also where one would do, so that a crash of the model is survived.
    ``tick`` is called at least every second.
    """

    n_jobs: int = 1
    row_timeout: float | None = None
    isolate: bool = False
    start: int = 0
    tick: Callable[[], None] = lambda: None


def explain_many(
    explainer: Explainer,
    frame: Any,
    plan: Plan,
    progress: Callable[[Progress], None] | bool | None = None,
    *,
    errors: str = "raise",
    share_calls: bool = False,
    **keywords: Unpack[Keywords],
) -> Explanations:
    """Explain every row of a frame; see `anchorline.Explainer.explain_many`."""
    if errors not in ("raise", "keep"):
        raise ParameterError(f"errors is {errors!r}; needed 'raise' or 'keep'.")
    rows = rows_of(frame, explainer)
    work = Work.from_keywords(explainer, share_calls=share_calls, **keywords)
    meter = Meter(len(rows), progress)
    records = []
    with contextlib.closing(stream(rows, work, plan, Events())) as found:
        for place, record in found:
            meter.count(record["error_type"] is not None)
            if errors == "raise" and record["error_type"] is not None:
                failure = Failure(place, record["error"], record["error_type"])
                raise RowError(f"{failure} Pass errors='keep' to go on without it.")
            records.append({"row": place} | record)
    return Explanations.from_records(records)


def stream(rows: FrameRows, work: Work, plan: Plan, events: Events) -> Generator[tuple[int, Record]]:
    """Every row's place and record, in order, as they come."""
    check_plan(plan, work)
    n_jobs = effective_jobs(plan.n_jobs)
    if n_jobs == 1 and plan.row_timeout is None and not plan.isolate:
        yield from _in_process(rows, work.with_ranges(), plan)
        return
    most = -(-(len(rows) - plan.start) // work.share)  # more workers than pieces of work would only wait
    plan = replace(plan, n_jobs=max(1, min(n_jobs, most)))
    done = plan.start
    try:
        for place, record in _Foreman(rows, packed(work), work, plan, events).work_off():
            done = place + 1
            yield place, record
    except UnpackableError as error:
        events.threads = str(error)
        warnings.warn(f"{error} Threads are used instead{_loses(plan)}.", RuntimeWarning, stacklevel=2)
        yield from _in_threads(rows, work, replace(plan, start=done))


def check_plan(plan: Plan, work: Work) -> None:
    """Refuse, before anything is done, a plan that cannot be followed."""
    effective_jobs(plan.n_jobs)
    _check_timeout(plan.row_timeout, work)


def effective_jobs(n_jobs: int) -> int:
    """So many workers; -1 all cores, -2 all but one."""
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ParameterError(f"n_jobs is {n_jobs!r}; needed a whole number, -1 for all cores.")
    if n_jobs > 0:
        return int(n_jobs)
    from joblib import cpu_count  # noqa: PLC0415  heavy

    return max(1, int(cpu_count()) + 1 + int(n_jobs))


def _check_timeout(seconds: Any, work: Work) -> None:
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1e6:
        raise ParameterError(f"row_timeout is {seconds!r}; needed a number of seconds, or None.")
    if work.share > 1:
        raise ParameterError("Rows that share calls cannot be timed one by one: leave row_timeout out.")


def _loses(plan: Plan) -> str:
    return ", which row_timeout cannot end" if plan.row_timeout is not None else ""


def _in_process(rows: FrameRows, work: Work, plan: Plan) -> Iterator[tuple[int, Record]]:
    size = max(_MAX_ROWS, work.share)
    for start in range(plan.start, len(rows), size):
        some = rows.take(start, start + size)
        with one_blas_thread():  # anew for every few rows: the first may load a library
            records = work.records(some) if work.share > 1 else map(work.record, some)
            for place, record in enumerate(records, start):
                plan.tick()
                yield place, record


def _in_threads(rows: FrameRows, work: Work, plan: Plan) -> Iterator[tuple[int, Record]]:
    size = work.share
    with _threads(plan.n_jobs) as threads, one_blas_thread():
        _wait(threads.submit(work.with_ranges), plan)  # not in the main thread: see `model.exits`
        window: deque[tuple[int, Future[list[Record]]]] = deque()
        for start in range(plan.start, len(rows), size):
            window.append((start, threads.submit(work.records, rows.take(start, start + size))))
            if len(window) >= plan.n_jobs * _CHUNKS_A_WORKER:
                yield from _taken(window, plan)
        while window:
            yield from _taken(window, plan)


@contextlib.contextmanager
def _threads(n_threads: int) -> Iterator[ThreadPoolExecutor]:
    """So many threads; after an interrupt, what was not begun is not begun."""
    threads = ThreadPoolExecutor(n_threads)
    try:
        yield threads
    finally:
        threads.shutdown(cancel_futures=True)


def _taken(window: deque[tuple[int, Future[list[Record]]]], plan: Plan) -> Iterator[tuple[int, Record]]:
    start, future = window.popleft()
    yield from enumerate(_wait(future, plan), start)


def _wait(future: Future[Any], plan: Plan) -> Any:
    while not wait([future], timeout=_TICK_SECONDS).done:
        plan.tick()
    plan.tick()
    return future.result()


@dataclass(eq=False)
class _Chunk:
    """Rows sent to a worker together, and what is to come back."""

    first: int
    stop: int
    sent: tuple[int, ...] = ()
    future: Future[tuple[list[Record], float]] | None = None


class _Foreman:
    """Hands out rows to a crew, in order; when it breaks, finds the row at fault and goes on with a new one."""

    def __init__(self, rows: FrameRows, payload: bytes, work: Work, plan: Plan, events: Events) -> None:
        self._rows, self._payload, self._work, self._plan, self._events = rows, payload, work, plan, events
        self._crew = self._new_crew(plan.n_jobs)
        self._settled: dict[int, Record] = {}
        self._blamed: dict[int, int] = {}  # how often a row ended its worker, where that is certain
        self._ranges: Ranges = None
        self._seconds, self._size, self._n_empty = 0.0, work.share, 0

    def _new_crew(self, n_workers: int) -> Crew:
        return Crew(self._payload, n_workers, self._plan.row_timeout)

    def work_off(self) -> Iterator[tuple[int, Record]]:
        """All rows, in order."""
        window: deque[_Chunk] = deque()
        nxt, n = self._plan.start, len(self._rows)
        try:
            self._learn()
            while window or nxt < n:
                while nxt < n and len(window) < self._plan.n_jobs * _CHUNKS_A_WORKER:
                    window.append(_Chunk(nxt, min(n, nxt + self._next_size(n - nxt))))
                    nxt = window[-1].stop
                    self._send(window[-1])
                records = self._result(window[0])
                if records is None:
                    self._recover(window)
                    continue
                yield from enumerate(records, window.popleft().first)
        finally:
            self._crew.close()

    def _next_size(self, n_left: int) -> int:
        """Rows to send next: fewer towards the end, so that no worker waits long for the last one."""
        if self._work.share > 1:
            return self._size
        return min(self._size, max(1, n_left // (2 * self._plan.n_jobs)))

    def _learn(self) -> None:
        """Ask for output ranges once, in a worker: a model that crashes there does no harm here."""
        try:
            self._ranges = _wait(self._crew.submit(learn), self._plan)
        except BrokenProcessPool:
            self._renew()

    def _send(self, chunk: _Chunk) -> None:
        with contextlib.suppress(BrokenProcessPool):  # found out when its result is asked for
            chunk.future = None
            rows = dict(enumerate(self._rows.take(chunk.first, chunk.stop), chunk.first))
            chunk.sent = tuple(place for place in rows if place not in self._settled)
            if chunk.sent:
                todo = [rows[place] for place in chunk.sent]
                chunk.future = self._crew.submit(explain_rows, chunk.sent, todo, self._ranges)

    def _result(self, chunk: _Chunk) -> list[Record] | None:
        """The chunk's records; None if the crew broke."""
        found: dict[int, Record] = {}
        if chunk.sent:
            if chunk.future is None:
                return None
            try:
                records, seconds = _wait(chunk.future, self._plan)
            except BrokenProcessPool:
                return None
            found = dict(zip(chunk.sent, records, strict=True))
            self._adapt(seconds / len(records))
            self._n_empty = 0
        places = range(chunk.first, chunk.stop)
        return [found[place] if place in found else self._settled.pop(place) for place in places]

    def _adapt(self, seconds: float) -> None:
        """Send as many rows at once as make a fraction of a second."""
        self._seconds = seconds if self._seconds == 0 else 0.8 * self._seconds + 0.2 * seconds
        if self._work.share == 1:
            self._size = max(1, min(_MAX_ROWS, int(_CHUNK_SECONDS / max(self._seconds, 1e-6))))

    def _recover(self, window: deque[_Chunk]) -> None:
        """Try the rows that workers were at alone, one by one; send the others again."""
        lost = [chunk for chunk in window if not _has_come(chunk.future)]
        places = {place for chunk in lost for place in range(chunk.first, chunk.stop)}
        suspects = {place: late for place, late in sorted(self._crew.in_flight().items()) if place in places}
        self._n_empty = 0 if suspects else self._n_empty + 1
        if self._n_empty >= _MAX_EMPTY_DEATHS:
            raise WorkerError("Worker processes die before they begin a row: out of memory, or killed.")
        alone = len(suspects) == 1
        for place, late in suspects.items():
            self._blame(place, late, certain=late or alone)
        _log.warning("A worker process died; rows it may have died of: %s", list(suspects))
        self._crew.close()
        self._crew = self._new_crew(1)
        self._events.restarts += 1
        for place in suspects:
            self._settle(place)
        if self._plan.n_jobs > 1:
            self._crew.close()
            self._crew = self._new_crew(self._plan.n_jobs)
        for chunk in lost:
            self._send(chunk)

    def _renew(self) -> None:
        self._crew.close()
        self._crew = self._new_crew(self._plan.n_jobs)
        self._events.restarts += 1

    def _blame(self, place: int, late: bool, certain: bool) -> None:
        self._blamed[place] = self._blamed.get(place, 0) + certain
        if late:
            self._events.timeouts.append(place)
        elif certain:
            self._events.deaths.append(place)

    def _settle(self, place: int) -> None:
        """Explain one row with a worker to itself; after two certain deaths the row is given up."""
        while True:
            if self._blamed.get(place, 0) >= 2:
                self._settled[place] = self._given_up(place)
                return
            try:
                future = self._crew.submit(explain_rows, (place,), self._rows.take(place, place + 1), self._ranges)
                self._settled[place] = _wait(future, self._plan)[0][0]
                return
            except BrokenProcessPool:
                late = self._crew.in_flight().get(place)
                self._blame(place, bool(late), certain=True)
                self._crew.close()
                self._crew = self._new_crew(1)
                self._events.restarts += 1

    def _given_up(self, place: int) -> Record:
        late = self._events.timeouts.count(place) >= 2
        kind, told = (
            "WorkerError",
            "Its worker process died twice: killed, out of memory, or crashed.",
        )
        if late:
            kind, told = "RowTimeout", f"No explanation within {self._plan.row_timeout:g} seconds, twice."
        row = self._rows.take(place, place + 1)[0]
        return failed_record(key_of(self._work.explainer, row), kind, told)


def _has_come(future: Future[Any] | None) -> bool:
    return future is not None and future.done() and future.exception() is None
