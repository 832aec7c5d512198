"""Short sums that add up exactly to a model's prediction, proven best, with an error bar.

>>> import anchorline as al
>>> e = al.explain(lambda z: 0.5 * z[:, 0] + 0.25 * z[:, 2], [1, -1, -1], k=2)
>>> e.terms[0].literal.text, round(e.terms[0].contribution, 9)
('x0 = +1', 0.5)
"""

from typing import TYPE_CHECKING, Any

from anchorline import _links, _moved
from anchorline._version import __version__
from anchorline.errors import AnchorlineError
from anchorline.verify import verify

if TYPE_CHECKING:
    from anchorline.explainer import Explainer, explain
    from anchorline.optimize.problem import Status
    from anchorline.result.certificate import Certificate, Verdict
    from anchorline.result.changes import Changes, Counterfactual
    from anchorline.result.explanation import Alternative, Explanation
    from anchorline.result.explanations import Explanations, Failure
    from anchorline.result.frontier import Frontier
    from anchorline.spaces.base import Literal
    from anchorline.spaces.binarizer import Binarizer
    from anchorline.spaces.hypercube import Hypercube
    from anchorline.spaces.image import Image
    from anchorline.spaces.signal import Signal
    from anchorline.spaces.table import Table
    from anchorline.spaces.text import Text

# A module is imported at the first use of its names, so that a program that may explain starts quickly.
_ON_FIRST_USE = {
    "Alternative": "anchorline.result.explanation",
    "AnswerCache": "anchorline.model.cache",
    "Binarizer": "anchorline.spaces.binarizer",
    "Certificate": "anchorline.result.certificate",
    "Changes": "anchorline.result.changes",
    "Counterfactual": "anchorline.result.changes",
    "Explainer": "anchorline.explainer",
    "Explanation": "anchorline.result.explanation",
    "Explanations": "anchorline.result.explanations",
    "Failure": "anchorline.result.explanations",
    "Frontier": "anchorline.result.frontier",
    "Hypercube": "anchorline.spaces.hypercube",
    "Image": "anchorline.spaces.image",
    "Literal": "anchorline.spaces.base",
    "Signal": "anchorline.spaces.signal",
    "Status": "anchorline.optimize.problem",
    "Table": "anchorline.spaces.table",
    "Text": "anchorline.spaces.text",
    "Verdict": "anchorline.result.certificate",
    "explain": "anchorline.explainer",
}

# Methods of results and explainers that rooms above them carry out.
_links.link(
    {
        "batch.explain_many": "anchorline.batch.local:explain_many",
        "batch.plan": "anchorline.batch.local:ExecutionPlan",
        "certificate.details": "anchorline.render.text:details_text",
        "certificate.text": "anchorline.render.text:certificate_text",
        "changes.find": "anchorline.result.assemble_changes:changes_of",
        "changes.fragment": "anchorline.render.changes_html:fragment",
        "changes.page": "anchorline.render.changes_html:page",
        "changes.text": "anchorline.render.changes:changes_text",
        "clipped_outputs_text": "anchorline.render.trust:clipped_outputs_text",
        "explanation.fragment": "anchorline.render.html:fragment",
        "explanation.page": "anchorline.render.html:page",
        "explanation.legend": "anchorline.render.levels:legend",
        "explanation.rule": "anchorline.render.rules:if_then",
        "explanation.sum": "anchorline.render.text:rule",
        "explanation.text": "anchorline.render.text:explanation_text",
        "explanation.to_shap": "anchorline.compat.shap:to_shap",
        "explanations.to_shap": "anchorline.compat.shap:many_to_shap",
        "next.details": "anchorline.next.render.text:details_of",
        "next.explain_many": "anchorline.next.batch.local:explain_many",
        "next.fact": "anchorline.next.render.statements:fact_text",
        "next.fragment": "anchorline.next.render.report:fragment",
        "next.frontier": "anchorline.next.render.text:frontier_text",
        "next.page": "anchorline.next.render.report:page",
        "next.parquet.ids": "anchorline.next.batch.parquet:read_ids",
        "next.parquet.read": "anchorline.next.batch.parquet:read_parquet",
        "next.parquet.write": "anchorline.next.batch.parquet:write_parquet",
        "next.plot": "anchorline.next.render.pictures:plot_explanation",
        "next.plot_frontier": "anchorline.next.render.pictures:plot_frontier",
        "next.text": "anchorline.next.render.text:text_of",
        "next.to_shap": "anchorline.next.compat.shap:to_shap",
        "next.to_shap_many": "anchorline.next.compat.shap:many_to_shap",
        "parquet.ids": "anchorline.batch.parquet:read_ids",
        "parquet.read": "anchorline.batch.parquet:read_parquet",
        "parquet.write": "anchorline.batch.parquet:write_parquet",
        "plot.alternatives": "anchorline.render.plot:alternatives",
        "plot.bars": "anchorline.render.plot:bars",
        "plot.frontier": "anchorline.render.plot:frontier",
        "plot.regions": "anchorline.render.plot:regions",
        "plot.summary": "anchorline.render.plot:summary",
        "plot.waterfall": "anchorline.render.plot:waterfall",
        "printable": "anchorline.render.characters:printable",
        "range_advice": "anchorline.render.trust:range_advice",
        "verify.changes": "anchorline.verify.changes:verify_changes",
        "verify": "anchorline.verify.check:check",
    }
)
_moved.install()

__all__ = [
    "Alternative",
    "AnchorlineError",
    "AnswerCache",
    "Binarizer",
    "Certificate",
    "Changes",
    "Counterfactual",
    "Explainer",
    "Explanation",
    "Explanations",
    "Failure",
    "Frontier",
    "Hypercube",
    "Image",
    "Literal",
    "Signal",
    "Status",
    "Table",
    "Text",
    "Verdict",
    "__version__",
    "explain",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _ON_FIRST_USE:
        from importlib import import_module  # noqa: PLC0415

        value = globals()[name] = getattr(import_module(_ON_FIRST_USE[name]), name)
        return value
    moved = _moved.new_path(f"anchorline.{name}")
    if moved is not None:
        from importlib import import_module  # noqa: PLC0415

        return import_module(moved)
    raise AttributeError(f"module 'anchorline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
