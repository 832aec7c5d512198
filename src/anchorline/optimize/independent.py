r"""The best sums of literals that flip independently, all with the same probability: sorting decides.

Let p be the probability, :math:`v = p (1 - p)`, :math:`s_j = \mathrm{cov}(F_j, t)` and :math:`\bar t = E t`. Then

.. math:: E (t - F u)^2 = \text{rest} + \sum_j v (u_j - s_j / v)^2 + (\bar t - p \textstyle\sum_j u_j)^2

On a support T of r literals, the best sum with starting level has the error

.. math:: c - \sum_T \frac{s_j^2}{v} + \frac{(\bar t - \frac p v \sum_T s_j)^2}{1 + r p / (1 - p)}

and the best sum without it, whose contributions add up to m,

.. math:: c - \sum_T \frac{s_j^2}{v} + \frac v r \Bigl(\sum_T \frac{s_j}v - m\Bigr)^2 + (\bar t - p m)^2

Both are concave in each :math:`s_j` of the support. So exchanging a literal either for one with a smaller or for
one with a larger covariance does not make the sum worse, and some best support consists of the literals with the i
smallest and the r - i largest covariances. All i are tried. This is exact if the result is inside the box.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

_NEGLIGIBLE = 2.0**-19  # of the typical drop; a smaller term, or starting level, may have to be left out
_INSIDE = 1 - 1e-9  # a value inside the box by this share is not on its side
_SMALLEST = 1e-11  # of the mean squared drop on the scale [-1, +1]; below, rounding decides
_PER_PROBLEM = ("means", "covariances", "rests", "predictions", "origins")


@dataclass(frozen=True, slots=True, eq=False)
class IndependentProblems:
    """n problems with d literals each, whose flips are independent and have the same probability.

    ``means`` (n,) of the drops, their ``covariances`` (n, d) with the flips, and ``rests`` (n,), the part of their
    mean square that no sum of literals explains; ``predictions`` and ``origins`` (n,), ``k`` and ``box`` as in
    `Problem`. A literal that never flips has covariance 0.
    """

    probability: float
    means: np.ndarray
    covariances: np.ndarray
    rests: np.ndarray
    predictions: np.ndarray
    origins: np.ndarray
    k: int
    box: float | None

    @property
    def variance(self) -> float:
        """The variance of a flip."""
        return self.probability * (1 - self.probability)

    @property
    def squares(self) -> np.ndarray:
        """The mean squared drops, (n,)."""
        return np.asarray(self.rests + self.means**2 + (self.covariances**2 / self.variance).sum(axis=1))

    def with_squares(self, squares: np.ndarray) -> "IndependentProblems":
        """Return the problems of drops with these mean squares (n,)."""
        return replace(self, rests=np.maximum(squares - replace(self, rests=np.zeros(len(squares))).squares, 0.0))

    def take(self, rows: np.ndarray) -> "IndependentProblems":
        """Return some of the problems."""
        each = {name: getattr(self, name)[rows] for name in _PER_PROBLEM}
        return replace(self, **each)


@dataclass(frozen=True, slots=True, eq=False)
class IndependentSums:
    """The best sums of n problems: dense ``contributions`` (n, d), and their ``objectives`` (n,).

    ``with_level`` (n,) says whether the starting level is a term. Where ``solved`` (n,) is false, the box or
    rounding decides, and another solver is needed.
    """

    contributions: np.ndarray
    objectives: np.ndarray
    with_level: np.ndarray
    solved: np.ndarray

    @property
    def lower_bounds(self) -> np.ndarray:
        """The objectives, because nothing is better."""
        return self.objectives


@dataclass(frozen=True, slots=True, eq=False)
class _Ends:
    """The literals of each problem in the order of their covariances; ``counts`` (n,) of them are allowed.

    ``small`` and ``large`` (n, size + 1) are sums of the smallest and of the largest covariances, and the others
    are sums of their squares.
    """

    order: np.ndarray
    counts: np.ndarray
    small: np.ndarray
    large: np.ndarray
    small_squares: np.ndarray
    large_squares: np.ndarray


def solve_independent(problems: IndependentProblems, allowed: np.ndarray) -> IndependentSums:
    """Return the best sums of at most k terms, of the literals that are ``allowed`` (n, d) only.

    Cost: sorting d numbers per problem. Nothing depends on the other problems.
    """
    p, v, covariances, means = problems.probability, problems.variance, problems.covariances, problems.means
    ends = _sorted_ends(covariances, allowed, problems.k)
    leveled, unleveled = _with_level(problems, ends), _without_level(problems, ends)
    box = np.inf if problems.box is None else problems.box
    redundant = (leveled.sizes == unleveled.sizes) & (np.abs(problems.origins) <= box)
    with_level = redundant | (unleveled.sizes == 0) | (leveled.values <= unleveled.values)
    sizes, n_small, shifts = (
        np.where(with_level, getattr(leveled, name), getattr(unleveled, name))
        for name in ("sizes", "n_small", "shifts")
    )
    chosen = _chosen(ends, n_small, sizes)
    contributions = np.where(chosen, (covariances + shifts[:, None]) / v, 0.0)
    added = contributions.sum(axis=1)
    unfitted = v * ((contributions - covariances / v) ** 2).sum(axis=1)
    objectives = problems.rests + unfitted + (means - p * added) ** 2
    solved = (sizes > 0) & are_clear(problems, contributions, chosen, with_level)
    return IndependentSums(contributions, objectives, with_level, solved)


@dataclass(frozen=True, slots=True, eq=False)
class _Best:
    """The best support of each problem in one variant: its size, and how many of its covariances are small ones.

    ``values`` (n,) are errors without a constant, and ``shifts`` (n,) are added to the covariances.
    """

    sizes: np.ndarray
    n_small: np.ndarray
    values: np.ndarray
    shifts: np.ndarray


def _with_level(problems: IndependentProblems, ends: "_Ends") -> _Best:
    p, v, means = problems.probability, problems.variance, problems.means
    sizes = np.minimum(problems.k - 1, ends.counts)
    spread = 1 + sizes * p / (1 - p)
    n_small, values, sums = _best_split(
        ends, sizes, lambda sums, squares: (means - p / v * sums) ** 2 / spread - squares / v
    )
    return _Best(sizes, n_small, values, p * (means - p / v * sums) / spread)


def _without_level(problems: IndependentProblems, ends: "_Ends") -> _Best:
    p, v, means = problems.probability, problems.variance, problems.means
    totals, sizes = problems.predictions - problems.origins, np.minimum(problems.k, ends.counts)
    per_literal, at_mean = 1 / np.maximum(sizes, 1), (means - p * totals) ** 2
    n_small, values, sums = _best_split(
        ends, sizes, lambda sums, squares: v * per_literal * (sums / v - totals) ** 2 + at_mean - squares / v
    )
    return _Best(sizes, n_small, values, (v * totals - sums) * per_literal)


def _sorted_ends(covariances: np.ndarray, allowed: np.ndarray, k: int) -> _Ends:
    order = np.argsort(np.where(allowed, covariances, np.inf), axis=1, kind="stable")
    counts, size = np.count_nonzero(allowed, axis=1), min(k, covariances.shape[1])
    step = np.arange(size)
    lows = np.where(step < counts[:, None], np.take_along_axis(covariances, order[:, :size], axis=1), 0.0)
    at = np.take_along_axis(order, np.maximum(counts[:, None] - 1 - step, 0), axis=1)
    highs = np.where(step < counts[:, None], np.take_along_axis(covariances, at, axis=1), 0.0)
    return _Ends(order, counts, *(_cumulated(each) for each in (lows, highs, lows**2, highs**2)))


def _cumulated(values: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)


def _best_split(
    ends: _Ends, sizes: np.ndarray, value: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how many of the ``sizes`` (n,) literals are those with the smallest covariances, the value, the sum.

    ``value`` is a function of the sum of the covariances and of the sum of their squares.
    """
    best = np.zeros(len(sizes), dtype=np.intp)
    best_values, best_sums = np.full(len(sizes), np.inf), np.zeros(len(sizes))
    for n_small in range(int(sizes.max(initial=0)) + 1):
        n_large = np.maximum(sizes - n_small, 0)[:, None]
        sums = ends.small[:, n_small] + np.take_along_axis(ends.large, n_large, axis=1)[:, 0]
        squares = ends.small_squares[:, n_small] + np.take_along_axis(ends.large_squares, n_large, axis=1)[:, 0]
        values = np.where(n_small <= sizes, value(sums, squares), np.inf)
        better = values < best_values
        best[better], best_values[better], best_sums[better] = n_small, values[better], sums[better]
    return best, best_values, best_sums


