"""The steps of a verification, from the text to the answer."""

import json
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from anchorline._links import call
from anchorline.errors import (
    AnchorlineError,
    FormatError,
    InstanceError,
    InstanceNeededError,
    ParameterError,
    PredictorError,
    PredictorOutputError,
    TamperedError,
)
from anchorline.explainer import Explainer
from anchorline.result.changes import Changes, is_changes
from anchorline.result.explanation import Explanation
from anchorline.result.verification import Outcome, Verification
from anchorline.search.case import Case
from anchorline.settings import Settings
from anchorline.spaces.base import Space
from anchorline.spaces.given import as_space
from anchorline.spaces.hypercube import Hypercube
from anchorline.verify.compare import changed_parameters, claims, differences
from anchorline.verify.fresh import confirmation, contradictions, doubts, measure_afresh
from anchorline.verify.maker import (
    explainer_of,
    false_range,
    foreign,
    given_distance,
    given_names,
    left_out_otherwise,
    omitted_warnings,
    use_trees_as_recorded,
)
from anchorline.verify.repeat import Repetition, confirms_search, refuted_search

_BY_CLOCK = "the search was stopped by the clock, so that its bound, or what it listed, cannot be confirmed"
_OTHER_ANSWERS = "its answers to the recorded neighbors are not the recorded ones, or the record was changed"
_CUT_LIST = "the list of alternatives was cut, which the record does not state"
_WHY_CONTRADICTED = (
    "the stated sample was unlucky or selected, or the model treats neighbors differently that its maker foresaw"
)


def check(
    explanation: Explanation | Changes | str,
    predict: Callable[[Any], Any],
    space: Any = None,
    *,
    instance: Any = None,
    seed: int | None = None,
) -> Verification:
    """Carry out `anchorline.verify`, whose arguments these are."""
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise ParameterError(f"seed is {seed!r}; needed a whole number >= 0, or None. Type seed=0.")
    if isinstance(explanation, Changes) or is_changes(explanation):
        verification: Verification = call("verify.changes", explanation, predict, space, seed=seed)
        return verification
    _check_arguments(explanation, predict)
    space = None if space is None else as_space(space)
    try:
        explanation = Explanation.from_json(explanation) if isinstance(explanation, str) else explanation
    except FormatError as error:
        is_tampered = isinstance(error, TamperedError)
        reason = str(error) if is_tampered else f"this is not the JSON of an explanation: {error}"
        return Verification(Outcome.DOES_NOT_HOLD if is_tampered else Outcome.CANNOT_TELL, (reason,))
    if space is None and not str(explanation.parameters.get("space", "")).startswith("hypercube:"):
        return Verification(Outcome.CANNOT_TELL, ("the space is needed; type verify(predict, space=...)",))
    try:
        given = None if instance is None else _given_instance(explanation, instance, space)
        return _verify(explanation, predict, space, given, secrets.randbits(62) if seed is None else seed)
    except (PredictorError, InstanceNeededError) as error:
        why = "the model could not be queried" if isinstance(error, PredictorError) else "the instance is needed"
        return Verification(Outcome.CANNOT_TELL, (f"{why}: {error}",))
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


def _given_instance(claimed: Explanation, instance: Any, space: Space | None) -> Any:
    """Return an instance that the verifier gave; raise `InstanceError` unless it is the recorded one."""
    recorded = (Hypercube() if space is None else space).at(instance).instance
    if json.dumps(recorded, default=str) != json.dumps(claimed.instance, default=str):
        raise InstanceError("the instance that was given is not the recorded one")
    return instance


