"""``python -m anchorline.verify FILE --model MODEL --data TABLE`` says in three lines what was checked."""

import sys

if not sys.flags.safe_path and sys.path:
    del sys.path[0]  # -m puts the working directory first, and models must not be imported from there

from anchorline._links import call

if __name__ == "__main__":
    call("verify_main")
