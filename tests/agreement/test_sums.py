"""The exact search for sums of facts, against plain enumeration on explicit rows."""

import itertools
import math

import numpy as np
import pytest

from anchorline.optimize import sums
from anchorline.optimize.moments import exact, sampled
from anchorline.optimize.sums import TOLERANCE, Limits, Status, fit, solve
from helpers.sums import best_error, errors_of, every_sum, make_candidates, make_product, make_sample

ROUNDING = 1e-11  # of mean t^2
BLOCK = 125


def known_moments(rows):
    cell_drops, chances = rows.cell_drops()
    mean = float(rows.weights @ rows.drops)
    variance = float(rows.weights @ (rows.drops - mean) ** 2)
    return exact(rows.candidates, chances, cell_drops, mean, variance)


def sample_moments(rows):
    return sampled(rows.candidates, rows.cells, rows.drops)


def check(rows, moments, k, solution, seed):
    """Objective and effects are those of the rows, facts are about different attributes, and the bound is one."""
    best, scale = best_error(rows, k), rows.mean_square
    assert moments.mean_square == pytest.approx(scale, rel=1e-9), f"seed {seed}"
    assert solution.lower_bound <= best + ROUNDING * scale, f"seed {seed}"
    assert solution.objective >= best - ROUNDING * scale, f"seed {seed}"
    assert len(solution.facts) <= k, f"seed {seed}"
    groups = rows.candidates.groups[list(solution.facts)].tolist()
    assert len(set(groups)) == len(groups), f"seed {seed}"
    own = rows.drops - rows.flips[:, list(solution.facts)] @ solution.effects
    assert rows.weights @ own**2 == pytest.approx(solution.objective, abs=1e-8 * scale), f"seed {seed}"
    if solution.status is Status.PROVEN:
        assert solution.objective <= best + (4 * TOLERANCE + ROUNDING) * scale, f"seed {seed}"


@pytest.mark.parametrize("block", range(20))
@pytest.mark.parametrize(("make", "moments_of"), [(make_product, known_moments), (make_sample, sample_moments)])
def test_the_search_finds_and_proves_the_best_of_all_sums(make, moments_of, block, monkeypatch):
    if block % 2:  # so few facts are valued in pairs otherwise
        monkeypatch.setattr(sums, "_MOST_PAIRS", 0)
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        rows = make(seed)
        moments, k = moments_of(rows), 1 + seed % 4
        solution = solve(moments, k)
        check(rows, moments, k, solution, seed)
        assert solution.status is Status.PROVEN, f"seed {seed}"


@pytest.mark.parametrize("limits", [Limits(node_limit=n) for n in (0, 1, 2, 4)] + [Limits(time_limit=0.0)])
@pytest.mark.parametrize(("make", "moments_of"), [(make_product, known_moments), (make_sample, sample_moments)])
def test_a_search_that_ends_at_a_limit_keeps_a_valid_bound(make, moments_of, limits):
    statuses = set()
    for seed in range(3_000, 3_100):
        rows = make(seed)
        moments = moments_of(rows)
        solution = solve(moments, 4, limits)
        check(rows, moments, 4, solution, seed)
        assert math.isfinite(solution.lower_bound)
        statuses.add(solution.status)
    assert statuses <= {Status.PROVEN, Status.LIMIT}
    assert Status.LIMIT in statuses or limits.node_limit == 4


@pytest.mark.parametrize("most", [1, 4, 8])
def test_a_sample_whose_correlations_do_not_fit_keeps_a_valid_bound(most, monkeypatch):
    monkeypatch.setattr(sums, "_MOST_DENSE", most)
    for seed in range(5_000, 5_200):
        rows = make_sample(seed)
        for k in (2, 4):
            moments = sample_moments(rows)
            check(rows, moments, k, solve(moments, k), seed)


@pytest.mark.parametrize(("make", "moments_of"), [(make_product, known_moments), (make_sample, sample_moments)])
def test_the_error_of_given_facts_is_that_of_least_squares(make, moments_of):
    for seed in range(4_000, 4_200):
        rows = make(seed)
        moments = moments_of(rows)
        groups = rows.candidates.groups
        facts = tuple(int(np.flatnonzero(groups == g)[-1]) for g in np.unique(groups)[:3])
        truth = errors_of(rows, [facts])[0]
        assert fit(moments, facts)[1] == pytest.approx(truth, abs=1e-9 * rows.mean_square), f"seed {seed}"


def test_one_fact_or_two_that_cancel_in_the_mean_are_told_apart():
    """t = F1 - F2 has mean 0, where the bound of one fact is far from its value, so that the search branches."""
    for seed in range(200):
        rows = make_product(seed)
        flips = rows.flips
        groups = rows.candidates.groups
        first, second = flips[:, groups == 0][:, 0], flips[:, groups == 1][:, 0]
        drops = first - second + 1e-3 * (np.arange(len(first)) % 3)
        rows = type(rows)(rows.candidates, rows.cells, drops, rows.weights)
        moments = known_moments(rows)
        for k in (1, 2):
            solution = solve(moments, k)
            check(rows, moments, k, solution, seed)
            assert solution.status is Status.PROVEN, f"seed {seed}"


@pytest.mark.parametrize("k", [2, 3])
def test_many_facts_with_known_moments(k, monkeypatch):
    """The rows of twelve attributes are too many to list, but not their sums of two or three facts."""
    monkeypatch.setattr(sums, "_MOST_PAIRS", 8)
    for seed in range(60):
        rng = np.random.default_rng([9, seed])
        candidates, _ = make_candidates(rng, 12, rng.integers(2, 6, size=12), groups=False)
        chances = np.concatenate([rng.dirichlet(np.ones(size)) for size in np.diff(candidates.starts)])
        heights = rng.normal(size=len(chances)) * np.repeat(rng.exponential(size=12), np.diff(candidates.starts))
        for low, high in itertools.pairwise(candidates.starts):
            heights[low:high] -= chances[low:high] @ heights[low:high]
        mean = float(rng.normal() * 2)
        variance = float(chances @ heights**2) * 1.5
        solution = solve(exact(candidates, chances, chances * (mean + heights), mean, variance), k)
        ranges = zip(candidates.first, candidates.last, strict=True)
        inside = np.array([np.isin(np.arange(len(chances)), range(low, high)) for low, high in ranges])
        broken = 1 - inside @ chances
        with_drops = mean - inside @ (chances * (mean + heights))  # E[F t]
        chosen = np.array(every_sum(candidates, k))
        b, right = broken[chosen], with_drops[chosen]
        squares = b[:, :, None] * b[:, None, :]
        squares[:, range(k), range(k)] = b
        gained = np.einsum("sk,skl,sl->s", right, np.linalg.pinv(squares, hermitian=True), right)
        best, scale = variance + mean**2 - gained.max(), variance + mean**2
        assert solution.status is Status.PROVEN, f"seed {seed}"
        assert solution.lower_bound <= best + 1e-9 * scale, f"seed {seed}"
        assert solution.objective == pytest.approx(best, abs=1e-8 * scale), f"seed {seed}"
