"""Upper bounds on the cover of a set of literals, from the overlaps of its pairs."""

import numpy as np


def bound_members(overlaps: np.ndarray, size: int) -> np.ndarray:
    r"""Bound, for each literal, the cover of every set of ``size`` literals that contains it.

    A row that :math:`1 \le c \le r` literals of T cover counts :math:`c - \frac2r\binom c2 =
    c (r + 1 - c) / r` in the sum below. This is concave in c and equals 1 at both c = 1 and c = r, so it is at
    least 1. An uncovered row counts 0. Therefore (Kwerel's inequality) for :math:`|T| = r`

    .. math:: \mathrm{cover}(T) \le \sum_{i \in T} g_i - \frac2r \sum_{\{i, k\} \subseteq T} g_{ik}

    If j is in T, twice the overlaps among the other members are at least the sum of the r - 2 smallest overlaps
    of each of them, so that

    .. math:: \mathrm{cover}(T) \le g_j + \sum_{i \in T \setminus j}
              \Bigl(g_i - \frac2r g_{ij} - \frac1r \min_{|K| = r - 2} \sum_{k \in K} g_{ik}\Bigr)

    and the r - 1 largest terms bound every T. The r - 1 largest :math:`g_i - g_{ij}`, the gains after j is
    chosen, also give a bound. The function returns the smaller one. For r = 2 it is the cover of the best pair.
    ``overlaps`` (m, m), m >= r, has the gains on its diagonal. Cost m^2. Mutates nothing.

    Examples
    --------
    >>> bound_members(np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 1.0]]), 2).tolist()
    [3.0, 3.0, 3.0]
    """
    gains = np.diagonal(overlaps)
    if size == 1:
        return np.array(gains)
    kwerel, star = (_sum_of_largest(terms, size - 1) for terms in _companion_terms(overlaps, size))
    return np.asarray(gains + np.minimum(kwerel, star))


def bound_children(overlaps: np.ndarray, left: int) -> np.ndarray:
    """Bound, as in `bound_members`, the sets of each first literal with later ones.

    Literals that too few others follow have no entry.
    """
    n_children = len(overlaps) - left + 1
    later = np.triu(np.ones((n_children, len(overlaps)), dtype=bool), 1)
    kwerel, star = (
        _sum_of_largest(np.where(later, terms[:n_children], -np.inf), left - 1)
        for terms in _companion_terms(overlaps, left)
    )
    return np.asarray(np.diagonal(overlaps)[:n_children] + np.minimum(kwerel, star))


def _companion_terms(overlaps: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The two kinds of terms of `bound_members` for each j (rows) and i (columns), with -inf at i = j."""
    solo_gains = gains = np.diagonal(overlaps)
    if size > 2:
        pairs = overlaps.copy()
        np.fill_diagonal(pairs, np.inf)
        pairs.partition(size - 3, axis=1)
        solo_gains = gains - pairs[:, : size - 2].sum(axis=1) / size
    kwerel = solo_gains - (2.0 / size) * overlaps
    star = gains - overlaps
    np.fill_diagonal(kwerel, -np.inf)
    np.fill_diagonal(star, -np.inf)
    return kwerel, star


def _sum_of_largest(terms: np.ndarray, count: int) -> np.ndarray:
    """Sum of the ``count`` largest entries of each row."""
    if count == 1:
        return np.asarray(terms.max(axis=1))
    first = terms.shape[1] - count
    return np.asarray(np.partition(terms, first, axis=1)[:, first:].sum(axis=1))
