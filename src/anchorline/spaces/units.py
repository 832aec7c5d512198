"""Cut a text into words or sentences, in any script, with the Unicode database of the standard library.

Every character is translated to a letter that names its class, so that the rules of Unicode's word boundaries
(UAX #29) become one regular expression over these letters. The rules are the default ones, with these choices: a
word has a letter or a digit, or it is a symbol such as an emoji; a colon does not join letters; and a single quote
ends a Hebrew word. Scripts without spaces between words, such as Chinese, Japanese and Thai, are cut into
characters with their marks, because only a dictionary could do better. All patterns take linear time.
"""

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

from anchorline.errors import InstanceError, ParameterError

Span = tuple[int, int]
Cut = Callable[[str], Iterable[Any]]

_SKIN_TONES = range(0x1F3FB, 0x1F400)
_REGIONS = range(0x1F1E6, 0x1F200)
# Scripts that are written without spaces, by the first words of their characters' names.
_WITHOUT_SPACES = frozenset(
    ["CJK", "HENTAIGANA", "HIRAGANA", "IDEOGRAPHIC", "KHMER", "LAO", "MYANMAR", "NEW", "TAI", "THAI"]
)
_BETWEEN = {
    **dict.fromkeys("'.\u2018\u2019\u2024\ufe52\uff07\uff0e", "'"),  # between two letters or two digits
    **dict.fromkeys("\u00b7\u0387\u055f\u05f4\u2027", ":"),  # between two letters
    **dict.fromkeys(",;\u037e\u0589\u060c\u060d\u066c\u07f8\u2044\ufe10\ufe14\ufe50\ufe54\uff0c\uff1b", ","),
    '"': '"',  # between two Hebrew letters
    "\u200d": "Z",  # between two symbols, or a mark
}
_MARKS = "[MZ]*+"
_WORD = re.compile(
    rf'(?:H{_MARKS}"{_MARKS}(?=H)|[AH]{_MARKS}(?:[\':]{_MARKS}(?=[AH]))?|9{_MARKS}(?:[\',]{_MARKS}(?=9))?|_{_MARKS})++'
    rf"|(?:K{_MARKS})++|C{_MARKS}|R{_MARKS}(?:R{_MARKS})?|S{_MARKS}(?:(?<=Z)S{_MARKS})*+"
)
_LINE = re.compile("[^N]++")
_SENTENCE_END = re.compile("(?<!T)T++C*+ ++(?=[^l ])|(?<!I)I[ITC]*+ *+")


def cut(text: str, unit: "str | Cut") -> list[Span]:
    """Return the spans (start, stop) of a text's units, in order and without overlap.

    ``unit`` is "word", "sentence", or a function of the text that returns pieces of the text in order, as most
    tokenizers do, or spans. Pieces of white space alone are skipped.

    Examples
    --------
    >>> text = "Don't panic! It costs 1,000.50 euros."
    >>> [text[start:stop] for start, stop in cut(text, "word")]
    ["Don't", 'panic', 'It', 'costs', '1,000.50', 'euros']
    >>> [text[start:stop] for start, stop in cut(text, "sentence")]
    ["Don't panic!", 'It costs 1,000.50 euros.']
    >>> cut("to be", lambda text: text.split())
    [(0, 2), (3, 5)]
    """
    if unit == "word":
        return words(text)
    if unit == "sentence":
        return sentences(text)
    if not callable(unit):
        raise ParameterError(
            f"unit is {unit!r}, but it must be 'word', 'sentence', or a function that cuts a text into a list of "
            "its pieces. Type unit='word'."
        )
    return _located(text, list(unit(text)))


def words(text: str) -> list[Span]:
    """Return the spans of the words, numbers, symbols and emoji of a text."""
    classes = text.translate({ord(c): _word_class(c) for c in set(text)})
    spans = [match.span() for match in _WORD.finditer(classes)]
    return [span for span in spans if classes[span[0]] != "_" or classes[slice(*span)].strip("_MZ")]


def sentences(text: str) -> list[Span]:
    """Return the spans of the sentences of a text, without the white space around them; a line end is an end."""
    classes = text.translate({ord(c): _sentence_class(c) for c in set(text)})
    spans = []
    for line in _LINE.finditer(classes):
        ends = [match.end() for match in _SENTENCE_END.finditer(classes, *line.span())]
        for start, stop in zip([line.start(), *ends], [*ends, line.end()], strict=True):
            piece = classes[start:stop]
            first, last = start + len(piece) - len(piece.lstrip(" ")), start + len(piece.rstrip(" "))
            if piece[first - start : last - start].strip("TCI "):
                spans.append((first, last))
    return spans


def is_symbol(unit: str) -> bool:
    """Return whether a unit is a symbol, such as an emoji."""
    return _word_class(unit[0]) in ("S", "R")


@functools.cache
def _word_class(character: str) -> str:
    """Return the class of a character in a word: A, H, K and C letters, 9 digits, M marks, Z the joiner, ..."""
    category, code = unicodedata.category(character), ord(character)
    if character in _BETWEEN:
        return _BETWEEN[character]
    if category[0] == "M" or category == "Cf" or code in _SKIN_TONES:
        return "M"
    if code in _REGIONS:
        return "R"
    if category[0] == "L" or category == "Nl":
        return _letter_class(unicodedata.name(character, ""))
    if category[0] == "N":
        return "9"
    return {"Pc": "_", "So": "S"}.get(category, " ")


def _letter_class(name: str) -> str:
    if name.partition(" ")[0] in _WITHOUT_SPACES:
        return "C"
    return "K" if "KATAKANA" in name else "H" if name.startswith("HEBREW") else "A"


@functools.cache
def _sentence_class(character: str) -> str:
    """Return the class of a character in a sentence: T and I end it, C closes, N ends a line, l is lowercase."""
    if character in "\n\r\v\f\x85\u2028\u2029":
        return "N"
    if character in "\u3002\uff01\uff1f\uff61":
        return "I"
    if character in ".!?\u2026\u061f\u06d4\u0964\u0965\u203c\u203d\u2047\u2048\u2049":
        return "T"
    if character.isspace():
        return " "
    category = unicodedata.category(character)
    if category in ("Pe", "Pf") or character in "\"'":
        return "C"
    return "l" if category == "Ll" else "x"


def _located(text: str, pieces: list[Any]) -> list[Span]:
    """Return where the pieces of a text are, which a function of the user returned as texts or spans."""
    spans, position = list[Span](), 0
    for piece in pieces:
        if isinstance(piece, str):
            start = text.find(piece, position)
            stop = start + len(piece)
        else:
            start, stop = _as_span(piece)
        if not position <= start <= stop <= len(text):
            raise InstanceError(
                f"unit returned {piece!r:.80}, which is not in the text after position {position}. It must return "
                "pieces of the text in order, or pairs (start, stop). Type, say, unit=str.split."
            )
        if text[start:stop].strip():
            spans.append((start, stop))
        position = stop
    return spans


def _as_span(piece: Any) -> Span:
    try:
        start, stop = (int(end) for end in piece)
    except (TypeError, ValueError):
        raise ParameterError(
            f"unit returned {piece!r:.80}, but it must return texts, or pairs (start, stop). Type, say, "
            "unit=str.split."
        ) from None
    return start, stop
