"""The values of all sets of a node at once, against a fit of every set."""

import itertools

import numpy as np
import pytest

from anchorline.optimize import Evidence, Problem, solve
from anchorline.optimize.bounds import Centered, project
from anchorline.optimize.sets import MAX_SETS, combinations, few, values_of_sets, without


def problem_of(seed, n=400, d=9):
    rng = np.random.default_rng(seed)
    flips = rng.random((n, d)) < rng.uniform(0.15, 0.4, d)
    drops = np.round(flips @ rng.normal(size=d) / 16 * 2**20) / 2**20
    return Problem(Evidence.from_sample(flips, drops), 6, 0.3, box=None)


@pytest.mark.parametrize("chosen", [(), (2,), (1, 7)])
@pytest.mark.parametrize("seed", range(4))
def test_values_are_those_of_single_fits_and_never_above(seed, chosen):
    problem = problem_of(seed).scaled
    centered = Centered.from_evidence(problem.evidence)
    candidates = np.array([j for j in range(9) if j not in chosen])
    for variant in problem.variants:
        sets = combinations(len(candidates), 3)
        projection = project(centered, chosen, candidates)
        values = values_of_sets(centered, projection, candidates, sets, variant.low, variant.high)
        supports = [np.sort(np.r_[chosen, candidates[each]].astype(int)) for each in sets]
        fits = [problem.fit_variant(support, variant) for support in supports]
        objectives = np.array([problem.objective(fitted) for fitted, _ in fits])
        np.testing.assert_allclose(values, objectives, atol=1e-9)
        assert (values <= objectives + 1e-14).all()


def test_a_dependent_set_is_left_to_a_fit():
    rng = np.random.default_rng(0)
    below, above = rng.random((2, 300)) < 0.2
    above &= ~below
    flips = np.column_stack([below, above, below | above, rng.random(300) < 0.3])
    centered = Centered.from_evidence(Evidence.from_sample(flips, flips @ [0.25, 0.5, 0.0, 0.125]))
    candidates = np.arange(4)
    projection = project(centered, (), candidates)
    limits = (-np.inf, np.inf)
    values = values_of_sets(centered, projection, candidates, combinations(4, 3), *limits)
    assert (values == -np.inf).tolist() == [True, False, False, False]
    apart = without(combinations(4, 2), np.array([[True, False, True, False], [False, True, True, False]]))
    assert apart.tolist() == [[0, 1], [0, 3], [1, 3], [2, 3]]
    assert np.isfinite(values_of_sets(centered, projection, candidates, apart, *limits)).all()


def test_a_candidate_without_variance_is_left_to_the_search():
    flips = np.column_stack([np.eye(3, dtype=bool), np.zeros(3, dtype=bool)])
    centered = Centered.from_evidence(Evidence.from_sample(flips, np.array([0.25, 0.5, 0.0])))
    candidates = np.arange(4)
    projection = project(centered, (), candidates)
    assert values_of_sets(centered, projection, candidates, combinations(4, 2), -np.inf, np.inf) is None


def bounds_of_attributes(seed, n, d):
    """A small sample of d attributes with a lower bound, an upper bound and an interval each."""
    rng = np.random.default_rng(seed)
    draws = rng.choice(3, size=(n, d), p=[0.7, 0.15, 0.15])
    flips = np.stack([draws == 1, draws == 2, draws > 0], axis=2).reshape(n, 3 * d)
    drops = np.round(np.tanh(flips @ rng.normal(size=3 * d) / 4) / 2 * 2**20) / 2**20
    return Problem(Evidence.from_sample(flips, drops), 5, 0.3, groups=np.arange(d).repeat(3))


@pytest.mark.parametrize("n", [32, 64, 128])
def test_a_search_that_bounds_little_lists_the_sets(n):
    """Branching alone takes hundreds of nodes here, because small samples have large correlations."""
    assert solve(bounds_of_attributes(n, n, 6)).require_optimal().n_nodes <= 60


def test_few_sets_are_listed():
    assert combinations(5, 2).tolist() == [list(pair) for pair in itertools.combinations(range(5), 2)]
    assert few(12, 4)
    assert not few(16, 5)
    assert few(16, 5, n_nodes=10)
    assert not few(40, 5, n_nodes=10**6)
    assert len(combinations(12, 4)) <= MAX_SETS
