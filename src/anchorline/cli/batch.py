"""The command ``anchorline batch``."""

import contextlib
import hashlib
import importlib.util
import itertools
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from anchorline.batch.partition import CHANGE_COLUMNS, Work
from anchorline.batch.progress import Progress
from anchorline.batch.rows import rows_of, unique_ids
from anchorline.batch.run import PARTS_SUFFIX, RunOptions, run_batch
from anchorline.changes.questions import NoDecisionError
from anchorline.cli import options as opt
from anchorline.cli.codes import Code
from anchorline.cli.console import error_console, print_message
from anchorline.cli.inputs import (
    AskedModelOptions,
    ExplainOptions,
    OutputOptions,
    TableOptions,
    file_digest,
    rows_like,
)
from anchorline.cli.options import Side, option
from anchorline.errors import ParameterError
from anchorline.model.loaders.http_endpoint import redact_address

SUMMARY = "Explain every row of a table and write a file, with checkpoints."
_SUFFIXES = ("", ".parquet", ".pq")
EXAMPLES = """\
anchorline batch declined.parquet --model model.skops --data train.parquet --id case --out why.parquet
anchorline batch declined.csv --model model.onnx --data train.csv --target approved --out why.parquet --jobs -1
anchorline batch declined.csv --model model.onnx --data train.csv --target approved --out why.parquet --resume
anchorline batch declined.csv --model model.onnx --data train.csv --target approved --out why.parquet --changes
anchorline batch new.csv --model model.onnx --data train.csv --threshold 0.5 --codes codes.csv --out why.parquet
anchorline batch new.csv --model mypackage.scoring:score --data train.csv --out why.parquet --row-timeout 60"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """Options on how the rows are worked through."""

    out: Annotated[str, option("The Parquet file to write.", metavar="FILE")]
    id: Annotated[
        str | None, option("A column of ROWS that identifies them, to keep in the file.", metavar="COLUMN")
    ] = None
    jobs: Annotated[int, option("Number of worker processes; -1 for one per core.", "--jobs", "-j")] = 1
    resume: Annotated[bool, option("Continue an interrupted batch.")] = False
    overwrite: Annotated[bool, option("Start again and replace existing files.")] = False
    fail_fast: Annotated[bool, option("Stop at the first row that fails.")] = False
    row_timeout: Annotated[float | None, option("Longest time that a row may take.", metavar="SECONDS")] = None
    share_calls: Annotated[
        bool,
        option("Combine queries of several rows in one call, if the model's answers do not depend on the batch."),
    ] = False
    changes: Annotated[bool, option("Add columns about the fewest facts that would change each decision.")] = False
    rules: Annotated[bool, option("Add columns with the rule of each row.")] = False
    codes: Annotated[
        str | None,
        option("Add columns with the reasons of each adverse decision, by this map of codes.", metavar="FILE"),
    ] = None
    adverse: Annotated[Side, option("The side of --threshold on which a decision is adverse, for --codes.")] = (
        Side.below
    )
    prohibited: Annotated[
        list[str] | None, option("A column that must never be a reason. Repeatable.", metavar="COLUMN")
    ] = None


def batch(
    *,
    rows: Annotated[str, typer.Argument(metavar="ROWS", help="The table whose rows are explained.")],
    model: Annotated[
        str, typer.Option("--model", metavar="MODEL", help="The model, as for `anchorline explain`.")
    ],
    data: opt.Data,
    batch_options: BatchOptions,
    target: opt.Target = None,
    explain_options: ExplainOptions,
    output_options: OutputOptions,
    table_options: TableOptions,
    model_options: AskedModelOptions,
) -> Code:
    """Explain every row of a table, with checkpoints: --resume continues an interrupted batch.

    A row that fails is written with its error. The report counts these rows. The exit code is 0 unless all fail.
    """
    given, changes, out = batch_options, batch_options.changes, batch_options.out
    if given.resume and given.overwrite:
        raise ParameterError(
            "Both --resume and --overwrite are given, but only one is allowed. Type --resume to continue, or "
            "--overwrite to start again."
        )
    _check_out(out, {"ROWS": rows, "--data": data, "--model": model})
    space = table_options.space(data, target)
    frame = rows_like(space, rows)
    ids = unique_ids(frame, given.id, "--id")
    if changes and given.id in CHANGE_COLUMNS:
        raise ParameterError(f"--id is {given.id!r}, the name of a column of the result. Rename your column.")
    loaded = model_options.load(model)
    explainer = output_options.explainer(loaded, space, model_options.open(model, loaded))
    keywords = explain_options.keywords()
    choices: dict[str, Any] = {"share_calls": given.share_calls, "changes": changes, "rule": given.rules}
    if given.codes is not None:
        letter = {"codes": given.codes, "adverse": given.adverse.value, "prohibited": given.prohibited or ()}
        choices["reasons"] = letter
    work = Work.from_keywords(explainer, **choices, **keywords)
    if changes and len(frame):
        _check_decision(work, rows_of(frame, explainer).take(0, 1)[0])
    sources: dict[str, Any] = {"model": _model_digest(model), "data": file_digest(rows)}
    sources |= {"batch_rows": model_options.batch_rows} if "://" in model else {}
    with _progress_bar() as progress, _resume_note():
        options = RunOptions(
            n_jobs=given.jobs,
            resume=given.resume,
            overwrite=given.overwrite,
            fail_fast=given.fail_fast,
            row_timeout=given.row_timeout,
            progress=progress,
        )
        report = run_batch(rows_of(frame, explainer), work, Path(out), sources, options, ids)
    for line in report.lines():
        print_message(line)
    return Code.MODEL if report.n_failed == report.n_rows else Code.OK


def _check_decision(work: Work, row: Any) -> None:
    """Raise `ParameterError` before any row is explained if the model decides nothing that could change."""
    try:
        work.find_changes(work.explainer, row)
    except NoDecisionError:
        raise ParameterError(
            "--changes needs a decision, but the model returns a number. Type --threshold NUMBER as well, or use "
            "`anchorline changes` with --goal."
        ) from None
    except Exception:  # the batch reports it as the row's own
        return


@contextlib.contextmanager
def _resume_note() -> Iterator[None]:
    """Add a note to an interrupt that explains how to continue."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as stop:
        stop.add_note("Finished rows are kept. Continue with --resume.")
        raise


