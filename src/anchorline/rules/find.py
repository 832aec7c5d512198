r"""Finds a rule: attributes and facts together from one sample, refined where it matters, certified on fresh ones.

If all neighbors can be listed, every rule is compared, and the best is proven. Otherwise a sample in which the
attributes that matter are replaced often decides among rules of one fact, of two, and so on. The most promising
ones get neighbors of their own, within facts that are somewhat wider, and the facts are chosen again. What then
seems to reach the goal is tried on fresh neighbors. If it fails, these have shown where, and narrower facts are
tried; limits hold together over all tries.

One sample serves every rule. A rule of m facts needs neighbors whose m attributes were all replaced, which are
rare among those of the law: :math:`q^m`. So the attributes that matter keep their values with a smaller
probability r in the search, and each neighbor is weighted by the chance of its values under the law over that with
which they were drawn.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, islice, takewhile

import numpy as np

from anchorline.errors import ParameterError
from anchorline.guarantees.limits import Count, Pair
from anchorline.guarantees.measuring import FEWEST_UNBROKEN
from anchorline.optimize.boxes import Attributes, Box, Boxes, Draws, Goal, best_rule, grow_rules, sets_of
from anchorline.optimize.choose import best_sum
from anchorline.optimize.moments import cell_sums, range_sums
from anchorline.optimize.sums import Limits
from anchorline.result.explanation import Share
from anchorline.result.rule import RuleVerdict
from anchorline.rules.always import Prover, widest_always
from anchorline.search.case import Asked, Case
from anchorline.search.sources import moments_of

_LAW, _SEARCH, _REFINED = 1500, 4000, 1000  # neighbors: of the law, of the search, and within wider facts
_KEPT = 0.25  # the probability r; at most that of the law
_VIEWS = 8  # views that are combined
_TRIED = 3  # sets of attributes of each size that get neighbors of their own
_PROMISING = 0.5  # score that the facts of such a set must reach on the search's sample
_MARGIN = 1.0  # standard errors by which a rule must exceed the target on the sample
_ROOM = 0.3  # of the way from the target to 1: closer to the target, certifying takes too many neighbors
_PROOFS = 300  # sets of attributes for which the widest facts that always keep the decision are sought
_NEARLY = 0.99  # is searched for in place of 1, which no sample shows
_WIDER = 1.5  # times as many changes as the goal allows are allowed in the wider facts
_FIRST, _LARGEST = 300, 4000  # fresh neighbors of a stream in the first round, and in any
_LUCK = 2.0  # standard errors by which further neighbors may be better than those so far
_MEASURED = 2000  # neighbors of a stream if no share was asked for
_ROUNDING = 1e-12
_KEEPS = (RuleVerdict.HOLDS, RuleVerdict.ALWAYS)
_MOST_TRIES = 4  # rules that are tried on fresh neighbors, one after the other


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """What fresh neighbors say about a rule: with its facts, and of the law without a broken fact (or None).

    ``failures`` are those of the lower and upper limits; ``draws`` are the neighbors of both kinds.
    """

    drawn: Count
    law: Count | None
    failures: Pair
    target: float | None
    draws: tuple[Draws, ...] = ()

    @property
    def counts(self) -> list[Count]:
        """What `holds` is the smallest of."""
        return [self.drawn] if self.law is None else [self.drawn, self.law]

    @property
    def share(self) -> Share:
        """The smaller share, with limits for the smaller of both true shares."""
        smallest = min(self.counts, key=lambda count: count.value)
        low, high = self.limits()
        return Share(smallest.value, low, high, smallest.n, all(count.is_exact for count in self.counts))

    def limits(self, more: float = 0.0, luck: float = 0.0) -> Pair:
        """Return the limits of the smaller share, or those after ``more`` neighbors that are luckier."""
        both = [count.limits(self.failures, more, luck) for count in self.counts]
        return min(low for low, _ in both), min(high for _, high in both)

    @property
    def is_without_exception(self) -> bool:
        """Whether every neighbor kept the decision."""
        return all(count.value == 1 for count in self.counts)

    def proven(self) -> "Certificate":
        """Return the certificate of a rule that is proven to hold always."""
        exact = [Count(1.0, count.n, is_exact=True) for count in self.counts]
        return replace(self, drawn=exact[0], law=exact[1] if len(exact) > 1 else None)

    @property
    def verdict(self) -> RuleVerdict:
        """What the limits establish."""
        low, high = self.limits()
        if self.target is None:
            return RuleVerdict.MEASURED
        if all(count.is_exact for count in self.counts) and low >= 1 - _ROUNDING:
            return RuleVerdict.ALWAYS
        if low >= self.target - _ROUNDING:
            return RuleVerdict.HOLDS
        return RuleVerdict.FALLS_SHORT if high < self.target - _ROUNDING else RuleVerdict.UNDECIDED


@dataclass(frozen=True, eq=False)
class Found:
    """A rule that was found: facts (candidates), its certificate, the share of all neighbors, and the effort."""

    facts: tuple[int, ...]
    certificate: Certificate
    all: Count
    is_proven: bool
    source: str
    n_tried: int
    n_certified: int
    sample: Draws

    @property
    def verdict(self) -> RuleVerdict:
        """What is established about the rule."""
        return self.certificate.verdict


def find_rule(case: Case, target: float | None, trees: Callable[[], Prover | None] = lambda: None) -> Found:
    """Find the rule of an opened case: at most ``case.k`` facts that hold in the share ``target`` of neighbors.

    None as a target stands for the most that as many facts hold, and 1 for what is proven by listing all
    neighbors or by the model's ``trees``, which may be asked for what they prove.
    """
    listed = case.listed()
    if listed is not None:
        return _by_listing(case, _listed(case, *listed), target)
    search = _Search(case, target, trees)
    if target == 1 and search.prover is None:
        raise ParameterError(
            "holds is 1, which can be proven only for trees that can be read, or if there are few altered copies. "
            "Type holds=0.99."
        )
    return search.run()


def _by_listing(case: Case, draws: Draws, target: float | None) -> Found:
    """Compare all rules on all neighbors."""
    whole = Count.listed(draws.stays, draws.weights)
    failures = failures_of(case.settings.confidence, 0)
    alone = Found((), Certificate(whole, None, failures, target), whole, True, "listed", 0, 0, draws)
    if target is not None and whole.value >= target:
        return alone
    best, is_complete, n_tried = best_rule(_boxes(case, draws), case.k, Goal(target))
    if best is None:
        return alone
    unbroken = ~case.neighborhood.candidates.flips(draws.cells, best.facts).any(axis=0)
    drawn, law = Count(best.kept / best.n, len(draws.stays), is_exact=True), None
    if draws.weights[unbroken].sum() >= FEWEST_UNBROKEN:
        law = Count.listed(draws.stays[unbroken], draws.weights[unbroken])
    certificate = Certificate(drawn, law, failures, target)
    return Found(best.facts, certificate, whole, is_complete, "listed", n_tried, 1, draws)


class _Search:
    """The search by drawing neighbors, in order: what is known grows from step to step."""

    def __init__(self, case: Case, target: float | None, trees: Callable[[], Prover | None]) -> None:
        self.case, self.target, self.trees = case, target, trees
        most = self.case.n_left
        self.n_law, self.n_search, self.n_refined = (min(n, most * n // 16_000) for n in (_LAW, _SEARCH, _REFINED))
        room = None if target is None else min(target, _NEARLY) + (1 - min(target, _NEARLY)) * _ROOM
        self.goal = Goal(room, _MARGIN)
        self.wider = Goal(None if room is None else 1 - _WIDER * (1 - room), -_MARGIN)
        self.source = "drawn"
        self.n_tried = self.n_certified = 0
        self.best: tuple[tuple[int, ...], Certificate] | None = None
        self.all, self.law = Count(), Draws(np.zeros((0, 0)), np.zeros(0, dtype=bool), np.zeros(0))

    @cached_property
    def prover(self) -> Prover | None:
        """What the model's trees prove, asked for once; from then on the figures say that trees were read."""
        n_asked, found = self.case.n_asked, self.trees()
        if found is not None or self.case.n_asked > n_asked:
            self.source = "leaves"
        return found

    def run(self) -> Found:
        case = self.case
        everything, drops = self._whole()
        if everything.verdict in _KEEPS:
            return Found((), everything, self.all, False, self.source, 0, 0, self.law)
        boxes = _boxes(case, self.law)
        views = self._promising(boxes, drops)
        if case.neighborhood.is_product:
            attributes = sorted({int(boxes.candidates.attributes[view]) for view in views})
            more = _of_search(case, "rule/search", self.n_search, attributes)
        else:
            more, _ = _of_law(case, "rule/search", 0, self.n_search)
        boxes = replace(boxes, draws=self.law.joined(more))
        if self.target is None:
            self._most(boxes, views)
        elif self.target < 1 or not self._always(boxes, views):
            self._fewest(boxes, views)
        if self.target is not None and not self._is_certified and self._can_go_on():
            self._most(boxes, views)  # to say how often the decision stays at best
        facts, certificate = self.best or ((), everything)
        helps = self.target is None or self._is_certified or certificate.share.value > everything.share.value
        if not helps:
            facts, certificate = (), everything
        effort = self.n_tried, self.n_certified
        return Found(facts, certificate, self.all, False, self.source, *effort, boxes.draws)

    def _whole(self) -> tuple[Certificate, np.ndarray]:
        """Draw neighbors of the law until it is decided, or out of reach, that no facts are needed; with drops."""
        most, drops = self.case.n_left // 4, np.zeros(0)
        failures = failures_of_all(self.case.settings.confidence)
        for batch in count():
            size = min(max(self.n_law, self.all.n // 2), most - self.all.n)
            draws, asked = _of_law(self.case, "rule/law", batch, size)
            self.law = draws if batch == 0 else self.law.joined(draws)
            self.all, drops = self.all.added(draws.stays), np.append(drops, asked.drops)
            whole = Certificate(self.all, None, failures, self.target)
            if not _may_hold(whole, most - self.all.n):
                return self._proven((), whole), drops
        raise AssertionError  # the loop ends when no neighbors are left

    def _promising(self, boxes: Boxes, drops: np.ndarray) -> list[int]:
        """Return the views that are combined: those of the best sum first, then where one fact helps most."""
        case, candidates = self.case, boxes.candidates
        moments = moments_of(case, self.law.cells, drops)
        chosen = best_sum(moments, case.k, Limits(check=case.check)).facts
        views = list(dict.fromkeys(candidates.views[list(chosen)].tolist()))
        kept, n = np.zeros(candidates.n_cells), np.zeros(candidates.n_cells)
        for attribute in np.unique(candidates.attributes).tolist():
            if case.check is not None:
                case.check()
            own = np.flatnonzero(candidates.attributes == attribute)
            counts = self.law.counts([attribute])
            assert counts is not None  # of the law, with ratios
            n += cell_sums(candidates, self.law.cells, counts, own)
            kept += cell_sums(candidates, self.law.cells, np.where(self.law.stays, counts, 0.0), own)
        kept, n = range_sums(candidates, kept)[0], range_sums(candidates, n)[0]
        share = float(np.clip(self.law.stays.mean(), 1e-3, 1 - 1e-3))
        lifts = (kept - share * n) / np.sqrt(share * (1 - share) * np.maximum(n, 1.0))
        best = np.full(len(candidates.attributes), -np.inf)
        np.maximum.at(best, candidates.views, np.where(boxes.shares > 0, lifts, -np.inf))
        useful = {*boxes.views}
        ranked = [view for view in np.argsort(-best, kind="stable").tolist() if best[view] > -np.inf]
        return [view for view in dict.fromkeys([*views, *ranked]) if view in useful][: max(_VIEWS, case.k)]

    def _proven(self, facts: tuple[int, ...], certificate: Certificate) -> Certificate:
        """Return the certificate with what the model's trees prove, if no neighbor contradicts it."""
        if self.target is None or not certificate.is_without_exception:
            return certificate
        is_always = self.prover is not None and self.prover.is_always(facts)
        return certificate.proven() if is_always else certificate

    def _always(self, boxes: Boxes, views: Sequence[int]) -> bool:
        """Find the fewest facts with which the trees' decision always stays; return whether there are such."""
        assert self.prover is not None
        owners, facts_of = boxes.candidates.attributes, {view: boxes.facts[view] for view in views}
        for m in range(1, self.case.k + 1):
            level = []
            for chosen in islice(sets_of(views, owners, m), max(0, _PROOFS - self.n_tried)):
                self.n_tried += 1
                facts = widest_always(self.prover, facts_of, boxes.shares, chosen)
                level += [] if facts is None else [facts]
            if level:
                return self._certify(max(level, key=boxes.coverage)).verdict is RuleVerdict.ALWAYS
        return False

    def _fewest(self, boxes: Boxes, views: Sequence[int]) -> None:
        """Try rules of one fact, of two, and so on, until one is certified."""
        for level in grow_rules(boxes, views, self.case.k, self.goal):
            self.n_tried += len(level)
            promising = takewhile(
                lambda each: each[1].is_reached or each[1].value[1] >= _PROMISING, level[:_TRIED]
            )
            if self._is_decided(boxes, list(promising)):
                return

    def _is_decided(self, boxes: Boxes, sets: Sequence[tuple[tuple[int, ...], Box]]) -> bool:
        """Refine rules about some sets of attributes; return whether one is certified, or no more can be asked."""
        return any(self._refined(boxes, chosen, box) or not self._can_go_on() for chosen, box in sets)

    @property
    def _is_certified(self) -> bool:
        return self.best is not None and self.best[1].verdict in _KEEPS

    def _can_go_on(self) -> bool:
        return self.n_certified < _MOST_TRIES and self.case.n_left >= 2 * self.n_refined

    def _refined(self, boxes: Boxes, views: tuple[int, ...], box: Box) -> bool:
        """Choose the facts of these attributes again with neighbors of their own; return whether one is certified.

        Neighbors drawn within wider facts serve all facts within these; those that certify a rule that fails serve
        all narrower ones.
        """
        more: list[Draws] = []
        outer = self._outer(boxes.about(views), box)
        for batch in range(2):
            if not self._can_go_on():
                return False
            stream = f"rule/{'/'.join(map(str, views))}"
            more.append(_with_facts(self.case, stream, batch, self.n_refined, outer))
            inner = boxes.about(views, more, outer)
            box = inner.ascend(self.goal, outer)
            if box.is_reached:
                break
            outer = self._outer(inner, box)
        while box.is_reached and self._can_go_on():
            certificate = self._certify(box.facts)
            if certificate.verdict in _KEEPS:
                return True
            if not certificate.draws:
                return False
            more.extend(certificate.draws)
            box = boxes.about(views, more, box.facts).ascend(self.goal, box.facts)
        return False

    def _outer(self, attributes: Attributes, box: Box) -> tuple[int, ...]:
        """Return facts that contain those of a box, and of one that reaches less."""
        wide = attributes.ascend(self.wider, box.facts)
        candidates = attributes.boxes.candidates
        hull = []
        for view, own, other in zip(attributes.views, box.facts, wide.facts, strict=True):
            first = min(candidates.first[own], candidates.first[other])
            last = max(candidates.last[own], candidates.last[other])
            facts = attributes.boxes.facts[view]
            both = facts[(candidates.first[facts] == first) & (candidates.last[facts] == last)]
            hull.append(int(both[0]) if len(both) else own)  # true of all rows: not a fact
        return tuple(hull)

    def _certify(self, facts: tuple[int, ...]) -> Certificate:
        attempt, left = self.n_certified, self.case.n_left
        self.n_certified += 1
        most = left if attempt == _MOST_TRIES - 1 else left // 2
        found = _certified(self.case, facts, self.target, attempt, most, self._unbroken(facts))
        found = self._proven(facts, found)
        if self.best is None or self.target is None or _rank(found) > _rank(self.best[1]):
            self.best = facts, found
        return found

    def _unbroken(self, facts: tuple[int, ...]) -> float:
        """Return the share of the law's neighbors that break none of the facts."""
        case = self.case
        if case.neighborhood.is_product:
            broken = case.neighborhood.candidates.broken(case.replace_probability)
            return float(np.prod(1 - broken[list(facts)]))
        flips = case.neighborhood.candidates.flips(self.law.cells, facts)
        return float(np.mean(~flips.any(axis=0)))

    def _most(self, boxes: Boxes, views: Sequence[int]) -> None:
        """Measure the rule of at most k facts with the largest lower limit on the sample."""
        best: tuple[tuple[int, ...], Box] | None = None
        goal = Goal(None, _MARGIN)
        for level in grow_rules(boxes, views, self.case.k, goal):
            self.n_tried += len(level)
            if best is None or level[0][1].value > best[1].value:
                best = level[0]
        if best is None:
            return
        chosen, box = best
        more = [_with_facts(self.case, "rule/most", 0, self.n_refined, box.facts)]
        self._certify(boxes.about(chosen, more, box.facts).ascend(goal, box.facts).facts)


def _boxes(case: Case, draws: Draws) -> Boxes:
    neighborhood = case.neighborhood
    unbroken = 1 - neighborhood.candidates.broken(case.replace_probability)
    return Boxes(neighborhood.candidates, draws, neighborhood.row_cells(), unbroken, FEWEST_UNBROKEN, case.check)


def _rank(certificate: Certificate) -> tuple[bool, float]:
    return certificate.verdict in _KEEPS, certificate.share.low


# Certificates


def failures_of(confidence: float, attempt: int) -> Pair:
    """Return how probable it may be that the limits of one of two shares ever fail, in the given attempt.

    The first attempt has half of what is left beside the share of all neighbors, the next a quarter, and so on, so
    that all limits hold together, whichever rule is stated in the end.
    """
    unit = (1.0 - confidence) / 10 * 0.5 ** min(attempt + 1, _MOST_TRIES - 1)
    return 3 * unit, unit


def failures_of_all(confidence: float) -> Pair:
    """Return how probable it may be that the limits of the share of all neighbors fail."""
    return (1.0 - confidence) / 10, (1.0 - confidence) / 10


def _certified(
    case: Case, facts: Sequence[int], target: float | None, attempt: int, most: int, unbroken: float
) -> Certificate:
    """Draw neighbors, at most ``most``, until it is decided whether they keep the decision as often as asked.

    ``unbroken`` is the share of the law's neighbors that break none of the facts.
    """
    asks_law, failures = unbroken >= FEWEST_UNBROKEN, failures_of(case.settings.confidence, attempt)
    found = Certificate(Count(), Count() if asks_law else None, failures, target)
    draws, batch, stream = list[Draws](), 0, f"rule/{attempt}"
    while (sizes := _sizes(found, most)) != (0, 0):
        donors = case.draw(f"{stream}/facts", batch, sizes[0], facts)
        law = donors[:, :0]
        if sizes[1]:
            law = case.draw_unbroken(f"{stream}/law", batch, sizes[1], facts, unbroken)
        stays, n = case.ask(np.hstack([donors, law])).decisions, donors.shape[1]
        most -= stays.size
        drawn, of_law = stays[:n], stays[n:]
        draws.append(Draws(case.neighborhood.cells(donors), drawn, np.ones(n)))
        if len(of_law):
            draws.append(Draws(case.neighborhood.cells(law), of_law, np.ones(len(of_law)), are_of_law=True))
        more = found.law if found.law is None else found.law.added(of_law)
        found, batch = replace(found, drawn=found.drawn.added(drawn), law=more), batch + 1
    return replace(found, draws=tuple(draws))


def _may_hold(found: Certificate, most: int) -> bool:
    """Return whether it is open that a rule holds, and in reach with as many more neighbors."""
    if found.target is None or most <= 0:
        return False
    low, high = found.limits()
    return low < found.target <= min(high, found.limits(most / len(found.counts), _LUCK)[0])


def _sizes(found: Certificate, most: int) -> tuple[int, int]:
    """Return how many neighbors of each stream to ask about next; none if it is decided, or out of reach."""
    if found.drawn.n and not _may_hold(found, most):
        return 0, 0
    first, wanted = _MEASURED if found.target is None else _FIRST, []
    for stream in found.counts:
        is_open = found.target is None or stream.limits(found.failures)[0] < found.target
        wanted.append(min(_LARGEST, max(first, stream.n // 2)) if is_open else 0)
    if sum(wanted) > most:
        wanted = [size * max(most, 0) // sum(wanted) for size in wanted]
    return wanted[0], sum(wanted[1:])


# Neighbors


def _listed(case: Case, donors: np.ndarray, weights: np.ndarray) -> Draws:
    r"""Ask about all neighbors with their probabilities.

    The chance of a value in the pool is :math:`(p - (1 - q)[\text{own}]) / q` if it is p under the law.
    """
    q, chances = case.replace_probability, np.empty(donors.shape)
    cells = case.neighborhood.cells(donors)
    for values, own in zip(donors, chances, strict=True):
        _, numbers = np.unique(values, return_inverse=True)
        own[:] = np.bincount(numbers, weights)[numbers]
    own_donors = np.where((donors == -1).any(axis=1), -1, 1)[
        :, None
    ]  # of two-valued attributes, 1 is the own value
    ratios = np.clip((chances - (1 - q) * (donors == own_donors)) / (q * chances), 0.0, None)
    return Draws(cells, case.ask(donors).decisions, weights, ratios, is_exact=True)


def _of_law(case: Case, stream: str, batch: int, n: int) -> tuple[Draws, Asked]:
    """Draw n neighbors of the law."""
    donors = case.draw(stream, batch, n)
    asked, cells = case.ask(donors), case.neighborhood.cells(donors)
    ratios = np.ones(donors.shape)  # of neighbors that are not independent, those that break no fact decide
    if case.neighborhood.is_product:
        ratios = _ratios(case, donors >= 0, cells)
    return Draws(cells, asked.decisions, np.ones(n), ratios), asked


def _of_search(case: Case, stream: str, n: int, attributes: Sequence[int]) -> Draws:
    """Draw n neighbors of which the given attributes are replaced more often than under the law."""
    q = case.replace_probability
    kept, keep = min(_KEPT, 1 - q), np.full(len(case.neighborhood.names), 1 - q)
    keep[list(attributes)] = kept
    donors = case.neighborhood.draw(n, case.random(stream, 0), 1.0)
    is_kept = case.random(stream, 1).uniforms(*donors.shape) < keep[:, None]
    donors = np.where(is_kept, -1, donors)
    cells, weights = case.neighborhood.cells(donors), np.ones(n)
    shares, is_own = _own(case, cells)
    for a in attributes:
        if shares[a] >= 0:
            own = (q * shares[a] + 1 - q) / ((1 - kept) * shares[a] + kept) if shares[a] + kept > 0 else 0.0
            weights *= np.where(is_own[a], own, q / (1 - kept))
        else:
            weights *= np.where(is_kept[a], (1 - q) / kept if kept > 0 else 0.0, q / (1 - kept))
    return Draws(cells, case.ask(donors).decisions, weights, _ratios(case, ~is_kept, cells))


def _with_facts(case: Case, stream: str, batch: int, n: int, facts: Sequence[int]) -> Draws:
    """Draw n neighbors with these facts."""
    donors = case.draw(stream, batch, n, facts)
    return Draws(case.neighborhood.cells(donors), case.ask(donors).decisions, np.ones(n))


def _ratios(case: Case, is_replaced: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Return the chance of values in the pool over that under the law, (attributes, n).

    It is 1/q of a replaced value and 0 of a kept one. Where values equal to the own one are known, whether they
    were drawn or kept does not matter: :math:`s / (q s + 1 - q)` for a share s of the pool.
    """
    q = case.replace_probability
    shares, is_own = _own(case, cells)
    own = np.where(shares >= 0, shares / np.maximum(q * shares + 1 - q, 1e-12), 0.0)
    is_new = np.where((shares >= 0)[:, None], ~is_own, is_replaced)
    return np.where(is_new, 1 / q, own[:, None])


def _own(case: Case, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of the pool with the own value per attribute, -1 if unknown, and where it occurs."""
    neighborhood, candidates, n = case.neighborhood, case.neighborhood.candidates, len(case.neighborhood.names)
    shares, is_own = np.full(n, -1.0), np.zeros((n, cells.shape[1]), dtype=bool)
    known = neighborhood.is_own_value[candidates.attributes]
    attributes = candidates.attributes[known]
    shares[attributes] = candidates.shares[candidates.own[known]]
    is_own[attributes] = cells[known] == candidates.own[known, None]
    return shares, is_own
