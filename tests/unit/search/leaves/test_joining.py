"""Which attribute decides which feature, found from the model's own preparation."""

import numpy as np
import pytest

import anchorline as al
from anchorline.search.leaves.joining import NotSeparableError, find_features

RNG = np.random.default_rng(0)
ARRAY = np.column_stack([RNG.normal(size=60), RNG.integers(0, 3, 60), RNG.integers(0, 2, 60), np.ones(60)])


def test_every_feature_belongs_to_the_attribute_that_decides_it():
    table = al.Table(ARRAY, names=["a", "b", "c", "d"], groups={"bc": ["b", "c"]})

    def transform(rows):
        return np.column_stack([rows[:, 1] + 10 * rows[:, 2], rows[:, 0] ** 2, rows[:, 1] == 2, rows[:, 3]])

    features = find_features(table, transform)
    names = [features.units.names[owner] if owner >= 0 else None for owner in features.owners]
    assert names == ["bc", "a", "bc", None]


def test_a_fixed_column_decides_features_of_its_own():
    features = find_features(al.Table(ARRAY, names=["a", "b", "c", "d"], fixed=["a"]), lambda rows: rows[:, :2])
    assert [features.units.names[owner] for owner in features.owners] == ["a", "b"]


@pytest.mark.parametrize("columns", [("a", "b"), ("a", "c"), ("b", "c")])
def test_a_feature_of_two_attributes_is_refused_by_name(columns):
    names = ["a", "b", "c", "d"]
    first, second = (names.index(name) for name in columns)

    def transform(rows):
        return np.column_stack([rows[:, 3], rows[:, first] * 7.3 + rows[:, second]])

    with pytest.raises(NotSeparableError, match=f"feature 1 .* both '{columns[0]}' and '{columns[1]}'"):
        find_features(al.Table(ARRAY, names=names), transform)


def test_a_feature_that_depends_on_other_rows_is_refused():
    def transform(rows):
        return np.column_stack([rows[:, 0], rows[:, 1] - rows[:, 1].mean()])

    with pytest.raises(NotSeparableError, match="feature 1"):
        find_features(al.Table(ARRAY, names=["a", "b", "c", "d"]), transform)
