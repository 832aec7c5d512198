"""The values that an instance's attributes may be changed to: those of training rows, or the other of two.

The distance between two values of a number or date is measured in training quantiles: the share of training rows
between them, where rows that have one of the two values count half. Two categories are half apart, which is also
the distance between the two values of a number that has only two. A missing value is half apart from all others.
"""

import difflib
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.changes.settings import ChangeSettings, Price
from anchorline.errors import ParameterError, listed
from anchorline.facts import Fact
from anchorline.spaces.base import OTHER, Neighborhood, TwoValued
from anchorline.spaces.columns import (
    CATEGORY,
    DATE,
    NUMBER,
    Column,
    date_text,
    kind_of,
    level_text,
    read_date,
    shortest_number,
)
from anchorline.spaces.hypercube import HypercubeNeighborhood
from anchorline.spaces.rows import Schema, plain
from anchorline.spaces.table import TableNeighborhood

APART = 0.5  # the distance between two categories
_DIRECTIONS = {"up": 1, "down": -1}

Change = tuple[int, ...]
"""Numbers of candidates, at most one per attribute."""


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The distinct values of one or more columns in the training table, without missing ones.

    ``rows`` (m,) are training rows that have the values, ``counts`` (m,) the numbers of rows that have them, and
    ``ids`` (n,) the value of every training row, -1 where it is missing. Numbers and dates are sorted: ``numbers``
    (m,) are the values, and ``places`` (m,) their places among the rows, from 0 to 1. Others have neither.
    """

    rows: np.ndarray
    counts: np.ndarray
    ids: np.ndarray
    numbers: np.ndarray | None
    places: np.ndarray | None

    def place(self, number: float) -> float:
        """Return the place of any number among the training rows, from 0 to 1."""
        assert self.numbers is not None  # only these have places
        ends = [self.numbers.searchsorted(number, side) for side in ("left", "right")]
        return float(sum(self.counts[:end].sum() for end in ends)) / (2 * max(1, int(self.counts.sum())))


_VALUES: weakref.WeakKeyDictionary[Schema, dict[Any, Values]] = weakref.WeakKeyDictionary()


def distinct_values(schema: Schema, positions: tuple[int, ...], view: int | None = None) -> Values:
    """Return the distinct values of columns that change together; they are computed once per table.

    They are ordered by the column ``view`` if it holds numbers or dates, each of which belongs to one value.
    """
    known = _VALUES.setdefault(schema, {})
    if (positions, view) in known:
        return known[positions, view]
    codes = [_codes(schema.columns[j]) for j in positions]
    present = np.flatnonzero(np.all([each >= 0 for each in codes], axis=0))
    joined = codes[0][present]
    for each in codes[1:]:  # one number per combination
        joined = np.unique(joined * (each.max() + 1) + each[present], return_inverse=True)[1].reshape(-1)
    _, first, inverse, counts = np.unique(joined, return_index=True, return_inverse=True, return_counts=True)
    rows, numbers, places = present[first], None, None
    if view is not None and schema.columns[view].kind in (NUMBER, DATE):
        held = schema.columns[view].values[rows] + 0.0
        order = np.argsort(held, kind="stable")
        if (held[order][1:] > held[order][:-1]).all():
            rows, counts, numbers, inverse = rows[order], counts[order], held[order], np.argsort(order)[inverse]
            places = (np.cumsum(counts) - counts / 2) / max(1, len(present))
    ids = np.full(schema.n_rows, -1, dtype=np.intp)
    ids[present] = inverse
    known[positions, view] = Values(rows, counts, ids, numbers, places)
    return known[positions, view]


def _codes(column: Column) -> np.ndarray:
    """Return a number per value in the order of the values' texts or numbers, and -1 if it is missing, (n,)."""
    if column.ranks is not None:
        return np.where(column.missing, -1, column.ranks.places.astype(np.intp))  # they are unsigned
    values = np.where(column.missing, "" if column.kind == CATEGORY else 0.0, column.values)
    values = values if column.kind == CATEGORY else values + 0.0  # -0.0 is 0.0
    return np.where(column.missing, -1, np.unique(values, return_inverse=True)[1].reshape(-1))


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One attribute of an instance, and all values that it may be changed to; ``kind`` says what they are.

    ``rows``, ``counts``, ``distances`` and ``sides`` are (m,): training rows that have the values, the numbers of
    rows that have them, distances from the instance's own value, and -1 or +1 for values below or above it, 0
    where there is no order. Ordered values are sorted. ``numbers`` (m,) are the values of numbers and dates; None
    for others.
    """

    name: str
    columns: tuple[str, ...]
    kind: str
    rows: np.ndarray
    counts: np.ndarray
    distances: np.ndarray
    sides: np.ndarray
    numbers: np.ndarray | None = None

    @property
    def names(self) -> set[str]:
        """What a user may call the attribute."""
        return {self.name, *self.columns}


class ChangeableParts:
    """An instance whose attributes have one other value each, which stands in "row" 0."""

    labels: Mapping[str, Mapping[str, str]] = {}
    is_realistic = has_rule = False

    def __init__(self, neighborhood: TwoValued) -> None:
        one, side, apart = np.ones(1, dtype=np.intp), np.zeros(1, dtype=np.int8), np.full(1, APART)
        self.neighborhood, self.columns, self.held = neighborhood, neighborhood.names, neighborhood.held
        self.choices = [Choice(name, (name,), "two values", one * 0, one, apart, side) for name in self.columns]

    def realize(self, attributes: np.ndarray, rows: np.ndarray) -> Any:
        """Return the neighbors (n, s) in which these attributes have their other values; -1 changes nothing."""
        donors = np.full((1 + len(self.choices), len(attributes)), -1, dtype=np.int8)
        donors[attributes, np.arange(len(attributes))[:, None]] = OTHER  # -1 is the last row, which is cut off
        return self.neighborhood.realize(donors[:-1])

    def is_valid(self, attributes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return that nothing is forbidden, (n,)."""
        return np.ones(len(attributes), dtype=bool)

    def before(self, attribute: int) -> Any:
        """Return the own value as facts state it."""
        return self.neighborhood.fact(attribute).value

    def after(self, attribute: int, row: int) -> Any:
        """Return the other value as facts state it, or None if it is that the attribute is absent."""
        return self.neighborhood.other(attribute)

    def bound(self, attribute: int, row: int) -> Fact | None:
        """Return None, because two values have no order."""
        return None

    def like(self, attribute: int, other: Neighborhood) -> np.ndarray:
        """Return whether the other instance has the other value."""
        if not isinstance(other, HypercubeNeighborhood):
            raise ParameterError("toward needs a Table or a Hypercube, where instances have values to take.")
        return np.array([other.fact(attribute).value != self.before(attribute)])


