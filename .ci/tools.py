"""Install Chromium and Java for the tests where that is possible; otherwise say in a line how to get them.

    python .ci/tools.py

As root on Debian and its relatives, apt-get installs both. Elsewhere Playwright downloads a Chromium of its own.
What is still missing then does not stop the tests: those that need it skip.
"""

import os
import shutil
import subprocess
import sys

WANTED = {  # what runs it, the package, and what it is for
    "Chromium": (("chromium", "chromium-browser", "google-chrome"), "chromium", "the tests of pages"),
    "Java": (("java",), "openjdk-17-jre-headless", "the tests of Spark"),
}


def is_there(programs: tuple[str, ...]) -> bool:
    """Return whether one of the programs can be started."""
    return any(shutil.which(each) for each in programs)


def by_apt(package: str) -> None:
    """Install a package with apt-get, if this user may."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        install = ["apt-get", "install", "--quiet", "--yes", "--no-install-recommends", package]
        for command in (["apt-get", "update", "--quiet"], install):
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL)


def by_playwright() -> bool:
    """Return whether Playwright has a Chromium of its own; download it if that is possible."""
    command = [sys.executable, "-m", "playwright", "install", "chromium"]
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0


def main() -> None:
    """Look for both, and install what is missing."""
    for name, (programs, package, use) in WANTED.items():
        if is_there(programs):
            continue
        by_apt(package)
        if not is_there(programs) and not (name == "Chromium" and by_playwright()):
            sys.stdout.write(f"{name} is missing, so {use} skip. Debian: apt-get install {package}\n")


if __name__ == "__main__":
    main()
