"""Pieces of HTML: everything that came from data is escaped, isolated from the text around it, and only text."""

import html
from importlib import resources
from itertools import accumulate
from typing import TYPE_CHECKING

from anchorline.render.characters import printable
from anchorline.render.summands import Summand, adding_up, summands
from anchorline.render.text import (
    by_theorem,
    clipping,
    consequence,
    facts,
    in_the_population,
    on_the_sample,
    short_condition,
)

if TYPE_CHECKING:
    from anchorline.guarantees import Estimate
    from anchorline.render.plot import FrontierLike
    from anchorline.result.explanation import Explanation
    from anchorline.spaces.base import Literal

_SYMBOLS = {"TRUSTWORTHY": "\u2713", "WEAK": "\u2248", "UNRELIABLE": "\u2717", "UNKNOWN": "?"}


def escaped(text: str) -> str:
    r"""Text from data: control codes visible, markup as text, its writing direction its own.

    >>> escaped("<b>\u202e\x1b")
    '<bdi>&lt;b&gt;\\u202e\\x1b</bdi>'
    """
    return f"<bdi>{plain(text)}</bdi>"


def stated(text: str, name: str) -> str:
    """A statement about a name from data: only the name has a direction of its own, what is said of it is ours.

    >>> stated("age < 3", "age")
    '<bdi dir="ltr"><bdi>age</bdi> &lt; 3</bdi>'
    """
    if not name or name == text or name not in text:
        return escaped(text)
    before, _, after = text.partition(name)
    return f'<bdi dir="ltr">{plain(before)}{escaped(name)}{plain(after)}</bdi>'


def plain(text: str) -> str:
    """The same for places that hold no elements: attributes and titles."""
    return html.escape(printable(text), quote=True)


def style_sheet(name: str) -> str:
    """A style sheet that ships beside this module."""
    return resources.files("anchorline.render").joinpath(name).read_text(encoding="utf-8")


def lead(explanation: "Explanation") -> str:
    """The rule in one sentence, its facts marked."""
    names = [printable(explanation.literals[j].name) for j in explanation.support]
    told = [stated(fact, name) for fact, name in zip(facts(explanation), names, strict=True)]
    marked = [f'<b class="al-fact">{fact}</b>' for fact in told]
    return f"If {' and '.join(marked) or 'anything goes'}{consequence(explanation, escaped)}"


def verdict(explanation: "Explanation") -> str:
    """The verdict in one word and one sentence; its sign is not a colour alone."""
    found = explanation.verdict
    return (
        f'<p class="al-verdict al-{found.name.lower()}"><b><span aria-hidden="true">{_SYMBOLS[found.name]}</span> '
        f"{found.name.capitalize()}.</b> <span>{html.escape(found.value)}</span></p>"
    )


def warnings(explanation: "Explanation") -> str:
    """What a reader must know beside the verdict: outputs that were clipped, sampling that stopped."""
    certificate = explanation.certificate
    stopped = f"Sampling stopped: {certificate.stopped_because}." if certificate.stopped_because else ""
    return "".join(
        f'<p class="al-warning">{escaped(line)}</p>' for line in (clipping(certificate), stopped) if line
    )


def sum_table(explanation: "Explanation") -> str:
    """The waterfall as a table: what each fact adds is in the cells, the picture beside them repeats it."""
    total = summands(explanation)
    base = 0.0 if total.intercept is None else total.intercept.value
    levels = list(accumulate((term.value for term in total.terms), initial=base))
    scale = _Scale([*levels, total.total.value])
    rows = []
    if total.intercept is not None:
        mark = _dot(scale, base) + _link(scale, "down", base)
        rows.append(_row("al-level", total.intercept, total.intercept.number, mark))
    for number, (term, before, after) in enumerate(zip(total.terms, levels, levels[1:], strict=False)):
        up = "" if number == 0 and total.intercept is None else _link(scale, "up", before)
        rows.append(
            _row("al-term", term, term.signed, up + _bar(scale, before, after) + _link(scale, "down", after))
        )
    mark = _link(scale, "up", total.total.value) + _dot(scale, total.total.value)
    rows.append(_row("al-total", total.total, total.total.number, mark))
    return (
        '<table class="al-sum" role="table"><caption class="al-hidden">What adds up to the prediction</caption>'
        '<colgroup><col class="al-names"><col class="al-numbers"><col></colgroup>'
        '<thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">because</th>'
        '<th scope="col" role="columnheader" class="al-number">adds</th><td aria-hidden="true"></td></tr></thead>'
        f'<tbody role="rowgroup">{"".join(rows)}</tbody></table>'
    )


