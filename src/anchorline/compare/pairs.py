r"""Two models seen from the same rows: their answers to rows, and to the same altered copies of one row.

The *effect* of an attribute on a row is by how much the output falls, on average, if its value is redrawn:

.. math:: e_j = E[f(z) \mid z_j \text{ kept}] - E[f(z) \mid z_j \text{ redrawn}]

It is estimated twice, from two halves of the copies. The product of both estimates is an estimate of
:math:`e_j^2` without bias, so that noise does not look like an effect, however few copies there are. Each estimate
compares as many copies that keep the value as copies that redraw it: of what does not depend on the attribute,
such a difference is as often positive as negative, however skewed it is.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.guarantees.limits import Squares, lower_limit
from anchorline.guarantees.measuring import EXPLAINED_R2, SAME_WITHIN, STAYS
from anchorline.model.predictor import Scores, batches
from anchorline.result.comparison import BrokenRule
from anchorline.result.explanation import Explanation, Share, Verdict
from anchorline.result.rule import RuleVerdict
from anchorline.search.case import Asked, Case
from anchorline.settings import RuleSettings, Settings
from anchorline.spaces.columns import to_narwhals
from anchorline.spaces.table import TableNeighborhood, TableRows
from anchorline.verify.check import candidates_of

Check = Callable[[], object] | None
N_COPIES = 512  # per row, by which effects are estimated and facts are tried
_N_HELD = 600  # copies with the facts
REFUTED = 0.01  # the probability that an old explanation that still holds is refuted


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model answers about n rows: outputs (n,), None for labels; and decisions (n,), None for numbers."""

    outputs: np.ndarray | None
    decisions: np.ndarray | None

    @classmethod
    def of(cls, explainer: Explainer, rows: TableRows, chosen: np.ndarray) -> "Answers":
        """Ask the model about the chosen rows."""
        predictor, scores = explainer.predictor(), list[Scores]()
        for first, last in batches(len(chosen)):
            part = rows.natives.rows(chosen[first:last])
            scores.append(predictor.questions.ask(part, last - first))
        values = np.concatenate([each.values for each in scores])
        named = [each.named for each in scores if each.named is not None]
        every = Scores(values, np.concatenate(named) if named else None)
        predictor = predictor.open_with(every.part(slice(0, 1)))
        kind, classes, threshold = predictor.output.kind, predictor.target.classes, predictor.output.threshold
        if kind == "label":
            return cls(None, values)
        outputs = predictor.read(every).outputs
        if kind == "number":
            return cls(outputs, None)
        if kind == "threshold":
            assert threshold is not None
            return cls(outputs, outputs >= threshold)
        assert every.named is not None
        labels = np.array(classes if classes is not None else range(values.shape[1]), dtype=object)
        return cls(outputs, labels[every.named])


@dataclass(frozen=True, eq=False)
class Pair:
    """What both models say about one row.

    ``kept`` is None if the old facts claim nothing, or the models decide differently; otherwise whether the facts
    still hold for the new model. ``effects`` are those of both models by both halves of the copies: (models,
    halves, attributes).
    """

    old: Explanation
    new_output: float
    kept: bool | None
    effects: np.ndarray


def pair(
    old: Explainer, new: Explainer, row: TableNeighborhood, number: int, settings: Settings, differs: bool
) -> Pair:
    """Explain a row by the old model, and ask both about the same copies; ``differs`` if they decide differently.

    ``number`` is that of the row: equal rows get copies of their own, otherwise their noise would not average out.
    """
    explanation, source, search = old.explain_source(row, settings)
    case = source.case
    case.predictor.questions.limit = math.inf  # what follows is not part of the explanation
    other = _seen_alike(new, case, row, settings)
    law = case.draw("compare/law", number, N_COPIES)
    answers = [each.ask(law) for each in (case, other)]
    effects = np.stack([halves(law, each.drops) for each in answers])
    new_output = 0.0 if differs and case.predictor.is_label else other.predictor.prediction
    if differs or explanation.verdict not in (Verdict.EXPLAINED, Verdict.ROBUST):
        return Pair(explanation, new_output, None, effects)
    facts, effects_of_facts = search.solution.facts, np.asarray(search.solution.effects)
    refuted = _is_refuted(other, explanation, answers[1], number, facts, effects_of_facts)
    return Pair(explanation, new_output, not refuted, effects)


