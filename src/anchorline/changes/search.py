"""The search for changes, level by level: one fact, two facts, and so on, until enough changes turn.

Single facts: a few values per attribute, all if these do not suffice, and then the nearest that turn. Several
facts: all combinations of the values tried, or the most promising first; each that turns is then made smaller.
Whole training rows: those that differ least from the instance, in that order.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anchorline.changes.candidates import Candidates, Change, ChangeableRow, padded
from anchorline.changes.questions import ChangeQuestions, Reply
from anchorline.changes.realism import Nearby
from anchorline.changes.result import Level
from anchorline.errors import ParameterError

FEW = 16  # values per attribute that are tried first, and per gap between two of them
MORE = 1024  # queries per level to find more changes, once one is found
_ORDERED = 256  # changes whose nearness to training rows is compared
_SHARE = 0.6  # of the queries that are left, for the combinations of one level
_MOST_AT_ONCE = 2_000_000  # combinations held in memory
_PER_QUERY = 32  # combinations that are compared per query, from which the most promising are taken
_FIRST_BATCH = 256  # combinations or rows of the first call; doubled from call to call
_ROUNDS = 2  # in which the facts of a change are moved towards the instance's own values
_NOT_ALLOWED = -2

Place = tuple[int, int]
"""An attribute and one side of the instance's own value."""


@dataclass(frozen=True, slots=True)
class Search:
    """The changes that turn, fewest facts first and then cheapest first, and what was tried at every level."""

    found: tuple[Change, ...]
    levels: tuple[Level, ...]


def search_values(questions: ChangeQuestions, n: int, k: int, max_values: int) -> Search:
    """Find changes to any training values, at most one per set of attributes, or per side of a single one.

    No change contains another one's attributes. The search stops after the level with which ``n`` are found.
    """
    candidates, ranking = questions.candidates, Ranking(questions, n)
    owner, n_cells = candidates.owner, sum(map(len, _sides(candidates)))
    tried, reply, at_row = _try_singles(questions, n, max_values)
    found = _turning_singles(questions, tried[reply.reached], n)
    levels = [Level(1, len(questions.alone), len(questions.alone), n_cells)]
    alone = np.append(owner[tried[reply.reached]], owner[[each[0] for each in found]])
    never = ~np.isin(owner[tried], alone)
    base = before = _Tried(tried[never, None], reply.margins[never], is_complete=True)
    attributes, turned = np.unique(owner[tried[never]]).tolist(), list[frozenset[int]]()
    for n_facts in range(2, k + 1):
        wanted = n - len(ranking.best(found))
        if wanted <= 0 or not len(before.chosen):
            break
        budget = int(_SHARE * questions.left)
        before, turning, n_tried, n_grid = _try_combinations(
            questions,
            base,
            before,
            turned,
            wanted=min(wanted, math.comb(len(attributes), n_facts)),
            budget=min(MORE, budget) if found else budget,
            prediction_margin=at_row,
        )
        if not n_grid:
            break
        n_total = n_grid
        if len(tried) != n_cells:
            sizes = [len(np.unique(candidates.cell[owner == a])) for a in attributes]
            n_total = max(n_grid, count_combinations(sizes, n_facts))
        levels.append(Level(n_facts, n_tried, n_grid, n_total))
        chosen = ranking.cheapest(turning, wanted)
        turned += [candidates.attributes_of(each) for each in chosen]
        found += [_refined(questions, each) for each in chosen]
    return Search(ranking.best(found), tuple(levels))


