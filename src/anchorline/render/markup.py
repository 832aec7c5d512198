"""Pieces of HTML; text from data is escaped, isolated from the text around it, and never becomes markup."""

import html
from importlib import resources
from itertools import accumulate
from typing import TYPE_CHECKING

from anchorline.guarantees.verdicts import Verdict
from anchorline.render.characters import printable
from anchorline.render.levels import is_label
from anchorline.render.neighbors import mean_over_neighbors, values_sentence
from anchorline.render.rules import rule_sentence
from anchorline.render.shares import percent
from anchorline.render.summands import Summand, round_preserving_sum, summands
from anchorline.render.text import cautions, on_the_sample, stopping_sentence
from anchorline.render.trust import (
    clipping_warning,
    over_neighbors,
    short_condition,
    verdict_reason,
    warnings_counted,
)

if TYPE_CHECKING:
    from anchorline.guarantees import Estimate
    from anchorline.render.frontier_like import FrontierLike
    from anchorline.result.explanation import Explanation
    from anchorline.spaces.base import Literal

_SYMBOLS = {
    "TRUSTWORTHY": "\u2713",
    "ROBUST": "\u2261",
    "WEAK": "\u2248",
    "UNRELIABLE": "\u2717",
    "UNDECIDED": "\u2026",
    "UNKNOWN": "?",
}
_DOUBTFUL = "!"  # praise beside a warning, which may take it back


def escape_text(text: str) -> str:
    r"""Return text from data as an HTML element with a writing direction of its own and visible control codes.

    >>> escape_text("<b>\u202e\x1b")
    '<bdi>&lt;b&gt;\\u202e\\x1b</bdi>'
    """
    return f"<bdi>{escape_attribute(text)}</bdi>"


def escape_statement(text: str, name: str) -> str:
    """Return a statement about a name from data as HTML.

    The name has a writing direction of its own; the rest of the statement runs from left to right.

    >>> escape_statement("age < 3", "age")
    '<bdi dir="ltr"><bdi>age</bdi> &lt; 3</bdi>'
    """
    if not name or name == text or name not in text:
        return escape_text(text)
    before, _, after = text.partition(name)
    return f'<bdi dir="ltr">{escape_attribute(before)}{escape_text(name)}{escape_attribute(after)}</bdi>'


def escape_attribute(text: str) -> str:
    """Return text from data escaped for a place that cannot hold elements, such as an attribute or a title."""
    return html.escape(printable(text), quote=True)


def style_sheet(name: str) -> str:
    """Return the text of a style sheet that ships beside this module."""
    return resources.files("anchorline.render").joinpath(name).read_text(encoding="utf-8")


def rule_markup(explanation: "Explanation") -> str:
    """Return the rule with its facts highlighted."""

    def highlight(text: str, name: str) -> str:
        return f'<b class="al-fact">{escape_statement(text, name)}</b>'

    return rule_sentence(explanation, highlight, escape_text)


def verdict_markup(explanation: "Explanation") -> str:
    """Return the verdict as a symbol, a word and a sentence, so that it does not rely on color."""
    verdict = explanation.verdict
    n, title = len(explanation.warnings), explanation.certificate.verdict_title.capitalize()
    title += f" (see the {warnings_counted(n)})" if n else ""
    sign = _DOUBTFUL if n and verdict is Verdict.TRUSTWORTHY else _SYMBOLS[verdict.name]
    symbol = f'<span aria-hidden="true">{sign}</span>'
    reason = verdict_reason(explanation.certificate, escape_text, n_warnings=n)
    return f'<p class="al-verdict al-{verdict.name.lower()}"><b>{symbol} {title}.</b> <span>{reason}</span></p>'


def warnings_markup(explanation: "Explanation") -> str:
    """Return the warnings beside the verdict: clipped outputs, an early stop, new values, and the setup."""
    certificate = explanation.certificate
    lines = (clipping_warning(certificate), stopping_sentence(certificate), *cautions(explanation))
    return "".join(f'<p class="al-warning">{escape_text(line)}</p>' for line in lines if line)


