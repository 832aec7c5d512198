"""Algorithm 1: its projection against enumeration, its iterates against the lemmas of the paper.

The convergence and trajectory lemmas assume that every coordinate flips, the constant included. The tests follow
two kinds of traces:

- *genuine* traces: a random column plays the constant, so that the assumptions of the lemmas are met. Multiplying
  rows and outputs by their first entry changes no moment of Z or y, and makes that column constant. `solve_iht` on
  the result therefore runs the paper's Algorithm 1 on the original sample, and `solve` finds its optimum.
- *our* traces: the constant never flips. The bound on xi still holds always. Descent holds if the sample is smooth
  along anchored directions. The literals stay within the radius of alpha minus the square of property (ii). Radius
  and contraction hold with the constants of the sample. The paper's rate does not hold, and a test shows how it
  fails.
"""

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anchorline.errors import ParameterError
from anchorline.paper import (
    Evidence,
    Problem,
    Status,
    check,
    end_to_end_factor,
    flip_probability,
    iht_iterations,
    iht_step,
    project_sparse_sum,
    solve,
    solve_iht,
)
from anchorline.paper.iht import gradient
from benchmarks.experiments.regularity import check_regularity, follow_trajectory, largest_norm
from helpers.paper_oracle import all_flips, draw_flips, enumerate_projection, generate, moments

SIZES = {0.0: 20_000, 0.5: 40_000, 1.0: 40_000, 2.0: 100_000}  # enough to certify
ROUNDING = 1e-9
vectors = st.lists(st.floats(-3, 3, width=16), min_size=1, max_size=8).map(np.array)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(values=vectors, k=st.integers(1, 9), total=st.sampled_from([0.0, 1.0, -1.0, 0.3, 2.5]))
def test_projection_equals_enumeration(values, k, total):
    projected = project_sparse_sum(values, k, total)
    assert np.count_nonzero(projected) <= k
    assert projected.sum() == pytest.approx(total, abs=1e-12)
    assert ((projected - values) ** 2).sum() == pytest.approx(enumerate_projection(values, k, total)[1], abs=1e-9)


def test_the_case_where_greedy_selection_fails():
    assert project_sparse_sum(np.array([0.0, 1.0, -1.0]), 2, 0.0).tolist() == [0.0, 1.0, -1.0]


def test_projection_of_many_values():
    """A best support consists of the largest and the smallest values, so that four supports suffice."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = rng.normal(size=200)
        order, distances = np.argsort(values), []
        for p in range(4):
            support = np.r_[order[:p], order[197 + p :]]
            distances.append(3 * values[support].mean() ** 2 + (np.delete(values, support) ** 2).sum())
        projected = project_sparse_sum(values, 3, 0.0)
        assert ((projected - values) ** 2).sum() == pytest.approx(min(distances), abs=1e-9)


def test_the_projection_ignores_what_lies_along_x():
    """Property (ii) is not needed, because explanations lie in a hyperplane normal to x."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        d = int(rng.integers(1, 9))
        values, k, total = rng.normal(size=d), int(rng.integers(1, d + 1)), float(rng.uniform(-1, 1))
        shifted = project_sparse_sum(values + rng.normal(), k, total)
        assert shifted == pytest.approx(project_sparse_sum(values, k, total), abs=1e-9)


def test_iht_is_never_below_the_optimum_without_box():
    for seed in range(120):
        made = generate(seed)
        evidence = Evidence.from_sample(made.flips, made.drops, made.weights)
        problem = Problem(evidence, made.k, made.prediction, box=None)
        heuristic = solve(problem, "iht", max_iterations=300)
        assert heuristic.objective >= solve(problem).objective - 1e-9, f"seed {seed}"
        assert heuristic.status is Status.HEURISTIC
        check(problem, heuristic)


# --- traces ---------------------------------------------------------------------------------------------------


def network(rng, d):
    hidden, bias, out = rng.normal(size=(d, 6)) / math.sqrt(d), rng.normal(size=6) / 2, rng.normal(size=6)
    return lambda rows: np.tanh(np.tanh(2 * rows @ hidden + bias) @ out)


