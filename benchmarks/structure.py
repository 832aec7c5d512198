"""``python -m benchmarks.structure [REVISION ...]`` counts what a reader of the sources must find a way through.

Lines and modules, parameters that people may pass, private functions that are called from one place, modules with
one importer, and how often one explanation changes rooms: at each revision of git, and in the files at hand.
"""

import ast
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

RELEASE_01, BEFORE_REFACTORING, AT_HAND = "1f6deb0", "737b9a2^", "at hand"
Definition = ast.FunctionDef | ast.AsyncFunctionDef


def main(revisions: Sequence[str]) -> int:
    """Print a table with one column per revision, and one for the files at hand."""
    columns: dict[str, dict[str, str]] = {}
    for revision in revisions or (RELEASE_01, BEFORE_REFACTORING):
        with tempfile.TemporaryDirectory() as folder:
            archive = subprocess.run(["git", "archive", revision, "src"], check=True, capture_output=True).stdout
            with tarfile.open(fileobj=io.BytesIO(archive)) as files:
                files.extractall(folder, filter="data")
            columns[revision] = _figures(Path(folder, "src"))
    columns[AT_HAND] = _figures(Path("src").resolve())
    print("| | " + " | ".join(columns) + " |\n|---" + "|---:" * len(columns) + "|")
    for name in {name: None for figures in columns.values() for name in figures}:
        print(f"| {name} | " + " | ".join(figures.get(name, "-") for figures in columns.values()) + " |")
    return 0


def _figures(sources: Path) -> dict[str, str]:
    """Return the printed figures of a folder that contains the package."""
    found = counts(sources / "anchorline")
    private, once = found.pop("private functions"), found.pop("private functions called from one place")
    shown = {name: f"{value:,}" for name, value in found.items() if ":" not in name}
    shown["private functions called from one place"] = f"{once / max(1, private):.0%} of {private:,}"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(sources), str(Path.cwd())])}
    code = f"from benchmarks.structure import print_switches; print_switches({str(sources)!r})"
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    shown["switches between rooms in one explanation"] = done.stdout.strip()
    return shown | {name: f"{value:,}" for name, value in found.items() if ":" in name}


def counts(package: Path) -> Counter[str]:
    """Count the modules of a package; the lines of every room stand under ``lines: room``."""
    found: Counter[str] = Counter()
    importers: Counter[str] = Counter()
    names = {path: path.relative_to(package.parent).with_suffix("").parts for path in package.rglob("*.py")}
    files = {".".join(name).removesuffix(".__init__"): path for path, name in sorted(names.items())}
    for module, path in files.items():
        text = path.read_text(encoding="utf-8")
        tree, n_lines = ast.parse(text), len(text.splitlines())
        room = path.parent.relative_to(package).parts[:1] or ("no room",)
        found.update({"lines": n_lines, "modules": 1, f"lines: {room[0]}": n_lines})
        found["parameters of public functions"] += sum(map(_n_parameters, _public(tree)))
        used = Counter(_names_in(tree))
        for node in ast.walk(tree):
            if isinstance(node, Definition) and node.name.startswith("_") and not node.name.startswith("__"):
                found["private functions"] += 1
                found["private functions called from one place"] += used[node.name] == 1
        importers.update({target for target in _imported(tree) if target in files and target != module})
    found["modules with one importer"] = sum(n == 1 for n in importers.values())
    return found


def _public(node: ast.AST) -> Iterator[Definition]:
    """Functions and methods whose names, and those of their classes, have no leading underscore; constructors."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition) and (not child.name.startswith("_") or child.name == "__init__"):
            yield child
        elif isinstance(child, ast.ClassDef) and not child.name.startswith("_"):
            yield from _public(child)


def _n_parameters(function: Definition) -> int:
    given = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return sum(each.arg not in ("self", "cls") for each in given)


def _names_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _imported(tree: ast.AST) -> Iterator[str]:
    """Modules and, because nobody can tell them apart by their text, names inside modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))


def print_switches(sources: str) -> None:
    """Print how often the second explanation of a small table goes from one room to another, and comes back."""
    import numpy as np

    import anchorline as al

    if not Path(al.__file__).is_relative_to(sources):
        raise SystemExit(f"{al.__file__} was imported instead of {sources}.")
    table = np.random.default_rng(0).normal(size=(200, 5))
    explainer = al.Explainer(lambda rows: rows @ [3.0, 2.0, 1.0, 0.5, 0.0], al.Table(table))
    explainer.explain(table[0], k=3)  # imports, and what is done once per explainer
    print(switches(lambda: explainer.explain(table[1], k=3), "anchorline"))


def switches(function: Any, package: str) -> int:
    """Count how often calls and returns lead from one room of a package to another while a function runs."""
    rooms: list[str] = []

    def note(frame: Any, event: str, argument: object) -> None:
        if event == "return" and _room(frame, package):
            frame = frame.f_back
            while frame is not None and not _room(frame, package):
                frame = frame.f_back
        room = _room(frame, package) if frame is not None and event in ("call", "return") else ""
        if room and room != (rooms[-1] if rooms else ""):
            rooms.append(room)

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return max(0, len(rooms) - 1)


def _room(frame: Any, package: str) -> str:
    parts = str(frame.f_globals.get("__name__", "")).split(".")
    return parts[1] if parts[0] == package and len(parts) > 1 else ""


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
