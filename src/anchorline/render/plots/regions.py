"""An image with the regions of a sum outlined and numbered, and beside it these regions alone."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patheffects import withStroke

from anchorline.errors import ParameterError
from anchorline.render.plots.canvas import MINUS, PLAIN_TEXT, PLUS, axes_or_new, set_headline, with_minus_sign
from anchorline.render.regions import Region, is_image, outline, picture_of
from anchorline.render.summands import summands
from anchorline.render.trust import short_claim

if TYPE_CHECKING:
    from anchorline.result.explanation import Explanation

_WIDTH, _EXTRA = 8.0, 1.1  # inches
_GAP = 0.04  # between the two pictures, per width of one
_REST = (201, 196, 224)  # a color that gray images do not have


def draw_regions(explanation: "Explanation", ax: Axes | None) -> Axes:
    """Draw the regions of a sum; see `anchorline.render.plot.regions`."""
    if not is_image(explanation):
        raise ParameterError("The explanation is not one of an image. Type e.plot('waterfall').")
    picture = picture_of(explanation)
    height, width, _ = picture.rgb.shape
    ax = axes_or_new(ax, _WIDTH, _EXTRA + min(9.0, 0.47 * _WIDTH * height / width))
    ax.imshow(picture.rgb, extent=(0, width, height, 0), interpolation="nearest")
    alone = np.where(picture.rest[:, :, None], np.array(_REST, dtype=np.uint8), picture.rgb)
    start = width * (1 + _GAP)
    ax.imshow(alone, extent=(start, start + width, height, 0), interpolation="nearest")
    for region in picture.regions:
        _draw(ax, region)
    for region in picture.regions:
        _write_number(ax, region)
    ax.set_xlim(0, start + width)
    ax.set_ylim(height, 0)
    ax.set_axis_off()
    total = summands(explanation).total
    parts = [f"{region.number}: {with_minus_sign(region.term.signed)}" for region in picture.regions]
    claim = short_claim(explanation.certificate)
    subtitle = f"Regions {', '.join(parts)}. {claim}" if parts else claim
    set_headline(ax, f"{total.text} = {with_minus_sign(total.number)}", subtitle, total.name)
    return ax


def _draw(ax: Axes, region: Region) -> None:
    adds = region.term.value > 0
    color, (height, width) = PLUS if adds else MINUS, region.mask.shape
    shade = np.zeros((height, width, 4))
    shade[region.mask] = (*_rgb(color), 0.3 if adds else 0.12)
    ax.imshow(shade, extent=(0, width, height, 0), interpolation="nearest")
    if not adds:
        x, y = np.arange(width) + 0.5, np.arange(height) + 0.5
        if min(height, width) > 1:
            hatch = ax.contourf(x, y, region.mask.astype(float), levels=[0.5, 1.5], colors="none", hatches=["///"])
            hatch.set_edgecolor(MINUS)
            hatch.set_linewidth(0)
    segments = [[(x0, y0), (x1, y1)] for x0, y0, x1, y1 in outline(region.mask)]
    style = "solid" if adds else (0, (3, 2))
    ax.add_collection(LineCollection(segments, colors="white", linewidths=3.4))
    ax.add_collection(LineCollection(segments, colors=color, linewidths=1.8, linestyles=[style]))


def _write_number(ax: Axes, region: Region) -> None:
    row, column = region.middle
    number = ax.text(
        column + 0.5,
        row + 0.5,
        region.number,
        ha="center",
        va="center",
        fontweight="bold",
        fontsize=10,
        **PLAIN_TEXT,
    )
    number.set_path_effects([withStroke(linewidth=2.5, foreground="white")])


def _rgb(color: str) -> tuple[float, float, float]:
    red, green, blue = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue
