"""What the attributes of an instance may be changed to: the distinct values that training rows have.

The distance between two values of a number or date is measured in training quantiles: the share of training rows
between them, where rows that have one of the two values count half. Two categories are half apart, which is also
the distance between the two values of a number that has only two. A missing value is half apart from all others.
"""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from anchorline.errors import ParameterError
from anchorline.spaces.attributes import Attribute, Intervals, level_texts
from anchorline.spaces.base import Neighborhood, Space
from anchorline.spaces.columns import CATEGORY, DATE, NUMBER, Column, exact_text, shortest_number
from anchorline.spaces.natives import Cells
from anchorline.spaces.rows import Schema, plain
from anchorline.spaces.table import Table, TableNeighborhood

APART = 0.5  # the distance between two categories


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The distinct values of an attribute in the training table, without missing ones.

    ``rows`` (m,) are training rows that have the values, ``counts`` (m,) the numbers of rows that have them, and
    ``ids`` (n,) the value of every training row, -1 where it is missing. Numbers and dates are sorted: ``numbers``
    (m,) are the values, and ``places`` (m,) their places among the rows, from 0 to 1. Others have neither.
    """

    rows: np.ndarray
    counts: np.ndarray
    ids: np.ndarray
    numbers: np.ndarray | None = None
    places: np.ndarray | None = None

    def place(self, number: float) -> float:
        """Return the place of any number among the training rows, from 0 to 1."""
        assert self.numbers is not None  # only these have places
        below = self.counts[: self.numbers.searchsorted(number, side="left")].sum()
        until = self.counts[: self.numbers.searchsorted(number, side="right")].sum()
        return float(below + until) / (2 * max(1, int(self.counts.sum())))


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One attribute of an instance and its candidates: all training values other than the instance's own.

    ``rows``, ``counts``, ``distances`` and ``sides`` are (m,): training rows that have the values, the numbers of
    rows that have them, distances from the instance's own value, and -1 or +1 for values below or above it, 0
    where there is no order. Ordered candidates are sorted. ``numbers`` (m,) are the values of numbers and dates;
    None for others.
    """

    name: str
    positions: tuple[int, ...]
    kind: str
    rows: np.ndarray
    counts: np.ndarray
    distances: np.ndarray
    sides: np.ndarray
    numbers: np.ndarray | None = None

    @property
    def n_values(self) -> int:
        """Number of candidates."""
        return len(self.rows)

    def part(self, kept: np.ndarray) -> "Choice":
        """Return the same attribute with some of its candidates only, given by their indices."""
        arrays = (self.rows[kept], self.counts[kept], self.distances[kept], self.sides[kept])
        numbers = None if self.numbers is None else self.numbers[kept]
        return Choice(self.name, self.positions, self.kind, *arrays, numbers)


class Choices(Protocol):
    """The attributes of one instance that may change, and their candidates.

    A candidate is written as the index of its attribute and its index among the attribute's candidates.
    """

    @property
    def attributes(self) -> tuple[Choice, ...]:
        """The attributes and their candidates."""

    def realize(self, attributes: np.ndarray, values: np.ndarray) -> Any:
        """Return model inputs, one per row of ``attributes`` and ``values`` (n, s); -1 changes nothing."""

    def plain_before(self, attribute: int) -> Any:
        """Return the instance's own value as JSON holds it; a tuple for a group of columns."""

    def plain_after(self, attribute: int, value: int) -> Any:
        """Return a candidate as JSON holds it; a tuple for a group of columns."""

    def text_before(self, attribute: int) -> str:
        """Return the text of the instance's own value."""

    def text_after(self, attribute: int, value: int) -> str:
        """Return the text of a candidate."""

    def fact(self, attribute: int, value: int, *, with_more: bool) -> str:
        """Return the statement that is true of a candidate and, ``with_more``, of all candidates beyond it."""

    def column_names(self, attribute: int) -> tuple[str, ...]:
        """Return the names of the attribute's columns."""

    def like(self, attribute: int, other: Neighborhood) -> np.ndarray:
        """Return which candidates are the values of another instance of the same space, (candidates,)."""


def choices_at(space: Space, neighborhood: Neighborhood) -> Choices:
    """Return what the attributes of an instance may be changed to.

    In a table these are the values of training rows. In other spaces, each literal can be broken, provided that
    this can be done in one way only.
    """
    if isinstance(space, Table) and isinstance(neighborhood, TableNeighborhood):
        return TableChoices.at(space, neighborhood)
    if neighborhood.deterministic and getattr(neighborhood, "changes", None) is None:
        return FlipChoices(neighborhood)
    raise ParameterError(
        f"The space is a {type(space).__name__}, whose literals can be broken in several ways; changes are found "
        "in a Table, and in spaces such as Hypercube in which flips alone determine the neighbor. Pass a Table."
    )


