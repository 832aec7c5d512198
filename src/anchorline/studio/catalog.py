"""The cases: readable rows of the training table with the model's answers, searched and sorted."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.model.predictor import ask
from anchorline.spaces.columns import CATEGORY, DATE, NUMBER, Column
from anchorline.spaces.rows import plain
from anchorline.spaces.table import Table
from anchorline.studio.answers import AnswerTable
from anchorline.studio.job_queue import checkpoint
from anchorline.studio.search import Search, compare_numbers, number_range, words_of

_MAX_LEVELS = 50  # categories per column that the page offers for choice
_DIGITS = re.compile(r"-?[1-9][0-9]{15,308}")  # the integers that `browser_value` writes as texts

Plain = str | int | float | bool | None


class Catalog:
    """The rows of a table by position; every search and every sort covers all rows."""

    def __init__(self, explainer: Explainer) -> None:
        space = explainer.space
        if not isinstance(space, Table):
            raise ParameterError(
                f"The explainer's space is a {type(space).__name__}; the studio needs a Table. "
                "Type: Explainer(model, Table(frame))."
            )
        self._explainer, self.names = explainer, list(space.names)
        self._natives, self._columns, self.n_rows = space.schema.natives, space.schema.columns, space.schema.n_rows
        self._stored_at = space.schema.positions  # the schema keeps its rows in an order of its own
        numeric = [j for j, column in enumerate(self._columns) if column.kind == NUMBER]
        self._numeric_keys = {*numeric, *(self.names[j] for j in numeric)}
        self._search = Search(self.names, list(self._columns), lambda j, row: self._cells(j, [row])[0])
        self.answer_table = AnswerTable(self._ask_rows, lambda: explainer.target, self.n_rows)

    def values(self, positions: Sequence[int]) -> list[list[Plain]]:
        """Return the values of rows in the order of the columns; `parse_row` reads them back exactly."""
        stored = self._stored_at[list(positions)].tolist()
        columns = [map(browser_value, self._cells(j, stored)) for j in range(len(self.names))]
        return [list(row) for row in zip(*columns, strict=True)]

    def parse_row(self, row: Any) -> Any:
        """Return a row from a request with the texts that `browser_value` writes for long integers parsed.

        The row is a position, a dict of values by column, or a list of values in the order of the columns.
        """
        if isinstance(row, dict):
            return {
                key: _parse_integer(value) if key in self._numeric_keys else value for key, value in row.items()
            }
        return list(self.parse_row(dict(enumerate(row))).values()) if isinstance(row, list) else row

    def _cells(self, j: int, stored: Sequence[int]) -> list[Plain]:
        """Return values of column ``j`` at stored rows with all their digits, as types that JSON can represent."""
        column, natives = self._columns[j], self._natives.pick(j, np.array(stored, dtype=np.intp))
        return [
            plain(Column(column.kind, column.values[at : at + 1], column.missing[at : at + 1]), natives[i : i + 1])
            for i, at in enumerate(stored)
        ]

    def ask(self, inputs: Any, n_rows: int = 1) -> np.ndarray:
        """Return the model's validated answers to model inputs."""
        target = self._explainer.target
        return ask(target.ask, inputs, n_rows, target.task)

    def _ask_rows(self, positions: np.ndarray) -> np.ndarray:
        return self.ask(self._natives.rows(self._stored_at[positions]), len(positions))

    def find(self, search: str, sort: str, output: str | None = None) -> tuple[np.ndarray, float]:
        """Return the positions of the rows that match every word of ``search``, and how far the answers are known.

        ``#17`` finds row 17. ``sort`` is "position", or "low" or "high" to sort by the explained number, or by the
        score of the class ``output``. If the answers matter, the model is asked about further rows for a second:
        rows without an answer match nothing and come last, until the returned share is 1.
        """
        words = words_of(search)
        if len(words) == 1 and words[0].startswith("#") and words[0][1:].isdecimal():
            position = int(words[0][1:])
            return np.array([position] if position < self.n_rows else [], dtype=np.intp), 1.0
        needs_answers = sort != "position" or self._search.may_match_answers(words)
        if needs_answers:
            self.answer_table.fill()
        found = np.ones(self.n_rows, dtype=bool)
        for word in words:
            checkpoint()
            found &= self._search.mask(word, self._answer_mask)[self._stored_at]
        matches = np.flatnonzero(found)
        if sort != "position":
            values = self._sorted_values(output)[matches]
            order = np.argsort(values if sort == "low" else -values, kind="stable")  # NaN comes last
            matches = matches[order]
        return matches, self.answer_table.n_known / max(1, self.n_rows) if needs_answers else 1.0

    def _sorted_values(self, output: str | None) -> np.ndarray:
        """Return the numbers to sort by."""
        if output is None:
            return self.answer_table.values
        labels = [str(label) for label in self._explainer.target.classes or ()]
        if output not in labels:
            known = ", ".join(labels[:20]) or "none, because the model has no named classes"
            raise ParameterError(f"output is {output!r}; it must be one of the model's classes: {known}.")
        scores = self.answer_table.scores(labels.index(output))
        if scores is None:
            raise ParameterError(
                f"The table has {self.n_rows:,} rows and {len(labels)} classes, too many to sort by a class. "
                "Leave out output to sort by the explained number."
            )
        return scores

    def _answer_mask(self, operator: str, text: str) -> np.ndarray:
        """Return, in the order of the schema, which rows have a known answer that matches."""
        table, found = self.answer_table, np.zeros(self.n_rows, dtype=bool)
        levels = [level.lower() for level in table.levels]
        ends = number_range(text)
        if operator == "!=":
            found = table.is_known & ~self._answer_mask("=", text)[self._stored_at]
        elif levels and operator in ("=", "contains"):
            chosen = [text in level if operator == "contains" else level == text for level in levels]
            found = np.array([*chosen, False], dtype=bool)[table.codes]
        elif ends is not None:
            found = compare_numbers(table.values, "=" if operator == "contains" else operator, ends)
        in_schema_order = np.empty_like(found)
        in_schema_order[self._stored_at] = found
        return in_schema_order

    def describe(self) -> list[dict[str, Any]]:
        """Return a description per column: its name, its kind, and the values that can be chosen for it."""
        return [_describe_column(name, column) for name, column in zip(self.names, self._columns, strict=True)]

    def breaking_values(self, neighborhood: Any, name: str) -> dict[str, Plain]:
        """Return values, by column, of a typical training row that breaks the literal about attribute ``name``.

        Typical means the median for numbers and dates, and the most frequent value for all other kinds.
        """
        for attribute in neighborhood.attributes:
            if attribute.name == name:
                own_codes = attribute.codes([neighborhood.columns[j] for j in attribute.positions])
                rows = np.flatnonzero(attribute.breaks([self._columns[j] for j in attribute.positions], own_codes))
                if len(rows):
                    row = self._typical_row(rows, attribute.positions)
                    return {self.names[j]: self._cells(j, [row])[0] for j in attribute.positions}
        raise ParameterError(
            f"broken contains {name!r}, but no training row breaks a literal about {name!r} of this case. "
            "Use the names of this case's literals."
        )

    def _typical_row(self, rows: np.ndarray, positions: tuple[int, ...]) -> int:
        column = self._columns[positions[0]]
        present = rows[~column.missing[rows]]
        if len(positions) == 1 and column.kind in (NUMBER, DATE) and len(present):
            return int(present[np.argsort(column.values[present], kind="stable")[len(present) // 2]])
        columns = [self._columns[j] for j in positions]
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
