"""HTML: a view for notebooks and a page to file, each one string without scripts or network access.

Every sentence is one of `statements`; this file only lays them out: the decision, the verdict, the sum, the
evidence, and folded below them how we know. Of a rule: its facts, each with its strip, and the evidence.
"""

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from anchorline.errors import ParameterError
from anchorline.render import comparisons
from anchorline.render import statements as say
from anchorline.render.digits import amount
from anchorline.render.drawings import (
    Scale,
    Sentences,
    curve_markup,
    document,
    escape,
    frontier_markup,
    meters,
    minus,
    picture_markup,
    strip_legend,
    strip_markup,
    sum_track,
    text_markup,
    view,
)
from anchorline.render.geometry import LONGEST_TEXT, bands_of, curve_of, picture_of, steps_of, text_runs
from anchorline.render.statements import CAPTIONS, Statement, Subject, Words
from anchorline.result.comparison import Comparison, Drift
from anchorline.result.explanation import Explanation, Verdict
from anchorline.result.frontier import Frontier
from anchorline.result.reasons import Reasons
from anchorline.result.rule import Rule, RuleVerdict
from anchorline.spaces.columns import CATEGORY, Column, text_of
from anchorline.spaces.table import Table

_MOST_COLUMNS = 40  # of a table in a notebook
_MANY_VALUES = 12  # more values of a case than this are folded
_SYMBOLS = {
    Verdict.EXPLAINED: "\N{CHECK MARK}",
    Verdict.PARTLY_EXPLAINED: "\N{ALMOST EQUAL TO}",
    Verdict.NOT_EXPLAINED: "\N{BALLOT X}",
    Verdict.ROBUST: "\N{IDENTICAL TO}",
    Verdict.UNDECIDED: "?",
}
_RULE_CLASSES = {  # the colors of a rule's title, by those of a sum's verdict
    RuleVerdict.ALWAYS: Verdict.EXPLAINED,
    RuleVerdict.HOLDS: Verdict.EXPLAINED,
    RuleVerdict.FALLS_SHORT: Verdict.NOT_EXPLAINED,
    RuleVerdict.UNDECIDED: Verdict.UNDECIDED,
    RuleVerdict.MEASURED: Verdict.PARTLY_EXPLAINED,
}
_FOLDS: tuple[tuple[str, tuple[str, ...]], ...] = (  # the kinds of statements below each heading
    ("How we know", ("share", "rows", "fit", "limits", "note")),
    ("Effects", ("effect",)),
    ("Shortfalls", ("shortfall",)),
    ("How altered copies are made", ("legend", "law")),
    ("Proof", ("proof", "alternative")),
    ("Queries", ("queries",)),
    ("Settings and versions", ("settings",)),
)


def fragment(result: Any) -> str:
    """Return a result for a notebook cell: the answer, and folded below it how we know.

    The styles apply to the fragment only. They use the notebook's own colors, light or dark.
    """
    if isinstance(result, Comparison | Drift):
        return comparisons.fragment(result)
    sheet = _Sheet(result)
    top = f"<p><b>{sheet.title}</b>{sheet.verdict and f' {sheet.verdict}'}</p>{sheet.answer}"
    return view(f"{top}{sheet.how_we_know()}")


def frontier_view(frontier: Frontier) -> str:
    """Return a frontier for a notebook cell: R2 over the number of facts, and its numbers."""
    return view(_frontier_chart(frontier, "facts"))


def table_view(table: Table) -> str:
    """Return a table for a notebook cell: each column with its kind and the values that altered copies draw."""
    return view(_about_table(table))


def explainer_view(name: str, space: Any) -> str:
    """Return an `Explainer` for a notebook cell: the name of its model, and its space."""
    about = f"<p><b>Explainer</b> of {escape(name)}; type <code>explain(row)</code>.</p>"
    return view(about + (_about_table(space) if isinstance(space, Table) else f"<p>{escape(repr(space))}</p>"))


def _about_table(table: Table) -> str:
    columns = [*zip(table.names, table.schema.columns, strict=True)][:_MOST_COLUMNS]
    rows = [(say.shown(name), column.kind, _span(column), _part(table, name)) for name, column in columns]
    more = len(table.names) - len(rows)
    return (
        f"<p><b>{escape(repr(table))}</b></p>{_table('Columns', rows, ('column', 'kind', 'values', ''))}"
        f"{f'<p>... and {more:,} more columns</p>' if more else ''}"
    )


