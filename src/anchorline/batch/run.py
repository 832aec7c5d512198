"""A batch from a file to a file: checkpoints, going on after a crash, a report of what happened."""

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
from anchorline.batch.journal import Journal, check_identity, records
from anchorline.batch.local import Events, Plan, check_plan, stream
from anchorline.batch.parquet import identity_of, read_parquet, write_parquet
from anchorline.batch.partition import FrameRows, Work
from anchorline.batch.progress import Meter, Progress, check_progress, clock
from anchorline.errors import JournalError, OutputFileError, RowError
from anchorline.io.files import reason_of
from anchorline.result.explanations import Failure, Record

JOURNAL = ".journal"  # the ending of a journal's name, after the whole name of the file it becomes
_BLOCK = 1 << 20
_MAX_FAILURES_TOLD = 5


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a batch came to.

    ``resumed`` rows were finished before; ``dropped`` bytes of a torn journal were thrown away; ``failures``
    count the rows without explanation by their kind, ``first_failures`` are the first of them. ``threads``: why
    no processes were used, of which a warning told.
    """

    n_rows: int
    n_resumed: int
    failures: Mapping[str, int]
    first_failures: tuple[Failure, ...]
    restarts: int
    timeouts: int
    dropped: int
    threads: str | None
    seconds: float

    @property
    def n_failed(self) -> int:
        """Rows without an explanation."""
        return sum(self.failures.values())

    def lines(self) -> list[str]:
        """The report, for people."""
        n_new = self.n_rows - self.n_resumed
        rate = f", {n_new / self.seconds:.1f} a second" if n_new and self.seconds > 0 else ""
        n_good = self.n_rows - self.n_failed
        told = [f"{n_good:,} of {self.n_rows:,} rows explained in {clock(self.seconds)}{rate}."]
        if self.n_resumed:
            torn = f" ({self.dropped:,} bytes of a torn line were dropped)" if self.dropped else ""
            told.append(f"{self.n_resumed:,} rows were finished before{torn}.")
        if self.n_failed:
            kinds = ", ".join(f"{name} {count:,}" for name, count in self.failures.items())
            told.append(f"{self.n_failed:,} rows failed ({kinds}); their errors are in the file.")
            told += [f"  {failure}"[:300] for failure in self.first_failures]
        if self.restarts:
            late = f", {self.timeouts:,} times because a row took too long" if self.timeouts else ""
            told.append(f"Worker processes were started again {self.restarts:,} times{late}; no row was lost.")
        return told


@dataclass(frozen=True, kw_only=True)
class RunChoices:
    """How a batch is run; none of it changes a byte of the result."""

    n_jobs: int = 1
    resume: bool = False
    overwrite: bool = False
    fail_fast: bool = False
    row_timeout: float | None = None
    progress: Callable[[Progress], None] | bool | None = None


def run_batch(rows: FrameRows, work: Work, out: Path, made_of: Mapping[str, Any], choices: RunChoices) -> Report:
    """Explain all rows into the Parquet file ``out``; ``made_of`` tells the model and the data.

    A journal beside the file, called like it with ``.journal``, keeps every finished row until the file is
    whole. After a crash, the same call with ``resume`` goes on and ends with the same bytes.
    """
    start = time.monotonic()
    plan = Plan(n_jobs=choices.n_jobs, row_timeout=choices.row_timeout, isolate=True)
    check_plan(plan, work)
    check_progress(choices.progress)
    identity = identity_for(rows, work, made_of, choices)
    journal_path = Path(f"{out}{JOURNAL}")
    _check_places(out, journal_path)
    failures: Counter[str] = Counter()
    first: list[Failure] = []
    if _is_finished(out, journal_path, identity, choices):
        for _ in _counted(read_parquet(out), failures, first, len(rows)):
            pass
        return _report(failures, first, Events(), n_rows=len(rows), n_resumed=len(rows), dropped=0, start=start)
    journal = _open(out, journal_path, identity, choices)
    events, n_resumed = Events(), journal.n_rows
    try:
        meter = Meter(len(rows), choices.progress, n_resumed)
        found = stream(rows, work, replace(plan, start=n_resumed, tick=journal.tick), events)
        _work_off(found, journal, meter, choices.fail_fast)
        write_parquet(out, _counted(records(journal_path), failures, first, len(rows)), identity)
        removed = _removed(journal_path)  # still locked: nobody else's
    finally:
        journal.close()
    if not removed:  # Windows removes no open file
        _removed(journal_path)
    return _report(
        failures, first, events, n_rows=len(rows), n_resumed=n_resumed, dropped=journal.dropped, start=start
    )


def _removed(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


def identity_for(rows: FrameRows, work: Work, made_of: Mapping[str, Any], choices: RunChoices) -> dict[str, Any]:
    """All that decides the bytes of the result."""
    explainer = work.explainer
    return {
        **made_of,
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
        },
        "row_timeout": choices.row_timeout,
        "shared_calls": work.share > 1,
        "versions": {"anchorline": __version__, "numpy": np.__version__},
    }


def _check_places(*places: Path) -> None:
    """Refuse, before any work, names that no file can have."""
    for place in places:
        try:
            is_folder = place.is_dir()
        except OSError as error:
            raise OutputFileError(f"{str(place)!r} cannot be written: {reason_of(error)}.") from error
        if is_folder:
            raise OutputFileError(f"{str(place)!r} is a folder; needed the name of a file.")


def _is_finished(out: Path, journal: Path, identity: Mapping[str, Any], choices: RunChoices) -> bool:
    """Whether there is nothing to go on with, because the file is there; `JournalError` where it may not be."""
    if choices.resume and choices.overwrite:
        raise JournalError("Either go on (--resume) or begin anew (--overwrite), not both.")
    if choices.overwrite:
        return False
    if not choices.resume:
        for there in (out, journal):
            if there.exists():
                hint = "go on with resume (--resume), or" if there == journal else ""
                raise JournalError(f"{str(there)!r} exists: {hint} begin anew with overwrite (--overwrite).")
        return False
    if journal.exists() or not out.exists():
        return False
    began_with = identity_of(out)
    if began_with is None:
        raise JournalError(f"{str(out)!r} exists, and no batch wrote it. Begin anew with overwrite (--overwrite).")
    check_identity(began_with, identity, str(out))
    return True


def _open(out: Path, path: Path, identity: Mapping[str, Any], choices: RunChoices) -> Journal:
    if choices.overwrite and path.exists():
        # Locked first: a batch that is running is not thrown away.
        with contextlib.suppress(OSError), contextlib.closing(Journal.lock_only(path)):
            path.unlink()
    if choices.resume and path.exists():
        return Journal.resume(path, identity)
    return Journal.begin(path, identity)


def _work_off(found: Generator[tuple[int, Record]], journal: Journal, meter: Meter, fail_fast: bool) -> None:
    with contextlib.closing(found):
        for place, record in found:
            if fail_fast and record["error_type"] is not None:
                failure = Failure(place, record["error"], record["error_type"])
                raise RowError(f"{failure} Stopped there, as asked (--fail-fast); --resume tries it again.")
            journal.append({"row": place} | record)
            meter.count(record["error_type"] is not None)


def _counted(
    found: Iterator[Record], failures: Counter[str], first: list[Failure], n_rows: int
) -> Iterator[Record]:
    """The records as they pass, failures counted; an error if any were missing."""
    n = 0
    for record in found:
        n += 1
        if record["error_type"] is not None:
            failures[record["error_type"]] += 1
            if len(first) < _MAX_FAILURES_TOLD:
                first.append(Failure(record["row"], record["error"], record["error_type"]))
        yield record
    if n != n_rows:
        raise OutputFileError(f"The journal holds {n} of {n_rows} rows: it was changed. Go on with --resume.")


def _report(failures: Counter[str], first: list[Failure], events: Events, *, start: float, **told: int) -> Report:
    return Report(
        failures=dict(failures.most_common()),
        first_failures=tuple(first),
        restarts=events.restarts,
        timeouts=len(events.timeouts),
        threads=events.threads,
        seconds=time.monotonic() - start,
        **told,
    )


def file_digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    with Path(path).open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
