"""All limits and the verdict together, under the rounds that look at answers: how often is anything wrong?

A run follows `next_round` to its end. It misses if any limit of any figure excludes the truth at any look, and its
verdict is wrong if the true figures contradict it. Both may occur in at most 5% of runs.
"""

import os

import numpy as np
import pytest
from scipy.stats import binom

from anchorline.guarantees import Measurement
from anchorline.guarantees.measuring import DECISIONS, NUMBERS
from anchorline.result.explanation import Verdict

N_RUNS = 120
SOAK = int(os.environ.get("ANCHORLINE_SOAK", "0"))  # `make soak` runs this many
EFFECTS, BROKEN = np.array([0.3, 0.2]), np.array([0.4, 0.3])
UNBROKEN = float(np.prod(1 - BROKEN))
MEAN_SQUARE = float(EFFECTS**2 @ (BROKEN * (1 - BROKEN)) + (EFFECTS @ BROKEN) ** 2)  # of the sum

DECIDED = [  # shares of neighbors with the facts, of the law without a broken fact, and with one
    (1.0, 1.0, 0.3),
    (0.999, 0.999, 0.5),
    (0.99, 0.999, 0.6),
    (0.97, 0.98, 0.5),
    (0.95, 0.95, 0.5),
    (0.949, 1.0, 0.7),
    (0.999, 0.949, 0.949),
    (0.95, 0.95, 0.95),
    (0.75, 0.75, 0.293),  # at the line of partly_explained
    (0.5, 0.5, 0.5),
]


def errors_small_and_rarely_large(rng, n):
    """Errors within [-0.5, 0.5] that are small except for one in a hundred."""
    return np.where(rng.random(n) < 0.01, rng.choice([-0.5, 0.5], n), rng.uniform(-0.1, 0.1, n))


ERRORS = {  # drawing, mean square, output range
    "uniform": (lambda rng, n: rng.uniform(-0.2, 0.2, n), 0.04 / 3, (-0.5, 1.0)),
    "rare": (errors_small_and_rarely_large, 0.99 * 0.01 / 3 + 0.01 * 0.25, (-0.5, 1.5)),
    "explained": (lambda rng, n: np.sqrt(MEAN_SQUARE / 3) * rng.choice([-1, 1], n), MEAN_SQUARE / 3, (-1.0, 1.5)),
    "normal": (lambda rng, n: 0.1 * rng.standard_normal(n), 0.01, None),
    "large": (lambda rng, n: 0.4 * rng.standard_normal(n), 0.16, None),
    "line": (lambda rng, n: np.sqrt(MEAN_SQUARE / 3) * rng.standard_normal(n), MEAN_SQUARE / 3, None),
    "halved": (lambda rng, n: np.sqrt(MEAN_SQUARE) * rng.standard_normal(n), MEAN_SQUARE, None),
    "laplace": (lambda rng, n: rng.laplace(0, 0.1, n), 0.02, None),
    "skewed": (lambda rng, n: 0.15 * (rng.exponential(1, n) - 1), 0.15**2, None),
}


def neighbors(rng, n):
    broken = rng.random((2, n)) < BROKEN[:, None]
    return ~broken.any(axis=0), EFFECTS @ broken


def is_within(figure, truth):
    return figure is None or figure.low - 1e-12 <= truth <= figure.high + 1e-12


def run_decision(rng, shares, errors="uniform", budget=18_000):
    """Return whether a limit missed, whether the verdict is wrong, and the measurement."""
    with_facts, without_broken, with_broken = shares
    draw_errors, mean_square, output_range = ERRORS[errors]
    of_all = UNBROKEN * without_broken + (1 - UNBROKEN) * with_broken
    r2 = 1 - mean_square / (MEAN_SQUARE + mean_square)
    measured = Measurement(prediction=0.5, effects=EFFECTS, unbroken=UNBROKEN, output_range=output_range)
    has_missed = False
    while (asked := measured.next_round(budget - measured.n_queries)).total:
        unbroken, sums = neighbors(rng, asked.law)
        stays = rng.random(asked.law) < np.where(unbroken, without_broken, with_broken)
        measured = measured.with_law(stays, unbroken, sums + draw_errors(rng, asked.law), sums)
        measured = measured.with_facts(rng.random(asked.facts) < with_facts)
        measured = measured.with_unbroken(rng.random(asked.unbroken) < without_broken)
        truths = {"all": of_all, "holds_drawn": with_facts, "holds_law": without_broken, "fit": r2}
        truths["holds"] = min(with_facts, without_broken)
        has_missed |= not all(is_within(getattr(measured, name), truth) for name, truth in truths.items())
    assert measured.n_queries <= budget
    is_wrong = is_contradicted(DECISIONS, measured.verdict, of_all, min(with_facts, without_broken))
    return has_missed, is_wrong, measured


