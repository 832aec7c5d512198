"""The sentences about trust: the facts help, cannot be distinguished from chance, or hold the output less."""

import dataclasses

import numpy as np
import pytest

import anchorline as al
from anchorline.guarantees import exact_estimate
from anchorline.render.text import certificate_text, details_text, on_the_sample
from anchorline.render.trust import in_the_population, short_claim, verdict_reason
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


def with_change(held, free, **changes):
    errors = {"relevance_error": held, "baseline_error": free}
    roots = {"typical_change": held, "baseline_change": free}
    return dataclasses.replace(
        NUMBER,
        **{name: limits(getattr(NUMBER, name), *values) for name, values in errors.items()},
        **{name: limits(getattr(NUMBER, name), *(2 * np.sqrt(values))) for name, values in roots.items()},
        **changes,
    )


def test_three_cases_have_three_sentences():
    helps = with_stability((0.98, 0.97, 0.99), (0.60, 0.58, 0.62))
    assert in_the_population(helps).endswith("in 60.0%. Holding them prevents 95% of the changes (at least 92%).")
    unclear = with_stability((0.80, 0.78, 0.82), (0.79, 0.77, 0.81))
    assert in_the_population(unclear).endswith(
        "in 79.0%. The two cannot be distinguished: the facts may not matter."
    )
    harms = with_stability((0.697, 0.689, 0.705), (0.79, 0.782, 0.797))
    assert in_the_population(harms).endswith(
        "in 79.0%. The facts hold it less than chance does: the decision changes more often while they hold than "
        "without them."
    )
    assert harms.verdict is al.Verdict.UNRELIABLE
    better = with_stability((0.97, 0.96, 0.98), (0.99, 0.985, 0.995))
    assert better.verdict is al.Verdict.WEAK
    assert verdict_reason(better) == "These facts hold the decision less than chance does."


def test_three_cases_of_numbers_have_three_sentences():
    helps = with_change((0.0004, 0.0001, 0.0009), (0.04, 0.036, 0.045))
    assert in_the_population(helps).endswith("Holding them reduces the typical change by 90% (at least 84%).")
    assert verdict_reason(helps) == "These facts explain the output."
    unclear = with_change((0.03, 0.02, 0.04), (0.04, 0.036, 0.045))
    assert in_the_population(unclear).endswith("The two cannot be distinguished: the facts may not matter.")
    harms = with_change((0.05, 0.046, 0.055), (0.04, 0.036, 0.045))
    assert "the output moves further while they hold than without them" in in_the_population(harms)


def test_exactly_equal_figures_make_no_difference():
    same = exact_estimate(0.9, 64)
    certificate = dataclasses.replace(DECISION, stability=same, baseline_stability=same)
    assert in_the_population(certificate).endswith("Holding the facts makes no difference to the decision.")


@pytest.mark.parametrize(
    ("held", "free", "words"),
    [
        ((0.99, 0.98, 1.0), (0.6, 0.58, 0.62), "trustworthy. These facts explain the decision."),
        ((0.99, 0.98, 1.0), (0.97, 0.96, 0.98), "robust. Hardly anything within reach changes the decision"),
        (
            (0.965, 0.96, 0.97),
            (0.92, 0.91, 0.93),
            "weak. These facts hold the decision, but it stays nearly as often",
        ),
        ((0.90, 0.89, 0.91), (0.6, 0.58, 0.62), "weak. These facts help, but other attributes also decide the"),
        ((0.90, 0.89, 0.91), (0.9, 0.89, 0.91), "weak. These facts do not explain the decision."),
        ((0.70, 0.69, 0.71), (0.6, 0.58, 0.62), "unreliable. The decision often changes although the facts hold."),
        ((0.95, 0.94, 0.96), (0.6, 0.58, 0.62), "undecided. Too few neighbors were measured to say; raise n_cert"),
    ],
)
def test_the_verdict_says_why(held, free, words):
    certificate = with_stability(held, free)
    assert f"Verdict: {words}" in certificate_text(certificate)
    assert short_claim(certificate).startswith(words.split(".")[0].capitalize())


def test_a_robust_decision_is_praised_over_all_neighbors_and_not_for_its_facts():
    robust = with_stability((0.99, 0.98, 1.0), (0.972, 0.96, 0.98))
    assert short_claim(robust) == "Robust: the decision stays in 97.2% of neighbors over all neighbors"


def test_clipped_outputs_leave_the_verdict_open():
    clipped = with_change((0.0004, 0.0001, 0.0009), (0.04, 0.036, 0.045), n_clipped=7, n_clipped_inside=3)
    assert clipped.verdict is al.Verdict.UNDECIDED
    assert "Outputs beyond the known range were clipped" in verdict_reason(clipped)
    assert in_the_population(clipped).endswith("Clipped outputs leave open whether the facts help.")
    outside = dataclasses.replace(clipped, n_clipped_inside=0)
    assert outside.verdict is al.Verdict.TRUSTWORTHY


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
