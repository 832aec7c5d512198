"""Several sums: those that cannot be told apart, and those of many rows."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from anchorline.errors import ParameterError
from anchorline.render.characters import printable
from anchorline.render.plots.canvas import (
    LITERALLY,
    MINUS_STYLE,
    PLUS_STYLE,
    QUIET,
    axes_or_new,
    headline,
    label_rows,
    minus_sign,
    name_cells,
    name_lines,
    outlined,
    quiet_frame,
    rows_height,
    text_cells,
)
from anchorline.render.summands import INTERCEPT, adding_up, head, output_name

if TYPE_CHECKING:
    from anchorline.guarantees import Estimate
    from anchorline.result.explanation import Explanation

_EXTRA = 1.7  # inches for title and axis
_HALF = 0.40  # of a column, the longest bar on each side of its zero
_MAX_ATTRIBUTES = 15


def draw_alternatives(explanation: "Explanation", ax: Axes | None) -> Axes:
    """See `anchorline.render.plot.alternatives`."""
    sums = _sums(explanation)
    rows = _rows(explanation, sums)
    literals = [None if j < 0 else explanation.literals[j] for j in rows]
    names = [
        INTERCEPT if one is None else name_lines(printable(one.text), name_cells(ax), printable(one.name))
        for one in literals
    ]
    ax = axes_or_new(ax, max(6.0, 3.0 + 1.5 * len(sums)), rows_height(names, _EXTRA + 0.3))
    size = min(label_rows(ax, names), 9.0)
    # The intercept is a level, not a reason: beside its bar the others would vanish, so it has none.
    largest = max((abs(value) for values in sums for j, value in values.items() if j >= 0), default=1.0)
    printed = [adding_up(list(values.values()), explanation.prediction) for values in sums]
    for column, (values, (numbers, _)) in enumerate(zip(sums, printed, strict=True)):
        ax.plot([column, column], [-0.5, len(rows) - 0.5], color=QUIET, linewidth=0.8, zorder=1)
        for j, number in zip(values, numbers, strict=True):
            _cell(ax, column, rows.index(j), values[j] / largest if j >= 0 else 0.0, number, size)
    excesses = [other.excess for other in explanation.alternatives]
    ticks = ["this\nexplanation", *(_excess(i, excess) for i, excess in enumerate(excesses, 1))]
    ax.set_xticks(range(len(sums)), [minus_sign(tick) for tick in ticks], fontsize=8.5)
    ax.tick_params(axis="x", length=0)
    ax.set_xlim(-0.6, len(sums) - 0.4)
    ax.spines[:].set_visible(False)
    if excesses:
        label = "excess of its fidelity error over the explanation's, with interval"
        ax.set_xlabel(name_lines(label, text_cells(ax)))
    told = "The evidence cannot tell these sums apart" if excesses else "There are no alternatives to show"
    title = f"Sums that all add up to {head(explanation)} = {minus_sign(printed[0][1])}"
    headline(ax, title, told, printable(explanation.output))
    return ax


def _excess(number: int, excess: "Estimate") -> str:
    ends = "" if excess.exact else f"\n({excess.low:+.2g} to {excess.high:+.2g})"
    return f"alternative {number}\n{excess.value:+.2g}{ends}"


def _sums(explanation: "Explanation") -> list[dict[int, float]]:
    """Contributions by literal, largest first, of explanation and alternatives; the intercept last, as -1."""
    sums = [{term.index: term.contribution for term in explanation.terms} | {-1: explanation.intercept}]
    for other in explanation.alternatives:
        pairs = sorted(zip(other.support, other.values, strict=True), key=lambda pair: -abs(pair[1]))
        sums.append(dict(pairs) | {-1: other.intercept})
    return [{j: value for j, value in values.items() if value != 0} for values in sums]


def _rows(explanation: "Explanation", sums: list[dict[int, float]]) -> list[int]:
    """Literals in most sums first, then the largest; the intercept last."""
    counts: dict[int, int] = defaultdict(int)
    sizes: dict[int, float] = defaultdict(float)
    for values in sums:
        for j, value in values.items():
            counts[j] += 1
            sizes[j] = max(sizes[j], abs(value))
    return sorted(counts, key=lambda j: (j < 0, -counts[j], -sizes[j]))


def _cell(ax: Axes, column: int, row: int, share: float, number: str, size: float) -> None:
    """A small bar from the zero of its column, and its number on the empty side; a number alone without share."""
    signed = minus_sign(number if number.startswith("-") or not share else f"+{number}")
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
        **LITERALLY,
    )
    outlined(text, ax)


def draw_summary(explanations: Sequence["Explanation"], ax: Axes | None) -> Axes:
    """See `anchorline.render.plot.summary`."""
    if not explanations:
        raise ParameterError("Got no explanations; a summary needs at least one.")
    found: dict[str, list[float]] = defaultdict(list)
    for explanation in explanations:
        for term in explanation.terms:
            found[printable(term.literal.name)].append(term.contribution)
    order = sorted(found, key=lambda name: (-len(found[name]), -float(np.median(np.abs(found[name]))), name))
    kept = order[:_MAX_ATTRIBUTES]
    names = [name_lines(name, name_cells(ax)) for name in kept] or ["(nothing)"]
    ax = axes_or_new(ax, 8.0, rows_height(names, _EXTRA))
    size = label_rows(ax, names)
    ax.axvline(0, color=QUIET, linewidth=1, zorder=1)
    for row, name in enumerate(kept):
        _attribute(ax, row, np.array(found[name]), len(explanations), size)
    outputs = {output_name(explanation) for explanation in explanations}
    label = f"contribution to {outputs.pop()}" if len(outputs) == 1 else "contribution, each to its own output"
    ax.set_xlabel(name_lines(label, text_cells(ax)), **LITERALLY)
    ax.margins(x=0.08)
    quiet_frame(ax)
    more = f"; {len(order) - len(kept)} rarer ones not shown" if len(order) > len(kept) else ""
    told = f"Bars: typical size (median) when it adds or takes away; dots: single rows; right: in how many{more}"
    headline(ax, f"What decides {len(explanations):,} predictions", told)
    return ax


def _attribute(ax: Axes, row: int, values: np.ndarray, n_explanations: int, size: float) -> None:
    """Typical sizes on each side of zero, the single contributions as dots, and the count."""
    for side, style in ((values[values > 0], PLUS_STYLE), (values[values < 0], MINUS_STYLE)):
        if len(side):
            ax.barh(row, float(np.median(side)), height=0.56, zorder=2, **style)
    ink = ax.xaxis.label.get_color()  # the text's: legible whatever style the reader chose
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
