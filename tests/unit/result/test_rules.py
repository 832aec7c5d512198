"""The fewest rules of many explanations, and the comparison of two groups."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import anchorline as al
from anchorline.errors import ParameterError
from anchorline.guarantees import estimate_share
from anchorline.result.comparison import compare_groups

N = 60


def table(n=N, seed=0):
    rng = np.random.default_rng(seed)
    income = rng.integers(10, 90, n).astype(float)
    income[::11] = np.nan
    return pd.DataFrame({"income": income, "owner": rng.choice(["yes", "no"], n), "age": rng.integers(18, 70, n)})


def approve(frame):
    score = (frame["income"].fillna(0) > 45) * 0.5 + (frame["owner"] == "yes") * 0.3
    return np.column_stack([1 - score, score])


@pytest.fixture(scope="module")
def explainer():
    return al.Explainer(approve, al.Table(table()), classes=["declined", "approved"])


@pytest.fixture(scope="module")
def many(explainer):
    return explainer.explain_many(table(), k=3, n_samples=300, n_certify=300)


def holds(fact, row):
    """Read a fact as a person does, from its text alone."""
    name = next(name for name in row.index if name in fact)
    value, words = row[name], fact.split()
    if "missing" in fact:
        return pd.isna(value) == ("not" not in words)
    if fact.startswith(f"{name} = "):
        return value == type(value)(fact.removeprefix(f"{name} = "))
    if len(words) == 5:
        return float(words[0]) <= value < float(words[4])
    return value >= float(words[2]) if words[1] == ">=" else value < float(words[2])


def test_rules_are_true_of_the_rows_that_they_cover(many):
    frame, decisions = table(), [each.certificate.decided for each in many]
    rules = many.rules(share=0.8)
    for rule in rules.rules:
        is_true = [all(holds(fact, frame.iloc[i]) for fact in rule.facts) for i in range(N)]
        assert rule.n_true == sum(is_true)
        assert rule.rows == tuple(i for i in range(N) if is_true[i] and decisions[i] == rule.decision)
        assert rule.agreement >= 0.95
        assert rule.facts == tuple(term.literal.text for term in many[rule.row].terms)
    covered = {row for rule in rules.rules for row in rule.rows}
    assert (rules.n_covered, rules.not_covered) == (len(covered), tuple(sorted({*range(N)} - covered)))
    assert rules.is_reached
    assert rules.is_fewest


def test_no_smaller_set_of_candidates_covers_as_much(many):
    """All distinct facts of all rows, by their texts, in all combinations."""
    frame, rules = table(), many.rules(share=0.8)
    sets = set()
    for each in many:
        facts, decided = [term.literal.text for term in each.terms], each.certificate.decided
        true = [i for i in range(N) if facts and all(holds(fact, frame.iloc[i]) for fact in facts)]
        same = frozenset(i for i in true if many[i].certificate.decided == decided)
        if len(same) >= 0.95 * len(true):
            sets.add(same)
    smaller = itertools.combinations(sets, len(rules.rules) - 1)
    assert max(len(frozenset().union(*chosen)) for chosen in smaller) < 0.8 * N


def test_stability_is_that_of_the_certificate_with_shared_confidence(many):
    rules = many.rules(share=0.8)
    assert len(rules.rules) > 1
    for rule in rules.rules:
        certificate = many[rule.row].certificate
        found = certificate.stability
        each = estimate_share(round(found.value * found.n_samples), found.n_samples, 1 - 0.05 / len(rules.rules))
        assert rule.stability.value == certificate.held_share.value
        assert rule.stability.low == pytest.approx(1 - (1 - each.low) / certificate.held_reach)
    assert rules.confidence == pytest.approx(0.95)


def test_slices_know_their_space_and_pickles_need_it(many, explainer):
    assert many[:20].rules(share=0.3).n_rows == 20
    restored = pickle.loads(pickle.dumps(many))
    with pytest.raises(ParameterError, match=r"many\.rules\(space=explainer\.space\)"):
        restored.rules()
    assert restored.rules(space=explainer.space) == many.rules()
    with pytest.raises(ParameterError, match="not all of this space"):
        many.rules(space=al.Table(table(seed=1)))


def test_words_and_frames(many):
    rules = many.rules(share=0.8)
    assert f"{len(rules.rules)} rules cover {rules.n_covered} of {N} decisions" in str(rules)
    assert "Proven: no smaller set of the" in str(rules)
    frame = rules.to_frame()
    assert frame["covered"].tolist() == [len(rule.rows) for rule in rules.rules]
    few = many.rules(share=1.0, max_rules=1)
    assert not few.is_reached
    assert "Proven: no set of as many" in str(few) or "together cover" in str(few)


def test_numbers_and_other_spaces_are_refused():
    numbers = al.Explainer(lambda z: 0.5 * z[:, 0], al.Hypercube()).explain_many([[1, 1]])
    with pytest.raises(ParameterError, match="rules are about decisions"):
        numbers.rules()
    texts = al.Explainer(
        lambda t: np.array([0.5 + 0.4 * ("good" in each) for each in t]), al.Text(), threshold=0.6
    )
    with pytest.raises(ParameterError, match="Rules exist for tables"):
        texts.explain_many(["good food", "slow food"], n_samples=50, n_certify=50).rules()
    with pytest.raises(ParameterError, match="share is 2"):
        numbers.rules(share=2)
    with pytest.raises(ParameterError, match="No row has an explanation"):
        al.Explanations().rules(space=al.Hypercube())


def test_comparison_counts_shares_of_rows(many):
    first, second = many[:30], many[30:]
    found = first.compare(second)
    by_name = {(each.kind, each.name): each for each in found.differences}
    approved = by_name["decision", "approved"]
    shares = [np.mean([each.certificate.decided == "approved" for each in part]) for part in (first, second)]
    assert (approved.first.value, approved.second.value) == tuple(shares)
    assert approved.low <= approved.value <= approved.high
    assert {"income", "owner", "age"} == {name for kind, name in by_name if kind == "adds"}
    same = many.compare(many)
    assert not same.clear
    assert all(each.value == 0 for each in same.differences)
    assert "shares differ clearly" in str(same)
    assert len(same.to_frame()) == len(same.differences)


def test_all_limits_of_a_comparison_hold_together(many):
    """Groups drawn with replacement from one population: its differences are zero."""
    entries, rng = list(many), np.random.default_rng(0)
    wrong = 0
    for _ in range(60):
        groups = [[entries[i] for i in rng.integers(0, N, 40)] for _ in range(2)]
        wrong += bool(compare_groups(*groups, confidence=0.9).clear)
    assert wrong <= 6


def test_a_comparison_needs_rows(many):
    with pytest.raises(ParameterError, match=r"second group has no explanation.*explain_many\(rows\)"):
        many.compare(al.Explanations())


def test_a_share_is_named_as_it_was_asked_for_and_never_rounded_up(many):
    found = many.rules(share=0.504)
    assert "covers 50.4%" in found.proof or "50.4% needs more rules" in found.proof or not found.is_reached
    nearly = replace(found, n_rows=1000, n_covered=996)
    assert "996 of 1,000 decisions (99.6%)" in nearly.headline


def test_rules_of_a_rare_decision_are_candidates(many, monkeypatch):
    from anchorline.result import rules as module

    everything = many.rules(share=1.0)
    monkeypatch.setattr(module, "_MAX_CANDIDATES", 4)
    found = many.rules(share=1.0)
    assert everything.n_left_out == 0 < found.n_left_out
    assert {rule.decision for rule in found.rules} == {rule.decision for rule in everything.rules}
    assert f"which leave out {found.n_left_out:,} that cover less" in found.proof


def test_limits_of_sampling_that_stopped_by_looking_are_kept(explainer):
    looked = explainer.explain_many(table()[:12], k=3, n_samples="auto", max_queries=4000)
    found = looked.rules(share=0.5)
    each = [looked[rule.row].certificate for rule in found.rules]
    assert each
    for rule, certificate in zip(found.rules, each, strict=True):
        assert rule.stability.confidence == certificate.stability.confidence > 0.95
    assert found.confidence == pytest.approx(max(0.0, 1 - sum(1 - one.confidence for one in each)))


def test_rows_that_explain_several_outputs_are_compared_by_their_own(explainer):
    answers = approve(table()).argmax(axis=1)
    groups = [explainer.explain_many(table()[answers == answer], k=3, n_samples=300) for answer in (0, 1)]
    found = groups[0].compare(groups[1])
    assert len(found.outputs) == 2
    assert "Rows explain different outputs" in str(found)
    assert not any(" adds:" in line for line in str(found).splitlines())
