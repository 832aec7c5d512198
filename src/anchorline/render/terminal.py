"""A small aligned table for terminals: one line per term, bars from a common zero, then the certificate."""

import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from anchorline.errors import ParameterError
from anchorline.render.characters import ELLIPSIS, cell_width, pad, wrap, wrap_statement
from anchorline.render.highlight import text_lines
from anchorline.render.summands import Summand, Summands, summands
from anchorline.render.text import sentences

if TYPE_CHECKING:
    from anchorline.result.explanation import Explanation

MIN_WIDTH = 24
_GAP = 2  # cells between columns
_NAME_LINES = 3
_WIDEST_BARS = 36
_WIDEST_TABLE = 100  # longer lines are hard to follow
# Blue and orange of the 256-color table, which color-blind readers can distinguish; legible on black and on white.
_PLUS, _MINUS, _BOLD, _FAINT, _END = "\x1b[38;5;32m", "\x1b[38;5;166m", "\x1b[1m", "\x1b[2m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class _Glyphs:
    """The characters that draw a table; ``half`` is None if the set has no half bar."""

    plus: str
    minus: str
    half: str | None
    zero: str
    line: str
    ellipsis: str


_UNICODE = _Glyphs("█", "▒", "▌", "│", "─", ELLIPSIS)
_ASCII = _Glyphs("+", "-", None, "|", "-", "...")


def table(
    explanation: "Explanation", *, width: int | None = None, color: bool = False, ascii: bool = False
) -> str:
    """Return the sum as a table with bars, then the certificate.

    There is one line per term, largest first, and one for the starting level (the intercept). Each line shows the
    literal, its contribution, and a bar from a common zero, which points right if the contribution is positive and
    left if it is negative. The printed numbers add up, digit for digit, to the last line. Texts longer than their
    column are wrapped; if a text needs more than three lines, the name in it is shortened, not the condition.

    Parameters
    ----------
    explanation
        The explanation to show.
    width
        Maximum number of columns; None uses the width of the terminal, but at most 100.
    color
        Whether to add ANSI colors, which repeat what direction and sign show already.
    ascii
        Whether to use ASCII characters only; other characters in names become escapes.

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
    Proven best 2-term explanation on the
    case and all 3 possible neighbors.
    While these 2 facts hold, nothing else
    can change, so the output stays within
    0.2 of its value; over all 3 possible
    neighbors, in none of them.
    Verdict: trustworthy explanation. While
    these facts hold, nothing else can
    change, so nothing had to be tested.
    """
    room = width
    if room is None:
        room = max(MIN_WIDTH, min(shutil.get_terminal_size().columns, _WIDEST_TABLE))
    if room < MIN_WIDTH:
        raise ParameterError(f"width is {width!r}. A table needs at least {MIN_WIDTH} columns. Type width=80.")
    glyphs, total = (_ASCII, _to_ascii(summands(explanation))) if ascii else (_UNICODE, summands(explanation))
    columns = _Columns.from_summands(total, room)
    lines = text_lines(explanation, room, color=color, ascii=ascii)
    for part in total.parts:
        bar = columns.bar(part.value, glyphs)
        bar_color = _PLUS if part.value > 0 else _MINUS
        lines += columns.lines(part, part.signed, bar, glyphs, (bar_color, "") if color else None)
    lines.append(_colorize(glyphs.line * columns.total, _FAINT if color else ""))
    lines += columns.lines(total.total, total.total.number, "", glyphs, ("", _BOLD) if color else None)
    lines.append("")
    for sentence in sentences(explanation):
        style = _BOLD if color and sentence.startswith("Verdict") else ""
        lines += [_colorize(line, style) for line in wrap(sentence, room)]
    return "\n".join(line.rstrip() for line in lines)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Widths in cells of names, numbers, and bars left and right of zero; ``unit`` is the value of one cell."""

    name: int
    number: int
    left: int
    right: int
    unit: float

    @classmethod
    def from_summands(cls, total: Summands, room: int) -> "_Columns":
        """Divide ``room`` cells: numbers in full, a third of the rest for bars, or more if names are short."""
        number = max(cell_width(part.signed) for part in (*total.parts, total.total))
        rest = max(7, room - number - _GAP - 1)
        longest = max(cell_width(part.text) for part in (*total.parts, total.total))
        name = min(longest, rest - max(4, rest // 3))
        bars = min(_WIDEST_BARS, rest - name) - 1  # one cell is the zero line
        values = [part.value for part in total.parts]
        plus, minus = max([0.0, *values]), max([0.0, *(-value for value in values)])
        if not minus:
            return cls(name, number, 0, bars, plus / bars)
        # Halve before adding, because the sum of two numbers near the largest float overflows.
        share = (minus / 2) / (plus / 2 + minus / 2)
        left = bars if not plus else min(bars - 1, max(1, round(share * bars)))
        return cls(name, number, left, bars - left, max(minus / left, plus / (bars - left) if plus else 0.0))

    @property
    def total(self) -> int:
        """The number of cells in a whole line."""
        return self.name + _GAP + self.number + 1 + self.left + 1 + self.right

    def bar(self, value: float, glyphs: _Glyphs) -> str:
        """Return a bar from the zero line to the right or to the left, at least half a cell long."""
        length = abs(value) / self.unit if self.unit else 0.0
        if value < 0:
            drawn = glyphs.minus * min(self.left, max(1, round(length)))
            return " " * (self.left - len(drawn)) + drawn + glyphs.zero
        halves = min(2 * self.right, max(1, round(2 * length)))
        if glyphs.half is None:
            halves = 2 * max(1, halves // 2)
        return " " * self.left + glyphs.zero + glyphs.plus * (halves // 2) + (glyphs.half or "") * (halves % 2)

    def lines(
        self, part: Summand, number: str, bar: str, glyphs: _Glyphs, colors: tuple[str, str] | None
    ) -> list[str]:
        """Return the lines of one summand: its wrapped text, with number and bar on the first line."""
        first, *others = wrap_statement(part.text, part.name, self.name, _NAME_LINES, ellipsis=glyphs.ellipsis)
        name, value = pad(first, self.name), pad(number, self.number, align_right=True)
        if colors is not None:
            bar_color, text_style = colors
            name, value = _colorize(name, text_style), _colorize(_colorize(value, text_style), bar_color)
            bar = _colorize(bar, bar_color) if bar else ""
        return [f"{name}{' ' * _GAP}{value} {bar}", *others]


def _to_ascii(total: Summands) -> Summands:
    def escape(part: Summand) -> Summand:
        text, name = (one.encode("ascii", "backslashreplace").decode() for one in (part.text, part.name))
        return replace(part, text=text, name=name)

    return replace(total, terms=tuple(map(escape, total.terms)), total=escape(total.total))


def _colorize(text: str, style: str) -> str:
    return f"{style}{text}{_END}" if style else text
