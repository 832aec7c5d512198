"""Facts: statements about one attribute that are true of an instance, and how neighbors break them.

A `Fact` is what a reader sees, as plain data. `Candidates` are all facts that may be stated about one instance, as
arrays, which is what laws draw by and what the search computes with.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

KINDS = {  # of facts, and whether they state a lower and an upper bound
    "at_least": (True, False),
    "below": (False, True),
    "between": (True, True),
    "equals": (False, False),
    "missing": (False, False),
    "present": (False, False),
}


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement about one attribute that is true of the instance, in plain values that JSON can hold.

    ``attribute`` is the name of the attribute, ``column`` that of the column that the statement is about (the
    same, unless the attribute is a group of columns). ``kind`` is one of `KINDS`. ``low`` is the bound of
    "at_least" and the lower one of "between", ``high`` that of "below" and the upper one of "between": numbers, or
    dates as ISO texts. ``value`` is the instance's own value: of "equals" and "present" it is what is stated.
    """

    attribute: str
    column: str
    kind: str
    low: Any = None
    high: Any = None
    value: Any = None


def true_of(
    fact: Fact, values: np.ndarray, missing: np.ndarray, own: Any, number: Callable[[Any], float]
) -> np.ndarray:
    """Return of which values (n,) of its column a fact is true, from what the fact says alone.

    ``missing`` (n,) says where there is no value. ``own`` is the fact's value as it stands among the values, and
    ``number`` turns a bound into a number that values are compared with.
    """
    if fact.kind == "missing":
        return missing.copy()
    true = ~missing
    if fact.kind == "equals":
        return np.asarray(true & (values == own), dtype=bool)
    if fact.low is not None:
        true &= values >= number(fact.low)
    if fact.high is not None:
        true &= values < number(fact.high)
    return true


@dataclass(frozen=True, eq=False)
class Candidates:
    r"""The facts that are true of an instance, as ranges of cells.

    A *view* divides the values of an attribute into ordered *cells*: what lies between two cut points, a category
    and all others, or missing values, whose cell is the last. A column is one view; a group of columns has a view
    per column. The cells of all views are numbered consecutively. A fact is true of the values in the cells
    ``first <= cell < last`` of its view, and the instance's own cell is one of them.

    ``attributes`` (views,): the attribute that a view divides; not decreasing. ``starts`` (views + 1,): where the
    cells of each view begin. ``shares`` (cells,): the share of the pool in each cell; they add up to 1 per view.
    ``own`` (views,): the instance's own cell. ``views`` (facts,): the view of each fact; not decreasing.
    ``first``, ``last`` (facts,): its cells. ``ranks`` (facts,): how simple a fact is; of two facts about one
    attribute that fit equally well, the one with the lower rank is stated.
    """

    attributes: np.ndarray
    starts: np.ndarray
    shares: np.ndarray
    own: np.ndarray
    views: np.ndarray
    first: np.ndarray
    last: np.ndarray
    ranks: np.ndarray

    @property
    def n_facts(self) -> int:
        """Number of facts."""
        return len(self.views)

    @property
    def n_cells(self) -> int:
        """Number of cells of all views."""
        return len(self.shares)

    @property
    def n_attributes(self) -> int:
        """Number of attributes."""
        return int(self.attributes[-1]) + 1 if len(self.attributes) else 0

    @cached_property
    def groups(self) -> np.ndarray:
        """The attribute that each fact is about, (facts,); not decreasing."""
        return np.asarray(self.attributes[self.views])

    def chances(self, replace_probability: float) -> np.ndarray:
        r"""Return the probability of every cell under the independent law, :math:`q s_c + (1 - q)[c = c_x]`."""
        chances = replace_probability * self.shares
        chances[self.own] += 1 - replace_probability
        return chances

    def broken(self, replace_probability: float) -> np.ndarray:
        r"""Return :math:`b_j = P[F_j = 1]`, q times the share of the pool for which fact j is false, (facts,)."""
        ends = np.concatenate([[0.0], np.cumsum(self.shares)])
        false = 1.0 - (ends[self.last] - ends[self.first])
        return np.asarray(replace_probability * np.clip(false, 0.0, 1.0))

    def flips(self, cells: np.ndarray, facts: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return which of these facts neighbors with cells (views, n) break: booleans (len(facts), n)."""
        facts = np.asarray(facts, dtype=np.intp)
        own = cells[self.views[facts]]
        return np.asarray((own < self.first[facts, None]) | (own >= self.last[facts, None]))
