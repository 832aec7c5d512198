"""Changes of one fact: a few values per attribute, all if these do not suffice, and then the nearest that turn."""

from dataclasses import dataclass

import numpy as np

from anchorline.search.changes.candidates import Candidates
from anchorline.search.changes.goal import Reply
from anchorline.search.changes.questions import Questions

FEW = 16  # values per attribute that are tried first, and per gap between two of them

Place = tuple[int, int]  # an attribute and one side of the instance's own value


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


def try_singles(questions: Questions, n: int, max_values: int) -> Singles:
    """Try candidates alone: `FEW` per attribute, by quantiles of the training rows, and then up to ``max_values``.

    If ``n`` of the few turn, on different sides or of different attributes, no more are tried: nothing has fewer
    facts than one. All are tried before it is said that no single fact turns.
    """
    candidates = questions.candidates
    n_cells = sum(len(side) for side in _sides(candidates))
    tried = _affordable(questions, min(FEW, max_values))
    at_row, reply = questions.ask_with_instance(tried[:, None])
    if len(_places(candidates, tried[reply.reached])) < n:
        rest = _affordable(questions, max_values)
        rest = rest[~np.isin(candidates.cell[rest], candidates.cell[tried])]
        reply, tried = reply.joined(questions.ask(rest[:, None])), np.concatenate([tried, rest])
    return Singles(tried, reply, n_cells, at_row)


def _places(candidates: Candidates, chosen: np.ndarray) -> set[Place]:
    """Return the attributes and sides of candidates."""
    return set(zip(candidates.owner[chosen].tolist(), candidates.sides[chosen].tolist(), strict=True))


def _affordable(questions: Questions, most: int) -> np.ndarray:
    """Return the candidates to try, at most ``most`` per attribute, and fewer if queries are scarce."""
    tried = _representatives(questions.candidates, most)
    while len(tried) > questions.left // 2 and most > 2:
        most = max(2, most // 2)
        tried = _representatives(questions.candidates, most)
    return tried[: max(0, questions.left - 1)]


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


def turning_singles(questions: Questions, singles: Singles, n: int) -> list[tuple[int, ...]]:
    """Return the candidates that turn: of every attribute and side the nearest, of categories all.

    Values between the nearest that turns and the next nearer one that was tried are tried, too, until none is left
    that could be among the ``n`` cheapest; with a price function, until none is left. Among realistic neighbors,
    those that turn are returned as they are, because nearness to the instance's own value does not decide.
    """
    candidates, turning = questions.candidates, singles.tried[singles.reply.reached]
    if candidates.is_realistic:
        return [(candidate,) for candidate in turning.tolist()]
    is_ordered = candidates.sides[turning] != 0
    best: dict[Place, int] = {}
    for candidate in turning[is_ordered][
        np.argsort(candidates.distances[turning[is_ordered]], kind="stable")
    ].tolist():
        best.setdefault((int(candidates.owner[candidate]), int(candidates.sides[candidate])), candidate)
    seen, others = set(candidates.cell[singles.tried].tolist()), turning[~is_ordered]
    while len(gaps := _gaps(questions, best, others, seen, n)):
        tried = {place: candidates.spread(gap, FEW if len(gap) > 2 * FEW else len(gap)) for place, gap in gaps}
        asked = np.concatenate(list(tried.values()))[: max(0, questions.left)]
        if not len(asked):
            break
        seen.update(candidates.cell[asked].tolist())
        turned = set(asked[questions.ask(asked[:, None]).reached].tolist())
        for place, own in tried.items():
            best[place] = next((each for each in own.tolist() if each in turned), best[place])
    return [(candidate,) for candidate in (*best.values(), *others.tolist())]


def _gaps(
    questions: Questions, best: dict[Place, int], others: np.ndarray, seen: set[int], n: int
) -> list[tuple[Place, np.ndarray]]:
    """Return the values right before the nearest one that turns that were not tried, where they may matter."""
    candidates = questions.candidates
    gaps = [(place, _gap(candidates, candidate, seen)) for place, candidate in best.items()]
    gaps = [(place, gap) for place, gap in gaps if len(gap)]
    if candidates.price is not None or not gaps:
        return gaps
    rest = np.unique(candidates.owner[others], return_index=True)[1]  # one per attribute; all have one distance
    costs = np.sort(candidates.cost(np.append(list(best.values()), others[rest]).astype(np.intp)[:, None]))
    limit = costs[n - 1] if len(costs) >= n else np.inf
    return [(place, gap) for place, gap in gaps if candidates.cost(gap[:1, None])[0] < limit]


def _gap(candidates: Candidates, candidate: int, seen: set[int]) -> np.ndarray:
    """Return the distinguishable candidates that were skipped right before this one, nearest first."""
    nearer = candidates.nearer(candidate)
    known = np.flatnonzero([cell in seen for cell in candidates.cell[nearer].tolist()])
    return candidates.distinct(nearer[int(known[-1]) + 1 :] if len(known) else nearer)
