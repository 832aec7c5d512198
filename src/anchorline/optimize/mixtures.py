r"""A lower bound on the error of every set of options, and good sets, by duality.

For fixed multipliers, the best set is a knapsack: at most one option per attribute, whose sizes add up to at most
r. It is solved exactly. Some best set takes only attributes that are among the r best with one literal, the r best
with two, or the r best with three: any other attribute could be exchanged for an unused one of these.

The largest bound over all multipliers is the minimum of V over *mixtures* of sets, because V is convex in Q. It is
found by the method of Frank and Wolfe: from the mixture's multipliers to the best set for them, and on to the best
mixture with that set. If the best set of its own multipliers is the set itself, it is optimal.
"""

from dataclasses import dataclass

import numpy as np

from anchorline.optimize.options import Options, Sums

_STEPS = 6
_SHARES = np.array([1.0, 0.75, 0.5, 0.375, 0.25, 0.1875, 0.125, 0.0625, 0.03125])  # of a new set in a mixture
_PARTS = ((0, 3), (3, 6), (6, 7))  # options of one, two and three literals


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """What is known about n problems: the best set found, and a lower bound with its multipliers.

    ``sets`` (n, d) are numbers of options, -1 for none, and ``values`` (n,) their V. No set has a V below
    ``lower`` (n,), which the multipliers ``eta`` and ``mu`` (n,) attain.
    """

    sets: np.ndarray
    values: np.ndarray
    lower: np.ndarray
    eta: np.ndarray
    mu: np.ndarray


def bound(options: Options, sums: Sums, eta: np.ndarray, cutoffs: np.ndarray, slack: np.ndarray) -> Bounds:
    """Return bounds of n problems; a problem is left as soon as no set is better than its cutoff by the slack.

    ``eta`` (n,) are first multipliers. ``cutoffs`` (n,) are values that are known, inf if there are none.
    """
    n, d = options.possible.shape[1:]
    found = Bounds(
        np.full((n, d), -1, dtype=np.int8), np.full(n, np.inf), np.full(n, -np.inf), eta.copy(), np.zeros(n)
    )
    rows, q = np.arange(n), np.zeros((6, n))
    mu = np.zeros(n)
    for step in range(_STEPS):
        table, sets = knapsack(options.gains(eta, mu), sums.budget)
        lower, q_set = sums.constants(eta, mu) - table[:, -1], total_terms(options, sets)
        values = sums.values(q_set)
        _record(found, rows, sets, values, lower, (eta, mu))
        open_ = found.lower[rows] < np.minimum(found.values[rows], cutoffs[rows]) - slack[rows]
        if not open_.any():
            break
        q = q_set if step == 0 else _mixed(sums, q, q_set)
        if not open_.all():
            options, sums, q, rows = options.take(open_), sums.take(open_), q[:, open_], rows[open_]
        _, eta, mu = sums.solved(q)
    return found


def _record(
    found: Bounds,
    rows: np.ndarray,
    sets: np.ndarray,
    values: np.ndarray,
    lower: np.ndarray,
    multipliers: tuple[np.ndarray, np.ndarray],
) -> None:
    """Keep better sets and higher bounds of some of the problems."""
    better, higher = values < found.values[rows], lower > found.lower[rows]
    found.sets[rows[better]], found.values[rows[better]] = sets[better], values[better]
    found.lower[rows[higher]] = lower[higher]
    found.eta[rows[higher]], found.mu[rows[higher]] = (each[higher] for each in multipliers)


def _mixed(sums: Sums, q: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the best of a few mixtures of matrices (6, n) with others."""
    shares = _SHARES[:, None]
    mixtures = (1 - shares) * q[:, None] + shares * other[:, None]  # (6, shares, n)
    best = np.argmin(sums.values(mixtures), axis=0)
    return np.asarray(mixtures[:, best, np.arange(q.shape[1])])


def total_terms(options: Options, sets: np.ndarray) -> np.ndarray:
    """Return the matrices (6, n) of sets (n, d)."""
    rows, attributes = np.nonzero(sets >= 0)
    terms = options.terms[:, sets[rows, attributes], rows, attributes]
    return np.stack([np.bincount(rows, term, minlength=len(sets)) for term in terms])


def knapsack(gains: np.ndarray, budget: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest gains (n, budget + 1) by size, and sets (n, d) that have the largest of all.

    ``gains`` (7, n, d) are those of the options, -inf for those that do not exist.
    """
    n, d = gains.shape[1:]
    best = [gains[a:b].max(axis=0) for a, b in _PARTS][:budget]
    candidates = _candidates(best, min(budget, d))
    own = [np.take_along_axis(each, candidates, axis=1) for each in best]
    for each in own:
        each[:, 1:][candidates[:, 1:] == candidates[:, :-1]] = -np.inf  # an attribute counts once
    table = np.zeros((n, budget + 1))
    steps = np.zeros((candidates.shape[1], n, budget + 1), dtype=np.int8)
    for number, step in enumerate(steps):
        before = table.copy()
        for size, gain in enumerate(own, 1):
            value = before[:, : budget + 1 - size] + gain[:, number, None]
            better = value > table[:, size:]
            np.copyto(table[:, size:], value, where=better)
            step[:, size:][better] = size
    return table, _followed(gains, candidates, steps)


def _followed(gains: np.ndarray, candidates: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the sets (n, d) to which the steps (m, n, budget + 1) lead, from the last to the first."""
    n, d = gains.shape[1:]
    left, sizes = np.full(n, steps.shape[2] - 1), np.zeros((n, d), dtype=np.int8)
    for number in range(len(steps) - 1, -1, -1):
        size = steps[number, np.arange(n), left]
        taken = np.flatnonzero(size)
        sizes[taken, candidates[taken, number]] = size[taken]
        left = left - size
    sets = np.full((n, d), -1, dtype=np.int8)
    for size, (a, b) in enumerate(_PARTS, 1):
        rows, attributes = np.nonzero(sizes == size)
        sets[rows, attributes] = a + gains[a:b, rows, attributes].argmax(axis=0)
    return sets


def _candidates(best: list[np.ndarray], size: int) -> np.ndarray:
    """Return sorted numbers of attributes (n, m), with repetitions, among which a best set is found.

    ``best`` are the largest gains (n, d) of an attribute with one literal, with two, and with three.
    """
    if not best:
        return np.zeros((0, 0), dtype=np.intp)  # a budget of no literal
    n, d = best[0].shape
    if d <= len(best) * size:
        return np.tile(np.arange(d), (n, 1))
    tops = [np.argpartition(each, d - size, axis=1)[:, d - size :] for each in best]
    return np.sort(np.concatenate(tops, axis=1), axis=1)
