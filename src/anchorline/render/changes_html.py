"""Changes as HTML: a fragment for notebooks and a page to file, without scripts or network access."""

from typing import TYPE_CHECKING

from anchorline.render.changes import section
from anchorline.render.html import POLICY
from anchorline.render.markup import style_sheet

if TYPE_CHECKING:
    from anchorline.result.changes import Changes


def fragment(changes: "Changes") -> str:
    """Return the changes for a notebook cell: the options as a list, with their examples, shares and distances.

    Examples
    --------
    >>> import anchorline as al
    >>> model = lambda z: (z[:, 0] > 0) * 2 - 1
    >>> changes = al.Explainer(model, al.Hypercube(["<b>paid</b>", "late"])).changes([1, -1])
    >>> "&lt;b&gt;paid" in fragment(changes), "<b>paid" in fragment(changes)
    (True, False)
    """
    return f'<div class="anchorline"><style>{style_sheet("sum.css")}</style>{section(changes)}</div>'


def page(changes: "Changes") -> str:
    """Return the changes as one self-contained page that has no script and loads nothing."""
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="generator" content="anchorline"><meta name="referrer" content="no-referrer">'
        f"<title>What would change it</title><style>{style_sheet('sum.css')}{style_sheet('page.css')}</style>"
        f'</head><body><main class="anchorline"><header><h1>What would change it?</h1></header>{section(changes)}'
        "<footer>Made by anchorline. This page is self-contained: it loads nothing and runs no scripts.</footer>"
        "</main></body></html>\n"
    )
