"""The solver for independent attributes with several literals against plain enumeration and the exact solver."""

import itertools

import numpy as np
import pytest

from anchorline.optimize import Evidence, Problem, Status, solve
from anchorline.optimize.grouped import SLACK, by_problem, solve_grouped
from anchorline.optimize.options import PAIRS, GroupedProblems

# The outcomes below, above, missing, and "takes another value of the same interval": which literals they break.
BREAKS = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 1], [0, 0, 0]], dtype=bool)


def random_problems(rng, n, d, k, *, missing=True, box=1.0):
    """Return n problems of attributes with one literal or three, and their outcomes, by attribute.

    Chances may be tiny, and several covariances are equal or zero.
    """
    p = float(rng.choice([0.1, 0.2689, 0.5]))
    shares = rng.dirichlet(np.ones(4) * rng.choice([0.3, 3.0]), size=(n, d)) + 0.003
    shares[..., 2] *= missing * (rng.random((n, d)) < 0.3)
    shares[..., 3] *= rng.random((n, d)) < 0.2
    chances = p * shares / shares.sum(axis=-1, keepdims=True)
    effects = rng.normal(size=(n, d, 4)) * rng.choice([0.02, 0.1], size=(n, 1, 1)) * (rng.random((n, d, 1)) < 0.8)
    effects[::3, -1] = effects[::3, 0]
    single = rng.random((n, d)) < 0.3
    effects[single] = effects[single][:, :1]
    chances[single] = [p, 0, 0, 0]
    covariances = chances * (effects - (chances * effects).sum(axis=-1, keepdims=True))
    breaks = np.where(single[..., None, None], [True, False, False], BREAKS)  # (n, d, outcomes, literals)
    joint = np.einsum("ndo,ndoi,ndoj->ndij", chances, breaks, breaks)
    means = (chances * effects).sum(axis=(1, 2)) + rng.normal(size=n) * 0.02
    explained = (covariances**2 / np.where(chances, chances, 1)).sum(axis=(1, 2))
    explained += (covariances.sum(axis=-1) ** 2).sum(axis=-1) / (1 - p)
    problems = GroupedProblems(
        np.einsum("ndii->ind", joint).copy(),
        np.stack([joint[:, :, i, j] for i, j in PAIRS]),
        np.einsum("ndo,ndoi->ind", covariances, breaks),
        means,
        means**2 + explained + 0.001,
        rng.uniform(-1, 1, size=n),
        rng.choice([0.0, -1.0, 0.3], size=n),
        k,
        box,
    )
    return problems, problems.chances > 0


def moments(problems, i, allowed):
    """Return second moments and cross moments of the literals that exist, and their attributes."""
    d = problems.means.shape[0] and problems.chances.shape[2]
    literals = [(a, j) for a in range(d) for j in range(3) if allowed[j, i, a]]
    chances = np.array([problems.chances[j, i, a] for a, j in literals])
    second = np.outer(chances, chances)
    for x, (a, j) in enumerate(literals):
        second[x, x] = chances[x]
        for y, (b, m) in enumerate(literals):
            if a == b and j < m:
                second[x, y] = second[y, x] = problems.both[PAIRS.index((j, m)), i, a]
    covariances = np.array([problems.covariances[j, i, a] for a, j in literals])
    return second, covariances + problems.means[i] * chances, np.array([a for a, _ in literals])


