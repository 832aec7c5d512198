"""Write benchmark results: JSON files with every value, and one Markdown page with what a reader needs of them."""

import json
import os
import platform
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anchorline._version import __version__

Row = dict[str, Any]
Summary = Callable[[Sequence[Row]], Sequence[Row]]


def write_json(directory: Path, name: str, rows: Sequence[Row]) -> None:
    """Write the rows of one section atomically, with a description of the machine."""
    directory.mkdir(parents=True, exist_ok=True)
    machine = {
        "anchorline": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
    }
    text = json.dumps({"section": name, "made_on": machine, "rows": list(rows)}, indent=1) + "\n"
    temporary = directory / f"{name}.json.tmp"
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, directory / f"{name}.json")


def write_page(directory: Path) -> Path:
    """Write ``README.md`` from the JSON files of all sections in the same folder."""
    head = (
        "What `make bench` measured, in short. The JSON files beside this page hold all rows and columns. What "
        "benchmarks say that others wrote is on the page `outside.md` beside it (`make bench-outside`)."
    )
    parts = [f"# Benchmark results\n\n{head}\n"]
    for name, section in SECTIONS.items():
        file = directory / f"{name}.json"
        if file.exists():
            found = json.loads(file.read_text(encoding="utf-8"))
            source = f"Measured with version {found['made_on']['anchorline']} (`{file.name}`)."
            table = markdown_table(section.summary(found["rows"]))
            parts.append(f"## {section.title}\n\n{section.note} {source}\n\n{table}\n")
    page = directory / "README.md"
    page.write_text("\n".join(parts), encoding="utf-8")
    return page


