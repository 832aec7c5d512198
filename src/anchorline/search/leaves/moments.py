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

_NOTHING = 1e-300  # divides 0 in place of 0


def reached(paths: Paths, masses: np.ndarray) -> np.ndarray:
    """Return the probability that a neighbor reaches the end of each edge, (edges, rows).

    ``masses`` (edges, rows) are the probabilities of the attribute's set at each edge.
    """
    return np.asarray(_ranked_chances(paths, masses)[1:].take(paths.ranks, axis=0))


def _ranked_chances(paths: Paths, masses: np.ndarray) -> np.ndarray:
    """Return 1 for the root, and then what `reached` returns, in the order of ranks, (1 + edges, rows)."""
    earlier = np.concatenate([masses, np.ones((1, masses.shape[1]))]).take(paths.before, axis=0)
    shares = masses / np.maximum(earlier, _NOTHING, out=earlier)  # a set that is empty stays empty
    shares = shares.take(paths.by_rank, axis=0)
    chances = np.ones((1 + paths.n_edges, masses.shape[1]))
    start = 0
    for n_tests, _ in paths.levels:
        own = slice(start, start + 2 * n_tests)
        above = chances.take(paths.above_ranks[own], axis=0)
        np.multiply(above, shares[own], out=chances[1 + own.start : 1 + own.stop])
        start = own.stop
    return chances


def leaf_moments(
    paths: Paths, parts: np.ndarray, weights: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean (rows,) of a sum of trees, and its covariances (attributes, ways, rows) with the outcomes.

    ``parts`` (1 + ways, edges, rows) are the probabilities that the attribute has an outcome and a value of the
    edge's set, and ``weights`` (attributes, 1 + ways, rows) those of the outcomes. ``values`` (leaves,) are the
    values of the leaves. Every sum has a fixed order that does not depend on the other rows.
    """
    if parts.shape[2] == 1:  # NumPy adds the numbers of a single row in another order
        mean, covariances = leaf_moments(paths, parts.repeat(2, axis=2), weights.repeat(2, axis=2), values)
        return mean[:1], covariances[..., :1]
    masses = parts[0].copy()
    for part in parts[1:]:
        masses += part
    mean, below = _sums_below(paths, _ranked_chances(paths, masses)[1:], values)
    covariances = np.zeros((len(weights), weights.shape[1] - 1, parts.shape[2]))
    used = [a for a, each in enumerate(paths.slices[:-1]) if each.start < each.stop]
    if used:
        end = paths.slices[-1].start
        np.maximum(masses, _NOTHING, out=masses)
        below, starts = below.take(paths.ranks[:end], axis=0), [paths.slices[a].start for a in used]
        for way in range(1, len(parts)):
            changes = _changes(paths, parts[way, :end], masses[:end], weights[:, way])
            changes *= below
            covariances[used, way - 1] = np.add.reduceat(changes, starts, axis=0)
    return mean, covariances


def _sums_below(paths: Paths, chances: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean (rows,), and the sum over the leaves below every edge, in the order of ranks, (edges, rows).

    ``chances`` are overwritten.
    """
    of_leaves = np.zeros(paths.n_edges)
    of_leaves[paths.ranks[paths.leaf_edges]] = values
    below = np.multiply(chances, of_leaves[:, None], out=chances)
    stop = paths.n_edges
    mean = np.zeros(chances.shape[1])
    for n_tests, above in reversed(paths.levels):
        start = stop - 2 * n_tests
        both = below[start : start + n_tests] + below[start + n_tests : stop]
        if len(above):
            below[above] = both
        else:
            mean = both.sum(axis=0)
        stop = start
    return mean, below


def _changes(paths: Paths, part: np.ndarray, masses: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return by how much each edge changes the probability of an outcome given the attribute's set."""
    end = len(part)
    shares = np.empty((end + len(weights), part.shape[1]))
    np.divide(part, masses, out=shares[:end])
    shares[end:] = weights
    before = paths.before[:end]
    earlier = shares.take(np.where(before == paths.n_edges, end + paths.attribute[:end], before), axis=0)
    return np.subtract(shares[:end], earlier, out=earlier)
