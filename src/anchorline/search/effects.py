"""Facts without an effect on the output, which are only carried along by the others."""

import math

import numpy as np

from anchorline.grid import DROP_GRID


def idle_facts(
    flips: np.ndarray, drops: np.ndarray, weights: np.ndarray | None, groups: np.ndarray, delta: float
) -> np.ndarray:
    r"""Return which facts have an effect on the output that cannot be distinguished from zero, as indices.

    ``flips`` (n, s) are those of the facts, ``drops`` (n,) those of the same neighbors, and ``groups`` (s,) the
    attributes that the facts speak about. ``weights`` are None unless the rows are all neighbors there are.

    The effect of a literal is the difference of two means: of the output over neighbors that break it, and over
    neighbors that do not. Let r be what the literals of the support about other attributes leave of the drops, by
    least squares with a constant, so that its sum is zero. If literal j does not matter, its flips are independent
    of r, and by Hoeffding's inequality

    .. math:: \Pr\Bigl[\bigl|\textstyle\sum_i F_{ij} r_i\bigr| > \sqrt{\tfrac12 \ln(2/\delta) \sum_i r_i^2}\Bigr]
              \le \delta

    The facts share delta, so with probability :math:`1 - \delta` all that do not matter are returned. If the rows
    are all there are, only rounding counts as zero.
    """
    columns = np.column_stack([np.ones(len(drops)), flips, drops])
    moments = columns.T @ (columns if weights is None else columns * weights[:, None])
    idle = []
    for fact, group in enumerate(groups.tolist()):
        others = [0, *(1 + np.flatnonzero(groups != group))]
        coef = np.linalg.lstsq(moments[np.ix_(others, others)], moments[others, -1], rcond=None)[0]
        square = max(0.0, moments[-1, -1] - moments[others, -1] @ coef)
        sum_ = abs(moments[1 + fact, -1] - moments[1 + fact, others] @ coef)
        limit = math.sqrt(square * math.log(2 * len(groups) / delta) / 2)
        if sum_ <= (limit if weights is None else 2 * moments[0, 0] / DROP_GRID):
            idle.append(fact)
    return np.array(idle, dtype=np.intp)
