"""Every sentence about an explanation or a rule, as typed statements that are derived from its figures.

`statements_of` is what `print` says of a result, `details_of` is how we know it. Text, notebook view, terminal
table, report and summaries are made from them, so that no reader is shown a sentence that no figure supports.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from functools import singledispatch
from itertools import pairwise
from typing import Any

from anchorline.facts import Fact
from anchorline.laws import replace_probability
from anchorline.render.characters import ELLIPSIS, printable
from anchorline.render.digits import (
    PrintedSum,
    amount,
    amounts,
    at_least,
    between,
    date_text,
    exact_number,
    own_number,
    percent,
    printed_sum,
)
from anchorline.result.explanation import Explanation, Fit, Output, Share, Verdict
from anchorline.result.reasons import PRINCIPAL, Reasons, Recourse, StatedReason, Use
from anchorline.result.rule import CoveringRule, Rule, Rules, RuleVerdict

Result = Explanation | Rule
Subject = Result | Reasons

LONGEST = 60  # characters of a category or a name; longer ones are cut in the middle
_MANY = 10  # numbers of rows in a sentence
ROUGH = 0.5  # R2 below which the amounts of a decision's sum are called rough
_FAR = 0.02  # of the range, by which base and mean output of copies may differ without a word
_FEW = 4  # names in a sentence about how copies are drawn
_SAME = 0.02  # of the spread, within which numbers count as the same
_NUMBER = re.compile(r"[-+]?\d[\d.]*")
_DATE = re.compile(r"\d{4,}-\d\d-\d\dT[\d:.]+")  # as records hold dates
_FRACTIONS = {
    1 / 10: "a tenth",
    1 / 5: "a fifth",
    1 / 4: "a quarter",
    1 / 3: "a third",
    1 / 2: "half",
    2 / 3: "two thirds",
    3 / 4: "three quarters",
    9 / 10: "nine tenths",
}
LACKS = {"text": ("lacks", "absent"), "image": ("hides", "hidden"), "signal": ("hides", "hidden")}
_ROUNDING = 1e-12  # of typical differences
_PROVEN = {"leaves": "for the model's trees", "listed": "for all possible copies"}
_NOUNS = {"text": "words", "image": "regions", "signal": "stretches"}
_VERDICTS = {
    Verdict.EXPLAINED: "{these} {explain} it",
    Verdict.PARTLY_EXPLAINED: "{these} {explain} it in part",
    Verdict.NOT_EXPLAINED: "{these} {do} not explain it",
    Verdict.ROBUST: "hardly anything changes it",
    Verdict.UNDECIDED: "whether {these} {explain} it is undecided",
}
_NOTES = {  # by code of a finding, the gravest first; about one column, and about several
    "target": ("{0} may be the outcome.", "{0} may be the outcome."),
    "target-copy": ("{0} determines the outcome.", "{0} determine the outcome."),
    "target-leak": ("{0} may follow the outcome.", "{0} may follow the outcome."),
    "id": ("{0} may only identify rows.", "{0} may only identify rows."),
    "scale": ("{0} may have another scale.", "{0} may have other scales."),
    "lost-missing": ("{0} may code missing values.", "{0} may code missing values."),
    "lost-type": ("{0} holds numbers or dates as texts.", "{0} hold numbers or dates as texts."),
    "indicators": ("{0} may be one part of a category.", "{0} may be parts of a category."),
    "dependent-columns": (
        "{0} is closely related to other columns, but altered separately.",
        "{0} are closely related to other columns, but altered separately.",
    ),
}
_USUAL_SIGMA, _USUAL_CONFIDENCE = 1.0, 0.95
_GRAVE = ("target", "target-copy", "target-leak", "id", "scale", "lost-missing")  # not only in the details


@dataclass(frozen=True, slots=True)
class Statement:
    """A claim: its kind, its text, the figures behind it, and the printed amount if it is a line of the sum.

    Kinds of `statements_of`: "decision", "verdict", "start", "fact", "holds", "same", "rows", "fit", "advice" and
    "note"; of `details_of`: "legend", "law", "effect", "share", "rows", "fit", "limits", "proof", "queries",
    "alternative", "note" and "settings". A rule has "rule", "best", "fact", "holds", "rows" and "scope".
    """

    kind: str
    text: str
    figures: Mapping[str, Any] = field(default_factory=dict)
    amount: str = ""


@singledispatch
def statements_of(result: Any) -> tuple[Statement, ...]:
    """Return what is said; of an explanation: decision, verdict, sum, evidence, notes, in this order."""
    explanation: Explanation = result
    words, digits = Words(explanation), digits_of(explanation)
    is_robust = explanation.verdict is Verdict.ROBUST
    evidence = _same(explanation, words) if is_robust else _evidence(explanation, words)
    return (
        _decision(explanation, words, digits),
        _verdict(explanation, words),
        *(evidence if is_robust else ()),
        *(_sum(explanation, digits) if explanation.facts else ()),
        *(() if is_robust else evidence),
        *[note for note in _notes(explanation) if note.figures["code"] in _GRAVE][:1],
        *(
            Statement("note", text)
            for text in _unusual(explanation, explanation.all, explanation.holds, explanation.fit)
        ),
    )


def digits_of(explanation: Explanation) -> PrintedSum:
    """Return the sum as it is printed everywhere."""
    return _printed(explanation, explanation.contributions.tolist(), explanation.base)


def _printed(result: Subject, contributions: Sequence[float], base: float) -> PrintedSum:
    """Return contributions to a prediction as they are printed; decimals show its side of a threshold."""
    output = result.output
    is_probability = output.is_probability or output.kind == "label"
    return printed_sum(
        contributions, base, result.prediction, is_probability=is_probability, line=output.threshold
    )


class Words:
    """The words for what a result is about: its output, its decision, its facts, and what copies like it do."""

    def __init__(self, explanation: Subject) -> None:
        output, space = explanation.output, explanation.space
        self.facts = shown(space.get("noun") or _NOUNS.get(space.get("kind", ""), "facts"))
        self.fact = singular(self.facts)
        self.is_one = len(explanation.facts) == 1
        self.these, self.them = (f"this {self.fact}", "it") if self.is_one else (f"these {self.facts}", "them")
        self.unit = f" {shown(output.unit)}" if output.unit else ""
        self.is_number = output.kind == "number"
        self.is_probability = output.is_probability
        self.decision = _decided(explanation)
        self.names_class = output.is_probability or bool(output.classes)  # else the decision names the threshold
        name = "output" if output.name == "f(x)" else shown(output.name)
        name = name if self.is_number else class_text(name)
        is_score = output.kind == "class" and not output.is_probability
        contrast = _contrast(explanation)
        if contrast is not None:
            of, that = (f"{output.scale} of ", "that of ") if output.scale else ("", "")
            self.output, self.noun = f"{of}{contrast[0]} minus {that}{contrast[1]}", "difference"
        elif output.is_probability:
            self.output, self.noun = f"P({name})", "probability"
        elif output.kind == "label":
            self.output, self.noun = name, "answer (1 or 0)"
        elif output.scale:
            self.output, self.noun = f"{output.scale} of {name}", output.scale
        else:
            self.output, self.noun = f"score of {name}" if is_score else name, "score" if is_score else name
        self.keep = "get this decision"
        if self.is_number:
            size = f"{amount(_SAME * output.spread)}{self.unit}" if output.spread else ""
            self.keep = f"get this {self.noun} to within {size}" if size else f"get exactly this {self.noun}"


def singular(noun: str) -> str:
    """Return one of what facts are called.

    >>> singular("regions"), singular("stretches")
    ('region', 'stretch')
    """
    return {"stretches": "stretch"}.get(noun, noun.removesuffix("s"))


def shown(value: Any) -> str:
    """Return a text from data for readers: on one line, without control codes, cut in the middle if it is long.

    >>> shown("a" * 40 + "b" * 40)
    'aaaaaaaaaaaaaaaaaaaaaaaaaaaaa…bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'
    """
    text = printable(" ".join(str(value).split()) if isinstance(value, str) else str(value))
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2 - 1]}{ELLIPSIS}{text[-LONGEST // 2 :]}"


@dataclass(frozen=True, slots=True)
class Naming:
    """What readers call columns and classes, and the units of columns; the record keeps its own names."""

    columns: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    classes: Mapping[str, str] = field(default_factory=dict)


_OWN_NAMES = Naming()
_naming: ContextVar[Naming] = ContextVar("naming", default=_OWN_NAMES)


@contextmanager
def naming(names: Naming) -> Iterator[None]:
    """Call columns and classes by these names in all texts that are made meanwhile.

    >>> with naming(Naming({"inc": "yearly income"}, {"inc": "USD"})):
    ...     fact_text(Fact("inc", "inc", "below", high=39000.0, value=32000.0), here=True)
    'yearly income < 39,000 USD (here 32,000)'
    """
    token = _naming.set(names)
    try:
        yield
    finally:
        _naming.reset(token)


def column_text(name: Any) -> str:
    """Return what readers call a column or an attribute."""
    return shown(_naming.get().columns.get(str(name), name))


def class_text(label: Any) -> str:
    """Return the label of a class for readers; a number or boolean is called a class, and a mere sign is quoted.

    >>> class_text("declined"), class_text(1), class_text(True), class_text("-")
    ('declined', 'class 1', 'class True', '"-"')
    """
    named = _naming.get().classes.get(str(label))
    if named is not None:
        return shown(named)
    text = shown(label)
    if not any(map(str.isalnum, text)):
        return f'"{text}"'
    return f"class {text}" if _NUMBER.fullmatch(text) or text in ("True", "False") else text


def fact_text(fact: Fact, space: Mapping[str, Any] | str = "table", *, here: bool = False) -> str:
    """Return a fact in words; with ``here``, the instance's own value stands beside a bound.

    ``space`` is `Explanation.space`, or the kind of space.

    Examples
    --------
    >>> fact_text(Fact("income", "income", "below", high=39000.0, value=32000.0), here=True)
    'income < 39,000 (here 32,000)'
    >>> fact_text(Fact("age", "age", "between", low=13, high=40, value=15)), fact_text(Fact("a", "a", "missing"))
    ('13 <= age < 40', 'a is missing')
    >>> fact_text(Fact("free", "free", "present", value="free"), "text")
    '"free"'
    >>> fact_text(Fact("paid", "paid", "equals", value=1), "hypercube")
    'paid = +1'
    """
    kind = space if isinstance(space, str) else space.get("kind", "table")
    name, unit = column_text(fact.column), _naming.get().units.get(fact.column)
    if fact.kind == "missing":
        return f"{name} is missing"
    if fact.kind == "present":
        return f'"{shown(fact.value)}"' if kind == "text" else shown(fact.value)
    if fact.kind == "equals":
        if kind == "hypercube":  # a sign, or a statement of its own
            return shown(fact.value) if isinstance(fact.value, str) else f"{name} = {fact.value:+d}"
        value = value_text(fact.value, fact.column)
        return f"{name} = {value.replace(',', '') if isinstance(fact.value, (int, float)) else value}"  # a code
    low, high = (
        None if bound is None else value_text(bound, fact.column, is_bound=True) for bound in (fact.low, fact.high)
    )
    text = (
        f"{name} >= {low}" if high is None else f"{name} < {high}" if low is None else f"{low} <= {name} < {high}"
    )
    text += f" {shown(unit)}" if unit else ""
    return f"{text} (here {own_text(fact)})" if here and fact.value is not None else text


def value_text(value: Any, column: str = "", *, is_bound: bool = False) -> str:
    """Return one value of a case, or (``is_bound``) a bound, whose texts are dates; dates have no midnight.

    >>> value_text("2015-03-01T00:00:00.000000"), value_text("SI2"), value_text(39000.0)
    ('2015-03-01', 'SI2', '39,000')
    """
    if isinstance(value, str):
        if is_bound or _DATE.fullmatch(value):
            return date_text(shown(value))
        return shown(value) if value.strip() else f'"{printable(value)}"'
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return exact_number(value, column) if math.isfinite(value) else str(value)
    return "missing" if value is None else shown(value)


def own_text(fact: Fact) -> str:
    """Return the instance's own value as it stands beside a bound."""
    if isinstance(fact.value, str):
        return date_text(shown(fact.value), shown(fact.low or fact.high or ""))
    return own_number(fact.value, fact.low, fact.high, fact.column)


