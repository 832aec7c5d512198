"""A text as it was written, with the words that contribute marked by color and by pattern."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anchorline.render.characters import ELLIPSIS, cell_width, printable
from anchorline.render.markup import escape_attribute
from anchorline.render.summands import Summand, summands
from anchorline.spaces.text import literals_of

if TYPE_CHECKING:
    from anchorline.result.explanation import Explanation

_CONTEXT = 60  # characters on each side of a mark that a shortened text shows
_LONGEST = 20_000  # characters that a page shows in full
_LONGEST_WHOLE = 24  # characters of a word that stays on one line with its number
_LINES = 12  # in a terminal
# Underlined blue adds, underlined and reversed orange subtracts.
_PLUS, _MINUS, _END = "\x1b[4;38;5;32m", "\x1b[7;38;5;166m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of the text; ``term`` is the summand of its word, or None if it does not contribute."""

    text: str
    term: Summand | None = None


def is_text(explanation: "Explanation") -> bool:
    """Return whether the explained instance is a text that can be shown."""
    pieces = explanation.instance
    return (
        str(explanation.parameters.get("space", "")).startswith("text:")
        and len(pieces) % 2 == 1
        and all(isinstance(piece, str) for piece in pieces)
    )


def runs(explanation: "Explanation", context: int | None = None) -> list[Run]:
    """Return the text as stretches with and without a contribution; with ``context``, only what is near a mark.

    Examples
    --------
    >>> import anchorline as al
    >>> score = lambda texts: [0.5 * ("great" in text) for text in texts]
    >>> e = al.Explainer(score, al.Text(), output="score").explain("A great, great day", k=2)
    >>> [(run.text, run.term.signed if run.term else "") for run in runs(e)]
    [('A ', ''), ('great', '+0.25'), (', ', ''), ('great', '+0.25'), (' day', '')]
    """
    pieces = list(explanation.instance)
    terms = {term.index: part for term, part in zip(explanation.terms, summands(explanation).terms, strict=True)}
    literals = literals_of(pieces, explanation.literals)
    joined, plain = list[Run](), ""
    for place, piece in enumerate(pieces):
        term = terms.get(literals[place // 2]) if place % 2 else None
        if term is None:
            plain += piece
            continue
        joined += [Run(plain), Run(piece, term)]
        plain = ""
    joined = [run for run in [*joined, Run(plain)] if run.text]
    return joined if context is None else _near_marks(joined, context)


def _near_marks(joined: list[Run], context: int) -> list[Run]:
    """Shorten stretches without a mark to ``context`` characters next to the marks."""
    shortened = []
    for i, run in enumerate(joined):
        before, after = i > 0, i < len(joined) - 1
        room = context * (before + after) or 4 * context
        text = run.text
        if run.term is None and len(text) > room:
            head = text[: context if before else 0 if after else room].rstrip()
            tail = text[len(text) - context :].lstrip() if after else ""
            text = f"{head} {ELLIPSIS} {tail}".strip(" ") if head or tail else ELLIPSIS
            text = f"{'' if head or not before else ' '}{text}{' ' * (not tail and after)}"
        shortened.append(Run(text, run.term))
    return shortened


def text_markup(explanation: "Explanation") -> str:
    """Return the text as HTML with marked words, or an empty string if the instance is not a text.

    Everything is escaped. Words that add have a solid underline; words that subtract a wavy one.
    """
    if not is_text(explanation):
        return ""
    n_characters = sum(map(len, explanation.instance))
    shown = runs(explanation, None if n_characters <= _LONGEST else 5 * _CONTEXT)
    body = "".join(_marked(run) for run in shown)
    note = "" if n_characters <= _LONGEST else '<p class="note">The text is shortened.</p>'
    return f'<div class="al-text" dir="auto" tabindex="0" role="region" aria-label="The text">{body}</div>{note}'


def _marked(run: Run) -> str:
    text = escape_lines(run.text)
    if run.term is None:
        return text
    sign = "plus" if run.term.value > 0 else "minus"
    number = run.term.signed.replace("-", "\N{MINUS SIGN}")
    whole = "" if len(run.text) > _LONGEST_WHOLE or len(run.text.split()) > 1 else " al-whole"
    return (
        f'<mark class="al-{sign}{whole}" title="{escape_attribute(number)}"><bdi>{text}</bdi>'
        f"<sup>{escape_attribute(number)}</sup></mark>"
    )


def escape_lines(text: str) -> str:
    """Return text from data as HTML, with control codes visible; line ends and tabs stay."""
    parts = re.split("([\n\t])", text.replace("\r\n", "\n"))
    return "".join(part if part in ("\n", "\t") else escape_attribute(part) for part in parts)


def text_lines(explanation: "Explanation", width: int, *, color: bool, ascii: bool) -> list[str]:
    """Return the text for a terminal, shortened to what is near the marks, or no lines if it is not a text.

    Words that add are marked ``[+word]``, words that subtract ``[-word]``; colors only repeat that.
    """
    if not is_text(explanation):
        return []
    lines, line, room = list[str](), "", width
    for word, style in _words(explanation, ascii=ascii):
        cells = cell_width(word)
        if cells > room and line:
            lines.append(line.rstrip())
            line, room = "", width
            if not word.strip():
                continue
        line += f"{style}{word}{_END}" if color and style else word
        room -= cells
    lines = [*lines, line.rstrip()]
    more = "..." if ascii else ELLIPSIS
    return [*lines[:_LINES], more, ""] if len(lines) > _LINES else [*lines, ""]


def _words(explanation: "Explanation", *, ascii: bool) -> Iterator[tuple[str, str]]:
    """Yield the words of the text, and its spaces, with the style of each."""
    for run in runs(explanation, _CONTEXT):
        text = " ".join(map(printable, re.split(r"\s+", run.text)))
        text = text.encode("ascii", "backslashreplace").decode() if ascii else text
        if run.term is None:
            yield from ((word, "") for word in re.findall(" |[^ ]+", text))
        elif run.term.value > 0:
            yield f"[+{text}]", _PLUS
        else:
            yield f"[-{text}]", _MINUS
