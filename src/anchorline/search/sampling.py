"""Flips: independent draws from named streams, or all of them with their probabilities."""

import hashlib
from dataclasses import dataclass

import numpy as np

from anchorline.errors import ParameterError

_GROUP = 512  # rows drawn together, so that the flips of one literal are contiguous, as their readers need
MAX_PATTERNS = 20  # literals of a support whose 2^s patterns are listed
CANCELS = 1e-12


def stream_key(seed: int, row_key: bytes, stream: str) -> int:
    """Return the 128-bit Philox key of one stream of one row: BLAKE2b(seed, row key, stream name)."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (str(int(seed)).encode(), row_key, stream.encode()):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return int.from_bytes(digest.digest(), "little")


def reach_of(flip_probability: float, n_literals: int) -> float:
    r"""Return the probability that a neighbor differs from the case in at least one literal.

    .. math:: 1 - (1 - p)^d

    Examples
    --------
    >>> round(reach_of(0.2689, 8), 3), reach_of(1e-20, 8)
    (0.918, 8e-20)
    """
    return float(-np.expm1(n_literals * np.log1p(-flip_probability)))


@dataclass(frozen=True, slots=True)
class DrawnFlips:
    """``n_rows`` rows of independent flips; any slice of rows can be drawn alone, in any order.

    Rows come in groups. Group g owns the Philox counters from ``g 2^64`` on, so that a row's flips depend only on
    (key, row, d, p). Each flip is decided by one byte, literal after literal: a byte below ``floor(p 2^8)`` is a
    flip, a byte above is not. A byte equal to it is decided by 32 further bits, in the same order, so that the
    probability is exact to 2^-41.
    """

    key: int
    n_rows: int
    n_literals: int
    flip_probability: float

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, None]:
        """Return flips (stop - start, d) as booleans, contiguous per literal; there are no weights."""
        first, last = start // _GROUP, -(-stop // _GROUP)
        flips = np.empty((self.n_literals, max(0, last - first) * _GROUP), dtype=bool)
        for group in range(first, last):
            at = (group - first) * _GROUP
            self._draw(group, flips[:, at : at + _GROUP])
        return flips[:, start - first * _GROUP : stop - first * _GROUP].T, None

    def _draw(self, group: int, flips: np.ndarray) -> None:
        """Fill in the flips (d, rows) of a group."""
        generator = np.random.Philox(key=self.key, counter=group << 64)
        high, low = divmod(round(self.flip_probability * 2**40), 2**32)
        short = _raw(generator, flips.size, "u1").reshape(flips.shape)
        np.less(short, high, out=flips)
        ties = np.flatnonzero(short == high)
        flips[np.unravel_index(ties, flips.shape)] = _raw(generator, len(ties), "<u4") < low

    def generator(self, start: int) -> np.random.Generator:
        """Return the generator of values for the batch that starts at this row; twice as fast as Philox."""
        return np.random.Generator(np.random.PCG64DXSM([self.key, start]))


def _raw(generator: np.random.BitGenerator, n: int, kind: str) -> np.ndarray:
    """Return the next n raw numbers of a kind such as "u1", the same on every machine and version of NumPy."""
    per_word = 8 // np.dtype(kind).itemsize
    return generator.random_raw(-(-n // per_word)).astype("<u8", copy=False).view(kind)[:n]


@dataclass(frozen=True, slots=True)
class EnumeratedFlips:
    """All 2^d flips with their probabilities: the "sample" is the distribution itself."""

    n_literals: int
    flip_probability: float

    @property
    def n_rows(self) -> int:
        """2^d."""
        return int(2**self.n_literals)

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return flips of rows ``start`` to ``stop`` (the bits of the row number) with their probabilities."""
        flips = (np.arange(start, stop)[:, None] >> np.arange(self.n_literals)) & 1 == 1
        n_flipped = flips.sum(axis=1)
        p = self.flip_probability
        return flips, p**n_flipped * (1 - p) ** (self.n_literals - n_flipped)

    def generator(self, start: int) -> None:
        """Return None, because flips are enumerated only where they alone determine the inputs."""