def _decided(explanation: Subject) -> str:
    """Return the model's decision in words; of the probability of one of two classes, the name of a class."""
    output, contrast = explanation.output, _contrast(explanation)
    if output.kind != "threshold" or output.threshold is None:
        return class_text(output.decision)
    is_above = explanation.prediction >= output.threshold
    if contrast is not None:
        return f"{contrast[not is_above]} rather than {contrast[is_above]}"
    if output.is_probability or (isinstance(explanation, Reasons) and output.classes):
        return _side_text(output, is_above)
    unit = f" {shown(output.unit)}" if output.unit else ""
    return f"{'at least' if is_above else 'below'} {exact_number(output.threshold)}{unit}"


def _side_text(output: Output, is_above: bool) -> str:
    """Return which class a threshold of a class's probability decides for."""
    others = [label for label in output.classes or () if str(label) != output.name]
    not_named = class_text(others[0]) if len(others) == 1 else f"not {class_text(output.name)}"
    return class_text(output.name) if is_above else not_named


def decision_text(decision: Any, output: Output) -> str:
    """Return a stored decision in words; on one side of a threshold of a probability, the name of a class.

    >>> from anchorline.result.explanation import Output
    >>> output = Output("threshold", "yes", is_probability=True, threshold=0.3, classes=("no", "yes"))
    >>> decision_text("below 0.3", output), decision_text("at or above 0.3", output)
    ('no', 'yes')
    """
    if output.is_probability and output.threshold is not None:
        sides = {f"below {output.threshold:g}": False, f"at or above {output.threshold:g}": True}
        if decision in sides:
            return _side_text(output, sides[decision])
    return class_text(decision)


def _contrast(explanation: Subject) -> tuple[str, str] | None:
    """Return the two classes whose difference of scores is explained, or None."""
    pair = explanation.output.choices.output
    return (class_text(pair[0]), class_text(pair[1])) if isinstance(pair, (list, tuple)) else None


def _decision(explanation: Explanation | Reasons, words: Words, digits: PrintedSum) -> Statement:
    output = explanation.output
    figures = {"prediction": explanation.prediction, "decision": output.decision}
    if words.is_number:
        return Statement("decision", f"Model's {words.output}: {digits.total}{words.unit}.", figures)
    if output.kind == "label":
        text = f"Model's decision: {words.decision} (counted as 1)."
        return Statement("decision", text, figures)
    text = f"Model's decision: {words.decision}, {words.output} = {digits.total}{words.unit}"
    side = _side(explanation, digits)
    is_always = bool(side) or (isinstance(explanation, Reasons) and words.names_class)
    text += _threshold(output, digits, side, is_always=is_always)
    if output.runner_up is not None:
        label, score = output.runner_up
        figures["runner_up"] = output.runner_up
        if any(digit in "123456789" for digit in digits.number(score)):  # 0.00 is not worth a name
            at = " at" if class_text(label) != shown(label) else ""
            text += f", next: {class_text(label)}{at} {digits.number(score)}"
    return Statement("decision", f"{text}.", figures)


