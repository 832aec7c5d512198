"""The paper's five figures and three of ours, as SVG and PNG, in colors for color-blind readers."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.errors import MissingDependencyError
from benchmarks.datasets import PUBLISHED, published
from benchmarks.experiments.protocol import SWEPT
from benchmarks.experiments.results import Results, write


@dataclass(frozen=True, slots=True)
class Style:
    """How a method is drawn: color (Okabe and Ito), marker and line, which also differ in a gray print."""

    label: str
    color: str
    marker: str
    line: str


STYLES = {
    "exact": Style("exact (ours)", "#0072B2", "o", "-"),
    "iht": Style("IHT", "#009E73", "s", "--"),
    "lime": Style("LIME", "#D55E00", "^", "-."),
    "maple": Style("MAPLE", "#CC79A7", "D", ":"),
    "scip": Style("SCIP", "#000000", "x", ":"),
    "gurobi": Style("Gurobi", "#7F7F7F", "+", "--"),
    "shap": Style("KernelSHAP", "#E69F00", "v", "-."),
}
FAMILIES = (("classification", "Classification"), ("regression", "Regression"))
_CLOSED = 1e-4  # closed gaps are drawn at this height in the figure of the search
SWEPT_LABELS = {"sweep_k": "terms k", "sweep_sigma": "concentration sigma", "sweep_m": "neighbors m"}


def draw_all(results: Results, directory: Path) -> list[str]:
    """Draw every figure for every protocol; return the names of the files without suffix."""
    drawings: dict[str, Callable[[Results, str], Any]] = {
        "figure-1-anchoring": anchoring,
        "figure-2-runtime": runtime,
        "figure-3-terms": lambda results, protocol: sweep(results, protocol, "sweep_k"),
        "figure-4-locality": lambda results, protocol: sweep(results, protocol, "sweep_sigma"),
        "figure-5-samples": lambda results, protocol: sweep(results, protocol, "sweep_m"),
        "anchoring-by-data-set": anchoring_by_dataset,
        "convergence": convergence,
    }
    names = []
    with _style():
        for protocol in results.protocols:
            for name, draw in drawings.items():
                names.append(f"{name}-{protocol}")
                _save(draw(results, protocol), directory / names[-1])
        names.append("anytime")
        _save(anytime(results), directory / "anytime")
    return names


def advantages(results: Results, protocol: str) -> Any:
    """Return LIME's relative fidelity advantage over exact and its anchoring gap, one row per task."""
    lime, exact = results.method("lime", protocol), results.method("exact", protocol)
    joined = lime[["anchoring_gap", "empirical_fidelity", "d"]].join(
        exact["empirical_fidelity"].rename("exact"), how="inner"
    )
    joined["advantage"] = 1 - joined["empirical_fidelity"] / joined["exact"]
    joined["kind"] = [published(i).kind for i in joined.index.get_level_values("dataset_id")]
    return joined[np.isfinite(joined["advantage"])]


def anchoring(results: Results, protocol: str) -> Any:
    """Draw Figure 1: LIME's advantage against its anchoring gap, colored by d."""
    from matplotlib.colors import LogNorm

    figure, axes = _subplots(1, 2, (10, 4.2), sharey=True)
    points, scatter = advantages(results, protocol), None
    for axis, (kind, title) in zip(axes, FAMILIES, strict=True):
        chosen = points[points["kind"] == kind]
        axis.axhline(0, color="0.6", linewidth=0.8)
        if len(chosen):
            scatter = axis.scatter(
                chosen["anchoring_gap"],
                chosen["advantage"],
                c=chosen["d"],
                norm=LogNorm(10, 700),
                cmap="cividis",
                edgecolor="white",
                linewidth=0.4,
            )
        axis.set_title(f"{title}: {len(chosen)} tasks, r = {correlation(chosen):.2f}")
        _list_missing(axis, results, kind)
        axis.set_xlabel("LIME's anchoring gap |w.x - f(x)|")
    axes[0].set_ylabel("LIME's relative fidelity advantage")
    if scatter is not None:
        figure.colorbar(scatter, ax=axes, label="literals d", ticks=[12, 40, 150, 640], format="%d")
    return figure


def correlation(points: Any) -> float:
    """Return Pearson's r of gap and advantage; NaN for fewer than three tasks."""
    if len(points) < 3:
        return float("nan")
    return float(np.corrcoef(points["anchoring_gap"], points["advantage"])[0, 1])


