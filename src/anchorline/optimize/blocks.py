"""The candidates of a node by group, with what the chosen literals leave of their correlations."""

import numpy as np

from anchorline.optimize.bounds import ROUNDING, Bound, Centered, Node, Projection, climb, project
from anchorline.optimize.gains import Parts
from anchorline.optimize.groups import (
    Blocks,
    arrange,
    completing,
    in_units,
    inside,
    rests_of,
    sizes_of,
    units_of,
)
from anchorline.optimize.sets import few

_MAX_CORRELATED = 200  # candidates; more take longer than a node
_FEW_CHILDREN = 4  # take less time than tighter bounds do
_SOLID = 1e-6  # if a candidate keeps a smaller share of its variance, rounding blurs the rest of its group


def blocks_of(
    centered: Centered, projection: Projection, chosen: tuple[int, ...], candidates: np.ndarray
) -> Blocks:
    r"""Arrange candidates that are ordered by group. Cost O(n) and the square of the number of groups.

    Let q_g be the largest norm that a unit vector of the span of group g keeps when it is projected on the chosen
    literals. Then :math:`\tilde\kappa_{gh} \le (\kappa_{gh} + q_g q_h) / \sqrt{(1 - q_g^2)(1 - q_h^2)}`.
    """
    assert centered.groups is not None
    if not chosen and len(candidates) == len(centered.variances):
        return centered.groups.blocks
    numbers, kappa = centered.groups.numbers[candidates], centered.groups.kappa
    index, table = arrange(numbers)
    groups, left = numbers[table[:, 0]], projection.variances
    kappa = kappa.copy() if len(groups) == len(kappa) else kappa[groups[:, None], groups]
    inner = inside(centered.covariance, candidates[table])
    if chosen:
        residuals = projection.residuals[:, table]
        inner = inner - np.einsum("pgi,pgj->gij", residuals, residuals)
        whitening = centered.groups.whitening
        members = whitening.table[groups]  # of these groups, candidates or not
        around = project(centered, chosen, members.ravel()).residuals.reshape(-1, *members.shape)
        squares = whitening.projected(groups, around)
        squares[index[(left > 0) & (left < _SOLID * centered.variances[candidates])]] = 1.0
        norms, rest = np.sqrt(squares), np.sqrt(np.maximum(1 - squares, 1e-30))
        kappa += norms[:, None] * norms
        kappa /= rest[:, None] * rest
        np.fill_diagonal(kappa, 0.0)
    return Blocks(index, table, in_units(inner, units_of(left)[table]), kappa)


def correlations_of(
    centered: Centered, projection: Projection, candidates: np.ndarray
) -> tuple[np.ndarray, float] | None:
    """All correlations (n, n) that the chosen literals leave, and a bound on their rounding errors. Cost n^2.

    None if a candidate keeps so little of its variance that rounding blurs them.
    """
    left, residuals = projection.variances, projection.residuals
    if not (left > _SOLID * centered.variances[candidates]).all():
        return None
    correlations = centered.covariance[candidates[:, None], candidates] - residuals.T @ residuals
    units = units_of(left)
    correlations *= units[:, None] * units
    np.fill_diagonal(correlations, 1.0)
    blur = ROUNDING * (1 + len(residuals)) * float((centered.variances[candidates] / left).max())
    return correlations, blur


def screen_groups(
    centered: Centered, projection: Projection, node: Node, cutoff: float
) -> tuple[np.ndarray, Bound, float]:
    """Drop the candidates that no set bounded below ``cutoff`` holds, while that drops at least half of them.

    Return the others, the last bound, and the smallest bound of the sets that hold a dropped candidate. If less
    than half is dropped at last, all are returned, and `Bound.children` leaves out the dropped ones. Where norms
    of groups leave more than a few children, exact correlations follow, unless there are many candidates.
    """
    candidates, left, multipliers, closed = node.candidates, node.left, node.multipliers, np.inf
    blocks, exact, is_exact = blocks_of(centered, projection, node.chosen, candidates), None, False
    while True:
        parts = Parts.of(blocks, projection.at(*multipliers)[0], rests_among(node, candidates), left, exact)
        bound = climb(projection, parts, left, node.limits, multipliers, cutoff)
        if bound.value >= cutoff:
            return candidates[:0], bound, min(closed, bound.value)
        kept, dropped = bound.screen(cutoff, left)
        closed = min(closed, dropped)
        if few(len(kept), left):
            return candidates[kept], bound, closed
        if 2 * len(kept) > len(candidates):
            is_last = is_exact or len(kept) > _MAX_CORRELATED
            if is_last or len(bound.children(cutoff, left)[1]) <= _FEW_CHILDREN:
                return candidates, bound, closed
            is_exact = True
        candidates, projection, multipliers = candidates[kept], projection.restrict(kept), bound.multipliers
        blocks = blocks.restrict(kept)
        exact = correlations_of(centered, projection, candidates) if is_exact else None


def rests_among(node: Node, candidates: np.ndarray) -> np.ndarray:
    """What the chosen literals leave of forbidden sets, (c, n), if the candidates can complete them."""
    assert node.forbidden is not None
    rests = rests_of(node.forbidden, node.chosen)
    sizes, rests = sizes_of(rests), rests[:, candidates]
    return np.asarray(rests[sizes_of(rests) == sizes])


def allowed(centered: Centered, node: Node) -> np.ndarray:
    """The candidates that complete no forbidden set, in the order of their groups."""
    assert centered.groups is not None
    assert node.forbidden is not None
    candidates = node.candidates[np.argsort(centered.groups.numbers[node.candidates], kind="stable")]
    return np.asarray(candidates[~completing(node.forbidden, node.chosen)[candidates]])
