"""``python -m anchorline.verify FILE --model MODEL --data TABLE`` says in three lines what was checked."""

import sys

if not sys.flags.safe_path and sys.path:
    del sys.path[0]  # -m puts the working directory first, and models must not be imported from there


def main() -> None:
    """Check the file that the command line names."""
    from anchorline.cli import verify_alone

    verify_alone()


if __name__ == "__main__":
    main()