def sum_table(explanation: "Explanation", training_mean: float | None = None) -> str:
    """Return the waterfall as a table; the cells hold the numbers, which the bars beside them repeat.

    Thin vertical lines mark the mean output over the neighbors, and over the training table if it is given.
    """
    total = summands(explanation)
    base = 0.0 if total.intercept is None else total.intercept.value
    levels = list(accumulate((term.value for term in total.terms), initial=base))
    means = _means(explanation, training_mean)
    scale = _Scale([*levels, total.total.value, *means.values()])
    lines = "".join(
        f'<i class="al-mean al-{kind}" style="left:{scale.percent(mean):.2f}%"></i>'
        for kind, mean in means.items()
    )
    rows = []
    if total.intercept is not None:
        mark = _dot(scale, base) + _link(scale, "down", base)
        rows.append(_row("al-level", total.intercept, total.intercept.number, lines + mark))
    for number, (term, before, after) in enumerate(zip(total.terms, levels, levels[1:], strict=False)):
        up = "" if number == 0 and total.intercept is None else _link(scale, "up", before)
        rows.append(
            _row(
                "al-term", term, term.signed, lines + up + _bar(scale, before, after) + _link(scale, "down", after)
            )
        )
    mark = _link(scale, "up", total.total.value) + _dot(scale, total.total.value)
    rows.append(_row("al-total", total.total, total.total.number, lines + mark))
    return (
        '<table class="al-sum" role="table"><caption class="al-hidden">What adds up to the prediction</caption>'
        '<colgroup><col class="al-names"><col class="al-numbers"><col></colgroup>'
        '<thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">fact</th>'
        '<th scope="col" role="columnheader" class="al-number">adds</th><td aria-hidden="true"></td></tr></thead>'
        f'<tbody role="rowgroup">{"".join(rows)}</tbody></table>'
    )


def _means(explanation: "Explanation", training_mean: float | None) -> dict[str, float]:
    """Return the means that are known, by the names of their style."""
    means = {"neighbors": mean_over_neighbors(explanation), "training": training_mean}
    return {kind: mean for kind, mean in means.items() if mean is not None}


def means_key(explanation: "Explanation", training_mean: float | None = None) -> str:
    """Return the key of the lines that mark means, or an empty text if there are none."""
    clipped = ", with outputs clipped" if explanation.certificate.n_clipped else ""
    places = {"neighbors": f"over the neighbors{clipped}", "training": "over the training table"}
    keys = [
        f'<i class="al-key al-{kind}"></i> {mean:.3g} {places[kind]}'
        for kind, mean in _means(explanation, training_mean).items()
    ]
    mean = "Mean on this scale" if is_label(explanation) else "Mean output"
    return f"{mean}, for comparison: {'; '.join(keys)}." if keys else ""


class _Scale:
    """The map from values to percentages of the width of a bar's cell, with a small margin on both sides."""

    def __init__(self, levels: list[float]) -> None:
        low, high = min(levels), max(levels)
        # Halve before subtracting, because the difference of two numbers near the largest float overflows.
        half = (high / 2 - low / 2) or abs(high) / 2 or 0.5
        self._low, self._half = low - 0.06 * half, half * 1.06

    def percent(self, value: float) -> float:
        return 100 * (value / 2 - self._low / 2) / self._half


def _row(kind: str, part: Summand, number: str, picture: str) -> str:
    text = escape_statement(part.text, part.name)
    return (
        f'<tr role="row" class="{kind}"><th scope="row" role="rowheader">{text}</th>'
        f'<td role="cell" class="al-number">{_minus(number)}</td>'
        f'<td class="al-track" aria-hidden="true">{picture}</td></tr>'
    )


def _bar(scale: _Scale, before: float, after: float) -> str:
    left, right = sorted((scale.percent(before), scale.percent(after)))
    kind = "plus" if after > before else "minus"
    return f'<i class="al-bar al-{kind}" style="left:{left:.2f}%;width:{right - left:.2f}%"></i>'


def _dot(scale: _Scale, value: float) -> str:
    return f'<i class="al-dot" style="left:{scale.percent(value):.2f}%"></i>'


