"""The command line: one file per command, shared options, printing, progress and exit codes.

To add a command, write one file with one function and add one line to `app`.
May import: every other room. No other room may import this one.
"""

import sys

_PACKAGE_MISSING = 7  # equals `codes.Code.MISSING`; `codes` is not imported here so that this file stays light


def main() -> None:
    """Run ``anchorline`` and exit the process with one of the exit codes that ``anchorline --help`` lists."""
    try:
        from anchorline.next.cli.app import run  # noqa: PLC0415  typer and rich are an extra
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.stderr.write(
            f"anchorline: The command line needs the package {error.name!r}, which is not installed. "
            "Type: pip install 'anchorline[cli]'\n"
        )
        sys.exit(_PACKAGE_MISSING)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(run())


__all__ = ["main"]
