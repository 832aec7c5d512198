r"""Measure an explanation on neighbors that its maker could not foresee, and compare with what it states.

A figure is stated with an interval :math:`[l, h]`, and the fresh neighbors give an interval that holds with
confidence 99.9% (all fresh intervals together, at every look). With a margin :math:`m` of 2.5 points, a figure is

- contradicted if the fresh interval and :math:`[l, h]` have no number in common;
- confirmed if the fresh interval lies in :math:`[l - m, h + m]`;
- undecided otherwise, and then the number of neighbors is doubled.

Therefore a true value beyond :math:`[l - m, h + m]` is confirmed with a probability of at most 0.1%, however many
neighbors were drawn. Shares are compared as they are, and errors by their roots, which are typical changes as
shares of the output range; a point is a hundredth of either.
"""

import math
from dataclasses import replace
from typing import Any

from anchorline.guarantees import Estimate
from anchorline.guarantees.rounding import rounded_down, rounded_up
from anchorline.result.assemble import measurements
from anchorline.result.certificate import Certificate, Verdict
from anchorline.result.explanation import Explanation
from anchorline.search.assess import Assessment, assess_until
from anchorline.search.case import Case

CONFIDENCE = 0.999
MARGIN = 0.025
FIRST_LOOK = 2_500  # neighbors in the event, and as many everywhere
LAST_LOOK = 20_000  # or as many as the maker measured with, if these are more
PRAISE = (Verdict.TRUSTWORTHY, Verdict.ROBUST)
SHARES = {"stability": "stability", "baseline_stability": "baseline stability"}
ERRORS = {
    "fidelity_error": "fidelity error",
    "relevance_error": "relevance error",
    "baseline_error": "baseline error",
}


def measure_afresh(claimed: Explanation, case: Case) -> Certificate:
    """Return the certificate with figures from fresh neighbors; figures over every neighbor there is are kept.

    Figures from leaves are measured, too: neighbors and answers then come from the model and not from its trees.
    Outputs beyond the output range count with their own values there, as they do here.
    """
    stated, case = claimed.certificate, case.stating(claimed.pairs)
    if stated.by_leaves and case.leaves is not None:
        case.predictor.largest = case.leaves.largest_output

    def is_decided(assessment: Assessment) -> bool:
        fresh = _renewed(stated, assessment, case)
        return bool(contradictions(stated, fresh)) or not doubts(stated, fresh)

    estimates = [each for each in _estimates(stated, ERRORS).values() if not _is_final(each)]
    sizes = [0 if estimate.exact else estimate.n_samples for estimate in estimates]
    if not sizes:
        return stated
    assessment, _ = assess_until(
        case,
        claimed.scaled,
        is_decided,
        max_samples=2 * max(LAST_LOOK, *sizes),
        first_look=FIRST_LOOK,
        stream="verify",
        confidence=CONFIDENCE,
    )
    return _renewed(stated, assessment, case)


def contradictions(stated: Certificate, fresh: Certificate) -> list[str]:
    """Return one sentence per figure whose two intervals have no number in common."""
    return [
        f"fresh neighbors contradict the {name}: stated {_shown(old)}, measured {_shown(new)}"
        for name, old, new in _pairs(stated, fresh)
        if new.high < old.low or new.low > old.high
    ]


def doubts(stated: Certificate, fresh: Certificate) -> list[str]:
    """Return one sentence per figure that the fresh neighbors do not confirm, and one for unsupported praise."""
    sentences = [
        f"fresh neighbors do not confirm the {name}: stated {_shown(old)}, measured {_shown(new)}"
        for name, old, new in _pairs(stated, fresh)
        if not old.exact  # computed again from leaves, which is more than fresh neighbors can confirm
        if not (_points(name, new.low) >= _points(name, old.low) - MARGIN)
        or not (_points(name, new.high) <= _points(name, old.high) + MARGIN)
    ]
    if not supports(fresh, stated):
        decides = fresh.stability is not None
        name, measure = ("stability", fresh.stability) if decides else ("relevance error", fresh.relevance_error)
        sentences.append(
            f"fresh neighbors do not support the verdict {word(stated)}: they measure a {name} of "
            f"{_shown(measure)}, and their verdict is {word(fresh)}"
        )
    return sentences


def confirmation(stated: Certificate, fresh: Certificate) -> list[str]:
    """Return what was confirmed, and how sure that is."""
    pairs = _pairs(stated, fresh)
    if not pairs:
        return ["every figure was reproduced, and every neighbor there is was queried"]
    if all(old.exact for _, old, _ in pairs):
        return [
            "every figure was computed again from the leaves of the model's trees, and fresh neighbors contradict "
            "none of them"
        ]
    if stated.by_leaves:
        figures = ["its stability", "baseline stability"]
    else:
        stability = [] if fresh.stability is None else ["stability"]
        figures = ["its fidelity", "relevance", *stability, "baselines"]
    verdict = f"; their verdict is {word(fresh)}, where the explanation states {word(stated)}"
    if fresh.verdict is stated.verdict:
        figures, verdict = [*figures, f"verdict ({word(fresh)})"], ""
    confirmed = f"{', '.join(figures[:-1])} and {figures[-1]}"
    return [
        f"every figure was reproduced, and fresh neighbors confirm {confirmed}{verdict}",
        f"a figure more than {100 * MARGIN:g} points outside its stated interval would have been noticed with a "
        f"probability of {100 * CONFIDENCE:g}%",
    ]


def supports(fresh: Certificate, stated: Certificate) -> bool:
    """Whether the stated verdict may be repeated: praise must be the fresh verdict too.

    A verdict that follows from figures of leaves was computed again, which is more than fresh neighbors can tell.
    """
    relevance = stated.relevance_error
    if stated.by_leaves and stated.stability is None and relevance is not None and relevance.exact:
        return True
    return stated.verdict not in PRAISE or fresh.verdict is stated.verdict


def word(certificate: Certificate) -> str:
    """Return the verdict in the words that readers see."""
    return certificate.verdict_title


def _shown(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    return f"{estimate.value:.3g} ({rounded_down(estimate.low)} to {rounded_up(estimate.high)})"


def _renewed(stated: Certificate, assessment: Assessment, case: Case) -> Certificate:
    """Replace what was measured on a sample, and keep what was computed over every neighbor."""
    fresh: dict[str, Any] = {}
    for name, value in measurements(assessment, case.predictor).items():
        old = getattr(stated, name)
        fresh[name] = old if isinstance(old, Estimate) and _is_final(old) else value
    return replace(stated, confidence=CONFIDENCE, **fresh)


def _is_final(estimate: Estimate) -> bool:
    """Whether every neighbor there is was queried for a figure."""
    return estimate.exact and estimate.method != "leaves"


def _estimates(certificate: Certificate, names: dict[str, str]) -> dict[str, Estimate]:
    found = {text: getattr(certificate, name) for name, text in names.items()}
    return {text: estimate for text, estimate in found.items() if estimate is not None}


def _pairs(stated: Certificate, fresh: Certificate) -> list[tuple[str, Estimate, Estimate]]:
    """Return name, stated estimate and fresh estimate of every figure that was measured afresh."""
    old, new = _estimates(stated, ERRORS | SHARES), _estimates(fresh, ERRORS | SHARES)
    return [(name, old[name], new[name]) for name in old if name in new and not _is_final(new[name])]


def _points(name: str, value: float) -> float:
    """Return a figure on the scale of the margin: a share, or the root of an error."""
    return math.sqrt(value) if name in ERRORS.values() else value
