"""The paper's three tables with our results, and tables of our own, in Markdown and LaTeX."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.datasets import Published
from benchmarks.experiments.protocol import SYNTHETIC_ID
from benchmarks.experiments.results import Results, write
from benchmarks.tasks import CORRELATED

Mean = tuple[float, float]  # mean and standard deviation over instances


@dataclass(frozen=True, slots=True)
class Shape:
    """A row of Table 1."""

    n_rows: int
    n_categorical: int
    n_numeric: int
    n_raw: int
    dimension: int
    loss: float


#: Table 1 by OpenML id.
SHAPES: dict[int, Shape] = {
    29: Shape(690, 4, 2, 15, 17, 0.145),
    42192: Shape(5278, 8, 1, 13, 20, 0.405),
    40683: Shape(88, 8, 0, 8, 23, 0.373),
    43672: Shape(1190, 6, 5, 11, 37, 0.111),
    179: Shape(48842, 9, 2, 14, 42, 0.163),
    1486: Shape(34465, 41, 6, 118, 149, 0.054),
    40536: Shape(8378, 58, 2, 120, 180, 0.169),
    1116: Shape(6598, 1, 160, 167, 644, 0.015),
    44146: Shape(163065, 0, 3, 3, 12, 0.003),
    44024: Shape(20640, 0, 8, 8, 32, 0.020),
    44962: Shape(517, 2, 8, 12, 40, 0.005),
    46328: Shape(8760, 5, 8, 17, 46, 0.008),
    42352: Shape(395, 20, 4, 32, 69, 0.021),
    46132: Shape(60, 0, 47, 48, 188, 0.027),
    46286: Shape(1994, 1, 91, 122, 367, 0.030),
    46139: Shape(475, 0, 413, 808, 1652, 0.035),
}

TABLE_2 = ("iht", "exact", "lime", "relaxation", "maple")
#: Table 2, empirical fidelity error, in the order of `TABLE_2`; "exact" is the paper's MIP.
FIDELITY: dict[int, tuple[Mean, ...]] = {
    29: ((0.107, 0.010), (0.107, 0.010), (0.108, 0.009), (0.090, 0.005), (0.284, 0.060)),
    42192: ((0.105, 0.068), (0.104, 0.068), (0.094, 0.048), (0.081, 0.044), (0.199, 0.179)),
    40683: ((0.141, 0.048), (0.141, 0.048), (0.130, 0.027), (0.108, 0.024), (0.246, 0.102)),
    43672: ((0.162, 0.029), (0.162, 0.030), (0.162, 0.026), (0.121, 0.015), (0.225, 0.046)),
    179: ((0.152, 0.044), (0.152, 0.044), (0.144, 0.029), (0.114, 0.021), (0.269, 0.066)),
    1486: ((0.226, 0.064), (0.224, 0.063), (0.190, 0.039), (0.124, 0.023), (0.188, 0.036)),
    40536: ((0.205, 0.070), (0.203, 0.071), (0.181, 0.044), (0.126, 0.032), (0.179, 0.041)),
    1116: ((0.124, 0.074), (0.124, 0.074), (0.118, 0.062), (0.077, 0.040), (0.095, 0.035)),
    44146: ((0.001, 0.000), (0.001, 0.000), (0.001, 0.000), (0.001, 0.000), (0.013, 0.008)),
    44024: ((0.020, 0.002), (0.020, 0.001), (0.019, 0.001), (0.012, 0.001), (0.027, 0.003)),
    44962: ((0.005, 0.000), (0.005, 0.000), (0.004, 0.000), (0.003, 0.000), (0.005, 0.001)),
    46328: ((0.015, 0.009), (0.015, 0.009), (0.010, 0.002), (0.007, 0.002), (0.014, 0.006)),
    42352: ((0.012, 0.003), (0.012, 0.003), (0.011, 0.001), (0.007, 0.000), (0.017, 0.004)),
    46132: ((0.022, 0.021), (0.022, 0.021), (0.012, 0.001), (0.007, 0.001), (0.009, 0.002)),
    46286: ((0.023, 0.006), (0.023, 0.006), (0.018, 0.003), (0.011, 0.001), (0.014, 0.002)),
    46139: ((0.019, 0.009), (0.018, 0.008), (0.009, 0.001), (0.003, 0.000), (0.008, 0.001)),
}

TABLE_3 = ("iht", "exact", "lime")
#: Table 3, out-of-sample fidelity error, then relevance error, each in the order of `TABLE_3`.
GENERALIZATION: dict[int, tuple[tuple[Mean, ...], tuple[Mean, ...]]] = {
    29: (((0.107, 0.009), (0.107, 0.009), (0.108, 0.008)), ((0.008, 0.017), (0.007, 0.015), (0.043, 0.047))),
    42192: (((0.106, 0.069), (0.106, 0.068), (0.095, 0.047)), ((0.057, 0.127), (0.070, 0.130), (0.137, 0.239))),
    40683: (((0.140, 0.046), (0.140, 0.046), (0.130, 0.026)), ((0.070, 0.099), (0.069, 0.098), (0.142, 0.207))),
    43672: (((0.163, 0.029), (0.162, 0.030), (0.161, 0.025)), ((0.067, 0.050), (0.070, 0.048), (0.124, 0.073))),
    179: (((0.153, 0.044), (0.152, 0.043), (0.144, 0.030)), ((0.097, 0.097), (0.094, 0.095), (0.136, 0.159))),
    1486: (((0.228, 0.064), (0.227, 0.064), (0.190, 0.039)), ((0.228, 0.131), (0.225, 0.125), (0.405, 0.244))),
    40536: (((0.210, 0.072), (0.208, 0.074), (0.182, 0.045)), ((0.190, 0.159), (0.196, 0.160), (0.257, 0.222))),
    1116: (((0.127, 0.076), (0.127, 0.075), (0.119, 0.062)), ((0.103, 0.094), (0.102, 0.094), (0.133, 0.128))),
    44146: (((0.001, 0.000), (0.001, 0.000), (0.001, 0.000)), ((0.001, 0.001), (0.001, 0.001), (0.001, 0.001))),
    44024: (((0.020, 0.002), (0.020, 0.001), (0.019, 0.001)), ((0.017, 0.004), (0.017, 0.003), (0.022, 0.007))),
    44962: (((0.005, 0.000), (0.005, 0.000), (0.004, 0.000)), ((0.005, 0.001), (0.005, 0.001), (0.006, 0.001))),
    46328: (((0.015, 0.009), (0.015, 0.009), (0.010, 0.002)), ((0.022, 0.019), (0.022, 0.019), (0.026, 0.019))),
    42352: (((0.012, 0.003), (0.012, 0.003), (0.011, 0.001)), ((0.014, 0.006), (0.014, 0.006), (0.019, 0.008))),
    46132: (((0.023, 0.021), (0.023, 0.022), (0.013, 0.001)), ((0.038, 0.056), (0.039, 0.056), (0.052, 0.066))),
    46286: (((0.024, 0.006), (0.024, 0.006), (0.018, 0.003)), ((0.032, 0.017), (0.032, 0.017), (0.038, 0.017))),
    46139: (((0.020, 0.010), (0.020, 0.009), (0.009, 0.001)), ((0.039, 0.028), (0.038, 0.027), (0.047, 0.030))),
}


def cell(method: str, dataset_id: int) -> Mean | None:
    """Return the entry of a method in Table 2; None if the paper has none."""
    return FIDELITY[dataset_id][TABLE_2.index(method)] if method in TABLE_2 else None


def relevance(method: str, dataset_id: int) -> Mean | None:
    """Return the relevance error of a method in Table 3; None if the paper has none."""
    return GENERALIZATION[dataset_id][1][TABLE_3.index(method)] if method in TABLE_3 else None


LABELS = {
    "exact": "exact (ours)",
    "iht": "IHT",
    "relaxation": "relaxation",
    "lime": "LIME",
    "maple": "MAPLE",
    "gurobi": "Gurobi",
    "scip": "SCIP",
    "shap": "KernelSHAP",
    "shap anchored": "KernelSHAP, re-anchored",
    "slise": "SLISE",
    "slise anchored": "SLISE, k - 1 largest",
}
MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text cells; ``note`` is printed above it, and ``name`` is the name of its file."""

    name: str
    title: str
    note: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        lines = ["| " + " | ".join(cells) + " |" for cells in (self.header, *self.rows)]
        lines.insert(1, "|---" * len(self.header) + "|")
        return "\n".join(lines)

    def to_latex(self) -> str:
        """Return the table in LaTeX (booktabs)."""
        body = [" & ".join(map(_latex, cells)) + r" \\" for cells in self.rows]
        return "\n".join(
            [
                r"\begin{table}[ht]",
                r"\centering",
                rf"\caption{{{_latex(self.title)}. {_latex(self.note)}}}",
                rf"\begin{{tabular}}{{l{'r' * (len(self.header) - 1)}}}",
                r"\toprule",
                " & ".join(map(_latex, self.header)) + r" \\",
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    def write(self, directory: Path) -> None:
        """Write the table in both formats."""
        text = f"# {self.title}\n\n{self.note}\n\n{self.to_markdown()}\n"
        for suffix, content in ((".md", text), (".tex", self.to_latex())):
            write(directory / f"{self.name}{suffix}", content)


def all_tables(results: Results) -> list[Table]:
    """Return every table that the results allow, starting with the paper's."""
    tables = [datasets_table(results)]
    for protocol in results.protocols:
        tables += [
            fidelity_table(results, protocol),
            generalization_table(results, protocol),
            admissibility_table(results, protocol),
            relevance_table(results, protocol),
            runtime_table(results, protocol),
        ]
    return tables


def datasets_table(results: Results) -> Table:
    """Return Table 1: the data sets and their 5-fold loss."""
    folds = results.series("folds")
    rows = []
    for row in [*results.measured, *results.missing]:
        paper, ours = SHAPES[row.id], folds[folds["dataset_id"] == row.id]
        printed = (paper.n_rows, paper.n_categorical, paper.n_numeric, paper.n_raw, paper.dimension)
        names = ("n_rows", "n_categorical", "n_numeric", "n_raw", "d")
        if ours.empty:
            cells = [f"{MISSING} [{value}]" for value in printed] + [f"{MISSING} [{paper.loss:.3f}]"]
        else:
            values = [int(ours[name].iloc[0]) for name in names]
            cells = [_beside(str(a), str(b)) for a, b in zip(values, printed, strict=True)]
            cells.append(f"{ours['loss'].mean():.3f} [{paper.loss:.3f}]")
        rows.append((row.name, str(row.id), *cells))
    return Table(
        "table-1",
        "Table 1: data sets",
        "Our values, with the published value in brackets where it differs. The loss is the mean over five folds.",
        ("Data set", "OpenML id", "Instances", "Cat", "Num", "Raw", "d", "CV loss"),
        tuple(rows),
    )


def fidelity_table(results: Results, protocol: str) -> Table:
    """Return Table 2: empirical fidelity error."""

    def cells(row: Published) -> list[str]:
        return [
            _mean(results, name, "empirical_fidelity", protocol, row.id, FIDELITY[row.id][i])
            for i, name in enumerate(TABLE_2)
        ]

    return Table(
        f"table-2-{protocol}",
        f"Table 2: empirical fidelity error, protocol {protocol}",
        "k = 5, m = 5000, sigma = 1. Mean and standard deviation over instances, with the published values in "
        "brackets. Relaxation and MAPLE may have more than five terms.",
        ("Data set", *(LABELS[name] for name in TABLE_2)),
        tuple((row.name, *cells(row)) for row in [*results.measured, *results.missing])
        + _synthetic(results, protocol, TABLE_2, ("empirical_fidelity",)),
    )


def generalization_table(results: Results, protocol: str) -> Table:
    """Return Table 3: out-of-sample fidelity and relevance error."""

    def cells(row: Published) -> list[str]:
        return [
            _mean(results, name, column, protocol, row.id, GENERALIZATION[row.id][block][i])
            for block, column in enumerate(("fidelity", "relevance"))
            for i, name in enumerate(TABLE_3)
        ]

    return Table(
        f"table-3-{protocol}",
        f"Table 3: out-of-sample fidelity error F and relevance error R, protocol {protocol}",
        "k = 5, m = 5000, sigma = 1. The full run uses 100,000 fresh draws per value; published values are in "
        "brackets.",
        ("Data set", *(f"{letter} {LABELS[name]}" for letter in "FR" for name in TABLE_3)),
        tuple((row.name, *cells(row)) for row in [*results.measured, *results.missing])
        + _synthetic(results, protocol, TABLE_3, ("fidelity", "relevance")),
    )


def admissibility_table(results: Results, protocol: str) -> Table:
    """Return the terms, the anchoring and the largest coefficient of every explainer."""
    rows = []
    for name, label in LABELS.items():
        explained = results.method(name, protocol)
        if not explained.empty:
            gaps, terms = explained.groupby(level="dataset_id")["anchoring_gap"].mean(), explained["n_terms"]
            rows.append(
                (
                    label,
                    str(len(explained)),
                    f"{terms.mean():.1f} ({terms.min():.0f} to {terms.max():.0f})",
                    f"{100 * explained['violated'].mean():.0f}%",
                    f"{gaps.min():.3f} to {gaps.max():.3f}",
                    f"{explained['anchoring_gap'].max():.3f}",
                    f"{explained['largest'].max():.3f}",
                    f"{(explained['status'] == 'OPTIMAL').sum()}",
                )
            )
    return Table(
        f"admissibility-{protocol}",
        f"Admissibility, protocol {protocol}",
        "All instances at k = 5, m = 5000, sigma = 1. Anchoring is violated if the gap is above 0.001. The mean "
        "gap is over the instances of a data set. Proven counts the explainer's own claims of optimality.",
        (
            "Explainer",
            "Tasks",
            "Terms, mean (range)",
            "Violated",
            "Mean gap",
            "Largest gap",
            "Largest w",
            "Proven",
        ),
        tuple(rows),
    )


def relevance_table(results: Results, protocol: str) -> Table:
    """Return the relevance error of every sparse explainer."""
    names = ("exact", "iht", "lime", "shap", "slise anchored")
    shared = results.shared_by(names, protocol)  # in an unfinished run, some methods have fewer instances
    return Table(
        f"relevance-{protocol}",
        f"Relevance error of every sparse explainer, protocol {protocol}",
        "k = 5, sigma = 1. Exact, IHT and SLISE share 5000 neighbors, LIME draws its own 5000, and KernelSHAP 20 "
        "(2 d + 2048). Re-anchoring does not change the value of KernelSHAP, because it depends only on the "
        "literals. Means are over the instances that all of them explained.",
        ("Data set", *(LABELS[name] for name in names)),
        tuple(
            (row.name, *(_mean(shared, name, "relevance", protocol, row.id, None) for name in names))
            for row in [*results.measured, *results.missing]
        )
        + _synthetic(results, protocol, names, ("relevance",)),
    )


def runtime_table(results: Results, protocol: str) -> Table:
    """Return the seconds per explanation."""
    names = ("exact", "iht", "relaxation", "gurobi", "scip", "lime", "maple", "shap", "slise")
    return Table(
        f"runtime-{protocol}",
        f"Seconds per explanation, protocol {protocol}",
        "Mean processor seconds over instances, with one thread. The shared sample has its own column and is not "
        "counted in the others. LIME and KernelSHAP query the model themselves.",
        ("Data set", "Sample", *(LABELS[name] for name in names)),
        tuple(
            (
                row.name,
                _plain(results, "exact", "sample_seconds", protocol, row.id),
                *(_plain(results, name, "cpu_seconds", protocol, row.id) for name in names),
            )
            for row in [*results.measured, *results.missing]
        ),
    )


def _synthetic(
    results: Results, protocol: str, names: Sequence[str], columns: Sequence[str]
) -> tuple[tuple[str, ...], ...]:
    """Return the row of the synthetic task with d = 1652, under its own name."""
    rows = results.series("table", protocol, synthetic=True)
    rows = rows[rows["dataset_id"] == SYNTHETIC_ID]
    if rows.empty:
        return ()
    cells = [_mean_and_deviation(rows[rows["method"] == name][column]) for column in columns for name in names]
    return ((f"({CORRELATED}, beside 46139)", *(cell or "-" for cell in cells)),)


def _mean(results: Results, name: str, column: str, protocol: str, dataset_id: int, paper: Mean | None) -> str:
    rows = results.method(name, protocol)
    ours = _mean_and_deviation(rows[rows.index.get_level_values("dataset_id") == dataset_id][column])
    if paper is None:
        return ours or ("-" if dataset_id in {row.id for row in results.measured} else MISSING)
    return f"{ours or MISSING} [{paper[0]:.3f} ± {paper[1]:.3f}]"


def _mean_and_deviation(values: Any) -> str:
    """Return the mean and the standard deviation of the measured values; "" if there are none."""
    values = values.dropna()
    return f"{values.mean():.3f} ± {values.std():.3f}" if len(values) else ""


def _plain(results: Results, name: str, column: str, protocol: str, dataset_id: int) -> str:
    mean = results.means(name, column, protocol).get(dataset_id, math.nan)
    if math.isnan(mean):
        return "-" if dataset_id in {row.id for row in results.measured} else MISSING
    return f"{mean:.3g}"


def _beside(ours: str, paper: str) -> str:
    return ours if ours == paper else f"{ours} [{paper}]"


def _latex(text: str) -> str:
    for plain, escaped in (("%", r"\%"), ("_", r"\_"), ("±", r"$\pm$"), ("<=", r"$\le$"), ("&", r"\&")):
        text = text.replace(plain, escaped)
    return text
