"""From a row and a target to changes: searches, and measures what was found."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from anchorline.errors import ParameterError
from anchorline.guarantees import Estimate
from anchorline.model.predictor import Predictor, plain_label
from anchorline.model.target import Target
from anchorline.result.changes import Changes, Counterfactual, Label, Move, Realism
from anchorline.search.changes.candidates import Candidates
from anchorline.search.changes.find import search
from anchorline.search.changes.goal import Goal, Reply, goal_of
from anchorline.search.changes.leaves import MIN_QUERIES, LeafAnswers, leaves_of, with_cells
from anchorline.search.changes.measure import ask_examples, measure
from anchorline.search.changes.questions import Questions
from anchorline.search.changes.settings import ChangeSettings, versions
from anchorline.search.sampling import stream_key
from anchorline.spaces.base import Neighborhood, Space
from anchorline.spaces.choices import choices_at
from anchorline.spaces.wishes import Wishes

_RECORDED = (
    "output",
    "column",
    "classes",
    "task",
    "probability",
    "threshold",
    "input",
    "contrast",
    "rule",
    "output_scale",
)


def changes_of(explainer: Any, instance: Any, **keywords: Any) -> Changes:
    """Carry out `Explainer.changes`."""
    return find_changes(explainer, instance, ChangeSettings.from_keywords(**keywords))


def _row(instance: Any) -> Any:
    return list(instance) if isinstance(instance, tuple) else instance


class NoLeavesError(ParameterError):
    """A search by leaves was demanded, and the decision cannot be read off the leaves of trees."""


class Asked(Protocol):
    """What is asked: an explainer."""

    @property
    def space(self) -> Space:
        """The kind of instance."""

    @property
    def target(self) -> Target:
        """Which of the model's numbers is explained."""

    @property
    def threshold(self) -> float | None:
        """The decision is "output >= threshold"; None for the model's own decision."""


def answer_at(explainer: Asked, instance: Sequence[Any]) -> tuple[float | None, Label]:
    """Return the model's output and decision at an instance, given by plain values; None where it has none."""
    predictor = _opened(explainer.target, explainer.threshold, explainer.space.at(list(instance)), None)
    if predictor.is_label:
        return None, plain_label(predictor.label)
    number = predictor.class_
    return predictor.prediction, None if number is None else _class_label(predictor, number)


def find_changes(explainer: Asked, instance: Any, settings: ChangeSettings) -> Changes:
    """Find changes of few facts that turn the decision, and measure each of them."""
    space, threshold = explainer.space, explainer.threshold
    neighborhood = space.at(_row(instance))
    choices = choices_at(space, neighborhood)
    toward = None if settings.toward is None else space.at(_row(settings.toward))
    wishes = Wishes(settings.fixed, settings.within, settings.direction, toward)
    held = {**getattr(neighborhood, "held", {})}
    candidates = Candidates.of(choices, wishes, settings.cost, tuple(held))
    predictor = _opened(explainer.target, threshold, neighborhood, settings.max_queries)
    goal = goal_of(settings.target, predictor, threshold)
    leaves = _leaves(explainer, candidates, predictor, goal, neighborhood, settings)
    candidates = candidates if leaves is None else with_cells(candidates, leaves)
    questions = Questions(candidates, predictor, goal, _limit(settings))
    outcome = search(questions, settings, leaves)
    options = _options(replace(questions, max_queries=settings.max_queries), outcome.found, settings, neighborhood)
    described = predictor.describe()
    return Changes(
        options=options,
        prediction=None if predictor.is_label else predictor.prediction,
        label=_label(predictor, outcome.at_row, 0),
        output=described["output"],
        goal={"kind": goal.kind, "wanted": _wanted(goal, predictor)},
        columns=tuple(getattr(space, "names", ()) or (literal.name for literal in neighborhood.literals)),
        instance=tuple(neighborhood.instance),
        fixed=held | dict.fromkeys(settings.fixed, "held fixed as asked"),
        levels=outcome.levels,
        n_attributes=len(candidates.attributes),
        n_queries=predictor.n_queries,
        parameters=settings.to_dict()
        | {name: described[name] for name in _RECORDED if name in described}
        | {
            "search": "queries" if leaves is None else "leaves",
            "toward": None if toward is None else list(toward.instance),
            "target": plain_label(settings.target),
            "space": space.fingerprint,
            "versions": versions(),
        },
    )