def classifier(rng, d):
    score = network(rng, d)
    return lambda rows: np.where(score(rows) >= 0, 1.0, -1.0)


def table(rng, d):
    values = rng.uniform(-1, 1, 2**d)
    return lambda rows: values[(rows < 0) @ (1 << np.arange(d))]


def short_sum(rng, d):
    w = np.zeros(d)
    w[rng.choice(d, 2, replace=False)] = rng.uniform(-0.5, 0.5, 2)
    return lambda rows: rows @ w


@dataclass(frozen=True)
class Trace:
    """The iterates of Algorithm 1 on one problem, and the optimum that they should approach."""

    problem: Problem
    iterates: list[np.ndarray]
    reference: np.ndarray

    def objective(self, terms):
        return self.problem.objective(terms[1:])

    def follow(self, sigma, regularity=None):
        slope = functools.partial(gradient, self.problem)
        options = {"k": self.problem.k, "sigma": sigma, "regularity": regularity}
        return follow_trajectory(self.iterates, self.objective, slope, self.reference, **options)


def watch_iht(problem, **options):
    """Return the solution, the iterates and their objectives."""
    iterates, objectives = [], []

    def watch(terms, objective):
        iterates.append(terms)
        objectives.append(objective)

    return solve_iht(problem, watch=watch, **options), iterates, objectives


def run(problem, sigma, **options) -> Trace:
    _, iterates, _ = watch_iht(problem, step=iht_step(sigma), **options)
    best = solve(problem).require_optimal()
    return Trace(problem, iterates, np.append(best.intercept, best.contributions))


def signed_evidence(flips, outputs, prediction):
    """Multiply rows and outputs by the first agreement, which keeps all moments and makes column 0 constant."""
    sign = 1.0 - 2.0 * flips[:, 0]
    return Evidence.from_sample(flips[:, 1:] ^ flips[:, :1], (prediction - sign * outputs) / 2)


def models_on(flips, seed):
    """The outputs of each model on the agreements, with its prediction at x."""
    rng, rows = np.random.default_rng(seed), 1.0 - 2.0 * flips
    for make in (network, classifier, table, short_sum):
        model = make(rng, flips.shape[1])
        yield model(rows), float(model(np.ones((1, flips.shape[1])))[0])


def genuine_traces(sigma, k, seed, shift=0.0, d=9):
    """The regularity of all d + 1 columns, and traces in which a random column plays the constant."""
    flips = draw_flips(sigma, d + 1, SIZES[sigma], seed, shift)
    sample = check_regularity(*moments(flips), flip_probability(sigma), k, n_supports=50)
    problems = [
        Problem(signed_evidence(flips, outputs, at_x), k, at_x) for outputs, at_x in models_on(flips, seed)
    ]
    return sample, [run(problem, sigma) for problem in problems]


def our_traces(sigma, k, seed, d=9):
    """The regularity of the literals and of all terms, and traces in which the constant never flips."""
    flips = draw_flips(sigma, d, SIZES[sigma], seed)
    p = flip_probability(sigma)
    literals = check_regularity(*moments(flips), p, k, n_supports=50)
    terms = check_regularity(*moments(flips), p, k, n_supports=50, constant=True)
    with_constant = np.column_stack([np.zeros(len(flips), dtype=bool), flips])
    problems = [
        Problem(Evidence.from_sample(flips, (at_x - outputs) / 2), k, at_x)
        for outputs, at_x in models_on(with_constant, seed)
    ]
    return literals, terms, [run(problem, sigma) for problem in problems]


