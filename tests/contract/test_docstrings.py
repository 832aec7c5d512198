"""Every public name has a docstring, public functions have examples, and no function is too long."""

import ast
import importlib
import inspect
import pathlib
import re

import pytest

import anchorline

ROOT = pathlib.Path(anchorline.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
BODY_LINES = 45

by_path = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))


def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def public_definitions(node, prefix=""):
    """Yield the classes, functions and methods whose path has no part with a leading underscore."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | FUNCTIONS) and not child.name.startswith("_"):
            yield f"{prefix}{child.name}", child
            if isinstance(child, ast.ClassDef):
                yield from public_definitions(child, f"{child.name}.")


def body_lines(function):
    """Return the number of lines of the body without the docstring."""
    body = function.body
    if ast.get_docstring(function, clean=False) is not None:
        body = body[1:]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


@by_path
def test_everything_public_has_a_docstring(path):
    tree = parse(path)
    missing = [name for name, node in public_definitions(tree) if not ast.get_docstring(node)]
    assert ast.get_docstring(tree) or path.name == "_version.py", "the module has no docstring"
    assert not missing


@by_path
def test_docstrings_begin_with_a_sentence(path):
    for name, node in public_definitions(parse(path)):
        first = ast.get_docstring(node).splitlines()[0]
        assert first.endswith((".", ":", "?", "``")), f"{name}: {first}"


@by_path
def test_functions_are_short(path):
    long = {
        node.name: body_lines(node)
        for node in ast.walk(parse(path))
        if isinstance(node, FUNCTIONS) and body_lines(node) > BODY_LINES
    }
    assert not long


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


def test_the_helpers_of_this_file():
    tree = ast.parse('def f(a,\n      b):\n    """Doc.\n\n    More.\n    """\n    x = 1\n\n    return x\n')
    assert body_lines(tree.body[0]) == 3
    tree = ast.parse("class A:\n    def f(self): pass\n    def _g(self): pass\ndef _h(): pass\n")
    assert [name for name, _ in public_definitions(tree)] == ["A", "A.f"]
