"""MAPLE, implemented after Plumb, Molitor and Talwalkar, "Model Agnostic Supervised Local Explanations" (2018).

A random forest determines which training rows are near a point. The local explanation is a ridge regression on
these rows, restricted to the features that the trees of the forest split first.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

N_TREES = 200
MAX_FEATURES = 0.5
MIN_LEAF = 10
RIDGE = 0.001
MAX_SIZES = 16
MAX_POINTS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Maple:
    """A forest, its training rows, and the number of ranked features that local models use.

    Parameters
    ----------
    leaves
        The leaf of every row in every tree, shape (n, trees).
    ranking
        All features, ordered by decreasing impurity decrease at the roots.
    n_kept
        The number of features that a local model uses.
    """

    forest: Any
    rows: Floats
    outputs: Floats
    leaves: NDArray[np.int64]
    ranking: NDArray[np.intp]
    n_kept: int

    def explain(self, point: Floats) -> tuple[Floats, float]:
        """Return the coefficients (d,) and the intercept of the local model at a point (d,)."""
        kept = self.ranking[: self.n_kept]
        moments = Moments.at(self, point, kept)
        values, intercept = moments.ridge(self.n_kept)
        coefficients = np.zeros(self.rows.shape[1])
        coefficients[kept] = values
        return coefficients, intercept


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Weighted moments of some features around a point, which suffice for every nested ridge regression."""

    center: Floats
    output: float
    gram: Floats
    cross: Floats

    @classmethod
    def at(cls, maple: Maple, point: Floats, features: NDArray[np.intp]) -> "Moments":
        """Compute the moments of the rows that share leaves with the point. Cost n d^2."""
        weights = leaf_weights(maple.leaves, maple.forest.apply(point[None])[0])
        near = np.flatnonzero(weights)
        weights, rows, outputs = weights[near], maple.rows[np.ix_(near, features)], maple.outputs[near]
        center, output = weights @ rows, float(weights @ outputs)
        centered = rows - center
        weighted = centered * weights[:, None]
        return cls(center, output, centered.T @ weighted, weighted.T @ (outputs - output))

    def ridge(self, size: int) -> tuple[Floats, float]:
        r"""Return the coefficients of the first ``size`` features and the unpenalized intercept.

        .. math:: \min_{\beta, b} \textstyle\sum_i w_i (y_i - b - \beta^\top z_i)^2 + 0.001\,\|\beta\|^2
        """
        gram = self.gram[:size, :size] + RIDGE * np.eye(size)
        values = np.asarray(np.linalg.solve(gram, self.cross[:size]), dtype=np.float64)
        return values, self.output - float(self.center[:size] @ values)


def fit_maple(rows: Floats, outputs: Floats, seed: int) -> Maple:
    """Fit the forest, and choose the number of features on at most 8 held-out rows.

    Parameters
    ----------
    rows
        Shape (n, d).
    outputs
        The model's outputs for these rows, shape (n,).
    """
    from sklearn.ensemble import RandomForestRegressor

    n, d = rows.shape
    order = np.random.default_rng(seed).permutation(n)
    n_points = max(1, min(MAX_POINTS, n // 5))
    held_out, train = order[:n_points], order[n_points:]
    forest = RandomForestRegressor(
        N_TREES, max_features=MAX_FEATURES, min_samples_leaf=MIN_LEAF, random_state=seed
    ).fit(rows[train], outputs[train])
    ranking = np.argsort(-root_decreases(forest, d), kind="stable")
    maple = Maple(forest, rows[train], outputs[train], forest.apply(rows[train]), ranking, d)
    n_kept = _best_size(maple, rows[held_out], outputs[held_out])
    return Maple(forest, maple.rows, maple.outputs, maple.leaves, ranking, n_kept)


def leaf_weights(leaves: NDArray[np.int64], own: NDArray[np.int64]) -> Floats:
    r"""Return the weight of each row: the mean over trees of "same leaf as the point", divided by the leaf's size.

    .. math:: w_i = \frac1T \sum_t \frac{[\,\ell_t(i) = \ell_t(x)\,]}{|\ell_t(x)|}

    ``leaves`` (n, T) are the leaves of the rows, ``own`` (T,) those of the point. The weights sum to 1.
    """
    same = leaves == own
    return np.asarray((same / same.sum(axis=0)).mean(axis=1))


def root_decreases(forest: Any, n_features: int) -> Floats:
    """Return the impurity decrease at the roots of all trees, summed per split feature, shape (d,)."""
    decreases = np.zeros(n_features)
    for tree in (estimator.tree_ for estimator in forest.estimators_):
        feature, left, right = tree.feature[0], tree.children_left[0], tree.children_right[0]
        if feature >= 0:  # a tree with a single leaf has no split
            shares = tree.weighted_n_node_samples[[left, right]] / tree.weighted_n_node_samples[0]
            decreases[feature] += tree.impurity[0] - shares @ tree.impurity[[left, right]]
    return decreases


def candidate_sizes(n_features: int) -> list[int]:
    """Return at most 16 numbers of features from 1 to d, evenly spaced on a log scale."""
    return [int(size) for size in np.unique(np.rint(np.geomspace(1, n_features, MAX_SIZES)))]


def _best_size(maple: Maple, points: Floats, outputs: Floats) -> int:
    """Return the number of features with the smallest error on held-out points; the smaller number on a tie."""
    sizes = candidate_sizes(maple.rows.shape[1])
    errors = np.zeros(len(sizes))
    for point, output in zip(points, outputs, strict=True):
        moments = Moments.at(maple, point, maple.ranking)
        for i, size in enumerate(sizes):
            values, intercept = moments.ridge(size)
            errors[i] += (intercept + float(values @ point[maple.ranking[:size]]) - output) ** 2
    return sizes[int(np.argmin(errors))]