class ChangeableRow:
    """A row of a table, whose attributes may take the values of training rows.

    ``positions`` are those of the columns of each attribute, and ``views`` the column by which it is ordered, or
    None. ``cells`` is the row as columns of one value each, and ``instance`` in plain values. ``labels`` are names
    of values by column and text. ``is_realistic`` says whether changes near to training rows come first.
    """

    def __init__(self, neighborhood: TableNeighborhood) -> None:
        self.neighborhood, table = neighborhood, neighborhood.table
        self.schema, self.cells, self.instance = table.schema, neighborhood.columns, neighborhood.instance
        self.columns, self.held = self.schema.names, neighborhood.held
        self.labels = {self.columns[j]: names for j, names in table.labels.items() if names}
        self.named = frozenset(table.labels)  # positions of numbers that are read as categories
        self.is_realistic, self.has_rule = table.neighbors == "realistic", table.valid is not None
        self.positions = tuple(attribute.positions for attribute in table.attributes)
        self.changing = sorted(j for each in self.positions for j in each)
        ordered = [[j for j in attribute.views if j not in self.named] for attribute in table.attributes]
        self.views = [own[0] if len(own) == 1 else None for own in ordered]
        pairs = zip(self.positions, self.views, strict=True)
        self.values = [distinct_values(self.schema, own, view) for own, view in pairs]
        self.choices = [self._choice(a, attribute.name) for a, attribute in enumerate(table.attributes)]

    def _choice(self, a: int, name: str) -> Choice:
        """Return an attribute's values other than the row's own."""
        positions, values, own = self.positions[a], self.values[a], self._number(a)
        kind = "groups" if len(positions) > 1 else self.schema.columns[positions[0]].kind
        kind = CATEGORY if len(positions) == 1 and positions[0] in self.named else kind
        if own is not None and values.numbers is not None and values.places is not None:
            other = np.flatnonzero(values.numbers != own)
            distances = np.abs(values.places[other] - values.place(own))
            sides = np.sign(values.numbers[other] - own).astype(np.int8)
        else:
            other = np.flatnonzero(~self._same(a, values.rows, self.cells))
            distances, sides = np.full(len(other), APART), np.zeros(len(other), dtype=np.int8)
        columns, numbers = tuple(self.columns[j] for j in positions), values.numbers
        numbers = None if numbers is None else numbers[other]
        return Choice(name, columns, kind, values.rows[other], values.counts[other], distances, sides, numbers)

    def _number(self, a: int) -> float | None:
        """Return the row's own number or date of an ordered attribute; None if it has none, or is not in order."""
        view, positions = self.views[a], self.positions[a]
        if view is None or self.values[a].numbers is None or any(self.cells[j].missing[0] for j in positions):
            return None
        if len(positions) > 1 and not self._same(a, self.values[a].rows, self.cells).any():
            return None  # a combination that no training row has is not between others
        return float(self.cells[view].values[0])

    def _same(self, a: int, rows: np.ndarray, cells: Sequence[Column]) -> np.ndarray:
        """Return which training rows have the values of some cells in an attribute."""
        same = np.ones(len(rows), dtype=bool)
        for j in self.positions[a]:
            column, missing = self.schema.columns[j], self.schema.columns[j].missing[rows]
            same &= missing if cells[j].missing[0] else ~missing & (column.values[rows] == cells[j].values[0])
        return same

    def is_missing(self, attribute: int) -> bool:
        """Return whether the row's own value is missing; several columns are never missing as a whole."""
        positions = self.positions[attribute]
        return len(positions) == 1 and bool(self.cells[positions[0]].missing[0])

    def realize(self, attributes: np.ndarray, rows: np.ndarray) -> Any:
        """Return copies of the row in which attributes (n, s) have the values of training rows; -1 is none."""
        sources = np.full((len(self.columns), len(attributes)), -1, dtype=np.intp)
        for a in np.unique(attributes[attributes >= 0]).tolist():
            changed, place = np.nonzero(attributes == a)
            sources[np.ix_(self.positions[a], changed)] = rows[changed, place]
        return self.schema.natives.neighbors(self.neighborhood.row, sources)

    def is_valid(self, attributes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return which changed rows, given as to `realize`, the rule of the table allows, (n,)."""
        return self.neighborhood.is_valid(self.realize(attributes, rows), len(attributes))

    def before(self, attribute: int) -> Any:
        """Return the row's own value as JSON holds it; a tuple for several columns."""
        values = [self.instance[j] for j in self.positions[attribute]]
        return values[0] if len(values) == 1 else tuple(values)

    def after(self, attribute: int, row: int) -> Any:
        """Return a training value as JSON holds it; a tuple for several columns."""
        values = [self._plain(j, row) for j in self.positions[attribute]]
        return values[0] if len(values) == 1 else tuple(values)

    def _plain(self, j: int, row: int) -> Any:
        rows = np.array([row])
        return plain(self.schema.columns[j].taken(rows), self.schema.natives.pick(j, rows))

    def bound(self, attribute: int, row: int) -> Fact | None:
        """Return the shortest bound that exactly this training value and those beyond it meet."""
        own, view, numbers = self._number(attribute), self.views[attribute], self.values[attribute].numbers
        if own is None or view is None or numbers is None:
            return None
        # The cut is between the value and the nearest one towards the row's own, which does not meet the bound.
        at = int(self.values[attribute].ids[row])
        limit, name, about = float(numbers[at]), self.columns[view], self.choices[attribute].name
        if limit < own:
            nearest = min(float(numbers[at + 1]), own) if at + 1 < len(numbers) else own
            return Fact(
                about, name, "below", high=self._cut(view, limit, nearest, nearest), value=self._plain(view, row)
            )
        nearest = max(float(numbers[at - 1]), own) if at else own
        return Fact(
            about, name, "at_least", low=self._cut(view, nearest, limit, limit), value=self._plain(view, row)
        )

    def _cut(self, view: int, low: float, high: float, near: float) -> Any:
        """Return the shortest number above ``low`` and at most ``high``; of dates, ``high`` as an ISO text."""
        if self.schema.columns[view].kind == DATE:
            return date_text(high, self.schema.types[view].zoned)
        if not np.isfinite([low, high]).all():
            return plain(Column(NUMBER, np.array([high]), np.zeros(1, dtype=bool)), [high])
        number = shortest_number(low, high, near)
        return int(number) if number.is_integer() and abs(number) < 2**53 else number

    def like(self, attribute: int, other: Neighborhood) -> np.ndarray:
        """Return which values are those of another row, (m,); none if that row's value is missing."""
        cells = self.schema.read(other.instance)[1]
        missing = any(bool(cells[j].missing[0]) for j in self.positions[attribute])
        return self._same(attribute, self.choices[attribute].rows, cells) & (not missing)


Changeable = ChangeableParts | ChangeableRow
"""An instance whose attributes may change; a value is given by its attribute and a training row that has it."""


def changeable(neighborhood: Neighborhood) -> Changeable:
    """Return what the attributes of an instance may be changed to."""
    if isinstance(neighborhood, TableNeighborhood):
        return ChangeableRow(neighborhood)
    if isinstance(neighborhood, TwoValued):
        return ChangeableParts(neighborhood)
    raise ParameterError(
        f"The instance is a {type(neighborhood).__name__}, whose attributes have no values to change to. Pass a "
        "Table, a Hypercube, a Text, an Image or a Signal."
    )


def _check_names(case: Changeable, settings: ChangeSettings) -> None:
    """Raise `ParameterError` for a name that is neither an attribute nor one of its columns, nor held."""
    known = {*case.held, *(name for choice in case.choices for name in (choice.name, *choice.columns))}
    given = {"fixed": settings.fixed, "allowed": settings.allowed, "direction": settings.direction}
    given |= {} if callable(settings.cost) else {"cost": settings.cost}
    for option, names in given.items():
        for name in names:
            if name not in known:
                near = difflib.get_close_matches(str(name), list(known)[:1000], 1)
                hint = f"Did you mean {near[0]!r}?" if near else f"The columns are {listed(sorted(known))}."
                raise ParameterError(f"{option} has {name!r}, which is not a column of the table. {hint}")
    for name, way in settings.direction.items():
        if way not in _DIRECTIONS:
            raise ParameterError(
                f"direction of {name!r} is {way!r}, but it must be 'up' or 'down'. Type "
                f"direction={{{name!r}: 'up'}}."
            )


def _kept(case: Changeable, a: int, settings: ChangeSettings, toward: Neighborhood | None) -> np.ndarray:
    """Return the places of the values of an attribute that the user allows."""
    choice = case.choices[a]
    if choice.names & {*settings.fixed}:
        return np.zeros(0, dtype=np.intp)
    kept = np.ones(len(choice.rows), dtype=bool)
    for name, way in settings.direction.items():
        if name in choice.names:
            if choice.numbers is None:
                raise ParameterError(
                    f"direction has {name!r}, which holds {choice.kind}; only numbers and dates go up or down. "
                    f"Remove {name!r}, or list its allowed values in allowed."
                )
            kept &= choice.sides == _DIRECTIONS[way]
    if toward is not None:
        kept &= case.like(a, toward)
    for name, limits in settings.allowed.items():
        if name in choice.names:
            kept &= _allowed(case, a, name, limits)
    return np.flatnonzero(kept)


def _allowed(case: Changeable, attribute: int, name: str, limits: Any) -> np.ndarray:
    choice = case.choices[attribute]
    if len(choice.columns) > 1:
        raise ParameterError(
            f"allowed has {name!r}, which is in the group {choice.name!r}; groups change as a whole. Remove it, "
            "or hold the group fixed."
        )
    if isinstance(limits, tuple) and choice.numbers is not None:
        if len(limits) != 2:
            raise ParameterError(
                f"allowed has {limits!r} for {name!r}, but a range must be a tuple of two ends, lowest first. "
                f"Type, say, allowed={{{name!r}: (0, 100)}}, or a list of the allowed values."
            )
        low, high = (_number(end, choice.kind, name) for end in limits)
        low, high = -np.inf if low is None else low, np.inf if high is None else high
        return np.asarray((choice.numbers >= low) & (choice.numbers <= high))
    if isinstance(limits, str | bytes) or not isinstance(limits, Iterable):
        raise ParameterError(
            f"allowed has {limits!r} for {name!r}, but it must be a range or a list of values. Type, say, "
            f"allowed={{{name!r}: [{limits!r}]}}."
        )
    if choice.numbers is not None:
        numbers = [_number(value, choice.kind, name) for value in limits]
        return np.isin(choice.numbers, [value for value in numbers if value is not None])
    wanted, named = {level_text(value) for value in limits}, case.labels.get(name, {})
    texts = [level_text(case.after(attribute, row)) for row in choice.rows.tolist()]
    known = {*texts, level_text(case.before(attribute)), *named.values()}
    for text in sorted({level_text(value) for value in limits if value is not None} - known):
        near = difflib.get_close_matches(text, known, 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"The values are {listed(sorted(known))}."
        raise ParameterError(f"allowed has {text!r} for {name!r}, which the table does not contain. {hint}")
    return np.array([text in wanted or named.get(text) in wanted for text in texts], dtype=bool)


def _number(value: Any, kind: str, name: str) -> float | None:
    """Return the end of a range as a number; dates count microseconds."""
    if value is None:
        return None
    if kind == DATE:
        parsed = read_date(value)
        if parsed is not None:
            return float(parsed[0].astype("M8[us]").astype(np.int64))
    elif kind_of(value) == NUMBER:
        return float(value)
    raise ParameterError(
        f"allowed has {value!r} for {name!r}, which holds {kind}. Type a {'date' if kind == DATE else 'number'}, "
        "or None for no limit."
    )


@dataclass(frozen=True, eq=False)
class Candidates:
    """All allowed values of all attributes in one list; those of an ordered attribute are sorted.

    Arrays are (m,): ``owner`` is the attribute of every candidate, and ``cell`` a number that candidates share if
    the model cannot distinguish them; the others are those of `Choice`. ``weights`` (attributes,) multiply
    distances; ``price`` replaces the weighted sum if it is given.
    """

    case: Changeable
    owner: np.ndarray
    rows: np.ndarray
    counts: np.ndarray
    distances: np.ndarray
    sides: np.ndarray
    cell: np.ndarray
    weights: np.ndarray
    price: Price | None

    @classmethod
    def of(cls, neighborhood: Neighborhood, settings: ChangeSettings, toward: Neighborhood | None) -> "Candidates":
        """Return the candidates that the user allows; raise `ParameterError` if there are none."""
        _check_names(case := changeable(neighborhood), settings)
        kept = [_kept(case, a, settings, toward) for a in range(len(case.choices))]
        owner = np.repeat(np.arange(len(kept)), [len(values) for values in kept])
        if not len(owner):
            raise ParameterError(
                "No attribute may change: all are held fixed, or no training row has another allowed value. "
                "Shorten fixed, or widen allowed and direction."
            )
        pairs = list(zip(case.choices, kept, strict=True))
        weights, price = ({}, settings.cost) if callable(settings.cost) else (settings.cost, None)
        own = [[float(weights[name]) for name in choice.names & {*weights}] for choice in case.choices]
        return cls(
            case=case,
            owner=owner,
            rows=np.concatenate([choice.rows[values] for choice, values in pairs]),
            counts=np.concatenate([choice.counts[values] for choice, values in pairs]),
            distances=np.concatenate([choice.distances[values] for choice, values in pairs]),
            sides=np.concatenate([choice.sides[values] for choice, values in pairs]),
            cell=np.arange(len(owner)),
            weights=np.array([max(each, default=1.0) for each in own]),
            price=price,
        )

    @property
    def attributes(self) -> np.ndarray:
        """The attributes that have a candidate."""
        return np.unique(self.owner)

    def of_side(self, attribute: int, side: int) -> np.ndarray:
        """Return the candidates of an attribute on one side, nearest first; without an order, by frequency."""
        own = np.flatnonzero((self.owner == attribute) & (self.sides == side))
        if side == 0:
            return own[np.argsort(-self.counts[own], kind="stable")]
        return own[::-1] if side < 0 else own

    def split(self, candidate: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the candidates between the own value and this one, and this one with all beyond; nearest first.

        Without an order, nothing is between, and only the candidate itself is beyond.
        """
        side = int(self.sides[candidate])
        if side == 0:
            return np.zeros(0, dtype=np.intp), np.array([candidate])
        own = self.of_side(int(self.owner[candidate]), side)
        at = int(np.flatnonzero(own == candidate)[0])
        return own[:at], own[at:]

    def distinct(self, candidates: np.ndarray) -> np.ndarray:
        """Return the first candidate of every cell, in the order given."""
        _, first = np.unique(self.cell[candidates], return_index=True)
        return np.asarray(candidates[np.sort(first)])

    def spread(self, candidates: np.ndarray, most: int) -> np.ndarray:
        """Return at most ``most`` of the candidates: the first, the last, and quantiles of the training rows."""
        if len(candidates) <= most:
            return candidates
        if most < 2 or self.sides[candidates[0]] == 0:
            return candidates[:most]
        reached = np.cumsum(self.counts[candidates])
        at = np.searchsorted(reached, np.linspace(reached[0], reached[-1], most))
        return np.asarray(candidates[np.unique(np.r_[0, at, len(candidates) - 1])[:most]])

    def places(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the attributes and rows of candidates, as `realize` takes them; -1 changes nothing."""
        return np.append(self.owner, -1)[chosen], np.append(self.rows, -1)[chosen]

    def cost(self, chosen: np.ndarray) -> np.ndarray:
        """Return the cost of changes (n, s), given as candidates; -1 changes nothing."""
        if self.price is None:
            weighted = np.append(self.weights[self.owner] * self.distances, 0.0)  # the last one is that of -1
            return np.asarray(weighted[chosen].sum(axis=1))
        costs = []
        for owners, rows in zip(*self.places(chosen), strict=True):
            pairs = zip(owners[owners >= 0].tolist(), rows[owners >= 0].tolist(), strict=True)
            moves = {self.case.choices[a].name: (self.case.before(a), self.case.after(a, row)) for a, row in pairs}
            cost = float(self.price(moves))
            if not np.isfinite(cost):
                raise ParameterError(
                    f"cost returned {cost!r} for {moves!r:.200}, but it must return a finite number."
                )
            costs.append(cost)
        return np.array(costs, dtype=np.float64)

    def attributes_of(self, change: Iterable[int]) -> frozenset[int]:
        """Return the attributes that a change is about."""
        return frozenset(self.owner[list(change)].tolist())


def padded(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return changes of several lengths as one array; -1 changes nothing."""
    width = max((part.shape[1] for part in parts), default=1)
    parts = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=-1) for part in parts]
    return np.concatenate([np.zeros((0, width), dtype=np.intp), *parts])
