"""Arrays cut into regions: images and signals, such as time series.

A fact states that a region is visible, and a neighbor has hidden values in some of its regions. An image is cut
into superpixels, a grid, or what the user gives; a signal is cut into stretches of time.
"""

import base64
import binascii
import hashlib
import math
import struct
import zlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np

from anchorline.errors import (
    FormatError,
    InstanceError,
    InstanceNeededError,
    MissingDependencyError,
    ParameterError,
    names_similar_keywords,
)
from anchorline.facts import Fact
from anchorline.spaces.base import Neighborhood, Space, TwoValued, name_of
from anchorline.spaces.columns import array_of

MAX_REGIONS = 4000  # an explanation of more says little, and takes gigabytes
_CALL_BYTES = 2**26  # of the inputs of one model call


class RegionsNeighborhood(TwoValued):
    """An array, and the arrays in which the hidden values replace some of its regions.

    ``values`` and ``hidden`` have the same shape and type. ``labels`` are the numbers of the regions, from 0 on,
    and have the leading axes of ``values``. ``shown`` is what a reader sees of each region. With ``flat``, the
    model receives every array as one row; with ``turned``, its two axes are swapped.
    """

    def __init__(
        self,
        values: np.ndarray,
        hidden: np.ndarray,
        labels: np.ndarray,
        names: Sequence[str],
        shown: Sequence[str],
        key: bytes,
        record: list[Any],
        flat: bool = False,
        turned: bool = False,
    ) -> None:
        if len(names) > MAX_REGIONS:
            raise InstanceError(
                f"There are {len(names):,} regions; at most {MAX_REGIONS:,} can be explained together. "
                "Use fewer and larger segments."
            )
        self.values, self.hidden, self.labels, self.names = values, hidden, labels, tuple(names)
        self._shown, self._key, self._record, self._flat = tuple(shown), key, record, flat
        self.is_turned, self._hides_nothing = turned, np.array_equal(values, hidden)

    def fact(self, candidate: int) -> Fact:
        """Return that a region is visible."""
        return Fact(self.names[candidate], self.names[candidate], "present", value=self._shown[candidate])

    @property
    def key(self) -> bytes:
        """The digest of the array and of its regions."""
        return self._key

    @property
    def instance(self) -> list[Any]:
        """What is recorded of the array."""
        return list(self._record)

    @property
    def original(self) -> np.ndarray:
        """The array as a batch of one."""
        return self._shaped(self.values[None].copy())

    @property
    def rows_per_call(self) -> int:
        """Number of arrays in one model call, so that they need at most 64 MiB, or one array."""
        return max(1, min(super().rows_per_call, _CALL_BYTES // max(1, self.values.nbytes)))

    def realize_flips(self, flips: np.ndarray) -> np.ndarray:
        """Return the arrays in which the flipped regions are hidden, one per row of ``flips``."""
        if self._hides_nothing and flips.any():
            raise InstanceError(
                "Every region looks the same when it is hidden, so that all altered copies would be equal. Hide "
                "regions in another way, such as hidden=0, or use fewer and larger segments."
            )
        labels, lengths = self._runs
        arrays = np.empty((len(flips), *self.values.shape), dtype=self.values.dtype)
        arrays[:] = self.values
        rows, hidden = arrays.reshape(len(flips), -1), self.hidden.reshape(-1)
        for row, is_hidden in zip(rows, np.ascontiguousarray(flips), strict=True):
            np.copyto(row, hidden, where=np.repeat(is_hidden[labels], lengths))
        return self._shaped(arrays)

    @cached_property
    def _runs(self) -> tuple[np.ndarray, np.ndarray]:
        """The labels of runs of values with the same label, and the lengths of the runs."""
        labels, lengths = runs_of(self.labels)
        return labels, lengths * (self.values.size // self.labels.size)

    def _shaped(self, arrays: np.ndarray) -> np.ndarray:
        if self.is_turned:
            return np.ascontiguousarray(arrays.swapaxes(1, 2))
        return arrays.reshape(len(arrays), -1) if self._flat else arrays


def runs_of(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels and lengths of runs of equal labels."""
    flat = labels.reshape(-1)
    starts = np.flatnonzero(np.r_[True, flat[1:] != flat[:-1]])
    return flat[starts], np.diff(np.r_[starts, flat.size])


def _given_regions(
    segments: Any, values: np.ndarray, shape: tuple[int, ...], place: str, cut: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the user's own numbers of regions, and the region of every place, numbered from 0."""
    given = np.asarray(segments(values) if callable(segments) else segments)
    if given.shape != shape or given.dtype.kind not in "iub":
        raise InstanceError(
            f"The segments have shape {given.shape} and type {given.dtype}; they must be whole numbers, one per "
            f"{place}, of shape {shape}. Type segments={cut} to have the {place.rpartition(' ')[2]} cut."
        )
    numbers, labels = np.unique(given, return_inverse=True)
    return numbers, labels.reshape(shape)


def numeric_array(given: Any, name: str, needed: str) -> np.ndarray:
    """Return numbers as a read-only copy; raise `InstanceError` for anything else, and for infinite numbers."""
    try:
        array = np.array(array_of(given))
    except Exception as error:
        raise InstanceError(f"The {name} cannot be read as an array ({error}); {needed}") from None
    if array.dtype.kind not in "fiub" or not array.size:
        raise InstanceError(f"The {name} has type {array.dtype} and shape {array.shape}; {needed}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InstanceError(f"The {name} has values that are not finite; {needed} Replace them first.")
    array.setflags(write=False)
    return array


def region_means(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return an array of the same shape and type in which every region has its mean value, per channel."""
    flat, numbers = values.reshape(labels.size, -1), labels.reshape(-1)
    counts = np.bincount(numbers)
    means = np.column_stack([np.bincount(numbers, weights=channel) / counts for channel in flat.T])
    return as_type(means[numbers].reshape(values.shape), values.dtype)


def as_type(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return values in a type; whole numbers are rounded and stay in the range of the type."""
    if dtype.kind == "f":
        return values.astype(dtype)
    if dtype.kind == "b":
        return np.asarray(values >= 0.5)
    limits = np.iinfo(dtype)
    return np.asarray(np.rint(values).clip(limits.min, limits.max), dtype=dtype)


# ---- what an explanation records of an image: a small copy, and its regions as runs of equal labels

# The copy is a PNG file without compression, so that it has the same bytes on every machine, whichever library for
# compression is installed.
LARGEST = 256  # pixels of the longer side of a copy
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def colors(image: np.ndarray) -> np.ndarray:
    """Return an image as red, green and blue from 0 to 255, (h, w, 3); transparent parts become white.

    Whole numbers of 16 or more bits and booleans are scaled by the range of their type. Other numbers are taken as
    0 to 1, or as 0 to 255, or are scaled by their own range.
    """
    planes = image[:, :, None] if image.ndim == 2 else image
    scaled = _scaled(planes)
    n_channels = planes.shape[2]
    if n_channels in (2, 4):
        alpha = scaled[:, :, -1:]
        scaled = scaled[:, :, :-1] * alpha + (1 - alpha)
    rgb = scaled[:, :, [0, 0, 0] if scaled.shape[2] < 3 else [0, 1, 2]]
    return np.asarray(np.rint(255 * rgb), dtype=np.uint8)


def _scaled(planes: np.ndarray) -> np.ndarray:
    """Return channels as numbers from 0 to 1."""
    if planes.dtype == np.uint8:
        return planes / np.float32(255)
    if planes.dtype.kind in "iu" and planes.dtype.itemsize > 1:
        top = np.iinfo(planes.dtype).max if planes.dtype == np.uint16 else max(1, int(planes.max()))
        bottom = min(0, int(planes.min()))
        return ((planes.astype(np.float64) - bottom) / (top - bottom)).astype(np.float32)
    values = planes.astype(np.float64)
    low, high = min(0.0, float(values.min())), float(values.max())
    if low == 0 and (high <= 1 or 50 < high <= 255):  # numbers from 0 to 1, or from 0 to 255
        high = 1.0 if high <= 1 else 255.0
    return ((values - low) / max(high - low, 1e-300)).astype(np.float32)


def png_file(rgb: np.ndarray) -> bytes:
    """Return colors (h, w, 3) as a PNG file; the same colors give the same bytes on every machine."""
    height, width, _ = rgb.shape
    rows = np.concatenate([np.zeros((height, 1), dtype=np.uint8), rgb.reshape(height, -1)], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data, stored = rows.tobytes(), b"\x78\x01"  # in zlib's format without compression, which has one form only
    for start in range(0, len(data), 65535):
        block = data[start : start + 65535]
        stored += struct.pack("<BHH", start + 65535 >= len(data), len(block), len(block) ^ 0xFFFF) + block
    stored += struct.pack(">I", zlib.adler32(data))
    chunks = ((b"IHDR", head), (b"IDAT", stored), (b"IEND", b""))
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def recorded_picture(image: np.ndarray, labels: np.ndarray) -> list[Any]:
    """Return a small copy of an image as text, and its regions as runs: [label, length, label, length, ...]."""
    step = -(-max(labels.shape) // LARGEST)  # every n-th pixel, so that the longer side has at most 256
    every = (slice((step - 1) // 2, None, step),) * 2
    runs = np.column_stack(runs_of(labels[every])).reshape(-1)
    return [base64.b64encode(png_file(colors(image[every]))).decode(), runs.tolist()]


def shown_picture(recorded: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the colors (h, w, 3) and labels (h, w) of a picture; raise `FormatError` if it is not one."""
    try:
        text, runs = recorded
        file = base64.b64decode(text, validate=True)
        width, height = struct.unpack(">II", file[16:24])
        start = file.index(b"IDAT") + 4
        if not (file.startswith(_SIGNATURE) and 0 < width <= LARGEST and 0 < height <= LARGEST):
            raise ValueError("not a small PNG file")
        data = zlib.decompressobj().decompress(file[start:], height * (1 + 3 * width) + 1)
        rows = np.frombuffer(data, dtype=np.uint8).reshape(height, 1 + 3 * width)
        pairs = np.array(runs, dtype=np.int64).reshape(-1, 2)
        if (pairs < 0).any() or int(pairs[:, 1].sum()) != height * width:
            raise ValueError("the regions do not fill the picture")
        labels = np.repeat(pairs[:, 0], pairs[:, 1]).reshape(height, width)
    except (TypeError, ValueError, OverflowError, struct.error, zlib.error, binascii.Error) as error:
        raise FormatError(f"The picture in the explanation cannot be read: {error}") from error
    return rows[:, 1:].reshape(height, width, 3), labels


# ---- images

_OF_IMAGES = "it must be numbers of shape (height, width) or (height, width, channels). Type np.asarray(picture)."
_BLUR = 1 / 20  # of the longer side
_CUT_AT = 400  # pixels of the longer side; superpixels of larger images are found on a smaller copy
_ROWS, _COLUMNS = ("top", "", "bottom"), ("left", "", "right")

Segments = Literal["slic", "grid"] | np.ndarray | Callable[[np.ndarray], Any]


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
        given = [
            _digest(each) if isinstance(each, np.ndarray) else each if isinstance(each, str) else name_of(each)
            for each in (self.segments, self.hidden)
        ]
        parts = (*given, self.n_segments, self.flatten)
        return "image:" + hashlib.sha256(repr(parts).encode()).hexdigest()

    def at(self, instance: Any) -> RegionsNeighborhood:
        """Return the neighborhood of an image, or of what an explanation records of it, if that is all of it."""
        is_record = isinstance(instance, list | tuple) and len(instance) == 5 and isinstance(instance[0], str)
        image = _recorded_image(instance) if is_record else numeric_array(instance, "image", _OF_IMAGES)
        if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] > 64):
            several = "To explain several images, type explainer.explain_many(images)." if image.ndim > 2 else ""
            raise InstanceError(f"The image has shape {image.shape}; {_OF_IMAGES} {several}".rstrip())
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
            if self.hidden == "mean":
                return region_means(image, labels)
            from scipy.ndimage import gaussian_filter  # noqa: PLC0415  heavy

            sigma = max(1.0, _BLUR * max(image.shape[:2]))
            sizes = (sigma, sigma) + (0,) * (image.ndim - 2)
            return as_type(gaussian_filter(image.astype(np.float32), sizes), image.dtype)
        n_channels = image.shape[2:]
        if self.hidden.shape not in ((), n_channels, image.shape):
            raise InstanceError(
                f"hidden has shape {self.hidden.shape}, but the image has shape {image.shape}. It must be one "
                f"number, one per channel, or another image of the same shape. Type hidden='mean'."
            )
        return np.broadcast_to(as_type(self.hidden.astype(np.float64), image.dtype), image.shape)


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


def cut_image(image: np.ndarray, segments: Segments, n_segments: int) -> tuple[np.ndarray, list[int]]:
    """Return the region of every pixel, (h, w) from 0 on, and the number by which each region is called.

    Regions are numbered from 1 in reading order, but labels that the user gives keep their numbers.
    """
    if isinstance(segments, str):
        labels = _grid(image.shape[:2], n_segments) if segments == "grid" else _superpixels(image, n_segments)
        return labels, list(range(1, int(labels.max()) + 2))
    numbers, labels = _given_regions(segments, image, image.shape[:2], "pixel of the image", "'grid'")
    return labels.astype(np.intp), [int(number) for number in numbers]


def positions(labels: np.ndarray) -> list[str]:
    """Return where the middle of every region is, in words such as "top left" or "center"."""
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
    step = -(-max(height, width) // _CUT_AT)
    small = colors(image[::step, ::step]) / 255
    labels = slic(small, n_segments=n_segments, compactness=20, sigma=1, start_label=0, channel_axis=-1)
    # Numbered by their middles: in bands from top to bottom, and in a band from left to right.
    dense = np.unique(labels, return_inverse=True)[1].reshape(labels.shape)
    middles = centers(dense)
    bands = (middles[:, 0] * round(math.sqrt(len(middles)))).astype(np.intp)
    ranks = np.empty(len(middles), dtype=np.intp)
    ranks[np.lexsort([middles[:, 1], bands])] = np.arange(len(middles))
    return ranks[dense].repeat(step, axis=0).repeat(step, axis=1)[:height, :width]


# ---- signals# ---- signals

_OF_SIGNALS = "it must be numbers of shape (time,), (time, channels) or (channels, time). Type np.asarray(series)."


class Signal(Space):
    """Signals; the pool of a stretch of time is that it is visible and that it is hidden.

    Parameters
    ----------
    segments
        Number of stretches of equal length, an array (time,) with the number of every point's stretch, or a
        function of the signal that returns one.
    hidden
        What takes the place of a hidden stretch: its "mean", the straight line between its ends ("interpolate"),
        or a number.
    channels
        "last" for signals of shape (time, channels), "first" for (channels, time), which the model receives in the
        same shape. "auto" reads (1, time) as one channel, and raises an error if channels outnumber points.

    Examples
    --------
    >>> neighborhood = Signal(segments=2, hidden="interpolate").at([0.0, 1.0, 0.0, 4.0, 9.0, 5.0])
    >>> neighborhood.names
    ('points 0 to 2', 'points 3 to 5')
    >>> neighborhood.realize_flips(np.array([[False, True]])).tolist()
    [[0.0, 1.0, 0.0, 4.0, 4.5, 5.0]]
    """

    noun, default_k = "stretches", 8

    @names_similar_keywords("Signal")
    def __init__(
        self,
        segments: int | np.ndarray | Callable[[np.ndarray], Any] = 20,
        hidden: Literal["mean", "interpolate"] | float = "mean",
        channels: Literal["auto", "first", "last"] = "auto",
    ) -> None:
        is_number = isinstance(segments, int | np.integer) and not isinstance(segments, bool)
        given: Any = segments
        if not (is_number and given > 0) and not callable(given) and not isinstance(given, np.ndarray):
            raise ParameterError(
                f"segments is {segments!r:.60}, but it must be a number of stretches >= 1, an array with the "
                "number of every point's stretch, or a function that returns one. Type segments=20."
            )
        if hidden not in ("mean", "interpolate") and not isinstance(hidden, int | float | np.number):
            raise ParameterError(f"hidden is {hidden!r:.60}, but it must be 'mean', 'interpolate' or a number.")
        if channels not in ("auto", "first", "last"):
            raise ParameterError(f"channels is {channels!r}, but it must be 'auto', 'first' or 'last'.")
        self.segments, self.hidden, self.channels = segments, hidden, channels

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the parameters; a function is identified by its name."""
        given = self.segments
        segments = (
            name_of(given) if callable(given) else given.tolist() if isinstance(given, np.ndarray) else given
        )
        parts = (segments, self.hidden) + (("first",) if self.channels == "first" else ())
        return "signal:" + hashlib.sha256(repr(parts).encode()).hexdigest()

    def at(self, instance: Any) -> RegionsNeighborhood:
        """Return the neighborhood of a signal, given as an array or as the list that an explanation records."""
        signal = numeric_array(instance, "signal", _OF_SIGNALS).astype(np.float64)
        if signal.ndim not in (1, 2):
            raise InstanceError(f"The signal has shape {signal.shape}; {_OF_SIGNALS}")
        record, turned = signal.tolist(), self._has_channels_first(signal)
        signal = np.ascontiguousarray(signal.T) if turned else signal
        labels = self._labels(signal)
        ends = [np.flatnonzero(labels == j)[[0, -1]].tolist() for j in range(int(labels.max()) + 1)]
        names = [f"points {first} to {last}" for first, last in ends]
        key = (
            b"signal:"
            + hashlib.sha256(signal.astype("<f8").tobytes() + repr((signal.shape, ends)).encode()).digest()
        )
        hidden = self._hidden(signal, labels)
        return RegionsNeighborhood(signal, hidden, labels, names, names, key, record, turned=turned)

    def describe(self, neighborhood: Neighborhood) -> dict[str, Any]:
        """Return what an explanation records; for (channels, time), that the channels come first."""
        assert isinstance(neighborhood, RegionsNeighborhood)
        return super().describe(neighborhood) | ({"channels": "first"} if neighborhood.is_turned else {})

    def _has_channels_first(self, signal: np.ndarray) -> bool:
        if signal.ndim == 1 or self.channels != "auto":
            return signal.ndim == 2 and self.channels == "first"
        first, last = signal.shape
        if 1 < first < last:
            raise InstanceError(
                f"The signal has shape {signal.shape}: {first} points of {last} channels, or {last} points of "
                f"{first} channels? Type al.Signal(channels='last') or al.Signal(channels='first')."
            )
        return bool(first < last)

    def instances(self, signals: Any) -> Sequence[Any]:
        """Return the signals of a list or of an array (n, time[, channels]), for `Explainer.explain_many`."""
        return list(signals)

    def _labels(self, signal: np.ndarray) -> np.ndarray:
        n_points, segments = len(signal), self.segments
        if isinstance(segments, int | np.integer):
            return np.arange(n_points) * min(int(segments), n_points) // n_points
        return _given_regions(segments, signal, (n_points,), "point of the signal", "20")[1]

    def _hidden(self, signal: np.ndarray, labels: np.ndarray) -> np.ndarray:
        if self.hidden == "mean":
            return region_means(signal, labels)
        if self.hidden != "interpolate":
            return np.full(signal.shape, as_type(np.asarray(self.hidden, dtype=np.float64), signal.dtype))
        hidden = np.empty_like(signal)
        for label in range(int(labels.max()) + 1):
            points = np.flatnonzero(labels == label)
            first, last = points[[0, -1]]
            share = ((points - first) / max(1, last - first)).reshape(-1, *(1,) * (signal.ndim - 1))
            hidden[points] = signal[first] + share * (signal[last] - signal[first])
        return hidden
