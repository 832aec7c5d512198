r"""Exact factors ``1 / (1 - rho)`` by which parts of groups may gain more because they depend on each other.

The bound of `anchorline.optimize.groups` needs, per part, the sum rho of the norms of its correlations with the
parts that are taken of other groups, each multiplied by the weight of that group and divided by that of its own.
The norms :math:`\kappa` of whole groups bound them all, and are cheap (`gains.factors`). They are large if a
combination of a group's literals is rarely broken, such as "the value is missing": its correlations are large by
chance, although no part that may be taken has them. `exact_factors` separates the parts. Let :math:`e_1(h),
e_2(h)` and :math:`e_3(h)` be the largest norms of the correlations of a part with one literal, with at most two
literals, and with any part of group h. If n literals of other groups are taken, :math:`q_h` of group h, then

.. math:: \rho \le \sum_h \frac{w_h}{w_g} e_{\min(q_h, 3)}(h)
          \le \text{sum of the n largest of all } \frac{w_h}{w_g} e_1(h),\ \frac{w_h}{w_g} (e_2 - e_1)(h),\
          \frac{w_h}{w_g} (e_3 - e_2)(h)
"""

import itertools

import numpy as np

from anchorline.optimize.groups import VANISHING, Spans, inflation

PerPart = tuple[np.ndarray, np.ndarray, np.ndarray]  # of single candidates, of pairs, and of larger parts


def exact_factors(
    correlations: np.ndarray,
    blur: float,
    groups: PerPart,
    pairs: np.ndarray,
    spans: Spans | None,
    weights: np.ndarray,
    r: int,
) -> PerPart:
    """Factors of candidates (n,), of ``pairs`` (2, P) and of larger parts (B,), from all correlations (n, n).

    ``blur`` bounds the rounding errors of the correlations, ``groups`` are those of all parts, and ``spans`` hold
    the larger parts; None if there are none. Cost n + P + B m, squared, times n.
    """
    norms, ends = _norms(correlations, blur, groups, pairs, spans), np.cumsum([0, *map(len, groups)])
    own, slices = np.concatenate(groups), [slice(*each) for each in itertools.pairwise(ends)]
    steps, before = list[np.ndarray](), np.zeros((len(weights), len(own)))  # of e_1, e_2 and e_3
    for each, parts in zip(groups, slices, strict=True):
        largest = np.maximum(before, _largest_by_group(norms[parts], each, len(weights)))
        largest[own, np.arange(len(own))] = 0.0
        steps.append((largest - before) * weights[:, None])
        before = largest
    sizes = np.concatenate(steps).T
    one, two, three = (
        inflation(_sums_of_largest(sizes[parts], r - size) / weights[own[parts]])
        for size, parts in enumerate(slices, 1)
    )
    return one, two, three


def _norms(
    correlations: np.ndarray, blur: float, groups: PerPart, pairs: np.ndarray, spans: Spans | None
) -> np.ndarray:
    """Norms (m, m) of the correlations between all m parts, with what rounding may have taken from them."""
    rows = _directions(correlations, pairs, spans)
    lengths, squares = np.abs(rows).sum(axis=1), np.abs(rows @ correlations @ rows.T)
    scale = 1 + blur * lengths**2  # of nearly dependent literals, rounding also changes the unit
    squares *= scale[:, None] * scale
    squares += blur * lengths[:, None] * lengths
    squares *= squares
    return np.asarray(np.sqrt(_by_part(_by_part(squares, groups, pairs[0]).T, groups, pairs[0])))


def _directions(correlations: np.ndarray, pairs: np.ndarray, spans: Spans | None) -> np.ndarray:
    """Orthonormal combinations of candidates, (rows, n): each alone, what the second of a pair adds, and spans."""
    n, (first, second), numbers = len(correlations), pairs, np.arange(pairs.shape[1])
    overlaps = correlations[first, second]
    room = 1 - overlaps**2
    scale = np.where(room > VANISHING, 1 / np.sqrt(np.maximum(room, VANISHING)), 0.0)
    added = np.zeros((len(first), n))
    added[numbers, second], added[numbers, first] = scale, -overlaps * scale
    if spans is None:
        return np.concatenate([np.eye(n), added])
    whole = np.zeros((*spans.directions.shape[:2], n + 1))  # the last column is that of empty places
    np.put_along_axis(whole, np.broadcast_to(spans.table[:, None, :], spans.directions.shape), spans.directions, 2)
    return np.concatenate([np.eye(n), added, whole[:, :, :n].reshape(-1, n)])


def _by_part(rows: np.ndarray, groups: PerPart, first: np.ndarray) -> np.ndarray:
    """Sums (parts, m) of the rows (directions, m) of candidates, of pairs, and of larger parts."""
    n, n_pairs, n_whole = map(len, groups)
    added, whole = rows[n : n + n_pairs], rows[n + n_pairs :]
    whole = whole.reshape(n_whole, len(whole) // max(1, n_whole), rows.shape[1]).sum(axis=1)
    return np.concatenate([rows[:n], rows[first] + added, whole])


def _largest_by_group(norms: np.ndarray, groups: np.ndarray, n_groups: int) -> np.ndarray:
    """Largest of the norms (parts, m) of each group, (G, m); 0 if it has no part."""
    largest, order = np.zeros((n_groups, norms.shape[1])), np.argsort(groups, kind="stable")
    if len(groups):
        found, starts = np.unique(groups[order], return_index=True)
        largest[found] = np.maximum.reduceat(norms[order], starts, axis=0)
    return largest


def _sums_of_largest(sizes: np.ndarray, n_top: int) -> np.ndarray:
    """Sums (m,) of the largest ``n_top`` of each row of sizes."""
    n = sizes.shape[1]
    if n_top <= 0:
        return np.zeros(len(sizes))
    top = np.partition(sizes, n - n_top, axis=1)[:, n - n_top :] if n_top < n else sizes
    return np.asarray(top.sum(axis=1))
