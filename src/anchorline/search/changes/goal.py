"""What counts as turned: another class or label, a given one, or an output beyond a limit."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.model.predictor import Predictor

_LIMIT = re.compile(r"\s*(>=|<=|>|<)\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*")
_MOVE = re.compile(r"\s*([-+])\s*([\d.]+(?:[eE][-+]?\d+)?)\s*")
_EXAMPLES = "target='>= 300' or target='< 300' for a limit, or target='+50' or target='-50' for a move."


class NoDecisionError(ParameterError):
    """The model returns a number, and nothing says which change of it counts."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model answers to some changed rows.

    ``reached`` (n,) states where the goal is reached. ``margins`` (n,) grow towards the goal; all are 0 if the
    model answers labels. ``outputs`` (n,) are the explained output, and ``decisions`` (n,) labels or numbers of
    classes; None where the model has none.
    """

    reached: np.ndarray
    margins: np.ndarray
    outputs: np.ndarray | None
    decisions: np.ndarray | None

    def part(self, rows: slice) -> "Reply":
        """Return the replies to some of the rows."""
        outputs = None if self.outputs is None else self.outputs[rows]
        decisions = None if self.decisions is None else self.decisions[rows]
        return Reply(self.reached[rows], self.margins[rows], outputs, decisions)

    def joined(self, *others: "Reply") -> "Reply":
        """Return these replies and then those of others, in one."""
        parts = (self, *others)
        outputs = [part.outputs for part in parts if part.outputs is not None]
        decisions = [part.decisions for part in parts if part.decisions is not None]
        return Reply(
            np.concatenate([part.reached for part in parts]),
            np.concatenate([part.margins for part in parts]),
            np.concatenate(outputs) if outputs else None,
            np.concatenate(decisions) if decisions else None,
        )


@dataclass(frozen=True, slots=True)
class Goal:
    """When a decision counts as turned.

    ``kind`` is "other class", "class", "other label", "label", ">=", ">", "<=" or "<". ``wanted`` is the number of
    the class, the label, or the limit.
    """

    kind: str
    wanted: Any
    own: Any = None

    def judge(self, predictor: Predictor, answer: np.ndarray, chosen: np.ndarray | None) -> Reply:
        """Return what an answer of the model means for the goal."""
        if predictor.is_label:
            same = np.asarray(answer == self.wanted)
            reached = ~same if self.kind == "other label" else same
            return Reply(reached, np.zeros(len(answer)), None, answer)
        outputs = np.asarray(answer if answer.ndim == 1 else answer[:, predictor.column], dtype=np.float64)
        if self.kind in ("class", "other class"):
            assert chosen is not None  # only answers with columns have classes
            reached = np.asarray(chosen == self.wanted)
            others = np.delete(answer, self.wanted, axis=1).max(axis=1)
            lead = answer[:, self.wanted] - others
            if self.kind == "other class":
                return Reply(~reached, -lead, outputs, chosen)
            return Reply(reached, lead, outputs, chosen)
        sign = 1.0 if self.kind in (">=", ">") else -1.0
        margins = sign * (outputs - self.wanted)
        return Reply(margins >= 0 if self.kind in (">=", "<=") else margins > 0, margins, outputs, chosen)


def goal_of(target: Any, predictor: Predictor, threshold: float | None) -> Goal:
    """Return the goal that a target stands for; the predictor was opened at the instance."""
    classes = predictor.target.classes if predictor.n_columns is not None else None
    if predictor.is_label:
        return _label_goal(target, predictor)
    if target is None:
        return _turned_goal(predictor, threshold)
    number = _matching(target, classes)
    if number is not None:
        return _class_goal(number, predictor, threshold)
    parsed = None if not isinstance(target, str) else _limit(target, predictor.prediction)
    if parsed is not None:
        return parsed
    if classes is not None:
        raise ParameterError(
            f"target is {target!r}; the model's classes are {_listed(classes)}. Pick one of them, or type "
            f"{_EXAMPLES}"
        )
    raise ParameterError(f"target is {target!r}, but the model's output is a number. Type {_EXAMPLES}")


def _turned_goal(predictor: Predictor, threshold: float | None) -> Goal:
    """Return the goal that the decision is another one than at the instance."""
    if threshold is not None:
        return Goal("<" if predictor.prediction >= threshold else ">=", threshold)
    if predictor.decision in ("class", "own class"):
        return Goal("other class", predictor.class_)
    raise NoDecisionError(
        f"The model's output is a number, {predictor.prediction:g}, without a decision, so target is needed. "
        f"Type {_EXAMPLES} Or pass a threshold to the Explainer."
    )


def _class_goal(number: int, predictor: Predictor, threshold: float | None) -> Goal:
    if threshold is None:
        return Goal("class", number)
    if number == predictor.column:
        return Goal(">=", threshold)
    if predictor.n_columns == 2:
        return Goal("<", threshold)
    raise ParameterError(
        f"The explainer decides by threshold={threshold:g} on one class, so target must be that class. Leave "
        "target out, or leave the threshold out of the Explainer."
    )


def _label_goal(target: Any, predictor: Predictor) -> Goal:
    if target is None:
        return Goal("other label", predictor.label)
    known = predictor.target.labels
    if known is None:
        return Goal("label", target)
    number = _matching(target, known)
    if number is None:
        raise ParameterError(f"target is {target!r}; the model's labels are {_listed(known)}. Pick one of them.")
    return Goal("label", known[number])


def _limit(text: str, prediction: float) -> Goal | None:
    limit, move = _LIMIT.fullmatch(text), _MOVE.fullmatch(text)
    try:
        if limit is not None:
            return Goal(limit[1], float(limit[2]))
        if move is not None:
            up = move[1] == "+"
            return Goal(">=" if up else "<=", prediction + float(move[1] + move[2]))
    except ValueError:  # such as 1.2.3
        return None
    return None


def _matching(target: Any, classes: tuple[Any, ...] | None) -> int | None:
    """Return the number of the class with this label, compared by value, then by text; None if there is none."""
    for matches in ([c == target for c in classes or ()], [str(c) == str(target) for c in classes or ()]):
        if any(matches):
            return matches.index(True)
    return None


def _listed(classes: tuple[Any, ...]) -> str:
    shown = ", ".join(repr(label) for label in classes[:12])
    return f"{shown}, ... ({len(classes)})" if len(classes) > 12 else shown
