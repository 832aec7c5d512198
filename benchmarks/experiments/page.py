"""The page that compares every claim of the paper with our results, and explains the disagreements."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.experiments.claims import CLAIMS, Claim
from benchmarks.experiments.finding import Finding
from benchmarks.experiments.probes import summary
from benchmarks.experiments.protocol import SYNTHETIC_ID, Scale
from benchmarks.experiments.reasons import CHOICES, DATA, REASONS
from benchmarks.experiments.results import Results, write
from benchmarks.experiments.tables import Table
from benchmarks.tasks import CORRELATED

FIGURES = {
    "figure-1-anchoring": "LIME's fidelity advantage against its anchoring gap (the paper's Figure 1)",
    "figure-2-runtime": "Seconds per explanation against d, log axes (the paper's Figure 2)",
    "figure-3-terms": "Relevance error against k (the paper's Figure 3)",
    "figure-4-locality": "Relevance error against sigma (the paper's Figure 4)",
    "figure-5-samples": "Relevance error against m (the paper's Figure 5)",
    "anchoring-by-data-set": "Figure 1, one panel per data set",
    "convergence": "IHT divided by the optimum, against sigma",
    "anytime": "The exact solver stopped early: the remaining gap against the number of nodes, with a mark where "
    "it is closed",
}
PROBES = "python -m benchmarks.experiments.probes --data DIR"
ROOM = """## Where the paper's parts are

One room, `anchorline.paper`, holds the paper's own system as it is written, and the experiments of this page run
on it. The other rooms have another law, other facts and another solver.

| In the paper | In `anchorline.paper` |
|---|---|
| neighborhood, fidelity error, relevance error (cancelling weights included) | `Neighborhood`, `measure` |
| problem (P4), explained and solved exactly | `explain`, `Problem`, `solve_exact` |
| (MIP) and the convex relaxation | `solve_with_scip`, `solve_with_gurobi`, `solve_relaxation` |
| Algorithm 1 and its projection | `solve_iht`, `project_sparse_sum` |
| Assumption 1 and the trajectory lemmas | `benchmarks.experiments.regularity` |
| lemmas and theorems | `relevance_factor`, `required_samples`, `iht_iterations` and the others of `theorems` |
| the Boolean encoding of tables | `Binarizer` |
"""

Coverage = Mapping[tuple[str, str, str], tuple[int, int]]  # (series, group, protocol): units finished, planned


def write_page(
    page: Path,
    out: Path,
    results: Results,
    tables: Sequence[Table],
    figures: Sequence[str],
    scale: Scale,
    coverage: Coverage,
) -> None:
    """Write the page; its links to tables and figures are relative to its folder."""
    folder = os.path.relpath(out, page.parent)
    parts = [
        _head(results, scale),
        _coverage(coverage),
        _claims(results),
        _reasons(results, scale),
        ROOM,
        _probes(out / "probes.csv"),
        "## Tables\n",
        *(f"### {table.title}\n\n{table.note}\n\n{table.to_markdown()}\n" for table in tables),
        "## Figures\n",
        *(_figure(name, folder) for name in figures),
        "## Data and choices\n",
        *(f"- {text}" for text in (*DATA, *CHOICES)),
        "",
    ]
    write(page, "\n".join(parts))


def write_index(out: Path, results: Results, scale: Scale) -> None:
    """Write a README beside the results that describes them and names the command."""
    series = ", ".join(f"`{name}.csv`" for name in sorted(set(results.frame["series"])))
    text = f"""# Results of the paper's experiments

These files are written by

    anchorline bench paper --data DIR{_quick(scale)}

