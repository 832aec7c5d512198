"""Statements about the values of a column: an interval, a level, or that the value is missing.

A column's *codes* number the statements about it: two rows have the same code exactly if the same statement is
true of both. So codes determine which rows break a statement, and which rows keep it.
"""

import itertools
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from anchorline.spaces.base import Change, Literal
from anchorline.spaces.columns import CATEGORY, EXACT, Column, exact_text, level_of, text_of

UNSEEN = -1  # the code of a level that no training row has, so that every training row breaks it


class Range(NamedTuple):
    """The codes, from ``first`` to ``last``, of the values for which a literal about a number or date is true."""

    first: int
    last: int

    def holds(self, code: int) -> bool:
        """Return whether the literal is true of values with this code; that of missing values is the largest."""
        return self.first <= code <= self.last


class Way(NamedTuple):
    """Training rows that break the same literals: where they begin in the pool, how many, and which literals."""

    begin: int
    size: int
    breaks: tuple[int, ...]


class Offer(NamedTuple):
    """The literals about an attribute: its statement, and its bounds; and the ways of breaking them.

    ``texts`` are those of the bounds, and what else a neighbor that meets the bound may take: "a higher one".
    """

    bounds: tuple[Range, ...]
    ways: tuple[Way, ...]
    texts: tuple[tuple[str, str], ...] = ()

    @property
    def n_literals(self) -> int:
        """Number of literals."""
        return 1 + len(self.bounds)


def changes_of(offers: Sequence[Offer]) -> tuple[tuple[Change, ...], ...]:
    """Return the ways in which attributes change, with their shares; literals are numbered in order."""
    changes, n_literals = [], 0
    for bounds, ways, _ in offers:
        total = sum([size for _, size, _ in ways])
        each = [Change(size / total, tuple([n_literals + j for j in broken])) for _, size, broken in ways]
        changes.append(tuple(each))
        n_literals += 1 + len(bounds)
    return tuple(changes)


class Statement(NamedTuple):
    """A statement that is true of a value: its text, and whether only one training value makes it true."""

    text: str
    single_value: bool


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Left-closed intervals between ``edges``, the outer two unbounded; missing values have their own code.

    ``statements`` are ordered by code. ``single_values`` maps the code of every interval that holds only one
    training value to that value and to the statement about rows that have it, as in ``capital-gain = 0``.
    ``indicator`` is true if the column holds only 0 and 1. ``zone`` is appended to the text of every date.
    """

    name: str
    kind: str
    edges: np.ndarray
    edge_texts: tuple[str, ...]
    statements: tuple[Statement, ...]
    single_values: Mapping[int, tuple[float, Statement]]
    indicator: bool
    zone: str = ""

    @classmethod
    def from_edges(
        cls, name: str, kind: str, pairs: Sequence[tuple[float, str]], values: np.ndarray, zone: str
    ) -> "Intervals":
        """Return the intervals between edges given with their texts; ``values`` are sorted and distinct."""
        edges = np.array([edge for edge, _ in pairs], dtype=np.float64)
        edge_texts = tuple(text + zone for _, text in pairs)
        texts = _interval_texts(name, edge_texts)
        missing = Statement(f"{name} is missing", single_value=True)
        statements = (*(Statement(text, single_value=False) for text in texts), missing)
        firsts = [0, *values.searchsorted(edges).tolist(), len(values)]
        singles = {i: low for i, (low, high) in enumerate(itertools.pairwise(firsts)) if high - low == 1}
        texts_of_singles = {i: f"{name} = {_distinct_text(values, at, kind)}{zone}" for i, at in singles.items()}
        single_values = {
            i: (float(values[at]), Statement(texts_of_singles[i], single_value=True))
            for i, at in singles.items()
            if not EXACT <= abs(float(values[at])) < np.inf
        }
        indicator = bool(np.isin(values, (0, 1)).all())
        return cls(name, kind, edges, edge_texts, statements, single_values, indicator, zone)

    def codes(self, column: Column) -> np.ndarray:
        """Return the code of every value's interval, (n,); missing values have the last code."""
        codes = self.edges.searchsorted(column.values, side="right")  # right: a value on an edge is above it
        return np.where(column.missing, len(self.edges) + 1, codes)

    def code(self, column: Column) -> int:
        """Return the code of the only value of a column."""
        return len(self.edges) + 1 if column.missing[0] else bisect_right(self.edges, column.values[0])

    def statement(self, column: Column, code: int) -> Statement:
        """Return what is true of the only value of a column, which has this code."""
        value, statement = self.single_values.get(code, (None, None))
        if statement is not None and value == column.values[0]:
            return statement
        return self.statements[code]

    def value_text(self, column: Column) -> str:
        """Return the text of the only value of a column."""
        return text_of(column.values.item(0), self.kind) + self.zone

    def bounds(self, code: int, literals: str) -> list[Range]:
        """Return the bounds that a value with this code meets: those of its interval, or all thresholds."""
        last = len(self.edges)
        lowers, uppers = range(code, 0, -1), range(code, last)  # the nearest first
        step = slice(None) if literals == "thresholds" else slice(1)
        return [Range(i, last) for i in lowers[step]] + [Range(0, i) for i in uppers[step]]

    def bound_texts(self, code: int, bound: Range) -> tuple[str, str]:
        """Return the text of a bound that values with this code meet, and what others of another interval are."""
        is_lower = bound.last == len(self.edges)
        edge = self.edge_texts[bound.first - 1] if is_lower else self.edge_texts[bound.last]
        limit = f">= {edge}" if is_lower else f"< {edge}"
        nearest = code == (bound.first if is_lower else bound.last)
        other = f"a {'higher' if is_lower else 'lower'} one" if nearest else f"another one {limit}"
        return f"{self.name} {limit}", other


