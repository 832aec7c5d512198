"""Several sums: alternatives that the evidence cannot distinguish, and a summary of many rows."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from anchorline.errors import ParameterError
from anchorline.render.characters import printable
from anchorline.render.plots.canvas import (
    MINUS_STYLE,
    NEUTRAL,
    PLAIN_TEXT,
    PLUS_STYLE,
    axes_or_new,
    figure_height,
    label_rows,
    name_width,
    outline,
    reduce_frame,
    set_headline,
    text_width,
    with_minus_sign,
    wrap_name,
)
from anchorline.render.summands import STARTING_LEVEL, output_name, round_preserving_sum, total_name
from anchorline.result.summary import by_attribute

if TYPE_CHECKING:
    from anchorline.guarantees import Estimate
    from anchorline.result.explanation import Explanation

_EXTRA = 1.7  # inches for title and axis
_HALF = 0.40  # longest bar on each side of zero, as a share of a column
_MAX_ATTRIBUTES = 15


def draw_alternatives(explanation: "Explanation", ax: Axes | None) -> Axes:
    """Draw several sums of one row side by side; see `anchorline.render.plot.alternatives`."""
    sums = _sums(explanation)
    rows = _rows(explanation, sums)
    literals = [None if j < 0 else explanation.literals[j] for j in rows]
    names = [
        STARTING_LEVEL if one is None else wrap_name(printable(one.text), name_width(ax), printable(one.name))
        for one in literals
    ]
    ax = axes_or_new(ax, max(6.0, 3.0 + 1.5 * len(sums)), figure_height(names, _EXTRA + 0.3))
    size = min(label_rows(ax, names), 9.0)
    # The intercept is not a reason, and its bar would dwarf the others, so only its number is shown.
    largest = max((abs(value) for values in sums for j, value in values.items() if j >= 0), default=1.0)
    printed = [round_preserving_sum(list(values.values()), explanation.prediction) for values in sums]
    for column, (values, (numbers, _)) in enumerate(zip(sums, printed, strict=True)):
        ax.plot([column, column], [-0.5, len(rows) - 0.5], color=NEUTRAL, linewidth=0.8, zorder=1)
        for j, number in zip(values, numbers, strict=True):
            _cell(ax, column, rows.index(j), values[j] / largest if j >= 0 else 0.0, number, size)
    excesses = [other.excess for other in explanation.alternatives]
    ticks = ["this\nexplanation", *(_alternative_label(i, excess) for i, excess in enumerate(excesses, 1))]
    ax.set_xticks(range(len(sums)), [with_minus_sign(tick) for tick in ticks], fontsize=8.5)
    ax.tick_params(axis="x", length=0)
    ax.set_xlim(-0.6, len(sums) - 0.4)
    ax.spines[:].set_visible(False)
    if excesses:
        label = "how far its fidelity error exceeds the explanation's (with interval)"
        ax.set_xlabel(wrap_name(label, text_width(ax)))
    subtitle = "The evidence cannot distinguish these sums" if excesses else "There are no alternatives to show"
    if explanation.alternatives_complete is False:
        subtitle += ", and there may be more" if excesses else "; the search was not complete"
    title = f"Sums that all add up to {total_name(explanation)} = {with_minus_sign(printed[0][1])}"
    set_headline(ax, title, subtitle, printable(explanation.output))
    return ax


def _alternative_label(number: int, excess: "Estimate") -> str:
    ends = "" if excess.exact else f"\n({excess.low:+.2g} to {excess.high:+.2g})"
    return f"alternative {number}\n{excess.value:+.2g}{ends}"


def _sums(explanation: "Explanation") -> list[dict[int, float]]:
    """Return one dictionary per sum: contribution by literal, largest first; the intercept is last, as -1."""
    sums = [{term.index: term.contribution for term in explanation.terms} | {-1: explanation.intercept}]
    for other in explanation.alternatives:
        pairs = sorted(zip(other.support, other.values, strict=True), key=lambda pair: -abs(pair[1]))
        sums.append(dict(pairs) | {-1: other.intercept})
    return [{j: value for j, value in values.items() if value != 0} for values in sums]


def _rows(explanation: "Explanation", sums: list[dict[int, float]]) -> list[int]:
    """Return the literals by how many sums contain them, then by size; the intercept is last."""
    counts: dict[int, int] = defaultdict(int)
    sizes: dict[int, float] = defaultdict(float)
    for values in sums:
        for j, value in values.items():
            counts[j] += 1
            sizes[j] = max(sizes[j], abs(value))
    return sorted(counts, key=lambda j: (j < 0, -counts[j], -sizes[j]))


def _cell(ax: Axes, column: int, row: int, share: float, number: str, size: float) -> None:
    """Draw a bar from the zero of its column and the number on the other side; if share is 0, the number only."""
    signed = with_minus_sign(number if number.startswith("-") or not share else f"+{number}")
    if share:
        style = PLUS_STYLE if share > 0 else MINUS_STYLE
        ax.barh(row, _HALF * share, left=column, height=0.5, zorder=2, **style)
    side = float(np.sign(share))
    text = ax.annotate(
        signed,
        (column, row),
        xytext=(-4 * side, 0),
        textcoords="offset points",
        ha={1.0: "right", 0.0: "center", -1.0: "left"}[side],
        va="center",
        fontsize=size,
        **PLAIN_TEXT,
    )
    outline(text, ax)


def draw_summary(explanations: Sequence["Explanation"], ax: Axes | None) -> Axes:
    """Draw contributions by attribute over many rows; see `anchorline.render.plot.summary`."""
    if not explanations:
        raise ParameterError("The list of explanations is empty. A summary needs at least one explanation.")
    contributions: dict[str, list[float]] = defaultdict(list)
    for explanation in explanations:
        for name, total in by_attribute(explanation).items():
            contributions[printable(name)].append(total)
    order = sorted(
        contributions,
        key=lambda name: (-len(contributions[name]), -float(np.median(np.abs(contributions[name]))), name),
    )
    kept = order[:_MAX_ATTRIBUTES]
    names = [wrap_name(name, name_width(ax)) for name in kept] or ["(no terms)"]
    ax = axes_or_new(ax, 8.0, figure_height(names, _EXTRA))
    size = label_rows(ax, names)
    ax.axvline(0, color=NEUTRAL, linewidth=1, zorder=1)
    for row, name in enumerate(kept):
        _attribute(ax, row, np.array(contributions[name]), len(explanations), size)
    outputs = {output_name(explanation) for explanation in explanations}
    label = f"contribution to {outputs.pop()}" if len(outputs) == 1 else "contribution, each to its own output"
    ax.set_xlabel(wrap_name(label, text_width(ax)), **PLAIN_TEXT)
    ax.margins(x=0.08)
    reduce_frame(ax)
    n_more = len(order) - len(kept)
    more = f". {n_more} rarer {'one is' if n_more == 1 else 'ones are'} not shown" if n_more else ""
    subtitle = f"Bars: median contribution of each sign. Dots: single rows. Right: rows with this reason{more}"
    set_headline(ax, f"What decides {len(explanations):,} predictions", subtitle)
    return ax


def _attribute(ax: Axes, row: int, values: np.ndarray, n_explanations: int, size: float) -> None:
    """Draw the median on each side of zero, the single contributions as dots, and the count."""
    for side, style in ((values[values > 0], PLUS_STYLE), (values[values < 0], MINUS_STYLE)):
        if len(side):
            ax.barh(row, float(np.median(side)), height=0.56, zorder=2, **style)
    ink = ax.xaxis.label.get_color()  # the color of text is legible in every style sheet
    spread = (np.arange(len(values)) * 0.618 % 1 - 0.5) * 0.4
    ax.scatter(
        values, row + spread, s=9, color=ink, edgecolors=ax.get_facecolor(), linewidths=0.4, alpha=0.75, zorder=3
    )
    ax.annotate(
        f"{len(values):,} of {n_explanations:,}",
        (1, row),
        xytext=(6, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        fontsize=min(size, 9.0),
        annotation_clip=False,
    )
