"""From a row and a target to changes: the search, and how reliably each change turns."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from anchorline.changes.candidates import Candidates, Change, padded
from anchorline.changes.leaves import leaves_of, search_leaves
from anchorline.changes.questions import ChangeQuestions, goal_of
from anchorline.changes.realism import Nearby
from anchorline.changes.result import LIMITS, Changes, Counterfactual, Move
from anchorline.changes.search import search_rows, search_values
from anchorline.changes.settings import MIN_QUERIES, MOST_FACTS, ChangeSettings
from anchorline.errors import ParameterError
from anchorline.guarantees.intervals import binomial_interval
from anchorline.laws import Random
from anchorline.model.outputs import plain_label
from anchorline.model.predictor import Predictor
from anchorline.model.trees import Reading
from anchorline.result.explanation import Share
from anchorline.search.assemble import VERSIONS
from anchorline.settings import plain_number
from anchorline.spaces.base import Neighborhood, Space


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
    candidates = Candidates.of(neighborhood, settings, toward)
    case = candidates.case
    check()
    if settings.queries < 2 * predictor.questions.per_row:
        raise ParameterError(
            f"queries is {settings.queries}, but the model is asked for scores and for its decision, so that the "
            f"row and one change take {2 * predictor.questions.per_row}. Type queries=1000."
        )
    predictor.open(neighborhood.original)
    goal, n, k = goal_of(settings.target, predictor), settings.n, settings.most or MOST_FACTS
    questions = ChangeQuestions(candidates, predictor, goal, settings.searching, neighborhood.rows_per_call, check)
    is_plain = not (candidates.price or case.is_realistic or case.has_rule) and settings.queries >= MIN_QUERIES
    if settings.examples == "rows":
        outcome = search_rows(questions, n, settings.most)
    elif is_plain and reading and (leaves := leaves_of(questions, reading, neighborhood.original)) is not None:
        questions = replace(questions, candidates=replace(candidates, cell=leaves.cells))
        outcome = search_leaves(questions, leaves, n, k)
    else:
        outcome = search_values(questions, n, k, settings.max_values)
    wanted = float(goal.wanted) if goal.kind in LIMITS else plain_label(goal.wanted)
    if goal.kind in ("class", "other class"):
        wanted = _class_label(predictor, int(goal.wanted))
    return Changes(
        options=_options(replace(questions, limit=settings.queries), outcome.found, settings, neighborhood),
        prediction=None if predictor.is_label else predictor.prediction,
        output=predictor.output,
        goal={"kind": goal.kind, "wanted": wanted},
        columns=case.columns,
        labels=case.labels,
        instance=neighborhood.instance,
        held=tuple(dict.fromkeys((*case.held, *settings.fixed))),
        levels=outcome.levels,
        n_attributes=len(candidates.attributes),
        n_queries=predictor.questions.n_answers,
        settings=settings.to_dict() | {"toward": None if toward is None else toward.instance},
        space={
            "kind": space.fingerprint.partition(":")[0],
            "fingerprint": space.fingerprint,
            "noun": space.noun,
        },
        versions=VERSIONS,
    )


def _options(
    questions: ChangeQuestions, found: Sequence[Change], settings: ChangeSettings, neighborhood: Neighborhood
) -> tuple[Counterfactual, ...]:
    """Return what the model answers to every example, and how reliable its bounds are; intervals hold together."""
    new = [each for each in found if questions.known(each) is None][questions.left :]
    found = [each for each in found if each not in new]
    shares = measured(questions, found, settings, neighborhood.key)
    candidates, predictor, nearby = questions.candidates, questions.predictor, Nearby.of(questions.candidates)
    options = []
    for change, share in zip(found, shares, strict=True):
        reply = questions.known(change)
        if reply is None or not reply.reached[0]:  # the trees were wrong about it
            continue
        options.append(
            Counterfactual(
                moves=tuple(_move(candidates, each, is_value=settings.examples == "values") for each in change),
                cost=float(candidates.cost(np.array([change], dtype=np.intp))[0]),
                output=None if predictor.is_label else float(reply.outputs[0]),
                decision=_decision(predictor, reply.decisions[0]),
                share=share,
                realism=None if nearby is None else nearby.realism(change),
            )
        )
    return tuple(options)


def _move(candidates: Candidates, candidate: int, *, is_value: bool) -> Move:
    case, a, row = candidates.case, int(candidates.owner[candidate]), int(candidates.rows[candidate])
    return Move(
        attribute=case.choices[a].name,
        columns=case.choices[a].columns,
        before=case.before(a),
        after=case.after(a, row),
        bound=case.bound(a, row) if is_value and len(candidates.split(candidate)[1]) > 1 else None,
        distance=float(candidates.distances[candidate]),
    )


def _decision(predictor: Predictor, decision: Any) -> Any:
    """Return the label that the model decides, or the name of the class; None if it decides nothing."""
    if predictor.is_label:
        return plain_label(plain_number(decision))
    return None if decision is None or predictor.class_ is None else _class_label(predictor, int(decision))


def _class_label(predictor: Predictor, number: int) -> Any:
    classes = predictor.target.classes
    return f"class {number}" if classes is None else plain_label(classes[number])


# How reliably changes turn


def measured(
    questions: ChangeQuestions, changes: Sequence[Change], settings: ChangeSettings, key: bytes
) -> list[Share | None]:
    r"""Ask about changes, and return with which share of the values that meet its bounds each turns.

    .. math:: \sum_{v \in B} \prod_k \frac{c_k(v_k)}{C_k}\,[\text{the decision turns at } v],
              \qquad B = B_1 \times \cdots \times B_s

    where :math:`B_k` are the training values that meet bound k, and :math:`c_k(v)` of :math:`C_k` training rows
    that do have the value v. If B has at most ``n_measure`` members, all are tried. Otherwise the values are drawn
    independently, and the interval is a binomial one; all intervals hold together. All changes are asked about
    together, and nothing twice. The share is None where too few queries are left, and of whole rows.
    """
    cell = questions.candidates.cell
    new = [np.array([each], dtype=np.intp) for each in changes if questions.known(each) is None]
    plans = []
    for change in changes if settings.examples == "values" else ():
        random = Random.of(settings.seed, key, f"changes:{','.join(map(str, change))}")
        plans.append(_combinations(questions.candidates, change, settings.n_measure, random))
    asked, left, fits = [], questions.left - len(new), []
    for combinations, _ in plans:
        rows = combinations[np.sort(np.unique(cell[combinations], axis=0, return_index=True)[1])]
        if rows.shape[1] == 1:
            rows = rows[[questions.key(row) not in questions.alone for row in rows]]
        left -= len(rows)
        fits.append(left >= 0)
        asked.append(rows if left >= 0 else rows[:0])
    reached = iter(questions.ask(padded([*new, *asked])).reached[len(new) :].tolist())
    turns = {key: bool(reply.reached[i]) for key, (reply, i) in questions.replies.items()}
    turns |= {questions.key(row): next(reached) for rows in asked for row in rows}
    confidence, shares = 1 - (1 - settings.confidence) / max(1, len(changes)), list[Share | None]()
    for (combinations, weights), is_known in zip(plans, fits, strict=True):
        turned = np.array([is_known and turns[questions.key(row)] for row in combinations])
        shares.append(_share(turned, weights, confidence) if is_known else None)
    return shares if plans else [None] * len(changes)


def _share(turned: np.ndarray, weights: np.ndarray | None, confidence: float) -> Share:
    """Return the share of values with which a change turns: of all with their weights (m,), or of m draws."""
    n = len(turned)
    if weights is None:
        interval = binomial_interval(int(turned.sum()), n, confidence)
        return Share(float(turned.mean()), interval.low, interval.high, n)
    share = 1.0 if turned.all() else min(1.0, float(weights[turned].sum()))
    return Share(share, share, share, n, is_exact=True)


def _combinations(
    candidates: Candidates, change: Change, n: int, random: Random
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return all combinations (m, s) of values that meet the bounds, with their shares, if there are at most n.

    Otherwise, return n draws with the frequencies of the training table, and None.
    """
    values = [candidates.split(candidate)[1] for candidate in change]
    cells = [candidates.distinct(each) for each in values]
    if math.prod(map(len, cells)) > n:
        ends = [np.cumsum(candidates.counts[own]) for own in values]
        places = [np.searchsorted(each, random.uniforms(n) * each[-1], side="right") for each in ends]
        return np.column_stack([own[at] for own, at in zip(values, places, strict=True)]), None
    weights = []
    for own, each in zip(values, cells, strict=True):
        known, of = np.unique(candidates.cell[own], return_inverse=True)
        counts = np.bincount(of, candidates.counts[own])[np.searchsorted(known, candidates.cell[each])]
        weights.append(counts / counts.sum())
    shares = np.prod(np.meshgrid(*weights, indexing="ij"), axis=0).ravel()
    return np.column_stack([grid.ravel() for grid in np.meshgrid(*cells, indexing="ij")]), shares
