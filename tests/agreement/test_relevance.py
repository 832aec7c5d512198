"""Direct relevance, the shortest rule, the frontier and alternatives, against enumeration and simulation."""

import itertools

import numpy as np
import pytest

import anchorline as al
from anchorline.errors import InfeasibleError, ParameterError
from anchorline.optimize import Evidence, Limits, Problem, Status
from anchorline.optimize.relevance import measured_relevance, relevant_rules
from anchorline.optimize.rows import SampleRows
from anchorline.search.sampling import cancelling_event
from anchorline.spaces.base import Law
from helpers.enumeration import exact_errors, random_model


def case(seed, max_d=7):
    rng = np.random.default_rng([41, seed])
    d = int(rng.integers(2, max_d + 1))
    return random_model(rng, d), rng.choice([-1.0, 1.0], d), float(rng.uniform(0.1, 0.5))


def rule_errors(model, x, p):
    """Smallest relevance error of the rules "these facts hold" of each size, from the definition."""
    best = []
    for size in range(len(x) + 1):
        errors = []
        for support in itertools.combinations(range(len(x)), size):
            indicator = np.zeros(len(x))
            indicator[list(support)] = 1.0  # positive contributions never cancel
            errors.append(exact_errors(model, x, indicator, p)[1])
        best.append(min(errors))
    return best


def test_shortest_has_the_size_that_enumeration_finds():
    reached = 0
    for seed in range(150):
        model, x, p = case(seed)
        best = rule_errors(model, x, p)
        for max_error in (0.01, 0.05, 0.2):
            sizes = [size for size, error in enumerate(best) if error <= max_error]
            explainer = al.Explainer(model, al.Hypercube())
            e = explainer.shortest(x, max_error, k=len(x) + 1, flip_probability=p)
            assert e.certificate.exhaustive
            assert e.certificate.n_facts == sizes[0], f"seed {seed}"
            assert e.certificate.status is al.Status.OPTIMAL
            assert e.certificate.relevance_error.value <= max_error + 1e-6
            assert e.certificate.event_is_literal or sizes[0] == 0
            reached += sizes[0] > 0
    assert reached > 100


def test_shortest_raises_if_no_rule_is_good_enough():
    def parity(rows):
        return rows.prod(axis=1)

    with pytest.raises(
        InfeasibleError, match=r"No rule of at most 2 facts has a relevance error of at most 0\.01"
    ):
        al.Explainer(parity, al.Hypercube()).shortest(np.ones(6), 0.01, k=3)


def test_shortest_goes_on_where_the_box_holds_no_rule_as_short():
    """The empty rule is good enough, but its sum is outside the box. One more fact is enough."""
    explainer = al.Explainer(lambda rows: np.full(len(rows), 0.9), al.Hypercube())
    e = explainer.shortest(np.ones(3), 0.05, box=0.5)
    assert (len(e.terms), e.certificate.status) == (1, Status.OPTIMAL)


def test_too_few_rows_are_no_proof_that_no_rule_does():
    explainer = al.Explainer(lambda rows: 0.9 * rows[:, 0], al.Hypercube())
    with pytest.raises(InfeasibleError, match="No rule of at most 10 facts was found with"):
        explainer.shortest([1] * 10, 0.05, n_samples=150, sigma=0.0, sampling="draw")


@pytest.mark.parametrize("p", [0.9, 0.99, 0.999, 0.99999, 1 - 1e-9])
def test_where_hardly_any_row_is_left_nothing_false_is_proven(p):
    """The event has the probability (1 - p)^s, and the remainder of a difference is divided by it."""
    model = lambda rows: np.tanh(rows @ np.random.default_rng(0).normal(size=6))  # noqa: E731
    for k in (3, 4, 6):
        e = al.explain(model, [1] * 6, k=k, objective="relevance", flip_probability=p)
        assert e.certificate.objective == pytest.approx(e.certificate.relevance_error.value, rel=1e-6, abs=1e-12)
        assert e.certificate.lower_bound <= e.certificate.objective
        assert e.certificate.status is not Status.CHOSEN  # all rows are known, so no rule is better on this sample
    short = al.Explainer(model, al.Hypercube()).shortest([1] * 6, 0.001, flip_probability=p)
    assert short.certificate.relevance_error.value <= 0.001 + 1e-9


def test_where_the_second_sample_cannot_tell_the_fidelity_optimum_is_kept():
    settings = {"k": 3, "n_samples": 150, "sampling": "draw"}
    model = lambda rows: 0.9 * rows[:, 0] + 0.05 * rows[:, 1]  # noqa: E731
    chosen = al.explain(model, [1] * 10, objective="relevance", sigma=0.0, **settings)
    assert chosen.support.tolist() == al.explain(model, [1] * 10, sigma=0.0, **settings).support.tolist()


