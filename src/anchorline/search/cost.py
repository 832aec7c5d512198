"""What an explanation will cost: how many queries, and about how long they take."""

import math
import time
from dataclasses import dataclass

from anchorline.search.case import Case
from anchorline.search.sources import most_queries


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
    seconds, n_queries = time.perf_counter() - start, most_queries(case)
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