@dataclass(frozen=True, eq=False)
class Event:
    """The flips of a support whose contributions cancel, which is the event that relevance is conditioned on.

    ``patterns`` (m, s) are those flips, of which the first is "nothing flipped"; ``shares`` (m,) are their
    probabilities given the event; ``probability`` is that of the event itself, P[A].
    """

    support: np.ndarray
    patterns: np.ndarray
    shares: np.ndarray
    probability: float

    @property
    def is_literal(self) -> bool:
        """Whether the event is exactly "no literal of the support is flipped"."""
        return len(self.patterns) == 1


def cancelling_event(contributions: np.ndarray, flip_probability: float) -> Event:
    r"""List the flips of the support with :math:`\sum_j u_j F_j = 0`, up to rounding.

    All :math:`2^{|S|}` patterns are tried; they cancel when :math:`|\sum_j u_j F_j| \le 10^{-12}
    \sum_j |u_j|`. At most 20 literals.

    Examples
    --------
    >>> event = cancelling_event(np.array([0.5, 0.0, -0.5]), flip_probability=0.5)
    >>> event.patterns.astype(int).tolist(), event.probability
    ([[0, 0], [1, 1]], 0.5)
    """
    support = np.flatnonzero(contributions)
    size = len(support)
    if size > MAX_PATTERNS:
        raise ParameterError(
            f"The explanation has {size} literals; relevance can be measured for at most {MAX_PATTERNS}. Keep its "
            "largest terms."
        )
    values = np.asarray(contributions, dtype=np.float64)[support]
    sums, n_flipped = np.zeros(1), np.zeros(1, dtype=np.intp)
    for value in values[::-1]:  # bit j of a row number says whether literal j is flipped
        sums, n_flipped = np.add.outer((0.0, value), sums).T.ravel(), np.add.outer((0, 1), n_flipped).T.ravel()
    cancels = np.flatnonzero(np.abs(sums) <= CANCELS * np.abs(values).sum())
    p = flip_probability
    weights = p ** n_flipped[cancels] * (1 - p) ** (size - n_flipped[cancels])
    patterns = (cancels[:, None] >> np.arange(size)) & 1 == 1
    return Event(support, patterns, weights / weights.sum(), float(weights.sum()))


@dataclass(frozen=True, slots=True)
class ConditionalFlips:
    """Rows drawn given an event: a pattern of the support by its probability, all other literals freely."""

    free: DrawnFlips
    event: Event
    pattern_key: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.free.n_rows

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, None]:
        """Return flips (stop - start, d) as booleans; there are no weights."""
        flips, _ = self.free.rows(start, stop)
        chosen = np.zeros(stop - start, dtype=np.intp)
        if not self.event.is_literal:
            words = np.random.Philox(key=self.pattern_key).advance(start).random_raw(4 * (stop - start))[::4]
            ends = np.cumsum(self.event.shares)[:-1]
            chosen = np.searchsorted(ends, words * 2.0**-64, side="right")
        flips[:, self.event.support] = self.event.patterns[chosen]
        return flips, None

    def generator(self, start: int) -> np.random.Generator:
        """Return the generator of the free rows."""
        return self.free.generator(start)


@dataclass(frozen=True, slots=True)
class EnumeratedEvent:
    """All flips of an event, with their probabilities given the event."""

    n_literals: int
    flip_probability: float
    event: Event

    @property
    def n_rows(self) -> int:
        """Number of patterns of the support times number of flips of the rest."""
        return len(self.event.patterns) * self._free.n_rows

    @property
    def _free(self) -> EnumeratedFlips:
        return EnumeratedFlips(self.n_literals - len(self.event.support), self.flip_probability)

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return flips of rows ``start`` to ``stop`` with their probabilities given the event."""
        pattern, row = np.divmod(np.arange(start, stop), self._free.n_rows)
        free, weights = self._free.rows(0, self._free.n_rows)
        flips = np.zeros((stop - start, self.n_literals), dtype=bool)
        outside = np.setdiff1d(np.arange(self.n_literals), self.event.support)
        flips[:, outside] = free[row]
        flips[:, self.event.support] = self.event.patterns[pattern]
        return flips, weights[row] * self.event.shares[pattern]

    def generator(self, start: int) -> None:
        """Return None, because flips are enumerated only where they alone determine the inputs."""


Flips = DrawnFlips | EnumeratedFlips | ConditionalFlips | EnumeratedEvent
