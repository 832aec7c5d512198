"""The benchmarks, run from a checkout and from an installed package."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import anchorline
from anchorline.cli import bench
from anchorline.cli.codes import Code
from helpers.commands import error_line

CHECKOUT = Path(anchorline.__file__).parents[2]
NOT_INSTALLED = "The benchmarks are not part of the installed package."

both_commands = pytest.mark.parametrize("command", ["paper", "peers"])


@both_commands
def test_a_checkout_runs_its_benchmarks_from_any_folder(run_here, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    done = run_here("bench", command, "--data", "none")
    assert "The folder 'none' holds no data set of the paper" in error_line(done, Code.INPUT)


def test_a_checkout_is_added_to_the_path_once(monkeypatch):
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if Path(entry).resolve() != CHECKOUT])
    for _ in range(2):
        module = bench._import_benchmark("needs")
        assert Path(module.__file__) == CHECKOUT / "benchmarks" / "needs.py"
    assert sys.path.count(str(CHECKOUT)) == 1


@both_commands
def test_an_installed_package_has_no_benchmarks(run_here, tmp_path, monkeypatch, command):
    monkeypatch.setattr(bench, "CHECKOUT", tmp_path / "lib")
    line = error_line(run_here("bench", command, "--data", "none"), Code.MISSING)
    assert NOT_INSTALLED in line
    assert "In the checkout, type: make bench DATA=folder-of-data-sets" in line


def test_a_copy_of_the_package_alone_has_no_benchmarks(run, tmp_path):
    packages = tmp_path / "lib" / "site-packages"
    shutil.copytree(
        Path(anchorline.__file__).parent, packages / "anchorline", ignore=shutil.ignore_patterns("__pycache__")
    )
    done = run("bench", "paper", "--data", "none", cwd=tmp_path, env={"PYTHONPATH": str(packages)})
    assert NOT_INSTALLED in error_line(done, Code.MISSING)


def test_a_benchmarks_packages_are_imported_only_when_it_runs():
    script = "import sys, anchorline.cli.app\nprint(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert not {"sklearn", "pandas", "matplotlib", "lime", "shap", "joblib"} & set(done.stdout.split())


@both_commands
def test_a_missing_package_of_a_benchmark_is_named(run_here, monkeypatch, command):
    from benchmarks import needs

    def version(name):
        raise needs.PackageNotFoundError(name)

    monkeypatch.setattr(needs, "version", version)
    line = error_line(run_here("bench", command, "--data", "none"), Code.MISSING)
    assert re.search(r"needs `pandas and .*lime.*Type: pip install 'anchorline\[bench,.*peers.*\]'", line)