def _interval_texts(name: str, texts: Sequence[str]) -> list[str]:
    """Return the statements about the intervals between edges with these texts, from the lowest interval up."""
    if not texts:
        return [f"{name} is not missing"]
    inner = [f"{low} <= {name} < {high}" for low, high in itertools.pairwise(texts)]
    return [f"{name} < {texts[0]}", *inner, f"{name} >= {texts[-1]}"]


def _distinct_text(values: np.ndarray, at: int, kind: str) -> str:
    """Return a text for a training value that no other training value has."""
    text = text_of(values[at], kind)
    nearest = [*values[max(0, at - 1) : at], *values[at + 1 : at + 2]]
    return exact_text(float(values[at]), kind) if text in [text_of(value, kind) for value in nearest] else text


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Separate codes for single values, one common code for rare values, and one for missing values.

    ``codes_of`` maps the text of every level to its code. ``missing`` is the code of missing values, which is the
    largest. ``rare`` is the code that all rare levels share, or None if no level is rare. ``labels`` maps texts of
    levels to the names to display instead.
    """

    name: str
    codes_of: Mapping[str, int]
    missing: int
    rare: int | None
    n_rare: int
    labels: Mapping[str, str]

    def codes(self, column: Column) -> np.ndarray:
        """Return the code of every value's level, (n,); levels that no training row has get the code -1."""
        ranks = column.ranks
        texts = level_texts(column) if ranks is None else ranks.levels
        found = map(self.codes_of.get, texts, itertools.repeat(UNSEEN))  # a loop takes four times as long
        codes = np.fromiter(found, dtype=np.intp, count=len(texts))
        return np.where(column.missing, self.missing, codes if ranks is None else codes[ranks.places])

    def code(self, column: Column) -> int:
        """Return the code of the only value of a column."""
        return int(self.codes(column)[0])

    def statement(self, column: Column, code: int) -> Statement:
        """Return what is true of the only value of a column, which has this code."""
        if column.missing[0]:
            return Statement(f"{self.name} is missing", single_value=True)
        if code == self.rare:
            return Statement(f"{self.name} is one of {self.n_rare} rare values", single_value=False)
        return Statement(f"{self.name} = {self.value_text(column)}", single_value=True)

    def value_text(self, column: Column) -> str:
        """Return the text of the only value of a column."""
        text = level_texts(column)[0]
        text = self.labels.get(text, text)
        # Quoted, because a sentence that ends in an empty text looks unfinished.
        return repr(text) if text[:1] in ("", "'") else text


Encoding = Intervals | Levels