@dataclass(frozen=True, eq=False)
class FlipChoices:
    """The literals of an instance, each of which can be broken in one way."""

    neighborhood: Neighborhood
    attributes: tuple[Choice, ...] = field(init=False)

    def __post_init__(self) -> None:
        one, side = np.ones(1, dtype=np.intp), np.zeros(1, dtype=np.int8)
        attributes = [
            Choice(literal.name, (j,), "literals", np.zeros(1, dtype=np.intp), one, np.full(1, APART), side)
            for j, literal in enumerate(self.neighborhood.literals)
        ]
        object.__setattr__(self, "attributes", tuple(attributes))

    def realize(self, attributes: np.ndarray, values: np.ndarray) -> Any:
        """Return the neighbors in which these literals are broken."""
        flips = np.zeros((len(attributes), 1 + len(self.attributes)), dtype=bool)
        flips[np.arange(len(attributes))[:, None], attributes] = True  # -1 is the last column, which is cut off
        return self.neighborhood.realize(flips[:, :-1], None)

    def plain_before(self, attribute: int) -> Any:
        """Return the coordinate of a hypercube, or True: the literal holds."""
        return self._coordinates[attribute] if self._coordinates else True

    def plain_after(self, attribute: int, value: int) -> Any:
        """Return the flipped coordinate of a hypercube, or False: the literal is broken."""
        return -self._coordinates[attribute] if self._coordinates else False

    @property
    def _coordinates(self) -> list[int]:
        instance = self.neighborhood.instance
        are_signs = len(instance) == len(self.attributes) and all(value in (-1, 1) for value in instance)
        return list(instance) if are_signs else []

    def text_before(self, attribute: int) -> str:
        """Return the literal."""
        return self.neighborhood.literals[attribute].text

    def text_after(self, attribute: int, value: int) -> str:
        """Return the statement for the other sign, or that the literal is broken."""
        statements = getattr(self.neighborhood, "statements", None)
        if self._coordinates and statements is not None:
            return str(statements[attribute][1 if self._coordinates[attribute] < 0 else 2])
        name, text = self.neighborhood.literals[attribute].name, self.text_before(attribute)
        if self._coordinates and text in (f"{name} = +1", f"{name} = -1"):
            return f"{name} = {-self._coordinates[attribute]:+d}"
        return f"{text.removesuffix(' is there')} is not there" if text.endswith(" is there") else f"not: {text}"

    def fact(self, attribute: int, value: int, *, with_more: bool) -> str:
        """Return the statement that is true once the literal is broken."""
        return self.text_after(attribute, value)

    def column_names(self, attribute: int) -> tuple[str, ...]:
        """Return the name of the literal's attribute."""
        return (self.attributes[attribute].name,)

    def like(self, attribute: int, other: Neighborhood) -> np.ndarray:
        """Return whether the other instance breaks the literal."""
        if not self._coordinates:
            raise ParameterError("toward needs a Table or a Hypercube, where instances have values to take.")
        return np.array([other.instance[attribute] != self._coordinates[attribute]])