def _link(scale: _Scale, way: str, value: float) -> str:
    return f'<i class="al-{way}" style="left:{scale.percent(value):.2f}%"></i>'


def _minus(number: str) -> str:
    return html.escape(number.replace("-", "\N{MINUS SIGN}"))


def claims(explanation: "Explanation") -> list[tuple[str, list[str]]]:
    """Return the two kinds of claim, which are never mixed, each as a heading and sentences in HTML.

    What follows by theorem alone is part of the details for auditors.
    """
    certificate = explanation.certificate
    confidence = f"{100 * certificate.confidence:g}%"
    shown = (certificate.stability, certificate.baseline_stability)
    is_exact = certificate.fidelity_error is not None and all(one is None or one.exact for one in shown)
    sure = "exactly" if is_exact else f"all limits together with {confidence} confidence"
    tested = values_sentence(explanation)
    sections = [
        ("The search" if certificate.exhaustive else "On the sample", html.escape(on_the_sample(certificate))),
        (f"Over all possible neighbors, {sure}", f"{over_neighbors(certificate, escape_text)} {tested}".rstrip()),
    ]
    return [(html.escape(heading), [line]) for heading, line in sections]


def comparison_bars(explanation: "Explanation") -> str:
    """Return two bars that repeat the measurement: while the facts hold, and over all neighbors."""
    certificate = explanation.certificate
    is_share = certificate.stability is not None
    within = certificate.held_share if is_share else certificate.typical_change
    without = certificate.free_share if is_share else certificate.baseline_change
    if within is None or without is None or not certificate.n_facts:
        return ""
    largest = 1.0 if is_share else max(within.high, without.high) or 1.0
    bars = ""
    for label, estimate in ((short_condition(certificate), within), ("over all neighbors", without)):
        bars += f'<span class="al-what">{label}</span><span class="al-meter">'
        bars += f'<i style="width:{100 * estimate.value / largest:.2f}%"></i></span>'
        shown = f"{percent(estimate.value)}%" if estimate.exact or estimate.value < 1 else "all drawn"
        shown = shown if certificate.held_reach or estimate is without else "nothing else can change"
        bars += f"<span>{shown if is_share else f'{estimate.value:.3g}'}</span>"
    return f'<div class="al-compare" aria-hidden="true">{bars}</div>'


def grid_table(caption: str, header: list[str], rows: list[list[str]]) -> str:
    """Return a plain table from cells of HTML; it has a scroll bar of its own if it is wider than the page."""
    top = "".join(f'<th scope="col">{cell}</th>' for cell in header)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}"><table class="al-grid">'
        f'<caption class="al-hidden">{caption}</caption><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def alternatives_table(explanation: "Explanation") -> str:
    """Return a table with one row per alternative: its sum, and its fidelity error minus the explanation's."""
    rows = []
    for number, other in enumerate(explanation.alternatives, start=1):
        pairs = sorted(zip(other.support, other.values, strict=True), key=lambda pair: -abs(pair[1]))
        values = [value for _, value in pairs] + [other.intercept] * (other.intercept != 0)
        numbers, _ = round_preserving_sum(values, explanation.prediction)
        names = [f" [{_literal_markup(explanation.literals[j])}]" for j, _ in pairs]
        names += [""] * (other.intercept != 0)
        parts = [_minus(one if one.startswith("-") else f"+{one}") for one in numbers]
        body = " ".join(part + name for part, name in zip(parts, names, strict=True))
        rows.append([str(number), body, html.escape(str(other.excess))])
    return grid_table("Alternatives", ["alternative", "sum", "excess fidelity error"], rows)


def _literal_markup(literal: "Literal") -> str:
    return escape_statement(printable(literal.text), printable(literal.name))


def frontier_table(frontier: "FrontierLike") -> str:
    """Return the errors over k as a table of numbers."""
    rows = [
        [str(point.k), _estimate_markup(point.fidelity_error), _estimate_markup(point.relevance_error)]
        for point in frontier.points
    ]
    return grid_table("Errors over k", ["k", "fidelity error", "relevance error"], rows)


def _estimate_markup(estimate: "Estimate | None") -> str:
    return "not measured" if estimate is None else html.escape(str(estimate))