def markdown_table(rows: Sequence[Row]) -> str:
    """Return a Markdown table of rows, with the keys of the first one as columns."""
    if not rows:
        return "(not measured)"
    columns = list(rows[0])
    lines = [
        "| " + " | ".join(column.replace("_a_", "_per_").replace("_", " ") for column in columns) + " |",
        "|---" * len(columns) + "|",
    ]
    lines += ["| " + " | ".join(_cell(row.get(column)) for column in columns) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def totals(*columns: str) -> Summary:
    """Show columns of the rows about all tables and models."""
    return lambda rows: [{name: row.get(name) for name in columns} for row in rows if row["table"] == "all"]


def pooled(*by: str, columns: Sequence[str]) -> Summary:
    """Show one row per group: sums of counted rows, medians of medians, the most of all, means of the rest."""

    def pool(name: str, values: list[Any]) -> Any:
        if name in ("rows", "found", "valid"):
            return sum(values)
        if name.startswith("most"):
            return max(values)
        return (statistics.median if name.startswith("median") else statistics.fmean)(values)

    def summary(rows: Sequence[Row]) -> Sequence[Row]:
        return [
            dict(zip(by, key, strict=True)) | {name: pool(name, [row[name] for row in group]) for name in columns}
            for key, group in _groups(rows, by)
        ]

    return summary


def spread(by: str, column: str) -> Summary:
    """Show the lowest, the median and the highest value of a column per group."""

    def summary(rows: Sequence[Row]) -> Sequence[Row]:
        shown = []
        for (key,), group in _groups(rows, (by,)):
            values = [row[column] for row in group]
            ends = {"lowest": min(values), "median": statistics.median(values), "highest": max(values)}
            shown.append({by: key, "measured": len(group), "to_reach": group[0].get("to_reach")} | ends)
        return shown

    return summary


def _groups(rows: Sequence[Row], by: Sequence[str]) -> list[tuple[tuple[Any, ...], list[Row]]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    return list(groups.items())


def _without_details(rows: Sequence[Row]) -> Sequence[Row]:
    return [{name: value.partition(" (")[0] for name, value in row.items()} for row in rows]


def compared(rows: Sequence[Row]) -> Sequence[Row]:
    """Show, in words, what comparisons found, how a monitor did, and what it costs."""
    return [
        {
            "table": row["table"],
            "what": row.get("planted") or row["what"],
            "runs": row.get("runs"),
            "result": _compared(row),
        }
        for row in rows
    ]


def _compared(row: Row) -> str:
    if "means" in row:
        return f"{row['means']} in {row['right']} of {row['runs']} ({row['rows_explained']} rows explained)"
    if "ratio" in row:
        return f"{row['ratio']:.2f} times"
    found = f"an alarm within {row['looks']:,} looks in {100 * row['alarms']:.1f}% of runs"
    if row["fixed_size"] is None:
        return found
    return f"{found}, after {row['median_rows']:.0f} rows (median); a test of fixed size: {row['fixed_size']} rows"


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page: its title, what was measured, and which rows and columns are shown."""

    title: str
    note: str
    summary: Summary = list


_METHODS = ("ours", "lime", "kernel_shap", "tree_shap", "old")
SECTIONS = {
    "truth": Section(
        "Is it true as it is read?",
        "Gradient boosting and random forests on raw tables, 20 rows each, default settings. For every "
        "explanation with the verdict 'explained' or 'robust', 20,000 copies are drawn by pandas alone: the "
        "columns of facts take values of random rows for which the facts are true, every other column follows "
        "the law. An audit is below 95% if the upper limit of its 95% interval is. Words are those beside the "
        "facts, without names from data.",
        totals(
            *("rows", "robust", "explained", "partly_explained", "not_explained", "undecided", "audits"),
            *("audits_below_95", "lowest_audit", "median_words", "most_words", "proven", "median_seconds"),
        ),
    ),
    "rules_hold": Section(
        "Do rules hold as written?",
        "Rules of at most 4 facts at 95% on the same tables with classes, beside alibi's AnchorTabular and "
        "release 0.1's `shortest`. Claimed: rows with a rule that is said to hold in at least 95%. Passed: "
        "claimed, and the upper limit of the audit, as above, is at least 95%. Coverage: the share of the "
        "table's rows for which all facts are true. 'There' are the rows on which our rule and that method's "
        "pass. Seconds are processor time, relative to ours. Missed: which of our bars were missed (at most "
        "2% of claimed rules below 95% in the audit, none below 92%; a higher share that passes and a larger "
        "coverage there than every other method; a third of alibi's time).",
        totals(
            *("method", "rows", "claimed", "passed", "audits_below_95", "lowest_audit", "mean_facts", "both_pass"),
            *("our_median_coverage_there", "its_median_coverage_there", "times_ours", "missed"),
        ),
    ),
    "reasons": Section(
        "Reasons for letters",
        "Declined rows of four tables, compared with the rows that score just enough. Clear: rows without a "
        "disclosed near tie in any of ten seeds; same: those with the same reasons from all seeds. As points: "
        "of logistic models, rows whose reasons are those of the points that the row lacks of the reference's "
        "average. Ratio: of median times to those of `explain`. As SHAP: the share of our reasons that SHAP's "
        "permutation values, with the same rows as background, put first, too.",
        totals(
            *("rows", "clear", "same", "near_ties", "as_points", "of_points", "seconds", "ratio", "queries"),
            *("as_shap", "shap_seconds"),
        ),
    ),
    "facts": Section(
        "Do the facts hold the output?",
        "Error that remains while facts hold over the error with nothing held: mean squared drops of 2,000 "
        "copies, whose other columns each take the value of a random row, of all rows or of the 50 nearest. "
        "LIME with its defaults and quartile bins; KernelSHAP and TreeSHAP with the quartile bins or "
        "categories of their columns; release 0.1 ('old') with as many facts. 'Stated' is the mean number of "
        "our facts, which leave out what gains less than 1%. Means of ratios over rows; 'pooled' are ratios "
        "of means.",
        totals("law", "facts", "rows", "stated", *_METHODS, *(f"pooled_{name}" for name in _METHODS)),
    ),
    "fit": Section(
        "How well the facts fit",
        "The same tables and rows, k = 4; every method gets as many facts as we state. Their effects are "
        "refitted by least squares, anchored at the prediction, on 10,000 neighbors of the law, and measured "
        "on 20,000 others. Mean error over the error without facts; 'percent above' compares these means.",
        totals("rows", "facts", "ours", "lime", "old", "percent_above_lime", "percent_above_old"),
    ),
    "seeds": Section(
        "The same facts with another seed",
        "Gradient boosting and forests, k = 4, 10 seeds per row. Mean Jaccard index of all pairs of seeds, "
        "over attributes and over facts with their bounds. Moments from leaves do not depend on the seed; the "
        "last line is without them.",
        totals("source", "rows", "facts", "same_attributes", "same_facts"),
    ),
    "changes": Section(
        "Changes that turn a decision",
        "Gradient boosting on raw tables, the same rows for all methods, which take turns, one change per "
        "row, and three for the line that says so. 'Rows' are whole training rows. Found and valid: rows with "
        "a change, and rows whose change turns the decision when the model is asked again. Distance: sum over "
        "the columns in training quantiles, a category counts 1/2. Nearest row: mean distance per column to "
        "the nearest training row other than the case; DiCE's genetic search starts from training rows. "
        "Processor time relative to the first line. Medians of the tables' medians.",
        pooled(
            "method",
            columns=(
                *("rows", "found", "valid", "median_changed", "median_distance", "median_nearest_row"),
                *("median_queries", "median_times_anchorline"),
            ),
        ),
    ),
    "compare": Section(
        "Old model, new model",
        "Planted differences between two models, on generated tables (600 rows, another table and model in each "
        "run), and between boosting and a function around it on real tables. Found and named: limits that hold "
        "together at 95% name the attribute and how its effect differs (on real tables: that it differs), the "
        "decision, or the group. Silent: the same function in another representation, and nothing is said to "
        "differ. The monitor looks after every two rows, beside 400 rows of the baseline; the shift is half a "
        "standard deviation of one column, and the test of fixed size finds it in 95% of cases. Processor time.",
        compared,
    ),
    "proofs": Section(
        "Proofs of sums of facts",
        "Gradient boosting on raw tables, 2,000 neighbors of each of 10 rows, with bounds, intervals and "
        "categories as facts. Proven: the share of rows for which the best sum of at most k facts is proven "
        "for the moments of these neighbors; 'stated' the share for which the sum that would be stated is "
        "proven to be within 1% of Var t of the best. The search ends after a constant number of nodes. "
        "Means, medians and maxima of the tables.",
        pooled(
            *("law", "k"),
            columns=("proven", "stated_proven", "median_seconds", "most_seconds", "most_nodes"),
        ),
    ),
    "proofs_wide": Section(
        "Proofs of sums of facts about thousands of columns",
        "A model of d columns of random numbers, of which 12 matter; 2,000 rows in the table and 2,000 "
        "neighbors of a row. Seconds of the search, and of the moments from the answers. Whole searches "
        "(drawing and model included) run in processes of their own.",
    ),
    "speed": Section(
        "Speed, beside 0.1, KernelSHAP and TreeSHAP",
        "Ratios of median processor seconds in one thread, ours over theirs, so that less than 1 is faster; "
        "what is compared takes turns row by row. Explanations of boosted probabilities and of sums of trees "
        "over those of 0.1; over KernelSHAP with 100 background rows, its default number of coalitions, and "
        "as many as make its queries equal to ours. 'Search' is the choice of facts without measuring. "
        "Lowest, median and highest of the tables or models.",
        spread("figure", "reached"),
    ),
    "peers": Section(
        "LIME and KernelSHAP at equal numbers of queries",
        "Measured by `anchorline bench peers`: the same model and number of queries, 4 facts at most "
        "(KernelSHAP: 20 background rows) and one thread, in processor seconds. Ours also measures its facts "
        "with these queries. The overhead is the time outside the model. Relevance errors are mean squared "
        "drops of 50,000 neighbors with these facts. Ratios are the peer's value divided by ours.",
    ),
    "tree_support": Section(
        "What explainers of trees can explain",
        "Regressors of 20 trees on 400 rows. 'Adds up' means that base value plus contributions equal the "
        "model's own predictions to 1e-4 of their range; for anchorline also that rows are explained from "
        "leaves, without sampling. 'From codes' means that categories were replaced by codes, and 'per "
        "encoded column' that the pipeline was taken apart. shap 0.51 and woodelf-explainer 0.4.8 use 100 "
        "background rows; shapiq 1.4.1 is path-dependent. To repeat it, install shapiq and woodelf-explainer, "
        "which are not in our extras.",
        _without_details,
    ),
    "studio": Section(
        "The studio under load",
        "Server and clients are two processes on one machine. The model is gradient boosting on Adult, k = 4. "
        'The "computed" rows use the default settings, with two workers. Every answer is compared byte by '
        'byte with the library\'s answer in the client process; "wrong" counts the differences, and "refused" '
        "the answers with status 429. Memory is the resident set of the server after the first 500 of 5,000 "
        "requests of every kind, and after all of them. Honest clients are measured with and without hostile "
        "ones in turns, which send the most expensive legal requests, or never read their answers.",
    ),
    "growth": Section(
        "What grows with rows, columns and facts",
        "Default explanations of a logistic function of 12 columns, which is cheap to ask, so that the library's "
        "own work shows: 10,000 rows of 30 normal numbers and 4 facts, of which one number varies. Medians of 8 "
        "explanations, in processor seconds; those of the model's answers alone; the most memory that one "
        "explanation takes; and the seconds of an explainer's first explanation, which reads the table.",
    ),
    "engines": Section(
        "A million explanations",
        "Gradient boosting of 100 trees on 15 numbers, default settings. All engines explain the same rows, "
        "one process a part of them; wall-clock time with start. The bytes are those of one process. A million "
        "explanations cost the core hours of the first line, times the price of yours.",
    ),
    "import_time": Section("Import time", "Medians over new processes."),
}
