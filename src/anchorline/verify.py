"""Verify an explanation: recompute what can be recomputed, measure the rest on fresh neighbors."""

import math
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from anchorline.errors import AnchorlineError, FormatError, ParameterError, PredictorError, TamperedError
from anchorline.explainer import Explainer
from anchorline.model.outputs import classes_of
from anchorline.model.predictor import plain_label
from anchorline.optimize.problem import Status
from anchorline.result.explanation import Explanation
from anchorline.result.verification import Outcome, Verification
from anchorline.search.assess import assess
from anchorline.search.case import texts_digest
from anchorline.settings import Settings
from anchorline.spaces.base import Space
from anchorline.spaces.given import as_space
from anchorline.spaces.hypercube import Hypercube

__all__ = ["Outcome", "Verification", "verify"]

ROUNDING = 1e-9  # figures may differ by this, relative to their size, to 1, or to half the range of the output
_IN_OUTPUT_UNITS = re.compile(
    r"^(prediction|intercept|half_range|contributions)|_residual$|_change\.|\.(values|intercept)$"
)
_CHECKSUM_ROUNDING = 1e-7
_FRESH_CONFIDENCE = 0.999  # of the measurement on fresh neighbors


def verify(
    explanation: Explanation | str,
    predict: Callable[[Any], Any],
    space: Any = None,
    *,
    seed: int | None = None,
) -> Verification:
    """Recompute an explanation (or its JSON) with the model and return whether it holds.

    The flips are drawn again from the recorded seed, the model is queried again, and every number is compared:
    answers (by their checksum), sums, objective, bound and estimates to 1e-9. Then the relevance is measured once
    more on neighbors that nobody could predict: they are drawn from ``seed``, by default from the system's own
    randomness. ``space`` is needed to check the literals' texts against the space itself, and for every space
    except the hypercube. A bare training frame is taken as ``Table(frame)``.

    Examples
    --------
    >>> import anchorline as al
    >>> model = lambda z: 0.5 * z[:, 0]
    >>> e = al.explain(model, [1, 1, -1], k=2)
    >>> print(e.verify(model))
    The explanation holds: every figure was reproduced, and fresh neighbors agree.
    >>> e.verify(lambda z: 0.6 * z[:, 0]).outcome.value
    'does not hold'
    """
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise ParameterError(f"seed is {seed!r}; needed a whole number >= 0, or None. Type seed=0.")
    _check_arguments(explanation, predict)
    space = None if space is None else as_space(space)
    if isinstance(explanation, str):
        try:
            explanation = Explanation.from_json(explanation)
        except TamperedError as error:
            return Verification(Outcome.DOES_NOT_HOLD, (str(error),))
        except FormatError as error:
            return Verification(Outcome.CANNOT_TELL, (f"this is not the JSON of an explanation: {error}",))
    if space is None and not str(explanation.parameters.get("space", "")).startswith("hypercube:"):
        return Verification(Outcome.CANNOT_TELL, ("the space is needed; type verify(predict, space=...)",))
    try:
        return _verify(explanation, predict, space, secrets.randbits(62) if seed is None else seed)
    except PredictorError as error:
        return Verification(Outcome.CANNOT_TELL, (f"the model could not be queried: {error}",))
    except (AnchorlineError, KeyError, TypeError, ValueError) as error:
        return Verification(Outcome.DOES_NOT_HOLD, (f"it cannot be computed again: {error}",))


def _check_arguments(explanation: Any, predict: Any) -> None:
    """Raise `ParameterError` if the arguments are swapped, or if the first is not an explanation."""
    if isinstance(explanation, Explanation | str) and not isinstance(predict, Explanation):
        return
    kind = type(explanation).__name__
    if isinstance(predict, Explanation | str):
        raise ParameterError(
            f"The first argument is of type {kind}, and the second of type {type(predict).__name__}; the "
            "explanation must come first, and the model second. Type verify(explanation, model)."
        )
    raise ParameterError(
        f"explanation is a {kind}; it must be an Explanation, or its JSON as a text. For a file, type "
        "verify(pathlib.Path(file).read_text(), model)."
    )


