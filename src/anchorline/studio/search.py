"""Searches of the table: every word becomes a mask over all rows, computed from the columns without an index.

A word is a comparison with a column (``income>40000``, ``purpose=car``, ``answer=declined``), or a text that some
value, column name or answer must contain. Quotes keep spaces: ``purpose="new car"``. ``wrong decisions`` is
``answer=wrong``. A comparison about explanations (``verdict=robust``) is looked up in what is known of them.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from operator import eq, ge, gt, le, lt
from typing import Any

import numpy as np

from anchorline.spaces.columns import BOOLEAN, CATEGORY, DATE, NUMBER, Column, text_of
from anchorline.studio.job_queue import checkpoint
from anchorline.studio.known import KNOWN, WORDS

ANSWER = "answer"  # the name of the model's answer in comparisons
_WORD = re.compile(r'(?:"[^"]*"|[^\s"])+')
_SPACED = re.compile(r'("[^"]*")|\s*(>=|<=|!=|=|>|<)\s*')
_COMPARISON = re.compile(r'("[^"]*"|[^"<>=!]+)(>=|<=|!=|=|>|<)(.*)', re.DOTALL)
_RIGHTNESS = re.compile(r'("[^"]*")|\b(wrong|right) decisions?\b', re.IGNORECASE)
_HEADLESS = re.compile(r"(?:>=|<=|!=|=|>|<)(?!.*[<>=])(.+)", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|[-+]?inf(?:inity)?", re.IGNORECASE)
_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[ t](\d\d)(?::(\d\d)(?::(\d\d))?)?)?)?)?", re.IGNORECASE)
_VERDICT = re.compile(rf'("[^"]*")|\b(verdict\s*!?=\s*)({"|".join(WORDS.values())})\b', re.IGNORECASE)
_PRINTED_DIGITS = 6  # significant digits of a number as the page shows it
_EXACT = 2.0**53
_MOST_SUGGESTED = 100  # answers, and columns

_ORDERS = {">": gt, ">=": ge, "<": lt, "<=": le, "=": eq}  # of texts; numbers among them are not compared as such
Compare = Callable[[np.ndarray, float, float], np.ndarray]
# Each one compares values with the first and the last number that a typed number may stand for.
_OPERATORS: dict[str, Compare] = {
    ">": lambda values, low, high: values > high,
    ">=": lambda values, low, high: values >= low,
    "<": lambda values, low, high: values < low,
    "<=": lambda values, low, high: values <= high,
    "=": lambda values, low, high: (values >= low) & (values <= high),
}


class Search:
    """Searches in columns, whose rows are in the schema's order; ``exact(j, row)`` is a value with all digits.

    ``names`` are those that readers see. Columns are also found by their ``own_names``. ``with_known``
    says whether words may be about explanations.
    """

    def __init__(
        self,
        names: list[str],
        columns: list[Column],
        exact: Callable[[int, int], Any],
        own_names: Sequence[str] = (),
        *,
        with_known: bool = False,
    ) -> None:
        self._names, self._columns, self._exact = names, columns, exact
        self._by_name = {name.lower(): j for each in (own_names, names) for j, name in enumerate(each)}
        self._levels: dict[int, tuple[list[str], np.ndarray]] = {}
        self._known_names = {*KNOWN} - {*self._by_name} if with_known else set[str]()
        spaced = sorted((name for name in self._by_name if " " in name and '"' not in name), key=len, reverse=True)
        choices = "|".join(map(re.escape, spaced))
        self._spaced_names = (
            re.compile(rf'("[^"]*")|(?<![^\s])({choices})(?=\s*[<>=!])', re.IGNORECASE) if spaced else None
        )

    def split(self, search: str) -> tuple[list[str], list[tuple[str, str, str]]]:
        """Return the words about cases and their answers, and the comparisons about explanations.

        A column name with spaces needs no quotes before a comparison.
        """
        if self._spaced_names is not None:
            search = self._spaced_names.sub(lambda match: match[1] or f'"{match[2]}"', search)
        words, lookups = [], []
        for word in words_of(search):
            match = _COMPARISON.fullmatch(word)
            name = match[1].strip('"').lower() if match else ""
            if match and name in self._known_names:
                lookups.append((name, match[2], match[3].strip('"').lower()))
            else:
                words.append(word)
        return words, lookups

    def mask(self, word: str, answer_mask: Callable[[str, str], np.ndarray]) -> np.ndarray:
        """Return which rows match one word; ``answer_mask(operator, text)`` returns it for answers."""
        match = _COMPARISON.fullmatch(word)
        name = match[1].strip('"').lower() if match else ""
        if match and name in self._by_name:
            return self._compare(self._by_name[name], match[2], match[3].strip('"').lower())
        if match and name == ANSWER:
            return answer_mask(match[2], match[3].strip('"').lower())
        text = word.replace('"', "").lower()
        found = answer_mask("contains", text)
        for j in range(len(self._names)):
            checkpoint()
            if text in self._names[j].lower():
                return np.ones(len(found), dtype=bool)
            found = found | self._contains(j, text)
        return found

    def typed(self, j: int) -> str:
        """Return the name of a column as it is typed before a comparison."""
        name = self._names[j]
        return f'"{name}"' if re.search(r"[\s<>=!]", name) else name

    def suggestions(self, answers: Sequence[str]) -> list[str]:
        """Return what a word may begin with: answers, verdicts, reasons and rules, and columns."""
        known = [f'verdict="{word}"' if " " in word else f"verdict={word}" for word in WORDS.values()]
        known = [*known, "reason=", "rule=1"] if self._known_names else []
        quoted = [f'"{text}"' if " " in text else text for text in answers[:_MOST_SUGGESTED]]
        columns = [self.typed(j) for j in range(min(len(self._names), _MOST_SUGGESTED))]
        signs = ["=" if column.kind in (CATEGORY, BOOLEAN) else ">" for column in self._columns]
        return [*(f"{ANSWER}={text}" for text in quoted), *known, *map("".join, zip(columns, signs, strict=False))]

    def notes(self, words: list[str], answers: Sequence[str]) -> Iterator[str]:
        """Yield what is wrong with comparisons that nothing can match; ``answers`` are those of the model."""
        for word in words:
            checkpoint()
            match, headless = _COMPARISON.fullmatch(word), _HEADLESS.fullmatch(word)
            if headless:
                yield f"{word} lacks a column. Type, for example, {self.typed(0)}{word}."
            if not match:
                continue
            name, text = match[1].strip('"'), match[3].strip('"').lower()
            column = self._columns[self._by_name[name.lower()]] if name.lower() in self._by_name else None
            if column is None and name.lower() != ANSWER:
                near = get_close_matches(name.lower(), [*self._by_name, ANSWER, *self._known_names], 1)
                hint = (
                    self._names[self._by_name[near[0]]] if near and near[0] in self._by_name else near and near[0]
                )
                yield f"{name} is not a column.{f' Did you mean {hint}?' if near else ''}"
            elif not match[3]:
                yield f"{word} lacks a value."
            elif column is None:
                if match[2] in ("=", "!=") and answers and text not in [*(each.lower() for each in answers)]:
                    yield f"{text} is not an answer of the model. Its answers are {', '.join(answers[:10])}."
                elif match[2] not in ("=", "!=") and number_range(text) is None:
                    yield f"{text} is not a number. Type, for example, {ANSWER}>0.8."
            elif column.kind == NUMBER and text != "missing" and number_range(text) is None:
                yield f"{name} is a number, and {text} is not."
            elif column.kind == DATE and text != "missing" and date_range(text) is None:
                yield f"{name} is a date, and {text} is not. Type, for example, {name}>=2024-05."

    def may_match_answers(self, words: list[str]) -> bool:
        """Return whether a word is not a comparison with a column, so that the model's answers may match it."""
        matches = (_COMPARISON.fullmatch(word) for word in words)
        return not all(match and match[1].strip('"').lower() in self._by_name for match in matches)

    def _compare(self, j: int, operator: str, text: str) -> np.ndarray:
        column = self._columns[j]
        if operator == "!=":
            return ~self._compare(j, "=", text)
        if text == "missing":
            return column.missing if operator == "=" else np.zeros(len(column.missing), dtype=bool)
        if column.kind in (CATEGORY, BOOLEAN):
            return self._compare_levels(j, operator, text)
        return self._compare_numbers(j, operator, text)

    def _compare_levels(self, j: int, operator: str, text: str) -> np.ndarray:
        """Compare texts; ``=`` means the whole text, or its beginning if no text is equal."""
        levels, codes = self._levels_of(j)
        chosen = [_ORDERS[operator](level, text) for level in levels]
        if operator == "=" and not any(chosen):
            chosen = [bool(text) and level.startswith(text) for level in levels]
        return rows_with(chosen, codes)

    def _compare_numbers(self, j: int, operator: str, text: str) -> np.ndarray:
        column = self._columns[j]
        ends = date_range(text) if column.kind == DATE else number_range(text)
        if ends is None:
            return np.zeros(len(column.missing), dtype=bool)
        found = compare_numbers(column.values, operator, ends) & ~column.missing
        if operator == "=" and column.kind == NUMBER and abs(ends[0]) >= _EXACT:  # floats merge long integers
            rows = np.flatnonzero(found)
            found[rows] = [str(self._exact(j, int(row))) == text for row in rows]
        return found

    def _contains(self, j: int, text: str) -> np.ndarray:
        """Return the rows whose value contains a text; a number must be equal to a typed number."""
        column = self._columns[j]
        if column.kind in (CATEGORY, BOOLEAN):
            levels, codes = self._levels_of(j)
            found = rows_with([text in level for level in levels], codes)
        else:
            found = self._compare_numbers(j, "=", text)
        return found | column.missing if text in "missing" and len(text) > 2 else found

    def _levels_of(self, j: int) -> tuple[list[str], np.ndarray]:
        """Return the distinct lower-case texts of a column, and the code of the one in each row; -1 if missing."""
        if j not in self._levels:
            column, texts = self._columns[j], dict[str, int]()
            values, codes = column.values.tolist(), np.full(len(column.missing), -1, dtype=np.int32)
            for i in np.flatnonzero(~column.missing).tolist():
                codes[i] = texts.setdefault(text_of(values[i], column.kind).lower(), len(texts))
            self._levels[j] = list(texts), codes
        return self._levels[j]


