r"""The neighborhood distribution :math:`\mathcal D_{x, \sigma}`: its draws, its events, and the model's answers.

Every coordinate of a neighbor z differs from x with probability :math:`p = 1 / (1 + e^\sigma)`, independently. The
constant, an additional coordinate +1 of x, never differs.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.errors import InstanceError, ParameterError, PredictorOutputError
from anchorline.guarantees.intervals import checked_count, checked_sigma

DROP_GRID = 2.0**26  # drops are multiples of 1 / DROP_GRID, so that sums of 2^27 of them are exact in any order
MAX_PATTERNS = 20  # literals of a support whose patterns are listed, of which there are 2^s
_CANCELS = 1e-12  # flipped contributions cancel if their sum is below this share of their sizes
_GROUP = 512  # rows drawn together
_ROWS_PER_CALL = 4096
_OUTSIDE = 1e-9  # an output beyond -1 or +1 by at most this much is rounded

Predict = Callable[[np.ndarray], Any]


def flip_probability(sigma: float) -> float:
    r"""Return the probability that a coordinate of a neighbor differs from x, :math:`p = 1 / (1 + e^\sigma)`.

    >>> flip_probability(0.0), round(flip_probability(1.0), 4)
    (0.5, 0.2689)
    """
    return 1.0 / (1.0 + math.exp(checked_sigma(sigma)))


@dataclass(frozen=True, eq=False)
class Sample:
    """Neighbors and the model's answers: flips (n, d), booleans, and drops (n,), half of f(x) - f(z)."""

    flips: np.ndarray
    drops: np.ndarray

    def losses(self, contributions: np.ndarray, gap: float = 0.0) -> np.ndarray:
        r"""Fidelity losses :math:`\ell(w \cdot z, f(z))` (n,) of w with anchoring gap :math:`w \cdot x - f(x)`."""
        sums = np.zeros(len(self.flips))
        for j in np.flatnonzero(contributions):  # one by one, so that no BLAS thread can change a bit
            sums += self.flips[:, j] * contributions[j]
        return np.asarray((self.drops - sums + gap / 2) ** 2)


@dataclass(frozen=True, eq=False)
class Event:
    r"""The event :math:`w \cdot z = w \cdot x` that relevance is conditioned on.

    ``patterns`` (m, s), booleans, are the flips of the s literals in ``support`` whose contributions cancel; in
    the first one, no literal is flipped. ``shares`` (m,) are their probabilities given the event, and
    ``probability`` is that of the event itself.
    """

    support: np.ndarray
    patterns: np.ndarray
    shares: np.ndarray
    probability: float


def cancelling_event(contributions: np.ndarray, p: float) -> Event:
    r"""List the flips of the support with :math:`\sum_j u_j F_j = 0`, up to rounding, at flip probability p.

    All :math:`2^s` patterns of the s literals are tried, so that s may be at most 20.

    >>> event = cancelling_event(np.array([0.5, 0.0, -0.5]), 0.5)
    >>> event.patterns.astype(int).tolist(), event.probability
    ([[0, 0], [1, 1]], 0.5)
    """
    support = np.flatnonzero(contributions)
    values, sums = np.asarray(contributions, dtype=np.float64)[support], np.zeros(1)
    if len(support) > MAX_PATTERNS:
        raise ParameterError(
            f"The explanation has {len(support)} literals; relevance can be measured for at most {MAX_PATTERNS}. "
            "Type a smaller k."
        )
    for value in values:  # bit i of a position says whether literal i is flipped
        sums = np.concatenate([sums, sums + value])
    cancels = np.flatnonzero(np.abs(sums) <= _CANCELS * np.abs(values).sum())
    patterns = (cancels[:, None] >> np.arange(len(support))) & 1 == 1
    n_flipped = np.count_nonzero(patterns, axis=1)
    weights = p**n_flipped * (1 - p) ** (len(support) - n_flipped)
    return Event(support, patterns, weights / weights.sum(), float(weights.sum()))


