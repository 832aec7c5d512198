"""The cases with the model's answers, searched and sorted."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.model.predictor import Questions, Scores
from anchorline.spaces.table import Table
from anchorline.studio.answers import AnswerTable
from anchorline.studio.cases import Cases, Plain, TableCases, browser_value
from anchorline.studio.contents import ContentCases, Contents
from anchorline.studio.job_queue import checkpoint
from anchorline.studio.search import Search, compare_numbers, number_range, words_of


class Catalog:
    """The cases of a space by position; every search and every sort covers all of them."""

    def __init__(self, explainer: Explainer) -> None:
        self._explainer, self.cases = explainer, cases_of(explainer.space)
        self.names, self.n_rows, self._stored_at = self.cases.names, self.cases.n_rows, self.cases.stored_at
        exact = lambda j, row: self.cases.cells(j, [row])[0]  # noqa: E731
        self._search = Search(self.names, list(self.cases.columns), exact)
        self.answer_table = AnswerTable(
            self.ask_rows, lambda: explainer.target, self.n_rows, self.cases.block_rows
        )

    def values(self, positions: Sequence[int]) -> list[list[Plain]]:
        """Return the values of rows in the order of the columns; `parse_row` reads a table's back exactly."""
        stored = self._stored_at[list(positions)].tolist()
        columns = [map(browser_value, self.cases.cells(j, stored)) for j in range(len(self.names))]
        return [list(row) for row in zip(*columns, strict=True)]

    def parse_row(self, row: Any) -> Any:
        """Return a row from a request as the space reads it."""
        return self.cases.parse_row(row)

    def ask(self, inputs: Any, n_rows: int = 1) -> Scores:
        """Return the model's checked answers to model inputs."""
        known = self._explainer.table_answers(ask=False)
        return Questions(self._explainer.target, None if known is None else known.rule).ask(inputs, n_rows)

    def ask_rows(self, positions: np.ndarray) -> Scores:
        """Return the model's checked answers to cases."""
        parts = [self.ask(inputs, n_rows) for inputs, n_rows in self.cases.inputs(self._stored_at[positions])]
        named = [part.named for part in parts if part.named is not None]
        return Scores(np.concatenate([part.values for part in parts]), np.concatenate(named) if named else None)

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


def cases_of(space: Any) -> Cases:
    """Return the cases of a space; raise `ParameterError` if it has none."""
    if isinstance(space, Table):
        return TableCases(space)
    if isinstance(space, Contents):
        return ContentCases(space)
    raise ParameterError(
        f"The explainer's space is a {type(space).__name__}; the studio needs a Table, or texts or images. "
        "Type: Explainer(model, Table(frame)), or Explainer(model, Contents(Text(), texts))."
    )
