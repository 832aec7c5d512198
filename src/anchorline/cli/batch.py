"""``anchorline batch``."""

import contextlib
import hashlib
import importlib.util
import itertools
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from anchorline.batch.partition import Work, rows_of
from anchorline.batch.progress import Progress
from anchorline.batch.run import JOURNAL, RunChoices, file_digest, run_batch
from anchorline.cli import options as opt
from anchorline.cli.codes import Code
from anchorline.cli.console import error_console, print_message
from anchorline.cli.inputs import ModelOptions, OutputOptions, TableOptions, keywords_of, rows_like
from anchorline.errors import ParameterError
from anchorline.model.loaders.http_endpoint import redact_address

SUMMARY = "Explain every row of a table into a file, and lose nothing on the way."
_ENDINGS = ("", ".parquet", ".pq")
EXAMPLES = """\
anchorline batch declined.parquet --model model.skops --data train.parquet --out why.parquet
anchorline batch declined.csv --model model.onnx --data train.csv --target approved --out why.parquet --jobs -1
anchorline batch declined.csv --model model.onnx --data train.csv --target approved --out why.parquet --resume
anchorline batch new.csv --model mypackage.scoring:score --data train.csv --out why.parquet --row-timeout 60"""


def batch(
    *,
    rows: Annotated[str, typer.Argument(metavar="ROWS", help="The table whose rows are explained, all of them.")],
    model: Annotated[str, typer.Option("--model", metavar="MODEL", help="As of `anchorline explain`.")],
    data: opt.Data,
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="The Parquet file to write.")],
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Worker processes; -1: one a core.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what was begun.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Begin anew; what is there is lost.")] = False,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="Stop at the first row that fails.")] = False,
    row_timeout: Annotated[
        float | None, typer.Option("--row-timeout", metavar="SECONDS", help="How long a row may take.")
    ] = None,
    share_calls: Annotated[
        bool, typer.Option("--share-calls", help="Mix rows in one call to a model that does not mind.")
    ] = False,
    target: opt.Target = None,
    k: opt.K = 5,
    sigma: opt.Sigma = 1.0,
    samples: opt.Samples = None,
    objective: opt.ObjectiveOption = opt.Objective.fidelity,
    output_options: OutputOptions,
    table_options: TableOptions,
    max_queries: opt.MaxQueries = None,
    seed: opt.Seed = 0,
    model_options: ModelOptions,
) -> Code:
    """Explain every row of a table, with checkpoints: a batch that was interrupted goes on with --resume.

    A row that fails becomes a row with its error. The exit code is 0 unless all do; the report counts them.
    """
    if resume and overwrite:
        raise ParameterError("--resume and --overwrite are given; needed one: go on, or begin anew.")
    _check_out(out, {"ROWS": rows, "--data": data, "--model": model})
    space = table_options.space(data, target)
    frame = rows_like(space, rows)
    loaded = model_options.load(model)
    explainer = output_options.explainer(loaded, space)
    keywords: dict[str, Any] = keywords_of(
        sigma=sigma, samples=samples, objective=objective.value, max_queries=max_queries, seed=seed
    )
    work = Work.from_keywords(explainer, share_calls=share_calls, k=k, **keywords)
    made_of: dict[str, Any] = {"model": _digest_of_model(model), "data": file_digest(rows)}
    made_of |= {"batch_rows": model_options.batch_rows} if "://" in model else {}
    with _bar() as progress, _resumable():
        choices = RunChoices(
            n_jobs=jobs,
            resume=resume,
            overwrite=overwrite,
            fail_fast=fail_fast,
            row_timeout=row_timeout,
            progress=progress,
        )
        report = run_batch(rows_of(frame, explainer), work, Path(out), made_of, choices)
    for line in report.lines():
        print_message(line)
    return Code.MODEL if report.n_failed == report.n_rows else Code.OK


@contextlib.contextmanager
def _resumable() -> Iterator[None]:
    """Whoever stops the batch is told how it goes on."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as stop:
        stop.add_note("Finished rows are kept: go on with --resume.")
        raise


def _check_out(out: str, given: Mapping[str, str]) -> None:
    """Refuse to write over what the batch is made from, by whatever name, and names of what is not written."""
    if not out:
        raise ParameterError("--out is ''; needed the name of the file to write.")
    for (name, path), place in itertools.product(given.items(), (out, f"{out}{JOURNAL}")):
        if _are_one_file(place, path):
            raise ParameterError(f"{place!r} (--out) is {path!r} ({name}), which would be lost. Name another.")
    if Path(out).suffix.lower() not in _ENDINGS:
        raise ParameterError(f"--out is {out!r}; needed a name that ends in .parquet, which is what is written.")


def _are_one_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them is not there
        return False


def _digest_of_model(spec: str) -> str:
    """SHA-256 of the model's file, of the module that holds the function, or of an address: it may hold a key."""
    if Path(spec).is_file():
        return file_digest(spec)
    if "://" in spec:
        return f"{redact_address(spec)} {hashlib.sha256(spec.encode()).hexdigest()}"
    with contextlib.suppress(ImportError, ValueError, AttributeError):
        found = importlib.util.find_spec(spec.partition(":")[0])
        if found is not None and found.origin is not None and Path(found.origin).is_file():
            return f"{spec} {file_digest(found.origin)}"
    return spec


@contextlib.contextmanager
def _bar() -> Iterator[Any]:
    """A bar on a terminal; elsewhere a line now and then would only be in the way."""
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
