"""What is known of explained cases, for searches: ``verdict=robust``, ``reason=debt``, and ``rule=3``.

Nothing is explained here. The summary of many cases notes what it has explained; a search looks it up.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

import numpy as np

from anchorline.facts import Fact
from anchorline.result.explanation import Explanation, Verdict
from anchorline.result.explanations import WORST_FIRST

VERDICT, REASON, FACT, RULE = "verdict", "reason", "fact", "rule"
KNOWN = (VERDICT, REASON, FACT, RULE)  # what comparisons about explanations begin with
WORDS = {verdict: verdict.value.replace("_", " ") for verdict in reversed(WORST_FIRST)}  # as the page prints them
_CODES = {verdict: i for i, verdict in enumerate(WORDS)}
_UNKNOWN, _FAILED = -1, -2
_MOST_LISTED = 8


class Topics:
    """What ``reason=`` may name: attributes by the names of columns and by codes, without regard to case.

    ``attributes`` maps what readers may type to the attributes that it stands for; ``shown`` are the main ones.
    """

    def __init__(
        self, attributes: Mapping[str, Sequence[str]], shown: Sequence[str], *, has_codes: bool = False
    ) -> None:
        self._attributes = {name.lower(): {*found} for name, found in attributes.items()}
        self.shown, self.has_codes = shown, has_codes

    def find(self, text: str) -> set[str] | None:
        """Return the attributes that a text stands for; None if it is unknown."""
        return self._attributes.get(text)

    def note(self, text: str) -> str | None:
        """Return what is wrong with a text that stands for nothing."""
        if self.find(text) is not None:
            return None
        near = get_close_matches(text, [*self._attributes], 1)
        if near:
            hint = next((name for name in self.shown if name.lower() == near[0]), near[0])
            return f"{text} is neither a column nor a code. Did you mean {hint}?"
        more = " and others" if len(self.shown) > _MOST_LISTED else ""
        return f"{text} is neither a column nor a code. There are {', '.join(self.shown[:_MOST_LISTED])}{more}."


Rules = Sequence[tuple[str, np.ndarray]]  # the text of each rule, and which cases have its facts


class Known:
    """The verdicts and facts of cases that were explained alike, and the rules that cover all cases."""

    def __init__(self, n_rows: int, topics: Topics) -> None:
        self._verdicts = np.full(n_rows, _UNKNOWN, dtype=np.int8)
        self._positions: dict[str, set[int]] = {}  # of the cases with a fact about an attribute
        self._topics, self.has_codes = topics, topics.has_codes
        self.rules: Rules | None = None  # None while nobody has asked for them
        self.n = 0

    def note(self, explained: Iterable[tuple[int, Explanation]], failed: Iterable[int]) -> None:
        """Remember the explanations of cases, and which ones cannot be explained."""
        for position, explanation in explained:
            if self._verdicts[position] < 0:
                self._verdicts[position] = _CODES[explanation.verdict]
                for fact in explanation.facts:
                    self._positions.setdefault(fact.attribute, set()).add(position)
                self.n += 1
        for position in failed:
            if self._verdicts[position] == _UNKNOWN:
                self._verdicts[position] = _FAILED
                self.n += 1

    @property
    def state(self) -> tuple[int, int | None]:
        """What changes when more is known."""
        return self.n, None if self.rules is None else len(self.rules)

    @property
    def is_explained(self) -> np.ndarray:
        """Which cases have an explanation."""
        return np.asarray(self._verdicts >= 0)

    @property
    def is_tried(self) -> np.ndarray:
        """Which cases have an explanation, or cannot have one."""
        return np.asarray(self._verdicts != _UNKNOWN)

    def mask(self, name: str, operator: str, text: str) -> np.ndarray:
        """Return which cases are known to match one comparison."""
        if operator == "!=":
            asked = np.ones(len(self._verdicts), dtype=bool) if name == RULE else self.is_explained
            return asked & ~self.mask(name, "=", text) if self._is_possible(name, text) else np.zeros_like(asked)
        found = np.zeros(len(self._verdicts), dtype=bool)
        if operator != "=":
            return found
        if name == VERDICT:
            verdict = verdict_of(text)
            return found if verdict is None else np.asarray(self._verdicts == _CODES[verdict])
        if name == RULE:
            return self.rules[int(text) - 1][1] if self.rules and self._is_possible(name, text) else found
        for attribute in self._topics.find(text) or ():
            found[[*self._positions.get(attribute, ())]] = True
        return found

    def notes(self, name: str, operator: str, text: str) -> Iterator[str]:
        """Yield what is wrong with a comparison."""
        if operator not in ("=", "!="):
            yield f"{name} can be equal (=) or different (!=)."
        elif not text:
            yield f"{name}{operator} lacks a value."
        elif name == VERDICT and verdict_of(text) is None:
            yield f"{text} is not a verdict. The verdicts are {', '.join(WORDS.values())}."
        elif name in (REASON, FACT) and (note := self._topics.note(text)):
            yield note
        elif name == RULE and not (text.isascii() and text.isdecimal()):
            yield f"{text} is not the number of a rule. Type, for example, rule=1."
        elif name == RULE and self.rules is not None and not self._is_possible(name, text):
            n = len(self.rules)
            yield (
                f"There is no rule {text}. The rules of all cases are rule=1 to rule={n}."
                if n > 1
                else (f"There is no rule {text}. All cases have {'one rule, rule=1' if n else 'no rules'}.")
            )

    def rule_text(self, text: str) -> str | None:
        """Return the rule with a number as a sentence, or None if it is unknown."""
        if not self.rules or not self._is_possible(RULE, text):
            return None
        return f"Rule {int(text)} of all cases is for {self.rules[int(text) - 1][0]}"

    def _is_possible(self, name: str, text: str) -> bool:
        if name == VERDICT:
            return verdict_of(text) is not None
        if name == RULE:
            is_number = text.isascii() and text.isdecimal() and len(text) < 9
            return self.rules is not None and is_number and 1 <= int(text) <= len(self.rules)
        return self._topics.find(text) is not None


def rules_of(
    lines: Sequence[tuple[str, Sequence[Fact]]], n_rows: int, have: Callable[[Fact], np.ndarray]
) -> Rules:
    """Return rules with the cases that have their facts; ``have`` returns of which cases a fact is true."""
    everywhere = np.ones(n_rows, dtype=bool)
    return [(text, np.logical_and.reduce([everywhere, *map(have, facts)])) for text, facts in lines]


def verdict_of(text: str) -> Verdict | None:
    """Return the verdict that a text names, whole or by its beginning; None if there is none.

    Examples
    --------
    >>> verdict_of("robust"), verdict_of("partly"), verdict_of("surely")
    (<Verdict.ROBUST: 'robust'>, <Verdict.PARTLY_EXPLAINED: 'partly_explained'>, None)
    """
    text = text.replace("_", " ")
    return next((verdict for verdict, word in WORDS.items() if text and word.startswith(text)), None)