def run_number(rng, errors, budget=18_000):
    draw_errors, mean_square, output_range = ERRORS[errors]
    r2 = 1 - mean_square / (MEAN_SQUARE + mean_square)
    measured = Measurement(prediction=0.5, effects=EFFECTS, is_number=True, output_range=output_range)
    has_missed = False
    while (asked := measured.next_round(budget - measured.n_queries)).total:
        unbroken, sums = neighbors(rng, asked.law)
        measured = measured.with_law(None, unbroken, sums + draw_errors(rng, asked.law), sums)
        has_missed |= not is_within(measured.fit, r2)
    return has_missed, is_contradicted(NUMBERS, measured.verdict, 0.0, r2), measured


def is_contradicted(conditions, verdict, of_all, of_facts):
    if verdict is Verdict.UNDECIDED:
        return False
    return not conditions[verdict](lambda _: of_all, lambda _: of_facts)


def check(runs):
    """Assert that misses and wrong verdicts are not more than chance explains if each has a probability of 5%."""
    runs = list(runs)
    allowed = binom.ppf(0.9999, len(runs), 0.05)
    assert sum(missed for missed, _, _ in runs) <= allowed
    assert sum(wrong for _, wrong, _ in runs) <= allowed
    return [measured.verdict for _, _, measured in runs]


@pytest.mark.parametrize("shares", DECIDED)
def test_all_limits_hold_together(shares):
    rng = np.random.default_rng(0)
    verdicts = check(run_decision(rng, shares) for _ in range(N_RUNS))
    if min(shares[:2]) < 0.95:
        assert verdicts.count(Verdict.EXPLAINED) <= 1


@pytest.mark.parametrize("errors", ERRORS)
def test_limits_of_fits_hold(errors):
    rng = np.random.default_rng(1)
    check(run_number(rng, errors) for _ in range(N_RUNS))


@pytest.mark.parametrize("confidence", [0.5])
@pytest.mark.parametrize("share", [0.95, 0.5, 0.999])
def test_limits_of_shares_hold_at_every_draw(share, confidence):
    """At a failure probability of 25% per limit, where misses are common enough to be counted."""
    from anchorline.guarantees.limits import Count

    rng = np.random.default_rng(2)
    looks = np.unique(np.geomspace(1, 3000, 60).astype(int))
    failure = (1 - confidence) / 2
    too_high = too_low = 0
    for kept in np.cumsum(rng.random((200, 3000)) < share, axis=1)[:, looks - 1]:
        limits = np.array(
            [Count(int(k), int(n)).limits((failure, failure)) for k, n in zip(kept, looks, strict=True)]
        )
        too_high += limits[:, 0].max() > share
        too_low += limits[:, 1].min() < share
    allowed = binom.ppf(0.9999, 200, failure)
    assert too_high <= allowed
    assert too_low <= allowed


@pytest.mark.generated
@pytest.mark.skipif(not SOAK, reason="`make soak N=...` runs it")
@pytest.mark.parametrize("errors", ["uniform", "rare", "explained"])
@pytest.mark.parametrize("shares", DECIDED)
def test_all_limits_hold_together_in_many_runs(shares, errors):
    rng = np.random.default_rng(3)
    verdicts = check(run_decision(rng, shares, errors) for _ in range(SOAK))
    if min(shares[:2]) < 0.95:
        assert verdicts.count(Verdict.EXPLAINED) <= binom.ppf(0.9999, SOAK, 0.0125)


@pytest.mark.generated
@pytest.mark.skipif(not SOAK, reason="`make soak N=...` runs it")
@pytest.mark.parametrize("errors", ERRORS)
def test_limits_of_fits_hold_in_many_runs(errors):
    rng = np.random.default_rng(4)
    check(run_number(rng, errors) for _ in range(SOAK))
