"""What an explanation takes from its maker: the model, the names, and the range of the output."""

import math
from dataclasses import replace
from typing import Any

from anchorline.errors import AnchorlineError
from anchorline.explainer import Explainer
from anchorline.model.outputs import classes_of
from anchorline.model.predictor import plain_label
from anchorline.result.certificate import Certificate
from anchorline.result.explanation import Explanation
from anchorline.search.case import texts_digest
from anchorline.settings import Settings
from anchorline.spaces.base import Space
from anchorline.spaces.hypercube import Hypercube
from anchorline.verify.fresh import ERRORS, is_worse, word


def explainer_of(claimed: Explanation, predict: Any, space: Space | None) -> Explainer:
    """Return the explainer that the explanation says it was made with."""
    parameters = claimed.parameters
    return Explainer(
        predict,
        Hypercube() if space is None else space,
        output=claimed.output,
        column=parameters["column"],
        task=parameters["task"],
        classes=parameters["classes"],
        output_range=tuple(parameters["output_range"]),
        threshold=parameters["threshold"],
        input=parameters["input"],
    )


def foreign(claimed: Explanation, predict: Any, space: Space | None) -> str | None:
    """Return why the explanation cannot come from this model and space, or None."""
    parameters, own = claimed.parameters, classes_of(predict)
    if space is not None and space.fingerprint != parameters["space"]:
        return "it was made in another space"
    if texts_digest(claimed.literals) != parameters["texts"] or claimed.output != parameters["output"]:
        return "its texts are not those it was made with"
    classes = parameters["classes"]
    if classes is not None and own is not None and [plain_label(label) for label in own] != list(classes):
        return "its classes are not the model's"
    column = parameters["column"]
    if column is not None and own is not None and (column >= len(own) or str(own[column]) != claimed.output):
        return "its output does not have the name of the model's class"
    return None


def given_names(claimed: Explanation, predict: Any) -> list[str]:
    """Return a sentence if the name of the output cannot be checked, because the model does not know it."""
    column = claimed.parameters["column"]
    default = {"f(x)", f"class {column}", f"output {column}"}
    if claimed.output in default or (column is not None and classes_of(predict) is not None):
        return []
    return [f"the output's name, {claimed.output!r}, is as named by its maker"]


def given_range(claimed: Explanation, fresh: Certificate, explainer: Explainer) -> tuple[list[str], list[str]]:
    """Return whether the output range makes the verdict better than it is, and what cannot be checked.

    A wide range makes every change of the output small beside it. The model's own range is that of probabilities,
    or that of its answers on the examples of the space, which takes up to 10,000 queries.
    """
    if not is_worse(_rescaled(fresh, math.inf), claimed.certificate):
        return [], []  # the verdict does not depend on the range
    low, high = claimed.parameters["output_range"]
    stated = f"{low:g} to {high:g}"
    own = _own_range(claimed, explainer)
    if own is None:
        return [], [] if (low, high) == (-1, 1) else [f"the output range, {stated}, is as given by its maker"]
    narrower = _rescaled(fresh, (high - low) / (own[1] - own[0]))
    if not is_worse(narrower, claimed.certificate):
        return [], []
    question = (
        f"the verdict {word(claimed.certificate)} rests on the stated output range, {stated}; the model's own "
        f"range is {own[0]:g} to {own[1]:g}, and relative to that the verdict is {word(narrower)}"
    )
    return [question], []


def _own_range(claimed: Explanation, explainer: Explainer) -> tuple[float, float] | None:
    """Return the range that the explainer finds by itself, or None if the space has no examples to find it on."""
    parameters = claimed.parameters
    if not parameters.get("probability") and not hasattr(explainer.space, "examples"):
        return None
    plain = Explainer(
        explainer.model,
        explainer.space,
        output=claimed.output,
        **{name: parameters[name] for name in ("column", "task", "classes", "input")},
    )
    try:
        case = plain.prepare(list(claimed.instance), replace(Settings.from_dict(parameters), max_queries=None))
    except AnchorlineError:
        return None
    return case.predictor.output_range


def _rescaled(certificate: Certificate, factor: float) -> Certificate:
    """Return the certificate as it would be in an output range that is narrower by this factor."""
    found = {name: getattr(certificate, name) for name in ERRORS}
    worse = {
        name: estimate.map(lambda error: min(1.0, error * factor**2) if error else 0.0)
        for name, estimate in found.items()
        if estimate is not None
    }
    return replace(certificate, **worse)
