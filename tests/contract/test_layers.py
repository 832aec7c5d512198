"""Imports point one way: which room may import which, and no cycles, lazy and type-checking imports included."""

import ast
import functools
import graphlib
import pathlib

import pytest

import anchorline
from helpers.imports import imports_of, later_imports_of

ROOT = pathlib.Path(anchorline.__file__).parent
BASE = {"errors", "facts", "laws"}
SIDES = BASE | {"guarantees", "model", "optimize", "result", "spaces"}
BELOW = SIDES | {"_version", "search", "settings"}
MAY_IMPORT = {
    **dict.fromkeys(("_version", "errors", "facts"), frozenset()),
    "laws": {"errors"},
    "io": {"errors"},
    "settings": {"errors", "laws"},
    "result": {"errors", "facts"},
    "guarantees": {"errors", "result"},
    "model": {"errors", "result"},
    "spaces": BASE,
    "optimize": {"errors", "facts"},
    "paper": {"errors", "guarantees"},
    "render": {"errors", "facts", "result", "spaces"},
    "search": SIDES | {"_version", "settings"},
    "rules": SIDES | {"_version", "search", "settings"},
    "changes": SIDES - {"optimize"} | {"_version", "render"},
    "samples": {"result"},
    "explainer": BELOW | {"changes", "rules"},
    "verify": BELOW | {"changes", "explainer", "rules"},
    "batch": BELOW | {"changes", "explainer", "io", "rules"},
    "compat": BELOW | {"explainer", "render"},
    "studio": BELOW | {"changes", "explainer", "io", "render", "samples", "verify"},
}
# What a method may import when it is called, because a room above carries it out: ``e.plot()`` draws in render.
LATER = {"result": {"batch", "compat", "render", "rules"}, "explainer": {"batch"}, "verify": {"cli"}}
# These stand on top: they may import everything, and nothing imports them.
TOP = {"__init__", "__main__", "cli"}

FILES = sorted(ROOT.rglob("*.py"))


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("anchorline", *parts[: -1 if parts[-1] == "__init__" else None]))


def is_allowed(room, inside):
    target = inside.split(".")[0]
    return room in TOP or target in MAY_IMPORT[room] | {room}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path):
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    assert room in MAY_IMPORT.keys() | TOP, f"{room} is not in the table of rooms"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    later = {each for each in later_imports_of(tree) if each[1].split(".")[0] in LATER.get(room, ())}
    imports = set(imports_of(tree)) - later
    assert not [f"{path.name}:{line} imports {inside}" for line, inside in imports if not is_allowed(room, inside)]


def test_the_table_of_rooms_has_no_cycle_and_keeps_the_two_sides_apart():
    rooms = {room: allowed - {room} for room, allowed in MAY_IMPORT.items()}
    list(graphlib.TopologicalSorter(rooms).static_order())
    assert not TOP & set().union(*rooms.values())
    assert not rooms["optimize"] & {"model", "spaces"}
    assert not (rooms["model"] | rooms["spaces"]) & {"optimize", "guarantees"}
    assert "spaces" not in rooms["model"]
    assert "model" not in rooms["spaces"]
    assert not {"paper"} & set().union(*rooms.values())


@functools.cache
def module_graph():
    """Every module with the modules that it imports anywhere in its text; a package stands for its __init__."""
    modules = {module_of(path): path for path in FILES}
    graph = {}
    for module, path in modules.items():
        targets = set()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        for _, inside in set(imports_of(tree)) - set(later_imports_of(tree) if room in LATER else ()):
            name = f"anchorline.{inside}"
            targets.add(name if name in modules else name.rpartition(".")[0])
        graph[module] = targets - {module}
    return graph


def test_no_module_leads_back_to_itself(capsys):
    """The package's own __init__ is left out: every import runs it first, and it imports what people type."""
    graph = {
        module: targets - {"anchorline"} for module, targets in module_graph().items() if module != "anchorline"
    }
    cycles = 0
    try:
        list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        cycles = 1
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")
    finally:
        with capsys.disabled():
            imports = sum(map(len, graph.values()))
            print(f"\nimport graph: {len(graph)} modules, {imports} imports, {cycles} cycles")  # noqa: T201


def test_the_checker_sees_a_wrong_import():
    source = "import anchorline.explainer\ndef f():\n    from anchorline.render import text\n"
    assert list(imports_of(ast.parse(source))) == [(1, "explainer"), (3, "render.text")]
    assert not is_allowed("model", "explainer")
    assert not is_allowed("result", "render.text")
    assert is_allowed("compat", "render.text")
