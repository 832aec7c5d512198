"""One sum: as a waterfall from the intercept to the prediction, and as bars from a common zero."""

from itertools import accumulate
from typing import TYPE_CHECKING

from matplotlib.axes import Axes

from anchorline.render.plots.canvas import (
    LITERALLY,
    MINUS_STYLE,
    PLUS_STYLE,
    QUIET,
    axes_or_new,
    headline,
    label_rows,
    minus_sign,
    name_lines,
    outlined,
    quiet_frame,
    rows_height,
)
from anchorline.render.summands import Summand, Summands, axis_name, summands
from anchorline.render.text import short_claim

if TYPE_CHECKING:
    from anchorline.explanation import Explanation

_WIDTH, _EXTRA = 8.0, 1.35  # inches
_BAR = 0.62  # of a row
_ROOM = 0.16  # of the axis, on each side, for numbers beside the bars


def draw_waterfall(explanation: "Explanation", ax: Axes | None) -> Axes:
    """See `anchorline.render.plot.waterfall`."""
    total = summands(explanation)
    start = [] if total.intercept is None else [total.intercept]
    names = [name_lines(part.text) for part in (*start, *total.terms, total.total)]
    ax = axes_or_new(ax, _WIDTH, rows_height(names, _EXTRA))
    size = label_rows(ax, names)
    ax.get_yticklabels()[-1].set_fontweight("bold")
    base = 0.0 if total.intercept is None else total.intercept.value
    levels = list(accumulate((part.value for part in total.terms), initial=base))
    levels[-1] = total.total.value  # the same but for the last bits
    _limit(ax, levels if start else [0.0, *levels])
    ax.axvline(total.total.value, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0.9)
    if start:
        ax.plot([base], [0], marker="o", color=QUIET, markersize=7, linestyle="none", zorder=3)
        _number(ax, base, 0, minus_sign(start[0].number), size)
    for row, (part, before, after) in enumerate(
        zip(total.terms, levels, levels[1:], strict=False), start=len(start)
    ):
        _bar(ax, row, part, before)
        _number(ax, max(before, after), row, minus_sign(part.signed), size)
    _links(ax, levels, first=len(start) - 1)
    end = len(names) - 1
    ax.plot([total.total.value], [end], marker="D", color=QUIET, markersize=8, linestyle="none", zorder=3)
    _number(ax, total.total.value, end, minus_sign(total.total.number), size, bold=True)
    _finish(ax, explanation, total, "")
    return ax


def draw_bars(explanation: "Explanation", ax: Axes | None) -> Axes:
    """See `anchorline.render.plot.bars`."""
    total = summands(explanation)
    names = [name_lines(part.text) for part in total.parts] or ["(nothing)"]
    ax = axes_or_new(ax, _WIDTH, rows_height(names, _EXTRA))
    size = label_rows(ax, names)
    _limit(ax, [0.0, *(part.value for part in total.parts)], both=True)
    ax.axvline(0, color=QUIET, linewidth=1, zorder=1.5)
    for row, part in enumerate(total.parts):
        _bar(ax, row, part, 0.0)
        _number(ax, part.value, row, minus_sign(part.signed), size, left=part.value < 0)
    _finish(ax, explanation, total, "contribution to ")
    return ax


def _bar(ax: Axes, row: int, part: Summand, start: float) -> None:
    style = PLUS_STYLE if part.value > 0 else MINUS_STYLE
    ax.barh(row, part.value, left=start, height=_BAR, zorder=2, label="_" + part.signed, **style)


def _links(ax: Axes, levels: list[float], first: int) -> None:
    """Thin lines from where one bar ends to where the next begins, down to the prediction."""
    for row, level in enumerate(levels, start=first):
        if row >= 0:
            ax.plot([level, level], [row, row + 1], color=QUIET, linewidth=0.8, zorder=1)


def _number(
    ax: Axes, x: float, row: int, text: str, size: float, *, left: bool = False, bold: bool = False
) -> None:
    label = ax.annotate(
        text,
        (x, row),
        xytext=(-7 if left else 9 if bold else 7, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        fontsize=size,
        fontweight="bold" if bold else "normal",
        zorder=4,
        **LITERALLY,
    )
    outlined(label, ax)


def _limit(ax: Axes, levels: list[float], *, both: bool = False) -> None:
    """Room for the numbers beside the bars; a scale even where nothing moves."""
    low, high = min(levels), max(levels)
    span = high - low or abs(high) or 1.0
    both = both and low < 0
    ax.set_xlim(low - (_ROOM if both else 0.04) * span, high + _ROOM * span)


def _finish(ax: Axes, explanation: "Explanation", total: Summands, before: str) -> None:
    quiet_frame(ax)
    ax.set_xlabel(name_lines(before + axis_name(explanation), 70), **LITERALLY)
    headline(ax, f"{total.total.text} = {minus_sign(total.total.number)}", short_claim(explanation.certificate))
