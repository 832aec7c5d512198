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

_MEASURED = ("fidelity_error", "relevance_error", "baseline_error", "stability", "baseline_stability")


def assess_by_leaves(
    case: Case, leaves: "LeafRow", problem: Problem, contributions: np.ndarray, n_fresh: int
) -> Assessment | None:
    """Compute the errors of a sum exactly, as far as they are sums over few pairs of leaves; None if none is.

    Facts that hold leave few leaves that a neighbor can reach, so the relevance error may be exact although the
    errors over all neighbors are measured. How often a decision or a number stays is not a sum over leaves. It is
    measured on ``n_fresh`` fresh neighbors, and not at all if there are none.
    """
    event = cancelling_event(contributions, case.law)
    inside, square = leaves.drop_square_given(event), leaves.drop_square
    measures = case.predictor.decision is not None and n_fresh > 1
    if inside is None or (square is None and not measures):
        return None
    exact: dict[str, Any] = {"relevance_error": _estimate(inside, leaves), "n_clipped_inside": 0}
    if square is not None:
        fidelity = _estimate(problem.objective(contributions), leaves)
        exact |= {"fidelity_error": fidelity, "baseline_error": _estimate(square, leaves), "n_clipped": 0}
    confidence = case.settings.certificate_confidence
    if measures:
        n_measured = sum(name not in exact for name in _MEASURED)
        share = (1 - confidence) * len(_MEASURED) / n_measured  # `assess` divides it by all
        measured = assess(case, contributions, n_samples=n_fresh, confidence=max(1 - share, confidence / 2))
        return replace(measured, **exact, confidence=confidence)
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
