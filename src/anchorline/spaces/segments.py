"""Cut an image into regions: superpixels, a grid, or what the user gives; and describe where each region is."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from anchorline.errors import InstanceError, MissingDependencyError, ParameterError
from anchorline.spaces.picture import colors

_LARGEST = 400  # pixels of the longer side; superpixels of larger images are found on a smaller copy
_ROWS, _COLUMNS = ("top", "", "bottom"), ("left", "", "right")

Segments = str | np.ndarray | Callable[[np.ndarray], Any]


def cut_image(image: np.ndarray, segments: Segments, n_segments: int) -> tuple[np.ndarray, list[int]]:
    """Return the region of every pixel, (h, w) from 0 on, and the number by which each region is called.

    Regions are numbered from 1 in reading order, but labels that the user gives keep their numbers.

    Examples
    --------
    >>> labels, numbers = cut_image(np.zeros((4, 6)), "grid", 6)
    >>> labels.tolist(), numbers
    ([[0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 2, 2], [3, 3, 4, 4, 5, 5], [3, 3, 4, 4, 5, 5]], [1, 2, 3, 4, 5, 6])
    """
    if isinstance(segments, str):
        labels = _grid(image.shape[:2], n_segments) if segments == "grid" else _superpixels(image, n_segments)
        return labels, list(range(1, int(labels.max()) + 2))
    given = np.asarray(segments(image) if callable(segments) else segments)
    if given.shape != image.shape[:2] or given.dtype.kind not in "iub":
        raise InstanceError(
            f"The segments have shape {given.shape} and type {given.dtype}; they must be whole numbers, one per "
            f"pixel of the image, of shape {image.shape[:2]}. Type segments='grid' to have the image cut."
        )
    numbers, labels = np.unique(given, return_inverse=True)
    return labels.reshape(given.shape).astype(np.intp), [int(number) for number in numbers]


def check_segments(segments: Any, n_segments: Any) -> None:
    """Raise `ParameterError` unless the parameters describe segments."""
    is_known = segments in ("slic", "grid") if isinstance(segments, str) else False
    if not is_known and not callable(segments) and not isinstance(segments, np.ndarray | list):
        raise ParameterError(
            f"segments is {segments!r:.60}, but it must be 'slic', 'grid', an array with the number of every "
            "pixel's region, or a function of an image that returns one. Type segments='grid'."
        )
    whole = isinstance(n_segments, int | np.integer) and not isinstance(n_segments, bool)
    if not whole or n_segments < 1:
        raise ParameterError(f"n_segments is {n_segments!r}, but it must be a whole number >= 1. Type 64.")


def positions(labels: np.ndarray) -> list[str]:
    """Return where the middle of every region is, in words such as "top left" or "center".

    Examples
    --------
    >>> positions(np.arange(9).reshape(3, 3))[:5]
    ['top left', 'top', 'top right', 'left', 'center']
    """
    words = []
    for y, x in centers(labels).tolist():
        row, column = (min(2, int(3 * share)) for share in (y, x))
        words.append(f"{_ROWS[row]} {_COLUMNS[column]}".strip() or "center")
    return words


def centers(labels: np.ndarray) -> np.ndarray:
    """Return the middle of every region as shares of height and width, (regions, 2)."""
    height, width = labels.shape
    counts = np.maximum(1, np.bincount(labels.reshape(-1)))
    rows, columns = np.repeat(np.arange(height), width), np.tile(np.arange(width), height)
    sums = [np.bincount(labels.reshape(-1), weights=places + 0.5) for places in (rows, columns)]
    return np.column_stack([sums[0] / counts / height, sums[1] / counts / width])


def _grid(shape: tuple[int, ...], n_segments: int) -> np.ndarray:
    """Return nearly square cells, about ``n_segments`` of them."""
    height, width = shape
    n_rows = min(height, max(1, round(math.sqrt(n_segments * height / width))))
    n_columns = min(width, max(1, round(n_segments / n_rows)))
    rows, columns = np.arange(height) * n_rows // height, np.arange(width) * n_columns // width
    return np.asarray(rows[:, None] * n_columns + columns)


def _superpixels(image: np.ndarray, n_segments: int) -> np.ndarray:
    """Return the superpixels of SLIC; those of a large image are found on every n-th pixel."""
    try:
        from skimage.segmentation import slic  # noqa: PLC0415  heavy, and optional
    except ImportError as error:
        raise MissingDependencyError.for_package("skimage", "image") from error
    height, width = image.shape[:2]
    if min(height, width) < 2:
        return _grid((height, width), n_segments)
    step = -(-max(height, width) // _LARGEST)
    small = colors(image[::step, ::step]) / 255
    labels = slic(small, n_segments=n_segments, compactness=20, sigma=1, start_label=0, channel_axis=-1)
    return _in_reading_order(labels).repeat(step, axis=0).repeat(step, axis=1)[:height, :width]


def _in_reading_order(labels: np.ndarray) -> np.ndarray:
    """Renumber regions from 0 by their middles: in bands from top to bottom, and in a band from left to right."""
    _, dense = np.unique(labels, return_inverse=True)
    dense = dense.reshape(labels.shape)
    middles = centers(dense)
    bands = (middles[:, 0] * round(math.sqrt(len(middles)))).astype(np.intp)
    ranks = np.empty(len(middles), dtype=np.intp)
    ranks[np.lexsort([middles[:, 1], bands])] = np.arange(len(middles))
    return ranks[dense]
