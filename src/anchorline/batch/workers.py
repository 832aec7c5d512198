"""Worker processes: what runs inside one, and a crew of them that can be told why it died.

Every worker notes the row it is at in a file, so that after its death the rows at fault are known. A row that
takes too long is ended by `faulthandler`'s watchdog, which is a thread in C: it ends the process also where
the model hangs in C and never gives the interpreter back.
"""

import contextlib
import faulthandler
import logging
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, BinaryIO

from anchorline.batch.partition import Work, learn_ranges, unpacked
from anchorline.errors import OutputFileError, WorkerError
from anchorline.explainer import Ranges, explain
from anchorline.result.explanations import Record

_log = logging.getLogger(__name__)
_WORK = "work"  # the file of what is to be done, packed
_NO_ROOM = (
    "The workers' files in {place!r} cannot be written or read: {error}. Name a folder with room, which nobody "
    "tidies: set TMPDIR."
)
_ORPHAN_SECONDS = 1.0  # how often a worker looks whether its parent lives
# Workers are many: each gets one thread, or all would wait for each other.
ONE_THREAD = dict.fromkeys(
    [
        *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"),
        *("VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS"),
        *("RAYON_NUM_THREADS", "LOKY_MAX_CPU_COUNT"),
    ],
    "1",
)


class _Inside:
    """What one worker process knows; there is one of it, made by `begin`."""

    work: Work
    broken: Exception | None = None
    flight: int
    trace: BinaryIO
    row_timeout: float | None = None


def begin(folder: str, row_timeout: float | None, parent: int) -> None:
    """Start a worker: the work is unpacked once, not with every row, from a file that all workers share.

    ``parent`` is told, not asked for: it may be gone before this runs.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to heed; it ends its workers
    with contextlib.suppress(OSError):
        os.dup2(2, 1)  # what a model prints is no result
    place = Path(folder) / str(os.getpid())
    _Inside.row_timeout = row_timeout
    threading.Thread(target=_end_with_parent, args=(parent, folder), daemon=True).start()
    try:
        _Inside.trace = place.with_suffix(".trace").open("wb", buffering=0)
        _Inside.flight = os.open(place.with_suffix(".flight"), os.O_WRONLY | os.O_CREAT, 0o600)
        _note(0, 0)  # has its place on the disk: later notes are as long
        with place.with_name(_WORK).open("rb") as file:
            _Inside.work = unpacked(file)
        _warm_up(_Inside.work)
    except FileNotFoundError:  # somebody has tidied the folder: to the parent, one more worker that died
        os._exit(1)
    except OSError as error:
        _Inside.broken = OutputFileError(_NO_ROOM.format(place=folder, error=error))
    except Exception as error:  # told with the first task: an initializer may not raise
        _Inside.broken = error


def _warm_up(work: Work) -> None:
    """Load what is loaded on first use now: the first row's time is then its own."""
    explain(lambda z: z[:, 0] / 2, [1, 1], k=2, n_certify=0)
    with contextlib.suppress(Exception):  # a space that knows no positions
        work.explainer.space.at(0)


def _end_with_parent(parent: int, folder: str) -> None:
    """No worker, and no folder, outlives the process that started it, however that one ended."""
    while os.getppid() == parent:
        time.sleep(_ORPHAN_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def learn() -> Ranges:
    """The ranges of the model's outputs, asked in a worker, where a model that crashes does no harm."""
    _check_unpacked()
    most = None if _Inside.row_timeout is None else max(60.0, 10 * _Inside.row_timeout)
    with _watched(most):
        return learn_ranges(_Inside.work.explainer)


def explain_rows(places: Sequence[int], rows: Sequence[Any], ranges: Ranges) -> tuple[list[Record], float]:
    """Explain the rows at some places; the records, and how long they took."""
    _check_unpacked()
    work, start = _Inside.work, time.monotonic()
    work.explainer.learned_ranges = ranges or work.explainer.learned_ranges
    if work.share > 1:
        _note(places[0], places[-1] + 1)
        records = work.records(rows)
    else:
        records = []
        for place, row in zip(places, rows, strict=True):
            _note(place, place + 1)
            with _watched(_Inside.row_timeout):
                records.append(work.record(row))
    _note(0, 0)
    return records, time.monotonic() - start


def _check_unpacked() -> None:
    if _Inside.broken is not None:
        raise _Inside.broken


def _note(first: int, stop: int) -> None:
    os.lseek(_Inside.flight, 0, os.SEEK_SET)
    os.write(_Inside.flight, b"%020d %020d" % (first, stop))


@contextlib.contextmanager
def _watched(seconds: float | None) -> Iterator[None]:
    if seconds is None:
        yield
        return
    faulthandler.dump_traceback_later(seconds, exit=True, file=_Inside.trace)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def _folder_with(payload: bytes) -> Path:
    """A folder for the workers' notes, with their work in it: sent to each, it would be copied for each."""
    folder = None
    try:
        folder = Path(tempfile.mkdtemp(prefix="anchorline-batch-"))
        (folder / _WORK).write_bytes(payload)
    except BaseException as error:  # no room, or asked to end meanwhile
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        if not isinstance(error, OSError):
            raise
        raise OutputFileError(_NO_ROOM.format(place=tempfile.gettempdir(), error=error)) from error
    return folder


def _text_of(path: Path) -> str:
    """What a file holds; nothing where somebody has tidied it away."""
    try:
        return path.read_text("utf-8", "replace")
    except FileNotFoundError:
        return ""


class Crew:
    """So many worker processes with the same work; broken for good when one of them dies."""

    def __init__(self, payload: bytes, n_workers: int, row_timeout: float | None) -> None:
        from joblib.externals.loky import ProcessPoolExecutor  # noqa: PLC0415  heavy

        self.n_workers, self._unfinished = n_workers, set[Future[Any]]()
        self._folder = _folder_with(payload)
        try:
            self._pool = ProcessPoolExecutor(
                n_workers,
                initializer=begin,
                initargs=(str(self._folder), row_timeout, os.getpid()),
                env=ONE_THREAD,
            )
        except BaseException as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            if not isinstance(error, OSError):
                raise
            raise WorkerError(
                f"No worker processes can be had here: {error}. Use explain_many(n_jobs=1)."
            ) from error

    def submit(self, function: Any, *arguments: Any) -> Future[Any]:
        """Have some worker call a function."""
        future: Future[Any] = self._pool.submit(function, *arguments)
        self._unfinished.add(future)
        future.add_done_callback(self._unfinished.discard)
        return future

    def in_flight(self) -> dict[int, bool]:
        """Places of the rows that workers were at; True where the watchdog ended the worker for it."""
        found: dict[int, bool] = {}
        for flight in self._folder.glob("*.flight"):
            first, _, stop = flight.read_bytes().partition(b" ")
            trace = _text_of(flight.with_suffix(".trace"))
            if trace:
                _log.info("A row took too long; its worker was here:\n%s", trace)
            found |= dict.fromkeys(range(int(first or 0), int(stop or 0)), bool(trace))
        return found

    def close(self) -> None:
        """End all workers at once."""
        if self._unfinished:  # asked to shut down with work to do, the pool might stumble over it: break it
            for process in list(self._pool._processes.values()):
                process.terminate()
        self._pool.shutdown(wait=True, kill_workers=not self._unfinished)
        shutil.rmtree(self._folder, ignore_errors=True)
