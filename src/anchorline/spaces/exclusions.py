r"""Values that exclude each other by a rule that all training rows obey, such as "whoever is crew pays no fare".

A level is a category, "missing", or a number that at least 2% of the training rows have; all other numbers of a
column are one level together. Let :math:`n_u` of :math:`n` rows have level :math:`u`. Two levels can be compared
if :math:`n_u n_w / n \ge 5 + \ln M`: that is how many rows would have both, if their columns were unrelated.

- Levels :math:`u` and :math:`w` of two columns exclude each other if no row has both, they can be compared, and
  one of them decides the other column: all rows with it have the same level there. "Class decides the deck." The
  level of all other numbers decides nothing, because its values may have nothing else in common.
- Level :math:`u` excludes a number of another column if a level :math:`w` of its own column, with which it can be
  compared among the rows that have a number there, has only numbers below (above) all those of :math:`u`, and the
  number is at most (at least) the largest (smallest) of these. "No Mr is younger than thirteen", if every Master
  is and no Mr.

Unrelated columns look like such a rule with probability :math:`e^{-n_u n_w / n}` at most. In the second case,
where :math:`m_u` and :math:`m_w` rows have a number, this is because those with :math:`w` come first in a random
order with probability :math:`1 / \binom{m_u + m_w}{m_u}`. :math:`M` is the number of such pairs of levels that
would share at least 5 rows. Therefore a table of unrelated columns has a rule with probability :math:`e^{-5}` at
most.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from anchorline.spaces.likeness import GRADES, Grades, Ranks

MIN_EXPECTED = 5  # rows that two levels would share; more if many levels are compared
MIN_SHARE = 0.02  # of the rows that have a number, if it is a level
MAX_LEVELS = 64  # the most frequent ones of a column
MAX_COLUMNS = 200  # in wider tables, no rule is looked for, because time and memory grow with the pairs of columns
_MISSING = GRADES + 1
_NONE = 2 * GRADES  # beyond all grades
_REST = -1  # the place of the level of all other numbers, after those of the grades


class Excluded(NamedTuple):
    """Which rows (N,) have a value in column ``first`` that a row's value in column ``second`` excludes."""

    first: int
    second: int
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class Exclusions:
    """The values of N rows that exclude each other, in Q columns with levels and R columns of numbers.

    ``lookups`` holds, per column with levels, its place in the table and the level of every grade; levels are
    numbered across all columns, and S is one that nothing is known about. ``levels`` (Q, N) are those of the rows,
    and ``starts`` (Q,) the first level of each column. ``excluded`` (S + 1, S + 1) says which levels exclude each
    other. Level u excludes the grades of number r up to ``edges[0, u, r]`` and from ``edges[1, u, r]``.
    ``numbers`` (R, N) are the grades of the rows, in the columns ``ranks``.
    """

    lookups: Sequence[tuple[int, np.ndarray]]
    levels: np.ndarray
    starts: np.ndarray
    excluded: np.ndarray
    ranks: Sequence[int]
    numbers: np.ndarray
    edges: np.ndarray

    @classmethod
    def build(cls, graded: Mapping[int, tuple[Grades, np.ndarray]]) -> "Exclusions":
        """Find what excludes each other, given how each column is graded, and the grades (N,) of its rows."""
        n = len(next(iter(graded.values()))[1])
        graded = graded if len(graded) <= MAX_COLUMNS else {}
        ranks = [j for j, (grades, _) in graded.items() if isinstance(grades, Ranks)]
        numbers = np.array([graded[j][1] for j in ranks], dtype=np.int16).reshape(len(ranks), n)
        known = {j: _lookup(grades, own) for j, (grades, own) in graded.items()}
        known = {j: lookup for j, lookup in known.items() if lookup.max() > 0}  # several levels
        starts = np.cumsum([0, *(int(lookup.max()) + 1 for lookup in known.values())])
        pairs = zip(known.items(), starts.tolist(), strict=False)
        lookups = [(j, np.where(lookup < 0, starts[-1], lookup + start)) for (j, lookup), start in pairs]
        levels = np.array([lookup[graded[j][1]] for j, lookup in lookups], dtype=np.intp).reshape(len(lookups), n)
        is_own = np.array([j for j, _ in lookups], dtype=np.intp)[:, None] == np.array(ranks, dtype=np.intp)
        found = Comparisons.of(levels, starts, numbers, is_own)
        rests = [int(lookup[_REST]) for j, lookup in lookups if j in ranks and lookup[_REST] < starts[-1]]
        excluded = _excluded(levels, found, np.array(rests, dtype=np.intp))
        return cls(lookups, levels, starts[:-1], excluded, ranks, numbers, _edges(found))

    def __bool__(self) -> bool:
        """Whether any values exclude each other."""
        return self._is_any

    @cached_property
    def _is_any(self) -> bool:
        low, high = self.edges
        return bool(self.excluded.any() or (low > -_NONE).any() or (high < _NONE).any())

    def of(self, grades: Mapping[int, int]) -> list[Excluded]:
        """Return which values of the rows those of one row exclude, whose ``grades`` are given by column."""
        columns = [j for j, _ in self.lookups]
        if not columns:
            return []
        levels = np.array([lookup[grades[j]] for j, lookup in self.lookups], dtype=np.intp)
        found = list[Excluded]()
        for b, a in np.argwhere(np.logical_or.reduceat(self.excluded[levels], self.starts, axis=1)).tolist():
            found.append(Excluded(columns[a], columns[b], self.excluded[levels[b]].take(self.levels[a])))
        low, high = self.edges[:, levels]
        for b, r in np.argwhere((low > -_NONE) | (high < _NONE)).tolist():
            found.append(Excluded(self.ranks[r], columns[b], _is_beyond(self.numbers[r], low[b, r], high[b, r])))
        beyond = _is_beyond(np.array([grades[j] for j in self.ranks], dtype=np.intp), *self.edges)
        for a, r in np.argwhere(np.logical_or.reduceat(beyond, self.starts, axis=0)).tolist():
            found.append(Excluded(columns[a], self.ranks[r], beyond[:, r].take(self.levels[a])))
        return found


