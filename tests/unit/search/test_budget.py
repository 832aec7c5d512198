"""budget=: split between search and certificate, never exceeded, and honest about what so few queries can say."""

import contextlib
import itertools

import numpy as np
import pytest

import anchorline as al
from anchorline.errors import BudgetError, InfeasibleError, ParameterError
from anchorline.guarantees.verdicts import TRUSTWORTHY_STABILITY
from anchorline.search.moments import flip_covariances
from anchorline.settings import MIN_BUDGET, PRAISED, Settings, split_budget
from anchorline.spaces.base import Change, Law


class Counting:
    """A model that counts the rows it is asked about."""

    def __init__(self, function):
        self.function, self.n_rows = function, 0

    def __call__(self, inputs):
        self.n_rows += len(inputs)
        return self.function(inputs)


def crooked(z):
    return np.tanh(0.9 * z[:, 0] + 0.6 * z[:, 1] * z[:, 2] + 0.3 * z[:, 3] - 0.1 * z[:, 4:].sum(axis=1))


def words(texts):
    return np.array([0.1 * len(text.split()) % 1 for text in texts])


KEYWORDS = [
    {},
    {"objective": "relevance"},
    {"alternatives": 2},
    {"pairs": "and"},
    {"solver": "iht"},
    {"sampling": "draw"},
    {"keep_noise": True},
]


@pytest.mark.parametrize("budget", [MIN_BUDGET, 100])
@pytest.mark.parametrize("keywords", KEYWORDS, ids=str)
@pytest.mark.parametrize("d", [6, 15])
def test_a_budget_is_never_exceeded(budget, keywords, d):
    model = Counting(crooked)
    e = al.explain(model, np.ones(d), budget=budget, threshold=0.0, **keywords)
    assert model.n_rows == e.certificate.n_queries <= budget
    assert e.parameters["budget"] == e.parameters["max_queries"] == budget
    assert al.Explanation.from_json(e.to_json()) == e


@pytest.mark.parametrize("budget", [32, 128, 300])
def test_frontier_shortest_texts_and_many_rows_keep_to_it(budget):
    model = Counting(crooked)
    explainer = al.Explainer(model, al.Hypercube())
    explainer.frontier(np.ones(12), ks=[1, 3], budget=budget)
    assert model.n_rows <= budget
    model.n_rows = 0
    with contextlib.suppress(InfeasibleError):
        explainer.shortest(np.ones(12), max_relevance_error=0.5, budget=budget)
    assert model.n_rows <= budget
    model.n_rows = 0
    explainer.explain_many(np.ones((3, 12)), budget=budget)
    assert model.n_rows <= 3 * budget
    texts = Counting(words)
    e = al.Explainer(texts, al.Text(), output_range=(0, 1)).explain("a b c d e f g h i j k l m n", budget=budget)
    assert texts.n_rows == e.certificate.n_queries <= budget


def test_all_neighbors_are_asked_if_the_budget_allows_it():
    e = al.explain(crooked, np.ones(8), budget=300)
    assert e.certificate.exhaustive
    assert e.certificate.n_queries == 257
    assert "by effects estimated" not in str(e)


