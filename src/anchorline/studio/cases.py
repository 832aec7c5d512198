"""The cases that a server offers: what the catalog needs of every kind, and the rows of a table."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from anchorline.errors import ParameterError
from anchorline.spaces.columns import CATEGORY, DATE, NUMBER, Column
from anchorline.spaces.rows import plain
from anchorline.spaces.table import Table
from anchorline.studio.job_queue import checkpoint
from anchorline.studio.problems import Problem

_MAX_LEVELS = 50  # categories per column that the page offers for choice
_DIGITS = re.compile(r"-?[1-9][0-9]{15,308}")  # the integers that `browser_value` writes as texts

Plain = str | int | float | bool | None


@dataclass(frozen=True, slots=True, eq=False)
class Changed:
    """A case after some changes: one model input, its values by column, and what became of the literals.

    ``is_broken`` has one entry per literal of the original case. ``texts`` are the statements that are true of the
    changed case, by attribute.
    """

    original: Any
    values: dict[str, Plain]
    is_broken: Sequence[bool]
    texts: Mapping[str, str]


class Cases(Protocol):
    """Cases by position. ``columns`` are searched; row i is stored at ``stored_at[i]`` in them.

    ``block_rows`` is how many cases are asked about before the next request gets its turn.
    """

    names: list[str]
    columns: tuple[Column, ...]
    stored_at: np.ndarray
    n_rows: int
    block_rows: int

    def cells(self, j: int, stored: Sequence[int]) -> list[Plain]:
        """Return values of column ``j`` at stored rows, as types that JSON can represent."""

    def inputs(self, stored: np.ndarray) -> Iterator[tuple[Any, int]]:
        """Yield model inputs for stored rows, and how many rows each of them has."""

    def parse_row(self, row: Any) -> Any:
        """Return a row from a request as the space reads it."""

    def describe(self) -> list[dict[str, Any]]:
        """Return a description per column: its name, its kind, and the values that can be chosen for it."""

    def change(self, neighborhood: Any, broken: Sequence[str], edits: Mapping[str, Any]) -> Changed:
        """Return the case with the literals about the ``broken`` attributes broken, and with other values."""


class TableCases:
    """The rows of a table."""

    block_rows = 4096

    def __init__(self, space: Table) -> None:
        self._space, self._natives = space, space.schema.natives
        self.names, self.columns, self.n_rows = list(space.names), space.schema.columns, space.schema.n_rows
        self.stored_at = space.schema.positions  # the schema keeps its rows in an order of its own
        numeric = [j for j, column in enumerate(self.columns) if column.kind == NUMBER]
        self._numeric_keys = {*numeric, *(self.names[j] for j in numeric)}

    def parse_row(self, row: Any) -> Any:
        """Return a row from a request with the texts that `browser_value` writes for long integers parsed.

        The row is a position, a dict of values by column, or a list of values in the order of the columns.
        """
        if isinstance(row, dict):
            return {
                key: _parse_integer(value) if key in self._numeric_keys else value for key, value in row.items()
            }
        return list(self.parse_row(dict(enumerate(row))).values()) if isinstance(row, list) else row

    def cells(self, j: int, stored: Sequence[int]) -> list[Plain]:
        """Return values of column ``j`` at stored rows with all their digits, as types that JSON can represent."""
        column, natives = self.columns[j], self._natives.pick(j, np.array(stored, dtype=np.intp))
        return [
            plain(Column(column.kind, column.values[at : at + 1], column.missing[at : at + 1]), natives[i : i + 1])
            for i, at in enumerate(stored)
        ]

    def inputs(self, stored: np.ndarray) -> Iterator[tuple[Any, int]]:
        """Yield all rows at once."""
        yield self._natives.rows(stored), len(stored)

    def describe(self) -> list[dict[str, Any]]:
        """Return a description per column: its name, its kind, and the values that can be chosen for it."""
        return [_describe_column(name, column) for name, column in zip(self.names, self.columns, strict=True)]

    def change(self, neighborhood: Any, broken: Sequence[str], edits: Mapping[str, Any]) -> Changed:
        """Return the row with typical training values that break literals, and then with other values."""
        changed = dict(zip(self.names, neighborhood.instance, strict=True))
        for name in broken:  # each once; a name that is not a fact of this case ends the loop
            checkpoint()
            changed |= self.breaking_values(neighborhood, name)
        unknown = [name for name in edits if name not in changed]
        if unknown:
            detail = f"edits contains {unknown[0]!r}, which is not a column of the table. Use the names in /rows."
            raise Problem(422, detail)
        after = self._space.at(changed | self.parse_row(dict(edits)))
        texts = {literal.name: literal.text for literal in reversed(after.literals)}  # the first of each name
        values = dict(zip(self.names, map(browser_value, after.instance), strict=True))
        is_broken = [not neighborhood.is_true_of(j, after) for j in range(len(neighborhood.literals))]
        return Changed(after.original, values, is_broken, texts)

    def breaking_values(self, neighborhood: Any, name: str) -> dict[str, Plain]:
        """Return values, by column, of a typical training row that breaks the literal about attribute ``name``.

        Typical means the median for numbers and dates, and the most frequent value for all other kinds.
        """
        for attribute in neighborhood.attributes:
            if attribute.name == name:
                own_codes = attribute.codes([neighborhood.columns[j] for j in attribute.positions])
                rows = np.flatnonzero(attribute.breaks([self.columns[j] for j in attribute.positions], own_codes))
                if len(rows):
                    row = self._typical_row(rows, attribute.positions)
                    return {self.names[j]: self.cells(j, [row])[0] for j in attribute.positions}
        raise ParameterError(
            f"broken contains {name!r}, but no training row breaks a literal about {name!r} of this case. "
            "Use the names of this case's literals."
        )

    def _typical_row(self, rows: np.ndarray, positions: tuple[int, ...]) -> int:
        column = self.columns[positions[0]]
        present = rows[~column.missing[rows]]
        if len(positions) == 1 and column.kind in (NUMBER, DATE) and len(present):
            return int(present[np.argsort(column.values[present], kind="stable")[len(present) // 2]])
        columns = [self.columns[j] for j in positions]
        parts = [part[rows].tolist() for column in columns for part in (column.values, column.missing)]
        keys = [repr(key) for key in zip(*parts, strict=True)]
        counts = Counter(keys)
        return int(rows[keys.index(min(counts, key=lambda key: (-counts[key], key)))])


def browser_value(value: Plain) -> Plain:
    """Return a value as browsers can represent it: integers from 2^53 on, which lose digits, become texts."""
    return str(value) if isinstance(value, int) and abs(value) >= 2**53 else value


def _parse_integer(value: Any) -> Any:
    return int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else value


def _describe_column(name: str, column: Column) -> dict[str, Any]:
    description: dict[str, Any] = {
        "name": name,
        "kind": column.kind,
        "has_missing": bool(column.missing.any()),
    }
    present = column.values[~column.missing]
    if column.kind == CATEGORY:
        levels, counts = np.unique(present.astype(object), return_counts=True)
        frequent = np.argsort(-counts, kind="stable")[:_MAX_LEVELS]
        return description | {
            "levels": [str(levels[i]) for i in frequent],
            "has_more": len(levels) > _MAX_LEVELS,
        }
    if column.kind == NUMBER and np.isfinite(present.astype(float)).any():
        finite = present[np.isfinite(present.astype(float))].astype(float)
        return description | {"low": float(finite.min()), "high": float(finite.max())}
    return description
