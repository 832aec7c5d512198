"""HTML: a fragment for notebooks and a page to file, each in one string without scripts or network access."""

import html
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from anchorline.errors import ParameterError
from anchorline.render.changes import section
from anchorline.render.characters import ELLIPSIS, printable
from anchorline.render.chart import frontier_chart
from anchorline.render.highlight import is_text, text_markup
from anchorline.render.levels import VERDICT_SENTENCE, legend, level_sentences, same_sentences
from anchorline.render.markup import (
    alternatives_table,
    claims,
    comparison_bars,
    escape_attribute,
    escape_statement,
    escape_text,
    frontier_table,
    means_key,
    rule_markup,
    style_sheet,
    sum_table,
    verdict_markup,
    warnings_markup,
)
from anchorline.render.neighbors import case_values, neighbor_sentence
from anchorline.render.regions import image_markup, is_image
from anchorline.render.summands import Summand, summands
from anchorline.render.text import details_text, rule

if TYPE_CHECKING:
    from anchorline.render.frontier_like import FrontierLike
    from anchorline.result.changes import Changes
    from anchorline.result.explanation import Explanation

_MANY_VALUES = 12  # more values of a case than this are folded
_LONG_TEXT = 80  # characters; the rest of a value of the case is not shown
# The styles are inline and nothing else is needed, so the browser may load nothing and run nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def fragment(explanation: "Explanation") -> str:
    """Return the explanation for a notebook cell: rule, sum and verdict, with the certificate folded.

    The styles apply to the fragment only. They use the notebook's own colors, light or dark.

    Examples
    --------
    >>> import anchorline as al
    >>> e = al.explain(lambda z: z[:, 0] / 2, [1, -1], k=2, names=["<b>paid</b>", "late"], output="score")
    >>> "&lt;b&gt;paid" in fragment(e), "<b>paid" in fragment(e)
    (True, False)
    """
    certificate = "".join(f"<p><b>{heading}.</b> {' '.join(lines)}</p>" for heading, lines in claims(explanation))
    meaning = "".join(f"<p>{line}</p>" for line in legend(explanation, "", escape_text).split("\n"))
    return (
        f'<div class="anchorline"><style>{style_sheet("sum.css")}</style>'
        f"<p>{rule_markup(explanation)}</p>{text_markup(explanation)}{image_markup(explanation)}"
        f"{sum_table(explanation)}"
        f"{verdict_markup(explanation)}{warnings_markup(explanation)}"
        f"<details><summary>Certificate</summary>{certificate}</details>"
        f"<details><summary>What the numbers mean</summary>{meaning}</details></div>"
    )


def page(
    explanation: "Explanation",
    frontier: "FrontierLike | None" = None,
    training_mean: float | None = None,
    changes: "Changes | None" = None,
) -> str:
    """Return the explanation as one self-contained page: the answer on top, folded details for auditors below.

    Parameters
    ----------
    explanation
        The explanation to show.
    frontier
        Errors over k of the same prediction, shown as a chart if given. The frontier of another row raises
        `ParameterError`.
    training_mean
        Mean output over the training table, marked beside the starting level if given.
    changes
        What would change the decision of the same row, shown as a section if given. The changes of another row
        raise `ParameterError`.

    Returns
    -------
    str
        A whole HTML document that has no script and loads nothing; it has light and dark colors and prints on A4.

    Examples
    --------
    >>> import anchorline as al
    >>> e = al.explain(lambda z: z[:, 0] / 2, [1, -1], k=2, names=["paid", "late"], output="score")
    >>> page(e).startswith("<!DOCTYPE html>"), "<script" in page(e)
    (True, False)
    """
    _check_frontier(explanation, frontier)
    if changes is not None and tuple(changes.instance) != tuple(explanation.instance):
        raise ParameterError("The changes belong to another row. Find the changes of the row that was explained.")
    total = summands(explanation).total
    title = f"{escape_attribute(total.text)} = {total.number}"
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="generator" content="anchorline"><meta name="referrer" content="no-referrer">'
        f"<title>{title}</title><style>{style_sheet('sum.css')}{style_sheet('page.css')}</style></head><body>"
        f'<main class="anchorline">{_header(explanation)}{_sum(explanation, training_mean)}{_claims(explanation)}'
        f"{'' if changes is None else section(changes, 'What would change it?')}"
        f"{'' if frontier is None else _frontier(frontier)}{_alternatives(explanation)}{_technical(explanation)}"
        "<footer>Made by anchorline. This page is self-contained: it loads nothing and runs no scripts.</footer>"
        "</main></body></html>\n"
    )


def _check_frontier(explanation: "Explanation", frontier: "FrontierLike | None") -> None:
    """Raise `ParameterError` if the frontier belongs to another prediction, as far as its attributes show."""
    prediction = getattr(frontier, "prediction", explanation.prediction)
    literals = getattr(frontier, "literals", explanation.literals)
    if math.isclose(prediction, explanation.prediction, rel_tol=1e-9) and literals == explanation.literals:
        return
    if literals == explanation.literals:
        received = f"The frontier belongs to the prediction {prediction:.6g}."
    else:
        received = "The frontier belongs to another row or space, because its literals differ."
    raise ParameterError(
        f"{received} The page needs the frontier of the explained prediction, "
        f"{printable(explanation.output)} = {explanation.prediction:.6g}. Type "
        "e.to_html(explainer.frontier(row)) with the row of the explanation."
    )


