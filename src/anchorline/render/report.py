"""HTML: a view for notebooks and a page to file, each one string without scripts or network access.

Every sentence is one of `statements`; this file only lays them out: the decision, the verdict, the sum, the
evidence, and folded below them how we know. Of a rule: its facts, each with its strip, and the evidence.
"""

import json
import math
from collections.abc import Iterable, Sequence
from itertools import accumulate

from anchorline.errors import ParameterError
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
    style_sheet,
    sum_track,
    text_markup,
)
from anchorline.render.instances import LONGEST_TEXT, curve_of, picture_of, text_runs
from anchorline.render.statements import CAPTIONS, Result, RuleWords, Statement, Words
from anchorline.render.strips import bands_of
from anchorline.result.explanation import Explanation, Verdict
from anchorline.result.frontier import Frontier
from anchorline.result.rule import Rule, RuleVerdict

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
    ("How altered copies are made", ("legend", "law")),
    ("Proof", ("proof", "alternative")),
    ("Queries", ("queries",)),
    ("Settings and versions", ("settings",)),
)


def fragment(explanation: Explanation) -> str:
    """Return the explanation for a notebook cell: decision, verdict, sum and evidence, and folded how we know.

    The styles apply to the fragment only. They use the notebook's own colors, light or dark.
    """
    parts = _Parts(explanation)
    top = f"<p><b>{parts.write(parts.decision.text)}</b> {parts.verdict()}</p>{parts.answer()}"
    return _view(top, parts.paragraphs(say.details_of(explanation)))


def rule_fragment(rule: Rule) -> str:
    """Return the rule for a notebook cell: its facts with their strips, the evidence, and folded how we know."""
    parts = _RuleParts(rule)
    return _view(f"<p><b>{parts.title()}</b></p>{parts.answer()}", parts.paragraphs(say.rule_details_of(rule)))


def _view(top: str, how: Iterable[str]) -> str:
    return f'<div class="anchorline"><style>{style_sheet("sum.css")}</style>{top}{_how_we_know(how)}</div>'


def _how_we_know(paragraphs: Iterable[str]) -> str:
    return f"<details><summary>How we know</summary>{''.join(paragraphs)}</details>"


def page(explanation: Explanation, frontier: Frontier | None = None, rule: Rule | None = None) -> str:
    """Return the explanation as one self-contained page: the answer on top, folded below it how we know.

    Parameters
    ----------
    explanation
        The explanation to show.
    frontier
        The frontier of the same prediction, shown as a chart; that of another one raises `ParameterError`.
    rule
        The rule of the same row, shown beside the sum; that of another row raises `ParameterError`.
    """
    parts = _Parts(explanation)
    answer = (
        f"<section><h1>{parts.write(parts.decision.text)}</h1><p>{parts.verdict()}</p>"
        f"{parts.answer()}{_caption(say.legend(explanation))}</section>"
    )
    if rule is not None:
        answer = f'<div class="pair">{answer}{_beside(explanation, rule)}</div>'
    body = (
        f"{answer}{'' if frontier is None else _frontier(explanation, frontier)}{_values(explanation)}"
        f"{_folds(parts, say.details_of(explanation))}"
    )
    return document(parts.decision.text, body, has_images=True)


def rule_page(rule: Rule) -> str:
    """Return the rule as one self-contained page: its facts with their strips, and folded below how we know."""
    parts = _RuleParts(rule)
    answer = f"<section><h1>{parts.title()}</h1>{parts.answer()}{_caption(say.legend(rule))}</section>"
    body = f"{answer}{_values(rule)}{_folds(parts, say.rule_details_of(rule))}"
    return document(parts.head.text, body, has_images=True)


def _beside(explanation: Explanation, rule: Rule) -> str:
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
    parts = _RuleParts(rule)
    how = _how_we_know(parts.paragraphs(say.rule_details_of(rule)))
    return f"<section><h2>{parts.title()}</h2>{parts.answer()}{how}</section>"


