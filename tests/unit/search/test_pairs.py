"""Pairs of facts from the call to the page: what is measured, what is printed, and what is refused."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

import anchorline as al
from anchorline.errors import FormatError, ParameterError
from anchorline.optimize import Status
from anchorline.search.investigate import gather, pose, with_effect
from anchorline.search.pairs import find_candidates, n_possible_pairs
from anchorline.settings import Settings
from anchorline.spaces.base import Change, Law
from helpers.enumeration import all_flips

X = [1, 1, -1, 1, -1, 1]


def conjunction(z):
    return 0.6 * ((z[:, 0] > 0) & (z[:, 1] > 0)) + 0.2 * z[:, 2] - 0.3


def product(z):
    return 0.3 * z[:, 0] + 0.25 * z[:, 1] * z[:, 2] + 0.1 * z[:, 3]


MODELS = {"and": conjunction, "parity": product}


def smooth(z):
    return np.tanh(0.4 * z[:, 0] + 0.5 * z[:, 1] * z[:, 2] + 0.3 * z[:, 3] * z[:, 0] - 0.2 * z[:, 4])


def direct_errors(predict, x, e, p):
    """Fidelity error, relevance error and P[A] by the definition, from the texts' meaning: no code is shared."""
    x = np.asarray(x, dtype=float)
    flips = all_flips(len(x)).astype(bool)
    weights = np.prod(np.where(flips, p, 1 - p), axis=1)
    parity = e.parameters["pairs"] == "parity"
    columns = [flips[:, i] != flips[:, j] if parity else flips[:, i] | flips[:, j] for i, j in e.pairs]
    sums = np.column_stack([flips, *columns]) @ e.scaled
    drops = (predict(x[None])[0] - predict(x * (1 - 2 * flips))) / 2
    event = np.abs(sums) < 1e-9
    fidelity = weights @ (drops - sums) ** 2
    return fidelity, weights[event] @ drops[event] ** 2 / weights[event].sum(), weights[event].sum()


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("k", [2, 3, 5, 6])
def test_errors_on_all_neighbors_follow_the_definition(kind, k):
    e = al.explain(smooth, X, k=k, pairs=kind, keep_noise=True)
    fidelity, relevance, probability = direct_errors(smooth, X, e, e.parameters["flip_probability"])
    certificate = e.certificate
    assert certificate.fidelity_error.value == pytest.approx(fidelity, abs=1e-7)
    assert certificate.relevance_error.value == pytest.approx(relevance, abs=1e-7)
    assert certificate.event_probability == pytest.approx(probability)
    assert certificate.n_terms == np.count_nonzero(e.contributions) + len(e.pairs) + (e.intercept != 0) <= k
    assert certificate.objective <= al.explain(smooth, X, k=k, keep_noise=True).certificate.objective + 1e-12
    assert certificate.relevance_bound == pytest.approx(min(1, fidelity / probability), rel=1e-5)


@pytest.mark.parametrize("kind", MODELS)
def test_drawn_estimates_cover_the_truth(kind):
    e = al.explain(smooth, X, k=5, pairs=kind, sampling="draw", n_samples=3000)
    assert e.pairs
    fidelity, relevance, _ = direct_errors(smooth, X, e, e.parameters["flip_probability"])
    assert e.certificate.fidelity_error.low <= fidelity <= e.certificate.fidelity_error.high
    assert e.certificate.relevance_error.low <= relevance <= e.certificate.relevance_error.high


