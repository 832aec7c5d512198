"""How often `verify` notices a stability that is overstated, and how often it accuses an honest maker."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import anchorline as al
from anchorline.guarantees import estimate_share, exact_estimate, split_delta
from anchorline.verify.fresh import CONFIDENCE, FIRST_LOOK, LAST_LOOK, contradictions, doubts

N_EVENT = 2500  # half of the neighbors that certify by default
N_FIGURES = 5  # share the failure probability, if the model decides
RUNS = 1000


def base():
    """A certificate whose other figures are exact, so that only stability can be wrong."""
    e = al.explain(lambda rows: 0.4 * rows[:, 0], [1] * 6, threshold=0.1)
    errors = dict.fromkeys(("fidelity_error", "relevance_error", "baseline_error"), exact_estimate(0.0, 64))
    return replace(e.certificate, **errors, baseline_stability=exact_estimate(0.5, 64))


def stated(certificate, n_stay, n=N_EVENT):
    return replace(certificate, stability=estimate_share(n_stay, n, 1 - 0.05 / N_FIGURES))


def decide(certificate, truth, rng):
    """Look at fresh neighbors as `measure_afresh` does, whose decisions stay with the true probability."""
    look, n, n_stay, done = 1, FIRST_LOOK, 0, 0
    while True:
        n_stay, done = n_stay + int(rng.binomial(n - done, truth)), n
        each = 1 - split_delta(1 - CONFIDENCE, look) / N_FIGURES
        fresh = replace(certificate, stability=estimate_share(n_stay, n, each))
        if contradictions(certificate, fresh):
            return "contradicted"
        if not doubts(certificate, fresh):
            return "confirmed"
        if 2 * n > LAST_LOOK:
            return "undecided"
        look, n = look + 1, 2 * n


@pytest.mark.parametrize("truth", [0.5, 0.7, 0.85, 0.95])
def test_a_stability_overstated_by_5_points_is_noticed_in_99_of_100_verifications(truth):
    certificate, rng = stated(base(), round((truth + 0.05) * N_EVENT)), np.random.default_rng(0)
    outcomes = Counter(decide(certificate, truth, rng) for _ in range(RUNS))
    assert outcomes["confirmed"] <= 0.01 * RUNS
    assert outcomes["contradicted"] >= 0.99 * RUNS


@pytest.mark.parametrize("n", [200, N_EVENT])
def test_a_stability_beyond_the_margin_is_never_confirmed_however_few_neighbors_the_maker_used(n):
    certificate, rng = stated(base(), round(0.7 * n), n), np.random.default_rng(1)
    truth = certificate.stability.low - 0.0251
    assert Counter(decide(certificate, truth, rng) for _ in range(RUNS))["confirmed"] <= 2


@pytest.mark.parametrize(("n", "n_contradicted"), [(N_EVENT, 2), (200, 10)])
@pytest.mark.parametrize("truth", [0.5, 0.7, 0.9, 0.97])
def test_an_honest_maker_is_confirmed_and_hardly_ever_contradicted(truth, n, n_contradicted):
    certificate, rng = base(), np.random.default_rng(2)
    outcomes = Counter(decide(stated(certificate, rng.binomial(n, truth), n), truth, rng) for _ in range(RUNS))
    assert outcomes["contradicted"] <= n_contradicted
    assert outcomes["confirmed"] >= 0.98 * RUNS
