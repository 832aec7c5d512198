"""Where the moments of a search come from, and how the sum that it finds is measured.

A `Source` draws neighbors, lists all of them, or reads the leaves of trees. All three end in a choice of facts.
A sum is measured on fresh neighbors, never those of the search, in rounds, until the verdict is decided or the
queries end; where all neighbors are listed, they measure without error.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from anchorline.guarantees.measuring import Measurement, Round
from anchorline.optimize.choose import best_sum, lead
from anchorline.optimize.moments import Moments, adjusted, exact, sampled
from anchorline.optimize.sums import Limits, Solution, Status
from anchorline.search.case import Asked, Case

FIRST_SEARCH = 2000  # then the winner's curse of contributions is below 1%
MOST_SEARCH = 8000
_STEP = 1000
_LEAD = 0.5  # standard errors: a closer race hardly matters to the fit, and takes many queries to decide

Choose = Callable[[Moments, int, Limits], Solution]  # which sum of at most k facts is stated
LeafMoments = Callable[[], tuple[np.ndarray, float, float]]  # cell drops, mean and variance


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """What the search found: the sum, its moments, and how many neighbors it asked about.

    ``asked`` are the answers; about drawn neighbors without their donors, which are large.
    """

    solution: Solution
    moments: Moments
    n_asked: int
    asked: Asked | None = None


class Source(ABC):
    """Where the moments of a case come from; by default, its sum is measured on fresh neighbors."""

    name: ClassVar[str]
    n_shared: int = 0  # neighbors of the search that measure, too

    def __init__(self, case: Case) -> None:
        self.case = case
        self.limits = Limits(time_limit=case.settings.time_limit, check=case.check)

    @abstractmethod
    def search(self, choose: Choose = best_sum) -> Search:
        """Return the sum of at most k facts that is chosen."""

    def measure(self, search: Search, spread: float | None) -> Measurement:
        """Return what fresh neighbors say about a sum; ``spread`` is that of outputs on the table."""
        case, batch = self.case, 0
        facts, effects = search.solution.facts, np.asarray(search.solution.effects)
        measured = begin(case, effects, search.moments.b[list(facts)], spread)
        if search.asked is not None:
            measured = measured.with_searched(search.asked.stays, search.asked.drops)
        while (asked := measured.next_round(case.n_left)).total:
            if case.check is not None:
                case.check()
            measured, batch = ask_round(case, measured, asked, batch, facts, effects), batch + 1
        return measured


class Leaves(Source):
    """The leaves of trees, which the model's answers are sums of: moments without error, and no queries."""

    name = "leaves"

    def __init__(self, case: Case, moments: LeafMoments) -> None:
        super().__init__(case)
        self._moments = moments

    def search(self, choose: Choose = best_sum) -> Search:
        """Choose by exact moments."""
        candidates = self.case.neighborhood.candidates
        moments = exact(candidates, candidates.chances(self.case.replace_probability), *self._moments())
        return Search(choose(moments, self.case.k, self.limits), moments, self.case.n_asked)


class Listed(Source):
    """All neighbors with their probabilities, which the model is asked about once."""

    name = "listed"

    def __init__(self, case: Case, donors: np.ndarray, weights: np.ndarray) -> None:
        super().__init__(case)
        self.donors, self.weights, self.n_shared = donors, weights, len(weights)

    def search(self, choose: Choose = best_sum) -> Search:
        """Choose by exact moments, counted over all neighbors."""
        case, weights = self.case, self.weights
        asked = case.ask(self.donors, weights)
        candidates, mean = case.neighborhood.candidates, float(weights @ asked.drops)
        cell_drops = np.zeros(candidates.n_cells)
        for cells in case.neighborhood.cells(self.donors):
            np.add.at(cell_drops, cells, weights * asked.drops)
        chances, variance = (
            candidates.chances(case.replace_probability),
            float(weights @ (asked.drops - mean) ** 2),
        )
        moments = exact(candidates, chances, cell_drops, mean, variance)
        return Search(choose(moments, case.k, self.limits), moments, len(weights), asked)

    def measure(self, search: Search, spread: float | None) -> Measurement:
        """Measure without error: all neighbors were listed, and those with the facts are listed, too."""
        case, facts, effects = self.case, search.solution.facts, np.asarray(search.solution.effects)
        assert search.asked is not None  # all of them
        measured = begin(case, effects, search.moments.b[list(facts)], spread)
        measured = _with_law(case, search.asked, measured, facts, effects)
        if measured.is_number or not facts:
            return measured
        inside = case.neighborhood.listed(case.replace_probability, len(self.weights), facts)
        assert inside is not None  # there are fewer than without the facts
        return measured.with_facts(case.ask(inside[0]).decisions, inside[1])


