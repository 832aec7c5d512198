"""An image with the regions that contribute outlined and shaded, and these regions alone beside it, as SVG."""

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from anchorline.errors import FormatError
from anchorline.render.markup import escape_attribute
from anchorline.render.summands import Summand, summands
from anchorline.spaces.picture import png_file, shown_picture

if TYPE_CHECKING:
    from anchorline.result.explanation import Explanation

_PIXELATED = 128  # images with a longer side below this are enlarged without smoothing


@dataclass(frozen=True, eq=False)
class Region:
    """A region that contributes: its number, its summand, its pixels (h, w), and the pixel for its number."""

    number: str
    term: Summand
    mask: np.ndarray
    middle: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Picture:
    """A small copy of the explained image (h, w, 3), and the regions that contribute."""

    rgb: np.ndarray
    regions: tuple[Region, ...]

    @property
    def rest(self) -> np.ndarray:
        """The pixels that belong to no region of the sum, (h, w)."""
        rest = np.ones(self.rgb.shape[:2], dtype=bool)
        for region in self.regions:
            rest &= ~region.mask
        return rest


def is_image(explanation: "Explanation") -> bool:
    """Return whether the explained instance is an image."""
    return str(explanation.parameters.get("space", "")).startswith("image:") and len(explanation.instance) == 5


def picture_of(explanation: "Explanation") -> Picture:
    """Return the image of an explanation as it is recorded, with the regions of the sum."""
    rgb, labels = shown_picture(explanation.instance[3:])
    if labels.max() >= len(explanation.literals):
        raise FormatError("The picture in the explanation has regions that are not among its facts.")
    regions = []
    for term, part in zip(explanation.terms, summands(explanation).terms, strict=True):
        mask = labels == term.index
        if mask.any():  # a tiny region may be missing in the small copy
            regions.append(Region(part.name.removeprefix("region "), part, mask, _middle(mask)))
    return Picture(rgb, tuple(regions))


def _middle(mask: np.ndarray) -> tuple[int, int]:
    """Return the pixel of a region that is nearest to its center of mass: row and column."""
    rows, columns = np.nonzero(mask)
    nearest = np.argmin((rows - rows.mean()) ** 2 + (columns - columns.mean()) ** 2)
    return int(rows[nearest]), int(columns[nearest])


def area_path(mask: np.ndarray) -> str:
    """Return the pixels of a mask as the data of an SVG path, one rectangle per run.

    Examples
    --------
    >>> area_path(np.array([[True, True], [False, True]]))
    'M0 0h2v1h-2zM1 1h1v1h-1z'
    """
    parts = []
    for y, row in enumerate(mask):
        starts, ends = _runs(row)
        parts += [f"M{x} {y}h{end - x}v1h{x - end}z" for x, end in zip(starts, ends, strict=True)]
    return "".join(parts)


def outline(mask: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Return the edges of a mask as segments (x0, y0, x1, y1) between pixels."""
    padded = np.pad(mask, 1)
    across = padded[1:, 1:-1] != padded[:-1, 1:-1]  # horizontal edges, (h + 1, w)
    along = padded[1:-1, 1:] != padded[1:-1, :-1]  # vertical edges, (h, w + 1)
    edges = []
    for y, row in enumerate(across):
        edges += [(x, y, end, y) for x, end in zip(*_runs(row), strict=True)]
    for x, column in enumerate(along.T):
        edges += [(x, y, x, end) for y, end in zip(*_runs(column), strict=True)]
    return edges


def _runs(row: np.ndarray) -> tuple[list[int], list[int]]:
    """Return where the runs of True in a row start and end."""
    changes = np.diff(np.r_[False, row, False].astype(np.int8))
    return np.flatnonzero(changes == 1).tolist(), np.flatnonzero(changes == -1).tolist()


def image_markup(explanation: "Explanation") -> str:
    """Return the image as HTML, marked and beside it the marked regions alone; empty if it is not an image.

    Regions that add are shaded and have a solid outline; regions that subtract are hatched and have a dashed one.
    """
    if not is_image(explanation):
        return ""
    picture = picture_of(explanation)
    height, width, _ = picture.rgb.shape
    source = base64.b64encode(png_file(picture.rgb)).decode()
    size = max(height, width)
    pixelated = " al-pixels" if size < _PIXELATED else ""
    image = (
        f'<image class="al-photo{pixelated}" width="{width}" height="{height}" '
        f'href="data:image/png;base64,{source}"/>'
    )
    areas = "".join(_region_markup(region, size) for region in picture.regions)
    numbers = "".join(_number_markup(region, size) for region in picture.regions)
    marked = f'{image}{_hatch(size)}{areas}<g class="al-region">{numbers}</g>'
    alone = f'{image}<path class="al-rest" d="{area_path(picture.rest)}"/>'
    box = f'viewBox="0 0 {width} {height}" role="img"'
    return (
        f'<div class="al-pictures"><figure><svg {box} aria-label="The image with the regions of the sum">{marked}'
        f"</svg><figcaption>The image; numbers name the regions.</figcaption></figure><figure><svg {box} "
        f'aria-label="The regions of the sum alone">{alone}</svg><figcaption>The regions of the sum alone.'
        "</figcaption></figure></div>"
    )


def _hatch(size: int) -> str:
    """Return the pattern of regions that subtract, for an image of this size in pixels."""
    step = f"{size / 48:.3g}"
    return (
        f'<defs><pattern id="al-hatch-{size}" width="{step}" height="{step}" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)"><rect class="al-line" width="{size / 144:.3g}" height="{step}"/>'
        "</pattern></defs>"
    )


def _region_markup(region: Region, size: int) -> str:
    sign = "plus" if region.term.value > 0 else "minus"
    edges = "".join(f"M{x0} {y0}L{x1} {y1}" for x0, y0, x1, y1 in outline(region.mask))
    fill = "" if sign == "plus" else f'style="fill:url(#al-hatch-{size})" '
    label = escape_attribute(f"{region.term.text}: {region.term.signed}")
    return (
        f'<g class="al-region al-{sign}"><title>{label}</title><path class="al-area" '
        f'{fill}d="{area_path(region.mask)}"/>'
        f'<path class="al-halo" d="{edges}"/><path class="al-edge" d="{edges}"/></g>'
    )


def _number_markup(region: Region, size: int) -> str:
    y, x = region.middle
    number = escape_attribute(region.number)
    return f'<text x="{x + 0.5}" y="{y + 0.5}" dy="0.35em" font-size="{size / 18:.3g}">{number}</text>'
