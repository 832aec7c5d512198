"""MAPLE: leaf weights, the ranking of features, local ridge regressions and the choice of their size."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge

from benchmarks.experiments import maple
from benchmarks.experiments.maple import Moments, candidate_sizes, fit_maple, leaf_weights, root_decreases


@pytest.fixture(scope="module")
def sample():
    """Rows with a large effect of column 0 and a small effect of column 1; columns 2 to 5 have no effect."""
    rng = np.random.default_rng(3)
    rows = rng.choice([-1.0, 1.0], size=(600, 6))
    return rows, 0.6 * rows[:, 0] + 0.2 * rows[:, 1] + 0.01 * rng.normal(size=600)


@pytest.fixture(scope="module")
def fitted(sample):
    return fit_maple(*sample, seed=48)


def test_leaf_weights_by_hand():
    leaves = np.array([[1, 1], [1, 2], [3, 2], [3, 2]])
    weights = leaf_weights(leaves, np.array([1, 2]))  # leaf 1 of tree 1 has two rows, leaf 2 of tree 2 has three
    assert weights == pytest.approx([1 / 4, 1 / 4 + 1 / 6, 1 / 6, 1 / 6])
    assert weights.sum() == pytest.approx(1)


def test_ranks_features_by_what_the_roots_split(sample):
    rows, outputs = sample
    forest = RandomForestRegressor(30, max_features=0.5, min_samples_leaf=10, random_state=0).fit(rows, outputs)
    decreases = root_decreases(forest, 6)
    expected = np.zeros(6)
    for tree in (each.tree_ for each in forest.estimators_):
        left, right = tree.children_left[0], tree.children_right[0]
        parent, weights = tree.weighted_n_node_samples[0], tree.weighted_n_node_samples
        inside = weights[left] / parent * tree.impurity[left] + weights[right] / parent * tree.impurity[right]
        expected[tree.feature[0]] += tree.impurity[0] - inside
    assert decreases == pytest.approx(expected)
    assert decreases.argmax() == 0


def test_a_forest_of_single_leaves_ranks_nothing():
    rows = np.ones((30, 3))
    forest = RandomForestRegressor(5, min_samples_leaf=10, random_state=0).fit(rows, np.zeros(30))
    assert root_decreases(forest, 3).tolist() == [0, 0, 0]


@pytest.mark.parametrize("size", [1, 2, 6])
def test_local_model_is_the_weighted_ridge(fitted, sample, size):
    point = sample[0][7]
    features = fitted.ranking
    weights = leaf_weights(fitted.leaves, fitted.forest.apply(point[None])[0])
    values, intercept = Moments.at(fitted, point, features).ridge(size)
    ridge = Ridge(alpha=0.001).fit(fitted.rows[:, features[:size]], fitted.outputs, sample_weight=weights)
    assert values == pytest.approx(ridge.coef_, abs=1e-9)
    assert intercept == pytest.approx(ridge.intercept_, abs=1e-9)


def test_the_settings_are_the_published_ones(fitted):
    assert len(fitted.forest.estimators_) == 200
    assert fitted.forest.max_features == 0.5
    assert fitted.forest.min_samples_leaf == 10
    assert maple.RIDGE == 0.001
    assert len(fitted.rows) == 600 - 8  # eight rows are held out


@pytest.mark.parametrize("d", [1, 2, 12, 69, 1652])
def test_at_most_sixteen_sizes_from_one_to_all(d):
    sizes = candidate_sizes(d)
    assert len(sizes) <= 16
    assert sizes[0] == 1
    assert sizes[-1] == d
    assert sizes == sorted(set(sizes))
    if d > 100:  # evenly spaced in the logarithm
        steps = np.diff(np.log(sizes[4:]))
        assert steps.max() < 1.6 * steps.min()


def test_size_is_the_one_that_errs_least_on_held_out_rows(sample):
    rows, outputs = sample
    held_out = np.random.default_rng(48).permutation(len(rows))[:8]
    fitted = fit_maple(rows, outputs, seed=48)
    errors = []
    for size in candidate_sizes(6):
        trial = maple.Maple(fitted.forest, fitted.rows, fitted.outputs, fitted.leaves, fitted.ranking, size)
        answers = [trial.explain(rows[i]) for i in held_out]
        errors.append(
            sum((w @ rows[i] + b - outputs[i]) ** 2 for i, (w, b) in zip(held_out, answers, strict=True))
        )
    assert fitted.n_kept == candidate_sizes(6)[int(np.argmin(errors))]


def test_explains_near_the_point(fitted, sample):
    rows, outputs = sample
    coefficients, intercept = fitted.explain(rows[0])
    assert abs(coefficients @ rows[0] + intercept - outputs[0]) < 0.1
    assert np.count_nonzero(coefficients) <= fitted.n_kept


def test_same_seed_same_model(sample):
    first, again = (fit_maple(*sample, seed=5).explain(sample[0][3]) for _ in range(2))
    assert first[0].tolist() == again[0].tolist()
    assert first[1] == again[1]


def test_a_constant_model_has_no_coefficients():
    rows = np.random.default_rng(0).choice([-1.0, 1.0], size=(60, 4))
    coefficients, intercept = fit_maple(rows, np.full(60, 0.25), seed=0).explain(rows[0])
    assert coefficients == pytest.approx(np.zeros(4))
    assert intercept == pytest.approx(0.25)