def _is_beyond(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return which grades are excluded; missing values are not."""
    return np.asarray(((values <= low) | (values >= high)) & (values != _MISSING))


def _lookup(grades: Grades, own: np.ndarray) -> np.ndarray:
    """Return the level of every grade: the most frequent ones, then one for all other numbers; -1 if unknown.

    The last place is the level of all other numbers, or -1.
    """
    is_rank = isinstance(grades, Ranks)
    counts = np.bincount(own, minlength=GRADES + 2 if isinstance(grades, Ranks) else len(grades.levels) + 1)
    least = np.where(np.arange(len(counts)) == _MISSING, 1, MIN_SHARE * len(own) if is_rank else 1)
    frequent = np.flatnonzero(counts >= least)
    frequent = frequent[np.argsort(-counts[frequent], kind="stable")][:MAX_LEVELS]
    has_rest = is_rank and np.count_nonzero(counts) > len(frequent)
    levels = np.full(len(counts) + 1, len(frequent) if has_rest else -1)
    levels[_MISSING : _MISSING + 1] = -1  # not another number, even if no row lacks one
    levels[frequent] = np.arange(len(frequent))
    return levels


class Comparisons(NamedTuple):
    """The levels that can be compared, of S in all, in columns that begin at the levels ``starts`` and end at S.

    ``counts`` (S + 1,) are the rows with each level, and ``least`` how many two levels must be expected to share.
    ``ranges`` (3, S + 1, R) are the least number, minus the largest, and the rows with a number, by level and
    column of numbers. ``n_rows`` is the number of rows, and ``n_numbers`` (R,) of those with a number.
    """

    starts: np.ndarray
    counts: np.ndarray
    ranges: np.ndarray
    n_rows: int
    n_numbers: np.ndarray
    least: float

    @classmethod
    def of(cls, levels: np.ndarray, starts: np.ndarray, numbers: np.ndarray, is_own: np.ndarray) -> "Comparisons":
        """Count levels (Q, N) and numbers (R, N); ``is_own`` (Q, R) says which columns are the same."""
        n_levels, n = int(starts[-1]), numbers.shape[1]
        counts = np.bincount(levels.ravel(), minlength=n_levels + 1)
        counts[n_levels] = 0
        ranges = _ranges(levels, n_levels, numbers)
        found = cls(starts, counts, ranges, n, np.count_nonzero(numbers != _MISSING, axis=1), MIN_EXPECTED)
        n_pairs = int(np.count_nonzero(found.of_two_columns())) // 2
        for each, own in zip(found.columns, is_own, strict=True):
            n_pairs += int(np.count_nonzero(found.of_one_column(each)[:, :, ~own]))
        return found._replace(least=MIN_EXPECTED + math.log(max(1, n_pairs)))

    @property
    def columns(self) -> list[slice]:
        """The levels of each column."""
        return [slice(*each) for each in itertools.pairwise(self.starts.tolist())]

    def of_two_columns(self) -> np.ndarray:
        """Return which levels of different columns can be compared, (S + 1, S + 1)."""
        enough = np.multiply.outer(self.counts, self.counts) >= self.least * self.n_rows
        for each in self.columns:
            enough[each, each] = False
        return np.asarray(enough)

    def of_one_column(self, column: slice) -> np.ndarray:
        """Return which levels (s, s) of a column can be compared, by column of numbers, (s, s, R)."""
        counts = self.ranges[2, column]
        enough = counts[:, None] * counts >= self.least * self.n_numbers
        enough[np.arange(len(counts)), np.arange(len(counts))] = False
        return np.asarray(enough & (counts[:, None] * counts > 0))


def _ranges(levels: np.ndarray, n_levels: int, numbers: np.ndarray) -> np.ndarray:
    """Return what `Comparisons` calls ranges."""
    is_missing = numbers == _MISSING
    parts = [np.where(is_missing, _NONE, numbers), np.where(is_missing, _NONE, -numbers), ~is_missing]
    ranges = np.full((3, n_levels + 1, len(numbers)), _NONE, dtype=np.intp)
    ranges[2] = 0
    for own in levels:
        order = np.argsort(own, kind="stable")
        firsts = np.flatnonzero(np.diff(own[order], prepend=-1))
        for values, reduce, found in zip(parts, (np.minimum, np.minimum, np.add), ranges, strict=True):
            found[own[order[firsts]]] = reduce.reduceat(values[:, order], firsts, axis=1, dtype=np.intp).T
    return ranges


def _excluded(levels: np.ndarray, found: Comparisons, rests: np.ndarray) -> np.ndarray:
    """Return which levels exclude each other, (S + 1, S + 1); the levels ``rests`` decide nothing."""
    n_levels = len(found.counts)
    seen = np.zeros((n_levels, n_levels), dtype=np.intp)
    for own, each in zip(levels, found.columns, strict=True):
        is_known = own < n_levels - 1
        pairs = (own[is_known] - each.start) * n_levels + levels[:, is_known]
        n_pairs = (each.stop - each.start) * n_levels
        seen[each] = np.bincount(pairs.ravel(), minlength=n_pairs).reshape(-1, n_levels)
    decides = np.zeros((n_levels, n_levels), dtype=bool)  # by level, whether it decides the column of another one
    for each in found.columns:
        decides[:, each] = (seen[:, each] == found.counts[:, None]).any(axis=1)[:, None]
    decides[rests] = False
    return np.asarray(found.of_two_columns() & (seen == 0) & (decides | decides.T))


def _edges(found: Comparisons) -> np.ndarray:
    """Return what `Exclusions` calls edges."""
    least, most = found.ranges[:2]
    edges = np.full((2, *least.shape), -_NONE, dtype=np.int16)
    for each in found.columns:
        enough = found.of_one_column(each)
        for low, high, edge in ((least, -most, edges[0]), (most, -least, edges[1])):
            is_below = (high[each] < low[each, None]) & enough
            edge[each] = np.where(is_below, high[each], -_NONE).max(axis=1)
    edges[1] *= -1
    return edges
