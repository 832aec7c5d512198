"""The verdict: what all points of a joint rectangle agree on, and how often it is wrong."""

import itertools
from collections import Counter

import numpy as np
import pytest

from anchorline.guarantees import estimate_share, exact_estimate
from anchorline.guarantees.verdicts import PREVENTED, Effect, Losses, Verdict, among_neighbors, title

GOOD, BAD = 0.05, 0.20


def true_verdict(held, free):
    """The definition in words of docs/guarantees.md, for known losses among the neighbors."""
    if free <= GOOD:
        return Verdict.ROBUST
    if held <= GOOD and 1 - held / free >= PREVENTED:
        return Verdict.TRUSTWORTHY
    return Verdict.UNRELIABLE if held > BAD else Verdict.WEAK


def decision(n_held, n_free, n=2500, confidence=0.99, reach=1.0):
    return Losses.from_shares(estimate_share(n_held, n, confidence), estimate_share(n_free, n, confidence), reach)


def judged(n_changed, n_changed_free, n):
    return decision(n - n_changed, n - n_changed_free, n).verdict


@pytest.mark.parametrize(
    ("held", "free", "verdict"),
    [
        ((0.00, 0.02), (0.30, 0.35), "TRUSTWORTHY"),
        ((0.00, 0.02), (0.06, 0.07), "UNDECIDED"),  # up to a third of the changes may be left
        ((0.00, 0.01), (0.06, 0.07), "TRUSTWORTHY"),  # rare changes, of which the facts prevent 5 of 6
        ((0.00, 0.02), (0.00, 0.02), "ROBUST"),
        ((0.00, 0.02), (0.04, 0.06), "UNDECIDED"),
        ((0.02, 0.04), (0.06, 0.07), "WEAK"),  # the decision stays, but it stays nearly as often without them
        ((0.02, 0.07), (0.30, 0.35), "UNDECIDED"),  # too few samples to say
        ((0.06, 0.09), (0.30, 0.35), "WEAK"),
        ((0.06, 0.25), (0.30, 0.35), "UNDECIDED"),  # weak or unreliable
        ((0.197, 0.331), (0.50, 0.55), "UNDECIDED"),  # it stays in 66.9 to 80.3%: weak or unreliable
        ((0.06, 0.09), (0.06, 0.09), "WEAK"),
        ((0.21, 0.25), (0.60, 0.65), "UNRELIABLE"),
        ((0.21, 0.25), (0.01, 0.02), "ROBUST"),  # whatever the facts are
        ((0.03, 0.07), (0.01, 0.02), "ROBUST"),
        ((0.21, 0.25), (0.08, 0.10), "UNRELIABLE"),
        ((0.10, 0.12), (0.06, 0.09), "WEAK"),  # less than chance: never trustworthy
        ((0.00, 1.00), (0.00, 1.00), "UNDECIDED"),
    ],
)
def test_the_bad_end_must_be_good_to_praise_and_the_good_end_bad_to_condemn(held, free, verdict):
    assert Losses(held=held, free=free).verdict.name == verdict


