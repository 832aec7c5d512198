"""Images: a fact states that a region is visible, and a neighbor may hide it.

An image is cut into superpixels, a grid, or what the user gives.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from anchorline.errors import (
    FormatError,
    InstanceError,
    InstanceNeededError,
    MissingDependencyError,
    ParameterError,
    names_similar_keywords,
)
from anchorline.spaces.base import Space
from anchorline.spaces.picture import colors, recorded_picture, shown_picture
from anchorline.spaces.regions import RegionsNeighborhood, as_type, numeric_array, region_means, runs_of

_NEEDED = "it must be numbers of shape (height, width) or (height, width, channels). Type np.asarray(picture)."
_BLUR = 1 / 20  # of the longer side
_LARGEST = 400  # pixels of the longer side; superpixels of larger images are found on a smaller copy
_ROWS, _COLUMNS = ("top", "", "bottom"), ("left", "", "right")

Segments = str | np.ndarray | Callable[[np.ndarray], Any]


class Image(Space):
    """Images; the pool of a region is that it is visible and that it is hidden.

    Parameters
    ----------
    segments
        How an image is cut into regions: "slic" (superpixels, which need scikit-image: the extra ``image``),
        "grid" (nearly square cells), an array (h, w) with the number of every pixel's region, or a function of an
        image that returns one.
    hidden
        What is seen in place of a hidden region: its "mean" color, the image with "blur", a color (one number, or
        one per channel), or another image of the same shape.
    n_segments
        About how many regions "slic" and "grid" make.
    flatten
        Whether the model receives every image as one row of numbers, as scikit-learn's models do.

    Examples
    --------
    >>> space = Image(segments="grid", n_segments=4)
    >>> neighborhood = space.at(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> [neighborhood.fact(j).value for j in (0, 1)]
    ['region 1 (top left)', 'region 2 (top right)']
    >>> there = Image("grid", hidden=0, n_segments=4).at([[1, 2], [3, 4]])
    >>> there.realize_flips(np.eye(4, dtype=bool)[:1]).tolist()
    [[[0, 2], [3, 4]]]
    """

    noun, default_k = "regions", 8

    @names_similar_keywords("Image")
    def __init__(
        self,
        segments: Segments = "slic",
        hidden: Any = "mean",
        n_segments: int = 64,
        flatten: bool = False,
    ) -> None:
        is_known = isinstance(segments, str) and segments in ("slic", "grid")
        if not is_known and not callable(segments) and not isinstance(segments, np.ndarray | list):
            raise ParameterError(
                f"segments is {segments!r:.60}, but it must be 'slic', 'grid', an array with the number of every "
                "pixel's region, or a function of an image that returns one. Type segments='grid'."
            )
        whole = isinstance(n_segments, int | np.integer) and not isinstance(n_segments, bool)
        if not whole or n_segments < 1:
            raise ParameterError(f"n_segments is {n_segments!r}, but it must be a whole number >= 1. Type 64.")
        if isinstance(hidden, str) and hidden not in ("mean", "blur"):
            raise ParameterError(
                f"hidden is {hidden!r}, but it must be 'mean', 'blur', a color or another image. Type "
                "hidden='mean'."
            )
        self.segments: Segments = np.asarray(segments) if isinstance(segments, list) else segments
        self.hidden = hidden if isinstance(hidden, str) else np.asarray(hidden)
        self.n_segments, self.flatten = int(n_segments), bool(flatten)
        if not isinstance(self.hidden, str) and self.hidden.dtype.kind not in "fiub":
            raise ParameterError(
                f"hidden is {hidden!r:.60}, but it must be 'mean', 'blur', a color or another image. Type "
                "hidden=0."
            )

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the parameters; a function is identified by its name."""
        parts = (_identity(self.segments), _identity(self.hidden), self.n_segments, self.flatten)
        return "image:" + hashlib.sha256(repr(parts).encode()).hexdigest()

    def at(self, instance: Any) -> RegionsNeighborhood:
        """Return the neighborhood of an image, or of what an explanation records of it, if that is all of it."""
        is_record = isinstance(instance, list | tuple) and len(instance) == 5 and isinstance(instance[0], str)
        image = _recorded_image(instance) if is_record else numeric_array(instance, "image", _NEEDED)
        if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] > 64):
            several = "To explain several images, type explainer.explain_many(images)." if image.ndim > 2 else ""
            raise InstanceError(f"The image has shape {image.shape}; {_NEEDED} {several}".rstrip())
        labels, numbers = cut_image(image, self.segments, self.n_segments)
        names = [f"region {number}" for number in numbers]
        shown = [f"{name} ({place})" for name, place in zip(names, positions(labels), strict=True)]
        digest = _digest(image)
        record = [digest, list(image.shape), str(image.dtype), *recorded_picture(image, labels)]
        runs = np.concatenate(runs_of(labels)).astype("<i8").tobytes()
        key = f"image:{digest}:{hashlib.sha256(runs).hexdigest()}".encode()
        hidden = self._hidden(image, labels)
        return RegionsNeighborhood(image, hidden, labels, names, shown, key, record, self.flatten)

    def instances(self, images: Any) -> Sequence[Any]:
        """Return the images of a list or of an array (n, h, w[, c]), for `Explainer.explain_many`."""
        if isinstance(images, list | tuple):
            return list(images)
        array = np.asarray(images)
        if array.ndim not in (3, 4):
            raise ParameterError(
                f"The images have shape {array.shape}; a list of images or an array of shape (n, height, width) "
                "or (n, height, width, channels) is needed. For one image, type explainer.explain(image)."
            )
        return list(array)

    def _hidden(self, image: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the image that is seen where a region is hidden."""
        if isinstance(self.hidden, str):
            return region_means(image, labels) if self.hidden == "mean" else _blurred(image)
        n_channels = image.shape[2:]
        if self.hidden.shape not in ((), n_channels, image.shape):
            raise InstanceError(
                f"hidden has shape {self.hidden.shape}, but the image has shape {image.shape}. It must be one "
                f"number, one per channel, or another image of the same shape. Type hidden='mean'."
            )
        return np.broadcast_to(as_type(self.hidden.astype(np.float64), image.dtype), image.shape)


def _blurred(image: np.ndarray) -> np.ndarray:
    from scipy.ndimage import gaussian_filter  # noqa: PLC0415  heavy

    sigma = max(1.0, _BLUR * max(image.shape[:2]))
    sizes = (sigma, sigma) + (0,) * (image.ndim - 2)
    return as_type(gaussian_filter(image.astype(np.float32), sizes), image.dtype)


def _recorded_image(record: Sequence[Any]) -> np.ndarray:
    """Return the image that an explanation records, if the recorded copy is the image itself."""
    digest, shape, dtype, *picture = record
    try:
        rgb = shown_picture(picture)[0]
        for copy in (rgb, rgb[:, :, 0], rgb[:, :, :1]):
            if list(copy.shape) == list(shape) and dtype == "uint8" and _digest(copy) == digest:
                return copy
    except (FormatError, TypeError) as error:
        raise InstanceError(f"The record of the image cannot be read: {error}") from None
    raise InstanceNeededError(
        f"The explanation records only a small copy of its image of shape {tuple(shape)}. Pass the image itself: "
        "verify(explanation, model, space, instance=image)."
    )


def _digest(image: np.ndarray) -> str:
    """Return the SHA-256 of an image: shape, type and values, the same on every machine."""
    values = np.ascontiguousarray(image).astype(image.dtype.newbyteorder("<"), copy=False)
    head = f"{image.shape} {image.dtype.kind}{image.dtype.itemsize}".encode()
    return hashlib.sha256(head + values.tobytes()).hexdigest()


def _identity(given: Any) -> str:
    """Return the identity of a parameter, which may be an array or a function."""
    if isinstance(given, str):
        return given
    if isinstance(given, np.ndarray):
        return _digest(given)
    return f"{getattr(given, '__module__', '')}.{getattr(given, '__qualname__', type(given).__qualname__)}"


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
