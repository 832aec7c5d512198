"""Rules against plain enumeration of all boxes, which shares no code with the search."""

import itertools
import math

import numpy as np
import pytest

from anchorline.explainer import Explainer
from anchorline.facts import Candidates
from anchorline.optimize.boxes import Boxes, Draws, Goal, best_rule
from anchorline.spaces.table import Table

N_PROBLEMS = 250


def a_problem(seed):
    """Return boxes about up to 6 attributes with up to 6 cuts, a goal, and the most facts."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 7))
    sizes = rng.integers(2, 8, size=d)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    own = starts[:-1] + rng.integers(0, sizes)
    views, first, last = [], [], []
    for v in range(d):
        for low in range(starts[v], own[v] + 1):
            for high in range(own[v] + 1, starts[v + 1] + 1):
                if high - low < sizes[v]:
                    views.append(v)
                    first.append(low)
                    last.append(high)
    shares = np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes])
    candidates = Candidates(
        np.arange(d), starts, shares, own, *(np.array(each) for each in (views, first, last)), np.zeros(len(views))
    )
    n = int(rng.integers(5, 300))
    cells = starts[:-1, None] + (rng.random((d, n)) * sizes[:, None]).astype(int)
    effects = rng.normal(size=d)
    stays = np.abs((cells - own[:, None]) / sizes[:, None]).T @ np.abs(effects) < rng.uniform(0.2, 2)
    stays ^= rng.random(n) < rng.choice([0, 0.05])
    is_exact = bool(rng.random() < 0.5)
    weights = rng.random(n) if is_exact or rng.random() < 0.5 else np.ones(n)
    ratios = np.where(rng.random((d, n)) < 0.2, 0.0, rng.uniform(0.5, 2, size=(d, n)))
    rows = starts[:-1, None] + (rng.random((d, 40)) * sizes[:, None]).astype(int) if rng.random() < 0.7 else None
    draws = Draws(cells, stays, weights, ratios, is_exact=is_exact)
    unbroken = rng.uniform(0.2, 1, size=len(views))
    target = None if rng.random() < 0.2 else float(rng.uniform(0.5, 0.99))
    goal = Goal(target, 0.0 if is_exact else 1.0)
    return Boxes(candidates, draws, rows, unbroken, 0.05), goal, int(rng.integers(1, min(d, 3) + 1))


def enumerated(boxes, goal, k):
    """Return the value of the best rule by comparing every box; scores are computed one by one."""
    c, draws = boxes.candidates, boxes.draws
    best = None
    for m in range(1, k + 1):
        for attributes in itertools.combinations(range(len(c.own)), m):
            facts = [np.flatnonzero(c.views == v) for v in attributes]
            weights = draws.weights * np.prod(draws.ratios[list(attributes)], axis=0)
            both = [_scaled(weights, draws.is_exact), _scaled(draws.weights, draws.is_exact)]
            for chosen in itertools.product(*facts):
                inside = np.ones(len(draws.stays), dtype=bool)
                covered = None if boxes.rows is None else np.ones(boxes.rows.shape[1], dtype=bool)
                width = unbroken = 1.0
                for v, fact in zip(attributes, chosen, strict=True):
                    low, high = c.first[fact], c.last[fact]
                    inside &= (draws.cells[v] >= low) & (draws.cells[v] < high)
                    width *= sum(c.shares[low:high])
                    unbroken *= boxes.unbroken[fact]
                    if covered is not None:
                        covered &= (boxes.rows[v] >= low) & (boxes.rows[v] < high)
                asked = both if unbroken >= boxes.fewest else both[:1]
                scores = [
                    _score(goal, w[inside & draws.stays].sum(), w[inside & ~draws.stays].sum()) for w in asked
                ]
                n = both[0][inside].sum()
                share = both[0][inside & draws.stays].sum() / n if n else 0.0
                coverage = width if covered is None else covered.sum()
                reached = goal.target is not None and min(scores) >= goal.margin - 1e-12
                value = (True, coverage, width, share) if reached else (False, min(scores), coverage, width)
                if best is None or _is_better(value, best):
                    best = value
        if best is not None and best[0]:
            break
    return best


def _is_better(value, best):
    for a, b in zip(value, best, strict=True):
        if not math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9):
            return a > b
    return False


def _scaled(weights, is_exact):
    return weights if is_exact or not weights.any() else weights * weights.sum() / (weights**2).sum()


def _score(goal, kept, lost):
    n = kept + lost
    if n == 0:
        return -1.0 if goal.target is None or goal.margin == 0 else -math.inf
    if goal.target is None:
        z, p = goal.margin, kept / n
        return (p + z * z / (2 * n) - z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))) / (1 + z * z / n)
    if goal.margin == 0:
        return kept / n - goal.target
    return ((1 - goal.target) * kept - goal.target * lost) / math.sqrt(goal.target * (1 - goal.target) * n)


@pytest.mark.parametrize("first", range(0, N_PROBLEMS, 25))
def test_a_proven_rule_is_the_best_of_all_boxes(first):
    n_proven = 0
    for seed in range(first, first + 25):
        boxes, goal, k = a_problem(seed)
        if not len(boxes.candidates.views):
            continue
        best, is_proven, _ = best_rule(boxes, k, goal)
        expected = enumerated(boxes, goal, k)
        if not is_proven:
            continue
        n_proven += 1
        assert best.value[0] == expected[0], seed
        np.testing.assert_allclose(best.value[1:3], expected[1:3], rtol=1e-7, err_msg=str(seed))
    assert n_proven >= 15


def test_a_search_that_is_stopped_is_not_called_proven():
    boxes, goal, _ = next(p for p in map(a_problem, range(100)) if len(p[0].candidates.own) >= 4)
    assert best_rule(boxes, 3, goal, most=2)[1] is False


def a_table(seed):
    """Return a small table of whole numbers, weights of a vote, and a row."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 5))
    values = rng.integers(0, rng.integers(2, 6, size=d), size=(40, d))
    return values, rng.normal(size=d), float(rng.normal()), int(rng.integers(40))


