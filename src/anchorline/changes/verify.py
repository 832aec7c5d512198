"""Verification of changes: examples are asked again, the search is repeated, and shares are measured afresh."""

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from anchorline.changes.candidates import TwoValuedCase
from anchorline.changes.find import ChangeSettings, case_of, find_changes
from anchorline.changes.result import Changes
from anchorline.model.predictor import Predictor
from anchorline.model.trees import Reading
from anchorline.result.verification import Outcome, Reason, Verification
from anchorline.spaces.base import Space

_SUBJECT = "list of changes"
_ROUNDING = 1e-9  # of figures that are computed again
_BY_SEARCH = re.compile(r"(options|levels|n_queries|settings\.cost)\b")  # what costs and leaves of trees decide

Opening = Callable[[float], Predictor]
"""Returns the model, not opened yet, with a limit of answers, which may be infinite."""


def verify_changes(
    changes: Changes,
    space: Space,
    opening: Opening,
    seed: int,
    reading: Reading | None = None,
    instance: Any = None,
    check: Callable[[], object] | None = None,
) -> Verification:
    """Return whether stated changes hold for this space and model.

    The model is asked about every example. Then the search is repeated with the recorded settings, and every
    figure is compared. A cost function is not recorded, so that the search cannot be repeated where one was used;
    nor can it if leaves of trees decided that ``reading`` does not have. Then nobody can tell, unless a figure
    differs that depends on neither, or a smaller change turns than is said to be proven. Shares that were
    estimated from draws are measured on fresh draws, from ``seed``. ``instance`` is needed if the changes record
    only a part of it. ``check`` is called in every loop, and may raise.
    """
    instance = changes.instance if instance is None else instance
    wrong = list(_wrong_answers(changes, space, opening, instance, check or (lambda: None)))
    if wrong:
        return _answer(Outcome.DOES_NOT_HOLD, *wrong)
    settings = ChangeSettings.from_dict(changes.settings)

    def again(settings: ChangeSettings) -> Changes:
        return find_changes(space, opening(settings.queries), instance, settings, reading, check)

    found = again(settings)
    lacks_trees = reading is None and any(level.by_leaves for level in changes.levels)
    if lacks_trees or changes.settings["cost"] == "function":
        wrong = list(_impossible(changes, found))
        excuse = Reason("no_trees" if lacks_trees else "cost_function")
        return _answer(Outcome.DOES_NOT_HOLD, *wrong) if wrong else _answer(Outcome.CANNOT_TELL, excuse)
    wrong = list(_differences(changes, found))
    if not wrong and any(option.share is not None and not option.share.is_exact for option in changes):
        wrong = list(_contradicted(changes, again(replace(settings, seed=seed))))
    if wrong:
        return _answer(Outcome.DOES_NOT_HOLD, *wrong)
    turned = Reason("turned", stated=len(changes)) if len(changes) else Reason("nothing_turns")
    return _answer(Outcome.HOLDS, Reason("repeated"), turned)


def _answer(outcome: Outcome, *reasons: Reason) -> Verification:
    return Verification(outcome, reasons, subject=_SUBJECT)


def _wrong_answers(
    changes: Changes, space: Space, opening: Opening, instance: Any, check: Callable[[], object]
) -> Iterator[Reason]:
    """Yield what is not as stated when the model is asked about the instance and its examples, one by one."""
    if space.fingerprint != changes.space["fingerprint"]:
        yield Reason("other_space")
        return
    predictor = opening(math.inf).open(space.at(instance).original)
    asked = None if predictor.is_label else predictor.prediction, predictor.output.decision
    stated = changes.prediction, changes.output.decision
    for where, ours, own in zip(("prediction", "output.decision"), stated, asked, strict=True):
        if not _same(ours, own):
            yield Reason("other_model", where, ours, own)
            return
    for place, option in enumerate(changes):
        check()
        example = _example(changes, place, space, instance)
        # The output is that of the instance's class, the decision is the example's own.
        output = None if predictor.is_label else float(predictor.answer(example, 1).outputs[0])
        decision = opening(math.inf).open(example).output.decision
        is_decided = option.decision is not None and changes.output.threshold is None
        if not _same(option.output, output) or (is_decided and decision != option.decision):
            yield Reason("other_example", str(place + 1))


def _example(changes: Changes, place: int, space: Space, instance: Any) -> Any:
    """Return the model's input of an example: another row, or the instance without some words or regions."""
    case = case_of(space.at(instance))
    if isinstance(case, TwoValuedCase):
        names = [choice.name for choice in case.choices]
        moved = np.array([[names.index(move.attribute) for move in changes[place].moves]], dtype=np.intp)
        return case.realize(moved, np.zeros_like(moved))
    row = changes.changed(place)
    return space.at([row[name] for name in changes.columns]).original


def _differences(changes: Changes, again: Changes) -> Iterator[Reason]:
    """Yield the figures that differ; ``output.choices`` are repeated, not computed."""
    stated, found = json.loads(changes.to_json()), json.loads(again.to_json())
    for name in sorted(stated.keys() - {"sha256", "versions"}):
        for reason in _differing(stated[name], found[name], name):
            if not reason.where.startswith("output.choices"):
                yield reason


def _impossible(changes: Changes, again: Changes) -> Iterator[Reason]:
    """Yield what neither costs nor leaves of trees explain: figures that differ, and smaller changes that turn."""
    yield from (reason for reason in _differences(changes, again) if not _BY_SEARCH.match(reason.where))
    if again.fewest is not None and again.fewest <= changes.n_proved:
        yield Reason("differs", "fewest", changes.fewest, again.fewest)


def _contradicted(changes: Changes, fresh: Changes) -> Iterator[Reason]:
    """Yield which shares the verifier's own draws contradict: their intervals have no common point."""
    by_moves = {option.moves: option for option in fresh}  # the search itself draws nothing
    for place, stated in enumerate(changes):
        found = by_moves[stated.moves]
        ours, own = stated.share, found.share
        if ours is not None and own is not None and (own.low > ours.high or own.high < ours.low):
            yield Reason("contradicted", f"options[{place}].share", ours, own)


def _differing(stated: Any, found: Any, where: str) -> Iterator[Reason]:
    """Yield the places in which two values of JSON differ, numbers by more than rounding."""
    if isinstance(stated, dict) and isinstance(found, dict) and stated.keys() == found.keys():
        for name in stated:
            yield from _differing(stated[name], found[name], f"{where}.{name}")
    elif isinstance(stated, list) and isinstance(found, list) and len(stated) == len(found):
        for place, (ours, own) in enumerate(zip(stated, found, strict=True)):
            yield from _differing(ours, own, f"{where}[{place}]")
    elif not _same(stated, found):
        yield Reason("differs", where, stated, found)


def _same(stated: Any, found: Any) -> bool:
    """Return whether two values are equal, floats up to rounding, relative to their own size."""
    if isinstance(stated, float) and isinstance(found, float):
        return math.isclose(stated, found, rel_tol=_ROUNDING, abs_tol=0.0)
    return type(stated) is type(found) and bool(stated == found)
