"""What counts as turned, and how a model is asked about changed instances, within a hard limit of queries."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

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


@dataclass(frozen=True, slots=True, eq=False)
class Reply:
    """What the model answers to some changed instances.

    ``reached`` (n,) states where the goal is reached. ``margins`` (n,) grow towards the goal; all are 0 if the
    model answers labels. ``outputs`` (n,) are the explained output, and ``decisions`` (n,) labels or numbers of
    classes; None where the model has none.
    """

    reached: np.ndarray
    margins: np.ndarray
    outputs: np.ndarray | None
    decisions: np.ndarray | None

    def part(self, rows: slice) -> "Reply":
        """Return the replies to some of the instances."""
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

    def judge(self, predictor: Predictor, scores: Scores) -> Reply:
        """Return what answers of the model mean for the goal."""
        answer = scores.values
        outputs = predictor.read(scores).outputs
        if predictor.is_label:
            same = np.asarray(answer == self.wanted)
            return Reply(~same if self.kind == "other label" else same, np.zeros(len(answer)), None, answer)
        if self.kind in ("class", "other class"):
            assert scores.named is not None  # only models with class scores have such goals
            named, lead = np.asarray(scores.named == self.wanted), answer[:, self.wanted].astype(np.float64)
            lead = lead - np.delete(answer, self.wanted, axis=1).max(axis=1)
            turned = self.kind == "other class"
            return Reply(~named if turned else named, -lead if turned else lead, outputs, scores.named)
        margins = (outputs - self.wanted) * (1.0 if self.kind in (">=", ">") else -1.0)
        reached = margins >= 0 if self.kind in (">=", "<=") else margins > 0
        return Reply(reached, margins, outputs, scores.named)


def goal_of(target: Any, predictor: Predictor) -> Goal:
    """Return the goal that a target stands for; the predictor was opened at the instance."""
    threshold = predictor.output.threshold
    classes = predictor.target.classes if predictor.questions.n_columns is not None else None
    if predictor.is_label:
        return _label_goal(target, predictor)
    if target is None:
        return _turned_goal(predictor, threshold)
    number = place_of(target, classes or ())
    if number is not None:
        return _class_goal(number, predictor, threshold)
    parsed = _limit(target, predictor.prediction) if isinstance(target, str) else None
    if parsed is not None:
        return parsed
    if classes is not None:
        raise ParameterError(
            f"target is {target!r}; the model's classes are {listed(classes)}. Pick one of them, or type "
            f"{_EXAMPLES}"
        )
    raise ParameterError(f"target is {target!r}, but the model's output is a number. Type {_EXAMPLES}")


def _turned_goal(predictor: Predictor, threshold: float | None) -> Goal:
    """Return the goal that the decision is another one than at the instance."""
    if threshold is not None:
        return Goal("<" if predictor.prediction >= threshold else ">=", threshold)
    if predictor.class_ is not None:
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
    if predictor.questions.n_columns == 2:
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
    number = place_of(target, known or ())
    if number is None:
        raise ParameterError(f"target is {target!r}; the model's labels are {listed(known)}. Pick one of them.")
    return Goal("label", known[number])


def _limit(text: str, prediction: float) -> Goal | None:
    limit, move = _LIMIT.fullmatch(text), _MOVE.fullmatch(text)
    try:
        if limit is not None:
            kind, wanted = limit[1], float(limit[2])
        elif move is not None:
            kind, wanted = ">=" if move[1] == "+" else "<=", prediction + float(move[1] + move[2])
        else:
            return None
    except ValueError:  # such as 1.2.3
        return None
    return Goal(kind, wanted) if math.isfinite(wanted) else None


@dataclass(frozen=True, eq=False)
class ChangeQuestions:
    """The model seen from one instance, and the goal of the changes.

    ``limit`` is the most queries; ``check`` is called before every call of the model, and may raise. ``alone``
    remembers for every cell of candidates that were tried alone the replies, and which of them it is, ``turned``
    the same for every change of several facts that turns.
    """

    candidates: Candidates
    predictor: Predictor
    goal: Goal
    limit: int
    rows_per_call: int
    check: Callable[[], object]
    alone: dict[int, tuple[Reply, int]] = field(default_factory=dict)
    turned: dict[Change, tuple[Reply, int]] = field(default_factory=dict)

    def with_limit(self, limit: int) -> "ChangeQuestions":
        """Return the same questions, and all that they remember, with another limit of queries."""
        return replace(self, limit=limit)

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
        parts, case = [], self.candidates.case
        for first, last in batches(len(chosen), self.rows_per_call):
            self.check()
            which = self.candidates.places(chosen[first:last])
            reply = self.goal.judge(
                self.predictor, self.predictor.questions.ask(case.realize(*which), last - first)
            )
            parts.append(replace(reply, reached=reply.reached & case.is_valid(*which)))
        reply = parts[0].joined(*parts[1:]) if parts else Reply(np.zeros(0, dtype=bool), np.zeros(0), None, None)
        self._remember(chosen, reply)
        return reply

    def _remember(self, chosen: np.ndarray, reply: Reply) -> None:
        if chosen.shape[1] == 1:
            places = np.flatnonzero(chosen[:, 0] >= 0)
            cells = self.candidates.cell[chosen[places, 0]].tolist()
            self.alone.update((cell, (reply, i)) for cell, i in zip(cells, places.tolist(), strict=True))
            return
        for i in np.flatnonzero(reply.reached).tolist():
            self.turned[tuple(sorted(chosen[i][chosen[i] >= 0].tolist()))] = reply, i

    def known(self, change: Change) -> Reply | None:
        """Return the reply to a change that turned, or to a single fact that was tried; None if there is none."""
        single = self.alone.get(int(self.candidates.cell[change[0]])) if len(change) == 1 else None
        remembered = single or self.turned.get(tuple(sorted(change)))
        return None if remembered is None else remembered[0].part(slice(remembered[1], remembered[1] + 1))