def _verify(
    claimed: Explanation, predict: Callable[[Any], Any], space: Space | None, instance: Any, seed: int
) -> Verification:
    explainer = explainer_of(claimed, predict, space)
    reason = foreign(claimed, predict, space)
    if reason is not None:
        return Verification(Outcome.DOES_NOT_HOLD, (reason,))
    doubt = left_out_otherwise(claimed, explainer)
    if doubt is not None:
        return Verification(Outcome.CANNOT_TELL, (doubt,))
    doubt = use_trees_as_recorded(claimed, explainer)
    settings = replace(Settings.from_dict(claimed.parameters), max_queries=None, seed=seed)  # the verifier's own
    try:
        instance = list(claimed.instance) if instance is None else instance
        case = explainer.prepare(instance, settings)
    except (ParameterError, PredictorOutputError) as error:
        return Verification(Outcome.DOES_NOT_HOLD, (f"the model answers differently: {error}",))
    reason = false_range(claimed, explainer)
    if reason is not None:
        return Verification(Outcome.DOES_NOT_HOLD, (reason,))
    repetition = Repetition(claimed, explainer, case, instance)
    if doubt is not None and repetition.difference_at_row() is None:
        return Verification(Outcome.CANNOT_TELL, (doubt,))
    remarks = _recompute(repetition, with_texts=space is not None)
    return remarks if isinstance(remarks, Verification) else _measure(claimed, explainer, case, *remarks)


def _measure(
    claimed: Explanation, explainer: Explainer, case: Case, open_questions: list[str], remarks: list[str]
) -> Verification:
    """Measure on fresh neighbors, and return that the explanation holds unless a question is open."""
    stated = claimed.certificate
    notes = [*given_names(claimed, explainer.model), *omitted_warnings(claimed, explainer), *remarks]
    if stated.relevance_error is None:
        fresh, notes = None, ["every figure was reproduced (nothing was measured)", *notes]
    else:
        fresh = measure_afresh(claimed, case)
        refuted = contradictions(stated, fresh)
        if refuted:
            return Verification(Outcome.DOES_NOT_HOLD, (*refuted, _WHY_CONTRADICTED), fresh)
        questions, range_notes = given_distance(claimed, fresh, explainer, case.settings)
        open_questions = [*open_questions, *doubts(stated, fresh), *questions]
        notes = [*confirmation(stated, fresh), *notes, *range_notes]
    if open_questions:
        return Verification(Outcome.CANNOT_TELL, tuple(open_questions), fresh)
    return Verification(Outcome.HOLDS, tuple(notes), fresh)


def _answered_differently(repetition: Repetition, again: Explanation | None, how: str) -> Verification:
    doubt = repetition.doubt_about_answers(again)
    if doubt is not None:
        return Verification(Outcome.CANNOT_TELL, (doubt,))
    return Verification(Outcome.DOES_NOT_HOLD, (f"the model answers differently: {how}",))


def _recompute(repetition: Repetition, *, with_texts: bool) -> Verification | tuple[list[str], list[str]]:
    """Return the answer if something differs, otherwise what the clock left open, and what the record omits."""
    claimed, at_row = repetition.claimed, repetition.difference_at_row()
    if at_row is not None and not repetition.unclear:
        return _answered_differently(repetition, None, at_row)
    changed = changed_parameters(repetition.now, claimed.parameters, with_space=with_texts)
    if changed:
        return Verification(Outcome.DOES_NOT_HOLD, (f"the model and the space do not give its {changed}",))
    again, open_questions = repetition.explained(), []
    stated = claims(claimed, with_texts=with_texts)
    differing = differences(stated, claims(again, with_texts=with_texts))
    is_cut = claimed.alternatives_complete is None and again.alternatives_complete is False
    if differing and repetition.depends_on_clock:
        if not repetition.can_be_replayed:
            return [_BY_CLOCK], []
        open_questions = [] if confirms_search(claimed, again) else [_BY_CLOCK]
        refuted = refuted_search(claimed.certificate, again.certificate)
        again = repetition.replayed()
        replayed = differences(stated, claims(again, with_texts=with_texts))
        differing = refuted | {name: replayed[name] for name in replayed if not name.startswith("alternatives")}
    if differing and not repetition.has_same_answers(again):
        return _answered_differently(repetition, again, _OTHER_ANSWERS)
    if differing:
        return Verification(Outcome.DOES_NOT_HOLD, tuple(differing.values()))
    return open_questions, [_CUT_LIST] if is_cut else []
