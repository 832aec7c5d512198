"""Facts without an effect are found, and facts without an effect pass as rarely as promised."""

import numpy as np

from anchorline.search.effects import idle_facts
from anchorline.search.sampling import DrawnFlips, EnumeratedFlips
from anchorline.spaces.base import Law

LAW = Law.of_literals(6, 0.2689)


def drops_of(flips, effect):
    rows = LAW.flips(flips.rows(0, flips.n_rows)[0])
    return 0.4 * rows[:, 0] + effect * rows[:, 1] - 0.2 * rows[:, 2] * rows[:, 3]


def test_a_fact_that_does_not_matter_passes_at_most_as_often_as_delta_allows():
    support, passed, n_runs = np.array([0, 1]), 0, 400
    for key in range(n_runs):
        flips = DrawnFlips(key, 300, LAW.ends)
        passed += 1 not in idle_facts(LAW, flips, drops_of(flips, 0.0), support, delta=0.1)
    assert passed <= 0.1 * n_runs


def test_facts_that_matter_are_found():
    flips = DrawnFlips(7, 2500, LAW.ends)
    assert idle_facts(LAW, flips, drops_of(flips, 0.1), np.array([0, 1, 2, 3]), delta=0.01) == ()
    assert idle_facts(LAW, flips, drops_of(flips, 0.1), np.array([0, 5]), delta=0.01) == (5,)


def test_over_all_neighbors_only_rounding_counts_as_zero():
    flips = EnumeratedFlips(LAW)
    assert idle_facts(LAW, flips, drops_of(flips, 1e-5), np.array([0, 1, 4]), delta=0.01) == (4,)
    assert idle_facts(LAW, flips, drops_of(flips, 1e-9), np.array([0, 1]), delta=0.01) == (1,)