def _span(column: Column) -> str:
    """Return the ends of a column's values, or its first categories."""
    known = column.values[~column.missing]
    missing = f"; {column.missing.mean():.0%} missing" if column.missing.any() else ""
    if not len(known):
        return "missing"
    if column.kind != CATEGORY:
        return f"{text_of(known.min(), column.kind)} to {text_of(known.max(), column.kind)}{missing}"
    levels = sorted({*known.tolist()})
    first = ", ".join(say.shown(level) for level in levels[:3])
    return f"{first}{f', ... ({len(levels)})' if len(levels) > 3 else ''}{missing}"


def _part(table: Table, name: str) -> str:
    """Return that a column never changes, or the group with which it changes."""
    group = next((each.name for each in table.attributes if name in each.names and len(each.names) > 1), None)
    return "fixed" if name in table.held else "" if group is None else f"changes with {say.shown(group)}"


def page(result: Any, frontier: Frontier | None = None, rule: Rule | None = None, case: str = "") -> str:
    """Return a result as one self-contained page: the answer on top, folded below it how we know.

    Parameters
    ----------
    result
        The explanation, the rule or the reasons to show.
    frontier
        The frontier of the same prediction, shown as a chart; that of another one raises `ParameterError`.
    rule
        The rule of the same row, shown beside the sum; that of another row raises `ParameterError`.
    case
        What the caller calls the case, shown below the title.
    """
    if isinstance(result, Comparison | Drift):
        return comparisons.page(result)
    sheet = _Sheet(result)
    verdict = f"<p>{sheet.verdict}</p>" if sheet.verdict else ""
    verdict += f"<p><bdi>{escape(say.shown(case))}</bdi></p>" if case else ""
    body = f"<section><h1>{sheet.title}</h1>{verdict}{sheet.answer}{_caption(sheet.legend)}</section>"
    if rule is not None:
        body = f'<div class="pair">{body}{_beside(result, rule)}</div>'
    body += "" if frontier is None else _frontier(result, frontier)
    body += _values(result) + _folds(sheet)
    return document(sheet.head, body, has_images=True)


def _beside(explanation: Subject, rule: Rule) -> str:
    """Return the section of a rule on the page of an explanation of the same row."""
    ours, theirs = explanation.output, rule.output
    is_same = rule.instance == explanation.instance and (ours.name, ours.threshold) == (
        theirs.name,
        theirs.threshold,
    )
    if not is_same or not math.isclose(rule.prediction, explanation.prediction, rel_tol=1e-9):
        raise ParameterError(
            "The rule belongs to another row or output than the explanation. Type "
            "e.to_html(rule=explainer.rule(row)) with the same row."
        )
    sheet = _Sheet(rule)
    return f"<section><h2>{sheet.title}</h2>{sheet.answer}{sheet.how_we_know()}</section>"


class _Sheet:
    """What is said of a result, as pieces of a page: ``head`` and ``legend`` are texts, all others are markup."""

    def __init__(self, result: Subject) -> None:
        self.result, self.write, self.words, self.verdict = result, Sentences(result), Words(result), ""
        head, *rest = say.statements_of(result)
        self.how = say.details_of(result)
        self.head, self.legend, self.title = head.text, self.how[0].text, self.write(head.text)
        if isinstance(result, Rule):
            self.title = f'<span class="al-{_RULE_CLASSES[result.verdict].value}">{self.title}</span>'
            self.answer = self._rule(result, rest)
        elif isinstance(result, Reasons):
            self.answer = self._reasons(rest)
        else:
            verdict, *rest = rest
            code = result.verdict  # with a symbol, so that it does not rely on color
            is_followed = any(each.amount or each.kind == "same" for each in rest)
            self.verdict = (
                f'<span class="al-verdict al-{code.value}"><span aria-hidden="true">{_SYMBOLS[code]}</span> '
                f"{self.write(verdict.text)}{':' if is_followed else '.'}</span>"
            )
            self.answer = self._sum(result, rest)

    def how_we_know(self) -> str:
        """Return how we know, folded."""
        return f"<details><summary>How we know</summary>{self.paragraphs(self.how)}</details>"

    def paragraphs(self, statements: Iterable[Statement]) -> str:
        """Return one paragraph per statement; effects and alternatives are indented."""
        return "".join(f'<p class="al-{each.kind}">{self.write(each.text)}</p>' for each in statements)

    def _sum(self, e: Explanation, rest: Sequence[Statement]) -> str:
        """Return the case, the sum, and the evidence below it, with its shares or typical errors as bars."""
        same = next((each.text for each in rest if each.kind == "same"), "")
        lead = f"<p>{self.write(same)}{'' if same.endswith('.') else ':'}</p>" if same else ""
        markup = _instance(e, e.contributions.tolist(), say.digits_of(e).contributions, "the sum")
        markup += _caption(CAPTIONS[str(e.space["kind"])]) if markup and e.facts else ""
        evidence = "".join(
            self.paragraphs([each]) + (self._meters(e) if each.kind in ("holds", "fit") else "")
            for each in rest
            if not each.amount and each.kind != "same"
        )
        return f"{lead}{markup}{self._waterfall(e) if e.facts else ''}{evidence}"

    def _waterfall(self, e: Explanation) -> str:
        """Return the sum as a table; the bars beside the numbers repeat them as a waterfall."""
        steps = steps_of(e)
        scale = Scale([level for step in steps for level in (step.before, step.after) if level is not None])
        rows = "".join(
            f'<tr class="al-{step.kind}"><td class="al-number">{minus(step.number)}</td><th scope="row">'
            f'{self.write(step.text)}</th><td class="al-track">{sum_track(scale, step)}</td></tr>'
            for step in steps
        )
        return _sum_table("The sum", "adds", self.words.fact, rows) + _caption(CAPTIONS["sum"])

    def _rule(self, rule: Rule, rest: Sequence[Statement]) -> str:
        """Return the case, each fact with its strip, and the evidence."""
        n = len(rule.facts)
        markup = _instance(rule, [1.0] * n, [""] * n, "the rule")
        markup += _caption(CAPTIONS[f"rule of {rule.space['kind']}"]) if markup and n else ""
        markup += "".join(f"<p>{self.write(each.text)}:</p>" for each in rest if each.kind == "best")
        if rule.facts:
            bands, facts = bands_of(rule), [each.text for each in rest if each.kind == "fact"]
            parts = [
                f"<b>{self.write(text)}</b>{strip_markup(band)}" for band, text in zip(bands, facts, strict=True)
            ]
            rows = '</div><div class="al-fact"><span class="al-and">and</span> '.join(parts)
            markup += f'<div class="al-strips"><div class="al-fact">{rows}</div></div>{strip_legend(bands)}'
            markup += _caption(f"{say.band_caption(rule)} {say.shade_caption(rule)}")
        markup += self.paragraphs(each for each in rest if each.kind == "holds") + self._meters(rule)
        about = " ".join(self.write(each.text) for each in rest if each.kind in ("rows", "scope"))
        return markup + (f'<p class="al-rows">{about}</p>' if about else "")

    def _reasons(self, rest: Sequence[Statement]) -> str:
        """Return each reason with its shortfall as a bar, what would help, and what is close."""
        largest, rows = max(each.figures["value"] for each in rest if each.kind == "reason"), ""
        for each in rest:
            text = self.write(each.text)
            if each.kind == "reason":
                width = f"{100 * each.figures['value'] / largest:.2f}%"
                bar = f'<svg width="100%" height="16"><rect class="al-plus" width="{width}" height="100%"/></svg>'
                rows += f'<tr class="al-fact"><td class="al-number">{minus(each.amount)}</td>'
                rows += f'<th scope="row">{text}</th><td aria-hidden="true">{bar}</td></tr>'
            elif each.kind == "recourse":
                rows += f'<tr><td></td><td colspan="2"><span class="al-caption">{text}</span></td></tr>'
        lead, note = (self.paragraphs(e for e in rest if e.kind == kind) for kind in ("lead", "note"))
        return f"{lead}{_sum_table('Reasons', 'shortfall', 'reason', rows)}{note}"

    def _meters(self, result: Explanation | Rule) -> str:
        """Return shares with the facts, and with or without them, as bars; of a number, typical errors."""
        these, them = f"with {escape(self.words.these)}", self.words.them
        fit = None if isinstance(result, Rule) else result.fit
        if not result.facts:
            return ""
        if result.holds is not None and result.all is not None:
            return meters([(these, result.holds), (f"with or without {them}", result.all)], 1.0)
        if result.holds is None and fit is not None and fit.baseline > 0:
            largest = max(fit.error, fit.baseline)
            return meters([(these, fit.error), (f"without {them}", fit.baseline)], largest)
        return ""


