"""Plain text: what `print` shows of a result, the details, and tables of a frontier and of a summary."""

from collections.abc import Iterator
from functools import singledispatch
from typing import Any

from anchorline.render import comparisons
from anchorline.render import statements as say
from anchorline.render.characters import cell_width, pad, printable
from anchorline.render.digits import amount
from anchorline.render.statements import Subject, fact_text
from anchorline.result.comparison import Comparison, Drift
from anchorline.result.explanation import Explanation
from anchorline.result.explanations import WORST_FIRST, Summary
from anchorline.result.frontier import Frontier
from anchorline.result.reasons import Reasons
from anchorline.result.rule import Rule, Rules

_MOST_RULES, _MOST_ATTRIBUTES, _MOST_ROWS = 20, 10, 5  # that are printed
_POOR = [verdict.value for verdict in WORST_FIRST[:3]]


@singledispatch
def text_of(result: Any) -> str:
    """Return what `print` shows of a result."""
    return "\n".join(_lines(result))


def details_text(result: Subject) -> str:
    """Return what `text_of` says, and how we know it: one line per statement."""
    lines = [
        f"  {each.text}" if each.kind in ("effect", "shortfall", "alternative") else each.text
        for each in say.details_of(result)
    ]
    return "\n".join([text_of(result), "", *lines])


def _lines(explanation: Explanation) -> Iterator[str]:
    decision, verdict, *rest = say.statements_of(explanation)
    lines = [each for each in rest if each.amount]
    same = next((each for each in rest if each.kind == "same"), None)
    colon = ":" if lines or same else "."
    yield f"{decision.text} {verdict.text}{colon}"
    if same is not None:
        yield same.text + (":" if not same.text.endswith(".") else "")
    width = max((cell_width(each.amount) for each in lines), default=0)
    for each in lines:
        yield f"  {pad(each.amount, width, align_right=True)}  {each.text}"
    for each in rest:
        if not each.amount and each is not same:
            yield each.text


@text_of.register
def _(rule: Rule) -> str:
    first, *rest = say.statements_of(rule)
    facts = " and ".join(each.text for each in rest if each.kind == "fact")
    title = " ".join([first.text, *(each.text for each in rest if each.kind == "best")])
    holds = [each.text for each in rest if each.kind == "holds"]
    about = " ".join(each.text for each in rest if each.kind in ("rows", "scope"))
    return "\n".join([f"{title}: {facts}." if facts else title, *holds, *([about] if about else [])])


@text_of.register
def _(rules: Rules) -> str:
    first, *rest = say.statements_of(rules)
    lines, n, n_more = [first.text], 0, max(0, len(rules) - _MOST_RULES)
    for each in rest:
        n += each.kind == "rule"
        if each.kind not in ("rule", "rows"):
            lines += [f"  ... and {n_more:,} more"] if n_more else []
            n_more = 0
            lines.append(each.text)
        elif n <= _MOST_RULES:
            lines.append(f"  {each.text}" if each.kind == "rule" else f"    {each.text}")
    return "\n".join(lines)


@text_of.register
def _(reasons: Reasons) -> str:
    decision, lead, *rest = say.statements_of(reasons)
    width = max((cell_width(each.amount) for each in rest), default=0)
    lines = [
        each.text if each.kind == "note" else f"  {pad(each.amount, width, align_right=True)}  {each.text}"
        for each in rest
    ]
    return "\n".join([decision.text, lead.text, *lines])


@text_of.register
def _(result: Comparison | Drift) -> str:
    return comparisons.text(result)


@text_of.register
def _(frontier: Frontier) -> str:
    unit = f" {say.shown(frontier.output.unit)}" if frontier.output.unit else ""
    rows = [
        ("k", "R2", "typical error", "facts"),
        ("0", "0.00", f"{amount(frontier.baseline**0.5)}{unit}", "none"),
    ]
    for point, r2, error in zip(frontier.points, frontier.r2, frontier.errors, strict=True):
        facts = ", ".join(fact_text(fact, frontier.space) for fact in point.facts) or "none"
        rows.append((str(point.k), f"{r2:.2f}", f"{amount(error)}{unit}", facts))
    widths = [max(cell_width(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join([*(pad(row[i], widths[i], align_right=True) for i in range(3)), row[3]]) for row in rows]
    return "\n".join([*lines, "These are figures of the search; an explanation is measured on fresh copies."])


def summary_text(summary: Summary) -> str:
    """Return which attributes matter, one line each, and the rows that the facts do not explain."""
    n_explained = summary.n_rows - summary.n_failed
    verdicts = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in summary.verdicts.items())
    kinds = ", ".join(f"{printable(name)} {count:,}" for name, count in summary.failures.items())
    lines = [
        f"{n_explained:,} rows explained, {summary.n_failed:,} failed"
        f"{f' ({kinds})' if kinds else ''}{f'; verdicts: {verdicts}' if verdicts else ''}."
    ]
    shown = summary.attributes[:_MOST_ATTRIBUTES]
    width = max([9, *(len(printable(each.name)) for each in shown)])
    lines += [f"{'attribute':<{width}}  rows  share  adds  typical size  most often"] if shown else []
    for each in shown:
        share, (text, count) = each.n_rows / max(1, n_explained), each.facts[0]
        lines.append(
            f"{printable(each.name):<{width}}  {each.n_rows:>4}  {share:>5.0%}  {each.adds:>4.0%}  "
            f"{each.typical_size:>12.2f}  {printable(text)} ({count})"
        )
    n_more = len(summary.attributes) - len(shown)
    lines += [f"... and {n_more} more"] if n_more > 0 else []
    worst = [
        f"{summary.ids.get(row, row)!s:.60} ({verdict.replace('_', ' ')}"
        f"{'' if low is None else f', at least {max(0.0, low):.0%}'})"
        for row, verdict, low in summary.least_explained
        if verdict in _POOR
    ]
    of = "" if summary.id is None else f" ({printable(summary.id)})"
    lines += [f"Least explained rows{of}: {', '.join(map(printable, worst[:_MOST_ROWS]))}."] if worst else []
    return "\n".join(lines)
