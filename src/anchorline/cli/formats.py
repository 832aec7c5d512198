"""An explanation as text, JSON, HTML or a picture, printed or written to files."""

import enum
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from anchorline.cli.console import PAGE_WIDTH, is_ascii_only, is_terminal, print_result, supports_color
from anchorline.errors import ParameterError
from anchorline.io import write_atomically
from anchorline.result.explanation import Explanation


class Format(enum.StrEnum):
    """Output format of an explanation."""

    text = "text"
    json = "json"
    html = "html"
    png = "png"


_Form = TypeVar("_Form", bound=enum.StrEnum)
_BY_SUFFIX = {"": Format.text, ".txt": Format.text, ".json": Format.json, ".jsonl": Format.json}
_BY_SUFFIX |= {".html": Format.html, ".htm": Format.html, ".png": Format.png}


def format_by_name(requested: _Form | None, out: str | None, by_suffix: Mapping[str, _Form]) -> _Form:
    """Return the requested format or, if None, the format of the file name's suffix; no suffix means text."""
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
    form = format_by_name(requested, out, _BY_SUFFIX)
    if n_rows > 1 and form in (Format.html, Format.png) and "{row}" not in (out or ""):
        raise ParameterError(
            f"{n_rows} rows are to be explained as {form.value}, which needs one file per row. "
            f"Type: --out 'explanation-{{row}}.{form.value}'"
        )
    return form


def render(explanation: Explanation, form: Format, *, to_terminal: bool) -> str | bytes:
    """Return the explanation in a format; text has the terminal's colors and width only if it is printed there."""
    if form is Format.json:
        return explanation.to_json()
    if form is Format.html:
        from anchorline.render import html  # noqa: PLC0415  on first use

        return html.page(explanation)
    if form is Format.png:
        from anchorline.render import plot  # noqa: PLC0415  needs matplotlib
        from anchorline.render.regions import is_image  # noqa: PLC0415  on first use

        draw = plot.regions if is_image(explanation) else plot.waterfall
        return png_bytes(draw(explanation))
    from anchorline.render import terminal  # noqa: PLC0415  on first use

    color, ascii_only = to_terminal and supports_color(), to_terminal and is_ascii_only()
    width = None if to_terminal and is_terminal() else PAGE_WIDTH
    table = terminal.table(explanation, width=width, color=color, ascii=ascii_only)
    return f"{explanation.as_rule()}\n\n{table}"


def png_bytes(axes: Any) -> bytes:
    """Return matplotlib axes as the bytes of a PNG file."""
    buffer = io.BytesIO()
    axes.figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()


def write_results(contents: list[tuple[int, str | bytes]], out: str | None) -> None:
    """Print the content of every row, or write it to one file, or to one file per row if ``out`` has {row}."""
    if out is not None and "{row}" in out:
        for row, content in contents:
            write_atomically(out.replace("{row}", str(row)), _with_newline(content))
        return
    if out is not None:
        if isinstance(contents[0][1], bytes):
            write_atomically(out, contents[0][1])
        else:
            write_atomically(out, "".join(str(_with_newline(content)) for _, content in contents))
        return
    for _, content in contents:
        print_result(content)


def _with_newline(content: str | bytes) -> str | bytes:
    return content if isinstance(content, bytes) or content.endswith("\n") else f"{content}\n"
