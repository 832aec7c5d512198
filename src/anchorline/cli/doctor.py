"""``anchorline doctor``."""

import platform
import re
import sys
from dataclasses import dataclass
from importlib import metadata

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from anchorline._version import __version__
from anchorline.cli.console import in_color, say, shown

_PURPOSES = {
    "": "always needed",
    "cli": "this command line; tables from files",
    "plot": "pictures",
    "onnx": "ONNX models",
    "skops": "skops models",
    "http": "models behind an address",
    "boosters": "XGBoost, LightGBM and CatBoost models",
    "studio": "the page and the HTTP interface of `anchorline serve`",
    "batch": "many rows to Parquet",
    "dask": "many rows on Dask",
    "ray": "many rows on Ray",
    "spark": "many rows on Spark",
    "scip": "the solver SCIP, as a referee",
    "gurobi": "the solver Gurobi, as a referee",
    "relax": "convex bounds by CVXPY",
    "peers": "comparisons with other explainers",
    "bench": "benchmarks",
}
_SAME = {"xgboost-cpu": ("xgboost-cpu", "xgboost")}  # either will do


@dataclass(frozen=True, slots=True)
class Need:
    """One package that something needs."""

    package: str
    least: str
    extra: str

    @property
    def found(self) -> str | None:
        """The version installed, or None."""
        for name in _SAME.get(self.package, (self.package,)):
            try:
                return metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
        return None

    @property
    def state(self) -> str:
        """ok, too old, or missing."""
        if self.found is None:
            return "missing"
        return "ok" if _numbers(self.found) >= _numbers(self.least) else "too old"


SUMMARY = "What is installed, and what is missing?"
EXAMPLES = """\
anchorline doctor"""


def doctor() -> None:
    """Say what is installed, what is missing, and what to type to get it."""
    needs = _needs()
    python = f"Python {platform.python_version()} ({shown(sys.executable)})"
    say(f"anchorline {__version__}, {python}, {platform.platform()}")
    say("")
    table = RichTable(box=None, pad_edge=False)
    for title in ("package", "installed", "needed", "state", "for"):
        table.add_column(title, no_wrap=title != "for")
    for need in needs:
        purpose = f"{_PURPOSES.get(need.extra, '')} [{need.extra}]" if need.extra else _PURPOSES[""]
        style = {"ok": "green", "too old": "yellow", "missing": "red"}[need.state]
        cells = [need.package, need.found or "-", f">= {need.least}" if need.least else "any", "", purpose]
        texts = [Text(cell) for cell in cells]
        texts[3] = Text(need.state, style=style)
        table.add_row(*texts)
    say(_printed(table))
    wanting = sorted({need.extra for need in needs if need.state != "ok"})
    say("")
    if not wanting:
        say("Nothing is missing.")
    elif "" in wanting:
        say("Something that is always needed is missing or too old. Type: pip install --upgrade anchorline")
    for extra in wanting:
        if extra:
            say(f"For {_PURPOSES.get(extra, extra)}, type: pip install 'anchorline[{extra}]'")


_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[^\]]*\])?\s*(?:>=([\w.]+))?[^;]*(?:;.*extra == ['\"](\w+)['\"])?")


def _needs() -> list[Need]:
    """What the installed distribution says it needs, but for its own development."""
    needs = []
    for requirement in metadata.requires("anchorline") or ():
        found = _REQUIREMENT.match(requirement)
        if found is None:
            continue
        package, least, extra = found[1], found[2] or "", found[3] or ""
        if package != "anchorline" and extra in _PURPOSES:
            needs.append(Need(package, least, extra))
    return sorted(needs, key=lambda need: (list(_PURPOSES).index(need.extra), need.package))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:3])


def _printed(table: RichTable) -> str:
    console = Console(width=110, no_color=not in_color(), force_terminal=in_color(), markup=False, highlight=False)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n"))