def _instance(
    result: Explanation | Rule, contributions: Sequence[float], numbers: Sequence[str], whose: str
) -> str:
    """Return the explained text, image or signal with its facts marked; nothing for a row of a table."""
    runs, picture, curve = text_runs(result), picture_of(result), curve_of(result)
    if runs:
        is_long = sum(map(len, result.instance)) > LONGEST_TEXT
        return text_markup(runs, contributions, numbers) + (_caption(CAPTIONS["long"]) if is_long else "")
    if picture is not None:
        facts = zip(result.facts, numbers, strict=True)
        texts = [(say.fact_text(fact, result.space), number) for fact, number in facts]
        labels = [f"{text}: {number}" if number else text for text, number in texts]
        return picture_markup(picture, contributions, labels, whose)
    return "" if curve is None else curve_markup(curve, contributions, numbers, whose)


def _sum_table(caption: str, number: str, text: str, rows: str) -> str:
    """Return a table of rows that begin with a number and a text."""
    head = f'<th scope="col" class="al-number">{number}</th><th scope="col">{escape(text)}</th><td></td>'
    return (
        f'<table class="al-sum"><caption class="al-hidden">{caption}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _caption(text: str) -> str:
    return f'<p class="al-caption">{escape(text)}</p>'


def _fold(heading: str, body: str, *, is_open: bool = False) -> str:
    opened = " open" if is_open else ""
    return f"<details{opened}><summary><h2>{heading}</h2></summary>{body}</details>" if body else ""


def _folds(sheet: _Sheet) -> str:
    """Return how we know, folded by heading; the last part has the seal of the record."""
    folds = ""
    for heading, kinds in _FOLDS:
        is_above = {"legend"} if isinstance(sheet.result, Reasons) else set[str]()  # of the page
        body = sheet.paragraphs(each for each in sheet.how if each.kind in {*kinds} - is_above)
        if "settings" in kinds:
            body += _table("Record", [("SHA-256 of the JSON", json.loads(sheet.result.to_json())["sha256"])])
        folds += _fold(heading, body)
    return folds


def _table(caption: str, rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Return a table whose rows begin with their names."""
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row"><bdi>{escape(name)}</bdi></th>'
        f"{''.join(f'<td><bdi>{escape(cell)}</bdi></td>' for cell in cells)}</tr>"
        for name, *cells in rows
    )
    return (
        f'<table class="values"><caption class="al-hidden">{escape(caption)}</caption>'
        f"{f'<thead><tr>{top}</tr></thead>' if top else ''}<tbody>{body}</tbody></table>"
    )


def _values(explanation: Subject) -> str:
    """Return the values of a row, those of the facts first; many of them are folded."""
    names, instance = explanation.space.get("names", ()), explanation.instance
    is_row = explanation.space.get("kind") in ("table", "hypercube") and isinstance(instance, Sequence)
    if not is_row or len(names) != len(instance):
        return ""
    given = dict(zip(names, instance, strict=True))
    stated = [fact.column for fact in explanation.facts if fact.column in given]
    ordered = dict.fromkeys([*stated, *given])
    is_signed = explanation.space.get("kind") == "hypercube"  # -1 and +1, as in the facts
    values = [
        (say.shown(name), f"{given[name]:+g}" if is_signed else say.value_text(given[name], name))
        for name in ordered
    ]
    return _fold("The values of this case", _table("Values", values), is_open=len(values) <= _MANY_VALUES)


def _frontier(explanation: Subject, frontier: Frontier) -> str:
    """Return how many facts are needed, as a chart and its numbers."""
    if not math.isclose(frontier.prediction, explanation.prediction, rel_tol=1e-9):
        raise ParameterError(
            f"The frontier belongs to the prediction {frontier.prediction:.6g}, but the explained prediction is "
            f"{explanation.prediction:.6g}. Type e.to_html(explainer.frontier(row)) with the same row."
        )
    return f"<section>{_frontier_chart(frontier, Words(explanation).facts)}</section>"


def _frontier_chart(frontier: Frontier, facts: str) -> str:
    rows = [
        (
            str(point.k),
            f"{r2:.2f}",
            amount(error),
            ", ".join(say.fact_text(fact, frontier.space) for fact in point.facts),
        )
        for point, r2, error in zip(frontier.points, frontier.r2, frontier.errors, strict=True)
    ]
    return (
        f"<h2>How many {escape(facts)} are needed?</h2>{frontier_markup(frontier, CAPTIONS['frontier'])}"
        f"{_caption(CAPTIONS['frontier'])}"
        f"{_table('How many are needed', rows, ('number', 'R2', 'typical error', facts))}"
    )
