"""The interface between spaces and the rest of the library: literals, the law of draws, neighborhoods and spaces.

`Neighborhood` and `Space` are protocols, so that users can write their own spaces without inheriting from them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from anchorline.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Literal:
    """A statement that is true of the instance: the name of the attribute it describes, and its text.

    A flip makes ``text`` false. ``held`` is the statement that is true of every neighbor in which the literal is
    not flipped. It equals ``text``, unless such a neighbor also keeps the attribute's value.

    Examples
    --------
    >>> Literal("age", "37 <= age < 48", "age keeps its value 41").held
    'age keeps its value 41'
    >>> Literal("member", "member = True").held
    'member = True'
    """

    name: str
    text: str
    held: str = ""

    def __post_init__(self) -> None:
        if not self.held:
            object.__setattr__(self, "held", self.text)


class Change(NamedTuple):
    """One way in which an attribute changes: its share of all changes, and the literals that it breaks.

    ``breaks`` are indices of literals. The shares of an attribute's changes add up to 1.

    Examples
    --------
    >>> below, above = Change(0.6, breaks=(0, 2)), Change(0.4, breaks=(1, 2))  # of two bounds and an interval
    >>> below.share + above.share
    1.0
    """

    share: float
    breaks: tuple[int, ...]


class Source(NamedTuple):
    """Where a breakable attribute takes its values from, as (begin, size) in the circular pool.

    ``kept`` are the rows from which an attribute that keeps its literal takes its value; its size is 0 if it keeps
    its value. ``ways`` are the rows of each way of changing.
    """

    attribute: int
    kept: tuple[int, int]
    ways: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Literals that speak about two literals at once, whose indices are ``members`` (m, 2).

    A conjunction, ``a and b``, is broken if one of the two is broken, or both. A parity, ``a and b, or neither``,
    is broken if exactly one of the two is broken. On the hypercube, that is the product of two coordinates.

    Examples
    --------
    >>> flips = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=bool)
    >>> Pairs(np.array([[0, 1]])).joined_to(flips)[:, 2].astype(int).tolist()
    [0, 1, 1, 1]
    >>> Pairs(np.array([[0, 1]]), parity=True).joined_to(flips)[:, 2].astype(int).tolist()
    [0, 1, 1, 0]
    """

    members: np.ndarray
    parity: bool = False

    def __len__(self) -> int:
        return len(self.members)

    def joined_to(self, flips: np.ndarray) -> np.ndarray:
        """Return flips (n, d) of the literals, followed by those of the pairs, (n, d + m)."""
        first, second = flips[:, self.members[:, 0]], flips[:, self.members[:, 1]]
        return np.column_stack([flips, first ^ second if self.parity else first | second])

    def literals(self, literals: Sequence[Literal]) -> tuple[Literal, ...]:
        """Return the pairs as literals, given all others.

        Examples
        --------
        >>> a, b = Literal("age", "age >= 37"), Literal("member", "member = True")
        >>> Pairs(np.array([[0, 1]])).literals([a, b])[0].text
        'age >= 37 and member = True'
        >>> Pairs(np.array([[0, 1]]), parity=True).literals([a, b])[0].text
        'age >= 37 and member = True, or neither'
        """
        end = ", or neither" if self.parity else ""
        both = [(literals[i], literals[j]) for i, j in self.members.tolist()]
        return tuple(
            Literal(f"{a.name} and {b.name}", f"{a.text} and {b.text}{end}", f"{a.held} and {b.held}{end}")
            for a, b in both
        )


NO_PAIRS = Pairs(np.zeros((0, 2), dtype=np.intp))


