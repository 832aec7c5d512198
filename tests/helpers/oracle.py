"""Optimal values by enumeration of supports, computed from the rows. Shares no code with anchorline."""

import itertools

import numpy as np


def least_squares(flips, drops, weights, total=None):
    """Return the smallest weighted mean square of ``t - F u``, and u; with sum u = total if a total is given."""
    root = np.sqrt(weights / weights.sum())[:, None]
    n_columns = flips.shape[1]
    if total is None:
        if n_columns == 0:
            return np.sum((root[:, 0] * drops) ** 2), np.zeros(0)
        u = np.linalg.lstsq(root * flips, root[:, 0] * drops, rcond=1e-11)[0]
        return np.sum((root[:, 0] * (drops - flips @ u)) ** 2), u
    if n_columns == 0:
        return (np.sum((root[:, 0] * drops) ** 2), np.zeros(0)) if abs(total) < 1e-12 else (np.inf, None)
    design = flips[:, 1:] - flips[:, :1]  # u_0 = total - the others
    value, rest = least_squares(design, drops - total * flips[:, 0], weights)
    return value, np.append(total - rest.sum(), rest)


def boxed_least_squares(flips, drops, weights, low, high, box):
    """Return the smallest weighted mean square in the box, by trying every pattern of active bounds."""
    best = np.inf
    size = flips.shape[1]
    for sides in itertools.product((0, -1, 1), repeat=size):
        sides = np.array(sides, dtype=float)
        free = sides == 0
        rest = drops - flips[:, ~free] @ (sides[~free] * box)
        for total in (None, low, high):
            if total is None and low == high:
                continue
            left = None if total is None else total - (sides[~free] * box).sum()
            value, u = least_squares(flips[:, free], rest, weights, left)
            if u is None or value >= best:
                continue
            whole = sides * box
            whole[free] = u
            if np.abs(whole).max(initial=0) <= box + 1e-10 and low - 1e-10 <= whole.sum() <= high + 1e-10:
                best = value
                if free.all() and (total is None or low == high):
                    return best  # no bound is active, so no other pattern can be better
    return best


def enumerate_objective(flips, drops, weights, k, prediction, box, origin, pairs=()):
    """Return the best objective over all supports, with and without intercept; inf if no support is feasible.

    ``pairs`` are further columns, each of which costs two of the k terms.
    """
    d = flips.shape[1]
    flips = np.column_stack([flips, *pairs]).astype(float)
    bound = np.inf if box is None else box
    total = prediction - origin  # an intercept at the origin is not a term, so the box does not limit it
    problems = [(k - 1, prediction - bound, prediction + bound), (k, total, total)]
    best = np.inf
    for size, low, high in problems:
        fixed = low if low == high else None
        scored = sorted(
            (least_squares(flips[:, chosen], drops, weights, fixed)[0], chosen)
            for chosen in _largest_supports(d, len(pairs), size)
        )
        for value, chosen in scored:
            if value >= best:
                break
            if box is not None:
                value = boxed_least_squares(flips[:, chosen], drops, weights, low, high, box)
            best = min(best, value)
    return best


def _largest_supports(d, n_pairs, size):
    """Yield the supports that cost ``size``, or less if there are no more literals; a pair costs 2."""
    for n_chosen in range(min(n_pairs, size // 2) + 1):
        for chosen in itertools.combinations(range(d, d + n_pairs), n_chosen):
            for others in itertools.combinations(range(d), min(d, size - 2 * n_chosen)):
                yield others + chosen


def enumerate_projection(values, k, total):
    """Return the least squared distance to the vectors with at most k non-zeros that sum to ``total``."""
    best = np.inf
    for chosen in itertools.combinations(range(len(values)), min(k, len(values))):
        kept = values[list(chosen)]
        shift = (kept.sum() - total) / len(chosen)
        outside = np.delete(values, list(chosen))
        best = min(best, len(chosen) * shift**2 + (outside**2).sum())
    return best


def next_best(flips, drops, k, prediction, n_best, groups=None):
    """Return the smallest errors of anchored sums of at most ``k`` terms, one per support, by enumeration.

    A sum that says the same as another one, with an interval instead of the bounds that add up to it, is left out:
    with starting level, an interval beside one of its bounds; without, all three.
    """
    ones, values, wholes = np.ones(len(drops)), [], sums_of_two(flips, groups)
    for size in range(min(k, flips.shape[1]) + 1):
        for chosen in itertools.combinations(range(flips.shape[1]), size):
            columns = flips[:, chosen].astype(float)
            held = max((len({*pair} & {*chosen}) for whole, *pair in wholes if whole in chosen), default=0)
            free = least_squares(columns, drops, ones)[0] if size < k and held == 0 else np.inf
            fixed = least_squares(columns, drops, ones, prediction)[0] if held < 2 else np.inf
            values.append(min(free, fixed))
    return sorted(value for value in values if value < np.inf)[:n_best]


def sums_of_two(flips, groups):
    """Return the columns that vary and are the sum of two others of their group, each with these two."""
    triples = [] if groups is None else itertools.permutations(np.flatnonzero(flips.any(axis=0)).tolist(), 3)
    return [
        (whole, one, other)
        for whole, one, other in triples
        if one < other and groups[whole] == groups[one] == groups[other]
        if np.array_equal(flips[:, whole].astype(int), flips[:, one].astype(int) + flips[:, other])
    ]
