"""Every public name has a docstring, and public functions have examples."""

import ast
import importlib
import inspect
import re

import pytest

from helpers.sources import PARTS, sources_of

DEFINITIONS = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def public_definitions(node, prefix=""):
    """Yield the classes, functions and methods whose path has no part with a leading underscore."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, DEFINITIONS) and not child.name.startswith("_"):
            yield f"{prefix}{child.name}", child
            if isinstance(child, ast.ClassDef):
                yield from public_definitions(child, f"{child.name}.")


@pytest.mark.parametrize("part", PARTS)
def test_everything_public_has_a_docstring_that_begins_with_a_sentence(part):
    for path, tree in sources_of(part).items():
        assert ast.get_docstring(tree) or path.name == "_version.py", f"{path.name} has no docstring"
        for name, node in public_definitions(tree):
            first = (ast.get_docstring(node) or "").partition("\n")[0]
            assert first.endswith((".", ":", "?", "``")), f"{path.name}, {name}: {first!r}"


def public_functions():
    for package in ("anchorline", "anchorline.compat", "anchorline.guarantees"):
        module = importlib.import_module(package)
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)):
                yield pytest.param(getattr(module, name), id=f"{package}.{name}")


@pytest.mark.parametrize("function", list(public_functions()))
def test_public_functions_end_with_an_example(function):
    doc = inspect.getdoc(function)
    assert ">>>" in doc.split("\n\n")[-1], "the last paragraph is not a doctest"
    sections = re.findall(r"^(.+)\n-{3,}$", doc, flags=re.MULTILINE)
    assert not sections or sections[-1] == "Examples"


def test_the_checker_sees_public_definitions():
    tree = ast.parse("class A:\n    def f(self): pass\n    def _g(self): pass\ndef _h(): pass\n")
    assert [name for name, _ in public_definitions(tree)] == ["A", "A.f"]
