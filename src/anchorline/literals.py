"""Literals: statements that are true of the instance."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Literal:
    """A statement true of the instance: the attribute it speaks of, and its text.

    Examples
    --------
    >>> Literal("age", "37 <= age < 48")
    Literal(name='age', text='37 <= age < 48')
    """

    name: str
    text: str
