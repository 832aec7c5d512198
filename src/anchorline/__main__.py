"""``python -m anchorline``: the command line."""

import sys

if not sys.flags.safe_path and sys.path:
    del sys.path[0]  # the working directory, which -m puts first: a model is not looked for there

from anchorline.cli import main

if __name__ == "__main__":
    main()
