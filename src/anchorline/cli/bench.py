"""``anchorline bench paper`` and ``anchorline bench peers``."""

import enum
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

import anchorline
from anchorline.cli.codes import Code
from anchorline.errors import MissingDependencyError

SUMMARY = "Repeat the paper's experiments, or race other explainers."


class Protocol(enum.StrEnum):
    """Which rows are explained, by a model that was trained on which."""

    paper = "paper"
    code = "code"
    both = "both"


_Cache = Annotated[
    Path | None,
    typer.Option("--cache", metavar="DIR", help="Trained models, finished work. [default: .cache/bench]"),
]


def paper(
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Files <OpenML id>-<name>.csv.gz; left out, OpenML is asked."),
    ] = None,
    protocol: Annotated[
        Protocol | None,
        typer.Option(
            "--protocol", help="Rows of a test set, or of the training table. [default: both, or paper if quick]"
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="The whole shape in minutes: fewer sets, instances and draws.")
    ] = False,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Measure nothing; write what was measured before.")
    ] = False,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes that measure.")] = 2,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Results and figures. [default: benchmarks/paper, or in the cache if quick]",
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--page", metavar="FILE", help="The claims. [default: docs/paper.md, or in --out if given]"),
    ] = None,
    cache: _Cache = None,
) -> Code:
    """Repeat the paper's experiments: results, tables, figures, and a page that says claim by claim what agrees.

    A run that was stopped goes on where it was. What fails is told, left out, and tried again next time: code 6.
    """
    complete = _benchmark("experiments.command").repeat_paper(
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
        Path, typer.Option("--data", metavar="DIR", help="Files <OpenML id>-<name>.csv.gz.", show_default=False)
    ],
    queries: Annotated[int, typer.Option("--queries", help="Rows that each side may ask the model about.")] = 5000,
    instances: Annotated[int, typer.Option("--instances", min=1, max=10, help="Of each benchmark.")] = 5,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where peers.json and the page go.")] = Path(
        "benchmarks/results"
    ),
    cache: _Cache = None,
) -> None:
    """Race LIME and KernelSHAP at equal queries: overhead, end-to-end time and relevance, as ratios."""
    _benchmark("peers").race(data, cache=cache, out=out, n_queries=queries, n_instances=instances)


def _benchmark(module: str) -> ModuleType:
    """A module of the benchmarks, which lie beside ``src`` in a checkout and are not part of the wheel."""
    checkout = Path(anchorline.__file__).parents[2]
    if not (checkout / "benchmarks" / "__main__.py").is_file():
        raise MissingDependencyError(
            "The benchmarks are not part of the installed package. In a checkout of the repository, type: "
            "make bench DATA=folder-of-data-sets"
        )
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    return import_module(f"benchmarks.{module}")


#: What each is for, and how it is typed.
COMMANDS: dict[Callable[..., Any], tuple[str, str]] = {
    paper: (
        "Repeat the paper's experiments.",
        """\
anchorline bench paper --data datasets
anchorline bench paper --data datasets --quick
anchorline bench paper --data datasets --report-only""",
    ),
    peers: (
        "Race LIME and KernelSHAP.",
        "anchorline bench peers --data datasets --queries 5000",
    ),
}
