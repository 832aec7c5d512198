"""An explanation as text, JSON, HTML or a picture, printed or written to files."""

import enum
import io
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.table import Table as Grid
from rich.text import Text

from anchorline.cli.console import is_ascii_only, is_terminal, print_result, supports_color
from anchorline.errors import ParameterError
from anchorline.io import write_atomically
from anchorline.render import statements as say
from anchorline.render.characters import ELLIPSIS
from anchorline.result.explanation import Explanation

_WIDEST = 100  # longer lines are hard to follow
_NARROWEST = 24
# Blue and orange of the 256-color table, which color-blind readers can distinguish; legible on black and on white.
_PLUS, _MINUS = "color(32)", "color(166)"

Format = enum.StrEnum("Format", ["text", "json", "html", "png"])
_Form = TypeVar("_Form", bound=enum.StrEnum)
_BY_SUFFIX = {"": "text", ".txt": "text", ".json": "json", ".jsonl": "json"}
_BY_SUFFIX |= {".html": "html", ".htm": "html", ".png": "png", ".xml": "junit"}


def format_by_name(requested: _Form | None, out: str | None, forms: type[_Form]) -> _Form:
    """Return the requested format or, if None, the format of the file name's suffix; no suffix means text."""
    by_suffix = {suffix: forms(name) for suffix, name in _BY_SUFFIX.items() if name in [*forms]}
    form = requested or by_suffix.get(Path(out or "").suffix.lower())
    if form is None:
        suffixes = ", ".join(filter(None, by_suffix))
        raise ParameterError(
            f"--out is {out!r}, whose format is unknown. Type a name that ends in {suffixes}, or add --format."
        )
    if form == Format.png and out is None:
        raise ParameterError("--format is png, but a picture needs a file. Type: --out picture.png")
    return form


def choose_format(requested: Format | None, out: str | None, n_rows: int) -> Format:
    """Return the format for ``n_rows`` explanations."""
    form = format_by_name(requested, out, Format)
    if n_rows > 1 and form in (Format.html, Format.png) and "{row}" not in (out or ""):
        raise ParameterError(
            f"{n_rows} rows are to be explained as {form.value}, which needs one file per row. "
            f"Type: --out 'explanation-{{row}}.{form.value}'"
        )
    return form


def render(answer: Any, form: enum.StrEnum, text: Callable[[Any], str]) -> str | bytes:
    """Return an answer in a format; ``text`` makes its text."""
    if form == Format.json:
        return str(answer.to_json())
    if form == Format.html:
        return str(answer.to_html())
    return png_bytes(answer.plot()) if form == Format.png else text(answer)


def plain_text(explanation: Explanation, *, details: bool = False) -> str:
    """Return what ``print(e)`` shows, or (``details``) its details, which begin with the same text."""
    return explanation.details() if details else str(explanation)


def terminal_text(explanation: Explanation, *, details: bool = False) -> str:
    """Return `plain_text` for standard output; on a terminal, the same statements with bars beside the sum."""
    ascii_only = is_ascii_only()
    if is_terminal():
        width = max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size().columns))
        text = table(explanation, width, color=supports_color(), ascii=ascii_only)
        text += "".join(f"\n{each.text}" for each in say.details_of(explanation)) if details else ""
    else:
        text = plain_text(explanation, details=details)
    return text.replace(ELLIPSIS, "...") if ascii_only else text


def table(explanation: Explanation, width: int, *, color: bool = False, ascii: bool = False) -> str:
    """Return the statements of an explanation with bars from level to level, in lines of at most ``width`` cells.

    The start is a level, and every fact moves it: to the right if it adds, to the left if it takes away.
    """
    statements = say.statements_of(explanation)
    decision, verdict, *rest = statements
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
    low, high = min(levels), max(levels)
    for place, line in enumerate(lines):
        start = levels[place - 1] if place else None
        bar = _Bar(start, levels[place], low, high, ascii=ascii)
        grid.add_row(Text(line.amount, style=bar.style), Text(line.text), bar)
    system = "256" if color else None
    console = Console(width=width, color_system=system, force_terminal=color, markup=False, highlight=False)  # type: ignore[arg-type]
    with console.capture() as captured:
        colon = ":" if lines or before else "."
        console.print(Text(f"{decision.text} {verdict.text}{colon}", style="bold"))
        for each in before:
            console.print(Text(each.text if each.text.endswith(".") else f"{each.text}:"))
        console.print(grid, end="")
        for each in after:
            console.print(Text(each.text))
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
        places = [
            0 if span == 0 else round((level / 2 - self._low / 2) / span * room)
            for level in ((self._end,) if self._start is None else (self._start, self._end))
        ]
        mark, plus, minus = self._glyphs
        if self._start is None:
            yield Segment(" " * places[0] + mark)
            return
        length = max(1, abs(places[1] - places[0]))
        glyph = plus if self._end >= self._start else minus
        yield Segment(" " * min(*places, room))
        yield Segment(glyph * length, Style.parse(self.style))


def png_bytes(axes: Any) -> bytes:
    """Return matplotlib axes as the bytes of a PNG file."""
    buffer = io.BytesIO()
    axes.figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()


def write_results(contents: Sequence[tuple[int, str | bytes]], out: str | None) -> None:
    """Print the content of every row, or write it to one file, or to one file per row if ``out`` has {row}."""
    if out is not None and "{row}" in out:
        for row, content in contents:
            write_atomically(out.replace("{row}", str(row)), _with_newline(content))
    elif out is None:
        for _, content in contents:
            print_result(content)
    elif isinstance(contents[0][1], bytes):
        write_atomically(out, contents[0][1])
    else:
        write_atomically(out, "".join(str(_with_newline(content)) for _, content in contents))


def _with_newline(content: str | bytes) -> str | bytes:
    return content if isinstance(content, bytes) or content.endswith("\n") else f"{content}\n"
