"""The sentences about trust: the facts help, cannot be distinguished from chance, or hold the output less."""

import dataclasses

import pytest

import anchorline as al
from anchorline.guarantees import exact_estimate
from anchorline.render.text import certificate_text, details_text, on_the_sample
from anchorline.render.trust import clipping_warning, over_neighbors, short_claim, verdict_reason
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
        **{"reach": 1.0} | changes,
    )


def number(held, free, **changes):
    """The same limits for a number that stays within 0.2 of its value."""
    return with_stability(held, free, NUMBER, **changes)


def test_three_cases_have_three_sentences():
    helps = with_stability((0.98, 0.97, 0.99), (0.60, 0.58, 0.62))
    assert over_neighbors(helps) == (
        "While these 4 facts hold, the output stays at or above 0 in 98.0% of neighbors (joint 95% interval 97.0 "
        "to 99.0%); over all neighbors, in 60.0% (58.0 to 62.0%). Holding them prevents 95% of the changes (at "
        "least 92%)."
    )
    unclear = with_stability((0.80, 0.78, 0.82), (0.79, 0.77, 0.81))
    assert over_neighbors(unclear).endswith(
        "in 79.0% (77.0 to 81.0%). The two shares cannot be distinguished: the facts may not matter."
    )
    harms = with_stability((0.697, 0.689, 0.705), (0.79, 0.782, 0.797))
    assert over_neighbors(harms).endswith(
        "in 79.0% (78.2 to 79.7%). The facts hold it less than chance does: the decision changes more often while "
        "they hold than over all neighbors."
    )
    assert harms.verdict is al.Verdict.UNRELIABLE
    worse = with_stability((0.90, 0.89, 0.91), (0.94, 0.93, 0.945))
    assert worse.verdict is al.Verdict.WEAK
    assert verdict_reason(worse) == (
        "The decision changes more often while these facts hold than over all neighbors."
    )


def test_a_robust_answer_does_not_depend_on_its_facts():
    better = with_stability((0.90, 0.89, 0.91), (0.99, 0.985, 0.995))
    assert better.verdict is al.Verdict.ROBUST
    assert verdict_reason(better) == (
        "The decision changes in only 1.0% of neighbors, even if no fact is held. While these facts hold, it "
        "changes more often, so they do not explain it."
    )
    never = with_stability((0.99, 0.98, 1.0), (1.0, 0.99, 1.0))
    assert verdict_reason(never) == "The decision changes in no neighbor drawn, even if no fact is held."


def test_a_number_stays_within_a_distance_that_the_sentence_names():
    helps = number((0.98, 0.97, 0.99), (0.60, 0.58, 0.62))
    assert "the output stays within 0.2 of its value in 98.0% of neighbors" in over_neighbors(helps)
    assert "prevents 95% of the changes by more than 0.2 (at least 92%)." in over_neighbors(helps)
    assert verdict_reason(helps) == "As tested, these facts explain the output to within 0.2."
    harms = number((0.697, 0.689, 0.705), (0.79, 0.782, 0.797))
    assert "the output changes by more than 0.2 more often while they hold" in over_neighbors(harms)
    robust = number((0.99, 0.98, 1.0), (0.97, 0.96, 0.98))
    assert verdict_reason(robust).startswith(
        "The output changes by more than 0.2 in only 3.0% of neighbors, even "
    )


def test_exactly_equal_figures_make_no_difference():
    same = exact_estimate(0.9, 64)
    certificate = dataclasses.replace(DECISION, stability=same, baseline_stability=same, reach=1.0)
    assert "Holding the facts makes no difference to the decision." in over_neighbors(certificate)


