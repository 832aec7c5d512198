"""``python -m anchorline`` runs the command line."""

import sys

if not sys.flags.safe_path and sys.path:
    del sys.path[0]  # -m puts the working directory first, and models must not be imported from there

from anchorline.cli import main

if __name__ == "__main__":
    main()