class _Scale:
    """From values to percents of a track, with a little room on both sides."""

    def __init__(self, levels: list[float]) -> None:
        low, high = min(levels), max(levels)
        # Halved before they are subtracted: two numbers near the largest float have no difference.
        half = (high / 2 - low / 2) or abs(high) / 2 or 0.5
        self._low, self._half = low - 0.06 * half, half * 1.06

    def percent(self, value: float) -> float:
        return 100 * (value / 2 - self._low / 2) / self._half


def _row(kind: str, part: Summand, number: str, picture: str) -> str:
    return (
        f'<tr role="row" class="{kind}"><th scope="row" role="rowheader">{stated(part.text, part.name)}</th>'
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
    """Three kinds of claim, never mixed: heading and sentences of each, as HTML."""
    certificate = explanation.certificate
    confidence = f"{100 * certificate.confidence:g}%"
    sure = certificate.fidelity_error is not None and certificate.fidelity_error.exact
    population = [in_the_population(certificate)]
    told = [
        ("On the sample", [on_the_sample(certificate)]),
        ("In the population" + (", exactly" if sure else f", with {confidence} confidence"), population),
        ("By theorem", by_theorem(certificate)),
    ]
    return [(html.escape(heading), [html.escape(line) for line in lines]) for heading, lines in told]


def comparison(explanation: "Explanation") -> str:
    """Two bars that repeat the measurement: while the facts hold, and over all neighbors."""
    certificate = explanation.certificate
    is_share = certificate.stability is not None
    within = certificate.stability if is_share else certificate.typical_change
    without = certificate.baseline_stability if is_share else certificate.baseline_change
    if within is None or without is None or not certificate.n_facts:
        return ""
    largest = 1.0 if is_share else max(within.high, without.high) or 1.0
    bars = ""
    for label, found in ((short_condition(certificate), within), ("over all neighbors", without)):
        bars += f'<span class="al-what">{label}</span><span class="al-meter">'
        bars += f'<i style="width:{100 * found.value / largest:.2f}%"></i></span>'
        bars += f"<span>{f'{100 * found.value:.1f}%' if is_share else f'{found.value:.3g}'}</span>"
    return f'<div class="al-compare" aria-hidden="true">{bars}</div>'


def grid(caption: str, header: list[str], rows: list[list[str]]) -> str:
    """A plain table of cells that are HTML already; it scrolls by itself where it is wider than the page."""
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
    """One row an alternative: its sum, and by how much its fidelity error exceeds the explanation's."""
    rows = []
    for number, other in enumerate(explanation.alternatives, start=1):
        pairs = sorted(zip(other.support, other.values, strict=True), key=lambda pair: -abs(pair[1]))
        values = [value for _, value in pairs] + [other.intercept] * (other.intercept != 0)
        numbers, _ = adding_up(values, explanation.prediction)
        told = [f" [{_fact(explanation.literals[j])}]" for j, _ in pairs] + [""] * (other.intercept != 0)
        parts = [_minus(one if one.startswith("-") else f"+{one}") for one in numbers]
        body = " ".join(part + fact for part, fact in zip(parts, told, strict=True))
        rows.append([str(number), body, html.escape(str(other.excess))])
    return grid("Alternatives", ["alternative", "sum", "excess fidelity error"], rows)


def _fact(literal: "Literal") -> str:
    return stated(printable(literal.text), printable(literal.name))


def frontier_table(frontier: "FrontierLike") -> str:
    """Errors over k, as numbers."""
    rows = [[str(point.k), _told(point.fidelity_error), _told(point.relevance_error)] for point in frontier.points]
    return grid("Errors over k", ["k", "fidelity error", "relevance error"], rows)


def _told(estimate: "Estimate | None") -> str:
    return "not measured" if estimate is None else html.escape(str(estimate))
