"""Literals: statements that are true of the instance."""

from dataclasses import dataclass


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
