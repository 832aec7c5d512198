r"""Boxes: which facts keep a decision, how often, and for how many rows.

A rule states one fact about each of some attributes A. While it holds, these attributes take the values of random
pool rows for which the facts are true, and all others follow the law. One sample of neighbors z serves every rule:
let :math:`w(z)` be the weight of z under the law, and :math:`r_a(z)` the chance of its value of attribute a in the
pool, divided by that under the law. Then

.. math:: \text{holds}(A, B) = \frac{\sum_z w(z) \prod_{a \in A} r_a(z)\,[z \in B]\,[z \text{ stays}]}
                                    {\sum_z w(z) \prod_{a \in A} r_a(z)\,[z \in B]}

A second share is that of the law's own neighbors in the box, without the factors :math:`r_a`; a rule must hold in
both. For drawn neighbors it is known whether an attribute was replaced, with probability q under the law, and
:math:`r_a` is 1/q if it was and 0 if not: a neighbor whose attributes A were all replaced by values in the box
*is* a neighbor with these facts. Facts are ranges of cells, so that sums over a table of the cells of two
attributes give all pairs of their facts at once.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise, product

import numpy as np

from anchorline.facts import Candidates

MOST_STEPS = 6000  # pairs of attributes whose facts are compared at once, before a search is no longer complete
MOST_GROWN = 4000  # the same, before no further attributes are added to a rule
_WIDTH = 4  # sets of attributes that are extended by one more
_ROUNDS = 4  # of steps over all pairs of a set
_CERTAIN = 1 - 1e-9  # stands for 1, so that the score is defined
_ROUNDING = 1e-12

Value = tuple[bool, float, float, float]
"""Whether the goal is reached; then coverage, width and share; otherwise progress, coverage and width."""


@dataclass(frozen=True, slots=True)
class Goal:
    r"""What a box must reach: a share ``target``, or None for the largest share; ``margin`` in standard errors.

    With g neighbors that keep the decision and b that do not, the target :math:`\tau` is reached if the score

    .. math:: \frac{(1 - \tau) g - \tau b}{\sqrt{\tau (1 - \tau) (g + b)}}

    is at least the margin: then Wilson's lower limit is at least the target. It grows with g and falls with b.
    Without a margin, as for all neighbors, the share itself is compared.
    """

    target: float | None
    margin: float = 0.0

    def score(self, kept: np.ndarray, lost: np.ndarray) -> np.ndarray:
        """Return the score; without a target, Wilson's lower limit of the share."""
        n = kept + lost
        some = np.maximum(n, _ROUNDING)
        if self.target is None:
            share, square = kept / some, self.margin**2
            middle = share + square / (2 * some)
            width = self.margin * np.sqrt(share * (1 - share) / some + square / (4 * some**2))
            return np.where(n > 0, (middle - width) / (1 + square / some), -1.0)
        target = min(self.target, _CERTAIN)
        if self.margin == 0:
            return np.where(n > 0, kept / some - target, -1.0)
        score = ((1 - target) * kept - target * lost) / np.sqrt(target * (1 - target) * some)
        return np.where(n > 0, score, -np.inf)

    def is_reached(self, scores: np.ndarray) -> np.ndarray:
        """Return for which scores the goal is reached; never, without a target."""
        if self.target is None:
            return np.zeros(np.shape(scores), dtype=bool)
        return np.asarray(scores >= self.margin - _ROUNDING)