def _seen_alike(new: Explainer, case: Case, row: TableNeighborhood, settings: Settings) -> Case:
    """Return the case of the new model that looks at the output that the old model's case looks at."""
    seen, predictor = case.predictor, new
    if seen.output.kind == "class" and (column := seen.column) is not None:
        classes, others = seen.target.classes, new.target.classes  # the same, maybe in another order
        if classes is not None and others is not None:
            column = [*map(label_text, others)].index(label_text(classes[column]))
        predictor = new.explaining(column)
    other = predictor.case(row, settings)
    other.predictor.questions.limit = math.inf
    if seen.is_label:
        other.predictor.open_with(Scores(np.array([seen.label]), None))
    else:
        other.predictor.open(row.original)
    return other


def label_text(label: Any) -> str:
    """Return a label as text; a whole number is the same however it is stored.

    >>> label_text(1.0), label_text(1), label_text("no")
    ('1', '1', 'no')
    """
    is_whole = isinstance(label, float) and label.is_integer()
    return str(int(label) if is_whole else label)


def halves(donors: np.ndarray, drops: np.ndarray) -> np.ndarray:
    """Return the effects of attributes by each half of the copies, (2, attributes); 0 where they are not known."""
    half = donors.shape[1] // 2
    return np.stack([_effects(donors[:, part], drops[part]) for part in (slice(0, half), slice(half, None))])


def _effects(donors: np.ndarray, drops: np.ndarray) -> np.ndarray:
    redrawn = donors >= 0
    n = np.minimum(redrawn.sum(axis=1), (~redrawn).sum(axis=1))[:, None]
    with_value, without = ((each & (each.cumsum(axis=1) <= n)) @ drops for each in (~redrawn, redrawn))
    return np.asarray((without - with_value) / np.maximum(n[:, 0], 1))


def _is_refuted(
    case: Case, old: Explanation, law: Asked, number: int, facts: Sequence[int], effects: np.ndarray
) -> bool:
    """Return whether the new model refutes what the old explanation was certified for; see `REFUTED`."""
    if old.verdict is Verdict.ROBUST:
        within = SAME_WITHIN * (old.output.spread or 0.0)
        stays = law.stays if law.stays is not None else np.abs(law.drops) <= within
        return _is_less(stays, REFUTED)
    flips = case.neighborhood.flips(law.donors, facts)
    if old.holds is None:
        squares = Squares().added(law.drops, effects @ flips)
        return squares.limit(1, REFUTED) < EXPLAINED_R2
    held = [case.ask(case.draw("compare/facts", number, _N_HELD, facts)).decisions]
    if old.holds_law is not None:
        held.append(law.decisions[~flips.any(axis=0)])
    return any(_is_less(stays, REFUTED / len(held)) for stays in held)


def share_of(happens: np.ndarray, failure: float) -> Share:
    """Return how often something happens (n,), with limits that each fail with half of the probability."""
    n, k = happens.size, int(happens.sum())
    if n == 0:
        return Share(0.0, 0.0, 1.0, 0)
    return Share(k / n, lower_limit(k, n, failure / 2), 1.0 - lower_limit(n - k, n, failure / 2), n)


def _is_less(stays: np.ndarray, failure: float) -> bool:
    return 1 - lower_limit(int((~stays).sum()), stays.size, failure) < STAYS


def broken_rule(
    old: Explainer,
    new: Explainer,
    row: TableNeighborhood,
    number: int,
    settings: RuleSettings,
    failure: float,
    check: Check,
) -> BrokenRule | None:
    """Return the old model's rule of a row if the new model breaks it: by limits, with a copy that shows it."""
    rule = old.rule_with(row, settings, check)
    if not (rule.facts and rule.verdict in (RuleVerdict.HOLDS, RuleVerdict.ALWAYS)):
        return None
    case, asked = new.case(row, settings, check), settings.holds or STAYS
    case.predictor.questions.limit = math.inf
    case.predictor.open(row.original)
    donors = case.draw("compare/rule", number, _N_HELD, candidates_of(case.neighborhood, rule.facts))
    answers = case.ask(donors)
    stays = answers.stays if answers.stays is not None else np.abs(answers.drops) <= (rule.within or 0.0)
    kept = share_of(stays, failure)
    if kept.high >= asked:
        return None
    shown = int(np.flatnonzero(~stays)[0])
    inputs = case.neighborhood.realize(donors[:, shown : shown + 1])
    read = row.table.rows(to_narwhals(inputs, ParameterError))
    assert read is not None
    return BrokenRule(
        row=number,
        facts=rule.facts,
        old_decision=None if rule.output.decision is None else str(rule.output.decision),
        old=rule.holds,
        new=kept,
        example=tuple(read.at(0).instance),
        output=float(case.predictor.prediction - answers.drops[shown]),
    )
