"""The closed form for independent literals against plain enumeration, and against the exact solver."""

import itertools

import numpy as np
import pytest

from anchorline.optimize import Evidence, Problem, Status, solve
from anchorline.optimize.independent import IndependentProblems, solve_independent


def random_problems(rng, n, d, k):
    """Return n problems with covariances of several sizes, and with ties."""
    covariances = rng.normal(size=(n, d)) * rng.choice([0.003, 0.03, 0.1], size=(n, 1))
    covariances[::3, -1] = covariances[::3, 0]
    return IndependentProblems(
        probability=float(rng.choice([0.02, 0.1, 0.2689, 0.5])),
        means=rng.normal(size=n) * 0.1,
        covariances=covariances,
        rests=rng.random(n) * 0.01,
        predictions=rng.uniform(-1, 1, size=n),
        origins=rng.choice([0.0, -1.0, -2.5, 0.3], size=n),
        k=k,
        box=None if rng.random() < 0.3 else 1.0,
    )


def problem_of(problems, i):
    """Return one of the problems, with moments in the form that solvers take."""
    p, mean, covariances = problems.probability, float(problems.means[i]), problems.covariances[i]
    pairs = np.full((len(covariances), len(covariances)), p * p)
    np.fill_diagonal(pairs, p)
    evidence = Evidence(
        n_rows=1,
        weight=1.0,
        flip_sums=np.full(len(covariances), p),
        pair_sums=pairs,
        cross_sums=(covariances + mean * p)[:, None],
        drop_sums=(mean,),
        square_sums=(float(problems.squares[i]),),
    )
    settings = {"box": problems.box, "origin": float(problems.origins[i])}
    return Problem(evidence, problems.k, float(problems.predictions[i]), **settings)


def enumerated(problems, i, allowed):
    """Return the smallest error of any sum of at most k terms, by least squares on every support."""
    p, d = problems.probability, problems.covariances.shape[1]
    mean, s = problems.means[i], problems.covariances[i]
    gram = np.full((d, d), p * p) + np.eye(d) * (p - p * p)
    cross, square = s + mean * p, problems.squares[i]
    total, best = problems.predictions[i] - problems.origins[i], square
    for size in range(1, min(problems.k, len(allowed)) + 1):
        for support in map(list, itertools.combinations(allowed, size)):
            g, h = gram[np.ix_(support, support)], cross[support]
            fits = [np.linalg.solve(g, h)] if size < problems.k else []
            bordered = np.block([[g, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            fits.append(np.linalg.solve(bordered, np.append(h, total))[:-1])
            best = min(best, *(float(square - 2 * h @ u + u @ g @ u) for u in fits))
    return best


@pytest.mark.parametrize("seed", range(12))
def test_equals_enumeration(seed):
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(1, 8)), int(rng.integers(1, 6))
    problems = random_problems(rng, 6, d, k)
    allowed = rng.random((6, d)) < 0.8
    allowed[:, 0] = True
    found = solve_independent(problems, allowed)
    for i in np.flatnonzero(found.solved).tolist():
        assert not found.contributions[i, ~allowed[i]].any()
        best = enumerated(problems, i, np.flatnonzero(allowed[i]).tolist())
        assert found.objectives[i] == pytest.approx(best, rel=0, abs=1e-12 * problems.squares[i])


@pytest.mark.parametrize("seed", range(12))
def test_equals_the_exact_solver_and_keeps_the_box(seed):
    rng = np.random.default_rng(100 + seed)
    d, k = int(rng.integers(2, 13)), int(rng.integers(1, 6))
    problems = random_problems(rng, 8, d, k)
    found = solve_independent(problems, np.ones((8, d), dtype=bool))
    for i in range(8):
        problem = problem_of(problems, i)
        solution = solve(problem, node_limit=200)
        if not found.solved[i] or solution.status is not Status.OPTIMAL:
            continue
        contributions = found.contributions[i]
        level = problem.prediction - contributions.sum() if found.with_level[i] else problem.origin
        assert found.objectives[i] == pytest.approx(solution.objective, rel=0, abs=1e-9 * problems.squares[i])
        assert found.objectives[i] == pytest.approx(problem.objective(contributions), rel=0, abs=1e-12)
        assert problem.n_terms(contributions, level) <= k
        if problems.box is not None:
            assert np.abs(contributions).max() <= 1
            assert abs(level) <= 1 or not found.with_level[i]


def test_most_problems_of_small_drops_are_solved():
    rng = np.random.default_rng(0)
    problems = random_problems(rng, 200, 20, 5)
    assert solve_independent(problems, np.ones((200, 20), dtype=bool)).solved.mean() > 0.6


def test_a_problem_does_not_depend_on_the_others():
    rng = np.random.default_rng(1)
    problems, allowed = random_problems(rng, 50, 33, 5), rng.random((50, 33)) < 0.9
    together = solve_independent(problems, allowed)
    for i in range(50):
        alone = solve_independent(problems.take(np.array([i])), allowed[[i]])
        for name in ("contributions", "objectives", "with_level", "solved"):
            assert np.array_equal(getattr(alone, name)[0], getattr(together, name)[i])


def test_a_sum_outside_the_box_is_left_to_another_solver():
    problems = IndependentProblems(
        probability=0.5,
        means=np.array([0.4]),
        covariances=np.array([[0.4, 0.3, 0.01]]),
        rests=np.zeros(1),
        predictions=np.array([0.1]),
        origins=np.zeros(1),
        k=2,
        box=1.0,
    )
    assert not solve_independent(problems, np.ones((1, 3), dtype=bool)).solved[0]
