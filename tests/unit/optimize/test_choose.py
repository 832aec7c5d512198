"""Which facts are stated: no noise, simple ones, and a proof that means what it says; against enumeration."""

import math
import pickle
import time
from dataclasses import replace

import numpy as np
import pytest

from anchorline.errors import ParameterError
from anchorline.optimize.choose import TIE, alternatives, best_sum, evident, frontier, lead
from anchorline.optimize.moments import adjusted, exact, sampled
from anchorline.optimize.sums import Limits, Status, extended, fit, solve
from helpers.sums import Q, drawn, errors_of, every_sum, make_product, make_sample, numbers


def moments_of(rows, is_known):
    """Moments that are taken as exact, so that nothing is left out as chance."""
    cell_drops, chances = rows.cell_drops()
    mean = float(rows.weights @ rows.drops)
    if is_known:
        return exact(rows.candidates, chances, cell_drops, mean, float(rows.weights @ (rows.drops - mean) ** 2))
    return sampled(rows.candidates, rows.cells, rows.drops)


def problems(n):
    """Known moments, then sampled ones."""
    for seed in range(n):
        for make, is_known in ((make_product, True), (make_sample, False)):
            rows = make(seed)
            if rows.mean_square > 0:
                yield seed, rows, moments_of(rows, is_known)


@pytest.mark.parametrize("is_product", [True, False])
@pytest.mark.parametrize("level", [0.0, 1.5])
def test_noise_gives_no_fact_in_95_of_100_samples(is_product, level):
    """Drops that depend on nothing, with and without a mean that facts could fit."""
    candidates = numbers(12, 8)
    rng = np.random.default_rng([1, is_product])
    n_found = 0
    for _ in range(200):
        cells = drawn(candidates, rng, 400)
        drops = level + rng.normal(size=400)
        moments = adjusted(candidates, cells, drops, Q) if is_product else sampled(candidates, cells, drops)
        n_found += bool(best_sum(moments, 4).facts)
    assert n_found <= 200 * 0.05 + 2 * np.sqrt(200 * 0.05 * 0.95)


@pytest.mark.parametrize("is_product", [True, False])
def test_a_fact_that_matters_is_found_among_noise(is_product):
    candidates = numbers(12, 8)
    rng = np.random.default_rng(4)
    for _ in range(30):
        cells = drawn(candidates, rng, 1000)
        drops = 1.0 * (cells[5] - candidates.starts[5] >= 4) + rng.normal(0, 0.5, size=1000)
        moments = adjusted(candidates, cells, drops, Q) if is_product else sampled(candidates, cells, drops)
        solution = best_sum(moments, 4)
        groups = candidates.groups[list(solution.facts)].tolist()
        assert groups == [5]
        assert solution.effects == pytest.approx([1.0], abs=0.2)


def test_proven_means_that_no_sum_of_as_many_facts_fits_better_by_more_than_1_percent():
    for seed, rows, moments in problems(300):
        solution = best_sum(moments, 1 + seed % 4)
        scale, k = rows.mean_square, len(solution.facts)
        best = errors_of(rows, every_sum(rows.candidates, k, evident(moments))).min() if k else scale
        assert solution.lower_bound <= best + 1e-9 * scale, f"seed {seed}"
        assert solution.status is Status.PROVEN, f"seed {seed}"
        assert solution.objective <= best + TIE * moments.variance + 1e-8 * scale, f"seed {seed}"


def test_every_fact_that_is_stated_gains_1_percent():
    """With equal ranks; otherwise simpler facts take their places, which may use up what they gain."""
    for seed, rows, moments in problems(200):
        candidates = replace(rows.candidates, ranks=np.zeros(rows.candidates.n_facts, dtype=int))
        solution = best_sum(replace(moments, candidates=candidates), 4)
        error = errors_of(rows, [solution.facts])[0]
        for fact in solution.facts:
            others = tuple(j for j in solution.facts if j != fact)
            gain = errors_of(rows, [others])[0] - error
            assert gain >= TIE * moments.variance - 1e-9 * rows.mean_square, f"seed {seed}"


def test_of_equally_good_facts_the_simplest_is_stated():
    """No fact about the same attribute of lower rank would leave the sum within 1% of Var t of the bound."""
    n_simpler = 0
    for seed, rows, moments in problems(200):
        solution = best_sum(moments, 3)
        if solution.status is not Status.PROVEN:
            continue
        n_simpler += solution.facts != solve(moments, len(solution.facts), offered=evident(moments)).facts
        ranks, groups = rows.candidates.ranks, rows.candidates.groups
        most = solution.lower_bound + TIE * moments.variance
        last = solution.facts[-1:]
        for fact in last:  # the last one to be replaced, when all others have their places
            others = solution.facts[:-1]
            for simpler in np.flatnonzero((groups == groups[fact]) & (ranks < ranks[fact])):
                assert errors_of(rows, [(*others, simpler)])[0] > most - 1e-9 * rows.mean_square, f"seed {seed}"
    assert n_simpler >= 10


def test_a_bound_is_preferred_to_an_interval_that_fits_slightly_better():
    """The drop is 1 in the first cell, and in the last one, which is rare."""
    candidates = numbers(1, 5)
    chances = np.array([0.3, 0.3, 0.2, 0.198, 0.002])
    drops = np.array([1.0, 0.0, 0.0, 0.0, 1.0])
    moments = exact(candidates, chances, chances * drops, 0.302, 0.302 * 0.698)
    interval, bound = solve(moments, 1), best_sum(moments, 1)
    assert (candidates.ranks[interval.facts[0]], candidates.ranks[bound.facts[0]]) == (2, 1)
    assert bound.status is Status.PROVEN
    assert interval.objective < bound.objective <= bound.lower_bound + TIE * moments.variance


