"""A batch that writes a Parquet file: parts that survive a crash, resuming, and a report of the run.

Finished rows are kept in a folder of parts, one Parquet file per row group of the result. A part is written under
another name and renamed, so that a process that is killed leaves whole parts, and a resumed batch continues after
them.
"""

import contextlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from anchorline._version import __version__
from anchorline.batch.local import ExecutionPlan, RunEvents, check_plan, stream
from anchorline.batch.parquet import ROWS_PER_GROUP, read_identity, read_parquet, write_parquet
from anchorline.batch.partition import Work
from anchorline.batch.progress import Progress, ProgressReporter, check_progress, format_duration
from anchorline.batch.rows import FrameRows, failure_of
from anchorline.errors import FormatError, JournalError, OutputFileError, ParameterError, RowError
from anchorline.io.files import reason_of
from anchorline.result.explanations import Failure, Record
from anchorline.result.frames import RowIds

PARTS_SUFFIX = ".parts"  # appended to the whole name of the result file
_RESUME_HINT = " Finished rows are not lost. Fix the cause, then continue with resume (--resume)."
_WRITE_SECONDS = 1.0  # finished rows that a killed process may lose
_MAX_LISTED_FAILURES = 5


@dataclass(kw_only=True)
class Report:
    """The outcome of a batch: ``n_resumed`` rows were finished by an earlier run."""

    n_rows: int
    ids: RowIds | None
    n_resumed: int = 0
    failures: Counter[str] = field(default_factory=Counter)  # rows without explanation by kind of error
    first_failures: list[Failure] = field(default_factory=list)
    events: RunEvents = field(default_factory=RunEvents)
    seconds: float = 0.0

    def count(self, records: Iterator[Record]) -> Iterator[Record]:
        """Yield the records unchanged and count; raise `OutputFileError` if records are missing."""
        n = 0
        for record in records:
            n += 1
            if record["error_type"] is not None:
                self.failures[record["error_type"]] += 1
                if len(self.first_failures) < _MAX_LISTED_FAILURES:
                    self.first_failures.append(failure_of(record["row"], record, self.ids))
            yield record
        if n != self.n_rows:
            raise OutputFileError(f"The parts hold {n} of {self.n_rows} rows: another program has changed them.")

    @property
    def n_failed(self) -> int:
        """The number of rows without an explanation."""
        return self.failures.total()

    def lines(self) -> list[str]:
        """Return the report as lines of text."""
        n_new = self.n_rows - self.n_resumed
        rate = f", {n_new / self.seconds:.1f} per second" if n_new and self.seconds > 0 else ""
        n_good = self.n_rows - self.n_failed
        lines = [f"{n_good:,} of {self.n_rows:,} rows explained in {format_duration(self.seconds)}{rate}."]
        if self.n_resumed:
            lines.append(f"{self.n_resumed:,} rows were finished by an earlier run.")
        if self.n_failed:
            kinds = ", ".join(f"{name} {count:,}" for name, count in self.failures.most_common())
            lines.append(f"{self.n_failed:,} rows failed ({kinds}); their errors are in the file.")
            lines += [f"  {failure}"[:300] for failure in self.first_failures]
        if n := self.events.restarts:
            late = self.events.timeouts
            timeouts = f", {late:,} times because a row took too long" if late else ""
            lines.append(f"Worker processes were restarted {n:,} times{timeouts}; no row was lost.")
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

    A folder beside the file, with ``.parts`` appended to its name, holds the finished rows until the file is
    complete. After a crash, the same call with ``resume`` continues and produces the same bytes. ``ids`` become a
    column of the file.
    """
    start = time.monotonic()
    plan = ExecutionPlan(n_jobs=options.n_jobs, row_timeout=options.row_timeout, isolate=True)
    check_plan(plan, work)
    check_progress(options.progress)
    identity = _identity(rows, work, sources, options, ids)
    folder, report = Path(f"{out}{PARTS_SUFFIX}"), Report(n_rows=len(rows), ids=ids)
    if _is_finished(out, folder, identity, options):
        report.n_resumed = sum(1 for _ in report.count(read_parquet(out)))
    else:
        parts = _Parts(folder, identity, work.columns, options.overwrite)
        report.n_resumed = parts.n_rows
        reporter = ProgressReporter(len(rows), options.progress, parts.n_rows)
        plan = replace(plan, start=parts.n_rows, tick=parts.tick)
        try:
            with parts, contextlib.closing(stream(rows, work, plan, report.events)) as records:
                for place, record in records:
                    if options.fail_fast and record["error_type"] is not None:
                        raise RowError(
                            f"{failure_of(place, record, ids)} The batch stopped here (--fail-fast). "
                            "Type --resume to try the row again."
                        )
                    parts.append({"row": place} | record)
                    reporter.count(record["error_type"] is not None)
                write_parquet(out, report.count(parts.records()), identity, ids, work.columns)
                parts.remove()  # while it is locked, so that it cannot be another process's
        except OutputFileError as error:
            raise OutputFileError(f"{error}{_RESUME_HINT}") from error
    report.seconds = time.monotonic() - start
    return report


class _Parts:
    """The folder of the parts, locked; call `append` with each row, in order, and `tick` regularly.

    The last part is replaced by a longer one until it has `ROWS_PER_GROUP` rows.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any], columns: Mapping[str, str], anew: bool) -> None:
        self._folder, self._identity, self._columns = folder, identity, columns
        self.n_rows, self._last = 0, list[Record]()  # all rows, and those of a part that is not full
        self._written, self._is_dirty = -_WRITE_SECONDS, False
        try:
            folder.mkdir(exist_ok=True)
            self._lock = _lock(folder)
        except OSError as error:
            raise OutputFileError(f"{str(folder)!r} cannot be written: {reason_of(error)}.") from error
        if anew:
            self._remove_from(0)
        try:
            self._take_over()
        except BaseException:
            self._unlock()
            raise

    def _take_over(self) -> None:
        """Count the rows of the parts of an earlier run, up to the first part that is missing or damaged."""
        number = 0
        while not self._last and (saved := read_identity(self._part(number))) is not None:
            _check_identity(saved, self._identity, str(self._folder))
            try:
                records = list(read_parquet(self._part(number), self._columns))
            except FormatError:
                break
            self.n_rows, number = self.n_rows + len(records), number + 1
            self._last = records if len(records) < ROWS_PER_GROUP else []
        self._remove_from(number)

    def __enter__(self) -> "_Parts":
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._write()
        finally:
            with contextlib.suppress(OSError):  # it has parts, or it was removed
                self._folder.rmdir()
            self._unlock()

    def append(self, record: Record) -> None:
        """Add the record of the next row."""
        self._last.append(record)
        self.n_rows, self._is_dirty = self.n_rows + 1, True
        if len(self._last) == ROWS_PER_GROUP:
            self._write()
            self._last = []
        self.tick()

    def tick(self) -> None:
        """Write the rows that have been finished since the last part was written, if that is long enough ago."""
        if time.monotonic() - self._written >= _WRITE_SECONDS:
            self._write()

    def records(self) -> Iterator[Record]:
        """Yield the records of all rows, one part at a time."""
        self._write()
        return read_parquet(self._folder, self._columns) if self.n_rows else iter(())

    def remove(self) -> None:
        """Remove the parts, and with them their folder."""
        self._remove_from(0)

    def _write(self) -> None:
        if not self._is_dirty:
            return
        part = self._part((self.n_rows - 1) // ROWS_PER_GROUP)
        write_parquet(part, self._last, self._identity, kinds=self._columns, checksums=True)
        self._written, self._is_dirty = time.monotonic(), False

    def _part(self, number: int) -> Path:
        return self._folder / f"{number:07d}.parquet"

    def _remove_from(self, number: int) -> None:
        """Remove the parts from a number on, and parts that were not written to their end."""
        for path in (*self._folder.glob("[0-9]*.parquet"), *self._folder.glob(".anchorline-*.part")):
            if path >= self._part(number) or path.suffix == ".part":
                path.unlink(missing_ok=True)

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)


