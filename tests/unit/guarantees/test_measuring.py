"""Figures, verdicts and rounds of a measurement, on answers that are given."""

import dataclasses

import numpy as np
import pytest

from anchorline.errors import ParameterError
from anchorline.guarantees import Measurement, Round
from anchorline.guarantees.measuring import DECISIONS, NUMBERS, decide
from anchorline.result.explanation import Verdict

EFFECTS = np.array([0.3, 0.2])


def start(**settings):
    return Measurement(
        **{"prediction": 0.6, "effects": EFFECTS, "unbroken": 0.3, "output_range": (0, 1), **settings}
    )


def first(n, n_all):
    return np.arange(n_all) < n


def answered(measured, n_stay, n_unbroken, n_both, n):
    """Add n neighbors of the law, of which some stay, some break no fact, and some do both."""
    stays = first(n_stay, n)
    unbroken = first(n_both, n) | (np.arange(n) >= n - (n_unbroken - n_both))
    sums = np.where(unbroken, 0.0, 0.3)
    return measured.with_law(stays, unbroken, sums + 0.01, sums)


@pytest.mark.parametrize(
    ("of_all", "holds", "verdict"),
    [
        ((0.95, 0.99), (0.10, 0.20), Verdict.ROBUST),
        ((0.60, 0.70), (0.95, 0.99), Verdict.EXPLAINED),
        ((0.60, 0.70), (0.94, 0.99), Verdict.PARTLY_EXPLAINED),
        ((0.60, 0.70), (0.85, 0.90), Verdict.PARTLY_EXPLAINED),
        ((0.60, 0.70), (0.84, 0.90), Verdict.UNDECIDED),
        ((0.60, 0.70), (0.70, 0.80), Verdict.UNDECIDED),
        ((0.60, 0.70), (0.70, 0.79), Verdict.NOT_EXPLAINED),
        ((0.92, 0.94), (0.94, 0.9599), Verdict.UNDECIDED),  # less than half of the changes, but maybe 95%
        ((0.92, 0.94), (0.90, 0.9499), Verdict.NOT_EXPLAINED),
        ((0.0, 1.0), (0.0, 1.0), Verdict.UNDECIDED),
        ((1.0, 1.0), (1.0, 1.0), Verdict.ROBUST),
        ((0.8, 0.8), (0.9, 0.9), Verdict.PARTLY_EXPLAINED),  # exact, at the line
    ],
)
def test_limits_decide_about_decisions(of_all, holds, verdict):
    assert decide(DECISIONS, of_all.__getitem__, holds.__getitem__) is verdict


@pytest.mark.parametrize(
    ("of_all", "r2", "verdict"),
    [
        ((0.96, 1.00), (0.0, 1.0), Verdict.ROBUST),
        ((0.10, 0.30), (0.75, 0.9), Verdict.EXPLAINED),
        ((0.10, 0.30), (0.74, 0.9), Verdict.PARTLY_EXPLAINED),
        ((0.10, 0.30), (0.49, 0.9), Verdict.UNDECIDED),
        ((0.10, 0.30), (0.30, 0.5), Verdict.UNDECIDED),
        ((0.10, 0.30), (0.30, 0.49), Verdict.NOT_EXPLAINED),
    ],
)
def test_limits_decide_about_numbers(of_all, r2, verdict):
    assert decide(NUMBERS, of_all.__getitem__, r2.__getitem__) is verdict


def test_shares_are_counted_per_stream():
    measured = answered(start(), n_stay=60, n_unbroken=30, n_both=25, n=100)
    measured = measured.with_facts(first(45, 50)).with_unbroken(first(10, 10))
    assert (measured.all.value, measured.all.n) == (0.6, 100)
    assert (measured.holds_drawn.value, measured.holds_drawn.n) == (0.9, 50)
    assert (measured.holds_law.value, measured.holds_law.n) == (35 / 40, 40)
    assert (measured.holds.value, measured.holds.n) == (35 / 40, 40)
    assert measured.holds.low == min(measured.holds_drawn.low, measured.holds_law.low)
    assert measured.holds.high == min(measured.holds_drawn.high, measured.holds_law.high)
    assert measured.n_queries == 160
    assert not measured.all.is_exact


def test_fit_is_that_of_the_answers():
    measured = answered(start(), 60, 30, 25, 1000)
    fit = measured.fit
    drops = np.where(np.arange(1000) < 970, 0.31, 0.01)  # close to the stream above: 30 break no fact
    assert fit.error == pytest.approx(0.01)
    assert fit.baseline == pytest.approx(np.sqrt(np.mean(drops**2)))
    assert fit.r2 == pytest.approx(1 - 0.01**2 / np.mean(drops**2))
    assert fit.mean_output == pytest.approx(0.6 - drops.mean())
    assert fit.low <= fit.r2 <= fit.high
    assert (fit.n, fit.is_approximate) == (1000, False)
    assert answered(start(output_range=None), 60, 30, 25, 1000).fit.is_approximate


