"""Where the moments of the search come from: neighbors that are drawn, all of them listed, or the leaves of trees.

All three end in a choice of facts. Measuring is a page of its own: its neighbors are never those of the search.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from anchorline.optimize.choose import best_sum, lead
from anchorline.optimize.moments import Moments, adjusted, exact, sampled
from anchorline.optimize.sums import Limits, Solution, Status
from anchorline.search.case import Asked, Case

MOST_LISTED = 4096  # neighbors that are listed rather than drawn
FIRST_SEARCH = 2000  # then the winner's curse of contributions is below 1%
MOST_SEARCH = 8000
_STEP = 1000
_LEAD = 0.5  # standard errors: a closer race hardly matters to the fit, and takes many queries to decide

Choose = Callable[[Moments, int, Limits], Solution]  # which sum of at most k facts is stated
LeafMoments = Callable[[], tuple[np.ndarray, float, float]]  # cell drops, mean and variance


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """What the search found: the sum, its moments, and where these come from.

    ``drops`` and ``stays`` (n,) are the answers about drawn neighbors, without their donors, which are large.
    """

    solution: Solution
    moments: Moments
    source: str
    n_asked: int
    listed: Asked | None = None
    drops: np.ndarray | None = None
    stays: np.ndarray | None = None


def find_sum(case: Case, leaves: LeafMoments | None = None, choose: Choose = best_sum) -> Search:
    """Search the facts of a case by leaves if the model has them, otherwise by listing or drawing neighbors."""
    if leaves is not None:
        return _by_leaves(case, leaves, choose)
    listed = _listed(case)
    return _by_drawing(case, choose) if listed is None else _by_listing(case, *listed, choose)


def most_queries(case: Case) -> int:
    """Return the most answers that the model will be asked for; 1 is about the instance."""
    listed = _listed(case)
    return case.settings.most_queries if listed is None else 1 + 2 * len(listed[1])


def _listed(case: Case) -> tuple[np.ndarray, np.ndarray] | None:
    """Return all neighbors, if they are few; those with the facts are listed, too, and are no more."""
    most = min(MOST_LISTED, case.n_left // 2)
    return case.neighborhood.listed(case.settings.replace_probability, most)


def _limits(case: Case) -> Limits:
    return Limits(time_limit=case.settings.time_limit, check=case.check)


def _by_leaves(case: Case, leaves: LeafMoments, choose: Choose) -> Search:
    candidates = case.neighborhood.candidates
    moments = exact(candidates, candidates.chances(case.settings.replace_probability), *leaves())
    return Search(choose(moments, case.k, _limits(case)), moments, "leaves", case.n_asked)


def _by_listing(case: Case, donors: np.ndarray, weights: np.ndarray, choose: Choose) -> Search:
    asked = case.ask(donors, weights)
    candidates = case.neighborhood.candidates
    mean = float(weights @ asked.drops)
    cell_drops = np.zeros(candidates.n_cells)
    for cells in case.neighborhood.cells(donors):
        np.add.at(cell_drops, cells, weights * asked.drops)
    chances = candidates.chances(case.settings.replace_probability)
    moments = exact(candidates, chances, cell_drops, mean, float(weights @ (asked.drops - mean) ** 2))
    return Search(choose(moments, case.k, _limits(case)), moments, "listed", len(weights), asked)


def _by_drawing(case: Case, choose: Choose) -> Search:
    """Draw 2,000 neighbors, and more until the facts lead, or half of the queries or 8,000 are used.

    A lead grows as the square root of the number of neighbors, so that the next number follows from it. If a
    search has a limit of time and stops at a limit, no more are drawn: what came before is the same everywhere.
    """
    most = min(MOST_SEARCH, case.n_left // 2)  # the other half measures
    (cells, drops, stays), batch = _search_batch(case, 0, min(FIRST_SEARCH, most)), 1
    while True:
        n = len(drops)
        moments = moments_of(case, cells, drops)
        solution = choose(moments, case.k, _limits(case))
        is_stopped = solution.status is Status.LIMIT and case.settings.time_limit is not None
        ahead = math.inf if n >= most or is_stopped else lead(moments, solution)
        if ahead >= _LEAD:
            return Search(solution, moments, "drawn", n, drops=drops, stays=stays)
        factor = min(2.0, (_LEAD / ahead) ** 2 if ahead > 0 else 2.0)
        n_more = min(max(_STEP, int((factor - 1) * n)), most - n)
        (more_cells, more_drops, more), batch = _search_batch(case, batch, n_more), batch + 1
        cells, drops = np.hstack([cells, more_cells]), np.append(drops, more_drops)
        stays = None if stays is None or more is None else np.append(stays, more)


def _search_batch(case: Case, batch: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the cells (views, n) of a batch of neighbors of the search, their drops, and what stays."""
    donors = case.draw("search", batch, n)
    asked = case.ask(donors)
    return case.neighborhood.cells(donors), asked.drops, asked.stays


def moments_of(case: Case, cells: np.ndarray, drops: np.ndarray) -> Moments:
    """Return the moments of drawn neighbors, given their cells (views, n) and drops (n,)."""
    candidates = case.neighborhood.candidates
    if case.neighborhood.is_product:
        return adjusted(candidates, cells, drops, case.settings.replace_probability)
    return sampled(candidates, cells, drops)
