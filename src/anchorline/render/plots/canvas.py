"""What all drawings share: axes without pyplot, colours that everybody can tell apart, names that stay text."""

import io
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patheffects import withStroke
from matplotlib.text import Text

from anchorline.render.characters import fitted, wrapped

# Of the palette of Okabe and Ito, made for colour-blind readers; the hatch tells them apart without any colour.
PLUS, MINUS, QUIET, SECOND = "#0072B2", "#D55E00", "#7F7F7F", "#009E73"
PLUS_STYLE: dict[str, Any] = {"facecolor": PLUS, "edgecolor": PLUS, "linewidth": 0.8}
MINUS_STYLE: dict[str, Any] = {"facecolor": "#F6CDB0", "edgecolor": MINUS, "linewidth": 0.8, "hatch": "////"}
LITERALLY: dict[str, Any] = {"parse_math": False, "usetex": False}  # $, \ and _ in a name are a $, a \ and a _

NAME_CELLS, NAME_LINES = 30, 3
_FONT, _SMALLEST_FONT = 10.0, 5.5  # points
_LINE_HEIGHT = 1.25  # of the font size
_CELL, _BOLD = 0.55, 1.2  # of the font size: a letter's width; of that, a bold one's
_NAMES_SHARE = 0.4  # of the width of axes and names
_TITLE_AND_AXIS = 140.0  # points
_UNLAID = 0.775  # of its place in the figure, what axes have before a layout makes room for the names


class NotebookAxes(Axes):
    """Axes of a figure that pyplot does not know: nothing piles up, and notebooks show it all the same."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        _figure(self).savefig(buffer, format="png")
        return buffer.getvalue()


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """The given axes, or those of a new figure (inches) that belongs to nobody but its holder."""
    if ax is not None:
        return ax
    margins = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12)
    figure = Figure(figsize=(width, height), layout=margins, dpi=120)
    FigureCanvasAgg(figure)  # so that savefig and the notebook have something to draw on
    return figure.add_subplot(axes_class=NotebookAxes)


def name_lines(text: str, width: int = NAME_CELLS, name: str = "") -> str:
    """A text broken into at most three lines; what is too long is cut from the name in it, if one is told."""
    return "\n".join(fitted(text, name, width, NAME_LINES))


def name_cells(ax: Axes | None) -> int:
    """How wide names may be beside the given axes, or beside those of a figure of their own."""
    if ax is None:
        return NAME_CELLS
    return max(12, min(NAME_CELLS, int(_NAMES_SHARE * _points(ax)[0] / _UNLAID / (_CELL * _FONT))))


def text_cells(ax: Axes, size: float = _FONT) -> int:
    """How many cells of a font size the axes are wide."""
    return max(12, int(final_width(ax) / (_CELL * size)))


def minus_sign(number: str) -> str:
    """A printed number with the sign that is as wide as a plus."""
    return number.replace("-", "\N{MINUS SIGN}")


def rows_height(names: Sequence[str], extra: float) -> float:
    """Inches for one row a name, and something extra for title and axis."""
    row = max(26.0, _most_lines(names) * _FONT * _LINE_HEIGHT + 7)  # points
    return max(2.4, extra + len(names) * row / 72)


def label_rows(ax: Axes, names: Sequence[str]) -> float:
    """Write one name a row, first on top, small enough not to touch; return the font size in points."""
    n = len(names)
    ax.set_ylim(n - 0.4, -0.6)
    size = font_size(ax, names)
    ax.set_yticks(range(n), names, fontsize=size, **LITERALLY)
    ax.tick_params(axis="y", length=0)
    return size


def font_size(ax: Axes, names: Sequence[str]) -> float:
    """The largest size, up to the usual one, at which no name touches the next."""
    height = _points(ax)[1]
    if not isinstance(ax, NotebookAxes) and _figure(ax).get_layout_engine() is not None:
        # A layout takes the room of title and axis off the height; our own figures are as high as they must be.
        height = max(0.3 * height, height / _UNLAID - _TITLE_AND_AXIS)
    return max(_SMALLEST_FONT, min(_FONT, height / (len(names) + 0.2) / (_most_lines(names) * _LINE_HEIGHT)))


def _most_lines(names: Sequence[str]) -> int:
    return max((name.count("\n") + 1 for name in names), default=1)


def quiet_frame(ax: Axes, *, grid: str = "x") -> None:
    """Only the lines that carry something: a faint grid behind, no box."""
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.grid(axis=grid, linewidth=0.5, alpha=0.4)  # type: ignore[arg-type]  # "x", "y" or "both"
    ax.set_axisbelow(True)


def headline(ax: Axes, title: str, subtitle: str = "", name: str = "") -> None:
    """A bold title at the left, cut in the name if it is too long; and, under it, a quiet line."""
    above = fitted(title, name, text_cells(ax, _BOLD * 12), 2)
    below = wrapped(subtitle, min(76, text_cells(ax, 9)), lines=4) if subtitle else []
    ax.set_title(
        "\n".join(above), loc="left", fontsize=12, fontweight="bold", pad=8 + 12 * len(below), **LITERALLY
    )
    if below:
        ax.annotate(
            "\n".join(below),
            (0, 1),
            xytext=(0, 6),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=9,
            color=QUIET,
            annotation_clip=False,
            **LITERALLY,
        )


def outlined(text: Text, ax: Axes) -> None:
    """Keep a text legible where it crosses a line."""
    text.set_path_effects([withStroke(linewidth=2.5, foreground=ax.get_facecolor())])


def _figure(ax: Axes) -> Figure:
    figure = ax.get_figure(root=True)
    assert figure is not None  # axes that were removed from theirs cannot be drawn on
    return figure


def final_width(ax: Axes) -> float:
    """Width of the axes in points when all is laid out: a layout takes the room of the names off their width."""
    figure, points = _figure(ax), _points(ax)[0]
    if figure.get_layout_engine() is None:
        return points
    names = max((label.get_window_extent().width for label in ax.get_yticklabels()), default=0.0)
    label = ax.yaxis.label.get_window_extent().width if ax.get_ylabel() else 0.0
    return max(0.2 * points, points / _UNLAID - (names + label) * 72 / figure.dpi - 2 * _FONT)


def _points(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes."""
    size, place = _figure(ax).get_size_inches() * 72, ax.get_position()
    return float(size[0] * place.width), float(size[1] * place.height)