def test_nothing_is_claimed_before_an_answer():
    measured = start()
    assert (measured.all, measured.holds, measured.holds_drawn, measured.fit) == (None,) * 4
    assert measured.verdict is Verdict.UNDECIDED
    assert not measured.is_decided(left=1000)


def test_a_measurement_does_not_change():
    measured = start()
    measured.with_facts(first(10, 10))
    assert measured.n_queries == 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        measured.confidence = 0.5


def test_failure_probabilities_add_up():
    for settings in ({}, {"unbroken": 0.01}, {"unbroken": None}, {"is_number": True}, {"effects": np.zeros(0)}):
        failures = start(confidence=0.9, **settings)._failures
        assert sum(map(sum, failures.values())) == pytest.approx(0.1)


def test_the_second_share_is_not_asked_if_few_neighbors_break_no_fact():
    measured = answered(start(unbroken=0.049), 600, 49, 20, 1000).with_facts(first(999, 1000))
    assert measured.holds_law is None
    assert measured.holds == measured.holds_drawn
    assert measured.verdict is Verdict.EXPLAINED
    assert start(unbroken=0.049).next_round(20_000).unbroken == 0


def test_the_share_that_breaks_no_fact_comes_from_the_sample_if_it_is_not_known():
    assert answered(start(unbroken=None), 600, 49, 20, 1000).holds_law is None
    assert answered(start(unbroken=None), 600, 51, 20, 1000).holds_law.n == 51
    assert start(unbroken=None).next_round(20_000).unbroken == 0  # not yet known how many the law gives


def test_both_shares_must_hold():
    measured = answered(start(), 3400, 3000, 2990, 10_000)
    assert measured.with_facts(first(1990, 2000)).verdict is Verdict.EXPLAINED
    assert measured.with_facts(first(1860, 2000)).verdict is Verdict.PARTLY_EXPLAINED
    weak = answered(start(), 3400, 3000, 2790, 10_000)
    assert weak.with_facts(first(1990, 2000)).verdict is Verdict.PARTLY_EXPLAINED


def test_listed_neighbors_are_exact():
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    stays, unbroken = np.array([True, True, False, True]), np.array([True, False, True, False])
    drops, sums = np.array([0.0, 0.3, 0.1, 0.5]), np.array([0.0, 0.3, 0.0, 0.5])
    measured = start(unbroken=None).with_law(stays, unbroken, drops, sums, weights)
    measured = measured.with_facts(np.array([True, False]), np.array([3.0, 1.0]))
    for share, value in ((measured.all, 0.8), (measured.holds_law, 2 / 3), (measured.holds_drawn, 0.75)):
        assert share.is_exact
        assert (share.low, share.high) == (share.value, share.value) == pytest.approx((value, value))
    assert measured.holds.value == pytest.approx(2 / 3)
    base = weights @ drops**2
    assert measured.fit.r2 == measured.fit.low == measured.fit.high == pytest.approx(1 - 0.2 * 0.01 / base)
    assert measured.fit.error == pytest.approx(np.sqrt(0.2 * 0.01))
    assert measured.fit.mean_output == pytest.approx(0.6 - weights @ drops)
    assert (measured.fit.is_exact, measured.fit.is_approximate) == (True, False)
    assert measured.verdict is Verdict.NOT_EXPLAINED
    assert measured.is_decided(10_000)
    assert measured.next_round(10_000) == Round()
    with pytest.raises(ParameterError, match="listed"):
        measured.with_facts(first(1, 1))


def test_an_exact_share_at_the_line_counts_despite_rounding():
    weights = np.full(20, 0.05)
    measured = start(effects=np.zeros(0)).with_law(first(19, 20), first(20, 20), *np.zeros((2, 20)), weights)
    assert measured.verdict is Verdict.ROBUST


def test_without_facts_all_neighbors_decide():
    measured = start(effects=np.zeros(0), unbroken=1.0)
    assert measured.next_round(20_000) == Round(law=500)
    measured = answered(measured, 600, 1000, 600, 1000)
    assert (measured.holds_drawn, measured.holds_law) == (None, measured.all)
    assert measured.holds == measured.all
    assert measured.verdict is Verdict.NOT_EXPLAINED
    assert measured.is_decided(20_000)


def number(drops, sums, **settings):
    measured = start(is_number=True, output_range=None, **settings)
    return measured.with_law(None, np.zeros(drops.size, bool), drops, sums)


