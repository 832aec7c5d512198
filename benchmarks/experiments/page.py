"""The page: every claim of the paper, published and ours, with what disagrees and why; made from the results."""

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
    "figure-2-runtime": "Seconds an explanation against d, log axes (the paper's Figure 2)",
    "figure-3-terms": "Relevance error against k (the paper's Figure 3)",
    "figure-4-locality": "Relevance error against sigma (the paper's Figure 4)",
    "figure-5-samples": "Relevance error against m (the paper's Figure 5)",
    "anchoring-by-data-set": "Figure 1, one panel a data set",
    "convergence": "IHT over the optimum, against sigma",
    "anytime": "The exact solver stopped early: the gap left after so many nodes, a mark where it is closed",
}
PROBES = "python -m benchmarks.experiments.probes --data DIR"

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
    """Write the page; its links to tables and figures are relative to where it stands."""
    folder = os.path.relpath(out, page.parent)
    parts = [
        _head(results, scale),
        _coverage(coverage),
        _claims(results),
        _reasons(results, scale),
        _probes(out / "probes.csv"),
        "## Tables\n",
        *(f"### {table.title}\n\n{table.note}\n\n{table.to_markdown()}\n" for table in tables),
        "## Figures\n",
        *(_figure(name, folder) for name in figures),
        "## What was read, and what was chosen\n",
        *(f"- {text}" for text in (*DATA, *CHOICES)),
        "",
    ]
    write(page, "\n".join(parts))


def write_index(out: Path, results: Results, scale: Scale) -> None:
    """Say beside the results what they are, and which command made them."""
    series = ", ".join(f"`{name}.csv`" for name in sorted(set(results.frame["series"])))
    text = f"""# Results of the paper's experiments

Made by

    anchorline bench paper --data DIR{_quick(scale)}

`results.parquet` holds every row of every series, with its seed; {series} the same, a series each. `tables/` has
Markdown and LaTeX, `figures/` SVG and PNG. {len(results.frame):,} rows, {len(results.measured)} data sets,
protocols: {" and ".join(results.protocols)}.
{
        f'''
`probes.csv`, small experiments behind the reasons on the page, is made by

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
    asked = "of the paper's 16" if scale.name == "full" else f"of the {len(scale.ids)} chosen for a quick look"
    table = results.series("table")
    n_tasks = {protocol: len(results.method("exact", protocol)) for protocol in results.protocols}
    synthetic = SYNTHETIC_ID in set(results.series("table", synthetic=True)["dataset_id"])
    beside = (
        f" `{CORRELATED}`, a synthetic task of the same d, stands beside it under its own name, in no claim."
        if synthetic
        else ""
    )
    return "\n".join(
        [
            "# The paper's experiments, repeated\n",
            "Made from the results by",
            "",
            f"    anchorline bench paper --data DIR{_quick(scale)}",
            "",
            f"which resumes where it was stopped. {len(results.measured)} data sets {asked} were at hand; missing "
            f"and never faked: {missing or 'none'}.{beside}",
            "",
            f"Tasks at the common point (k = 5, m = 5000, sigma = 1): "
            f"{', '.join(f'{n} by protocol {protocol}' for protocol, n in n_tasks.items())}; "
            f"seed {', '.join(str(seed) for seed in sorted(set(table['seed'])))}; {scale.n_draws:,} fresh draws "
            f"behind every F and R. Protocol `paper` explains rows of a test set; `code`, like the authors' "
            f"scripts, trains on the whole table and explains rows of it. Every row of the results, with its "
            f"seed, is in `results.parquet` and in one CSV a series.",
            "",
        ]
    )


def _coverage(coverage: Coverage) -> str:
    """What was measured and what was not: a claim on the latter has no figure."""
    left = {key: counts for key, counts in coverage.items() if counts[0] < counts[1]}
    n_done, n_planned = (sum(counts[i] for counts in coverage.values()) for i in (0, 1))
    lines = [
        f"{n_done:,} of {n_planned:,} units of work are finished" + (":" if left else ", so nothing is left."),
        "",
    ]
    if left:
        lines += ["| Series | Explainers | Protocol | Finished |", "|---|---|---|---|"]
        lines += [f"| {a} | {b} | {c} | {done} of {planned} |" for (a, b, c), (done, planned) in left.items()]
        told = "All other series are complete. Figures on these rest on what is done; the command does the rest."
        lines += ["", told, ""]
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
    total = f"{counts['agrees']} agree, {counts['in part']} agree in part, {counts['disagrees']} disagree"
    beyond = sum(claim.published == "-" for claim in CLAIMS)
    told = f"Of {len(CLAIMS)} claims, {beyond} of them beyond the paper, {total}. In part: by one protocol only."
    return "\n".join([*lines, "", told, ""])


def findings_of(claim: Claim, results: Results) -> dict[str, Finding]:
    """What a claim's check finds under every protocol."""
    return {protocol: claim.check(results, protocol) for protocol in results.protocols}


def verdict_of(findings: dict[str, Finding]) -> str:
    """One word for all protocols."""
    known = {finding.agrees for finding in findings.values() if finding.agrees is not None}
    if not known:
        return "-"
    return "in part" if len(known) == 2 else "agrees" if known == {True} else "disagrees"


def _reasons(results: Results, scale: Scale) -> str:
    lines = ["## What disagrees, and why\n"]
    if scale.name != "full":
        lines.append("The reasons are those of the full run on the tables described below.\n")
    for claim in CLAIMS:
        if verdict_of(findings_of(claim, results)) in ("disagrees", "in part"):
            why = REASONS.get(claim.name, "No reason is known; the figures stand as measured.")
            lines.append(f"- **{claim.statement}.** {why}")
    return "\n".join([*lines, ""])


def _probes(file: Path) -> str:
    """The experiments behind the reasons, where they were made."""
    if not file.exists():
        return ""
    import pandas as pd

    lines = ["## Experiments behind these reasons\n", "Made by", "", f"    {PROBES}", ""]
    return "\n".join([*lines, *(f"- {text}" for text in summary(pd.read_csv(file))), ""])


def _figure(name: str, folder: str) -> str:
    stem, _, protocol = name.rpartition("-")
    title = FIGURES.get(name) or f"{FIGURES[stem]}, protocol {protocol}"
    return f"![{title}]({folder}/figures/{name}.png)\n\n*{title}* ([SVG]({folder}/figures/{name}.svg))\n"
