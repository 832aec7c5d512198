"""Sums of trees in plain arrays: evaluation, one output of several, and what joins trees."""

import numpy as np
import pytest

from anchorline.model.trees import Ensemble, Reading
from anchorline.model.trees.ensemble import LEAF, Tree, bits, join, without_unreachable


def random_tree(rng, n_features, n_outputs, output):
    """A tree of five tests on numbers and categories, its nodes in the order in which they were split."""
    feature, left, right, categories = [LEAF], [0], [0], {}
    for _ in range(5):
        node = int(rng.choice(np.flatnonzero(np.array(feature) == LEAF)))
        feature[node] = int(rng.integers(n_features))
        left[node], right[node] = len(feature), len(feature) + 1
        feature, left, right = feature + [LEAF] * 2, left + [0] * 2, right + [0] * 2
        if feature[node] == 0:
            categories[node] = rng.choice(6, size=rng.integers(4), replace=False)
    n_nodes = len(feature)
    return Tree(
        feature=np.array(feature),
        threshold=rng.normal(size=n_nodes).round(1),
        left=np.array(left),
        right=np.array(right),
        missing_left=rng.random(n_nodes) < 0.5,
        values=rng.normal(size=(n_nodes, n_outputs)) if output is None else rng.normal(size=n_nodes),
        output=output,
        categories=categories,
    )


def walk(tree, row, strict):
    """The leaf of a row, found one test after another."""
    node = 0
    while tree.feature[node] != LEAF:
        value = row[tree.feature[node]]
        if np.isnan(value):
            goes_left = tree.missing_left[node]
        elif node in tree.categories:
            goes_left = value in tree.categories[node].tolist()
        else:
            goes_left = value < tree.threshold[node] if strict else value <= tree.threshold[node]
        node = tree.left[node] if goes_left else tree.right[node]
    return node


def random_rows(rng, n_rows=50):
    rows = np.column_stack([rng.integers(-1, 8, n_rows), rng.normal(size=(n_rows, 2)).round(1)]).astype(float)
    return np.where(rng.random(rows.shape) < 0.1, np.nan, rows)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_evaluation_is_the_sum_of_the_leaves_that_a_walk_reaches(seed, strict):
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, 3, 2, output) for output in (None, 0, 1, None)]
    ensemble = join(trees, base=np.array([10.0, 20.0]), strict=strict, dtype="float64")
    rows = random_rows(rng)
    expected = np.tile([10.0, 20.0], (len(rows), 1))
    for i, row in enumerate(rows):
        for tree in trees:
            expected[i, slice(None) if tree.output is None else tree.output] += tree.values[
                walk(tree, row, strict)
            ]
    assert ensemble.evaluate(rows) == pytest.approx(expected)
    at = ensemble.reached(rows)
    assert (ensemble.feature[at] == LEAF).all()
    first = ensemble.roots[0]
    assert ensemble.passes(first, rows[:, ensemble.feature[first]]).tolist() == [
        bool(walk_one) for walk_one in _goes_left(trees[0], rows, strict)
    ]


def _goes_left(tree, rows, strict):
    stump = Tree(
        feature=np.array([tree.feature[0], LEAF, LEAF]),
        threshold=tree.threshold[:3],
        left=np.array([1, 0, 0]),
        right=np.array([2, 0, 0]),
        missing_left=tree.missing_left[:3],
        values=np.zeros(3),
        categories={0: tree.categories[0]} if 0 in tree.categories else {},
    )
    return [walk(stump, row, strict) == 1 for row in rows]


@pytest.mark.parametrize("seed", range(5))
def test_one_output_is_a_sum_of_its_own_trees(seed):
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, 3, 3, output) for output in (0, 1, 2, 0, None)]
    ensemble = join(trees, base=np.array([1.0, 2.0, 3.0]), strict=True, dtype="float32")
    rows = random_rows(rng)
    for number, n_trees in enumerate((3, 2, 2)):
        one = ensemble.weighted({number: 1.0})
        assert (one.n_outputs, len(one.roots), np.sum(one.feature == LEAF)) == (1, n_trees, 6 * n_trees)
        assert one.evaluate(rows)[:, 0] == pytest.approx(ensemble.evaluate(rows)[:, number])
        assert ensemble.weighted({number: -1.0}).evaluate(rows) == pytest.approx(-one.evaluate(rows))


def test_two_classes_with_one_margin_have_two_columns():
    rng = np.random.default_rng(0)
    ensemble = join([random_tree(rng, 3, 1, 0)], base=np.array([0.5]), strict=True, dtype="float64")
    reading = Reading(
        ensemble=ensemble,
        transform=lambda rows: rows,
        scale="margin",
        link="logistic",
        is_mirrored=True,
    )
    rows = random_rows(rng)
    answers = reading.evaluate(rows)
    assert (answers[:, 0] == -answers[:, 1]).all()
    for column in (0, 1):
        assert reading.column(column).evaluate(rows)[:, 0] == pytest.approx(answers[:, column])


def test_nodes_that_no_row_reaches_are_removed():
    rng = np.random.default_rng(1)
    tree = random_tree(rng, 3, 1, 0)
    inner = np.flatnonzero(tree.feature != LEAF)
    pruned = int(inner[inner > 0][0])
    tree.feature[pruned] = LEAF  # what was below it is left behind
    whole, kept = (
        join([part], base=np.zeros(1), strict=True, dtype="float64") for part in (tree, without_unreachable(tree))
    )
    rows = random_rows(rng)
    assert kept.evaluate(rows) == pytest.approx(whole.evaluate(rows))
    assert len(kept.feature) < len(whole.feature)
    assert set(kept.reached(random_rows(rng, 2000)).ravel().tolist()) <= set(np.flatnonzero(kept.feature == LEAF))


def test_a_test_of_no_category_passes_nothing():
    stump = Tree(
        feature=np.array([0, LEAF, LEAF]),
        threshold=np.zeros(3),
        left=np.array([1, 0, 0]),
        right=np.array([2, 0, 0]),
        missing_left=np.zeros(3, dtype=bool),
        values=np.array([0.0, 1.0, 2.0]),
        categories={0: np.array([], dtype=int)},
    )
    ensemble = join([stump], base=np.zeros(1), strict=False, dtype="float64")
    assert ensemble.evaluate(np.array([[0.0], [np.nan]])).ravel().tolist() == [2.0, 2.0]


def test_numbers_beyond_float32_are_infinite_like_in_the_libraries():
    ensemble = Ensemble(
        feature=np.array([0, -1, -1]),
        threshold=np.array([1e38, 0, 0]),
        left=np.array([1, 0, 0]),
        right=np.array([2, 0, 0]),
        missing_left=np.zeros(3, dtype=bool),
        category_set=np.full(3, -1),
        values=np.array([[0.0], [1.0], [2.0]]),
        roots=np.array([0]),
        base=np.zeros(1),
        categories=(),
        strict=True,
        dtype=np.dtype("float32"),
    )
    assert ensemble.evaluate(np.array([[1e300], [-1e300]])).ravel().tolist() == [2.0, 1.0]


def test_bits_are_counted_from_the_lowest():
    assert bits(np.array([0, 2**31 + 1], dtype=np.uint32)).tolist() == [32, 63]
