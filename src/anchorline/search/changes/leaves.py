r"""What trees answer to changed rows, by their leaves, without a query of the model.

A value of an attribute can reach some leaves and not others; values that can reach the same leaves form a cell. A
changed row reaches the leaves that all of its values can reach. So the answers to all combinations of the cells of
two attributes a and b are one product of matrices,

.. math:: f = c + P_a \operatorname{diag}(v_\ell) P_b^\top, \qquad P_a \in \{0, 1\}^{\text{cells} \times \ell}

over the leaves that the values of all other attributes can reach. For more attributes, no answer is larger than
the sum over the trees of the largest leaf that can still be reached.
"""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.model.predictor import Predictor
from anchorline.search.changes.candidates import Candidates
from anchorline.search.changes.goal import Goal
from anchorline.search.leaves.joined import JoinedTrees
from anchorline.search.leaves.joining import NotSeparableError
from anchorline.search.leaves.sums import LeafSums
from anchorline.spaces.base import Neighborhood
from anchorline.spaces.choices import TableChoices

_MAX_CELLS = 200_000_000  # cells times leaves, one byte each
MIN_QUERIES = 10_000  # trees are compared with the model on up to 512 rows, which a small limit has no room for


@dataclass(frozen=True, eq=False)
class Forms:
    """Linear forms of the trees' outputs that are positive where the goal is reached: one of them, or all.

    ``weights`` (outputs, forms) and ``offsets`` (forms,). Forms within ``tolerance`` of 0 leave it open.
    """

    weights: np.ndarray
    offsets: np.ndarray
    need_all: bool
    tolerance: float

    def margins(self, forms: np.ndarray) -> np.ndarray:
        """Return how far above 0 the forms (..., forms) are that decide."""
        return np.asarray(forms.min(axis=-1) if self.need_all else forms.max(axis=-1))


@dataclass(frozen=True, eq=False)
class LeafAnswers:
    """The trees of a model beside one instance and its candidates.

    ``passes`` holds per attribute which leaves a value of each cell can reach, booleans (cells, leaves). ``cells``
    (candidates,) are numbered attribute by attribute, those of attribute a from ``starts[a]`` on. ``own``
    (attributes, leaves) says which leaves the instance's own values can reach; the last row stands for all that
    never changes. ``values`` (leaves, forms) are the leaves' shares of the forms, and ``constant`` (forms,) what
    is added. ``trees`` (leaves,) are the trees of the leaves, sorted.
    """

    forms: Forms
    passes: tuple[np.ndarray, ...]
    cells: np.ndarray
    starts: np.ndarray
    own: np.ndarray
    values: np.ndarray
    constant: np.ndarray
    trees: np.ndarray

    @cached_property
    def n_failing(self) -> np.ndarray:
        """The number of attributes whose own value cannot reach each leaf, (leaves,)."""
        return np.asarray((~self.own).sum(axis=0))

    def alive(self, attributes: Sequence[int]) -> np.ndarray:
        """Return the leaves that can be reached if these attributes change: their numbers."""
        failing = self.n_failing - (~self.own[list(attributes)]).sum(axis=0)
        return np.flatnonzero(failing == 0)

    def singles(self, attribute: int) -> np.ndarray:
        """Return the margins of all changes of one attribute, (cells,)."""
        leaves = self.alive([attribute])
        return self.forms.margins(self.passes[attribute][:, leaves] @ self.values[leaves] + self.constant)

    def pairs(self, first: int, second: int, leaves: np.ndarray) -> np.ndarray:
        """Return the margins of all changes of two attributes, (cells, cells), if these leaves are alive."""
        left, right = (self.passes[a][:, leaves].astype(np.float64) for a in (first, second))
        forms = [
            (left * values) @ right.T + constant
            for values, constant in zip(self.values[leaves].T, self.constant.tolist(), strict=True)
        ]
        return self.forms.margins(np.stack(forms, axis=-1))

    def bound(self, leaves: np.ndarray) -> float:
        """Return a number that no margin exceeds: the sum over the trees of the largest of these leaves."""
        starts = np.flatnonzero(np.diff(self.trees[leaves], prepend=-1))
        return float(
            self.forms.margins(np.maximum.reduceat(self.values[leaves], starts).sum(axis=0) + self.constant)
        )


