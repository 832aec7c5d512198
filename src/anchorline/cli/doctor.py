"""``anchorline doctor``."""

import platform
import re
import sys
from dataclasses import dataclass
from importlib import metadata
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from anchorline._version import __version__
from anchorline.cli.console import print_result, printable_lines, supports_color
from anchorline.cli.inputs import split_target
from anchorline.io import read_table

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
_EQUIVALENT = {"xgboost-cpu": ("xgboost-cpu", "xgboost")}  # either distribution satisfies the requirement


@dataclass(frozen=True, slots=True)
class Requirement:
    """One package that anchorline or one of its extras requires."""

    package: str
    minimum: str
    extra: str

    @property
    def installed(self) -> str | None:
        """The installed version, or None."""
        for name in _EQUIVALENT.get(self.package, (self.package,)):
            try:
                return metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
        return None

    @property
    def state(self) -> str:
        """One of "ok", "too old" and "missing"."""
        if self.installed is None:
            return "missing"
        return "ok" if _version_numbers(self.installed) >= _version_numbers(self.minimum) else "too old"


SUMMARY = "List installed and missing packages, or check a table for traps."
EXAMPLES = """\
anchorline doctor
anchorline doctor --data train.csv --target approved"""

Data = Annotated[
    str | None,
    typer.Option("--data", metavar="FILE", help="Look for traps in this table instead of listing packages."),
]
Target = Annotated[
    str | None,
    typer.Option("--target", metavar="COLUMN", help="With --data: what the model predicts; columns that know it."),
]


def doctor(data: Data = None, target: Target = None) -> None:
    """List the installed and the missing packages, and print what to type to install the missing ones.

    With --data, check a training table instead: indicators that should be grouped, columns that depend on each
    other, identifiers, constants, types that were lost, and columns that know the target.
    """
    if data is not None:
        print_findings(data, target)
    else:
        print_packages()


def print_findings(path: str, target: str | None) -> None:
    """Print the code and the text of everything that was found in a table file."""
    from anchorline.spaces.table import Table  # noqa: PLC0415  heavy

    frame, values = split_target(read_table(path), target, path)
    findings = Table(frame).check(target=values)
    for finding in findings:
        print_result(printable_lines(f"{finding.code}: {finding.text}"))
    if not findings:
        print_result("Nothing was found.")


def print_packages() -> None:
    """Print the table of packages, and what to type to install the missing ones."""
    requirements = _requirements()
    python = f"Python {platform.python_version()} ({printable_lines(sys.executable)})"
    print_result(f"anchorline {__version__}, {python}, {platform.platform()}")
    print_result("")
    print_result(_rendered_table(requirements))
    incomplete = sorted({requirement.extra for requirement in requirements if requirement.state != "ok"})
    print_result("")
    if not incomplete:
        print_result("Nothing is missing.")
    elif "" in incomplete:
        print_result(
            "A package that is always needed is missing or too old. Type: pip install --upgrade anchorline"
        )
    for extra in incomplete:
        if extra:
            print_result(f"For {_PURPOSES.get(extra, extra)}, type: pip install 'anchorline[{extra}]'")


_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[^\]]*\])?\s*(?:>=([\w.]+))?[^;]*(?:;.*extra == ['\"](\w+)['\"])?")


def _requirements() -> list[Requirement]:
    """Return the requirements that the installed distribution declares, without those of development extras."""
    requirements = []
    for line in metadata.requires("anchorline") or ():
        match = _REQUIREMENT.match(line)
        if match is None:
            continue
        package, minimum, extra = match[1], match[2] or "", match[3] or ""
        if package != "anchorline" and extra in _PURPOSES:
            requirements.append(Requirement(package, minimum, extra))
    order = list(_PURPOSES)
    return sorted(requirements, key=lambda requirement: (order.index(requirement.extra), requirement.package))


def _version_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:3])


def _rendered_table(requirements: list[Requirement]) -> str:
    table = RichTable(box=None, pad_edge=False)
    for title in ("package", "installed", "needed", "state", "for"):
        table.add_column(title, no_wrap=title != "for")
    for requirement in requirements:
        extra, state = requirement.extra, requirement.state
        needed = f">= {requirement.minimum}" if requirement.minimum else "any"
        table.add_row(
            Text(requirement.package),
            Text(requirement.installed or "-"),
            Text(needed),
            Text(state, style={"ok": "green", "too old": "yellow", "missing": "red"}[state]),
            Text(f"{_PURPOSES.get(extra, '')} [{extra}]" if extra else _PURPOSES[""]),
        )
    color = supports_color()
    console = Console(width=110, no_color=not color, force_terminal=color, markup=False, highlight=False)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n"))
