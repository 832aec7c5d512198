"""The interface between spaces and the rest of the library: literals, neighborhoods and spaces.

`Neighborhood` and `Space` are protocols, so that users can write their own spaces without inheriting from them.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


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


class Neighborhood(Protocol):
    """An instance, and the neighbors that are reached from it by breaking literals."""

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

    Two more members are optional. ``space.examples()`` yields batches of model inputs, from which the range of a
    regressor's outputs is learned. ``neighborhood.fixed`` maps every attribute that never changes to the reason.
    """

    @property
    def fingerprint(self) -> str:
        """The identity of the space, which is recorded in every explanation."""

    def at(self, instance: Any) -> Neighborhood:
        """Check an instance and return its neighborhood; raise `InstanceError` if it is not in this space."""
