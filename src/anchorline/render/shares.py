"""Shares in percent for readers: rounded to the nearest, limits outward, and never to "all" or "none"."""

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anchorline.guarantees import Estimate

MANY_EQUAL = 0.05  # of the neighbors; from this share on, readers should know that they equal the case
_ROUNDING = 1e-9


def percent(share: float, decimals: int = 1) -> str:
    """Return a share in percent; only all reads as 100, and only none as 0.

    >>> percent(0.98249), percent(0.99998), percent(0.0001), percent(1.0), percent(0.0)
    ('98.2', 'more than 99.9', 'less than 0.1', '100', '0')
    >>> percent(0.938, decimals=0)
    '94'
    """
    text, unit = f"{100 * share:.{decimals}f}", 10.0**-decimals
    if share in (0, 1):
        return f"{100 * share:.0f}"
    if float(text) >= 100:
        return f"more than {100 - unit:.{decimals}f}"
    return f"less than {unit:.{decimals}f}" if float(text) <= 0 else text


def limits(low: float, high: float) -> str:
    """Return an interval of shares in percent, rounded outward, so that it contains what it contained.

    >>> limits(0.97568, 0.98899), limits(0.5, 1.0)
    ('97.5 to 98.9', '50.0 to 100')
    """
    ends = math.floor(1000 * low + _ROUNDING) / 10, math.ceil(1000 * high - _ROUNDING) / 10
    return " to ".join(f"{end:.0f}" if end in (0, 100) else f"{end:.1f}" for end in ends)


def share_of(estimate: "Estimate", neighbors: str = "neighbors", interval: str = "") -> str:
    """Return a share such as ``98.2% of neighbors (joint 95% interval 97.5 to 98.9%)``; exact ones have no limits.

    ``interval`` is the name of the interval, with a final space. A sample in which every neighbor counts is named
    as such, because others may not count.

    >>> from anchorline.guarantees import estimate_share, exact_estimate
    >>> share_of(estimate_share(500, 500)), share_of(exact_estimate(1.0, 8)), share_of(exact_estimate(0.75, 8), "")
    ('all 500 neighbors drawn (99.2 to 100%)', 'every neighbor', '75.0%')
    """
    of_neighbors = f"{percent(estimate.value)}% of {neighbors}".removesuffix(" of ")
    if estimate.exact:
        every = "every neighbor" if neighbors else "all of them"
        return every if estimate.value == 1 else of_neighbors
    if estimate.value == 1:
        of_neighbors = f"all {estimate.n_samples:,} {neighbors} drawn".replace("  ", " ")
    return f"{of_neighbors} ({interval}{limits(estimate.low, estimate.high)}%)"


def at_least(share: float) -> str:
    """Return a share in percent, rounded down, so that a claim of at least this much is true.

    >>> at_least(0.8999), at_least(0.29)
    ('89', '29')
    """
    return f"{math.floor(100 * share + _ROUNDING)}"
