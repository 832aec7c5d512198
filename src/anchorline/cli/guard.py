"""Error handling around every command: one line on standard error, and an exit code."""

import contextlib
import functools
import traceback
from collections.abc import Callable
from typing import Any

import typer

from anchorline.cli.codes import Code, code_of, root_cause
from anchorline.cli.console import State, print_message, reserve_stdout
from anchorline.cli.options import with_option_names
from anchorline.errors import AnchorlineError
from anchorline.model.exits import contain_exits


def guarded(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command wrapped so that an error prints one line on standard error and sets the exit code."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            # Without contain_exits, a model that calls sys.exit(0) would end the command with a success code.
            with contain_exits(), reserve_stdout():
                code = command(*arguments, **options)
        except (Exception, KeyboardInterrupt) as error:
            if type(error).__module__.partition(".")[0] in ("typer", "click"):
                raise  # wrong usage, or an intended exit
            raise typer.Exit(report(error)) from None
        raise typer.Exit(int(code or Code.OK))

    return run


def report(error: BaseException) -> Code:
    """Print an error, with its traceback if ``--debug`` was given, and return its exit code."""
    if State.debug:
        with contextlib.suppress(OSError):  # standard error may be closed
            typer.echo("".join(traceback.format_exception(error)), err=True)
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return _report_stop(error)
    if isinstance(error, BrokenPipeError):
        return Code.BROKEN_PIPE
    if isinstance(error, MemoryError):
        print_message("There is not enough memory.")
        return Code.BUG
    error = root_cause(error)
    if isinstance(error, AnchorlineError):
        is_about_options = code_of(error) in (Code.USAGE, Code.MODEL)
        print_message(with_option_names(str(error)) if is_about_options else str(error))
    else:
        hint = "" if State.debug else " Please report it together with the output of --debug."
        print_message(f"This is a bug in anchorline: {type(error).__name__}: {error}.{hint}")
    return code_of(error)


def _report_stop(error: KeyboardInterrupt | SystemExit) -> Code:
    """Print why the command stopped, and the notes that the command added on how to continue."""
    word, code = "Terminated", Code.TERMINATED
    if isinstance(error, KeyboardInterrupt):
        word, code = "Interrupted", Code.INTERRUPTED
    print_message(" ".join([f"{word}; nothing was left half-written.", *getattr(error, "__notes__", ())]))
    return code
