"""The page of kinds, docs/works-with.md: ``python -m tests.first_try.page`` writes it anew."""

import itertools
from pathlib import Path

from tests.first_try import models, tables  # noqa: F401  they register kinds
from tests.first_try.kinds import KINDS, Kind

PAGE = Path(__file__).parents[2] / "docs" / "works-with.md"
_HEAD = """# What works on the first try

Each line is one kind of model or table, and what `al.Explainer(model, table).explain(row)` does with it. Each has
a test in `tests/first_try`, which makes that call with the real library: no warning unless a notice is named here,
and the names of classes and columns are those that you know. The libraries are in the extra `first-try`. This page
is written by `python -m tests.first_try.page`, and a test compares the two.
"""


def result(one: Kind) -> str:
    """Return what the first call does with a kind."""
    if one.refused:
        typed = one.refused.replace("\\", "")
        return f"refused in one line, which says `{typed}`"
    return f"explains, with one notice (`{one.notes}`)" if one.notes else "explains"


def text() -> str:
    """Return the page."""
    n_refused = sum(bool(one.refused) for one in KINDS)
    lines = [
        _HEAD,
        f"{len(KINDS) - n_refused} of {len(KINDS)} kinds explain; {n_refused} are refused in one line.",
    ]
    for side, ones in itertools.groupby(KINDS, key=lambda one: one.side):
        lines += ["", f"## {side.capitalize()}s"]
        groups: dict[str, list[Kind]] = {}
        for one in ones:
            groups.setdefault(one.group, []).append(one)
        for group, members in groups.items():
            title = group if group == "scikit-learn" else group[0].upper() + group[1:]
            lines += ["", f"### {title}", "", "| kind | the first call |", "|---|---|"]
            lines += [f"| {one.title} | {result(one)} |" for one in members]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