def _side(explanation: Explanation | Reasons, digits: PrintedSum) -> str:
    """Return in words on which side of its threshold a probability lies whose digits do not show it."""
    prediction, line = explanation.prediction, explanation.output.threshold
    if line is None or prediction == line or not explanation.output.is_probability:
        return ""
    is_above, total = prediction > line, float(digits.total)
    is_shown = total > line if is_above else total < line
    return "" if is_shown else f"just {'above' if is_above else 'below'} the "


def _threshold(output: Output, digits: PrintedSum, side: str = "", *, is_always: bool = False) -> str:
    """Return the threshold of a probability, unless it is a half and there are two classes; or always."""
    is_usual = output.threshold == 0.5 and len(output.classes or ()) <= 2
    is_worth_it = is_always or (output.is_probability and not is_usual)
    if not is_worth_it or output.threshold is None:
        return ""
    printed = digits.number(output.threshold)
    is_exact = "e" not in printed and float(printed.replace(",", "")) == output.threshold
    return f" ({side}threshold {printed if is_exact else exact_number(output.threshold)})"


def _verdict(explanation: Explanation, words: Words) -> Statement:
    verdict, fit = explanation.verdict, explanation.fit
    figures: dict[str, Any] = {"verdict": verdict.value}
    if not explanation.facts and verdict is not Verdict.ROBUST:
        return Statement("verdict", f"No {words.facts} were found that explain it", figures)
    explain, do = ("explains", "does") if words.is_one else ("explain", "do")
    text = _VERDICTS[verdict].format(these=words.these, explain=explain, do=do)
    text = text[0].upper() + text[1:]
    if verdict is not Verdict.ROBUST:
        text += rough(explanation)
    if fit is not None:
        figures["r2"] = fit.r2
    return Statement("verdict", text, figures)


def rough(explanation: Explanation) -> str:
    """Return a word of warning if the amounts of a decision's sum are rough."""
    fit = explanation.fit
    is_rough = explanation.output.kind != "number" and fit is not None and fit.r2 < ROUGH
    return " (rough amounts)" if is_rough else ""


def _sum(explanation: Explanation, digits: PrintedSum) -> Iterator[Statement]:
    fit, output = explanation.fit, explanation.output
    text, mean = "start: about the average altered copy", None if fit is None else fit.mean_output
    if not _starts_at_average(explanation):
        text = "start" if mean is None else f"start (average copy: {digits.number(mean)})"
    yield Statement("start", text, {"base": explanation.base, "mean_output": mean}, digits.base)
    parts = zip(explanation.facts, explanation.contributions.tolist(), digits.contributions, strict=True)
    for fact, contribution, printed in parts:
        figures = {"column": fact.column, "contribution": contribution, "unit": output.unit}
        yield Statement("fact", fact_text(fact, explanation.space, here=True), figures, printed)


def _starts_at_average(explanation: Explanation) -> bool:
    """Return whether the base is about the mean output of copies, beside 1 for probabilities, or the spread."""
    output, fit = explanation.output, explanation.fit
    if fit is None:
        return False
    is_share = output.is_probability or output.kind == "label"
    span = 1.0 if is_share else output.spread or fit.baseline
    return abs(fit.mean_output - explanation.base) <= _FAR * span


def _same(explanation: Explanation, words: Words) -> tuple[Statement, ...]:
    """Return the share of all copies that get the same answer, where hardly anything changes it."""
    share, what = explanation.all, f"What moves the {words.noun} most{rough(explanation)}"
    if share is None:
        return ()
    text = f"{_of_copies(share, 'altered copies')} {words.keep}."
    moves = explanation.facts and explanation.output.kind != "label"
    return (Statement("same", f"{text} {what}" if moves else text, asdict(share)),)


def _of_copies(share: Share, copies: str, *, is_bound: bool = True) -> str:
    """Return how many copies a share is, in words: exactly, by its lower limit, or as a range."""
    if not share.is_exact:
        return f"{at_least(share.low) if is_bound else between(share.low, share.high)} of {copies}"
    exactly = f"{math.floor(100 * share.value + 1e-9)}% of {copies}"  # 94.9% is not 95%
    return {1.0: f"all {copies}", 0.0: f"no {copies}"}.get(share.value, exactly)


def _evidence(explanation: Explanation, words: Words) -> tuple[Statement, ...]:
    measured = _fits(explanation, words) if words.is_number else _holds(explanation, words)
    if not explanation.facts:
        return tuple(measured)
    if explanation.verdict is Verdict.NOT_EXPLAINED:
        n_facts, k = len(explanation.facts), explanation.settings.get("k")
        are_all_used = n_facts == k and n_facts < explanation.space.get("n_attributes", math.inf)
        what = f"More {words.facts} or a rule" if are_all_used else "A rule"
        return (*measured, Statement("advice", f"{what} may explain it."))
    return (*measured, *(() if words.is_number else _rows(explanation, words)))


def _holds(explanation: Explanation, words: Words) -> Iterator[Statement]:
    holds, all_ = explanation.holds, explanation.all
    if explanation.facts and holds is not None:
        copies = "copies" if _starts_at_average(explanation) else "altered copies"  # as in the line of the start
        kept = _of_copies(holds, copies, is_bound=explanation.verdict is Verdict.EXPLAINED)
        yield _stays(explanation, words, f"{kept} {words.keep}")
    elif not explanation.facts and all_ is not None:
        text = f"{percent(all_.value)} of altered copies get this decision."
        yield Statement("holds", text, {"all": all_.value})


def _stays(result: Result, words: Words, kept: str) -> Statement:
    """Return how often copies with the facts, and all copies, keep the decision."""
    text = f"With {words.these}, {kept}"
    figures = {
        f"holds_{name}": each for name, each in ({} if result.holds is None else asdict(result.holds)).items()
    }
    if result.all is not None:
        text += f"; with or without {words.them}, {percent(result.all.value)}"
        figures["all"] = result.all.value
    return Statement("holds", f"{text}.", figures)


def _rows(explanation: Result, words: Words) -> Iterator[Statement]:
    rows, row = explanation.rows, _rows_are(explanation)
    if rows is None or rows.alike is None:
        return
    it = "this decision" if words.is_one else "it"
    if rows.with_facts == 0:
        text = f"No {row} has {words.them}."
    elif rows.with_facts == 1 and not words.is_number:
        text = f"The one {row} with {words.them} {'gets' if rows.alike else 'does not get'} {it} from the model."
    else:
        alike = "all" if rows.alike == rows.with_facts else "none" if not rows.alike else f"{rows.alike:,}"
        get = f"the model puts {alike} that close" if words.is_number else f"{alike} get {it} from the model"
        text = f"Of {rows.with_facts:,} {row}{'s' * (rows.with_facts > 1)} with {words.them}, {get}."
    yield Statement("rows", text, asdict(rows))


