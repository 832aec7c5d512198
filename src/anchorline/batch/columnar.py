"""Many rows of a sum of trees, solved together; their explanations are assembled when they are looked at."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from anchorline.batch.partition import FrameRows, Work
from anchorline.explainer import Explainer
from anchorline.model.exits import contain_exits
from anchorline.model.predictor import Predictor
from anchorline.result.assemble import assemble
from anchorline.result.explanation import Explanation
from anchorline.result.records import PendingRow
from anchorline.search.case import Case
from anchorline.search.leaves.investigating import conclude_by_leaves, pose_by_leaves
from anchorline.search.leaves.joined import JoinedTrees
from anchorline.search.leaves.many import SolvedRows, can_solve, solve_rows
from anchorline.search.leaves.row import LeafRow
from anchorline.settings import Settings
from anchorline.spaces.base import Law
from anchorline.spaces.table import Table, TableNeighborhood
from anchorline.spaces.table_rows import TableRows

_FEWEST_ROWS, _MOST_ROWS = 16, 512
_MOST_VALUES = 100_000  # a megabyte
_N_COMPARED = 16  # rows whose answers one by one are compared with their answers together
_COMPARED: WeakKeyDictionary[JoinedTrees, bool] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Columnar:
    """An explainer of trees whose rows can be solved together, and the settings.

    ``warnings`` are those of the explainer's setup.
    """

    explainer: Explainer
    table: Table
    settings: Settings
    trees: JoinedTrees
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, work: Work) -> "Columnar | None":
        """Return the work if its rows are explained from trees whose answers do not depend on the batch."""
        explainer, settings = work.explainer, work.settings
        table = explainer.space
        if work.share > 1 or not isinstance(table, Table) or not can_solve(table, settings):
            return None
        with contextlib.suppress(Exception), contain_exits():  # every row will report the error as its own
            trees = explainer.setup.trees.usable(settings, explainer.target)
            if isinstance(trees, JoinedTrees) and _same_alone(explainer, table, trees):
                warnings = tuple(finding.text for finding in work.findings())
                return cls(explainer, table, settings, trees, warnings)
        return None

    @property
    def n_rows(self) -> int:
        """How many rows to read and to query together."""
        return max(_FEWEST_ROWS, min(_MOST_ROWS, _MOST_VALUES // len(self.table.names)))

    def rows(self, rows: FrameRows, start: int, stop: int) -> "dict[int, PendingRow]":
        """Return the rows that were solved together; the others must be explained one by one."""
        with contextlib.suppress(Exception), contain_exits():  # the row at fault will report the error as its own
            read = TableRows.read(self.table, rows.part(start, stop))
            if read is not None:
                return self._solved(read, start)
        return {}

    def _solved(self, rows: TableRows, start: int) -> "dict[int, PendingRow]":
        answers = np.asarray(self.explainer.target.ask(rows.inputs))
        predictors = [self._predictor(answers[i : i + 1]).open(None) for i in range(len(rows))]
        if len(answers) != len(rows) or any(predictor.is_label for predictor in predictors):
            return {}
        solved = solve_rows(self.trees, rows, predictors, self.settings)
        return {
            start + i: PendingRow(start + i, partial(self._explanation, rows, i, answers[i : i + 1], *where))
            for i, where in solved.items()
        }

    def _predictor(self, answer: np.ndarray) -> Predictor:
        """Return the model as seen from a row to which it gave this answer."""
        return self.explainer.predictor(replace(self.explainer.target, ask=_Answered(answer)), self.settings)

    def _explanation(
        self, rows: TableRows, i: int, answer: np.ndarray, solved: SolvedRows, at: int
    ) -> Explanation:
        """Assemble the explanation of row i, as if it had been explained by itself."""
        neighborhood, predictor = rows.at(i), self._predictor(answer)
        row = _SolvedRow(solved, at)
        case = Case(neighborhood, predictor, self.settings, self.table.fingerprint, trees=row).open()
        case = replace(case, warnings=self.warnings)
        leaves, choice = case.leaves, solved.choice(at, predictor)
        assert leaves is not None
        assert choice is not None  # it was solved
        problem = pose_by_leaves(case, leaves)
        return assemble(case, conclude_by_leaves(case, leaves, problem, choice))


@dataclass(frozen=True, slots=True, eq=False)
class _Answered:
    """A model that was queried before."""

    answer: np.ndarray

    def __call__(self, inputs: Any) -> np.ndarray:
        """Return the answer."""
        return self.answer


@dataclass(frozen=True, slots=True, eq=False)
class _SolvedRow:
    """The trees as seen from one row whose moments are known."""

    solved: SolvedRows
    at: int

    def row(self, neighborhood: TableNeighborhood, law: Law, predictor: Predictor) -> LeafRow:
        """Return the row as the trees see it."""
        return self.solved.leaf_row(self.at, neighborhood, law, predictor.half_range)


def _same_alone(explainer: Explainer, table: Table, trees: JoinedTrees) -> bool:
    """Return whether the model answers some rows together as it does one by one, to the last bit; asked once."""
    if trees not in _COMPARED:
        _COMPARED[trees] = _compare(explainer, table, trees)
    return _COMPARED[trees]


def _compare(explainer: Explainer, table: Table, trees: JoinedTrees) -> bool:
    rows = np.unique(np.linspace(0, table.schema.n_rows - 1, _N_COMPARED).astype(np.intp))
    inputs = table.schema.natives.rows

    def same(ask: Callable[[Any], Any]) -> bool:
        alone = np.concatenate([np.asarray(ask(inputs(row))) for row in rows[:, None]])
        return np.array_equal(np.asarray(ask(inputs(rows))), alone, equal_nan=True)

    return same(explainer.target.ask) and same(trees.transform)
