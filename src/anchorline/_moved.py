"""Import paths from before the package had rooms: each still imports, as the module that now holds its names."""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "assembly": "result.assemble",
    "assessment": "search.assess",
    "binarizer": "spaces.binarizer",
    "choice": "search.select",
    "columns": "spaces.columns",
    "evidence": "optimize.evidence",
    "explanation": "result.explanation",
    "explanations": "result.explanations",
    "frames": "result.frames",
    "frontier": "result.frontier",
    "guarantees.estimates": "guarantees.intervals",
    "investigation": "search.investigate",
    "jsonform": "result.json_format",
    "literals": "spaces.base",
    "models": "model.loaders",
    "neighbors": "result.neighbors",
    "optimize.certify": "optimize.audit",
    "optimize.solution": "optimize.problem",
    "optimize.support": "optimize.problem",
    "outputs": "model.outputs",
    "predictor": "model.predictor",
    "sampling": "search.sampling",
}


def new_path(name: str) -> str | None:
    """Return the path that a module has now, or None if it did not move.

    >>> new_path("anchorline.models.onnx_file"), new_path("anchorline.errors")
    ('anchorline.model.loaders.onnx_file', None)
    """
    package, _, inside = name.partition(".")
    if package == "anchorline":
        parts = inside.split(".")
        for n in range(len(parts), 0, -1):
            room = MOVED.get(".".join(parts[:n]))
            if room is not None:
                return ".".join(["anchorline", room, *parts[n:]])
    return None


class _Alias(Loader):
    """Hands out a module that is loaded under another path, unchanged."""

    def __init__(self, path: str) -> None:
        self._path = path

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._path)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has put the old path's in its place


class _Moved(MetaPathFinder):
    """Finds modules by the paths they had."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        new = new_path(fullname)
        return None if new is None else ModuleSpec(fullname, _Alias(new))


def install() -> None:
    """Let the import system ask here first: on a moved package's own path its modules would be found twice."""
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Moved())