def runtime(results: Results, protocol: str) -> Any:
    """Draw Figure 2: seconds per explanation against d on log axes, with a least-squares line per method."""
    figure, axes = _subplots(1, 2, (10, 4.6), sharey=True)
    for axis, (kind, title) in zip(axes, FAMILIES, strict=True):
        for name, style in STYLES.items():
            by_dataset = (
                results.of_kind(name, protocol, kind).groupby(level="dataset_id")[["d", "cpu_seconds"]].mean()
            )
            if len(by_dataset):
                _log_line(axis, by_dataset["d"].to_numpy(), by_dataset["cpu_seconds"].to_numpy(), style)
        axis.set(xscale="log", yscale="log", xlabel="literals d", title=title)
        _list_missing(axis, results, kind)
        axis.set_xticks(
            [t for t in (10, 20, 50, 100, 200, 500, 1000) if axis.get_xlim()[0] <= t <= axis.get_xlim()[1]]
        )
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter("")
    axes[0].set_ylabel("processor seconds per explanation")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False)
    return figure


def _log_line(axis: Any, x: np.ndarray, y: np.ndarray, style: Style) -> None:
    axis.plot(x, y, style.marker, color=style.color, label=style.label)
    if len(x) > 1:
        slope, level = np.polyfit(np.log(x), np.log(y), 1)
        ends = np.array([x.min(), x.max()])
        axis.plot(ends, np.exp(level + slope * np.log(ends)), style.line, color=style.color, linewidth=1)


def sweep(results: Results, protocol: str, series: str) -> Any:
    """Draw Figure 3, 4 or 5: the relevance error against one parameter, with the standard error over instances."""
    from matplotlib.patches import Patch

    figure, axes = _subplots(2, 2, (9, 6.4))
    column = series.removeprefix("sweep_")
    rows = results.series(series, protocol)
    for axis, dataset_id in zip(axes.flat, SWEPT, strict=True):
        axis.set_title(published(dataset_id).name)
        here = rows[rows["dataset_id"] == dataset_id]
        if here.empty:
            _write_note(axis, "not in this run")
            continue
        for name in ("exact", "iht", "lime"):
            style, grouped = STYLES[name], here[here["method"] == name].groupby(column)["relevance"]
            mean, error = grouped.mean(), grouped.sem().fillna(0)
            axis.fill_between(mean.index, mean - error, mean + error, color=style.color, alpha=0.12, linewidth=0)
            axis.plot(mean.index, mean, style.line, marker=style.marker, color=style.color, label=style.label)
        axis.set_ylim(bottom=0)
        if series == "sweep_m":
            axis.set_xscale("log")
        axis.set_xlabel(SWEPT_LABELS[series])
        axis.set_ylabel("relevance error R")
    handles, _ = axes.flat[0].get_legend_handles_labels()
    band = Patch(color="0.5", alpha=0.3, linewidth=0, label="one standard error over instances")
    figure.legend(handles=[*handles, band], loc="outside lower center", ncols=4, frameon=False)
    return figure


def anchoring_by_dataset(results: Results, protocol: str) -> Any:
    """Draw Figure 1 with one panel per data set."""
    points = advantages(results, protocol)

    def draw(axis: Any, dataset_id: int) -> bool:
        chosen = points[points.index.get_level_values("dataset_id") == dataset_id]
        axis.axhline(0, color="0.6", linewidth=0.8)
        axis.plot(chosen["anchoring_gap"], chosen["advantage"], "o", color=STYLES["lime"].color, markersize=4)
        axis.set_xlim(
            left=-0.04 * chosen["anchoring_gap"].max() if len(chosen) else 0
        )  # leaves room for the marks at zero
        return len(chosen) > 0

    return _panel_per_dataset(draw, "LIME's anchoring gap |w.x - f(x)|", "LIME's relative fidelity advantage")


def convergence(results: Results, protocol: str) -> Any:
    """Draw the ratio of IHT's fidelity error to that of the optimum against sigma; both without the box."""
    rows = results.series("convergence", protocol)
    keys = ["dataset_id", "instance", "sigma"]
    iht, exact = (
        rows[rows["method"] == name].set_index(keys)["empirical_fidelity"] for name in ("iht", "exact without box")
    )
    ratios = (iht / exact).replace([np.inf, -np.inf], np.nan).dropna()

    def draw(axis: Any, dataset_id: int) -> bool:
        here = ratios[ratios.index.get_level_values("dataset_id") == dataset_id].groupby(level="sigma")
        mean, worst = here.mean(), here.max()
        axis.axhline(1, color="0.6", linewidth=0.8)
        axis.plot(mean.index, mean, "s--", color=STYLES["iht"].color, markersize=4, label="mean")
        axis.plot(worst.index, worst, ".:", color=STYLES["exact"].color, label="largest")
        return len(mean) > 0

    figure = _panel_per_dataset(draw, "concentration sigma", "IHT / optimum, empirical fidelity error")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False)
    return figure


