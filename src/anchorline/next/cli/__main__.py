"""``python -m anchorline.next.cli`` runs the command line of 0.2 while both releases are there."""

import sys

if not sys.flags.safe_path and sys.path:
    del sys.path[0]  # -m puts the working directory first, and models must not be imported from there

from anchorline.next.cli import main

if __name__ == "__main__":
    main()
