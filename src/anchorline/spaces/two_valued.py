r"""Attributes with two values: signs, and words and regions that are there or not.

The pool of such an attribute is the instance's own value and the other one, so that a replaced attribute takes the
other one half of the time: it differs with probability :math:`q/2 = 1/(1 + e^\sigma)`. On the hypercube, this is
the paper's law :math:`D(x, \sigma)`.
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.facts import Candidates
from anchorline.laws import Random
from anchorline.spaces.base import Neighborhood

OTHER, OWN = 0, 1  # the two donors of every pool; -1 keeps the own value without a draw


class TwoValued(Neighborhood):
    """An instance whose attributes have two values. A subclass names them and says what a changed instance is."""

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
