"""What a new user types wrongly is answered by name: what came, what is needed, what to type."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from anchorline.errors import InstanceError, ParameterError
from anchorline.explainer import Explainer
from anchorline.result.rule import RuleVerdict
from anchorline.settings import RuleSettings
from anchorline.spaces.hypercube import Hypercube

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(300, 3)).round(2), columns=["income", "debt", "age"])
DECIDES = Explainer(LogisticRegression().fit(FRAME, FRAME["income"] > FRAME["debt"]), FRAME)
NUMBER = Explainer(LinearRegression().fit(FRAME, 10 * FRAME["income"] + FRAME["debt"]), FRAME)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"hold": 0.9}, "unexpected keyword 'hold'. Did you mean 'holds'?"),
        ({"Holds": 0.9}, "Did you mean 'holds'?"),
        ({"same_within": 1}, "Did you mean 'within'?"),
        ({"max_queries": 100}, "Did you mean 'queries'?"),
        ({"precision": 0.9}, "The keywords are confidence, holds, k, queries, seed, sigma, within."),
        ({"time_limit": 3}, "unexpected keyword 'time_limit'"),
    ],
)
def test_a_wrong_keyword_is_answered_with_the_right_one(keywords, words):
    with pytest.raises(TypeError, match=re.escape(words)):
        DECIDES.rule(3, **keywords)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"holds": 95}, "holds is 95, but it must be a number above 0 and below 1. Type holds=0.95"),
        ({"holds": 0}, "holds is 0, but it must be a number above 0 and below 1. Type holds=0.95"),
        ({"holds": -0.5}, "holds is -0.5"),
        ({"holds": True}, "holds is True, but it must be a number"),
        ({"holds": "0.95"}, "holds is '0.95', but it must be a number"),
        ({"holds": float("nan")}, "holds is nan"),
        ({"holds": 1}, "holds is 1, which can be proven only for trees that can be read"),
        ({"holds": 1.0}, "Type holds=0.99."),
        ({"within": 5}, "within is 5, but the model returns decisions"),
        ({"k": 0}, "k is 0, but it must be a whole number >= 1. Type k=4."),
        ({"k": 2.0}, "k is 2.0"),
        ({"k": None}, "k is None"),
        ({"queries": 10}, "queries is 10, but it must be a whole number >= 32. Type queries=300"),
        ({"queries": None}, "queries is None"),
        ({"seed": -1}, "seed is -1, but it must be a whole number >= 0. Type seed=0."),
        ({"sigma": -1}, "sigma is -1, but it must be a finite number >= 0"),
        ({"confidence": 95}, "confidence is 95, but it must be a number above 0.5 and below 1"),
    ],
)
def test_a_wrong_value_is_named_with_what_to_type(keywords, words):
    with pytest.raises(ParameterError, match=re.escape(words)):
        DECIDES.rule(3, **keywords)


@pytest.mark.parametrize("within", [-1, 0, "10%", float("inf"), float("nan"), True])
def test_a_wrong_tolerance_is_named(within):
    with pytest.raises(ParameterError, match=re.escape(f"within is {within!r}, but it must be a number above 0.")):
        NUMBER.rule(3, within=within)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"income": 1.0, "debt": 2.0}, "The row lacks 'age'; it has 'income', 'debt'"),
        (FRAME.iloc[3].drop("debt"), "The row lacks 'debt'"),
        (9999, "Row 9999 does not exist; the table has rows 0 to 299"),
        (FRAME, "The frame has 300 rows; it must have one"),
        ("first", "The row is a str"),
    ],
)
def test_a_wrong_row_is_named(row, words):
    with pytest.raises(InstanceError, match=re.escape(words)):
        DECIDES.rule(row)


def zero(rows):
    return np.zeros(len(rows))


@pytest.mark.parametrize(("queries", "known"), [("auto", "on the table is 0"), (300, "is not known")])
def test_a_constant_model_needs_a_tolerance(queries, known):
    explainer = Explainer(zero, FRAME, output_range=(-1e9, 1e9))
    with pytest.raises(ParameterError, match=f"the spread of the outputs {known}.*Type within=10"):
        explainer.rule_with(3, RuleSettings(queries=queries))
    assert explainer.rule_with(3, RuleSettings(queries=queries, within=1)).holds.value == 1


def test_a_tolerance_does_not_follow_a_range_that_its_maker_chose():
    given, plain = (
        Explainer(NUMBER.model.predict, FRAME, output_range=output_range).rule(3, queries=500)
        for output_range in ((-1e9, 1e9), None)
    )
    assert given.within == plain.within == pytest.approx(0.1 * abs(plain.prediction))


def test_a_number_stays_at_the_end_of_its_tolerance():
    """0.4 - 0.3 exceeds 0.1 by its last bit, and 0.3 - 0.2 does not."""

    def grid(rows):
        return np.select([rows[:, 0] < 0, rows[:, 1] < 0], [0.4, 0.2], 0.3)

    rule = Explainer(grid, Hypercube()).rule([1, 1, 1], within=0.1)
    assert (rule.verdict, rule.facts, rule.holds.value) == (RuleVerdict.ALWAYS, (), 1.0)


def test_more_facts_than_columns_are_no_obstacle():
    few, many = (NUMBER.rule(3, within=0.2, k=k) for k in (3, 50))
    assert few.facts == many.facts
    assert len(few.facts) > 1
    assert few.verdict is RuleVerdict.FALLS_SHORT


@pytest.mark.parametrize("queries", [32, 33, 60, 200, 1000])
@pytest.mark.parametrize("explainer", [DECIDES, NUMBER])
def test_few_queries_are_never_exceeded(explainer, queries):
    rule = explainer.rule(3, queries=queries)
    assert rule.queries.total <= queries
    assert rule.rows is None
