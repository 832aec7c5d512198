"""The page of the benchmarks that others wrote: made of the results alone, with no figure typed by hand.

Its words are in ``families.toml``, and its figures in the JSON files. Every family has a function that returns
tables with captions, and one that says where others are better than anchorline.
"""

import json
import re
import statistics
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.report import Row, markdown_table

HERE = Path(__file__).parent
HEAD = """# Benchmarks that others wrote

`make bench-outside DATA=...` runs them from a clean clone: every family in an environment with pinned packages.
Their code decides what is measured, and how. Every figure on this page comes from the JSON files beside it, and
every family ends with where others are better than anchorline, and why. Times are processor times of one thread,
in the same run. No published figure stands here, because none was measured on these models.
"""
Tables = Sequence[tuple[str, Sequence[Row]]]


@dataclass(frozen=True, slots=True)
class Family:
    """A family of benchmarks: where it runs, and its words on the page.

    ``packages`` are those whose versions the page names. If ``from_here``, it runs in our environment, and asks
    its own through files.
    """

    name: str
    title: str
    environment: str
    packages: Sequence[str]
    note: str
    why: dict[str, str] = field(default_factory=dict)
    from_here: bool = False

    @property
    def file(self) -> str:
        """The name of the file of its results."""
        return f"outside_{self.name}"

    @property
    def requirements(self) -> Path:
        """The file with its pinned packages."""
        return HERE / f"requirements-{self.environment}.txt"


FAMILIES = {
    name: Family(name, **words)
    for name, words in tomllib.loads((HERE / "families.toml").read_text(encoding="utf-8")).items()
}


def write_page(out: Path) -> Path:
    """Write ``outside.md`` from the results that are in the same folder."""
    parts = [HEAD]
    for family in FAMILIES.values():
        file = out / f"{family.file}.json"
        if file.exists():
            parts.append(_section(family, json.loads(file.read_text(encoding="utf-8")), file.name))
    page = out / "outside.md"
    page.write_text("\n".join(parts), encoding="utf-8")
    return page


def _section(family: Family, found: dict[str, Any], file: str) -> str:
    pins = dict(re.findall(r"(?m)^(\S+)==(\S+)$", family.requirements.read_text(encoding="utf-8")))
    versions = ", ".join(f"{name} {pins[name]}" for name in family.packages)
    source = f"Measured with anchorline {found['made_on']['anchorline']}, {versions} (`{file}`)."
    lines = [f"## {family.title}\n", f"{family.note.strip()} {source}\n"]
    errors = [f"- {row.get('method', family.name)}: `{row['error']}`" for row in found["rows"] if "error" in row]
    if errors:
        lines += ["Not measured:\n", *errors, ""]
    rows = [row for row in found["rows"] if "error" not in row]
    if rows:
        show, lose = SHOWN[family.name]
        for caption, table in show(rows):
            lines += [f"{caption}:\n", markdown_table(table), ""]
        losses = lose(rows, family.why) or ["nowhere in this run."]
        lines += ["Where others are better:\n", *(f"- {loss}" for loss in losses), ""]
    return "\n".join(lines)


def values(rows: Sequence[Row], name: str) -> list[Any]:
    """Return the different values of a column, in the order of the rows."""
    return list(dict.fromkeys(row[name] for row in rows))


def tables_of(rows: Sequence[Row]) -> str:
    """Return the names of the tables."""
    return f"Tables: {', '.join(values(rows, 'table'))}"


# Metrics of attributions, by explainer, table and model: whether more is better.
BEEXAI = {
    **dict.fromkeys(("FaithCorr", "Comprehensiveness", "Monotonicity", "Sparseness"), True),
    **dict.fromkeys(("Infidelity", "Sensitivity", "Sufficiency", "AUC_TP", "Complexity"), False),
}
QUANTUS = {
    **dict.fromkeys(("FaithfulnessCorrelation", "FaithfulnessEstimate", "MonotonicityCorrelation"), True),
    **{"PixelFlipping": False, "Complexity": False, "Sparseness": True},
}
EXPLAINIVERSE = {"PGI": True, "PGU": False, "FaithfulnessCorrelation": True}


