"""``anchorline bench paper``, ``anchorline bench peers`` and ``anchorline bench quick``."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from anchorline import _version
from anchorline.cli.codes import Code
from anchorline.cli.options import REQUIRED, Given, command, one_of, option, switch
from anchorline.errors import MissingDependencyError

CHECKOUT = Path(_version.__file__).parents[2]
SUMMARY = "Repeat the paper's experiments, or compare with other explainers."
_DATA = "A folder of files <OpenML id>-<name>.csv.gz."
_CACHE = {
    "cache": option(Path, "Where trained models and finished work are stored. [default: .cache/bench]", "DIR")
}
_PAPER = {  # the keywords of `repeat_paper`
    "data": option(Path, f"{_DATA} Without it, the data sets come from OpenML.", "DIR"),
    "protocol": option(
        one_of("paper", "code", "both"),
        "Explain rows of a test set (paper), of the training table (code), or both. "
        "[default: both; paper with --quick]",
    ),
    "quick": switch("Run every part in minutes, with fewer data sets, rows and samples."),
    "report_only": switch("Measure nothing; write the report from earlier measurements."),
    "workers": option(int, "Number of worker processes.", default=2, min=1),
    "out": option(
        Path,
        "Where results and figures are written. [default: benchmarks/paper; the cache with --quick]",
        "DIR",
    ),
    "page": option(
        Path,
        "Where the page on the paper's claims is written. [default: docs/paper.md, or inside --out]",
        "FILE",
    ),
    **_CACHE,
}
_PEERS = {
    "data": option(Path, _DATA, "DIR", default=REQUIRED),
    "queries": option(int, "Number of rows that each explainer may send to the model.", default=5000),
    "instances": option(int, "Number of explained rows per benchmark.", default=5, min=1, max=10),
    "out": option(Path, "Where peers.json and the page are written.", "DIR", default=Path("benchmarks/results")),
    **_CACHE,
}


@command(
    "Repeat the paper's experiments.",
    _PAPER,
    """\
anchorline bench paper --data datasets
anchorline bench paper --data datasets --quick
anchorline bench paper --data datasets --report-only""",
)
def paper(given: Given) -> Code:
    """Repeat the paper's experiments and write results, tables, figures, and a page that checks every claim.

    A run that was stopped continues where it stopped. The command reports every part that fails, leaves the part
    out of the results and tries it again in the next run. The exit code is 6 if any part failed.
    """
    complete = _import_benchmark("experiments.command").repeat_paper(**vars(given))
    return Code.OK if complete else Code.CANNOT_TELL


@command("Compare with LIME and KernelSHAP.", _PEERS, "anchorline bench peers --data datasets --queries 5000")
def peers(given: Given) -> None:
    """Compare with LIME and KernelSHAP at equal queries: overhead, total time and relevance, as ratios."""
    numbers = {"n_queries": given.queries, "n_instances": given.instances}
    _import_benchmark("peers").race(given.data, cache=given.cache, out=given.out, **numbers)


@command("Measure the main ratios of speed in five minutes.", {}, "anchorline bench quick")
def quick(given: Given) -> None:
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
