"""The search for changes by the leaves of trees: exact over all cells of one and two facts, by bounds for more."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anchorline.search.changes.candidates import Candidates
from anchorline.search.changes.leaves import LeafAnswers
from anchorline.search.changes.levels import Level
from anchorline.search.changes.questions import Questions

_MAX_WORK = 2_000_000_000  # multiplications per level
_MAX_UNSURE = 4096  # combinations per level so close to the limit that only the model can tell
_MAX_EQUAL = 64  # categories of one attribute that turn and cost the same

Change = tuple[int, ...]
Best = tuple[float, Change]  # a cost and a change


@dataclass(eq=False)
class LeafSearch:
    """One search: the trees' answers, the model for what these leave open, and the work that is left."""

    questions: Questions
    leaves: LeafAnswers
    work: float = 0.0
    _cheapest: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    @property
    def candidates(self) -> Candidates:
        """The candidates, whose cells are those that the trees distinguish."""
        return self.questions.candidates

    def singles(self) -> tuple[list[Change], Level]:
        """Return the single facts that turn: the nearest per side of an ordered attribute, and all categories."""
        candidates, found, n_open, n = self.candidates, list[Change](), 0, 0
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
        self.work, found, n_decided, n_total = _MAX_WORK, list[tuple[float, Change]](), 0, 0
        for chosen in itertools.combinations(attributes, n_facts):
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
            mine = np.flatnonzero(self.candidates.owner == attribute)
            costs = self.candidates.cost(mine[:, None])
            order = np.argsort(costs, kind="stable")
            cells = self.candidates.cell[mine[order]] - self.leaves.starts[attribute]
            first = order[np.unique(cells, return_index=True)[1]]  # every cell has a candidate
            self._cheapest[attribute] = costs[first], mine[first]
        return self._cheapest[attribute]

    def _best(self, chosen: Sequence[int], leaves: np.ndarray, fixed: Change) -> tuple[Best | None, int]:
        """Return the cheapest change of these attributes that turns, and how many combinations stay undecided.

        The attributes of ``fixed`` have changed already, and ``leaves`` are those that can still be reached.
        """
        n = math.prod(self._n_cells(a) for a in chosen)
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
