"""The two pictures of the README, and one of growth: ``python -m benchmarks.chart``.

The waterfall is drawn by the README's own code. All figures are those of the recorded results; none is typed.
"""

import contextlib
import doctest
import json
import statistics
from pathlib import Path
from typing import Any, NamedTuple

Row = dict[str, Any]
ROOT = Path(__file__).resolve().parent.parent
RESULTS, GALLERY = ROOT / "benchmarks" / "results", ROOT / "docs" / "gallery"
OURS, THEIRS = "#0072B2", "#D55E00"  # of Okabe and Ito, for color-blind readers
_STYLE: Any = {"svg.hashsalt": "anchorline", "font.size": 10}


class Ratio(NamedTuple):
    """One bar: above 1, anchorline has the better figure."""

    what: str
    against: str
    times: float


def ratios(results: Path = RESULTS) -> list[Ratio]:
    """Return the ratios, theirs over ours, of all data sets and models together."""
    facts, fit, speed = (_rows(results, name) for name in ("facts", "fit", "speed"))
    found = []
    for law, what in (
        ("all rows", "Error left while the facts hold"),
        ("nearest rows", "... with values of similar rows"),
    ):
        row = _only([row for row in facts if (row["law"], row["facts"]) == (law, 3)])
        methods = {"LIME": "lime", "KernelSHAP": "kernel_shap", "TreeSHAP": "tree_shap"}
        found += [Ratio(what, name, row[key] / row["ours"]) for name, key in methods.items()]
    row = _only(fit)
    found.append(Ratio("Error of fit with refitted effects", "LIME", row["lime"] / row["ours"]))
    for figure, against in (
        ("explain over KernelSHAP", "KernelSHAP"),
        ("explain over KernelSHAP, equal queries", "KernelSHAP, as many queries"),
        ("search over TreeSHAP", "TreeSHAP, search alone"),
    ):
        ours = statistics.median(row["reached"] for row in speed if row["figure"] == figure)
        found.append(Ratio("Seconds per explanation", against, 1 / ours))
    return found


def described(found: list[Ratio]) -> str:
    """Return the ratios as text, which the picture contains."""
    return "; ".join(f"{each.what}, {each.against}: {each.times:.2f}" for each in found)


def draw_ratios(file: Path, found: list[Ratio]) -> None:
    """Draw one bar per ratio on a logarithmic axis, from 1 to the side of the better method."""
    from matplotlib import pyplot, rc_context
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    with rc_context(_STYLE):
        figure, ax = pyplot.subplots(figsize=(8, 0.36 * len(found) + 0.9), layout="constrained")
        for position, each in enumerate(found):
            better = each.times > 1
            ax.barh(
                position,
                each.times - 1,
                left=1,
                height=0.62,
                color=OURS if better else "white",
                edgecolor=OURS if better else THEIRS,
                hatch=None if better else "////",
            )
            times = f"{each.times:.1f}x" if better else f"1/{1 / each.times:.1f}"
            place: Row = {"ha": "left", "xytext": (4, 0)} if better else {"ha": "right", "xytext": (-4, 0)}
            ax.annotate(times, (each.times, position), textcoords="offset points", va="center", **place)
        ax.axvline(1, color="black", linewidth=0.8)
        ax.set_xscale("log")
        ends = [each.times for each in found]
        ax.set_xlim(min(ends) / 2, max(ends) * 2)
        ax.xaxis.set_major_locator(FixedLocator([0.1, 0.2, 0.5, 1, 2, 5, 10]))
        ax.xaxis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:g}" if value >= 1 else f"1/{1 / value:g}")
        )
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_yticks(range(len(found)), [f"{each.what}: {each.against}" for each in found])
        ax.invert_yaxis()
        ax.set_xlabel("their figure / ours    (hatched: the other method is better)")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        figure.savefig(file, metadata={"Date": None, "Description": described(found)})
        pyplot.close(figure)


def curves(results: Path = RESULTS) -> dict[str, list[Row]]:
    """Return the points of each curve."""
    found: dict[str, list[Row]] = {}
    for row in _rows(results, "growth"):
        found.setdefault(row["along"], []).append(row)
    return found


def pointed(found: dict[str, list[Row]]) -> str:
    """Return the points as text, which the picture contains."""
    points = [f"{each['size']} {along}: {each['seconds']:.3f} s" for along, rows in found.items() for each in rows]
    return "; ".join(points)


def draw_growth(file: Path, found: dict[str, list[Row]]) -> None:
    """Draw the time and the memory of an explanation against rows, columns and facts."""
    from matplotlib import pyplot, rc_context

    with rc_context(_STYLE):
        figure, axes = pyplot.subplots(
            2, len(found), figsize=(8, 4.4), sharex="col", sharey="row", squeeze=False, layout="constrained"
        )
        for (top, below), (along, rows) in zip(axes.T, found.items(), strict=True):
            sizes = [row["size"] for row in rows]
            top.plot(sizes, [row["seconds"] for row in rows], "o-", color=OURS, label="an explanation")
            top.plot(sizes, [row["model_alone"] for row in rows], "s--", color=THEIRS, label="the model's part")
            below.plot(sizes, [row["memory_mb"] for row in rows], "o-", color=OURS)
            top.set(xscale="log", yscale="log")
            below.set(xscale="log", yscale="log", xlabel={"rows": "rows of the table"}.get(along, along))
            below.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=8)
            for ax in (top, below):
                ax.minorticks_off()
                ax.spines[["top", "right"]].set_visible(False)
                ax.grid(axis="y", linewidth=0.4)
        axes[0, 0].set_ylabel("processor seconds")
        axes[1, 0].set_ylabel("memory, MB")
        axes[0, 0].legend(frameon=False, loc="upper left")
        figure.savefig(file, metadata={"Date": None, "Description": pointed(found)})
        pyplot.close(figure)


def draw_why(file: Path, page: Path = ROOT / "README.md") -> None:
    """Run the README's first example and save the plot that it draws."""
    from matplotlib import pyplot, rc_context

    with rc_context(_STYLE):
        block = page.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
        names: Row = {}
        with contextlib.redirect_stdout(None):
            for example in doctest.DocTestParser().get_examples(block):
                exec(compile(example.source, str(page), "exec"), names)
        text = {"Date": None, "Description": str(names["e"])}
        names["axes"].figure.savefig(file, metadata=text, bbox_inches="tight")
        pyplot.close("all")


def _rows(results: Path, name: str) -> list[Row]:
    rows: list[Row] = json.loads((results / f"{name}.json").read_text(encoding="utf-8"))["rows"]
    return rows


def _only(rows: list[Row]) -> Row:
    (row,) = (row for row in rows if row["table"] == "all")
    return row


if __name__ == "__main__":
    draw_why(GALLERY / "why.svg")
    draw_ratios(GALLERY / "ratios.svg", ratios())
    draw_growth(GALLERY / "growth.svg", curves())