def test_the_model_itself_is_found_and_told():
    e = al.explain(conjunction, X, pairs="and")
    assert str(e).splitlines()[:3] == [
        "0.3 [x0 = +1 and x1 = +1] - 0.2 [x2 = -1] -> f(x) = 0.1",
        "Proven best 3-term explanation (1 fact and 1 pair of facts) on the case and all 63 possible "
        "neighbors. Candidates were all facts and the 3 of 15 pairs whose two facts have a clear effect; a pair "
        "counts as two terms.",
        "While this fact and this pair hold, the output stays within 0.2 of its value in all 7 possible "
        "neighbors; over all 63 possible neighbors, each weighted by its probability, in 42.9%.",
    ]
    assert e.as_rule() == (
        "(x0 = +1 and x1 = +1) raises f(x); x2 = -1 lowers it. If both hold, then f(x) stays within "
        "0.2 of 0.1 in "
        "all 7 possible neighbors."
    )
    assert e.certificate.event_probability == pytest.approx((1 - e.parameters["flip_probability"]) ** 3)
    assert e.pairs == ((0, 1),)
    with pytest.raises(AttributeError, match="products"):
        _ = e.coef


def test_a_parity_also_holds_where_both_facts_are_broken():
    e = al.explain(product, X, pairs="parity")
    p = e.parameters["flip_probability"]
    assert e.certificate.event_is_literal is True  # the statement "..., or neither" says what is true
    assert e.certificate.event_probability == pytest.approx((1 - p) ** 2 * ((1 - p) ** 2 + p**2))
    assert "(x1 = +1 and x2 = -1, or neither) lowers it. If all 3 hold, then f(x) stays within 0.2 " in e.as_rule()
    np.testing.assert_allclose(e.coef, [0.3, 0, 0, 0.1, 0, 0, 0.25], atol=1e-7)


def test_a_rule_of_conjunctions_alone_names_every_fact_once():
    def chain(z):
        return 0.5 * ((z[:, 0] > 0) & (z[:, 1] > 0)) + 0.4 * ((z[:, 1] > 0) & (z[:, 3] > 0)) - 0.4

    e = al.explain(chain, [1, 1, 1, 1], k=5, pairs="and")
    assert e.as_rule().startswith("If x0 = +1, x1 = +1 and x3 = +1, then")
    assert "While these 2 pairs hold," in str(e)


@pytest.mark.parametrize("kind", MODELS)
def test_json_keeps_pairs_and_notices_changes(kind):
    e = al.explain(MODELS[kind], X, pairs=kind)
    assert al.Explanation.from_json(e.to_json()) == e
    body = json.loads(e.to_json())
    for name, value in {"pairs": [[0, 3]], "contributions": body["contributions"][:-1]}.items():
        with pytest.raises(FormatError):
            al.Explanation.from_json(json.dumps(body | {name: value}))
    assert e.verify(MODELS[kind]).outcome.name == "HOLDS"
    assert e.verify(lambda z: MODELS[kind](z) + 0.05 * z[:, 4]).outcome.name == "DOES_NOT_HOLD"


def test_a_search_stopped_by_the_clock_is_replayed():
    x = [1, 1, -1] * 6
    e = al.explain(smooth, x, pairs="and", n_samples=1000, time_limit=60.0)
    assert e.pairs
    assert e.verify(smooth, seed=1).outcome.name == "HOLDS"


def test_without_pairs_nothing_is_recorded():
    body = json.loads(al.explain(smooth, X).to_json())
    assert "pairs" not in body["parameters"]
    assert "pairs" not in body
    assert not {"n_pairs", "pairs_searched"} & set(body["certificate"])


@pytest.fixture(scope="module")
def housing():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "rooms": rng.uniform(2, 9, 600),
            "latitude": rng.uniform(32, 42, 600),
            "age": rng.uniform(0, 50, 600),
            "kind": rng.choice(["flat", "house"], 600),
        }
    )
    price = 2.0 * ((frame["rooms"] >= 6) & (frame["latitude"] < 36)) + 0.5 * (frame["kind"] == "house")
    return frame, HistGradientBoostingRegressor(random_state=0).fit(_coded(frame), price)


def _coded(frame):
    return frame.assign(kind=(frame["kind"] == "house").astype(float))


