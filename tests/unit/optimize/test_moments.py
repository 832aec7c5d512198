"""Moments of facts and drops: those of the rows, and the adjusted ones, which err less than the sample's."""

import numpy as np
import pytest

from anchorline.errors import SampleError
from anchorline.facts import Candidates
from anchorline.optimize.choose import evident
from anchorline.optimize.moments import Moments, adjusted, cell_sums, exact, range_sums, sampled
from anchorline.optimize.sums import fit, solve
from helpers.sums import Q, Rows, drawn, drops_of, make_product, make_sample, numbers, true_moments


def sampled_drops(candidates, cells):
    first = np.append(True, np.diff(candidates.attributes) > 0)
    return drops_of(cells[first] - candidates.starts[:-1][first, None])


@pytest.mark.parametrize("make", [make_product, make_sample])
def test_moments_are_those_of_the_rows(make):
    for seed in range(150):
        rows = make(seed)
        candidates, weights = rows.candidates, rows.weights
        cell_drops, chances = rows.cell_drops()
        mean = float(weights @ rows.drops)
        variance = float(weights @ (rows.drops - mean) ** 2)
        if make is make_product:
            moments = exact(candidates, chances, cell_drops, mean, variance)
        else:
            moments = sampled(candidates, rows.cells, rows.drops)
        b = weights @ rows.flips
        centered = rows.flips - b
        c = (weights * (rows.drops - mean)) @ centered
        scale = np.sqrt(rows.mean_square) or 1.0
        np.testing.assert_allclose(moments.b, b, atol=1e-12, err_msg=f"seed {seed}")
        np.testing.assert_allclose(moments.holds, 1 - b, atol=1e-12, err_msg=f"seed {seed}")
        np.testing.assert_allclose(moments.c / scale, c / scale, atol=1e-12, err_msg=f"seed {seed}")
        np.testing.assert_allclose(moments.S, weights @ centered**2, atol=1e-12, err_msg=f"seed {seed}")
        assert moments.mean_square == pytest.approx(rows.mean_square)
        if moments.pairs is not None:
            covariances = (weights[:, None] * centered).T @ centered
            every = np.arange(candidates.n_facts)
            rows_of_it = [moments.pairs.covariances(fact) for fact in every]
            np.testing.assert_allclose(rows_of_it, covariances, atol=1e-12, err_msg=f"seed {seed}")
            np.testing.assert_allclose(moments.pairs.matrix(every[::2]), covariances[::2, ::2], atol=1e-12)


def test_sums_over_ranges_keep_the_digits_of_rare_cells():
    candidates = numbers(1, 5)
    values = np.array([0.5, 1e-18, 3e-18, 1e-18, 0.5])
    inside, outside = range_sums(candidates, values)
    narrow = np.flatnonzero((candidates.first == 1) & (candidates.last == 4))[0]
    assert inside[narrow] == pytest.approx(5e-18, rel=1e-12)
    assert outside[narrow] == 1.0


@pytest.mark.parametrize("n_views", [1, 2])
def test_adjusted_moments_approach_the_true_ones(n_views):
    """With 100,000 neighbors every covariance is within 4.5 of its standard errors."""
    candidates = numbers(8, 6, n_views)
    truth = exact(candidates, *true_moments(candidates))
    cells = drawn(candidates, np.random.default_rng(5), 100_000)
    moments = adjusted(candidates, cells, sampled_drops(candidates, cells), Q)
    errors = (moments.c - truth.c) / np.sqrt(truth.S * truth.variance / 100_000)
    assert np.abs(errors).max() < 4.5
    assert moments.mean == pytest.approx(truth.mean, abs=0.01)
    assert moments.variance == pytest.approx(truth.variance, rel=0.02)
    np.testing.assert_allclose(np.add.reduceat(moments.cell_drops, candidates.starts[:-1]), moments.mean)


