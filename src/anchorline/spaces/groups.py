"""Attributes: single columns, groups that the user names, and columns that say the same thing."""

import hashlib
import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from anchorline.spaces.columns import BOOLEAN, NUMBER, Column
from anchorline.spaces.pools import SortedColumn

_SAME = 10  # rows per level, on average, with which categories that correspond one to one say the same thing
_MIN_ROWS = 50  # with fewer rows, patterns of indicators may be chance
_TOGETHER = 10.0  # expected rows with two indicators at once that make their absence no chance
_PREFIX = re.compile(r"^(.+[_=.:\- ])[^_=.:\- ]+$")


@dataclass(frozen=True, slots=True)
class Attribute:
    """Columns whose values come together from one row; ``positions`` are those of the columns.

    Facts are about the columns ``views``: all columns of a user's group, and one of those that say the same thing.
    ``is_one_hot``: the columns are indicators, at most one of which is 1 in every row.
    """

    name: str
    positions: tuple[int, ...]
    names: tuple[str, ...]
    views: tuple[int, ...]
    is_one_hot: bool = False


def attributes_of(
    names: Sequence[str],
    groups: Mapping[str, Sequence[str]],
    held: Collection[str],
    columns: Mapping[int, SortedColumn],
    ordered: Collection[int],
) -> tuple[Attribute, ...]:
    """Return the attributes of a table in the order of their first columns.

    ``held`` columns never change, unless their group has a column that does; then they change without being
    stated. ``columns`` are sorted, and ``ordered`` those that hold numbers or dates.
    """
    place = {name: j for j, name in enumerate(names)}
    grouped = {member for members in groups.values() for member in members}
    found: list[Attribute] = []
    for group, members in groups.items():
        positions = tuple(place[member] for member in members)
        views = tuple(j for j in positions if names[j] not in held)
        if views:
            is_one_hot = _is_one_hot([columns[j] for j in positions])
            found.append(Attribute(group, positions, tuple(members), views, is_one_hot))
    free = [j for j, name in enumerate(names) if name not in held and name not in grouped]
    for same in same_columns(free, columns, ordered):
        view = next((j for j in same if j in ordered), same[0])
        found.append(Attribute(names[same[0]], same, tuple(names[j] for j in same), (view,)))
    return tuple(sorted(found, key=lambda attribute: min(attribute.positions)))


def same_columns(
    free: Sequence[int], columns: Mapping[int, SortedColumn], ordered: Collection[int]
) -> list[tuple[int, ...]]:
    """Return sets of columns that say the same thing, in the order of their first columns.

    These are numbers and dates with equal or reversed ranks, and categories that correspond one to one to each
    other, or to a number, and have at most n / 10 levels.
    """
    by_key: dict[bytes, list[int]] = {}
    alone: list[list[int]] = []
    for j in free:
        column = columns[j]
        if len(column.values) < 2:  # equal to everything
            alone.append([j])
        elif j in ordered:
            by_key.setdefault(b"ranks" + _ranks(column.codes, len(column.values)), []).append(j)
        elif _has_few(column):
            by_key.setdefault(b"parts" + _parts(column.codes), []).append(j)
        else:
            alone.append([j])
    if any(key.startswith(b"parts") for key in by_key):
        for key, numbers in [*by_key.items()]:
            if key.startswith(b"ranks") and _has_few(columns[numbers[0]]):
                numbers.extend(by_key.pop(b"parts" + _parts(columns[numbers[0]].codes), []))
    return sorted(tuple(sorted(each)) for each in [*by_key.values(), *alone])


def _has_few(column: SortedColumn) -> bool:
    return len(column.values) * _SAME <= len(column.order)


def _ranks(codes: np.ndarray, n_values: int) -> bytes:
    """Return a digest of ranks (n,) that reversed ranks share; missing values have the code -1."""
    reverse = np.where(codes < 0, codes, n_values - 1 - codes)
    first = int((codes != reverse).argmax())
    return _digest(codes if codes[first] < reverse[first] else reverse)


def _parts(codes: np.ndarray) -> bytes:
    """Return a digest of the parts into which codes (n,) divide the rows, whatever the codes are."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return _digest(first[inverse])


def _digest(numbers: np.ndarray) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(numbers, dtype=np.int64).tobytes(), digest_size=16).digest()


def _is_one_hot(columns: Sequence[SortedColumn]) -> bool:
    """Return whether all columns hold 0 and 1, and at most one is 1 in every row."""
    n = len(columns[0].order)
    total = np.zeros(n, dtype=np.intp)
    for column in columns:
        if column.n_present < n or not set(column.values.tolist()) <= {0.0, 1.0}:
            return False
        total += column.values[column.codes] == 1
    return len(columns) > 1 and bool((total <= 1).all())


def find_indicators(names: Sequence[str], columns: Sequence[Column]) -> dict[str, list[str]]:
    """Return groups of columns of 0 and 1 of which at most one is 1, by a name for the group.

    A group has exactly one 1 in every row, or its columns share the beginning of their names, such as
    ``color_red`` and ``color_blue``, and are so frequent that two 1s would occur together by chance.
    """
    candidates = []
    for j, column in enumerate(columns):
        if column.kind in (NUMBER, BOOLEAN) and not column.missing.any():
            ones = column.values == 1
            if (ones | (column.values == 0)).all() and ones.any() and not ones.all():
                candidates.append(j)
    if len(candidates) < 2 or len(columns[0].values) < _MIN_ROWS:
        return {}
    table = np.column_stack([columns[j].values for j in candidates]).astype(np.float64)
    together, n = table.T @ table, len(table)
    rates, taken = np.diag(together) / n, set[int]()
    groups: list[list[int]] = []
    prefixes = [_PREFIX.match(names[j]) for j in candidates]
    for prefix in dict.fromkeys(match[1] for match in prefixes if match):
        run = [i for i, match in enumerate(prefixes) if match and match[1] == prefix]
        pairs = list(itertools.combinations(run, 2))
        expected = sum(n * rates[i] * rates[j] for i, j in pairs)
        if pairs and not any(together[i, j] for i, j in pairs) and expected >= _TOGETHER:
            groups.append(run)
            taken |= set(run)
    rest = [i for i in range(len(candidates)) if i not in taken]
    groups += _complete_runs(rest, together, n)
    named: dict[str, list[str]] = {}
    for run in groups:
        members = [names[candidates[i]] for i in run]
        starts = {match[1].rstrip("_=.:- ") if (match := prefixes[i]) else "" for i in run}
        name = starts.pop() if len(starts) == 1 else ""
        named[name if name and name not in names else ", ".join(members)] = members
    return named


def _complete_runs(rest: Sequence[int], together: np.ndarray, n: int) -> list[list[int]]:
    """Return runs of adjacent indicators, exactly one of which is 1 in every row."""
    groups: list[list[int]] = []
    run: list[int] = []
    for i in rest:
        run = [*run, i] if not any(together[i, j] for j in run) else [i]
        if len(run) > 1 and sum(together[j, j] for j in run) == n:
            groups.append(run)
            run = []
    return groups