def _leaves(
    explainer: Asked,
    candidates: Candidates,
    predictor: Predictor,
    goal: Goal,
    neighborhood: Neighborhood,
    settings: ChangeSettings,
) -> LeafAnswers | None:
    """Return the trees that decide instead of queries, if the settings allow it and the model has any."""
    is_simple = settings.examples == "values" and candidates.price is None and not candidates.is_realistic
    allowed = settings.search in ("auto", "leaves") and is_simple and settings.max_queries >= MIN_QUERIES
    leaves = leaves_of(explainer, candidates, predictor, goal, neighborhood) if allowed else None
    if leaves is None and settings.search == "leaves":
        raise NoLeavesError(
            "search is 'leaves', but the decision cannot be read off the leaves of trees. Type search='queries'."
        )
    return leaves


def _limit(settings: ChangeSettings) -> int:
    """Return how many queries the search may make, so that enough are left to measure what it finds."""
    measuring = min(settings.n * settings.n_measure, settings.max_queries // 4)
    return max(2, settings.max_queries - settings.n - measuring)


def _opened(
    target: Target, threshold: float | None, neighborhood: Neighborhood, max_queries: int | None
) -> Predictor:
    """Return the model seen from the instance; the range of its output is not needed, so that none is learned."""

    def any_range(column: int | None) -> tuple[float, float, float]:
        return min(-1.0, threshold or 0.0), max(1.0, threshold or 0.0), 0.0

    predictor = Predictor(target, threshold=threshold, max_queries=max_queries, learn=any_range)
    return predictor.open(neighborhood.original)


def _options(
    questions: Questions, found: Sequence[tuple[int, ...]], settings: ChangeSettings, neighborhood: Neighborhood
) -> tuple[Counterfactual, ...]:
    """Return what the model answers to every example, and how reliable its bounds are; intervals hold together."""
    new = [each for each in found if questions.known(each) is None][max(0, questions.left) :]
    found = [each for each in found if each not in new]
    if not found:
        return ()
    reply, shares = _measured(questions, found, settings, neighborhood)
    candidates, nearby, options = questions.candidates, questions.candidates.nearby, []
    for i in np.flatnonzero(reply.reached).tolist():
        moves = tuple(_move(candidates, each, is_bound=settings.examples == "values") for each in found[i])
        option = Counterfactual(
            moves=moves,
            cost=float(candidates.cost(np.array([found[i]], dtype=np.intp))[0]),
            output=None if reply.outputs is None else float(reply.outputs[i]),
            label=_label(questions.predictor, reply, i),
            reliability=shares[i],
            realism=None if nearby is None else Realism(*nearby.realism(candidates.as_mapping(found[i]))),
        )
        options.append(option)
    return tuple(options)


def _measured(
    questions: Questions, found: Sequence[tuple[int, ...]], settings: ChangeSettings, neighborhood: Neighborhood
) -> tuple[Reply, Sequence[Estimate | None]]:
    """Return the replies to the examples, and how reliable their bounds are; whole rows have no bounds."""
    if settings.examples == "rows":
        return ask_examples(questions, found)[0], [None] * len(found)
    keys = [stream_key(settings.seed, neighborhood.key, f"changes:{','.join(map(str, each))}") for each in found]
    confidence = 1 - (1 - settings.confidence) / len(found)
    return measure(questions, found, keys, n_measure=settings.n_measure, confidence=confidence)


def _move(candidates: Candidates, candidate: int, *, is_bound: bool) -> Move:
    choices, a, value = candidates.choices, int(candidates.owner[candidate]), int(candidates.value[candidate])
    return Move(
        name=choices.attributes[a].name,
        columns=choices.column_names(a),
        before=choices.plain_before(a),
        after=choices.plain_after(a, value),
        before_text=choices.text_before(a),
        after_text=choices.text_after(a, value),
        fact=choices.fact(a, value, with_more=is_bound and len(candidates.beyond(candidate)) > 1),
        distance=float(candidates.distances[candidate]),
    )


def _label(predictor: Predictor, reply: Reply, place: int) -> Label:
    """Return the label that the model decides, or the name of the class; None if it decides nothing."""
    if reply.decisions is None or (predictor.class_ is None and not predictor.is_label):
        return None
    decision = reply.decisions[place]
    if predictor.is_label:
        return plain_label(getattr(decision, "item", lambda: decision)())
    return _class_label(predictor, int(decision))


def _class_label(predictor: Predictor, number: int) -> Label:
    classes = predictor.target.classes
    return f"class {number}" if classes is None else plain_label(classes[number])


def _wanted(goal: Goal, predictor: Predictor) -> Label:
    """Return what the goal compares with, in plain values: a class, a label or a number."""
    if goal.kind in ("class", "other class"):
        return _class_label(predictor, int(goal.wanted))
    return float(goal.wanted) if goal.kind in (">=", ">", "<=", "<") else plain_label(goal.wanted)
