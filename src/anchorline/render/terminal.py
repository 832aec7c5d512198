"""A small aligned table for terminals: one line a term, bars from a common zero, then the certificate."""

import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from anchorline.errors import ParameterError
from anchorline.render.characters import ELLIPSIS, cells, fitted, padded, wrapped
from anchorline.render.summands import Summand, Summands, summands
from anchorline.render.text import certificate_text

if TYPE_CHECKING:
    from anchorline.result.explanation import Explanation

MIN_WIDTH = 24
_GAP = 2  # cells between columns
_NAME_LINES = 3
_WIDEST_BARS = 36
_WIDEST_TABLE = 100  # longer lines are hard to follow
# Blue and orange of the 256-colour table: told apart by all readers, legible on black and on white.
_PLUS, _MINUS, _BOLD, _FAINT, _END = "\x1b[38;5;32m", "\x1b[38;5;166m", "\x1b[1m", "\x1b[2m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class _Signs:
    """The characters a table is drawn with; ``half`` is None where there is no half bar."""

    plus: str
    minus: str
    half: str | None
    zero: str
    line: str
    ellipsis: str


_UNICODE = _Signs("█", "▒", "▌", "│", "─", ELLIPSIS)
_ASCII = _Signs("+", "-", None, "|", "-", "...")


def table(
    explanation: "Explanation", *, width: int | None = None, color: bool = False, ascii: bool = False
) -> str:
    """The sum as a table with bars, then the certificate.

    One line a term, largest first, and one for the intercept: what it says, what it adds, and a bar from a
    common zero, to the right if it adds and to the left if it takes away. The printed numbers add up,
    digit for digit, to the last line. What is longer than its column is wrapped; of more than three lines, the
    name is cut, not the condition.

    Parameters
    ----------
    explanation
        What to show.
    width
        Columns to fill at most; None asks the terminal, and takes no more than 100.
    color
        Whether to add ANSI colours. Nothing is told by colour alone.
    ascii
        Use ASCII characters only, for terminals that know no others; others in names become escapes.

    Examples
    --------
    >>> import anchorline as al
    >>> e = al.explain(lambda z: z[:, 0] / 2 + z[:, 1] / 8, [1, -1], k=2, names=["paid", "late"], output="score")
    >>> print(table(e, width=40, ascii=True))
    paid = +1  +0.500     |++++++++++++++++
    late = -1  -0.125 ----|
    ----------------------------------------
    score       0.375
    <BLANKLINE>
    Proven best 2-term explanation on all 4
    neighbors.
    While these 2 facts hold, the output
    stays; over all neighbors it moves by
    0.5.
    Verdict: trustworthy.
    """
    room = width
    if room is None:
        room = max(MIN_WIDTH, min(shutil.get_terminal_size().columns, _WIDEST_TABLE))
    if room < MIN_WIDTH:
        raise ParameterError(f"width is {width!r}; a table needs at least {MIN_WIDTH} columns. Type width=80.")
    signs, total = (_ASCII, _in_ascii(summands(explanation))) if ascii else (_UNICODE, summands(explanation))
    columns = _Columns.of(total, room)
    lines: list[str] = []
    for part in total.parts:
        bar = columns.bar(part.value, signs)
        color_of_bar = _PLUS if part.value > 0 else _MINUS
        lines += columns.lines(part, part.signed, bar, signs, (color_of_bar, "") if color else None)
    lines.append(_painted(signs.line * columns.total, _FAINT, color))
    lines += columns.lines(total.total, total.total.number, "", signs, ("", _BOLD) if color else None)
    lines.append("")
    for sentence in certificate_text(explanation.certificate).split("\n"):
        is_verdict = color and sentence.startswith("Verdict")
        lines += [_painted(line, _BOLD, is_verdict) for line in wrapped(sentence, room)]
    return "\n".join(line.rstrip() for line in lines)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Widths of the columns, in cells: names, numbers, bars left and right of zero; and the value of a cell."""

    name: int
    number: int
    left: int
    right: int
    unit: float

    @classmethod
    def of(cls, total: Summands, room: int) -> "_Columns":
        """Share the room: numbers whole, bars a third of the rest or what names leave."""
        number = max(cells(part.signed) for part in (*total.parts, total.total))
        rest = max(7, room - number - _GAP - 1)
        longest = max(cells(part.text) for part in (*total.parts, total.total))
        name = min(longest, rest - max(4, rest // 3))
        bars = min(_WIDEST_BARS, rest - name) - 1  # one cell is the zero line
        values = [part.value for part in total.parts]
        plus, minus = max([0.0, *values]), max([0.0, *(-value for value in values)])
        if not minus:
            return cls(name, number, 0, bars, plus / bars)
        # Halved before they are added: two numbers near the largest float have no sum.
        share = (minus / 2) / (plus / 2 + minus / 2)
        left = bars if not plus else min(bars - 1, max(1, round(share * bars)))
        return cls(name, number, left, bars - left, max(minus / left, plus / (bars - left) if plus else 0.0))

    @property
    def total(self) -> int:
        """Cells of a whole line."""
        return self.name + _GAP + self.number + 1 + self.left + 1 + self.right

    def bar(self, value: float, signs: _Signs) -> str:
        """A bar from the zero line, to the right or to the left; never empty where there is something."""
        length = abs(value) / self.unit if self.unit else 0.0
        if value < 0:
            drawn = signs.minus * min(self.left, max(1, round(length)))
            return " " * (self.left - len(drawn)) + drawn + signs.zero
        halves = min(2 * self.right, max(1, round(2 * length)))
        if signs.half is None:
            halves = 2 * max(1, halves // 2)
        return " " * self.left + signs.zero + signs.plus * (halves // 2) + (signs.half or "") * (halves % 2)

    def lines(
        self, part: Summand, number: str, bar: str, signs: _Signs, paint: tuple[str, str] | None
    ) -> list[str]:
        """The lines of one summand: its name, wrapped, with number and bar on the first."""
        first, *others = fitted(part.text, part.name, self.name, _NAME_LINES, ellipsis=signs.ellipsis)
        name, value = padded(first, self.name), padded(number, self.number, right=True)
        if paint is not None:
            of_bar, of_text = paint
            name, value = (_painted(text, of_text, bool(of_text)) for text in (name, value))
            value = _painted(value, of_bar, bool(of_bar))
            bar = _painted(bar, of_bar, bool(bar and of_bar))
        return [f"{name}{' ' * _GAP}{value} {bar}", *others]


def _in_ascii(total: Summands) -> Summands:
    def escaped(part: Summand) -> Summand:
        text, name = (told.encode("ascii", "backslashreplace").decode() for told in (part.text, part.name))
        return replace(part, text=text, name=name)

    return replace(total, terms=tuple(map(escaped, total.terms)), total=escaped(total.total))


def _painted(text: str, color: str, wanted: bool) -> str:
    return f"{color}{text}{_END}" if wanted else text