def _rows_are(explanation: Result) -> str:
    """Return what a row is that the model was asked about: one of all, or of a sample."""
    rows, n_rows = explanation.rows, explanation.space.get("n_rows")
    return "sampled row" if rows and isinstance(n_rows, int) and rows.looked_at < n_rows else "table row"


def _typical(fit: Fit, words: Words) -> tuple[str, str]:
    """Return the typical error and baseline; an error that is mere rounding is 0."""
    error = fit.error if fit.error > _ROUNDING * fit.baseline else 0.0
    return f"{amount(error)}{words.unit}", f"{amount(fit.baseline)}{words.unit}"


def _fits(explanation: Explanation, words: Words) -> Iterator[Statement]:
    fit = explanation.fit
    if fit is None:
        return
    error, baseline = _typical(fit, words)
    if explanation.facts:
        copies = "copies" if _starts_at_average(explanation) else "altered copies"
        without = "facts" if words.facts == "facts" else words.them
        text = f"this sum is typically {error} off the model's {words.noun}; without {without}, {baseline}"
        if explanation.output.name == "f(x)" and not words.unit:  # nothing says of what the error is
            text = f"this sum typically misses the model's output by {error}; without {without}, by {baseline}"
        yield Statement("fit", f"For {copies}, {text}.", asdict(fit))
    else:
        text = f"For altered copies, the model's {words.noun} typically differs from this by {baseline}."
        yield Statement("fit", text, asdict(fit))


def _notes(explanation: Explanation) -> Iterator[Statement]:
    """Yield a short note per finding about columns in the facts, the gravest first; none takes back a verdict."""
    stated, order = {fact.column for fact in explanation.facts}, [*_NOTES]
    findings = [each for each in explanation.findings if each[0] in _NOTES]
    for code, columns in sorted(findings, key=lambda each: order.index(each[0])):
        named = [column for column in columns if column in stated]
        if named:
            text = _NOTES[code][len(named) > 1].format(_listed([column_text(column) for column in named]))
            yield Statement("note", text, {"code": code, "columns": named})


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# How we know.


def legend(explanation: Result) -> str:
    """Return what an altered copy is, in one sentence."""
    space, q = explanation.space, replace_probability(explanation.settings.get("sigma", 1.0))
    kind, words = space.get("kind", "table"), Words(explanation)
    if kind in LACKS:
        return f"An altered copy is this {kind}, but {LACKS[kind][0]} {_about(q / 2)} of the {words.facts}."
    if kind == "hypercube":
        return f"An altered copy is this case with {_about(q / 2)} of its values reversed."
    if kind != "table":
        return f"An altered copy is this case with {_about(q)} of its values replaced by random ones."
    source = "the reference" if space.get("reference") else "the table"
    rows = f"random rows of {source}"
    if space.get("neighbors") == "realistic":
        rows = f"one row of {source} that is like the rest of it"
    return f"An altered copy is this case with {_about(q)} of its values replaced by those of {rows}."


def _about(share: float) -> str:
    """Return a share in words."""
    if share > 0.97:
        return "all"
    if share < 0.07:
        return f"about {amount(100 * share, 1)}%"
    return f"about {_FRACTIONS[min(_FRACTIONS, key=lambda each: abs(math.log(each / share)))]}"


@singledispatch
def details_of(result: Any) -> tuple[Statement, ...]:
    """Return how we know: what a copy is, effects; what was measured; what is proven; and how it was asked."""
    explanation: Explanation = result
    words = Words(explanation)
    return (
        Statement("legend", legend(explanation)),
        _law(explanation, words),
        *_effects(explanation, words),
        *_shares(explanation, words),
        *_fit_details(explanation, words),
        *_limits(explanation, explanation.all, explanation.holds, explanation.fit),
        *_table_rows(explanation, words),
        _proof(explanation, words),
        *_alternatives(explanation),
        _queries(explanation, words),
        *_notes(explanation),
        *_settings(explanation),
    )


def _law(explanation: Result, words: Words) -> Statement:
    """Return how copies are drawn, with the probability that a value is replaced."""
    space, sigma = explanation.space, explanation.settings.get("sigma", 1.0)
    q = replace_probability(sigma)
    kind = space.get("kind")
    text = f"Each value is replaced with probability {q:.2g}"
    if kind in LACKS:
        text = f"Each {words.fact} is {LACKS[kind][1]} with probability {q / 2:.2g}"
    elif kind == "hypercube":
        text = f"Each value is reversed with probability {q / 2:.2g}"
    text += ", independently of the others" if space.get("neighbors", "independent") == "independent" else ""
    figures = {name: space[name] for name in ("held", "together", "valid") if space.get(name)}
    text += f" (sigma {sigma:g})."
    if "held" in figures:
        text += f" Never altered: {_few(figures['held'])}."
    if "together" in figures:
        groups = [_few(columns) for columns in figures["together"]]
        more = [f"and {len(groups) - _FEW} more groups"] if len(groups) > _FEW else []
        text += f" Altered together: {'; '.join([*groups[:_FEW], *more])}."
    text += " Copies that the given rule forbids are not drawn." if "valid" in figures else ""
    return Statement("law", text, {"sigma": sigma, "replace_probability": q} | figures)


def _unusual(explanation: Result, *measured: Share | Fit | None) -> Iterator[str]:
    """Yield what a reader must know if copies are closer to the case, or limits less sure, than usual."""
    sigma, confidence = explanation.settings.get("sigma", 1.0), explanation.settings.get("confidence", 1.0)
    if sigma > _USUAL_SIGMA:
        space, q = explanation.space, replace_probability(sigma)
        parts = Words(explanation).facts if space.get("kind") in LACKS else "values"
        share = q if space.get("kind") == "table" else q / 2
        yield f"A copy differs in {_about(share)} of the {parts} only."
    if confidence < _USUAL_CONFIDENCE:
        yield from (each.text for each in _limits(explanation, *measured))


def _few(names: Sequence[str]) -> str:
    """Return some names for a sentence, and how many more there are."""
    more = [f"{len(names) - _FEW} more"] if len(names) > _FEW else []
    return _listed([*map(shown, names[:_FEW]), *more])


def _effects(explanation: Explanation, words: Words) -> Iterator[Statement]:
    digits, effects = digits_of(explanation), explanation.effects.tolist()
    lacking = LACKS.get(explanation.space.get("kind", ""))
    if_broken = "if it did not hold" if lacking is None else f"if it were {lacking[1]}"
    in_copies = "does not hold in" if lacking is None else f"is {lacking[1]} in"
    parts = zip(explanation.facts, explanation.contributions.tolist(), effects, digits.contributions, strict=True)
    for fact, contribution, effect, printed in parts:
        number = digits.number(-effect)
        change = number if effect > 0 or number.startswith("-") else f"+{number}"
        broken = contribution / effect if effect else 0.0
        text = f"{fact_text(fact, explanation.space)}: {printed}{words.unit}; {if_broken}: {change}{words.unit}."
        text += f" It {in_copies} {percent(broken)} of copies."
        figures = {"column": fact.column, "contribution": contribution, "effect": effect, "broken": broken}
        yield Statement("effect", text, figures)