def _lock(folder: Path) -> int | None:
    """Lock a folder for this process; the system releases the lock when the process ends, in whatever way."""
    try:
        import fcntl  # noqa: PLC0415  not on Windows
    except ImportError:
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise JournalError(
            f"Another process is using {str(folder)!r}. Wait until it has finished, or end it."
        ) from None
    except OSError:
        return descriptor  # the file system has no locks
    if not (folder.exists() and os.path.samestat(os.fstat(descriptor), folder.stat())):
        os.close(descriptor)  # the owner finished and removed the folder while this process opened it
        raise JournalError(f"Another process has just finished with {str(folder)!r}. Start the command again.")
    return descriptor


def _identity(
    rows: FrameRows, work: Work, sources: Mapping[str, Any], options: RunOptions, ids: RowIds | None
) -> dict[str, Any]:
    """Return everything that determines the bytes of the result."""
    explainer, target = work.explainer, work.explainer.target
    further = {
        "id": None if ids is None else ids.name,
        "changes": work.changes or None,
        "rule": None if work.rule is None else work.rule.to_dict(),
        "reasons": None if work.reasons is None else work.reasons.identity(explainer),
    }
    return {
        **sources,
        "rows": len(rows),
        "table": explainer.space.fingerprint,
        "settings": work.settings.to_dict(),
        "output": {
            **{name: getattr(target, name) for name in ("name", "column", "task")},
            "classes": None if target.classes is None else [str(label) for label in target.classes],
            "output_range": None if explainer.output_range is None else list(explainer.output_range),
            "threshold": explainer.threshold,
            **{name: getattr(target, name) for name in ("input", "contrast")},
            "output_scale": target.scale,
        },
        "row_timeout": options.row_timeout,
        "shared_calls": work.share > 1,
        "versions": {"anchorline": __version__, "numpy": np.__version__},
        **{name: value for name, value in further.items() if value is not None},
    }


