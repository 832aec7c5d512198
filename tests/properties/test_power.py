"""How often `verify` notices a share that is overstated, and how often it doubts an honest maker.

Only the share with the facts can be wrong here: the other stated figures are exact, and so are not compared.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from anchorline.guarantees.measuring import Measurement
from anchorline.verify.check import CONFIDENCE, LOOKS, MARGIN, doubts
from helpers.made import fit, made_explanation, share

N_STATED = 2500
N_STREAMS = 3  # of a look
RUNS = 400


def measured_share(n_stay, n, confidence):
    """The share that a measurement states after it saw these decisions."""
    measured = Measurement(prediction=0.9, effects=np.ones(1), unbroken=0.5, confidence=confidence)
    return measured.with_facts(np.arange(n) < n_stay).holds_drawn


def stating(n_stay, n=N_STATED):
    stated = measured_share(n_stay, n, 0.95)
    exact = {"all": share(0.5), "fit": fit(0.6, 0.6, is_exact=True)}
    return replace(made_explanation(), holds_drawn=stated, holds=stated, **exact)


def decide(stated, truth, rng):
    """Look at fresh neighbors as `measure_afresh` does, whose decisions stay with the true probability."""
    n_stay, n = 0, 0
    for size in (look // N_STREAMS for look in LOOKS):
        n_stay, n = n_stay + int(rng.binomial(size, truth)), n + size
        found = doubts(stated, {"holds_drawn": measured_share(n_stay, n, CONFIDENCE)})
        if not found or found[0].code == "contradicted":
            break
    return found[0].code if found else "confirmed"


@pytest.mark.parametrize(("truth", "points"), [(0.5, 7), (0.7, 7), (0.85, 5), (0.94, 5)])
def test_a_share_that_is_overstated_is_contradicted(truth, points):
    """By a little more than its limits and the margin are wide: 3.7 and 2.5 points at 0.5, and less near 1."""
    stated, rng = stating(round((truth + points / 100) * N_STATED)), np.random.default_rng(0)
    assert stated.holds_drawn.low - MARGIN > truth
    outcomes = Counter(decide(stated, truth, rng) for _ in range(RUNS))
    assert outcomes["confirmed"] <= 0.02 * RUNS
    assert outcomes["contradicted"] >= 0.99 * RUNS


@pytest.mark.parametrize("n", [300, N_STATED])
def test_a_share_beyond_the_margin_is_never_confirmed_however_few_neighbors_the_maker_used(n):
    stated, rng = stating(round(0.7 * n), n), np.random.default_rng(1)
    outcomes = Counter(decide(stated, stated.holds_drawn.low - 1.004 * MARGIN, rng) for _ in range(RUNS))
    assert outcomes["confirmed"] <= 2


@pytest.mark.parametrize("n", [300, N_STATED])
@pytest.mark.parametrize("truth", [0.5, 0.7, 0.9, 0.97])
def test_an_honest_maker_is_confirmed_and_hardly_ever_contradicted(truth, n):
    rng = np.random.default_rng(2)
    outcomes = Counter(decide(stating(int(rng.binomial(n, truth)), n), truth, rng) for _ in range(RUNS))
    assert outcomes["contradicted"] <= 2
    assert outcomes["confirmed"] >= 0.98 * RUNS
