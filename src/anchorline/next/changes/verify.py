"""Verification of changes: examples are asked again, the search is repeated, and shares are measured afresh."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from anchorline.model.trees import Reading
from anchorline.next.changes.find import ChangeSettings, find_changes
from anchorline.next.changes.result import Changes
from anchorline.next.model.predictor import Predictor
from anchorline.next.result.verification import Outcome, Reason, Verification
from anchorline.next.spaces.base import Space

_SUBJECT = "list of changes"
_ROUNDING = 1e-9  # of figures that are computed again

Opening = Callable[[float], Predictor]
"""Returns the model, not opened yet, with a limit of answers, which may be infinite."""


def verify_changes(
    changes: Changes,
    space: Space,
    opening: Opening,
    seed: int,
    reading: Reading | None = None,
    check: Callable[[], object] | None = None,
) -> Verification:
    """Return whether stated changes hold for this space and model.

    The model is asked about every example. Then the search is repeated with the recorded settings, and every
    figure is compared. A cost function is not recorded, so that the search cannot be repeated where one was used;
    nor can it if leaves of trees decided that ``reading`` does not have. Shares that were estimated from draws are
    measured on fresh draws, from ``seed``.
    """
    wrong = list(_wrong_answers(changes, space, opening))
    if wrong:
        return _answer(Outcome.DOES_NOT_HOLD, *wrong)
    if changes.settings["cost"] == "function":
        return _answer(Outcome.CANNOT_TELL, Reason("cost_function"))
    settings = ChangeSettings.from_dict(changes.settings)

    def again(settings: ChangeSettings) -> Changes:
        return find_changes(space, opening(settings.queries), changes.instance, settings, reading, check)

    found = again(settings)
    if any(level.by_leaves for level in changes.levels) and not any(level.by_leaves for level in found.levels):
        return _answer(Outcome.CANNOT_TELL, Reason("no_trees"))
    wrong = list(_differences(changes, found))
    if not wrong and any(option.share is not None and not option.share.is_exact for option in changes):
        wrong = list(_contradicted(changes, again(replace(settings, seed=seed))))
    if wrong:
        return _answer(Outcome.DOES_NOT_HOLD, *wrong)
    turned = Reason("turned", stated=len(changes)) if len(changes) else Reason("nothing_turns")
    return _answer(Outcome.HOLDS, Reason("repeated"), turned)


def _answer(outcome: Outcome, *reasons: Reason) -> Verification:
    return Verification(outcome, reasons, subject=_SUBJECT)


def _asked(space: Space, opening: Opening, instance: Any) -> tuple[float | None, Any]:
    """Return the model's output and decision at an instance, given by plain values; None where it has none."""
    predictor = opening(math.inf).open(space.at(instance).original)
    return None if predictor.is_label else predictor.prediction, predictor.output.decision


def _wrong_answers(changes: Changes, space: Space, opening: Opening) -> Iterator[Reason]:
    """Yield what is not as stated when the model is asked about the instance and its examples, one by one."""
    if space.fingerprint != changes.space["fingerprint"]:
        yield Reason("other_space")
        return
    stated, found = (changes.prediction, changes.output.decision), _asked(space, opening, changes.instance)
    for where, ours, own in zip(("prediction", "output.decision"), stated, found, strict=True):
        if not _same(ours, own):
            yield Reason("other_model", where, ours, own)
            return
    if changes.space["kind"] not in ("table", "hypercube"):
        return  # an example is not an instance of its own; the search asks again
    for place, option in enumerate(changes):
        row = changes.changed(place)
        output, decision = _asked(space, opening, [row[name] for name in changes.columns])
        is_decided = option.decision is not None and changes.output.threshold is None
        if not _same(option.output, output) or (is_decided and decision != option.decision):
            yield Reason("other_example", str(place + 1))


def _differences(changes: Changes, again: Changes) -> Iterator[Reason]:
    stated, found = json.loads(changes.to_json()), json.loads(again.to_json())
    for name in sorted(stated.keys() - {"sha256", "versions"}):
        if not _same(stated[name], found[name]):
            yield Reason("differs", name, stated[name], found[name])


def _contradicted(changes: Changes, fresh: Changes) -> Iterator[Reason]:
    """Yield which shares the verifier's own draws contradict: their intervals have no common point."""
    for place, (stated, found) in enumerate(zip(changes, fresh, strict=True)):
        ours, own = stated.share, found.share
        if ours is not None and own is not None and (own.low > ours.high or own.high < ours.low):
            yield Reason("contradicted", f"options[{place}].share", ours, own)


def _same(stated: Any, found: Any) -> bool:
    """Return whether two values are equal, numbers up to rounding."""
    if isinstance(stated, dict) and isinstance(found, dict):
        return stated.keys() == found.keys() and all(_same(stated[key], found[key]) for key in stated)
    if isinstance(stated, list | tuple) and isinstance(found, list | tuple):
        return len(stated) == len(found) and all(map(_same, stated, found))
    if isinstance(stated, float) and isinstance(found, int | float):
        return abs(stated - found) <= _ROUNDING * max(1.0, abs(stated))
    return bool(stated == found)