@pytest.mark.parametrize(
    ("held", "free", "words"),
    [
        (
            (0.99, 0.98, 1.0),
            (0.6, 0.58, 0.62),
            "trustworthy explanation. As tested, these facts explain the decision.",
        ),
        (
            (0.99, 0.98, 1.0),
            (0.97, 0.96, 0.98),
            "robust answer. The decision changes in only 3.0% of neighbors, even if no fact is held.",
        ),
        (
            (0.965, 0.96, 0.97),
            (0.92, 0.91, 0.93),
            "weak explanation. These facts hold the decision, but it stays nearly as often without.",
        ),
        (
            (0.90, 0.89, 0.91),
            (0.6, 0.58, 0.62),
            "weak explanation. While these facts hold, the decision changes less often, but it still does in "
            "10.0% of these neighbors; a trustworthy explanation allows 5%.",
        ),
        (
            (0.90, 0.89, 0.91),
            (0.9, 0.89, 0.91),
            "weak explanation. It was not shown that the decision stays more ",
        ),
        (
            (0.70, 0.69, 0.71),
            (0.6, 0.58, 0.62),
            "unreliable explanation. The decision changes in 30.0% of the neighbors in which these facts hold.",
        ),
        (
            (0.95, 0.94, 0.96),
            (0.6, 0.58, 0.62),
            "undecided between a trustworthy and a weak explanation. It is open whether the output stays at or "
            "above 0 in at least 95% of neighbors while these facts hold (interval: 94.0 to 96.0%). Type "
            "n_certify=2_400 to measure more neighbors.",
        ),
        (
            (0.736, 0.669, 0.803),
            (0.6, 0.58, 0.62),
            "undecided between a weak and an unreliable explanation. It is open whether the output stays at or "
            "above 0 in at least 80% of neighbors while these facts hold (interval: 66.9 to 80.3%). Type ",
        ),
        (
            (0.999, 0.998, 1.0),
            (0.95, 0.94, 0.96),
            "undecided between a robust answer and a trustworthy explanation. It is open whether the output stays "
            "at or above 0 in at least 95% of all neighbors (interval: 94.0 to 96.0%). Type n_certify",
        ),
        (
            (0.98, 0.97, 0.99),
            (0.9, 0.89, 0.91),
            "undecided between a trustworthy and a weak explanation. It is open whether holding these facts "
            "prevents at least 75% of the changes (interval: 66 to 91%). Type n_certify=2_400",
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
    assert verdict_reason(helps).startswith(
        "While this fact holds, the decision changes less often, but it still "
    )
    assert over_neighbors(helps).startswith("While this fact holds, ")


def test_a_robust_decision_is_praised_over_all_neighbors_and_not_for_its_facts():
    robust = with_stability((0.99, 0.98, 1.0), (0.972, 0.96, 0.98))
    assert short_claim(robust) == "Robust answer: the output stays at or above 0 in 97.2% of all neighbors"


def test_a_reader_can_compute_the_floor_of_what_is_prevented_from_the_limits_shown():
    shown = over_neighbors(with_stability((1.0, 0.9969, 1.0), (0.6279, 0.6004, 0.6551)))
    assert "(joint 95% interval 99.6 to 100%); over all neighbors, in 62.8% (60.0 to 65.6%)" in shown
    assert "prevents at least 98% of the changes" in shown  # 1 - 0.4 / 34.4; by the hidden digits, 99.1%


@pytest.mark.parametrize(
    ("held", "free"),
    [((1.0, 0.99976, 1.0), (0.9986, 0.998, 0.99915)), ((0.9723, 0.9651, 0.978), (0.963, 0.955, 0.9649))],
)
def test_shares_near_each_other_have_a_floor_that_is_not_negative(held, free):
    text = over_neighbors(with_stability(held, free))
    assert "prevents" in text
    assert "at least -" not in text


def test_rounding_turns_nothing_into_all_or_none():
    assert short_claim(with_stability((1.0, 0.985, 1.0), (0.6, 0.58, 0.62))).endswith(
        "the output stays at or above 0 in all neighbors drawn while the facts hold"
    )
    all_drawn = with_stability((1.0, 0.985, 1.0), (0.60, 0.58, 0.62))
    text = over_neighbors(all_drawn)
    assert "in all 300 neighbors drawn (joint 95% interval 98.5 to 100%)" in text
    assert text.endswith("Holding them prevents at least 96% of the changes.")
    nearly = with_stability((0.99996, 0.9981, 0.99999), (0.60, 0.58, 0.62))
    assert "in more than 99.9% of neighbors (joint 95% interval 99.8 to 100%)" in over_neighbors(nearly)
    assert "prevents more than 99% of the changes (at least 99%)" in over_neighbors(nearly)
    third = with_stability((0.867, 0.86, 0.87), (0.80, 0.79, 0.81))
    assert "prevents 33% of the changes (at least 26%)" in over_neighbors(third)  # 33.5% and 26.3%


def test_draws_that_equal_the_case_are_not_neighbors():
    few = with_stability((0.98, 0.97, 0.99), (0.60, 0.58, 0.62), reach=0.8, event_probability=0.4)
    assert over_neighbors(few) == (
        "While these 4 facts hold, the output stays at or above 0 in 96.0% of neighbors (joint 95% interval 94.0 "
        "to 98.0%); over all neighbors, in 50.0% (47.5 to 52.5%). Holding them prevents 92% of the changes (at "
        "least 87%)."
    )
    assert "20% of them equal the case, and 50% of those in which the condition holds" in details_text(few)
    drawn = with_stability((1.0, 0.985, 1.0), (0.60, 0.58, 0.62), reach=0.8, event_probability=0.4)
    assert "in all of about 150 neighbors drawn (joint 95% interval 97.0 to 100%)" in over_neighbors(drawn)


def test_shares_over_all_possible_neighbors_are_weighted_and_counted():
    e = smooth_explainer(threshold=0.0).explain(INSTANCE, k=4).certificate
    shares = {"stability": exact_estimate(0.9, 16), "baseline_stability": exact_estimate(0.6, 64)}
    exact = dataclasses.replace(e, **shares, reach=0.8, event_probability=0.4)
    assert over_neighbors(exact) == (
        "While these 4 facts hold, the output stays at or above 0 in 80.0% of the 15 possible neighbors, each "
        "weighted by its probability; over all 63 possible neighbors, in 50.0%. Holding them prevents 60% of the "
        "changes."
    )
    every = dataclasses.replace(exact, stability=exact_estimate(1.0, 2), event_probability=0.4)
    assert "stays at or above 0 in the only possible neighbor; over all 63 " in over_neighbors(every)
    all_held = dataclasses.replace(exact, stability=exact_estimate(1.0, 16))
    assert "in all 15 possible neighbors; over all 63 possible neighbors, each weighted by its " in over_neighbors(
        all_held
    )


def test_facts_that_leave_nothing_to_change_were_hardly_tested():
    alone = with_stability((1.0, 0.985, 1.0), (0.60, 0.58, 0.62), reach=0.8, event_probability=0.2)
    assert over_neighbors(alone).startswith(
        "While these 4 facts hold, nothing else can change, so the output stays at or above 0; over all "
        "neighbors, in 50.0% (joint 95% interval 47.5 to 52.5%)."
    )
    assert verdict_reason(alone) == "While these facts hold, nothing else can change, so nothing had to be tested."
    none = with_stability((1.0, 1.0, 1.0), (1.0, 0.985, 1.0), reach=0.01, event_probability=1.0)
    assert verdict_reason(none).startswith(
        "99.0% of the draws equal this case, so that the facts were hardly tested."
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
    assert over_neighbors(old) == "How far this explanation can be trusted was not measured."


def test_classes_and_labels_are_quoted():
    named = dataclasses.replace(DECISION, decision="own class", decided="no loan")
    assert '"no loan" stays the predicted class in' in over_neighbors(named)
    label = dataclasses.replace(DECISION, decision="label", decided="no")
    assert 'the label stays "no" in' in over_neighbors(label)
    assert "the label stays -1 in" in over_neighbors(dataclasses.replace(label, decided="-1"))


def test_joint_intervals_are_called_joint_and_single_ones_are_explained():
    assert DECISION.stability.confidence == pytest.approx(0.99)
    assert "(joint 95% interval " in over_neighbors(DECISION)
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