@dataclass(frozen=True, eq=False)
class TableChoices:
    """The attributes of a row, and the training values that they may be changed to.

    ``own`` holds per attribute the row's own number or date, or None, and ``values`` its distinct training values.
    """

    table: Table
    neighborhood: TableNeighborhood
    subjects: tuple[Attribute, ...]
    attributes: tuple[Choice, ...]
    own: tuple[float | None, ...]
    values: tuple[Values, ...]

    @classmethod
    def at(cls, table: Table, neighborhood: TableNeighborhood) -> "TableChoices":
        """Return the choices of a row."""
        values = tuple(distinct_values(table, attribute) for attribute in table.attributes)
        pairs = [
            _choice(attribute, each, [neighborhood.columns[j] for j in attribute.positions], table.schema)
            for attribute, each in zip(table.attributes, values, strict=True)
        ]
        choices, own = tuple(choice for choice, _ in pairs), tuple(number for _, number in pairs)
        return cls(table, neighborhood, table.attributes, choices, own, values)

    def realize(self, attributes: np.ndarray, values: np.ndarray) -> Any:
        """Return copies of the row in which these attributes have the values of training rows."""
        n, columns, counts = len(attributes), list[int](), list[int]()
        at, rows = list[np.ndarray](), list[np.ndarray]()
        for a in np.unique(attributes[attributes >= 0]).tolist():
            choice = self.attributes[a]
            changed, place = np.nonzero(attributes == a)
            sources = choice.rows[values[changed, place]]
            for j in choice.positions:
                at.append(changed + len(columns) * n)
                columns.append(j)
                counts.append(len(changed))
                rows.append(sources)
        none = np.zeros(0, dtype=np.intp)
        cells = Cells(
            np.array(columns, dtype=np.intp),
            np.array(counts, dtype=np.intp),
            np.concatenate([none, *at]),
            np.concatenate([none, *rows]),
        )
        return self.table.schema.natives.neighbors(self.neighborhood.row, n, [cells] if columns else ())

    def is_missing(self, attribute: int) -> bool:
        """Return whether the row's own value is missing; groups of columns are never missing as a whole."""
        positions = self.attributes[attribute].positions
        return len(positions) == 1 and bool(self.neighborhood.columns[positions[0]].missing[0])

    def like(self, attribute: int, other: Neighborhood) -> np.ndarray:
        """Return which candidates are the values of another row; none if that row's value is missing."""
        assert isinstance(other, TableNeighborhood)  # both are of one table
        choice = self.attributes[attribute]
        same = np.ones(choice.n_values, dtype=bool)
        for j in choice.positions:
            cell, column = other.columns[j], self.table.schema.columns[j]
            same &= (column.values[choice.rows] == cell.values[0]) & (not cell.missing[0])
        return same

    def plain_before(self, attribute: int) -> Any:
        """Return the row's own value; a tuple for a group of columns."""
        values = [self.neighborhood.instance[j] for j in self.attributes[attribute].positions]
        return values[0] if len(values) == 1 else tuple(values)

    def plain_after(self, attribute: int, value: int) -> Any:
        """Return a training value; a tuple for a group of columns."""
        choice, natives = self.attributes[attribute], self.table.schema.natives
        row = choice.rows[value : value + 1]
        values = [plain(self._cell(j, int(row[0])), natives.pick(j, row)) for j in choice.positions]
        return values[0] if len(values) == 1 else tuple(values)

    def _cell(self, j: int, row: int) -> Column:
        column = self.table.schema.columns[j]
        return Column(column.kind, column.values[row : row + 1], column.missing[row : row + 1])

    def text_before(self, attribute: int) -> str:
        """Return the text of the row's own value."""
        return self._text(attribute, [self.neighborhood.columns[j] for j in self.attributes[attribute].positions])

    def text_after(self, attribute: int, value: int) -> str:
        """Return the text of a training value."""
        choice = self.attributes[attribute]
        return self._text(attribute, [self._cell(j, int(choice.rows[value])) for j in choice.positions])

    def _text(self, attribute: int, cells: Sequence[Column]) -> str:
        subject = self.subjects[attribute]
        texts = [
            "missing" if cell.missing[0] else encoding.value_text(cell)
            for encoding, cell in zip(subject.encodings, cells, strict=True)
        ]
        if len(texts) == 1:
            return texts[0]
        names = self.column_names(attribute)
        return ", ".join(f"{name} {text}" for name, text in zip(names, texts, strict=True))

    def fact(self, attribute: int, value: int, *, with_more: bool) -> str:
        """Return a bound that exactly this candidate and those beyond it meet, or "name = value"."""
        choice, number = self.attributes[attribute], self.own[attribute]
        if not with_more or choice.numbers is None or number is None:
            return f"{choice.name} = {self.text_after(attribute, value)}"
        # The nearest training value towards the row's own that does not meet the bound, or the row's own.
        encoding, side, all_numbers = self.subjects[attribute].encodings[0], int(choice.sides[value]), self.values
        training, limit = all_numbers[attribute].numbers, float(choice.numbers[value])
        assert isinstance(encoding, Intervals)  # only these have numbers
        assert training is not None
        if side < 0:
            above = training.searchsorted(limit, side="right")
            nearest = min(float(training[above]), number) if above < len(training) else number
            return f"{choice.name} < {_edge(limit, nearest, nearest, encoding)}"
        below = training.searchsorted(limit, side="left") - 1
        nearest = max(float(training[below]), number) if below >= 0 else number
        return f"{choice.name} >= {_edge(nearest, limit, limit, encoding)}"

    def column_names(self, attribute: int) -> tuple[str, ...]:
        """Return the names of the attribute's columns."""
        return tuple(self.table.names[j] for j in self.attributes[attribute].positions)


