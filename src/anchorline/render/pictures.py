"""Pictures of an explanation, a rule and a frontier with matplotlib, which is loaded at the first call.

Blue and solid adds, orange and hatched subtracts, so that a picture can be read without color. Titles and captions
are `statements`.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from anchorline.errors import MissingDependencyError, ParameterError
from anchorline.render import statements as say
from anchorline.render.characters import cell_width, wrap
from anchorline.render.geometry import (
    Band,
    Curve,
    Picture,
    Step,
    bands_of,
    curve_of,
    outline,
    picture_of,
    points_of,
    runs_in,
    steps_in,
    steps_of,
)
from anchorline.render.statements import CAPTIONS
from anchorline.result.explanation import Explanation
from anchorline.result.frontier import Frontier
from anchorline.result.rule import Rule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

PLUS, MINUS, NEUTRAL = "#0072B2", "#D55E00", "#7F7F7F"  # of Okabe and Ito, for color-blind readers
_PLUS_STYLE: dict[str, Any] = {"facecolor": PLUS, "edgecolor": PLUS, "linewidth": 0.8}
_MINUS_STYLE: dict[str, Any] = {"facecolor": "#F6CDB0", "edgecolor": MINUS, "linewidth": 0.8, "hatch": "////"}
_PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}  # $, \ and _ in a name are not commands
_WIDTH = 8.0  # inches of a new figure
_NAME_CELLS, _NAME_LINES = 38, 3
_FONT, _SMALLEST_FONT, _LINE = 10.0, 5.5, 1.25  # points, points, and height of a line per font size
_CELL, _BOLD_CELL = 0.56, 0.68  # width of a letter, and of a bold letter, per font size
_BEFORE_LAYOUT = 0.775  # share of their place that axes fill before a layout makes room for names
# The last letter of a name in Hebrew, Arabic or another script that runs from right to left.
_RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
_NAME_END = re.compile(rf"[{_RIGHT_TO_LEFT}](?=\s*(?:[^{_RIGHT_TO_LEFT}\s]|$))")
_HALF = 0.17  # of the height of a band, per height of a row
_UNTRIED: dict[str, Any] = {"facecolor": "none", "edgecolor": NEUTRAL, "linewidth": 0.8, "linestyle": (0, (3, 3))}
_GAP, _REST = 0.04, (201, 196, 224)  # between two images, per width of one; a color that gray images lack


def plot_explanation(explanation: Explanation, kind: str | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw an explanation on ``ax``, or on a new figure of pyplot; return the Axes.

    Parameters
    ----------
    explanation
        The explanation to draw.
    kind
        "waterfall" (steps from the start to the prediction), "bars" (contributions from a common zero) or
        "regions" (of an image or a signal); by default regions where there are any, and else a waterfall.
    ax
        The axes to draw on. No figure is shown or closed.
    """
    picture, curve = picture_of(explanation), curve_of(explanation)
    has_regions = picture is not None or curve is not None
    kind = kind or ("regions" if has_regions else "waterfall")
    if kind not in ("waterfall", "bars", "regions"):
        raise ParameterError(f"kind is {kind!r}, but it must be 'waterfall', 'bars' or 'regions'.")
    if kind == "regions" and not has_regions:
        raise ParameterError("Only images and signals have regions. Type e.plot('waterfall').")
    if kind != "regions":
        return _draw_sum(explanation, ax, is_waterfall=kind == "waterfall")
    if picture is not None:
        return _draw_picture(explanation, picture, ax)
    assert curve is not None
    return _draw_curve(explanation, curve, ax)


