"""``anchorline bench paper``, ``anchorline bench peers`` and ``anchorline bench quick``."""

import enum
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

from anchorline import _version
from anchorline.cli.codes import Code
from anchorline.cli.options import option
from anchorline.errors import MissingDependencyError

CHECKOUT = Path(_version.__file__).parents[2]
SUMMARY = "Repeat the paper's experiments, or compare with other explainers."


Protocol = enum.StrEnum("Protocol", ["paper", "code", "both"])
_CACHE = "Where trained models and finished work are stored. [default: .cache/bench]"
_DATA = "A folder of files <OpenML id>-<name>.csv.gz."


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperOptions:
    """Options on the paper's experiments: the keywords of `repeat_paper`."""

    data: Annotated[Path | None, option(f"{_DATA} Without it, the data sets come from OpenML.", metavar="DIR")] = (
        None
    )
    protocol: Annotated[
        Protocol | None,
        option(
            "Explain rows of a test set (paper), of the training table (code), or both. "
            "[default: both; paper with --quick]"
        ),
    ] = None
    quick: Annotated[bool, option("Run every part in minutes, with fewer data sets, rows and samples.")] = False
    report_only: Annotated[bool, option("Measure nothing; write the report from earlier measurements.")] = False
    workers: Annotated[int, option("Number of worker processes.", min=1)] = 2
    out: Annotated[
        Path | None,
        option(
            "Where results and figures are written. [default: benchmarks/paper; the cache with --quick]",
            metavar="DIR",
        ),
    ] = None
    page: Annotated[
        Path | None,
        option(
            "Where the page on the paper's claims is written. [default: docs/paper.md, or inside --out]",
            metavar="FILE",
        ),
    ] = None
    cache: Annotated[Path | None, option(_CACHE, metavar="DIR")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PeersOptions:
    """Options on the comparison with other explainers."""

    data: Annotated[Path, option(_DATA, metavar="DIR", show_default=False)]
    queries: Annotated[int, option("Number of rows that each explainer may send to the model.")] = 5000
    instances: Annotated[int, option("Number of explained rows per benchmark.", min=1, max=10)] = 5
    out: Annotated[Path, option("Where peers.json and the page are written.", metavar="DIR")] = Path(
        "benchmarks/results"
    )
    cache: Annotated[Path | None, option(_CACHE, metavar="DIR")] = None


def paper(options: PaperOptions) -> Code:
    """Repeat the paper's experiments and write results, tables, figures, and a page that checks every claim.

    A run that was stopped continues where it stopped. The command reports every part that fails, leaves the part
    out of the results and tries it again in the next run. The exit code is 6 if any part failed.
    """
    complete = _import_benchmark("experiments.command").repeat_paper(**asdict(options))
    return Code.OK if complete else Code.CANNOT_TELL


def peers(options: PeersOptions) -> None:
    """Compare with LIME and KernelSHAP at equal queries: overhead, total time and relevance, as ratios."""
    race, numbers = (
        _import_benchmark("peers").race,
        {"n_queries": options.queries, "n_instances": options.instances},
    )
    race(options.data, cache=options.cache, out=options.out, **numbers)


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
