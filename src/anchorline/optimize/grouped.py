"""The best sums of independent attributes with up to three literals each, many problems at a time.

Both variants are solved: with starting level, and without it among sums that are better than the best with it.
First come bounds by duality (`mixtures`), which mostly settle the variant with starting level. Then all sets that
the bounds leave are looked at (`windows`). So the result is proven, up to a share of 1e-12 of the mean squared
drop. It is exact if it is inside the box.
"""

from dataclasses import dataclass

import numpy as np

from anchorline.optimize.independent import are_clear
from anchorline.optimize.mixtures import bound, knapsack, total_terms
from anchorline.optimize.options import HOLDS, PAIRS, GroupedProblems, Options, Sums
from anchorline.optimize.windows import best_in_window

SLACK = 1e-12  # of the mean squared drop: an improvement that is not looked for


@dataclass(frozen=True, slots=True, eq=False)
class GroupedSums:
    """The best sums of n problems: ``contributions`` (3, n, d), ``objectives`` and ``lower_bounds`` (n,).

    ``with_level`` (n,) says whether the starting level is a term. Where ``solved`` (n,) is false, the box or
    rounding decides, or too many sets are left, and another solver is needed.
    """

    contributions: np.ndarray
    objectives: np.ndarray
    lower_bounds: np.ndarray
    with_level: np.ndarray
    solved: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class _Best:
    """The best sets (n, d) of one variant and their values (n,); ``known`` (n,) where they are proven."""

    sets: np.ndarray
    values: np.ndarray
    eta: np.ndarray
    known: np.ndarray


def solve_grouped(problems: GroupedProblems, allowed: np.ndarray) -> GroupedSums:
    """Return the best sums of at most k terms, of the literals that are ``allowed`` (3, n, d) only.

    Nothing depends on the other problems.
    """
    options, slack = Options.of(problems, allowed), SLACK * problems.squares
    n = len(slack)
    with_level = Sums(problems.means, None, problems.k - 1)
    free = _best(options.without_twins(), with_level, np.zeros(n), np.full(n, np.inf), slack)
    totals = problems.predictions - problems.origins
    without = Sums(problems.means, totals, problems.k)
    fixed = _best(options, without, free.eta, free.values, slack)
    is_free = ~(fixed.values < free.values - slack)
    sets = np.where(is_free[:, None], free.sets, fixed.sets)
    matrices = total_terms(options, sets)
    multipliers = [
        np.where(is_free, *pair)
        for pair in zip(with_level.solved(matrices)[1:], without.solved(matrices)[1:], strict=True)
    ]
    contributions, explained, at_mean = _fitted(problems, sets, *multipliers)
    objectives = (
        np.maximum(problems.squares - problems.means**2 - explained, 0.0) + (problems.means - at_mean) ** 2
    )
    chosen = HOLDS[:, sets] & (sets >= 0)
    clear = are_clear(problems, by_problem(contributions), by_problem(chosen), is_free)
    solved = free.known & fixed.known & ~options.unclear & (sets >= 0).any(axis=1) & clear
    return GroupedSums(contributions, objectives, np.maximum(objectives - 2 * slack, 0.0), is_free, solved)


def _best(options: Options, sums: Sums, eta: np.ndarray, cutoffs: np.ndarray, slack: np.ndarray) -> _Best:
    """Return the best sets of a variant; where none is better than the cutoff, any set and its value."""
    found = bound(options, sums, eta, cutoffs, slack)
    sets, values, known = found.sets, found.values, np.ones(len(slack), dtype=bool)
    open_ = np.flatnonzero(found.lower < np.minimum(values, cutoffs) - slack)
    if len(open_):
        part, own = options.take(open_), sums.take(open_)
        multipliers = found.eta[open_], found.mu[open_]
        limits = own.constants(*multipliers) - (np.minimum(values, cutoffs) - slack)[open_]
        table = knapsack(part.gains(*multipliers), own.budget)[0]
        window = best_in_window(part, own, multipliers, limits, table)
        better = window.values < values[open_]
        sets[open_[better]], values[open_[better]] = window.sets[better], window.values[better]
        known[open_] = ~window.too_many
    return _Best(sets, values, found.eta, known)


def by_problem(values: np.ndarray) -> np.ndarray:
    """Return values (3, n, d) of literals as (n, 3 d), attribute by attribute."""
    return np.asarray(values.transpose(1, 2, 0).reshape(values.shape[1], -1))


def _fitted(
    problems: GroupedProblems, sets: np.ndarray, eta: np.ndarray, mu: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Return contributions (3, n, d), what they explain (n,), and the mean of their sum over neighbors (n,).

    .. math:: u_T = \Sigma_T^{-1} (c_T + \eta b_T + \mu \mathbf 1), \qquad 2 c^\top u - u^\top \Sigma u
    """
    rows, attributes = np.nonzero(sets >= 0)
    holds = HOLDS[:, sets[rows, attributes]]
    c, b = (np.where(holds, each[:, rows, attributes], 0.0) for each in (problems.covariances, problems.chances))
    gram, both = np.zeros((len(rows), 3, 3)), problems.both[:, rows, attributes]
    for j in range(3):
        gram[:, j, j] = np.where(holds[j], b[j] * (1 - b[j]), 1.0)
    for own, (i, j) in zip(both, PAIRS, strict=True):
        gram[:, i, j] = gram[:, j, i] = np.where(holds[i] & holds[j], own - b[i] * b[j], 0.0)
    right = np.where(holds, c + eta[rows] * b + mu[rows], 0.0)
    fitted = np.linalg.solve(gram, right.T[..., None])[..., 0].T
    explained = _added(2 * c * fitted - fitted * right)  # u' Sigma u is u' times the right side
    contributions = np.zeros((3, *sets.shape))
    contributions[:, rows, attributes] = fitted
    n = len(sets)
    return contributions, np.bincount(rows, explained, n), np.bincount(rows, _added(b * fitted), n)


def _added(values: np.ndarray) -> np.ndarray:
    """Return the sums (n,) of three rows (3, n), in a fixed order."""
    return np.asarray(values[0] + values[1] + values[2])
