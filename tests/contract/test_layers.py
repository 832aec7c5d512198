"""Imports point one way: which room may import which."""

import ast
import pathlib

import pytest

import anchorline

ROOT = pathlib.Path(anchorline.__file__).parent
NUMBERS = {"errors", "guarantees", "optimize"}
SIDES = NUMBERS | {"model", "spaces"}
MAY_IMPORT = {
    "_moved": set(),
    "_version": set(),
    "errors": set(),
    "guarantees": {"errors"},
    "optimize": {"errors"},
    "model": {"errors"},
    "spaces": {"errors"},
    "settings": {"errors", "optimize", "search"},
    "search": SIDES | {"settings"},
    "result": SIDES | {"settings", "search"},
    "samples": {"result"},
    "io": {"errors"},
    "render": NUMBERS | {"spaces", "search", "result"},
    "explainer": SIDES | {"_version", "settings", "search", "result"},
    "verify": SIDES | {"settings", "search", "result", "explainer"},
    "compat": {"errors", "io", "spaces", "explainer", "result", "render"},
}
# These stand on top and may import all of the above, and their like; nothing below may import them.
TOP = {"__init__", "__main__", "batch", "cli", "studio"}
# Inside function bodies (and for the type checker) only, so that e.plot() exists.
IN_BODIES = {
    "result": {"render", "verify", "compat", "batch"},
    "explainer": {"batch"},
}

FILES = sorted(ROOT.rglob("*.py"))


def layer_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports_of(tree):
    """(line, dotted name inside anchorline, whether it waits) of every import of anchorline."""
    waiting = {
        id(node)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(outer, ast.If) and ast.unparse(outer.test) == "TYPE_CHECKING")
        for node in ast.walk(outer)
    }
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write absolute imports"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            package, _, inside = name.partition(".")
            if package == "anchorline":
                yield node.lineno, inside, id(node) in waiting


def is_allowed(layer, inside, waits):
    if layer in TOP:
        return True
    allowed = MAY_IMPORT[layer] | {layer} | (IN_BODIES.get(layer, set()) if waits else set())
    return any(inside == name or inside.startswith(f"{name}.") for name in allowed)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path):
    layer = layer_of(path)
    assert layer in MAY_IMPORT.keys() | TOP, f"{layer} has no place in the table: give it one"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    wrong = [
        f"{path.name}:{line} imports {inside or 'anchorline itself'}"
        for line, inside, waits in imports_of(tree)
        if not is_allowed(layer, inside, waits)
    ]
    assert not wrong
