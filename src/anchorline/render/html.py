"""HTML: a fragment for notebooks and a page to file; no script, no network, everything in one text."""

import html
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from anchorline.errors import ParameterError
from anchorline.render.characters import printable
from anchorline.render.chart import frontier_chart
from anchorline.render.markup import (
    alternatives_table,
    claims,
    comparison,
    escaped,
    frontier_table,
    lead,
    plain,
    stated,
    style_sheet,
    sum_table,
    verdict,
    warnings,
)
from anchorline.render.summands import Summand, summands
from anchorline.render.text import details_text, rule

if TYPE_CHECKING:
    from anchorline.render.plot import FrontierLike
    from anchorline.result.explanation import Explanation

# Nothing may be loaded or run, whatever a name says: the styles are inside.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def fragment(explanation: "Explanation") -> str:
    """The explanation for a notebook's cell: rule, sum and verdict, the certificate folded.

    Its styles are scoped to it and take up the notebook's own colours, light or dark.

    Examples
    --------
    >>> import anchorline as al
    >>> e = al.explain(lambda z: z[:, 0] / 2, [1, -1], k=2, names=["<b>paid</b>", "late"], output="score")
    >>> "&lt;b&gt;paid" in fragment(e), "<b>paid" in fragment(e)
    (True, False)
    """
    told = "".join(f"<p><b>{heading}.</b> {' '.join(lines)}</p>" for heading, lines in claims(explanation))
    return (
        f'<div class="anchorline"><style>{style_sheet("sum.css")}</style>'
        f"<p>{lead(explanation)}</p>{sum_table(explanation)}{verdict(explanation)}{warnings(explanation)}"
        f"<details><summary>Certificate</summary>{told}</details></div>"
    )


def page(explanation: "Explanation", frontier: "FrontierLike | None" = None) -> str:
    """The explanation as one self-contained page: for a reader on top, for an auditor folded below.

    Parameters
    ----------
    explanation
        What to show.
    frontier
        Errors over k of the same prediction, shown as a chart if given; that of another row is refused.

    Returns
    -------
    str
        A whole HTML document: no script, nothing loaded from elsewhere, light and dark, prints on A4.

    Examples
    --------
    >>> import anchorline as al
    >>> e = al.explain(lambda z: z[:, 0] / 2, [1, -1], k=2, names=["paid", "late"], output="score")
    >>> page(e).startswith("<!DOCTYPE html>"), "<script" in page(e)
    (True, False)
    """
    _check_same(explanation, frontier)
    total = summands(explanation).total
    title = f"{plain(total.text)} = {total.number}"
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="generator" content="anchorline"><meta name="referrer" content="no-referrer">'
        f"<title>{title}</title><style>{style_sheet('sum.css')}{style_sheet('page.css')}</style></head><body>"
        f'<main class="anchorline">{_header(explanation)}{_sum(explanation)}{_claims(explanation)}'
        f"{'' if frontier is None else _frontier(frontier)}{_alternatives(explanation)}{_technical(explanation)}"
        "<footer>Made by anchorline. This page is complete in itself: it loads nothing and runs nothing.</footer>"
        "</main></body></html>\n"
    )


def _check_same(explanation: "Explanation", frontier: "FrontierLike | None") -> None:
    """Refuse errors of another prediction, as far as a frontier tells whose they are."""
    prediction = getattr(frontier, "prediction", explanation.prediction)
    literals = getattr(frontier, "literals", explanation.literals)
    if math.isclose(prediction, explanation.prediction, rel_tol=1e-9) and literals == explanation.literals:
        return
    told = f"{printable(explanation.output)} = {explanation.prediction:.6g}"
    if literals == explanation.literals:
        given = f"of {prediction:.6g}"
    else:
        given = "of another row or space: its facts are others"
    raise ParameterError(
        f"The frontier is {given}; needed that of the prediction explained, {told}. Type "
        "e.to_html(explainer.frontier(row)) with the row of the explanation."
    )


def _header(explanation: "Explanation") -> str:
    total = summands(explanation).total
    return (
        f'<header><p class="kicker">The model\'s answer, and why</p>'
        f"<h1>{stated(total.text, total.name)} = {total.number.replace('-', '&minus;')}</h1>"
        f'<p class="lead">{lead(explanation)}</p>{verdict(explanation)}{warnings(explanation)}</header>'
    )


def _sum(explanation: "Explanation") -> str:
    return (
        f"<section><h2>What adds up to it</h2>{sum_table(explanation)}"
        '<p class="note">The numbers add up exactly, digit for digit. Solid bars add; hatched bars take away.</p>'
        "</section>"
    )


def _claims(explanation: "Explanation") -> str:
    sample, population, theorem = (
        f"<h3>{heading}</h3>{''.join(f'<p>{line}</p>' for line in lines)}"
        for heading, lines in claims(explanation)
    )
    parts = f"<div>{sample}</div><div>{population}{comparison(explanation)}</div><div>{theorem}</div>"
    return f'<section><h2>How far it can be trusted</h2><div class="claims">{parts}</div></section>'


def _frontier(frontier: "FrontierLike") -> str:
    return (
        f"<section><h2>How many reasons are needed?</h2>{frontier_chart(frontier)}"
        f"<details><summary>The numbers</summary>{frontier_table(frontier)}</details></section>"
    )


def _alternatives(explanation: "Explanation") -> str:
    if not explanation.alternatives:
        return ""
    n = len(explanation.alternatives)
    told = "another sum" if n == 1 else f"{n} other sums"
    return (
        f"<details><summary>The evidence cannot tell {told} from this one</summary>"
        f"{alternatives_table(explanation)}</details>"
    )


def _technical(explanation: "Explanation") -> str:
    """Everything needed to repeat it, and the seal of its JSON form."""
    details = "".join(f"<p>{html.escape(line)}</p>" for line in details_text(explanation.certificate).split("\n"))
    seal = json.loads(explanation.to_json())["sha256"]
    fixed = f"<h3>Never changed</h3>{_list(explanation.fixed)}" if explanation.fixed else ""
    told = {"SHA-256 of the JSON": seal, "status": explanation.certificate.status.value}
    return (
        f"<details><summary>For the record</summary><h3>The sum</h3>"
        f'<p class="mono">{rule(explanation, _shown_part)}</p>'
        f"<h3>Measurements</h3>{details}<h3>Seal</h3>{_list(told)}"
        f"{fixed}<h3>Parameters</h3>{_list(explanation.parameters)}</details>"
    )


def _shown_part(part: Summand) -> str:
    return stated(part.text, part.name)


def _list(values: Mapping[str, Any]) -> str:
    items = "".join(
        f"<dt>{escaped(key)}</dt><dd><code>{escaped(_shown(value))}</code></dd>" for key, value in values.items()
    )
    return f"<dl>{items}</dl>"


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_shown(below)}" for key, below in value.items())
    return ", ".join(map(_shown, value)) if isinstance(value, tuple) else str(value)
