"""The count of the sources' structure, on a package of a few lines."""

import importlib
import sys

import pytest

from benchmarks import structure

FILES = {
    "__init__.py": "from made.low.numbers import double\n",
    "low/__init__.py": "",
    "low/numbers.py": """
def double(x, *, check=None):
    return _checked(x) + _checked(x)

def _checked(x):
    return _once(x)

def _once(x):
    return x
""",
    "high/__init__.py": "",
    "high/model.py": """
from made.low import numbers

class Model:
    def __init__(self, size): self.size = size
    def ask(self, row, k=1): return [numbers.double(each) for each in map(self._same, row)]
    def _same(self, x): return x

class _Hidden:
    def ask(self, row): return row
""",
}


@pytest.fixture
def package(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "made" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "made"


def test_lines_parameters_and_what_is_used_once_are_counted(package):
    assert dict(structure.counts(package)) == {
        "lines": 20,
        "modules": 5,
        "parameters of public functions": 2 + 1 + 2,
        "private functions": 3,
        "private functions called from one place": 2,  # `_once` and `_same`
        "modules with one importer": 1,  # `made.low`; two import `made.low.numbers`
        "lines: no room": 1,
        "lines: low": 9,
        "lines: high": 10,
    }


def test_calls_and_returns_between_rooms_are_switches(package, monkeypatch):
    monkeypatch.syspath_prepend(package.parent)
    try:
        model = importlib.import_module("made.high.model").Model(3)
        assert structure.switches(lambda: model.ask([1]), "made") == 2  # there and back
        assert structure.switches(lambda: model.ask([1, 2, 3]), "made") == 6
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "made"]:
            del sys.modules[name]
