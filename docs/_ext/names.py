"""Links from short names in docstrings, such as `InstanceError` or `optimize.audit.check`, to their entries.

A name that a public package lists in ``__all__`` has its only entry there, and none in the module that defines it.
"""

import importlib
import pkgutil
import re
from functools import cache
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

import anchorline

# Two long NumPy types as autodoc spells them, and as people write them.
_SPELLINGS = (
    (re.compile(r"_?Buffer \| _SupportsArray\[.*?complex \| bytes \| str\]"), "ArrayLike"),
    (
        re.compile(r"~?(numpy\.)?ndarray\[tuple\[~?(typing\.)?Any, \.\.\.\], ~?(numpy\.)?dtype\[[^\[\]]*\]\]"),
        "ndarray",
    ),
)


@cache
def public() -> dict[str, tuple[str, ...]]:
    """Return the public names of anchorline, and of every module directly below it that has ``__all__``."""
    names_of = {"anchorline": tuple(anchorline.__all__)}
    for below in pkgutil.iter_modules(anchorline.__path__, "anchorline."):
        if not below.name.startswith("anchorline._"):
            module = importlib.import_module(below.name)
            names_of[below.name] = tuple(getattr(module, "__all__", ()))
    return {name: names for name, names in names_of.items() if names}


def plain(text: str) -> str:
    """Return a signature with types as people write them.

    >>> plain("(x: ~numpy.ndarray[tuple[~typing.Any, ...], ~numpy.dtype[~numpy.float64]])")
    '(x: ndarray)'
    """
    for pattern, spelling in _SPELLINGS:
        text = pattern.sub(spelling, text)
    return text


def _spell(
    app: Sphinx, what: str, name: str, value: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    return signature and plain(signature), returned and plain(returned)


def _find(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.reference | None:
    """Link to the only entry whose name ends with the target; of several, to the one with the fewest parts."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"].removeprefix("al.").removesuffix("()")
    objects = env.domains["py"].data["objects"]
    matches = sorted((name.count("."), name) for name in objects if name == target or name.endswith(f".{target}"))
    if not matches or (len(matches) > 1 and matches[0][0] == matches[1][0]):
        return None
    name = matches[0][1]
    entry = objects[name]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, name)


def _shorten(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: nodes.document | None) -> None:
    """Remove links from source pages to entries: if a module has entries on two pages, some would be broken."""
    if page.startswith("_modules/"):
        context["body"] = re.sub(r'<a class="viewcode-back".*?</a>', "", context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the search for names that Sphinx itself does not find."""
    app.connect("missing-reference", _find)
    app.connect("autodoc-process-signature", _spell)
    app.connect("html-page-context", _shorten)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
