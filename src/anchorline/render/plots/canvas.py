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

from anchorline.render.characters import wrapped

# Of the palette of Okabe and Ito, made for colour-blind readers; the hatch tells them apart without any colour.
PLUS, MINUS, QUIET, SECOND = "#0072B2", "#D55E00", "#7F7F7F", "#009E73"
PLUS_STYLE: dict[str, Any] = {"facecolor": PLUS, "edgecolor": PLUS, "linewidth": 0.8}
MINUS_STYLE: dict[str, Any] = {"facecolor": "#F6CDB0", "edgecolor": MINUS, "linewidth": 0.8, "hatch": "////"}
LITERALLY: dict[str, Any] = {"parse_math": False, "usetex": False}  # $, \ and _ in a name are a $, a \ and a _

NAME_CELLS, NAME_LINES = 30, 3
_FONT, _SMALLEST_FONT = 10.0, 5.5  # points
_LINE_HEIGHT = 1.25  # of the font size


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


def name_lines(text: str, width: int = NAME_CELLS) -> str:
    """A name broken into at most three lines, the rest cut with an ellipsis."""
    return "\n".join(wrapped(text, width, lines=NAME_LINES))


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
    return max(_SMALLEST_FONT, min(_FONT, height / (len(names) + 0.2) / (_most_lines(names) * _LINE_HEIGHT)))


def _most_lines(names: Sequence[str]) -> int:
    return max((name.count("\n") + 1 for name in names), default=1)


def quiet_frame(ax: Axes, *, grid: str = "x") -> None:
    """Only the lines that carry something: a faint grid behind, no box."""
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.grid(axis=grid, linewidth=0.5, alpha=0.4)  # type: ignore[arg-type]  # "x", "y" or "both"
    ax.set_axisbelow(True)


def headline(ax: Axes, title: str, subtitle: str = "") -> None:
    """A bold title at the left and, under it, a quiet line."""
    points = _points(ax)[0]
    above = wrapped(title, max(16, int(points / (0.64 * 12))), lines=2)
    below = wrapped(subtitle, max(16, min(76, int(points / (0.5 * 9)))), lines=3) if subtitle else []
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


def _points(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes."""
    size, place = _figure(ax).get_size_inches() * 72, ax.get_position()
    return float(size[0] * place.width), float(size[1] * place.height)