@dataclass(frozen=True, eq=False)
class Draws:
    """Neighbors of one instance, and whether each keeps the decision.

    ``cells`` (views, n), ``stays`` (n,), ``weights`` (n,) and ``ratios`` (attributes, n) as above. Without ratios,
    these are neighbors with some facts, or of the law without a broken one (``are_of_law``), which decide among
    narrower facts. ``is_exact``: these are all neighbors, with their probabilities.
    """

    cells: np.ndarray
    stays: np.ndarray
    weights: np.ndarray
    ratios: np.ndarray | None = None
    are_of_law: bool = False
    is_exact: bool = False

    def counts(self, attributes: Sequence[int] | None = None) -> np.ndarray | None:
        """Return how much each neighbor counts if these attributes have facts, or (None) under the law, (n,).

        Weights of drawn neighbors are scaled so that their sum is the number of equally weighted neighbors that
        would be as informative. None if these neighbors say nothing about it.
        """
        weights = self.weights
        if self.ratios is None:
            return weights if self.are_of_law == (attributes is None) else None
        for attribute in attributes or ():
            weights = weights * self.ratios[attribute]
        squares = float(weights @ weights)
        return weights if self.is_exact or squares == 0 else weights * (float(weights.sum()) / squares)

    def joined(self, other: "Draws") -> "Draws":
        """Return two samples of many rules as one."""
        assert self.ratios is not None
        assert other.ratios is not None
        return Draws(
            np.hstack([self.cells, other.cells]),
            np.concatenate([self.stays, other.stays]),
            np.concatenate([self.weights, other.weights]),
            np.hstack([self.ratios, other.ratios]),
        )


@dataclass(frozen=True, eq=False)
class Boxes:
    """All rules about one instance, with the neighbors that decide among them.

    ``rows`` (views, m) are the cells of the table's rows, or None if there is no table. ``unbroken`` (facts,) is
    the probability that a neighbor of the law does not break each fact. Of rules that fewer than the share
    ``fewest`` of the law's neighbors break none of, the second share is not asked. ``check`` is called in every
    loop, and may raise to interrupt.
    """

    candidates: Candidates
    draws: Draws
    rows: np.ndarray | None
    unbroken: np.ndarray
    fewest: float
    check: Callable[[], object] | None = None

    @cached_property
    def facts(self) -> list[np.ndarray]:
        """The facts of every view."""
        candidates = self.candidates
        ends = candidates.views.searchsorted(np.arange(len(candidates.starts)))
        return [np.arange(first, last) for first, last in pairwise(ends.tolist())]

    @cached_property
    def shares(self) -> np.ndarray:
        """The share of the pool for which each fact is true, (facts,)."""
        ends = np.concatenate([[0.0], np.cumsum(self.candidates.shares)])
        return np.asarray(ends[self.candidates.last] - ends[self.candidates.first])

    @cached_property
    def views(self) -> list[int]:
        """The views with facts that some row of the pool meets."""
        return [view for view, facts in enumerate(self.facts) if len(facts) and self.shares[facts].max() > 0]

    def coverage(self, facts: Sequence[int]) -> float:
        """Return how many rows of the table have the facts; without a table, the share of all values."""
        if self.rows is None:
            return math.prod(float(self.shares[fact]) for fact in facts)
        return float(np.count_nonzero(~self.candidates.flips(self.rows, facts).any(axis=0)))

    def about(
        self, views: Sequence[int], more: Sequence[Draws] = (), outer: Sequence[int] | None = None
    ) -> "Attributes":
        """Return the rules about the attributes of these views, with ``more`` neighbors that have the outer facts.

        With ``outer`` facts, one per view, only rules whose facts are within them.
        """
        return Attributes(self, tuple(views), (self.draws, *more), None if outer is None else tuple(outer))


@dataclass(frozen=True, slots=True)
class Box:
    """A rule: its facts (candidates), its value, the rows it covers, and counts of neighbors: kept, and in all."""

    facts: tuple[int, ...]
    value: Value
    covered: float
    kept: float
    n: float

    @property
    def is_reached(self) -> bool:
        """Whether it reaches the goal."""
        return self.value[0]


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """Neighbors of one kind: cells (views, n), counted from the first of each view, and counts (n,) of each."""

    cells: np.ndarray
    kept: np.ndarray
    lost: np.ndarray