def test_watch_sees_every_iterate_and_changes_nothing():
    flips = draw_flips(1.0, 8, 2_000)
    for outputs, at_x in models_on(np.column_stack([np.zeros(2_000, dtype=bool), flips]), 0):
        problem = Problem(Evidence.from_sample(flips, (at_x - outputs) / 2), 3, at_x)
        solution, iterates, objectives = watch_iht(problem)
        plain = solve(problem, "iht")
        assert solution.objective == plain.objective == min(objectives)
        assert np.array_equal(solution.contributions, plain.contributions)
        assert iterates[0].tolist() == [at_x, *[0.0] * 8]
        assert objectives[0] == problem.evidence.drop_square
        for terms, objective in zip(iterates, objectives, strict=True):
            assert np.count_nonzero(terms) <= 3
            assert terms.sum() == pytest.approx(at_x, abs=1e-12)
            residuals = at_x - outputs - 2 * flips @ terms[1:]
            assert objective == pytest.approx(np.mean(residuals**2) / 4, abs=1e-12)
        first = watch_iht(problem, max_iterations=2)[1]
        assert len(first) <= 3
        assert all(np.array_equal(a, b) for a, b in zip(first, iterates, strict=False))


@pytest.mark.parametrize("seed", range(3))
def test_signed_rows_run_algorithm_one_on_the_rows_themselves(seed):
    """Algorithm 1 as the paper states it, on Z with a random first column, gives the watched iterates."""
    sigma, k = 1.0, 2
    flips = draw_flips(sigma, 6, 800, seed)
    z = 1.0 - 2.0 * flips
    for outputs, at_x in models_on(flips, seed):
        problem = Problem(signed_evidence(flips, outputs, at_x), k, at_x)
        trace = run(problem, sigma)
        w = np.zeros(6)
        w[0] = at_x
        for iterate in trace.iterates[:8]:
            assert iterate == pytest.approx(w, abs=1e-9)
            assert trace.objective(iterate) == pytest.approx(np.mean((z @ w - outputs) ** 2) / 4, abs=1e-12)
            slope = z.T @ (z @ w - outputs) / len(z)
            assert gradient(problem, iterate) == pytest.approx(slope, abs=1e-9)
            w, _ = enumerate_projection(w - iht_step(sigma) * slope, k, at_x)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("sigma", SIZES)
def test_the_lemmas_hold_where_their_assumptions_do(sigma, k):
    sample, traces = genuine_traces(sigma, k, seed=0)
    assert sample.verdict == "certified"
    assert sample.rho <= 4 / 19
    for trace in traces:
        path = trace.follow(sigma)
        assert path.rho == pytest.approx(51 / 152)
        assert path.broken() == ()
        assert np.all(path.contractions <= path.rho)
        assert np.all(path.distances <= path.distance_bounds + ROUNDING)
        assert trace.follow(sigma, sample).broken() == ()  # with the sharper constants of the sample
        optimum = trace.objective(trace.reference)
        for epsilon in (0.1, 0.001):  # the end-to-end theorem, without generalization and Lemma "Fidelity"
            late = path.objectives[min(iht_iterations(k, sigma, epsilon), len(path.objectives) - 1) :]
            assert np.all(late <= end_to_end_factor(k, sigma) * optimum + epsilon / 2)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("sigma", SIZES)
def test_what_holds_where_the_constant_never_flips(sigma, k):
    literals, terms, traces = our_traces(sigma, k, seed=0)
    assert literals.verdict == "certified"
    assert terms.smoothness == "certified"
    convexity = literals.alpha - literals.mean_norm**2  # h'Hh - (zeta'h)^2 <= mean (2 F h)^2
    for trace in traces:
        path = trace.follow(sigma)
        assert not {"residual", "descent"} & set(path.broken())
        assert trace.follow(sigma, terms).broken() == ()
        gaps = np.array(trace.iterates)[:, 1:] - trace.reference[1:]
        fits = path.objectives + trace.objective(trace.reference)
        assert np.all(convexity * np.sum(gaps**2, axis=1) <= 8 * fits + ROUNDING)
        literal_norms = np.abs(np.array(trace.iterates)[:, 1:]).sum(axis=1)
        assert np.all(literal_norms <= k + 4 * math.sqrt(k / convexity))
        assert path.norms.max() <= path.radius  # the paper's B is not proved here, but far away


