r"""Evidence on very many literals: it keeps the flips as bits, and counts pairs of flips where they are read.

The second moments of d literals take :math:`8 d^2` bytes, which is 800 MB for d = 10,000. The bits of n rows take
:math:`n d / 8`, which is 6 MB for n = 5,000. All counts are exact, so that sums and proofs are the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.errors import SampleError
from anchorline.optimize.evidence import Evidence, check_sample, digits_of, sums_of_digits

_COLUMNS = 128  # literals that are summed together
_MAX_ROWS = 2**14  # whose sums of digits float32 holds exactly; batches have fewer
_ROWS = 64  # literals whose correlations are computed together
_MAX_KEPT = 2**24  # counts, 128 MB


@dataclass(frozen=True, kw_only=True, eq=False)
class WideEvidence(Evidence):
    """Evidence whose ``pair_sums`` are counted on demand; the rows have no weights, and memory is n d / 8 bytes.

    Examples
    --------
    >>> flips, drops = [[1, 0, 1], [0, 1, 1]], [0.5, 0.25]
    >>> wide = WideEvidence.from_sample(flips, drops) + WideEvidence.from_sample(flips, drops)
    >>> wide.n_rows, wide.second_moments[2].tolist(), wide.second_moments[np.ix_([0, 1], [1])].tolist()
    (4, [0.5, 0.5, 1.0], [[0.0], [0.5]])
    """

    def __post_init__(self) -> None:
        for array in (self.flip_sums, self.cross_sums):
            array.setflags(write=False)

    @classmethod
    def from_sample(
        cls, flips: np.ndarray, drops: np.ndarray, weights: np.ndarray | None = None
    ) -> "WideEvidence":
        """Sum a sample of flips (n, d) of 0/1 and drops (n,). Cost n d."""
        if weights is not None:
            raise SampleError("Wide evidence got weights, but it counts rows. Type Evidence.from_sample(...).")
        flips, drops, _ = check_sample(flips, drops, None)
        first = Evidence.from_sample(flips[:, :1], drops)
        counts: Any = PairCounts.of(flips)
        return cls(
            n_rows=first.n_rows,
            weight=first.weight,
            flip_sums=np.bitwise_count(counts.bits).sum(axis=1, dtype=np.float64),
            pair_sums=counts,
            cross_sums=_cross_sums(flips, drops),
            drop_sums=first.drop_sums,
            square_sums=first.square_sums,
        )

    def restricted(self, literals: np.ndarray) -> "WideEvidence":
        """Evidence on some of the literals only, given by their indices."""
        counts: Any = self.pair_sums
        counts = PairCounts(counts.bits[literals])
        return replace(
            self,
            flip_sums=self.flip_sums[literals],
            pair_sums=counts,
            cross_sums=self.cross_sums[literals],
        )

    @cached_property
    def second_moments(self) -> np.ndarray:
        """``G = mean F'F``, computed where it is read."""
        moments: Any = Moments(self.pair_sums, self._divisor)  # type: ignore[arg-type]
        return moments  # type: ignore[no-any-return]


def _cross_sums(flips: np.ndarray, drops: np.ndarray) -> np.ndarray:
    """Sums of drops in parts (d, 4), as `Evidence` holds them."""
    starts = range(0, flips.shape[1], _COLUMNS)
    digits = digits_of(drops)
    if digits is None or len(drops) > _MAX_ROWS:
        parts = [Evidence.from_sample(flips[:, start : start + _COLUMNS], drops).cross_sums for start in starts]
        return np.concatenate(parts)
    digits = digits.astype(np.float32).T
    sums = [digits @ flips[:, start : start + _COLUMNS].astype(np.float32) for start in starts]
    return sums_of_digits(np.concatenate(sums, axis=1).T)


