"""One sum: as a waterfall from the starting level to the prediction, and as bars from a common zero."""

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from matplotlib.axes import Axes

from anchorline.render.plots.canvas import (
    MINUS_STYLE,
    NEUTRAL,
    PLAIN_TEXT,
    PLUS_STYLE,
    axes_or_new,
    figure_height,
    final_width,
    label_rows,
    name_width,
    outline,
    reduce_frame,
    set_headline,
    text_width,
    with_minus_sign,
    wrap_name,
)
from anchorline.render.summands import Summand, Summands, axis_name, summands
from anchorline.render.trust import short_claim

if TYPE_CHECKING:
    from anchorline.result.explanation import Explanation

_WIDTH, _EXTRA = 8.0, 1.35  # inches
_BAR = 0.62  # height of a bar per height of a row
_ROOM = 0.16  # smallest room for the numbers right of the bars, per span of the bars
_DIGIT = 0.68  # width of a bold digit per font size


def draw_waterfall(explanation: "Explanation", ax: Axes | None) -> Axes:
    """Draw one sum as steps; see `anchorline.render.plot.waterfall`."""
    total = summands(explanation)
    start = [] if total.intercept is None else [total.intercept]
    names = _names((*start, *total.terms, total.total), ax)
    ax = axes_or_new(ax, _WIDTH, figure_height(names, _EXTRA))
    size = label_rows(ax, names)
    ax.get_yticklabels()[-1].set_fontweight("bold")
    base = 0.0 if total.intercept is None else total.intercept.value
    levels = list(accumulate((part.value for part in total.terms), initial=base))
    levels[-1] = total.total.value  # removes the rounding error of the running sum
    _limit(ax, levels if start else [0.0, *levels], total, size)
    ax.axvline(total.total.value, color=NEUTRAL, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0.9)
    if start:
        ax.plot([base], [0], marker="o", color=NEUTRAL, markersize=7, linestyle="none", zorder=3)
        _number(ax, base, 0, with_minus_sign(start[0].number), size)
    for row, (part, before, after) in enumerate(
        zip(total.terms, levels, levels[1:], strict=False), start=len(start)
    ):
        _bar(ax, row, part, before)
        _number(ax, max(before, after), row, with_minus_sign(part.signed), size)
    _links(ax, levels, first=len(start) - 1)
    end = len(names) - 1
    ax.plot([total.total.value], [end], marker="D", color=NEUTRAL, markersize=8, linestyle="none", zorder=3)
    _number(ax, total.total.value, end, with_minus_sign(total.total.number), size, bold=True)
    _finish(ax, explanation, total, "")
    return ax


def draw_bars(explanation: "Explanation", ax: Axes | None) -> Axes:
    """Draw one sum as bars; see `anchorline.render.plot.bars`."""
    total = summands(explanation)
    names = _names(total.parts, ax) or ["(no terms)"]
    ax = axes_or_new(ax, _WIDTH, figure_height(names, _EXTRA))
    size = label_rows(ax, names)
    _limit(ax, [0.0, *(part.value for part in total.parts)], total, size)
    ax.axvline(0, color=NEUTRAL, linewidth=1, zorder=1.5)
    for row, part in enumerate(total.parts):
        _bar(ax, row, part, 0.0)
        # The number of a bar to the left goes right of zero, because the names are left of the bar.
        _number(ax, max(0.0, part.value), row, with_minus_sign(part.signed), size)
    _finish(ax, explanation, total, "contribution to ")
    return ax


def _names(parts: Sequence[Summand], ax: Axes | None) -> list[str]:
    return [wrap_name(part.text, name_width(ax), part.name) for part in parts]


def _bar(ax: Axes, row: int, part: Summand, start: float) -> None:
    style = PLUS_STYLE if part.value > 0 else MINUS_STYLE
    ax.barh(row, part.value, left=start, height=_BAR, zorder=2, label="_" + part.signed, **style)


def _links(ax: Axes, levels: list[float], first: int) -> None:
    """Draw thin lines from the end of each bar to the start of the next, down to the prediction."""
    for row, level in enumerate(levels, start=first):
        if row >= 0:
            ax.plot([level, level], [row, row + 1], color=NEUTRAL, linewidth=0.8, zorder=1)


def _number(ax: Axes, x: float, row: int, text: str, size: float, *, bold: bool = False) -> None:
    label = ax.annotate(
        text,
        (x, row),
        xytext=(9 if bold else 7, 0),
        textcoords="offset points",
        ha="left",
        va="center",
        fontsize=size,
        fontweight="bold" if bold else "normal",
        zorder=4,
        **PLAIN_TEXT,
    )
    outline(label, ax)


def _limit(ax: Axes, levels: list[float], total: Summands, size: float) -> None:
    """Set the limits of the axis, with room for numbers right of the bars and a scale if all values are equal."""
    low, high = min(levels), max(levels)
    span = high - low or abs(high) or 1.0
    longest = max(len(part.signed) for part in (*total.parts, total.total))
    share = min(0.6, (_DIGIT * size * longest + 12) / final_width(ax))
    ax.set_xlim(low - 0.04 * span, high + max(_ROOM, 1.04 * share / (1 - share)) * span)


def _finish(ax: Axes, explanation: "Explanation", total: Summands, before: str) -> None:
    reduce_frame(ax)
    name = total.total.name
    ax.set_xlabel(wrap_name(before + axis_name(explanation), text_width(ax), name), **PLAIN_TEXT)
    title = f"{total.total.text} = {with_minus_sign(total.total.number)}"
    set_headline(ax, title, short_claim(explanation.certificate), name)
