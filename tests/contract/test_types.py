"""What editors and type checkers see: names that exist, every keyword with its type, and one line of help each."""

import importlib.util
import inspect
import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import anchorline as al
from anchorline.changes.settings import ChangeSettings
from anchorline.compare import CompareKeywords
from anchorline.compare.models import CompareSettings
from anchorline.settings import ReasonSettings, RuleSettings, Settings

SCRIPT = """
import numpy as np
import numpy.typing as npt

import anchorline as al

Array = npt.NDArray[np.float64]


def rate(rows: Array) -> Array:
    return np.asarray(rows @ np.array([0.5, 0.25]), dtype=np.float64)


def show(e: al.Explanation) -> None:
    print(e.verdict.value, e.to_html()[:9])


rows: Array = np.random.default_rng(0).normal(size=(60, 2))
table: al.Table = al.Table(rows, names=["income", "debt"], neighbors="independent")
explainer = al.Explainer(rate, table, output="rate", task="number")
show(explainer.explain(rows[0], k=2, queries="auto", seed=1))
print(explainer.rule(rows[0], holds=None).facts)
found = explainer.changes(rows[0], "> 0.2", direction={"debt": "up"}, queries=500)
many = explainer.explain_many(rows[:2], n_jobs=1, errors="keep", queries=300)
print(found.fewest, len(many), explainer.frontier(rows[0], ks=[1, 2], seed=1).r2)
print(al.compare(rate, rate, rows, n=40, output="rate"))
"""
MISTAKES = {
    "al.Tabel": ("al.Table(rows, names", "al.Tabel(rows, names", "Tabel"),
    "keyword": ("k=2, queries", "kk=2, queries", "kk"),
    "choice": ('errors="keep"', 'errors="keeps"', "errors"),
}
CALLS = {
    "explain": Settings,
    "cost": Settings,
    "frontier": Settings,
    "explain_many": Settings,
    "rule": RuleSettings,
    "changes": ChangeSettings,
    "reasons": ReasonSettings,
}


def planted():
    """Return a user's script with every mistake, and the line of each."""
    wrong = SCRIPT
    for right, mistake, _ in MISTAKES.values():
        assert wrong.count(right) == 1
        wrong = wrong.replace(right, mistake)
    return wrong, {name: 1 + wrong[: wrong.index(text)].count("\n") for name, (_, text, _) in MISTAKES.items()}


def found_by_mypy(script, folder):
    """Return what mypy finds: pairs of a line and a message."""
    (folder / "script.py").write_text(script)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file=", "script.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert not done.stderr
    return [(int(line.split(":")[1]), line) for line in done.stdout.splitlines() if ": error:" in line]


def found_by_pyright(script, folder):
    """Return what pyright finds: pairs of a line and a message."""
    (folder / "script.py").write_text(script)
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(Path(al.__file__).parents[1])]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "script.py"]
    own = {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}  # that there is a newer version
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=500, env=os.environ | own
    )
    found = json.loads(done.stdout[done.stdout.index("{") :])["generalDiagnostics"]
    return [(each["range"]["start"]["line"] + 1, each["message"]) for each in found]


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed (extra check)")
def test_mypy_finds_the_mistakes_in_a_script_and_nothing_else(tmp_path):
    wrong, lines = planted()
    errors = found_by_mypy(wrong, tmp_path)
    assert len(errors) == len(MISTAKES), errors
    for name, (_, _, word) in MISTAKES.items():
        assert any(line == lines[name] and f'"{word}"' in error for line, error in errors), (name, errors)
    assert not found_by_mypy(SCRIPT, tmp_path)


@pytest.mark.skipif(importlib.util.find_spec("pyright") is None, reason="pyright is not installed (extra check)")
def test_pyright_finds_the_mistakes_in_a_script_and_nothing_else(tmp_path):
    wrong, lines = planted()
    errors = found_by_pyright(wrong, tmp_path)
    assert {line for line, _ in errors} == {*lines.values()}, errors
    for name, (_, _, word) in MISTAKES.items():
        # A name that is unknown has an unknown type, which strict mode reports beside it.
        own = [error for line, error in errors if line == lines[name] and "is unknown" not in error]
        assert len(own) == 1, (name, errors)
        assert f'"{word}"' in own[0]
    assert not found_by_pyright(SCRIPT, tmp_path)


@pytest.mark.parametrize("call", CALLS)
def test_signature_and_help_show_every_keyword_with_its_default(call):
    function, defaults = getattr(al.Explainer, call), {each.name: each for each in fields(CALLS[call])}
    parameters = inspect.signature(function).parameters
    assert {*defaults} <= {*parameters}
    assert not any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    about = inspect.getdoc(function).partition("Other Parameters\n----------------\n")[2].partition("\n\n")[0]
    texts = dict(zip(about.splitlines()[::2], about.splitlines()[1::2], strict=True))
    plain = CALLS[call]()
    for name, text in texts.items():
        assert (text[:4], text[-1]) == ("    ", "."), (name, text)
        assert parameters[name].default == getattr(plain, name), name
        assert parameters[name].annotation is not inspect.Parameter.empty
    named = {*parameters} - {*texts} - {"self", "instance", "frame", "check"}
    assert all(name in inspect.getdoc(function) for name in named), named


def test_help_of_compare_shows_every_keyword():
    about = inspect.getdoc(al.compare)
    assert {each.name for each in fields(CompareSettings)} <= {*CompareKeywords.__annotations__}
    assert {*CompareKeywords.__annotations__} <= {*inspect.signature(al.Explainer).parameters} | {
        each.name for each in fields(CompareSettings)
    }
    for name in CompareKeywords.__annotations__:
        assert name in about.partition("Other Parameters")[2].partition("Examples")[0], name


def test_what_a_user_types_wrongly_is_still_answered_with_the_right_name():
    explainer = al.Explainer(lambda z: z[:, 0] / 2, al.Hypercube(["a", "b"]))
    with pytest.raises(TypeError, match="queries"):
        explainer.explain([1, 1], budget=100)
    with pytest.raises(AttributeError, match="Tabel"):
        _ = al.Tabel
