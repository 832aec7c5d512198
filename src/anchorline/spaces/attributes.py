"""What can be said of a value: an interval, a level, or that it is missing.

A column's *codes* number the statements about it; rows of equal code make the same statement true.
Everything else follows from codes: which rows break a statement, and which keep it.
"""

import itertools
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from anchorline.errors import ParameterError
from anchorline.spaces.columns import (
    BOOLEAN,
    CATEGORY,
    EXACT,
    NUMBER,
    Column,
    exact_text,
    level_of,
    readable_edges,
    text_of,
)

UNSEEN = -1  # the code of a level that no training row has: every training row breaks it


class Statement(NamedTuple):
    """What is true of a value: ``text``; ``lone`` if only one training value makes it true."""

    text: str
    lone: bool


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Left-closed intervals between ``edges``; the outer two are unbounded, missing values stand apart.

    ``statements`` are told by code. ``lone`` has, of every interval that holds only one training value, that
    value and what is said of a row that has it: ``capital-gain = 0``. ``zone`` follows every date.
    ``indicator``: the column holds nothing but 0 and 1.
    """

    name: str
    kind: str
    edges: np.ndarray
    statements: tuple[Statement, ...]
    lone: Mapping[int, tuple[float, Statement]]
    indicator: bool
    zone: str = ""

    @classmethod
    def between(
        cls, name: str, kind: str, pairs: Sequence[tuple[float, str]], values: np.ndarray, zone: str
    ) -> "Intervals":
        """The intervals between edges, each told with its text; ``values`` are the distinct ones, sorted."""
        edges = np.array([edge for edge, _ in pairs], dtype=np.float64)
        texts = _told_between(name, [text + zone for _, text in pairs])
        statements = (*(Statement(text, lone=False) for text in texts), Statement(f"{name} is missing", lone=True))
        firsts = [0, *values.searchsorted(edges).tolist(), len(values)]
        found = {i: low for i, (low, high) in enumerate(itertools.pairwise(firsts)) if high - low == 1}
        lone = {
            i: (float(values[at]), Statement(f"{name} = {_told_alone(values, at, kind)}{zone}", lone=True))
            for i, at in found.items()
            if not EXACT <= abs(float(values[at])) < np.inf
        }
        return cls(name, kind, edges, statements, lone, bool(np.isin(values, (0, 1)).all()), zone)

    def codes(self, column: Column) -> np.ndarray:
        """Number of the interval of every value, (n,); missing ones come last."""
        found = self.edges.searchsorted(column.values, side="right")  # a value on an edge goes above it
        return np.where(column.missing, len(self.edges) + 1, found)

    def code(self, column: Column) -> int:
        """The same of a column's only value."""
        return len(self.edges) + 1 if column.missing[0] else bisect_right(self.edges, column.values[0])

    def statement(self, column: Column, code: int) -> Statement:
        """What is true of a column's only value, of this code."""
        value, statement = self.lone.get(code, (None, None))
        if statement is not None and value == column.values[0]:
            return statement
        return self.statements[code]

    def value_text(self, column: Column) -> str:
        """The only value of a column, told."""
        return text_of(column.values[0], self.kind) + self.zone


def _told_between(name: str, texts: Sequence[str]) -> list[str]:
    """What is said of the intervals between edges of these texts, from the lowest on."""
    if not texts:
        return [f"{name} is not missing"]
    inner = [f"{low} <= {name} < {high}" for low, high in itertools.pairwise(texts)]
    return [f"{name} < {texts[0]}", *inner, f"{name} >= {texts[-1]}"]


def _told_alone(values: np.ndarray, at: int, kind: str) -> str:
    """A training value told so that no other one reads the same."""
    text = text_of(values[at], kind)
    beside = [*values[max(0, at - 1) : at], *values[at + 1 : at + 2]]
    return exact_text(float(values[at]), kind) if text in [text_of(value, kind) for value in beside] else text


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Values one by one; rare ones together; missing ones apart.

    ``codes_of`` numbers the level texts, from 0 to below ``missing``, which is the number of what is missing; all
    rare ones share the number ``rare`` (None: none is). ``shown`` are texts to show instead of the levels' own.
    """

    name: str
    codes_of: Mapping[str, int]
    missing: int
    rare: int | None
    n_rare: int
    shown: Mapping[str, str]

    def codes(self, column: Column) -> np.ndarray:
        """Number of the level of every value, (n,); missing ones come last, unseen ones are -1."""
        texts = level_texts(column)
        known = [self.missing if gone else self.codes_of.get(text, UNSEEN) for text, gone in texts]
        return np.array(known, dtype=np.intp)

    def code(self, column: Column) -> int:
        """The same of a column's only value."""
        return int(self.codes(column)[0])

    def statement(self, column: Column, code: int) -> Statement:
        """What is true of a column's only value, of this code."""
        if column.missing[0]:
            return Statement(f"{self.name} is missing", lone=True)
        if code == self.rare:
            return Statement(f"{self.name} is one of {self.n_rare} rare values", lone=False)
        return Statement(f"{self.name} = {self.value_text(column)}", lone=True)

    def value_text(self, column: Column) -> str:
        """The only value of a column, told."""
        text = next(text for text, _ in level_texts(column))
        text = self.shown.get(text, text)
        return repr(text) if text[:1] in ("", "'") else text  # an empty one would read as a broken sentence