def test_a_verdict_is_given_where_all_points_of_the_rectangle_agree():
    """Compared with a dense grid of points, which also gives what an undecided verdict names."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        held, free = np.sort(rng.choice([0.1, 0.3, 1.0]) * rng.random((2, 2)), axis=1).tolist()
        losses = Losses(held=tuple(held), free=tuple(free))
        points = itertools.product(np.linspace(*held, 60), np.linspace(*free, 60))
        possible = {true_verdict(a, b) for a, b in points}
        assert set(losses.possible) >= possible
        assert losses.verdict is (possible.pop() if len(possible) == 1 else Verdict.UNDECIDED)
        if losses.effect is Effect.HARMS:
            assert Verdict.TRUSTWORTHY not in losses.possible


def test_known_losses_are_always_decided():
    for held, free in itertools.product(np.linspace(0, 1, 41), repeat=2):
        losses = Losses.from_shares(exact_estimate(1 - held, 64), exact_estimate(1 - free, 64))
        assert losses.verdict is not Verdict.UNDECIDED


def test_the_effect_is_two_sided():
    assert decision(1742, 1975).effect is Effect.HARMS  # 69.7% against 79.0%
    assert decision(1975, 1742).effect is Effect.HELPS
    assert decision(1975, 1980).effect is Effect.UNCLEAR


def test_nothing_is_said_if_hardly_any_neighbor_differs():
    for reach, verdict in ((0.9, Verdict.ROBUST), (1e-20, Verdict.UNDECIDED)):
        assert decision(2500, 2500, reach=reach).verdict is verdict


def test_draws_that_equal_the_case_do_not_make_facts_look_good():
    """Of the draws in which the facts hold, 4% change; but only 53% of them differ from the case at all."""
    share, free = estimate_share(9600, 10_000, 0.99), estimate_share(6000, 10_000, 0.99)
    assert Losses.from_shares(share, free).verdict is Verdict.TRUSTWORTHY
    assert Losses.from_shares(share, free, 0.7, 0.53).verdict is Verdict.WEAK
    often = estimate_share(8500, 10_000, 0.99)  # 15% of all, 28% of those that differ
    assert Losses.from_shares(often, free, 0.7, 0.53).verdict is Verdict.UNRELIABLE


def test_facts_that_only_leave_less_to_change_prevent_nothing():
    """Holding 2 of 4 values changes fewer values; among the draws that differ, as many change the output."""
    useless = Losses.from_shares(exact_estimate(0.9, 64), exact_estimate(0.86, 64), 0.7, 0.5)
    assert useless.effect is not Effect.HELPS
    assert useless.least_prevented == pytest.approx(0.0, abs=1e-9)


def test_shares_of_neighbors_are_shares_of_the_draws_that_differ():
    rng = np.random.default_rng(3)
    differs = rng.random(40_000) < 0.4
    stays = ~differs | (rng.random(40_000) < 0.9)
    share = among_neighbors(estimate_share(int(stays.sum()), 40_000), 0.4)
    assert share.low <= 0.9 <= share.high
    assert share.value == pytest.approx(stays[differs].mean(), abs=0.01)
    assert among_neighbors(estimate_share(9, 10), 1e-20).low == 0.0  # nothing was tested
    assert among_neighbors(estimate_share(10, 10), 0.0).exact  # nothing can change


def test_facts_that_leave_nothing_to_change_hold_the_output_for_certain():
    alone = Losses.from_shares(estimate_share(100, 100, 0.99), estimate_share(60, 100, 0.99), 0.5, 0.0)
    assert alone.held == (0.0, 0.0)
    assert alone.verdict is Verdict.TRUSTWORTHY


@pytest.mark.parametrize(
    ("held", "free", "words"),
    [
        ((0.0, 0.0), (0.04, 0.06), "a robust answer and a trustworthy explanation"),
        ((0.02, 0.02), (0.04, 0.1), "a robust answer, a trustworthy and a weak explanation"),
        ((0.04, 0.06), (0.5, 0.6), "a trustworthy and a weak explanation"),
        ((0.19, 0.21), (0.5, 0.6), "a weak and an unreliable explanation"),
        ((0.0, 0.3), (0.5, 0.6), "a trustworthy, a weak and an unreliable explanation"),
        ((0.0, 1.0), (0.0, 1.0), "a robust answer, a trustworthy, a weak and an unreliable explanation"),
    ],
)
def test_an_undecided_verdict_names_what_is_possible(held, free, words):
    losses = Losses(held=held, free=free)
    assert title(losses.verdict, losses) == f"undecided between {words}"


def test_readers_see_that_the_verdict_is_about_the_explanation():
    titles = {verdict.name: verdict.title for verdict in Verdict}
    assert titles == {
        "TRUSTWORTHY": "trustworthy explanation",
        "ROBUST": "robust answer",
        "WEAK": "weak explanation",
        "UNRELIABLE": "unreliable explanation",
        "UNDECIDED": "undecided",
        "UNKNOWN": "not measured",
    }


@pytest.mark.parametrize(
    ("held", "free"),
    [
        (0.055, 0.50),  # true stability just below the level
        (0.051, 0.90),
        (0.049, 0.049),  # facts that add nothing to a robust decision
        (0.060, 0.060),
        (0.030, 0.100),  # they hold the decision, and prevent 70% of the changes
        (0.024, 0.090),
        (0.015, 0.055),
    ],
)
def test_false_praise_is_as_rare_as_promised(held, free):
    """Two intervals at 99% each, as on a certificate with five, are wrong together in at most 2% of samples."""
    assert true_verdict(held, free) is not Verdict.TRUSTWORTHY
    rng, n_runs = np.random.default_rng(1), 4000
    for n in (200, 2500):
        changes = Counter(zip(rng.binomial(n, held, n_runs), rng.binomial(n, free, n_runs), strict=True))
        wrong = sum(count for pair, count in changes.items() if judged(*pair, n) is Verdict.TRUSTWORTHY)
        assert wrong / n_runs <= 0.02


@pytest.mark.parametrize(("held", "free"), [(0.03, 0.03), (0.02, 0.4), (0.1, 0.4), (0.25, 0.5)])
def test_every_verdict_is_right_as_often_as_promised_and_comes_with_enough_samples(held, free):
    rng, n, n_runs = np.random.default_rng(2), 10_000, 1000
    changes = zip(rng.binomial(n, held, n_runs), rng.binomial(n, free, n_runs), strict=True)
    given = [judged(*pair, n) for pair in changes]
    right = true_verdict(held, free)
    assert sum(verdict not in (right, Verdict.UNDECIDED) for verdict in given) <= 0.02 * n_runs
    assert sum(verdict is right for verdict in given) >= 0.95 * n_runs
