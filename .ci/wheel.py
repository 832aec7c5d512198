"""Build the wheel, install it in a fresh environment in another folder, and run the tests on it there.

    python3 .ci/wheel.py [pytest options]

The folder receives the tests and the files that they read, but not ``src``: anchorline is imported from the wheel,
which stays in ``dist``.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["tests", "docs", "examples", "benchmarks"]
FILES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "pyproject.toml"]
EXTRAS = "test,docs"  # the contract tests build the documentation site


def main() -> int:
    """Build, install, test, and return the exit code of pytest."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "dist", "."]
    subprocess.run(build, cwd=ROOT, check=True)
    (wheel,) = (ROOT / "dist").glob("*.whl")
    with tempfile.TemporaryDirectory(prefix="anchorline-wheel-") as made:
        folder = Path(made)
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


if __name__ == "__main__":
    sys.exit(main())