def _header(explanation: "Explanation") -> str:
    total, is_answer = summands(explanation).total, explanation.certificate.decision != "class"
    kicker = "The model's answer, and why" if is_answer else "One output of the model, and why"
    return (
        f'<header><p class="kicker">{kicker}</p>'
        f"<h1>{escape_statement(total.text, total.name)} = {total.number.replace('-', '&minus;')}</h1>"
        f'<p class="lead">{rule_markup(explanation)}</p>'
        f"{verdict_markup(explanation)}{warnings_markup(explanation)}</header>"
    )


def _sum(explanation: "Explanation", training_mean: float | None) -> str:
    lines = [
        "The numbers add up exactly, digit for digit. Solid bars add; hatched bars subtract.",
        level_sentences(explanation, "", escape_text)[0],
        means_key(explanation, training_mean),
        *same_sentences(explanation, escape_text),
        neighbor_sentence(explanation),
        VERDICT_SENTENCE,
    ]
    notes = "".join(f'<p class="note">{line}</p>' for line in lines if line)
    return (
        f"{_text(explanation)}<section><h2>What adds up to the prediction</h2>"
        f"{sum_table(explanation, training_mean)}{notes}{_case(explanation)}</section>"
    )


def _text(explanation: "Explanation") -> str:
    if is_image(explanation):
        return (
            f"<section><h2>The image, with the regions that count</h2>{image_markup(explanation)}"
            '<p class="note">Shaded regions with a solid outline add; hatched regions with a dashed outline '
            "subtract.</p></section>"
        )
    if not is_text(explanation):
        return ""
    return (
        f"<section><h2>The text, with the words that count</h2>{text_markup(explanation)}"
        '<p class="note">A straight underline adds; a wavy underline subtracts. The small numbers are the '
        "contributions.</p></section>"
    )


def _case(explanation: "Explanation") -> str:
    """Return the row's own values, those of the facts first; many of them are folded."""
    if is_text(explanation) or is_image(explanation):
        return ""
    values = case_values(explanation)
    first = dict.fromkeys(term.literal.name for term in explanation.terms)
    ordered = {name: values[name] for name in (*first, *values) if name in values}
    is_open = " open" if len(ordered) <= _MANY_VALUES else ""
    shown = {_shortened(name): _shortened(value) for name, value in ordered.items()}
    return f"<details{is_open}><summary>The values of this case</summary>{_list(shown)}</details>"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONG_TEXT else f"{text[:_LONG_TEXT]}{ELLIPSIS}"


def _claims(explanation: "Explanation") -> str:
    sections = [
        f"<h3>{heading}</h3>{''.join(f'<p>{line}</p>' for line in lines)}"
        for heading, lines in claims(explanation)
    ]
    sections[1] += comparison_bars(explanation)
    parts = "".join(f"<div>{section}</div>" for section in sections)
    return f'<section><h2>How far the explanation can be trusted</h2><div class="claims">{parts}</div></section>'


def _frontier(frontier: "FrontierLike") -> str:
    return (
        f"<section><h2>How many reasons are needed?</h2>{frontier_chart(frontier)}"
        f"<details><summary>The numbers</summary>{frontier_table(frontier)}</details></section>"
    )


def _alternatives(explanation: "Explanation") -> str:
    if not explanation.alternatives:
        return ""
    n = len(explanation.alternatives)
    others = "another sum" if n == 1 else f"{n} other sums"
    at_least = "at least " if explanation.alternatives_complete is False and n > 1 else ""
    return (
        f"<details><summary>The evidence cannot distinguish {at_least}{others} from this one</summary>"
        f"{alternatives_table(explanation)}{_cut_list(explanation)}</details>"
    )


def _cut_list(explanation: "Explanation") -> str:
    if explanation.alternatives_complete is not False:
        return ""
    return "<p>The list ends at the requested number or at a limit of the search. More sums may be as good.</p>"


def _technical(explanation: "Explanation") -> str:
    """Return everything needed to repeat the explanation, and the checksum of its JSON form."""
    details = "".join(f"<p>{html.escape(line)}</p>" for line in details_text(explanation.certificate).split("\n"))
    seal = json.loads(explanation.to_json())["sha256"]
    fixed = f"<h3>Fixed in every neighbor</h3>{_list(explanation.fixed)}" if explanation.fixed else ""
    record = {"SHA-256 of the JSON": seal, "status": explanation.certificate.status.value}
    return (
        f"<details><summary>For the record</summary><h3>The sum</h3>"
        f'<p class="mono">{rule(explanation, _part_markup)}</p>'
        f"<h3>Measurements</h3>{details}<h3>Seal</h3>{_list(record)}"
        f"{fixed}<h3>Parameters</h3>{_list(explanation.parameters)}</details>"
    )


def _part_markup(part: Summand) -> str:
    return escape_statement(part.text, part.name)


def _list(values: Mapping[str, Any]) -> str:
    items = "".join(
        f"<dt>{escape_text(key)}</dt><dd><code>{escape_text(_format_value(value))}</code></dd>"
        for key, value in values.items()
    )
    return f"<dl>{items}</dl>"


def _format_value(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_format_value(inner)}" for key, inner in value.items())
    return ", ".join(map(_format_value, value)) if isinstance(value, tuple) else str(value)
