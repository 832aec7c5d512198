"""Many rows on one machine, in worker processes, in threads or in this process; records come in order.

Every worker writes the number of its current row to a file, so that the rows at fault can be found after a worker
has died. The watchdog of `faulthandler` ends a worker whose row takes too long. The watchdog is a thread in C, so
it also works if the model hangs in C without releasing the interpreter.
"""

import contextlib
import faulthandler
import logging
import os
import pickle
import shutil
import signal
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import Any, BinaryIO

from anchorline.batch.partition import Work, one_blas_thread, pack_work, unpack_work
from anchorline.batch.progress import Progress, ProgressReporter
from anchorline.batch.rows import FrameRows, failure_of, rows_with_ids
from anchorline.errors import OutputFileError, ParameterError, RowError, UnpackableError, WorkerError
from anchorline.explainer import Explainer
from anchorline.result.explanations import Explanations, Record
from anchorline.result.frames import index_of
from anchorline.search.table import TableAnswers
from anchorline.spaces.hypercube import Hypercube

_log = logging.getLogger(__name__)
_ROWS_PER_LIMIT = 16  # explained here between two settings of the number of threads, which takes a millisecond
_TASKS_PER_WORKER = 3  # sent and not yet collected: enough to keep workers busy, few enough to limit memory
_TICK_SECONDS = 1.0
_MAX_EARLY_DEATHS = 3  # workers that die before they start a row; more means that rows are not the cause
_WORK, _ANSWERS = "work", "answers"  # names of the files with the packed work, and with answers about the table
_NO_ROOM = (
    "The workers' files in {place!r} cannot be written or read: {error}. Set TMPDIR to a folder with enough room "
    "that is not cleaned automatically."
)
_ORPHAN_SECONDS = 1.0  # how often a worker checks that its parent is alive
_POSITION = b"%020d %020d\n"  # of the rows at which a worker is: the first one, and the one after the last
# Each of the many workers gets one thread; with more, they would compete for the cores.
_LIMITED = """OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS BLIS_NUM_THREADS VECLIB_MAXIMUM_THREADS
NUMEXPR_NUM_THREADS NUMBA_NUM_THREADS POLARS_MAX_THREADS RAYON_NUM_THREADS LOKY_MAX_CPU_COUNT"""
ONE_THREAD = dict.fromkeys(_LIMITED.split(), "1")


@dataclass
class RunEvents:
    """What happened during a run: restarts of workers, and rows that took too long."""

    restarts: int = 0
    timeouts: int = 0


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
    id: str | None = None,
    **keywords: Any,
) -> Explanations:
    """Explain every row of a frame; see `anchorline.Explainer.explain_many`. ``plan`` is an `ExecutionPlan`."""
    if errors not in ("raise", "keep"):
        raise ParameterError(f"errors is {errors!r}, but it must be 'raise' or 'keep'.")
    rows, ids = rows_with_ids(frame, explainer, id)
    work = Work.from_keywords(explainer, **keywords)
    reporter = ProgressReporter(len(rows), progress)
    records: list[Record] = []
    with contextlib.closing(stream(rows, work, ExecutionPlan(**plan), RunEvents())) as numbered_records:
        for place, record in numbered_records:
            reporter.count(record["error_type"] is not None)
            if errors == "raise" and record["error_type"] is not None:
                raise RowError(f"{failure_of(place, record, ids)} Pass errors='keep' to continue without it.")
            records.append({"row": place} | record)
    return Explanations.from_records(records, ids, index_of(frame))


