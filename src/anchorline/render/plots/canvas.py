"""Helpers that all drawings share: axes without pyplot, colors, wrapped names, titles."""

import io
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patheffects import withStroke
from matplotlib.text import Text

from anchorline.render.characters import wrap, wrap_statement

# From the palette of Okabe and Ito for color-blind readers. The hatch distinguishes the signs without color.
PLUS, MINUS, NEUTRAL = "#0072B2", "#D55E00", "#7F7F7F"
PLUS_STYLE: dict[str, Any] = {"facecolor": PLUS, "edgecolor": PLUS, "linewidth": 0.8}
MINUS_STYLE: dict[str, Any] = {"facecolor": "#F6CDB0", "edgecolor": MINUS, "linewidth": 0.8, "hatch": "////"}
# Keeps matplotlib from interpreting $, \ and _ in a name.
PLAIN_TEXT: dict[str, Any] = {"parse_math": False, "usetex": False}

NAME_CELLS, NAME_LINES = 30, 3
_FONT, _SMALLEST_FONT = 10.0, 5.5  # points
_LINE_HEIGHT = 1.25  # per font size
_CELL, _BOLD = 0.55, 1.2  # width of a letter per font size; width of a bold letter per width of a letter
_NAMES_SHARE = 0.4  # share of the width of axes and names that the names may take
_TITLE_AND_AXIS = 140.0  # points
_BEFORE_LAYOUT = 0.775  # share of their final place that axes fill before a layout engine makes room for names


class NotebookAxes(Axes):
    """Axes of a figure to which pyplot holds no reference; notebooks display them as a PNG image."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        _figure(self).savefig(buffer, format="png")
        return buffer.getvalue()


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the given axes, or the axes of a new figure (size in inches) to which pyplot holds no reference."""
    if ax is not None:
        return ax
    margins = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12)
    figure = Figure(figsize=(width, height), layout=margins, dpi=120)
    FigureCanvasAgg(figure)  # savefig and notebooks need a canvas
    return figure.add_subplot(axes_class=NotebookAxes)


def wrap_name(text: str, width: int = NAME_CELLS, name: str = "") -> str:
    """Return a text as at most three lines; if it is too long, ``name`` inside it is shortened first."""
    return "\n".join(wrap_statement(text, name, width, NAME_LINES))


def name_width(ax: Axes | None) -> int:
    """Return how many cells wide names may be beside the given axes, or beside the axes of a new figure."""
    if ax is None:
        return NAME_CELLS
    return max(12, min(NAME_CELLS, int(_NAMES_SHARE * _points(ax)[0] / _BEFORE_LAYOUT / (_CELL * _FONT))))


def text_width(ax: Axes, size: float = _FONT) -> int:
    """Return the width of the axes in cells of the given font size."""
    return max(12, int(final_width(ax) / (_CELL * size)))


def with_minus_sign(number: str) -> str:
    """Return a printed number with a minus sign, which is as wide as a plus sign, in place of the hyphen."""
    return number.replace("-", "\N{MINUS SIGN}")


def figure_height(names: Sequence[str], extra: float) -> float:
    """Return the height in inches of a figure with one row per name and ``extra`` inches for title and axis."""
    row = max(26.0, _max_lines(names) * _FONT * _LINE_HEIGHT + 7)  # points
    return max(2.4, extra + len(names) * row / 72)


def label_rows(ax: Axes, names: Sequence[str]) -> float:
    """Write one name per row, the first on top, small enough not to touch; return the font size in points."""
    n = len(names)
    ax.set_ylim(n - 0.4, -0.6)
    size = font_size(ax, names)
    ax.set_yticks(range(n), names, fontsize=size, **PLAIN_TEXT)
    ax.tick_params(axis="y", length=0)
    return size


def font_size(ax: Axes, names: Sequence[str]) -> float:
    """Return the largest font size, up to the default, at which no name touches the next."""
    height = _points(ax)[1]
    if not isinstance(ax, NotebookAxes) and _figure(ax).get_layout_engine() is not None:
        # A layout engine subtracts title and axis from the height; `figure_height` allows for both already.
        height = max(0.3 * height, height / _BEFORE_LAYOUT - _TITLE_AND_AXIS)
    return max(_SMALLEST_FONT, min(_FONT, height / (len(names) + 0.2) / (_max_lines(names) * _LINE_HEIGHT)))


def _max_lines(names: Sequence[str]) -> int:
    return max((name.count("\n") + 1 for name in names), default=1)


def reduce_frame(ax: Axes, *, grid: str = "x") -> None:
    """Remove the box around the axes and draw a faint grid behind the data."""
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.grid(axis=grid, linewidth=0.5, alpha=0.4)  # type: ignore[arg-type]  # "x", "y" or "both"
    ax.set_axisbelow(True)


def set_headline(ax: Axes, title: str, subtitle: str = "", name: str = "") -> None:
    """Write a bold title at the left, with the name in it shortened if needed, and a gray subtitle below it."""
    above = wrap_statement(title, name, text_width(ax, _BOLD * 12), 2)
    below = wrap(subtitle, min(76, text_width(ax, 9)), max_lines=4) if subtitle else []
    ax.set_title(
        "\n".join(above), loc="left", fontsize=12, fontweight="bold", pad=8 + 12 * len(below), **PLAIN_TEXT
    )
    if below:
        ax.annotate(
            "\n".join(below),
            (0, 1),
            xytext=(0, 6),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=9,
            color=NEUTRAL,
            annotation_clip=False,
            **PLAIN_TEXT,
        )


def outline(text: Text, ax: Axes) -> None:
    """Outline a text in the background color, so that it stays legible where it crosses a line."""
    text.set_path_effects([withStroke(linewidth=2.5, foreground=ax.get_facecolor())])


def _figure(ax: Axes) -> Figure:
    figure = ax.get_figure(root=True)
    assert figure is not None  # axes that were removed from their figure cannot be drawn on
    return figure


def final_width(ax: Axes) -> float:
    """Return the width of the axes in points after layout, which subtracts the width of the names."""
    figure, points = _figure(ax), _points(ax)[0]
    if figure.get_layout_engine() is None:
        return points
    names = max((label.get_window_extent().width for label in ax.get_yticklabels()), default=0.0)
    axis_label = ax.yaxis.label.get_window_extent().width if ax.get_ylabel() else 0.0
    return max(0.2 * points, points / _BEFORE_LAYOUT - (names + axis_label) * 72 / figure.dpi - 2 * _FONT)


def _points(ax: Axes) -> tuple[float, float]:
    """Return the width and height of the axes in points."""
    size, place = _figure(ax).get_size_inches() * 72, ax.get_position()
    return float(size[0] * place.width), float(size[1] * place.height)
