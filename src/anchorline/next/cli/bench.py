"""``anchorline bench paper``, ``anchorline bench peers`` and ``anchorline bench quick``."""

import enum
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from anchorline import _version
from anchorline.errors import MissingDependencyError
from anchorline.next.cli.codes import Code

CHECKOUT = Path(_version.__file__).parents[2]
SUMMARY = "Repeat the paper's experiments, or compare with other explainers."


Protocol = enum.StrEnum("Protocol", ["paper", "code", "both"])
_Cache = Annotated[
    Path | None,
    typer.Option(
        "--cache", metavar="DIR", help="Where trained models and finished work are stored. [default: .cache/bench]"
    ),
]


def paper(
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="A folder of files <OpenML id>-<name>.csv.gz. Without it, the data sets come from OpenML.",
        ),
    ] = None,
    protocol: Annotated[
        Protocol | None,
        typer.Option(
            "--protocol",
            help="Explain rows of a test set (paper), of the training table (code), or both. "
            "[default: both; paper with --quick]",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run every part in minutes, with fewer data sets, rows and samples.")
    ] = False,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Measure nothing; write the report from earlier measurements.")
    ] = False,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Number of worker processes.")] = 2,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where results and figures are written. [default: benchmarks/paper; the cache with --quick]",
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            "--page",
            metavar="FILE",
            help="Where the page on the paper's claims is written. [default: docs/paper.md, or inside --out]",
        ),
    ] = None,
    cache: _Cache = None,
) -> Code:
    """Repeat the paper's experiments and write results, tables, figures, and a page that checks every claim.

    A run that was stopped continues where it stopped. The command reports every part that fails, leaves the part
    out of the results and tries it again in the next run. The exit code is 6 if any part failed.
    """
    complete = _import_benchmark("experiments.command").repeat_paper(
        data,
        protocol=protocol,
        quick=quick,
        out=out,
        page=page,
        cache=cache,
        workers=workers,
        report_only=report_only,
    )
    return Code.OK if complete else Code.CANNOT_TELL


def peers(
    data: Annotated[
        Path,
        typer.Option(
            "--data", metavar="DIR", help="A folder of files <OpenML id>-<name>.csv.gz.", show_default=False
        ),
    ],
    queries: Annotated[
        int, typer.Option("--queries", help="Number of rows that each explainer may send to the model.")
    ] = 5000,
    instances: Annotated[
        int, typer.Option("--instances", min=1, max=10, help="Number of explained rows per benchmark.")
    ] = 5,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where peers.json and the page are written.")
    ] = Path("benchmarks/results"),
    cache: _Cache = None,
) -> None:
    """Compare with LIME and KernelSHAP at equal queries: overhead, total time and relevance, as ratios."""
    _import_benchmark("peers").race(data, cache=cache, out=out, n_queries=queries, n_instances=instances)


def quick() -> None:
    """Measure the main ratios of speed on generated data, within five minutes, and write nothing."""
    _import_benchmark("speed").quick()


def _import_benchmark(module: str) -> ModuleType:
    """Import a module of ``benchmarks/``, which is next to ``src/`` in a checkout and not part of the wheel."""
    if not (CHECKOUT / "benchmarks" / "__main__.py").is_file():
        raise MissingDependencyError(
            "The benchmarks are not part of the installed package. They need a checkout of the repository. "
            "In the checkout, type: make bench DATA=folder-of-data-sets"
        )
    if str(CHECKOUT) not in sys.path:
        sys.path.insert(0, str(CHECKOUT))
    return import_module(f"benchmarks.{module}")


#: The summary and the examples of each command.
COMMANDS: dict[Callable[..., Any], tuple[str, str]] = {
    paper: (
        "Repeat the paper's experiments.",
        """\
anchorline bench paper --data datasets
anchorline bench paper --data datasets --quick
anchorline bench paper --data datasets --report-only""",
    ),
    peers: (
        "Compare with LIME and KernelSHAP.",
        "anchorline bench peers --data datasets --queries 5000",
    ),
    quick: ("Measure the main ratios of speed in five minutes.", "anchorline bench quick"),
}
