"""Rules name what speaks for the answer and what speaks against it."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import anchorline as al
from anchorline.render import html
from helpers.explanations import with_numbers

NAMES = list("abcdefgh")
ONES = [1] * 8


def good(z):
    """A probability that ``a`` raises and ``b``, ``c`` and ``d`` lower."""
    return 1 / (1 + np.exp(-(2.0 * z[:, 0] - 0.5 * z[:, 1] - 0.4 * z[:, 2] - 0.3 * z[:, 3])))


def both(z):
    return np.column_stack([1 - good(z), good(z)])


def label(z):
    return np.where(z[:, 0] + 0.5 * z[:, 1] - 0.7 * z[:, 2] - 0.4 * z[:, 3] > 0, "yes", "no")


def rule_of(model, row=ONES, k=5, **options):
    return al.Explainer(model, al.Hypercube(NAMES), **options).explain(row, k=k).as_rule()


def test_facts_that_count_against_a_class_are_named_as_such():
    text = rule_of(both, classes=["bad", "good"])
    assert text.startswith(
        'a = +1 speaks for "good"; b = +1, c = +1 and d = +1 speak against it. If all 4 hold, then "good" stays '
        "the predicted class"
    )


def test_facts_that_all_speak_for_the_class_are_the_condition():
    text = rule_of(both, [1, -1, -1, -1, 1, 1, 1, 1], classes=["bad", "good"])
    assert text.startswith('If a = +1, b = -1, c = -1 and d = -1, then "good" stays the predicted class')


def test_facts_speak_for_a_label():
    text = rule_of(label, output="vote")
    assert text.startswith(
        'a = +1 and b = +1 speak for vote = "yes"; d = +1 and c = +1 speak against it. If all 4 hold, then the '
        'predicted vote stays "yes" in all 15 possible neighbors.'
    )


@pytest.mark.parametrize(
    ("row", "sides"),
    [
        (ONES, "a = +1 speaks for score at or above 0.6; b = +1, c = +1 and d = +1 speak against it."),
        (
            [-1, -1, 1, 1, 1, 1, 1, 1],
            "a = -1, c = +1 and d = +1 speak for score below 0.6; b = -1 speaks against it.",
        ),
    ],
)
def test_facts_speak_for_the_side_of_a_threshold(row, sides):
    text = rule_of(good, row, output="score", threshold=0.6, output_range=(0, 1))
    side = sides.partition("speaks for score ")[2] or sides.partition("speak for score ")[2]
    assert text.startswith(
        f"{sides} If all 4 hold, then the predicted score stays {side.partition(';')[0]} in all 15 possible "
        "neighbors."
    )


def test_facts_raise_and_lower_a_number():
    text = rule_of(lambda z: 1000 * good(z), k=4, output="price", output_range=(0, 1000))
    assert text.startswith(
        "a = +1 raises the predicted price; b = +1 and c = +1 lower it. If all 3 hold, then the predicted price "
        "stays within 100 of 690 in "
    )


def test_a_class_that_is_not_predicted_is_raised_and_lowered():
    """The decision is another class's, so no fact speaks for it."""
    text = rule_of(both, [-1, 1, 1, -1, 1, 1, 1, 1], classes=["bad", "good"], output="good")
    assert text.startswith(
        'The model predicts "bad"; this explains P(good), the output of another class. d = -1 raises P(good); '
        'a = -1, b = +1 and c = +1 lower it. If all 4 hold, then "bad" stays the predicted class'
    )


def test_facts_that_all_raise_another_class_are_not_taken_for_reasons_of_the_predicted_one():
    text = rule_of(both, [-1, -1, -1, -1, 1, 1, 1, 1], classes=["bad", "good"], output="good", k=2)
    assert "of another class. a = -1 lowers P(good). If it holds, then " in text


def test_an_empty_rule_says_what_is_measured():
    assert rule_of(both, classes=["bad", "good"], k=1) == (
        'Over all 255 possible neighbors, each weighted by its probability, "good" stays the predicted class in '
        "70.7%."
    )
    always = rule_of(lambda z: 0.3 + 0 * z[:, 0], k=1, output="rate")
    assert always == "Over all 255 possible neighbors, the predicted rate stays within 0.2 of 0.3 in all of them."
    e = al.Explainer(both, al.Hypercube(NAMES), classes=["bad", "good"]).explain(ONES, k=1, n_certify=0)
    assert e.as_rule() == 'No fact is held, and how often "good" stays the predicted class was not measured.'


def test_a_rule_that_leaves_nothing_to_change_says_so():
    text = al.explain(lambda z: z[:, 0] / 2, [1, -1], k=3, names=["paid", "late"], output="score", keep_noise=True)
    assert (
        text.as_rule()
        == "If paid = +1, then the predicted score stays within 0.2 of 0.5 in the only possible neighbor."
    )
    alone = al.explain(lambda z: z[:, 0] / 2, [1], k=2, names=["paid"], output="score")
    assert (
        alone.as_rule()
        == "If paid = +1, then the predicted score stays within 0.2 of 0.5, because nothing else can change."
    )


