"""Neighbors to look at: how many facts are broken, the output of the model, and that of the sum."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from anchorline.errors import SampleError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NeighborSample:
    """Neighbors of one instance: number of flips (n,), outputs of the model (n,), and outputs of the sum (n,).

    >>> sample = NeighborSample(n_flips=[0, 2], outputs=[0.9, 0.4], sums=[0.9, 0.5], prediction=0.9, output="y")
    >>> sample.outputs.shape
    (2,)
    """

    n_flips: np.ndarray
    outputs: np.ndarray
    sums: np.ndarray
    prediction: float
    output: str

    def __post_init__(self) -> None:
        for name, kind in (("n_flips", np.int64), ("outputs", np.float64), ("sums", np.float64)):
            values = np.array(getattr(self, name), dtype=kind)
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        shapes = [getattr(self, name).shape for name in ("n_flips", "outputs", "sums")]
        if len(set(shapes)) > 1 or len(shapes[0]) != 1 or not shapes[0][0]:
            raise SampleError(
                f"n_flips, outputs, sums have shapes {shapes}, but they must be three arrays of the same length, "
                "(n,)."
            )

    def __reduce__(self) -> tuple[Any, ...]:  # by the constructor, so that arrays stay read-only
        return partial(type(self), **{name: getattr(self, name) for name in self.__slots__}), ()