def _check_out(out: str, inputs: Mapping[str, str]) -> None:
    """Raise `ParameterError` if ``out`` is one of the inputs, under whatever name, or has the wrong suffix."""
    if not out:
        raise ParameterError("--out is '', but it must be the name of the file to write, such as why.parquet.")
    for (name, path), place in itertools.product(inputs.items(), (out, f"{out}{PARTS_SUFFIX}")):
        if _are_same_file(place, path):
            raise ParameterError(
                f"{place!r} (--out) is the same file as {path!r} ({name}), which would be lost. Name another file."
            )
    if Path(out).suffix.lower() not in _SUFFIXES:
        raise ParameterError(
            f"--out is {out!r}, but it must be a name that ends in .parquet, because a Parquet file is written."
        )


def _are_same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them does not exist
        return False


def _model_digest(spec: str) -> str:
    """Return the SHA-256 of the model's file, of its module, or of its address, which may contain a key."""
    if Path(spec).is_file():
        return file_digest(spec)
    if "://" in spec:
        return f"{redact_address(spec)} {hashlib.sha256(spec.encode()).hexdigest()}"
    with contextlib.suppress(ImportError, ValueError, AttributeError):
        module = importlib.util.find_spec(spec.partition(":")[0])
        if module is not None and module.origin is not None and Path(module.origin).is_file():
            return f"{spec} {file_digest(module.origin)}"
    return spec


@contextlib.contextmanager
def _progress_bar() -> Iterator[Any]:
    """Show a progress bar on a terminal; yield None elsewhere, where lines of progress would be a nuisance."""
    console = error_console()
    if not (console.is_terminal and sys.stderr.isatty()):
        yield None
        return
    text = TextColumn("{task.description}", markup=False)
    with Bar(BarColumn(), text, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(progress: Progress) -> None:
            bar.update(task, description=str(progress), completed=progress.done, total=progress.total)

        yield show
