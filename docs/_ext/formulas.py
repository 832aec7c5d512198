"""Formulas as MathML, converted when the site is built, so that pages need no script and no pictures.

Docutils converts the formulas. A formula that it cannot convert causes a warning, which fails a strict build.
"""

import re
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

_log = logging.getLogger(__name__)
_NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
ElementTree.register_namespace("", _NAMESPACE[1:-1])
# Notation that TeX reads correctly and the converter does not.
_BEFORE = (
    (re.compile(r"\\textstyle\s*(\\[a-z]+)"), r"{\\textstyle\1}"),  # a style that begins inside a group
    (re.compile(r"\\([td]?frac)\s*([0-9a-z])\s*([0-9a-z])"), r"\\\1{\2}{\3}"),  # \frac12
)
# Symbols that browsers stretch, shrink or space badly.
_AFTER = (
    (re.compile("<mo>([{}‖])</mo>"), r'<mo stretchy="false">\1</mo>'),
    (re.compile(r"<mo>\|</mo>"), '<mo stretchy="false" lspace="0" rspace="0">|</mo>'),
    (re.compile(r'<mo>&ApplyFunction;</mo>(?=\s*<mo stretchy="false">\()'), ""),
    (re.compile("<mo>&ApplyFunction;</mo>"), '<mspace width="0.167em"></mspace>'),
)


def mathml(formula: str, *, block: bool, where: nodes.Node | None = None) -> str:
    r"""Return the formula in MathML.

    >>> "".join(mathml(r"\frac12", block=False).split())
    '<mathxmlns="http://www.w3.org/1998/Math/MathML"><mfrac><mn>1</mn><mn>2</mn></mfrac></math>'
    """
    for pattern, better in _BEFORE:
        formula = pattern.sub(better, formula)
    try:
        text = str(tex2mathml(formula, as_block=block))
    except MathError as error:
        _log.warning("formula %r: %s", formula, error, location=where)
        return "<code></code>"
    for pattern, better in _AFTER:
        text = pattern.sub(better, text)
    return _accented(text)


def _accented(text: str) -> str:
    """Put an accent directly above its letter and the index next to both, where the converter stacks all three."""
    tree = ElementTree.fromstring(text)
    for stack in tree.iter(f"{_NAMESPACE}munderover"):
        letter, index, accent = stack
        if accent.tag == f"{_NAMESPACE}mo" and letter.tag != accent.tag:
            over = ElementTree.Element(f"{_NAMESPACE}mover", accent="true")
            over.extend([letter, accent])
            stack.tag = f"{_NAMESPACE}msub"
            stack[:] = [over, index]
    for power in tree.iter(f"{_NAMESPACE}msup"):
        if power[0].tag == f"{_NAMESPACE}msub":
            power.tag = f"{_NAMESPACE}msubsup"
            power[:] = [*power[0], power[1]]
    return ElementTree.tostring(tree, encoding="unicode", short_empty_elements=False)


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext(), block=False, where=node))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="formula">{mathml(node.astext(), block=True, where=node)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer and select it."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.config.html_math_renderer = "mathml"
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