@pytest.mark.parametrize("literals", ["bounds", "intervals"])
def test_tables_state_conjunctions(housing, literals):
    frame, model = housing
    space = al.Table(frame, literals=literals)
    explainer = al.Explainer(lambda rows: model.predict(_coded(rows)), space, output="price")
    row = int(np.flatnonzero((frame["rooms"] > 6.5) & (frame["latitude"] < 35) & (frame["kind"] == "house"))[0])
    alone, e = explainer.explain(row), explainer.explain(row, pairs="and")
    assert len(e.pairs) == 1
    assert {e.literals[j].name for j in e.pairs[0]} == {"rooms", "latitude"}
    assert e.certificate.objective < 0.8 * alone.certificate.objective
    assert e.certificate.status is Status.OPTIMAL
    assert e.verify(explainer.model, space, seed=0).outcome.name == "HOLDS"
    assert e.literals[-1].text in e.to_frame()["literal"].tolist()
    assert "rooms and latitude" in list(e.to_shap().feature_names)
    assert "counts as two terms" in e.to_html()
    e.plot()
    sample = explainer.neighbors(e, 50)
    assert sample.sums.shape == (50,)
    many = explainer.explain_many(frame.iloc[[row]], pairs="and")
    assert many[0].to_json() == e.to_json()
    assert "rooms and latitude" in str(many.summary())


def test_parity_needs_one_literal_per_attribute(housing):
    frame, model = housing
    explainer = al.Explainer(lambda rows: model.predict(_coded(rows)), al.Table(frame, literals="bounds"))
    with pytest.raises(ParameterError, match="Type pairs='and'"):
        explainer.explain(0, pairs="parity")


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"pairs": "or"}, "must be 'and', 'parity' or None"),
        ({"objective": "relevance"}, "pairs need objective='fidelity'"),
        ({"solver": "iht"}, "pairs need solver='exact'"),
        ({"alternatives": 3}, "pairs need alternatives=0"),
        ({"n_samples": "auto"}, "pairs need a number"),
        ({"k": 1}, "a pair counts as two terms"),
    ],
)
def test_other_questions_are_refused_by_name(keywords, message):
    with pytest.raises(ParameterError, match=message):
        al.explain(smooth, X, **({"pairs": "and"} | keywords))


def test_calls_about_single_facts_are_refused_by_name():
    explainer = al.Explainer(smooth, al.Hypercube())
    with pytest.raises(ParameterError, match="for every k"):
        explainer.frontier(X, pairs="and")
    with pytest.raises(ParameterError, match="Leave it out"):
        explainer.assess(X, np.zeros(6), pairs="and")
    with pytest.raises(ParameterError, match="objective"):
        explainer.shortest(X, 0.1, pairs="and")


def candidates_of(predict, x, kind, seed):
    case = al.Explainer(predict, al.Hypercube()).prepare(x, Settings.from_keywords(pairs=kind, seed=seed))
    evidence, rows = gather(case, case.stream("search", 2000), keep=True)
    problem = pose(case, evidence)
    return find_candidates(case, problem, rows, with_effect(case, problem))


@pytest.mark.parametrize("kind", MODELS)
def test_pairs_with_a_fact_without_effect_are_rarely_candidates(kind):
    """With probability 95% there is none; in 60 samples, more than 8 would be a rare accident."""
    x, n_wrong = [1] * 10, 0
    for seed in range(60):
        found = candidates_of(lambda z: 0.5 * z[:, 0] * z[:, 1] + 0.3 * z[:, 2] * (z[:, 3] > 0), x, kind, seed)
        assert (0, 1) in set(map(tuple, found.members.tolist()))  # a pure interaction is found
        n_wrong += bool((found.members > 3).any())
    assert n_wrong <= 8


def test_the_number_of_pairs_counts_pairs_of_different_attributes():
    law = Law.of_changes([(Change(0.6, (0, 2)), Change(0.4, (1, 2))), (Change(1.0, (3,)),)], 4, 0.3)
    assert n_possible_pairs(law) == 3
    assert n_possible_pairs(Law.of_literals(7, 0.3)) == len(list(itertools.combinations(range(7), 2)))
