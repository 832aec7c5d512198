"""Every page is in the navigation, and links that lead out of docs/ stay inside the site.

A page that no list of its folder's index.md names joins the list that says "(others)". Pages are read on their
own, too: links there lead to files, such as ``../CONTRIBUTING.md`` or ``../src/anchorline/optimize/exact.py``. In
the site they lead to the page that shows the file. The empty line that ends an example for doctest is left out.
"""

import posixpath
import re
from typing import Any

from sphinx.application import Sphinx

OTHERS = "(others)"  # a line of a toctree
SHOWN = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "benchmarks/results/README.md": "project/benchmarks.md",
}
_FENCE = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)
_LINK = re.compile(r"\]\((\.\./[^)#\s]+)\)")
_END = re.compile(r"\n\n```$", re.MULTILINE)
_MODULE = re.compile(r"src/(anchorline/.*)\.py")


def completed(text: str, page: str, pages: set[str]) -> str:
    r"""The lists, with the pages of the same folder that they leave out where one of them says "(others)".

    >>> print(completed("```{toctree}\ntutorial\n(others)\n```", "index", {"index", "tutorial", "batch"}))
    ```{toctree}
    tutorial
    batch
    ```
    """
    folder = posixpath.dirname(page)
    named = {line.strip() for block in _FENCE.findall(text) for line in block.splitlines()}
    inside = {other for other in pages - {page} if posixpath.dirname(other) == folder}
    others = sorted({posixpath.basename(other) for other in inside} - named)
    return text.replace(OTHERS + "\n", "".join(f"{other}\n" for other in others))


def kept_inside(text: str, page: str) -> str:
    """Links to files of the repository as links to the pages that show them.

    >>> kept_inside("[a](../CHANGELOG.md), [b](../src/anchorline/optimize/exact.py)", "engine")
    '[a](project/changelog.md), [b](#anchorline.optimize.exact)'
    """
    folder = posixpath.dirname(f"docs/{page}")

    def shown(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[1]))
        module = _MODULE.fullmatch(path)
        if module:
            return f"](#{module[1].removesuffix('/__init__').replace('/', '.')})"
        target = SHOWN.get(path)
        return f"]({posixpath.relpath('docs/' + target, folder)})" if target else link[0]

    return _LINK.sub(shown, text)


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] = completed(source[0], page, set(app.env.found_docs))
    source[0] = _END.sub("\n```", kept_inside(source[0], page))


def _again(app: Sphinx, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """The lists are made anew where a page came or went."""
    return ["index", "api/index"] if added or removed else []


def _open_up(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """For readers without a mouse, or without sight: code scrolls by keyboard, captions have a level."""
    for name, old, new in (
        ("body", "<pre>", '<pre tabindex="0">'),
        ("furo_navigation_tree", 'role="heading"', 'role="heading" aria-level="2"'),
    ):
        if name in context:
            context[name] = context[name].replace(old, new)


def setup(app: Sphinx) -> dict[str, Any]:
    """See to every page as it is read."""
    app.connect("source-read", _read)
    app.connect("env-get-outdated", _again)
    app.connect("html-page-context", _open_up, priority=900)  # after the theme
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