def anytime(results: Results) -> Any:
    """Draw the relative gap of the exact solver against the number of nodes, with a mark where it is closed."""
    rows = results.series("anytime", synthetic=True)
    names = list(dict.fromkeys(rows["dataset"])) if len(rows) else ["no data set of this run"]
    n_columns = min(3, len(names))
    figure, axes = _subplots(-(-len(names) // n_columns), n_columns, (11, 6.4), squeeze=False)
    for axis in axes.flat[len(names) :]:
        axis.set_axis_off()
    for axis, name in zip(axes.flat, names, strict=False):
        axis.set_title(name)
        for k, style in ((5, STYLES["exact"]), (8, STYLES["lime"])):
            if len(rows):
                _anytime_lines(axis, rows[(rows["dataset"] == name) & (rows["k"] == k)], k, style)
        axis.set(xscale="log", yscale="log", ylim=(_CLOSED / 2, 1.5))
        axis.set(xlabel="nodes of the search", ylabel="remaining relative gap")
        axis.set_yticks([_CLOSED, 1e-3, 1e-2, 1e-1, 1], ["closed", "0.001", "0.01", "0.1", "1"])
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _anytime_lines(axis: Any, rows: Any, k: int, style: Style) -> None:
    """Draw one line per instance; a closed gap, or one too small for the axis, is drawn at its lower end."""
    for i, (_, run) in enumerate(rows[rows["node_limit"] > 0].groupby("instance")):
        gaps = (run["empirical_fidelity"] - run["lower_bound"]) / run["empirical_fidelity"].iloc[-1]
        gaps, label = gaps.clip(_CLOSED, 1), f"k = {k}" if i == 0 else None
        axis.plot(run["n_nodes"], gaps, style.line, color=style.color, alpha=0.8, label=label)
        if run["status"].iloc[-1] == "OPTIMAL":
            axis.plot(run["n_nodes"].iloc[-1], _CLOSED, style.marker, color=style.color, markersize=4)


def _panel_per_dataset(draw: Callable[[Any, int], bool], xlabel: str, ylabel: str) -> Any:
    """Draw one panel per data set of the paper; a panel without rows has a note."""
    figure, axes = _subplots(4, 4, (11, 9))
    for axis, row in zip(axes.flat, PUBLISHED, strict=True):
        axis.set_title(row.name, fontsize=9)
        if not draw(axis, row.id):
            _write_note(axis, f"OpenML {row.id}:\nnot among the data of this run")
    figure.supxlabel(xlabel)
    figure.supylabel(ylabel)
    return figure


def _write_note(axis: Any, text: str) -> None:
    title, size = axis.get_title(), axis.title.get_fontsize()
    axis.clear()
    axis.set(xticks=[], yticks=[])
    axis.set_title(title, fontsize=size)
    axis.text(0.5, 0.5, text, ha="center", va="center", transform=axis.transAxes, color="0.35", fontsize=9)


def _list_missing(axis: Any, results: Results, kind: str) -> None:
    """List the missing data sets in the corner that these figures leave empty."""
    names = [row.name for row in results.missing if row.kind == kind]
    if names:
        text = f"without {', '.join(names) if len(names) <= 2 else f'{len(names)} data sets'}"
        axis.text(0.02, 0.98, text, va="top", transform=axis.transAxes, color="0.35", fontsize=8)


def _save(figure: Any, stem: Path) -> None:
    for suffix, options in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 110})):
        content = io.BytesIO()
        figure.savefig(content, format=suffix, **options)
        write(stem.with_suffix(f".{suffix}"), content.getvalue())


@contextmanager
def _style() -> Iterator[None]:
    """Set the style of the axes, and make the bytes of the files reproducible."""
    settings = {"svg.hashsalt": "anchorline", "axes.spines.top": False, "axes.spines.right": False, "font.size": 9}
    with _matplotlib().rc_context(settings):
        yield


def _subplots(n_rows: int, n_columns: int, size: tuple[float, float], **options: Any) -> tuple[Any, Any]:
    """Return a figure and its axes without pyplot, which would change global state and could open a window."""
    _matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, **options)


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError as cause:
        raise MissingDependencyError.for_package("matplotlib", "plot") from cause
    return matplotlib
