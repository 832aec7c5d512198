"""Spaces: what an instance can be, which literals are true of it, and how its neighbors are made.

A new kind of instance is one file. All but the hypercube are loaded on first use, because some import narwhals,
scikit-learn or SciPy. May import: `anchorline.errors`.
"""

from typing import TYPE_CHECKING, Any

from anchorline.spaces.base import Change, Literal, Neighborhood, Space
from anchorline.spaces.hypercube import Hypercube

if TYPE_CHECKING:
    from anchorline.spaces.binarizer import Binarizer
    from anchorline.spaces.image import Image
    from anchorline.spaces.signal import Signal
    from anchorline.spaces.table import Table
    from anchorline.spaces.text import Text

_ON_FIRST_USE = {
    "Binarizer": "anchorline.spaces.binarizer",
    "Image": "anchorline.spaces.image",
    "Signal": "anchorline.spaces.signal",
    "Table": "anchorline.spaces.table",
    "Text": "anchorline.spaces.text",
}

__all__ = [
    "Binarizer",
    "Change",
    "Hypercube",
    "Image",
    "Literal",
    "Neighborhood",
    "Signal",
    "Space",
    "Table",
    "Text",
]


def __getattr__(name: str) -> Any:
    if name in _ON_FIRST_USE:
        from importlib import import_module  # noqa: PLC0415

        return getattr(import_module(_ON_FIRST_USE[name]), name)
    raise AttributeError(f"module 'anchorline.spaces' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