def show_metrics(rows: Sequence[Row]) -> Tables:
    """Show means over tables and models by explainer, for models of numbers and of classes."""
    tables = []
    for task in values(rows, "task"):
        chosen = [row for row in rows if row["task"] == task]
        names = [name for name in chosen[0] if name not in ("task", "table", "model", "method", "rows", "seconds")]
        table = [
            {"method": method}
            | {name: statistics.fmean(row[name] for row in chosen if row["method"] == method) for name in names}
            for method in values(chosen, "method")
        ]
        tables.append((f"{task.capitalize()}. {tables_of(chosen)}; means over tables and models", table))
    return tables


def lose_metrics(metrics: dict[str, bool]) -> Callable[[Sequence[Row], dict[str, str]], list[str]]:
    """Return what says, for every metric, on which tables with models the best of theirs is better than ours."""

    def lose(rows: Sequence[Row], why: dict[str, str]) -> list[str]:
        pairs: dict[tuple[str, str], dict[str, Row]] = {}
        for row in rows:
            pairs.setdefault((row["table"], row["model"]), {})[row["method"]] = row
        ours = [name for name in values(rows, "method") if name.startswith("anchorline")]
        ours = [name for name in ours if not name.endswith("columns")]
        whole = [pair for pair in pairs.values() if all(name in pair for name in ours)]
        lines = []
        for metric, more in metrics.items():
            sign, lost = 1 if more else -1, dict.fromkeys(ours, 0)
            for pair in whole:
                theirs = max(sign * row[metric] for name, row in pair.items() if not name.startswith("anchorline"))
                for name in ours:
                    lost[name] += theirs > sign * pair[name][metric]
            if any(lost.values()):
                counts = ", ".join(f"{name}: {n} of {len(whole)}" for name, n in lost.items())
                lines.append(f"{metric} ({'more' if more else 'less'} is better; {counts}): {why[metric]}.")
        for name in ("queries", "undefined_rows") if whole else ():
            mine = [row[name] for row in rows if row["method"] in ours and name in row]
            other = [row[name] for row in rows if not row["method"].startswith("anchorline") and name in row]
            if mine and (a := statistics.fmean(mine)) > (b := statistics.fmean(other)):
                both = " on average, theirs ".join(f"{x:,.0f}" if x >= 100 else f"{x:.3g}" for x in (a, b))
                lines.append(f"{name.replace('_', ' ')}: {both}: {why[name]}.")
        return lines

    return lose


def show_solvers(rows: Sequence[Row]) -> Tables:
    """Show sums over tables, by size and solver."""
    table = []
    for size in values(rows, "chosen"):
        for solver in values(rows, "solver"):
            group = [row for row in rows if (row["chosen"], row["solver"]) == (size, solver)]
            if group:
                line = {"literals": size, "solver": solver}
                line |= {
                    name: sum(row[name] for row in group) for name in ("problems", "same", "better", "proven")
                }
                line |= {
                    name: statistics.median(row[name] for row in group)
                    for name in ("median_seconds", "median_times_ours")
                }
                table.append(line)
    names = dict.fromkeys(f"{row['table']} ({row['literals']})" for row in rows)
    return [(f"Tables and their literals: {', '.join(names)}; medians of medians", table)]


def lose_solvers(rows: Sequence[Row], why: dict[str, str]) -> list[str]:
    """Say where another solver found a better sum or was faster, and which proofs we did not finish."""
    lines = []
    for row in rows:
        place = f"{row['table']}, {row['chosen']} literals: {row['solver']}"
        if row["better"]:
            lines.append(f"{place} found a better sum in {row['better']} of {row['problems']}, {why['better']}.")
        if row["median_times_ours"] < 1:
            lines.append(f"{place} takes {row['median_times_ours']:.2g} times ours: {why['median_times_ours']}.")
    unproven = sum(row["problems"] - row["proven"] for row in rows if row["solver"] == "anchorline")
    return [*lines, *([f"{unproven} proofs of ours did not end within the time limit."] if unproven else [])]


