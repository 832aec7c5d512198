"""Draws of the attributes: independent draws from named streams, or all of them with their probabilities."""

import hashlib
import itertools
import math
from dataclasses import dataclass

import numpy as np

from anchorline.errors import ParameterError
from anchorline.spaces.base import Law

_GROUP = 512  # rows drawn together, so that the draws of one attribute are contiguous, as their readers need
MAX_PATTERNS = 20  # literals of a support whose patterns are listed, of which there are at most 2^s
CANCELS = 1e-12


def stream_key(seed: int, row_key: bytes, stream: str) -> int:
    """Return the 128-bit Philox key of one stream of one row: BLAKE2b(seed, row key, stream name)."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (str(int(seed)).encode(), row_key, stream.encode()):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return int.from_bytes(digest.digest(), "little")


def reach_of(flip_probability: float, n_attributes: int, redraws: bool = False) -> float:
    r"""Return the probability that a neighbor differs from the case in at least one attribute.

    .. math:: 1 - (1 - p)^d

    It is 1 if attributes that keep their fact are redrawn (``redraws``), so that they may have another value.

    Examples
    --------
    >>> round(reach_of(0.2689, 8), 3), reach_of(1e-20, 8)
    (0.918, 8e-20)
    """
    return 1.0 if redraws else float(-np.expm1(n_attributes * np.log1p(-flip_probability)))


def reach_inside(reach: float, event_probability: float | None) -> float:
    r"""Return the probability that a neighbor in the event differs from the case, which lies in the event itself.

    .. math:: 1 - (1 - \text{reach}) / \Pr[A]

    Examples
    --------
    >>> round(reach_inside(0.75, 0.5), 3), reach_inside(0.75, 0.25)
    (0.5, 0.0)
    """
    share = 1 - (1 - reach) / (event_probability or 1.0)
    return share if share > 1e-9 else 0.0  # rounding


@dataclass(frozen=True, slots=True, eq=False)
class DrawnFlips:
    """``n_rows`` rows of independent draws; any slice of rows can be drawn alone, in any order.

    ``ends`` are those of a `Law`: a draw takes the first way whose end exceeds a uniform number, and is 0 if none
    does. Rows come in groups. Group g owns the Philox counters from ``g 2^64`` on, so that a row's draws depend
    only on (key, row, ends). Each draw is decided by one byte, attribute after attribute. A byte that equals the
    first 8 bits of an end is followed by 32 further bits, in the same order, so that probabilities are exact to
    2^-41.
    """

    key: int
    n_rows: int
    ends: np.ndarray

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, None]:
        """Return draws (stop - start, attributes), contiguous per attribute; there are no weights."""
        first, last = start // _GROUP, -(-stop // _GROUP)
        n_ways, n_attributes = self.ends.shape
        draws = np.empty((n_attributes, max(0, last - first) * _GROUP), dtype=np.min_scalar_type(n_ways))
        highs, generator = _smallest(self.ends >> 32)[:, :, None], np.random.Philox(key=self.key)
        state = generator.state
        for group in range(first, last):
            state["state"]["counter"][1] = group
            generator.state = state  # eight times faster than a new generator
            at = (group - first) * _GROUP
            places, exact = self._draw(generator, highs, draws[:, at : at + _GROUP])
            attributes, rows = np.divmod(places, _GROUP)
            draws[attributes, at + rows] = self._settled(attributes, exact)
        return draws[:, start - first * _GROUP : stop - first * _GROUP].T, None

    def _draw(
        self, generator: np.random.Philox, highs: np.ndarray, draws: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Fill in the draws (attributes, rows) of a group; ``highs`` (ways, attributes, 1) begin the ends.

        Return the places of ties, where the byte does not decide, and all 40 bits of their numbers.
        """
        short = _raw(generator, draws.size, "u1").reshape(draws.shape)
        ways, tied = (short < highs[-1]).view(np.uint8).astype(draws.dtype, copy=False), short == highs[-1]
        if len(highs) > 1:  # ends increase: a draw is the number of ways minus that of earlier ends that exceed
            ways *= len(highs)
        for high in highs[:-1]:
            ways -= (short < high).view(np.uint8)
            tied |= short == high
        draws[:] = ways
        places = np.flatnonzero(tied)
        return places, (short.reshape(-1)[places].astype(np.int64) << 32) + _raw(generator, len(places), "<u4")

    def _settled(self, attributes: np.ndarray, exact: np.ndarray) -> np.ndarray:
        """Return the draws of ties, given their attributes and all bits of their numbers."""
        *earlier, last = self.ends
        inside = exact < last.take(attributes)
        ways = inside.astype(np.intp)
        for end in earlier:
            ways += inside & (exact >= end.take(attributes))
        return np.asarray(ways)

    def generator(self, start: int) -> np.random.Generator:
        """Return the generator of values for the batch that starts at this row; twice as fast as Philox."""
        return np.random.Generator(np.random.PCG64DXSM([self.key, start]))


