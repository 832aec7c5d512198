"""Evidence with known moments of flips: against rows, against plain regression, and by simulation."""

import numpy as np
import pytest

from anchorline.optimize import Evidence, Problem, solve
from anchorline.optimize.estimation import estimate_evidence

P = 0.27


def drawn(rng, n, d, function):
    flips = (rng.random((n, d)) < P).astype(np.uint8)
    drops = np.clip(np.round(function(flips.astype(float)) * 2**26) / 2**26, -1, 1)
    return flips, drops


def known(flips, drops):
    d = flips.shape[1]
    return estimate_evidence(Evidence.from_sample(flips, drops), np.full(d, P), np.eye(d) * P * (1 - P))


def crooked(rng, d):
    effects = rng.laplace(size=d) * 0.08
    return lambda flips: np.tanh(flips @ effects + 0.3 * flips[:, 0] * flips[:, 1])


def referee(flips, drops):
    """Ridge on rows, by augmented least squares, with the penalty of the best generalized cross-validation."""
    n, d = flips.shape
    rows = (flips - flips.mean(axis=0)) / np.sqrt(P * (1 - P))
    centered, best = drops - drops.mean(), None
    for penalty in np.logspace(-3.0, 2.5, 23) * d / n:
        smoother = rows @ np.linalg.solve(rows.T @ rows + n * penalty * np.eye(d), rows.T)
        left = n - 1 - np.trace(smoother)
        score = np.sum((centered - smoother @ centered) ** 2) / left**2
        if best is None or score < best[0]:
            stacked = np.vstack([rows, np.sqrt(n * penalty) * np.eye(d)])
            slopes = np.linalg.lstsq(stacked, np.append(centered, np.zeros(d)), rcond=None)[0]
            best = score, slopes / np.sqrt(P * (1 - P))
    return best[1]


@pytest.mark.parametrize(("n", "d"), [(30, 8), (40, 60), (200, 20)])
def test_effects_are_those_of_a_ridge_on_the_rows(n, d):
    rng = np.random.default_rng(n)
    flips, drops = drawn(rng, n, d, crooked(rng, d))
    evidence, effects = known(flips, drops), referee(flips, drops)
    mean = drops.mean() - (flips.mean(axis=0) - P) @ effects
    assert evidence.drop_mean == pytest.approx(mean, abs=1e-8)
    assert np.allclose(evidence.cross_moments, P * (1 - P) * effects + P * mean, atol=1e-8)


@pytest.mark.parametrize("n", [1, 2, 5, 40, 1000])
@pytest.mark.parametrize("constant", [False, True])
def test_moments_belong_to_some_distribution(n, constant):
    rng = np.random.default_rng(n)
    flips, drops = drawn(rng, n, 12, (lambda f: 0 * f[:, 0] + 0.25) if constant else crooked(rng, 12))
    evidence = known(flips, drops)
    joint = np.zeros((14, 14))
    joint[0] = np.concatenate([[1.0], evidence.flip_means, [evidence.drop_mean]])
    joint[:, 0] = joint[0]
    joint[1:-1, 1:-1] = evidence.second_moments
    joint[1:-1, -1] = joint[-1, 1:-1] = evidence.cross_moments
    joint[-1, -1] = evidence.drop_square
    assert np.isfinite(joint).all()
    assert np.linalg.eigvalsh(joint).min() > -1e-7
    solution = solve(Problem(evidence, 4, 0.3)).require_optimal()
    assert solution.objective >= -1e-9


def test_a_sample_may_come_in_parts():
    rng = np.random.default_rng(3)
    flips, drops = drawn(rng, 90, 10, crooked(rng, 10))
    parts = Evidence.from_sample(flips[:40], drops[:40]) + Evidence.from_sample(flips[40:], drops[40:])
    whole, joined = known(flips, drops), estimate_evidence(parts, np.full(10, P), np.eye(10) * P * (1 - P))
    assert np.array_equal(whole.cross_sums, joined.cross_sums)
    assert whole.square_sums == joined.square_sums
    assert joined.sample is parts


def test_a_literal_that_never_breaks_has_no_effect():
    rng = np.random.default_rng(4)
    flips, drops = drawn(rng, 50, 5, crooked(rng, 5))
    flips[:, 2] = 0
    means, variances = np.full(5, P), np.full(5, P * (1 - P))
    means[2] = variances[2] = 0
    evidence = estimate_evidence(Evidence.from_sample(flips, drops), means, np.diag(variances))
    assert evidence.cross_moments[2] == 0


@pytest.mark.parametrize("n", [60, 100, 200])
def test_sums_are_closer_to_the_best_than_by_the_moments_of_the_sample(n):
    """The mean excess error over the best sum in the population, which a large sample shows."""
    excess = {"sample": [], "known": []}
    for seed in range(12):
        rng = np.random.default_rng([n, seed])
        function = crooked(rng, 18)
        population = Evidence.from_sample(*drawn(rng, 10_000, 18, function))
        best = solve(Problem(population, 5, 0.4)).objective
        flips, drops = drawn(rng, n, 18, function)
        for name, evidence in (("sample", Evidence.from_sample(flips, drops)), ("known", known(flips, drops))):
            found = solve(Problem(evidence, 5, 0.4)).contributions
            excess[name].append(Problem(population, 5, 0.4).objective(found) / best - 1)
    assert np.mean(excess["known"]) < 0.8 * np.mean(excess["sample"])
