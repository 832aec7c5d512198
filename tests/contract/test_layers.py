"""Imports point one way: style.md section 6, with what exists today."""

import ast
import graphlib
import pathlib

import pytest

import anchorline

ROOT = pathlib.Path(anchorline.__file__).parent
CORE = {"errors", "literals", "spaces", "predictor", "sampling", "evidence", "optimize", "guarantees"}
MAY_IMPORT = {
    "_version": set(),
    "errors": set(),
    "literals": {"errors"},
    "spaces": {"errors", "literals", "columns"},
    "frames": {"errors"},
    "samples": {"frames"},
    "endings": {"errors"},
    "columns": {"errors"},
    "binarizer": {"errors", "literals", "columns"},
    "predictor": {"errors"},
    "outputs": {"errors", "predictor", "models"},
    "sampling": {"errors"},
    "evidence": {"errors"},
    "optimize": {"errors", "evidence"},
    "guarantees": {"errors"},
    "settings": {"errors", "sampling", "optimize", "guarantees"},
    "assessment": {"errors", "evidence", "sampling", "predictor", "spaces", "guarantees"},
    "jsonform": {"errors"},
    "explanation": {"errors", "frames", "literals", "optimize", "guarantees", "jsonform"},
    "explanations": {"errors", "frames", "explanation"},
    "render": {"errors", "literals", "optimize.solution", "guarantees", "explanation", "neighbors"},
    "choice": {*CORE, "settings", "assessment"},
    "investigation": {*CORE, "settings", "assessment", "choice"},
    "frontier": {*CORE, "frames", "settings", "assessment", "choice", "investigation"},
    "neighbors": {"errors", "predictor", "sampling", "spaces"},
    "assembly": {*CORE, "settings", "assessment", "choice", "investigation", "explanation"},
    "explainer": {
        *CORE,
        "assembly",
        "neighbors",
        "_version",
        "frontier",
        "settings",
        "assessment",
        "choice",
        "investigation",
        "explanation",
        "jsonform",
        "outputs",
    },
    "verify": {*CORE, "outputs", "settings", "assessment", "explanation", "explainer"},
    "models": {"errors", "predictor"},
    "io": {"errors"},
    "compat": {"errors", "io", "spaces", "explainer", "explanation", "render"},
}
# These stand on top and may import all of the above, and their like; nothing below may import them.
TOP = {"__init__", "__main__", "batch", "bench", "cli", "studio"}
# Inside function bodies (and for the type checker) only, so that e.plot() exists.
IN_BODIES = {
    "explanation": {"render", "verify", "compat"},
    "explanations": {"render", "batch"},
    "frontier": {"render"},
    "explainer": {"batch", "explanations"},
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


def test_the_two_sides_never_meet():
    """Optimiser and model's side know nothing of each other, whatever the table says."""
    models_side = {"spaces", "sampling", "predictor", "binarizer"}
    for path in FILES:
        names = {inside.split(".")[0] for _, inside, _ in imports_of(ast.parse(path.read_text(encoding="utf-8")))}
        if layer_of(path) in {"optimize", "evidence"}:
            assert not names & models_side, path
        if layer_of(path) in models_side:
            assert not names & {"optimize", "evidence", "explanation", "render"}, path


def test_the_table_has_no_cycle():
    graph = {layer: {name.split(".")[0] for name in allowed} - {layer} for layer, allowed in MAY_IMPORT.items()}
    list(graphlib.TopologicalSorter(graph).static_order())
    assert not TOP & {name for allowed in graph.values() for name in allowed}


def test_the_checker_sees_a_wrong_import():
    source = "import anchorline.explainer\ndef f():\n    from anchorline.render import text\n"
    assert list(imports_of(ast.parse(source))) == [(1, "explainer", False), (3, "render.text", True)]
    assert not is_allowed("predictor", "explainer", False)
    assert not is_allowed("render", "optimize.exact", False)
    assert not is_allowed("explanation", "render.text", False)
    assert is_allowed("explanation", "render.text", True)
    assert not is_allowed("evidence", "render.text", True)
