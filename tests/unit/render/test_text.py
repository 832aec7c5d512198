"""The sum in one line: its form, printed numbers that add up, and names that stay text."""

import dataclasses
import functools
import math
import re
from fractions import Fraction

import numpy as np
import pytest

import anchorline as al
from anchorline.render.summands import round_preserving_sum, summands
from anchorline.render.text import rule
from helpers.explanations import with_numbers


@functools.cache
def some_explanation():
    return al.explain(lambda z: 0.5 * z[:, 0] + 0.25 * z[:, 1], [1, 1], k=3, n_certify=0)


def explanation_of(contributions, intercept=0.0, texts=None, output="f(x)", **changes):
    """Return an explanation with these numbers; the prediction is their sum unless given."""
    return with_numbers(some_explanation(), contributions, intercept, texts, output=output, **changes)


NUMBER = r"[\d.]+(?:e[+-]\d+)?"


def parse(text):
    """Return the printed numbers, their labels and the printed total; fail if the line has another form."""
    body, name, total = re.fullmatch(rf"(.+) -> (.+) = (-?{NUMBER})", text).groups()
    parts = re.split(r" ([+-]) (?=[\d.])", body)
    signs = ["+", *parts[1::2]]
    numbers, labels = [], []
    for sign, part in zip(signs, parts[::2], strict=True):
        number, label = re.fullmatch(rf"(-?{NUMBER})(?: \[(.*)\])?", part).groups()
        numbers.append(Fraction(number) if sign == "+" else -Fraction(number))
        labels.append(label)
    return numbers, labels, Fraction(total), name


def unit_of(text):
    """Return the value of one unit in the last printed place."""
    mantissa, _, power = text.rpartition(" ")[2].partition("e")
    return Fraction(10) ** (int(power or 0) - len(mantissa.partition(".")[2]))


# --- the paper's form --------------------------------------------------------------------------------


def test_the_papers_rule():
    e = explanation_of([-0.03, 0.11], texts=["DTI <= 30%", "Credit History < 10 yrs"], output="Rate")
    line = rule(e)
    numbers, labels, total, name = parse(line)
    assert labels == ["Credit History < 10 yrs", "DTI <= 30%"]  # largest first
    assert numbers == [Fraction("0.11"), Fraction("-0.03")]
    assert total == Fraction("0.08")
    assert name == "Rate"
    assert re.fullmatch(r"0\.110* \[Credit History < 10 yrs\] - 0\.030* \[DTI <= 30%\] -> Rate = 0\.080*", line)


def test_a_leading_minus_and_the_intercept_last():
    line = rule(explanation_of([-0.5, 0.0, 0.25], intercept=-0.125))
    assert parse(line)[:3] == (
        [Fraction("-0.5"), Fraction("0.25"), Fraction("-0.125")],
        ["l0", "l2", None],
        Fraction("-0.375"),
    )
    assert line.startswith("-0.5")
    assert " + 0.25" in line
    assert " - 0.125" in line


def test_one_term():
    assert parse(rule(explanation_of([0.0], intercept=0.5)))[:3] == ([Fraction("0.5")], [None], Fraction("0.5"))
    assert parse(rule(explanation_of([-0.5])))[:3] == ([Fraction("-0.5")], ["l0"], Fraction("-0.5"))


@pytest.mark.parametrize("k", [1, 2])
def test_one_term_end_to_end(k):
    e = al.explain(lambda z: np.full(len(z), 0.25), [1, -1], k=k, n_certify=0)
    assert parse(rule(e))[:3] == ([Fraction("0.25")], [None], Fraction("0.25"))


def test_nothing_at_all():
    assert rule(explanation_of([0.0, 0.0])) == "0 -> f(x) = 0"


def test_a_prediction_that_is_zero_but_for_rounding():
    assert parse(rule(explanation_of([0.0], prediction=1e-13)))[2] == 0  # an empty sum adds up to zero


@pytest.mark.parametrize("factor", [1, 1000, 1e6, 1e-3, 1e-6, 1e-9])
def test_other_units(factor):
    numbers, _, total, _ = parse(rule(explanation_of([-0.5 * factor, 0.25 * factor], intercept=-0.125 * factor)))
    assert [float(number) for number in numbers] == pytest.approx([-0.5 * factor, 0.25 * factor, -0.125 * factor])
    assert float(total) == pytest.approx(-0.375 * factor)


# --- printed numbers add up --------------------------------------------------------------------------


def check_adds_up(e):
    line = rule(e)
    numbers, labels, total, _ = parse(line)
    unit = unit_of(line)
    assert sum(numbers) == total, line
    values = [term.contribution for term in e.terms] + ([e.intercept] if e.intercept else [])
    assert len(values) == len(numbers)
    assert labels[: len(e.terms)] == [term.literal.text for term in e.terms]
    largest = max(map(abs, [*values, e.prediction]))
    unit = min(
        unit, Fraction(10) ** max(0, math.floor(math.log10(largest)) - 1)
    )  # large numbers may be printed as 1e+15
    for number, true in zip([*numbers, total], [*values, e.prediction], strict=True):
        assert abs(number - Fraction(true)) <= unit * Fraction("1.000001"), line
    for part in (*summands(e).parts, summands(e).total):
        assert part.number.startswith("-") is (part.value < 0), line
        assert len(part.number) <= 14, line
    assert "\n" not in line