@pytest.mark.parametrize("n", [300, 1000, 3000])
def test_sums_of_adjusted_moments_fit_better_than_those_of_the_sample(n):
    """Their excess error, beyond that of the best sum of the law, is less than half of the sample's."""
    candidates = numbers(15, 6)
    truth = exact(candidates, *true_moments(candidates))
    best = solve(truth, 4).objective
    rng = np.random.default_rng([3, n])
    excess = {"sample": [], "adjusted": []}
    for _ in range(40):
        cells = drawn(candidates, rng, n)
        drops = sampled_drops(candidates, cells)
        cell_drops = cell_sums(candidates, cells, drops) / n
        raw = Moments(candidates, candidates.chances(Q), cell_drops, drops.mean(), drops.var(), n)
        for name, moments in (("sample", raw), ("adjusted", adjusted(candidates, cells, drops, Q))):
            solution = solve(moments, 4)
            v, facts = solution.effects, list(solution.facts)
            rest = truth.mean - v @ truth.b[facts]
            error = truth.variance + v**2 @ truth.S[facts] - 2 * v @ truth.c[facts] + rest**2
            excess[name].append((error - best) / truth.variance)
    assert min(excess["adjusted"]) >= -1e-9
    assert np.mean(excess["adjusted"]) < 0.5 * np.mean(excess["sample"])


def test_noise_is_what_is_left_to_chance():
    """Over repeated samples, the covariances of facts without effect vary as sqrt(S noise / n)."""
    candidates = numbers(10, 6)
    rng = np.random.default_rng(11)
    scores = []
    for _ in range(150):
        cells = drawn(candidates, rng, 600)
        drops = sampled_drops(candidates, cells) + rng.normal(size=600)
        moments = adjusted(candidates, cells, drops, Q)
        idle = candidates.groups >= 6
        scores.append((moments.c / np.sqrt(moments.S * moments.noise / 600))[idle])
    assert 0.85 < np.std(scores) < 1.1
    assert abs(np.mean(scores)) < 0.1


@pytest.mark.parametrize("heavy", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("moments_of", [lambda *each: adjusted(*each, Q), sampled])
def test_facts_without_effect_are_hardly_ever_offered(heavy, moments_of):
    """However heavy the tails of the outputs are: a few very large ones are not a reason to state a fact."""
    candidates, rng, n_wrong = numbers(20, 10), np.random.default_rng(12), 0
    for _ in range(100):
        drops = np.exp(heavy * rng.normal(size=1000)) * rng.normal(size=1000)
        n_wrong += evident(moments_of(candidates, drawn(candidates, rng, 1000), drops)).any()
    assert n_wrong <= 10  # 5 are expected at most, and more than 10 with a probability of 1%


def test_a_model_without_any_change_has_no_variance():
    candidates = numbers(3, 4)
    cells = drawn(candidates, np.random.default_rng(0), 50)
    moments = adjusted(candidates, cells, np.zeros(50), Q)
    assert moments.mean_square == 0
    assert solve(moments, 3).facts == ()
    effects, error = fit(moments, (0,))
    assert effects.tolist() == [0.0]
    assert error == 0.0


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_neighbors_have_finite_moments(n):
    candidates = numbers(3, 4)
    rng = np.random.default_rng(n)
    cells = drawn(candidates, rng, n)
    moments = adjusted(candidates, cells, rng.normal(size=n), Q)
    assert np.isfinite(moments.c).all()
    assert np.isfinite([moments.mean, moments.variance, *moments.noise]).all()


def test_no_facts_have_no_moments():
    none = np.zeros(0, dtype=int)
    candidates = Candidates(none, np.zeros(1, dtype=int), np.zeros(0), none, none, none, none, none)
    moments = adjusted(candidates, np.zeros((0, 4), dtype=int), np.array([0.0, 1.0, 2.0, 3.0]), Q)
    solution = solve(moments, 3)
    assert solution.facts == ()
    assert solution.objective == pytest.approx(3.5)


@pytest.mark.parametrize(("drops", "message"), [([0.0, np.nan], "finite drops"), ([0.0], "a column per neighbor")])
def test_samples_of_other_shapes_are_refused(drops, message):
    candidates = numbers(1, 4)
    with pytest.raises(SampleError, match=message):
        sampled(candidates, np.zeros((1, 2), dtype=int), drops)


def test_the_rows_of_this_file_break_facts_as_candidates_say():
    rows = make_sample(3)
    assert isinstance(rows, Rows)
    every = np.arange(rows.candidates.n_facts)
    assert (rows.flips == rows.candidates.flips(rows.cells, every).T).all()
