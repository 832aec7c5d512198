"""The library logs and never prints."""

import ast

import numpy as np
import pytest

import anchorline as al
from helpers.sources import ROOT, sources

MAY_PRINT = {"bench", "cli", "__main__.py", "studio"}  # their job is to write to the terminal
FORBIDDEN = {
    "print",
    "pprint",
    "input",
    "breakpoint",
    "sys.stdout.write",
    "sys.stderr.write",
    "logging.basicConfig",
}


def calls_of(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node.lineno, ast.unparse(node.func)


def test_no_prints():
    quiet = {path: tree for path, tree in sources().items() if not MAY_PRINT & {*path.relative_to(ROOT).parts[:2]}}
    assert len(quiet) > 50
    for path, tree in quiet.items():
        assert not [f"{path}:{line} {name}" for line, name in calls_of(tree) if name in FORBIDDEN]


def test_the_checker_sees_a_print():
    names = {name for _, name in calls_of(ast.parse("def f():\n    print(1)\n    sys.stdout.write('x')\n"))}
    assert names == {"print", "sys.stdout.write"}


@pytest.mark.parametrize("d", [3, 15])  # listed, and drawn
def test_explaining_is_silent(d, capfd):
    explainer = al.Explainer(lambda z: np.tanh(z[:, 0] + z[:, 1] * z[:, 2]), al.Hypercube(), threshold=0.0)
    e = explainer.explain([1] * d, queries=500)
    al.Explanation.from_json(e.to_json())
    repr(e), str(e), e.details(), e.to_html()
    assert al.verify(e, explainer.model, explainer.space, seed=0).holds
    out, err = capfd.readouterr()
    assert out == err == ""
