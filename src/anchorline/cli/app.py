"""The typer application: its commands, its version option, and its exit codes."""

import logging
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType, ModuleType
from typing import Annotated, Any

import typer

from anchorline._version import __version__
from anchorline.cli import batch, bench, changes, demo, doctor, explain, frontier, serve, verify
from anchorline.cli.codes import HELP, Code
from anchorline.cli.console import (
    convert_write_errors,
    prepare_logging,
    prepare_streams,
    print_message,
    print_result,
    redirect_to_null,
)
from anchorline.cli.guard import guarded, report
from anchorline.cli.options import Debug, Verbose
from anchorline.cli.signature import expand_option_groups

COMMANDS: dict[str, ModuleType] = {
    "explain": explain,
    "batch": batch,
    "verify": verify,
    "frontier": frontier,
    "changes": changes,
    "serve": serve,
    "demo": demo,
    "doctor": doctor,
}

app = typer.Typer(
    name="anchorline",
    help="Explain one prediction of any model as a short sum that adds up exactly, with a certificate.",
    epilog=HELP,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help texts contain no markup
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _show_version(value: bool) -> None:
    if value:
        print_result(f"anchorline {__version__}")
        raise typer.Exit


@app.callback()
def _global_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Debug = False,
    verbose: Verbose = False,
) -> None:
    pass


def _add_command(group: typer.Typer, command: Callable[..., Any], summary: str, examples: str) -> None:
    example_lines = "\b\nExamples:\n" + "".join(f"  {line}\n" for line in examples.splitlines())
    group.command(short_help=summary, epilog=f"{example_lines}\n{HELP}")(guarded(expand_option_groups(command)))


for _name, _module in COMMANDS.items():
    _add_command(app, getattr(_module, _name), _module.SUMMARY, _module.EXAMPLES)
_bench_app = typer.Typer(name="bench", help=bench.SUMMARY, epilog=HELP, rich_markup_mode=None)
for _command, (_summary, _examples) in bench.COMMANDS.items():
    _add_command(_bench_app, _command, _summary, _examples)
app.add_typer(_bench_app)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; None means the arguments of the process."""
    prepare_streams()
    prepare_logging(logging.WARNING)
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
        print_message(f"{error.format_message()} Type: {command_path} --help")
        return Code.USAGE


class _Terminated(SystemExit):
    """The process received SIGTERM."""


def _terminate(number: int, frame: FrameType | None) -> None:
    """Raise an exception, so that the stack unwinds and no file is left half-written."""
    raise _Terminated(Code.TERMINATED)
