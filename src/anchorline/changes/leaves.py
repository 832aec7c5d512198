r"""The search for changes by the leaves of trees: exact over one and two facts, by bounds for more; few queries.

A value of an attribute can reach some leaves and not others; values that can reach the same leaves form a cell. A
changed row reaches the leaves that all of its values can reach. So the answers to all combinations of the cells of
two attributes a and b are one product of matrices,

.. math:: f = c + P_a \operatorname{diag}(v_\ell) P_b^\top, \qquad P_a \in \{0, 1\}^{\text{cells} \times \ell}

over the leaves that the values of all other attributes can reach. For more attributes, no answer is larger than
the sum over the trees of the largest leaf that can still be reached.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.changes.candidates import Candidates, Change
from anchorline.changes.questions import ChangeQuestions
from anchorline.changes.result import Level
from anchorline.changes.search import Ranking, Search, count_combinations
from anchorline.laws import Random
from anchorline.model.predictor import batches
from anchorline.model.trees import Ensemble, Reading
from anchorline.model.trees.ensemble import LEAF
from anchorline.model.trees.reading import Forms, allowed_error
from anchorline.search.leaves import codes_of, tests_of
from anchorline.search.trees import differ, features_of

_N_CHECKED = 128
_MAX_CELLS = 200_000_000  # cells times nodes, one byte each
_MAX_WORK = 2_000_000_000  # multiplications per level
_WORK_PER_SET, _WORK_PER_BOUND = 20_000, 20_000  # multiplications that take as long as a look at a set, or a bound
_MAX_UNSURE = 4096  # combinations per level so close to the limit that only the model can tell
_MAX_EQUAL = 64  # categories of one attribute that turn and cost the same

Best = tuple[float, Change]
"""A cost and a change."""


@dataclass(frozen=True, eq=False)
class LeafAnswers:
    """The trees of a model beside one instance and its candidates.

    ``passes`` holds per attribute which leaves a value of each cell can reach, booleans (cells, leaves). ``cells``
    (candidates,) are numbered attribute by attribute, those of attribute a from ``starts[a]`` on. ``own``
    (attributes + 1, leaves) says which leaves the instance's own values can reach; the last row stands for all
    that never changes. ``values`` (leaves, forms) are the leaves' shares of the forms, and ``constant`` (forms,)
    what is added. ``trees`` (leaves,) are the trees of the leaves, sorted.
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
        largest = np.maximum.reduceat(self.values[leaves], starts).sum(axis=0)
        return float(self.forms.margins(largest + self.constant))


def leaves_of(questions: ChangeQuestions, reading: Reading, original: Any) -> LeafAnswers | None:
    """Return the trees beside an instance; None if the model's answers cannot be read off them.

    The model is asked about some rows, on which the trees must answer alike, and the model name the class with the
    highest score. Every feature of the trees must depend on one attribute.
    """
    predictor, candidates, transform = questions.predictor, questions.candidates, reading.transform
    if predictor.is_label or "threshold" in (predictor.target.rule or ()):
        return None
    forms = Forms.of(questions.goal.kind, questions.goal.wanted, reading, predictor.column or 0)
    if forms is None:
        return None
    own, parts = features_of(transform, original), list[np.ndarray]()
    for first, last in batches(len(candidates.owner)):
        questions.check()
        which = candidates.places(np.arange(first, last)[:, None])
        parts.append(features_of(transform, candidates.case.realize(*which)))
    singles = np.concatenate(parts)
    changed, owners = differ(singles, own), np.full(own.shape[1], -1, dtype=np.intp)  # -1: no attribute
    for a in candidates.attributes.tolist():
        mine = changed[candidates.owner == a].any(axis=0)
        if (owners[mine] >= 0).any():
            return None
        owners[mine] = a
    allowed = _allowed_error(questions, reading, own, singles, owners)
    if allowed is None:
        return None
    return _built(replace(forms, tolerance=2 * allowed), reading, candidates, own, singles, owners)


