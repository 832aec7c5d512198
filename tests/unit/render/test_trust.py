"""The sentences about trust: the facts help, cannot be distinguished from chance, or hold the output less."""

import dataclasses

import pytest

import anchorline as al
from anchorline.guarantees import exact_estimate
from anchorline.render.text import certificate_text, details_text, on_the_sample
from anchorline.render.trust import clipping_warning, in_the_population, short_claim, verdict_reason
from helpers.explanations import INSTANCE, smooth_explainer

SETTINGS = {"k": 4, "sampling": "draw", "n_samples": 600, "n_certify": 600}
DECISION = smooth_explainer(threshold=0.0).explain(INSTANCE, **SETTINGS).certificate
NUMBER = smooth_explainer().explain(INSTANCE, **SETTINGS).certificate


def limits(like, value, low, high):
    return dataclasses.replace(like, value=value, low=low, high=high)


def with_stability(held, free, certificate=DECISION, **changes):
    return dataclasses.replace(
        certificate,
        stability=limits(certificate.stability, *held),
        baseline_stability=limits(certificate.baseline_stability, *free),
        **changes,
    )


def number(held, free, **changes):
    """The same limits for a number that stays within 0.2 of its value."""
    return with_stability(held, free, NUMBER, **changes)


def test_three_cases_have_three_sentences():
    helps = with_stability((0.98, 0.97, 0.99), (0.60, 0.58, 0.62))
    assert in_the_population(helps) == (
        "While these 4 facts hold, the output stays at or above 0 in 98.0% of neighbors (joint 95% interval 97.0 "
        "to 99.0%); over all neighbors, in 60.0% (58.0 to 62.0%). Holding them prevents 95% of the changes (at "
        "least 92%)."
    )
    unclear = with_stability((0.80, 0.78, 0.82), (0.79, 0.77, 0.81))
    assert in_the_population(unclear).endswith(
        "in 79.0% (77.0 to 81.0%). The two shares cannot be distinguished: the facts may not matter."
    )
    harms = with_stability((0.697, 0.689, 0.705), (0.79, 0.782, 0.797))
    assert in_the_population(harms).endswith(
        "in 79.0% (78.2 to 79.7%). The facts hold it less than chance does: the decision changes more often while "
        "they hold than over all neighbors."
    )
    assert harms.verdict is al.Verdict.UNRELIABLE
    better = with_stability((0.97, 0.96, 0.98), (0.99, 0.985, 0.995))
    assert better.verdict is al.Verdict.WEAK
    assert verdict_reason(better) == (
        "The decision changes more often while these facts hold than over all neighbors."
    )


def test_a_number_stays_within_a_distance_that_the_sentence_names():
    helps = number((0.98, 0.97, 0.99), (0.60, 0.58, 0.62))
    assert "the output stays within 0.2 of its value in 98.0% of neighbors" in in_the_population(helps)
    assert "prevents 95% of the changes by more than 0.2 (at least 92%)." in in_the_population(helps)
    assert verdict_reason(helps) == "These facts explain the output to within 0.2."
    harms = number((0.697, 0.689, 0.705), (0.79, 0.782, 0.797))
    assert "the output changes by more than 0.2 more often while they hold" in in_the_population(harms)
    robust = number((0.99, 0.98, 1.0), (0.97, 0.96, 0.98))
    assert verdict_reason(robust).startswith("Hardly any neighbor changes the output by more than 0.2, even if no")


def test_exactly_equal_figures_make_no_difference():
    same = exact_estimate(0.9, 64)
    certificate = dataclasses.replace(DECISION, stability=same, baseline_stability=same)
    assert in_the_population(certificate).endswith("Holding the facts makes no difference to the decision.")


@pytest.mark.parametrize(
    ("held", "free", "words"),
    [
        ((0.99, 0.98, 1.0), (0.6, 0.58, 0.62), "trustworthy explanation. These facts explain the decision."),
        (
            (0.99, 0.98, 1.0),
            (0.97, 0.96, 0.98),
            "robust answer. Hardly any neighbor changes the decision, even if",
        ),
        (
            (0.965, 0.96, 0.97),
            (0.92, 0.91, 0.93),
            "weak explanation. These facts hold the decision, but it stays nearly as often without.",
        ),
        (
            (0.90, 0.89, 0.91),
            (0.6, 0.58, 0.62),
            "weak explanation. These facts help, but other attributes also ma",
        ),
        (
            (0.90, 0.89, 0.91),
            (0.9, 0.89, 0.91),
            "weak explanation. It was not shown that the decision stays more ",
        ),
        (
            (0.70, 0.69, 0.71),
            (0.6, 0.58, 0.62),
            "unreliable explanation. The decision often changes although the ",
        ),
        (
            (0.95, 0.94, 0.96),
            (0.6, 0.58, 0.62),
            "undecided. It may be a trustworthy explanation or a weak explanation: it is open whether the output "
            "stays at or above 0 in at least 95.3% of neighbors while the facts hold (measured: 94.0 to 96.0%). "
            "Type n_certify=2_400 to measure more neighbors.",
        ),
        (
            (0.999, 0.998, 1.0),
            (0.95, 0.94, 0.96),
            "undecided. It may be a trustworthy explanation or a robust answer: it is open whether the output "
            "stays at or above 0 in at least 95.1% of all neighbors (measured: 94.0 to 96.0%). Type n_certify",
        ),
        (
            (0.98, 0.97, 0.99),
            (0.9, 0.89, 0.91),
            "undecided. It may be a trustworthy explanation or a weak explanation: it is open whether holding the "
            "facts prevents at least 75% of the changes (measured: 66 to 91%). Type n_certify=2_400",
        ),
    ],
)
def test_the_verdict_says_why(held, free, words):
    certificate = with_stability(held, free)
    assert f"Verdict: {words}" in certificate_text(certificate)
    assert short_claim(certificate).startswith(
        f"{words.split('.')[0].capitalize()}: the output stays at or above 0"
    )