def _edge(low: float, high: float, near: float, encoding: Intervals) -> str:
    """Return the text of the shortest edge above ``low`` and at most ``high``; of dates, ``high`` itself."""
    if encoding.kind == DATE or not np.isfinite([low, high]).all():
        return exact_text(high, encoding.kind) + encoding.zone
    return exact_text(shortest_number(low, high, near), encoding.kind)


def _choice(
    attribute: Attribute, values: Values, cells: Sequence[Column], schema: Schema
) -> tuple[Choice, float | None]:
    """Return an attribute's candidates for a row with these cells, and the row's own number or date, or None."""
    is_missing = any(bool(cell.missing[0]) for cell in cells)
    kind = schema.columns[attribute.positions[0]].kind if len(cells) == 1 else "groups"
    own = None if is_missing or values.numbers is None else float(cells[0].values[0])
    if own is not None and values.numbers is not None and values.places is not None:
        other = np.flatnonzero(values.numbers != own)
        distances = np.abs(values.places[other] - values.place(own))
        sides = np.sign(values.numbers[other] - own).astype(np.int8)
    else:
        same = np.ones(len(values.rows), dtype=bool)
        for j, cell in zip(attribute.positions, cells, strict=True):
            column = schema.columns[j]
            missing, present = bool(cell.missing[0]), ~column.missing[values.rows]
            same &= ~present if missing else present & (column.values[values.rows] == cell.values[0])
        other = np.flatnonzero(~same)
        distances, sides = np.full(len(other), APART), np.zeros(len(other), dtype=np.int8)
    numbers = None if values.numbers is None else values.numbers[other]
    arrays = (values.rows[other], values.counts[other], distances, sides)
    return Choice(attribute.name, attribute.positions, kind, *arrays, numbers), own


_VALUES: weakref.WeakKeyDictionary[Schema, dict[tuple[Any, ...], Values]] = weakref.WeakKeyDictionary()


def distinct_values(table: Table, attribute: Attribute) -> Values:
    """Return the distinct values of an attribute; they are computed once per table."""
    is_ordered = len(attribute.positions) == 1 and isinstance(attribute.encodings[0], Intervals)
    return _values(table.schema, attribute.positions, is_ordered)


def column_values(schema: Schema, position: int) -> Values:
    """Return the distinct values of one column; numbers and dates are sorted."""
    return _values(schema, (position,), schema.columns[position].kind in (NUMBER, DATE))


def _values(schema: Schema, positions: tuple[int, ...], is_ordered: bool) -> Values:
    known, key = _VALUES.setdefault(schema, {}), (positions, is_ordered)
    if key not in known:
        columns = [schema.columns[j] for j in positions]
        known[key] = _numbers(columns[0]) if is_ordered else _combinations(columns)
    return known[key]


def _numbers(column: Column) -> Values:
    present = np.flatnonzero(~column.missing)
    numbers, first, inverse, counts = np.unique(
        column.values[present] + 0.0, return_index=True, return_inverse=True, return_counts=True
    )
    ids = np.full(len(column.values), -1, dtype=np.intp)
    ids[present] = inverse
    places = (np.cumsum(counts) - counts / 2) / max(1, len(present))
    return Values(present[first], counts, ids, numbers, places)


def _combinations(columns: Sequence[Column]) -> Values:
    """Return the distinct values of a column that has no order, or the combinations of values of a group."""
    codes = np.column_stack([_codes(column) for column in columns])
    present = np.flatnonzero((codes >= 0).all(axis=1))
    ids = np.full(len(codes), -1, dtype=np.intp)
    _, first, inverse, counts = np.unique(
        codes[present], axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    ids[present] = inverse.reshape(-1)
    return Values(present[first], counts, ids)


def _codes(column: Column) -> np.ndarray:
    """Return a number per value in the order of the values' texts or numbers, and -1 if it is missing, (n,)."""
    if column.kind != CATEGORY:
        codes = np.unique(column.values + 0.0, return_inverse=True)[1].reshape(-1)
        return np.where(column.missing, -1, codes)
    texts = level_texts(column)
    ranks = {text: rank for rank, text in enumerate(sorted(set(texts)))}
    codes = np.array([ranks[text] for text in texts], dtype=np.intp)
    return np.where(column.missing, -1, codes)
