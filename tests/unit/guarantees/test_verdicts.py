"""The verdict: what all points of a joint rectangle agree on, and how often it is wrong."""

import itertools
from collections import Counter

import numpy as np
import pytest

from anchorline.guarantees import estimate_share, exact_estimate
from anchorline.guarantees.verdicts import PREVENTED, Effect, Losses, Verdict

GOOD, BAD = 0.05, 0.20


def true_verdict(held, free, reach=1.0, held_reach=1.0):
    """The definition in words of docs/guarantees.md, for known losses."""
    if held / held_reach > BAD:
        return Verdict.UNRELIABLE
    stays = held / held_reach <= GOOD
    if stays and free / reach <= GOOD:
        return Verdict.ROBUST
    if stays and free > 0 and 1 - held / free >= PREVENTED:
        return Verdict.TRUSTWORTHY
    return Verdict.WEAK


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
        ((0.06, 0.25), (0.30, 0.35), "WEAK"),  # whether it is unreliable too is not known
        ((0.06, 0.09), (0.06, 0.09), "WEAK"),
        ((0.21, 0.25), (0.60, 0.65), "UNRELIABLE"),
        ((0.21, 0.25), (0.01, 0.02), "UNRELIABLE"),
        ((0.04, 0.045), (0.01, 0.02), "WEAK"),  # less than chance: never better
        ((0.00, 1.00), (0.00, 1.00), "UNDECIDED"),
    ],
)
def test_the_bad_end_must_be_good_to_praise_and_the_good_end_bad_to_condemn(held, free, verdict):
    assert Losses(held=held, free=free).verdict.name == verdict


def test_a_verdict_is_given_where_all_points_of_the_rectangle_agree():
    """Compared with a dense grid of points; "weak" includes "unreliable", because it only denies praise."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        held, free = np.sort(rng.choice([0.1, 0.3, 1.0]) * rng.random((2, 2)), axis=1).tolist()
        reach, held_reach = rng.choice([[1.0, 1.0], [0.6, 0.6], [0.9, 0.5]]).tolist()
        losses = Losses(held=tuple(held), free=tuple(free), reach=reach, held_reach=held_reach)
        points = itertools.product(np.linspace(*held, 60), np.linspace(*free, 60))
        possible = {true_verdict(a, b, reach, held_reach) for a, b in points}
        praise = possible & {Verdict.TRUSTWORTHY, Verdict.ROBUST}
        if losses.effect is Effect.HARMS:
            assert losses.verdict in (Verdict.WEAK, Verdict.UNRELIABLE)
        elif not praise:
            assert losses.verdict is (Verdict.UNRELIABLE if possible == {Verdict.UNRELIABLE} else Verdict.WEAK)
        elif len(possible) == 1:
            assert losses.verdict is possible.pop()
        else:
            assert losses.verdict is Verdict.UNDECIDED


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


def test_neighbors_that_equal_the_case_do_not_make_facts_look_good():
    """Of the neighbors in which the facts hold, 4% change; but only 53% of them differ from the case at all."""
    share, free = estimate_share(9600, 10_000, 0.99), estimate_share(6000, 10_000, 0.99)
    assert Losses.from_shares(share, free).verdict is Verdict.TRUSTWORTHY
    assert Losses.from_shares(share, free, 0.7, 0.53).verdict is Verdict.WEAK
    often = estimate_share(8500, 10_000, 0.99)  # 15% of all, 28% of those that differ
    assert Losses.from_shares(often, free, 0.7, 0.53).verdict is Verdict.UNRELIABLE


def test_facts_that_leave_nothing_to_change_hold_the_output_for_certain():
    alone = Losses.from_shares(estimate_share(100, 100, 0.99), estimate_share(60, 100, 0.99), 0.5, 0.0)
    assert alone.held == (0.0, 0.0)
    assert alone.verdict is Verdict.TRUSTWORTHY


def test_an_undecided_verdict_lists_what_is_possible():
    assert decision(2499, 2375).possible == {Verdict.TRUSTWORTHY, Verdict.ROBUST}
    assert decision(2480, 1500).possible == {Verdict.TRUSTWORTHY}


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
