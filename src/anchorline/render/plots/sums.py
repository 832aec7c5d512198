"""One sum: as a waterfall from the intercept to the prediction, and as bars from a common zero."""

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from matplotlib.axes import Axes

from anchorline.render.plots.canvas import (
    LITERALLY,
    MINUS_STYLE,
    PLUS_STYLE,
    QUIET,
    axes_or_new,
    final_width,
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
from anchorline.render.summands import Summand, Summands, axis_name, summands
from anchorline.render.text import short_claim

if TYPE_CHECKING:
    from anchorline.result.explanation import Explanation

_WIDTH, _EXTRA = 8.0, 1.35  # inches
_BAR = 0.62  # of a row
_ROOM = 0.16  # of the bars' span, at least, for numbers right of them
_DIGIT = 0.68  # of the font size: its width in bold


def draw_waterfall(explanation: "Explanation", ax: Axes | None) -> Axes:
    """See `anchorline.render.plot.waterfall`."""
    total = summands(explanation)
    start = [] if total.intercept is None else [total.intercept]
    names = _names((*start, *total.terms, total.total), ax)
    ax = axes_or_new(ax, _WIDTH, rows_height(names, _EXTRA))
    size = label_rows(ax, names)
    ax.get_yticklabels()[-1].set_fontweight("bold")
    base = 0.0 if total.intercept is None else total.intercept.value
    levels = list(accumulate((part.value for part in total.terms), initial=base))
    levels[-1] = total.total.value  # the same but for the last bits
    _limit(ax, levels if start else [0.0, *levels], total, size)
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
    names = _names(total.parts, ax) or ["(nothing)"]
    ax = axes_or_new(ax, _WIDTH, rows_height(names, _EXTRA))
    size = label_rows(ax, names)
    _limit(ax, [0.0, *(part.value for part in total.parts)], total, size)
    ax.axvline(0, color=QUIET, linewidth=1, zorder=1.5)
    for row, part in enumerate(total.parts):
        _bar(ax, row, part, 0.0)
        # Of a bar to the left, on the empty side: left of it are the names.
        _number(ax, max(0.0, part.value), row, minus_sign(part.signed), size)
    _finish(ax, explanation, total, "contribution to ")
    return ax


def _names(parts: Sequence[Summand], ax: Axes | None) -> list[str]:
    return [name_lines(part.text, name_cells(ax), part.name) for part in parts]


def _bar(ax: Axes, row: int, part: Summand, start: float) -> None:
    style = PLUS_STYLE if part.value > 0 else MINUS_STYLE
    ax.barh(row, part.value, left=start, height=_BAR, zorder=2, label="_" + part.signed, **style)


def _links(ax: Axes, levels: list[float], first: int) -> None:
    """Thin lines from where one bar ends to where the next begins, down to the prediction."""
    for row, level in enumerate(levels, start=first):
        if row >= 0:
            ax.plot([level, level], [row, row + 1], color=QUIET, linewidth=0.8, zorder=1)


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
        **LITERALLY,
    )
    outlined(label, ax)


def _limit(ax: Axes, levels: list[float], total: Summands, size: float) -> None:
    """Room for the numbers right of the bars; a scale even where nothing moves."""
    low, high = min(levels), max(levels)
    span = high - low or abs(high) or 1.0
    longest = max(len(part.signed) for part in (*total.parts, total.total))
    share = min(0.6, (_DIGIT * size * longest + 12) / final_width(ax))
    ax.set_xlim(low - 0.04 * span, high + max(_ROOM, 1.04 * share / (1 - share)) * span)


def _finish(ax: Axes, explanation: "Explanation", total: Summands, before: str) -> None:
    quiet_frame(ax)
    name = total.total.name
    ax.set_xlabel(name_lines(before + axis_name(explanation), text_cells(ax), name), **LITERALLY)
    title = f"{total.total.text} = {minus_sign(total.total.number)}"
    headline(ax, title, short_claim(explanation.certificate), name)
