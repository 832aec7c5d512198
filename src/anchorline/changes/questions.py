"""What counts as turned, and how a model is asked about changed instances, within a hard limit of queries."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from anchorline.changes.candidates import Candidates, Change
from anchorline.errors import ParameterError, listed
from anchorline.model.outputs import place_of
from anchorline.model.predictor import Predictor, Scores, batches

_LIMIT = re.compile(r"\s*(>=|<=|>|<)\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*")
_MOVE = re.compile(r"\s*([-+])\s*([\d.]+(?:[eE][-+]?\d+)?)\s*")
_EXAMPLES = "target='>= 300' or target='< 300' for a limit, or target='+50' or target='-50' for a move."


class NoDecisionError(ParameterError):
    """The model returns a number, and nothing says which change of it counts."""


class Reply(NamedTuple):
    """What the model answers to some changed instances.

    ``reached`` (n,) states where the goal is reached. ``margins`` (n,) grow towards the goal; all are 0 if the
    model answers labels. ``outputs`` (n,) are the explained output, NaN if the model has none, and ``decisions``
    (n,) labels or numbers of classes, None if it has none.
    """

    reached: np.ndarray
    margins: np.ndarray
    outputs: np.ndarray
    decisions: np.ndarray

    def part(self, rows: Any) -> "Reply":
        """Return the replies to some of the instances."""
        return Reply(*(each[rows] for each in self))

    def joined(self, *others: "Reply") -> "Reply":
        """Return these replies and then those of others, in one."""
        return Reply(*map(np.concatenate, zip(self, *others, strict=True)))


@dataclass(frozen=True, slots=True)
class Goal:
    """When a decision counts as turned.

    ``kind`` is "other class", "class", "other label", "label", ">=", ">", "<=" or "<". ``wanted`` is the number of
    the class, the label, or the limit.
    """

    kind: str
    wanted: Any

    def judge(self, predictor: Predictor, scores: Scores) -> Reply:
        """Return what answers of the model mean for the goal."""
        answer, none = scores.values, np.full(len(scores.values), None)
        if predictor.is_label:
            reached = (answer == self.wanted) == (self.kind == "label")
            return Reply(np.asarray(reached), np.zeros(len(answer)), none.astype(np.float64), answer)
        outputs, named = predictor.read(scores).outputs, none if scores.named is None else scores.named
        if self.kind in ("class", "other class"):
            lead = answer[:, self.wanted].astype(np.float64) - np.delete(answer, self.wanted, axis=1).max(axis=1)
            is_class = self.kind == "class"
            return Reply((named == self.wanted) == is_class, lead if is_class else -lead, outputs, named)
        margins = (outputs - self.wanted) * (1.0 if self.kind in (">=", ">") else -1.0)
        return Reply(margins >= 0 if self.kind in (">=", "<=") else margins > 0, margins, outputs, named)


def goal_of(target: Any, predictor: Predictor) -> Goal:
    """Return the goal that a target stands for; the predictor was opened at the instance."""
    threshold, n_columns = predictor.output.threshold, predictor.questions.n_columns
    if predictor.is_label:
        return _label_goal(target, predictor)
    if target is None:
        if threshold is not None:
            return Goal("<" if predictor.prediction >= threshold else ">=", threshold)
        if predictor.class_ is not None:
            return Goal("other class", predictor.class_)
        raise NoDecisionError(
            f"The model's output is a number, {predictor.prediction:g}, without a decision, so target is needed. "
            f"Type {_EXAMPLES} Or pass a threshold to the Explainer."
        )
    classes = predictor.target.classes if n_columns is not None else None
    number = place_of(target, classes or ())
    if number is not None:
        if threshold is None:
            return Goal("class", number)
        if number == predictor.column or n_columns == 2:
            return Goal(">=" if number == predictor.column else "<", threshold)
        raise ParameterError(
            f"The explainer decides by threshold={threshold:g} on one class, so target must be that class. Leave "
            "target out, or leave the threshold out of the Explainer."
        )
    parsed = _limit(target, predictor.prediction) if isinstance(target, str) else None
    if parsed is not None:
        return parsed
    if classes is not None:
        raise ParameterError(
            f"target is {target!r}; the model's classes are {listed(classes)}. Pick one of them, or type "
            f"{_EXAMPLES}"
        )
    raise ParameterError(f"target is {target!r}, but the model's output is a number. Type {_EXAMPLES}")


def _label_goal(target: Any, predictor: Predictor) -> Goal:
    known = predictor.target.labels
    if target is None or known is None:
        return Goal("other label", predictor.label) if target is None else Goal("label", target)
    if (number := place_of(target, known)) is None:
        raise ParameterError(f"target is {target!r}; the model's labels are {listed(known)}. Pick one of them.")
    return Goal("label", known[number])


def _limit(text: str, prediction: float) -> Goal | None:
    limit, move = _LIMIT.fullmatch(text), _MOVE.fullmatch(text)
    try:
        if limit is not None:
            goal = Goal(limit[1], float(limit[2]))
        elif move is not None:
            goal = Goal(">=" if move[1] == "+" else "<=", prediction + float(move[1] + move[2]))
        else:
            return None
    except ValueError:  # such as 1.2.3
        return None
    return goal if math.isfinite(goal.wanted) else None


@dataclass(frozen=True, eq=False)
class ChangeQuestions:
    """The model seen from one instance, and the goal of the changes.

    ``limit`` is the most queries; ``check`` is called before every call of the model, and may raise. ``replies``
    are, by the cells of the candidates, those to every single fact that was tried, and to every change of several
    facts that turns: a `Reply`, and which of its changes it is. ``alone`` are the facts that were tried alone.
    """

    candidates: Candidates
    predictor: Predictor
    goal: Goal
    limit: int
    rows_per_call: int
    check: Callable[[], object]
    replies: dict[Change, tuple[Reply, int]] = field(default_factory=dict)
    alone: set[Change] = field(default_factory=set)

    @property
    def left(self) -> int:
        """Number of changes that may still be asked about."""
        questions = self.predictor.questions
        return max(0, self.limit - questions.n_answers) // questions.per_row

    def ask_with_instance(self, chosen: np.ndarray) -> tuple[Reply, Reply]:
        """Return the reply to the instance itself, and those to changes, as many as queries are left for."""
        chosen = chosen[: max(0, self.left - 1)]
        reply = self.ask(np.concatenate([np.full((1, chosen.shape[1]), -1), chosen]))
        if reply.reached[0]:
            raise ParameterError(
                "The row already meets the target, so nothing has to change. Pick another target, or leave it out."
            )
        return reply.part(slice(0, 1)), reply.part(slice(1, None))

    def ask(self, chosen: np.ndarray) -> Reply:
        """Return the replies to changes (n, s), given as candidates; -1 changes nothing.

        What the user's own rule forbids does not turn. Model calls have fixed boundaries, because a model's last
        bits may depend on them.
        """
        parts, case, none = list[Reply](), self.candidates.case, np.zeros(0)
        for first, last in batches(len(chosen), self.rows_per_call):
            self.check()
            which = self.candidates.places(chosen[first:last])
            scores = self.predictor.questions.ask(case.realize(*which), last - first)
            reply = self.goal.judge(self.predictor, scores)
            parts.append(reply._replace(reached=reply.reached & (not case.has_rule or case.is_valid(*which))))
        reply = parts[0].joined(*parts[1:]) if parts else Reply(none > 0, none, none, none.astype(object))
        remembered = chosen[:, 0] >= 0 if chosen.shape[1] == 1 else reply.reached
        keys = {self.key(chosen[i][chosen[i] >= 0]): (reply, i) for i in np.flatnonzero(remembered).tolist()}
        self.replies.update(keys)
        if chosen.shape[1] == 1:
            self.alone.update(keys)
        return reply

    def known(self, change: Change | np.ndarray) -> Reply | None:
        """Return the reply to a change that turned, or to a single fact that was tried; None if there is none."""
        reply, i = self.replies.get(self.key(change), (None, 0))
        return None if reply is None else reply.part([i])

    def key(self, change: Change | np.ndarray) -> Change:
        """Return what changes that the model cannot tell apart share."""
        return tuple(sorted(self.candidates.cell[list(change)].tolist()))