def level_texts(column: Column) -> list[str]:
    """Return the text of every value's level; those of missing values mean nothing."""
    values: list[Any] = column.values.tolist()
    return values if column.kind == CATEGORY else [level_of(value, column.kind) for value in values]


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """The subject of a literal: one column, or several columns that form a group.

    ``positions`` are the positions of its columns. ``combinations`` numbers the combinations of codes that
    training rows have. In the order that `build_attribute` returns, the rows of combination i are those from
    ``starts[i]`` to ``starts[i + 1]``. ``uniform[i]`` is true if a model cannot distinguish their values.
    """

    name: str
    positions: tuple[int, ...]
    encodings: tuple[Encoding, ...]
    combinations: Mapping[tuple[int, ...], int]
    starts: tuple[int, ...]
    uniform: tuple[bool, ...] = ()
    _offers: dict[tuple[int, ...], Offer] = field(default_factory=dict, repr=False)

    def block(self, codes: tuple[int, ...]) -> tuple[int, int]:
        """Return start and stop, among the sorted rows, of the rows with these codes."""
        number = self.combinations.get(codes)
        return (0, 0) if number is None else (self.starts[number], self.starts[number + 1])

    def codes(self, columns: Sequence[Column]) -> tuple[int, ...]:
        """Return the codes of a row, one per column."""
        return tuple([encoding.code(column) for encoding, column in zip(self.encodings, columns, strict=True)])

    def breaks(self, columns: Sequence[Column], own: tuple[int, ...]) -> np.ndarray:
        """Return which rows of these columns break the statement with these codes, (n,)."""
        parts = [encoding.codes(column) for encoding, column in zip(self.encodings, columns, strict=True)]
        return np.asarray(np.any([part != code for part, code in zip(parts, own, strict=True)], axis=0))

    def breaks_one_way(self, own: tuple[int, ...]) -> bool:
        """Return whether all training rows that break the statement with these codes have the same values."""
        if not self.uniform:
            return False
        others = [number for codes, number in self.combinations.items() if codes != own]
        return len(others) == 1 and self.uniform[others[0]]

    def keeps_one_way(self, own: tuple[int, ...]) -> bool:
        """Return whether all training rows with these codes have the same values."""
        number = self.combinations.get(own)
        return number is None or bool(self.uniform and self.uniform[number])

    def offer(self, own: tuple[int, ...], literals: str) -> Offer:
        """Return the literals about a row with these codes, and the ways in which training rows break them."""
        if own not in self._offers:  # for one choice of literals only, because a table has one
            self._offers[own] = self._offer(own, literals)
        return self._offers[own]

    def drawn(self, own: tuple[int, ...], literals: str, draw: str) -> Offer:
        """Return `offer`; with marginal draws, also the way of taking a value that breaks nothing."""
        offer, (start, stop) = self.offer(own, literals), (0, 0) if draw == "breaking" else self.block(own)
        return offer._replace(ways=(*offer.ways, Way(start, stop - start, ()))) if stop > start else offer

    def _offer(self, own: tuple[int, ...], literals: str) -> Offer:
        start, stop = self.block(own)
        whole = Offer((), (Way(stop, self.starts[-1] - (stop - start), (0,)),))
        encoding = self.encodings[0]
        if literals == "intervals" or len(own) > 1 or not isinstance(encoding, Intervals):
            return whole
        missing, code = len(encoding.edges) + 1, own[0]
        others = {codes[0]: i for codes, i in self.combinations.items() if codes != own}
        if code == missing or not others:
            return whole
        by_broken: dict[frozenset[int], Range] = {frozenset(others): Range(code, code)}
        for bound in encoding.bounds(code, literals):
            broken = frozenset(other for other in others if not bound.holds(other))
            if broken - {missing}:  # otherwise it states only that the value is not missing
                by_broken.setdefault(broken, bound)
        broken_sets = list(by_broken)
        ways: list[Way] = []
        for other, i in others.items():
            breaks = tuple(j for j, broken in enumerate(broken_sets) if other in broken)
            ways.append(Way(self.starts[i], self.starts[i + 1] - self.starts[i], breaks))
        bounds = tuple(by_broken.values())[1:]
        return Offer(bounds, _merged(ways, self.starts[-1]), tuple(encoding.bound_texts(code, b) for b in bounds))

    def statement(self, columns: Sequence[Column], codes: tuple[int, ...]) -> Statement:
        """Return what is true of the row: the statements of all columns, or of the only indicator that is 1."""
        if len(codes) == 1:
            return self.encodings[0].statement(columns[0], codes[0])
        triples = zip(self.encodings, columns, codes, strict=True)
        each = [encoding.statement(column, code) for encoding, column, code in triples]
        single_value = all(statement.single_value for statement in each)
        on = [i for i, column in enumerate(columns) if not column.missing[0] and column.values[0] == 1]
        if len(on) == 1 and all(map(_is_indicator, self.encodings)) and self._determines_all(on[0], codes):
            return Statement(each[on[0]].text, single_value)
        return Statement(" and ".join(statement.text for statement in each), single_value)

    def _determines_all(self, i: int, own: tuple[int, ...]) -> bool:
        """Return whether every training row that has the row's code in column i has all of its codes."""
        return not any(codes[i] == own[i] and codes != own for codes in self.combinations)

    def literals(
        self, columns: Sequence[Column], codes: tuple[int, ...], offer: Offer, keep: bool
    ) -> list[Literal]:
        """Return the literals about a row: its statement, and then its bounds.

        With ``keep``, a neighbor that meets a literal has the row's values, or others of another interval.
        """
        statement = self.statement(columns, codes)
        if not keep:
            return [Literal(self.name, text) for text in (statement.text, *(text for text, _ in offer.texts))]
        kept = f"{self.name} keeps its values"
        if len(columns) == 1 and (offer.texts or not statement.single_value):
            kept = f"{self.name} keeps its value {self.encodings[0].value_text(columns[0])}"
        first = Literal(self.name, statement.text, statement.text if statement.single_value else kept)
        return [first, *(Literal(self.name, text, f"{kept} or takes {other}") for text, other in offer.texts)]