def _shares(explanation: Result, words: Words, exactly: str = "all were listed") -> Iterator[Statement]:
    is_table = explanation.space.get("kind") == "table"
    rows = f" by values of random rows with {words.them}" if is_table else ""
    for share, who in (
        (explanation.holds_drawn, f"Of copies made to have {words.these}{rows}"),
        (explanation.holds_law, f"Of copies that happen to have {words.these}"),
        (explanation.all, "Of all copies"),
    ):
        if share is not None:
            limits = (
                f"exact: {exactly}"
                if share.is_exact
                else f"limits {between(share.low, share.high, decimals=1)}; {share.n:,} copies"
            )
            yield Statement("share", f"{who}, {100 * share.value:.1f}% {words.keep} ({limits}).", asdict(share))
    if explanation.holds_drawn is not None and explanation.facts:
        text = f"Fewer than 5% of copies happen to have {words.these}, so their share was not measured."
        if explanation.holds_law is not None:
            text = "The smaller of the first two shares counts."
        yield Statement("share", text)


def _fit_details(explanation: Explanation, words: Words) -> Iterator[Statement]:
    fit = explanation.fit
    if fit is None:
        return
    error, baseline = _typical(fit, words)
    mean = f"{amount(fit.mean_output, 3)}{words.unit}"
    text = f"Copies typically differ from this {words.noun} by {baseline}; their average is {mean}."
    if explanation.facts:
        limits = "exact" if fit.is_exact else f"limits {fit.low:.2f} to {fit.high:.2f}"
        text += (
            f" The sum typically misses them by {error}, and explains R2 = {fit.r2:.2f} of the squared "
            f"differences ({limits}{', which are approximate' * fit.is_approximate}; {fit.n:,} copies)."
        )
    yield Statement("fit", text, asdict(fit))


def _limits(explanation: Result, *measured: Share | Fit | None) -> Iterator[Statement]:
    confidence = explanation.settings.get("confidence")
    if confidence is not None and any(each is not None and not each.is_exact for each in measured):
        yield Statement("limits", f"All limits hold together with {100 * confidence:g}% confidence.")


def _table_rows(explanation: Result, words: Words) -> Iterator[Statement]:
    rows = explanation.rows
    if rows is not None and explanation.facts:
        keep = words.keep if isinstance(explanation, Rule) else "get this decision"  # numbers have no such rows
        alike = "" if rows.alike is None else f"; {rows.alike:,} of them {keep}"
        text = f"{rows.with_facts:,} of {rows.looked_at:,} {_rows_are(explanation)}s have {words.these}{alike}."
        yield Statement("rows", text, asdict(rows))


def _proof(explanation: Explanation, words: Words) -> Statement:
    """Return what is proven about the choice of facts: a claim about the moments of the search only."""
    proof, source = explanation.proof, explanation.queries.source
    among = f"among {proof.n_candidates:,} {words.facts} that are related to the output"
    if not explanation.facts:
        text = f"No {words.facts} are stated: none explains 1% of the differences and more than chance would."
    elif proof.status == "proven":
        text = (
            f"Proven {_PROVEN.get(source, 'for the copies of the search')}: {among}, no sum of as many "
            f"{words.facts} fits better by more than 1% of the variance."
        )
    else:
        gap = (proof.objective - proof.lower_bound) / proof.variance if proof.variance > 0 else 0.0
        why = "the search reached its limit" if proof.status == "limit" else "rounding errors are too large"
        better = f"by at most {math.ceil(100 * max(gap, 0.0) - 1e-9)}% of the variance"
        text = f"Not proven, because {why}: {among}, a sum of as many {words.facts} may fit better {better}."
    return Statement("proof", text, asdict(proof))


def _queries(explanation: Result, words: Words) -> Statement:
    queries = explanation.queries
    measure = f"{queries.measured:,} to measure them"
    text = f"Copies shown to the model: {'all ' * (queries.source == 'listed')}{queries.searched:,} to find the "
    text += f"{words.facts}" + (f", {measure}" if queries.measured else "")
    if queries.source == "leaves":
        text = f"The {words.facts} were found from the leaves of the model's trees, without asking it. "
        text += f"Copies shown to the model: {measure}"
    text += f"; {queries.total:,} answers with the case itself."
    if queries.asks_twice:
        text += " Its scores do not determine its decisions, so both were asked, and both count."
    return Statement("queries", text, asdict(queries))


def _alternatives(explanation: Explanation) -> Iterator[Statement]:
    for other in explanation.alternatives:
        base = explanation.prediction - sum(other.contributions)
        is_probability = explanation.output.is_probability
        digits = printed_sum(other.contributions, base, explanation.prediction, is_probability=is_probability)
        facts = [
            f"{printed} {fact_text(fact, explanation.space)}"
            for fact, printed in zip(other.facts, digits.contributions, strict=True)
        ]
        text = f"As good within 1%: {digits.base} start, {', '.join(facts)}."
        yield Statement("alternative", text, {"objective": other.objective})


def _settings(explanation: Result) -> Iterator[Statement]:
    # Sorted, because a record that was read back has its keys in that order.
    settings = {name: value for name, value in sorted(explanation.settings.items()) if value is not None}
    for name, values in (("Settings", settings), ("Versions", dict(sorted(explanation.versions.items())))):
        if values:
            text = ", ".join(f"{shown(key)} {shown(value)}" for key, value in values.items())
            yield Statement("settings", f"{name}: {text}.", dict(values))


# A rule.


@statements_of.register
def _(rule: Rule) -> tuple[Statement, ...]:
    """Return for what a rule is, its facts, how often it holds, and for which rows.

    If no rule holds as often as was asked, that is said first, and the best one is not called a rule. Rows of the
    table are said of a rule that holds; of others they are in the details.
    """
    unusual = (Statement("scope", text) for text in _unusual(rule, rule.all, rule.holds))
    return *_rule_statements(rule, RuleWords(rule)), *unusual


def _rule_statements(rule: Rule, words: "RuleWords") -> tuple[Statement, ...]:
    verdict = {"verdict": rule.verdict.value, "asked": rule.settings.get("holds")}
    facts = [
        Statement("fact", fact_text(fact, rule.space, here=True), {"column": fact.column}) for fact in rule.facts
    ]
    if rule.verdict is RuleVerdict.FALLS_SHORT:
        text = f"For {words.subject}, no rule of {words.at_most} was found that holds in {words.asked} of altered"
        best = [Statement("best", "The best")] if facts else []
        return Statement("rule", f"{text} copies.", verdict), *best, *facts, _rule_holds(rule, words)
    if not facts:
        return (Statement("rule", _without_facts(rule, words), verdict | asdict(rule.holds)),)
    title = {
        RuleVerdict.UNDECIDED: "Possible rule for",
        RuleVerdict.MEASURED: f"Best rule of {words.at_most} found for",
    }.get(rule.verdict, "Rule for")
    return (
        Statement("rule", f"{title} {words.subject}{words.tolerance}", verdict),
        *facts,
        _rule_holds(rule, words),
        *(_rows(rule, words) if rule.verdict in (RuleVerdict.ALWAYS, RuleVerdict.HOLDS) else ()),
        Statement("scope", "Other cases may differ."),
    )