def show_facts(rows: Sequence[Row]) -> Tables:
    """Show each method beside ours on the tables and models on which it was measured."""
    table = []
    for (law, k, method), pairs in _beside(rows).items():
        line: Row = {"law": law, "facts": k, "method": method, "tables_and_models": len(pairs)}
        for name in ("stated", "remaining", "pooled"):
            line[name] = statistics.fmean(its[name] for _, its in pairs)
            line[f"ours_{name}"] = statistics.fmean(mine[name] for mine, _ in pairs)
        line["median_times_ours"] = statistics.median(its["seconds"] / mine["seconds"] for mine, its in pairs)
        table.append(line)
    return [(tables_of(rows), table)]


def lose_facts(rows: Sequence[Row], why: dict[str, str]) -> list[str]:
    """Say under which law and with how many facts another method leaves less error than ours, or is faster."""
    lines, times = [], dict[str, list[float]]()
    for (law, k, method), pairs in _beside(rows).items():
        lost = sum(its["remaining"] < mine["remaining"] for mine, its in pairs)
        if lost:
            lines.append(f"{law.capitalize()}, {k} facts: {method} in {lost} of {len(pairs)}: {why[law]}.")
        times.setdefault(method, []).extend(its["seconds"] / mine["seconds"] for mine, its in pairs)
    faster = {method: ratio for method, each in times.items() if (ratio := statistics.median(each)) < 1}
    return lines + [
        f"{method} takes {ratio:.2g} times ours: {why['seconds']}." for method, ratio in faster.items()
    ]


def _beside(rows: Sequence[Row]) -> dict[tuple[str, int, str], list[tuple[Row, Row]]]:
    """Return, by law, number of facts and other method, pairs of our row and its row about the same model."""
    ours = {
        (row["law"], row["facts"], row["table"], row["model"]): row
        for row in rows
        if row["method"] == "anchorline"
    }
    found: dict[tuple[str, int, str], list[tuple[Row, Row]]] = {}
    for row in rows:
        mine = ours.get((row["law"], row["facts"], row["table"], row["model"]))
        if mine is not None and row["method"] != "anchorline":
            found.setdefault((row["law"], row["facts"], row["method"]), []).append((mine, row))
    return dict(sorted(found.items()))


def show_changes(rows: Sequence[Row]) -> Tables:
    """Show sums and medians over tables by method."""
    table, medians = [], [name for name in rows[0] if name.startswith("median") and not name.endswith("rows")]
    for method in values(rows, "method"):
        group = [row for row in rows if row["method"] == method]
        line = {"method": method} | {name: sum(row[name] for row in group) for name in ("rows", "found", "valid")}
        for name in medians:
            known = [row[name] for row in group if row[name] is not None]
            line[name] = statistics.median(known) if known else None
        table.append(line)
    return [(tables_of(rows), table)]


def lose_changes(rows: Sequence[Row], why: dict[str, str]) -> list[str]:
    """Say by which figure, and on which tables, another method is better than our first line."""
    ours = {row["table"]: row for row in rows if row["method"] == "anchorline"}
    lines = []
    for name, reason in why.items():
        sign = 1 if name in ("found", "valid") else -1
        lost = [
            f"{row['method']} on {row['table']} ({row[name]:.3g} against {ours[row['table']][name]:.3g})"
            for row in rows
            if not row["method"].startswith("anchorline") and row[name] is not None
            if sign * row[name] > sign * ours[row["table"]][name]
        ]
        if lost:
            lines.append(f"{name.replace('_', ' ')}: {', '.join(lost)}: {reason}.")
    return lines


SHOWN = {
    "beexai": (show_metrics, lose_metrics(BEEXAI)),
    "solvers": (show_solvers, lose_solvers),
    "facts": (show_facts, lose_facts),
    "changes": (show_changes, lose_changes),
    "quantus": (show_metrics, lose_metrics(QUANTUS)),
    "explainiverse": (show_metrics, lose_metrics(EXPLAINIVERSE)),
}
