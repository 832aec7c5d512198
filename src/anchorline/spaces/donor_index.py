"""The training rows that may donate values to neighbors, graded once per table."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anchorline.spaces.attributes import Attribute, Levels, Way
from anchorline.spaces.columns import Column
from anchorline.spaces.donors import MAX_ROWS, Donors, Rules
from anchorline.spaces.exclusions import Exclusions
from anchorline.spaces.likeness import Grades, costs_to, grades_of, unit_of
from anchorline.spaces.rows import Schema
from anchorline.spaces.similar import SimilarRows

_LEADERS = 16  # rows per code of an attribute that are in the sample whatever else is
_MAX_LEADERS = MAX_ROWS // 2


@dataclass(frozen=True, eq=False)
class DonorIndex:
    """The training rows that may donate, graded once per table.

    ``rows`` (N,) are their places in the table. ``units`` are the columns that count as one attribute each: the
    attributes first, then fixed columns. ``graded`` holds how each column is graded, and the grades of the rows.
    ``numbers`` (attributes, N) are the numbers of their combinations of codes, and ``starts`` where each begins.
    ``flips_follow`` means that the values of donors decide which literals break.
    """

    rows: np.ndarray
    units: tuple[tuple[int, ...], ...]
    graded: dict[int, tuple[Grades, np.ndarray]]
    numbers: np.ndarray
    starts: tuple[np.ndarray, ...]
    n_training: int
    flips_follow: bool
    exclusions: Exclusions

    @classmethod
    def build(
        cls,
        schema: Schema,
        attributes: Sequence[Attribute],
        fixed: Sequence[int],
        leaders: Sequence[np.ndarray],
        *,
        flips_follow: bool,
    ) -> "DonorIndex":
        """Grade the rows of a table whose ``fixed`` columns count as likeness; see `leading_rows`."""
        rows = _donor_rows(schema.n_rows, leaders)
        columns = [Column(c.kind, c.values[rows], c.missing[rows]) for c in schema.columns]
        by_level = {
            j for a in attributes for j, e in zip(a.positions, a.encodings, strict=True) if isinstance(e, Levels)
        }
        units = (*(attribute.positions for attribute in attributes), *((j,) for j in fixed))
        graded = {}
        for j in (j for unit in units for j in unit):
            grades = grades_of(columns[j], by_level=j in by_level)
            graded[j] = grades, grades.grades(columns[j]).astype(np.intp)
        numbers = np.empty((len(attributes), len(rows)), dtype=np.intp)
        for i, attribute in enumerate(attributes):
            pairs = zip(attribute.encodings, attribute.positions, strict=True)
            codes = [encoding.codes(columns[j]).tolist() for encoding, j in pairs]
            numbers[i] = [attribute.combinations[combination] for combination in zip(*codes, strict=True)]
        starts = tuple(np.array(attribute.starts[:-1], dtype=np.intp) for attribute in attributes)
        exclusions = Exclusions.build(graded)
        return cls(rows, units, graded, numbers, starts, schema.n_rows, flips_follow, exclusions)

    def at(
        self,
        columns: Sequence[Column],
        breakable: np.ndarray,
        ways: Sequence[Sequence[Way]],
        members: np.ndarray,
        n_donors: int,
    ) -> Donors | SimilarRows:
        """Return the donors for one row, whose ``breakable`` attributes change in these ways."""
        unit = unit_of(len(self.units))
        costs = np.empty((len(self.units), len(self.rows)), dtype=np.int32)
        for i, positions in enumerate(self.units):
            parts = [self.graded[j] for j in positions]
            costs[i] = costs_to(parts, [columns[j] for j in positions], unit)
        drawn = np.zeros((len(breakable), len(self.rows)), dtype=np.uint8 if _most(ways) < 256 else np.uint16)
        for i, (attribute, own) in enumerate(zip(breakable.tolist(), ways, strict=True)):
            by_number = np.zeros(len(self.starts[attribute]), dtype=drawn.dtype)
            for number, way in enumerate(own, start=1):  # ways are adjacent rows of a circular pool
                by_number[(self.starts[attribute] - way.begin) % self.n_training < way.size] = number
            drawn[i] = by_number.take(self.numbers[attribute])
        outcomes = np.array([(i, w + 1) for i, own in enumerate(ways) for w in range(len(own))], dtype=np.intp)
        total = costs.sum(axis=0, dtype=np.int32)
        n_same = (drawn == 0).sum(axis=0, dtype=np.int32)
        for i, own in enumerate(ways):
            if not own[-1].breaks:  # the last way is to stay within the literal
                n_same += drawn[i] == len(own)
        ranks = (total + int(unit) * 3 // 4 * n_same).astype(np.uint32)
        rules = self._rules(columns, breakable)
        costs = costs if len(breakable) == len(costs) else costs[breakable]
        donors = Donors(self.rows, costs, total, ranks, drawn, outcomes, members, rules, n_donors)
        return SimilarRows(donors, int(unit)) if self.flips_follow else donors

    def _rules(self, columns: Sequence[Column], breakable: np.ndarray) -> Rules:
        """Return which rows have values that those of one row exclude."""
        if not self.exclusions:
            none = np.zeros(0, dtype=np.intp)
            return Rules(none, none, np.zeros((0, len(self.rows)), dtype=bool))
        grades = {j: int(grades.grades(columns[j])[0]) for j, (grades, _) in self.graded.items()}
        unit_of_column = {j: i for i, unit in enumerate(self.units) for j in unit}
        places = {i: place for place, i in enumerate(breakable.tolist())}
        found: dict[tuple[int, int], np.ndarray] = {}
        for first, second, rows in self.exclusions.of(grades):
            unit, other = unit_of_column[first], unit_of_column[second]
            if unit != other and unit in places:
                pair = places[unit], places.get(other, -1)
                found[pair] = found[pair] | rows if pair in found else rows
        pairs = sorted(found)
        broken = np.array([found[pair] for pair in pairs], dtype=bool).reshape(len(pairs), len(self.rows))
        changing, kept = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
        return Rules(changing, kept, broken)


def leading_rows(attribute: Attribute, order: np.ndarray) -> np.ndarray:
    """Return the first 16 rows of every combination of codes, (combinations, 16); short ones repeat their last.

    ``order`` are the rows sorted by codes, as `build_attribute` returns them.
    """
    starts = np.array(attribute.starts, dtype=np.intp)
    places = np.minimum(starts[:-1, None] + np.arange(_LEADERS), starts[1:, None] - 1)
    return np.asarray(order[places])


def _donor_rows(n_rows: int, leaders: Sequence[np.ndarray]) -> np.ndarray:
    """Return all rows, or, of a large table, a sample that has rows of every code.

    Rows are in the order of a hash of their values, so that the first rows are a random sample.
    """
    if n_rows <= MAX_ROWS:
        return np.arange(n_rows)
    for n_each in (_LEADERS, 4, 1):
        chosen = np.unique(np.concatenate([each[:, :n_each].reshape(-1) for each in leaders]))
        if len(chosen) <= _MAX_LEADERS:
            break
    chosen = chosen[:_MAX_LEADERS]
    return np.union1d(np.arange(MAX_ROWS - len(chosen)), chosen)


def _most(ways: Sequence[Sequence[Way]]) -> int:
    return max(len(own) for own in ways)
