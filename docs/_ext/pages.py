"""Puts every page into the navigation, and keeps links to files outside docs/ inside the site.

A page that no list in the index.md of its folder names is added to the list that contains "(others)". Pages are
also read outside the site, where links lead to files such as ``../CONTRIBUTING.md``. In the site, they lead to the
page that shows the file, and sources are only named. The empty line at the end of an example, which doctest
needs, is removed.
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
    "benchmarks/results/outside.md": "project/outside.md",
}
_FENCE = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)
_LINK = re.compile(r"\[([^]]*)\]\((\.\./[^)#\s]+)\)")
_END = re.compile(r"\n\n```$", re.MULTILINE)


def completed(text: str, page: str, pages: set[str]) -> str:
    r"""Return the text with "(others)" replaced by the pages of the same folder that no list names.

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
    """Return the text with links to files of the repository replaced by links to the pages that show them.

    >>> kept_inside("[a](../CHANGELOG.md), [b](../src/anchorline/facts.py)", "engine")
    '[a](project/changelog.md), b'
    """
    folder = posixpath.dirname(f"docs/{page}")

    def replacement(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[2]))
        if path.startswith(("src/", "examples/")):
            return link[1]
        target = SHOWN.get(path)
        return f"[{link[1]}]({posixpath.relpath('docs/' + target, folder)})" if target else link[0]

    return _LINK.sub(replacement, text)


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] = completed(source[0], page, set(app.env.found_docs))
    source[0] = _END.sub("\n```", kept_inside(source[0], page))


def _again(app: Sphinx, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Return the pages with lists, which change if a page was added or removed."""
    return ["index", "api/index"] if added or removed else []


def _open_up(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Let code scroll by keyboard, and give captions a heading level for screen readers."""
    for name, old, new in (
        ("body", "<pre>", '<pre tabindex="0">'),
        ("furo_navigation_tree", 'role="heading"', 'role="heading" aria-level="2"'),
    ):
        if name in context:
            context[name] = context[name].replace(old, new)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the functions that change pages."""
    app.connect("source-read", _read)
    app.connect("env-get-outdated", _again)
    app.connect("html-page-context", _open_up, priority=900)  # after the theme
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