def _verify(claimed: Explanation, predict: Callable[[Any], Any], space: Space | None, seed: int) -> Verification:
    parameters = claimed.parameters
    settings = Settings.from_dict(parameters)
    explainer = Explainer(
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
    foreign = _foreign(claimed, predict, space)
    if foreign is not None:
        return Verification(Outcome.DOES_NOT_HOLD, (foreign,))
    unlimited = replace(settings, max_queries=None)
    now = explainer.prepare(list(claimed.instance), unlimited).parameters
    skipped = {"versions", "max_queries", "texts"} | ({"space"} if space is None else set())  # texts: see _foreign
    differing = [name for name in now.keys() - skipped if not _equal(now[name], parameters.get(name))]
    if differing:
        names = ", ".join(sorted(differing))
        return Verification(Outcome.DOES_NOT_HOLD, (f"the model and the space do not give its {names}",))
    again = _repeated(claimed, explainer, settings, now)
    differences = list(_differences(_claims(claimed, space is not None), _claims(again, space is not None)))
    if not differences:
        return _measure_afresh(claimed, explainer, settings, seed)
    doubt = _doubt(claimed, again, explainer, settings)
    if doubt is not None:
        return Verification(Outcome.CANNOT_TELL, (doubt, *differences))
    return Verification(Outcome.DOES_NOT_HOLD, tuple(differences))


def _repeated(
    claimed: Explanation, explainer: Explainer, settings: Settings, now: Mapping[str, Any]
) -> Explanation:
    """Explain again with the recorded parameters, whose text decides the key of the checksum.

    Other languages write the number 1.0 as 1. If the checksum differs, floats that such a writer may have changed
    are restored: those that the explainer computes itself, then the box too.
    """
    recorded = dict(claimed.parameters)
    restored = recorded | {name: now[name] for name in ("output_range", "threshold")}
    box = recorded["box"]
    attempts = [recorded, restored, restored | {"box": None if box is None else float(box)}]
    checksum = claimed.certificate.answers_checksum
    first: Explanation | None = None
    for i, parameters in enumerate(attempts):
        if repr(parameters) in map(repr, attempts[:i]):
            continue
        again = explainer.explain_with(list(claimed.instance), settings, parameters)
        first = again if first is None else first
        if abs(again.certificate.answers_checksum - checksum) <= _CHECKSUM_ROUNDING:
            return again
    assert first is not None  # the recorded parameters are always tried
    return first


def _doubt(claimed: Explanation, again: Explanation, explainer: Explainer, settings: Settings) -> str | None:
    """Return why differences may not be the explanation's fault, or None."""
    statuses = (claimed.certificate.status, again.certificate.status)
    same_answers = again.certificate.answers_checksum == claimed.certificate.answers_checksum
    if Status.LIMIT in statuses and settings.time_limit is not None and same_answers:
        return "the search was stopped by the clock, so it cannot be repeated exactly"
    if _contradicts_itself(explainer, claimed):
        return "the model gives two answers to the same query"
    list_unclear = getattr(explainer.space, "unclear", None)
    unclear = [] if same_answers or list_unclear is None else list_unclear(list(claimed.instance))
    if unclear:
        columns = ", ".join(map(repr, unclear))
        return f"in {columns} several values read like the row's, and the record does not show which one it has"
    return None


def _foreign(claimed: Explanation, predict: Any, space: Space | None) -> str | None:
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


def _equal(now: Any, claimed: Any) -> bool:
    """Whether a parameter equals the recorded one; JSON turns tuples into lists."""
    if isinstance(now, list | tuple) and isinstance(claimed, list | tuple):
        return len(now) == len(claimed) and all(map(_equal, now, claimed))
    if isinstance(now, float) and isinstance(claimed, int | float):
        return math.isclose(now, claimed, rel_tol=ROUNDING)
    return bool(now == claimed)


def _contradicts_itself(explainer: Explainer, claimed: Explanation) -> bool:
    """Whether the model answers differently when it is queried twice about the instance."""
    original = explainer.space.at(list(claimed.instance)).original
    first, second = (np.asarray(explainer.target.ask(original)) for _ in range(2))
    return not bool(np.all(first == second))


def _claims(explanation: Explanation, with_texts: bool) -> dict[str, Any]:
    """Return every claim by name, flat; the literals' texts only where the space is known."""
    certificate = asdict(explanation.certificate) | {"status": explanation.certificate.status.name}
    claims = {f"certificate.{name}": value for name, value in _flat(certificate)}
    claims |= {f"contributions[{j}]": u for j, u in enumerate(explanation.contributions.tolist())}
    if with_texts:
        texts = enumerate((literal.name, literal.text, literal.held) for literal in explanation.literals)
        claims |= {f"literals[{j}]": text for j, text in texts}
    claims |= {f"fixed[{name}]": why for name, why in explanation.fixed.items()}
    for i, other in enumerate(explanation.alternatives):
        claims |= {f"alternatives[{i}].{name}": value for name, value in _flat(asdict(other))}
    return claims | {
        "prediction": explanation.prediction,
        "intercept": explanation.intercept,
        "half_range": explanation.half_range,
        "label": explanation.label,
        "n_literals": len(explanation.literals),
    }


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", below) for inner, below in _flat(value))
        else:
            yield name, value


def _differences(claimed: Mapping[str, Any], actual: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(set(claimed) | set(actual)):
        stated, measured = claimed.get(name), actual.get(name)
        relative, absolute = ROUNDING, ROUNDING
        if _IN_OUTPUT_UNITS.search(name):
            absolute *= actual["half_range"]
        if name == "label":
            relative = absolute = 0.0
        if name.endswith("probability"):  # it may be very small, and a bound divides by it
            absolute = 0.0
        if name.endswith("checksum"):  # it is large and must not hide a small change: a few units of 2^-26
            relative, absolute = 0.0, _CHECKSUM_ROUNDING
        if not _same(stated, measured, relative, absolute):
            yield f"{name} is stated as {stated!r}, but is {measured!r}"


def _same(stated: Any, actual: Any, relative: float, absolute: float) -> bool:
    if isinstance(stated, tuple) and isinstance(actual, tuple):
        pairs = zip(stated, actual, strict=False)
        return len(stated) == len(actual) and all(_same(a, b, relative, absolute) for a, b in pairs)
    numbers = (int, float)
    if isinstance(stated, numbers) and isinstance(actual, numbers) and not isinstance(stated, bool):
        if isinstance(actual, bool):
            return False
        if isinstance(stated, int) and isinstance(actual, int):
            return stated == actual
        return math.isclose(stated, actual, rel_tol=relative, abs_tol=absolute)
    return type(stated) is type(actual) and bool(stated == actual)


def _measure_afresh(claimed: Explanation, explainer: Explainer, settings: Settings, seed: int) -> Verification:
    """Query the model about neighbors nobody has seen; they may contradict the certificate."""
    relevance = claimed.certificate.relevance_error
    if relevance is None:
        return Verification(Outcome.HOLDS, ("every figure was reproduced (nothing was measured)",))
    unlimited = replace(settings, max_queries=None, seed=seed)  # the query limit was the maker's
    case = explainer.prepare(list(claimed.instance), unlimited)
    fresh = assess(
        case,
        claimed.scaled,
        n_samples=2 * relevance.n_samples,
        stream="verify",
        max_enumerated=relevance.n_samples if relevance.exact else 0,
        confidence=_FRESH_CONFIDENCE,
    ).relevance_error
    if fresh.high < relevance.low - ROUNDING or fresh.low > relevance.high + ROUNDING:
        reason = (
            f"every figure was reproduced, but fresh neighbors give a relevance error of {fresh} instead of "
            f"{relevance}, so the interval was unlucky or the model changes"
        )
        return Verification(Outcome.CANNOT_TELL, (reason,))
    return Verification(Outcome.HOLDS, ("every figure was reproduced, and fresh neighbors agree",))