def _allowed_error(
    questions: ChangeQuestions, reading: Reading, own: np.ndarray, singles: np.ndarray, owners: np.ndarray
) -> float | None:
    """Return how far trees and model may differ by rounding; None if they differ by more on some rows.

    The rows have random candidates in all attributes, the same at every call, whose features must be those that
    the candidates have alone.
    """
    candidates, n = questions.candidates, min(_N_CHECKED, questions.left // 2)
    if not n:
        return None
    uniforms = Random.of(0, b"", "leaves").uniforms(len(candidates.attributes), n)
    expected, columns = np.tile(own, (n, 1)), []
    for a, numbers in zip(candidates.attributes.tolist(), uniforms, strict=True):
        options = np.append(-1, np.flatnonzero(candidates.owner == a))
        chosen = options[(numbers * len(options)).astype(np.intp)]
        mine, changed = np.flatnonzero(owners == a), np.flatnonzero(chosen >= 0)
        expected[np.ix_(changed, mine)] = singles[np.ix_(chosen[changed], mine)]
        columns.append(chosen)
    which = candidates.places(np.column_stack(columns))
    inputs = candidates.case.realize(*which)
    if not np.array_equal(features_of(reading.transform, inputs), expected, equal_nan=True):
        return None
    questions.check()
    scores = questions.predictor.questions.ask(candidates.case.realize(*which), n)
    return allowed_error(reading, questions.predictor.target, inputs, scores)


def _built(
    forms: Forms,
    reading: Reading,
    candidates: Candidates,
    own: np.ndarray,
    singles: np.ndarray,
    owners: np.ndarray,
) -> LeafAnswers | None:
    """Return which leaves the values of all candidates can reach; None if these are too many."""
    ensemble, total = reading.ensemble, 0
    leaves, levels = np.flatnonzero(ensemble.feature == LEAF), tests_of(ensemble)
    cells, starts = np.zeros(len(candidates.owner), dtype=np.intp), [0]
    passes, kept = list[np.ndarray](), list[np.ndarray]()
    for a in range(len(candidates.case.choices)):
        mine = np.flatnonzero(candidates.owner == a)
        codes = [np.zeros(len(mine), dtype=np.intp)]
        for j in np.flatnonzero(owners == a).tolist():
            codes.append(codes_of(ensemble, np.flatnonzero(ensemble.feature == j), singles[mine, j]))
        _, first, inverse = np.unique(np.column_stack(codes), axis=0, return_index=True, return_inverse=True)
        cells[mine] = starts[-1] + inverse.reshape(-1)
        starts.append(starts[-1] + len(first))
        total += (len(first) + 1) * len(ensemble.feature)
        if total > _MAX_CELLS:
            return None
        reached = _reached(ensemble, levels, owners == a, np.concatenate([singles[mine[first]], own]))[:, leaves]
        passes.append(reached[:-1])
        kept.append(reached[-1])
    kept.append(_reached(ensemble, levels, owners < 0, own)[0, leaves])
    values, base = ensemble.values[leaves], ensemble.base
    if reading.is_mirrored:
        values, base = np.column_stack([-values, values]), np.append(-base, base)
    return LeafAnswers(
        forms=forms,
        passes=tuple(passes),
        cells=cells,
        starts=np.array(starts),
        own=np.array(kept),
        values=values @ forms.weights,
        constant=base @ forms.weights + forms.offsets,
        trees=np.searchsorted(ensemble.roots, leaves, side="right") - 1,
    )


def _reached(
    ensemble: Ensemble, levels: Sequence[np.ndarray], is_mine: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Return which nodes rows of features can reach if all features but some may be anything, (n, nodes)."""
    reached = np.zeros((len(ensemble.feature), len(values)), dtype=bool)
    reached[ensemble.roots] = True
    for nodes in levels:
        passed, failed = reached[nodes], reached[nodes]
        mine = np.flatnonzero(is_mine[ensemble.feature[nodes]])
        tests = nodes[mine]
        shown = values[:, ensemble.feature[tests]].T
        left = ensemble.goes_left(np.repeat(tests, len(values)), shown.ravel()).reshape(shown.shape)
        passed[mine] &= left
        failed[mine] &= ~left
        reached[ensemble.left[nodes]], reached[ensemble.right[nodes]] = passed, failed
    return np.ascontiguousarray(reached.T)


def search_leaves(questions: ChangeQuestions, leaves: LeafAnswers, n: int, k: int) -> Search:
    """Find changes to any training values by the leaves of trees, at most one per set of attributes.

    The cells of the candidates are those of the leaves.
    """
    candidates = questions.candidates
    ranking, by_leaves = Ranking(questions, n), _LeafSearch(questions, leaves)
    questions.ask_with_instance(np.zeros((0, 1), dtype=np.intp))  # which may meet the goal already
    found, level = by_leaves.singles()
    levels = [level]
    rest = sorted({*candidates.attributes.tolist()} - {int(candidates.owner[each[0]]) for each in found})
    for n_facts in range(2, min(k, len(rest)) + 1):
        if len(ranking.best(found)) >= n:
            break
        more, level = by_leaves.several(rest, n_facts, [candidates.attributes_of(each) for each in found])
        levels.append(level)
        found += more
    return Search(ranking.best(found), tuple(levels))


@dataclass(eq=False)
class _LeafSearch:
    """One search: the trees' answers, the model for what these leave open, and the work that is left."""

    questions: ChangeQuestions
    leaves: LeafAnswers
    work: float = 0.0
    _cheapest: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def singles(self) -> tuple[list[Change], Level]:
        """Return the single facts that turn: the nearest per side of an ordered attribute, and all categories."""
        candidates, found, n_open, n = self.questions.candidates, list[Change](), 0, 0
        for a in candidates.attributes.tolist():
            mine = np.flatnonzero(candidates.owner == a)
            turned, still_open = self._turned(self.leaves.singles(a), (a,), ())
            turning = mine[turned[candidates.cell[mine] - self.leaves.starts[a]]]
            for side in (-1, 1):
                own = turning[candidates.sides[turning] == side]
                found += [(int(own[np.argmin(candidates.distances[own])]),)] if len(own) else []
            found += [(each,) for each in turning[candidates.sides[turning] == 0][:_MAX_EQUAL].tolist()]
            n, n_open = n + self._n_cells(a), n_open + still_open
        return found, Level(1, n - n_open, n, n, by_leaves=True)

    def several(
        self, attributes: Sequence[int], n_facts: int, without: Sequence[frozenset[int]]
    ) -> tuple[list[Change], Level]:
        """Return the cheapest change per set of attributes that turns, and how many combinations are decided.

        Sets that contain one of ``without`` are left out. Where the work is used up, combinations stay undecided.
        """
        self.work, found, n_decided, n_total = _MAX_WORK, list[Best](), 0, 0
        for chosen in itertools.combinations(attributes, n_facts):
            self.questions.check()
            self.work -= _WORK_PER_SET
            if self.work < 0:  # there may be more sets than anybody can look at
                n_total = max(n_total, count_combinations([self._n_cells(a) for a in attributes], n_facts))
                break
            if any(each <= {*chosen} for each in without):
                continue
            n = math.prod(self._n_cells(a) for a in chosen)
            best, n_open = self._best(chosen, self.leaves.alive(chosen), ())
            n_total, n_decided = n_total + n, n_decided + n - n_open
            found += [] if best is None else [best]
        found.sort()
        return [change for _, change in found], Level(n_facts, n_decided, n_total, n_total, by_leaves=True)

    def _n_cells(self, attribute: int) -> int:
        return len(self.leaves.passes[attribute])

    def _nearest(self, attribute: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the least cost of the candidates in every cell of an attribute, and the candidate, (cells,)."""
        if attribute not in self._cheapest:
            candidates = self.questions.candidates
            mine = np.flatnonzero(candidates.owner == attribute)
            costs = candidates.cost(mine[:, None])
            order = np.argsort(costs, kind="stable")
            cells = candidates.cell[mine[order]] - self.leaves.starts[attribute]
            first = order[np.unique(cells, return_index=True)[1]]  # every cell has a candidate
            self._cheapest[attribute] = costs[first], mine[first]
        return self._cheapest[attribute]

    def _best(self, chosen: Sequence[int], leaves: np.ndarray, fixed: Change) -> tuple[Best | None, int]:
        """Return the cheapest change of these attributes that turns, and how many combinations stay undecided.

        The attributes of ``fixed`` have changed already, and ``leaves`` are those that can still be reached.
        """
        self.questions.check()
        n = math.prod(self._n_cells(a) for a in chosen)
        self.work -= _WORK_PER_BOUND
        if self.work < 0:
            return None, n
        if not len(leaves) or self.leaves.bound(leaves) < -self.leaves.forms.tolerance:
            return None, 0
        if len(chosen) == 2:
            self.work -= n * len(leaves) * self.leaves.values.shape[1]
            return (None, n) if self.work < 0 else self._best_pair(chosen[0], chosen[1], leaves, fixed)
        best, n_open, (*rest, last) = None, 0, sorted(chosen, key=self._n_cells, reverse=True)
        costs, nearest = self._nearest(last)
        for cell, passes in enumerate(self.leaves.passes[last][:, leaves]):
            inner, still_open = self._best(rest, leaves[passes], (*fixed, int(nearest[cell])))
            n_open += still_open
            if inner is not None:
                whole = inner[0] + float(costs[cell]), tuple(sorted((*inner[1], int(nearest[cell]))))
                best = whole if best is None else min(best, whole)
        return best, n_open

    def _best_pair(self, first: int, second: int, leaves: np.ndarray, fixed: Change) -> tuple[Best | None, int]:
        margins = self.leaves.pairs(first, second, leaves)
        turned, n_open = self._turned(margins, (first, second), fixed)
        if not turned.any():
            return None, n_open
        (costs, nearest), (others, nearest_others) = self._nearest(first), self._nearest(second)
        total = np.where(turned, costs[:, None] + others, np.inf)
        i, j = np.unravel_index(int(np.argmin(total)), total.shape)
        return (float(total[i, j]), tuple(sorted((int(nearest[i]), int(nearest_others[j]))))), n_open

    def _turned(self, margins: np.ndarray, attributes: Sequence[int], fixed: Change) -> tuple[np.ndarray, int]:
        """Return where margins (cells, ...) turn, and how many stay open; the model decides those close to 0."""
        tolerance = self.leaves.forms.tolerance
        turned, unsure = margins > tolerance, np.argwhere(np.abs(margins) <= tolerance)
        if not len(unsure):
            return turned, 0
        if len(unsure) > min(_MAX_UNSURE, self.questions.left // 2):
            return turned, len(unsure)
        columns = [self._nearest(a)[1][unsure[:, k]] for k, a in enumerate(attributes)]
        columns += [np.full(len(unsure), candidate) for candidate in fixed]
        turned[tuple(unsure.T)] = self.questions.ask(np.column_stack(columns)).reached
        return turned, 0
