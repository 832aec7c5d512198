"""Imports point one way: which room may import which, and no cycles, lazy and type-checking imports included."""

import ast
import graphlib

import pytest

from helpers.sources import PARTS, ROOT, imports_of, later_imports_of, part_of, sources, sources_of

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
    "render": {"errors", "facts", "laws", "result", "spaces"},
    "search": SIDES | {"_version", "settings"},
    "rules": SIDES | {"_version", "search", "settings"},
    "changes": SIDES - {"optimize"} | {"_version", "render", "search", "settings"},
    "reasons": {"errors", "model", "result", "search", "settings", "spaces"},
    "samples": {"result"},
    "explainer": BELOW | {"changes", "reasons", "rules"},
    "compare": BELOW | {"explainer", "verify"},
    "verify": BELOW | {"changes", "explainer", "rules"},
    "batch": BELOW | {"changes", "explainer", "io", "rules"},
    "compat": BELOW | {"explainer", "render"},
    "studio": BELOW | {"changes", "compare", "explainer", "io", "render", "rules", "samples", "verify"},
}
# What a method may import when it is called, because a room above carries it out: ``e.plot()`` draws in render.
LATER = {
    "result": {"batch", "compat", "render", "rules"},
    "spaces": {"render"},
    "explainer": {"batch", "render"},
    "verify": {"cli"},
}
# These stand on top: they may import everything, and nothing imports them.
TOP = {"__init__", "__main__", "cli"}


def is_allowed(room, inside):
    target = inside.split(".")[0]
    return room in TOP or target in MAY_IMPORT[room] | {room}


@pytest.mark.parametrize("room", PARTS)
def test_imports_point_one_way(room):
    assert room in MAY_IMPORT.keys() | TOP, f"{room} is not in the table of rooms"
    for path, tree in sources_of(room).items():
        later = {each for each in later_imports_of(tree) if each[1].split(".")[0] in LATER.get(room, ())}
        imports = set(imports_of(tree)) - later
        assert not [
            f"{path.name}:{line} imports {inside}" for line, inside in imports if not is_allowed(room, inside)
        ]


def test_the_table_of_rooms_has_no_cycle_and_keeps_the_two_sides_apart():
    rooms = {room: allowed - {room} for room, allowed in MAY_IMPORT.items()}
    list(graphlib.TopologicalSorter(rooms).static_order())
    assert not TOP & set().union(*rooms.values())
    assert not rooms["optimize"] & {"model", "spaces"}
    assert not (rooms["model"] | rooms["spaces"]) & {"optimize", "guarantees"}
    assert "spaces" not in rooms["model"]
    assert "model" not in rooms["spaces"]
    assert not {"paper"} & set().union(*rooms.values())


def module_of(path):
    return ".".join(("anchorline", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


def test_no_module_leads_back_to_itself():
    """The package's own __init__ is left out: every import runs it first, and it imports what people type."""
    modules, graph = {module_of(path) for path in sources()}, {}
    for path, tree in sources().items():
        later = later_imports_of(tree) if part_of(path) in LATER else ()
        names = {f"anchorline.{inside}" for _, inside in set(imports_of(tree)) - set(later)}
        targets = {name if name in modules else name.rpartition(".")[0] for name in names}
        graph[module_of(path)] = targets - {"anchorline", module_of(path)}
    del graph["anchorline"]
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError, which names the cycle


def test_the_checker_sees_a_wrong_import():
    source = "import anchorline.explainer\ndef f():\n    from anchorline.render import text\n"
    assert list(imports_of(ast.parse(source))) == [(1, "explainer"), (3, "render.text")]
    assert not is_allowed("model", "explainer")
    assert not is_allowed("result", "render.text")
    assert is_allowed("compat", "render.text")