class RuleWords(Words):
    """The words for a rule: also what it is for, what copies do that meet it, and what was asked."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        asked, k, self.tolerance = rule.settings.get("holds"), rule.settings.get("k"), ""
        self.asked = "" if asked is None else f"{100 * asked:g}%"
        most = "few" if k is None else f"at most {shown(k)}"
        self.at_most = f"one {self.fact}" if k == 1 else f"{most} {self.facts}"
        output, within = rule.output, rule.within
        digits = _printed(rule, [] if within is None else [within], rule.prediction - (within or 0.0))
        if within is not None:
            is_given = rule.settings.get("within") is not None
            size = exact_number(within) if is_given else digits.contributions[0].removeprefix("+")
            self.subject = f"{self.output} {digits.total}{self.unit}"
            self.tolerance = f", give or take {size}{self.unit}"
            self.keep = f"stay within {size}{self.unit} of this {self.noun}"
        elif output.kind == "threshold" and not output.is_probability and _contrast(rule) is None:
            self.subject = f"{self.output} {self.decision}"
        else:
            self.subject = f"{self.decision}{_threshold(output, digits)}"


def _without_facts(rule: Rule, words: RuleWords) -> str:
    """Return what is said if no facts are stated, although the decision may stay as often as asked."""
    said = f"{_kept(rule, 'all altered copies')} {words.keep}"
    if rule.verdict in (RuleVerdict.ALWAYS, RuleVerdict.HOLDS):
        proven = " (proven)" if rule.verdict is RuleVerdict.ALWAYS else ""
        return f"No rule is needed for {words.subject}: {said}{proven}."
    if rule.verdict is RuleVerdict.UNDECIDED:
        return f"Whether {words.subject} needs a rule is undecided: {said}; {words.asked} were asked for."
    return f"For {words.subject}, no {words.facts} were found that raise this share: {said}."


def _rule_holds(rule: Rule, words: RuleWords) -> Statement:
    kept = f"{_kept(rule, 'altered copies')} {words.keep}"
    if rule.verdict is RuleVerdict.ALWAYS:
        kept += " (proven)"
    elif rule.verdict is RuleVerdict.UNDECIDED:
        kept += f" (whether {words.asked} do is undecided)"
    said = _stays(rule, words, kept)
    return said if rule.facts else replace(said, text=f"{percent(rule.all.value)} of altered copies {words.keep}.")


def _kept(rule: Rule, copies: str) -> str:
    """Return how many copies keep the decision: a bound if it decides, else a range; neither hides the verdict."""
    share, asked = rule.holds, 100 * (rule.settings.get("holds") or 0.0)
    if rule.verdict is RuleVerdict.ALWAYS or (share.is_exact and share.value in (0.0, 1.0)):
        return f"{'all' if share.value else 'no'} altered copies"
    if not share.is_exact and rule.verdict is RuleVerdict.HOLDS and math.floor(100 * share.low) < asked:
        return f"at least {asked:g}% of {copies}"  # 99.9%, if that was asked for
    if not share.is_exact and rule.verdict is RuleVerdict.FALLS_SHORT and math.ceil(100 * share.high) >= asked:
        return f"{between(share.low, share.high, decimals=1)} of {copies}"  # 93.1 to 94.6%, not 93 to 95%
    return _of_copies(share, copies, is_bound=rule.verdict is RuleVerdict.HOLDS)


@details_of.register
def _(rule: Rule) -> tuple[Statement, ...]:
    words = RuleWords(rule)
    is_read = rule.verdict is RuleVerdict.ALWAYS and rule.queries.source == "leaves"
    exactly = "read from the leaves of the model's trees" if is_read else "all were listed"
    return (
        Statement("legend", legend(rule)),
        _law(rule, words),
        *_tolerance(rule, words),
        *_shares(rule, words, exactly),
        *_limits(rule, rule.all, rule.holds),
        *_coverage(rule, words),
        *_table_rows(rule, words),
        _rule_proof(rule, words),
        _queries(rule, words),
        *_settings(rule),
    )


def _tolerance(rule: Rule, words: RuleWords) -> Iterator[Statement]:
    if rule.within is not None:
        size, why = f"{exact_number(float(f'{rule.within:.6g}'))}{words.unit}", ""
        if rule.settings.get("within") is None:
            why = f", which is 10% of this {words.noun} or of the outputs' spread, whichever is larger"
        text = f"A copy stays within {size} if the model's {words.noun} for it differs by at most that{why}."
        yield Statement("share", text, {"within": rule.within})


def _coverage(rule: Rule, words: RuleWords) -> Iterator[Statement]:
    if rule.facts:
        is_table = rule.space.get("kind") == "table"
        of_all = "all rows of the table" if is_table else "all possible combinations of values"
        text = f"Coverage: {100 * rule.coverage:.1f}% of {of_all} have {words.these}."
        yield Statement("rows", text, {"coverage": rule.coverage})


def _rule_proof(rule: Rule, words: RuleWords) -> Statement:
    """Return what is proven about the choice of facts, or that it was only found."""
    proof, figures = rule.proof, asdict(rule.proof)
    if not rule.facts and rule.is_reached and rule.verdict is not RuleVerdict.MEASURED:
        return Statement("proof", f"Without any {words.facts}, copies {words.keep} as often as asked.", figures)
    if proof.status == "proven":
        best = f"no rule of fewer {words.facts} holds in {words.asked} of copies, and none of as many covers more"
        if rule.verdict is RuleVerdict.MEASURED:
            best = f"no rule of {words.at_most} holds more often"
        elif rule.verdict is RuleVerdict.FALLS_SHORT:
            best = f"no rule of {words.at_most} holds in {words.asked} of copies"
        where = _PROVEN.get(rule.queries.source, "for all copies")
        return Statement("proof", f"Proven {where}: {best}, among all {words.facts} offered.", figures)
    compared = f"{proof.n_tried:,} rule{' was' if proof.n_tried == 1 else 's were'} compared"
    tried = f"{proof.n_certified:,} of them tried on fresh copies"
    better = "A rule that holds more often may exist"
    if rule.verdict in (RuleVerdict.ALWAYS, RuleVerdict.HOLDS):
        which = "that covers more" if words.is_one else f"of fewer {words.facts}, or one that covers more,"
        better = f"A rule {which} may exist"
    return Statement("proof", f"Found, not proven best: {compared}, and {tried}. {better}.", figures)


@statements_of.register
def _(rules: Rules) -> tuple[Statement, ...]:
    """Return how many rows several rules cover, each of them, and what was certified.

    A "rule" is followed by its "rows". Each rule was certified for copies of one row, so that of the other rows it
    is only said how many meet it, and what they get.
    """
    n = rules.n_rows
    figures = {"n_rules": len(rules), "covered": rules.n_covered, "n_rows": n, "status": rules.status}
    failed = f"{_count(rules.n_failed, 'row')} failed and {_have(rules.n_failed)} no rule."
    few, n_left = [f"{row:,}" for row in rules.left_over[:_MANY]], len(rules.left_over)
    more = [f"{n_left - _MANY:,} more"] if n_left > _MANY else []
    left = f"Left over: row{'s' * (n_left > 1)} {_listed([*few, *more])} (counted from 0)." if few else ""
    last = [Statement("left", text) for text in (left, failed if rules.n_failed else "") if text]
    given = "the row given" if n == 1 else f"the {n:,} rows given"
    if not rules.rules:
        text = f"No rule of {given} holds as often as asked and agrees with the rows that have its facts."
        return (Statement("cover", text, figures), *last[1 if rules.left_over else 0 :])
    whole = given if rules.n_covered == n else f"{rules.n_covered:,} of {_count(n, 'row')}"
    verb = "covers" if len(rules) == 1 else "cover"
    proof = f" (proven: no fewer of the {rules.n_candidates:,} candidates do)" if len(rules) > 1 else ""
    proof = proof if rules.is_proven else "; fewer may do"
    parts = [each for one in rules for each in _covering(one, n)]
    return (
        Statement("cover", f"{_count(len(rules), 'rule')} {verb} {whole}{proof}:", figures),
        *parts,
        *last,
        _certified([each.rule for each in rules]),
    )


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _have(n: int) -> str:
    return "has" if n == 1 else "have"


def _covering(one: CoveringRule, n_rows: int) -> Iterator[Statement]:
    """Yield one of several rules, and which of the rows given have its facts and get its decision."""
    rule, words = one.rule, RuleWords(one.rule)
    facts = " and ".join(fact_text(fact, rule.space) for fact in rule.facts)
    n_alike, n_have = len(one.alike), len(one.alike) + len(one.otherwise)
    yield Statement("rule", f"{words.subject}{words.tolerance}: {facts or 'any values'}.", {"row": one.row})
    get = "this decision" if rule.within is None else "such a value"
    who = f"{n_have:,} {_have(n_have)} {words.these}" if rule.facts else f"{n_have:,} are given"
    if n_have == 1:
        they = f"it gets {get}"
    elif n_alike == n_have:
        they = f"all of them get {get}"
    else:
        they = f"{n_alike:,} of them get{'s' * (n_alike == 1)} {get}"
    figures = {"alike": n_alike, "otherwise": len(one.otherwise)}
    yield Statement("rows", f"Of {_count(n_rows, 'row')}, {who}; {they}.", figures)


def _certified(rules: Sequence[Rule]) -> Statement:
    """Return for what the rules were certified: each for the copies of one row, and by itself."""
    shares = [1.0 if rule.verdict is RuleVerdict.ALWAYS else float(rule.settings["holds"]) for rule in rules]
    get = "get its decision" if rules[0].within is None else "stay within its tolerance"
    many = "all" if min(shares) == 1 else f"at least {100 * min(shares):g}%"
    measured = [rule.settings["confidence"] for rule in rules if not rule.holds.is_exact]
    alone = f", by itself with {100 * min(measured):g}% confidence" if measured else ""
    text = (
        f"Each rule was certified for the altered copies of one row{alone}: {many} of those with its facts {get}"
    )
    return Statement("scope", f"{text}. Nothing is certified for other rows.", {"holds": min(shares)})


# Reasons.


@statements_of.register
def _(reasons: Reasons) -> tuple[Statement, ...]:
    """Return the decision, each reason with its shortfall, what is close."""
    words = Words(reasons)
    side = "rises" if reasons.settings["adverse"] == "below" else "falls"
    reference = _reference_text(reasons, words)
    lead = f"Main reasons: how much {words.output} {side}, on average, with the values of {reference}:"
    return (
        _decision(reasons, words, _printed(reasons, [], reasons.prediction)),
        Statement("lead", lead, asdict(reasons.reference)),
        *_reasons(reasons),
        *_near_ties(reasons),
    )


def _reasons(reasons: Reasons) -> Iterator[Statement]:
    """Yield each reason, followed by what another value of it alone would do, if that was asked for."""
    found = [reasons.shortfall(reason.attribute) for reason in reasons]
    values, is_probability = [each.value for each in found], reasons.output.is_probability
    digits = printed_sum(values, 0.0, sum(values), is_probability=is_probability)
    for reason, shortfall, printed in zip(reasons, found, digits.contributions, strict=True):
        parts = zip(reason.columns, reason.values, strict=True)
        own = ", ".join(f"{column_text(name)} {value_text(value, name)}" for name, value in parts)
        text = f"{printable(' '.join(reason.text.split()))} ({shown(reason.code)}; {own})" if reason.text else own
        yield Statement("reason", text, asdict(shortfall), printed.removeprefix("+"))
        if reason.recourse is not None:
            yield Statement("recourse", _recourse_text(reason, reason.recourse), asdict(reason.recourse))


def _reference_text(reasons: Reasons, words: Words) -> str:
    """Return with which rows the case is compared."""
    reference, n = reasons.reference, f"{reasons.reference.n_rows:,}"
    if reference.kind == "near":
        ends = f"{' to '.join(amounts((reference.low or 0.0, reference.high or 0.0), 3))}{words.unit}"
        return f"{n} table rows that pass most narrowly ({words.output} {ends})"
    return f"all {n} table rows" if reference.kind == "all" else f"{n} reference rows"


def _recourse_text(reason: StatedReason, recourse: Recourse) -> str:
    """Return whether another value of one attribute alone turns the decision."""
    if recourse.nearest is None:
        tried = "" if recourse.is_complete else f" of {recourse.n_values:,} that were tried"
        return f"No other value of the reference{tried} alone would turn the decision."
    parts = zip(reason.columns, recourse.nearest, strict=True)
    nearest = ", ".join(f"{column_text(name)} = {value_text(value, name)}" for name, value in parts)
    about = "" if recourse.is_complete else "about "
    share = f"{about}{percent(recourse.share)} of the reference's values"
    return f"With {nearest} alone, the decision would turn, as it would with {share}."


def _near_ties(reasons: Reasons) -> Iterator[Statement]:
    if reasons.near_ties:
        names, n = _listed([column_text(name) for name in reasons.near_ties]), len(reasons.near_ties)
        text = f"Close: the limits of {names} overlap, so it is uncertain which of them are main reasons."
        if n == 1:
            is_stated = any(reason.attribute in reasons.near_ties for reason in reasons)
            text = (
                f"{names} may turn out not to be a main reason."
                if is_stated
                else f"{names} may turn out to be a main reason, too."
            )
            text = f"Close: {text}"
        yield Statement("note", text, {"near_ties": list(reasons.near_ties)})


@details_of.register
def _(reasons: Reasons) -> tuple[Statement, ...]:
    """Return what was compared, every attribute, what is close, the record of codes and model."""
    words, is_read = Words(reasons), reasons.source == "leaves"
    which = "higher" if reasons.settings["adverse"] == "below" else "lower"
    legend_text = (
        f"A shortfall says how much {which} {words.output} is, on average, in copies of this case that take a "
        "value from a random reference row than in copies that keep it. In both, each other value is replaced "
        "with probability 1/2."
    )
    sure = "Read from the leaves of the model's trees, without error."
    if not is_read:
        sure = f"All limits hold together with about {100 * reasons.settings['confidence']:g}% confidence."
    has = "The map of codes has the SHA-256 {}." if reasons.settings["codes"] else "No codes."
    is_known = "The model cannot be identified." if reasons.model is None else "The model has the SHA-256 {}."
    identity = f"{has.format(reasons.codes_sha256)} {is_known.format(reasons.model)}"
    settings = ", ".join(
        f"{shown(name)} {_listed([*map(shown, value)]) if isinstance(value, tuple | list) else shown(value)}"
        for name, value in sorted(reasons.settings.items())
        if name != "codes" and value not in ("", ())
    )
    versions = ", ".join(f"{shown(key)} {shown(value)}" for key, value in sorted(reasons.versions.items()))
    return (
        Statement("legend", legend_text),
        *_shortfalls(reasons, words),
        Statement("limits", sure),
        Statement("share", f"A main reason has at least {percent(PRINCIPAL)} of the largest shortfall."),
        Statement(
            "queries", f"The model was asked {reasons.n_queries:,} times.", {"n_queries": reasons.n_queries}
        ),
        Statement("settings", identity),
        Statement("settings", f"Settings: {settings}. Versions: {versions}."),
    )


def _shortfalls(reasons: Reasons, words: Words) -> Iterator[Statement]:
    own = dict(zip(reasons.space["names"], reasons.instance, strict=True))
    for each in reasons.shortfalls:
        value, low, high = amounts((each.value, each.low, each.high), 3)
        text = f"{column_text(each.attribute)}: {value}{words.unit}"
        if each.n:
            text += f" (limits {low} to {high}; {each.n:,} pairs of copies)"
        are_dates = isinstance(own.get(each.attribute), str)
        words_for = {"low": ("higher values", "later dates"), "high": ("lower values", "earlier dates")}
        better = words_for.get(each.direction or "")
        if better is not None and each.value > 0:
            text += f"; {better[are_dates]} are better"
        yield Statement("shortfall", f"{text}.", asdict(each))


def use_text(use: Use) -> str:
    """Return whether an attribute changes decisions, how many, and how surely."""
    changed = f"{use.n_changed:,}" if use.is_used else "none"
    others = [shown(name) for name in use.columns if name != use.attribute and use.attribute in use.columns]
    subject = (
        f"{shown(use.attribute)} with {_listed(others)} change" if others else f"{shown(use.attribute)} changes"
    )
    kind = "sets of values that the trees tell apart" if use.by_trees else "values"
    how = f"exact: each row was asked with all {use.n_values:,} {kind}"
    if use.n_values == 1:
        how = "exact: " + ("the trees never test it" if use.by_trees else "it has one value")
    if not use.is_exact:
        how = f"not exact: {use.n_tried:,} of {use.n_values:,} {kind} were tried"
    return f"{subject} {changed} of {use.n_rows:,} decisions in the table ({how}; {use.n_queries:,} queries)."


def band_caption(rule: Rule) -> str:
    """Return what the bands of a rule's picture are."""
    words, values = RuleWords(rule), "both values that an altered copy may have"
    if rule.space.get("kind") == "table":
        source = "the reference" if rule.space.get("reference") else "the table"
        values = f"all values of a column, each as wide as it is frequent in {source}"
    return f"A band has {values}. The frame is the {words.fact}, the triangle this case."