Encoding = Intervals | Levels


def level_texts(column: Column) -> list[tuple[str, bool]]:
    """Every value as the text of a level, and whether it is missing."""
    kind = column.kind
    texts = column.values if kind == CATEGORY else [level_of(value, kind) for value in column.values]
    return list(zip(texts, column.missing.tolist(), strict=True))


def levels_of(name: str, column: Column, rare: float, shown: Mapping[str, str]) -> Levels:
    """Number the levels by frequency; those of a share below ``rare`` go together if there are several.

    Where every level is rare (a name, an id), each stands for itself: together they could not be broken.
    """
    found = Counter(text for text, gone in level_texts(column) if not gone)
    levels = sorted(found)
    counts = np.array([found[level] for level in levels], dtype=np.intp)
    order = np.argsort(-counts, kind="stable")
    below = counts[order] < rare * len(column.values)
    n_rare = int(below.sum())
    together = 1 < n_rare < len(levels)
    first_rare = len(levels) - n_rare
    codes = {levels[i]: min(at, first_rare) if together else at for at, i in enumerate(order)}
    if together:
        return Levels(name, codes, first_rare + 1, first_rare, n_rare, shown)
    return Levels(name, codes, len(levels), None, 0, shown)


def intervals_of(
    name: str, column: Column, n_bins: int, cuts: Sequence[float] | None, zone: str = ""
) -> Intervals:
    """Cut at the quantiles, or where asked; a value that many rows share stands alone."""
    values = np.unique(column.values[~column.missing])
    if cuts is not None:
        edges = np.unique(np.asarray(cuts, dtype=np.float64))
        exact = [(float(edge), exact_text(float(edge), column.kind)) for edge in edges]
        return Intervals.between(name, column.kind, exact, values, zone)
    found = _quantile_edges(column.values[~column.missing], values, n_bins)
    finite = found[np.isfinite(found)]
    pairs = readable_edges(finite, values[np.isfinite(values)], column.kind) if len(finite) else []
    pairs += [(float(edge), exact_text(float(edge), column.kind)) for edge in found[len(finite) :]]  # infinity
    return Intervals.between(name, column.kind, pairs, values, zone)


def _quantile_edges(present: np.ndarray, values: np.ndarray, n_bins: int) -> np.ndarray:
    """Inner quantiles, and both sides of every value that at least a share of 1 / n_bins of the rows has.

    Few values: between any two of them.
    """
    if len(values) <= n_bins:
        return values[1:]
    finite = present[np.isfinite(present)]
    edges = np.quantile(finite, np.arange(1, n_bins) / n_bins, method="linear") if len(finite) else values[:0]
    counts = np.diff(np.r_[np.searchsorted(np.sort(present), values), len(present)])
    heavy = np.flatnonzero(counts * n_bins >= len(present))
    after = heavy[heavy + 1 < len(values)] + 1
    return _splitting(np.r_[edges, values[heavy], values[after]], values)


def _splitting(edges: np.ndarray, values: np.ndarray) -> np.ndarray:
    """One edge for every way in which the edges split the values; none where nothing lies below."""
    edges = np.sort(edges[np.isfinite(edges)])
    below = np.searchsorted(values, edges, side="left")
    kept = (below > 0) & (below < len(values))
    _, first = np.unique(below[kept], return_index=True)
    return np.asarray(edges[kept][first])


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """One column, or several that go together: what a literal speaks of.

    ``positions`` are its columns. ``numbers`` counts the combinations of codes that training rows have; in the
    order of `sorted_rows` the rows of combination i are those from ``starts[i]`` to ``starts[i + 1]``. They are
    ``alike`` if they also have the very same values, as a model sees them.
    """

    name: str
    positions: tuple[int, ...]
    encodings: tuple[Encoding, ...]
    numbers: Mapping[tuple[int, ...], int]
    starts: tuple[int, ...]
    alike: tuple[bool, ...] = ()

    def block(self, codes: tuple[int, ...]) -> tuple[int, int]:
        """Start and stop, among the sorted rows, of those that make the same statement true."""
        number = self.numbers.get(codes)
        return (0, 0) if number is None else (self.starts[number], self.starts[number + 1])

    def codes(self, columns: Sequence[Column]) -> tuple[int, ...]:
        """The codes of a row, a column each."""
        return tuple([encoding.code(column) for encoding, column in zip(self.encodings, columns, strict=True)])

    def breaks(self, columns: Sequence[Column], own: tuple[int, ...]) -> np.ndarray:
        """Where rows, of these columns, break the statement of these codes."""
        parts = [encoding.codes(column) for encoding, column in zip(self.encodings, columns, strict=True)]
        return np.asarray(np.any([part != code for part, code in zip(parts, own, strict=True)], axis=0))

    def breaks_one_way(self, own: tuple[int, ...]) -> bool:
        """Whether all training rows that break the statement of these codes have the same values."""
        if not self.alike:
            return False
        others = [number for codes, number in self.numbers.items() if codes != own]
        return len(others) == 1 and self.alike[others[0]]

    def statement(self, columns: Sequence[Column], codes: tuple[int, ...]) -> Statement:
        """What is true of the row: of a group, everything its columns say; of indicators, the one that is on."""
        if len(codes) == 1:
            return self.encodings[0].statement(columns[0], codes[0])
        triples = zip(self.encodings, columns, codes, strict=True)
        each = [encoding.statement(column, code) for encoding, column, code in triples]
        lone = all(statement.lone for statement in each)
        on = [i for i, column in enumerate(columns) if not column.missing[0] and column.values[0] == 1]
        if len(on) == 1 and all(map(_is_indicator, self.encodings)) and self._says_all(on[0], codes):
            return Statement(each[on[0]].text, lone)
        return Statement(" and ".join(statement.text for statement in each), lone)

    def _says_all(self, i: int, own: tuple[int, ...]) -> bool:
        """Whether every training row that agrees with the row in its column i agrees in all."""
        return not any(codes[i] == own[i] and codes != own for codes in self.numbers)

    def kept(self, columns: Sequence[Column], statement: Statement) -> str:
        """What is true of a row that makes the statement true and keeps its values here."""
        if statement.lone:
            return statement.text
        if len(columns) == 1:
            return f"{self.name} keeps its value {self.encodings[0].value_text(columns[0])}"
        return f"{self.name} keeps its values"


