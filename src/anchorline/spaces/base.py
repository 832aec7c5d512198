"""What an instance is, and what its neighbors are: the base classes of all spaces.

A `Space` knows the kind of instance; a `Neighborhood` is one instance in it. An attribute of a neighbor either
keeps its own value (-1) or takes that of a *donor*, a row of the attribute's pool: (attributes, n) arrays of
donors are what a law draws, what becomes model inputs, and what breaks facts.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from anchorline.facts import Candidates, Fact
from anchorline.laws import Random

if TYPE_CHECKING:
    from anchorline.spaces.rows import Schema


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

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A SHA-256 of everything that determines the neighborhoods, with the kind of space before it."""

    @abstractmethod
    def at(self, instance: Any) -> Neighborhood:
        """Return the neighborhood of an instance; raise `InstanceError` if it is not one."""

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