def shade_caption(rule: Rule) -> str:
    """Return what the shades of a rule's picture are."""
    words = RuleWords(rule)
    others = "" if words.is_one else f" and the other {words.facts}"
    return f"Color: how many of the altered copies with such a value{others} {words.keep}, in a small sample."


CAPTIONS = {  # of pictures, by the kind of space
    "sum": "The numbers add up exactly. Solid bars add; hollow bars subtract.",
    "text": "A straight underline adds; a wavy one subtracts. Small numbers are contributions.",
    "long": "The text is shortened to the surroundings of its marked words.",
    "image": "Shaded regions add; hatched ones with a dashed outline subtract. The second picture has only these.",
    "signal": "Shaded stretches add; those with a dashed outline subtract. Numbers are contributions.",
    "frontier": "How much of the differences a sum explains (R2), in the search; hollow: not proven best.",
    "rule of text": "The words of the rule are underlined.",
    "rule of image": "The regions of the rule are shaded. The second picture has only these.",
    "rule of signal": "The stretches of the rule are shaded.",
    "footer": "Made by anchorline. This page is self-contained: it loads nothing and runs no scripts.",
}


# ---- the whole model


def output_text(output: Output) -> str:
    """Return what readers call an output, such as ``P(approved)``."""
    if output.kind == "number":
        return "the output" if output.name == "f(x)" else shown(output.name)
    name = class_text(output.name)
    return f"P({name})" if output.is_probability else f"{output.scale or 'score'} of {name}"


