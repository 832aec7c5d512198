"""The command line. A new command: one file with one function, and one line in `app`."""

import sys

_PACKAGE_MISSING = 7  # as in `codes`, which is not loaded without typer


def main() -> None:
    """Run ``anchorline``; the process ends with the exit code that ``anchorline --help`` explains."""
    try:
        from anchorline.cli.app import run  # noqa: PLC0415  typer and rich are an extra
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.stderr.write(f"anchorline: The command line needs {error.name}. Type: pip install 'anchorline[cli]'\n")
        sys.exit(_PACKAGE_MISSING)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(run())


__all__ = ["main"]
