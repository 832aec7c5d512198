"""The page of kinds, docs/works-with.md, from the results of a run: ANCHORLINE_PAGE=1 pytest tests/first_try."""

import itertools
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from tests.first_try import contents, models, servers, tables  # noqa: F401  they register kinds
from tests.first_try.kinds import KINDS, Kind

PAGE = Path(__file__).parents[2] / "docs" / "works-with.md"
_HEAD = """# What works on the first try

Each line is one kind of model or table, and what `al.Explainer(model, table).explain(row)` does with it. Each has
a test in `tests/first_try`, which makes that call with the real library: no warning unless a notice is named here,
and the names of classes and columns are those that you know. The libraries are in the extra `first-try`. This page
is written by these tests: `make first-try` installs the libraries, runs the tests and lists their results.
"""
LIBRARIES = """scikit-learn xgboost-cpu lightgbm catboost imbalanced-learn statsmodels lifelines scikit-survival
torch skorch keras transformers sentence-transformers aeon sktime mlflow mlserver onnxruntime skl2onnx pandas
polars pyarrow duckdb dask xarray numpy scipy"""


def name_of(one: Kind) -> str:
    """Return the name of a kind's test."""
    return f"{one.side}: {one.group}: {one.title}"


def result(one: Kind) -> str:
    """Return what the first call does with a kind."""
    if one.refused:
        typed = one.refused.replace("\\", "")
        return f"refused in one line, which says `{typed}`"
    return f"explains, with one notice (`{one.notes}`)" if one.notes else "explains"


def text(outcomes: Mapping[str, str]) -> str:
    """Return the page of a run; ``outcomes`` are "passed", "failed" or "skipped" by the names of the tests."""
    seen = [outcomes.get(name_of(one), "skipped") for one in KINDS]
    n_refused = sum(bool(one.refused) and each == "passed" for one, each in zip(KINDS, seen, strict=True))
    n_passed, n_skipped = seen.count("passed"), seen.count("skipped")
    others = f" {seen.count('failed')} fail, and {n_skipped} were not tested." if n_passed < len(KINDS) else ""
    lines = [
        _HEAD,
        f"{n_passed - n_refused} of {len(KINDS)} kinds explain; {n_refused} are refused in one line.{others}",
    ]
    for side, ones in itertools.groupby(KINDS, key=lambda one: one.side):
        lines += ["", f"## {side.capitalize()}s"]
        groups: dict[str, list[Kind]] = {}
        for one in ones:
            groups.setdefault(one.group, []).append(one)
        for group, members in groups.items():
            title = group if group == "scikit-learn" else group[0].upper() + group[1:]
            lines += ["", f"### {title}", "", "| kind | the first call |", "|---|---|"]
            for one in members:
                outcome = outcomes.get(name_of(one), "skipped")
                shown = {"passed": result(one), "failed": "**fails**", "skipped": "not tested"}[outcome]
                lines.append(f"| {one.title} | {shown} |")
    return "\n".join([*lines, "", "## Versions", "", _versions()]) + "\n"


def _versions() -> str:
    """Return a sentence about what the tests were run with."""
    found = []
    for library in LIBRARIES.split():
        try:
            found.append(f"{library} {metadata.version(library)}")
        except metadata.PackageNotFoundError:
            continue
    return f"The tests ran with Python {platform.python_version()} and these libraries: {', '.join(found)}."
