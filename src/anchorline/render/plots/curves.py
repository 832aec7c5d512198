"""Curves: errors over the number of terms, and the decrease of the output over the number of flips."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from anchorline.optimize.problem import Status
from anchorline.render.characters import printable
from anchorline.render.chart import BEYOND_AXIS, axis_end
from anchorline.render.plots.canvas import (
    MINUS,
    NEUTRAL,
    PLAIN_TEXT,
    PLUS,
    axes_or_new,
    reduce_frame,
    set_headline,
    with_minus_sign,
    wrap_name,
)

if TYPE_CHECKING:
    from anchorline.guarantees import Estimate
    from anchorline.render.frontier_like import FrontierLike
    from anchorline.result.neighbors import NeighborSample

_WIDTH, _HEIGHT = 7.2, 4.2  # inches
_MAX_DOTS, _MAX_TICKS = 2000, 20  # more would overlap
_GOLDEN = (5**0.5 - 1) / 2  # its multiples fill an interval evenly, which gives a reproducible jitter
_SERIES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("fidelity_error", "fidelity error of the sum", {"color": PLUS, "marker": "o", "linestyle": "-"}),
    (
        "relevance_error",
        "relevance error while the reasons stay",
        {"color": MINUS, "marker": "s", "linestyle": (0, (5, 2))},
    ),
)


def draw_frontier(frontier: "FrontierLike", ax: Axes | None) -> Axes:
    """Draw errors over k; see `anchorline.render.plot.frontier`."""
    ax = axes_or_new(ax, _WIDTH, _HEIGHT)
    ks = [point.k for point in frontier.points]
    proved = [point.status is Status.OPTIMAL for point in frontier.points]
    measured = False
    for field, label, style in _SERIES:
        estimates = [getattr(point, field) for point in frontier.points]
        if any(estimate is not None for estimate in estimates):
            _curve(ax, ks, estimates, proved, label, style)
            measured = True
    if not measured:
        ax.plot(
            ks,
            [point.objective for point in frontier.points],
            label="fidelity error on the sample",
            **_SERIES[0][2],
        )
    ax.set_xticks(ks[:: -(-len(ks) // _MAX_TICKS)])
    ax.set_xlim(min(ks) - 0.4, max(ks) + 0.4)
    highest, cuts_bands = axis_end(frontier)
    ax.set_ylim(0, 1.05 * highest if measured else None)
    ax.set_xlabel("k: maximum number of terms, starting level included")
    ax.set_ylabel("mean squared error\n(output scaled to [\N{MINUS SIGN}1, +1])")
    reduce_frame(ax, grid="y")
    _legend_below(ax)
    note = f"Bands hold together with {100 * frontier.confidence:g}% confidence" if measured else "Not certified"
    note += BEYOND_AXIS if cuts_bands else ""
    note += "" if all(proved) else "; hollow points are not proved best"
    note += "; outputs were clipped, so errors may be larger" if frontier.warnings else ""
    set_headline(ax, "How many reasons are needed?", note)
    return ax


def _curve(
    ax: Axes,
    ks: list[int],
    estimates: list["Estimate | None"],
    proved: list[bool],
    label: str,
    style: dict[str, Any],
) -> None:
    value, low, high = (
        np.array([getattr(estimate, end, np.nan) for estimate in estimates]) for end in ("value", "low", "high")
    )
    ax.fill_between(ks, low, high, color=style["color"], alpha=0.18, linewidth=0)
    ax.errorbar(
        ks, value, yerr=[value - low, high - value], fmt="none", ecolor=style["color"], elinewidth=1, capsize=3
    )
    ax.plot(ks, value, label=label, markersize=6, **style)
    hollow_ks = [k for k, is_proved in zip(ks, proved, strict=True) if not is_proved]
    hollow_values = [number for number, is_proved in zip(value, proved, strict=True) if not is_proved]
    ax.plot(
        hollow_ks,
        hollow_values,
        linestyle="none",
        marker=style["marker"],
        markersize=6,
        markerfacecolor=ax.get_facecolor(),
        markeredgecolor=style["color"],
    )


def draw_neighborhood(sample: "NeighborSample", ax: Axes | None) -> Axes:
    """Draw neighbors over their number of flips; see `anchorline.render.plot.neighborhood`."""
    ax = axes_or_new(ax, _WIDTH, _HEIGHT)
    n_flips = np.asarray(sample.n_flips)
    decreases = sample.prediction - np.asarray(sample.outputs, dtype=np.float64)
    sums = sample.prediction - np.asarray(sample.sums, dtype=np.float64)
    visible = slice(None, _MAX_DOTS)
    jitter = (np.arange(len(n_flips)) * _GOLDEN % 1 - 0.5) * 0.6
    ax.scatter(
        n_flips[visible] + jitter[visible],
        decreases[visible],
        s=7,
        color=NEUTRAL,
        alpha=0.35,
        linewidths=0,
        label="one neighbor",
    )
    levels = np.unique(n_flips)
    for values, label, style in (
        (decreases, "mean of the model", _SERIES[0][2]),
        (sums, "mean of the sum", _SERIES[1][2]),
    ):
        means = [float(values[n_flips == level].mean()) for level in levels]
        ax.plot(levels, means, label=label, markersize=5, **style)
    ax.axhline(0, color=NEUTRAL, linewidth=1, zorder=1)
    name = printable(sample.output)
    ax.set_xlabel("number of flips (literals that the neighbor breaks)")
    ax.set_ylabel(
        "\n".join([wrap_name(f"decrease in {name}", 34), "(prediction \N{MINUS SIGN} output)"]), **PLAIN_TEXT
    )
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    reduce_frame(ax, grid="y")
    _legend_below(ax)
    subtitle = _sample_text(name, sample.prediction, len(n_flips))
    set_headline(ax, "How the output moves as neighbors break literals", subtitle)
    return ax


def _legend_below(ax: Axes) -> None:
    """Place the legend under the axis, where it cannot cover data."""
    ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=3, fontsize=9, markerscale=1.2)


def _sample_text(name: str, prediction: float, n: int) -> str:
    dots = f"{n:,} neighbors" if n <= _MAX_DOTS else f"{n:,} neighbors, {_MAX_DOTS:,} of them shown"
    return f"{name} = {with_minus_sign(f'{prediction:.4g}')} at the instance; {dots}"
