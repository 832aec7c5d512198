"""Arrays cut into regions, such as images and signals: a neighbor has hidden values in some of its regions."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.errors import InstanceError
from anchorline.facts import Fact
from anchorline.spaces.two_valued import TwoValued

MAX_REGIONS = 4000  # an explanation of more says little, and takes gigabytes
_CALL_BYTES = 2**26  # of the inputs of one model call


class RegionsNeighborhood(TwoValued):
    """An array, and the arrays in which the hidden values replace some of its regions.

    ``values`` and ``hidden`` have the same shape and type. ``labels`` are the numbers of the regions, from 0 on,
    and have the leading axes of ``values``. ``shown`` is what a reader sees of each region. With ``flat``, the
    model receives every array as one row.
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
    ) -> None:
        if len(names) > MAX_REGIONS:
            raise InstanceError(
                f"There are {len(names):,} regions; at most {MAX_REGIONS:,} can be explained together. "
                "Use fewer and larger segments."
            )
        self.values, self.hidden, self.labels, self.names = values, hidden, labels, tuple(names)
        self._shown, self._key, self._record, self._flat = tuple(shown), key, record, flat

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
    def _hides_nothing(self) -> bool:
        return np.array_equal(self.values, self.hidden)

    @cached_property
    def _runs(self) -> tuple[np.ndarray, np.ndarray]:
        """The labels of runs of values with the same label, and the lengths of the runs."""
        labels, lengths = runs_of(self.labels)
        return labels, lengths * (self.values.size // self.labels.size)

    def _shaped(self, arrays: np.ndarray) -> np.ndarray:
        return arrays.reshape(len(arrays), -1) if self._flat else arrays


def runs_of(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels and lengths of runs of equal labels.

    Examples
    --------
    >>> [part.tolist() for part in runs_of(np.array([[0, 0, 1], [1, 1, 0]]))]
    [[0, 1, 0], [2, 3, 1]]
    """
    flat = labels.reshape(-1)
    starts = np.flatnonzero(np.r_[True, flat[1:] != flat[:-1]])
    return flat[starts], np.diff(np.r_[starts, flat.size])


def numeric_array(given: Any, name: str, needed: str) -> np.ndarray:
    """Return numbers as a read-only copy; raise `InstanceError` for anything else, and for infinite numbers."""
    try:
        array = np.array(given)
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
