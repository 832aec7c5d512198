"""Install the newest version of every dependency for every Python of this machine, and run the tests there.

    python3 .ci/newest.py [pytest options]

Pythons are looked for on the PATH and among those of pyenv. ANCHORLINE_PYTHONS="3.12 3.13" chooses some of them.
Extras that cannot be installed for a Python are named and left out, and their tests skip. The last lines say which
Pythons passed, failed, or are not on this machine.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from oldest import LEFT_OUT, ROOT, TESTS

FOLDER = ROOT / "build" / "newest"
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]  # those that pyproject.toml names
# These install tools for other targets, or models of hundreds of megabytes that only tests/first_try use.
NOT_TESTED = ["check", "docs", "first-try", "test"]
TOOLS = ["pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade", "--upgrade-strategy", "eager"]


def interpreter(version: str) -> Path | None:
    """Return the Python of a version, which must be able to say so itself (a shim of pyenv may not)."""
    roots = [Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"]
    found = [shutil.which(f"python{version}"), *sorted(roots[0].glob(f"{version}.*/bin/python"), reverse=True)]
    for one in found:
        ask = [one, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"] if one else ["false"]
        said = subprocess.run(ask, capture_output=True, text=True, check=False)
        if said.stdout.strip() == version:
            return Path(one)
    return None


def install(python: Path, folder: Path, project: dict) -> None:
    """Create or renew the environment with every extra that can be installed."""
    if not (folder / "bin" / "python").exists():
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
    pip = [folder / "bin" / "python", "-m", *TOOLS]
    extras = [name for name in project["optional-dependencies"] if name not in NOT_TESTED]
    tests = [one for one in project["optional-dependencies"]["test"] if not one.startswith(project["name"])]
    if subprocess.run([*pip, "--editable", f".[{','.join(extras)}]", *tests], cwd=ROOT, check=False).returncode:
        subprocess.run([*pip, "--editable", ".", "pytest", "pytest-xdist", "hypothesis"], cwd=ROOT, check=True)
        for each in [*(f".[{name}]" for name in extras), *tests]:
            one = ["--editable", each] if each.startswith(".[") else [each]
            if subprocess.run([*pip, *one], cwd=ROOT, check=False).returncode:
                sys.stdout.write(f"Python {folder.name}: {each} cannot be installed; its tests skip.\n")


def test(folder: Path) -> int:
    """Return the exit code of pytest."""
    command = [folder / "bin" / "python", "-m", "pytest", "-p", "no:cacheprovider", "-n", "2"]
    command += ["--dist", "worksteal"]
    command += [f"--ignore=tests/{left_out}" for left_out in LEFT_OUT]
    command += [] if any(one.startswith("tests") for one in sys.argv[1:]) else [f"tests/{each}" for each in TESTS]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run([*command, *sys.argv[1:]], cwd=ROOT, env=os.environ | threads, check=False).returncode


def main() -> int:
    """Install, test, and return 0 if every Python of the machine passed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    results = {}
    for version in os.environ.get("ANCHORLINE_PYTHONS", " ".join(PYTHONS)).split():
        python = interpreter(version)
        if python is None:
            results[version] = "untested, not on this machine"
            continue
        install(python, FOLDER / version, project)
        results[version] = "failed" if test(FOLDER / version) else "passed"
    sys.stdout.writelines(f"Python {version}: {result}\n" for version, result in results.items())
    return int("failed" in results.values() or "passed" not in results.values())


if __name__ == "__main__":
    sys.exit(main())
