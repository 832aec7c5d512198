"""The sources of the package, parsed once per process, and what they import."""

import ast
import functools
import pathlib

import anchorline

ROOT = pathlib.Path(anchorline.__file__).parent
ROOMS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))


@functools.cache
def sources():
    """Every file of the package, with its syntax tree."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))}


def part_of(path):
    """The room of a file, or the name of a file beside the rooms."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def sources_of(part):
    """The files of a room, or a file beside the rooms, with their trees."""
    return {path: tree for path, tree in sources().items() if part_of(path) == part}


PARTS = sorted(set(map(part_of, sources())))


def imports_of(tree):
    """(line, dotted name inside anchorline) of every import of anchorline, wherever it stands."""
    return _imports_in(ast.walk(tree))


def later_imports_of(tree):
    """The same of imports inside functions, which are carried out when these are called."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return _imports_in(node for function in functions for node in ast.walk(function))


def _imports_in(nodes):
    for node in nodes:
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write absolute imports"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            package, _, inside = name.partition(".")
            if package == "anchorline":
                yield node.lineno, inside
