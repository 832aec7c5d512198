"""The typer application: its commands, its version option, its errors and its exit codes."""

import contextlib
import inspect
import logging
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from anchorline._version import __version__
from anchorline.cli.codes import HELP, Code, code_of, root_cause, successor_of, with_option_names
from anchorline.cli.console import (
    State,
    convert_write_errors,
    prepare_logging,
    prepare_streams,
    print_message,
    print_result,
    redirect_to_null,
    reserve_stdout,
)
from anchorline.errors import AnchorlineError, ReasonsError

#: The commands and their modules, which are imported when the command runs or its help is shown.
COMMANDS = {
    "explain": "answers",
    "rule": "answers",
    "reasons": "answers",
    "batch": "batch",
    "verify": "verify",
    "frontier": "answers",
    "changes": "answers",
    "compare": "compare",
    "serve": "serve",
    "demo": "demo",
    "doctor": "doctor",
}
_BENCHMARKS = ("paper", "peers", "quick")


class _Commands(TyperGroup):
    """The commands, imported when they are needed, so that ``--version`` starts quickly."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS, "bench"]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        names = self.list_commands(ctx)
        for name in [cmd_name] if cmd_name in names else names:  # all, so that similar names can be suggested
            self.commands.setdefault(name, _command(name))
        return self.commands.get(cmd_name)


app = typer.Typer(
    cls=_Commands,
    name="anchorline",
    help="Explain one prediction of any model by a short sum of facts that adds up exactly, and test the facts.",
    epilog=HELP,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help texts contain no markup
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _show_version(value: bool) -> None:
    if value:
        print_result(f"anchorline {__version__}")
        raise typer.Exit


def _set_debug(value: bool) -> bool:
    State.debug = State.debug or value
    return value


def _set_verbose(value: bool) -> bool:
    if value:
        logging.getLogger().setLevel(logging.INFO)
    return value


#: Options of every command, which take effect when they are parsed.
_EVERYWHERE = {
    "debug": typer.Option(
        "--debug", callback=_set_debug, help="Print the full traceback of an error.", is_eager=True
    ),
    "verbose": typer.Option(
        "--verbose", "-v", callback=_set_verbose, help="Print more log messages.", is_eager=True
    ),
}


@app.callback()
def _global_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, _EVERYWHERE["debug"]] = False,
    verbose: Annotated[bool, _EVERYWHERE["verbose"]] = False,
) -> None:
    pass


def _command(name: str) -> Any:
    """Return the command, or the group of commands, of a name."""
    module = import_module(f"anchorline.cli.{COMMANDS.get(name, name)}")
    group = typer.Typer(name=name, epilog=HELP, add_completion=False, rich_markup_mode=None)
    if name == "bench":
        group.info.help = module.SUMMARY
    for each in _BENCHMARKS if name == "bench" else (name,):
        command = getattr(module, each)
        example_lines = "\b\nExamples:\n" + "".join(f"  {line}\n" for line in command.examples.splitlines())
        texts: dict[str, Any] = {"help": inspect.getdoc(command.run), "epilog": f"{example_lines}\n{HELP}"}
        add = group.command(each, short_help=command.summary, context_settings=dict(command.context), **texts)
        add(_guarded(command))
    return get_command(group)


def _guarded(command: Any) -> Callable[..., None]:
    """Return the function that typer calls: an error prints one line on standard error and sets the exit code."""

    def run(*, debug: bool, verbose: bool, **values: Any) -> None:
        from anchorline.model.predictor import contain_exits  # noqa: PLC0415  heavy

        try:
            # Without contain_exits, a model that calls sys.exit(0) would end the command with a success code.
            with contain_exits(), reserve_stdout():
                code = command(**values)
        except (Exception, KeyboardInterrupt) as error:
            if type(error).__module__.partition(".")[0] in ("typer", "click"):
                raise  # wrong usage, or an intended exit
            raise typer.Exit(report(error)) from None
        raise typer.Exit(int(code or Code.OK))

    kind, everywhere = inspect.Parameter.KEYWORD_ONLY, _EVERYWHERE.items()
    parameters = [option.parameter(name) for name, option in command.options.items()]
    parameters += [
        inspect.Parameter(name, kind, default=False, annotation=Annotated[bool, option])
        for name, option in everywhere
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def report(error: BaseException) -> Code:
    """Print an error, with its traceback if ``--debug`` was given, and return its exit code."""
    if State.debug:
        with contextlib.suppress(OSError):  # standard error may be closed
            typer.echo("".join(traceback.format_exception(error)), err=True)
    if isinstance(error, KeyboardInterrupt | SystemExit):
        is_interrupt = isinstance(error, KeyboardInterrupt)
        word = "Interrupted" if is_interrupt else "Terminated"
        notes = getattr(error, "__notes__", ())  # of the command, on how to continue
        print_message(" ".join([f"{word}; nothing was left half-written.", *notes]))
        return Code.INTERRUPTED if is_interrupt else Code.TERMINATED
    if isinstance(error, BrokenPipeError):
        return Code.BROKEN_PIPE
    if isinstance(error, MemoryError):
        print_message("There is not enough memory.")
        return Code.BUG
    error = root_cause(error)
    if isinstance(error, AnchorlineError):
        is_about_options = code_of(error) in (Code.USAGE, Code.MODEL) or isinstance(error, ReasonsError)
        print_message(with_option_names(str(error)) if is_about_options else str(error))
    else:
        hint = "" if State.debug else " Please report it together with the output of --debug."
        print_message(f"This is a bug in anchorline: {type(error).__name__}: {error}.{hint}")
    return code_of(error)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; None means the arguments of the process."""
    prepare_streams()
    prepare_logging()
    signal.signal(signal.SIGTERM, _terminate)
    try:
        with convert_write_errors():  # typer prints help and completion scripts itself
            return int(app(arguments, prog_name="anchorline", standalone_mode=False) or 0)
    except (KeyboardInterrupt, _Terminated) as error:
        return report(error)
    except SystemExit as exit_request:
        if exit_request.code == 1:  # typer exits with 1 where `| head` closed the pipe while help was printed
            redirect_to_null(sys.stdout)
            return Code.BROKEN_PIPE
        return exit_request.code if isinstance(exit_request.code, int) else Code.BUG
    except Exception as error:
        if not hasattr(error, "format_message"):
            return report(error)
        command_path = getattr(getattr(error, "ctx", None), "command_path", "anchorline")
        gone = successor_of(str(getattr(error, "option_name", "")))
        print_message(f"{gone or error.format_message()} Type: {command_path} --help")
        return Code.USAGE


class _Terminated(SystemExit):
    """The process received SIGTERM."""


def _terminate(number: int, frame: FrameType | None) -> None:
    """Raise an exception, so that the stack unwinds and no file is left half-written."""
    raise _Terminated(Code.TERMINATED)