class _Sheet:
    """The statements about a result, as pieces of a page."""

    def __init__(self, result: Result) -> None:
        self.result, self.write = result, Sentences(result)

    def paragraphs(self, statements: Iterable[Statement]) -> Iterable[str]:
        """Yield one paragraph per statement; effects and alternatives are indented."""
        for each in statements:
            yield f'<p class="al-{each.kind}">{self.write(each.text)}</p>'

    def instance(self, contributions: Sequence[float], numbers: Sequence[str], whose: str) -> str:
        """Return the explained text, image or signal with its facts marked; nothing for a row of a table."""
        result = self.result
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


class _RuleParts(_Sheet):
    """The statements about a rule, as pieces of a page."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        self.rule, self.words = rule, RuleWords(rule)
        self.head, *self._rest = say.rule_statements_of(rule)

    def title(self) -> str:
        """Return for what the rule is, or that none was found."""
        code = _RULE_CLASSES[self.rule.verdict].value
        return f'<span class="al-{code}">{self.write(self.head.text)}</span>'

    def answer(self) -> str:
        """Return what follows the title: the case, each fact with its strip, and the evidence."""
        rule = self.rule
        n, evidence = len(rule.facts), [each for each in self._rest if each.kind not in ("best", "fact")]
        markup = self.instance([1.0] * n, [""] * n, "the rule")
        markup += _caption(CAPTIONS[f"rule of {rule.space['kind']}"]) if markup and n else ""
        best = "".join(f"<p>{self.write(each.text)}:</p>" for each in self._rest if each.kind == "best")
        return markup + best + self._strips() + self._evidence(evidence)

    def _strips(self) -> str:
        bands, facts = bands_of(self.rule), [each.text for each in self._rest if each.kind == "fact"]
        if not bands:
            return ""
        rows = ""
        for number, (band, text) in enumerate(zip(bands, facts, strict=True)):
            joined = '<span class="al-and">and</span> ' if number else ""
            rows += f'<div class="al-fact">{joined}<b>{self.write(text)}</b>{strip_markup(band)}</div>'
        caption = f"{say.band_caption(self.rule)} {say.shade_caption(self.rule)}"
        return f'<div class="al-strips">{rows}</div>{strip_legend(bands)}{_caption(caption)}'

    def _evidence(self, evidence: Sequence[Statement]) -> str:
        holds = [each for each in evidence if each.kind == "holds"]
        about = [each for each in evidence if each.kind != "holds"]
        words, rule = self.words, self.rule
        bars = ""
        if rule.facts:
            with_them, without = f"with {escape(words.these)}", f"with or without {words.them}"
            bars = meters([(with_them, rule.holds), (without, rule.all)], 1.0)
        last = " ".join(self.write(each.text) for each in about)
        return f"{''.join(self.paragraphs(holds))}{bars}" + (f'<p class="al-rows">{last}</p>' if last else "")


class _Parts(_Sheet):
    """The statements of an explanation, as pieces of a page."""

    def __init__(self, explanation: Explanation) -> None:
        super().__init__(explanation)
        self.explanation = explanation
        self.words, self.digits = Words(explanation), say.digits_of(explanation)
        self.decision, self._verdict, *self._rest = say.statements_of(explanation)

    def verdict(self) -> str:
        """Return the verdict with a symbol, so that it does not rely on color."""
        code = self.explanation.verdict
        is_followed = any(each.amount or each.kind == "same" for each in self._rest)
        return (
            f'<span class="al-verdict al-{code.value}"><span aria-hidden="true">{_SYMBOLS[code]}</span> '
            f"{self.write(self._verdict.text)}{':' if is_followed else '.'}</span>"
        )

    def answer(self) -> str:
        """Return what follows the verdict: the case, the sum and the evidence."""
        same = next((each.text for each in self._rest if each.kind == "same"), "")
        lead = f"<p>{self.write(same)}{'' if same.endswith('.') else ':'}</p>" if same else ""
        return f"{lead}{self._instance()}{self._sum()}{self._evidence()}"

    def _instance(self) -> str:
        e = self.explanation
        markup = self.instance(e.contributions.tolist(), self.digits.contributions, "the sum")
        return markup + (_caption(CAPTIONS[str(e.space["kind"])]) if markup and e.facts else "")

    def _sum(self) -> str:
        """Return the sum as a table; the bars beside the numbers repeat them as a waterfall."""
        e, lines = self.explanation, [each for each in self._rest if each.amount]
        if not lines:
            return ""
        levels = [*accumulate(e.contributions.tolist(), initial=e.base)]
        scale = Scale([*levels, e.prediction])
        befores: list[float | None] = [None, *levels]
        rows = "".join(
            _row(line.kind, line.amount, self.write(line.text), sum_track(scale, before, after))
            for line, before, after in zip(lines, befores, levels, strict=False)
        )
        unit = f" [{self.words.unit.strip()}]" if self.words.unit else ""
        name = self.write(f"{self.words.output}{unit}")
        rows += _row("total", self.digits.total, name, sum_track(scale, e.prediction, None))
        head = (
            f'<th scope="col" class="al-number">adds</th><th scope="col">{escape(self.words.fact)}</th><td></td>'
        )
        return (
            f'<table class="al-sum"><caption class="al-hidden">The sum</caption><thead><tr>{head}</tr></thead>'
            f"<tbody>{rows}</tbody></table>{_caption(CAPTIONS['sum'])}"
        )

    def _evidence(self) -> str:
        """Return the evidence below the sum, with its shares (or typical errors) as bars, and the notes."""
        return "".join(
            paragraph + (self._meters() if each.kind in ("holds", "fit") else "")
            for each, paragraph in zip(self._rest, self.paragraphs(self._rest), strict=True)
            if not each.amount and each.kind != "same"
        )

    def _meters(self) -> str:
        e, words = self.explanation, self.words
        if not e.facts:
            return ""
        with_them, without = f"with {escape(words.these)}", f"without {words.them}"
        if e.holds is not None and e.all is not None:
            return meters([(with_them, e.holds), (f"with or {without}", e.all)], 1.0)
        if e.holds is None and e.fit is not None and e.fit.baseline > 0:
            largest = max(e.fit.error, e.fit.baseline)
            return meters([(with_them, e.fit.error), (without, e.fit.baseline)], largest)
        return ""


def _row(kind: str, number: str, text: str, track: str) -> str:
    return (
        f'<tr class="al-{kind}"><td class="al-number">{minus(number)}</td><th scope="row">{text}</th>'
        f'<td class="al-track">{track}</td></tr>'
    )


def _caption(text: str) -> str:
    return f'<p class="al-caption">{escape(text)}</p>'


def _fold(heading: str, body: str, *, is_open: bool = False) -> str:
    opened = " open" if is_open else ""
    return f"<details{opened}><summary><h2>{heading}</h2></summary>{body}</details>" if body else ""


def _folds(parts: _Sheet, details: Sequence[Statement]) -> str:
    """Return how we know, folded; the last part has the seal of the record."""
    folds = ""
    for heading, kinds in _FOLDS:
        body = "".join(parts.paragraphs(each for each in details if each.kind in kinds))
        if "settings" in kinds:
            body += _table("Record", [("SHA-256 of the JSON", json.loads(parts.result.to_json())["sha256"])])
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


def _values(explanation: Result) -> str:
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


def _frontier(explanation: Explanation, frontier: Frontier) -> str:
    """Return how many facts are needed, as a chart and its numbers."""
    if not math.isclose(frontier.prediction, explanation.prediction, rel_tol=1e-9):
        raise ParameterError(
            f"The frontier belongs to the prediction {frontier.prediction:.6g}, but the explained prediction is "
            f"{explanation.prediction:.6g}. Type e.to_html(explainer.frontier(row)) with the same row."
        )
    rows = [
        (
            str(point.k),
            f"{r2:.2f}",
            amount(error),
            ", ".join(say.fact_text(fact, frontier.space) for fact in point.facts),
        )
        for point, r2, error in zip(frontier.points, frontier.r2, frontier.errors, strict=True)
    ]
    facts = Words(explanation).facts
    return (
        f"<section><h2>How many {escape(facts)} are needed?</h2>{frontier_markup(frontier, CAPTIONS['frontier'])}"
        f"{_caption(CAPTIONS['frontier'])}"
        f"{_table('How many are needed', rows, ('number', 'R2', 'typical error', facts))}</section>"
    )
