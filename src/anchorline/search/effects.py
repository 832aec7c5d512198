"""Facts without an effect on the output, which are only carried along by the others."""

import math

import numpy as np

from anchorline.grid import DROP_GRID
from anchorline.model.predictor import batches
from anchorline.search.sampling import Flips
from anchorline.spaces.base import Law


def idle_facts(law: Law, flips: Flips, drops: np.ndarray, support: np.ndarray, delta: float) -> tuple[int, ...]:
    r"""Return the literals of a support whose effect on the output cannot be distinguished from zero.

    The effect of a literal is the difference of two means: of the output over neighbors that break it, and over
    neighbors that do not. Let r be what the literals of the support about other attributes leave of the drops, by
    least squares with a constant, so that its sum is zero. If literal j does not matter, its flips are independent
    of r, and by Hoeffding's inequality

    .. math:: \Pr\Bigl[\bigl|\textstyle\sum_i F_{ij} r_i\bigr| > \sqrt{\tfrac12 \ln(2/\delta) \sum_i r_i^2}\Bigr]
              \le \delta

    The literals share delta, so with probability :math:`1 - \delta` all that do not matter are returned. Rows are
    drawn again, which takes no query. If they are all there are, only rounding counts as zero.
    """
    moments = _moments(law, flips, drops, support)
    weight, is_whole = moments[0, 0], moments[0, 0] < flips.n_rows  # all flips are weighted by their probabilities
    idle = []
    for place, literal in enumerate(support.tolist(), start=1):
        others = [0, *(1 + np.flatnonzero(law.groups[support] != law.groups[literal]))]
        coef = np.linalg.lstsq(moments[np.ix_(others, others)], moments[others, -1], rcond=None)[0]
        square = max(0.0, moments[-1, -1] - moments[others, -1] @ coef)
        sum_ = abs(moments[place, -1] - moments[place, others] @ coef)
        limit = math.sqrt(square * math.log(2 * len(support) / delta) / 2)
        if sum_ <= (2 * weight / DROP_GRID if is_whole else limit):
            idle.append(literal)
    return tuple(idle)


def _moments(law: Law, flips: Flips, drops: np.ndarray, support: np.ndarray) -> np.ndarray:
    """Return the sums of products of a constant, the flips of the support and the drops, (s + 2, s + 2)."""
    moments = np.zeros((len(support) + 2, len(support) + 2))
    for first, last in batches(flips.n_rows):
        draws, weights = flips.rows(first, last)
        part = np.column_stack([np.ones(last - first), law.flips(draws, support), drops[first:last]])
        moments += part.T @ (part if weights is None else part * weights[:, None])
    return moments