def test_shortest_reads_as_a_rule():
    def vote(rows):
        return (rows[:, :3].sum(axis=1) > 0) * 2 - 1

    explainer = al.Explainer(vote, al.Hypercube(list("abcdefghijklmnop")), output="vote")
    e = explainer.shortest(np.ones(16), 0.1, n_samples=8000)
    assert e.certificate.n_facts == 1
    assert e.as_rule().startswith("If ")
    assert "then the predicted vote stays 1 in 9" in e.as_rule()
    assert "95% interval" in e.as_rule()


def test_direct_relevance_is_the_best_rule_of_any_size():
    for seed in range(80):
        model, x, p = case(seed)
        k = int(np.random.default_rng(seed).integers(1, 5))
        e = al.explain(model, x, k=k, objective="relevance", flip_probability=p)
        allowed = k if abs(e.prediction) > 1e-12 else k - 1
        best = min(rule_errors(model, x, p)[: min(allowed, len(x)) + 1])
        assert e.certificate.relevance_error.value <= best + 1e-6, f"seed {seed}"
        assert e.certificate.n_terms <= k
        assert abs(e.intercept + e.contributions.sum() - e.prediction) <= 1e-12


def test_the_best_relevance_never_rises_with_k():
    for seed in range(40):
        model, x, p = case(seed, max_d=9)
        errors = [
            al.explain(model, x, k=k, objective="relevance", flip_probability=p).certificate.relevance_error.value
            for k in range(1, 7)
        ]
        assert all(more <= fewer + 1e-6 for fewer, more in itertools.pairwise(errors)), f"seed {seed}"


def test_a_limit_leaves_an_honest_gap():
    rng = np.random.default_rng(0)
    flips, weights = rng.random((3000, 25)) < 0.3, rng.normal(size=25)
    drops = np.tanh(flips @ weights) / 2
    problem = Problem(Evidence.from_sample(flips, drops), 5, 0.4)
    rows = SampleRows.pack(flips, drops)
    law = Law.of_literals(problem.n_literals, 0.3)
    full = relevant_rules(rows, problem, law, Limits())
    limited = relevant_rules(rows, problem, law, Limits(None, 0))
    best_errors = {len(rule.support): rule.error for rule in full}
    for rule in limited:
        assert rule.lower_bound <= best_errors[len(rule.support)] + 1e-9
        assert rule.error >= rule.lower_bound - 1e-12


def test_contributions_of_a_rule_never_cancel():
    """Contributions are opposite by symmetry, or zero, but the rule still means "both facts hold"."""
    flips = np.array(list(itertools.product((0, 1), repeat=4)), dtype=bool)
    for slopes in ([0.6, -0.6, 0, 0], [0.3, 0.3, -0.6, 0], [0.0, 0.0, 0.0, 0.0]):
        drops = flips @ np.array(slopes) * 0.5 + 0.2 * (flips[:, 0] & flips[:, 1])
        rows, problem = (
            SampleRows.pack(flips, drops, np.full(16, 1 / 16)),
            Problem(Evidence.from_sample(flips, drops), 4, 0.3),
        )
        law = Law.of_literals(4, 0.5)
        for rule in relevant_rules(rows, problem, law, Limits()):
            event = cancelling_event(rule.contributions, law)
            assert event.is_literal
            assert tuple(event.attributes) == rule.support
            assert rule.intercept + rule.contributions.sum() == pytest.approx(0.3, abs=1e-12)


def test_measured_relevance_needs_a_hundred_rows():
    rng = np.random.default_rng(1)
    flips = rng.random((400, 6)) < 0.5
    rows = SampleRows.pack(flips, rng.random(400))
    assert np.isfinite(measured_relevance(rows, np.array([0.3, 0, 0, 0, 0, 0])))
    assert np.isinf(measured_relevance(rows, np.array([0.3, 0.2, 0.15, 0.1, 0, 0])))


# The frontier


def smooth(rows):
    return np.tanh(rows @ np.linspace(-0.5, 0.6, rows.shape[1]) / 2)


def test_the_frontier_is_every_k_and_never_rises():
    explainer = al.Explainer(smooth, al.Hypercube())
    x = np.where(np.arange(20) % 3, 1, -1)
    frontier = explainer.frontier(x, ks=range(1, 9), n_samples=2000, seed=2)
    objectives = [point.objective for point in frontier.points]
    assert all(more <= fewer + 1e-12 for fewer, more in itertools.pairwise(objectives))
    assert frontier.n_queries == 1 + 2000 + 2000
    for point in frontier.points:
        alone = explainer.explain(x, k=point.k, n_samples=2000, n_certify=0, seed=2)
        assert point.objective == alone.certificate.objective
        assert (point.contributions == alone.contributions).all()
        assert point.fidelity_error.low <= point.fidelity_error.value <= point.fidelity_error.high
    assert len(frontier.to_frame()) == 8
    assert len(str(frontier).splitlines()) == 9


