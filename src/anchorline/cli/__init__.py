"""The command line: its commands, shared options, printing, progress and exit codes.

To add a command, write one file with one function and add its name to `app`.
May import: every other room. No other room may import this one.
"""

import sys

_PACKAGE_MISSING = 7  # equals `codes.Code.MISSING`; `codes` is not imported here so that this file stays light


def main() -> None:
    """Run ``anchorline`` and exit the process with one of the exit codes that ``anchorline --help`` lists."""
    try:
        from anchorline.cli.app import run  # noqa: PLC0415  typer and rich are an extra
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


def verify_alone() -> None:
    """Run ``python -m anchorline.verify FILE --model MODEL --data TABLE``: `anchorline verify`, in three lines."""
    import argparse  # noqa: PLC0415  would slow down every other command

    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--model")
    given, others = parser.parse_known_args(sys.argv[1:])
    model = [] if given.model is None else [given.model]
    sys.argv[1:] = ["verify", *others[:1], *model, *others[1:], "--three-lines"]
    main()


__all__ = ["main", "verify_alone"]