def plot_frontier(frontier: Frontier, ax: "Axes | None" = None) -> "Axes":
    """Draw R2 over the number of facts on ``ax``, or on a new figure of pyplot; return the Axes.

    Hollow points are not proven best.
    """
    ax = _axes(ax, 4.0)
    ks, r2, are_proven = zip(*points_of(frontier), strict=True)
    ax.plot(ks, r2, color=PLUS, zorder=2)
    fills = [PLUS if is_proven else "white" for is_proven in are_proven]
    ax.scatter(ks, r2, color=fills, edgecolor=PLUS, zorder=3)
    ax.set_ylim(0, 1.03)
    ax.set_xticks(ks)
    ax.set_xlabel("number of facts")
    ax.set_ylabel("R2")
    _reduce(ax, "y")
    _headline(ax, "How many facts are needed?", [CAPTIONS["frontier"]])
    return ax


def plot_rule(rule: Rule, ax: "Axes | None" = None) -> "Axes":
    """Draw a strip per fact on ``ax``, or on a new figure of pyplot; return the Axes.

    A strip has all values of a column, as wide as they are frequent. The frame is the fact, the triangle the row's
    own value. The darker, the more altered copies keep the decision.
    """
    title, *rest = say.statements_of(rule)
    bands = bands_of(rule)
    names = ["\n".join(wrap(band.fact, _name_cells(ax), max_lines=_NAME_LINES)) for band in bands]
    row = max(66.0, _most_lines(names) * _FONT * _LINE + 7)
    ax = _axes(ax, 1.6 + 0.6 * bool(bands) + len(bands) * row / 72)
    size = min(9.0, _label_rows(ax, names), _slot(ax)[1] / max(1, len(bands)) / (5 * _LINE))
    size = max(_SMALLEST_FONT, size)
    for number, band in enumerate(bands):
        _draw_band(ax, band, number, size)
    ax.set_xlim(-0.01, 1.01)
    ax.set_xticks([])
    ax.spines[:].set_visible(False)
    if bands:
        _shades(ax, bands, say.shade_caption(rule), names)
    _headline(ax, title.text, [each.text for each in rest if each.kind == "holds"], names)
    return ax


def _draw_band(ax: "Axes", band: Band, row: int, size: float) -> None:
    """Draw one strip in its row: parts, frame, the row's own place, and labels."""
    ink = ax.xaxis.label.get_color()  # as the words around it, light on a dark figure
    for part in band.parts:
        width = part.end - part.start
        ax.barh(row, width, left=part.start, height=2 * _HALF, zorder=2, **_shade(part.shade))
    start, end = band.frame
    frame: dict[str, Any] = {"facecolor": "none", "edgecolor": ink, "linewidth": 2.2, "zorder": 3}
    ax.barh(row, end - start, left=start, height=2.2 * _HALF, **frame)
    mark: dict[str, Any] = {"textcoords": "offset points", "fontsize": size, "annotation_clip": False, **_PLAIN}
    triangle: dict[str, Any] = {"marker": "v", "color": ink, "markersize": 7, "clip_on": False, "zorder": 4}
    ax.plot([band.own], [row - 1.5 * _HALF], **triangle)
    sides = {"start": "left", "middle": "center", "end": "right"}
    for label in band.labels:
        is_above = label.row < 0
        place = label.place, row - 1.5 * _HALF if is_above else row + 1.1 * _HALF
        offset = (0, 5.0) if is_above else (0, -2.0 - label.row * size * _LINE)
        at: dict[str, Any] = {"ha": sides[label.anchor], "va": "bottom" if is_above else "top"}
        ax.annotate(_left_to_right(label.text), place, xytext=offset, **at, **mark)


def _shade(opacity: float | None) -> dict[str, Any]:
    """Return the style of a part in which this many copies keep the decision; None if none was tried."""
    if opacity is None:
        return _UNTRIED
    from matplotlib.colors import to_rgba  # noqa: PLC0415  optional

    return {"facecolor": to_rgba(PLUS, opacity), "edgecolor": to_rgba(NEUTRAL, 0.4), "linewidth": 0.6}


