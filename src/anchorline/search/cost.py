"""What an explanation will cost: how many queries, and about how long they take."""

import math
import time
from dataclasses import dataclass

from anchorline.search.case import Case
from anchorline.search.investigate import plan
from anchorline.search.sampling import EnumeratedFlips
from anchorline.settings import AUTO_MAX_QUERIES


@dataclass(frozen=True, slots=True)
class Cost:
    """The queries of an explanation, at most, and the seconds they take one by one.

    A model that answers many rows at once takes less. Training rows that are queried once, to learn the range of
    the outputs or to check the setup, are not counted; with a budget there are none.

    >>> print(Cost(n_queries=300, seconds=240.0))
    at most 300 queries, about 4 minutes if asked one by one
    """

    n_queries: int
    seconds: float

    def __str__(self) -> str:
        return f"at most {self.n_queries:,} queries, {about(self.seconds)} if asked one by one"


def estimate_cost(case: Case) -> Cost:
    """Count the queries of a case that is not opened, and time the model's answer to the instance: one query."""
    n_queries = count_queries(case)
    start = time.perf_counter()
    case.predictor.query(case.neighborhood.original, 1)
    return Cost(n_queries, (time.perf_counter() - start) * n_queries)


def count_queries(case: Case) -> int:
    """Return the largest number of queries that the settings allow for this instance."""
    settings, flips = case.settings, plan(case)
    if flips is None:  # until the result is clear
        return settings.max_queries or AUTO_MAX_QUERIES
    if isinstance(flips, EnumeratedFlips):
        return 1 + flips.n_rows
    return 1 + flips.n_rows + settings.n_choose + settings.n_fresh


def about(seconds: float) -> str:
    """Return a duration in words, rounded up to two digits.

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
