"""The cases that a server offers, be they rows of a table, texts or images: their values and the model's answers.

The model's answers are kept as numbers, and asked for block by block. Searches and sorts cover all cases.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress, islice
from typing import Any

import narwhals as nw
import numpy as np

from anchorline.errors import ParameterError, TableFileError, listed
from anchorline.explainer import Explainer
from anchorline.facts import Fact
from anchorline.io.texts import parse_rows
from anchorline.model.predictor import Questions, Scores
from anchorline.render.characters import ELLIPSIS, printable
from anchorline.spaces.columns import BOOLEAN, CATEGORY, DATE, NUMBER, Column, text_of
from anchorline.spaces.rows import plain
from anchorline.spaces.table import Table, TableRows
from anchorline.studio.contents import Contents
from anchorline.studio.display import Display
from anchorline.studio.guard import strict_json
from anchorline.studio.job_queue import checkpoint
from anchorline.studio.known import REASON, RULE, Known, Topics
from anchorline.studio.problems import Problem
from anchorline.studio.search import Search, compare_numbers, number_range, rows_with

_MAX_LEVELS = 50  # categories per column that the page offers for choice
_LONGEST = 1000  # characters of a text in the list of cases
_TEXTS_PER_CALL, _IMAGES_PER_BLOCK = 64, 8
_FILL_SECONDS = 1.0  # a request asks for further blocks for about this time
_MAX_SCORES = 20_000_000  # scores of all classes are kept up to this many: 160 MB
_DIGITS = re.compile(r"-?[1-9][0-9]{15,308}")  # the integers that `browser_value` writes as texts

_MOST_NOTES = 3  # each compares a name with all columns
_RIGHT = ("wrong", "right")
_RIGHT_WORDS = frozenset(f"answer{sign}{name}" for name in _RIGHT for sign in ("=", "!="))

Plain = str | int | float | bool | None


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """A case as a model input, with its values by column, and why no training row is like some of them."""

    original: Any
    values: dict[str, Plain]
    unseen: dict[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Changed:
    """A case after some changes: one model input, its values by column, and which facts it breaks."""

    original: Any
    values: dict[str, Plain]
    is_broken: Sequence[bool]


class TableCases:
    """Rows by position: those of the training table, or ``given`` ones in a frame or a list of dictionaries.

    ``columns`` are searched; row i is stored at ``stored_at[i]`` in them.
    """

    block_rows = 4096  # rows that the model is asked about before the next request gets its turn

    def __init__(self, space: Table, given: Any = None) -> None:
        self._space, self.names, self.are_training = space, list(space.names), given is None
        if given is None:
            self._natives, self.columns = space.schema.natives, space.schema.columns
            self.stored_at = space.schema.positions  # the schema keeps its rows in an order of its own
        else:
            rows = _read_cases(space, given)
            self._natives, self.columns, self.stored_at = rows.natives, rows.columns, np.arange(len(rows))
        self.n_rows = len(self.stored_at)
        self._numeric = {*compress(self.names, [column.kind == NUMBER for column in self.columns])}

    def parse_row(self, row: Any) -> Any:
        """Return a training row's position, or values by column with the texts of `browser_value` parsed."""
        if isinstance(row, dict):
            return {key: _parse_integer(value) if key in self._numeric else value for key, value in row.items()}
        check_position(row, self.n_rows)
        if self.are_training:
            return row
        return {name: self.cells(j, [row])[0] for j, name in enumerate(self.names)}

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

    def have(self, fact: Fact) -> np.ndarray:
        """Return of which cases a fact is true."""
        return np.asarray(self._space.is_true(fact, self.columns)[self.stored_at])

    def describe(self) -> list[dict[str, Any]]:
        """Return a description per column: its name, its kind, and the training values to choose from."""
        schema = self._space.schema
        parts = zip(self.names, schema.columns, schema.types, strict=True)
        return [_describe_column(name, column, kind.whole) for name, column, kind in parts]

    def open(self, row: Any, paste: str | None = None) -> Opened:
        """Return a row, in which the values of a pasted JSON object or of two lines of CSV replace its own."""
        if paste is not None:
            pasted = {name: value for name, value in self._pasted(paste).items() if name in self.names}
            if not pasted:
                raise Problem(422, f"The pasted text names none of the columns, which are {listed(self.names)}.")
            own = row if isinstance(row, dict) else zip(self.names, self._space.at(row).instance, strict=True)
            row = {**dict(own), **self.parse_row(pasted)}
        case = self._space.at(row)
        values = dict(zip(self.names, case.instance, strict=True))
        unseen = {printable(name): printable(why) for name, why in case.unseen.items()}
        return Opened(case.original, {name: browser_value(value) for name, value in values.items()}, unseen)

    def _pasted(self, text: str) -> dict[str, Any]:
        """Return the values by column that a JSON object or the first two lines of CSV hold."""
        kinds = zip(self.names, self._space.schema.columns, strict=True)
        numbers = {name for name, column in kinds if column.kind in (NUMBER, BOOLEAN)}
        try:
            is_json = text.lstrip().startswith("{")
            content = strict_json(text) if is_json else next(iter(parse_rows(text, "paste", numbers)), {})
        except (ValueError, RecursionError, TableFileError):
            content = {}
        if not content or any(isinstance(value, dict | list) for value in content.values()):
            detail = "The pasted text is neither a JSON object nor two lines of CSV: the titles and the values."
            raise Problem(422, detail)
        return dict(content)

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


