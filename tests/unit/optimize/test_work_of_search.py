"""How much work a search takes, in nodes and memory, which are the same on every machine."""

import tracemalloc

import numpy as np
import pytest

from anchorline.optimize.choose import best_sum
from anchorline.optimize.moments import adjusted, exact
from anchorline.optimize.sums import Status, solve
from helpers.sums import Q, drawn, numbers


@pytest.mark.parametrize("k", [4, 8])
def test_a_proof_about_a_thousand_columns_takes_few_nodes_and_little_memory(k):
    candidates = numbers(1000, 20, own=9)
    rng = np.random.default_rng(0)
    cells = drawn(candidates, rng, 1000)
    effects = np.where(np.arange(1000) < 12, rng.normal(size=1000), 0.0)
    drops = np.tanh(effects @ (cells - candidates.starts[:-1, None] > 11))
    moments = adjusted(candidates, cells, drops, Q)
    assert moments.c.shape == moments.S.shape == (candidates.n_facts,)  # not counted below
    tracemalloc.start()
    solution = solve(moments, k)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert solution.status is Status.PROVEN
    assert solution.n_nodes <= 50
    assert peak < 30 * 8 * candidates.n_facts  # thirty numbers per fact


@pytest.mark.parametrize("mean", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("k", [4, 8])
def test_equal_attributes_do_not_make_a_long_search(mean, k):
    """Very many sums are equally good, and the bound is slightly below all of them."""
    candidates = numbers(60, 6)
    chances = candidates.chances(Q)
    heights = np.random.default_rng(1).normal(size=6)
    heights -= chances[:6] @ heights
    variance = 60 * float(chances[:6] @ heights**2)
    level = mean * np.sqrt(variance)
    moments = exact(candidates, chances, chances * (level + np.tile(heights, 60)), level, variance)
    solution = best_sum(moments, k)
    assert solution.status is Status.PROVEN
    assert solution.n_nodes <= 50
