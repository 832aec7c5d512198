"""Answers as text, JSON, pages or pictures, printed or written; on terminals, a sum has bars beside its facts."""

import io
import shutil
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.table import Table as Grid
from rich.text import Text

from anchorline.cli.console import is_ascii_only, is_terminal, print_result, supports_color
from anchorline.cli.options import Given
from anchorline.errors import ParameterError
from anchorline.io import write_atomically
from anchorline.render import statements as say
from anchorline.render.characters import ELLIPSIS
from anchorline.result.explanation import Explanation

_FORMAT_OF_SUFFIX = {
    **{"": "text", ".txt": "text", ".json": "json", ".jsonl": "json"},
    **{".html": "html", ".htm": "html", ".png": "png", ".xml": "junit"},
}
_WIDEST = 100  # longer lines are hard to follow
_NARROWEST = 24
# Blue and orange of the 256-color table, which color-blind readers can distinguish; legible on black and on white.
_PLUS, _MINUS = "color(32)", "color(166)"


def choose_format(given: Given, formats: tuple[str, ...], n_cases: int = 1) -> str:
    """Return the requested format or, without one, that of the name in --out; without a suffix, it is text."""
    out = given.out
    by_suffix = {suffix: name for suffix, name in _FORMAT_OF_SUFFIX.items() if name in formats}
    form = given.form or by_suffix.get(Path(out or "").suffix.lower())
    if form is None:
        suffixes = ", ".join(filter(None, by_suffix))
        raise ParameterError(
            f"--out is {out!r}, whose format is unknown. Type a name that ends in {suffixes}, or add --format."
        )
    if form == "png" and out is None:
        raise ParameterError("--format is png, but a picture needs a file. Type: --out picture.png")
    if n_cases > 1 and form in ("html", "png") and "{row}" not in (out or ""):
        raise ParameterError(
            f"{n_cases} rows are to be explained as {form}, which needs one file per row. "
            f"Type: --out 'explanation-{{row}}.{form}'"
        )
    return str(form)


def write_results(contents: list[tuple[int, str | bytes]], out: str | None) -> None:
    """Print the content of every case, or write it to one file, or to one file per case if ``out`` has {row}."""
    if out is None:
        for _, content in contents:
            print_result(str(content))  # a picture needs a file
        return
    ended = [(row, each if isinstance(each, bytes) else each.removesuffix("\n") + "\n") for row, each in contents]
    if "{row}" in out:
        for row, content in ended:
            write_atomically(out.replace("{row}", str(row)), content)
    elif isinstance(ended[0][1], bytes):
        write_atomically(out, ended[0][1])
    else:
        write_atomically(out, "".join(str(content) for _, content in ended))


def png_bytes(axes: Any) -> bytes:
    """Return matplotlib axes as the bytes of a PNG file."""
    buffer = io.BytesIO()
    axes.figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()


def terminal_text(explanation: Explanation, *, details: bool = False) -> str:
    """Return what ``print(e)`` or its details show; on a terminal, the same with bars beside the sum."""
    ascii_only = is_ascii_only()
    if is_terminal():
        width = max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size().columns))
        text = table(explanation, width, color=supports_color(), ascii=ascii_only)
        text += "".join(f"\n{each.text}" for each in say.details_of(explanation)) if details else ""
    else:
        text = explanation.details() if details else str(explanation)
    return text.replace(ELLIPSIS, "...") if ascii_only else text


def table(explanation: Explanation, width: int, *, color: bool = False, ascii: bool = False) -> str:
    """Return the statements of an explanation with bars from level to level, in lines of at most ``width`` cells.

    The start is a level, and every fact moves it: to the right if it adds, to the left if it takes away.
    """
    decision, verdict, *rest = say.statements_of(explanation)
    lines = [each for each in rest if each.amount]
    before = [each for each in rest if each.kind == "same"]
    after = [each for each in rest if not each.amount and each not in before]
    grid = Grid.grid(padding=(0, 1))
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(ratio=3, overflow="fold")
    grid.add_column(ratio=2)
    levels = [explanation.base]
    for contribution in explanation.contributions.tolist():
        levels.append(levels[-1] + contribution)
    for place, line in enumerate(lines):
        bar = _Bar(levels[place - 1] if place else None, levels[place], min(levels), max(levels), ascii=ascii)
        grid.add_row(Text(line.amount, style=bar.style), Text(line.text), bar)
    heading = f"{decision.text} {verdict.text}{':' if lines or before else '.'}"
    same = [Text(each.text if each.text.endswith(".") else f"{each.text}:") for each in before]
    return as_lines([Text(heading, style="bold"), *same, grid, *(Text(each.text) for each in after)], width, color)


def as_lines(parts: list[Any], width: int, color: bool) -> str:
    """Return what rich prints, in lines of at most ``width`` cells without spaces at their ends."""
    system: Any = "256" if color else None
    console = Console(width=width, color_system=system, force_terminal=color, markup=False, highlight=False)
    with console.capture() as captured:
        for part in parts:
            console.print(part, end="" if isinstance(part, Grid) else "\n")
    return "\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n"))


class _Bar:
    """A bar from one level of the sum to the next; of the start, a mark where it lies."""

    def __init__(self, start: float | None, end: float, low: float, high: float, *, ascii: bool) -> None:
        self._start, self._end, self._low, self._high = start, end, low, high
        self._glyphs = ("|", "+", "-") if ascii else ("│", "█", "▒")
        self.style = "" if start is None else _PLUS if end >= start else _MINUS

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(2, options.max_width) - 1
        # Halve before subtracting, because the difference of two numbers near the largest float overflows.
        span = self._high / 2 - self._low / 2

        def place(level: float) -> int:
            return 0 if span == 0 else round((level / 2 - self._low / 2) / span * room)

        mark, plus, minus = self._glyphs
        if self._start is None:
            yield Segment(" " * place(self._end) + mark)
            return
        places = place(self._start), place(self._end)
        yield Segment(" " * min(*places, room))
        glyph = plus if self._end >= self._start else minus
        yield Segment(glyph * max(1, abs(places[1] - places[0])), Style.parse(self.style))