@pytest.mark.parametrize("sigma", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("d", [1, 2, 4])
def test_the_papers_rate_fails_where_the_constant_never_flips(sigma, d):
    """For f(z) = mean z on the distribution itself, Assumption 1 holds for all literals, and xi = 0.

    The error lies along (-d, 1, ..., 1) / d and shrinks by 1 - (18/19) (1 + d e^-sigma) / (1 + d) per step.
    """
    p = flip_probability(sigma)
    flips, weights = all_flips(d, p)
    problem = Problem(Evidence.from_sample(flips, flips.mean(axis=1), weights), d + 1, 1.0)
    assert check_regularity(*moments(flips, weights), p, d + 1).verdict == "certified"
    path = run(problem, sigma).follow(sigma)
    factor = 1 - 18 / 19 * (1 + d * math.exp(-sigma)) / (1 + d)
    assert path.xi == pytest.approx(0, abs=1e-9)
    assert path.contractions[:8] == pytest.approx(factor, abs=1e-6)
    assert factor > path.rho
    assert path.broken() == ("contraction",)


def test_the_papers_iteration_count_falls_short_where_the_constant_never_flips():
    """At k = 5 and sigma = 2, the fidelity error after the T iterations of the theorem is 300 times too large."""
    sigma, d, k, epsilon = 2.0, 4, 5, 1e-6
    flips, weights = all_flips(d, flip_probability(sigma))
    trace = run(Problem(Evidence.from_sample(flips, flips.mean(axis=1), weights), k, 1.0), sigma)
    after = trace.objective(trace.iterates[iht_iterations(k, sigma, epsilon, xi=0.0)])
    assert trace.objective(trace.reference) == pytest.approx(0, abs=1e-12)
    assert after > 300 * epsilon / 2


@pytest.mark.parametrize(("sigma", "shift"), [(0.5, -0.02), (0.5, 0.02), (1.0, -0.015), (2.0, -0.01)])
def test_property_two_is_not_needed(sigma, shift):
    """Flips drawn slightly off p shift the means but hardly the curvature. The rate without (ii) still holds."""
    sample, traces = genuine_traces(sigma, 3, seed=0, shift=shift)
    assert sample.centering == "refuted"
    assert sample.smoothness == "certified"
    assert sample.rho < 51 / 152
    for trace in traces:
        assert trace.follow(sigma, sample).broken() == ()


def test_too_small_a_sample_breaks_the_lemmas():
    """The tests above can fail: forty rows are refuted, and objectives rise."""
    for seed in range(5):
        flips = draw_flips(2.0, 40, 40, seed)
        assert check_regularity(*moments(flips), flip_probability(2.0), 3).verdict == "refuted"
        outputs = np.tanh((1.0 - 2.0 * flips) @ np.random.default_rng(seed).normal(size=40))
        problem = Problem(Evidence.from_sample(flips, (0.5 - outputs) / 2), 3, 0.5)
        assert "descent" in run(problem, 2.0, max_iterations=200).follow(2.0).broken()


def test_trajectory_checks_its_arguments_and_owns_its_arrays():
    goal = np.array([0.5, 0.5])
    path = follow_trajectory([goal, goal], lambda _: 0.0, np.zeros_like, goal, k=1, sigma=1.0)
    assert path.contractions.tolist() == [0.0]  # it starts at the optimum and stays
    assert path.gradient_norms.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="read-only"):
        path.norms[0] = 2.0
    with pytest.raises(ParameterError, match="watch="):
        follow_trajectory([], lambda _: 0.0, np.zeros_like, goal, k=1, sigma=1.0)
    with pytest.raises(ParameterError, match=r"\(3,\)"):
        follow_trajectory([goal], lambda _: 0.0, np.zeros_like, np.zeros(3), k=1, sigma=1.0)
    away = follow_trajectory([goal, -goal], lambda _: 0.0, np.zeros_like, goal, k=1, sigma=1.0)
    assert away.contractions.tolist() == [np.inf]
    assert away.broken() == ("contraction",)


def test_xi_over_3k_coordinates():
    slope = np.array([1.0, -4.0, 2.0, 0.5, 3.0])
    brute = max(np.linalg.norm(slope[list(s)]) for s in itertools.combinations(range(5), 3))
    assert largest_norm(slope, 3) == pytest.approx(brute)
    assert largest_norm(slope, 9) == pytest.approx(np.linalg.norm(slope))