def test_all_limits_of_a_frontier_hold_together():
    model, x, p = case(7, max_d=6)
    ks, n_runs, together = (1, 2, 3, 4), 300, 0
    for seed in range(n_runs):
        explainer = al.Explainer(model, al.Hypercube())
        frontier = explainer.frontier(
            x, ks, n_samples=300, n_certify=300, sampling="draw", seed=seed, flip_probability=p
        )
        holds = True
        for point in frontier.points:
            fidelity, relevance, _, _ = exact_errors(model, x, point.contributions, p)
            holds &= point.fidelity_error.low <= fidelity <= point.fidelity_error.high
            holds &= point.relevance_error.low <= relevance <= point.relevance_error.high
        together += holds
    assert together >= 0.95 * n_runs - 2.6 * np.sqrt(0.05 * 0.95 * n_runs)


def test_an_enumerated_frontier_is_exact():
    model, x, p = case(3)
    for point in al.Explainer(model, al.Hypercube()).frontier(x, [1, 2, 3], flip_probability=p).points:
        fidelity, relevance, _, _ = exact_errors(model, x, point.contributions, p)
        assert point.fidelity_error.value == pytest.approx(fidelity, abs=1e-7)
        assert point.relevance_error.value == pytest.approx(relevance, abs=1e-7)


def test_a_frontier_needs_a_k():
    with pytest.raises(ParameterError, match="at least one k"):
        al.Explainer(smooth, al.Hypercube()).frontier([1, 1], ks=[])


# Alternatives


def symmetric(rows):
    """Three literals have the same effect, and k allows two of them."""
    return 0.3 * rows[:, :3].sum(axis=1) + 0.05 * rows[:, 3]


def clear(rows):
    return 0.6 * rows[:, 0] + 0.3 * rows[:, 1] + 0.05 * rows[:, 2] * rows[:, 3]


def supports(e):
    return {tuple(e.support.tolist()), *(other.support for other in e.alternatives)}


def test_what_plays_the_same_part_is_listed():
    listed, n_runs = 0, 200
    for seed in range(n_runs):
        e = al.explain(symmetric, np.ones(14), k=2, alternatives=5, sampling="draw", n_certify=0, seed=seed)
        listed += {(0, 1), (0, 2), (1, 2)} <= supports(e)
    assert listed >= 0.95 * n_runs
    assert set(e.literal_shares.values()) == {2 / 3}


def test_a_clear_case_has_none():
    none, n_runs = 0, 200
    for seed in range(n_runs):
        e = al.explain(clear, np.ones(14), k=2, alternatives=5, sampling="draw", n_certify=0, seed=seed)
        none += not e.alternatives
    assert none >= 0.95 * n_runs
    assert e.literal_shares == {"x0 = +1": 1.0, "x1 = +1": 1.0}


def test_the_true_best_is_listed():
    """With few samples the best of several close supports is often wrong, but the true best one is listed."""

    def close(rows):
        return 0.25 * rows[:, 0] + 0.24 * rows[:, 1] + 0.23 * rows[:, 2] + 0.22 * rows[:, 3]

    listed = right = 0
    n_runs = 200
    for seed in range(n_runs):
        settings = {"k": 2, "alternatives": 8, "n_samples": 400, "sampling": "draw", "n_certify": 0}
        e = al.explain(close, np.ones(14), seed=seed, **settings)
        right += tuple(e.support.tolist()) == (0, 1)
        listed += (0, 1) in supports(e)
    assert listed >= 0.95 * n_runs
    assert right < 0.9 * n_runs  # otherwise the test shows nothing


def test_alternatives_survive_json_and_verify():
    e = al.explain(symmetric, np.ones(14), k=2, alternatives=3, sampling="draw", n_samples=1000)
    assert e.alternatives
    assert al.Explanation.from_json(e.to_json()).to_json() == e.to_json()
    assert e.verify(symmetric).holds
    for other in e.alternatives:
        assert other.intercept + sum(other.values) == pytest.approx(e.prediction, abs=1e-12)


def test_with_all_neighbors_only_ties_are_alternatives():
    tied = al.explain(symmetric, np.ones(8), k=2, alternatives=5)
    assert supports(tied) == {(0, 1), (0, 2), (1, 2)}
    assert not al.explain(clear, np.ones(8), k=2, alternatives=5).alternatives


def test_what_is_a_tie_does_not_depend_on_the_scale():
    model = lambda rows: 0.5 + 1e-5 * (rows[:, 0] + 0.7 * rows[:, 1] - 0.5 * rows[:, 2])  # noqa: E731
    assert not al.explain(model, [1] * 8, k=3, alternatives=8).alternatives


def test_stability_over_seeds():
    shares = al.Explainer(symmetric, al.Hypercube()).repeat(
        np.ones(14), 20, k=2, n_samples=400, sampling="draw", n_certify=0
    )
    assert sum(shares.values()) == pytest.approx(2.0)
    assert set(shares) == {"x0 = +1", "x1 = +1", "x2 = +1"}
