"""HTML: a view for notebooks and a page to file, each one string without scripts or network access.

Every sentence is one of `statements`; this file only lays them out: the decision, the verdict, the sum, the
evidence, and folded below them how we know.
"""

import base64
import hashlib
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
    escape,
    frontier_markup,
    meters,
    minus,
    picture_markup,
    style_sheet,
    sum_track,
    text_markup,
)
from anchorline.render.instances import LONGEST_TEXT, curve_of, picture_of, text_runs
from anchorline.render.statements import CAPTIONS, Statement, Words
from anchorline.result.explanation import Explanation, Verdict
from anchorline.result.frontier import Frontier

_MANY_VALUES = 12  # more values of a case than this are folded
_SYMBOLS = {
    Verdict.EXPLAINED: "\N{CHECK MARK}",
    Verdict.PARTLY_EXPLAINED: "\N{ALMOST EQUAL TO}",
    Verdict.NOT_EXPLAINED: "\N{BALLOT X}",
    Verdict.ROBUST: "\N{IDENTICAL TO}",
    Verdict.UNDECIDED: "?",
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
    how = "".join(parts.paragraphs(say.details_of(explanation)))
    return (
        f'<div class="anchorline"><style>{style_sheet("sum.css")}</style>'
        f"<p><b>{parts.write(parts.decision.text)}</b> {parts.verdict()}</p>{parts.answer()}"
        f"<details><summary>How we know</summary>{how}</details></div>"
    )


def page(explanation: Explanation, frontier: Frontier | None = None) -> str:
    """Return the explanation as one self-contained page: the answer on top, folded below it how we know.

    It has no scripts, loads nothing, has light and dark colors, and prints on A4. The policy in its head allows
    its own style sheet, by its hash, and nothing else.

    Parameters
    ----------
    explanation
        The explanation to show.
    frontier
        The frontier of the same prediction, shown as a chart; that of another one raises `ParameterError`.
    """
    parts, style = _Parts(explanation), style_sheet("sum.css", "page.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="generator" content="anchorline"><meta name="referrer" content="no-referrer">'
        f"<title>{escape(parts.decision.text)}</title><style>{style}</style></head><body>"
        f'<main class="anchorline"><section><h1>{parts.write(parts.decision.text)}</h1><p>{parts.verdict()}</p>'
        f"{parts.answer()}{_caption(say.legend(explanation))}</section>"
        f"{'' if frontier is None else _frontier(explanation, frontier)}{_values(explanation)}{_folds(parts)}"
        f"<footer>{CAPTIONS['footer']}</footer></main></body></html>\n"
    )


class _Parts:
    """The statements of an explanation, as pieces of a page."""

    def __init__(self, explanation: Explanation) -> None:
        self.explanation, self.write = explanation, Sentences(explanation)
        self.words, self.digits = Words(explanation), say.digits_of(explanation)
        self.decision, self._verdict, *self._rest = say.statements_of(explanation)

    def paragraphs(self, statements: Iterable[Statement]) -> Iterable[str]:
        """Yield one paragraph per statement; effects and alternatives are indented."""
        for each in statements:
            yield f'<p class="al-{each.kind}">{self.write(each.text)}</p>'

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
        """Return the explained text, image or signal with its facts marked; nothing for a row of a table."""
        e, kind = self.explanation, self.explanation.space.get("kind")
        contributions = e.contributions.tolist()
        runs, picture, curve = text_runs(e), picture_of(e), curve_of(e)
        markup = ""
        if runs:
            markup = text_markup(runs, contributions, self.digits)
            markup += _caption(CAPTIONS["long"]) if sum(map(len, e.instance)) > LONGEST_TEXT else ""
        elif picture is not None:
            facts = zip(e.facts, self.digits.contributions, strict=True)
            labels = [f"{say.fact_text(fact, e.space)}: {printed}" for fact, printed in facts]
            markup = picture_markup(picture, contributions, labels)
        elif curve is not None:
            markup = curve_markup(curve, contributions, self.digits)
        return markup + (_caption(CAPTIONS[str(kind)]) if markup and e.facts else "")

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


def _folds(parts: _Parts) -> str:
    """Return how we know, folded; the last part has the seal of the record."""
    explanation, folds = parts.explanation, ""
    details = say.details_of(explanation)
    for heading, kinds in _FOLDS:
        body = "".join(parts.paragraphs(each for each in details if each.kind in kinds))
        if "settings" in kinds:
            body += _table("Record", [("SHA-256 of the JSON", json.loads(explanation.to_json())["sha256"])])
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


def _values(explanation: Explanation) -> str:
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
