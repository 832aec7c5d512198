"""From findings on the scale [-1, +1] to results in the output's own units."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from anchorline.model.predictor import Predictor, plain_label
from anchorline.result.certificate import Certificate, derived
from anchorline.result.explanation import Alternative, Explanation
from anchorline.result.frontier import Frontier, FrontierPoint
from anchorline.search.assess import Assessment
from anchorline.search.case import Case
from anchorline.search.investigate import Findings
from anchorline.search.select import Rival
from anchorline.search.trace import TracedPoint

_MEASURED = (
    *("fidelity_error", "relevance_error", "baseline_error", "stability", "baseline_stability"),
    *("event_probability", "event_is_literal", "n_clipped_inside"),
)


def assemble(case: Case, findings: Findings) -> Explanation:
    """Turn findings about a case into an explanation."""
    case = case.stating(findings.pairs)
    neighborhood, predictor = case.neighborhood, case.predictor
    solution, rivals = findings.solution, findings.rivals
    contributions, intercept = predictor.in_own_units(solution.contributions, solution.intercept)
    return Explanation(
        prediction=predictor.prediction,
        intercept=intercept,
        contributions=contributions,
        literals=case.literals,
        pairs=case.pairs,
        output=case.parameters["output"],
        label=plain_label(predictor.label),
        half_range=predictor.half_range,
        instance=tuple(neighborhood.instance),
        fixed=getattr(neighborhood, "fixed", {}),
        unseen=getattr(neighborhood, "unseen", {}),
        values=_own_values(neighborhood),
        redrawn=getattr(neighborhood, "redrawn", None),
        neighbors_mean=predictor.prediction - 2 * predictor.half_range * findings.problem.evidence.drop_mean,
        parameters=case.parameters,
        certificate=_certificate(case, findings, contributions, intercept),
        alternatives=() if rivals is None else tuple(_alternative(rival, predictor) for rival in rivals.listed),
        alternatives_complete=None if rivals is None else rivals.complete,
        warnings=case.warnings,
    )


def _own_values(neighborhood: Any) -> dict[str, str]:
    """Return a row's own values, as text, of the attributes whose literals leave them open.

    A literal whose value is kept states it. Literals of groups, and of attributes that are drawn anew inside an
    interval, do not. Spaces other than tables have no such attributes.
    """
    redraws = getattr(neighborhood, "within", None) == "redraw"
    return {
        attribute.name: _own_text(attribute, neighborhood.columns)
        for attribute in getattr(neighborhood, "attributes", ())
        if redraws or len(attribute.positions) > 1
    }


def _own_text(attribute: Any, columns: Sequence[Any]) -> str:
    texts = [
        "missing" if columns[j].missing[0] else encoding.value_text(columns[j])
        for j, encoding in zip(attribute.positions, attribute.encodings, strict=True)
    ]
    if len(texts) == 1:
        return texts[0]
    names = [encoding.name for encoding in attribute.encodings]
    return ", ".join(f"{name} = {text}" for name, text in zip(names, texts, strict=True))


def _certificate(case: Case, findings: Findings, contributions: np.ndarray, intercept: float) -> Certificate:
    """Return what is known about a sum in the output's own units."""
    predictor, solution, support = case.predictor, findings.solution, np.flatnonzero(contributions)
    kept = _kept(case, support)
    return Certificate(
        status=solution.status,
        goal=case.settings.objective,
        objective=solution.objective,
        lower_bound=solution.lower_bound,
        anchoring_residual=abs(float(intercept + contributions.sum() - predictor.prediction)),
        n_terms=len(support) + len(case.pairs) + int(intercept != 0),
        n_facts=len(support),
        n_pairs=len(case.pairs),
        pairs_searched=findings.n_pairs,
        n_left_out=findings.n_left_out,
        n_unclear=findings.n_unclear,
        n_samples=findings.problem.evidence.n_rows,
        n_queries=predictor.n_queries,
        n_clipped=0 if case.leaves is not None else predictor.n_clipped,
        by_leaves=case.leaves is not None,
        sampled_because=case.sampled_because,
        exhaustive=findings.exhaustive,
        confidence=case.settings.confidence,
        theorem_epsilon=findings.theorem_epsilon,
        answers_checksum=predictor.checksum,
        stopped_because=findings.stopped_because,
        decision=predictor.decision,
        decided=predictor.decided,
        keeps_values=kept == "all",
        keeps_some=kept == "some",
        **measurements(findings.assessment, predictor),
        **derived(case.parameters, case.n_literals),
    )


def _kept(case: Case, support: np.ndarray) -> str:
    """Return of how many facts the rule holds the values: "none", "all", or "some", as a bound may vary."""
    if not any(case.literals[j].held != case.literals[j].text for j in support):
        return "none"
    return "all" if case.flips_follow or case.law.keeps_values(support.tolist()) else "some"


def assemble_frontier(case: Case, traced: Sequence[TracedPoint]) -> Frontier:
    """Turn the traced points of a case into a frontier."""
    return Frontier(
        prediction=case.predictor.prediction,
        literals=case.neighborhood.literals,
        points=tuple(_point(point, case.predictor) for point in traced),
        n_queries=case.predictor.n_queries,
        confidence=case.settings.confidence,
        n_clipped=case.predictor.n_clipped,
        learned_range=bool(case.parameters.get("learned_range", False)),
    )


def _point(point: TracedPoint, predictor: Predictor) -> FrontierPoint:
    solution = point.solution
    contributions, intercept = predictor.in_own_units(solution.contributions, solution.intercept)
    return FrontierPoint(
        k=point.k,
        contributions=contributions,
        intercept=intercept,
        status=solution.status,
        objective=solution.objective,
        lower_bound=solution.lower_bound,
        fidelity_error=point.fidelity_error,
        relevance_error=point.relevance_error,
    )


def _alternative(rival: Rival, predictor: Predictor) -> Alternative:
    contributions, intercept = predictor.in_own_units(rival.contributions, rival.intercept)
    support = np.flatnonzero(contributions)
    return Alternative(
        support=tuple(support.tolist()),
        values=tuple(contributions[support].tolist()),
        intercept=intercept,
        objective=rival.objective,
        excess=rival.excess,
    )


def measurements(assessment: Assessment | None, predictor: Predictor) -> dict[str, Any]:
    """Return the certificate's estimates; the typical (RMS) change is in the output's own units."""
    if assessment is None:
        return {}

    def change(error: float) -> float:
        return 2 * predictor.half_range * math.sqrt(error)

    return {name: getattr(assessment, name) for name in _MEASURED} | {
        "typical_change": assessment.relevance_error.map(change),
        "baseline_change": assessment.baseline_error.map(change),
    }
