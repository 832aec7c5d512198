"""A small copy of an image, and its regions, as plain texts: what an explanation records in order to be shown.

The copy is a PNG file without compression, so that it has the same bytes on every machine, whichever library for
compression is installed. The regions are runs of equal labels.
"""

import base64
import binascii
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from anchorline.errors import FormatError
from anchorline.spaces.regions import runs_of

LARGEST = 256  # pixels of the longer side of a copy
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def colors(image: np.ndarray) -> np.ndarray:
    """Return an image as red, green and blue from 0 to 255, (h, w, 3); transparent parts become white.

    Whole numbers of 16 or more bits and booleans are scaled by the range of their type. Other numbers are taken as
    0 to 1, or as 0 to 255, or are scaled by their own range.

    Examples
    --------
    >>> colors(np.array([[0.0, 1.0]])).tolist()
    [[[0, 0, 0], [255, 255, 255]]]
    >>> colors(np.array([[[255, 0, 0, 128]]], dtype=np.uint8)).tolist()
    [[[255, 127, 127]]]
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


def small_copy(image: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the colors and labels of every n-th pixel, so that the longer side has at most 256."""
    step = -(-max(labels.shape) // LARGEST)
    start = (step - 1) // 2
    return colors(image[start::step, start::step]), labels[start::step, start::step]


def png_file(rgb: np.ndarray) -> bytes:
    """Return colors (h, w, 3) as a PNG file; the same colors give the same bytes on every machine."""
    height, width, _ = rgb.shape
    rows = np.concatenate([np.zeros((height, 1), dtype=np.uint8), rgb.reshape(height, -1)], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", _stored(rows.tobytes())), (b"IEND", b""))
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def _stored(data: bytes) -> bytes:
    """Return data in the format of zlib without compression, which has one form only."""
    blocks = []
    for start in range(0, len(data), 65535):
        block = data[start : start + 65535]
        is_last = start + 65535 >= len(data)
        blocks.append(struct.pack("<BHH", is_last, len(block), len(block) ^ 0xFFFF) + block)
    return b"\x78\x01" + b"".join(blocks) + struct.pack(">I", zlib.adler32(data))


def recorded_picture(image: np.ndarray, labels: np.ndarray) -> list[Any]:
    """Return a small copy of an image as text, and its regions as runs: [label, length, label, length, ...]."""
    rgb, small = small_copy(image, labels)
    runs = np.column_stack(runs_of(small)).reshape(-1)
    return [base64.b64encode(png_file(rgb)).decode(), runs.tolist()]


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