def _shades(ax: "Axes", bands: Sequence[Band], caption: str, names: Sequence[str]) -> None:
    """Write what the shades mean below the strips."""
    from matplotlib.patches import Patch  # noqa: PLC0415  optional

    patches = [Patch(label=text, **_shade(opacity)) for opacity, text in steps_in(bands)]
    title = "\n".join(wrap(caption, int(_beside(ax, names) / (_CELL * 8)), max_lines=3))
    look: dict[str, Any] = {
        "title": _left_to_right(title),
        "title_fontsize": 8,
        "alignment": "left",
        "fontsize": 8,
    }
    look |= {"loc": "upper left", "bbox_to_anchor": (0, 0), "borderaxespad": 0, "borderpad": 0}
    box = ax.legend(handles=patches, ncols=3, frameon=False, handlelength=1.6, **look)
    box.get_title().set(**_PLAIN)


def _axes(ax: "Axes | None", height: float) -> "Axes":
    """Return the given axes, or those of a new figure of this height in inches."""
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415  optional
        from matplotlib.layout_engine import ConstrainedLayoutEngine  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError.for_package("matplotlib", "plot") from error
    if ax is not None:
        return ax
    margins = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12)  # inches
    return plt.subplots(figsize=(_WIDTH, height), layout=margins)[1]


def _draw_sum(explanation: Explanation, ax: "Axes | None", *, is_waterfall: bool) -> "Axes":
    """Draw the sum as steps from the start to the prediction, or as bars from a common zero."""
    steps = steps_of(explanation)
    output = steps[-1].text
    if not is_waterfall:
        values, facts = explanation.contributions.tolist(), [each for each in steps if each.kind == "fact"]
        steps = [replace(step, before=0.0, after=value) for step, value in zip(facts, values, strict=True)]
    names = ["\n".join(wrap(step.text, _name_cells(ax), max_lines=_NAME_LINES)) for step in steps]
    height = max(26.0, _most_lines(names) * _FONT * _LINE + 7)
    ax = _axes(ax, max(2.4, 1.5 + len(names) * height / 72))
    size = _label_rows(ax, names)
    for row, step in enumerate(steps):
        _draw_step(ax, step, row, size)
        if is_waterfall and step.after is not None:
            ax.plot([step.after] * 2, [row, row + 1], color=NEUTRAL, linewidth=0.8, zorder=1)
    if is_waterfall:
        ax.get_yticklabels()[-1].set_fontweight("bold")
    else:
        ax.axvline(0, color=NEUTRAL, linewidth=1, zorder=1.5)
    levels = [level for step in steps for level in (step.before, step.after) if level is not None]
    low, high = min(levels, default=0.0), max(levels, default=0.0)
    span = high - low or abs(high) or 1.0
    ax.set_xlim(low - 0.04 * span, high + 0.2 * span)  # with room for the numbers on the right
    _reduce(ax, "x")
    _say(ax, explanation, names)
    ax.set_xlabel(_left_to_right(output if is_waterfall else f"contribution to {output}"), **_PLAIN)
    return ax


def _draw_step(ax: "Axes", step: Step, row: int, size: float) -> None:
    """Draw a bar from a level to the next, or a mark at the first or the last level, and the number beside it."""
    levels = [level for level in (step.before, step.after) if level is not None]
    is_total = step.kind == "total"
    if len(levels) == 2:
        width = levels[1] - levels[0]
        style = _PLUS_STYLE if width > 0 else _MINUS_STYLE
        ax.barh(row, width, left=levels[0], height=0.62, zorder=2, **style)
    else:
        ax.plot(levels, [row], marker="D" if is_total else "o", color=NEUTRAL, markersize=7, zorder=3)
    place: dict[str, Any] = {"xytext": (8, 0), "textcoords": "offset points", "va": "center", "zorder": 4}
    weight = "bold" if is_total else "normal"
    ax.annotate(_minus(step.number), (max(levels), row), fontsize=size, fontweight=weight, **place, **_PLAIN)