def _chosen(ends: _Ends, n_small: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return which literals the sums contain: those with the smallest and with the largest covariances, (n, d)."""
    place = np.arange(ends.order.shape[1])
    from_high = ends.counts[:, None] - (sizes - n_small)[:, None]
    at = (place < n_small[:, None]) | ((place >= from_high) & (place < ends.counts[:, None]))
    chosen: np.ndarray = np.zeros_like(at)
    np.put_along_axis(chosen, ends.order, at, axis=1)
    return chosen


class _Posed(Protocol):
    """What the problems of this and of other solvers have in common."""

    @property
    def squares(self) -> np.ndarray: ...

    @property
    def predictions(self) -> np.ndarray: ...

    @property
    def origins(self) -> np.ndarray: ...

    @property
    def box(self) -> float | None: ...


def are_clear(
    problems: _Posed, contributions: np.ndarray, chosen: np.ndarray, with_level: np.ndarray
) -> np.ndarray:
    """Return which sums are inside the box, and have no term that is so small that rounding decides about it."""
    sizes, levels = np.abs(contributions), problems.predictions - contributions.sum(axis=1)
    smallest = np.where(chosen, sizes, np.inf).min(axis=1, initial=np.inf)
    smallest = np.where(with_level, np.minimum(smallest, np.abs(levels - problems.origins)), smallest)
    squares = problems.squares
    clear = (smallest > _NEGLIGIBLE * np.sqrt(squares)) & (squares > _SMALLEST)
    if problems.box is None:
        return np.asarray(clear)
    largest = np.maximum(sizes.max(axis=1, initial=0.0), np.where(with_level, np.abs(levels), 0.0))
    return np.asarray(clear & (largest < problems.box * _INSIDE))
