"""The quality of a sum over the whole neighborhood: errors from leaves, and decisions on fresh neighbors."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from anchorline.guarantees import Estimate, exact_estimate
from anchorline.optimize import Problem
from anchorline.search.assess import Assessment, assess
from anchorline.search.case import Case
from anchorline.search.sampling import cancelling_event, reach_of

if TYPE_CHECKING:
    from anchorline.search.leaves.row import LeafRow

_SAMPLED, _OF_DECISIONS = 5, 2  # limits that share the failure probability in `assess`, and those that are used


def assess_by_leaves(
    case: Case, leaves: "LeafRow", problem: Problem, contributions: np.ndarray, n_fresh: int
) -> Assessment | None:
    """Compute all errors of a sum exactly; None if they are sums over too many pairs of leaves.

    How often a decision or a number stays is not a sum over leaves. It is measured on ``n_fresh`` fresh neighbors,
    and not at all if there are none.
    """
    event = cancelling_event(contributions, case.law)
    square = leaves.drop_square
    inside = None if square is None else leaves.drop_square_given(event)
    if square is None or inside is None:
        return None
    exact: dict[str, Any] = {
        "fidelity_error": _estimate(problem.objective(contributions), leaves),
        "relevance_error": _estimate(inside, leaves),
        "baseline_error": _estimate(square, leaves),
    }
    confidence = case.settings.certificate_confidence
    if case.predictor.decision is not None and n_fresh > 1:
        share = (1 - confidence) * _SAMPLED / _OF_DECISIONS
        measured = assess(case, contributions, n_samples=n_fresh, confidence=max(1 - share, confidence / 2))
        return replace(measured, **exact, n_clipped=0, n_clipped_inside=0, confidence=confidence)
    return Assessment(
        **exact,
        stability=None,
        baseline_stability=None,
        event_probability=event.probability,
        event_is_literal=event.is_literal,
        reach=reach_of(case.settings.flip_probability, case.law.n_attributes),
        confidence=confidence,
    )


def _estimate(error: float, leaves: "LeafRow") -> Estimate:
    return exact_estimate(max(0.0, error), leaves.n_leaves, method="leaves")
