"""Restricted convexity and smoothness of drawn samples, against the rows and against every support."""

import itertools
import math

import numpy as np
import pytest

from anchorline.errors import ParameterError, SampleError
from anchorline.paper import flip_probability, iht_constants, iht_mean_tolerance
from benchmarks.experiments.regularity import check_regularity
from helpers.paper_oracle import all_flips, draw_flips, moments

ROUNDING = 1e-9


def centered_columns(flips, sigma):
    """Agreements minus the population mean, row by row, which the moments must reproduce."""
    return 1.0 - 2.0 * flips - math.tanh(sigma / 2)


def curvatures(columns, supports):
    gram = columns.T @ columns / len(columns)
    return np.linalg.eigvalsh(gram[supports[:, :, None], supports[:, None, :]])


def random_supports(d, order, count, seed):
    return np.random.default_rng(seed).random((count, d)).argsort(axis=1)[:, :order]


@pytest.mark.parametrize(
    ("sigma", "d", "n", "k", "verdict"),
    [
        (0.0, 10, 50_000, 3, "certified"),
        (1.0, 12, 50_000, 2, "certified"),
        (1.0, 42, 100_000, 5, "certified"),  # the size of Adult, where the theorem requires 5e10 samples
        (2.0, 20, 200_000, 3, "certified"),
        (1.0, 150, 100_000, 4, "cannot tell"),
        (0.0, 10, 300, 3, "refuted"),
        (1.0, 42, 5_000, 5, "refuted"),
        (1.0, 150, 5_000, 5, "refuted"),
        (3.0, 30, 5_000, 1, "refuted"),
    ],
)
def test_verdicts_on_drawn_samples(sigma, d, n, k, verdict):
    flips = draw_flips(sigma, d, n)
    sample = check_regularity(*moments(flips), flip_probability(sigma), k)
    assert sample.verdict == verdict
    assert sample.certified_low <= sample.lowest <= sample.highest <= sample.certified_high
    # No other random support contradicts the certified limits, and the rows confirm the refuting supports.
    columns = centered_columns(flips, sigma)
    values = curvatures(columns, random_supports(d, min(3 * k, d), 1_000, 0))
    assert sample.certified_low <= values.min()
    assert values.max() <= sample.certified_high
    if verdict == "certified":
        assert sample.alpha <= values.min()
        assert values.max() <= sample.beta
    low_block, high_block = curvatures(columns, np.array([sample.lowest_support, sample.highest_support]))
    assert low_block[0] == pytest.approx(sample.lowest, rel=1e-9)
    assert high_block[-1] == pytest.approx(sample.highest, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("sigma", "d", "n", "k"), [(0.0, 9, 2_000, 1), (1.0, 11, 4_000, 2), (2.0, 8, 900, 2)])
def test_bounds_and_search_against_every_support(sigma, d, n, k, seed):
    flips = draw_flips(sigma, d, n, seed)
    sample = check_regularity(*moments(flips), flip_probability(sigma), k)
    supports = np.array(list(itertools.combinations(range(d), 3 * k)))
    values = curvatures(centered_columns(flips, sigma), supports)
    assert sample.certified_low <= values.min() <= sample.lowest * (1 + ROUNDING)
    assert sample.highest * (1 - ROUNDING) <= values.max() <= sample.certified_high
    assert sample.lowest == pytest.approx(values.min(), rel=0.01)  # the search comes close to the true extremes
    assert sample.highest == pytest.approx(values.max(), rel=0.01)


@pytest.mark.parametrize("sigma", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("order", [1, 2, 4, 7])
def test_property_two_is_the_norm_of_the_largest_means(sigma, order):
    flips = draw_flips(sigma, 7, 500)
    means = centered_columns(flips, sigma).mean(axis=0)
    brute = max(np.linalg.norm(means[list(s)]) for s in itertools.combinations(range(7), order))
    sample = check_regularity(*moments(flips), flip_probability(sigma), 1, order=order)
    assert sample.mean_norm == pytest.approx(brute, rel=1e-9)


def test_the_distribution_itself_is_perfectly_regular():
    for sigma in (0.0, 1.0, 3.0):
        p = flip_probability(sigma)
        sample = check_regularity(*moments(*all_flips(6, p)), p, 2)
        assert sample.verdict == "certified"
        variance = iht_constants(sigma).variance
        assert (sample.lowest, sample.highest) == pytest.approx((variance, variance), rel=1e-9)
        assert sample.mean_norm < 1e-12
        assert sample.rho == pytest.approx(2 / 19, abs=1e-9)


@pytest.mark.parametrize("sigma", [0.0, 0.25, 1.0, 3.0])
def test_a_constant_that_never_flips_leaves_smoothness_but_not_convexity(sigma):
    p, order, d = flip_probability(sigma), 4, 6
    sample = check_regularity(*moments(*all_flips(d, p)), p, 2, order=order, constant=True)
    constants = iht_constants(sigma)
    lowest = constants.variance * (1 + (order - 1) * math.exp(-sigma)) / order
    assert sample.lowest == pytest.approx(lowest, rel=1e-9)
    assert sample.highest == pytest.approx(constants.variance, rel=1e-9)
    assert sample.smoothness == "certified"
    assert sample.convexity == ("certified" if sigma == 0 else "refuted")
    assert sigma == 0 or 0 in sample.lowest_support  # the refuting support holds the constant


def test_anchored_directions_from_the_rows():
    sigma, d, order = 0.5, 8, 4
    flips = draw_flips(sigma, d, 3_000)
    sample = check_regularity(*moments(flips), flip_probability(sigma), 1, order=order, constant=True)
    # Not centered, which makes no difference in anchored directions.
    rows = np.column_stack([np.ones(len(flips)), 1.0 - 2.0 * flips])
    rng = np.random.default_rng(2)
    for support in random_supports(d + 1, order, 500, 3):
        w = rng.normal(size=order)
        w -= w.mean()
        curvature = np.mean((rows[:, support] @ w) ** 2) / (w @ w)
        assert sample.certified_low <= curvature <= sample.certified_high


def test_regularity_is_repeatable_and_checks_its_arguments():
    means, gram = moments(draw_flips(1.0, 12, 500))
    p = flip_probability(1.0)
    assert check_regularity(means, gram, p, 2) == check_regularity(means, gram, p, 2)
    assert check_regularity(means, gram, p, 2, n_supports=0, rng=np.random.default_rng(5)).verdict == "refuted"
    assert check_regularity(means, gram, p, 2).mean_tolerance == iht_mean_tolerance(2, 1.0)
    assert check_regularity(means, gram, p, 2, alpha=1e-3, beta=50.0).verdict == "certified"
    assert check_regularity(means, gram, p, 100).order == 12
    with pytest.raises(SampleError, match=r"\(12,\) and second moments \(11, 11\)"):
        check_regularity(means, gram[:-1, :-1], p, 2)
    with pytest.raises(SampleError, match="finite"):
        check_regularity(means * np.nan, gram, p, 2)
    for wrong in ({"flip_probability": 0.7}, {"k": 0}, {"alpha": -1.0}, {"constant": True, "order": 1}):
        with pytest.raises(ParameterError):
            check_regularity(means, gram, **({"flip_probability": p, "k": 2} | wrong))