def _draw_picture(explanation: Explanation, picture: Picture, ax: "Axes | None") -> "Axes":
    """Draw an image with its regions outlined and numbered, and beside it these regions alone."""
    height, width, _ = picture.rgb.shape
    ax = _axes(ax, 1.4 + min(9.0, 0.47 * _WIDTH * height / width))
    from matplotlib.collections import LineCollection  # noqa: PLC0415  optional
    from matplotlib.colors import to_rgba  # noqa: PLC0415
    from matplotlib.patches import PathPatch  # noqa: PLC0415
    from matplotlib.path import Path  # noqa: PLC0415

    start = width * (1 + _GAP)
    alone = np.full_like(picture.rgb, np.array(_REST, dtype=np.uint8))
    for region in picture.regions:
        alone[region.mask] = picture.rgb[region.mask]
        adds = explanation.contributions[region.fact] > 0
        color, style = (PLUS, "solid") if adds else (MINUS, (0, (3, 2)))
        hatched: dict[str, Any] = {} if adds else {"hatch": "///", "edgecolor": MINUS}
        runs = [(x, y, end) for y, row in enumerate(region.mask) for x, end in runs_in(row)]
        corners = [each for x, y, end in runs for each in ((x, y), (end, y), (end, y + 1), (x, y + 1), (x, y))]
        area = Path(corners, [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY] * len(runs))
        shade = to_rgba(color, 0.3 if adds else 0.12)
        ax.add_patch(PathPatch(area, facecolor=shade, linewidth=0, zorder=1, **hatched))
        edges = [[(x0, y0), (x1, y1)] for x0, y0, x1, y1 in outline(region.mask)]
        ax.add_collection(LineCollection(edges, colors="white", linewidths=3.4))
        ax.add_collection(LineCollection(edges, colors=color, linewidths=1.8, linestyles=[style]))
        row, column = region.middle
        _outlined(ax.text(column + 0.5, row + 0.5, region.name, ha="center", va="center", **_PLAIN), "white")
    ax.imshow(picture.rgb, extent=(0, width, height, 0), interpolation="nearest", zorder=0)
    ax.imshow(alone, extent=(start, start + width, height, 0), interpolation="nearest", zorder=0)
    ax.set_xlim(0, start + width)
    ax.set_ylim(height, 0)
    ax.set_axis_off()
    _say(ax, explanation)
    return ax


def _draw_curve(explanation: Explanation, curve: Curve, ax: "Axes | None") -> "Axes":
    """Draw a signal with the stretches of its facts shaded, and their contributions in them."""
    ax, digits = _axes(ax, 4.0), say.digits_of(explanation)
    hatched: dict[str, Any] = {"facecolor": "none", "edgecolor": MINUS, "hatch": "///", "linewidth": 1}
    for first, last, fact in curve.stretches:
        adds = explanation.contributions[fact] > 0
        ax.axvspan(first - 0.5, last + 0.5, **({"color": PLUS, "alpha": 0.3, "linewidth": 0} if adds else hatched))
    for middle, fact, row in curve.labels():
        place: dict[str, Any] = {"xytext": (0, -4 - 14 * row), "textcoords": "offset points", "va": "top"}
        printed, corner = _minus(digits.contributions[fact]), ("data", "axes fraction")
        _outlined(ax.annotate(printed, (middle, 1), xycoords=corner, ha="center", **place), ax.get_facecolor())
    for channel in curve.values.T:
        ax.plot(curve.points, channel, color=NEUTRAL if curve.values.shape[1] == 1 else None, linewidth=1.3)
    ax.margins(x=0.01, y=0.15)
    ax.set_xlabel("point")
    _reduce(ax, "y")
    _say(ax, explanation)
    return ax


# Words around a picture, which have to fit into the room that they find.


def _slot(ax: "Axes") -> tuple[float, float]:
    """Return the width and height in points that axes have together with their names."""
    figure = ax.get_figure(root=True)
    assert figure is not None  # axes that were removed from their figure cannot be drawn on
    width, height = figure.get_size_inches() * 72
    position, share = ax.get_position(original=True), 1.0 if figure.get_layout_engine() is None else _BEFORE_LAYOUT
    return float(width * position.width / share), float(height * position.height)