def test_numbers_are_decided_by_their_fit():
    rng = np.random.default_rng(0)
    sums = 100 * (rng.random(2000) < 0.5)
    for noise, verdict in ((10, "explained"), (52, "partly_explained"), (150, "not_explained")):
        measured = number(sums + noise * rng.standard_normal(2000), sums, spread=50.0)
        assert measured.verdict.value == verdict
        assert (measured.holds, measured.holds_drawn, measured.holds_law) == (None, None, None)
        assert measured.next_round(100_000) == Round()


def test_a_number_is_robust_if_it_stays_within_two_percent_of_the_spread():
    drops = np.where(first(990, 1000), 1.0, 1000.0)
    assert number(drops, 0 * drops, spread=50.0).verdict is Verdict.ROBUST
    assert number(drops, 0 * drops, spread=50.0).all.value == 0.99
    assert number(drops, 0 * drops, spread=49.0).verdict is not Verdict.ROBUST
    unknown = number(drops, 0 * drops)
    assert unknown.all.value == 0  # only equal numbers count if the spread is not known
    assert unknown.verdict is not Verdict.ROBUST


def test_a_constant_number_is_robust():
    assert number(np.zeros(500), np.zeros(500), spread=0.0).verdict is Verdict.ROBUST


def test_the_first_round_completes_the_neighbors_without_a_broken_fact():
    assert start().next_round(20_000) == Round(law=500, facts=300, unbroken=150)
    assert start(unbroken=0.9).next_round(20_000) == Round(law=500, facts=300)
    assert start(is_number=True).next_round(20_000) == Round(law=500)


def test_queries_go_where_they_decide():
    measured = answered(start(), 300, 300, 298, 1000)
    measured = measured.with_facts(first(970, 1000)).with_unbroken(first(1700, 1700))
    assert measured.next_round(20_000) == Round(facts=300)
    assert measured.with_facts(first(5000, 5000)).next_round(20_000) == Round()


def test_a_stream_grows_by_what_is_needed_and_at_most_to_twice_its_size():
    measured = answered(start(), 300, 300, 298, 1000).with_unbroken(first(1700, 1700))
    assert measured.with_facts(first(194, 200)).next_round(20_000) == Round(facts=300)
    assert 300 < measured.with_facts(first(968, 1000)).next_round(20_000).facts < 1000
    assert measured.with_facts(first(957, 1000)).next_round(20_000) == Round(facts=1000)


def test_neighbors_of_the_search_count_for_what_does_not_depend_on_the_facts():
    searched = start().with_searched(first(1500, 2000), np.full(2000, 0.2))
    assert (searched.all.value, searched.all.n, searched.n_queries) == (0.75, 2000, 0)
    assert (searched.fit, searched.holds_law, searched.verdict) == (None, None, Verdict.UNDECIDED)
    assert searched.next_round(20_000) == Round(law=300, facts=300, unbroken=210)
    measured = answered(searched, 60, 30, 25, 100)
    assert (measured.all.value, measured.all.n) == (1560 / 2100, 2100)
    assert (measured.fit.n, measured.holds_law.n) == (100, 30)
    assert measured.fit.r2 == answered(start(), 60, 30, 25, 100).fit.r2
    alone = answered(start(), 60, 30, 25, 100)
    mean_drop = (400 + 100 * (0.6 - alone.fit.mean_output)) / 2100
    assert measured.fit.mean_output == pytest.approx(0.6 - mean_drop)


def test_shares_that_are_known_better_than_others_wait_for_these():
    measured = start().with_searched(first(1000, 2000), np.full(2000, 0.2))
    asked = answered(measured, 150, 90, 70, 300).with_facts(first(230, 300)).with_unbroken(first(165, 210))
    asked = asked.next_round(20_000)
    assert asked.law == 0
    assert asked.facts == 300


def test_what_is_out_of_reach_is_not_asked():
    measured = answered(start(), 2900, 3000, 2790, 10_000).with_facts(first(930, 1000))
    assert measured.verdict is Verdict.PARTLY_EXPLAINED
    assert measured.holds.high > 0.945  # 95% is hardly refuted, but cannot be reached any more
    assert measured.is_decided(2_000)


@pytest.mark.parametrize("left", [0, 1, 7, 100, 949])
def test_a_round_never_exceeds_what_is_left(left):
    assert start().next_round(left).total <= left
    assert answered(start(), 600, 300, 280, 1000).next_round(left).total <= left


def test_decisions_are_needed():
    with pytest.raises(ParameterError, match="stays is None"):
        start().with_law(None, first(1, 2), *np.zeros((2, 2)))
    with pytest.raises(ParameterError, match="confidence"):
        start(confidence=1.0)