@dataclass(eq=False)
class Attributes:
    """The rules about given attributes, one view of each; a *box* here is one place in each list of facts."""

    boxes: Boxes
    views: tuple[int, ...]
    parts: tuple[Draws, ...]
    outer: tuple[int, ...] | None
    n_steps: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        candidates, starts = self.boxes.candidates, self.boxes.candidates.starts
        attributes = candidates.attributes[list(self.views)].tolist()
        self.facts = [self.boxes.facts[view] for view in self.views]
        if self.outer is not None:
            first, last = candidates.first, candidates.last
            self.facts = [
                own[(first[own] >= first[limit]) & (last[own] <= last[limit])]
                for own, limit in zip(self.facts, self.outer, strict=True)
            ]
        ends = [self._ends(own) for own in self.facts]
        self._first, self._last = [low for low, _ in ends], [high for _, high in ends]
        self._samples = [self._sample(attributes), self._sample(None)]
        rows = self.boxes.rows
        self._rows = None if rows is None else rows[list(self.views)] - starts[list(self.views), None]
        self._shares = [self.boxes.shares[own] for own in self.facts]
        self._unbroken = [self.boxes.unbroken[own] for own in self.facts]
        self._sizes = np.diff(starts)[list(self.views)].tolist()

    def _sample(self, attributes: Sequence[int] | None) -> "_Sample":
        """Return the neighbors with facts about these attributes, or of the law (None), within the outer facts."""
        starts = self.boxes.candidates.starts[list(self.views), None]
        cells, kept, lost = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
        for part in self.parts:
            counts = part.counts(attributes)
            if counts is None:
                continue
            some, own = counts > 0, part.cells[list(self.views)] - starts
            if self.outer is not None:
                low, high = self._ends(self.outer)
                some = some & ((own >= low[:, None]) & (own < high[:, None])).all(axis=0)
            cells.append(own[:, some])
            kept.append(np.where(part.stays, counts, 0.0)[some])
            lost.append(np.where(part.stays, 0.0, counts)[some])
        return _Sample(np.hstack(cells), np.concatenate(kept), np.concatenate(lost))

    def _ends(self, facts: Sequence[int] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the cells of facts, counted from the first of their views."""
        candidates, facts = self.boxes.candidates, np.asarray(facts, dtype=np.intp)
        start = candidates.starts[candidates.views[facts]]
        return candidates.first[facts] - start, candidates.last[facts] - start

    def ascend(self, goal: Goal, start: Sequence[int] | None = None) -> Box:
        """Improve a box, by default the widest, two attributes at a time, until nothing improves it.

        ``start`` are facts (candidates).
        """
        box = [int(shares.argmax()) for shares in self._shares]
        if start is not None:
            box = [int(np.flatnonzero(own == fact)[0]) for own, fact in zip(self.facts, start, strict=True)]
        pairs: list[tuple[int, int | None]] = [*combinations(range(len(box)), 2)] or [(0, None)]
        best, done = self._step(goal, box, *pairs[0]), pairs[0]
        for _ in range(_ROUNDS):
            improved = False
            for pair in pairs:
                if pair != done:
                    found = self._step(goal, best[0], *pair)
                    if found[1].value > best[1].value:
                        best, done, improved = found, pair, True
            if not improved:
                break
        return best[1]

    def complete(self, goal: Goal, best: Box | None, most: int) -> tuple[Box | None, bool]:
        """Return the best box of all, or ``best`` if none is better, and whether all were compared.

        All facts of the attributes but two are combined, and all pairs of facts of these two compared at once.
        What cannot cover as much as the best, or cannot reach the goal even if it loses only neighbors in the
        row's own cells, is left out.
        """
        inner = sorted(range(len(self.views)), key=lambda i: -len(self.facts[i]))[:2]
        outer = [i for i in range(len(self.views)) if i not in inner]
        pair = (inner[0], inner[1] if len(inner) > 1 else None)
        order = [np.argsort(-self._shares[i], kind="stable").tolist() for i in outer]
        for chosen in product(*order):
            if self.boxes.check is not None:
                self.boxes.check()
            if self.n_steps >= most:
                return best, False
            box = [0] * len(self.views)
            for i, place in zip(outer, chosen, strict=True):
                box[i] = place
            if best is not None and not self._may_improve(goal, box, outer, inner, best):
                self.n_steps += 1
                continue
            found = self._step(goal, box, *pair)[1]
            if best is None or found.value > best.value:
                best = found
        return best, True

    def _may_improve(
        self, goal: Goal, box: Sequence[int], outer: Sequence[int], inner: Sequence[int], best: Box
    ) -> bool:
        if goal.target is None or not best.is_reached:
            return True
        if self._rows is not None and np.count_nonzero(self._inside(self._rows, box, outer)) < best.value[1]:
            return False
        inside = self._inside(self._samples[0].cells, box, outer)
        candidates, sample = self.boxes.candidates, self._samples[0]
        own = [int(candidates.own[self.views[i]] - candidates.starts[self.views[i]]) for i in inner]
        always = inside & (sample.cells[list(inner)] == np.array(own)[:, None]).all(axis=0)
        most, least = sample.kept[inside].sum(), sample.lost[always].sum()
        return bool(goal.is_reached(goal.score(np.array(most), np.array(least))))

    def _inside(self, cells: np.ndarray, box: Sequence[int], fixed: Sequence[int]) -> np.ndarray:
        """Return which neighbors or rows, by their cells (views, n), have the facts of some of the attributes."""
        inside = np.ones(cells.shape[1], dtype=bool)
        for i in fixed:
            inside &= (cells[i] >= self._first[i][box[i]]) & (cells[i] < self._last[i][box[i]])
        return inside

    def _step(self, goal: Goal, box: Sequence[int], i: int, j: int | None) -> tuple[list[int], Box]:
        """Return the best box with any facts of attributes i and j, and the given ones of all others."""
        self.n_steps += 1
        if self.boxes.check is not None:
            self.boxes.check()
        fixed = [each for each in range(len(self.views)) if each not in (i, j)]
        width, unbroken = (
            math.prod(float(each[k][box[k]]) for k in fixed) * (each[i][:, None] * (1.0 if j is None else each[j]))
            for each in (self._shares, self._unbroken)
        )
        covered = width
        if self._rows is not None:
            rows = self._inside(self._rows, box, fixed)
            covered = self._sums(self._rows[:, rows], i, j, None)
        (kept, lost), of_law = (self._counted(sample, box, fixed, i, j) for sample in self._samples)
        asks_law = unbroken >= self.boxes.fewest
        scores = goal.score(kept, lost)
        scores = np.where(asks_law, np.minimum(scores, goal.score(*of_law)), scores)
        reached = goal.is_reached(scores)
        n = kept + lost
        share = kept / np.maximum(n, _ROUNDING)
        if reached.any():
            place, is_reached = _best(reached, covered, width, share), True
        else:
            place, is_reached = _best(np.ones(scores.shape, dtype=bool), scores, covered, width), False
        keys = (covered, width, share) if is_reached else (scores, covered, width)
        value: Value = (is_reached, *(float(key[place]) for key in keys))  # type: ignore[assignment]
        new = list(box)
        new[i] = int(place[0])
        if j is not None:
            new[j] = int(place[1])
        facts = tuple(int(own[at]) for own, at in zip(self.facts, new, strict=True))
        return new, Box(facts, value, float(covered[place]), float(kept[place]), float(n[place]))

    def _counted(
        self, sample: "_Sample", box: Sequence[int], fixed: Sequence[int], i: int, j: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return how many neighbors of a sample keep the decision, and how many lose it, for all facts of i, j."""
        inside = self._inside(sample.cells, box, fixed)
        cells, nothing = sample.cells[:, inside], _ROUNDING * float((sample.kept + sample.lost).sum())
        kept, lost = (self._sums(cells, i, j, counts[inside]) for counts in (sample.kept, sample.lost))
        return np.where(kept > nothing, kept, 0.0), np.where(lost > nothing, lost, 0.0)  # differences are rounded

    def _sums(self, cells: np.ndarray, i: int, j: int | None, counts: np.ndarray | None) -> np.ndarray:
        """Return sums of counts over all facts of attribute i, (facts,  1), or of i and j, (facts, facts)."""
        n_i, n_j = self._sizes[i], 1 if j is None else self._sizes[j]
        places = cells[i] if j is None else cells[i] * n_j + cells[j]
        table = np.bincount(places, counts, minlength=n_i * n_j).reshape(n_i, n_j)
        until = np.zeros((n_i + 1, n_j))
        np.cumsum(table, axis=0, out=until[1:])
        of_i = until[self._last[i]] - until[self._first[i]]
        if j is None:
            return np.asarray(of_i)
        until = np.zeros((len(of_i), n_j + 1))
        np.cumsum(of_i, axis=1, out=until[:, 1:])
        return np.asarray(until[:, self._last[j]] - until[:, self._first[j]])


def _best(allowed: np.ndarray, *keys: np.ndarray) -> tuple[int, ...]:
    """Return the place that is largest in the first key; of several such places, in the next one."""
    for key in keys:
        largest = key[allowed].max()
        allowed = allowed & (key >= largest)
    return tuple(int(each) for each in np.unravel_index(int(allowed.argmax()), allowed.shape))


def best_rule(boxes: Boxes, k: int, goal: Goal, most: int = MOST_STEPS) -> tuple[Box | None, bool, int]:
    """Return the best rule of at most k facts by comparing all of them, whether all were, and how many steps.

    The fewest facts that reach the goal, then the largest coverage, then the widest facts, then the largest share.
    Without a target, the largest share, then the fewest facts. If none reaches the goal, that with the best score.
    """
    best, n_steps = None, 0
    for m in range(1, k + 1):
        for views in sets_of(boxes.views, boxes.candidates.attributes, m):
            attributes = boxes.about(views)
            if (best is not None and len(best.facts) == m and not best.is_reached) or best is None:
                seed = attributes.ascend(goal)
                best = seed if best is None or seed.value > best.value else best
            found, is_complete = attributes.complete(goal, best, most - n_steps)
            n_steps += attributes.n_steps
            if found is not None and (best is None or found.value > best.value):
                best = found
            if not is_complete:
                return best, False, n_steps
        if best is not None and best.is_reached:
            break
    return best, True, n_steps


def sets_of(views: Sequence[int], attributes: np.ndarray, m: int) -> Iterator[tuple[int, ...]]:
    """Yield all sets of m views of different attributes, without a look at those that share one.

    A group of 40 columns alone has 10^11 sets of 20 views.
    """
    if m == 0:
        yield ()
    for place, view in enumerate(views if m else ()):
        others = [each for each in views[place + 1 :] if attributes[each] != attributes[view]]
        if len({*attributes[others].tolist()}) >= m - 1:
            yield from ((view, *rest) for rest in sets_of(others, attributes, m - 1))


def grow_rules(
    boxes: Boxes, views: Sequence[int], k: int, goal: Goal, most: int = MOST_GROWN
) -> Iterator[list[tuple[tuple[int, ...], Box]]]:
    """Yield the rules of one fact, of two, and so on up to k, the best first, with the views they are about.

    All pairs of the given views are compared; then the best few sets are extended by each further view. After
    ``most`` steps nothing is extended any more.
    """
    level: dict[tuple[int, ...], Box] = {}
    n_steps = 0
    for m in range(1, k + 1):
        ranked = sorted(level, key=lambda views: level[views].value, reverse=True)
        starts = _extensions(boxes, {each: level[each] for each in ranked[: None if m == 2 else _WIDTH]}, views)
        level = {}
        for new, start in starts if m > 1 else [((view,), None) for view in views]:
            if n_steps >= most:
                break
            if new not in level:
                attributes = boxes.about(new)
                level[new] = attributes.ascend(goal, start)
                n_steps += attributes.n_steps
        if not level:
            return
        yield sorted(level.items(), key=lambda item: item[1].value, reverse=True)


def _extensions(
    boxes: Boxes, level: Mapping[tuple[int, ...], Box], views: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], list[int] | None]]:
    """Yield sets of views with one more view, and facts to start from: the known ones, and the widest new one."""
    owners = boxes.candidates.attributes
    for chosen, box in level.items():
        for view in views:
            if owners[view] not in owners[list(chosen)]:
                facts, own = dict(zip(chosen, box.facts, strict=True)), boxes.facts[view]
                facts[view] = int(own[boxes.shares[own].argmax()])
                new = tuple(sorted((*chosen, view)))
                yield new, [facts[each] for each in new]