def _name_cells(ax: "Axes | None") -> int:
    """Return how many characters wide the names of rows may be."""
    return _NAME_CELLS if ax is None else max(12, min(_NAME_CELLS, int(0.4 * _slot(ax)[0] / (_CELL * _FONT))))


def _most_lines(names: Sequence[str]) -> int:
    return max((name.count("\n") + 1 for name in names), default=1)


def _label_rows(ax: "Axes", names: Sequence[str]) -> float:
    """Write one name per row, the first on top, small enough not to touch; return the font size in points."""
    n = max(1, len(names))
    size = max(_SMALLEST_FONT, min(_FONT, _slot(ax)[1] / n / (_most_lines(names) * _LINE)))
    ax.set_ylim(n - 0.4, -0.6)
    ax.set_yticks(range(len(names)), [_left_to_right(name) for name in names], fontsize=size, **_PLAIN)
    ax.tick_params(axis="y", length=0)
    return size


def _say(ax: "Axes", explanation: Explanation, names: Sequence[str] = ()) -> None:
    """Write the decision above a picture, then verdict and evidence, and the sum unless rows have its names."""
    decision, verdict, *rest = say.statements_of(explanation)
    parts = [f"{_minus(each.amount)} {each.text}" for each in rest if each.amount and not names]
    evidence = [each.text for each in rest if each.kind in ("holds", "fit")]
    _headline(ax, decision.text, [f"{verdict.text}{': ' if parts else ''}{', '.join(parts)}.", *evidence], names)


def _beside(ax: "Axes", names: Sequence[str]) -> float:
    """Return the width in points of the axes without the names of their rows."""
    widest = max((cell_width(line) for name in names for line in name.split("\n")), default=4)
    return max(0.3 * _slot(ax)[0], _slot(ax)[0] - widest * _CELL * _FONT - 2 * _FONT)


def _headline(ax: "Axes", title: str, lines: Sequence[str], names: Sequence[str] = ()) -> None:
    """Write a bold title at the left, and lines below it, both as wide as the axes without their names."""
    width = _beside(ax, names)
    below = wrap(" ".join(lines), int(width / (_CELL * 9)), max_lines=5)
    above = wrap(title, int(width / (_BOLD_CELL * 12)), max_lines=3)
    pad = 10 + 9 * _LINE * len(below)
    ax.set_title(_left_to_right("\n".join(above)), loc="left", fontsize=12, fontweight="bold", pad=pad, **_PLAIN)
    place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "annotation_clip": False}
    ax.annotate(_left_to_right("\n".join(below)), (0, 1), xytext=(0, 6), fontsize=9, **place, **_PLAIN)


def _left_to_right(text: str) -> str:
    """Return lines that run from left to right; a name in them that does not is isolated by invisible marks."""
    if text.isascii():
        return text
    lines = _NAME_END.sub("\\g<0>\N{LEFT-TO-RIGHT MARK}", text).split("\n")
    return "\n".join(f"\N{LEFT-TO-RIGHT MARK}{line}" for line in lines)


def _minus(number: str) -> str:
    return number.replace("-", "\N{MINUS SIGN}")


def _outlined(text: "Text", color: Any) -> None:
    """Outline a text, so that it stays legible on any ground."""
    from matplotlib.patheffects import withStroke  # noqa: PLC0415  optional

    text.set_fontweight("bold")
    text.set_path_effects([withStroke(linewidth=2.5, foreground=color)])


def _reduce(ax: "Axes", grid: str) -> None:
    """Remove the box around the axes and draw a faint grid behind the data."""
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.grid(axis=grid, linewidth=0.5, alpha=0.4)  # type: ignore[arg-type]  # "x" or "y"
    ax.set_axisbelow(True)
