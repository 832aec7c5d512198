"""What is stated where no rule reaches the goal: the facts that hold most often, or none."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import anchorline as al


@pytest.fixture(scope="module")
def noisy():
    """Return an explainer of a forest that has learned noise, so that few decisions are held by four facts."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 12))
    target = rows[:, :6].sum(axis=1) + rng.normal(size=300) > 0
    return al.Explainer(RandomForestClassifier(30, random_state=0).fit(rows, target), rows)


def test_the_best_facts_hold_more_often_than_none(noisy):
    short = [rule for rule in (noisy.rule(row, k=2) for row in range(25)) if not rule.is_reached]
    assert len(short) > 5
    for rule in short:
        assert rule.holds.value > rule.all.value if rule.facts else rule.holds.value == rule.all.value


@pytest.mark.parametrize("row", [40, 146])
def test_the_best_facts_hold_about_as_often_as_those_of_the_sum(row):
    table = load_breast_cancer(as_frame=True)
    forest = RandomForestClassifier(60, random_state=1).fit(table.data, table.target)
    explainer = al.Explainer(forest, table.data)
    rule, e = explainer.rule(row), explainer.explain(row)
    assert not rule.is_reached
    assert rule.holds.value > e.holds.value - 0.05
    assert rule.holds.value > rule.all.value + 0.1


@pytest.mark.parametrize("queries", [32, 40, 60, 100])
def test_few_queries_are_never_a_question_about_no_rows(noisy, queries):
    asked = []

    def ask(rows):
        asked.append(len(rows))
        return noisy.model.predict_proba(rows)

    explainer = al.Explainer(ask, noisy.space)
    for row in range(4):
        assert explainer.rule(row, queries=queries).queries.total <= queries
        assert noisy.rule(row, queries=queries).queries.total <= queries
    assert min(asked) > 0
