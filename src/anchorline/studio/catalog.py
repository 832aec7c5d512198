"""The cases: readable rows of the training table with the model's answers, searched and sorted."""

import re
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.model.predictor import ask, split_answer
from anchorline.render.characters import printable
from anchorline.spaces.columns import CATEGORY, DATE, NUMBER, Column, text_of
from anchorline.spaces.rows import plain
from anchorline.spaces.table import Table

MAX_RANKED = 50_000  # rows; up to this size the model answers every row, so that rows can be sorted by the answer
MAX_SEARCHED = 200_000  # rows; up to this size every row is kept as a searchable text
_BLOCK_ROWS = 4096  # rows per query of the model
_MAX_LEVELS = 50  # categories per column that the page offers for choice
_MIN_ROUNDED = 1e15  # `text_of` prints numbers from here on with six digits only
_DIGITS = re.compile(r"-?[1-9][0-9]{15,308}")  # the integers that `browser_value` writes as texts

Plain = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Answers:
    """The model's answers to rows: the decision per row, and the explained number per row (None for labels)."""

    texts: list[str]
    values: list[float | None]


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
        self.is_ranked = self.n_rows <= MAX_RANKED
        self._lock, self._answer_blocks = threading.Lock(), dict[int, Answers]()

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

    def answers(self, positions: list[int]) -> Answers:
        """Return the model's answers to rows; the model is queried in blocks, once per block."""
        for block in sorted({position // _BLOCK_ROWS for position in positions}):
            if block not in self._answer_blocks:
                rows = self._stored_at[block * _BLOCK_ROWS : (block + 1) * _BLOCK_ROWS]
                answers = self.readable_answers(self.ask(self._natives.rows(rows), len(rows)))
                with self._lock:
                    self._answer_blocks[block] = answers
        texts, values = [], []
        for position in positions:
            block_answers = self._answer_blocks[position // _BLOCK_ROWS]
            texts.append(block_answers.texts[position % _BLOCK_ROWS])
            values.append(block_answers.values[position % _BLOCK_ROWS])
        return Answers(texts, values)

    def ask(self, inputs: Any, n_rows: int = 1) -> np.ndarray:
        """Return the model's validated answers to model inputs."""
        target = self._explainer.target
        return ask(target.ask, inputs, n_rows, target.task)

    def readable_answers(self, answer: np.ndarray) -> Answers:
        """Return the decisions and the explained numbers in the model's answer to several rows."""
        target = self._explainer.target
        answer, chosen = split_answer(target, answer)
        if chosen is not None:
            explained = chosen if target.column is None else np.full(len(answer), target.column)
            values = answer[np.arange(len(answer)), explained].astype(float).tolist()
            return Answers([printable(_class_name(target, int(column))) for column in chosen], values)
        if answer.dtype.kind == "f" and target.task != "label":
            return Answers([text_of(float(value), NUMBER) for value in answer], answer.astype(float).tolist())
        return Answers([printable(str(label)) for label in answer.tolist()], [None] * len(answer))

    @cached_property
    def _texts(self) -> list[str]:
        """One searchable lower-case text per row, with the model's answer if the table is ranked."""
        columns = [self._column_texts(j) for j in range(len(self.names))]
        if self.is_ranked:
            columns.append(self.answers(list(range(self.n_rows))).texts)
        return ["\n".join(cells).lower() for cells in zip(*columns, strict=True)]

    def _column_texts(self, j: int) -> list[str]:
        """Return ``name=value`` per row, so that a search can match either; long numbers keep all digits."""
        column = self._columns[j]
        texts = [
            "missing" if is_missing else text_of(value, column.kind)
            for value, is_missing in zip(column.values, column.missing.tolist(), strict=True)
        ]
        if column.kind == NUMBER:
            long = np.flatnonzero(~column.missing & (np.abs(column.values) >= _MIN_ROUNDED)).tolist()
            for at, value in zip(long, self._cells(j, long), strict=True):
                texts[at] = str(value)
        return [f"{self.names[j]}={texts[at]}" for at in self._stored_at.tolist()]

    def find(self, search: str, sort: str) -> list[int]:
        """Return the positions of the rows that contain every word of ``search``; ``#17`` finds row 17.

        ``sort`` is "position", or "low" or "high" to sort by the explained number.
        """
        words = search.lower().split()
        if len(words) == 1 and words[0].startswith("#") and words[0][1:].isdecimal():
            position = int(words[0][1:])
            return [position] if position < self.n_rows else []
        matches = list(range(self.n_rows))
        if words and self.n_rows > MAX_SEARCHED:
            raise ParameterError(
                f"The table has {self.n_rows:,} rows; only tables of at most {MAX_SEARCHED:,} rows can be "
                "searched by words. Search for a row by its position, for example #17."
            )
        if words:
            matches = [position for position in matches if all(word in self._texts[position] for word in words)]
        if sort == "position":
            return matches
        if not self.is_ranked:
            raise ParameterError(
                f"The table has {self.n_rows:,} rows; only tables of at most {MAX_RANKED:,} rows can be sorted "
                "by the model's answer. Sort by position."
            )
        values = self.answers(matches).values
        sign = 1.0 if sort == "low" else -1.0
        order = sorted(range(len(matches)), key=lambda i: sign * (values[i] or 0.0))
        return [matches[i] for i in order]

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


def _class_name(target: Any, column: int) -> str:
    """Return the class of a score column, whatever the name of the output is."""
    return str(target.classes[column]) if target.classes is not None else f"class {column}"


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
