"""The cases: rows of the training table as people read them, searched, sorted, with the model's answers."""

import threading
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.columns import BOOLEAN, CATEGORY, DATE, NUMBER, Column, text_of
from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.predictor import ask
from anchorline.render.characters import printable
from anchorline.spaces.table import Table

MOST_RANKED = 50_000  # rows; up to here all answers are asked for, so that one can sort and filter by them
MOST_SEARCHED = 200_000  # rows; every one is kept as a text to search in
_AT_ONCE = 4096  # rows the model is asked about together
_MOST_LEVELS = 50  # of a column's categories offered for choice

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
        self.is_ranked = self.n_rows <= MOST_RANKED
        self._lock, self._answers = threading.Lock(), dict[int, Answers]()

    def plain(self, position: int) -> list[Plain]:
        """A row's values, in the order of the columns, as JSON can hold them."""
        return [_plain(column, position) for column in self._columns]

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
        asked = self._explainer.asked
        return ask(asked.ask, inputs, n_rows, asked.task)

    def told(self, answer: np.ndarray) -> Answers:
        """What answers say, for people."""
        asked = self._explainer.asked
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
        columns = [_texts_of(column, name) for column, name in zip(self._columns, self.names, strict=True)]
        if self.is_ranked:
            columns.append(self.answers(list(range(self.n_rows))).texts)
        return ["\n".join(cells).lower() for cells in zip(*columns, strict=True)]

    def find(self, search: str, sort: str) -> list[int]:
        """Positions of the rows that hold all words searched for; ``#17`` finds row 17.

        ``sort`` is "position", "low" or "high": by the number explained.
        """
        words = search.lower().split()
        if len(words) == 1 and words[0].startswith("#") and words[0][1:].isdecimal():
            position = int(words[0][1:])
            return [position] if position < self.n_rows else []
        found = list(range(self.n_rows))
        if words and self.n_rows > MOST_SEARCHED:
            raise ParameterError(f"Of more than {MOST_SEARCHED:,} rows, ask for one by its position: #17.")
        if words:
            found = [position for position in found if all(word in self._texts[position] for word in words)]
        if sort == "position":
            return found
        if not self.is_ranked:
            raise ParameterError(f"Only tables of at most {MOST_RANKED:,} rows can be sorted by the answer.")
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
                    return {self.names[j]: _plain(self._columns[j], row) for j in attribute.positions}
        raise ParameterError(f"No fact about {name!r} can be broken here.")

    def _typical(self, rows: np.ndarray, positions: tuple[int, ...]) -> int:
        column = self._columns[positions[0]]
        known = rows[~column.missing[rows]]
        if len(positions) == 1 and column.kind in (NUMBER, DATE) and len(known):
            return int(known[np.argsort(column.values[known], kind="stable")[len(known) // 2]])
        keys = [tuple(_plain(self._columns[j], int(row)) for j in positions) for row in rows]
        _, first, counts = np.unique([repr(key) for key in keys], return_index=True, return_counts=True)
        return int(rows[first[counts.argmax()]])


def _class_name(asked: Any, column: int) -> str:
    """The class of a column, whatever the output was called."""
    return str(asked.classes[column]) if asked.classes is not None else f"class {column}"


def _plain(column: Column, position: int) -> Plain:
    if column.missing[position]:
        return None
    value = column.values[position]
    if column.kind == BOOLEAN:
        return bool(value)
    if column.kind == CATEGORY:
        return str(value)
    if column.kind == DATE:
        return text_of(value, DATE)
    number = float(value)
    if not np.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _texts_of(column: Column, name: str) -> list[str]:
    """Every value as ``name=value``, so that one can search for either."""
    told = [
        "missing" if gone else text_of(value, column.kind)
        for value, gone in zip(column.values, column.missing.tolist(), strict=True)
    ]
    return [f"{name}={text}" for text in told]


def _described(name: str, column: Column) -> dict[str, Any]:
    told: dict[str, Any] = {"name": name, "kind": column.kind, "has_missing": bool(column.missing.any())}
    known = column.values[~column.missing]
    if column.kind == CATEGORY:
        levels, counts = np.unique(known.astype(object), return_counts=True)
        often = np.argsort(-counts, kind="stable")[:_MOST_LEVELS]
        return told | {"levels": [str(levels[i]) for i in often], "has_more": len(levels) > _MOST_LEVELS}
    if column.kind == NUMBER and np.isfinite(known.astype(float)).any():
        finite = known[np.isfinite(known.astype(float))].astype(float)
        return told | {"low": float(finite.min()), "high": float(finite.max())}
    return told
