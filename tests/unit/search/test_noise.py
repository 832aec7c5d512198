"""Terms that are noise: facts that the output does not depend on are left out, real ones stay."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import anchorline as al
from anchorline.errors import ParameterError
from anchorline.optimize import Evidence, Problem, Status
from anchorline.optimize.evidence import remainders
from anchorline.search.investigate import with_effect
from anchorline.settings import Settings
from anchorline.spaces.base import Change, Law

HELPERS = Path(__file__).parents[2] / "helpers"
P = Settings().flip_probability


def two_of_them(z):
    """An output of two attributes that interact, so that no sum fits it exactly."""
    return 0.6 * ((z[:, 0] > 0) & (z[:, 1] > 0)) + 0.1 * (z[:, 1] > 0) - 0.3


def draw(function, rng, n=2000, d=12, p=P):
    flips = rng.random((n, d)) < p
    return Evidence.from_sample(flips, function(flips.astype(float)))


def effects(evidence, **keywords):
    """The literals with an effect, in a case of independent flips."""
    settings = Settings(**keywords)
    law = Law.of_literals(evidence.n_literals, settings.flip_probability)
    return with_effect(
        SimpleNamespace(settings=settings, flips_follow=False, law=law), Problem(evidence, settings.k, 0.3)
    )


def test_a_function_of_two_attributes_is_explained_by_two_facts():
    e = al.explain(two_of_them, [1] * 20, k=5)
    assert e.support.tolist() == [0, 1]
    assert (e.certificate.n_terms, e.certificate.n_left_out, e.parameters["k"]) == (3, 18, 5)
    assert e.certificate.status is Status.OPTIMAL
    assert (
        "Proven best 3-term explanation (2 facts and the starting level) on 5,000 samples. 18 facts were left "
        "out, because around this case, their average effect on the output cannot be distinguished from zero."
        in str(e)
    )
    assert "0.000" not in str(e).splitlines()[0]
    assert e.verify(two_of_them).outcome.value == "holds"
    assert al.Explanation.from_json(e.to_json()) == e


def test_the_facts_are_left_out_of_every_kind_of_search():
    explainer = al.Explainer(two_of_them, al.Hypercube())
    for keywords in (
        {"n_samples": "auto", "max_queries": 20_000},
        {"alternatives": 3},
        {"solver": "iht"},
        {"sampling": "enumerate"},
        {"objective": "relevance"},
    ):
        e = explainer.explain([1] * 10, k=5, **keywords)
        assert e.support.tolist() == [0, 1], keywords
        assert all(set(other.support) <= {0, 1} for other in e.alternatives)


def test_noise_is_kept_on_request():
    e = al.explain(two_of_them, [1] * 20, k=5, keep_noise=True)
    assert (e.certificate.n_terms, e.certificate.n_left_out) == (5, 0)
    with pytest.raises(ParameterError, match="keep_noise is 1, but it must be True or False"):
        al.explain(two_of_them, [1] * 20, keep_noise=1)


def test_where_nothing_matters_the_sum_is_the_starting_level():
    noisy = np.random.default_rng(0).uniform(-0.5, 0.5, 2**13)
    e = al.explain(lambda z: noisy[(z > 0) @ (2 ** np.arange(13))], [1] * 13, k=4)
    assert e.support.tolist() == []
    assert "On 5,000 samples, the average effect of no fact on the output can be distinguished from zero." in str(
        e
    )


def test_an_explanation_of_the_first_release_loads_keeps_its_seal_and_verifies():
    """It knows neither the parameter nor the count, and contains two facts that do not matter."""
    text = (HELPERS / "explanation-0.1.0.json").read_text().strip()
    e = al.Explanation.from_json(text)
    assert (e.certificate.n_terms, e.certificate.n_left_out) == (5, 0)
    assert e.to_json() == text
    assert e.verify(two_of_them).outcome.value == "holds"


@pytest.mark.parametrize(
    ("name", "function", "true"),
    [
        ("and", lambda flips: 0.4 * flips[:, 0] * flips[:, 1], 2),
        ("linear", lambda flips: 0.3 * flips[:, 0] + 0.05 * flips[:, 1], 2),
        ("any", lambda flips: 0.5 * (flips[:, :3].sum(axis=1) > 0), 3),
        ("nothing", lambda flips: np.zeros(len(flips)), 0),
    ],
)
@pytest.mark.parametrize("p", [0.02, P, 0.5])
def test_facts_that_do_not_matter_rarely_pass_and_visible_ones_always_do(name, function, true, p):
    """At most 5% of runs may pass a fact that does not matter, 3 of 60."""
    rng = np.random.default_rng(0)
    runs = [effects(draw(function, rng, 4000, p=p), k=5, flip_probability=p) for _ in range(60)]
    assert sum(bool((found >= true).any()) for found in runs) <= 3
    if p > 0.1:
        assert all((found < true).sum() == true for found in runs)


def test_the_level_of_the_test_is_kept_where_outputs_are_rough():
    """An output that is noise for every fact: with 50% confidence, at most half of the runs may pass any."""
    rng = np.random.default_rng(1)
    rough = (draw(lambda flips: rng.choice([0.0, 1.0], len(flips)), rng, 300) for _ in range(200))
    passed = sum(len(effects(evidence, k=3, confidence=0.5)) > 0 for evidence in rough)
    assert passed <= 100


def test_the_remainder_is_that_of_least_squares():
    rng = np.random.default_rng(2)
    flips = rng.random((500, 6)) < P
    drops = rng.uniform(-0.2, 0.2, 500) + 0.3 * flips[:, 2] - 0.1 * flips[:, 4]
    (rest,) = remainders(Evidence.from_sample(flips, drops), 2, np.arange(6)[None] == 0)
    assert rest.chosen.tolist() == [2, 4]
    design = np.column_stack([np.ones(500), flips[:, [2, 4]]])
    residual = drops - design @ np.linalg.lstsq(design, drops, rcond=None)[0]
    assert rest.variance == pytest.approx(np.mean(residual**2))
    assert rest.covariances == pytest.approx(flips.T @ residual / 500, abs=1e-12)
    assert np.abs(residual).max() <= rest.largest


def test_an_idle_fact_does_not_join_a_relevant_rule():
    """A parity of ten bits cannot be held by a few facts, so only the two others help."""

    def model(z):
        return 0.6 * ((z[:, 0] > 0) & (z[:, 1] > 0)) - 0.3 + 0.1 * np.prod(z[:, 2:], axis=1)

    kept = al.explain(model, [1] * 12, k=6, objective="relevance", sampling="draw", keep_noise=True)
    e = al.explain(model, [1] * 12, k=6, objective="relevance", sampling="draw")
    assert len(kept.support) > 2
    assert e.support.tolist() == [0, 1]


def test_statements_about_one_attribute_are_tested_without_each_other():
    """Of two bounds, one matters; an attribute with an interval does not, and none of its statements passes."""
    rng = np.random.default_rng(3)
    ways = ((0.6, (0, 2)), (0.4, (1, 2)))
    more = ((0.5, (3, 5)), (0.5, (4, 5)))
    law = Law.of_changes([[Change(*way) for way in ways], [Change(*way) for way in more]], 6, 0.4)
    draws = (rng.random((4000, 2)) < 0.4) * (1 + (rng.random((4000, 2)) < 0.45)).astype(np.uint8)
    flips = law.flips(draws)
    evidence = Evidence.from_sample(flips, 0.5 * flips[:, 0] + rng.uniform(-0.1, 0.1, 4000))
    case = SimpleNamespace(settings=Settings(k=3, flip_probability=0.4), flips_follow=False, law=law)
    found = with_effect(case, Problem(evidence, 3, 0.3, groups=law.groups))
    assert set(found.tolist()) >= {0, 2}
    assert set(found.tolist()) <= {0, 1, 2}
    assert law.literal_probabilities.round(12).tolist() == [0.24, 0.16, 0.4, 0.2, 0.2, 0.4]