def _smallest(highs: np.ndarray) -> np.ndarray:
    """Return the first bits of all ends in the smallest type: bytes are compared fastest with bytes."""
    return highs.astype(np.uint8 if highs.max(initial=0) < 256 else np.uint16)


def _raw(generator: np.random.BitGenerator, n: int, kind: str) -> np.ndarray:
    """Return the next n raw numbers of a kind such as "u1", the same on every machine and version of NumPy."""
    per_word = 8 // np.dtype(kind).itemsize
    return generator.random_raw(-(-n // per_word)).astype("<u8", copy=False).view(kind)[:n]


@dataclass(frozen=True, slots=True, eq=False)
class EnumeratedFlips:
    """All draws with their probabilities: the "sample" is the distribution itself."""

    law: Law

    @property
    def n_rows(self) -> int:
        """The product of the numbers of outcomes of all attributes: 2^d if each changes in one way."""
        return math.prod((self.law.n_ways + 1).tolist())

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return draws of rows ``start`` to ``stop``, the digits of the row number, with their probabilities."""
        law = self.law
        draws = _digits(np.arange(start, stop), law.n_ways + 1).astype(np.min_scalar_type(law.shares.shape[1]))
        n_changed = np.count_nonzero(draws, axis=1)
        p = law.flip_probability
        weights = p**n_changed * (1 - p) ** (law.n_attributes - n_changed)
        shares = np.column_stack([np.ones(law.n_attributes), law.shares])
        return draws, weights * shares[np.arange(law.n_attributes), draws].prod(axis=1)

    def generator(self, start: int) -> None:
        """Return None, because draws are enumerated only where they alone determine the inputs."""


def _digits(numbers: np.ndarray, bases: np.ndarray) -> np.ndarray:
    """Return the digits (n, len(bases)) of numbers in mixed bases, the least significant first."""
    units = np.cumprod(np.r_[1, bases[:-1]]) if len(bases) else bases
    return np.asarray((numbers[:, None] // units) % bases)


@dataclass(frozen=True, eq=False)
class Event:
    """The draws whose broken contributions cancel, which is the event that relevance is conditioned on.

    ``attributes`` (s,) are those that the support speaks about. ``classes[i]`` (classes, 1 + ways) are sets of
    outcomes of attribute i, by the literals of the support that they break; class 0 breaks none. ``patterns``
    (m, s) are the combinations of classes that cancel, of which the first is "no literal is broken"; ``shares``
    (m,) are their probabilities given the event; ``probability`` is that of the event itself, P[A].
    ``is_literal`` says whether the event is exactly "no literal of the support is broken".
    """

    attributes: np.ndarray
    classes: tuple[np.ndarray, ...]
    patterns: np.ndarray
    shares: np.ndarray
    probability: float
    is_literal: bool


def cancelling_event(contributions: np.ndarray, law: Law) -> Event:
    r"""List the outcomes of the support's attributes with :math:`\sum_j u_j F_j = 0`, up to rounding.

    Outcomes of an attribute that break the same literals of the support form a class. All combinations of
    classes, at most :math:`2^{|S|}`, are tried; they cancel when :math:`|\sum_j u_j F_j| \le 10^{-12} \sum_j
    |u_j|`. At most 20 literals.

    Examples
    --------
    >>> event = cancelling_event(np.array([0.5, 0.0, -0.5]), Law.of_literals(3, flip_probability=0.5))
    >>> event.patterns.tolist(), event.probability
    ([[0, 0], [1, 1]], 0.5)
    """
    contributions = np.asarray(contributions, dtype=np.float64)
    support = law.members(np.flatnonzero(contributions))
    if len(support) > MAX_PATTERNS:
        raise ParameterError(
            f"The explanation has {len(support)} literals; relevance can be measured for at most {MAX_PATTERNS}. "
            "Keep its largest terms."
        )
    attributes = np.unique(law.groups[support])
    classes = [_Classes.of(law, a, support, contributions[support]) for a in attributes.tolist()]
    sums = np.zeros(1)
    for each in reversed(classes):  # digit i of a row number is the class of attribute i
        sums = np.add.outer(each.sums, sums).T.ravel()
    sizes = np.array([len(each.sums) for each in classes], dtype=np.intp)
    sums, n_broken = _with_pairs(sums, contributions, law, attributes, [each.outcomes for each in classes])
    cancels = np.flatnonzero(np.abs(sums) <= CANCELS * np.abs(contributions).sum())
    patterns = _digits(cancels, sizes)
    p, n_changed = law.flip_probability, np.count_nonzero(patterns, axis=1)
    weights = p**n_changed * (1 - p) ** (len(classes) - n_changed)
    for i, each in enumerate(classes):
        weights = weights * each.factors[patterns[:, i]]
    outcomes = tuple(each.outcomes for each in classes)
    is_literal = len(patterns) == 1 or not n_broken[cancels].any()
    return Event(attributes, outcomes, patterns, weights / weights.sum(), float(weights.sum()), is_literal)


def keeping_event(contributions: np.ndarray, law: Law) -> Event:
    r"""Return the event that no attribute of the support is drawn, so that all of them keep their values.

    Its probability is :math:`(1 - p)^s` for s attributes, whatever values the others take.

    Examples
    --------
    >>> keeping_event(np.array([0.5, 0.0, -0.5]), Law.of_literals(3, flip_probability=0.5)).probability
    0.25
    """
    attributes = np.unique(law.groups[np.flatnonzero(contributions)])
    keeps = np.arange(1 + law.shares.shape[1])[None] == 0
    patterns, n = np.zeros((1, len(attributes)), dtype=np.intp), len(attributes)
    return Event(attributes, (keeps,) * n, patterns, np.ones(1), (1 - law.flip_probability) ** n, is_literal=True)


def _with_pairs(
    sums: np.ndarray, contributions: np.ndarray, law: Law, attributes: np.ndarray, outcomes: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Add the contributions of broken pairs to the sums (n,) of all patterns; also count the broken literals.

    The count is 1 for every pattern but the first where there are no pairs.
    """
    support = np.flatnonzero(contributions)
    if not len(law.pairs) or not (support >= law.n_literals).any():
        return sums, np.arange(len(sums)) > 0
    patterns = _digits(np.arange(len(sums)), np.array([len(each) for each in outcomes], dtype=np.intp))
    draws = np.zeros((len(sums), law.n_attributes), dtype=np.uint8)
    for i, (attribute, each) in enumerate(zip(attributes.tolist(), outcomes, strict=True)):
        draws[:, attribute] = each.argmax(axis=1)[patterns[:, i]]  # any outcome of its class
    broken = law.flips(draws, support)
    is_pair = support >= law.n_literals
    return sums + broken[:, is_pair] @ contributions[support[is_pair]], broken.sum(axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class _Classes:
    """The outcomes of an attribute by the literals of a support that they break.

    ``outcomes`` (classes, 1 + ways), ``sums`` (classes,) of the broken contributions, and ``factors`` (classes,),
    the probabilities of the classes by `Law.factor`.
    """

    outcomes: np.ndarray
    sums: np.ndarray
    factors: np.ndarray

    @classmethod
    def of(cls, law: Law, attribute: int, support: np.ndarray, values: np.ndarray) -> "_Classes":
        own = law.groups[support] == attribute
        possible = np.r_[True, law.shares[attribute] > 0]
        broken = law.breaks[support[own]] & possible
        alike: dict[bytes, list[int]] = {broken[:, 0].tobytes(): []}  # nothing broken: the first class
        for outcome in np.flatnonzero(possible).tolist():
            alike.setdefault(broken[:, outcome].tobytes(), []).append(outcome)
        outcomes = np.zeros((len(alike), len(possible)), dtype=bool)
        for number, members in enumerate(alike.values()):
            outcomes[number, members] = True
        sums = [float(values[own][broken[:, members[0]]].sum()) for members in alike.values()]
        return cls(outcomes, np.array(sums), np.array([law.factor(attribute, each) for each in outcomes]))


@dataclass(frozen=True, slots=True, eq=False)
class ConditionalFlips:
    """Rows drawn given an event: a pattern of the support by its probability, all other attributes freely.

    Where a class of outcomes has several members, ``within_key`` is the key of the stream that draws one of them.
    """

    free: DrawnFlips
    event: Event
    law: Law
    pattern_key: int
    within_key: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.free.n_rows

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, None]:
        """Return draws (stop - start, attributes); there are no weights."""
        draws, _ = self.free.rows(start, stop)
        event, chosen = self.event, np.zeros(stop - start, dtype=np.intp)
        if len(event.patterns) > 1:
            words = np.random.Philox(key=self.pattern_key).advance(start).random_raw(4 * (stop - start))[::4]
            ends = np.cumsum(event.shares)[:-1]
            chosen = np.searchsorted(ends, words * 2.0**-64, side="right")
        members = np.vstack(event.classes) if event.classes else np.zeros((0, 1), dtype=bool)
        first = np.cumsum([0, *(len(outcomes) for outcomes in event.classes)])[:-1]
        columns = first + event.patterns[chosen]
        if (members.sum(axis=1) == 1).all():
            draws[:, event.attributes] = members.argmax(axis=1)[columns]
            return draws, None
        repeats = [len(outcomes) for outcomes in event.classes]
        ends = self.law.ends_within(event.attributes.repeat(repeats), members)
        within, _ = DrawnFlips(self.within_key, self.n_rows, ends).rows(start, stop)
        draws[:, event.attributes] = np.take_along_axis(within, columns, axis=1)
        return draws, None

    def generator(self, start: int) -> np.random.Generator:
        """Return the generator of the free rows."""
        return self.free.generator(start)


@dataclass(frozen=True, slots=True, eq=False)
class EnumeratedEvent:
    """All draws of an event, with their probabilities given the event."""

    law: Law
    event: Event

    @property
    def n_rows(self) -> int:
        """Number of outcomes of the support in the event times number of draws of the rest."""
        sizes = [outcomes.sum(axis=1) for outcomes in self.event.classes]
        n_outcomes = [
            math.prod(int(sizes[i][c]) for i, c in enumerate(row)) for row in self.event.patterns.tolist()
        ]
        return sum(n_outcomes) * self._free.n_rows

    @property
    def _outside(self) -> np.ndarray:
        return np.setdiff1d(np.arange(self.law.n_attributes), self.event.attributes)

    @property
    def _free(self) -> EnumeratedFlips:
        return EnumeratedFlips(self.law.part(self._outside))

    def _inside(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all outcomes (m, s) of the support in the event, and their probabilities given the event."""
        event, rows, weights = self.event, list[tuple[int, ...]](), list[float]()
        for pattern, share in zip(event.patterns.tolist(), event.shares.tolist(), strict=True):
            members = [np.flatnonzero(event.classes[i][c]) for i, c in enumerate(pattern)]
            odds = [self.law.odds(a, each) for a, each in zip(event.attributes.tolist(), members, strict=True)]
            rows += itertools.product(*(each.tolist() for each in members))
            weights += [share * math.prod(each) for each in itertools.product(*odds)]
        return np.array(rows, dtype=np.intp).reshape(len(rows), len(event.attributes)), np.array(weights)

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return draws of rows ``start`` to ``stop`` with their probabilities given the event."""
        pattern, row = np.divmod(np.arange(start, stop), self._free.n_rows)
        free, weights = self._free.rows(0, self._free.n_rows)
        inside, shares = self._inside()
        draws = np.zeros((stop - start, self.law.n_attributes), dtype=free.dtype)
        draws[:, self._outside] = free[row]
        draws[:, self.event.attributes] = inside[pattern]
        return draws, weights[row] * shares[pattern]

    def generator(self, start: int) -> None:
        """Return None, because draws are enumerated only where they alone determine the inputs."""


Flips = DrawnFlips | EnumeratedFlips | ConditionalFlips | EnumeratedEvent
