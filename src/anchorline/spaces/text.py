"""Texts: a literal states that a word is there, and a flip takes the word out."""

import copy
import hashlib
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, pairwise
from typing import Any

import numpy as np

from anchorline.errors import InstanceError, ParameterError
from anchorline.spaces.base import Literal
from anchorline.spaces.units import Cut, Span, cut, is_symbol

MAX_LITERALS = 4000  # the statistics of more literals take gigabytes
_CALL_CHARACTERS = 2**25  # of one model call
_CALL_ROWS = 4096
_LONGEST_QUOTE = 40  # characters of a unit in a statement
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


class Text:
    """Texts; a literal states that a word is there, and a flip takes it out, wherever it occurs.

    Parameters
    ----------
    unit
        What is taken out: "word", "sentence", or a function that cuts a text into pieces, such as
        ``jieba.lcut`` for Chinese or the tokenizer of a model; it may also return pairs (start, stop).
    removed
        What takes the place of a unit: nothing ("delete"), a mask such as "[MASK]", or a function of the unit that
        returns its replacement.
    occurrences
        "all" takes out a word wherever it occurs; "each" makes every occurrence a fact of its own.

    Examples
    --------
    >>> space = Text()
    >>> neighborhood = space.at("Great food, great view!")
    >>> [literal.text for literal in neighborhood.literals]
    ['"Great" is there', '"food" is there', '"great" is there', '"view" is there']
    >>> neighborhood.realize(np.array([[False, True, False, True]]))
    ['Great , great !']
    >>> Text(removed="[MASK]", occurrences="each").at("to be or not to be").literals[4].text
    'word 5 ("to") is there'
    """

    def __init__(
        self,
        unit: str | Cut = "word",
        removed: str | Callable[[str], str] = "delete",
        occurrences: str = "all",
    ) -> None:
        if unit not in ("word", "sentence") and not callable(unit):
            raise ParameterError(
                f"unit is {unit!r}, but it must be 'word', 'sentence', or a function that cuts a text into a list "
                "of its pieces. Type unit='word'."
            )
        if not isinstance(removed, str) and not callable(removed):
            raise ParameterError(
                f"removed is {removed!r}, but it must be 'delete', a mask, or a function of a word that returns "
                "its replacement. Type removed='[MASK]'."
            )
        if occurrences not in ("all", "each"):
            raise ParameterError(f"occurrences is {occurrences!r}, but it must be 'all' or 'each'.")
        self.unit, self.removed, self.occurrences = unit, removed, occurrences
        self._inside: tuple[str, tuple[Span, ...]] | None = None

    def within(self, explanation: Any) -> "Text":
        """Return this space restricted to the units that an explanation of the same text names as its terms.

        So a long text is explained in two steps: first its sentences, then the words of those that matter.

        Examples
        --------
        >>> import anchorline as al
        >>> text = "We came late. The food was great. It rained."
        >>> score = lambda texts: [0.5 * ("great" in text) for text in texts]
        >>> first = al.Explainer(score, Text(unit="sentence")).explain(text, k=2)
        >>> [literal.name for literal in Text().within(first).at(text).literals]
        ['The', 'food', 'was', 'great']
        """
        pieces = list(explanation.instance)
        if not str(explanation.parameters.get("space", "")).startswith("text:") or len(pieces) % 2 == 0:
            raise ParameterError(
                "The explanation is not one of a text. Type "
                "`al.Text().within(al.Explainer(model, al.Text(unit='sentence')).explain(text))`."
            )
        literals, support = literals_of(pieces, explanation.literals), {*explanation.support.tolist()}
        starts = np.cumsum([0, *map(len, pieces)])
        spans = [(int(starts[2 * i + 1]), int(starts[2 * i + 2])) for i, j in enumerate(literals) if j in support]
        restricted = copy.copy(self)
        restricted._inside = _digest("".join(pieces)), tuple(spans)
        return restricted

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the parameters; a function is identified by its name."""
        parts = (_name(self.unit), _name(self.removed), self.occurrences, self._inside)
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
        pieces = self._pieces(text)
        if recorded and list(instance) != pieces:
            raise InstanceError(
                f"A list of {len(instance)} texts came, but one text is explained at a time. Type "
                "explainer.explain(texts[0]), or explainer.explain_many(texts). If the list is from a recorded "
                "explanation, this space cuts its text in another way; pass the same unit as its maker."
            )
        return TextNeighborhood(tuple(pieces), self)

    def instances(self, texts: Any) -> Sequence[Any]:
        """Return the texts of a list, an array or a column of a frame, for `Explainer.explain_many`."""
        if isinstance(texts, str):
            raise ParameterError(
                "One text came, but explain_many needs a list of texts. Type explainer.explain(text)."
            )
        if hasattr(texts, "columns") or getattr(texts, "ndim", 1) != 1:
            raise ParameterError(
                f"A {type(texts).__name__} of several columns came, but a list of texts is needed. Pass one "
                "column, such as explainer.explain_many(frame['text'])."
            )
        to_list = getattr(texts, "to_list", None) or getattr(texts, "tolist", None)
        return list(texts) if to_list is None else list(to_list())

    def _pieces(self, text: str) -> list[str]:
        """Return the text cut in pieces: units at odd places, and what is between them at even places."""
        spans = self._spans(text)
        ends = [0, *(end for span in spans for end in span), len(text)]
        return [text[start:stop] for start, stop in pairwise(ends)]

    def _spans(self, text: str) -> list[Span]:
        if self._inside is None:
            spans = cut(text, self.unit)
        else:
            digest, outer = self._inside
            if digest != _digest(text):
                raise InstanceError(
                    "The text is another one than that of the explanation in within(). Pass the same text, or use "
                    "al.Text() for a new one."
                )
            spans = [
                (start + first, start + last)
                for start, stop in outer
                for first, last in cut(text[start:stop], self.unit)
            ]
        if not spans:
            noun = "words" if self.unit == "word" else "units"
            raise InstanceError(
                f"The text is {text!r:.60}, which has no {noun}; it must have at least one. Pass another text, or "
                "a function that cuts it: al.Text(unit=list) makes every character a unit."
            )
        return spans


def literals_of(pieces: Sequence[str], literals: Sequence[Literal]) -> list[int]:
    """Return the number of the literal that each unit belongs to; units are the pieces at odd places.

    Either all occurrences of a unit belong to one literal, or each is a literal of its own, which is named by its
    number. Further literals, such as pairs, may follow.

    Examples
    --------
    >>> text = "to be or not to be"
    >>> for space in (Text(), Text(occurrences="each")):
    ...     print(literals_of(space.at(text).pieces, space.at(text).literals))
    [0, 1, 2, 3, 0, 1]
    [0, 1, 2, 3, 4, 5]
    """
    n_units = len(pieces) // 2
    is_each = len(literals) >= n_units and literals[n_units - 1].name.endswith(f" {n_units}")
    return list(range(n_units)) if is_each else _grouped(pieces)


def _grouped(pieces: Sequence[str]) -> list[int]:
    """Return the numbers of the different units; units that Unicode only writes differently are the same."""
    units = pieces[1::2]
    numbers: dict[str, int] = {}
    return [numbers.setdefault(unicodedata.normalize("NFC", unit), len(numbers)) for unit in units]


@dataclass(frozen=True, eq=False)
class TextNeighborhood:
    """A text, and the texts that remain when some of its units are taken out.

    ``pieces`` are the units at odd places, and what is between them at even places.
    """

    pieces: tuple[str, ...]
    space: Text
    deterministic = True

    def __post_init__(self) -> None:
        n = len(self.literals)
        if n > MAX_LITERALS:
            noun = self.space.unit if isinstance(self.space.unit, str) else "unit"
            raise InstanceError(
                f"The text has {n:,} {noun}s; at most {MAX_LITERALS:,} can be explained together. Explain larger "
                "units first, and then the words of those that matter: "
                "`al.Text().within(al.Explainer(model, al.Text(unit='sentence')).explain(text))`."
            )

    @cached_property
    def _literal_of_unit(self) -> list[int]:
        return list(range(len(self.pieces) // 2)) if self.space.occurrences == "each" else _grouped(self.pieces)

    @cached_property
    def literals(self) -> tuple[Literal, ...]:
        """The statements that the units are there, in the order in which they first occur."""
        first: dict[int, int] = {}
        for place, number in enumerate(self._literal_of_unit):
            first.setdefault(number, place)
        unit, each = self.space.unit, self.space.occurrences == "each"
        noun = unit if isinstance(unit, str) else "unit"
        literals = []
        for place in first.values():
            piece = self.pieces[2 * place + 1]
            quote = _shortened(piece)
            if each or noun == "sentence" or quote != piece:
                name = f"{noun} {place + 1}"
                literals.append(Literal(name, f'{name} ("{quote}") is there'))
            else:
                literals.append(Literal(piece, f'"{piece}" is there'))
        return tuple(literals)

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
        return max(1, min(_CALL_ROWS, _CALL_CHARACTERS // max(1, sum(map(len, self.pieces)))))

    @cached_property
    def _parts(self) -> tuple[list[str], np.ndarray]:
        """The parts of which neighbors are joined, and when each is there.

        0 stands for always, 1 + j for as long as literal j holds, and 1 + d + j for when it is broken.
        """
        parts, when, n = [self.pieces[0]], [0], len(self.literals)
        for place, number in enumerate(self._literal_of_unit):
            kept, replacement, rest = self._replaced(place)
            parts += [kept, replacement, rest]
            when += [1 + number, 1 + n + number, 0]
        used = [i for i, part in enumerate(parts) if part]
        return [parts[i] for i in used], np.array(when, dtype=np.intp)[used]

    def _replaced(self, place: int) -> tuple[str, str, str]:
        """Return a unit with the white space that leaves with it, what replaces it, and what follows it.

        A deleted unit takes the white space after it along, if white space or the start of the text is before it.
        A deleted symbol between other characters leaves a space, so that it does not join two words.
        """
        before, unit, after = self.pieces[2 * place : 2 * place + 3]
        removed = self.space.removed
        if removed != "delete":
            return unit, removed if isinstance(removed, str) else _replacement(removed, unit), after
        starts = before[-1:].isspace() if before else place == 0
        n_spaces = len(after) - len(after.lstrip()) if starts else 0
        inside = bool(before or place) and bool(after or 2 * place + 3 < len(self.pieces))
        joins = inside and not before[-1:].isspace() and not after[:1].isspace()
        gap = " " if joins and is_symbol(unit) else ""
        return unit + after[:n_spaces], gap, after[n_spaces:]

    def realize(self, flips: np.ndarray, rng: np.random.Generator | None = None) -> list[str]:
        """Return the texts that remain, one per row of ``flips``."""
        parts, when = self._parts
        always = np.ones((len(flips), 1), dtype=bool)
        shown = np.concatenate([always, ~flips, flips], axis=1)[:, when].view(np.uint8)
        rows, n = np.ascontiguousarray(shown).tobytes(), len(parts)
        return ["".join(compress(parts, rows[i * n : (i + 1) * n])) for i in range(len(flips))]


def _replacement(removed: Callable[[str], str], unit: str) -> str:
    replacement = removed(unit)
    if not isinstance(replacement, str):
        raise ParameterError(
            f"removed returned {replacement!r:.60} for {unit!r:.60}, but it must return a text. Return '' to "
            "delete the unit."
        )
    return replacement


def _shortened(unit: str) -> str:
    """Return the beginning of a unit on one line; a combining mark stays with its character."""
    line = " ".join(unit.split())
    if len(line) <= _LONGEST_QUOTE:
        return line
    end = _LONGEST_QUOTE
    while end and unicodedata.category(line[end])[0] == "M":
        end -= 1
    return line[:end].rstrip() + _ELLIPSIS


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _name(given: Any) -> str:
    """Return the identity of a parameter, which may be a function."""
    if isinstance(given, str):
        return repr(given)
    return f"{getattr(given, '__module__', '')}.{getattr(given, '__qualname__', type(given).__qualname__)}"