def _read_cases(space: Table, given: Any) -> TableRows:
    """Return rows in the types of the training table; columns that it lacks, such as the outcome, are left out."""
    is_list = isinstance(given, list)
    frame = given if is_list else nw.from_native(given, eager_only=True)
    held = (frame[0] if frame else ()) if is_list else frame.columns
    lacking = [name for name in space.names if name not in held]
    if not len(frame) or lacking:
        what = f"lack the columns {listed(lacking)}" if len(frame) else "are none"
        raise ParameterError(
            f"The cases {what}; they need at least one row and every column of the training table."
        )
    part = frame if is_list else frame.select(space.names)
    if is_list:
        part = np.empty((len(frame), len(space.names)), dtype=object)
        part[:] = [[row[name] for name in space.names] for row in frame]
    rows = space.rows(part)
    assert rows is not None  # its columns are those of the table
    return rows


def check_position(position: int, n_rows: int) -> None:
    """Raise `Problem` 404 unless a case has this number."""
    if not 0 <= position < n_rows:
        raise Problem(404, f"No case has the number {position}; the numbers are 0 to {n_rows - 1}.")


def browser_value(value: Plain) -> Plain:
    """Return a value as browsers can represent it: integers from 2^53 on, which lose digits, become texts."""
    return str(value) if isinstance(value, int) and abs(value) >= 2**53 else value


def _parse_integer(value: Any) -> Any:
    return int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else value


def _describe_column(name: str, column: Column, is_whole: bool) -> dict[str, Any]:
    description: dict[str, Any] = {"name": name, "kind": column.kind, "has_missing": bool(column.missing.any())}
    if column.kind in (NUMBER, DATE):
        known = column.values[~column.missing & np.isfinite(column.values)]
        ends = [text_of(end, column.kind) for end in (known.min(), known.max())] if len(known) else None
        return description | {"ends": ends, "is_whole": is_whole}
    if column.kind != CATEGORY:
        return description
    levels, counts = np.unique(column.values[~column.missing].astype(object), return_counts=True)
    frequent = np.argsort(-counts, kind="stable")[:_MAX_LEVELS]
    return description | {"levels": [str(levels[i]) for i in frequent], "has_more": len(levels) > _MAX_LEVELS}


