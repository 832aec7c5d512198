"""What is said of a comparison and of a drift: blocks of sentences and rows, as text, as HTML, and as JUnit XML.

A block is written once and laid out twice, so that the page and the text cannot say different things.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape as xml_text
from xml.sax.saxutils import quoteattr

from anchorline.facts import Fact
from anchorline.render.characters import cell_width, pad
from anchorline.render.digits import amount, amounts, between, percent
from anchorline.render.drawings import document, escape, view
from anchorline.render.statements import class_text, column_text, decision_text, fact_text, shown
from anchorline.result.comparison import ChangedRow, Comparison, Drift, Gate, Move, Outcome
from anchorline.result.explanation import Output, Share

_MOVES = {
    Move.TURNED: "the other way",
    Move.ROSE: "more",
    Move.FELL: "less",
    Move.MOVED: "differently",
}
_MOST_LINES = 5  # of a list in text
_MOST_VALUES = 12  # of an example


@dataclass(frozen=True, slots=True)
class Block:
    """A heading, sentences, and a table with its column heads; ``is_list`` is shortened in text."""

    title: str
    sentences: tuple[str, ...]
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    is_list: bool = False


def junit(comparison: Comparison) -> str:
    """Return the gates as JUnit XML for build servers: a failed one fails, an undecided one is an error."""
    counts = {outcome: sum(gate.outcome is outcome for gate in comparison.gates) for outcome in Outcome}
    cases = []
    for gate in comparison.gates:
        says = _gate_sentence(gate, comparison.output)
        tag = {Outcome.PASSED: "", Outcome.FAILED: "failure", Outcome.UNDECIDED: "error"}[gate.outcome]
        inside = f"<{tag} message={quoteattr(_xml(says))}/>" if tag else ""
        cases.append(
            f'  <testcase classname="anchorline.compare" name={quoteattr(_xml(gate.what))}>{inside}</testcase>'
        )
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuite name="anchorline.compare" tests="{len(cases)}" failures="{counts[Outcome.FAILED]}" '
            f'errors="{counts[Outcome.UNDECIDED]}">',
            *cases,
            f"  <system-out>{xml_text(_xml(text(comparison)))}</system-out>",
            "</testsuite>\n",
        ]
    )


def gate_sentences(comparison: Comparison) -> list[str]:
    """Return one sentence per gate, with its outcome."""
    return [
        f"{gate.outcome.value.capitalize()}: {_gate_sentence(gate, comparison.output)}"
        for gate in comparison.gates
    ]


def _xml(text: str) -> str:
    """Return text without characters that XML 1.0 cannot hold."""
    return "".join(
        c for c in text if c in "\t\n" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c > "\uffff"
    )


# What is said


def blocks(result: Comparison | Drift) -> Iterator[Block]:
    """Yield what is said of a comparison or a drift, block by block."""
    return _drift_blocks(result) if isinstance(result, Drift) else _comparison_blocks(result)


def _comparison_blocks(comparison: Comparison) -> Iterator[Block]:
    yield Block("", tuple(_first(comparison)))
    if comparison.gates:
        rows = tuple((*_gate(gate, comparison.output)[:3], gate.outcome.value) for gate in comparison.gates)
        more = ("Undecided: the limits include what is allowed. More rows would narrow them.",)
        is_open = any(gate.outcome is Outcome.UNDECIDED for gate in comparison.gates)
        yield Block("Gates", more if is_open else (), ("figure", "allowed", "limits", "outcome"), rows)
    if comparison.parts:
        parts = tuple(
            (
                decision_text(part.value, comparison.output)
                if part.column is None
                else f"{column_text(part.column)}: {shown(part.value)}",
                _share_text(part.share),
                between(part.share.low, part.share.high, 1) + (", more than elsewhere" if part.is_more else ""),
                f"{part.share.n:,}",
            )
            for part in comparison.parts
        )
        yield Block("Decided differently, by part of the rows", (), ("rows", "share", "limits", "of rows"), parts)
    changed, n = comparison.changed, f"{comparison.n_explained:,} rows explained"
    if not changed:
        yield Block("Attributes", (f"No attribute is shown to act differently ({n}).",))
    else:
        acts = tuple(
            (
                column_text(each.attribute),
                _MOVES[each.move],
                f"{_effect(each.old)} → {_effect(each.new)}",
                f"at least {amount(each.change_low)}" if each.change_low else f"about {amount(each.change)}",
            )
            for each in changed
        )
        said = f"Effects on the output of a row, in units of {_output(comparison.output)} ({n})."
        columns = ("attribute", "acts", "typical effect", "change per row")
        yield Block("Attributes that act differently", (said,), columns, acts)
    if comparison.rows:
        cases = tuple(_row(each, comparison) for each in comparison.rows)
        head: tuple[str, ...] = ("row", _output(comparison.output), "decision", "old explanation")
        dropped = 2 if comparison.within is not None else 1 if comparison.output.kind == "label" else None
        if dropped is not None:  # numbers are not decided, and labels are all that there is to read
            head, *others = (row[:dropped] + row[dropped + 1 :] for row in (head, *cases))
            cases = tuple(others)
        yield Block("Rows to read", (), head, cases, is_list=True)
    if comparison.n_rules:
        tried = f"The old model's rules of {comparison.n_rules:,} rows were tried on the new one"
        said = f"{tried}, which breaks {len(comparison.rules):,} of them."
        broken = tuple(
            (
                str(rule.row),
                f"{percent(rule.old.value)} → {percent(rule.new.value)}",
                f"{_facts(rule.facts, comparison)}: not for {_example(rule.example, comparison)}",
            )
            for rule in comparison.rules
        )
        yield Block(
            "Rules", (said,), ("row", "holds", "rule, and a copy decided differently"), broken, is_list=True
        )


def _first(comparison: Comparison) -> Iterator[str]:
    share, within, refuted = comparison.decisions, comparison.within, comparison.reasons
    decides = "decides" if within is None else "answers"
    by = "" if within is None else f", by more than {amount(within)}{_unit(comparison.output)}"
    rows = f"{_share_text(share)} of {share.n:,} rows"
    limits = between(share.low, share.high, 1)
    yield f"The new model {decides} {rows} differently{by} (of rows like these: {limits})."
    of, alike = (
        f"Of {comparison.n_explained:,} rows explained",
        "decided alike" if within is None else "answered alike",
    )
    if refuted is None:
        yield f"{of}, none is {alike} and has an old explanation that holds."
    else:
        are, have = ("are", "have") if refuted.n > 1 else ("is", "has")
        limits = between(refuted.low, refuted.high, 1)
        yield (
            f"{of}, {refuted.n:,} {are} {alike} and {have} an old explanation that holds. The new model refutes "
            f"{_share_text(refuted)} of these ({limits})."
        )


def _share_text(share: Share) -> str:
    return "none" if share.value == 0 else f"{max(100 * share.value, 0.1):.1f}%"


def _row(each: ChangedRow, comparison: Comparison) -> tuple[str, ...]:
    decision = ""
    if each.old_decision is not None and each.new_decision is not None:
        old, new = (decision_text(own, comparison.output) for own in (each.old_decision, each.new_decision))
        decision = old if old == new else f"{old} → {new}"
    facts = _facts(each.facts, comparison) or ("none" if each.kept is None else "none needed")
    lost = " (no longer holds)" if each.kept is False else ""
    return str(each.row), f"{amount(each.old)} → {amount(each.new)}", decision, facts + lost


def _example(values: Sequence[object], of: Comparison) -> str:
    """Return the values of a copy with the names of their columns; those of wide tables in part."""
    texts = [
        "missing" if value is None else f"{value:.6g}" if isinstance(value, float) else shown(value)
        for value in values
    ]
    named = [f"{column_text(name)} = {text}" for name, text in zip(of.space["names"], texts, strict=True)]
    more = len(named) - _MOST_VALUES
    return ", ".join(named[:_MOST_VALUES]) + (f" and {more} more" if more > 0 else "")


def _facts(facts: Iterable[Fact], of: Comparison) -> str:
    return " and ".join(fact_text(fact, of.space) for fact in facts)


def _output(output: Output) -> str:
    if output.kind == "label":
        return "the share with the old decision"
    name = "the output" if output.name == "f(x)" else class_text(output.name)
    unit = f" ({shown(output.unit)})" if output.unit else ""
    return f"P({name})" if output.is_probability else f"{name}{unit}"


def _unit(output: Output) -> str:
    return f" {shown(output.unit)}" if output.unit else ""


def _gate(gate: Gate, output: Output) -> tuple[str, str, str, str]:
    """Return what a gate is about, what is allowed, the limits, and the unit of both."""
    low, high = gate.figure.low, gate.figure.high
    names = {"decisions": "decided differently", "reasons": "old explanation refuted"}
    if gate.what in names:
        return names[gate.what], f"at most {100 * gate.most:g}%", between(low, high, 1), ""
    allowed = f"at most {amount(gate.most)}"
    return f"{shown(gate.what)} acts more", allowed, " to ".join(amounts((low, high))), _unit(output)


def _gate_sentence(gate: Gate, output: Output) -> str:
    name, allowed, limits, unit = _gate(gate, output)
    return f"{name}: {limits}{unit}, allowed {allowed}{unit}."


def _drift_blocks(drift: Drift) -> Iterator[Block]:
    change, unit = drift.change, _unit(drift.output)
    name = _output(Output(kind="number", name=drift.output.name, is_probability=drift.output.is_probability))
    values = f"{' and '.join(amounts((drift.before, drift.after)))}{unit}"
    value, low, high = _signed(change.value, change.low, change.high)
    limits = f"{low} to {high}; {drift.n_before:,} and {drift.n_after:,} rows"
    differs = f"differs by {value}" if drift.is_real else "is not shown to differ"
    said = f"The average of {name} {differs}: {values} ({limits})."
    drifted = drift.drifted
    yield Block("", (said,) if drifted else (said, "No attribute is shown to add more or less than before."))
    if drifted:
        rows = tuple(
            (
                column_text(each.attribute),
                " → ".join(_signed(each.before, each.after)),
                _signed(each.change.value, each.change.low, each.change.high)[0],
                " to ".join(_signed(each.change.value, each.change.low, each.change.high)[1:]),
            )
            for each in drifted
        )
        head = ("attribute", "adds on average", "change", "limits")
        yield Block("Attributes that add more or less", (), head, rows)


def _effect(size: float) -> str:
    """Return a typical effect; what is left of one after the noise is taken off may be nothing."""
    return amount(size) if size else "too small to measure"


def _signed(*values: float) -> tuple[str, ...]:
    """Return signed amounts with one number of decimals."""
    are_signed = ((text, text.strip("-0.,")) for text in amounts(values))  # nothing remains of zero
    return tuple(text if text.startswith("-") or not digits else f"+{text}" for text, digits in are_signed)


# How it is laid out


def text(result: Comparison | Drift) -> str:
    """Return what `print` shows."""
    lines: list[str] = []
    for block in blocks(result):
        if block.title and block.rows:
            lines.append(f"{block.title}:")
        lines += block.sentences
        rows = block.rows[:_MOST_LINES] if block.is_list else block.rows
        if rows:
            widths = [max(map(cell_width, column)) for column in zip(block.head, *rows, strict=True)]
            cells = ([pad(cell, n) for cell, n in zip(row, widths, strict=True)] for row in (block.head, *rows))
            lines += [f"  {'  '.join(each)}".rstrip() for each in cells]
        if len(rows) < len(block.rows):
            lines.append(f"  ... and {len(block.rows) - len(rows):,} more")
    return "\n".join(lines)


def page(result: Comparison | Drift) -> str:
    """Return one page without scripts or network."""
    title = "Rows before, rows after" if isinstance(result, Drift) else "Old model, new model"
    first, *others = blocks(result)
    body = f"<section><h1>{escape(title)}</h1>{_paragraphs(first)}</section>"
    return document(title, body + "".join(f"<section>{_html(block)}</section>" for block in others))


def fragment(result: Comparison | Drift) -> str:
    """Return the view for a notebook cell."""
    return view("".join(_html(block, "al-sum") for block in blocks(result)))


def _html(block: Block, table: str = "values") -> str:
    title = f"<h2>{escape(block.title)}</h2>" if block.title else ""
    return f"{title}{_paragraphs(block)}{_table(block, table)}"


def _paragraphs(block: Block) -> str:
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in block.sentences)


def _table(block: Block, name: str) -> str:
    if not block.rows:
        return ""
    first = 'th scope="row"' if not block.is_list else "td"
    whole = ' class="al-number"' if block.is_list else ""  # in lists, only the last column is broken into lines
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in block.head)
    body = ""
    for start, *middle, last in block.rows:
        cells = "".join(f"<td{whole}>{escape(cell)}</td>" for cell in middle)
        body += f"<tr><{first}{whole}>{escape(start)}</{first[:2]}>{cells}<td>{escape(last)}</td></tr>"
    return f'<table class="{name}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
