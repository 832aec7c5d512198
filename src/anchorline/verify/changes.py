"""Verification of changes: examples are asked again, the search is repeated, and shares are measured afresh."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from anchorline.errors import AnchorlineError, FormatError, PredictorError, TamperedError
from anchorline.explainer import Explainer
from anchorline.result.assemble_changes import NoLeavesError, answer_at, find_changes
from anchorline.result.changes import Changes
from anchorline.result.verification import Outcome, Verification
from anchorline.search.changes.settings import ChangeSettings
from anchorline.spaces.given import as_space
from anchorline.spaces.hypercube import Hypercube
from anchorline.verify.compare import ROUNDING

_SUBJECT = "list of changes"
_UNSTATED = ("versions",)  # recorded for information only


def verify_changes(
    changes: Changes | str, predict: Any, space: Any = None, *, seed: int | None = None
) -> Verification:
    """Return whether stated changes hold for this model and space.

    The model is asked about every example. Then the search is repeated with the recorded settings, and every
    figure is compared. A cost function is not recorded, so that the search cannot be repeated where one was used.
    Shares that were estimated from draws are measured on fresh draws, from ``seed`` or from the system's own
    randomness.

    Examples
    --------
    >>> import anchorline as al
    >>> model = lambda z: (z[:, :3].sum(axis=1) > 0) * 2 - 1
    >>> print(verify_changes(al.Explainer(model, al.Hypercube()).changes([1, 1, -1, 1]), model))
    The list of changes holds: every figure was reproduced, and 2 examples turned again.
    """
    try:
        changes = Changes.from_json(changes) if isinstance(changes, str) else changes
    except FormatError as error:
        tampered = isinstance(error, TamperedError)
        reason = str(error) if tampered else f"this is not the JSON of changes: {error}"
        return _answer(Outcome.DOES_NOT_HOLD if tampered else Outcome.CANNOT_TELL, reason)
    if space is None and not str(changes.parameters["space"]).startswith("hypercube:"):
        return _answer(Outcome.CANNOT_TELL, "the space is needed; type verify(predict, space=...)")
    try:
        explainer = _explainer(changes, predict, Hypercube() if space is None else as_space(space))
        if space is not None and explainer.space.fingerprint != changes.parameters["space"]:
            return _answer(Outcome.DOES_NOT_HOLD, "it was made in another space")
        return _verify(changes, explainer, secrets.randbits(62) if seed is None else seed)
    except PredictorError as error:
        return _answer(Outcome.CANNOT_TELL, f"the model could not be queried: {error}")
    except (AnchorlineError, KeyError, TypeError, ValueError) as error:
        return _answer(Outcome.DOES_NOT_HOLD, f"it cannot be computed again: {error}")


def _answer(outcome: Outcome, *reasons: str) -> Verification:
    return Verification(outcome, reasons, subject=_SUBJECT)


def _explainer(changes: Changes, predict: Any, space: Any) -> Explainer:
    parameters, contrast = changes.parameters, changes.parameters.get("contrast")
    return Explainer(
        predict,
        space,
        output=changes.output if contrast is None else tuple(contrast),
        column=parameters["column"],
        task=parameters["task"] if contrast is None else None,
        classes=parameters["classes"],
        threshold=parameters["threshold"],
        input=parameters["input"],
        output_scale="margin" if "output_scale" in parameters else None,
    )


def _verify(changes: Changes, explainer: Explainer, seed: int) -> Verification:
    if not _same(answer_at(explainer, changes.instance), (changes.prediction, changes.label)):
        return _answer(Outcome.DOES_NOT_HOLD, "the model gives another output or decision for this row")
    wrong = list(_wrong_examples(changes, explainer))
    if wrong:
        return _answer(Outcome.DOES_NOT_HOLD, *wrong)
    if changes.parameters["cost"] == "function":
        return _not_repeated("the cost function is not recorded")
    settings = ChangeSettings.from_dict(changes.parameters, changes.parameters["target"])
    try:
        again = find_changes(explainer, changes.instance, settings)
    except NoLeavesError:
        return _not_repeated("the trees of the model cannot be read")
    wrong = [f"{name} is not what the search gives" for name in _differences(changes, again)]
    wrong = wrong or list(_contradicted(changes, explainer, replace(settings, seed=seed)))
    if wrong:
        return _answer(Outcome.DOES_NOT_HOLD, *wrong)
    n = len(changes)
    examples = f"{n} examples turned again" if n != 1 else "1 example turned again"
    return _answer(Outcome.HOLDS, f"every figure was reproduced, and {examples if n else 'again nothing turns'}")


def _not_repeated(why: str) -> Verification:
    return _answer(
        Outcome.CANNOT_TELL, f"every example turned again, but {why}, so that the search is not repeated"
    )


def _wrong_examples(changes: Changes, explainer: Explainer) -> Iterator[str]:
    """Yield which examples do not give what is stated when the model is asked about them as rows of their own."""
    for place, option in enumerate(changes if changes.has_columns else ()):  # otherwise the search asks again
        row = changes.changed(place)
        answer = answer_at(explainer, [row[name] for name in changes.columns])
        if not _same(answer, (option.output, option.label)):
            yield f"the example of change {place + 1} does not give the stated answer"


def _differences(changes: Changes, again: Changes) -> Iterator[str]:
    stated, found = json.loads(changes.to_json()), json.loads(again.to_json())
    for name in sorted(stated.keys() - {"sha256", "parameters"}):
        if not _same(stated[name], found[name]):
            yield name
    recorded, now = stated["parameters"], found["parameters"]
    if any(not _same(recorded.get(name), now.get(name)) for name in {*recorded, *now} - {*_UNSTATED}):
        yield "a parameter"


def _contradicted(changes: Changes, explainer: Explainer, settings: ChangeSettings) -> Iterator[str]:
    """Yield which shares the verifier's own draws contradict: their intervals have no common point."""
    if all(option.reliability is None or option.reliability.exact for option in changes):
        return
    for place, (stated, fresh) in enumerate(
        zip(changes, find_changes(explainer, changes.instance, settings), strict=True)
    ):
        ours, own = stated.reliability, fresh.reliability
        if ours is not None and own is not None and (own.low > ours.high or own.high < ours.low):
            yield f"on fresh draws, change {place + 1} turns with {own}, where {ours} is stated"


def _same(stated: Any, found: Any) -> bool:
    """Return whether two values are equal, numbers up to rounding."""
    if isinstance(stated, dict) and isinstance(found, dict):
        return stated.keys() == found.keys() and all(_same(stated[key], found[key]) for key in stated)
    if isinstance(stated, list | tuple) and isinstance(found, list | tuple):
        return len(stated) == len(found) and all(map(_same, stated, found))
    if isinstance(stated, float) and isinstance(found, int | float):
        return abs(stated - found) <= ROUNDING * max(1.0, abs(stated))
    return bool(stated == found)
