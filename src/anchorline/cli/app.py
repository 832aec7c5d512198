"""The application: its commands, its version, and how it ends."""

import logging
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType, ModuleType
from typing import Annotated, Any

import typer

from anchorline._version import __version__
from anchorline.cli import batch, bench, demo, doctor, explain, frontier, serve, verify
from anchorline.cli.codes import HELP, Code
from anchorline.cli.console import prepare_logging, prepare_streams, say, saying, silence, tell
from anchorline.cli.guard import guarded, report
from anchorline.cli.options import Debug, Verbose
from anchorline.cli.signature import spread

COMMANDS: dict[str, ModuleType] = {
    "explain": explain,
    "batch": batch,
    "verify": verify,
    "frontier": frontier,
    "serve": serve,
    "demo": demo,
    "doctor": doctor,
}

app = typer.Typer(
    name="anchorline",
    help="Explain one prediction of any model as a short sum that adds up exactly, with a certificate.",
    epilog=HELP,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # texts are shown as they are
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _show_version(value: bool) -> None:
    if value:
        say(f"anchorline {__version__}")
        raise typer.Exit


@app.callback()
def _all(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Debug = False,
    verbose: Verbose = False,
) -> None:
    pass


def _add(group: typer.Typer, command: Callable[..., Any], summary: str, examples: str) -> None:
    shown = "\b\nExamples:\n" + "".join(f"  {line}\n" for line in examples.splitlines())
    group.command(short_help=summary, epilog=f"{shown}\n{HELP}")(guarded(spread(command)))


for _name, _module in COMMANDS.items():
    _add(app, getattr(_module, _name), _module.SUMMARY, _module.EXAMPLES)
_benches = typer.Typer(name="bench", help=bench.SUMMARY, epilog=HELP, rich_markup_mode=None)
for _command, (_summary, _examples) in bench.COMMANDS.items():
    _add(_benches, _command, _summary, _examples)
app.add_typer(_benches)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default with what was typed, and return the exit code."""
    prepare_streams()
    prepare_logging(logging.WARNING)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        with saying():  # help and completion, which typer writes itself
            return int(app(arguments, prog_name="anchorline", standalone_mode=False) or 0)
    except (KeyboardInterrupt, _Terminated) as error:
        return report(error)
    except SystemExit as ended:
        if ended.code == 1:  # typer's own, where help was cut off by `| head`
            silence(sys.stdout)
            return Code.BROKEN_PIPE
        return ended.code if isinstance(ended.code, int) else Code.BUG
    except Exception as error:
        if not hasattr(error, "format_message"):
            return report(error)
        where = getattr(getattr(error, "ctx", None), "command_path", "anchorline")
        tell(f"{error.format_message()} Type: {where} --help")
        return Code.USAGE


class _Terminated(SystemExit):
    """Somebody asked the process to end."""


def _terminate(number: int, frame: FrameType | None) -> None:
    """Unwind, so that no file is left half-written."""
    raise _Terminated(Code.TERMINATED)