@pytest.mark.parametrize("budget", [32, 64, 128, 281, 300, 10_000])
@pytest.mark.parametrize("chooses", [False, True])
def test_the_split_leaves_room_for_all_parts(budget, chooses):
    n_search, n_certify = split_budget(budget, chooses=chooses)
    n_choose = -(-n_search // 2) if chooses else 0
    assert budget - 3 <= 1 + n_search + n_choose + n_certify <= budget
    assert min(n_search, n_certify) >= 7


def test_the_certificate_takes_half_where_praise_is_possible():
    assert PRAISED == TRUSTWORTHY_STABILITY
    assert split_budget(300) == (150, 149)
    steady = al.explain(lambda z: 0.8 * z[:, 0], np.ones(20), budget=300, threshold=0.0, sigma=0).certificate
    assert steady.stability.low > TRUSTWORTHY_STABILITY
    assert steady.verdict is al.Verdict.TRUSTWORTHY
    fewer = al.explain(lambda z: 0.8 * z[:, 0], np.ones(20), budget=256, threshold=0.0).certificate
    assert fewer.stability.low < TRUSTWORTHY_STABILITY


def test_baselines_count_the_search_sample_and_nothing_else_does():
    c = al.explain(crooked, np.ones(20), budget=300, threshold=0.0).certificate
    assert (c.n_samples, c.fidelity_error.n_samples, c.stability.n_samples) == (150, 37, 112)
    assert c.baseline_stability.n_samples == c.baseline_error.n_samples == 150 + 37


def test_too_few_queries_are_named_with_what_to_type():
    text = str(al.explain(crooked, np.ones(20), budget=64, threshold=0.0))
    assert " by effects estimated from 48 samples." in text
    assert "So few samples do not show whether the average effect of" in text
    assert " explanation. Too few queries to say. It is open whether" in text
    assert text.endswith("Type budget=256 to ask more.")


def test_noise_is_left_out_where_that_costs_nothing():
    c = al.explain(lambda z: np.sign(z[:, 0]) * 0.9, np.ones(20), budget=400, threshold=0.0).certificate
    assert (c.n_facts, c.n_unclear) == (1, 0)
    assert c.verdict is al.Verdict.TRUSTWORTHY


def test_facts_whose_effect_may_be_zero_are_not_praised():
    noise = {"k": 3, "keep_noise": True, "threshold": 0.0}
    e = al.explain(lambda z: np.sign(z[:, 0]) * 0.9, np.ones(20), budget=400, **noise)
    assert (e.certificate.n_facts, e.certificate.n_unclear) == (3, 2)
    assert e.certificate.losses.verdict is al.Verdict.TRUSTWORTHY
    assert e.certificate.verdict is al.Verdict.UNDECIDED
    assert "Too few queries to say whether it is these facts that hold the output." in str(e)


@pytest.mark.parametrize("keywords", KEYWORDS, ids=str)
def test_an_explanation_with_a_budget_is_verified(keywords):
    e = al.explain(crooked, np.ones(20), budget=200, threshold=0.0, **keywords)
    assert e.verify(crooked).holds
    assert e == al.explain(crooked, np.ones(20), budget=200, threshold=0.0, **keywords)


def test_theory_does_not_speak_about_estimated_effects():
    assert al.explain(crooked, np.ones(20), budget=200).certificate.theorem_epsilon is None


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"budget": 31}, "budget is 31, but it must be a whole number >= 32. Type budget=300."),
        ({"budget": 1.5}, "budget is 1.5, but it must be a whole number"),
        ({"budget": 300, "n_samples": 100}, "the budget sets n_samples"),
        ({"budget": 300, "max_queries": 100}, "the budget sets max_queries"),
        ({"budget": 300, "n_certify": 0}, "the budget sets n_certify"),
        ({"budget": 300, "sampling": "leaves"}, "reading trees takes queries that no budget counts"),
        ({"moments": "guessed"}, "moments is 'guessed', but it must be one of sample, known"),
        ({"moments": "known", "pairs": "and"}, "need the sample itself. Leave out moments."),
    ],
)
def test_bad_budgets_are_named(keywords, words):
    with pytest.raises(ParameterError) as caught:
        al.explain(crooked, np.ones(5), **keywords)
    assert words in str(caught.value)


def test_a_range_is_not_learned_behind_a_budget():
    frame = np.random.default_rng(0).normal(size=(60, 4))
    explainer = al.Explainer(lambda rows: 9 * rows[:, 0], al.Table(frame))
    with pytest.raises(BudgetError, match="output_range"):
        explainer.explain(frame[0], budget=100)


def test_cost_counts_queries_and_times_one_answer():
    model = Counting(crooked)
    explainer = al.Explainer(model, al.Hypercube())
    cost = explainer.cost(np.ones(20), budget=300)
    assert (cost.n_queries, model.n_rows) == (300, 1)
    assert cost.seconds > 0
    assert str(cost) == "at most 300 queries, under a second if asked one by one"
    assert explainer.cost(np.ones(20)).n_queries == 10_001
    assert explainer.cost(np.ones(8)).n_queries == 257
    assert explainer.cost(np.ones(20), n_samples="auto").n_queries == 200_000


def test_settings_without_a_budget_are_recorded_as_before():
    assert not {"budget", "moments"} & Settings().to_dict().keys()
    settings = Settings.from_keywords(budget=300)
    assert Settings.from_dict(settings.to_dict()) == settings


def test_covariances_of_flips_are_those_of_the_law():
    """Against the enumeration of all outcomes of two attributes; two bounds and an interval describe the first."""
    age = (Change(0.6, (0, 2)), Change(0.3, (1, 2)), Change(0.1, (2,)))
    law = Law.of_changes([age, (Change(1.0, (3,)),)], n_literals=4, flip_probability=0.4)
    first = [(0.6, (0, 0, 0)), (0.24, (1, 0, 1)), (0.12, (0, 1, 1)), (0.04, (0, 0, 1))]
    second = [(0.6, (0,)), (0.4, (1,))]
    outcomes = [(p * q, (*a, *b)) for (p, a), (q, b) in itertools.product(first, second)]
    weights, flips = np.array([p for p, _ in outcomes]), np.array([f for _, f in outcomes], dtype=float)
    centered = flips - weights @ flips
    assert np.allclose(flip_covariances(law), centered.T @ (centered * weights[:, None]))


def test_bounds_of_a_table_are_estimated_too():
    frame = np.random.default_rng(1).normal(size=(300, 8))
    model = Counting(lambda rows: 1 / (1 + np.exp(-2 * rows[:, 0] + rows[:, 1] - 0.5 * rows[:, 2] ** 2)))
    explainer = al.Explainer(model, al.Table(frame, literals="bounds"), output_range=(0, 1), threshold=0.5)
    e = explainer.explain(frame[0], budget=400)
    assert model.n_rows == e.certificate.n_queries <= 400
    assert e.verify(model, space=explainer.space).holds
