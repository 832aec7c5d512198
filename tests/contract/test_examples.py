"""The examples run, without network, and say what they promise."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]


def run(name, folder):
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / name)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=120).stdout


def test_why_declined(tmp_path):
    said = run("why_declined.py", tmp_path)
    assert "-> P(declined) = 0.970" in said
    assert "Verdict: trustworthy." in said
    assert "The explanation holds: every figure was found again, and fresh neighbors agree." in said
    assert not list(tmp_path.iterdir())
