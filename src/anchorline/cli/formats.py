"""An explanation as text, JSON, HTML or a picture."""

import enum
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from anchorline.cli.console import PAGE_WIDTH, in_ascii, in_color, is_terminal, say
from anchorline.errors import ParameterError
from anchorline.io import write_atomically
from anchorline.result.explanation import Explanation


class Format(enum.StrEnum):
    """What is made of an explanation."""

    text = "text"
    json = "json"
    html = "html"
    png = "png"


_Form = TypeVar("_Form", bound=enum.StrEnum)
_BY_SUFFIX = {"": Format.text, ".txt": Format.text, ".json": Format.json, ".jsonl": Format.json}
_BY_SUFFIX |= {".html": Format.html, ".htm": Format.html, ".png": Format.png}


def format_by_name(asked: _Form | None, out: str | None, known: Mapping[str, _Form]) -> _Form:
    """The format asked for, or the one that the ending of the file's name says; no ending is a text's."""
    form = asked or known.get(Path(out or "").suffix.lower())
    if form is None:
        endings = ", ".join(filter(None, known))
        raise ParameterError(f"--out is {out!r}; needed a name that ends in {endings}; or say --format.")
    if form == Format.png and out is None:
        raise ParameterError("A picture needs a file: --out picture.png")
    return form


def chosen_format(asked: Format | None, out: str | None, n_rows: int) -> Format:
    """The format of explanations of so many rows."""
    form = format_by_name(asked, out, _BY_SUFFIX)
    if n_rows > 1 and form in (Format.html, Format.png) and "{row}" not in (out or ""):
        raise ParameterError(f"Several rows need several files: --out 'explanation-{{row}}.{form.value}'")
    return form


def rendered(explanation: Explanation, form: Format, *, to_terminal: bool) -> str | bytes:
    """The explanation in a format; colours and width only for the terminal."""
    if form is Format.json:
        return explanation.to_json()
    if form is Format.html:
        from anchorline.render import html  # noqa: PLC0415  on first use

        return html.page(explanation)
    if form is Format.png:
        from anchorline.render import plot  # noqa: PLC0415  needs matplotlib

        return picture(plot.waterfall(explanation))
    from anchorline.render import terminal  # noqa: PLC0415  on first use

    color, ascii_only = to_terminal and in_color(), to_terminal and in_ascii()
    width = None if to_terminal and is_terminal() else PAGE_WIDTH
    table = terminal.table(explanation, width=width, color=color, ascii=ascii_only)
    return f"{explanation.as_rule()}\n\n{table}"


def picture(axes: Any) -> bytes:
    """Axes as the bytes of a PNG file."""
    buffer = io.BytesIO()
    axes.figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()


def deliver(parts: list[tuple[int, str | bytes]], out: str | None) -> None:
    """Print what was made of each row, or write it: to one file, or to one a row where the name has {row}."""
    if out is not None and "{row}" in out:
        for row, content in parts:
            write_atomically(out.replace("{row}", str(row)), _ended(content))
        return
    if out is not None:
        if isinstance(parts[0][1], bytes):
            write_atomically(out, parts[0][1])
        else:
            write_atomically(out, "".join(str(_ended(content)) for _, content in parts))
        return
    for _, content in parts:
        say(content)


def _ended(content: str | bytes) -> str | bytes:
    return content if isinstance(content, bytes) or content.endswith("\n") else f"{content}\n"
