"""Neighbors to look at: how many facts are broken, what the model says, and what the sum says."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from anchorline.errors import SampleError
from anchorline.model.predictor import Predictor, batches
from anchorline.search.sampling import DrawnFlips
from anchorline.spaces.base import Neighborhood


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NeighborSample:
    """Neighbors of one instance: flips of each (n,), the model's outputs (n,), and the sum's (n,), in its units.

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
            raise SampleError(f"n_flips, outputs, sums have shapes {shapes}; needed three of one length, (n,).")

    def __reduce__(self) -> tuple[Any, ...]:  # by the constructor: what is read-only stays so
        return partial(type(self), **{name: getattr(self, name) for name in self.__slots__}), ()


def sample_neighbors(
    neighborhood: Neighborhood, predictor: Predictor, flips: DrawnFlips, contributions: np.ndarray, output: str
) -> NeighborSample:
    """Ask the model about the rows of flips; ``contributions`` (d,) are in the output's own units."""
    parts = []
    for first, last in batches(flips.n_rows):
        table, _ = flips.rows(first, last)
        drops = predictor.answer(neighborhood.realize(table, flips.generator(first)), last - first).drops
        outputs = predictor.prediction - 2 * predictor.half_range * drops
        parts.append((table.sum(axis=1), outputs, predictor.prediction - 2 * table @ contributions))
    n_flips, outputs, sums = (np.concatenate(part) for part in zip(*parts, strict=True))
    return NeighborSample(
        n_flips=n_flips, outputs=outputs, sums=sums, prediction=predictor.prediction, output=output
    )
