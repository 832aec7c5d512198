"""``anchorline batch``."""

import contextlib
import hashlib
import importlib.util
import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from anchorline.batch.partition import CHANGE_COLUMNS, Work
from anchorline.batch.rows import rows_of, unique_ids
from anchorline.batch.run import PARTS_SUFFIX, RunOptions, run_batch
from anchorline.changes.questions import NoDecisionError
from anchorline.cli import options as opt
from anchorline.cli.codes import Code
from anchorline.cli.console import print_message
from anchorline.cli.inputs import (
    explainer_of,
    file_digest,
    load,
    open_cache,
    rows_like,
    search_keywords,
    space_of_table,
)
from anchorline.cli.options import REQUIRED, Given, argument, command, option, switch
from anchorline.cli.progress import row_progress
from anchorline.errors import ParameterError
from anchorline.model.loaders.http_endpoint import redact_address

_BATCH = {
    "out": option(str, "The Parquet file to write.", "FILE", default=REQUIRED),
    "id": option(str, "A column of ROWS that identifies them, to keep in the file.", "COLUMN"),
    "jobs": option(int, "Number of worker processes; -1 for one per core.", None, "--jobs", "-j", default=1),
    "resume": switch("Continue an interrupted batch."),
    "overwrite": switch("Start again and replace existing files."),
    "fail_fast": switch("Stop at the first row that fails."),
    "row_timeout": option(float, "Longest time that a row may take.", "SECONDS"),
    "share_calls": switch(
        "Combine queries of several rows in one call, if the model's answers do not depend on the batch."
    ),
    "changes": switch("Add columns about the fewest facts that would change each decision."),
    "rules": switch("Add columns with the rule of each row."),
    "codes": option(
        str, "Add columns with the reasons for each adverse decision, in the codes of this map.", "FILE"
    ),
    **opt.LETTER,
}


@command(
    "Explain every row of a table and write a file, with checkpoints.",
    {
        "rows": argument("ROWS", "The table whose rows are explained."),
        "model": option(str, "The model, as for `anchorline explain`.", "MODEL", default=REQUIRED),
    }
    | opt.DATA
    | _BATCH
    | opt.TARGET
    | opt.EXPLAIN
    | opt.OUTPUT
    | opt.TABLE
    | opt.ASKING,
    """\
anchorline batch declined.parquet --model model.skops --data train.parquet --id case --out why.parquet
anchorline batch declined.csv --model model.onnx --data train.csv --target approved --out why.parquet --jobs -1
anchorline batch declined.csv --model model.onnx --data train.csv --target approved --out why.parquet --resume
anchorline batch declined.csv --model model.onnx --data train.csv --target approved --out why.parquet --changes
anchorline batch new.csv --model model.onnx --data train.csv --threshold 0.5 --codes codes.csv --out why.parquet
anchorline batch new.csv --model mypackage.scoring:score --data train.csv --out why.parquet --row-timeout 60""",
)
def batch(given: Given) -> Code:
    """Explain every row of a table, with checkpoints: --resume continues an interrupted batch.

    A row that fails is written with its error. The report counts these rows. The exit code is 0 unless all fail.
    """
    _check_out(given.out, {"ROWS": given.rows, "--data": given.data, "--model": given.model})
    space = space_of_table(given)
    frame = rows_like(space, given.rows)
    ids = unique_ids(frame, given.id, "--id")
    if given.changes and given.id in CHANGE_COLUMNS:
        raise ParameterError(f"--id is {given.id!r}, the name of a column of the result. Rename your column.")
    loaded = load(given, given.model)
    explainer = explainer_of(given, loaded, space, open_cache(given, given.model, loaded))
    keywords = given.of(("share_calls", "changes")) | {"rule": given.rules}
    if given.codes is not None:
        letter = {"codes": given.codes, "adverse": given.adverse, "prohibited": given.prohibited or ()}
        keywords["reasons"] = letter
    work = Work.from_keywords(explainer, **keywords, **search_keywords(given, opt.EXPLAIN))
    if given.changes and len(frame):
        _check_decision(work, rows_of(frame, explainer).take(0, 1)[0])
    sources: dict[str, Any] = {"model": _model_digest(given.model), "data": file_digest(given.rows)}
    sources |= {"batch_rows": given.batch_rows} if "://" in given.model else {}
    with row_progress() as progress, _resume_note():
        own = given.of(("resume", "overwrite", "fail_fast", "row_timeout"))
        options = RunOptions(n_jobs=given.jobs, progress=progress, **own)
        report = run_batch(rows_of(frame, explainer), work, Path(given.out), sources, options, ids)
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
        with contextlib.suppress(OSError):  # one of them does not exist
            if os.path.samefile(place, path):
                raise ParameterError(
                    f"{place!r} (--out) is the same file as {path!r} ({name}), which would be lost. Name another "
                    "file."
                )
    if Path(out).suffix.lower() not in ("", ".parquet", ".pq"):
        raise ParameterError(
            f"--out is {out!r}, but it must be a name that ends in .parquet, because a Parquet file is written."
        )


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