def listed_rules(values, score, row, q, target, k):
    """Yield every rule of at most k intervals of values: columns, bounds, coverage, width, and both shares."""
    n, d = values.shape
    x = values[row]
    levels = [np.unique(values[:, j]) for j in range(d)]
    grid = np.array(list(itertools.product(*levels)))
    stays = score(grid) == score(x[None])[0]
    pool = [np.array([np.mean(values[:, j] == level) for level in levels[j]]) for j in range(d)]
    law = [q * pool[j] + (1 - q) * (levels[j] == x[j]) for j in range(d)]
    places = [np.searchsorted(levels[j], grid[:, j]) for j in range(d)]
    for m in range(1, k + 1):
        for columns in itertools.combinations(range(d), m):
            ranges = []
            for j in columns:
                pairs = itertools.combinations_with_replacement(levels[j], 2)
                ranges.append(
                    [(a, b) for a, b in pairs if a <= x[j] <= b and (a, b) != (levels[j][0], levels[j][-1])]
                )
            for bounds in itertools.product(*ranges):
                drawn, own, inside = np.ones(len(grid)), np.ones(len(grid)), np.ones(n, dtype=bool)
                width = unbroken = 1.0
                for j in range(d):
                    chance = law[j]
                    if j in columns:
                        a, b = bounds[columns.index(j)]
                        true = (levels[j] >= a) & (levels[j] <= b)
                        chance, limited = (
                            np.where(true, pool[j], 0) / pool[j][true].sum(),
                            np.where(true, law[j], 0),
                        )
                        inside &= (values[:, j] >= a) & (values[:, j] <= b)
                        width, unbroken = width * pool[j][true].sum(), unbroken * limited.sum()
                        own *= limited[places[j]]
                    else:
                        own *= law[j][places[j]]
                    drawn *= chance[places[j]]
                shares = [drawn[stays].sum()] + [own[stays].sum() / own.sum()] * int(unbroken >= 0.05)
                yield m, columns, bounds, int(inside.sum()), width, min(shares)


@pytest.mark.parametrize("seed", range(40))
def test_a_rule_of_a_small_table_is_the_best_of_all(seed):
    values, weights, offset, row = a_table(seed)

    def score(z):
        return ((np.asarray(z) - values.mean(axis=0)) @ weights + 0.5 * offset > 0).astype(int)

    table = Table(values, names=[f"c{j}" for j in range(values.shape[1])])
    if len(table.attributes) < values.shape[1]:
        pytest.skip("columns that say the same thing form one attribute")
    explainer = Explainer(score, table, task="label")
    rule = explainer.rule(values[row].tolist(), holds=0.9, k=3)
    assert rule.is_proven
    q = 2 / (1 + math.e)
    every = list(listed_rules(values, score, row, q, 0.9, 3))
    reached = [each for each in every if each[-1] >= 0.9 - 1e-12]
    if rule.facts == ():
        assert rule.all.value >= 0.9
        return
    if not reached:
        assert not rule.is_reached
        assert rule.holds.value == pytest.approx(max(each[-1] for each in every))
        return
    fewest = min(each[0] for each in reached)
    assert len(rule.facts) == fewest
    most = max(each[3] for each in reached if each[0] == fewest)
    assert round(rule.coverage * len(values)) == most
    same = [each for each in reached if each[0] == fewest and each[3] == most]
    assert any(each[-1] == pytest.approx(rule.holds.value) for each in same)