class ContentCases:
    """Texts or images by position, in one column."""

    are_training = False  # a text or an image is a case, and nothing says what the model was trained on

    def __init__(self, space: Contents) -> None:
        self._space, self.n_rows, self.names = space, len(space.contents), [space.column]
        self.block_rows = _TEXTS_PER_CALL if space.is_text else _IMAGES_PER_BLOCK
        self.stored_at = np.arange(self.n_rows)
        values = np.empty(self.n_rows, dtype=object)
        values[:] = list(space.titles)
        self.columns: tuple[Column, ...] = (Column(CATEGORY, values, np.zeros(self.n_rows, dtype=bool)),)

    def cells(self, j: int, stored: Sequence[int]) -> list[Plain]:
        """Return the texts or titles, shortened."""
        texts = [self.columns[j].values[at] for at in stored]
        return [text if len(text) <= _LONGEST else f"{text[:_LONGEST]}{ELLIPSIS}" for text in texts]

    def inputs(self, stored: np.ndarray) -> Iterator[tuple[Any, int]]:
        """Yield all texts at once, and images one by one, because they may have different sizes."""
        contents = (self._space.contents[at] for at in stored.tolist())
        if self._space.is_text:
            yield list(contents), len(stored)
            return
        for content in contents:
            image = np.asarray(content)[None]
            yield image.reshape(1, -1) if self._space.space.flatten else image, 1  # type: ignore[union-attr]

    def parse_row(self, row: Any) -> Any:
        """Return a position or a row by column."""
        if isinstance(row, int):
            check_position(row, self.n_rows)
        return row

    def describe(self) -> list[dict[str, Any]]:
        """Return the name of the column, and whether it holds texts or images."""
        kind = "texts" if self._space.is_text else "images"
        return [{"name": self._space.column, "kind": kind, "has_missing": False}]

    def open(self, row: Any, paste: str | None = None) -> Opened:
        """Return a text or an image."""
        case: Any = self._space.at(row)
        return Opened(case.original, {self._space.column: case.text if self._space.is_text else None}, {})

    def change(
        self, neighborhood: Any, facts: Sequence[Fact], edits: Mapping[str, Any], broken: Sequence[str]
    ) -> Changed:
        """Return the text, or another one in its place, without some units; or the image with hidden regions."""
        unknown = [name for name in broken if name not in neighborhood.names]
        if unknown:
            raise ParameterError(
                f"broken contains {unknown[0]!r:.60}, which is not a fact of this case. Use the names of this "
                "case's facts."
            )
        after: Any = self._space.at(dict(edits)) if edits else neighborhood
        realized = after.realize_flips(np.array([[name in broken for name in after.names]]))
        kept = {*after.names} - {*broken}
        values = {self._space.column: realized[0] if self._space.is_text else None}
        return Changed(realized, values, [fact.attribute not in kept for fact in facts])


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers to several rows: the decision per row, and the explained number per row (None for labels)."""

    texts: list[str]
    values: list[float | None]


Cases = TableCases | ContentCases


class AnswerTable:
    """The model's answers to all rows, as far as they are known.

    The model is asked about a block of rows at once. For every row the table keeps a number and the code of a
    text, not Python objects, so that memory is bounded.
    """

    def __init__(self, explainer: Explainer, cases: Cases, display: Display | None = None) -> None:
        self._explainer, self._cases, self._label = explainer, cases, (display or Display()).label
        self.n_rows, self._block_rows = cases.n_rows, cases.block_rows
        self._lock = threading.Lock()
        self._levels: dict[str, int] = {}
        self.codes = np.full(self.n_rows, -1, dtype=np.int32)
        self.values = np.full(self.n_rows, np.nan)
        self._scores: np.ndarray | None = None
        self._known = np.zeros(-(-self.n_rows // self._block_rows), dtype=bool)

    @property
    def n_known(self) -> int:
        """How many rows have an answer."""
        return min(self.n_rows, int(self._known.sum()) * self._block_rows)

    @property
    def is_known(self) -> np.ndarray:
        """Whether each row has an answer."""
        return np.repeat(self._known, self._block_rows)[: self.n_rows]

    @property
    def levels(self) -> list[str]:
        """The distinct texts of answers; empty for numbers, whose texts follow from the numbers."""
        return list(self._levels)

    @property
    def names(self) -> list[str]:
        """The texts that answers can be: those of all classes, or if these are not known, the levels."""
        classes = self._explainer.target.classes
        return self.levels if classes is None else [self._label(label) for label in classes]

    def ask(self, inputs: Any, n_rows: int = 1) -> Scores:
        """Return the model's checked answers to model inputs."""
        known = self._explainer.table_answers(ask=False)
        return Questions(self._explainer.target, None if known is None else known.rule).ask(inputs, n_rows)

    def ask_rows(self, positions: np.ndarray) -> Scores:
        """Return the model's checked answers to cases."""
        stored = self._cases.stored_at[positions]
        parts = [self.ask(inputs, n_rows) for inputs, n_rows in self._cases.inputs(stored)]
        named = [part.named for part in parts if part.named is not None]
        return Scores(np.concatenate([part.values for part in parts]), np.concatenate(named) if named else None)

    def fill(self, seconds: float = _FILL_SECONDS) -> None:
        """Ask for further blocks for about that time, at least for one; progress is `n_known`."""
        end = time.monotonic() + seconds
        for block in np.flatnonzero(~self._known).tolist():
            checkpoint()
            positions = np.arange(block * self._block_rows, min(self.n_rows, (block + 1) * self._block_rows))
            self._store(positions, self.ask_rows(positions))
            self._known[block] = True
            if time.monotonic() > end:
                return

    def at(self, positions: Sequence[int]) -> Answers:
        """Return the answers to a few rows; the model is asked about those that are not known."""
        rows = np.array(positions, dtype=np.intp)
        unknown = rows[~self._known[rows // self._block_rows]]
        if len(unknown):
            self._store(unknown, self.ask_rows(unknown))
        levels, codes = self.levels, self.codes[rows].tolist()
        return _readable([levels[code] for code in codes if code >= 0] or None, self.values[rows])

    def readable(self, scores: Scores) -> Answers:
        """Return the decisions and the explained numbers in the model's answer to any rows."""
        return _readable(*self._read(scores))

    def scores(self, column: int) -> np.ndarray | None:
        """Return the score of one class per row (NaN where unknown), or None if there are too many to keep."""
        return None if self._scores is None else self._scores[:, column]

    def _read(self, scores: Scores) -> tuple[list[str] | None, np.ndarray]:
        """Return the texts, None for numbers; and the explained numbers, NaN for labels."""
        target, values = self._explainer.target, scores.values
        if scores.named is not None and target.task != "number":
            column = scores.named if target.column is None else target.column
            labels = [f"class {j}" for j in range(values.shape[1])] if target.classes is None else target.classes
            names = [self._label(label) for label in labels]
            return [names[j] for j in scores.named.tolist()], values[np.arange(len(values)), column].astype(float)
        if values.ndim == 2:
            return None, values[:, target.column or 0].astype(float)
        if target.task == "number" or (values.dtype.kind == "f" and target.task != "label"):
            return None, values.astype(float)
        return [self._label(label) for label in values.tolist()], np.full(len(values), np.nan)

    def _store(self, rows: np.ndarray, scores: Scores) -> None:
        texts, numbers = self._read(scores)
        with self._lock:
            self.values[rows] = numbers
            if texts is not None:
                self.codes[rows] = [self._levels.setdefault(text, len(self._levels)) for text in texts]
            if scores.named is not None and self.n_rows * scores.values.shape[1] <= _MAX_SCORES:
                if self._scores is None:
                    self._scores = np.full((self.n_rows, scores.values.shape[1]), np.nan)
                self._scores[rows] = scores.values


def _readable(texts: list[str] | None, values: np.ndarray) -> Answers:
    numbers = values.tolist()
    if texts is None:
        return Answers([text_of(value, NUMBER) for value in numbers], numbers)
    return Answers(texts, [None if np.isnan(value) else value for value in numbers])


class Catalog:
    """The cases of a space by position; every search and every sort covers all of them."""

    def __init__(self, explainer: Explainer, cases: Any = None, display: Display | None = None) -> None:
        self._display = display or Display()
        self._explainer, self.cases = explainer, cases_of(explainer.space, cases)
        self.names, self.n_rows, self._stored_at = self.cases.names, self.cases.n_rows, self.cases.stored_at
        exact = lambda j, row: self.cases.cells(j, [row])[0]  # noqa: E731
        shown = [self._display.column(name) for name in self.names]
        is_table = isinstance(self.cases, TableCases)
        self._search = Search(shown, list(self.cases.columns), exact, self.names, with_known=is_table)
        self.answer_table = AnswerTable(explainer, self.cases, self._display)
        # Which decisions are right (1), wrong (0) or unknown (-1); None if no true decisions are known.
        self.rightness: Callable[[AnswerTable], np.ndarray] | None = None

    def values(self, positions: Sequence[int]) -> list[list[Plain]]:
        """Return the values of rows in the order of the columns; `parse_row` reads a table's back exactly."""
        stored = self._stored_at[list(positions)].tolist()
        columns = [map(browser_value, self.cases.cells(j, stored)) for j in range(len(self.names))]
        return [list(row) for row in zip(*columns, strict=True)]

    def topics(self, codes: Sequence[tuple[str, str, str, str]]) -> Topics:
        """Return what ``reason=`` may name: columns, attributes, and the codes of attributes."""
        assert isinstance(self._explainer.space, Table)
        shown = [self._display.column(name) for name in self.names]
        found = {name: list[str]() for name in (*shown, *self.names)}
        for attribute in self._explainer.space.attributes:
            for name in (attribute.name, *attribute.names):
                found[name] = found[self._display.column(name)] = [attribute.name]
        for name, _, code, _ in codes:
            found[code] = [*found.get(code, ()), *found.get(name, ())]
        return Topics(found, [*shown, *sorted({code for _, _, code, _ in codes})], has_codes=bool(codes))

    def find(
        self, search: str, sort: str, output: str | None = None, known: Known | None = None
    ) -> tuple[np.ndarray, float]:
        """Return the positions of the rows that match every word of ``search``, and how far the answers are known.

        ``#17`` finds row 17. ``sort`` is "position", or "low" or "high" to sort by the explained number, or by the
        score of the class ``output``. If the answers matter, the model is asked about further rows for a second:
        rows without an answer match nothing and come last, until the returned share is 1. Comparisons about
        explanations match what is ``known``.
        """
        words, lookups = self._search.split(search)
        if len(words) == 1 and not lookups and words[0].startswith("#") and words[0][1:].isdecimal():
            position = int(words[0][1:])
            return np.array([position] if position < self.n_rows else [], dtype=np.intp), 1.0
        needs_answers = sort != "position" or self._search.may_match_answers(words)
        if needs_answers:
            self.answer_table.fill()
        found = np.ones(self.n_rows, dtype=bool)
        for word in words:
            checkpoint()
            found &= self._search.mask(word, self._answer_mask)[self._stored_at]
        for comparison in lookups:
            found &= False if known is None else known.mask(*comparison)
        matches = np.flatnonzero(found)
        if sort != "position":
            values = self._sorted_values(output)[matches]
            order = np.argsort(values if sort == "low" else -values, kind="stable")  # NaN comes last
            matches = matches[order]
        return matches, self.answer_table.n_known / max(1, self.n_rows) if needs_answers else 1.0

    def asks_known(self, search: str) -> bool:
        """Return whether a search has comparisons about explanations."""
        return bool(self._search.split(search)[1])

    def progress_of(self, search: str, n_matches: int, known: Known, most: int) -> dict[str, Any] | None:
        """Return what is known for the comparisons about explanations in a search, and what would say more.

        ``asks`` is "rules", or "facts" if more cases of ``search`` can be explained, at most ``most``; else None.
        """
        words, lookups = self._search.split(search)
        rest = " ".join(words)
        if not lookups:
            return None
        texts, asks = [], None
        if any(name != RULE for name, _, _ in lookups):
            found, progress = self.find(rest, "position")
            n, n_tried = (int(each[found].sum()) for each in (known.is_explained, known.is_tried))
            of = f"{n:,} of {len(found):,} cases {'is' if n == 1 else 'are'} explained"
            texts.append(f"{of}; {n_matches:,} of them match{'es' if n_matches == 1 else ''}." if n else f"{of}.")
            asks = "facts" if progress == 1 and n_tried < min(most, len(found)) else None
        if known.has_codes and any(name == REASON for name, _, _ in lookups):
            texts.append("A reason is a fact of the sum here; a letter may state others.")
        for name, _, text in lookups:
            if name == RULE and known.rules is None:
                texts.append("The rules of all cases are not known yet.")
                asks, rest = "rules", ""
            elif name == RULE and (rule := known.rule_text(text)):
                texts.append(rule)
        return {"text": " ".join(texts), "asks": asks, "search": rest}

    def notes(self, search: str, known: Known | None = None) -> list[str]:
        """Return what is wrong with a search that nothing matches."""
        (words, lookups), names = self._search.split(search), self.answer_table.names
        asks = [word for word in words if word.lower() in _RIGHT_WORDS]
        if asks and not names:
            return ["The model answers numbers, which are not right or wrong."]
        if asks and self.rightness is None:
            return ["The true decisions are not known. Start the server with --target COLUMN."]
        alone = (
            next((word for word in words if word.lower() in ("wrong", "right")), None) if self.rightness else None
        )
        if alone is not None:
            return [
                f"Type {alone.lower()} decisions to find those that the true outcomes show to be {alone.lower()}."
            ]
        found = self._search.notes(words, [*names, *(_RIGHT if self.rightness else ())] if names else [])
        others = (note for each in lookups if known is not None for note in known.notes(*each))
        return [printable(note) for note in islice(chain(others, found), _MOST_NOTES)]

    def suggestions(self) -> list[str]:
        """Return beginnings of searches that the page suggests."""
        wrong = ["wrong decisions"] if self.rightness else []
        return [*wrong, *map(printable, self._search.suggestions(self.answer_table.names))]

    def _sorted_values(self, output: str | None) -> np.ndarray:
        """Return the numbers to sort by."""
        if output is None:
            return self.answer_table.values
        output = self._display.own_label(output)
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
        elif self.rightness and operator == "=" and text in _RIGHT and text not in levels:
            found = self.rightness(table) == _RIGHT.index(text)
        elif levels and operator in ("=", "contains"):
            chosen = [text in level if operator == "contains" else level == text for level in levels]
            found = rows_with(chosen, table.codes)
        elif ends is not None:
            found = compare_numbers(table.values, "=" if operator == "contains" else operator, ends)
        in_schema_order = np.empty_like(found)
        in_schema_order[self._stored_at] = found
        return in_schema_order


def cases_of(space: Any, given: Any = None) -> Cases:
    """Return the cases of a space, or ``given`` rows instead of those of a table."""
    if isinstance(space, Table):
        return TableCases(space, given)
    if isinstance(space, Contents):
        return ContentCases(space)
    raise ParameterError(
        f"The explainer's space is a {type(space).__name__}; the studio needs a Table, or texts or images. "
        "Type: Explainer(model, Table(frame)), or Explainer(model, Contents(Text(), texts))."
    )
