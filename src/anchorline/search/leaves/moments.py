r"""Moments of a sum of trees over independent attributes, as sums over leaves.

A leaf restricts each attribute a on its path to a set of values. Let :math:`q_{\ell a}` be the probability of that
set, and :math:`q_{\ell o}` the probability that the attribute has outcome o (it keeps its value, or changes in one
way) and a value of the set. Then

.. math:: E f = \sum_\ell v_\ell \prod_a q_{\ell a}, \qquad
          E[f\,O_o] = \sum_\ell v_\ell \frac{q_{\ell o}}{q_{\ell a}} \prod_i q_{\ell i}

The quotient is at most 1, and a leaf with :math:`q_{\ell a} = 0` adds nothing to any moment. All leaves below an
edge share the sets of the edges above, so both sums are taken over edges instead: each edge multiplies the
probability of the path, and adds its change of the quotient times the sum over the leaves below. Cost: O(edges).
"""

import numpy as np

from anchorline.search.leaves.paths import Paths


def reached(paths: Paths, masses: np.ndarray) -> np.ndarray:
    """Return the probability that a neighbor reaches the end of each edge, (edges, rows).

    ``masses`` (edges, rows) are the probabilities of the attribute's set at each edge.
    """
    padded = np.concatenate([masses, np.ones((1, masses.shape[1]))])
    earlier = padded[paths.before]
    shares = np.divide(masses, earlier, out=np.zeros_like(masses), where=earlier > 0)
    chances = padded  # reused: the last row stays 1, and all others are overwritten
    for level in paths.levels:
        chances[level] = chances[paths.above[level]] * shares[level]
    return chances[:-1]


def leaf_moments(
    paths: Paths, parts: np.ndarray, weights: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean (rows,) of a sum of trees, and its covariances (attributes, ways, rows) with the outcomes.

    ``parts`` (1 + ways, edges, rows) are the probabilities that the attribute has an outcome and a value of the
    edge's set, and ``weights`` (attributes, 1 + ways, rows) those of the outcomes. ``values`` (leaves,) are the
    values of the leaves. Every sum has a fixed order that does not depend on the other rows.
    """
    masses = parts[0].copy()
    for part in parts[1:]:
        masses += part
    gains = reached(paths, masses)[paths.leaf_edges] * values[:, None]
    sums = np.zeros((len(gains) + 1, gains.shape[1]))
    np.cumsum(gains, axis=0, out=sums[1:])
    below = sums[paths.last] - sums[paths.first]
    starts = [each.start for each in paths.slices[:-1] if each.start < each.stop]
    used = [a for a, each in enumerate(paths.slices[:-1]) if each.start < each.stop]
    covariances = np.zeros((len(weights), weights.shape[1] - 1, gains.shape[1]))
    end = paths.slices[-1].start
    if used:
        for way in range(1, len(parts)):
            changes = _changes(paths, parts[way], masses, weights[:, way], end)
            changes *= below[:end]
            covariances[used, way - 1] = np.add.reduceat(changes, starts, axis=0)
    return sums[-1], covariances


def _changes(paths: Paths, part: np.ndarray, masses: np.ndarray, weights: np.ndarray, end: int) -> np.ndarray:
    """Return by how much each edge changes the probability of an outcome given the attribute's set."""
    shares = np.divide(part[:end], masses[:end], out=np.zeros_like(part[:end]), where=masses[:end] > 0)
    before = paths.before[:end]
    is_first = before == paths.n_edges
    earlier = shares[np.where(is_first, 0, before)]
    earlier[is_first] = weights[paths.attribute[:end][is_first]]
    return np.asarray(shares - earlier)
