"""Flips: independent draws from named streams, or all of them with their probabilities."""

import hashlib
import math
from dataclasses import dataclass

import numpy as np

from anchorline.errors import ParameterError

_GROUP = 512  # rows drawn together, so that a literal's flips lie side by side, as their readers want them
MAX_PATTERNS = 20  # literals of a support whose 2^s patterns are listed
CANCELS = 1e-12
_MIN_PROBABILITY = 1e-300  # beyond sigma = 690 nothing is ever flipped anyway


def flip_probability_of(sigma: float) -> float:
    r"""Probability that a literal is flipped at concentration sigma: :math:`p = 1 / (1 + e^\sigma)`.

    Examples
    --------
    >>> flip_probability_of(0.0), round(flip_probability_of(1.0), 4)
    (0.5, 0.2689)
    """
    number = isinstance(sigma, (int, float, np.number)) and not isinstance(sigma, bool)
    if not (number and math.isfinite(sigma) and sigma >= 0):
        raise ParameterError(
            f"sigma is {sigma!r}; needed a finite number >= 0: 0 is uniform, 3 very local. Type sigma=1.0."
        )
    return max(math.exp(-sigma) / (1 + math.exp(-sigma)), _MIN_PROBABILITY)


def stream_key(seed: int, row_key: bytes, stream: str) -> int:
    """128-bit Philox key of one stream of one row: BLAKE2b(seed, row key, stream name)."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (str(int(seed)).encode(), row_key, stream.encode()):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return int.from_bytes(digest.digest(), "little")


@dataclass(frozen=True, slots=True)
class DrawnFlips:
    """``n_rows`` rows of independent flips; any slice of rows can be had alone, in any order.

    Rows come in groups; group g owns the Philox counters from ``g 2^64`` on, so a row's flips depend on (key, row,
    d, p) only. First come bytes, the rows of one literal after those of another: below ``floor(p 2^8)`` is a flip,
    above it is none. Those equal to it are decided by 32 bits more each, in the same order: the law is met to
    2^-41.
    """

    key: int
    n_rows: int
    n_literals: int
    flip_probability: float

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, None]:
        """Flips (stop - start, d) as booleans, every literal's side by side; no weights."""
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
        """What a space draws values from for the batch that starts at this row; twice as fast as Philox."""
        return np.random.Generator(np.random.PCG64DXSM([self.key, start]))


def _raw(generator: np.random.BitGenerator, n: int, kind: str) -> np.ndarray:
    """The next n raw numbers of a kind, such as "u1": the same on every machine and version of NumPy."""
    a_word = 8 // np.dtype(kind).itemsize
    return generator.random_raw(-(-n // a_word)).astype("<u8", copy=False).view(kind)[:n]


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
        """Flips of rows ``start`` to ``stop`` (the bits of the row number), and their probabilities."""
        flips = (np.arange(start, stop)[:, None] >> np.arange(self.n_literals)) & 1 == 1
        n_flipped = flips.sum(axis=1)
        p = self.flip_probability
        return flips, p**n_flipped * (1 - p) ** (self.n_literals - n_flipped)

    def generator(self, start: int) -> None:
        """None: only flips that decide the inputs alone are enumerated."""


@dataclass(frozen=True, eq=False)
class Event:
    """The flips of a support whose contributions cancel: the event relevance conditions on.

    ``patterns`` (m, s) are those flips, the first one "nothing flipped"; ``shares`` (m,) their
    probabilities given the event; ``probability`` that of the event itself, P[A].
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
            f"The explanation has {size} literals; the event of relevance is listed for at most "
            f"{MAX_PATTERNS}. Keep its largest terms."
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
    """Rows drawn given an event: a pattern of the support by its probability, the rest freely."""

    free: DrawnFlips
    event: Event
    pattern_key: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.free.n_rows

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, None]:
        """Flips (stop - start, d) as booleans; no weights."""
        flips, _ = self.free.rows(start, stop)
        chosen = np.zeros(stop - start, dtype=np.intp)
        if not self.event.is_literal:
            words = np.random.Philox(key=self.pattern_key).advance(start).random_raw(4 * (stop - start))[::4]
            ends = np.cumsum(self.event.shares)[:-1]
            chosen = np.searchsorted(ends, words * 2.0**-64, side="right")
        flips[:, self.event.support] = self.event.patterns[chosen]
        return flips, None

    def generator(self, start: int) -> np.random.Generator:
        """As of the free rows."""
        return self.free.generator(start)


@dataclass(frozen=True, slots=True)
class EnumeratedEvent:
    """All flips of an event, with their probabilities given the event."""

    n_literals: int
    flip_probability: float
    event: Event

    @property
    def n_rows(self) -> int:
        """Patterns of the support times flips of the rest."""
        return len(self.event.patterns) * self._free.n_rows

    @property
    def _free(self) -> EnumeratedFlips:
        return EnumeratedFlips(self.n_literals - len(self.event.support), self.flip_probability)

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Flips of rows ``start`` to ``stop``, and their probabilities given the event."""
        pattern, row = np.divmod(np.arange(start, stop), self._free.n_rows)
        free, weights = self._free.rows(0, self._free.n_rows)
        flips = np.zeros((stop - start, self.n_literals), dtype=bool)
        outside = np.setdiff1d(np.arange(self.n_literals), self.event.support)
        flips[:, outside] = free[row]
        flips[:, self.event.support] = self.event.patterns[pattern]
        return flips, weights[row] * self.event.shares[pattern]

    def generator(self, start: int) -> None:
        """None: only flips that decide the inputs alone are enumerated."""


Flips = DrawnFlips | EnumeratedFlips | ConditionalFlips | EnumeratedEvent
