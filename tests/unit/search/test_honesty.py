"""Claims that a reader could be misled by: each was wrong once."""

import inspect
import json
import math

import numpy as np
import pytest

import anchorline as al
from anchorline.errors import BudgetError, ParameterError
from anchorline.verify import Outcome
from helpers.sealing import resealed


def vote(rows):
    return np.where(rows[:, :3].sum(axis=1) > 0, "approve", "deny")


def smooth(rows):
    return np.tanh(0.15 * rows.sum(axis=1) + 0.2 * rows[:, 0])


def test_the_label_is_recorded_told_and_verified():
    e = al.explain(vote, [1, 1, 1, 1], task="label", k=3, output="decision")
    assert e.label == "approve"
    assert "[decision = approve] = 1" in str(e)
    assert 'decision stays "approve"' in e.as_rule()
    assert e.verify(vote).holds
    swapped = e.verify(lambda rows: np.where(vote(rows) == "deny", "approve", "deny"))
    assert swapped.outcome is Outcome.DOES_NOT_HOLD


@pytest.mark.parametrize(
    ("path", "value"), [(("output",), "chance to repay"), (("literals", 1, 1), "sex = male"), (("label",), "deny")]
)
def test_forged_texts_are_caught_without_the_space(path, value):
    e = al.explain(vote, [1, 1, 1, 1], task="label", k=3, output="risk of default")
    body = json.loads(e.to_json())
    holder = body
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    assert not al.verify(resealed(body), vote).holds