def enumerated(problems, i, allowed):
    """Return the smallest error of any sum of at most k terms, by least squares on every support."""
    second, cross, _ = moments(problems, i, allowed)
    square, best = problems.squares[i], problems.squares[i]
    total = problems.predictions[i] - problems.origins[i]
    for size in range(1, min(problems.k, len(cross)) + 1):
        for support in map(list, itertools.combinations(range(len(cross)), size)):
            g, h = second[np.ix_(support, support)], cross[support]
            fits = [np.linalg.lstsq(g, h, rcond=1e-12)[0]] if size < problems.k else []
            bordered = np.block([[g, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            fits.append(np.linalg.lstsq(bordered, np.append(h, total), rcond=1e-12)[0][:-1])
            kept = [u for u in fits if size < problems.k or abs(u.sum() - total) < 1e-9]
            best = min([best, *(float(square - 2 * h @ u + u @ g @ u) for u in kept)])
    return best


@pytest.mark.parametrize("seed", range(20))
def test_equals_enumeration(seed):
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    problems, exists = random_problems(rng, 6, d, k, box=None)
    allowed = exists & (rng.random(exists.shape) < 0.9)
    found = solve_grouped(problems, allowed)
    for i in np.flatnonzero(found.solved).tolist():
        assert not found.contributions[:, i][~allowed[:, i]].any()
        best, square = enumerated(problems, i, allowed), problems.squares[i]
        assert found.objectives[i] == pytest.approx(best, rel=0, abs=2 * SLACK * square)
        assert found.lower_bounds[i] <= best + 1e-13 * square
        assert found.lower_bounds[i] >= best - 3 * SLACK * square


@pytest.mark.parametrize("seed", range(20))
def test_equals_the_exact_solver_and_keeps_the_box(seed):
    rng = np.random.default_rng(100 + seed)
    d, k = int(rng.integers(2, 11)), int(rng.integers(1, 7))
    problems, exists = random_problems(rng, 4, d, k, missing=seed % 2 == 0)
    found = solve_grouped(problems, exists)
    for i in range(4):
        second, cross, groups = moments(problems, i, exists)
        evidence = Evidence(
            n_rows=1,
            weight=1.0,
            flip_sums=second.diagonal(),
            pair_sums=second,
            cross_sums=cross[:, None],
            drop_sums=(problems.means[i],),
            square_sums=(problems.squares[i],),
        )
        problem = Problem(evidence, k, problems.predictions[i], box=1.0, origin=problems.origins[i], groups=groups)
        solution = solve(problem, node_limit=300)
        if not found.solved[i] or solution.status is not Status.OPTIMAL:
            continue
        contributions = by_problem(found.contributions)[i][by_problem(exists)[i]]
        level = problem.prediction - contributions.sum() if found.with_level[i] else problem.origin
        assert found.objectives[i] == pytest.approx(solution.objective, rel=0, abs=1e-9 * problems.squares[i])
        assert found.objectives[i] == pytest.approx(problem.objective(contributions), rel=0, abs=1e-12)
        assert problem.n_terms(contributions, level) <= k
        assert contributions.sum() + level == pytest.approx(problem.prediction, abs=1e-9)
        assert np.abs(contributions).max() <= 1
        assert abs(level) <= 1 or not found.with_level[i]


def test_most_problems_are_solved():
    rng = np.random.default_rng(0)
    problems, exists = random_problems(rng, 100, 20, 5)
    assert solve_grouped(problems, exists).solved.mean() > 0.6


@pytest.mark.parametrize("d", [9, 33])
def test_a_problem_does_not_depend_on_the_others(d):
    rng = np.random.default_rng(1)
    problems, exists = random_problems(rng, 50, d, 5)
    together = solve_grouped(problems, exists)
    for i in range(50):
        alone = solve_grouped(problems.take(np.array([i])), exists[:, [i]])
        assert np.array_equal(alone.contributions[:, 0], together.contributions[:, i])
        for name in ("objectives", "lower_bounds", "with_level", "solved"):
            assert np.array_equal(getattr(alone, name)[0], getattr(together, name)[i])


def test_two_facts_of_one_attribute_are_its_bounds_if_the_starting_level_is_free():
    rng = np.random.default_rng(2)
    problems, exists = random_problems(rng, 200, 3, 5, missing=False, box=None)
    found = solve_grouped(problems, exists)
    n_facts = np.count_nonzero(found.contributions, axis=0)
    pairs = found.solved[:, None] & found.with_level[:, None] & (n_facts == 2)
    assert pairs.any()
    assert not found.contributions[0][pairs].any()
