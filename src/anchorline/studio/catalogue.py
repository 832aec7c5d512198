"""The cases: rows of the training table as people read them, searched, sorted, with the model's answers."""

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.model.predictor import ask
from anchorline.render.characters import printable
from anchorline.spaces.columns import CATEGORY, DATE, NUMBER, Column, text_of
from anchorline.spaces.rows import plain
from anchorline.spaces.table import Table

MAX_RANKED = 50_000  # rows; up to here all answers are asked for, so that one can sort and filter by them
MAX_SEARCHED = 200_000  # rows; every one is kept as a text to search in
_AT_ONCE = 4096  # rows the model is asked about together
_MAX_LEVELS = 50  # of a column's categories offered for choice
_ROUNDED = 1e15  # numbers from here on are told in six digits by `text_of`
_DIGITS = re.compile(r"-?[1-9][0-9]{15,308}")  # what `told_value` makes of a number

Plain = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Answers:
    """The model's answers to some rows: what it decides, and the number explained (None: a label)."""

    texts: list[str]
    values: list[float | None]


class Catalogue:
    """Rows of a table, by position; every text search and every sort is over all of them."""

    def __init__(self, explainer: Explainer) -> None:
        space = explainer.space
        if not isinstance(space, Table):
            raise ParameterError(f"The studio shows tables; the space is a {type(space).__name__}.")
        self._explainer, self.names = explainer, list(space.names)
        self._natives, self._columns, self.n_rows = space.schema.natives, space.schema.columns, space.schema.n_rows
        numbers = [j for j, column in enumerate(self._columns) if column.kind == NUMBER]
        self._numbers = {*numbers, *(self.names[j] for j in numbers)}
        self.is_ranked = self.n_rows <= MAX_RANKED
        self._lock, self._answers = threading.Lock(), dict[int, Answers]()

    def values(self, positions: Sequence[int]) -> list[list[Plain]]:
        """Rows' values, in the order of the columns; whoever sends them back asks about the same rows."""
        columns = [map(told_value, self._cells(j, positions)) for j in range(len(self.names))]
        return [list(row) for row in zip(*columns, strict=True)]

    def read(self, row: Any) -> Any:
        """A row (a position, values by name, or in order) as it was sent, but for what `told_value` did to it."""
        if isinstance(row, dict):
            return {key: _number(value) if key in self._numbers else value for key, value in row.items()}
        return list(self.read(dict(enumerate(row))).values()) if isinstance(row, list) else row

    def _cells(self, j: int, positions: Sequence[int]) -> list[Plain]:
        """Values of a column in the table's own digits, as JSON can hold them."""
        column, natives = self._columns[j], self._natives.pick(j, np.array(positions, dtype=np.intp))
        return [
            plain(Column(column.kind, column.values[at : at + 1], column.missing[at : at + 1]), natives[i : i + 1])
            for i, at in enumerate(positions)
        ]

    def answers(self, positions: list[int]) -> Answers:
        """What the model says of rows; asked in blocks, once."""
        for block in sorted({position // _AT_ONCE for position in positions}):
            if block not in self._answers:
                rows = np.arange(block * _AT_ONCE, min(self.n_rows, (block + 1) * _AT_ONCE))
                found = self.told(self.ask(self._natives.rows(rows), len(rows)))
                with self._lock:
                    self._answers[block] = found
        texts, values = [], []
        for position in positions:
            known = self._answers[position // _AT_ONCE]
            texts.append(known.texts[position % _AT_ONCE])
            values.append(known.values[position % _AT_ONCE])
        return Answers(texts, values)

    def ask(self, inputs: Any, n_rows: int = 1) -> np.ndarray:
        """The model's checked answers to rows that are model inputs."""
        asked = self._explainer.target
        return ask(asked.ask, inputs, n_rows, asked.task)

    def told(self, answer: np.ndarray) -> Answers:
        """What answers say, for people."""
        asked = self._explainer.target
        if answer.ndim == 2:  # scores: the class that wins, and the score of the one explained
            winners = answer.argmax(axis=1)
            explained = winners if asked.column is None else np.full(len(answer), asked.column)
            values = answer[np.arange(len(answer)), explained].astype(float).tolist()
            return Answers([printable(_class_name(asked, int(winner))) for winner in winners], values)
        if answer.dtype.kind == "f" and asked.task != "label":
            return Answers([text_of(float(value), NUMBER) for value in answer], answer.astype(float).tolist())
        return Answers([printable(str(label)) for label in answer.tolist()], [None] * len(answer))

    @cached_property
    def _texts(self) -> list[str]:
        """Every row as one text to search in, lower case, with the model's answer where all are known."""
        columns = [self._texts_of(j) for j in range(len(self.names))]
        if self.is_ranked:
            columns.append(self.answers(list(range(self.n_rows))).texts)
        return ["\n".join(cells).lower() for cells in zip(*columns, strict=True)]

    def _texts_of(self, j: int) -> list[str]:
        """Every value as ``name=value``, so that one can search for either; long numbers in all their digits."""
        column = self._columns[j]
        told = [
            "missing" if gone else text_of(value, column.kind)
            for value, gone in zip(column.values, column.missing.tolist(), strict=True)
        ]
        if column.kind == NUMBER:
            long = np.flatnonzero(~column.missing & (np.abs(column.values) >= _ROUNDED)).tolist()
            for at, value in zip(long, self._cells(j, long), strict=True):
                told[at] = str(value)
        return [f"{self.names[j]}={text}" for text in told]

    def find(self, search: str, sort: str) -> list[int]:
        """Positions of the rows that hold all words searched for; ``#17`` finds row 17.

        ``sort`` is "position", "low" or "high": by the number explained.
        """
        words = search.lower().split()
        if len(words) == 1 and words[0].startswith("#") and words[0][1:].isdecimal():
            position = int(words[0][1:])
            return [position] if position < self.n_rows else []
        found = list(range(self.n_rows))
        if words and self.n_rows > MAX_SEARCHED:
            raise ParameterError(f"Of more than {MAX_SEARCHED:,} rows, ask for one by its position: #17.")
        if words:
            found = [position for position in found if all(word in self._texts[position] for word in words)]
        if sort == "position":
            return found
        if not self.is_ranked:
            raise ParameterError(f"Only tables of at most {MAX_RANKED:,} rows can be sorted by the answer.")
        values = self.answers(found).values
        sign = 1.0 if sort == "low" else -1.0
        order = sorted(range(len(found)), key=lambda i: sign * (values[i] or 0.0))
        return [found[i] for i in order]

    def describe(self) -> list[dict[str, Any]]:
        """Every column: its name, its kind, and what can be chosen for it."""
        return [_described(name, column) for name, column in zip(self.names, self._columns, strict=True)]

    def broken(self, neighborhood: Any, name: str) -> dict[str, Plain]:
        """Values of a typical training row that breaks the literal about an attribute.

        Typical: the middle one of numbers and dates, the most frequent one of anything else.
        """
        for attribute in neighborhood.attributes:
            if attribute.name == name:
                own = attribute.codes([neighborhood.columns[j] for j in attribute.positions])
                rows = np.flatnonzero(attribute.breaks([self._columns[j] for j in attribute.positions], own))
                if len(rows):
                    row = self._typical(rows, attribute.positions)
                    return {self.names[j]: self._cells(j, [row])[0] for j in attribute.positions}
        raise ParameterError(f"No fact about {name!r} can be broken here.")

    def _typical(self, rows: np.ndarray, positions: tuple[int, ...]) -> int:
        column = self._columns[positions[0]]
        known = rows[~column.missing[rows]]
        if len(positions) == 1 and column.kind in (NUMBER, DATE) and len(known):
            return int(known[np.argsort(column.values[known], kind="stable")[len(known) // 2]])
        columns = [self._columns[j] for j in positions]
        parts = [part[rows].tolist() for column in columns for part in (column.values, column.missing)]
        keys = [repr(key) for key in zip(*parts, strict=True)]
        _, first, counts = np.unique(keys, return_index=True, return_counts=True)
        return int(rows[first[counts.argmax()]])


def _class_name(asked: Any, column: int) -> str:
    """The class of a column, whatever the output was called."""
    return str(asked.classes[column]) if asked.classes is not None else f"class {column}"


def told_value(value: Plain) -> Plain:
    """A value as browsers can hold it: whole numbers from 2^53 on, of which they lose digits, as texts."""
    return str(value) if isinstance(value, int) and abs(value) >= 2**53 else value


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else value


def _described(name: str, column: Column) -> dict[str, Any]:
    told: dict[str, Any] = {"name": name, "kind": column.kind, "has_missing": bool(column.missing.any())}
    known = column.values[~column.missing]
    if column.kind == CATEGORY:
        levels, counts = np.unique(known.astype(object), return_counts=True)
        often = np.argsort(-counts, kind="stable")[:_MAX_LEVELS]
        return told | {"levels": [str(levels[i]) for i in often], "has_more": len(levels) > _MAX_LEVELS}
    if column.kind == NUMBER and np.isfinite(known.astype(float)).any():
        finite = known[np.isfinite(known.astype(float))].astype(float)
        return told | {"low": float(finite.min()), "high": float(finite.max())}
    return told
