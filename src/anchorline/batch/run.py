"""A batch that writes a Parquet file: checkpoints, resuming after a crash, and a report of the run."""

import contextlib
import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from anchorline._version import __version__
from anchorline.batch.journal import Journal, check_identity, read_records
from anchorline.batch.local import ExecutionPlan, RunEvents, check_plan, stream
from anchorline.batch.parquet import read_identity, read_parquet, write_parquet
from anchorline.batch.partition import FrameRows, Work
from anchorline.batch.progress import Progress, ProgressReporter, check_progress, format_duration
from anchorline.errors import JournalError, OutputFileError, RowError
from anchorline.io.files import reason_of
from anchorline.result.explanations import Failure, Record
from anchorline.result.frames import RowIds

JOURNAL_SUFFIX = ".journal"  # appended to the whole name of the result file
_BLOCK = 1 << 20
_MAX_LISTED_FAILURES = 5


@dataclass(frozen=True, kw_only=True)
class Report:
    """The outcome of a batch.

    ``n_resumed`` rows were finished by an earlier run. ``dropped`` is the number of bytes of an incomplete line
    that were removed from the journal. ``failures`` counts the rows without explanation by kind of error, and
    ``first_failures`` holds the first of them. ``threads_reason`` is the reason why threads replaced processes,
    which a warning reported; None if they did not.
    """

    n_rows: int
    n_resumed: int
    failures: Mapping[str, int]
    first_failures: tuple[Failure, ...]
    restarts: int
    timeouts: int
    dropped: int
    threads_reason: str | None
    seconds: float

    @property
    def n_failed(self) -> int:
        """The number of rows without an explanation."""
        return sum(self.failures.values())

    def lines(self) -> list[str]:
        """Return the report as lines of text."""
        n_new = self.n_rows - self.n_resumed
        rate = f", {n_new / self.seconds:.1f} per second" if n_new and self.seconds > 0 else ""
        n_good = self.n_rows - self.n_failed
        lines = [f"{n_good:,} of {self.n_rows:,} rows explained in {format_duration(self.seconds)}{rate}."]
        if self.n_resumed:
            dropped = f" ({self.dropped:,} bytes of an incomplete line were dropped)" if self.dropped else ""
            lines.append(f"{self.n_resumed:,} rows were finished by an earlier run{dropped}.")
        if self.n_failed:
            kinds = ", ".join(f"{name} {count:,}" for name, count in self.failures.items())
            lines.append(f"{self.n_failed:,} rows failed ({kinds}); their errors are in the file.")
            lines += [f"  {failure}"[:300] for failure in self.first_failures]
        if self.restarts:
            timeouts = f", {self.timeouts:,} times because a row took too long" if self.timeouts else ""
            lines.append(f"Worker processes were restarted {self.restarts:,} times{timeouts}; no row was lost.")
        return lines


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a batch is run; only ``row_timeout`` can change the result, where a row takes longer."""

    n_jobs: int = 1
    resume: bool = False
    overwrite: bool = False
    fail_fast: bool = False
    row_timeout: float | None = None
    progress: Callable[[Progress], None] | bool | None = None


def run_batch(
    rows: FrameRows,
    work: Work,
    out: Path,
    sources: Mapping[str, Any],
    options: RunOptions,
    ids: RowIds | None = None,
) -> Report:
    """Explain all rows into the Parquet file ``out``; ``sources`` identifies the model and the data.

    A journal beside the file, with ``.journal`` appended to its name, holds every finished row until the file is
    complete. After a crash, the same call with ``resume`` continues and produces the same bytes. ``ids`` become a
    column of the file.
    """
    start = time.monotonic()
    plan = ExecutionPlan(n_jobs=options.n_jobs, row_timeout=options.row_timeout, isolate=True)
    check_plan(plan, work)
    check_progress(options.progress)
    identity = batch_identity(rows, work, sources, options) | ({} if ids is None else {"id": ids.name})
    identity |= {"changes": True} if work.changes else {}
    identity |= {} if work.rule is None else {"rule": work.rule.to_dict()}
    journal_path = Path(f"{out}{JOURNAL_SUFFIX}")
    _check_paths(out, journal_path)
    failures: Counter[str] = Counter()
    first: list[Failure] = []
    if _is_finished(out, journal_path, identity, options):
        for _ in _count_failures(read_parquet(out), failures, first, len(rows), ids):
            pass
        return _report(failures, first, RunEvents(), n_rows=len(rows), n_resumed=len(rows), dropped=0, start=start)
    journal = _open_journal(journal_path, identity, options)
    events, n_resumed = RunEvents(), journal.n_rows
    try:
        reporter = ProgressReporter(len(rows), options.progress, n_resumed)
        records = stream(rows, work, replace(plan, start=n_resumed, tick=journal.tick), events)
        _append_all(records, journal, reporter, options.fail_fast, ids)
        finished = _count_failures(read_records(journal_path), failures, first, len(rows), ids)
        write_parquet(out, finished, identity, ids, work.columns)
        removed = _removed(journal_path)  # while the lock is held, so that the file cannot be another process's
    finally:
        journal.close()
    if not removed:  # Windows does not remove an open file
        _removed(journal_path)
    return _report(
        failures, first, events, n_rows=len(rows), n_resumed=n_resumed, dropped=journal.dropped, start=start
    )


def _removed(path: Path) -> bool:
    """Remove a file; return whether that worked."""
    try:
        path.unlink()
    except OSError:
        return False
    return True


def batch_identity(rows: FrameRows, work: Work, sources: Mapping[str, Any], options: RunOptions) -> dict[str, Any]:
    """Return everything that determines the bytes of the result."""
    explainer = work.explainer
    return {
        **sources,
        "rows": len(rows),
        "table": explainer.space.fingerprint,
        "settings": work.settings.to_dict(),
        "output": {
            "name": explainer.target.name,
            "column": explainer.target.column,
            "task": explainer.target.task,
            "classes": None if explainer.target.classes is None else [str(c) for c in explainer.target.classes],
            "output_range": None if explainer.output_range is None else list(explainer.output_range),
            "threshold": explainer.threshold,
            "input": explainer.target.input,
            "contrast": explainer.target.contrast,
            "output_scale": explainer.target.scale,
        },
        "row_timeout": options.row_timeout,
        "shared_calls": work.share > 1,
        "versions": {"anchorline": __version__, "numpy": np.__version__},
    }


def _check_paths(*paths: Path) -> None:
    """Raise `OutputFileError`, before any work is done, for a name that a file cannot have."""
    for path in paths:
        try:
            is_folder = path.is_dir()
        except OSError as error:
            raise OutputFileError(f"{str(path)!r} cannot be written: {reason_of(error)}.") from error
        if is_folder:
            raise OutputFileError(f"{str(path)!r} is a folder. Type the name of a file.")


def _is_finished(out: Path, journal: Path, identity: Mapping[str, Any], options: RunOptions) -> bool:
    """Return whether an earlier run completed the file; raise `JournalError` if a file is in the way."""
    if options.resume and options.overwrite:
        raise JournalError(
            "Both resume and overwrite are given, but only one is allowed. Type --resume or --overwrite."
        )
    if options.overwrite:
        return False
    if not options.resume:
        for path in (out, journal):
            if path.exists():
                hint = "Continue with resume (--resume), or start" if path == journal else "Start"
                raise JournalError(f"{str(path)!r} exists. {hint} again with overwrite (--overwrite).")
        return False
    if journal.exists() or not out.exists():
        return False
    saved_identity = read_identity(out)
    if saved_identity is None:
        raise JournalError(
            f"{str(out)!r} exists, but a batch did not write it, so it cannot be resumed. Start again with "
            "overwrite (--overwrite)."
        )
    check_identity(saved_identity, identity, str(out))
    return True


def _open_journal(path: Path, identity: Mapping[str, Any], options: RunOptions) -> Journal:
    if options.overwrite and path.exists():
        # The lock comes first, so that a running batch is not deleted.
        with contextlib.suppress(OSError), contextlib.closing(Journal.lock_only(path)):
            path.unlink()
    if options.resume and path.exists():
        return Journal.resume(path, identity)
    return Journal.begin(path, identity)


def _append_all(
    numbered_records: Generator[tuple[int, Record]],
    journal: Journal,
    reporter: ProgressReporter,
    fail_fast: bool,
    ids: RowIds | None,
) -> None:
    with contextlib.closing(numbered_records):
        for place, record in numbered_records:
            if fail_fast and record["error_type"] is not None:
                failure = _failure(place, record, ids)
                raise RowError(
                    f"{failure} The batch stopped here (--fail-fast). Type --resume to try the row again."
                )
            journal.append({"row": place} | record)
            reporter.count(record["error_type"] is not None)


def _failure(place: int, record: Record, ids: RowIds | None) -> Failure:
    label = None if ids is None else ids.label(place)
    return Failure(place, record["error"], record["error_type"], label)


def _count_failures(
    records: Iterator[Record], failures: Counter[str], first: list[Failure], n_rows: int, ids: RowIds | None
) -> Iterator[Record]:
    """Yield the records unchanged and count their failures; raise `OutputFileError` if records are missing."""
    n = 0
    for record in records:
        n += 1
        if record["error_type"] is not None:
            failures[record["error_type"]] += 1
            if len(first) < _MAX_LISTED_FAILURES:
                first.append(_failure(record["row"], record, ids))
        yield record
    if n != n_rows:
        raise OutputFileError(
            f"The journal holds {n} of {n_rows} rows, so another program has changed it. Continue with --resume."
        )


def _report(
    failures: Counter[str], first: list[Failure], events: RunEvents, *, start: float, **counts: int
) -> Report:
    return Report(
        failures=dict(failures.most_common()),
        first_failures=tuple(first),
        restarts=events.restarts,
        timeouts=len(events.timeouts),
        threads_reason=events.threads_reason,
        seconds=time.monotonic() - start,
        **counts,
    )


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 digest of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with Path(path).open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
