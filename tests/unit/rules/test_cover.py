"""The fewest rules that cover many rows: enumeration is the judge, and sentences say what the figures say."""

import json
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

import anchorline as al
from anchorline.errors import ParameterError, TamperedError
from anchorline.render.statements import statements_of
from anchorline.result.rule import Rule, RuleVerdict
from anchorline.rules.cover import fewest
from helpers.sealing import resealed
from helpers.table_facts import all_true


def enumerated(sets):
    """Return the smallest number of sets that cover as much as all of them."""
    everything = 0
    for each in sets:
        everything |= each
    for n in range(len(sets) + 1):
        for some in combinations(sets, n):
            union = 0
            for each in some:
                union |= each
            if union == everything:
                return n
    raise AssertionError


def test_the_fewest_sets_are_those_of_enumeration():
    rng = np.random.default_rng(0)
    for _ in range(400):
        n_sets, n_elements = rng.integers(0, 10), rng.integers(1, 12)
        sets = [
            int(each) for each in rng.integers(0, 2**n_elements, n_sets) & rng.integers(0, 2**n_elements, n_sets)
        ]
        chosen, is_proven = fewest(sets)
        assert is_proven
        assert len(chosen) == len({*chosen}) == enumerated(sets)
        union = everything = 0
        for each in sets:
            everything |= each
        for place in chosen:
            assert sets[place] & ~union  # each adds something
            union |= sets[place]
        assert union == everything


def test_without_time_the_cover_is_found_and_not_proven():
    rng = np.random.default_rng(1)
    sets = [sum(1 << int(e) for e in rng.choice(300, 12, replace=False)) for _ in range(200)]
    chosen, is_proven = fewest(sets, work=2000)
    assert not is_proven
    assert len(chosen) >= 25  # 12 elements each


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 70, 300), "income": rng.normal(50, 20, 300).round(1)})
    frame["since"] = pd.to_datetime("2015-01-01") + pd.to_timedelta(rng.integers(0, 2000, 300), "D")
    frame["town"] = rng.choice(["Lens", "Arras"], 300)
    frame["owner"] = rng.random(300) < 0.5
    frame.loc[rng.random(300) < 0.1, "income"] = np.nan
    return frame


def decide(frame):
    """Decide by numbers, dates, categories, booleans and missing values."""
    old = np.asarray(frame["since"] < pd.Timestamp("2017-06-01"))
    poor = ~(np.asarray(frame["income"], dtype=float) >= 45)
    lens = np.asarray([town == "Lens" for town in frame["town"]])
    return np.where((poor & old) | (lens & np.asarray(frame["owner"], dtype=bool)), 1.0, 0.0)


@pytest.fixture(scope="module")
def many(people):
    explainer = al.Explainer(decide, al.Table(people), output="score", threshold=0.5)
    return explainer.explain_many(people[:40], rule=True)


def test_rules_of_a_table_cover_the_rows_that_they_say(many, people):
    rules = many.rules()
    by_row = {record["row"]: Rule.from_json(record["rule"]) for record in many.records}
    covered = set()
    for each in rules:
        assert each.rule == by_row[each.row]
        assert each.rule.verdict in (RuleVerdict.ALWAYS, RuleVerdict.HOLDS)
        inside = np.flatnonzero(all_true(each.rule.facts, people[:40])).tolist()
        decision = each.rule.output.decision
        alike = {row for row in inside if by_row[row].output.decision == decision}
        assert {*each.alike} == alike
        assert {*each.alike, *each.otherwise} == {*inside}
        covered |= alike
    assert covered | {*rules.left_over} == {*range(40)}
    assert rules.n_covered == len(covered)
    assert rules.is_proven
    assert {fact.kind for each in rules for fact in each.rule.facts} >= {"below", "equals"}
    assert al.Rules.from_json(rules.to_json()) == rules


def test_candidates_agree_with_the_rows(many):
    wide, strict = many.rules(agree=0.0), many.rules(agree=1.0)
    assert all(not each.otherwise for each in strict)
    assert wide.n_candidates >= strict.n_candidates
    for each in many.rules():
        assert len(each.alike) >= 0.95 * (len(each.alike) + len(each.otherwise))


def test_a_vote_needs_six_rules():
    explainer = al.Explainer(lambda z: (z[:, :3].sum(axis=1) > 0) * 2 - 1, al.Hypercube(["a", "b", "c", "d"]))
    rules = explainer.explain_many([*product([1, -1], repeat=4)], rule=True).rules()
    first, *rest = str(rules).split("\n")
    assert first == "6 rules cover the 16 rows given (proven: no fewer of the 6 candidates do):"
    assert rest[:2] == [
        "  class 1: a = +1 and b = +1.",
        "    Of 16 rows, 4 have these facts; all of them get this decision.",
    ]
    assert rest[-1] == (
        "Each rule was certified for the altered copies of one row: all of those with its facts get its decision. "
        "Nothing is certified for other rows."
    )
    frame = rules.to_frame("polars")
    assert frame["alike"].to_list() == [4] * 6
    assert frame["facts"][0] == "a = +1; b = +1"
    assert repr(rules) == "Rules(6 rules cover 16 of 16 rows, proven)"


def test_numbers_are_alike_within_the_tolerance_of_the_rule():
    explainer = al.Explainer(lambda z: 10.0 + 4 * z[:, 0] + 0.1 * z[:, 1], al.Hypercube(["a", "b", "c"]))
    rules = explainer.explain_many([*product([1, -1], repeat=3)], rule={"within": 1.0}).rules()
    assert [(len(each.alike), len(each.otherwise)) for each in rules] == [(4, 0), (4, 0)]
    statements = [each.text for each in statements_of(rules)]
    assert statements[2] == "Of 8 rows, 4 have this fact; all of them get such a value."
    assert "stay within its tolerance" in statements[-1]


def test_rows_that_fail_or_are_left_over_are_said():
    explainer = al.Explainer(lambda z: np.sign(z.prod(axis=1)), al.Hypercube([*"abcdef"]))
    rows = [[1] * 6, [1, 1, 1, 1, 1, -1], [1, 1, 1, 1, 1, 0]]
    rules = explainer.explain_many(rows, rule={"k": 2}, errors="keep").rules()
    assert (len(rules), rules.left_over, rules.n_failed, rules.is_proven) == (0, (0, 1), 1, True)
    assert str(rules) == (
        "No rule of the 2 rows given holds as often as asked and agrees with the rows that have its facts.\n"
        "1 row failed and has no rule."
    )


def test_what_cannot_be_covered():
    explainer = al.Explainer(lambda texts: [1.0 if "good" in text else 0.0 for text in texts], al.Text())
    many = explainer.explain_many(["a good day", "a bad day"], rule={"within": 0.5})
    with pytest.raises(ParameterError, match="Only rules about rows of a table can apply to other rows"):
        many.rules()
    vote = al.Explainer(lambda z: z[:, 0], al.Hypercube(["a", "b"])).explain_many([[1, 1]], rule={"within": 0.5})
    with pytest.raises(ParameterError, match=r"Type agree=0\.9"):
        vote.rules(agree=90)
    with pytest.raises(ParameterError, match=r"rule=True"):
        al.Explanations([]).rules()


def test_rules_that_contradict_themselves_are_refused(many):
    rules = many.rules()
    with pytest.raises(TamperedError, match="are covered and"):
        al.Rules.from_json(resealed(json.loads(rules.to_json()) | {"n_rows": rules.n_rows + 1}))