def leaves_of(
    explainer: Any, candidates: Candidates, predictor: Predictor, goal: Goal, neighborhood: Neighborhood
) -> LeafAnswers | None:
    """Return the trees beside an instance; None if the model's answers cannot be read off trees."""
    found = _joined(explainer, predictor, goal)
    if found is None:
        return None
    joined, forms = found
    try:
        sums = joined.whole
    except NotSeparableError:
        return None
    own = np.asarray(joined.transform(neighborhood.original), dtype=np.float64)
    if sums.unlike_training(own).any():
        return None
    answers = _built(joined, sums, forms, candidates, own)
    if answers is None:
        return None
    at_row = answers.forms.margins(answers.values[answers.alive([])].sum(axis=0) + answers.constant)
    if at_row > answers.forms.tolerance or not _agrees(joined, own, predictor):
        return None  # the instance itself must not reach the goal, and the trees must answer like the model
    return answers


def _agrees(joined: JoinedTrees, own: np.ndarray, predictor: Predictor) -> bool:
    """Return whether the trees answer like the model at the instance."""
    answers = joined.reading.ensemble.evaluate(own)[0]
    answers = np.append(-answers, answers) if joined.reading.is_mirrored else answers
    if joined.reading.scale == "margin" and predictor.target.scale is None and predictor.target.contrast is None:
        shares = (
            np.exp(answers - answers.max()) if joined.reading.link == "softmax" else 1 / (1 + np.exp(-answers))
        )
        answers = shares / shares.sum()
    difference = abs(float(answers[predictor.column or 0]) - predictor.prediction)
    return bool(difference <= 2 * joined.allowed + 1e-6 * max(1.0, abs(predictor.prediction)))


def _joined(explainer: Any, predictor: Predictor, goal: Goal) -> tuple[JoinedTrees, Forms] | None:
    """Return the trees whose answers are explained, or those of the margins behind them, and the goal."""
    target = predictor.target
    if predictor.is_label or target.rule is not None:
        return None
    joined, link = explainer.setup.trees.joined(target), "identity"
    if isinstance(joined, str) and target.scale is None and target.contrast is None and predictor.n_columns:
        try:
            margins = explainer.resolved(output_scale="margin", output=None, column=None)
        except ParameterError:
            return None
        joined = explainer.setup.margin_trees.joined(margins)
        link = joined.reading.link if isinstance(joined, JoinedTrees) else "identity"
    if not isinstance(joined, JoinedTrees):
        return None
    forms = _forms(goal, joined.reading.n_columns, predictor.column or 0, link, 2 * joined.allowed)
    return None if forms is None else (joined, forms)


def _forms(goal: Goal, n_columns: int, column: int, link: str, tolerance: float) -> Forms | None:
    """Return the goal as linear forms of the columns of the trees' answers; None if it is not linear in them."""
    unit = np.eye(n_columns)
    if goal.kind in ("class", "other class"):
        others = [k for k in range(n_columns) if k != goal.wanted]
        lead = np.stack([unit[goal.wanted] - unit[k] for k in others], axis=1)
        need_all = goal.kind == "class"
        return Forms(lead if need_all else -lead, np.zeros(len(others)), need_all, tolerance)
    limit = float(goal.wanted)
    if link == "logistic" and n_columns == 2 and 0 < limit < 1:
        limit = float(np.log(limit / (1 - limit)))
    elif link != "identity":
        return None
    sign = 1.0 if goal.kind in (">=", ">") else -1.0
    return Forms(sign * unit[column][:, None], np.array([-sign * limit]), True, tolerance)


