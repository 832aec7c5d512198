"""Draws of attributes that change in several ways: the law, the event, and what follows for literals."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

import anchorline as al
from anchorline.errors import ParameterError
from anchorline.search.sampling import (
    ConditionalFlips,
    DrawnFlips,
    EnumeratedEvent,
    EnumeratedFlips,
    cancelling_event,
    stream_key,
)
from anchorline.spaces.base import Change, Law

P = 0.3
# A number with a lower bound (0), an upper bound (1) and an interval (2); an indicator (3); a number with two
# lower thresholds (4, 5), of which one way breaks both.
CHANGES = (
    (Change(0.5, (0, 2)), Change(0.3, (1, 2)), Change(0.2, (0, 1, 2))),
    (Change(1.0, (3,)),),
    (Change(0.6, (4,)), Change(0.4, (4, 5))),
)
LAW = Law.of_changes(CHANGES, 6, P)
OUTCOMES = [[(1 - P, ()), *((P * way.share, way.breaks) for way in ways)] for ways in CHANGES]


def by_hand():
    """Every combination of outcomes with its probability and its broken literals, without the library."""
    for draw in itertools.product(*(range(len(each)) for each in OUTCOMES)):
        chosen = [each[i] for each, i in zip(OUTCOMES, draw, strict=True)]
        yield draw, math.prod(chance for chance, _ in chosen), {j for _, breaks in chosen for j in breaks}


def counts(draws):
    rows, found = np.unique(np.asarray(draws), axis=0, return_counts=True)
    return dict(zip(map(tuple, rows.tolist()), found.tolist(), strict=True))


def test_outcomes_come_with_their_probabilities():
    n = 100_000
    found = counts(DrawnFlips(stream_key(1, b"row", "search"), n, LAW.ends).rows(0, n)[0])
    expected = {draw: n * chance for draw, chance, _ in by_hand()}
    assert set(found) == set(expected)
    assert chisquare([found[draw] for draw in expected], list(expected.values())).pvalue > 1e-4


@pytest.mark.parametrize("p", [0.3, 1e-9, 1 - 1e-13])
def test_a_draw_takes_the_first_way_whose_end_exceeds_the_uniform_number(p):
    law = Law.of_changes(CHANGES, 6, p)
    key = stream_key(1, b"row", "search")
    got = DrawnFlips(key, 512, law.ends).rows(0, 512)[0]
    generator = np.random.Philox(key=key, counter=0)
    data = generator.random_raw(3 * 64).astype("<u8").view("u1").reshape(3, 512)
    ends = [
        [round(p * sum(way.share for way in ways[: i + 1]) * 2**40) for i in range(len(ways))] for ways in CHANGES
    ]
    tied = [(a, i) for a in range(3) for i in range(512) if any(end >> 32 == data[a, i] for end in ends[a])]
    more = iter(generator.random_raw(-(-len(tied) // 2)).astype("<u8").view("<u4").tolist())
    for attribute, i in itertools.product(range(3), range(512)):
        number = int(data[attribute, i]) << 32
        number += next(more) if (attribute, i) in set(tied) else 0
        exceeds = [way + 1 for way, end in enumerate(ends[attribute]) if number < end]
        assert got[i, attribute] == (exceeds[0] if exceeds else 0)


def test_flips_follow_from_the_outcomes():
    draws, weights = EnumeratedFlips(LAW).rows(0, EnumeratedFlips(LAW).n_rows)
    expected = {draw: (chance, broken) for draw, chance, broken in by_hand()}
    assert len(draws) == len(expected) == 4 * 2 * 3
    for row, flips, weight in zip(draws.tolist(), LAW.flips(draws), weights, strict=True):
        chance, broken = expected[tuple(row)]
        assert set(np.flatnonzero(flips).tolist()) == broken
        assert weight == pytest.approx(chance, rel=1e-12)
    np.testing.assert_array_equal(LAW.outcomes(draws).astype(int) @ LAW.incidence > 0, LAW.flips(draws))


@pytest.mark.parametrize("support", [s for n in range(4) for s in itertools.combinations(range(6), n)])
def test_the_probability_that_nothing_stated_is_broken(support):
    expected = sum(chance for _, chance, broken in by_hand() if not broken & set(support))
    assert LAW.probability_unbroken(support) == pytest.approx(expected, rel=1e-12)
    n_attributes = len({int(LAW.groups[j]) for j in support})
    assert expected <= LAW.largest_unbroken(n_attributes) * (1 + 1e-12)


CANCELLING = [
    [0.5, 0, 0, 0, 0, 0],
    [0.5, -0.2, 0, 0, 0.1, 0],
    [0.3, 0, -0.3, 0, 0, 0],  # below breaks both, and they cancel
    [0.4, 0, 0, -0.4, 0, 0],
    [0.2, 0.2, -0.2, 0.2, 0.1, -0.1],
]


@pytest.mark.parametrize("contributions", CANCELLING)
def test_the_event_is_the_definitions(contributions):
    """The conditional draws, drawn and enumerated, have the law that enumeration by hand gives."""
    u, n = np.array(contributions), 40_000
    event = cancelling_event(u, LAW)
    inside = {
        draw: chance
        for draw, chance, broken in by_hand()
        if abs(sum(u[j] for j in broken)) <= 1e-12 * abs(u).sum()
    }
    total = sum(inside.values())
    assert event.probability == pytest.approx(total, rel=1e-12)
    unbroken = sum(chance for _, chance, broken in by_hand() if not broken & set(np.flatnonzero(u).tolist()))
    assert event.is_literal == (total == pytest.approx(unbroken, rel=1e-9))
    everything = EnumeratedEvent(LAW, event)
    rows, weights = everything.rows(0, everything.n_rows)
    assert {tuple(row): w for row, w in zip(rows.tolist(), weights, strict=True)} == pytest.approx(
        {draw: chance / total for draw, chance in inside.items()}
    )
    keys = [stream_key(2, b"row", name) for name in ("free", "pattern", "within")]
    drawn = ConditionalFlips(DrawnFlips(keys[0], n, LAW.ends), event, LAW, *keys[1:])
    found = counts(drawn.rows(0, n)[0])
    assert set(found) <= set(inside)
    expected = [n * inside[draw] / total for draw in inside]
    assert chisquare([found.get(draw, 0) for draw in inside], expected).pvalue > 1e-4
    np.testing.assert_array_equal(drawn.rows(600, 700)[0], drawn.rows(0, 1024)[0][600:700])


class Three:
    """Three attributes, of which the model sees the outcomes themselves."""

    fingerprint = "three:1"

    def at(self, instance):
        return self

    literals = tuple(al.Literal(f"a{LAW.groups[j]}", f"fact {j}") for j in range(6))
    key, original, instance, deterministic, changes = b"three", np.zeros((1, 3)), [0], True, CHANGES

    def realize(self, draws, rng=None):
        return np.asarray(draws, dtype=float)


def model(rows):
    effects = np.array([[0, -0.5, 0.2, -0.1], [0, -0.2, 0, 0], [0, -0.1, -0.4, 0]])
    return 0.6 + sum(effects[a][rows[:, a].astype(int)] for a in range(3))


def test_a_space_of_ones_own_may_declare_changes():
    """All outcomes are enumerated, and the best sum and its errors are those of enumeration by hand."""
    e = al.Explainer(model, Three(), output_range=(-1, 1)).explain([0], k=4, flip_probability=P)
    certificate = e.certificate
    assert certificate.exhaustive
    assert certificate.n_samples == 24
    fidelity = relevance = total = 0.0
    support = set(e.support.tolist())
    for draw, chance, broken in by_hand():
        drop = (e.prediction - model(np.array([draw], dtype=float))[0]) / 2
        fidelity += chance * (drop - sum(e.contributions[j] for j in broken)) ** 2
        if abs(sum(e.contributions[j] for j in broken & support)) <= 1e-12:
            relevance, total = relevance + chance * drop**2, total + chance
    assert certificate.fidelity_error.value == pytest.approx(fidelity, abs=1e-6)
    assert certificate.relevance_error.value == pytest.approx(relevance / total, abs=1e-6)
    assert certificate.event_probability == pytest.approx(total)
    assert e.verify(model, Three()).holds


def test_no_rule_beats_the_bound_of_direct_relevance():
    explainer = al.Explainer(model, Three(), output_range=(-1, 1))
    drops = {draw: (0.6 - model(np.array([draw], dtype=float))[0]) / 2 for draw, _, _ in by_hand()}

    def error(support):
        inside = [(chance, drops[draw]) for draw, chance, broken in by_hand() if not broken & set(support)]
        return sum(chance * drop**2 for chance, drop in inside) / sum(chance for chance, _ in inside)

    for k in (2, 3, 4):
        certificate = explainer.explain([0], k=k, objective="relevance", flip_probability=P).certificate
        best = min(error(s) for n in range(k + 1) for s in itertools.combinations(range(6), n))
        assert certificate.lower_bound <= best + 1e-9
        assert certificate.objective >= best - 1e-9
        if certificate.status.name == "OPTIMAL":
            assert certificate.objective == pytest.approx(best, abs=1e-9)
    for limit in (0.001, 0.01, 0.03):
        e = explainer.shortest([0], limit, flip_probability=P)
        fewest = min(n for n in range(7) for s in itertools.combinations(range(6), n) if error(s) <= limit + 1e-9)
        assert len(e.support) >= fewest
        if e.certificate.status.name == "OPTIMAL":
            assert len(e.support) == fewest


@pytest.mark.parametrize(
    "changes",
    [
        [(Change(0.5, (0,)),)],  # shares do not add up
        [(Change(1.0, ()),)],  # a literal that nothing breaks
        [(Change(1.0, (0,)),), (Change(1.0, (0,)),)],  # a literal of two attributes
    ],
)
def test_wrong_changes_are_refused(changes):
    with pytest.raises(ParameterError):
        Law.of_changes(changes, 1, 0.5)
