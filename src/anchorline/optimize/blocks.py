"""The candidates of a node by group, with what the chosen literals leave of their correlations."""

import numpy as np

from anchorline.optimize.bounds import Centered, Projection, project
from anchorline.optimize.groups import Blocks, arrange

_SOLID = 1e-6  # if a candidate keeps a smaller share of its variance, rounding blurs the rest of its group


def blocks_of(
    centered: Centered, projection: Projection, chosen: tuple[int, ...], candidates: np.ndarray
) -> Blocks:
    r"""Arrange candidates that are ordered by group. Cost O(n) and the square of the number of groups.

    Let q_g be the largest norm that a unit vector of the span of group g keeps when it is projected on the chosen
    literals. Then :math:`\tilde\kappa_{gh} \le (\kappa_{gh} + q_g q_h) / \sqrt{(1 - q_g^2)(1 - q_h^2)}`.
    """
    assert centered.groups is not None
    numbers = centered.groups.numbers[candidates]
    index, table = arrange(numbers)
    groups, left = numbers[table[:, 0]], projection.variances
    kappa = centered.groups.kappa[groups[:, None], groups]
    literals, residuals = candidates[table], projection.residuals[:, table]
    inner = centered.covariance[literals[:, :, None], literals[:, None, :]]
    if chosen:
        inner = inner - np.einsum("pgi,pgj->gij", residuals, residuals)
        squares = centered.groups.whitening.projected(
            project(centered, chosen, centered.groups.whitening.basis).residuals
        )[groups]
        squares[index[(left > 0) & (left < _SOLID * centered.variances[candidates])]] = 1.0
        norms, rest = np.sqrt(squares), np.sqrt(np.maximum(1 - squares, 1e-30))
        kappa += norms[:, None] * norms
        kappa /= rest[:, None] * rest
        np.fill_diagonal(kappa, 0.0)
    units = np.where(left > 0, 1 / np.sqrt(np.where(left > 0, left, 1.0)), 0.0)[table]
    inner = inner * units[:, :, None] * units[:, None, :]
    return Blocks(index, table, inner, kappa)