@pytest.mark.parametrize("start", range(0, 3000, 500))
def test_random_rules_add_up_digit_for_digit(start):
    for seed in range(start, start + 500):
        rng = np.random.default_rng([31, seed])
        d = int(rng.integers(1, 9))
        scale = 10.0 ** rng.integers(-12, 13)
        contributions = rng.normal(size=d) * scale * 10.0 ** rng.uniform(-4, 0, d)
        contributions *= rng.random(d) < 0.8
        intercept = float(rng.choice([0.0, rng.normal() * scale]))
        if rng.random() < 0.3:  # a prediction that is a round number
            intercept = round(contributions.sum() / scale, 2) * scale - contributions.sum()
        e = explanation_of(contributions, intercept)
        if contributions.any() or intercept:
            check_adds_up(e)


def test_real_explanations_add_up():
    for seed in range(60):
        rng = np.random.default_rng([32, seed])
        d, (low, high) = int(rng.integers(2, 9)), [(-1, 1), (0, 1), (1e5, 3e6), (-4e-5, 0)][seed % 4]
        slopes = rng.normal(size=d) / d

        def model(z, slopes=slopes, low=low, high=high):
            return low + (np.tanh(z @ slopes + 0.3 * z[:, 0] * z[:, 1]) + 1) / 2 * (high - low)

        x = rng.choice([-1, 1], d)
        check_adds_up(al.explain(model, x, k=int(rng.integers(1, 6)), output_range=(low, high), n_certify=0))


@pytest.mark.parametrize(
    "contributions",
    [
        [1 / 3, 1 / 3, 1 / 3],
        [0.005, 0.005, 0.005, 0.985],
        [0.9999, 0.0001],
        [-0.9999, 0.9999],
        [1e-9, -1.0],
        [999.5, 0.5],
        [0.1] * 10,
        [123456.0, -0.001],
        [-1 / 3, -1 / 3, 2 / 3],
        [1e15, 0.5],
    ],
)
def test_awkward_roundings(contributions):
    check_adds_up(explanation_of(contributions))


@pytest.mark.parametrize(
    ("numbers", "printed"),
    [
        (
            [0.157, 0.080, 0.022, 2009.741],
            "0.16 0.08 0.02 2009.74 = 2010.00",
        ),  # small contributions on top of a large intercept
        ([3.2e-7, -2.0e-7, 1000.0], "0.00000032 -0.00000020 1000.00000000 = 1000.00000012"),
        ([0.5, -0.0001], "0.5000 -0.0001 = 0.4999"),  # no term is printed as zero
        (
            [400.0, -0.4, -0.4, -0.4],
            "400.0 -0.4 -0.4 -0.4 = 398.8",
        ),  # equal numbers stay equal with one more decimal
        ([-0.4, -0.4, -0.4, 2010.0], "-0.4 -0.4 -0.4 2010.0 = 2008.8"),
        ([0.1255, 0.1255], "0.1255 0.1255 = 0.2510"),
        ([-1.373842262421472511e18, 3.21e17], "-1.37e+18 0.32e+18 = -1.05e+18"),
        ([1.37e-14, -2e-15], "1.37e-14 -0.20e-14 = 1.17e-14"),
        ([187_547_123.0, -12.0], "187547123 -12 = 187547111"),
        ([1e-13, 7.25], "0.00 7.25 = 7.25"),  # digits beyond the twelfth are noise
    ],
)
def test_digits_are_enough_to_see_the_reasons(numbers, printed):
    parts, total = round_preserving_sum(numbers, sum(numbers))
    assert f"{' '.join(parts)} = {total}" == printed


def test_a_small_reason_is_printed_with_as_many_decimals_as_it_needs():
    assert rule(explanation_of([0.5, -0.0001])) == "0.5000 [l0] - 0.0001 [l1] -> f(x) = 0.4999"


@pytest.mark.parametrize("seed", range(200))
def test_equal_numbers_are_printed_equal_where_something_else_can_give(seed):
    rng = np.random.default_rng([33, seed])
    equal = [float(rng.normal())] * int(rng.integers(2, 5))
    numbers = sorted([*equal, *(0.7 * rng.normal(size=5))], key=lambda number: -abs(number))
    printed, total = round_preserving_sum(numbers, sum(numbers))
    assert len({text for text, number in zip(printed, numbers, strict=True) if number == equal[0]}) == 1
    assert sum(map(Fraction, printed)) == Fraction(total)


def test_numbers_beyond_two_to_the_53():
    numbers, _, total, _ = parse(rule(explanation_of([2.0**53, 1.0, 1.0, 1.0])))
    assert sum(numbers) == total