def test_a_rule_whose_facts_all_speak_against_it_says_so():
    e = al.Explainer(both, al.Hypercube(NAMES), classes=["bad", "good"]).explain(ONES)
    text = with_numbers(e, [-0.2, -0.1], intercept=1.0).as_rule()
    assert text.startswith('l0 and l1 speak against "good". If ')


def test_the_page_escapes_and_highlights_the_facts_of_both_sides():
    e = al.Explainer(both, al.Hypercube(["<i>", *NAMES[1:]]), classes=["bad", "<b>"]).explain(ONES)
    page = html.page(e)
    assert 'speaks for "<bdi>&lt;b&gt;</bdi>"; ' in page
    assert page.count('<b class="al-fact">') == 4
    assert "<i>" not in page.split("<main")[1]


def test_values_that_stay_are_named():
    import pandas as pd

    frame = pd.DataFrame({"age": np.arange(60.0) + 0.5, "debt": np.arange(60.0)[::-1] % 17})
    model = lambda rows: np.asarray(rows["age"]) - np.asarray(rows["debt"])  # noqa: E731
    text = al.Explainer(model, al.Table(frame), output="net").explain(45, k=3).as_rule()
    assert " net; " in text
    assert "lowers it. If age stays 45.5 and debt stays 14, then the predicted net stays" in text


@pytest.mark.parametrize(
    ("chosen", "rule"),
    [
        (["x >= 20"], "x stays 25 or is at least 30"),
        (["x >= 20", "x < 40"], "x stays 25 or is at least 30 and below 40"),
        (["x >= 10", "x < 30"], "x stays 25 or is at least 10 and below 20"),
        (["x >= 10"], "x stays 25 or is another value of at least 10"),
        (["x < 40"], "x stays 25 or is another value below 40"),
        (["x >= 10", "x < 40"], "x stays 25 or is another value with 10 <= x < 40"),
        (["x >= 20", "x < 30"], "x stays 25"),
    ],
)
def test_thresholds_say_which_values_a_rule_allows(chosen, rule):
    frame = pd.DataFrame({"x": np.arange(200) % 50, "y": np.arange(200) % 7})
    table = al.Table(frame, literals="thresholds", cuts={"x": [10, 20, 30, 40]})

    def model(rows):
        x = rows["x"].to_numpy()
        return sum(0.2 * (x >= float(t[5:]) if ">=" in t else x < float(t[4:])) for t in chosen) + 0.0 * x

    e = al.Explainer(model, table, task="number").explain([25, 3], k=1 + len(chosen))
    assert f"If {rule}, then" in e.as_rule()


def test_facts_about_one_attribute_speak_with_one_voice():
    """A bound that speaks for an answer and an interval that takes a part of it back are one fact of a reader."""
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 70, 400), "debt": rng.integers(0, 99, 400)})
    e = al.Explainer(lambda rows: np.asarray(rows["age"]) / 70, al.Table(frame, literals="bounds"), output="rate")
    explained = e.explain(int((frame["age"] - 45).abs().argmin()), k=4, n_certify=200)
    interval, bound = [j for j, literal in enumerate(explained.literals) if literal.name == "age"][:2]
    assert " <= age < " in explained.literals[interval].text
    contributions = np.zeros(len(explained.literals))
    contributions[[interval, bound]] = -0.1, 0.3
    changed = dataclasses.replace(
        explained, contributions=contributions, intercept=float(explained.prediction - contributions.sum())
    )
    rule, other = changed.as_rule(), explained.literals[bound + 1]
    assert other.name == "age"
    assert f"{explained.literals[bound].text} raises" in rule  # opposite effects are not added up to one
    assert f"{other.text} lowers" in rule  # a value beyond it breaks the interval alone
    contributions[interval] = 0.1
    same = dataclasses.replace(
        explained, contributions=contributions, intercept=float(explained.prediction - contributions.sum())
    )
    assert "lower" not in same.as_rule()  # one fact, which points one way
    assert "The 2 facts about age add 0.4" in same.explain_itself()
    assert "The 2 facts about <bdi>age</bdi> add 0.4" in same.to_html()


def test_a_rule_whose_facts_do_not_help_says_how_often_the_output_stays_anyway():
    e = al.Explainer(both, al.Hypercube(NAMES), classes=["bad", "good"]).explain(ONES, k=5)
    same = dataclasses.replace(e.certificate, stability=e.certificate.baseline_stability)
    text = dataclasses.replace(e, certificate=same).as_rule()
    assert "; over all 255 possible neighbors, in " in text
    assert text.endswith("Holding the facts makes no difference to the predicted class.") or text.endswith(
        "more often while they hold than over all neighbors."
    )
    assert "over all" not in e.as_rule()