`results.parquet` holds every row of every series, with its seed. {series} hold the same rows, one file per series.
`tables/` has the tables in Markdown and LaTeX, and `figures/` the figures as SVG and PNG. The results have
{len(results.frame):,} rows, {len(results.measured)} data sets and the protocols {" and ".join(results.protocols)}.
{
        f'''
`probes.csv` holds small experiments that support the reasons on the page. It is written by

    {PROBES}
'''
        if (out / "probes.csv").exists()
        else ""
    }"""
    write(out / "README.md", text)


def _quick(scale: Scale) -> str:
    return " --quick" if scale.name != "full" else ""


def _head(results: Results, scale: Scale) -> str:
    missing = ", ".join(f"{row.name} (OpenML {row.id})" for row in results.missing if row.id in scale.ids)
    planned = "of the paper's 16" if scale.name == "full" else f"of the {len(scale.ids)} in a quick run"
    table = results.series("table")
    n_tasks = {protocol: len(results.method("exact", protocol)) for protocol in results.protocols}
    synthetic = SYNTHETIC_ID in set(results.series("table", synthetic=True)["dataset_id"])
    synthetic_note = (
        f" `{CORRELATED}`, a synthetic task with the same d, is shown beside it under its own name and is not "
        "part of any claim."
    )
    tasks = " and ".join(f"{n} tasks by protocol {protocol}" for protocol, n in n_tasks.items())
    seeds = ", ".join(str(seed) for seed in sorted(set(table["seed"])))
    return "\n".join(
        [
            "# The paper's experiments, repeated\n",
            "This page shows which claims of the paper anchorline reproduces, and why some differ.",
            "It is written by",
            "",
            f"    anchorline bench paper --data DIR{_quick(scale)}",
            "",
            f"A stopped run continues when the command is repeated. {len(results.measured)} data sets {planned} "
            "were available. Missing, and not replaced by made-up data: "
            f"{missing or 'none'}.{synthetic_note if synthetic else ''}",
            "",
            f"There are {tasks} at the common point (k = 5, m = 5000, sigma = 1), with seed {seeds} and "
            f"{scale.n_draws:,} fresh draws per F and R. Protocol `paper` explains rows of a test set. Protocol "
            "`code` trains on the whole table and explains rows of the same table, like the authors' scripts. "
            "Every row of the results, with its seed, is in `results.parquet` and in one CSV file per series.",
            "",
        ]
    )


def _coverage(coverage: Coverage) -> str:
    """List the unfinished series; claims about series without rows have no figure."""
    left = {key: counts for key, counts in coverage.items() if counts[0] < counts[1]}
    n_done, n_planned = (sum(counts[i] for counts in coverage.values()) for i in (0, 1))
    lines = [
        f"{n_done:,} of {n_planned:,} units of work are finished" + (". These are not:" if left else "."),
        "",
    ]
    if left:
        lines += ["| Series | Explainers | Protocol | Finished |", "|---|---|---|---|"]
        lines += [f"| {a} | {b} | {c} | {done} of {planned} |" for (a, b, c), (done, planned) in left.items()]
        note = (
            "All other series are complete. Figures of these use the finished units; the command does the others."
        )
        lines += ["", note, ""]
    return "\n".join(lines)


def _claims(results: Results) -> str:
    protocols = results.protocols
    header = ["Claim", "Published", *(f"Ours ({name})" for name in protocols), "Agrees if", "Verdict"]
    lines = ["## Claim by claim\n", "| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    counts = {"agrees": 0, "disagrees": 0, "in part": 0, "-": 0}
    for claim in CLAIMS:
        findings = findings_of(claim, results)
        verdict = verdict_of(findings)
        counts[verdict] += 1
        ours = [finding.text for finding in findings.values()]
        cells = [claim.statement, claim.published, *ours, claim.agrees_if, verdict]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    total = f"{counts['agrees']} agree, {counts['disagrees']} disagree and {counts['in part']} agree in part"
    beyond = sum(claim.published == "-" for claim in CLAIMS)
    note = f"Of {len(CLAIMS)} claims, {beyond} of them beyond the paper, {total} (by one protocol only)."
    return "\n".join([*lines, "", note, ""])


def findings_of(claim: Claim, results: Results) -> dict[str, Finding]:
    """Return the finding of a claim's check for every protocol."""
    return {protocol: claim.check(results, protocol) for protocol in results.protocols}


def verdict_of(findings: dict[str, Finding]) -> str:
    """Return one verdict for all protocols."""
    verdicts = {finding.agrees for finding in findings.values() if finding.agrees is not None}
    if not verdicts:
        return "-"
    return "in part" if len(verdicts) == 2 else "agrees" if verdicts == {True} else "disagrees"


def _reasons(results: Results, scale: Scale) -> str:
    lines = ["## Disagreements and their reasons\n"]
    if scale.name != "full":
        lines.append("The reasons refer to the full run on the tables described below.\n")
    for claim in CLAIMS:
        if verdict_of(findings_of(claim, results)) in ("disagrees", "in part"):
            reason = REASONS.get(claim.name, "The reason is not known.")
            lines.append(f"- **{_capitalized(claim.statement)}.** {reason}")
    return "\n".join([*lines, ""])


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def _probes(file: Path) -> str:
    """Return the section on the experiments that support the reasons; "" if they were not run."""
    if not file.exists():
        return ""
    import pandas as pd

    lines = [
        "## Experiments that support these reasons\n",
        "Their results are written by",
        "",
        f"    {PROBES}",
        "",
    ]
    return "\n".join([*lines, *(f"- {text}" for text in summary(pd.read_csv(file))), ""])


def _figure(name: str, folder: str) -> str:
    stem, _, protocol = name.rpartition("-")
    title = FIGURES.get(name) or f"{FIGURES[stem]}, protocol {protocol}"
    return f"![{title}]({folder}/figures/{name}.png)\n\n*{title}* ([SVG]({folder}/figures/{name}.svg))\n"
