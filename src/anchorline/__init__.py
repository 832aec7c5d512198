"""Short sums of facts that add up exactly to a model's prediction, and how often it stays while the facts hold.

>>> import anchorline as al
>>> explainer = al.Explainer(lambda z: 0.5 * z[:, 0] + 0.25 * z[:, 2], al.Hypercube(["a", "b", "c"]))
>>> e = explainer.explain([1, -1, -1])
>>> [fact.attribute for fact in e.facts], bool(e.base + e.contributions.sum() == e.prediction)
(['a', 'c'], True)
"""

from typing import TYPE_CHECKING, Any

from anchorline._version import __version__
from anchorline.compare import compare
from anchorline.errors import AnchorlineError
from anchorline.verify import verify

if TYPE_CHECKING:
    from anchorline.changes.result import Changes, Counterfactual
    from anchorline.compare.cohorts import Monitor
    from anchorline.explainer import Explainer, check_use
    from anchorline.facts import Fact
    from anchorline.model.cache import AnswerCache
    from anchorline.model.loaders import load_model
    from anchorline.result.comparison import Comparison, Drift
    from anchorline.result.explanation import Explanation, Verdict
    from anchorline.result.explanations import Explanations, Failure
    from anchorline.result.frontier import Frontier
    from anchorline.result.reasons import Reasons
    from anchorline.result.rule import Rule, Rules, RuleVerdict
    from anchorline.spaces.hypercube import Hypercube
    from anchorline.spaces.regions import Image, Signal
    from anchorline.spaces.table import Table
    from anchorline.spaces.text import Text

# A module is imported at the first use of its names, so that a program that may explain starts quickly.
_ON_FIRST_USE = {
    "changes.result": ("Changes", "Counterfactual"),
    "compare.cohorts": ("Monitor",),
    "explainer": ("Explainer", "check_use"),
    "facts": ("Fact",),
    "model.cache": ("AnswerCache",),
    "model.loaders": ("load_model",),
    "result.comparison": ("Comparison", "Drift"),
    "result.explanation": ("Explanation", "Verdict"),
    "result.explanations": ("Explanations", "Failure"),
    "result.frontier": ("Frontier",),
    "result.reasons": ("Reasons",),
    "result.rule": ("Rule", "RuleVerdict", "Rules"),
    "spaces.hypercube": ("Hypercube",),
    "spaces.regions": ("Image", "Signal"),
    "spaces.table": ("Table",),
    "spaces.text": ("Text",),
}

_GONE = {
    "Binarizer": "`anchorline.paper.Binarizer`",
    "Certificate": "the figures of an explanation: `e.verdict`, `e.holds`, `e.all`, `e.fit` and `e.proof`",
    "explain": "`Explainer(model, table).explain(row)`, or `anchorline.paper.explain`",
}

__all__ = [
    "AnchorlineError",
    "AnswerCache",
    "Changes",
    "Comparison",
    "Counterfactual",
    "Drift",
    "Explainer",
    "Explanation",
    "Explanations",
    "Fact",
    "Failure",
    "Frontier",
    "Hypercube",
    "Image",
    "Monitor",
    "Reasons",
    "Rule",
    "RuleVerdict",
    "Rules",
    "Signal",
    "Table",
    "Text",
    "Verdict",
    "__version__",
    "check_use",
    "compare",
    "load_model",
    "verify",
]


if not TYPE_CHECKING:  # so that type checkers find a name that does not exist

    def __getattr__(name: str) -> Any:
        for module, names in _ON_FIRST_USE.items():
            if name in names:
                from importlib import import_module  # noqa: PLC0415

                value = globals()[name] = getattr(import_module(f"anchorline.{module}"), name)
                return value
        hint = f". Use {_GONE[name]}." if name in _GONE else ""
        raise AttributeError(f"module 'anchorline' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted(__all__)
