"""Worker processes: the functions that run inside one, and the pool that starts them.

Every worker writes the number of its current row to a file, so that the pool can find the rows at fault after a
worker has died. The watchdog of `faulthandler` ends a worker whose row takes too long. The watchdog is a thread
in C, so it also works if the model hangs in C without releasing the interpreter.
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
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, BinaryIO

from anchorline.batch.partition import Work, unpack_work
from anchorline.errors import OutputFileError, WorkerError
from anchorline.explainer import Explainer
from anchorline.result.explanations import Record
from anchorline.search.table import TableAnswers
from anchorline.spaces.hypercube import Hypercube

_log = logging.getLogger(__name__)
_WORK, _ANSWERS = "work", "answers"  # names of the files with the packed work, and with answers about the table
_NO_ROOM = (
    "The workers' files in {place!r} cannot be written or read: {error}. Set TMPDIR to a folder with enough room "
    "that is not cleaned automatically."
)
_ORPHAN_SECONDS = 1.0  # how often a worker checks that its parent is alive
# Each of the many workers gets one thread; with more, they would compete for the cores.
ONE_THREAD = dict.fromkeys(
    [
        *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"),
        *("VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS"),
        *("RAYON_NUM_THREADS", "LOKY_MAX_CPU_COUNT"),
    ],
    "1",
)


class _WorkerState:
    """The state of this worker process, which `start_worker` sets; the class itself is used, never an object."""

    work: Work
    folder: Path
    startup_error: Exception | None = None
    position: int
    trace: BinaryIO
    row_timeout: float | None = None


def start_worker(folder: str, row_timeout: float | None, parent: int) -> None:
    """Start a worker: unpack the work once, not with every row, from a file that all workers share.

    ``parent`` is an argument because the parent process may be gone before this function could look it up.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends its workers
    with contextlib.suppress(OSError):
        os.dup2(2, 1)  # a model's prints go to standard error, because they are not results
    place = Path(folder) / str(os.getpid())
    _WorkerState.row_timeout, _WorkerState.folder = row_timeout, Path(folder)
    threading.Thread(target=_end_with_parent, args=(parent, folder), daemon=True).start()
    try:
        _WorkerState.trace = place.with_suffix(".trace").open("wb", buffering=0)
        _WorkerState.position = os.open(place.with_suffix(".position"), os.O_WRONLY | os.O_CREAT, 0o600)
        _write_position(0, 0)  # reserves the disk space: later positions have the same length
        with place.with_name(_WORK).open("rb") as file:
            _WorkerState.work = unpack_work(file)
        _warm_up(_WorkerState.work)
    except FileNotFoundError:  # the folder was deleted; the parent sees one more dead worker
        os._exit(1)
    except OSError as error:
        _WorkerState.startup_error = OutputFileError(_NO_ROOM.format(place=folder, error=error))
    except Exception as error:  # raised with the first task, because an initializer must not raise
        _WorkerState.startup_error = error


def _warm_up(work: Work) -> None:
    """Load now what is loaded on first use, so that it does not count as time of the first row."""
    Explainer(lambda z: z[:, 0] / 2, Hypercube()).explain([1, 1])
    with contextlib.suppress(Exception):  # not every space accepts a position
        work.explainer.space.at(0)


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
    _check_started()
    limit = None if _WorkerState.row_timeout is None else max(60.0, 10 * _WorkerState.row_timeout)
    with _time_limit(limit):
        _WorkerState.work.ask_table()
    return _WorkerState.work.explainer.table_answers(ask=False)


def explain_rows(places: Sequence[int], rows: Sequence[Any]) -> tuple[list[Record], float]:
    """Explain the rows at the given places; return their records and the seconds they took."""
    _check_started()
    work, start = _WorkerState.work, time.monotonic()
    if work.explainer.table_answers(ask=False) is None:
        with contextlib.suppress(FileNotFoundError):
            work.explainer.take_answers(pickle.loads((_WorkerState.folder / _ANSWERS).read_bytes()))
    if work.share > 1:
        _write_position(places[0], places[-1] + 1)
        records = work.records(rows)
    else:
        records = []
        for place, row in zip(places, rows, strict=True):
            _write_position(place, place + 1)
            with _time_limit(_WorkerState.row_timeout):
                records.append(work.record(row))
    _write_position(0, 0)
    return records, time.monotonic() - start


