"""What an explanation takes from its maker: the model, the names, and the range of the output."""

import math
from dataclasses import replace
from typing import Any

from anchorline.explainer import Explainer
from anchorline.model.features import DROPPED, NOT_FITTED
from anchorline.model.outputs import classes_of
from anchorline.model.predictor import plain_label
from anchorline.result.certificate import Certificate
from anchorline.result.explanation import Explanation
from anchorline.search.case import texts_digest
from anchorline.spaces.base import Space
from anchorline.spaces.hypercube import Hypercube
from anchorline.verify.compare import ROUNDING
from anchorline.verify.fresh import ERRORS, supports, word


def explainer_of(claimed: Explanation, predict: Any, space: Space | None) -> Explainer:
    """Return the explainer that the explanation says it was made with."""
    parameters, contrast = claimed.parameters, claimed.parameters.get("contrast")
    return Explainer(
        predict,
        Hypercube() if space is None else space,
        output=claimed.output if contrast is None else tuple(contrast),
        column=parameters["column"],
        task=parameters["task"] if contrast is None else None,
        classes=parameters["classes"],
        output_range=tuple(parameters["output_range"]),
        threshold=parameters["threshold"],
        input=parameters["input"],
        output_scale="margin" if "output_scale" in parameters else None,
    )


def foreign(claimed: Explanation, predict: Any, space: Space | None) -> str | None:
    """Return why the explanation cannot come from this model and space, or None."""
    parameters, own = claimed.parameters, classes_of(predict)
    if space is not None and space.fingerprint != parameters["space"]:
        return "it was made in another space"
    if texts_digest(claimed.single_literals) != parameters["texts"] or claimed.output != parameters["output"]:
        return "its texts are not those it was made with"
    classes = parameters["classes"]
    if classes is not None and own is not None and [plain_label(label) for label in own] != list(classes):
        return "its classes are not the model's"
    column = parameters["column"]
    if column is not None and own is not None and (column >= len(own) or str(own[column]) != claimed.output):
        return "its output does not have the name of the model's class"
    return None


def left_out_otherwise(claimed: Explanation, explainer: Explainer) -> str | None:
    """Return why the columns that the model ignores cannot be compared, or None if they are the recorded ones.

    An estimator lists the columns that it was fitted on; a function does not.
    """
    reasons = (NOT_FITTED, DROPPED)
    recorded = {name for name, why in claimed.fixed.items() if why in reasons}
    own = {*getattr(explainer.space, "left_out", {})}
    if recorded == own:
        return None
    missing = ", ".join(map(repr, sorted(recorded ^ own)))
    return (
        f"the record and this model do not agree on whether the model uses {missing}, and a function does not "
        "list its columns; verify with the estimator itself"
    )


def use_trees_as_recorded(claimed: Explanation, explainer: Explainer) -> str | None:
    """Use the model's trees only if the explanation was computed from them; return why they are not available.

    A function does not show its trees, so what was sampled from it is sampled again, whatever the model shows.
    """
    if not claimed.certificate.by_leaves:
        explainer.setup.trees.replace_by(claimed.certificate.sampled_because)
        return None
    trees = explainer.setup.trees.joined(explainer.target)
    if trees is None or isinstance(trees, str):
        return (
            "it was computed from the leaves of a model's trees, but "
            f"{trees or 'this model does not show its trees'}; verify with the fitted model itself"
        )
    return None


def given_names(claimed: Explanation, predict: Any) -> list[str]:
    """Return a sentence if the name of the output cannot be checked, because the model does not know it."""
    column = claimed.parameters["column"]
    default = {"f(x)", f"class {column}", f"output {column}"}
    if claimed.output in default or (column is not None and classes_of(predict) is not None):
        return []
    return [f"the output's name, {claimed.output!r}, is as named by its maker"]


def false_range(claimed: Explanation, explainer: Explainer) -> str | None:
    """Return that the output range is not the model's own, although the explanation says that it is, or None."""
    low, high = claimed.parameters["output_range"]
    own = _own_range(claimed, explainer) if claimed.parameters.get("learned_range") else None
    if own is None or max(abs(low - own[0]), abs(high - own[1])) <= ROUNDING * (own[1] - own[0]):
        return None
    return (
        f"the model answers differently: its outputs on the training table range from {own[0]:g} to {own[1]:g}, "
        f"where the explanation states {low:g} to {high:g}"
    )


def given_range(claimed: Explanation, fresh: Certificate, explainer: Explainer) -> tuple[list[str], list[str]]:
    """Return whether praise rests on the output range that the maker gave, and what cannot be checked.

    A wide range makes every change of the output small beside it.
    """
    stated = claimed.certificate
    if supports(_rescaled(fresh, math.inf), stated):
        return [], []  # the verdict does not depend on the range
    low, high = claimed.parameters["output_range"]
    shown, own = f"{low:g} to {high:g}", _own_range(claimed, explainer)
    if own is None:
        return [], [] if (low, high) == (-1, 1) else [f"the output range, {shown}, is as given by its maker"]
    narrower = _rescaled(fresh, max(1.0, (high - low) / (own[1] - own[0])))
    if supports(narrower, stated) or not supports(fresh, stated):
        return [], []
    question = (
        f"the verdict {word(stated)} rests on the stated output range, {shown}; the model's own range is "
        f"{own[0]:g} to {own[1]:g}, and relative to that the verdict is {word(narrower)}"
    )
    return [question], []


def _own_range(claimed: Explanation, explainer: Explainer) -> tuple[float, float] | None:
    """Return the range of probabilities, or of the model's answers to the examples of the space, or None.

    The examples take up to 10,000 queries, once per explainer.
    """
    if claimed.parameters.get("probability"):
        return 0.0, 1.0
    if not hasattr(explainer.space, "examples"):
        return None
    low, high = explainer.learn_range(claimed.parameters["column"])
    low, high = min(low, claimed.prediction), max(high, claimed.prediction)
    return (low, high) if low < high else (low - 1, high + 1)


def _rescaled(certificate: Certificate, factor: float) -> Certificate:
    """Return the certificate as it would be in an output range that is narrower by this factor."""
    found = {name: getattr(certificate, name) for name in ERRORS}
    larger: dict[str, Any] = {
        name: estimate.map(lambda error: min(1.0, error * factor**2) if error else 0.0)
        for name, estimate in found.items()
        if estimate is not None
    }
    return replace(certificate, **larger)
