"""Arguments and models for the tests of the command line, and the check of the line that a failure prints."""

import re
import time

HOSTILE = ["<script>alert(1)</script>", "[bold]red[/bold]", "\x1b[31mred\x1b[0m"]
FEW = ("--samples", "200", "-k", "3")
SCORER = '''
import os, pathlib, time

def score(rows):
    """A number between 0 and 1."""
    return (rows["net income"].to_numpy() > 0) * 0.6 + (rows["town; or place"] == "Lens").to_numpy() * 0.3

def vote(rows):
    return (score(rows) > 0.5).astype(int)

def slow(rows):
    pathlib.Path(os.environ["STARTED"]).touch()
    time.sleep(0.3)
    return score(rows)

def crawling(rows):
    pathlib.Path(os.environ["STARTED"]).touch()
    time.sleep(60)

def broken(rows):
    raise RuntimeError("no more\\n\\x1b[31mink")

def printing(rows):
    print("printed by the model")
    return score(rows)

def leaving(rows):
    raise SystemExit(0)

def note(rows):
    return rows["note"].astype(str).to_numpy()

def coded(rows):
    code = rows["code"].astype(str)
    return rows["x"] * 0.1 + (code == "22") * 0.3 - (code == "007") * 0.2 + (rows["maybe"] == "true") * 0.4
'''


def explain(model="scorer:score", *more, data="train.csv"):
    """Return the arguments of ``anchorline explain`` with a small sample."""
    return ("explain", model, f"--data={data}", "--target", "approved", *FEW, *more)


def error_line(done, code):
    """Check that a command failed with this exit code, and return its single line on standard error."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert re.fullmatch(r"anchorline: [^\n\x1b]+\n", done.stderr), done.stderr
    return done.stderr


def wait_for(path, process):
    """Wait until a file exists; fail if the process ends before."""
    for _ in range(600):
        if path.exists():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise TimeoutError