def test_fresh_neighbors_are_the_verifiers_own():
    seen = []

    def model(rows):
        seen.append(rows.copy())
        return smooth(rows)

    e = al.explain(smooth, np.ones(16), n_samples=300)
    for _ in range(2):
        assert e.verify(model).holds
    assert not (seen[-1] == seen[len(seen) // 2 - 1]).all()
    assert e.verify(smooth, seed=5) == e.verify(smooth, seed=5)


def test_what_is_no_explanation_cannot_be_told():
    assert al.verify("explanation.json", smooth).outcome is Outcome.CANNOT_TELL


def test_a_query_limit_of_the_maker_does_not_bind_the_verifier():
    e = al.explain(lambda z: 0.5 + 0 * z[:, 0], [1, 1, 1], k=1, max_queries=9)
    assert e.verify(lambda z: 0.5 + 0 * z[:, 0]).holds


@pytest.mark.parametrize("seed", range(30))
def test_a_proven_most_relevant_rule_is_called_proven(seed):
    """The support is the coverage optimum: nothing "may be better", no limit struck."""
    rng = np.random.default_rng(seed)
    slopes = rng.normal(size=5)
    e = al.explain(
        lambda z: np.tanh(z @ slopes / 2), np.ones(5), k=3, objective="relevance", n_samples=2000, sampling="draw"
    )
    assert e.certificate.status in (al.Status.OPTIMAL, al.Status.CHOSEN)
    assert "limit" not in str(e)
    if e.certificate.optimality_gap < 1e-12:
        assert e.certificate.status is al.Status.OPTIMAL


@pytest.mark.parametrize(
    "keywords",
    [
        {"objective": "relevance", "alternatives": 3},
        {"n_samples": "auto", "alternatives": 3},
        {"n_samples": "auto", "n_certify": 0},
        {"n_samples": "auto", "solver": "iht"},
        {"sigma": 1.0, "flip_probability": 0.2},
        {"threshold": 50.0},
        {"max_relevance_error": 0.1},
    ],
    ids=str,
)
def test_what_would_be_ignored_is_refused(keywords):
    with pytest.raises(ParameterError):
        al.explain(smooth, np.ones(12), **keywords)


@pytest.mark.parametrize("keywords", [{"output_range": (-2, 2)}, {"threshold": 0.5}], ids=str)
def test_labels_have_neither_range_nor_threshold(keywords):
    with pytest.raises(ParameterError, match="labels"):
        al.explain(lambda z: np.where(z[:, 0] > 0, 1, -1), np.ones(5), **keywords)


def test_the_theorem_knows_the_box():
    def epsilon(**keywords):
        return al.explain(smooth, np.ones(14), k=3, sampling="draw", **keywords).certificate.theorem_epsilon

    assert epsilon(box=3.0) > 3 * epsilon()
    assert epsilon(box=None) is None
    assert epsilon(solver="iht") is None


def test_the_theorem_counts_the_constant():
    """A sum without intercept has the scaled constant -1 of a zero probability: its norm is 3 here, at k = 2."""

    def both(rows):
        first, second = (rows[:, j] > 0 for j in (0, 1))
        share = 0.5 * (first & second) + 0.25 * first + 0.25 * second
        return np.column_stack([1 - share, share])

    e = al.Explainer(both, al.Hypercube()).explain(np.ones(20), k=2, n_samples=2000)
    norm = np.abs(e.scaled).sum() + abs(e.intercept / e.half_range - 1)
    assert norm == pytest.approx(3)
    epsilon = (norm + 1) ** 2 / 2 * math.sqrt((16 * math.log(2 * 21) + math.log(2 / 0.05)) / 2000)
    assert e.certificate.theorem_epsilon >= epsilon * (1 - 1e-12)
    looked = al.Explainer(both, al.Hypercube()).explain(np.ones(20), k=2, n_samples="auto").certificate
    planned = al.Explainer(both, al.Hypercube()).explain(np.ones(20), k=2, n_samples=looked.n_samples).certificate
    assert looked.theorem_epsilon > planned.theorem_epsilon


def test_a_rule_that_was_not_measured_is_not_told_as_proven():
    for model in (vote, smooth):
        assert al.explain(model, np.ones(14), k=2, n_certify=0).as_rule().endswith("was not measured.")


def test_a_rule_counts_clipped_outputs_as_they_are():
    rule = al.explain(lambda z: np.where(z[:, 0] > 0, 1.0, 50.0), np.ones(3), k=1).as_rule()
    assert rule == (
        "Over all 7 possible neighbors, each weighted by its probability, f(x) stays within 0.2 of 1 in 55.9%."
    )
    frontier = al.Explainer(lambda z: 5.0 - 4 * z[:, 0], al.Hypercube()).frontier(np.ones(3), ks=[1])
    assert "4 of 9 outputs were beyond output_range and clipped, so errors may be larger" in str(frontier)
    assert not al.Explainer(smooth, al.Hypercube()).frontier(np.ones(3), ks=[1]).warnings


def test_shares_of_literals_that_are_called_alike_are_shares():
    explainer = al.Explainer(lambda z: 0.3 * z[:, 0] + 0.2 * z[:, 1], al.Hypercube(["a", "a", "b"]))
    assert explainer.repeat(np.ones(3), n_seeds=2, k=3) == {"a = +1": 1.0}


def test_auto_draws_where_enumerating_costs_too_much():
    e = al.explain(smooth, np.ones(9), n_samples="auto", max_queries=400)
    assert e.certificate.n_queries <= 400
    assert not e.certificate.exhaustive


def test_most_outputs_clipped_comes_first():
    e = al.explain(lambda z: 20 * smooth(z) - 19.5, np.ones(12), k=3)
    assert "Pass a wider output_range" in str(e.certificate).splitlines()[0]


def test_a_frontier_checks_its_budget_first():
    asked = []

    def model(rows):
        asked.append(len(rows))
        return smooth(rows)

    with pytest.raises(BudgetError):
        al.Explainer(model, al.Hypercube()).frontier(np.ones(20), n_samples=1000, n_certify=1000, max_queries=1500)
    assert sum(asked) == 1


def test_all_limits_and_alternatives_share_the_failure_probability():
    alone = al.explain(smooth, np.ones(14), sampling="draw", k=3)
    beside = al.explain(smooth, np.ones(14), sampling="draw", k=3, alternatives=4)
    assert beside.certificate.relevance_error.confidence > alone.certificate.relevance_error.confidence


def test_help_shows_every_keyword():
    shown = inspect.signature(al.explain).parameters
    assert {"k", "sigma", "n_samples", "alternatives", "objective", "tolerance", "sampling", "seed"} <= set(shown)
    assert shown["k"].default == 5
    with pytest.raises(TypeError, match=r"'n_sample'. Did you mean 'n_samples'"):
        al.explain(smooth, np.ones(4), n_sample=5)


def test_explanations_are_equal_when_they_say_the_same():
    e = al.explain(smooth, np.ones(6))
    assert e == al.Explanation.from_json(e.to_json())
    assert e != al.explain(smooth, np.ones(6), k=2)


def test_bad_arguments_of_assess_and_frontier():
    explainer = al.Explainer(smooth, al.Hypercube())
    for call in (
        lambda: explainer.assess(np.ones(4), [0.1] * 4, n_fresh=0),
        lambda: explainer.assess(np.ones(4), {"a": 1}),
        lambda: explainer.assess(np.ones(4), [0.0] * 4, intercept=math.nan),
        lambda: explainer.assess(np.ones(4), [0.0] * 4, intercept=math.inf),
        lambda: explainer.assess(np.ones(4), [0.0] * 4, intercept="a"),
        lambda: explainer.frontier(np.ones(4), ks=3),
    ):
        with pytest.raises(ParameterError):
            call()


def test_the_details_can_be_read():
    e = al.explain(smooth, np.ones(14), sampling="draw", k=3)
    assert "Fidelity error" in e.certificate.details()
    assert "By theorem" in e.certificate.details()


def test_outputs_clipped_only_where_a_reason_is_broken_do_not_weaken_the_rule():
    def jump(z):
        return np.where(z[:, 0] > 0, 0.5, -5.0)

    for sampling in ("enumerate", "draw"):
        certificate = al.explain(jump, [1, 1, 1], k=2, sampling=sampling).certificate
        assert certificate.n_clipped > 0
        assert certificate.n_clipped_inside == 0
        assert certificate.verdict.name == "TRUSTWORTHY"
    wide = al.explain(lambda z: np.where(z[:, 1] * z[:, 2] > 0, 0.5, -5.0), [1, 1, 1], k=1, sampling="enumerate")
    assert 0 < wide.certificate.n_clipped_inside <= wide.certificate.n_clipped


def test_a_confidence_that_rounds_to_1_is_refused_before_any_query():
    asked = []
    with pytest.raises(ParameterError, match=r"confidence is 0\.9999999999999999"):
        al.explain(lambda z: asked.append(z) or z[:, 0] / 2, [1, 1], confidence=0.9999999999999999)
    assert not asked


def test_auto_claims_no_separation_from_shorter_sums_without_comparing_them():
    rng = np.random.default_rng(0)
    noise = rng.uniform(-0.4, 0.4, 2**11)

    def model(z):
        return 0.5 * z[:, 0] + noise[((z > 0) @ (2 ** np.arange(11)))]

    explanation = al.explain(
        model,
        [1] * 11,
        k=12,
        n_samples=1000,
        alternatives=8,
        sampling="draw",
        output_range=(-1, 1),
        keep_noise=True,
    )
    assert explanation.alternatives


def test_facts_that_add_nothing_are_not_praised():
    constant = al.explain(lambda z: np.zeros(len(z)) + 0.3, np.ones(12), k=1, sampling="draw")
    assert constant.verdict is al.Verdict.ROBUST
    far_away = al.explain(smooth, np.ones(14), k=4, sigma=50, sampling="draw")
    assert far_away.verdict is al.Verdict.UNDECIDED
    assert "100% of the draws equal this case, so that the facts were hardly tested. Type a s" in str(far_away)
    alone = al.explain(vote, np.ones(14), k=1, sampling="draw")
    assert alone.verdict not in (al.Verdict.TRUSTWORTHY, al.Verdict.ROBUST)


def test_an_assessment_can_be_read():
    explainer = al.Explainer(smooth, al.Hypercube(), threshold=0.0)
    e = explainer.explain(np.ones(14), k=4, sampling="draw", n_samples=1000)
    measured = explainer.assess(np.ones(14), e.contributions, sampling="draw", n_fresh=1000)
    lines = str(measured).split("\n")
    assert [line.split()[0] for line in lines] == ["Stability", "Relevance", "Fidelity", "All", "Verdict:"]
    assert "; over all neighbors: " in lines[0]
    assert lines[3] == "All limits hold together with 95% confidence."
    assert measured.stability.confidence == pytest.approx(1 - 0.05 / 6)  # one share tests the facts
    assert repr(measured).startswith("Assessment(stability ")
    assert "Estimate(" not in repr(measured)
    exact = explainer.assess(np.ones(14), e.contributions, sampling="auto", n_fresh=2**16)
    assert "(exact)" in str(exact)
    assert "All limits" not in str(exact)


def test_facts_padded_with_one_that_does_not_matter_are_not_praised():
    def first(z):
        return np.where(z[:, 0] > 0, 0.8, -0.8)

    explainer, x = al.Explainer(first, al.Hypercube(), threshold=0.0), np.ones(20)
    alone, padded = ([0.8] + [0.0] * 19), ([0.8, 0.1] + [0.0] * 18)
    assert explainer.assess(x, alone).verdict is al.Verdict.TRUSTWORTHY
    measured = explainer.assess(x, padded)
    assert measured.idle == (1,)
    assert measured.verdict is al.Verdict.UNDECIDED
    assert "Literals whose effect on the output cannot be distinguished from zero: 1." in str(measured)
    few = al.Explainer(first, al.Hypercube()).assess(np.ones(4), [0.8, 0.1, 0.0, 0.0])  # all neighbors there are
    assert few.idle == (1,)
