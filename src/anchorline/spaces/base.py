"""What an instance is, and what its neighbors are: the base classes of all spaces.

A `Space` knows the kind of instance; a `Neighborhood` is one instance in it. An attribute of a neighbor either
keeps its own value (-1) or takes that of a *donor*, a row of the attribute's pool: (attributes, n) arrays of
donors are what a law draws, what becomes model inputs, and what breaks facts.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from anchorline.facts import Candidates, Fact
from anchorline.laws import Random

if TYPE_CHECKING:
    from anchorline.spaces.rows import Schema

OTHER, OWN = 0, 1  # the two donors of every pool; -1 keeps the own value without a draw


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a setup that would make explanations misleading: a code, a text, and the columns."""

    code: str
    text: str
    columns: tuple[str, ...] = ()


class Neighborhood(ABC):
    """One instance, what may be stated about it, and how its neighbors are drawn.

    ``names`` are those of the attributes. ``is_product`` says whether attributes are drawn independently of each
    other, so that the moments of facts are known; otherwise they come from the sample.
    """

    names: tuple[str, ...]
    is_product: bool = True
    has_missing: bool = False  # whether the last cell of every view holds missing values

    @property
    @abstractmethod
    def key(self) -> bytes:
        """What distinguishes the instance from others, for its streams of random numbers."""

    @property
    @abstractmethod
    def instance(self) -> Any:
        """The instance in plain values, for JSON; `Space.at` accepts it."""

    @property
    @abstractmethod
    def original(self) -> Any:
        """The instance as model input of one row; a copy, which the model may change."""

    @property
    @abstractmethod
    def candidates(self) -> Candidates:
        """The facts that may be stated about the instance."""

    @abstractmethod
    def fact(self, candidate: int) -> Fact:
        """Return a candidate as a statement."""

    @abstractmethod
    def draw(self, n: int, random: Random, replace_probability: float, facts: Sequence[int] = ()) -> np.ndarray:
        """Return the donors (attributes, n) of n neighbors; -1 where an attribute keeps its own value.

        With ``facts`` (numbers of candidates, at most one per attribute), the attribute of each takes the value of
        a random row of the pool for which the fact is true, all of them and none favored; every other attribute
        follows the law. An attribute for whose fact no row of the pool is true keeps its value.
        """

    @abstractmethod
    def realize(self, donors: np.ndarray) -> Any:
        """Return the neighbors with these donors (attributes, n) as model inputs of n rows."""

    @abstractmethod
    def cells(self, donors: np.ndarray, views: Sequence[int] | None = None) -> np.ndarray:
        """Return the cell (views, n) of every neighbor in some views of `candidates`, or in all."""

    def flips(self, donors: np.ndarray, facts: Sequence[int]) -> np.ndarray:
        """Return which of these facts the neighbors with these donors break: booleans (facts, n)."""
        chosen, candidates = np.asarray(facts, dtype=np.intp), self.candidates
        cells = self.cells(donors, candidates.views[chosen].tolist())
        return (cells < candidates.first[chosen, None]) | (cells >= candidates.last[chosen, None])

    def listed(
        self, replace_probability: float, most: int, facts: Sequence[int] = ()
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return all neighbors, as donors (attributes, n), and their probabilities (n,).

        None if there are more than ``most``, or if they cannot be listed.
        """
        return None

    def edge_labels(self, view: int, cells: Sequence[int]) -> tuple[Any, ...]:
        """Return what is written where cells of a view begin: numbers or ISO dates; by default the own value."""
        first = int(np.flatnonzero(self.candidates.views == view)[0])
        return (self.fact(first).value,) * len(cells)

    def row_cells(self) -> np.ndarray | None:
        """Return the cell (views, n) of every row of `Space.examples`, in views of `candidates`; None without."""
        return None

    @property
    def is_own_value(self) -> np.ndarray:
        """Whether the own cell of each attribute holds no other value than the instance's own, (attributes,)."""
        return np.zeros(len(self.names), dtype=bool)

    @property
    def rows_per_call(self) -> int:
        """The most neighbors that the model is given at once, to bound memory."""
        return 4096

    @property
    def can_change(self) -> bool:
        """Whether a neighbor can differ from the instance."""
        return True

    @property
    def held(self) -> tuple[str, ...]:
        """Columns that never change."""
        return ()


class Space(ABC):
    """A kind of instance. ``noun`` names what facts are about in texts: facts, words or regions."""

    noun: str = "facts"
    default_k: int = 4
    names: tuple[str, ...] = ()  # of the columns that a model receives; empty where there are none
    fixed: tuple[str, ...] = ()  # columns that never change
    schema: "Schema | None" = None  # the training table of a space of rows
    reference: str = "all"  # the rows from which values are drawn: "all", "rows" that were given, or "near"
    near_scores: tuple[float, float] | None = None  # of the rows near a threshold; None until they are looked for

    @property
    def awaits_near(self) -> bool:
        """Whether values are drawn from rows near a threshold that nobody has looked for yet."""
        return self.reference == "near" and self.near_scores is None

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A SHA-256 of everything that determines the neighborhoods, with the kind of space before it."""

    @abstractmethod
    def at(self, instance: Any) -> Neighborhood:
        """Return the neighborhood of an instance; raise `InstanceError` if it is not one."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({f'{len(self.names)} columns' if self.names else ''})"

    def describe(self, neighborhood: Neighborhood) -> dict[str, Any]:
        """Return what an explanation records about the space, in plain values; see `Explanation`."""
        return {
            "kind": type(self).__name__.lower(),
            "fingerprint": self.fingerprint,
            "noun": self.noun,
            "neighbors": "independent",
            "n_rows": None,
            "n_attributes": len(neighborhood.names),
            "names": list(self.names or neighborhood.names),
        }

    def instances(self, given: Any) -> Sequence[Any] | None:
        """Return the instances in what `explain_many` was given; None if they are rows of a frame or array."""
        return None

    def examples(self) -> Iterator[tuple[Any, int]]:
        """Yield known instances, at most 10,000, as model inputs in batches, with their numbers of rows."""
        return iter(())

    def examples_with(self, facts: Sequence[Fact]) -> np.ndarray:
        """Return, for each row of `examples`, whether the facts are true of it: booleans (n,)."""
        return np.zeros(0, dtype=bool)

    def holding(self, columns: Collection[str]) -> "Space":
        """Return the space with columns that never change because the model ignores them."""
        return self

    def check(self) -> tuple[Finding, ...]:
        """Return what would make explanations in this space misleading, without asking a model."""
        return ()


def name_of(function: Any) -> str:
    """Return the name by which a fingerprint knows a function that the user gave."""
    return (
        f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    )


class TwoValued(Neighborhood):
    r"""An instance whose attributes have two values: signs, or words and regions that are there or not.

    The pool of such an attribute is the instance's own value and the other one, so that a replaced attribute takes
    the other one half of the time: it differs with probability :math:`q/2 = 1/(1 + e^\sigma)`. On the hypercube,
    this is the paper's law :math:`D(x, \sigma)`. A subclass names the values and says what a changed instance is.
    """

    @abstractmethod
    def realize_flips(self, flips: np.ndarray) -> Any:
        """Return model inputs, one per row of ``flips`` (n, attributes), True where a value is the other one."""

    def other(self, attribute: int) -> Any:
        """Return the other value of an attribute, as `fact` states its own; None if it is then absent."""
        return None

    def realize(self, donors: np.ndarray) -> Any:
        """Return the neighbors with these donors (attributes, n) as model inputs of n rows."""
        return self.realize_flips((np.asarray(donors) == OTHER).T)

    @cached_property
    def candidates(self) -> Candidates:
        """One fact per attribute, the own value; of its two cells the first is the own value's."""
        d = len(self.names)
        each, own = np.arange(d), 2 * np.arange(d)
        return Candidates(
            attributes=each,
            starts=2 * np.arange(d + 1),
            shares=np.full(2 * d, 0.5),
            own=own,
            views=each,
            first=own,
            last=own + 1,
            ranks=np.zeros(d, dtype=np.intp),
        )

    @property
    def is_own_value(self) -> np.ndarray:
        """Whether the own cell of each attribute holds no other value: always."""
        return np.ones(len(self.names), dtype=bool)

    def cells(self, donors: np.ndarray, views: Sequence[int] | None = None) -> np.ndarray:
        """Return the cell (views, n) of every neighbor: 2j for the own value of attribute j, 2j + 1 else."""
        chosen = slice(None) if views is None else list(views)
        return np.asarray(self.candidates.own[chosen, None] + (np.asarray(donors)[chosen] == OTHER))

    def draw(self, n: int, random: Random, replace_probability: float, facts: Sequence[int] = ()) -> np.ndarray:
        """Return the donors (attributes, n) of n neighbors; with facts, their attributes take their own values."""
        uniforms = random.uniforms(len(self.names), n)
        donors = np.full(uniforms.shape, -1, dtype=np.int8)
        donors[uniforms < replace_probability] = OWN
        donors[uniforms < replace_probability / 2] = OTHER
        donors[list(facts)] = OWN
        return donors

    def listed(
        self, replace_probability: float, most: int, facts: Sequence[int] = ()
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return all :math:`2^d` neighbors and their probabilities; with facts, those with their own values."""
        free = np.setdiff1d(np.arange(len(self.names)), np.asarray(facts, dtype=np.intp))
        if len(free) >= 63 or 2 ** len(free) > most:
            return None
        others = (np.arange(2 ** len(free)) >> np.arange(len(free))[:, None]) & 1
        donors = np.full((len(self.names), others.shape[1]), OWN, dtype=np.int8)
        donors[free] = np.where(others, OTHER, OWN)
        n_others, p = others.sum(axis=0), replace_probability / 2
        return donors, p**n_others * (1 - p) ** (len(free) - n_others)