def _built(
    joined: JoinedTrees, sums: LeafSums, forms: Forms, candidates: Candidates, own: np.ndarray
) -> LeafAnswers | None:
    """Return which leaves the values of all candidates can reach; None if these are too many."""
    assert isinstance(candidates.choices, TableChoices)  # trees are joined with tables only
    if joined not in _VALUE_CELLS:
        _VALUE_CELLS[joined] = _value_cells(joined, sums, candidates.choices)
    known = _VALUE_CELLS[joined]
    if known is None:
        return None
    paths, kept = sums.paths, np.append(sums.kept(own)[:, 0], True)
    passes, cells, starts = list[np.ndarray](), np.zeros(candidates.n_candidates, dtype=np.intp), [0]
    for a, (choice, values) in enumerate(
        zip(candidates.choices.attributes, candidates.choices.values, strict=True)
    ):
        mine, (numbers, own_passes) = np.flatnonzero(candidates.owner == a), known[a]
        used, places = np.unique(numbers[values.ids[choice.rows[candidates.value[mine]]]], return_inverse=True)
        cells[mine] = starts[-1] + places.reshape(-1)
        passes.append(own_passes[used])
        starts.append(starts[-1] + len(used))
    values_of, constant = paths.values, paths.constant
    if joined.reading.is_mirrored:
        values_of, constant = np.column_stack([-values_of, values_of]), np.append(-constant, constant)
    return LeafAnswers(
        forms=forms,
        passes=tuple(passes),
        cells=cells,
        starts=np.array(starts),
        own=kept[paths.last_edges],
        values=values_of @ forms.weights,
        constant=constant @ forms.weights + forms.offsets,
        trees=paths.leaf_trees,
    )


ValueCells = tuple[tuple[np.ndarray, np.ndarray], ...]
"""Per attribute, the cell of each training value, and which leaves each cell can reach, (cells, leaves)."""
_VALUE_CELLS: weakref.WeakKeyDictionary[JoinedTrees, ValueCells | None] = weakref.WeakKeyDictionary()


def _value_cells(joined: JoinedTrees, sums: LeafSums, choices: TableChoices) -> ValueCells | None:
    """Return the cells of all training values, which no row changes; None if these are too many.

    Features depend on one attribute each, so that any row shows those of all values.
    """
    every = [
        replace(choice, rows=values.rows)
        for choice, values in zip(choices.attributes, choices.values, strict=True)
    ]
    sizes = [len(values.rows) for values in choices.values]
    owner, value = np.repeat(np.arange(len(sizes)), sizes), np.concatenate([np.arange(size) for size in sizes])
    inputs = replace(choices, attributes=tuple(every)).realize(owner[:, None], value[:, None])
    features = np.asarray(joined.transform(inputs), dtype=np.float64)
    found = [_cells(sums, a, features[owner == a]) for a in range(len(sizes))]
    n_cells = sum(len(passes) for _, passes in found)
    return None if n_cells * sums.paths.n_leaves > _MAX_CELLS else tuple(found)


def _cells(sums: LeafSums, attribute: int, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cell of every value of an attribute, and the leaves of each cell, (cells, leaves)."""
    paths, marginal = sums.paths, sums.marginals[attribute]
    if marginal is None or not len(features):  # no tree tests it, so that all of its values are one cell
        n_cells = min(1, len(features))
        return np.zeros(len(features), dtype=np.intp), np.ones((n_cells, paths.n_leaves), dtype=bool)
    values = features[:, marginal.columns]
    _, first, numbers = np.unique(marginal.sets.cells(values), return_index=True, return_inverse=True)
    admitted = np.concatenate([marginal.sets.admit(values[first]), np.ones((1, len(first)), dtype=bool)])
    last = paths.last_edges[attribute]  # the root, above all edges, admits everything
    last = np.where(last == paths.n_edges, len(admitted) - 1, last - paths.slices[attribute].start)
    return numbers.reshape(-1), np.ascontiguousarray(admitted[last].T)


def with_cells(candidates: Candidates, leaves: LeafAnswers) -> Candidates:
    """Return the candidates, of which those that the trees cannot distinguish share a cell."""
    return replace(candidates, cell=leaves.cells)
