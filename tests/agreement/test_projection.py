"""The sparse projection against enumeration of every support."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anchorline.optimize.projection import project_sparse_sum
from helpers.oracle import enumerate_projection

values = st.lists(st.floats(-3, 3, width=16), min_size=1, max_size=8).map(np.array)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(values=values, k=st.integers(1, 9), total=st.sampled_from([0.0, 1.0, -1.0, 0.3, 2.5]))
def test_projection_equals_enumeration(values, k, total):
    projected = project_sparse_sum(values, k, total)
    assert np.count_nonzero(projected) <= k
    assert projected.sum() == pytest.approx(total, abs=1e-12)
    distance = ((projected - values) ** 2).sum()
    assert distance == pytest.approx(enumerate_projection(values, k, total), abs=1e-9)


def test_the_case_where_greedy_selection_fails():
    assert project_sparse_sum(np.array([0.0, 1.0, -1.0]), 2, 0.0).tolist() == [0.0, 1.0, -1.0]


@pytest.mark.parametrize("d", [20, 500])
def test_random_large_values_with_total_zero(d):
    rng = np.random.default_rng(d)
    for _ in range(50):
        values = rng.normal(size=d)
        projected = project_sparse_sum(values, 3, 0.0)
        best = min(
            _distance(values, np.r_[np.argsort(values)[:p], np.argsort(values)[d - 3 + p :]]) for p in range(4)
        )
        assert ((projected - values) ** 2).sum() == pytest.approx(best, abs=1e-12)


def _distance(values, support):
    shift = values[support].sum() / len(support)
    return len(support) * shift**2 + (np.delete(values, support) ** 2).sum()
