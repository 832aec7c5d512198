"""Texts: a fact states that a word is there, and a neighbor may lack it."""

import copy
import functools
import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import compress, pairwise
from typing import Any, Literal

import numpy as np

from anchorline.errors import InstanceError, ParameterError, names_similar_keywords
from anchorline.facts import Fact
from anchorline.spaces.base import Space, TwoValued, name_of

MAX_UNITS = 4000  # an explanation of more says little, and takes gigabytes
_CALL_CHARACTERS = 2**25  # of one model call
_LONGEST_QUOTE = 40  # characters of a unit in a statement
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_REPEATED = " and its repeats"

Span = tuple[int, int]
Cut = Callable[[str], Iterable[Any]]


class Text(Space):
    """Texts; the pool of a word is that it is there and that it is absent, wherever it occurs.

    Parameters
    ----------
    unit
        What is taken out: "word", "sentence", or a function that cuts a text into pieces, such as
        ``jieba.lcut`` for Chinese or the tokenizer of a model; it may also return pairs (start, stop).
    removed
        What takes the place of a unit: nothing ("delete"), a mask such as "[MASK]", or a function of the unit that
        returns its replacement.
    occurrences
        "all" takes out a word wherever it occurs; "each" makes every occurrence an attribute of its own.

    Examples
    --------
    >>> there = Text().at("Great food, great view!")
    >>> there.names
    ('Great', 'food', 'great', 'view')
    >>> there.realize_flips(np.array([[False, True, False, True]]))
    ['Great , great !']
    >>> Text(removed="[MASK]", occurrences="each").at("to be or not to be").names[4]
    'word 5'
    """

    default_k = 8

    @names_similar_keywords("Text")
    def __init__(
        self,
        unit: Literal["word", "sentence"] | Cut = "word",
        removed: str | Callable[[str], str] = "delete",
        occurrences: Literal["all", "each"] = "all",
    ) -> None:
        if not callable(unit):
            cut("", unit)  # which refuses what it does not know
        if not isinstance(removed, str) and not callable(removed):
            raise ParameterError(
                f"removed is {removed!r}, but it must be 'delete', a mask, or a function of a word that returns "
                "its replacement. Type removed='[MASK]'."
            )
        if occurrences not in ("all", "each"):
            raise ParameterError(
                f"occurrences is {occurrences!r}, but it must be 'all' or 'each'. Type occurrences='all'."
            )
        self.unit, self.removed, self.occurrences = unit, removed, occurrences
        self.singular = unit if isinstance(unit, str) else "unit"
        self.noun = f"{self.singular}s"
        self._inside: tuple[str, tuple[Span, ...]] | None = None

    def within(self, explanation: Any) -> "Text":
        """Return this space restricted to the units that the facts of an explanation of the same text are about.

        So a long text is explained in two steps: first its sentences, then the words of those that matter.
        """
        if not str(explanation.space.get("fingerprint", "")).startswith("text:"):
            raise ParameterError(
                "The explanation is not one of a text. Type "
                "`al.Text().within(al.Explainer(model, al.Text(unit='sentence')).explain(text))`."
            )
        pieces = list(explanation.instance)
        chosen = sorted({place for fact in explanation.facts for place in places_of(pieces, fact)})
        starts = np.cumsum([0, *map(len, pieces)]).tolist()
        restricted = copy.copy(self)
        restricted._inside = (
            _digest("".join(pieces)),
            tuple((starts[2 * i + 1], starts[2 * i + 2]) for i in chosen),
        )
        return restricted

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the parameters; a function is identified by its name."""
        given = [repr(each) if isinstance(each, str) else name_of(each) for each in (self.unit, self.removed)]
        parts = (*given, self.occurrences, self._inside)
        return "text:" + hashlib.sha256(repr(parts).encode()).hexdigest()

    def at(self, instance: Any) -> "TextNeighborhood":
        """Return the neighborhood of a text, or of the list of its pieces that an explanation records."""
        recorded = isinstance(instance, list | tuple) and all(isinstance(piece, str) for piece in instance)
        text = "".join(instance) if recorded else instance
        if not isinstance(text, str):
            raise InstanceError(
                f"The text is of type {type(instance).__name__}; it must be a str. Type "
                "explainer.explain('one text'), or explainer.explain_many(texts) for several."
            )
        ends = [0, *(end for span in self._spans(text) for end in span), len(text)]
        # Units are at odd places, and what is between them at even places.
        pieces = [text[start:stop] for start, stop in pairwise(ends)]
        if recorded and list(instance) != pieces:
            raise InstanceError(
                f"A list of {len(instance)} texts was given, but one text is explained at a time. Type "
                "explainer.explain(texts[0]), or explainer.explain_many(texts). If the list is from a recorded "
                "explanation, this space cuts its text in another way; pass the same unit as its maker."
            )
        return TextNeighborhood(pieces, self)

    def instances(self, texts: Any) -> Sequence[Any]:
        """Return the texts of a list, an array or a column of a frame, for `Explainer.explain_many`."""
        if isinstance(texts, str):
            raise ParameterError(
                "One text was given, but explain_many needs a list of texts. Type explainer.explain(text)."
            )
        if hasattr(texts, "columns") or getattr(texts, "ndim", 1) != 1:
            raise ParameterError(
                f"A {type(texts).__name__} of several columns was given, but a list of texts is needed. Pass one "
                "column, such as explainer.explain_many(frame['text'])."
            )
        to_list = getattr(texts, "to_list", None) or getattr(texts, "tolist", None)
        return list(texts) if to_list is None else list(to_list())

    def _spans(self, text: str) -> list[Span]:
        if self._inside is None:
            spans = cut(text, self.unit)
        else:
            digest, outer = self._inside
            if digest != _digest(text):
                raise InstanceError(
                    "The text is not the one whose explanation was given to within(). Pass the same text, or use "
                    "al.Text() for a new one."
                )
            spans = [
                (start + first, start + last)
                for start, stop in outer
                for first, last in cut(text[start:stop], self.unit)
            ]
        if not spans:
            raise InstanceError(
                f"The text is {text!r:.60}, which has no {self.noun}; it must have at least one. Pass another "
                "text, or a function that cuts it: al.Text(unit=list) makes every character a unit."
            )
        return spans


def places_of(pieces: Sequence[str], fact: Fact) -> list[int]:
    """Return which units of a recorded text a fact is about, from 0; units are the pieces at odd places."""
    units = pieces[1::2]
    numbered = re.fullmatch(r"(?:word|sentence|unit) (\d+)", fact.attribute.removesuffix(_REPEATED))
    first = int(numbered[1]) - 1 if numbered else None
    if first is not None and not fact.attribute.endswith(_REPEATED):
        return [first]
    same = _normal(fact.attribute if first is None else units[first])
    return [place for place, unit in enumerate(units) if _normal(unit) == same]


class TextNeighborhood(TwoValued):
    """A text, and the texts that remain when some of its units are taken out.

    ``pieces`` are the units at odd places, and what is between them at even places.
    """

    def __init__(self, pieces: Sequence[str], space: Text) -> None:
        self.pieces, self._space = tuple(pieces), space
        units, numbers = self.pieces[1::2], dict[Any, int]()
        alike = range(len(units)) if space.occurrences == "each" else map(_normal, units)
        self._attributes = [numbers.setdefault(each, len(numbers)) for each in alike]
        first = np.unique(self._attributes, return_index=True)[1].tolist()  # unit of every attribute
        if len(first) > MAX_UNITS:
            raise InstanceError(
                f"The text has {len(first):,} {space.noun}; at most {MAX_UNITS:,} can be explained together. "
                "Explain larger units first, and then the words of those that matter: "
                "`al.Text().within(al.Explainer(model, al.Text(unit='sentence')).explain(text))`."
            )
        counts = np.bincount(self._attributes).tolist()
        self._quotes, names = [_shortened(units[place]) for place in first], list[str]()
        for place, quote, count in zip(first, self._quotes, counts, strict=True):
            # A unit is named by its number if it is long, or one of several that are alike.
            is_own = space.occurrences == "all" and space.unit != "sentence" and quote == units[place]
            names.append(quote if is_own else f"{space.singular} {place + 1}" + _REPEATED * (count > 1))
        self.names = tuple(names)

    def fact(self, candidate: int) -> Fact:
        """Return that a unit is there; the value is its text, if need be shortened."""
        name = self.names[candidate]
        return Fact(name, name, "present", value=self._quotes[candidate])

    @property
    def text(self) -> str:
        """The text itself."""
        return "".join(self.pieces)

    @property
    def key(self) -> bytes:
        """The digest of the text, and how it is cut into units."""
        cuts = ",".join(map(str, map(len, self.pieces)))
        return f"text:{_digest(self.text)}:{cuts}".encode()

    @property
    def original(self) -> list[str]:
        """The text as a list of one text."""
        return [self.text]

    @property
    def instance(self) -> list[str]:
        """The pieces of the text, which show where its units are."""
        return list(self.pieces)

    @property
    def rows_per_call(self) -> int:
        """Number of texts in one model call: fewer for long texts, to limit the memory."""
        return max(1, min(super().rows_per_call, _CALL_CHARACTERS // max(1, sum(map(len, self.pieces)))))

    @cached_property
    def _parts(self) -> tuple[list[str], np.ndarray]:
        """The parts of which neighbors are joined, and when each is there.

        0 stands for always, 1 + j for as long as attribute j is there, and 1 + d + j for when it is absent.
        """
        parts, when, d = [self.pieces[0]], [0], len(self.names)
        for place, number in enumerate(self._attributes):
            kept, replacement, rest = self._replaced(place)
            parts += [kept, replacement, rest]
            when += [1 + number, 1 + d + number, 0]
        used = [i for i, part in enumerate(parts) if part]
        return [parts[i] for i in used], np.array(when, dtype=np.intp)[used]

    def _replaced(self, place: int) -> tuple[str, str, str]:
        """Return a unit with the white space that leaves with it, what replaces it, and what follows it.

        A deleted unit takes the white space after it along, if white space or the start of the text is before it.
        A deleted symbol between other characters leaves a space, so that it does not join two words.
        """
        before, unit, after = self.pieces[2 * place : 2 * place + 3]
        removed = self._space.removed
        if removed != "delete":
            replacement = removed if isinstance(removed, str) else removed(unit)
            if not isinstance(replacement, str):
                raise ParameterError(
                    f"removed returned {replacement!r:.60} for {unit!r:.60}, but it must return a text. Return '' "
                    "to delete the unit."
                )
            return unit, replacement, after
        starts = before[-1:].isspace() if before else place == 0
        n_spaces = len(after) - len(after.lstrip()) if starts else 0
        inside = bool(before or place) and bool(after or 2 * place + 3 < len(self.pieces))
        joins = inside and not before[-1:].isspace() and not after[:1].isspace()
        gap = " " if joins and _word_class(unit[0]) in ("S", "R") else ""
        return unit + after[:n_spaces], gap, after[n_spaces:]

    def realize_flips(self, flips: np.ndarray) -> list[str]:
        """Return the texts that remain, one per row of ``flips``; a space if nothing does.

        Some pipelines refuse an empty text.
        """
        parts, when = self._parts
        always = np.ones((len(flips), 1), dtype=bool)
        shown = np.concatenate([always, ~flips, flips], axis=1)[:, when].view(np.uint8)
        rows, n = np.ascontiguousarray(shown).tobytes(), len(parts)
        return ["".join(compress(parts, rows[i * n : (i + 1) * n])) or " " for i in range(len(flips))]


def _shortened(unit: str) -> str:
    """Return the beginning of a unit on one line; a combining mark stays with its character."""
    line = " ".join(unit.split())
    if len(line) <= _LONGEST_QUOTE:
        return line
    end = _LONGEST_QUOTE
    while end and unicodedata.category(line[end])[0] == "M":
        end -= 1
    return line[:end].rstrip() + _ELLIPSIS


def _normal(unit: str) -> str:
    """Return what is the same for units that Unicode only writes differently."""
    return unicodedata.normalize("NFC", unit)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# ---- words and sentences, in any script, with the Unicode database of the standard library

# Every character is translated to a letter that names its class, so that the rules of Unicode's word boundaries
# (UAX #29) become one regular expression over these letters. The rules are the default ones, with these choices: a
# word has a letter or a digit, or it is a symbol such as an emoji; a colon does not join letters; and a single
# quote ends a Hebrew word. Scripts without spaces between words, such as Chinese, Japanese and Thai, are cut into
# characters with their marks, because only a dictionary could do better. All patterns take linear time.
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


@functools.cache
def _word_class(character: str) -> str:
    """Return the class of a character in a word: A, H, K and C letters, 9 digits, M marks, Z the joiner, ..."""
    category, code = unicodedata.category(character), ord(character)
    if character in _BETWEEN or code in _REGIONS:
        return _BETWEEN.get(character, "R")
    if category[0] == "M" or category == "Cf" or code in _SKIN_TONES:
        return "M"
    if category[0] == "L" or category == "Nl":
        name = unicodedata.name(character, "")
        first = "C" if name.partition(" ")[0] in _WITHOUT_SPACES else ""
        return first or ("K" if "KATAKANA" in name else "H" if name.startswith("HEBREW") else "A")
    if category[0] == "N":
        return "9"
    return {"Pc": "_", "So": "S"}.get(category, " ")


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
            try:
                start, stop = (int(end) for end in piece)
            except (TypeError, ValueError):
                raise ParameterError(
                    f"unit returned {piece!r:.80}, but it must return texts, or pairs (start, stop). Type, say, "
                    "unit=str.split."
                ) from None
        if not position <= start <= stop <= len(text):
            raise InstanceError(
                f"unit returned {piece!r:.80}, which is not in the text after position {position}. It must return "
                "pieces of the text in order, or pairs (start, stop). Type, say, unit=str.split."
            )
        if text[start:stop].strip():
            spans.append((start, stop))
        position = stop
    return spans
