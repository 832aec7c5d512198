"""Facts without an effect are found, and facts without an effect pass as rarely as promised."""

import numpy as np

from anchorline.search.effects import idle_facts
from anchorline.search.sampling import DrawnFlips, EnumeratedFlips
from anchorline.spaces.base import Law

LAW = Law.of_literals(6, 0.2689)


def idle_of(drawn, effect, support, delta):
    draws, weights = drawn.rows(0, drawn.n_rows)
    flips = LAW.flips(draws)
    drops = 0.4 * flips[:, 0] + effect * flips[:, 1] - 0.2 * flips[:, 2] * flips[:, 3]
    support = np.array(support)
    return support[idle_facts(flips[:, support], drops, weights, LAW.groups[support], delta)].tolist()


def test_a_fact_that_does_not_matter_passes_at_most_as_often_as_delta_allows():
    passed, n_runs = 0, 400
    for key in range(n_runs):
        flips = DrawnFlips(key, 300, LAW.ends)
        passed += 1 not in idle_of(flips, 0.0, [0, 1], delta=0.1)
    assert passed <= 0.1 * n_runs


def test_facts_that_matter_are_found():
    flips = DrawnFlips(7, 2500, LAW.ends)
    assert idle_of(flips, 0.1, [0, 1, 2, 3], delta=0.01) == []
    assert idle_of(flips, 0.1, [0, 5], delta=0.01) == [5]


def test_over_all_neighbors_only_rounding_counts_as_zero():
    flips = EnumeratedFlips(LAW)
    assert idle_of(flips, 1e-5, [0, 1, 4], delta=0.01) == [4]
    assert idle_of(flips, 1e-9, [0, 1], delta=0.01) == [1]