def stream(rows: FrameRows, work: Work, plan: ExecutionPlan, events: RunEvents) -> Generator[tuple[int, Record]]:
    """Yield the place and the record of every row, in order, as soon as they are available."""
    check_plan(plan, work)
    n_jobs = _n_workers(plan.n_jobs)
    if n_jobs == 1 and plan.row_timeout is None and not plan.isolate:
        yield from _in_process(rows, work.prepared(), plan)
        return
    max_workers = -(-(len(rows) - plan.start) // work.share)  # further workers would have nothing to do
    plan = replace(plan, n_jobs=max(1, min(n_jobs, max_workers)))
    try:
        with contextlib.closing(_Workers(work, plan, events)) as workers:
            for place, record in _in_order(rows, work, plan, workers.send, workers.recover):
                plan = replace(plan, start=place + 1)
                yield place, record
    except UnpackableError as error:
        caveat = ", which row_timeout cannot end" if plan.row_timeout is not None else ""
        warnings.warn(f"{error} Threads are used instead{caveat}.", RuntimeWarning, stacklevel=2)
        threads = ThreadPoolExecutor(plan.n_jobs)
        try:
            with one_blas_thread():
                _wait(threads.submit(work.prepared), plan)  # not in the main thread: see `model.exits`
                yield from _in_order(rows, work, plan, lambda task: threads.submit(_explain, work, task.rows))
        finally:
            threads.shutdown(cancel_futures=True)  # after an interrupt, no further row is begun


def check_plan(plan: ExecutionPlan, work: Work) -> None:
    """Raise `ParameterError`, before any work is done, if the plan is not valid."""
    _n_workers(plan.n_jobs)
    seconds = plan.row_timeout
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


def _n_workers(n_jobs: int) -> int:
    """Return the number of workers for ``n_jobs``; -1 means all cores, -2 all cores but one."""
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ParameterError(
            f"n_jobs is {n_jobs!r}, but it must be a whole number other than 0. Type -1 for all cores."
        )
    if n_jobs > 0:
        return int(n_jobs)
    from joblib import cpu_count  # noqa: PLC0415  heavy

    return max(1, int(cpu_count()) + 1 + int(n_jobs))


def _in_process(rows: FrameRows, work: Work, plan: ExecutionPlan) -> Iterator[tuple[int, Record]]:
    size = max(_ROWS_PER_LIMIT, work.share)
    for start in range(plan.start, len(rows), size):
        chunk = rows.take(start, start + size)
        with one_blas_thread():  # set again for every chunk, because the first row may load a BLAS library
            records = work.records(chunk) if work.share > 1 else map(work.record, chunk)
            for place, record in enumerate(records, start):
                plan.tick()
                yield place, record


@dataclass(eq=False)
class _Task:
    """One row, or rows that share calls, by place; ``future`` brings the records that are not ``known``."""

    rows: dict[int, Any]
    future: Future[dict[int, Record]] = field(default_factory=Future)
    known: dict[int, Record] = field(default_factory=dict)


def _in_order(
    rows: FrameRows,
    work: Work,
    plan: ExecutionPlan,
    send: Callable[[_Task], Future[dict[int, Record]]],
    recover: Callable[[deque[_Task]], None] = lambda window: None,
) -> Iterator[tuple[int, Record]]:
    """Send the rows, a few tasks ahead, and yield the place and the record of each, in order."""
    window, starts = deque[_Task](), iter(range(plan.start, len(rows), work.share))
    while True:
        while len(window) < plan.n_jobs * _TASKS_PER_WORKER and (start := next(starts, None)) is not None:
            window.append(_Task(dict(enumerate(rows.take(start, start + work.share), start))))
            window[-1].future = send(window[-1])
        if not window:
            return
        try:
            found = _wait(window[0].future, plan)
        except BrokenProcessPool:
            recover(window)
            continue
        yield from sorted((found | window.popleft().known).items())


def _explain(work: Work, rows: Mapping[int, Any]) -> dict[int, Record]:
    return dict(zip(rows, work.records([*rows.values()]), strict=True))


def _wait(future: Future[Any], plan: ExecutionPlan) -> Any:
    while not wait([future], timeout=_TICK_SECONDS).done:
        plan.tick()
    plan.tick()
    return future.result()


# ---- in the parent


class _Workers:
    """A pool of worker processes; when one of them dies, finds the rows at fault and starts another pool.

    All pools share a folder with the work, so that it is not copied for every worker, and their positions.
    """

    def __init__(self, work: Work, plan: ExecutionPlan, events: RunEvents) -> None:
        self._work, self._plan, self._events = work, plan, events
        self._n_early_deaths, self._next_place = 0, 0
        payload = pack_work(work)
        with contextlib.ExitStack() as stack:
            try:
                self._folder = Path(tempfile.mkdtemp(prefix="anchorline-batch-"))
                stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
                (self._folder / _WORK).write_bytes(payload)
            except OSError as error:
                raise OutputFileError(_NO_ROOM.format(place=tempfile.gettempdir(), error=error)) from error
            self._start(plan.n_jobs)
            stack.callback(self._end)
            self._ask_table()
            self._at_close = stack.pop_all()

    def close(self) -> None:
        """End all workers at once."""
        self._at_close.close()

    def _start(self, n_workers: int) -> None:
        from joblib.externals.loky import ProcessPoolExecutor  # noqa: PLC0415  heavy

        self._unfinished = set[Future[Any]]()
        for position in self._folder.glob("*.position"):
            position.unlink(missing_ok=True)
        own = str(self._folder), self._plan.row_timeout, os.getpid()
        try:
            self._pool = ProcessPoolExecutor(n_workers, initializer=start_worker, initargs=own, env=ONE_THREAD)
        except OSError as error:
            raise WorkerError(
                f"This machine cannot start worker processes: {error}. Use explain_many(n_jobs=1)."
            ) from error

    def _end(self) -> None:
        if self._unfinished:  # shutting down a pool with work left may fail, so its workers are ended first
            for process in list(self._pool._processes.values()):
                process.terminate()
        self._pool.shutdown(wait=True, kill_workers=not self._unfinished)

    def _restart(self, n_workers: int) -> None:
        self._end()
        self._start(n_workers)

    def _submit(self, function: Any, *arguments: Any) -> Future[Any]:
        future: Future[Any] = self._pool.submit(function, *arguments)
        self._unfinished.add(future)
        future.add_done_callback(self._unfinished.discard)
        return future

    def _ask_table(self) -> None:
        """Ask about the table once, in a worker, so that a crash of the model does not end this process."""
        try:
            answers: TableAnswers | None = _wait(self._submit(ask_table), self._plan)
        except BrokenProcessPool:
            self._events.restarts += 1
            self._restart(self._plan.n_jobs)
            return
        if answers is not None:
            with contextlib.suppress(OSError):  # then every worker asks for itself
                unnamed = self._folder / f"{_ANSWERS}.new"
                unnamed.write_bytes(pickle.dumps(answers))
                unnamed.replace(self._folder / _ANSWERS)
            self._work.explainer.take_answers(answers)
        self._work.warn()

    def send(self, task: _Task) -> Future[dict[int, Record]]:
        """Return what will be the records of the rows of a task that are not known."""
        unknown = {place: row for place, row in task.rows.items() if place not in task.known}
        future = Future[dict[int, Record]]()
        try:
            if unknown:
                return self._submit(explain_rows, unknown)
            future.set_result({})
        except BrokenProcessPool as error:
            future.set_exception(error)
        return future

    def recover(self, window: deque[_Task]) -> None:
        """Explain each row that a worker was processing alone; send the other rows again."""
        lost = [task for task in window if not task.future.done() or task.future.exception() is not None]
        unknown = {place: task for task in lost for place in task.rows if place not in task.known}
        in_progress = sorted(self._rows_in_progress().items())
        suspects = {place: timed_out for place, timed_out in in_progress if place in unknown}
        if suspects or self._next_place != min(window[0].rows):
            self._n_early_deaths, self._next_place = 0, min(window[0].rows)
        self._n_early_deaths += not suspects
        if self._n_early_deaths >= _MAX_EARLY_DEATHS:
            raise WorkerError(
                "Worker processes die before they start a row, because memory is exhausted or something kills "
                "them. Free memory, or use fewer workers (n_jobs)."
            )
        _log.warning("A worker process died; rows that may have killed it: %s", list(suspects))
        self._events.timeouts += sum(suspects.values())
        self._events.restarts += 1
        self._restart(1)
        for place, timed_out in suspects.items():
            task, is_certain = unknown[place], timed_out or len(suspects) == 1
            task.known[place] = self._alone(place, task.rows[place], [timed_out] if is_certain else [])
        if self._plan.n_jobs > 1:
            self._restart(self._plan.n_jobs)
        for task in lost:
            task.future = self.send(task)

    def _rows_in_progress(self) -> dict[int, bool]:
        """Return the places of the rows that workers were processing; True if the watchdog ended the worker."""
        timed_out: dict[int, bool] = {}
        for position in self._folder.glob("*.position"):
            first, _, others = position.read_bytes().partition(b" ")  # nothing, of a worker that just started
            stop, _, trace = others.partition(b"\n")
            if trace:
                stack = trace.decode("utf-8", "replace")
                _log.info("A row took too long; the stack of its worker was:\n%s", stack)
            timed_out |= dict.fromkeys(range(int(first or 0), int(stop or 0)), bool(trace))
        return timed_out

    def _alone(self, place: int, row: Any, timeouts: list[bool]) -> Record:
        """Explain one row alone; give it up after it has certainly ended two workers, each by a timeout or not."""
        while len(timeouts) < 2:
            try:
                record: Record = _wait(self._submit(explain_rows, {place: row}), self._plan)[place]
                return record
            except BrokenProcessPool:
                timeouts.append(self._rows_in_progress().get(place, False))
                self._events.timeouts += timeouts[-1]
                self._events.restarts += 1
                self._restart(1)
        if all(timeouts):
            message = f"The row was not explained within {self._plan.row_timeout:g} seconds, in two attempts."
            return self._work.failed(row, "RowTimeout", message)
        message = "The worker process of this row died twice: it was killed, ran out of memory, or crashed."
        return self._work.failed(row, "WorkerError", message)


# ---- in the workers


class _Here:
    """The state of this worker process, which `start_worker` sets; the class itself is used, never an object."""

    work: Work
    folder: Path
    position: BinaryIO
    row_timeout: float | None = None
    startup_error: Exception | None = None


def start_worker(folder: str, row_timeout: float | None, parent: int) -> None:
    """Start a worker: unpack the work once, not with every row, from a file that all workers share.

    ``parent`` is an argument because the parent process may be gone before this function could look it up.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends its workers
    with contextlib.suppress(OSError):
        os.dup2(2, 1)  # a model's prints go to standard error, because they are not results
    _Here.row_timeout, _Here.folder = row_timeout, Path(folder)
    threading.Thread(target=_end_with_parent, args=(parent, folder), daemon=True).start()
    try:
        _Here.position = (_Here.folder / f"{os.getpid()}.position").open("wb", buffering=0)
        _write_position(0, 0)  # reserves the disk space: later positions have the same length
        with (_Here.folder / _WORK).open("rb") as file:
            _Here.work = unpack_work(file)
        # What is loaded on first use is loaded now, so that it does not count as time of the first row.
        Explainer(lambda z: z[:, 0] / 2, Hypercube()).explain([1, 1])
        with contextlib.suppress(Exception):  # not every space accepts a position
            _Here.work.explainer.space.at(0)
    except FileNotFoundError:  # the folder was deleted; the parent sees one more dead worker
        os._exit(1)
    except OSError as error:
        _Here.startup_error = OutputFileError(_NO_ROOM.format(place=folder, error=error))
    except Exception as error:  # raised with the first task, because an initializer must not raise
        _Here.startup_error = error


def _end_with_parent(parent: int, folder: str) -> None:
    """End this worker and remove the folder once the parent process has ended, for whatever reason."""
    while os.getppid() == parent:
        time.sleep(_ORPHAN_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def ask_table() -> TableAnswers | None:
    """Ask about the rows of the table in a worker, because a crash then ends only this worker.

    The parent leaves them in a file for all workers.
    """
    with _task(None if _Here.row_timeout is None else max(60.0, 10 * _Here.row_timeout)):
        _Here.work.ask_table()
    return _Here.work.explainer.table_answers(ask=False)


def explain_rows(rows: Mapping[int, Any]) -> dict[int, Record]:
    """Explain one row, or rows that share calls, by their places; return their records."""
    with _task(_Here.row_timeout, min(rows), max(rows) + 1):
        explainer = _Here.work.explainer
        if explainer.table_answers(ask=False) is None:
            with contextlib.suppress(FileNotFoundError):
                explainer.take_answers(pickle.loads((_Here.folder / _ANSWERS).read_bytes()))
        return _explain(_Here.work, rows)


@contextlib.contextmanager
def _task(seconds: float | None, first: int = 0, stop: int = 0) -> Iterator[None]:
    """Say at which rows this worker is, and let the watchdog end it after some seconds."""
    if _Here.startup_error is not None:
        raise _Here.startup_error
    _write_position(first, stop)
    if seconds is not None:
        faulthandler.dump_traceback_later(seconds, exit=True, file=_Here.position)  # behind the position
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
    _write_position(0, 0)


def _write_position(first: int, stop: int) -> None:
    _Here.position.seek(0)
    _Here.position.write(_POSITION % (first, stop))