class Drawn(Source):
    """Neighbors that are drawn by the law."""

    name = "drawn"

    def search(self, choose: Choose = best_sum) -> Search:
        """Draw 2,000 neighbors, and more until the facts lead, or half of the queries or 8,000 are used.

        A lead grows as the square root of the number of neighbors, so that the next number follows from it. If
        a search has a limit of time and stops at a limit, no more are drawn: what came before is the same
        everywhere.
        """
        case = self.case
        most = min(MOST_SEARCH, case.n_left // 2)  # the other half measures
        cells, asked = self._batch(0, min(FIRST_SEARCH, most))
        batch = 1
        while True:
            n = len(asked.drops)
            moments = moments_of(case, cells, asked.drops)
            solution = choose(moments, case.k, self.limits)
            is_stopped = solution.status is Status.LIMIT and case.settings.time_limit is not None
            ahead = math.inf if n >= most or is_stopped else lead(moments, solution)
            if ahead >= _LEAD:
                return Search(solution, moments, n, asked)
            factor = min(2.0, (_LEAD / ahead) ** 2 if ahead > 0 else 2.0)
            more_cells, more = self._batch(batch, min(max(_STEP, int((factor - 1) * n)), most - n))
            cells, asked, batch = np.hstack([cells, more_cells]), asked.joined(more), batch + 1

    def _batch(self, batch: int, n: int) -> tuple[np.ndarray, Asked]:
        """Return the cells (views, n) of a batch of neighbors, and the answers about them."""
        donors = self.case.draw("search", batch, n)
        asked = self.case.ask(donors)
        return self.case.neighborhood.cells(donors), Asked(donors[:0], asked.drops, asked.stays)


def source_of(case: Case, leaves: LeafMoments | None = None) -> Source:
    """Return the leaves if the model has them, otherwise all neighbors if they are few, or else drawn ones."""
    if leaves is not None:
        return Leaves(case, leaves)
    listed = case.listed()
    return Drawn(case) if listed is None else Listed(case, *listed)


def moments_of(case: Case, cells: np.ndarray, drops: np.ndarray) -> Moments:
    """Return the moments of drawn neighbors, given their cells (views, n) and drops (n,)."""
    candidates = case.neighborhood.candidates
    if case.neighborhood.is_product:
        return adjusted(candidates, cells, drops, case.replace_probability)
    return sampled(candidates, cells, drops)


# Measuring


def begin(case: Case, effects: np.ndarray, broken: np.ndarray, spread: float | None) -> Measurement:
    """Return a measurement without answers; ``broken`` are the probabilities b of the facts, (facts,)."""
    predictor = case.predictor
    return Measurement(
        prediction=predictor.prediction,
        effects=effects,
        is_number=predictor.output.kind == "number",
        unbroken=float(np.prod(1 - broken)) if case.neighborhood.is_product else None,
        output_range=predictor.output_range,
        spread=spread,
        confidence=case.settings.confidence,
    )


def ask_round(
    case: Case, measured: Measurement, asked: Round, batch: int, facts: Sequence[int], effects: np.ndarray
) -> Measurement:
    """Return the measurement with the answers of one more round, the given batch of every stream."""
    law, with_facts, unbroken = ask_streams(case, asked, batch, facts, measured.unbroken)
    if law.drops.size:
        measured = _with_law(case, law, measured, facts, effects)
    if with_facts.drops.size:
        measured = measured.with_facts(with_facts.decisions)
    if unbroken.drops.size:
        measured = measured.with_unbroken(unbroken.decisions)
    return measured


def ask_streams(
    case: Case, asked: Round, batch: int, facts: Sequence[int], share: float | None
) -> tuple[Asked, Asked, Asked]:
    """Return the answers of one round: of the law, with the facts, and of the law without a broken fact.

    ``share`` is that of the law's neighbors that break no fact, if it is known. The model is asked about all of
    them at once, because many models are slow to be called.
    """
    law = case.draw("law", batch, asked.law)
    with_facts = case.draw("facts", batch, asked.facts, facts)
    unbroken = law[:, :0]
    if asked.unbroken:
        unbroken = case.draw_unbroken("unbroken", batch, asked.unbroken, facts, share)
    answers, n = case.ask(np.hstack([law, with_facts, unbroken])), asked.law + asked.facts
    return answers.part(0, asked.law), answers.part(asked.law, n), answers.part(n, answers.drops.size)


def _with_law(
    case: Case, asked: Asked, measured: Measurement, facts: Sequence[int], effects: np.ndarray
) -> Measurement:
    flips = case.neighborhood.flips(asked.donors, facts)
    sums = effects @ flips if len(facts) else np.zeros(len(asked.drops))
    unbroken = np.logical_not(flips.any(axis=0))
    return measured.with_law(asked.stays, unbroken, asked.drops, sums, asked.weights)


# What it will cost


@dataclass(frozen=True, slots=True)
class Cost:
    """The queries of an explanation, at most, and the seconds they take one by one.

    A model that answers many rows at once takes less. Rows of the table, which are asked about once per explainer,
    are not counted; with a number of queries there are none.

    >>> print(Cost(n_queries=300, seconds=240.0))
    at most 300 queries, about 4 minutes if asked one by one
    """

    n_queries: int
    seconds: float

    def __str__(self) -> str:
        return f"at most {self.n_queries:,} queries, {about(self.seconds)} if asked one by one"


def estimate_cost(case: Case) -> Cost:
    """Return the cost of a case, whose model is asked about the instance to time it."""
    start = time.perf_counter()
    case.predictor.open(case.neighborhood.original)
    seconds, listed = time.perf_counter() - start, case.listed()
    n_queries = case.settings.most_queries if listed is None else 1 + 2 * len(listed[1])
    return Cost(n_queries, seconds * n_queries)


def about(seconds: float) -> str:
    """Return a duration in words, rounded up.

    >>> about(0.2), about(61), about(7000)
    ('under a second', 'about 2 minutes', 'about 2 hours')
    """
    if seconds < 1:
        return "under a second"
    for unit, size, least in (("hour", 3600, 5400), ("minute", 60, 60), ("second", 1, 0)):
        if seconds >= least:
            n = math.ceil(seconds / size)
            return f"about {n:,} {unit}{'s' * (n != 1)}"
    raise AssertionError("unreachable")