def words_of(search: str) -> list[str]:
    """Return the words of a search; quotes keep spaces together, and so do comparisons: ``income > 40000``."""
    search = _RIGHTNESS.sub(lambda match: match[1] or f"{ANSWER}={match[2]}", search)
    search = _VERDICT.sub(lambda match: match[1] or f'{match[2]}"{match[3]}"', search)
    return _WORD.findall(_SPACED.sub(lambda match: match[1] or match[2], search))


def rows_with(chosen: list[bool], codes: np.ndarray) -> np.ndarray:
    """Return which rows have a chosen text; the code -1, of rows without a text, stands for the last entry."""
    found: np.ndarray = np.array([*chosen, False], dtype=bool)[codes]
    return found


def compare_numbers(values: np.ndarray, operator: str, ends: tuple[float, float]) -> np.ndarray:
    """Return which values stand in an order to a typed number, which stands for all numbers between ``ends``."""
    with np.errstate(invalid="ignore"):
        return np.asarray(_OPERATORS[operator](values, *ends))


def number_range(text: str) -> tuple[float, float] | None:
    """Return the numbers that a typed number may stand for: with six digits or more, all that are printed so."""
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    digits = text.lower().partition("e")[0].lstrip("+-").replace(".", "").lstrip("0")
    if len(digits) < _PRINTED_DIGITS or "." not in text or not np.isfinite(value):
        return value, value
    half = 0.5 * 10.0 ** (np.floor(np.log10(abs(value))) + 1 - len(digits))
    return value - half, value + half


def date_range(text: str) -> tuple[float, float] | None:
    """Return the first and the last microsecond of a typed year, month, day, hour, minute or second."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    parts = [int(part) for part in match.groups() if part is not None]
    unit: Any = ("Y", "M", "D", "h", "m", "s")[len(parts) - 1]
    padded = [*parts, *(1, 1, 0, 0, 0)[len(parts) - 1 :]]
    year, month, day, hour, minute, second = padded
    try:
        text = f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
        first = np.array(text, dtype="datetime64[s]").astype(f"datetime64[{unit}]")
    except ValueError:
        return None
    ends = first, first + np.timedelta64(1, unit)
    low, high = (float(end.astype("datetime64[us]").astype(np.int64)) for end in ends)
    return low, high - 1
