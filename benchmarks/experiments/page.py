"""The page that compares every claim of the paper with our results, and explains the disagreements."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.experiments.claims import CLAIMS, Claim, Finding
from benchmarks.experiments.probes import summary
from benchmarks.experiments.protocol import SYNTHETIC_ID, Scale
from benchmarks.experiments.results import Results, write
from benchmarks.experiments.tables import Table
from benchmarks.tasks import CORRELATED

_INSTANCES = (
    "The ten instances are not the authors' ten. Both draws have seed 48, but they come from different "
    "generators, and by protocol `paper` from a test set that the authors do not name."
)

#: How the available tables differ from those of OpenML.
DATA: tuple[str, ...] = (
    "46139 (Cancer Drug Response Methylation) was not available. The claims that depend on it (d = 1652, "
    "MAPLE's 598 terms and 57.7 s, LIME's R / F of 5.22) cannot be reproduced. No other data set replaces it.",
    "Adult is the raw table (as OpenML 1590), not OpenML 179, in which age, gains, losses and hours are "
    "probably cut into coded bins. In the raw table, gains, losses and hours are dropped because of tied "
    "quantiles, and three columns because of missing values, so that d = 30, not 42. With these four columns "
    "coded, the same encoding gives 42.",
    "Musk has 166 attributes, not 167. It lacks one that the paper counts as a category with four indicators, "
    "probably an identifier (the rows are sorted by class, so a row number would reveal the answer). Therefore "
    "d = 640, not 644.",
    "Seoul Bike Sharing has 13 attributes, not 17, with the date as text with 365 levels. Four columns have "
    "tied quantiles. Therefore d = 32, not 46.",
    "The target of Medical Charges is ln(1 + payment), and that of California Housing is the plain value; "
    "OpenML's own targets were not available. NCI 60 was identified by its shape. As far as is known, the "
    "other files agree with OpenML, and their d is the published one.",
)

#: What the paper does not specify, and what was chosen here.
CHOICES: tuple[str, ...] = (
    _INSTANCES,
    "Exact, IHT, relaxation, MAPLE, SLISE, SCIP and Gurobi share one sample of m neighbors. LIME draws its own "
    "m neighbors, each column with its frequency in that sample, so that it explains the same neighborhood.",
    "MAPLE is implemented here after its paper: 200 trees, max_features 0.5, at least 10 rows per leaf, weights "
    "by shared leaves, ridge 0.001, and features ranked by the impurity decrease at the roots. The number of "
    "features is the one of at most 16 log-spaced sizes with the smallest error on 8 held-out rows of the "
    "sample.",
    "KernelSHAP runs with its default settings on 20 background rows of the sample. Its 4 largest values are "
    "converted to the linear function that has them as Shapley values, both unchanged (the dropped values are "
    "then missing from the sum) and re-anchored. SLISE runs with epsilon = 0.1 and its default settings "
    "otherwise.",
    "Standard deviations are over instances, with n - 1. Folds are shuffled (seed 48). A term counts if it is "
    "above 1e-5. Anchoring is violated above 1e-3. Relevance is not measured for sums of more than 20 literals.",
    "IHT runs on one CPU core, for at most 5,000 iterations, and stops when no contribution moves by more than "
    "1e-13. Seconds are processor seconds of one thread. Only the times within which a task was proven optimal "
    "are wall time, on two cores that also ran other work.",
    "SCIP runs up to d = 69 and Gurobi up to d = 99, the limit of the license in its wheel, with 120 s per "
    "task. The paper's Gurobi runs above that limit could not be repeated.",
    "Anytime behavior is reported by nodes instead of seconds, so that it is reproducible.",
    'Code decides whether a figure agrees, by the rule in the column beside it. "With resampled instances" '
    "gives the 95% interval of the figure when the instances of each data set are resampled 2000 times from "
    "the measured ones. In a claim, the number after a plus-minus sign is a standard error over the instances.",
)

#: Reasons by name of the claim; those that mention experiments rely on `benchmarks.experiments.probes`.
REASONS: dict[str, str] = {
    "iht equal": "A matter of rounding: 11/15 is 73% and 12/16 is 75%, and one of the data sets with different "
    "printed means has means 0.0002 apart. Every optimum here is proven; three of the paper's four exceptions "
    "compare IHT with a search that was stopped at 120 s.",
    "lime violates": "One explanation by LIME, of Student Performance, happens to meet the prediction to 0.0004; "
    "nothing in LIME enforces this.",
    "lime gap": "The smallest gap is reproduced; the largest is smaller than published, and the reason is not "
    "known. Other rows and other networks of Nomao do not come near the published gap (see the experiments "
    "below). The published errors of IHT and of the exact solver on Nomao are larger than ours, too (Table 3), "
    "so the authors' rows or model were harder. The gap is about twice as large in the minority class; that the "
    "authors drew more of these rows is only a guess.",
    "largest": "By protocol paper, the box is active on one task of COMPAS: IHT, which has no box, returns an "
    "intercept of 1.13, and the exact solver stops at 1. So the box is rarely active, but not never. MAPLE "
    "leaves the box on four tasks, as published, by a larger amount; by protocol code, on one.",
    "correlation": "Within a data set and in each family, the correlation is close to the published one. Over "
    "both families it is lower, because the line is about four times as steep in regression. The relation is not "
    "linear: forcing a least-squares fit through a point that it misses by g costs a multiple of g^2, and the "
    "relative advantage divides by F, which is small in regression. Against g^2 / F, both families agree much "
    "better. LIME's advantage is an anchoring artifact, as the paper says.",
    "lime ratio": "The direction is the same; by protocol paper, the ratio is a little larger. Ten instances per "
    "data set cannot distinguish 1.3 from 1.5: the interval with resampled instances contains both.",
    "ratio lime": "The published 5.22 is on the missing data set. On the 15 others, the largest published value "
    "is 4.00, which is below the lemma's factor, like ours.",
    "monotone": "The paper itself says that nothing guarantees a decrease, because one more literal shrinks the "
    "event. Each protocol has one increase, smaller than its standard error. Both are on Adult, of which another "
    "version was available; coded as in OpenML 179, the error of the exact solver falls with every k by both "
    "protocols (see the experiments below).",
    "lime compas": "LIME is worse, but by less than published. The ratio depends on the draw: with other seeds by "
    "protocol paper, and with other random initializations of the network by protocol code, it ranges from ours "
    "to about the published one (see the experiments below).",
    "sigma factors": "California and Student fall as published. Adult does not on the available table, which has "
    "30 literals instead of 42. Coded as in OpenML 179, it does by protocol code, which is that of the authors' "
    "scripts, and less by protocol paper (see the experiments below).",
    "plateaus": "The paper reads plateaus from the curves; here one begins where the mean stays within 5% of its "
    "value at m = 100,000. By protocol paper, California Housing misses this at m = 1000 by less than two "
    "percentage points. The other three level off as early as published, or earlier.",
    "hundred": "Few rows cause noise, and a missing anchor causes bias. On Student Performance, LIME's bias is "
    "small: at m = 100,000 its error is 17% (protocol paper) and 9% (protocol code) above that of the exact "
    "solver, while 100 rows for 69 literals cost the exact solver 17% and 29%. By protocol code this is not an "
    "accident of the draw: ours is worse on 9 of 10 instances. IHT's loss on COMPAS is far below its standard "
    "error.",
}


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

`anchorline.paper` holds the paper's own system as it is written. The other rooms have another law, other facts and
another solver.

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
    """Write the page; its figures are shown from ``out``, which has all tables and figures, data and choices."""
    folder = os.path.relpath(out, page.parent)
    parts = [
        _head(results, scale),
        _coverage(coverage),
        _claims(results),
        _reasons(results, scale),
        ROOM,
        _probes(out / "probes.csv"),
        _rest(tables, figures, results.protocols[0], folder),
    ]
    write(page, "\n".join(parts))


def write_index(out: Path, results: Results, scale: Scale) -> None:
    """Write a README beside the results that describes them and names the command."""
    series = ", ".join(f"`{name}.csv`" for name in sorted(set(results.frame["series"])))
    listed = "\n".join(f"- {text}" for text in (*DATA, *CHOICES))
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
    }
## Data and choices

{listed}
"""
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
            "Which claims of the paper anchorline reproduces, and why some differ. This page is written by",
            "",
            f"    anchorline bench paper --data DIR{_quick(scale)}",
            "",
            "A run that was stopped continues when the command is repeated. "
            f"{len(results.measured)} data sets {planned} were available. "
            f"Missing, and not replaced by made-up data: {missing or 'none'}."
            f"{synthetic_note if synthetic else ''}",
            "",
            f"There are {tasks} at the common point (k = 5, m = 5000, sigma = 1), with seed {seeds} and "
            f"{scale.n_draws:,} fresh draws per F and R. Protocol `paper` explains rows of a test set. Protocol "
            "`code` trains on the whole table and explains rows of it, like the authors' scripts.",
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
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
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
    return "\n".join(["## Claim by claim\n", note, "", *lines, ""])


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


def _rest(tables: Sequence[Table], figures: Sequence[str], protocol: str, folder: str) -> str:
    """Show the paper's own figures by one protocol, and name the tables."""
    shown = [name for name in figures if name.startswith("figure-") and name.endswith(f"-{protocol}")]
    titles = "; ".join(dict.fromkeys(table.title.partition(", protocol")[0] for table in tables))
    lines = [
        "## Tables and figures\n",
        f"The folder of the results (`{folder}` from this page) has every table in Markdown and LaTeX, every "
        "figure as SVG and PNG, by both protocols, and the rows with their seeds. Its README says how the "
        "available data differ from OpenML's, and what was chosen where the paper does not say. "
        f"Tables: {titles}.\n",
        *(_figure(name, folder) for name in shown),
    ]
    return "\n".join(lines)


def _figure(name: str, folder: str) -> str:
    stem, _, protocol = name.rpartition("-")
    title = f"{FIGURES[stem]}, protocol {protocol}"
    return f"![{title}]({folder}/figures/{name}.png)\n\n*{title}*\n"
