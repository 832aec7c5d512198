"""Methods that a lower room offers and a higher room carries out.

``e.plot()`` is a method of a result, but pictures are drawn in a room above, which imports results. So that
imports point one way, the result calls by name, and ``anchorline/__init__.py``, which is above all rooms,
links every name to its function. Importing any module of the package runs ``anchorline/__init__.py`` first.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

_FUNCTIONS: dict[str, str] = {}


def link(functions: Mapping[str, str]) -> None:
    """Link names to functions, given as "module:function"; a module is imported at its first call."""
    _FUNCTIONS.update(functions)


def call(name: str, *arguments: Any, **keywords: Any) -> Any:
    """Call the function that is linked to a name."""
    module, _, function = _FUNCTIONS[name].partition(":")
    return getattr(import_module(module), function)(*arguments, **keywords)
