"""A sample that keeps every row, for solvers that need more than sums."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from anchorline.optimize.evidence import check_sample


@dataclass(frozen=True, eq=False)
class SampleRows:
    """A sample stored row by row with bit-packed flips, for solvers that need more than moments."""

    packed: np.ndarray  # (n, ceil(d / 8)) bytes
    n_literals: int
    drops: np.ndarray
    weights: np.ndarray | None = None
    stays: np.ndarray | None = None  # whether each row keeps the decision; None if the model makes no decision
    clipped: np.ndarray | None = None  # whether the output of each row left its range; None if unknown

    @classmethod
    def pack(
        cls,
        flips: np.ndarray,
        drops: np.ndarray,
        weights: np.ndarray | None = None,
        stays: np.ndarray | None = None,
        clipped: np.ndarray | None = None,
    ) -> "SampleRows":
        """Pack a sample with boolean flips (n, d)."""
        flips, drops, weights = check_sample(flips, drops, weights)
        packed = np.packbits(np.ascontiguousarray(flips), axis=1)  # packed row by row, which unpacks fastest
        return cls(packed, flips.shape[1], drops, weights, stays, clipped)

    @classmethod
    def joined(cls, parts: Sequence["SampleRows"]) -> "SampleRows":
        """Join samples of the same kind, and keep the order of their rows."""
        columns = {
            name: None
            if getattr(parts[0], name) is None
            else np.concatenate([getattr(part, name) for part in parts])
            for name in ("packed", "drops", "weights", "stays", "clipped")
        }
        return replace(parts[0], **columns)  # type: ignore[arg-type]

    @property
    def flips(self) -> np.ndarray:
        """Flips (n, d) as booleans, unpacked again at every access."""
        return np.unpackbits(self.packed, axis=1, count=self.n_literals).astype(bool)

    @property
    def row_weights(self) -> np.ndarray:
        """Weights (n,), all 1 if the sample has no weights."""
        return np.ones(len(self.drops)) if self.weights is None else self.weights