class PairCounts:
    """How often two literals flip together, from their ``bits`` (d, words).

    Rows that were read are kept, up to a limit of memory. If it allows all rows, `complete` counts all pairs.
    """

    def __init__(self, bits: np.ndarray) -> None:
        self.bits = bits
        self._rows: dict[int, np.ndarray] = {}
        self._all: np.ndarray | None = None

    @classmethod
    def of(cls, flips: np.ndarray) -> "PairCounts":
        """Pack flips (n, d) of 0/1."""
        packed = np.packbits(np.asarray(flips, dtype=bool).T, axis=1)
        padded = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
        padded[:, : packed.shape[1]] = packed
        return cls(padded.view(np.uint64))

    def __add__(self, other: "PairCounts") -> "PairCounts":
        return PairCounts(np.concatenate([self.bits, other.bits], axis=1))

    def counted(self, literal: int, start: int = 0) -> np.ndarray:
        """Counts of one literal with the literals from ``start`` on, as floats."""
        both = self.bits[start:] & self.bits[literal]
        return np.asarray(np.bitwise_count(both).sum(axis=1, dtype=np.uint32), dtype=np.float64)

    def row(self, literal: int) -> np.ndarray:
        """Counts of one literal with all literals; read-only."""
        if self._all is not None:
            return np.asarray(self._all[literal])
        if literal not in self._rows:
            if (len(self._rows) + 1) * len(self.bits) > _MAX_KEPT:
                self._rows.clear()
            self._rows[literal] = self.counted(literal)
        return self._rows[literal]

    def complete(self) -> None:
        """Count all pairs, each once, if they may be kept."""
        d = len(self.bits)
        if self._all is None and d * d <= _MAX_KEPT:
            self._all = np.empty((d, d))
            for i in range(d):
                self._all[i, i:] = self._all[i:, i] = self.counted(i, i)
            self._rows.clear()

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield counts of consecutive literals with themselves and later ones, and the first of them."""
        self.complete()
        for i in range(0, len(self.bits), _ROWS):
            if self._all is not None:
                yield i, self._all[i : i + _ROWS, i:]
            else:
                yield i, np.stack([self.counted(j, i) for j in range(i, min(i + _ROWS, len(self.bits)))])

    def __getitem__(self, key: Any) -> np.ndarray:
        """Counts at one literal, or at two arrays of literals that are broadcast, in a new array."""
        if not isinstance(key, tuple):
            return self.row(int(key)).copy()
        if self._all is not None:
            return np.asarray(self._all[key])
        rows, columns = key
        if np.shape(rows) != (np.size(rows), 1):  # other shapes are small
            return np.array([self.row(i)[j] for i, j in np.broadcast(rows, columns)]).reshape(
                np.broadcast_shapes(np.shape(rows), np.shape(columns))
            )
        found = [self.row(int(literal))[np.ravel(columns)] for literal in np.ravel(rows)]
        return np.array(found).reshape(len(found), np.size(columns))


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Pair counts divided by the weight of all rows, computed where they are read."""

    counts: PairCounts
    divisor: float

    def __getitem__(self, key: Any) -> np.ndarray:
        """Moments at one literal, or at two arrays of literals that are broadcast."""
        return self.counts[key] / self.divisor

    def diagonal(self) -> np.ndarray:
        """Shares of the rows in which each literal flips, (d,)."""
        return np.asarray(np.bitwise_count(self.counts.bits).sum(axis=1) / self.divisor)

    def centered(self, means: np.ndarray, unit: float) -> "Covariances":
        """Covariances in a unit, given the means (d,)."""
        return Covariances(self, means, unit)


@dataclass(frozen=True, slots=True, eq=False)
class Covariances:
    """Covariances of the flips in some ``unit``, computed where they are read from moments and means (d,)."""

    moments: Moments
    means: np.ndarray
    unit: float

    def __getitem__(self, key: Sequence[np.ndarray]) -> np.ndarray:
        """Covariances at two arrays of literals that are broadcast."""
        return np.asarray((self.moments[tuple(key)] - self.means[key[0]] * self.means[key[1]]) / self.unit)

    def row_max(self, scale: np.ndarray) -> np.ndarray:
        """Largest absolute correlation of each literal with another one, (d,); ``scale`` makes variances 1.

        Every pair is counted once. Cost n d^2 / 128 operations on words of 64 rows, which is most of the time that
        a proof about very many literals takes.
        """
        largest, divisor = np.zeros(len(self.means)), self.moments.divisor
        for i, counts in self.moments.counts.blocks():
            own, rest = np.arange(i, i + len(counts)), slice(i, None)
            sizes = (counts / divisor - self.means[own, None] * self.means[rest]) / self.unit
            sizes *= scale[own, None]
            sizes *= scale[rest]
            np.abs(sizes, out=sizes)
            np.fill_diagonal(sizes, 0.0)
            largest[own] = np.maximum(largest[own], sizes.max(axis=1))
            np.maximum(largest[rest], sizes.max(axis=0), out=largest[rest])
        return largest