@pytest.mark.parametrize("size", [1e100, 1e300])
def test_huge_numbers(size):
    numbers, _, total, _ = parse(rule(explanation_of([size, -size / 2])))
    assert sum(numbers) == total
    assert float(total) == pytest.approx(size / 2, rel=1e-2)


@pytest.mark.parametrize(
    "size",
    [
        1e-100,
        1e-300,
        1e-310,
        5e-324,
    ],
)
def test_tiny_numbers(size):
    numbers, _, total, _ = parse(rule(explanation_of([size])))
    assert numbers == [total]
    assert float(total) == pytest.approx(size, rel=1e-2, abs=5e-324)


# --- text stays text ---------------------------------------------------------------------------------

HOSTILE = [
    "\x1b[2J",
    "a\nb",
    "\r\n",
    "\x00",
    "\u202egnp.exe",
    "\u2028",
    "\x07bell",
    "tab\there",
    "\x9b31m",
    "\ud800",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_control_characters_are_shown_not_sent(text):
    line = rule(explanation_of([0.5], texts=[text], output=text))
    assert line.isprintable()
    assert line.count(text.encode("unicode_escape").decode()) >= 1 or text.isprintable()
    whole = str(explanation_of([0.5], texts=[text], output=text))
    assert all(part.isprintable() for part in whole.split("\n"))
    assert len(whole.split("\n")) == len(str(explanation_of([0.5])).split("\n"))


@pytest.mark.parametrize("text", HOSTILE)
def test_repr_is_printable_too(text):
    is_printable = repr(explanation_of([0.5], output=text)).isprintable()
    assert is_printable  # assert a bool, because a report that quotes a lone surrogate kills a pytest-xdist worker


@pytest.mark.parametrize("text", ["Größe ≥ 3", "年収 >= 65k", "🙂", "a [b] c", "x -> y = 3", "%s {0} {name}", ""])
def test_other_text_is_shown_as_it_is(text):
    assert rule(explanation_of([0.5], texts=[text])).startswith(f"0.5 [{text}]") or f" [{text}] -> " in rule(
        explanation_of([0.5], texts=[text])
    )


def test_signs_inside_a_literal_are_left_alone():
    assert "[a + -1 <= b]" in rule(explanation_of([0.5, -0.25], texts=["a + -1 <= b", "c"]))


# --- the certificate ---------------------------------------------------------------------------------


def hard_model(z):
    return np.tanh(z[:, :12] @ np.linspace(-0.5, 0.6, 12) + 0.4 * z[:, 0] * z[:, 1])


def test_only_what_is_proven_is_called_proven():
    x = [1] * 12 + [-1] * 8
    proven = al.explain(hard_model, x, n_samples=500, n_certify=0)
    stopped = al.explain(hard_model, x, n_samples=500, n_certify=0, node_limit=0)
    guessed = al.explain(hard_model, x, n_samples=500, n_certify=0, solver="iht")
    assert [e.certificate.status.name for e in (proven, stopped, guessed)] == ["OPTIMAL", "LIMIT", "HEURISTIC"]
    assert "proven" in str(proven).lower()
    for e in (stopped, guessed):
        assert "proven" not in str(e).lower()
        assert "limit" in str(stopped).lower()
        assert str(e).startswith(rule(e))


def test_scores_of_classes_are_not_called_probabilities():
    def scores(z):
        return np.column_stack([z[:, 0], 2.24 * z[:, 1], z[:, 0] - 3])

    explainer = al.Explainer(scores, al.Hypercube(["a", "b"]), classes=["0", "1", "2"], output_range=(-4, 4))
    e = explainer.explain([1, 1], k=2)
    assert rule(e).endswith("-> score of class 1 = 2.24")
    assert "probable" not in str(e) + e.as_rule()
    assert e.as_rule().startswith('If b = +1, then "1" stays the predicted class')


def test_a_total_of_nothing_has_no_sign():
    def balanced(z):
        return -(0.1 * z[:, 0] + 0.2 * z[:, 1] - 0.3 * z[:, 2])

    e = al.Explainer(balanced, al.Hypercube(["a", "b", "c"])).explain([1, 1, 1], k=3)
    assert str(e).splitlines()[0].endswith("-> f(x) = 0.0")


def test_claims_with_a_failure_probability_of_their_own_say_so():
    """The theorem fails with the search sample, and the separation with the sample that chose."""

    def model(z):
        return 0.5 * z[:, 0] + 0.3 * z[:, 1]

    e = al.explain(model, [1] * 12, k=2, n_samples="auto")
    assert e.certificate.stopped_because.startswith("best support separated from the runner-up")
    assert "The separation holds with 95% confidence by itself, not jointly." in str(e)
    assert "The separation holds with 95% confidence by itself" in e.to_html()
    assert "with 95% confidence by itself, not jointly" in e.certificate.details()
    useful = dataclasses.replace(e, certificate=dataclasses.replace(e.certificate, theorem_epsilon=0.1))
    assert "with 95% confidence by itself, not jointly" in useful.to_html()
    assert "by itself" not in str(al.explain(model, [1] * 12, k=2, n_samples=500))