def test_one_fact_is_one_fact():
    helps = with_stability((0.90, 0.89, 0.91), (0.6, 0.58, 0.62), n_facts=1)
    assert verdict_reason(helps) == "This fact helps, but other attributes also matter."
    assert in_the_population(helps).startswith("While this fact holds, ")


def test_a_robust_decision_is_praised_over_all_neighbors_and_not_for_its_facts():
    robust = with_stability((0.99, 0.98, 1.0), (0.972, 0.96, 0.98))
    assert short_claim(robust) == "Robust answer: the output stays at or above 0 in 97.2% of all neighbors"


def test_rounding_turns_nothing_into_all_or_none():
    all_drawn = with_stability((1.0, 0.985, 1.0), (0.60, 0.58, 0.62))
    text = in_the_population(all_drawn)
    assert "in all 300 neighbors drawn (joint 95% interval 98.5 to 100%)" in text
    assert text.endswith("Holding them prevents at least 96% of the changes.")
    nearly = with_stability((0.99996, 0.9981, 0.99999), (0.60, 0.58, 0.62))
    assert "in more than 99.9% of neighbors (joint 95% interval 99.8 to 100%)" in in_the_population(nearly)
    assert "prevents more than 99% of the changes (at least 99%)" in in_the_population(nearly)
    third = with_stability((0.867, 0.86, 0.87), (0.80, 0.79, 0.81))
    assert "prevents 33% of the changes (at least 26%)" in in_the_population(third)  # 33.5% and 26.3%


def test_neighbors_that_equal_the_case_are_counted():
    few = with_stability((0.98, 0.97, 0.99), (0.60, 0.58, 0.62), reach=0.8, event_probability=0.4)
    assert in_the_population(few).endswith(
        "20.0% of all neighbors equal this case, and 50.0% of those in which the facts hold."
    )
    alone = with_stability((1.0, 0.985, 1.0), (0.60, 0.58, 0.62), reach=0.8, event_probability=0.2)
    assert in_the_population(alone).startswith(
        "While these 4 facts hold, nothing else can change, so the output stays at or above 0; over all "
        "neighbors, in 60.0% (joint 95% interval 58.0 to 62.0%)."
    )
    assert verdict_reason(alone) == "These facts explain the decision, because nothing else can change."
    none = with_stability((1.0, 1.0, 1.0), (1.0, 0.985, 1.0), reach=0.01, event_probability=1.0)
    assert verdict_reason(none).startswith(
        "99.0% of neighbors equal this case, so that the facts were hardly tested."
    )


def test_clipped_outputs_do_not_leave_the_verdict_open():
    clipped = number((0.98, 0.97, 0.99), (0.60, 0.58, 0.62), n_clipped=7, n_clipped_inside=3)
    assert clipped.verdict is al.Verdict.TRUSTWORTHY
    assert clipping_warning(clipped).startswith(
        "7 of 1,201 outputs were beyond output_range and clipped: the sum "
    )


def test_a_release_that_did_not_measure_whether_numbers_stay_gets_no_verdict():
    old = dataclasses.replace(NUMBER, stability=None, baseline_stability=None, decision=None, same_within=None)
    assert old.verdict is al.Verdict.UNKNOWN
    assert in_the_population(old) == "How far this explanation can be trusted was not measured."


def test_classes_and_labels_are_quoted():
    named = dataclasses.replace(DECISION, decision="own class", decided="no loan")
    assert '"no loan" stays the predicted class in' in in_the_population(named)
    label = dataclasses.replace(DECISION, decision="label", decided="no")
    assert 'the label stays "no" in' in in_the_population(label)
    assert "the label stays -1 in" in in_the_population(dataclasses.replace(label, decided="-1"))


def test_joint_intervals_are_called_joint_and_single_ones_are_explained():
    assert DECISION.stability.confidence == pytest.approx(0.99)
    assert "(joint 95% interval " in in_the_population(DECISION)
    assert "(99% interval " in details_text(DECISION)
    assert "hold together with 95% confidence: these are the joint intervals." in details_text(DECISION)


def test_the_starting_level_is_announced_with_the_facts():
    assert "4-term explanation (3 facts and the starting level) on" in on_the_sample(
        dataclasses.replace(DECISION, n_terms=4, n_facts=3)
    )
    assert "2-term explanation (1 fact and the starting level) on" in on_the_sample(
        dataclasses.replace(DECISION, n_terms=2, n_facts=1)
    )
    assert "4-term explanation on" in on_the_sample(dataclasses.replace(DECISION, n_terms=4, n_facts=4))
    e = smooth_explainer().explain(INSTANCE, k=3, n_samples=100, n_certify=0)
    assert "facts" in repr(e)