def sets_within_a_percent(rows, moments, k, most):
    """The sets of attributes about which some sum of k evident facts has at most this error."""
    sums = every_sum(rows.candidates, k, evident(moments))
    errors = errors_of(rows, sums)
    groups = rows.candidates.groups
    return {frozenset(groups[list(facts)]) for facts, error in zip(sums, errors, strict=True) if error <= most}


def test_alternatives_are_all_sums_within_1_percent_of_the_best():
    n_found = 0
    for seed, rows, moments in problems(500):
        solution = best_sum(moments, 1 + seed % 3)
        k, groups, scale = len(solution.facts), rows.candidates.groups, rows.mean_square
        others = alternatives(moments, solution, 50)
        found = {frozenset(groups[list(other.facts)]) for other in others}
        assert len(found) == len(others), f"seed {seed}"
        n_found += len(found)
        if not k or solution.status is not Status.PROVEN:
            continue
        most = solution.lower_bound + TIE * moments.variance
        own = {frozenset(groups[list(solution.facts)])}
        assert found <= sets_within_a_percent(rows, moments, k, most + 1e-9 * scale) - own, f"seed {seed}"
        assert found >= sets_within_a_percent(rows, moments, k, most - 1e-8 * scale) - own, f"seed {seed}"
        assert all(other.objective <= most + 1e-9 * scale for other in others), f"seed {seed}"
        assert [other.facts for other in alternatives(moments, solution, 1)] == [o.facts for o in others[:1]]
    assert n_found > 40


def test_a_frontier_has_a_sum_for_each_number_of_facts():
    rows = make_product(7)
    moments = moments_of(rows, is_known=True)
    ks = (0, 1, 2, 4)
    for k, solution in zip(ks, frontier(moments, ks), strict=True):
        again = best_sum(moments, k)
        assert len(solution.facts) <= k
        assert (solution.facts, solution.objective) == (again.facts, again.objective)


def test_the_error_with_one_more_fact_is_that_of_least_squares():
    for seed, rows, moments in problems(150):
        groups = rows.candidates.groups
        chosen = tuple(int(np.flatnonzero(groups == g)[0]) for g in np.unique(groups)[1:3])
        others = np.flatnonzero(~np.isin(groups, groups[list(chosen)]))
        errors = errors_of(rows, [(*chosen, int(fact)) for fact in others])
        np.testing.assert_allclose(
            extended(moments, chosen, others), errors, atol=1e-8 * rows.mean_square, err_msg=f"seed {seed}"
        )


def test_unrelated_facts_are_not_offered_to_fit_the_mean():
    """The drop is 1 everywhere: any fact reduces the error, and none says why."""
    candidates = numbers(2, 4)
    chances = candidates.chances(Q)
    moments = exact(candidates, chances, chances, 1.0, 0.0)
    assert solve(moments, 1).objective < 0.7
    assert best_sum(moments, 1).facts == ()


def test_limits_are_kept_and_seen():
    candidates = numbers(40, 12)
    rng = np.random.default_rng(2)
    cells = drawn(candidates, rng, 500)
    effects = 0.8 ** np.arange(40) * rng.choice([-1, 1], size=40)
    moments = sampled(candidates, cells, effects @ (cells - candidates.starts[:-1, None] > 4))
    started = time.process_time()
    solution = best_sum(moments, 8, Limits(time_limit=0.2))
    assert time.process_time() - started < 5
    assert len(solution.facts) > 2
    assert solution.lower_bound <= solution.objective
    assert fit(moments, solution.facts)[1] == pytest.approx(solution.objective)

    def stop():
        raise InterruptedError

    for problem in (moments, adjusted(candidates, cells, effects @ (cells - candidates.starts[:-1, None] > 4), Q)):
        with pytest.raises(InterruptedError):
            best_sum(problem, 4, Limits(check=stop))


@pytest.mark.parametrize("k", [-1, 1.5, True, "4"])
def test_a_number_of_facts_that_is_not_one_is_refused(k):
    with pytest.raises(ParameterError, match="Type k=4"):
        solve(moments_of(make_product(0), is_known=True), k)


def test_statuses_are_pickled_by_name():
    assert [pickle.loads(pickle.dumps(status)) for status in Status] == list(Status)


def test_a_lead_says_how_often_another_sample_chooses_other_attributes():
    """Two of four attributes matter most; the lead of the sum is small in samples that may choose otherwise."""
    candidates, rng, leads, chosen = numbers(4, 6), np.random.default_rng(3), [], []
    for _ in range(60):
        cells = drawn(candidates, rng, 400)
        height = np.array([1.0, 0.75, 0.6, 0.0]) @ (cells - candidates.starts[:-1, None] > 2)
        moments = adjusted(candidates, cells, height + rng.normal(size=400), Q)
        solution = best_sum(moments, 2)
        leads.append(lead(moments, solution))
        chosen.append(sorted(candidates.groups[list(solution.facts)].tolist()) == [0, 1])
    leads, chosen = np.array(leads), np.array(chosen)
    assert 0 < chosen.mean() < 1
    assert chosen[leads > 2].all()
    assert leads[~chosen].mean() < leads[chosen].mean()


def test_nothing_is_in_the_race_with_all_attributes():
    candidates = numbers(2, 6)
    cells = drawn(candidates, np.random.default_rng(4), 400)
    moments = adjusted(candidates, cells, 1.0 * (cells - candidates.starts[:-1, None] > 2).sum(axis=0), Q)
    assert lead(moments, best_sum(moments, 2)) == math.inf
