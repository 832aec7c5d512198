"""The law of two-valued attributes: the paper's D(x, sigma), listed and drawn, with and without facts."""

import itertools
import math

import numpy as np
import pytest

from anchorline.laws import Random, replace_probability
from anchorline.spaces.hypercube import Hypercube
from anchorline.spaces.regions import Image, Signal
from anchorline.spaces.text import Text

PLACES = {
    "hypercube": Hypercube().at([1, -1, 1, 1]),
    "text": Text().at("one two three four"),
    "image": Image("grid", hidden=0, n_segments=4).at(np.arange(1, 17).reshape(4, 4)),
    "signal": Signal(segments=4, hidden=0).at(np.arange(1.0, 9.0)),
}


def plain(inputs):
    """Return model inputs as texts, which can be counted."""
    return [str(one if isinstance(one, str) else np.asarray(one).tolist()) for one in inputs]


@pytest.mark.parametrize("sigma", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("kind", PLACES)
def test_drawn_neighbors_follow_the_law_of_the_paper(kind, sigma):
    """Every coordinate differs with probability 1 / (1 + e^sigma), independently of the others."""
    there, n = PLACES[kind], 20_000
    donors = there.draw(n, Random.of(0, there.key, "test"), replace_probability(sigma))
    assert donors.shape == (4, n)
    differ, p = there.cells(donors) != there.candidates.own[:, None], 1 / (1 + math.exp(sigma))
    error = 4.5 * math.sqrt(p * (1 - p) / n)
    assert np.abs(differ.mean(axis=1) - p).max() < error
    assert np.abs(np.cov(differ) - np.eye(4) * p * (1 - p)).max() < error
    # An attribute that keeps its value was replaced by it in half of the replacements.
    assert np.abs((donors == 1).mean(axis=1) - p).max() < error


@pytest.mark.parametrize("facts", [(), (1,), (0, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("kind", PLACES)
def test_listed_neighbors_are_those_drawn_with_their_probabilities(kind, facts):
    there, q, n = PLACES[kind], replace_probability(1.0), 20_000
    donors, chances = there.listed(q, 16, facts)
    assert chances.sum() == pytest.approx(1.0)
    listed = dict(zip(plain(there.realize(donors)), chances, strict=True))
    assert len(listed) == 2 ** (4 - len(facts))
    drawn = plain(there.realize(there.draw(n, Random.of(1, there.key, "test"), q, facts)))
    for text, chance in listed.items():
        assert drawn.count(text) / n == pytest.approx(chance, abs=4.5 * math.sqrt(chance / n))
    assert set(drawn) <= set(listed)


def test_listed_probabilities_are_products():
    q = replace_probability(0.7)
    donors, chances = Hypercube().at([1, 1, 1]).listed(q, 8)
    differ = {tuple(row): chance for row, chance in zip((donors == 0).T.tolist(), chances, strict=True)}
    for flips in itertools.product([False, True], repeat=3):
        assert differ[flips] == pytest.approx(math.prod(q / 2 if flip else 1 - q / 2 for flip in flips))


def test_too_many_neighbors_are_not_listed():
    there = Hypercube().at(np.ones(70))
    assert there.listed(1.0, 10**30) is None
    assert there.listed(1.0, 1024) is None
    assert there.listed(1.0, 1023, facts=range(60)) is None
    assert len(there.listed(1.0, 1024, facts=range(60))[1]) == 1024


@pytest.mark.parametrize("kind", PLACES)
def test_facts_are_broken_where_an_attribute_has_its_other_value(kind):
    there, q = PLACES[kind], replace_probability(1.0)
    candidates = there.candidates
    assert candidates.n_facts == candidates.n_attributes == len(there.names) == 4
    np.testing.assert_allclose(candidates.broken(q), 1 / (1 + math.e))
    np.testing.assert_allclose(candidates.chances(q).reshape(4, 2).sum(axis=1), 1.0)
    donors = np.array([[-1, 0, 1], [0, 0, 1], [1, 1, 0], [-1, -1, 0]])
    np.testing.assert_array_equal(candidates.flips(there.cells(donors), [0, 1, 2, 3]), donors == 0)
    np.testing.assert_array_equal(candidates.flips(there.cells(donors), [2]), donors[[2]] == 0)
    assert plain(there.realize(np.full((4, 1), -1))) == plain(there.original)
    assert plain(there.realize(np.full((4, 1), 1))) == plain(there.original)


def test_any_batch_is_drawn_alone_and_with_facts_the_other_attributes_are_the_same():
    there = Hypercube().at(np.ones(6))
    first, again = (there.draw(50, Random.of(3, there.key, "search", batch=2), 0.6) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    held = there.draw(50, Random.of(3, there.key, "search", batch=2), 0.6, facts=[1, 4])
    np.testing.assert_array_equal(held[[0, 2, 3, 5]], first[[0, 2, 3, 5]])
    assert (held[[1, 4]] == 1).all()
