"""Install the oldest declared version of every dependency in its own environment, and run the tests there.

    python3 .ci/oldest.py [pytest options]

The script reads pyproject.toml, turns every ``name>=version`` of the core and of all extras into a constraint
``name==version``, and installs the project with all its extras under these constraints. One common set is enough:
pip finds no conflict between the extras. Dependencies of dependencies are as new as pip allows.
"""

import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "oldest"
PYTHON = FOLDER / "bin" / "python"
TESTS = ["unit", "contract", "agreement", "process", "studio", "cluster"]
NOT_INSTALLED = ["first-try"]  # the tests that need it are run with the versions that its bounds name
LEFT_OUT = [
    "contract/test_site.py",  # builds the documentation site, which `make docs` checks
    "contract/test_documents.py",  # prints figures of trained models, which depend on the scikit-learn release
    "contract/test_examples.py",  # the same
]
# An old release may use a newer dependency in a way that the dependency deprecates (Typer 0.16 and Click 8.5 do).
# Polars 1.14 warns in a fork hook, where no test can catch it. Both are harmless to a user; only pytest's "error"
# filter would turn them into failures.
TOLERATED = ["ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning"]
# CVXPY before 1.9 looks for its solvers once, on import, which must therefore precede the test that hides one.
IMPORTED_FIRST = "cvxpy"


def constraints(project: dict) -> list[str]:
    """One ``name==version`` per declared dependency; a dependency with two lower bounds is an error."""
    extras = {name: group for name, group in project["optional-dependencies"].items() if name not in NOT_INSTALLED}
    declared = [*project["dependencies"], *(one for group in extras.values() for one in group)]
    oldest: dict[str, str] = {}
    for requirement in declared:
        if requirement.startswith(f"{project['name']}["):
            continue  # an extra that includes other extras
        found = re.fullmatch(r"([\w.-]+)(?:\[[\w,-]+\])?>=([\w.]+)", requirement)
        if found is None:
            sys.exit(f"pyproject.toml declares {requirement!r}; this script needs the form name>=version.")
        name, version = found.groups()
        if oldest.setdefault(name, version) != version:
            sys.exit(f"pyproject.toml declares {name} with two lower bounds: {oldest[name]} and {version}.")
    return sorted(f"{name}=={version}" for name, version in oldest.items())


def install(project: dict) -> None:
    """Create the environment, unless it exists with the same constraints."""
    wanted, written = "\n".join(constraints(project)) + "\n", FOLDER / "constraints.txt"
    if PYTHON.exists() and written.exists() and written.read_text() == wanted:
        return
    venv.create(FOLDER, clear=True, with_pip=True)
    listed = FOLDER / "wanted.txt"
    listed.write_text(wanted)
    everything = ",".join(name for name in project["optional-dependencies"] if name not in NOT_INSTALLED)
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--constraint", listed, "--editable", f".[{everything}]"], cwd=ROOT, check=True)
    listed.rename(written)  # last, so that an interrupted installation starts again


def main() -> int:
    """Install, test, and return the exit code of pytest."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    install(project)
    command = [PYTHON, "-m", "pytest", "-n", "2", "--dist", "worksteal", "-p", "no:cacheprovider"]
    command += [part for warning in TOLERATED for part in ("-W", warning)]
    command += ["-p", IMPORTED_FIRST]
    command += [f"--ignore=tests/{left_out}" for left_out in LEFT_OUT]
    command += [f"tests/{folder}" for folder in TESTS]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run([*command, *sys.argv[1:]], cwd=ROOT, env=os.environ | threads, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
