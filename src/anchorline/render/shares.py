"""Shares in percent for readers: rounded to the nearest, limits outward, and never to "all" or "none"."""

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anchorline.guarantees import Estimate

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
    ends = (100 * end for end in outward(low, high))
    return " to ".join(f"{end:.0f}" if end in (0, 100) else f"{end:.1f}" for end in ends)


def outward(low: float, high: float) -> tuple[float, float]:
    """Return the limits of an interval of shares as they are shown, rounded outward to tenths of a percent."""
    return math.floor(1000 * low + _ROUNDING) / 1000, math.ceil(1000 * high - _ROUNDING) / 1000


def share_of(share: "Estimate", reach: float = 1.0, interval: str = "", *, bare: bool = False) -> str:
    """Return a share of neighbors such as ``98.2% of neighbors (joint 95% interval 97.5 to 98.9%)``.

    ``reach`` is the probability that a draw differs from the case, and so is a neighbor. ``interval`` is the name
    of the interval, with a final space. The number of neighbors is named where all of them count, because others
    may not, and where they are all that there are, in which case the share has no limits. A ``bare`` share does
    not name the neighbors.

    >>> from anchorline.guarantees import estimate_share, exact_estimate
    >>> share_of(estimate_share(490, 500)), share_of(estimate_share(500, 500), 0.9)
    ('98.0% of neighbors (96.3 to 99.1%)', 'all of about 450 neighbors drawn (99.2 to 100%)')
    >>> share_of(exact_estimate(0.75, 8), 0.9), share_of(exact_estimate(1.0, 8), 0.9)
    ('75.0% of the 7 possible neighbors, each weighted by its probability', 'all 7 possible neighbors')
    """
    ends = "" if share.exact else f" ({interval}{limits(share.low, share.high)}%)"
    if 0 < share.value < 1:
        among = f" of the {possible(share, reach)}{weighted(share)}" if is_weighted(share) else " of neighbors"
        return f"{percent(share.value)}%{'' if bare else among}{ends}"
    which = "all" if share.value == 1 else "none"
    if not share.exact:
        return f"{which} {_drawn(share, reach)} {'' if bare else 'neighbors '}drawn{ends}"
    if bare:
        return f"{which} of them"
    among = possible(share, reach)
    if among.startswith("1 "):
        return f"{'the only' if which == 'all' else 'no'} possible neighbor"
    return f"{'all' if which == 'all' else 'none of the'} {among}"


def possible(share: "Estimate", reach: float = 1.0) -> str:
    """Return the neighbors that an exact share goes over, such as "7 possible neighbors"."""
    if not is_weighted(share):
        return "neighbors"
    n = share.n_samples - (reach < 1)  # the case itself was queried, too
    return f"{n:,} possible neighbor{'s' * (n != 1)}"


def is_weighted(share: "Estimate") -> bool:
    """Return whether a share goes over all neighbors that there are, each with the weight of its probability."""
    return share.exact and share.method == "enumeration"


def weighted(share: "Estimate") -> str:
    """Return how the neighbors of a share are counted, if that makes a difference."""
    return ", each weighted by its probability" if is_weighted(share) and 0 < share.value < 1 else ""


def _drawn(share: "Estimate", reach: float) -> str:
    """Return how many neighbors were drawn, to three digits if some draws equal the case."""
    n = share.n_samples * reach
    return f"{share.n_samples:,}" if share.n_samples - n < 0.5 else f"of about {float(f'{n:.3g}'):,.0f}"


def at_least(share: float) -> str:
    """Return a share in percent, rounded down, so that a claim of at least this much is true.

    >>> at_least(0.8999), at_least(0.29)
    ('89', '29')
    """
    return f"{math.floor(100 * share + _ROUNDING)}"
