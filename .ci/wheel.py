"""Build sdist and wheel, install the wheel in a fresh environment elsewhere, and run the tests on it there.

    python3 .ci/wheel.py [pytest options]

The wheel is built from the sdist, so that the sdist is complete; both stay in ``dist``, and neither may contain
tests, pictures of the documentation or recorded results. The other folder receives the tests and the files that
they read, but not ``src``: anchorline is imported from the wheel.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["tests", "docs", "examples", "benchmarks"]
FILES = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "CITATION.cff",
    "LICENSE",
    "pyproject.toml",
]
EXTRAS = "test,docs"  # the contract tests build the documentation site
IN_WHEEL = re.compile(r"anchorline(-[^/]+\.dist-info)?/")
IN_SDIST = re.compile(
    r"[^/]+/(src/anchorline/.*|PKG-INFO|pyproject\.toml|hatch_build\.py|\.gitignore|"
    r"[A-Z]+(\.(md|cff))?)$"  # such as README.md
)
RELATIVE = re.compile(r"\]\((?!https://)([^)]+)\)")


def main() -> int:
    """Build, install, test, and return the exit code of pytest."""
    with tempfile.TemporaryDirectory(prefix="anchorline-wheel-") as made:
        folder = Path(made)
        wheel = build(folder / "build")
        for name in FOLDERS:
            shutil.copytree(ROOT / name, folder / name)
        for name in FILES:
            shutil.copy2(ROOT / name, folder / name)
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / "bin" / "python"
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[{EXTRAS}]"]
        subprocess.run(install, cwd=folder, check=True)
        found = "import anchorline; assert 'site-packages' in anchorline.__file__, anchorline.__file__"
        subprocess.run([python, "-c", found], cwd=folder, check=True)
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [python, "-m", "pytest", "-n", "2", "--dist", "worksteal", "-p", "no:cacheprovider"]
        return subprocess.run([*command, *sys.argv[1:]], cwd=folder, env=environment, check=False).returncode


def build(environment: Path) -> Path:
    """Build both into ``dist``, check what they contain, and return the wheel."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "build"], check=True)
    subprocess.run([python, "-m", "build", "--outdir", "dist"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    (wheel,), (sdist,) = (ROOT / "dist").glob("*.whl"), (ROOT / "dist").glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        strangers = [name for name in archive.namelist() if not IN_WHEEL.match(name)]
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        relative = RELATIVE.findall(archive.read(metadata).decode())
    with tarfile.open(sdist) as archive:
        strangers += [each.name for each in archive if each.isfile() and not IN_SDIST.match(each.name)]
    if strangers:
        sys.exit(f"These files should not be in a release: {', '.join(strangers)}")
    if relative:
        sys.exit(f"These links of the README lead nowhere on a package index: {', '.join(relative)}")
    return wheel


if __name__ == "__main__":
    sys.exit(main())
