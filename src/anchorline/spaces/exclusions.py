r"""Values that exclude each other by a rule that all training rows obey, such as "whoever is crew pays no fare".

A level is a category, "missing", or a number that at least 2% of the training rows have. Let :math:`n_u` of
:math:`n` rows have level :math:`u`. Two levels can be compared if :math:`n_u n_w / n \ge 5`: that is how many
rows would have both, if their columns were unrelated.

- Levels :math:`u` and :math:`w` of two columns exclude each other if no row has both, they can be compared, and
  one of them decides the other column: all rows with it have the same level there. "Class decides the deck."
- Level :math:`u` excludes a number of another column if a level :math:`w` of its own column, with which it can be
  compared, has only numbers below (above) all those of :math:`u`, and the number is at most (at least) the largest
  (smallest) of these. "No Mr is younger than thirteen", if every Master is and no Mr.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anchorline.spaces.likeness import GRADES, Grades, Ranks

MIN_EXPECTED = 5
MIN_SHARE = 0.02  # of the rows that have a number, if it is a level
MAX_LEVELS = 64  # the most frequent ones of a column; all others are one level more
MAX_COLUMNS = 200  # in wider tables, no rule is looked for, because time and memory grow with the pairs of columns
_MISSING = GRADES + 1
_NONE = 2 * GRADES  # beyond all grades


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
        counts = np.bincount(levels.ravel(), minlength=starts[-1] + 1)
        excluded, edges = _excluded(levels, starts, counts), _edges(levels, starts, counts, numbers)
        return cls(lookups, levels, starts[:-1], excluded, ranks, numbers, edges)

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
    """Return the level of every grade: the most frequent ones, then one for all others; -1 if it is unknown."""
    is_rank = isinstance(grades, Ranks)
    counts = np.bincount(own, minlength=GRADES + 2 if isinstance(grades, Ranks) else len(grades.levels) + 1)
    least = np.where(np.arange(len(counts)) == _MISSING, 1, MIN_SHARE * len(own) if is_rank else 1)
    frequent = np.flatnonzero(counts >= least)
    frequent = frequent[np.argsort(-counts[frequent], kind="stable")][:MAX_LEVELS]
    rest = np.setdiff1d(np.flatnonzero(counts), frequent)
    levels = np.full(len(counts), len(frequent) if is_rank and len(rest) else -1)
    levels[rest] = len(frequent)
    levels[frequent] = np.arange(len(frequent))
    return levels


def _excluded(levels: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return which levels exclude each other, (S + 1, S + 1)."""
    n_levels, each = len(counts), list(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True))
    seen = np.zeros((n_levels, n_levels), dtype=np.intp)
    for own, (start, end) in zip(levels, each, strict=True):
        pairs = (own - start) * n_levels + levels
        seen[start:end] = np.bincount(pairs.ravel(), minlength=(end - start) * n_levels).reshape(-1, n_levels)
    decides = np.zeros((n_levels, n_levels), dtype=bool)  # by level, whether it decides the column of another one
    excluded = (np.multiply.outer(counts, counts) >= MIN_EXPECTED * levels.shape[1]) & (seen == 0)
    for start, end in each:
        decides[:, start:end] = np.count_nonzero(seen[:, start:end], axis=1)[:, None] == 1
        excluded[start:end, start:end] = False
    return np.asarray(excluded & (decides | decides.T))


def _edges(levels: np.ndarray, starts: np.ndarray, counts: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return what `Exclusions` calls edges."""
    is_missing = numbers == _MISSING
    ranges = np.full((2, len(counts), len(numbers)), _NONE, dtype=np.int16)  # least, and minus the largest
    signed = [np.where(is_missing, _NONE, each) for each in (numbers, -numbers)]
    edges = np.full_like(ranges, -_NONE)
    for own, start, end in zip(levels, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        order, each = np.argsort(own, kind="stable"), slice(start, end)
        firsts = np.flatnonzero(np.diff(own[order], prepend=-1))
        for values, found in zip(signed, ranges, strict=True):
            found[own[order[firsts]]] = np.minimum.reduceat(values[:, order], firsts, axis=1).T
        enough = np.multiply.outer(counts[each], counts[each])[:, :, None] >= MIN_EXPECTED * levels.shape[1]
        for least, most, edge in zip(ranges[:, each], -ranges[::-1, each], edges, strict=True):
            is_below = (most[None] < least[:, None]) & enough & (most[None] > -_NONE) & (least[:, None] < _NONE)
            edge[each] = np.where(is_below, most[None], -_NONE).max(axis=1)
    edges[1] *= -1
    return edges