def _merged(ways: Sequence[Way], n_rows: int) -> tuple[Way, ...]:
    """Merge adjacent ways that break the same literals; in the pool, the first row follows the last."""
    merged: list[Way] = []
    for way in ways:
        before = merged[-1] if merged else None
        if before and before.breaks == way.breaks and before.begin + before.size == way.begin:
            merged[-1] = before._replace(size=before.size + way.size)
        else:
            merged.append(way)
    first, last = merged[0], merged[-1]
    if len(merged) > 1 and first.breaks == last.breaks and first.begin == 0 and last.begin + last.size == n_rows:
        return (*merged[1:-1], last._replace(size=last.size + first.size))
    return tuple(merged)


def build_attribute(
    name: str, positions: Sequence[int], encodings: Sequence[Encoding], columns: Sequence[Column]
) -> tuple[Attribute, np.ndarray]:
    """Return an attribute, and an order (n,) of the training rows in which rows with equal codes are adjacent."""
    parts = [encoding.codes(column) for encoding, column in zip(encodings, columns, strict=True)]
    # Sorted column by column, because sorting whole rows takes a hundred times as long. The smallest
    # integer types are sorted fastest.
    order = np.lexsort([part.astype(np.min_scalar_type(part.max())) for part in reversed(parts)])
    begins = np.zeros(len(order), dtype=bool)
    begins[0] = True
    for part in parts:
        begins[1:] |= np.diff(part[order]) != 0
    starts = np.flatnonzero(begins)
    codes = np.column_stack([part[order[starts]] for part in parts])
    combinations = {tuple(row): i for i, row in enumerate(codes.tolist())}
    ends = (*starts.tolist(), len(order))
    return Attribute(name, tuple(positions), tuple(encodings), combinations, ends), order


def _is_indicator(encoding: Encoding) -> bool:
    """Return whether a column holds only 0 and 1."""
    if isinstance(encoding, Levels):
        return set(encoding.codes_of) <= {"True", "False"}
    return encoding.indicator


class RandomWords:
    """The consecutive 32-bit words of a generator; no word is skipped, however many are taken at a time.

    Without a generator all words are zero. This is used when there is only one value to choose from.

    Examples
    --------
    >>> by_three, at_once = (RandomWords(np.random.default_rng(0)) for _ in range(2))
    >>> [*by_three.take(3), *by_three.take(3)] == [*at_once.take(6)]
    True
    """

    def __init__(self, rng: np.random.Generator | None) -> None:
        self._source = None if rng is None else rng.bit_generator
        self._rest = np.zeros(0, dtype="<u4")

    def take(self, n: int) -> np.ndarray:
        """Return the next n words, (n,)."""
        if self._source is None:
            return np.zeros(n, dtype="<u4")
        words = self._raw(n - len(self._rest))
        if len(self._rest):
            words = np.concatenate([self._rest, words])
        self._rest = words[n:].copy()  # a view would keep all words in memory
        return words[:n]

    def _raw(self, n: int) -> np.ndarray:
        """Return at least n new words."""
        assert self._source is not None
        if isinstance(self._source, np.random.MT19937):  # its raw numbers have 32 bits
            return self._source.random_raw(n).astype("<u4")
        return self._source.random_raw(-(-n // 2)).astype("<u8", copy=False).view("<u4")
