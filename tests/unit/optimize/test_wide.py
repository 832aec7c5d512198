"""Evidence on very many literals counts the same pairs, and leads to the same bytes, as evidence with all sums."""

import numpy as np
import pytest

import anchorline as al
from anchorline.errors import SampleError
from anchorline.optimize import Evidence, Problem, restricted, solve
from anchorline.optimize import wide as module
from anchorline.optimize.bounds import Centered
from anchorline.optimize.wide import WideEvidence
from anchorline.search import case
from anchorline.settings import Settings


def sample(n=90, d=150, seed=0):
    rng = np.random.default_rng(seed)
    flips = rng.random((n, d)) < 0.3
    return flips, np.rint((flips[:, :3] @ [0.3, -0.2, 0.1] + 0.05 * rng.normal(size=n)) * 2**26) / 2**26


@pytest.fixture(params=[2**24, 1000], ids=["all counts kept", "few counts kept"])
def kept(request, monkeypatch):
    """Proofs keep all counts, or so few that rows are counted anew."""
    monkeypatch.setattr(module, "_MAX_KEPT", request.param)


def test_sums_and_correlations_are_those_of_all_pairs(kept):
    flips, drops = sample()
    dense = Evidence.from_sample(flips, drops)
    wide = WideEvidence.from_sample(flips[:40], drops[:40]) + WideEvidence.from_sample(flips[40:], drops[40:])
    assert np.array_equal(wide.flip_sums, dense.flip_sums)
    assert np.array_equal(wide.cross_sums, dense.cross_sums)
    assert (wide.n_rows, wide.drop_sums, wide.square_sums) == (90, dense.drop_sums, dense.square_sums)
    for key in (7, np.ix_([3, 149, 3], [0, 5]), (np.array([1, 2]), np.array([2, 2]))):
        assert np.array_equal(wide.second_moments[key], dense.second_moments[key])
    literals = np.array([4, 2, 99])
    assert np.array_equal(
        restricted(Problem(wide, 2, 0.5), literals).evidence.second_moments[np.ix_([0, 1, 2], [0, 1, 2])],
        dense.restricted(literals).second_moments,
    )
    ours, theirs = Centered.from_evidence(wide), Centered.from_evidence(dense)
    assert np.array_equal(ours.variances, theirs.variances)
    assert ours.row_max == pytest.approx(theirs.row_max, rel=1e-15)
    assert np.array_equal(
        ours.covariance[literals[:, None], literals], theirs.covariance[np.ix_(literals, literals)]
    )


def test_sums_of_drops_that_are_not_on_their_grid_are_the_same():
    flips, drops = sample()
    drops = drops + 1e-12
    dense, wide = (kind.from_sample(flips, drops) for kind in (Evidence, WideEvidence))
    assert np.array_equal(wide.cross_sums, dense.cross_sums)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_solutions_are_the_same(kept, k):
    flips, drops = sample(seed=k)
    found = [
        solve(Problem(kind.from_sample(flips, drops), k, 0.5), node_limit=400) for kind in (Evidence, WideEvidence)
    ]
    assert found[0].status is found[1].status
    assert found[0].objective == found[1].objective
    assert np.array_equal(found[0].contributions, found[1].contributions)


@pytest.mark.parametrize("keywords", [{}, {"keep_noise": True}, {"alternatives": 2}])
def test_explanations_have_the_same_bytes(monkeypatch, kept, keywords):
    slopes = np.random.default_rng(5).normal(size=64) / 5
    texts = []
    for least in (10**6, 1):
        monkeypatch.setattr(case, "_WIDE", least)
        explainer = al.Explainer(lambda z: np.tanh(z @ slopes), al.Hypercube(), output="score")
        texts.append(explainer.explain([1] * 64, k=4, n_samples=600, n_certify=200, **keywords).to_json())
    assert texts[0] == texts[1]


def test_weights_are_refused():
    flips, drops = sample()
    with pytest.raises(SampleError, match=r"Type Evidence\.from_sample"):
        WideEvidence.from_sample(flips, drops, np.ones(90))


@pytest.mark.parametrize(
    ("d", "n_samples", "is_wide"),
    [(10_000, 5000, True), (500, 5000, False), (1100, 10**6, False), (2000, "auto", False)],
)
def test_pairs_are_counted_on_demand_where_that_takes_less_memory(d, n_samples, is_wide):
    explainer = al.Explainer(lambda z: np.tanh(z[:, 0]), al.Hypercube(), output="score")
    prepared = explainer.prepare(np.ones(d), Settings.from_keywords(n_samples=n_samples))
    assert prepared.is_wide is is_wide
    assert prepared.neighborhood.rows_per_call * d <= 2**23
    assert prepared.neighborhood.rows_per_call >= min(4096, 2**23 // d)
