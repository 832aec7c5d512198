"""Changes of one fact: every candidate, or quantiles of them, and then the nearest candidate that turns."""

from dataclasses import dataclass

import numpy as np

from anchorline.errors import ParameterError
from anchorline.search.changes.candidates import Candidates
from anchorline.search.changes.goal import Reply
from anchorline.search.changes.questions import Questions


@dataclass(frozen=True, slots=True, eq=False)
class Singles:
    """The candidates that were tried alone, (m,), with the replies; ``n_cells`` distinguishable ones exist.

    ``at_row`` is the reply to the instance itself.
    """

    tried: np.ndarray
    reply: Reply
    n_cells: int
    at_row: Reply

    @property
    def is_complete(self) -> bool:
        """Whether every candidate was tried."""
        return len(self.tried) == self.n_cells


def try_singles(questions: Questions, max_values: int) -> Singles:
    """Try every candidate alone; at most ``max_values`` per attribute, by quantiles of the training rows."""
    candidates, most = questions.candidates, max_values
    n_cells = sum(len(side) for side in _sides(candidates))
    tried = _representatives(candidates, most)
    while len(tried) > questions.left // 2 and most > 2:
        most = max(2, most // 2)
        tried = _representatives(candidates, most)
    tried = tried[: max(0, questions.left - 1)]
    reply = questions.ask(np.append(-1, tried)[:, None])  # with the instance itself, whose margin is needed
    if reply.reached[0]:
        raise ParameterError(
            "The row already meets the target, so nothing has to change. Pick another target, or leave it out."
        )
    return Singles(tried, reply.part(slice(1, None)), n_cells, reply.part(slice(0, 1)))


def _sides(candidates: Candidates) -> list[np.ndarray]:
    """Return the distinguishable candidates of every attribute and side, nearest first."""
    found = [candidates.of_side(a, side) for a in candidates.attributes.tolist() for side in (-1, 0, 1)]
    return [candidates.distinct(side) for side in found if len(side)]


def _representatives(candidates: Candidates, most: int) -> np.ndarray:
    """Return the candidates to try: the nearest of all attributes first, then the second nearest, and so on."""
    sides, totals = _sides(candidates), np.zeros(int(candidates.attributes.max()) + 1, dtype=np.intp)
    for side in sides:
        totals[candidates.owner[side[0]]] += len(side)
    chosen, ranks = [], []
    for side in sides:
        total = int(totals[candidates.owner[side[0]]])
        share = len(side) if total <= most else max(2, most * len(side) // total)
        kept = candidates.spread(side, share)
        chosen.append(kept)
        ranks.append(np.arange(len(kept)))
    order = np.argsort(np.concatenate(ranks), kind="stable")
    return np.asarray(np.concatenate(chosen)[order])


def turning_singles(questions: Questions, singles: Singles, max_values: int) -> list[tuple[int, ...]]:
    """Return the cheapest candidate that turns, for every attribute and side that has one.

    Where not every candidate was tried, those between it and the next nearer one that was tried are tried, too.
    """
    candidates, turning = questions.candidates, singles.tried[singles.reply.reached]
    costs = candidates.cost(turning[:, None])
    best: dict[tuple[int, int], tuple[float, int]] = {}
    for candidate, cost in zip(turning.tolist(), costs.tolist(), strict=True):
        place = int(candidates.owner[candidate]), int(candidates.sides[candidate])
        best[place] = min(best.get(place, (cost, candidate)), (cost, candidate), key=lambda pair: pair[0])
    found = [candidate for _, candidate in best.values()]
    if not singles.is_complete:
        seen = {int(candidates.cell[each]) for each in singles.tried.tolist()}
        found = [_nearest(questions, candidate, seen, max_values) for candidate in found]
    return [(candidate,) for candidate in found]


def _nearest(questions: Questions, candidate: int, seen: set[int], max_values: int) -> int:
    """Return the nearest candidate that turns among those that were skipped before this one, or itself."""
    candidates = questions.candidates
    while True:
        skipped = []
        for each in candidates.nearer(candidate)[::-1].tolist():
            if int(candidates.cell[each]) in seen:
                break
            skipped.append(each)
        between = candidates.distinct(np.array(skipped[::-1], dtype=np.intp))
        tried = candidates.spread(between, max_values)[: max(0, questions.left)]
        if not len(tried):
            return candidate
        seen |= {int(cell) for cell in candidates.cell[tried]}
        reached = questions.ask(tried[:, None]).reached
        if reached.any():
            candidate = int(tried[int(reached.argmax())])
        elif len(tried) == len(between):
            return candidate
