"""``anchorline doctor``."""

import platform
import re
import sys
from importlib import metadata

from rich.table import Table as Grid
from rich.text import Text

from anchorline._version import __version__
from anchorline.cli.console import print_result, printable_lines, supports_color
from anchorline.cli.formats import as_lines
from anchorline.cli.inputs import split_table
from anchorline.cli.options import Given, command, option
from anchorline.spaces.table import Table

_PURPOSES = {
    "": "always needed",
    "cli": "this command line; tables from files",
    "plot": "pictures",
    "onnx": "ONNX models",
    "skops": "skops models",
    "http": "models behind an HTTP address",
    "boosters": "XGBoost, LightGBM and CatBoost models",
    "studio": "the page and the HTTP interface of `anchorline serve`",
    "batch": "explaining many rows into a Parquet file",
    "dask": "explaining many rows on Dask",
    "ray": "explaining many rows on Ray",
    "spark": "explaining many rows on Spark",
    "scip": "the solver SCIP, as a referee",
    "gurobi": "the solver Gurobi, as a referee",
    "relax": "convex bounds by CVXPY",
    "peers": "comparisons with other explainers",
    "bench": "benchmarks",
}
_EQUIVALENT = {"xgboost-cpu": "xgboost"}  # either distribution satisfies the requirement
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[^\]]*\])?\s*(?:>=([\w.]+))?[^;]*(?:;.*extra == ['\"](\w+)['\"])?")
_COLORS = {"ok": "green", "too old": "yellow", "missing": "red"}


@command(
    "List installed and missing packages, or check a table for traps.",
    {
        "data": option(str, "Look for traps in this table instead of listing packages.", "FILE"),
        "target": option(
            str, "With --data: the column that the model predicts, to find columns that give it away.", "COLUMN"
        ),
    },
    "anchorline doctor\nanchorline doctor --data train.csv --target approved",
)
def doctor(given: Given) -> None:
    """List the installed and the missing packages, and print what to type to install the missing ones.

    With --data, check a training table instead: indicators that should be grouped, columns that depend on each
    other, identifiers, constants, types that were lost, and columns that know the target.
    """
    if given.data is None:
        print_packages()
        return
    frame, target = split_table(given.data, [given.target] if given.target is not None else [])
    findings = Table(frame).check(target=None if target is None else target.to_numpy())
    for finding in findings:
        print_result(printable_lines(f"{finding.code}: {finding.text}"))
    if not findings:
        print_result("Nothing was found.")


def print_packages() -> None:
    """Print the table of packages, and what to type to install the missing ones."""
    grid, incomplete = Grid(box=None, pad_edge=False), set[str]()
    for title in ("package", "installed", "needed", "state", "for"):
        grid.add_column(title, no_wrap=title != "for")
    for place, package, minimum in sorted(_requirements()):
        extra, version = [*_PURPOSES][place], _installed(package)
        is_enough = version is not None and _numbers(version) >= _numbers(minimum)
        state = "missing" if version is None else "ok" if is_enough else "too old"
        if state != "ok":
            incomplete.add(extra)
        purpose = f"{_PURPOSES[extra]} [{extra}]" if extra else _PURPOSES[""]
        texts = package, version or "-", f">= {minimum}" if minimum else "any"
        grid.add_row(*map(Text, texts), Text(state, style=_COLORS[state]), Text(purpose))
    python = f"Python {platform.python_version()} ({printable_lines(sys.executable)})"
    print_result(f"anchorline {__version__}, {python}, {platform.platform()}\n")
    print_result(f"{as_lines([grid], 110, supports_color())}\n")
    if not incomplete:
        print_result("Nothing is missing.")
    elif "" in incomplete:
        print_result(
            "A package that is always needed is missing or too old. Type: pip install --upgrade anchorline"
        )
    for extra in sorted(incomplete - {""}):
        print_result(f"For {_PURPOSES[extra]}, type: pip install 'anchorline[{extra}]'")


def _requirements() -> list[tuple[int, str, str]]:
    """Return the place of the extra, the package and the lowest version of every declared requirement."""
    matches = [match for line in metadata.requires("anchorline") or () if (match := _REQUIREMENT.match(line))]
    places = {extra: place for place, extra in enumerate(_PURPOSES)}  # without extras for development
    found = [(match[3] or "", match[1], match[2] or "") for match in matches if match[1] != "anchorline"]
    return [(places[extra], package, minimum) for extra, package, minimum in found if extra in places]


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return _installed(_EQUIVALENT[package]) if package in _EQUIVALENT else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:3])