def _is_finished(out: Path, parts: Path, identity: Mapping[str, Any], options: RunOptions) -> bool:
    """Return whether an earlier run completed the file; raise an error if a file or a folder is in the way."""
    try:
        is_folder, in_the_way = out.is_dir(), parts.exists() and not parts.is_dir()
    except OSError as error:
        raise OutputFileError(f"{str(out)!r} cannot be written: {reason_of(error)}.") from error
    if is_folder:
        raise OutputFileError(f"{str(out)!r} is a folder. Type the name of a file.")
    if in_the_way:
        raise OutputFileError(f"{str(parts)!r} must be a folder, but it is a file. Remove or rename it.")
    if options.resume and options.overwrite:
        raise ParameterError(
            "Both --resume and --overwrite are given, but only one is allowed. Type --resume to continue, or "
            "--overwrite to start again."
        )
    if options.overwrite:
        return False
    if not options.resume:
        for path in (out, parts):
            if path.exists():
                hint = "Continue with resume (--resume), or start" if path == parts else "Start"
                raise JournalError(f"{str(path)!r} exists. {hint} again with overwrite (--overwrite).")
        return False
    if parts.exists() or not out.exists():
        return False
    saved_identity = read_identity(out)
    if saved_identity is None:
        raise JournalError(
            f"{str(out)!r} exists, but a batch did not write it, so it cannot be resumed. Start again with "
            "overwrite (--overwrite)."
        )
    _check_identity(saved_identity, identity, str(out))
    return True


def _check_identity(saved: Mapping[str, Any], identity: Mapping[str, Any], name: str) -> None:
    """Raise `JournalError`, which lists the differences, unless the saved identity is that of this batch."""
    differences = _differences("", saved, json.loads(json.dumps(identity)))
    if differences:
        raise JournalError(
            f"{name!r} belongs to another batch: {'; '.join(differences)}. Use the original inputs and settings, "
            "or start again with overwrite (--overwrite)."
        )


def _differences(path: str, saved: Any, current: Any) -> list[str]:
    if not (isinstance(saved, dict) and isinstance(current, dict)):
        return [f"{path} was {saved!r:.40}, is {current!r:.40}"] if saved != current else []
    names = {**saved, **current}
    return [
        each
        for name in names
        for each in _differences(f"{path} {name}".strip(), saved.get(name), current.get(name))
    ]