def sorted_rows(
    name: str, positions: Sequence[int], encodings: Sequence[Encoding], columns: Sequence[Column]
) -> tuple[Attribute, np.ndarray]:
    """An attribute, and the training rows (n,) in an order in which those of equal codes lie side by side."""
    parts = [encoding.codes(column) for encoding, column in zip(encodings, columns, strict=True)]
    # Column by column: sorting whole rows takes a hundred times as long. Short numbers are sorted fastest.
    order = np.lexsort([part.astype(np.min_scalar_type(part.max())) for part in reversed(parts)])
    begins = np.zeros(len(order), dtype=bool)
    begins[0] = True
    for part in parts:
        begins[1:] |= np.diff(part[order]) != 0
    starts = np.flatnonzero(begins)
    found = np.column_stack([part[order[starts]] for part in parts])
    numbers = {tuple(row): i for i, row in enumerate(found.tolist())}
    ends = (*starts.tolist(), len(order))
    return Attribute(name, tuple(positions), tuple(encodings), numbers, ends), order


def _is_indicator(encoding: Encoding) -> bool:
    """Whether a column holds nothing but 0 and 1."""
    if isinstance(encoding, Levels):
        return set(encoding.codes_of) <= {"True", "False"}
    return encoding.indicator


def encode(
    name: str,
    column: Column,
    *,
    n_bins: int,
    cuts: Any,
    rare: float,
    shown: Mapping[str, str] | None,
    zone: str = "",
) -> Encoding:
    """Choose what can be said of a column: levels of categories and booleans, else intervals."""
    if shown is not None and column.kind == NUMBER:
        texts = [
            ("" if gone else level_of(v, NUMBER)) for v, gone in zip(column.values, column.missing, strict=True)
        ]
        column = Column(CATEGORY, np.array(texts, dtype=object), column.missing)
    if column.kind in (CATEGORY, BOOLEAN) or column.missing.all():
        if cuts is not None:
            raise ParameterError(f"cuts has {name!r}, which holds {column.kind}; needed numbers or dates there.")
        return levels_of(name, column, rare if column.kind == CATEGORY else 0.0, shown or {})
    return intervals_of(name, column, n_bins, cuts, zone)


class Words:
    """The words of a generator one after another, none left out, however many are taken at a time.

    Without a generator they are zeros: where nothing is left to chance.

    Examples
    --------
    >>> by_three, at_once = (Words(np.random.default_rng(0)) for _ in range(2))
    >>> [*by_three.take(3), *by_three.take(3)] == [*at_once.take(6)]
    True
    """

    def __init__(self, rng: np.random.Generator | None) -> None:
        self._source = None if rng is None else rng.bit_generator
        self._rest = np.zeros(0, dtype="<u4")

    def take(self, n: int) -> np.ndarray:
        """The next n words, (n,)."""
        if self._source is None:
            return np.zeros(n, dtype="<u4")
        words = self._raw(n - len(self._rest))
        if len(self._rest):
            words = np.concatenate([self._rest, words])
        self._rest = words[n:].copy()  # a view would hold them all
        return words[:n]

    def _raw(self, n: int) -> np.ndarray:
        """At least n new words."""
        assert self._source is not None
        if isinstance(self._source, np.random.MT19937):  # whose raw numbers have 32 bits
            return self._source.random_raw(n).astype("<u4")
        return self._source.random_raw(-(-n // 2)).astype("<u8", copy=False).view("<u4")