def acting_text(
    column: str, output: Output, values: Sequence[str], means: Sequence[float], *, is_ordered: bool
) -> str:
    """Return how a column acts: what the average output does as the column takes some ``values``.

    >>> rate = Output("number", "rate")
    >>> acting_text("age", rate, ["18", "40", "70"], [0.2, 0.3, 0.6], is_ordered=True)
    'As age goes from 18 to 70, rate rises from 0.20 to 0.60 on average.'
    >>> acting_text("purpose", rate, ["car", "boat"], [0.5, 0.2], is_ordered=False)
    'On average, rate is highest for purpose = car (0.50) and lowest for boat (0.20).'
    """
    name, what = column_text(column), output_text(output)
    low, high = (means.index(end) for end in (min(means), max(means)))
    spread = output.spread or max(abs(mean) for mean in means)
    if means[high] - means[low] < 0.02 * spread:
        return f"{name} hardly changes {what}: on average, it stays near {amount(means[0])}."
    if not is_ordered:
        return (
            f"On average, {what} is highest for {name} = {values[high]} ({amount(means[high])}) and lowest for "
            f"{values[low]} ({amount(means[low])})."
        )
    ends = f"{amount(means[0])} to {amount(means[-1])}"
    steps = [after - before for before, after in pairwise(means)]
    total = means[-1] - means[0]
    if abs(total) < 0.8 * (means[high] - means[low]):
        peak = f"highest at {values[high]} ({amount(means[high])}), lowest at {values[low]} ({amount(means[low])})"
        return f"As {name} changes, {what} goes up and down: on average, it is {peak}."
    is_mostly = sum(step for step in steps if step * total < 0) * (1 if total < 0 else -1) > 0.1 * abs(total)
    verb = "rises" if total > 0 else "falls"
    verb = f"mostly {verb}" if is_mostly else verb
    return f"As {name} goes from {values[0]} to {values[-1]}, {what} {verb} from {ends} on average."


def group_text(column: str, label: str, groups: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    """Return which groups of cases get a decision most and least often, and whether that may be chance.

    >>> shares = [("f", {"value": 0.7, "low": 0.6, "high": 0.8}), ("m", {"value": 0.4, "low": 0.3, "high": 0.5})]
    >>> group_text("sex", "approved", shares)
    'The decision approved is rarest with sex m (40.0%), and most frequent with f (70.0%): more than chance.'
    """
    name = column_text(column)
    if len(groups) < 2:
        return f"Fewer than two groups of {name} have enough cases to compare."
    ordered = sorted(groups, key=lambda each: each[1]["value"])
    (least, low), (most, high) = ordered[0], ordered[-1]
    apart = "more than chance" if low["high"] < high["low"] else "this may be chance"
    shares = f"{low['value']:.1%}", f"{high['value']:.1%}"
    ends = f"rarest with {name} {least} ({shares[0]}), and most frequent with {most} ({shares[1]})"
    return f"The decision {label} is {ends}: {apart}."


def threshold_text(label: str, now: Mapping[str, float], best: Mapping[str, float]) -> str:
    """Return how often a threshold decides wrongly, and which one does so least often.

    >>> now, best = ({"threshold": t, "wrongly": w, "missed": 0.1} for t, w in ((0.5, 0.1), (0.6, 0.05)))
    >>> threshold_text("approved", now, best)
    'At 0.5, 20.0% of the decisions are wrong. The fewest, 15.0%, are wrong at 0.6.'
    """
    wrong = [f"{each['wrongly'] + each['missed']:.1%}" for each in (now, best)]
    text = f"At {now['threshold']:g}, {wrong[0]} of the decisions are wrong."
    if best["threshold"] == now["threshold"]:
        return f"{text} No other threshold here is wrong less often."
    return f"{text} The fewest, {wrong[1]}, are wrong at {best['threshold']:g}."


def ranking_text(label: str, area: float) -> str:
    """Return how often a score ranks two cases rightly, one of ``label`` and one of the other class.

    >>> ranking_text("approved", 0.86)
    'Of two cases, one approved and one not, the first scores higher in 86.0% (area under the ROC curve).'
    """
    pair = f"Of two cases, one {label} and one not"
    return f"{pair}, the first scores higher in {area:.1%} (area under the ROC curve)."