class Ranking:
    """The order of changes: fewest facts first, then cheapest, then nearest to a training row; ``n`` are wanted.

    In a table of realistic neighbors, nearness to training rows comes before the cost.
    """

    def __init__(self, questions: ChangeQuestions, n: int) -> None:
        self.candidates, self.n, self.check = questions.candidates, n, questions.check
        self.nearby = Nearby.of(questions.candidates)

    def order(self, changes: Sequence[Change]) -> list[Change]:
        """Return the changes in order."""
        costs = (
            self.candidates.cost(padded([np.array([each], dtype=np.intp) for each in changes])).round(12).tolist()
        )
        ranks = []
        for each, cost in zip(changes, costs, strict=True):
            self.check()
            apart = 0.0 if self.nearby is None else round(self.nearby.distance(each), 12)
            key = (apart, cost) if self.candidates.case.is_realistic else (cost, apart)
            ranks.append((len(each), key, each))
        return [change for _, _, change in sorted(ranks)]

    def best(self, found: Sequence[Change]) -> tuple[Change, ...]:
        """Return the first ``n`` changes, of which none contains another one's facts."""
        kept = list[Change]()
        for each in self.order(list({tuple(sorted(each)) for each in found})):
            self.check()
            if len(kept) < self.n and not any(self._covers(other, each) for other in kept):
                kept.append(each)
        return tuple(kept)

    def _covers(self, other: Change, each: Change) -> bool:
        """Return whether a change is like one that comes before it: of the same side, or with more facts."""
        owner, sides = self.candidates.owner, self.candidates.sides
        if len(each) == len(other) == 1:
            return bool(owner[each[0]] == owner[other[0]] and sides[each[0]] == sides[other[0]])
        return self.candidates.attributes_of(other) <= self.candidates.attributes_of(each)

    def cheapest(self, turning: np.ndarray, wanted: int) -> list[Change]:
        """Return the cheapest change (s,) of turning ones (n, s) per set of attributes, at most ``wanted``."""
        cheapest = turning[np.argsort(self.candidates.cost(turning), kind="stable")]
        rows: list[Change] = list(map(tuple, cheapest.tolist()))
        if self.candidates.case.is_realistic:
            rows = self.order(rows[:_ORDERED])
        best: dict[frozenset[int], Change] = {}
        for row in rows:
            best.setdefault(self.candidates.attributes_of(row), row)
        return list(best.values())[:wanted]


# Single facts


def _try_singles(questions: ChangeQuestions, n: int, max_values: int) -> tuple[np.ndarray, Reply, float]:
    """Try candidates alone: `FEW` per attribute, by quantiles of the training rows, and then up to ``max_values``.

    Return those tried, the replies, and the margin of the instance itself. If ``n`` of the few turn, on different
    sides or of different attributes, no more are tried: nothing has fewer facts than one. All are tried before it
    is said that no single fact turns.
    """
    candidates = questions.candidates
    tried = _affordable(questions, min(FEW, max_values))
    at_row, reply = questions.ask_with_instance(tried[:, None])
    turned = tried[reply.reached]
    if len({*zip(candidates.owner[turned].tolist(), candidates.sides[turned].tolist(), strict=True)}) < n:
        rest = _affordable(questions, max_values)
        rest = rest[~np.isin(candidates.cell[rest], candidates.cell[tried])]
        reply, tried = reply.joined(questions.ask(rest[:, None])), np.concatenate([tried, rest])
    return tried, reply, float(at_row.margins[0])


def _affordable(questions: ChangeQuestions, most: int) -> np.ndarray:
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


def _turning_singles(questions: ChangeQuestions, turning: np.ndarray, n: int) -> list[Change]:
    """Return the candidates that turn alone: of every attribute and side the nearest, of categories all.

    Values between the nearest that turns and the next nearer one that was tried are tried, too, until none is left
    that could be among the ``n`` cheapest; with a price function, until none is left. Among realistic neighbors,
    those that turn are returned as they are, because nearness to the instance's own value does not decide.
    """
    candidates = questions.candidates
    if candidates.case.is_realistic:
        return [(candidate,) for candidate in turning.tolist()]
    is_ordered = candidates.sides[turning] != 0
    ordered, others, best = turning[is_ordered], turning[~is_ordered], dict[Place, int]()
    for candidate in ordered[np.argsort(candidates.distances[ordered], kind="stable")].tolist():
        best.setdefault((int(candidates.owner[candidate]), int(candidates.sides[candidate])), candidate)
    while gaps := _gaps(questions, best, others, n):
        tried = {
            place: candidates.spread(gap, FEW if len(gap) > 2 * FEW else len(gap)) for place, gap in gaps.items()
        }
        asked = np.concatenate(list(tried.values()))[: max(0, questions.left)]
        if not len(asked):
            break
        turned = set(asked[questions.ask(asked[:, None]).reached].tolist())
        for place, own in tried.items():
            best[place] = next((each for each in own.tolist() if each in turned), best[place])
    return [(candidate,) for candidate in (*best.values(), *others.tolist())]


