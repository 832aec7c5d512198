"""The seam between spaces and everything else: literals, neighborhoods, spaces; users may write their own."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True, slots=True)
class Literal:
    """A statement true of the instance: the attribute it speaks of, and its text.

    A flip makes ``text`` false. ``held`` is what is true of every neighbor that does not flip it: the same
    text, unless the value itself is kept.

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
    """An instance, and how to walk away from it by breaking literals."""

    @property
    def literals(self) -> tuple[Literal, ...]:
        """The statements true of the instance, in order."""

    @property
    def key(self) -> bytes:
        """Identity of the instance: equal instances have equal keys, on every machine."""

    @property
    def original(self) -> Any:
        """The instance as a model input of one row."""

    @property
    def deterministic(self) -> bool:
        """Whether flips alone decide the model input; only then can all flips be enumerated."""

    @property
    def instance(self) -> list[Any]:
        """The instance in plain Python values, for JSON; `Space.at` takes them back, so that others can verify."""

    def realize(self, flips: np.ndarray, rng: np.random.Generator | None) -> Any:
        """Model inputs, one a row of ``flips`` (n, d): literal j is broken where ``flips[i, j]``.

        What is random is drawn from ``rng``, which is None only where flips are enumerated.
        """


class Space(Protocol):
    """All instances of one kind.

    Two things are used where a space or neighborhood has them: ``examples()``, batches of model inputs from
    which the range of a regressor's outputs is learned, and ``neighborhood.fixed``, what never changes and why.
    """

    @property
    def fingerprint(self) -> str:
        """Identity of the space, recorded in every explanation."""

    def at(self, instance: Any) -> Neighborhood:
        """Check an instance and return its neighborhood; `InstanceError` if it is not of this space."""
