"""The cases that a server offers: what the catalog needs of every kind, and the rows of a table."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, Protocol

import numpy as np

from anchorline.facts import Fact
from anchorline.spaces.columns import CATEGORY, NUMBER, Column
from anchorline.spaces.rows import plain
from anchorline.spaces.table import Table
from anchorline.studio.problems import Problem

_MAX_LEVELS = 50  # categories per column that the page offers for choice
_DIGITS = re.compile(r"-?[1-9][0-9]{15,308}")  # the integers that `browser_value` writes as texts

Plain = str | int | float | bool | None


@dataclass(frozen=True, slots=True, eq=False)
class Changed:
    """A case after some changes: one model input, its values by column, and which facts it breaks."""

    original: Any
    values: dict[str, Plain]
    is_broken: Sequence[bool]


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

    def change(
        self, neighborhood: Any, facts: Sequence[Fact], edits: Mapping[str, Any], broken: Sequence[str]
    ) -> Changed:
        """Return the case with other values, or without the words or regions of some attributes."""


class TableCases:
    """The rows of a table."""

    block_rows = 4096

    def __init__(self, space: Table) -> None:
        self._space, self._natives = space, space.schema.natives
        self.names, self.columns, self.n_rows = list(space.names), space.schema.columns, space.schema.n_rows
        self.stored_at = space.schema.positions  # the schema keeps its rows in an order of its own
        self._numeric = {*compress(self.names, [column.kind == NUMBER for column in self.columns])}

    def parse_row(self, row: Any) -> Any:
        """Return a position, or values by column with the texts that `browser_value` writes parsed."""
        if not isinstance(row, dict):
            return row
        return {key: _parse_integer(value) if key in self._numeric else value for key, value in row.items()}

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

    def change(
        self, neighborhood: Any, facts: Sequence[Fact], edits: Mapping[str, Any], broken: Sequence[str]
    ) -> Changed:
        """Return the row with other values."""
        unknown = [name for name in edits if name not in self.names]
        if unknown:
            detail = f"edits contains {unknown[0]!r}, which is not a column of the table. Use the names in /rows."
            raise Problem(422, detail)
        if broken:
            raise Problem(422, "broken names words or regions; a row of a table has edits instead.")
        row = dict(zip(self.names, neighborhood.instance, strict=True))
        after = self._space.at(row | self.parse_row(dict(edits)))
        values = dict(zip(self.names, map(browser_value, after.instance), strict=True))
        is_broken = [not self._space.is_true(fact, after.columns)[0] for fact in facts]
        return Changed(after.original, values, is_broken)


def browser_value(value: Plain) -> Plain:
    """Return a value as browsers can represent it: integers from 2^53 on, which lose digits, become texts."""
    return str(value) if isinstance(value, int) and abs(value) >= 2**53 else value


def _parse_integer(value: Any) -> Any:
    return int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else value


def _describe_column(name: str, column: Column) -> dict[str, Any]:
    description = {"name": name, "kind": column.kind, "has_missing": bool(column.missing.any())}
    if column.kind != CATEGORY:
        return description
    levels, counts = np.unique(column.values[~column.missing].astype(object), return_counts=True)
    frequent = np.argsort(-counts, kind="stable")[:_MAX_LEVELS]
    return description | {"levels": [str(levels[i]) for i in frequent], "has_more": len(levels) > _MAX_LEVELS}
