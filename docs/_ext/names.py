"""Names in docstrings, such as `InstanceError` or `optimize.certify.check`, lead to their one entry.

A name that a public package lists in ``__all__`` has its entry there, and not in the modules behind it.
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

# How autodoc spells NumPy's two great unions, and how people do.
_SPELLINGS = (
    (re.compile(r"_?Buffer \| _SupportsArray\[.*?complex \| bytes \| str\]"), "ArrayLike"),
    (
        re.compile(r"~?(numpy\.)?ndarray\[tuple\[~?(typing\.)?Any, \.\.\.\], ~?(numpy\.)?dtype\[[^\[\]]*\]\]"),
        "ndarray",
    ),
)


@cache
def public() -> dict[str, tuple[str, ...]]:
    """The public names of every module right below anchorline that has ``__all__``, and of itself."""
    found = {"anchorline": tuple(anchorline.__all__)}
    for below in pkgutil.iter_modules(anchorline.__path__, "anchorline."):
        if not below.name.startswith("anchorline._"):
            module = importlib.import_module(below.name)
            found[below.name] = tuple(getattr(module, "__all__", ()))
    return {name: names for name, names in found.items() if names}


@cache
def _public_objects() -> frozenset[int]:
    modules = {name: importlib.import_module(name) for name in public()}
    return frozenset(id(getattr(modules[name], entry)) for name in public() for entry in public()[name])


def _skip(app: Sphinx, what: str, name: str, value: Any, skipped: bool, options: Any) -> bool | None:
    """On the page of the inside: what has its entry elsewhere."""
    inside = what == "module" and app.env.docname == "api/inside"
    return True if inside and id(value) in _public_objects() else None


def plain(text: str) -> str:
    """A signature with types as people write them.

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
    """The only entry whose name ends so; of several at different depths, the one with the shortest name."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"].removeprefix("al.").removesuffix("()")
    objects = env.domains["py"].data["objects"]
    found = sorted((name.count("."), name) for name in objects if name == target or name.endswith(f".{target}"))
    if not found or (len(found) > 1 and found[0][0] == found[1][0]):
        return None
    name = found[0][1]
    entry = objects[name]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, name)


def _shorten(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: nodes.document | None) -> None:
    """Source pages without links back: where a module has entries on two pages, some would lead nowhere."""
    if page.startswith("_modules/"):
        context["body"] = re.sub(r'<a class="viewcode-back".*?</a>', "", context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Ask here where Sphinx itself finds nothing."""
    app.connect("missing-reference", _find)
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-signature", _spell)
    app.connect("html-page-context", _shorten)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