def _gaps(
    questions: ChangeQuestions, best: dict[Place, int], others: np.ndarray, n: int
) -> dict[Place, np.ndarray]:
    """Return the values right before the nearest one that turns that were not tried, where they may matter.

    They can be distinguished, and are sorted, nearest first.
    """
    candidates, gaps = questions.candidates, dict[Place, np.ndarray]()
    for place, candidate in best.items():
        nearer, _ = candidates.split(candidate)
        known = np.flatnonzero([(cell,) in questions.alone for cell in candidates.cell[nearer].tolist()])
        gap = candidates.distinct(nearer[int(known[-1]) + 1 :] if len(known) else nearer)
        if len(gap):
            gaps[place] = gap
    if candidates.price is not None or not gaps:
        return gaps
    rest = np.unique(candidates.owner[others], return_index=True)[1]  # one per attribute; all have one distance
    costs = np.sort(candidates.cost(np.append(list(best.values()), others[rest]).astype(np.intp)[:, None]))
    limit = costs[n - 1] if len(costs) >= n else np.inf
    return {place: gap for place, gap in gaps.items() if candidates.cost(gap[:1, None])[0] < limit}


# Several facts


@dataclass(frozen=True, slots=True, eq=False)
class _Tried:
    """Combinations (n, s) of candidates that did not turn, sorted by attribute, with their margins (n,)."""

    chosen: np.ndarray
    margins: np.ndarray
    is_complete: bool


def count_combinations(sizes: Sequence[int], n_facts: int) -> int:
    """Return the number of combinations of ``n_facts`` values of different attributes that have these sizes."""
    totals = [1] + [0] * n_facts
    for size in sizes:
        for k in range(n_facts, 0, -1):
            totals[k] += totals[k - 1] * size
    return totals[n_facts]


def _try_combinations(
    questions: ChangeQuestions,
    base: _Tried,
    before: _Tried,
    turned: Sequence[frozenset[int]],
    *,
    wanted: int,
    budget: int,
    prediction_margin: float,
) -> tuple[_Tried, np.ndarray, int, int]:
    """Extend the combinations ``before`` by the values of ``base``, and try them until enough sets turn.

    Return those that did not turn, those that did, the number tried, and the number of combinations there are. The
    most promising come first: margins are added up as if facts acted separately.
    """
    candidates = questions.candidates
    sizes = np.bincount(candidates.owner[base.chosen[:, 0]])
    n_grid = count_combinations(sizes.tolist(), before.chosen.shape[1] + 1)
    most = min(_MOST_AT_ONCE, _PER_QUERY * max(0, budget))
    everything = before.is_complete and n_grid <= most
    chosen, estimates = _extended(questions, base, before, prediction_margin, None if everything else most)
    kept = ~_contains(candidates.owner[chosen], turned)
    if everything:
        n_grid = int(kept.sum())
    chosen, estimates = chosen[kept], estimates[kept]
    order = np.argsort(-estimates, kind="stable")
    if not (len(estimates) and estimates.min() < estimates.max()):
        # Those of a model that answers labels are equal, and neighboring values are likely to give equal answers.
        order = _in_turn(candidates.owner[chosen], np.argsort((np.arange(len(order)) * 0.6180339887498949) % 1.0))
    order = order[: max(0, budget)]
    rest, turning, n_tried, sets = list[tuple[np.ndarray, np.ndarray]](), [], 0, set[bytes]()
    size, end = _FIRST_BATCH, len(order)
    while n_tried < end and len(sets) < wanted:
        batch = chosen[order[n_tried : min(n_tried + size, end)]]
        reply = questions.ask(batch)
        n_tried, size = n_tried + len(batch), min(2 * size, 4096)
        rest.append((batch[~reply.reached], reply.margins[~reply.reached]))
        turning.append(batch[reply.reached])
        if len(turning[-1]):
            end = end if sets else min(end, n_tried + MORE)
            sets |= {row.tobytes() for row in candidates.owner[turning[-1]]}
    none = np.zeros((0, before.chosen.shape[1] + 1), dtype=np.intp)
    tried = _Tried(
        np.concatenate([none, *(each for each, _ in rest)]),
        np.concatenate([np.zeros(0), *(margins for _, margins in rest)]),
        is_complete=everything and n_tried == len(chosen),
    )
    return tried, np.concatenate([none, *turning]), n_tried, n_grid


