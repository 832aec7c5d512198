"""Many rows on one machine, in worker processes, in threads or in this process; records come in order."""

import contextlib
import logging
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

from anchorline.batch.blas import one_blas_thread
from anchorline.batch.ids import rows_with_ids
from anchorline.batch.partition import FrameRows, Work, pack_work
from anchorline.batch.progress import Progress, ProgressReporter
from anchorline.batch.workers import WorkerPool, ask_table, explain_rows
from anchorline.errors import ParameterError, RowError, UnpackableError, WorkerError
from anchorline.explainer import Explainer
from anchorline.result.explanations import Explanations, Failure, Record
from anchorline.result.frames import index_of
from anchorline.search.table import TableAnswers

_log = logging.getLogger(__name__)
_CHUNK_SECONDS = 0.25  # work per message: less costs more messages, more is lost when a worker dies
_MAX_CHUNK_ROWS = 16
_CHUNKS_PER_WORKER = 3  # sent and not yet collected: enough to keep workers busy, few enough to limit memory
_TICK_SECONDS = 1.0
_MAX_EARLY_DEATHS = 3  # workers that die before they start a row; more means that rows are not the cause


@dataclass
class RunEvents:
    """What happened during a run: restarts of workers, rows that took too long, and rows that killed a worker.

    ``threads_reason`` is the reason why threads replaced processes; None if they did not.
    """

    restarts: int = 0
    timeouts: list[int] = field(default_factory=list)
    deaths: list[int] = field(default_factory=list)
    threads_reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class ExecutionPlan:
    """How rows are processed: the number of workers, the seconds allowed per row, and the first row.

    ``isolate`` requests worker processes even for ``n_jobs=1``, so that the run survives a crash of the model.
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
    plan: Mapping[str, Any],
    *,
    progress: Callable[[Progress], None] | bool | None = None,
    errors: str = "raise",
    share_calls: bool = False,
    id: str | None = None,
    **keywords: Any,
) -> Explanations:
    """Explain every row of a frame; see `anchorline.Explainer.explain_many`. ``plan`` is an `ExecutionPlan`."""
    if errors not in ("raise", "keep"):
        raise ParameterError(f"errors is {errors!r}, but it must be 'raise' or 'keep'.")
    rows, ids = rows_with_ids(frame, explainer, id)
    work = Work.from_keywords(explainer, share_calls=share_calls, **keywords)
    reporter = ProgressReporter(len(rows), progress)
    records: list[Record] = []
    with contextlib.closing(stream(rows, work, ExecutionPlan(**plan), RunEvents())) as numbered_records:
        for place, record in numbered_records:
            reporter.count(record["error_type"] is not None)
            if errors == "raise" and record["error_type"] is not None:
                label = None if ids is None else ids.label(place)
                failure = Failure(place, record["error"], record["error_type"], label)
                raise RowError(f"{failure} Pass errors='keep' to continue without it.")
            records.append({"row": place} | record)
    return Explanations.from_records(records, ids, index_of(frame))


def stream(rows: FrameRows, work: Work, plan: ExecutionPlan, events: RunEvents) -> Generator[tuple[int, Record]]:
    """Yield the place and the record of every row, in order, as soon as they are available."""
    check_plan(plan, work)
    n_jobs = effective_jobs(plan.n_jobs)
    if n_jobs == 1 and plan.row_timeout is None and not plan.isolate:
        yield from _in_process(rows, work.prepared(), plan)
        return
    max_workers = -(-(len(rows) - plan.start) // work.share)  # further workers would have nothing to do
    plan = replace(plan, n_jobs=max(1, min(n_jobs, max_workers)))
    done = plan.start
    try:
        for place, record in _Dispatcher(rows, pack_work(work), work, plan, events).run():
            done = place + 1
            yield place, record
    except UnpackableError as error:
        events.threads_reason = str(error)
        caveat = ", which row_timeout cannot end" if plan.row_timeout is not None else ""
        warnings.warn(f"{error} Threads are used instead{caveat}.", RuntimeWarning, stacklevel=2)
        yield from _in_threads(rows, work, replace(plan, start=done))


def check_plan(plan: ExecutionPlan, work: Work) -> None:
    """Raise `ParameterError`, before any work is done, if the plan is not valid."""
    effective_jobs(plan.n_jobs)
    _check_timeout(plan.row_timeout, work)


def effective_jobs(n_jobs: int) -> int:
    """Return the number of workers for ``n_jobs``; -1 means all cores, -2 all cores but one."""
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ParameterError(
            f"n_jobs is {n_jobs!r}, but it must be a whole number other than 0. Type -1 for all cores."
        )
    if n_jobs > 0:
        return int(n_jobs)
    from joblib import cpu_count  # noqa: PLC0415  heavy

    return max(1, int(cpu_count()) + 1 + int(n_jobs))


def _check_timeout(seconds: Any, work: Work) -> None:
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1e6:
        raise ParameterError(
            f"row_timeout is {seconds!r}, but it must be a number of seconds above 0 and below 1,000,000, or None."
        )
    if work.share > 1:
        raise ParameterError(
            f"row_timeout is {seconds!r} and share_calls is True, but rows that share calls cannot be timed "
            "one by one. Omit row_timeout or share_calls."
        )


def _in_process(rows: FrameRows, work: Work, plan: ExecutionPlan) -> Iterator[tuple[int, Record]]:
    size = max(_MAX_CHUNK_ROWS, work.share)
    for start in range(plan.start, len(rows), size):
        chunk = rows.take(start, start + size)
        with one_blas_thread():  # set again for every chunk, because the first row may load a BLAS library
            records = work.records(chunk) if work.share > 1 else map(work.record, chunk)
            for place, record in enumerate(records, start):
                plan.tick()
                yield place, record


def _in_threads(rows: FrameRows, work: Work, plan: ExecutionPlan) -> Iterator[tuple[int, Record]]:
    size = work.share
    with _thread_pool(plan.n_jobs) as threads, one_blas_thread():
        _wait(threads.submit(work.prepared), plan)  # not in the main thread: see `model.exits`
        window: deque[tuple[int, Future[list[Record]]]] = deque()
        for start in range(plan.start, len(rows), size):
            window.append((start, threads.submit(work.records, rows.take(start, start + size))))
            if len(window) >= plan.n_jobs * _CHUNKS_PER_WORKER:
                yield from _next_records(window, plan)
        while window:
            yield from _next_records(window, plan)


@contextlib.contextmanager
def _thread_pool(n_threads: int) -> Iterator[ThreadPoolExecutor]:
    """Provide a pool of threads that starts no further task after an interrupt."""
    threads = ThreadPoolExecutor(n_threads)
    try:
        yield threads
    finally:
        threads.shutdown(cancel_futures=True)


def _next_records(
    window: deque[tuple[int, Future[list[Record]]]], plan: ExecutionPlan
) -> Iterator[tuple[int, Record]]:
    start, future = window.popleft()
    yield from enumerate(_wait(future, plan), start)


def _wait(future: Future[Any], plan: ExecutionPlan) -> Any:
    while not wait([future], timeout=_TICK_SECONDS).done:
        plan.tick()
    plan.tick()
    return future.result()


@dataclass(eq=False)
class _Chunk:
    """Consecutive rows; those at the places ``sent`` were sent to a worker, whose answer is ``future``."""

    first: int
    stop: int
    sent: tuple[int, ...] = ()
    future: Future[tuple[list[Record], float]] | None = None


class _Dispatcher:
    """Sends rows to a worker pool, in order; when the pool breaks, finds the row at fault and starts another."""

    def __init__(
        self, rows: FrameRows, payload: bytes, work: Work, plan: ExecutionPlan, events: RunEvents
    ) -> None:
        self._rows, self._payload, self._work, self._plan, self._events = rows, payload, work, plan, events
        self._retried: dict[int, Record] = {}  # records of rows that were explained alone
        self._n_deaths: dict[int, int] = {}  # how often a row certainly ended its worker
        self._answers: TableAnswers | None = None
        self._pool = self._new_pool(plan.n_jobs)
        self._seconds, self._size, self._n_early_deaths = 0.0, work.share, 0

    def _new_pool(self, n_workers: int) -> WorkerPool:
        pool = WorkerPool(self._payload, n_workers, self._plan.row_timeout)
        pool.leave(self._answers)
        return pool

    def run(self) -> Iterator[tuple[int, Record]]:
        """Yield the place and the record of every row, in order."""
        window: deque[_Chunk] = deque()
        next_row, n = self._plan.start, len(self._rows)
        try:
            self._ask_table()
            while window or next_row < n:
                while next_row < n and len(window) < self._plan.n_jobs * _CHUNKS_PER_WORKER:
                    window.append(_Chunk(next_row, min(n, next_row + self._next_size(n - next_row))))
                    next_row = window[-1].stop
                    self._send(window[-1])
                records = self._result(window[0])
                if records is None:
                    self._recover(window)
                    continue
                yield from enumerate(records, window.popleft().first)
        finally:
            self._pool.close()

    def _next_size(self, n_left: int) -> int:
        """Return the rows of the next chunk: fewer near the end, so that workers finish at about the same time."""
        if self._work.share > 1:
            return self._size
        return min(self._size, max(1, n_left // (2 * self._plan.n_jobs)))

    def _ask_table(self) -> None:
        """Ask about the table once, in a worker, so that a crash of the model does not end this process."""
        try:
            self._answers = _wait(self._pool.submit(ask_table), self._plan)
        except BrokenProcessPool:
            self._restart(self._plan.n_jobs)
            return
        if self._answers is not None:
            self._pool.leave(self._answers)
            self._work.explainer.take_answers(self._answers)
        self._work.warn()

    def _send(self, chunk: _Chunk) -> None:
        with contextlib.suppress(BrokenProcessPool):  # `_result` handles a broken pool
            chunk.future = None
            rows = dict(enumerate(self._rows.take(chunk.first, chunk.stop), chunk.first))
            chunk.sent = tuple(place for place in rows if place not in self._retried)
            if chunk.sent:
                sent_rows = [rows[place] for place in chunk.sent]
                chunk.future = self._pool.submit(explain_rows, chunk.sent, sent_rows)

    def _result(self, chunk: _Chunk) -> list[Record] | None:
        """Return the records of the chunk; None if the pool broke."""
        received: dict[int, Record] = {}
        if chunk.sent:
            if chunk.future is None:
                return None
            try:
                records, seconds = _wait(chunk.future, self._plan)
            except BrokenProcessPool:
                return None
            received = dict(zip(chunk.sent, records, strict=True))
            self._adapt_size(seconds / len(records))
            self._n_early_deaths = 0
        places = range(chunk.first, chunk.stop)
        return [received[place] if place in received else self._retried.pop(place) for place in places]

    def _adapt_size(self, seconds_per_row: float) -> None:
        """Choose the chunk size so that a chunk takes a fraction of a second."""
        old = self._seconds
        self._seconds = seconds_per_row if old == 0 else 0.8 * old + 0.2 * seconds_per_row
        if self._work.share == 1:
            self._size = max(1, min(_MAX_CHUNK_ROWS, int(_CHUNK_SECONDS / max(self._seconds, 1e-6))))

    def _recover(self, window: deque[_Chunk]) -> None:
        """Explain each row that a worker was processing alone; send the other rows again."""
        lost = [chunk for chunk in window if not _has_result(chunk.future)]
        places = {place for chunk in lost for place in range(chunk.first, chunk.stop)}
        in_progress = sorted(self._pool.rows_in_progress().items())
        suspects = {place: timed_out for place, timed_out in in_progress if place in places}
        self._n_early_deaths = 0 if suspects else self._n_early_deaths + 1
        if self._n_early_deaths >= _MAX_EARLY_DEATHS:
            raise WorkerError(
                "Worker processes die before they start a row, because memory is exhausted or something kills "
                "them. Free memory, or use fewer workers (n_jobs)."
            )
        is_only_suspect = len(suspects) == 1
        for place, timed_out in suspects.items():
            self._count_death(place, timed_out, certain=timed_out or is_only_suspect)
        _log.warning("A worker process died; rows that may have killed it: %s", list(suspects))
        self._restart(1)
        for place in suspects:
            self._retry_alone(place)
        if self._plan.n_jobs > 1:
            self._pool.close()
            self._pool = self._new_pool(self._plan.n_jobs)
        for chunk in lost:
            self._send(chunk)

    def _restart(self, n_workers: int) -> None:
        self._pool.close()
        self._pool = self._new_pool(n_workers)
        self._events.restarts += 1

    def _count_death(self, place: int, timed_out: bool, certain: bool) -> None:
        self._n_deaths[place] = self._n_deaths.get(place, 0) + certain
        if timed_out:
            self._events.timeouts.append(place)
        elif certain:
            self._events.deaths.append(place)

    def _retry_alone(self, place: int) -> None:
        """Explain one row in a worker of its own; give the row up after it has certainly ended two workers."""
        while True:
            if self._n_deaths.get(place, 0) >= 2:
                self._retried[place] = self._death_record(place)
                return
            try:
                future = self._pool.submit(explain_rows, (place,), self._rows.take(place, place + 1))
                self._retried[place] = _wait(future, self._plan)[0][0]
                return
            except BrokenProcessPool:
                timed_out = self._pool.rows_in_progress().get(place)
                self._count_death(place, bool(timed_out), certain=True)
                self._restart(1)

    def _death_record(self, place: int) -> Record:
        kind, message = (
            "WorkerError",
            "The worker process of this row died twice: it was killed, ran out of memory, or crashed.",
        )
        if self._events.timeouts.count(place) >= 2:
            limit = f"{self._plan.row_timeout:g}"
            kind, message = "RowTimeout", f"The row was not explained within {limit} seconds, in two attempts."
        row = self._rows.take(place, place + 1)[0]
        return self._work.failed(row, kind, message)


def _has_result(future: Future[Any] | None) -> bool:
    return future is not None and future.done() and future.exception() is None
