"""From a row and a target to changes: the settings, the search, and how reliably each change turns."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, TypedDict

import numpy as np

from anchorline._version import __version__
from anchorline.changes.candidates import (
    Candidates,
    Change,
    Changeable,
    ChangeableParts,
    ChangeableRow,
    Price,
    Wishes,
)
from anchorline.changes.leaves import MIN_QUERIES, LeafAnswers, leaves_of, search_leaves
from anchorline.changes.questions import ChangeQuestions, Goal, Reply, goal_of
from anchorline.changes.realism import Nearby
from anchorline.changes.result import Changes, Counterfactual, Move
from anchorline.changes.search import Search, search_rows, search_values
from anchorline.errors import ParameterError
from anchorline.guarantees.intervals import binomial_interval
from anchorline.laws import Random
from anchorline.model.outputs import plain_label
from anchorline.model.predictor import Predictor
from anchorline.model.trees import Reading
from anchorline.result.explanation import Share
from anchorline.settings import Keywords, checked_count
from anchorline.spaces.base import Neighborhood, Space, TwoValued
from anchorline.spaces.table import TableNeighborhood

MOST_FACTS = 3  # of changes to any training values
SUCCESSORS = {
    "max_queries": "queries= is that number",
    "max_facts": "k= is that number",
    "within": "allowed= takes the same ranges and lists",
    "search": "leaves of trees decide wherever they can be read",
}
_EXAMPLES = ("values", "rows")


class ChangeKeywords(TypedDict, total=False):
    """The types of the keywords of `ChangeSettings` that `changes` does not name itself."""

    k: int | None
    examples: Literal["values", "rows"]
    fixed: Iterable[str]
    allowed: Mapping[str, Any]
    direction: Mapping[str, Literal["up", "down"]]
    toward: Any
    cost: Mapping[str, float] | Price
    max_values: int
    n_measure: int
    queries: int
    confidence: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class ChangeSettings(Keywords):
    """The keywords of `Explainer.changes`, checked once.

    Parameters
    ----------
    target
        The wanted class or label, a limit (">= 300") or a move ("+50") of the output; None for another decision.
    n
        How many changes are wanted.
    k
        The most facts of a change; None for 3, or any number of rows.
    examples
        "values", for few facts, or "rows", for whole rows of the table.
    fixed
        Attributes or columns that keep their values.
    allowed
        Names with the values they may take: two ends, such as (30, None), or a collection of values.
    direction
        Names with "up" or "down".
    toward
        Another instance: attributes may only take its values.
    cost
        Names with the weights of their distances, 1 without it, or a function of the moves.
    max_values
        How many values per attribute are tried alone.
    n_measure
        How many combinations measure how reliably a change turns the decision.
    queries
        The most answers of the model, which is never exceeded.
    confidence
        With which the limits of a share hold.
    seed
        Of the random combinations; the same seed gives the same answer.
    """

    gone: ClassVar[Mapping[str, str]] = SUCCESSORS
    target: Any = None
    n: int = 3
    k: int | None = None
    examples: str = "values"
    fixed: tuple[str, ...] = ()
    allowed: Mapping[str, Any] = field(default_factory=dict)
    direction: Mapping[str, str] = field(default_factory=dict)
    toward: Any = None
    cost: Mapping[str, float] | Price = field(default_factory=dict)
    max_values: int = 200
    n_measure: int = 200
    queries: int = 100_000
    confidence: float = 0.95
    seed: int = 0

    @classmethod
    def from_keywords(cls, call: str, **keywords: Any) -> "ChangeSettings":
        """Check the keywords that the user typed; None stands for the default."""
        defaults = {each.name for each in fields(cls)} & {
            name for name, value in keywords.items() if value is None
        }
        return super().from_keywords(call, **{n: value for n, value in keywords.items() if n not in defaults})

    def _check(self) -> None:
        if self.examples not in _EXAMPLES:
            raise ParameterError(
                f"examples is {self.examples!r}, but it must be 'values', for few facts, or 'rows', for whole "
                "rows of the table. Type examples='rows'."
            )
        least = {"k": 1, "n": 1, "max_values": 2, "n_measure": 1, "seed": 0, "queries": 2}
        for name, value in least.items():
            if (name, self.k) != ("k", None):
                checked_count(name, getattr(self, name), value, f"{name}={1000 if name == 'queries' else 3}")
        fixed = (self.fixed,) if isinstance(self.fixed, str) else self.fixed
        if not isinstance(fixed, Iterable):
            raise ParameterError(f"fixed is {fixed!r}, but it must be a list of columns. Type fixed=['age'].")
        object.__setattr__(self, "fixed", tuple(str(name) for name in fixed))
        for name, example in (("allowed", "{'age': (30, 50)}"), ("direction", "{'age': 'up'}")):
            if not isinstance(getattr(self, name), Mapping):
                raise ParameterError(
                    f"{name} is {getattr(self, name)!r}, but it must map columns to what is allowed. Type "
                    f"{name}={example}."
                )
        if not (isinstance(self.confidence, float) and 0 < self.confidence < 1):
            raise ParameterError(
                f"confidence is {self.confidence!r}, but it must be a number between 0 and 1. Type 0.95."
            )
        if not callable(self.cost) and not _are_weights(self.cost):
            raise ParameterError(
                f"cost is {self.cost!r}, but it must map columns to positive numbers, or be a function of the "
                "moves. Type cost={'income': 2.0}."
            )

    @property
    def most(self) -> int | None:
        """The most facts of a change; None for any number."""
        return self.k if self.k is not None or self.examples == "rows" else MOST_FACTS

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; a cost function is recorded as such, because it cannot be written."""
        plain = {name: getattr(self, name) for name in ("n", "examples", "max_values", "n_measure", "queries")}
        return plain | {
            "target": plain_label(self.target),
            "k": self.most,
            "fixed": list(self.fixed),
            "allowed": {name: _plain_limits(limits) for name, limits in self.allowed.items()},
            "direction": dict(self.direction),
            "cost": "function" if callable(self.cost) else {name: float(w) for name, w in self.cost.items()},
            "confidence": self.confidence,
            "seed": self.seed,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "ChangeSettings":
        """Read the result of `to_dict`; a cost function is lost."""
        allowed = {
            name: tuple(limits["range"]) if "range" in limits else list(limits["values"])
            for name, limits in values["allowed"].items()
        }
        cost = {} if values["cost"] == "function" else values["cost"]
        return cls(**dict(values) | {"allowed": allowed, "cost": cost})


def _plain_limits(limits: Any) -> Any:
    if isinstance(limits, str | bytes) or not isinstance(limits, Iterable):
        return {"values": [plain_label(limits)]}  # refused when it is read
    values = [plain_label(value.item() if isinstance(value, np.generic) else value) for value in limits]
    return {"range": values} if isinstance(limits, tuple) else {"values": sorted(values, key=repr)}


def _are_weights(cost: Any) -> bool:
    return isinstance(cost, Mapping) and all(
        isinstance(weight, int | float | np.number)
        and not isinstance(weight, bool)
        and math.isfinite(weight)
        and weight > 0
        for weight in cost.values()
    )


def changeable(neighborhood: Neighborhood) -> Changeable:
    """Return what the attributes of an instance may be changed to."""
    if isinstance(neighborhood, TableNeighborhood):
        return ChangeableRow(neighborhood)
    if isinstance(neighborhood, TwoValued):
        return ChangeableParts(neighborhood)
    raise ParameterError(
        f"The instance is a {type(neighborhood).__name__}, whose attributes have no values to change to. Pass a "
        "Table, a Hypercube, a Text, an Image or a Signal."
    )


def find_changes(
    space: Space,
    predictor: Predictor,
    instance: Any,
    settings: ChangeSettings,
    reading: Reading | None = None,
    check: Callable[[], object] | None = None,
) -> Changes:
    """Find changes of few facts that turn the decision, and measure each of them.

    The predictor has not been opened; its limit of answers is that of the settings. ``reading`` are the trees of
    the model, whose leaves then decide instead of queries; of a boosted classifier, its margins. ``check`` is
    called in every loop, and may raise to interrupt.
    """
    check = check or (lambda: None)
    neighborhood = space.at(instance)
    toward = None if settings.toward is None else space.at(settings.toward)
    wishes = Wishes(settings.fixed, settings.allowed, settings.direction, toward, settings.cost)
    candidates = Candidates.of(changeable(neighborhood), wishes)
    check()
    if settings.queries < 2 * predictor.questions.per_row:
        raise ParameterError(
            f"queries is {settings.queries}, but the model is asked for scores and for its decision, so that the "
            f"row and one change take {2 * predictor.questions.per_row}. Type queries=1000."
        )
    predictor.open(neighborhood.original)
    goal = goal_of(settings.target, predictor)
    measuring = min(settings.n * settings.n_measure, settings.queries // 4)
    limit = max(2, settings.queries - settings.n - measuring)  # of the search, so that what it finds is measured
    questions = ChangeQuestions(candidates, predictor, goal, limit, neighborhood.rows_per_call, check)
    leaves = _leaves(questions, reading, settings, neighborhood)
    if leaves is not None:
        questions = replace(questions, candidates=replace(candidates, cell=leaves.cells))
    outcome = _search(questions, settings, leaves)
    options = _options(questions.with_limit(settings.queries), outcome.found, settings, neighborhood)
    return Changes(
        options=options,
        prediction=None if predictor.is_label else predictor.prediction,
        output=predictor.output,
        goal={"kind": goal.kind, "wanted": _wanted(goal, predictor)},
        columns=candidates.case.columns,
        labels=candidates.case.labels,
        instance=neighborhood.instance,
        held=tuple(dict.fromkeys((*candidates.case.held, *settings.fixed))),
        levels=outcome.levels,
        n_attributes=len(candidates.attributes),
        n_queries=predictor.questions.n_answers,
        settings=settings.to_dict() | {"toward": None if toward is None else toward.instance},
        space={
            "kind": space.fingerprint.partition(":")[0],
            "fingerprint": space.fingerprint,
            "noun": space.noun,
        },
        versions={"anchorline": __version__, "numpy": np.__version__},
    )


def _leaves(
    questions: ChangeQuestions, reading: Reading | None, settings: ChangeSettings, neighborhood: Neighborhood
) -> LeafAnswers | None:
    """Return the trees that decide instead of queries, if they can."""
    candidates = questions.candidates
    case, is_plain = candidates.case, settings.examples == "values" and candidates.price is None
    is_simple = is_plain and not case.is_realistic and not case.has_rule
    if reading is None or not is_simple or settings.queries < MIN_QUERIES:
        return None
    return leaves_of(questions, reading, neighborhood.original)


def _search(questions: ChangeQuestions, settings: ChangeSettings, leaves: LeafAnswers | None) -> Search:
    n, most = settings.n, settings.most
    if settings.examples == "rows":
        return search_rows(questions, n, most)
    if leaves is not None:
        return search_leaves(questions, leaves, n, most or MOST_FACTS)
    return search_values(questions, n, most or MOST_FACTS, settings.max_values)


def _options(
    questions: ChangeQuestions, found: Sequence[Change], settings: ChangeSettings, neighborhood: Neighborhood
) -> tuple[Counterfactual, ...]:
    """Return what the model answers to every example, and how reliable its bounds are; intervals hold together."""
    new = [each for each in found if questions.known(each) is None][questions.left :]
    found = [each for each in found if each not in new]
    if not found:
        return ()
    shares: list[Share | None] = [None] * len(found)
    if settings.examples == "rows":  # which have no bounds
        reply, _ = _ask_examples(questions, found)
    else:
        reply, shares = measured(questions, found, settings, neighborhood.key)
    candidates, nearby = questions.candidates, Nearby.of(questions.candidates)
    return tuple(
        Counterfactual(
            moves=tuple(_move(candidates, each, is_value=settings.examples == "values") for each in found[i]),
            cost=float(candidates.cost(np.array([found[i]], dtype=np.intp))[0]),
            output=None if reply.outputs is None else float(reply.outputs[i]),
            decision=_decision(questions.predictor, reply, i),
            share=shares[i],
            realism=None if nearby is None else nearby.realism(found[i]),
        )
        for i in np.flatnonzero(reply.reached).tolist()
    )


def _move(candidates: Candidates, candidate: int, *, is_value: bool) -> Move:
    case, a, value = candidates.case, int(candidates.owner[candidate]), int(candidates.value[candidate])
    return Move(
        attribute=case.choices[a].name,
        columns=case.choices[a].columns,
        before=case.before(a),
        after=case.after(a, value),
        bound=case.bound(a, value) if is_value and len(candidates.split(candidate)[1]) > 1 else None,
        distance=float(candidates.distances[candidate]),
    )


def _decision(predictor: Predictor, reply: Reply, place: int) -> Any:
    """Return the label that the model decides, or the name of the class; None if it decides nothing."""
    if reply.decisions is None or (predictor.class_ is None and not predictor.is_label):
        return None
    decision = reply.decisions[place]
    if predictor.is_label:
        return plain_label(decision.item() if isinstance(decision, np.generic) else decision)
    return _class_label(predictor, int(decision))


def _class_label(predictor: Predictor, number: int) -> Any:
    classes = predictor.target.classes
    return f"class {number}" if classes is None else plain_label(classes[number])


def _wanted(goal: Goal, predictor: Predictor) -> Any:
    """Return what the goal compares with, in plain values: a class, a label or a number."""
    if goal.kind in ("class", "other class"):
        return _class_label(predictor, int(goal.wanted))
    return float(goal.wanted) if goal.kind in (">=", ">", "<=", "<") else plain_label(goal.wanted)


# How reliably changes turn


@dataclass(frozen=True, eq=False)
class _Plan:
    """Combinations of values (m, s) that show how reliably a change turns.

    ``weights`` (m,) are their shares of all training values that meet the bounds, None if they are draws.
    """

    combinations: np.ndarray
    weights: np.ndarray | None

    @classmethod
    def of(cls, candidates: Candidates, change: Change, n: int, random: Random) -> "_Plan":
        """Return all combinations, if there are at most ``n``, and otherwise as many draws."""
        values = [candidates.split(candidate)[1] for candidate in change]
        cells = [candidates.distinct(each) for each in values]
        if math.prod(map(len, cells)) > n:
            return cls(np.column_stack([_drawn(candidates, own, random.uniforms(n)) for own in values]), None)
        weights = [_weights(candidates, own, each) for own, each in zip(cells, values, strict=True)]
        grids = np.meshgrid(*cells, indexing="ij")
        shares = np.prod(np.meshgrid(*weights, indexing="ij"), axis=0).ravel()
        return cls(np.column_stack([grid.ravel() for grid in grids]), shares)

    def share(self, reached: np.ndarray, confidence: float) -> Share:
        """Return the share of the values with which the change turns, given where it does, (m,)."""
        n = len(reached)
        if self.weights is None:
            interval = binomial_interval(int(reached.sum()), n, confidence)
            return Share(float(reached.mean()), interval.low, interval.high, n)
        share = 1.0 if reached.all() else min(1.0, float(self.weights[reached].sum()))
        return Share(share, share, share, n, is_exact=True)


def measured(
    questions: ChangeQuestions, changes: Sequence[Change], settings: ChangeSettings, key: bytes
) -> tuple[Reply, list[Share | None]]:
    r"""Return the replies to changes, and with which share of the values that meet its bounds each turns.

    .. math:: \sum_{v \in B} \prod_k \frac{c_k(v_k)}{C_k}\,[\text{the decision turns at } v],
              \qquad B = B_1 \times \cdots \times B_s

    where :math:`B_k` are the training values that meet bound k, and :math:`c_k(v)` of :math:`C_k` training rows
    that do have the value v. If B has at most ``n_measure`` members, all are tried. Otherwise the values are drawn
    independently, and the interval is a binomial one; all intervals hold together. All changes are asked about
    together, and nothing twice. The share is None where too few queries are left.
    """
    streams = [f"changes:{','.join(map(str, change))}" for change in changes]
    plans = [
        _Plan.of(questions.candidates, change, settings.n_measure, Random.of(settings.seed, key, stream))
        for change, stream in zip(changes, streams, strict=True)
    ]
    unknown = [_unknown(questions, plan.combinations) for plan in plans]
    n_examples = sum(questions.known(change) is None for change in changes)
    is_affordable = np.cumsum([len(rows) for rows in unknown]) <= questions.left - n_examples
    unknown = [rows if fits else rows[:0] for rows, fits in zip(unknown, is_affordable, strict=True)]
    examples, reply = _ask_examples(questions, changes, unknown)
    turned = np.split(reply.reached, np.cumsum([len(rows) for rows in unknown])[:-1])
    confidence = 1 - (1 - settings.confidence) / len(changes)
    shares = [
        plan.share(_reached(questions, plan.combinations, rows, turns), confidence) if fits else None
        for plan, rows, turns, fits in zip(plans, unknown, turned, is_affordable, strict=True)
    ]
    return examples, shares


def _ask_examples(
    questions: ChangeQuestions, changes: Sequence[Change], others: Sequence[np.ndarray] = ()
) -> tuple[Reply, Reply]:
    """Return the replies to changes, and to other combinations of values, in one call; nothing is asked twice."""
    known = [questions.known(change) for change in changes]
    new = [
        np.array([change], dtype=np.intp) for change, reply in zip(changes, known, strict=True) if reply is None
    ]
    reply = questions.ask(_padded([*new, *others]))
    places = iter(range(len(new)))
    examples = [reply.part(slice(i := next(places), i + 1)) if each is None else each for each in known]
    return examples[0].joined(*examples[1:]), reply.part(slice(len(new), None))


def _unknown(questions: ChangeQuestions, combinations: np.ndarray) -> np.ndarray:
    """Return the distinguishable combinations, without single facts that were tried already."""
    cells = questions.candidates.cell[combinations]
    rows = np.asarray(combinations[np.sort(np.unique(cells, axis=0, return_index=True)[1])])
    if rows.shape[1] > 1:
        return rows
    is_new = [cell not in questions.alone for cell in questions.candidates.cell[rows[:, 0]].tolist()]
    return np.asarray(rows[is_new])


def _padded(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return changes of several lengths as one array; -1 changes nothing."""
    width = max((part.shape[1] for part in parts), default=1)
    parts = [np.zeros((0, width), dtype=np.intp), *parts]
    return np.concatenate(
        [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=-1) for part in parts]
    )


def _reached(
    questions: ChangeQuestions, combinations: np.ndarray, asked: np.ndarray, turned: np.ndarray
) -> np.ndarray:
    """Return which combinations turn, (n,), given the answers and what is known of single facts."""
    cell = questions.candidates.cell
    known = {(key,): bool(reply.reached[place]) for key, (reply, place) in questions.alone.items()}
    known |= dict(zip(map(tuple, cell[asked].tolist()), turned.tolist(), strict=True))
    return np.array([known[tuple(key)] for key in cell[combinations].tolist()], dtype=bool)


def _weights(candidates: Candidates, cells: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the share of the training rows of some values that is in every cell."""
    by_cell = {int(cell): 0.0 for cell in candidates.cell[cells]}
    for cell, count in zip(candidates.cell[values].tolist(), candidates.counts[values].tolist(), strict=True):
        by_cell[cell] += count
    weights = np.array([by_cell[int(cell)] for cell in candidates.cell[cells]])
    return np.asarray(weights / weights.sum())


def _drawn(candidates: Candidates, values: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Draw values with the frequencies that they have in the training table."""
    ends = np.cumsum(candidates.counts[values])
    return np.asarray(values[np.searchsorted(ends, uniforms * ends[-1], side="right")])
