"""Every command's errors, told in one line and as an exit code."""

import contextlib
import functools
import traceback
from collections.abc import Callable
from typing import Any

import typer

from anchorline.cli.codes import Code, code_of, root_of
from anchorline.cli.console import State, results_apart, tell
from anchorline.cli.options import in_options
from anchorline.errors import AnchorlineError
from anchorline.model.exits import contain_exits


def guarded(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command, whose errors end in one line on standard error and in an exit code."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            with (
                contain_exits(),
                results_apart(),
            ):  # a model that exits would else end the command as if all were well
                code = command(*arguments, **options)
        except (Exception, KeyboardInterrupt) as error:
            if type(error).__module__.partition(".")[0] in ("typer", "click"):
                raise  # wrong usage, or an exit that is meant
            raise typer.Exit(report(error)) from None
        raise typer.Exit(int(code or Code.OK))

    return run


def report(error: BaseException) -> Code:
    """Tell what went wrong; with ``--debug`` where, too."""
    if State.debug:
        with contextlib.suppress(OSError):  # nobody there to tell
            typer.echo("".join(traceback.format_exception(error)), err=True)
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return _stopped(error)
    if isinstance(error, BrokenPipeError):
        return Code.BROKEN_PIPE
    if isinstance(error, MemoryError):
        tell("Not enough memory.")
        return Code.BUG
    error = root_of(error)
    if isinstance(error, AnchorlineError):
        tell(in_options(str(error)) if code_of(error) in (Code.USAGE, Code.MODEL) else str(error))
    else:
        hint = "" if State.debug else " Please report it with what --debug shows."
        tell(f"This is a bug: {type(error).__name__}: {error}.{hint}")
    return code_of(error)


def _stopped(error: KeyboardInterrupt | SystemExit) -> Code:
    """Tell who stopped it, and how to go on where the command noted that."""
    word, code = "Terminated", Code.TERMINATED
    if isinstance(error, KeyboardInterrupt):
        word, code = "Interrupted", Code.INTERRUPTED
    tell(" ".join([f"{word}; nothing was left half-written.", *getattr(error, "__notes__", ())]))
    return code