def _check_started() -> None:
    if _WorkerState.startup_error is not None:
        raise _WorkerState.startup_error


def _write_position(first: int, stop: int) -> None:
    os.lseek(_WorkerState.position, 0, os.SEEK_SET)
    os.write(_WorkerState.position, b"%020d %020d" % (first, stop))


@contextlib.contextmanager
def _time_limit(seconds: float | None) -> Iterator[None]:
    if seconds is None:
        yield
        return
    faulthandler.dump_traceback_later(seconds, exit=True, file=_WorkerState.trace)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def _make_folder(payload: bytes) -> Path:
    """Create a folder for the workers' positions and work; otherwise the work would be copied for every worker."""
    folder = None
    try:
        folder = Path(tempfile.mkdtemp(prefix="anchorline-batch-"))
        (folder / _WORK).write_bytes(payload)
    except BaseException as error:  # a full disk, or an interrupt
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        if not isinstance(error, OSError):
            raise
        raise OutputFileError(_NO_ROOM.format(place=tempfile.gettempdir(), error=error)) from error
    return folder


def _read_if_present(path: Path) -> str:
    """Return the text of a file; "" if the file was deleted."""
    try:
        return path.read_text("utf-8", "replace")
    except FileNotFoundError:
        return ""


class WorkerPool:
    """A number of worker processes with the same work; the pool is unusable after one of them dies."""

    def __init__(self, payload: bytes, n_workers: int, row_timeout: float | None) -> None:
        from joblib.externals.loky import ProcessPoolExecutor  # noqa: PLC0415  heavy

        self.n_workers, self._unfinished = n_workers, set[Future[Any]]()
        self._folder = _make_folder(payload)
        try:
            self._pool = ProcessPoolExecutor(
                n_workers,
                initializer=start_worker,
                initargs=(str(self._folder), row_timeout, os.getpid()),
                env=ONE_THREAD,
            )
        except BaseException as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            if not isinstance(error, OSError):
                raise
            raise WorkerError(
                f"This machine cannot start worker processes: {error}. Use explain_many(n_jobs=1)."
            ) from error

    def submit(self, function: Any, *arguments: Any) -> Future[Any]:
        """Call a function in one of the workers."""
        future: Future[Any] = self._pool.submit(function, *arguments)
        self._unfinished.add(future)
        future.add_done_callback(self._unfinished.discard)
        return future

    def leave(self, answers: TableAnswers | None) -> None:
        """Leave answers about the table to the workers, who take them before their first row."""
        if answers is not None:
            place = self._folder / _ANSWERS
            with contextlib.suppress(OSError):  # then every worker asks for itself
                place.with_suffix(".new").write_bytes(pickle.dumps(answers))
                place.with_suffix(".new").replace(place)

    def rows_in_progress(self) -> dict[int, bool]:
        """Return the places of the rows that workers were processing; True if the watchdog ended the worker."""
        timed_out: dict[int, bool] = {}
        for position in self._folder.glob("*.position"):
            first, _, stop = position.read_bytes().partition(b" ")
            trace = _read_if_present(position.with_suffix(".trace"))
            if trace:
                _log.info("A row took too long; the stack of its worker was:\n%s", trace)
            timed_out |= dict.fromkeys(range(int(first or 0), int(stop or 0)), bool(trace))
        return timed_out

    def close(self) -> None:
        """End all workers at once."""
        if self._unfinished:  # shutting down a pool with work left may fail, so its workers are ended first
            for process in list(self._pool._processes.values()):
                process.terminate()
        self._pool.shutdown(wait=True, kill_workers=not self._unfinished)
        shutil.rmtree(self._folder, ignore_errors=True)
