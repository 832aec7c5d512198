"""The examples run without a network and print the expected lines."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]


def run(name, folder):
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / name)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=120).stdout


def test_why_declined(tmp_path):
    output = run("why_declined.py", tmp_path)
    assert "Model's decision: declined, P(declined) = 0.98. These facts explain it:" in output
    assert "The explanation holds" in output
    assert not list(tmp_path.iterdir())
