"""Explanations as JSON for the page and for programs; nothing here queries the model.

Printed numbers are rounded so that they still add up.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from anchorline.guarantees import Estimate
from anchorline.guarantees.verdicts import BAD, GOOD
from anchorline.render.changes import headline, option_sentences, tried_sentences
from anchorline.render.characters import printable
from anchorline.render.claims import stays
from anchorline.render.levels import legend
from anchorline.render.neighbors import mean_over_neighbors, values_sentence
from anchorline.render.rules import goal_of
from anchorline.render.shares import limits
from anchorline.render.summands import quantity, round_preserving_sum, summands
from anchorline.render.text import details_text, on_the_sample
from anchorline.render.trust import clipping_warning, over_neighbors, short_condition, verdict_reason
from anchorline.result.certificate import Certificate
from anchorline.result.changes import Changes
from anchorline.result.explanation import Explanation
from anchorline.result.frontier import Frontier, FrontierPoint
from anchorline.spaces.base import Literal
from anchorline.studio.cases import browser_value
from anchorline.studio.content_view import content_view


def explanation_view(explanation: Explanation, training_mean: float | None) -> dict[str, Any]:
    """Return everything that the page shows about one explanation, and the explanation's sealed JSON.

    ``training_mean`` is the mean of the explained output over the training table, if there is one.
    """
    certificate, printed = explanation.certificate, summands(explanation)
    values = [term.contribution for term in explanation.terms]
    goal, sign = goal_of(explanation)
    training = None if training_mean is None else (training_mean, " (dotted line)")
    return {
        "output": quantity(explanation),
        "unit": certificate.unit,
        "total": printed.total.text,
        "range": list(explanation.parameters["output_range"]),
        "class": explanation.output if explanation.parameters["classes"] is not None else None,
        "label": None if explanation.label is None else printable(str(explanation.label)),
        "is_probability": bool(explanation.parameters.get("probability")),
        "sum": _sum(
            [term.index for term in explanation.terms],
            values,
            explanation.intercept,
            explanation.prediction,
            printed.total.number,
            [part.number for part in printed.parts],
        ),
        "literals": literals_view(explanation.literals),
        "fixed": {printable(name): printable(why) for name, why in explanation.fixed.items()},
        "neighbors_mean": mean_over_neighbors(explanation),
        "training_mean": training_mean,
        "legend": legend(explanation, " (dashed line)", training=training).split("\n"),
        "content": content_view(explanation),
        "goal": goal,
        "goal_sign": sign,
        "rule": explanation.as_rule(),
        "on_sample": on_the_sample(certificate),
        "in_population": f"{over_neighbors(certificate)} {values_sentence(explanation)}".rstrip(),
        "details": details_text(certificate).split("\n"),
        "verdict": _verdict(explanation),
        "clipping": clipping_text(certificate),
        "is_proved": explanation.is_proved,
        "gauges": _gauges(certificate),
        "confidence": certificate.confidence,
        "n_queries": certificate.n_queries,
        "alternatives": [_alternative(explanation, number) for number in range(len(explanation.alternatives))],
        "alternatives_complete": explanation.alternatives_complete,
        "shares": [
            {"text": printable(text), "share": share} for text, share in explanation.literal_shares.items()
        ],
        "json": explanation.to_json(),
    }


def _verdict(explanation: Explanation) -> dict[str, str]:
    certificate = explanation.certificate
    return {
        "name": certificate.verdict.name.lower(),
        "title": certificate.verdict_title,
        "meaning": page_words(verdict_reason(certificate, n_warnings=len(explanation.warnings))),
    }


# What a reader of the page, or whoever starts the server, can do instead of what a programmer types.
_PAGE_WORDS = {
    r"output_range=\(lowest, highest\)": "--output-range LOWEST HIGHEST",
    r"Type n_certify=[\d_]+ to measure more neighbors\.": "More neighbors would decide it.",
    r"Type a smaller tolerance to measure more neighbors\.": "More neighbors would decide it.",
    r"Type budget=[\d_]+ to ask more\.": "More queries would decide it.",
    r"Type n_certify=[\d_]+ to measure how far this explanation can be trusted\.": "It was not measured how far "
    "this explanation can be trusted.",
    r"Type a smaller sigma, such as sigma=1\.": "Look farther, so that more facts change.",
}


def page_words(text: str) -> str:
    """Return a text, or a page, with advice to programmers replaced by words that fit a page."""
    for pattern, words in _PAGE_WORDS.items():
        text = re.sub(pattern, words, text)
    return text


def clipping_text(certificate: Certificate) -> str:
    """Return a warning about outputs beyond the known range, with what to type where the server is started."""
    return page_words(clipping_warning(certificate))


def frontier_view(frontier: Frontier) -> dict[str, Any]:
    """Return the best sum per k in the form that the page draws."""
    return {
        "prediction": frontier.prediction,
        "confidence": frontier.confidence,
        "literals": literals_view(frontier.literals),
        "points": [_point(point, frontier.prediction) for point in frontier.points],
    }


def changes_view(changes: Changes) -> dict[str, Any]:
    """Return the changes for the page: ``edits`` are for /what-if, and ``names`` can be held fixed."""
    options = [
        {
            "lines": option_sentences(changes, option),
            "edits": {name: browser_value(value) for name, value in option.values.items()},
            "names": [move.name for move in option.moves],
        }
        for option in changes
    ]
    return {"headline": headline(changes), "options": options, "tried": tried_sentences(changes)}


def frontier_answer(frontier: Frontier) -> dict[str, Any]:
    """Return the whole frontier, for programs."""
    points = [
        {
            "k": point.k,
            "contributions": point.contributions.tolist(),
            "intercept": point.intercept,
            "status": point.status.name,
            "objective": point.objective,
            "lower_bound": point.lower_bound,
            "fidelity_error": estimate_view(point.fidelity_error),
            "relevance_error": estimate_view(point.relevance_error),
        }
        for point in frontier.points
    ]
    return {
        "prediction": frontier.prediction,
        "literals": [asdict(literal) for literal in frontier.literals],
        "points": points,
        "n_queries": frontier.n_queries,
        "n_clipped": frontier.n_clipped,
        "confidence": frontier.confidence,
    }


def literals_view(literals: Sequence[Literal]) -> list[dict[str, str]]:
    """Return printable names and texts per literal; ``key`` is the unchanged name."""
    return [
        {
            "key": literal.name,
            "name": printable(literal.name),
            "text": printable(literal.text),
            "held": printable(literal.held),
        }
        for literal in literals
    ]


def estimate_view(estimate: Estimate | None) -> dict[str, Any] | None:
    """Return the fields of an estimate, or None if it was not measured."""
    return None if estimate is None else asdict(estimate)


def _point(point: FrontierPoint, prediction: float) -> dict[str, Any]:
    support = np.flatnonzero(point.contributions)
    support = support[np.argsort(-np.abs(point.contributions[support]), kind="stable")]
    values = point.contributions[support].tolist()
    parts = [*values, point.intercept] if point.intercept != 0 else values
    numbers, total = round_preserving_sum(parts, prediction)
    return {
        "k": point.k,
        "is_proved": point.status.name == "OPTIMAL",
        "fidelity_error": estimate_view(point.fidelity_error),
        "relevance_error": estimate_view(point.relevance_error),
        "sum": _sum(support.tolist(), values, point.intercept, prediction, total, numbers),
    }


def _sum(
    support: Sequence[int],
    values: Sequence[float],
    intercept: float,
    prediction: float,
    total: str,
    numbers: Sequence[str],
) -> dict[str, Any]:
    """Return the terms, largest first, the intercept and their sum; each ``number`` is the printed text."""
    terms = [
        {"index": index, "value": value, "number": number}
        for index, value, number in zip(support, values, numbers, strict=False)
    ]
    level = {"value": intercept, "number": numbers[len(values)]} if intercept != 0 else None
    return {"terms": terms, "intercept": level, "total": {"value": prediction, "number": total}}


def _alternative(explanation: Explanation, number: int) -> dict[str, Any]:
    other = explanation.alternatives[number]
    pairs = sorted(zip(other.support, other.values, strict=True), key=lambda pair: -abs(pair[1]))
    values = [value for _, value in pairs]
    parts = [*values, other.intercept] if other.intercept != 0 else values
    numbers, total = round_preserving_sum(parts, explanation.prediction)
    return {
        "sum": _sum([j for j, _ in pairs], values, other.intercept, explanation.prediction, total, numbers),
        "excess": asdict(other.excess),
    }


def _gauges(certificate: Certificate) -> list[dict[str, Any]]:
    """Return the measures of trust, each with its baseline, in which the literals may be broken.

    Stability is the share of neighbors, which differ from the case, in which the output stays; ``good`` and
    ``fair`` are the thresholds of the verdict. A change is how far the output moves, as a root mean square
    in its own units.
    """
    gauges: list[dict[str, Any]] = []
    found = certificate.held_share
    if found is not None:
        gauges.append(
            {
                "kind": "stability",
                "claim": stays(certificate),
                "condition": short_condition(certificate),
                "limits": limits(found.low, found.high),
                "good": 1 - GOOD,
                "fair": 1 - BAD,
                "found": asdict(found),
                "baseline": estimate_view(certificate.free_share),
            }
        )
    if certificate.typical_change is not None:
        gauges.append(
            {
                "kind": "change",
                "found": asdict(certificate.typical_change),
                "baseline": estimate_view(certificate.baseline_change),
                "relevance_error": estimate_view(certificate.relevance_error),
                "is_clipped": certificate.n_clipped > 0,
            }
        )
    return gauges
