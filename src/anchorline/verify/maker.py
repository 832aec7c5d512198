"""What an explanation takes from its maker: the model, the names, and the range of the output."""

import copy
from dataclasses import replace
from typing import Any

from anchorline.explainer import Explainer
from anchorline.model.features import DROPPED, NOT_FITTED
from anchorline.model.outputs import classes_of
from anchorline.model.predictor import about_the_same, plain_label
from anchorline.result.assemble import measurements
from anchorline.result.certificate import Certificate
from anchorline.result.explanation import Explanation
from anchorline.search.assess import assess
from anchorline.search.case import texts_digest
from anchorline.settings import Settings
from anchorline.spaces.base import Space
from anchorline.spaces.hypercube import Hypercube
from anchorline.verify.compare import ROUNDING
from anchorline.verify.fresh import CONFIDENCE, LAST_LOOK, PRAISE, supports, word

_USUAL_ON_HYPERCUBE = 0.2  # a tenth of the range from -1 to +1
_OF_MAKER = ("wide-range",)  # the verifier takes the range as recorded, also if it was learned


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
        same_within=parameters.get("same_within"),
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


def given_distance(
    claimed: Explanation, fresh: Certificate, explainer: Explainer, settings: Settings
) -> tuple[list[str], list[str]]:
    """Return whether praise rests on what the maker counts as no change of a number, and what cannot be checked.

    If changes that are large beside the model's own outputs count as none, every explanation looks good.
    """
    stated, within = claimed.certificate, claimed.certificate.same_within
    if within is None or stated.verdict not in PRAISE or not supports(fresh, stated):
        return [], []
    counted = f"changes of up to {within:g} count as none"
    own = _own_distance(claimed, explainer)
    if own is None:
        usual = claimed.parameters["output_range"] == (-1, 1) and within <= _USUAL_ON_HYPERCUBE
        return [], [] if usual else [f"{counted}, as given by its maker"]
    if within <= own * (1 + ROUNDING):
        return [], []
    narrower = _measured_within(claimed, explainer, own, settings)
    if supports(narrower, stated):
        return [], []
    question = (
        f"the verdict {word(stated)} rests on a choice of its maker: {counted}; a tenth of the usual spread of "
        f"the model's outputs is {own:g}, and with that the verdict is {word(narrower)}"
    )
    return [question], []


def _measured_within(
    claimed: Explanation, explainer: Explainer, distance: float, settings: Settings
) -> Certificate:
    """Return the certificate with fresh figures, for another distance within which a number stays the same."""
    explainer = copy.copy(explainer)
    explainer.same_within = distance
    case = explainer.open(list(claimed.instance), settings)
    found = assess(
        case,
        claimed.scaled,
        n_samples=2 * LAST_LOOK,
        stream="verify",
        max_enumerated=LAST_LOOK,
        confidence=CONFIDENCE,
    )
    figures = measurements(found, case.predictor)
    return replace(claimed.certificate, confidence=CONFIDENCE, same_within=distance, **figures)


def _own_distance(claimed: Explanation, explainer: Explainer) -> float | None:
    """Return a tenth of the usual spread of the model's outputs, by default the distance, or None if unknown."""
    if not hasattr(explainer.space, "examples"):
        return None
    return about_the_same(explainer.learn(claimed.parameters["column"])[2])


def omitted_warnings(claimed: Explanation, explainer: Explainer) -> list[str]:
    """Return the warnings about the model and the table that the record does not state, each with a remark."""
    stated = " ".join(claimed.warnings)
    missing = [finding for finding in explainer.check() if finding.code not in _OF_MAKER]
    return [f"the record omits a warning: {finding.text}" for finding in missing if finding.text not in stated]


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