@dataclass(frozen=True, eq=False)
class Neighborhood:
    r"""A model, an instance x in {-1, +1}^d and :math:`\mathcal D_{x, \sigma}`; constructing it asks nothing.

    ``predict`` maps rows (n, d) of -1 and +1 to outputs (n,) in [-1, +1]. Draws depend on nothing but the seed, x,
    sigma and the name of a stream, and are the same on every machine.

    >>> around = Neighborhood(lambda z: z[:, 0] / 2, [1, -1, 1], sigma=1.0)
    >>> around.prediction, round(float(around.sample(1000).drops.mean()), 2)
    (0.5, 0.13)
    """

    predict: Predict
    x: Any
    sigma: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        point = _checked_point(self.x)
        point.setflags(write=False)
        object.__setattr__(self, "x", point)
        checked_sigma(self.sigma)
        checked_count("seed", self.seed, minimum=0)

    @property
    def flip_probability(self) -> float:
        """Probability that a coordinate differs."""
        return flip_probability(self.sigma)

    @cached_property
    def prediction(self) -> float:
        """The model's output f(x), asked once."""
        return float(self._ask(self.x[None])[0])

    def sample(self, n: int, stream: str = "search") -> Sample:
        """Draw n neighbors from a named stream, and ask the model about them."""
        return self._answered(self._draw(stream, checked_count("n", n)))

    def sample_event(self, event: Event, n: int, stream: str = "assess") -> Sample:
        """Draw n neighbors given an event: a pattern by its share, all other coordinates freely."""
        flips, chosen = self._draw(f"{stream}/event", checked_count("n", n)), np.zeros(n, dtype=np.intp)
        if len(event.patterns) > 1:
            words = np.random.Philox(key=self._key(f"{stream}/pattern")).random_raw(4 * n)[::4]
            chosen = np.searchsorted(np.cumsum(event.shares)[:-1], words * 2.0**-64, side="right")
        flips[:, event.support] = event.patterns[chosen]
        return self._answered(flips)

    def _answered(self, flips: np.ndarray) -> Sample:
        outputs = np.empty(len(flips))
        for start in range(0, len(flips), _ROWS_PER_CALL):
            rows = slice(start, start + _ROWS_PER_CALL)
            outputs[rows] = self._ask(np.where(flips[rows], -self.x, self.x))
        return Sample(flips, np.rint((self.prediction - outputs) * (DROP_GRID / 2)) / DROP_GRID)

    def _key(self, stream: str) -> int:
        """Return the 128-bit Philox key of a stream: BLAKE2b of the seed, x and the stream's name."""
        digest = hashlib.blake2b(digest_size=16)
        point = b"hypercube:" + self.x.astype(np.int8).tobytes()
        for part in (str(int(self.seed)).encode(), point, stream.encode()):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        return int.from_bytes(digest.digest(), "little")

    def _draw(self, stream: str, n: int) -> np.ndarray:
        """Return flips (n, d); longer draws begin with shorter ones.

        Rows come in groups; group g owns the Philox counters from ``g 2^64`` on. One byte decides a flip, and 32
        further bits decide a tie with the first 8 bits of p, so that probabilities are exact to 2^-41.
        """
        end, d, n_groups = round(self.flip_probability * 2**40), len(self.x), -(-n // _GROUP)
        flips = np.empty((d, n_groups * _GROUP), dtype=bool)
        generator = np.random.Philox(key=self._key(stream))
        state: Any = generator.state
        for group in range(n_groups):
            state["state"]["counter"][1] = group
            generator.state = state  # eight times faster than a new generator
            drawn = flips[:, group * _GROUP : (group + 1) * _GROUP]
            first = _raw(generator, d * _GROUP, "u1").reshape(drawn.shape)
            drawn[:] = first < end >> 32
            ties = np.flatnonzero(first == end >> 32)
            exact = (end >> 32 << 32) + _raw(generator, len(ties), "<u4").astype(np.int64)
            drawn[np.divmod(ties, _GROUP)] = exact < end
        return np.ascontiguousarray(flips[:, :n].T)

    def _ask(self, rows: np.ndarray) -> np.ndarray:
        answer = np.asarray(self.predict(rows))
        if answer.shape != (len(rows),):
            raise PredictorOutputError.wrong_shape(answer.shape, len(rows))
        if answer.dtype.kind not in "fiub":
            raise PredictorOutputError.not_numbers(answer)
        outputs = answer.astype(np.float64)
        wrong = ~(np.abs(outputs) <= 1 + _OUTSIDE)  # also catches NaN
        if wrong.any():
            raise PredictorOutputError(
                f"The predictor returned {outputs[wrong][0]:g}; the paper's models return numbers in [-1, +1]. "
                "For probabilities, type `lambda z: 2 * model.predict_proba(z)[:, 1] - 1`."
            )
        return np.clip(outputs, -1.0, 1.0)


def _raw(generator: np.random.BitGenerator, n: int, kind: str) -> np.ndarray:
    """Return the next n raw numbers of a kind such as "u1", the same on every machine and version of NumPy."""
    per_word = 8 // np.dtype(kind).itemsize
    return generator.random_raw(-(-n // per_word)).astype("<u8", copy=False).view(kind)[:n]


def _checked_point(x: Any) -> np.ndarray:
    try:
        point = np.array(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InstanceError(f"x is not numeric ({error}); it must hold -1 and +1. Type x = [1, -1, 1].") from None
    if point.ndim != 1 or not point.size:
        raise InstanceError(
            f"x has shape {point.shape}; it must be one row, of shape (d,) with d >= 1. Type x = [1, -1, 1]."
        )
    wrong = np.flatnonzero(np.abs(point) != 1)
    if wrong.size:
        raise InstanceError(
            f"x[{wrong[0]}] is {point[wrong[0]]:g}; every value must be -1 or +1. For a table, type "
            "`anchorline.paper.Binarizer().fit_transform(table)`; for 0 and 1, type `2 * x - 1`."
        )
    return point