@dataclass(frozen=True, eq=False)
class Law:
    """How the attributes are drawn, and which literals each outcome breaks.

    An attribute keeps its value with probability 1 - p, or it changes in one of a few ways. A *draw* says which:
    0, or the number of the way. Attributes are drawn independently of each other. Where every literal is an
    attribute that changes in one way, draws and flips are the same.

    ``shares`` (attributes, ways) are the shares of an attribute's ways in its changes, 0 beyond its last way.
    ``groups`` (literals,) are the attributes that the literals speak about, and ``breaks`` (literals, 1 + ways)
    says which outcomes of its attribute break a literal; outcome 0, "keeps its value", never does. ``pairs`` are
    further literals, each about two of these, which follow them in every array of flips.
    """

    flip_probability: float
    shares: np.ndarray
    groups: np.ndarray
    breaks: np.ndarray
    pairs: Pairs = NO_PAIRS

    @classmethod
    def of_literals(cls, n_literals: int, flip_probability: float) -> "Law":
        """Return the law in which every literal is an attribute that changes in one way."""
        breaks = np.tile([False, True], (n_literals, 1))
        return cls(flip_probability, np.ones((n_literals, 1)), np.arange(n_literals), breaks)

    @classmethod
    def of_changes(cls, changes: Sequence[Sequence[Change]], n_literals: int, flip_probability: float) -> "Law":
        """Return the law of attributes that change in these ways.

        Examples
        --------
        >>> age = (Change(0.6, (0, 2)), Change(0.4, (1, 2)))  # below and above, of two bounds and an interval
        >>> law = Law.of_changes([age, (Change(1.0, (3,)),)], n_literals=4, flip_probability=0.5)
        >>> law.flips(np.array([[1, 0], [2, 1]])).astype(int).tolist()
        [[1, 0, 1, 0], [0, 1, 1, 1]]
        >>> law.probability_unbroken([0]), law.probability_unbroken([2, 3])
        (0.7, 0.25)
        """
        counts, every = [len(ways) for ways in changes], [change for ways in changes for change in ways]
        owners = np.repeat(np.arange(len(counts)), counts)
        ways = np.arange(len(every)) - (np.cumsum(counts) - counts)[owners]  # from 0, per attribute
        shares, breaks = np.zeros((len(counts), max(counts))), np.zeros((n_literals, 1 + max(counts)), dtype=bool)
        shares[owners, ways] = [change.share for change in every]
        by = np.repeat(np.arange(len(every)), [len(change.breaks) for change in every])  # of a broken literal
        literals, owners = np.array([j for change in every for j in change.breaks], dtype=np.intp), owners[by]
        groups = np.full(n_literals, -1)
        breaks[literals, 1 + ways[by]], groups[literals] = True, owners
        if (groups[literals] != owners).any():
            raise ParameterError("A literal is broken by changes of two attributes; it must speak about one.")
        if (groups < 0).any() or not (np.abs(shares.sum(axis=1) - 1) <= 1e-5).all():  # also catches NaN
            raise ParameterError(
                "A literal is broken by no change, or the shares of an attribute's changes do not add up to 1. "
                "Every literal must be in the breaks of a change, and shares must add up to 1 per attribute."
            )
        return cls(flip_probability, shares, groups, breaks)

    @property
    def n_literals(self) -> int:
        """Number of literals other than pairs."""
        return len(self.groups)

    @property
    def n_attributes(self) -> int:
        """Number of attributes."""
        return len(self.shares)

    @cached_property
    def one_to_one(self) -> bool:
        """Whether every literal is an attribute that changes in one way, so that draws are flips."""
        return self.shares.shape[1] == 1 and np.array_equal(self.groups, np.arange(self.n_attributes))

    @cached_property
    def n_ways(self) -> np.ndarray:
        """Number of ways in which each attribute changes, (attributes,)."""
        return np.asarray(np.count_nonzero(self.shares, axis=1))

    @cached_property
    def ends(self) -> np.ndarray:
        """Cumulated probabilities of the ways, in units of 2^-40, (ways, attributes).

        A draw takes the first way whose end exceeds a uniform number.
        """
        ends = self.flip_probability * np.cumsum(self.shares, axis=1)
        ends[np.arange(ends.shape[1]) >= self.n_ways[:, None] - 1] = self.flip_probability
        return np.asarray(np.rint(ends.T * 2**40), dtype=np.int64)

    def flips(self, draws: np.ndarray, literals: np.ndarray | None = None) -> np.ndarray:
        """Return which of the literals, by default of all, the draws (n, attributes) break: booleans (n, m)."""
        if self.pairs:
            flips = self.pairs.joined_to(self._flips(draws))
            return flips if literals is None else flips[:, literals]
        return self._flips(draws, literals)

    def _flips(self, draws: np.ndarray, literals: np.ndarray | None = None) -> np.ndarray:
        """Return which literals other than pairs the draws break."""
        if self.one_to_one:
            flips: np.ndarray = draws.view(bool) if draws.dtype == np.uint8 else draws.astype(bool)
            return flips if literals is None else flips[:, literals]
        literals = np.arange(self.n_literals) if literals is None else literals
        drawn = draws.T[self.groups[literals]]
        flips = np.zeros(drawn.shape, dtype=bool)
        for way in range(1, self.breaks.shape[1]):
            flips |= (drawn == way) & self.breaks[literals, way, None]
        return flips.T

    def as_realized(self, draws: np.ndarray) -> np.ndarray:
        """Return the draws as a neighborhood realizes them: flips, if every attribute changes in one way."""
        return draws.view(bool) if self.shares.shape[1] == 1 else draws

    @cached_property
    def _outcomes(self) -> tuple[np.ndarray, np.ndarray]:
        """Attribute and way of every outcome other than "keeps its value", attribute by attribute."""
        attributes, ways = np.nonzero(self.shares)
        return attributes, ways + 1

    def outcomes(self, draws: np.ndarray) -> np.ndarray:
        """Return which outcomes the draws (n, attributes) have, as booleans (n, outcomes)."""
        if self.one_to_one:
            return self.flips(draws)
        attributes, ways = self._outcomes
        return np.asarray(draws.T[attributes] == ways[:, None].astype(draws.dtype)).T  # types that differ are slow

    @cached_property
    def incidence(self) -> np.ndarray:
        """Whether an outcome breaks a literal, (outcomes, literals)."""
        attributes, ways = self._outcomes
        numbers = np.full((self.n_attributes, self.breaks.shape[1]), -1)
        numbers[attributes, ways] = np.arange(len(ways))
        literals, ways = self.breaks.nonzero()
        incidence = np.zeros((self.n_literals, 1 + len(attributes)), dtype=bool)
        incidence[literals, numbers[self.groups[literals], ways]] = True  # -1 is the last column, which is cut off
        return incidence[:, :-1].T

    @cached_property
    def literal_probabilities(self) -> np.ndarray:
        """Probability that each literal is broken, (literals,)."""
        shares = self.shares[self.groups]
        return np.asarray(self.flip_probability * np.where(self.breaks[:, 1:], shares, 0.0).sum(axis=1))

    def probability_unbroken(self, support: Sequence[int]) -> float:
        r"""Return the probability that no literal of a support is broken, :math:`\prod_a (1 - p\,b_a)`.

        The product is over attributes; :math:`b_a` is the share of changes that break a literal of the support.
        """
        literals = np.asarray(support, dtype=np.intp)
        p, probability = self.flip_probability, 1.0
        attributes = np.unique(self.groups[literals])
        for attribute in attributes.tolist():
            broken = self.breaks[literals[self.groups[literals] == attribute]].any(axis=0)
            probability *= self.factor(attribute, ~broken)
        return float((1 - p) ** len(attributes) * probability)

    def members(self, support: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the literals of a support, and those of its pairs, once each and in order."""
        support = np.asarray(support, dtype=np.intp)
        pairs = self.pairs.members[support[support >= self.n_literals] - self.n_literals]
        return np.unique(np.concatenate([support[support < self.n_literals], pairs.ravel()]))

    def keeps_values(self, support: Sequence[int]) -> bool:
        """Return whether every attribute of a support keeps its value wherever no literal of it is broken."""
        if self.pairs.parity and max(support, default=0) >= self.n_literals:
            return False  # both values of a pair may change
        literals = self.members(support)
        for attribute in np.unique(self.groups[literals]).tolist():
            broken = self.breaks[literals[self.groups[literals] == attribute]].any(axis=0)
            if not broken[1:][self.shares[attribute] > 0].all():
                return False
        return True

    def largest_unbroken(self, n_attributes: int) -> float:
        """Return the largest probability with which some literals of that many attributes are all unbroken."""
        factors = np.array([self.factor(a, ~self.breaks[j]) for j, a in enumerate(self.groups.tolist())])
        largest = np.zeros(self.n_attributes)
        np.maximum.at(largest, self.groups, factors)
        n_attributes = min(n_attributes, self.n_attributes)
        best = np.sort(largest)[self.n_attributes - n_attributes :]
        return float((1 - self.flip_probability) ** n_attributes * best.prod())

    def factor(self, attribute: int, outcomes: np.ndarray) -> float:
        """Return the probability of some outcomes (1 + ways,), divided by 1 - p if 0 is one of them, else by p.

        It is exactly 1 for an attribute that changes in one way.
        """
        p, share = self.flip_probability, float(self.shares[attribute] @ outcomes[1:])
        if not outcomes[0]:
            return min(1.0, share)
        return 1.0 if not share else (1 - p + p * min(1.0, share)) / (1 - p)

    def odds(self, attribute: int, outcomes: np.ndarray) -> list[float]:
        """Return the probabilities of some outcomes of an attribute, given that it has one of them."""
        p = self.flip_probability
        chances = np.r_[1 - p, p * self.shares[attribute]][outcomes]
        return [1.0] if len(outcomes) == 1 else (chances / chances.sum()).tolist()

    def ends_within(self, attributes: np.ndarray, members: np.ndarray) -> np.ndarray:
        """Return the ends (ways, m) of draws of attributes (m,) given that they have one of their members.

        ``members`` (m, 1 + ways) are sets of outcomes.
        """
        p = self.flip_probability
        chances = np.column_stack([np.full(len(attributes), 1 - p), p * self.shares[attributes]]) * members
        later = np.cumsum(chances[:, :1:-1], axis=1)[:, ::-1]
        beyond = chances[:, :1] + np.column_stack([later, np.zeros(len(chances))])
        ends = 1 - beyond / chances.sum(axis=1, keepdims=True)
        return np.asarray(np.rint(ends.T * 2**40), dtype=np.int64)

    def part(self, attributes: np.ndarray) -> "Law":
        """Return the law of some attributes alone, without literals."""
        none = np.zeros(0, dtype=np.intp)
        return Law(self.flip_probability, self.shares[attributes], none, self.breaks[:0])


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a table, or a model and its table, that makes explanations misleading.

    ``code`` names the kind of finding for programs, ``columns`` the columns concerned, if any. ``text`` says in
    whole sentences what was found and what to do.
    """

    code: str
    text: str
    columns: tuple[str, ...] = ()


class Neighborhood(Protocol):
    """An instance, and the neighbors that are reached from it by breaking literals.

    More members are optional. ``rows_per_call`` is the number of neighbors that the model receives in one
    call, if it is less than 4,096, so that large inputs such as images need little memory. ``changes`` holds, for
    every attribute, a tuple of `Change`. Attributes are what is drawn, and literals are statements about the
    outcome: an attribute keeps its value, or changes in one of these ways. Unless every attribute has one way,
    ``realize`` then receives draws (n, attributes) of whole numbers instead of flips: 0 where the attribute keeps
    its value, and i where it changes in way i. Without ``changes``, every literal is an attribute that changes in
    one way, which breaks it. If ``flips_follow``, draws only say which attributes take a new value, and
    ``decide(draws, rng)`` returns model inputs and the ways (n, attributes) in which these values change them.
    """

    @property
    def literals(self) -> tuple[Literal, ...]:
        """The statements that are true of the instance, in order."""

    @property
    def key(self) -> bytes:
        """The identity of the instance: equal instances have equal keys on every machine."""

    @property
    def original(self) -> Any:
        """The instance as a model input of one row."""

    @property
    def deterministic(self) -> bool:
        """Whether flips alone determine the model input; only then can all flips be enumerated."""

    @property
    def instance(self) -> list[Any]:
        """The instance as plain Python values for JSON; `Space.at` accepts them, so that others can verify."""

    def realize(self, flips: np.ndarray, rng: np.random.Generator | None) -> Any:
        """Return model inputs, one per row of ``flips`` (n, d): literal j is broken where ``flips[i, j]``.

        All random values are drawn from ``rng``, which is None only when flips are enumerated.
        """


class Space(Protocol):
    """All instances of one kind.

    More members are optional. ``space.examples()`` yields batches of model inputs, from which the range of a
    regressor's outputs is learned; it may take the number of rows that `Explainer.check` needs.
    ``space.check()`` returns findings about the space itself, which `Explainer.check` includes.
    ``space.instances(given)`` returns a sequence of instances from what `Explainer.explain_many` was given, such
    as a column of texts; without it, rows of frames, arrays and lists are instances.
    ``neighborhood.fixed`` maps every attribute that never changes to the reason. ``neighborhood.unseen`` maps
    every attribute whose value no example has to what is new.
    """

    @property
    def fingerprint(self) -> str:
        """The identity of the space, which is recorded in every explanation."""

    def at(self, instance: Any) -> Neighborhood:
        """Check an instance and return its neighborhood; raise `InstanceError` if it is not in this space."""
