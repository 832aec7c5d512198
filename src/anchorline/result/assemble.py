"""From findings on the scale [-1, +1] to an explanation in the output's own units."""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from anchorline.guarantees import achievable_epsilon, split_delta
from anchorline.model.predictor import Predictor
from anchorline.optimize.problem import Status
from anchorline.result.explanation import Alternative, Certificate, Explanation, plain_label
from anchorline.search.assess import Assessment
from anchorline.search.investigate import Findings
from anchorline.search.select import Rival
from anchorline.settings import Settings
from anchorline.spaces.base import Neighborhood


def assemble(
    output: str,
    neighborhood: Neighborhood,
    predictor: Predictor,
    settings: Settings,
    findings: Findings,
    parameters: Mapping[str, Any],
) -> Explanation:
    """Turn findings on the scale [-1, +1] into an explanation in the output's own units."""
    solution, problem = findings.solution, findings.problem
    contributions, intercept = predictor.in_own_units(solution.contributions, solution.intercept)
    support = np.flatnonzero(contributions)
    certificate = Certificate(
        status=solution.status,
        goal=settings.objective,
        objective=solution.objective,
        lower_bound=solution.lower_bound,
        anchoring_residual=abs(float(intercept + contributions.sum() - predictor.prediction)),
        n_terms=int(np.count_nonzero(contributions)) + int(intercept != 0),
        n_facts=int(np.count_nonzero(contributions)),
        n_samples=problem.evidence.n_rows,
        n_queries=predictor.n_queries,
        n_clipped=predictor.n_clipped,
        exhaustive=findings.exhaustive,
        confidence=settings.confidence,
        theorem_epsilon=_theorem_epsilon(findings, settings),
        answers_checksum=predictor.checksum,
        stopped_because=findings.stopped_because,
        decision=predictor.decision,
        keeps_values=any(neighborhood.literals[j].held != neighborhood.literals[j].text for j in support),
        **_measurements(findings.assessment, predictor),
    )
    return Explanation(
        prediction=predictor.prediction,
        intercept=intercept,
        contributions=contributions,
        literals=neighborhood.literals,
        output=output,
        label=plain_label(predictor.label),
        half_range=predictor.half_range,
        instance=tuple(neighborhood.instance),
        fixed=getattr(neighborhood, "fixed", {}),
        parameters=parameters,
        certificate=certificate,
        alternatives=tuple(_alternative(rival, predictor) for rival in findings.rivals),
    )


def _theorem_epsilon(findings: Findings, settings: Settings) -> float | None:
    """How far fidelity may be above that on the sample; None where the theorem does not apply.

    Its w has a coordinate for the constant, so d is one more than the literals. A sum without intercept has the
    constant ``origin``, which is no term and yet part of w.
    """
    problem, status = findings.problem, findings.solution.status
    if findings.exhaustive:
        return 0.0
    if problem.box is None or status in (Status.RELAXED, Status.HEURISTIC):  # it needs the box, and k terms
        return None
    radius = problem.k * problem.box + (abs(problem.origin) if len(problem.variants) > 1 else 0.0)
    n, delta = problem.evidence.n_rows, 1 - settings.confidence
    if settings.n_samples == "auto":  # doubled until clear: every look has another number of digits
        delta = split_delta(delta, n.bit_length())
    return achievable_epsilon(n, problem.k, problem.n_literals + 1, delta, max(1.0, radius))


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


def _measurements(assessment: Assessment | None, predictor: Predictor) -> dict[str, Any]:
    """The certificate's estimates; the typical (RMS) change is told in the output's own units."""
    if assessment is None:
        return {}

    def change(error: float) -> float:
        return 2 * predictor.half_range * math.sqrt(error)

    measured = {field.name: getattr(assessment, field.name) for field in fields(assessment)}
    return measured | {
        "typical_change": assessment.relevance_error.map(change),
        "baseline_change": assessment.baseline_error.map(change),
    }
