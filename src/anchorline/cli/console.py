"""Printing: results go to standard output, messages and logs to standard error; no text is parsed as markup."""

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

from anchorline import _version
from anchorline.errors import OutputFileError
from anchorline.render.characters import printable

_PACKAGE_FOLDER = Path(_version.__file__).parent


def prepare_streams() -> None:
    """Make both streams writable and replace characters that they cannot encode by escapes.

    Python sets a stream to None if it was closed (``>&-``). Messages to a closed standard error are then
    discarded. A result for a closed standard output raises an error when it is written, so that a command that
    writes to a file is not affected.
    """
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  open until the process ends
    for stream in (sys.stdout, sys.stderr):
        atexit.register(_flush_at_exit, stream)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _flush_at_exit(stream: TextIO) -> None:
    """Flush a stream and ignore a failure, because Python would replace the exit code by its own."""
    try:
        stream.flush()
    except (OSError, ValueError):
        redirect_to_null(stream)


@contextlib.contextmanager
def reserve_stdout() -> Iterator[None]:
    """Reserve standard output for results: text that a model prints goes to standard error instead."""
    State.results = sys.stdout
    try:
        with contextlib.redirect_stdout(cast(TextIO, _ForgivingStderr())):
            yield
    finally:
        State.results = None


class _ForgivingStderr:
    """Standard error for text printed by models: a failed write does not raise inside the model."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            sys.stderr.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


def _result_stream() -> TextIO:
    return State.results or sys.stdout


def print_result(text: str) -> None:
    """Write a result to standard output."""
    with convert_write_errors():
        # color=True keeps the escape codes, which `supports_color` has already decided on.
        typer.echo(text, file=_result_stream(), color=True)


@contextlib.contextmanager
def convert_write_errors() -> Iterator[None]:
    """Raise `OutputFileError` where standard output cannot be written; a closed pipe stays `BrokenPipeError`."""
    try:
        yield
    except OutputFileError:
        raise
    except OSError as error:
        redirect_to_null(_result_stream())
        if isinstance(error, BrokenPipeError):
            raise
        from anchorline.io.files import reason_of  # noqa: PLC0415  heavy

        target = "Standard output" if error.filename is None else repr(error.filename)
        raise OutputFileError(f"{target} cannot be written: {reason_of(error)}.") from error


def print_message(text: str) -> None:
    """Write one line to standard error, without line breaks and control codes of the text."""
    with contextlib.suppress(OSError):  # there is no other place to report that standard error is closed
        typer.echo(f"anchorline: {one_line(text)}", err=True)


def one_line(text: str) -> str:
    """Return a text without line breaks and control codes."""
    return printable(" ".join(text.split()))


def printable_lines(value: Any) -> str:
    """Return a value as text, on its own lines, without control codes, which could steer a terminal."""
    return "\n".join(printable(line) for line in str(value).split("\n"))


def redirect_to_null(stream: TextIO) -> None:
    """Discard the rest of a broken stream, so that Python does not report it again when the process ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def is_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return _result_stream().isatty()


def supports_color() -> bool:
    """Return whether standard output is a terminal with colors that NO_COLOR does not turn off."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def is_ascii_only() -> bool:
    """Return whether standard output cannot encode block characters."""
    try:
        "█▒─│".encode(_result_stream().encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return True
    return False


class _OneLineFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"anchorline: {record.levelname.lower()}: {one_line(record.getMessage())}"


def prepare_logging() -> None:
    """Write every warning and every log record to standard error, on one line each."""
    State.log = logging.StreamHandler(sys.stderr)
    State.log.setFormatter(_OneLineFormatter())
    root = logging.getLogger()
    root.handlers[:] = [State.log]
    root.setLevel(logging.WARNING)
    logging.captureWarnings(True)
    warnings.formatwarning = _format_warning


def _format_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Return a warning without its source line; its file and line only if it is not raised by anchorline."""
    location = "" if Path(filename).is_relative_to(_PACKAGE_FOLDER) else f" ({filename}, line {lineno})"
    return f"{message}{location}"


class State:
    """Options that apply to every command, the log, and the stream for results (None for standard output)."""

    debug: bool = False
    results: TextIO | None = None
    log: logging.Handler = logging.NullHandler()
