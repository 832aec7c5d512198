"""What is written, and where: results on standard output, all else on standard error, nothing interpreted."""

import atexit
import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO, cast

import typer
from rich.console import Console

from anchorline.errors import OutputFileError
from anchorline.io.files import reason_of
from anchorline.render.text import printable

_OWN_CODE = Path(__file__).parents[1]
PAGE_WIDTH = 100  # of a table that goes to a file or a pipe


def prepare_streams() -> None:
    """Characters that a terminal does not know become escapes instead of errors, and no stream is None.

    Python has None for a stream that was closed (``>&-``). What is told then goes nowhere, and a result fails
    where it is written: a command that writes to a file is not disturbed.
    """
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  as long as the process
    for stream in (sys.stdout, sys.stderr):
        atexit.register(_settle, stream)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _settle(stream: TextIO) -> None:
    """Write what is left, if it can be; where it cannot, Python would end with a code of its own."""
    try:
        stream.flush()
    except (OSError, ValueError):
        silence(stream)


@contextlib.contextmanager
def results_apart() -> Iterator[None]:
    """Keep standard output for results: whatever else is printed, by a model above all, goes to standard error."""
    State.results = sys.stdout
    try:
        with contextlib.redirect_stdout(cast(TextIO, _Aside())):
            yield
    finally:
        State.results = None


class _Aside:
    """Standard error, for what others print: where it cannot be written, nothing of theirs fails."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            sys.stderr.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


def _results() -> TextIO:
    return State.results or sys.stdout


def say(text: str | bytes) -> None:
    """Write a result to standard output."""
    with saying():
        if isinstance(text, bytes):
            _results().buffer.write(text)
            _results().buffer.flush()
        else:
            typer.echo(text, file=_results(), color=True)  # colours, if any, were asked for


@contextlib.contextmanager
def saying() -> Iterator[None]:
    """Tell what cannot be written; a reader that went away ends the command, as it does elsewhere."""
    try:
        yield
    except OutputFileError:
        raise
    except OSError as error:
        silence(_results())
        if isinstance(error, BrokenPipeError):
            raise
        where = "Standard output" if error.filename is None else repr(error.filename)
        raise OutputFileError(f"{where} cannot be written: {reason_of(error)}.") from error


def tell(text: str) -> None:
    """Write one line to standard error, whatever is in the text."""
    with contextlib.suppress(OSError):  # nobody there to tell
        typer.echo(f"anchorline: {one_line(text)}", err=True)


def one_line(text: str) -> str:
    """A text without line breaks and control codes."""
    return printable(" ".join(text.split()))


def lines_of(value: Any) -> str:
    """A text of several lines without control codes."""
    return "\n".join(printable(line) for line in str(value).split("\n"))


def silence(stream: TextIO) -> None:
    """Let what is left in a broken stream go nowhere, so that Python does not complain when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def is_terminal() -> bool:
    """Whether somebody looks at standard output."""
    return _results().isatty()


def in_color() -> bool:
    """Whether standard output is a terminal that wants colours."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def in_ascii() -> bool:
    """Whether standard output knows no block characters."""
    try:
        "█▒─│".encode(_results().encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return True
    return False


def error_console() -> Console:
    """For progress bars: silent unless standard error is a terminal."""
    return Console(stderr=True, markup=False, highlight=False, emoji=False)


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"anchorline: {record.levelname.lower()}: {one_line(record.getMessage())}"


def prepare_logging(level: int) -> None:
    """Warnings and logs, one line each, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.captureWarnings(True)
    warnings.formatwarning = _plain_warning


def _plain_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """A warning without a piece of code; where it arose only where that is not in our own code."""
    where = "" if Path(filename).is_relative_to(_OWN_CODE) else f" ({filename}, line {lineno})"
    return f"{message}{where}"


class State:
    """What was asked of all commands, and where their results go (None: to standard output as it is)."""

    debug: bool = False
    results: TextIO | None = None


def set_debug(value: bool) -> bool:
    """Remember ``--debug``."""
    State.debug = State.debug or value
    return value


def set_verbose(value: bool) -> bool:
    """Heed ``--verbose``."""
    if value:
        logging.getLogger().setLevel(logging.INFO)
    return value


def shown(value: Any) -> str:
    """Any value as text that drives no terminal."""
    return printable(str(value))