def _keys(rows: np.ndarray) -> np.ndarray:
    """Return a number per row of whole numbers that only equal rows share, (n,)."""
    base, width = int(rows.max(initial=0)) + 1, rows.shape[1]
    if base**width < 2**62:  # much faster than comparing rows
        return np.asarray(rows @ base ** np.arange(width))
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def _in_turn(owners: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return an order in which every set of attributes (n, s) has its turn: first the first of each."""
    group = np.unique(_keys(owners[order]), return_inverse=True)[1]
    by_group, sizes = np.argsort(group, kind="stable"), np.bincount(group)
    ranks = np.empty(len(group), dtype=np.intp)
    ranks[by_group] = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.asarray(order[np.argsort(ranks, kind="stable")])


def _extended(
    questions: ChangeQuestions, base: _Tried, before: _Tried, prediction_margin: float, most: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return combinations of one more fact, and the margins to expect if facts act separately.

    With ``most``, only about this many: the most promising before, by the most promising values.
    """
    owner = questions.candidates.owner
    gains = base.margins - prediction_margin
    if most is None:
        order = np.argsort(owner[base.chosen[:, 0]], kind="stable")
        values, gains = base.chosen[order, 0], gains[order]
        starts = np.searchsorted(owner[values], owner[before.chosen[:, -1]], side="right")
        lengths = len(values) - starts
        rows = np.repeat(np.arange(len(before.chosen)), lengths)
        first = np.repeat(np.cumsum(lengths) - lengths, lengths)
        added = np.arange(len(rows)) - first + starts[rows]
        return np.column_stack([before.chosen[rows], values[added]]), before.margins[rows] + gains[added]
    few = _in_turn(owner[base.chosen], np.argsort(-base.margins, kind="stable"))[: math.isqrt(most)]
    top = _in_turn(owner[before.chosen], np.argsort(-before.margins, kind="stable"))[: most // max(1, len(few))]
    rows, added = (grid.ravel() for grid in np.meshgrid(top, few, indexing="ij"))
    apart = (owner[before.chosen[rows]] != owner[base.chosen[added]]).all(axis=1)
    rows, added = rows[apart], added[apart]
    chosen = np.column_stack([before.chosen[rows], base.chosen[added]])
    estimates = before.margins[rows] + gains[added]
    chosen = np.take_along_axis(chosen, np.argsort(owner[chosen], axis=1, kind="stable"), axis=1)
    _, unique = np.unique(_keys(chosen), return_index=True)
    return chosen[unique], estimates[unique]


def _contains(owners: np.ndarray, sets: Sequence[frozenset[int]]) -> np.ndarray:
    """Return which rows of attributes (n, s) contain one of the sets, (n,)."""
    contains = np.zeros(len(owners), dtype=bool)
    for attributes in sets:
        contains |= np.all([(owners == a).any(axis=1) for a in attributes], axis=0)
    return contains


def _refined(questions: ChangeQuestions, chosen: Change) -> Change:
    """Return a change that turns, with facts dropped that are not needed, and values moved towards the instance's.

    The facts are moved one after another, in at most two rounds. In the end, no fact can be dropped. Among
    realistic neighbors, no value is moved, because values that go together may be far from the instance's.
    """
    for _ in range(0 if questions.candidates.case.is_realistic else _ROUNDS):
        before = chosen
        for candidate in before:
            chosen = _moved(questions, chosen, candidate)
        if chosen == before:
            return chosen
    while len(chosen) > 1 and questions.left >= len(chosen):
        shorter = [chosen[:i] + chosen[i + 1 :] for i in range(len(chosen))]
        reached = questions.ask(np.array(shorter, dtype=np.intp)).reached
        if not reached.any():
            break
        chosen = shorter[int(reached.argmax())]
    return chosen


def _moved(questions: ChangeQuestions, chosen: Change, candidate: int) -> Change:
    """Return the change with one fact dropped, or at the nearest value that turns among the values tried."""
    if candidate not in chosen:
        return chosen
    at, candidates, best = chosen.index(candidate), questions.candidates, candidate
    alone = len(chosen) == 1
    nearer = np.append(-1, candidates.distinct(candidates.split(candidate)[0]))[int(alone) :]  # -1 drops the fact
    while len(nearer):
        kept = candidates.spread(nearer[nearer >= 0], FEW if len(nearer) > 2 * FEW else len(nearer))
        tried = np.append(nearer[nearer < 0], kept)[: max(0, questions.left)]
        if not len(tried):
            break
        changed = np.tile(np.array(chosen, dtype=np.intp), (len(tried), 1))
        changed[:, at] = tried
        reached = questions.ask(changed).reached
        if not reached.any():
            last = int(np.flatnonzero(nearer == tried[-1])[0])
            nearer = nearer[last + 1 :] if len(tried) < len(nearer) else nearer[:0]
            continue
        first = int(reached.argmax())
        best = int(tried[first])
        since = 0 if first == 0 else int(np.flatnonzero(nearer == tried[first - 1])[0]) + 1
        nearer = nearer[since : int(np.flatnonzero(nearer == best)[0])]
    return tuple(best if each == candidate else each for each in chosen if each != candidate or best >= 0)


# Whole training rows


def search_rows(questions: ChangeQuestions, n: int, k: int | None) -> Search:
    """Find the training rows that turn the decision, as changes of at most ``k`` attributes, or of any number.

    Rows are asked about in the order in which they are returned: fewest differing attributes first, then cheapest.
    So the first that turns is proven to be the first of all. At most one row per set of attributes is returned.
    """
    candidates = questions.candidates
    rows = _differing(candidates)
    n_facts = (rows >= 0).sum(axis=1)
    most = len(candidates.case.choices) if k is None else k
    kept = (n_facts > 0) & (n_facts <= most)
    rows, n_facts = rows[kept], n_facts[kept]
    order = np.lexsort([candidates.cost(rows).round(12), n_facts])
    rows, n_facts = rows[order], n_facts[order]
    _, reply = questions.ask_with_instance(rows[:_FIRST_BATCH])
    n_tried, size, found = 0, 2 * _FIRST_BATCH, dict[bytes, Change]()
    while True:
        for row in rows[n_tried:][: len(reply.reached)][reply.reached]:
            found.setdefault((row >= 0).tobytes(), tuple(row[row >= 0].tolist()))
        n_tried += len(reply.reached)
        batch = rows[n_tried:][: max(0, min(size, questions.left))]
        if not len(batch) or len(found) >= n:
            break
        reply, size = questions.ask(batch), min(2 * size, 4096)
    counts = np.bincount(n_facts, minlength=2)
    tried = np.bincount(n_facts[:n_tried], minlength=len(counts))
    levels = [Level(s, int(tried[s]), int(counts[s]), int(counts[s])) for s in range(1, len(counts))]
    return Search(tuple(found.values())[:n], tuple(levels))


def _differing(candidates: Candidates) -> np.ndarray:
    """Return the training rows as changes (n, attributes), without copies; -1 where they are like the instance.

    Rows with a value that is not allowed, or missing where the instance's is not, are left out.
    """
    case = candidates.case
    if not isinstance(case, ChangeableRow):
        raise ParameterError("examples is 'rows', but there is no training table. Type examples='values'.")
    columns = []
    for a, (choice, values) in enumerate(zip(case.choices, case.values, strict=True)):
        lookup = np.full(len(values.rows) + 1, -1, dtype=np.intp)  # the last one is that of missing values
        lookup[values.ids[choice.rows]] = _NOT_ALLOWED
        lookup[-1] = -1 if case.is_missing(a) else _NOT_ALLOWED
        own = np.flatnonzero(candidates.owner == a)
        lookup[values.ids[candidates.rows[own]]] = own
        columns.append(lookup[values.ids])
    rows = np.column_stack(columns)
    rows = rows[(rows != _NOT_ALLOWED).all(axis=1)]
    return _without_copies(rows) if len(rows) else rows


def _without_copies(rows: np.ndarray) -> np.ndarray:
    """Return the distinct rows (n, attributes) of candidates or -1, sorted; by one number per row if it fits."""
    is_own = rows < 0
    lowest = np.where(is_own, rows.max(axis=0), rows).min(axis=0)  # the candidates of an attribute are contiguous
    digits = np.where(is_own, 0, rows - lowest + 1)
    sizes = digits.max(axis=0).astype(np.float64) + 1
    if np.prod(sizes) >= 2.0**53:  # beyond, products of floats are not exact
        return np.unique(rows, axis=0)
    strides = np.append(np.cumprod(sizes[:0:-1])[::-1], 1).astype(np.int64)  # the first attribute counts most
    return np.asarray(rows[np.unique(digits @ strides, return_index=True)[1]])
