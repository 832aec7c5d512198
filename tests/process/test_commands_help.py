"""The commands demo and doctor, and help, completion and the version."""

import os
import re
import subprocess
import sys

from typer.testing import CliRunner

from anchorline.cli import doctor
from anchorline.cli.app import COMMANDS, app


def test_demo_writes_pages_only(run_here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run_here("demo", "--out", "report.pdf")
    assert done.returncode == 2
    assert "ends in .html" in done.stderr
    assert not list(tmp_path.iterdir())


def test_demo_explains_and_writes_a_report(run, tmp_path):
    done = run("demo", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nModel's decision: malignant, P(malignant) = " in done.stdout
    assert "The whole report: report.html\n" in done.stdout
    assert done.stdout.endswith("anchorline serve --demo\n")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "P(malignant)" in page or "P(benign)" in page
    assert os.listdir(tmp_path) == ["report.html"]


def test_doctor(run_here):
    done = run_here("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^numpy +[\d.]+ +>= 2\.0 +ok +always needed$", done.stdout, flags=re.MULTILINE)


def test_doctor_looks_for_traps_in_a_table(run_here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{i},{i % 3 // 2},{i % 3 % 2},{i % 3 == 0:d},{i * 37 % 61},{i % 3 == 0}" for i in range(100)]
    (tmp_path / "bad.csv").write_text("\n".join(["key,red,green,blue,age,answer", *rows]), encoding="utf-8")
    done = run_here("doctor", "--data", "bad.csv", "--target", "answer")
    assert done.returncode == 0
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["indicators", "id", "target-copy"]
    (tmp_path / "fine.csv").write_text(
        "\n".join(["age", *(str(i * 37 % 61) for i in range(100))]), encoding="utf-8"
    )
    assert run_here("doctor", "--data", "fine.csv").stdout == "Nothing was found.\n"
    assert "no column 'x'" in run_here("doctor", "--data", "fine.csv", "--target", "x").stderr


def test_doctor_says_what_to_type(monkeypatch, capsys):
    real = doctor.metadata.version

    def version(name):
        if name in ("onnx", "xgboost-cpu", "xgboost"):
            raise doctor.metadata.PackageNotFoundError(name)
        return "1.0" if name == "matplotlib" else real(name)

    monkeypatch.setattr(doctor.metadata, "version", version)
    doctor.print_packages()
    text = capsys.readouterr().out
    assert re.search(r"^onnx +- +>= \S+ +missing", text, flags=re.MULTILINE)
    assert re.search(r"^matplotlib +1\.0 +>= \S+ +too old", text, flags=re.MULTILINE)
    for extra in ("onnx", "plot", "boosters"):
        assert f"pip install 'anchorline[{extra}]'" in text


def test_help_has_examples_and_exit_codes():
    runner = CliRunner()
    for command in (*COMMANDS, "bench paper", "bench peers", "bench quick"):
        text = runner.invoke(app, [*command.split(), "--help"]).output
        assert f"anchorline {command}" in text.split("Examples:")[1]
        assert "Exit codes:" in text
    text = runner.invoke(app, ["--help"]).output
    assert all(command in text for command in (*COMMANDS, "bench"))
    assert "130  interrupted by Ctrl-C" in text


def test_the_version_needs_no_command():
    script = "import sys; from anchorline.cli.app import run; run(['--version']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    loaded = {*done.stdout.split()}
    assert "anchorline.cli.app" in loaded
    assert not loaded & {"anchorline.batch", "anchorline.cli.batch", "anchorline.explainer", "numpy"}


def test_completion_and_version(run, run_here):
    # Typer may not support the shell that started the tests, such as the sh of make.
    done = run("--show-completion", "bash", env={"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"})
    assert done.returncode == 0, done.stderr
    assert "_ANCHORLINE_COMPLETE" in done.stdout
    done = run(env={"_ANCHORLINE_COMPLETE": "complete_bash", "COMP_WORDS": "anchorline fr", "COMP_CWORD": "1"})
    assert done.stdout.split() == ["frontier"]
    assert re.fullmatch(r"anchorline \d+\.\d+\S*\n", run_here("--version").stdout)
