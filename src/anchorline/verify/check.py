r"""The steps of a verification, from the text to the answer.

Every figure is computed again and compared. Then an explanation or a rule is measured on neighbors that its maker
could not foresee. A figure is stated with limits :math:`[l, h]`, and fresh neighbors give limits that hold with
confidence 99.9% (all of them together, at every look). With a margin :math:`m` of 2.5 points, a figure is

- contradicted if the fresh limits and :math:`[l, h]` have no number in common;
- confirmed if the fresh limits lie in :math:`[l - m, h + m]`;
- undecided otherwise, and then the number of neighbors is doubled. Limits of a share that are at most :math:`m`
  apart decide, wherever they lie; and so they are after 160,000 neighbors at the latest.

Therefore a true value beyond :math:`[l - m, h + m]` is confirmed with a probability of at most 0.1%, however many
neighbors were drawn. What was proven to hold always is contradicted by a single fresh neighbor.
"""

import json
import math
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anchorline.changes.candidates import ChangeableParts, changeable
from anchorline.changes.result import Changes
from anchorline.changes.settings import ChangeSettings
from anchorline.errors import (
    AnchorlineError,
    BudgetError,
    FormatError,
    InstanceNeededError,
    ParameterError,
    PredictorError,
    PredictorOutputError,
    TamperedError,
)
from anchorline.explainer import Check, Explainer
from anchorline.facts import Fact
from anchorline.guarantees.limits import Count
from anchorline.guarantees.measuring import Measurement, Round
from anchorline.model.outputs import classes_of, plain_label
from anchorline.model.predictor import Predictor, Questions
from anchorline.optimize.choose import TIE, best_sum
from anchorline.optimize.moments import Moments
from anchorline.optimize.sums import Limits, Solution, Status, fit
from anchorline.result.explanation import Explanation, Fit, Output, Share, Verdict
from anchorline.result.reasons import Reasons
from anchorline.result.rule import Rule, RuleVerdict
from anchorline.result.verification import Outcome, Reason, Verification
from anchorline.rules.assemble import tolerance
from anchorline.rules.find import Certificate, failures_of, failures_of_all
from anchorline.search.case import Case
from anchorline.search.sources import Choose, ask_round, ask_streams, begin
from anchorline.settings import Drawing, ReasonSettings, RuleSettings, Settings
from anchorline.spaces.base import Neighborhood, Space
from anchorline.spaces.table import Table, as_space

CONFIDENCE = 0.999
MARGIN = 0.025
LOOKS = 5_000, 5_000, 10_000, 20_000, 40_000, 80_000  # neighbors of one look after another, which double them

ROUNDING = 1e-9  # computed figures may differ by this, relative to their size, or to that of what they measure
_LAST_BITS = 1e-12  # of outputs: what rounding may add to differences of outputs, which may be much smaller
_LEFT_OPEN = 1e-3  # of the variance: which bound a search proves within this depends on ties, and so on rounding
# What follows from the rest, and what is repeated.
_NO_FIGURE = re.compile(r"^(sha256|versions|output\.choices)\b")
_COMPUTED = re.compile(
    r"^(prediction|base|contributions|effects|fit|proof|holds|holds_drawn|holds_law|all|output\.(low|high|spread"
    r"|runner_up)|alternatives\[\d+\]\.(contributions|objective)|within|coverage|strips\[\d+\]\.(shares|stays|missing)"
    r"|shortfalls\[\d+\]\.(value|low|high)|reasons\[\d+\]\.recourse\.share|reference\.(low|high))\b"
)
_IN_OUTPUT_UNITS = re.compile(
    r"^(prediction|base|contributions|effects|output|within|fit\.(?!r2|low|high|n\b|is_)|shortfalls|reference)"
    r"|\.contributions\b"
)
_SQUARED = re.compile(r"^proof|\.objective$")
_BY_SEARCH = re.compile(r"(options|levels|n_queries|settings\.cost)\b")  # what costs and leaves of trees decide
_SINGLE = 1e-5  # answers in single precision may differ by this, because the row was asked about among others
_FILE_NAME = re.compile(r"[^{}\[\]\n]{1,255}\.json", re.IGNORECASE)  # the disk is not asked whether it exists
# What settings that nobody could have chosen may lead to.
_NOT_COMPUTED = (AnchorlineError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_KINDS: dict[Any, type[Explanation | Rule | Changes | Reasons]] = {
    "explanation": Explanation,
    "rule": Rule,
    "changes": Changes,
    "reasons": Reasons,
}
_SUBJECTS = dict(zip(_KINDS.values(), ("explanation", "rule", "list of changes", "list of reasons"), strict=True))

Reproduced = Explanation | Rule
"""Records that are made again from their settings, and compared."""

Figures = dict[str, Share | Fit]


@dataclass(frozen=True, slots=True, eq=False)
class Fresh:
    """What fresh neighbors say: shares and fit by name, the verdict that these establish, and their number."""

    figures: Figures
    verdict: Verdict | RuleVerdict
    n_queries: int


def verified(
    record: Any,
    model: Any,
    space: Any,
    *,
    instance: Any = None,
    seed: int | None = None,
    check: Check = None,
) -> Verification:
    """Carry out `anchorline.verify`, whose arguments these are."""
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise ParameterError(f"seed is {seed!r}, but it must be a whole number >= 0, or None. Type seed=0.")
    _check_arguments(record, model)
    space = as_space(space)
    try:
        claimed = read_result(record) if isinstance(record, str) else record
    except TamperedError as error:
        return replace(_refuted("tampered", detail=str(error)), subject=_subject_of(record))
    except FormatError as error:
        return replace(_unknown("unreadable", detail=str(error)), subject=_subject_of(record))
    try:
        answer = _verify(claimed, model, space, instance, secrets.randbits(62) if seed is None else seed, check)
    except PredictorError as error:
        answer = _unknown("model_failed", detail=str(error))
    except InstanceNeededError as error:
        answer = _unknown("instance_needed", detail=str(error))
    except _NOT_COMPUTED as error:
        answer = _refuted("not_computed", detail=str(error))
    return replace(answer, subject=_SUBJECTS[type(claimed)])


def _subject_of(text: str) -> str:
    """Return what a text that cannot be read as a record says it is."""
    found = re.search(r'"kind": ?"(\w+)"', text)
    return _SUBJECTS[_KINDS.get(found and found[1], Explanation)]


def _check_arguments(record: Any, model: Any) -> None:
    """Raise `ParameterError` if the arguments are swapped, or if the first is not a result."""
    results = str | Explanation | Rule | Changes | Reasons
    if isinstance(record, results) and not isinstance(model, results):
        return
    raise ParameterError(
        f"The first argument is of type {type(record).__name__}, and the second of type {type(model).__name__}; "
        "first comes an Explanation, a Rule, Changes, Reasons, or their JSON as a text, and then the model. Type "
        "verify(explanation, model, table), or verify(pathlib.Path(file).read_text(), model, table)."
    )


def read_result(text: str) -> Explanation | Rule | Changes | Reasons:
    """Read the JSON of any result that can be verified; the errors are those of `Explanation.from_json`."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        if _FILE_NAME.fullmatch(text):
            raise FormatError(
                f"The text is the name of a file. Type verify(Path({text!r}).read_text(), model, table)"
            ) from error
        raise FormatError(f"The text is not JSON: {error}") from error
    kind = body.get("kind") if isinstance(body, dict) else None
    if kind in ("comparison", "drift"):
        raise FormatError(
            f"It is a {kind}. To check it, repeat the call of compare, which returns the same bytes."
        )
    return (_KINDS.get(kind, Explanation) if isinstance(kind, str) else Explanation).from_json(text)


def _refuted(code: str, stated: Any = None, found: Any = None, detail: str = "") -> Verification:
    return Verification(Outcome.DOES_NOT_HOLD, (Reason(code, "", stated, found, detail),))


def _unknown(code: str, detail: str = "") -> Verification:
    return Verification(Outcome.CANNOT_TELL, (Reason(code, detail=detail),))


def _verify(
    claimed: Reproduced | Changes | Reasons, model: Any, space: Space, instance: Any, seed: int, check: Check
) -> Verification:
    own, stated = classes_of(model), claimed.output.choices.classes
    if own is not None and stated is not None and [plain_label(label) for label in own] != list(stated):
        return _refuted("other_classes", list(stated), own)
    explainer = explainer_of(claimed.output, model, space)
    if isinstance(claimed, Reasons):
        settings = ReasonSettings.from_dict(claimed.settings)
        explainer = explainer.referring_to(None, settings)
    if explainer.space.fingerprint != claimed.space["fingerprint"]:
        is_near = isinstance(explainer.space, Table) and explainer.space.reference == "near"
        return _refuted("other_near" if is_near else "other_space")
    if instance is None:
        instance = _plain(claimed.instance)
    elif _as_json(explainer.space.at(instance).instance) != _as_json(claimed.instance):
        return _refuted("other_instance")
    if isinstance(claimed, Changes):
        answer = verify_changes(claimed, explainer, instance, seed, check)
        named = _named_by_maker(claimed.output, model) if answer.outcome is Outcome.HOLDS else []
        return replace(answer, reasons=(*answer.reasons, *named))
    if isinstance(claimed, Reasons):
        return verify_reasons(claimed, explainer, instance, seed, check)
    return _verify_figures(claimed, explainer, instance, seed, check)


def _verify_figures(
    claimed: Reproduced, explainer: Explainer, instance: Any, seed: int, check: Check
) -> Verification:
    n_attributes = len(explainer.space.at(instance).names)
    lacks_columns = explainer.columns.positions is None and claimed.space["n_attributes"] < n_attributes
    if lacks_columns:  # even if nobody can tell whether the model reads them, all else must be as stated
        held = explainer.space.holding(claimed.space.get("held", ()))
        explainer = explainer_of(claimed.output, explainer.model, held)
    settings = _settings_of(claimed)
    explainer.table_answers(ask=settings.is_auto)
    try:
        case = _opened(explainer, instance, replace(settings, seed=seed), check)
    except (ParameterError, PredictorOutputError) as error:
        return _refuted("other_answers", detail=str(error))
    answer = _compared(claimed, explainer, case, instance)
    if answer is None and lacks_columns:
        return _unknown("no_columns")
    return answer if answer is not None else _audited(claimed, explainer.model, case)


def _settings_of(claimed: Reproduced) -> Settings | RuleSettings:
    """Return what the maker chose, checked; nothing else in a record is a choice."""
    kind: type[Settings | RuleSettings] = RuleSettings if isinstance(claimed, Rule) else Settings
    return kind.from_dict(claimed.settings)


def explainer_of(output: Output, model: Any, space: Space) -> Explainer:
    """Return the explainer that a result says it was made with; a model's own classes are never the record's."""
    choices, has_own = output.choices, classes_of(model) is not None
    pair = isinstance(choices.output, list | tuple)
    recorded: dict[str, Any] = {
        "output": tuple(choices.output) if pair else choices.output,
        "output_scale": choices.output_scale,
        "task": choices.task,
        "classes": None if has_own else choices.classes,
        "threshold": output.threshold,
        "output_range": choices.output_range,
        "input": choices.input,
    }
    return Explainer(model, space, **recorded)


def _opened(explainer: Explainer, instance: Any, settings: Drawing, check: Check) -> Case:
    """Return the case of a verifier, who has a seed and a confidence of its own, and no limit of queries."""
    neighborhood, answers = explainer.space.at(instance), explainer.table_answers(ask=False)
    questions = Questions(explainer.target, None if answers is None else answers.rule)
    predictor = Predictor(questions, explainer.threshold, explainer.output_range).open(neighborhood.original)
    return Case(neighborhood, predictor, replace(settings, confidence=CONFIDENCE), len(neighborhood.names), check)


def _compared(claimed: Reproduced, explainer: Explainer, case: Case, instance: Any) -> Verification | None:
    """Ask and search again with the recorded settings; return the answer if something differs."""

    def asked() -> Reason | None:
        return _difference_at_row(claimed, explainer, case)

    def found() -> Reproduced:
        again = _made_again(claimed, explainer, instance, case.check)
        if again.queries.source != "leaves" or claimed.queries.source == "leaves":
            return again
        # It was made from a mere function.
        return _made_again(claimed, explainer.without_trees(), instance, case.check)

    reason = asked()
    if reason is not None:
        return _if_steady(asked, reason)
    again: Reproduced | None = None
    try:
        again = found()
        differing = list(differences(claimed, again))
    except (ParameterError, PredictorOutputError, BudgetError) as error:
        differing = [Reason("other_answers", detail=str(error))]
    if not differing:
        return None
    if _lacks_leaves(claimed, again) and explainer.trees.deciding(explainer.target) is None:
        return _without_leaves(claimed, explainer, case)
    if again is None:
        return _if_steady(asked, *differing)
    return _if_steady(lambda: found().to_json(), *differing)


def _lacks_leaves(claimed: Reproduced, again: Reproduced | None) -> bool:
    """Return whether a record was read off trees that this model does not show."""
    if claimed.queries.source != "leaves":
        return False
    return claimed.settings.get("holds") == 1 if again is None else again.queries.source != "leaves"


def _without_leaves(claimed: Reproduced, explainer: Explainer, case: Case) -> Verification:
    """Return that nobody can tell without the trees, unless fresh neighbors contradict what is said."""
    if isinstance(claimed, Rule):
        within = tolerance(case, claimed.settings["within"], explainer.table_answers(ask=False))
        claimed = replace(claimed, within=within)
    fresh = measure_afresh(claimed, case)
    doubtful = doubts(claimed, fresh.figures)
    if doubtful and doubtful[0].code != "not_confirmed":
        return Verification(Outcome.DOES_NOT_HOLD, tuple(doubtful), fresh.figures, fresh.verdict)
    return _unknown("no_leaves")


def _made_again(claimed: Reproduced, explainer: Explainer, instance: Any, check: Check) -> Reproduced:
    settings = _settings_of(claimed)
    if isinstance(settings, RuleSettings) or not isinstance(claimed, Explanation):
        return explainer.rule_with(instance, RuleSettings.from_dict(claimed.settings), check)
    choose = best_sum if settings.time_limit is None else _as_stated(claimed, explainer.space.at(instance))
    return explainer.explain_with(instance, settings, check, choose)


def _as_stated(claimed: Explanation, neighborhood: Neighborhood) -> Choose:
    """Return how a verifier chooses a sum if the record's own search had a limit of time.

    It searches to the constant limit of nodes. A sum that is not proven is taken as it is stated if it fits within
    1% of the variance of the one found, and if what is stated to be a bound is below it.
    """

    def choose(moments: Moments, k: int, limits: Limits) -> Solution:
        own = best_sum(moments, k, replace(limits, time_limit=None))
        is_last = claimed.queries.source != "drawn" or moments.n_rows == claimed.queries.searched
        is_allowed = len({fact.attribute for fact in claimed.facts}) == len(claimed.facts) <= k
        if claimed.proof.status != "limit" or not is_last or not is_allowed:
            return own
        facts = tuple(sorted(candidates_of(neighborhood, claimed.facts)))
        effects, objective = fit(moments, facts)
        bound, rounding = claimed.proof.lower_bound, ROUNDING * moments.mean_square
        if objective > own.objective + TIE * moments.variance or bound > min(own.objective, objective) + rounding:
            return own
        return Solution(facts, effects, objective, bound, Status.LIMIT, own.n_nodes)

    return choose


def _difference_at_row(claimed: Reproduced, explainer: Explainer, case: Case) -> Reason | None:
    """Return how the model's answer about the row itself differs from the stated one."""
    predictor = Predictor(case.predictor.questions, explainer.threshold, explainer.output_range)
    predictor.open(case.neighborhood.original)
    stated, found = claimed.prediction, predictor.prediction
    if abs(stated - found) > _SINGLE * max(abs(stated), abs(found)):
        return Reason("other_model", "prediction", stated, found)
    if claimed.output.decision != predictor.output.decision:
        return Reason("other_model", "output.decision", claimed.output.decision, predictor.output.decision)
    return None


def _if_steady(repeat: Callable[[], Any], *reasons: Reason) -> Verification:
    """Return that the record does not hold, unless the model answers the same questions in two ways."""
    if repeat() != repeat():
        return _unknown("varies")
    return Verification(Outcome.DOES_NOT_HOLD, reasons)


def _audited(claimed: Reproduced, model: Any, case: Case) -> Verification:
    """Measure what was reproduced on fresh neighbors, and return that it holds unless they raise a doubt."""
    notes = [Reason("reproduced", stated=len(leaves_of(claimed.to_json())))]
    named = _named_by_maker(claimed.output, model)
    if claimed.queries.source == "listed" and all(figure.is_exact for figure in figures_of(claimed).values()):
        return Verification(Outcome.HOLDS, (*notes, Reason("listed"), *named))
    fresh = measure_afresh(claimed, case)
    doubtful = doubts(claimed, fresh.figures)
    if doubtful:
        is_open = doubtful[0].code == "not_confirmed"
        outcome = Outcome.CANNOT_TELL if is_open else Outcome.DOES_NOT_HOLD
        return Verification(outcome, tuple(doubtful), fresh.figures, fresh.verdict)
    confirmed = Reason("confirmed", found=fresh.n_queries)
    return Verification(Outcome.HOLDS, (*notes, confirmed, *named), fresh.figures, fresh.verdict)


def _named_by_maker(output: Output, model: Any) -> list[Reason]:
    """Return that nobody but the maker says what the output is called, and in which unit it is."""
    choices, own = output.choices, list(map(str, classes_of(model) or ()))
    is_free = not isinstance(choices.output, int | list | tuple | None) and str(choices.output) not in own
    names = [str(choices.output)] if is_free and output.kind == "label" else []
    if not own and (is_free or choices.classes is not None):
        names += [output.name, *([f"in {output.unit}"] if output.unit else []), *map(str, output.classes or ())]
    return [Reason("named_by_maker", stated=", ".join(dict.fromkeys(names)))] if names else []


def _plain(value: Any) -> Any:
    """Return an instance as JSON held it, because records freeze lists."""
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _as_json(instance: Any) -> str:
    return json.dumps(_plain(tuple(instance) if isinstance(instance, list) else instance), default=str)


# Two records of the same case, figure by figure


def differences(stated: Reproduced | Reasons, found: Reproduced | Reasons) -> Iterator[Reason]:
    """Yield every figure that differs, by its place in the JSON; numbers that were computed up to rounding."""
    ours, own, allowed = leaves_of(stated.to_json()), leaves_of(found.to_json()), _rounding_of(found)
    for where in sorted((ours.keys() | own.keys()) - {"model"}):  # what identifies the model is judged by itself
        one, other = ours.get(where), own.get(where)
        if where not in ours or where not in own or not _is_equal(one, other, allowed(where)):
            yield Reason("differs", where, one, other)


def _rounding_of(found: Reproduced | Reasons) -> Callable[[str], float | None]:
    """Return by how much rounding may change a figure whatever its size, by its place; None: not at all.

    That depends on the largest output and the largest difference of outputs, as the verifier finds them.
    """
    outputs, drops, left_open = [found.prediction], [0.0], 0.0
    if isinstance(found, Reasons):
        drops += [each.value for each in found.shortfalls]
    elif isinstance(found, Explanation):
        outputs += [found.base]
        drops += [*found.effects.tolist(), *([] if found.fit is None else [found.fit.baseline])]
        left_open = _LEFT_OPEN * found.proof.variance
    drop = max(map(abs, drops))
    of_drops = ROUNDING * drop + _LAST_BITS * max(map(abs, outputs))

    def allowed(where: str) -> float | None:
        if not _COMPUTED.search(where):
            return None
        if _SQUARED.search(where):
            return max(of_drops * drop, left_open if where == "proof.lower_bound" else 0.0)
        return of_drops if _IN_OUTPUT_UNITS.search(where) else ROUNDING

    return allowed


def _is_equal(stated: Any, found: Any, allowed: float | None = 0.0) -> bool:
    """Return whether two values are equal, floats up to rounding; 1 is not 1.0, which is printed differently."""
    if allowed is not None and isinstance(stated, float) and isinstance(found, float):
        return math.isclose(stated, found, rel_tol=ROUNDING, abs_tol=allowed)
    return type(stated) is type(found) and bool(stated == found)


def leaves_of(text: str) -> dict[str, Any]:
    """Return every figure of a record by its place: ``{"facts[0].low": 21.5, ...}``.

    Examples
    --------
    >>> leaves_of('{"holds": {"value": 0.9}, "effects": [1.5], "sha256": "0"}')
    {'holds.value': 0.9, 'effects[0]': 1.5}
    """
    return {where: value for where, value in _flat("", json.loads(text)) if not _NO_FIGURE.search(where)}


def _flat(where: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, below in value.items():
            key = name if name.isidentifier() else json.dumps(name)  # no other key looks like a place in a list
            yield from _flat(f"{where}.{key}" if where else key, below)
    elif isinstance(value, list) and value:
        for place, below in enumerate(value):
            yield from _flat(f"{where}[{place}]", below)
    else:
        yield where, value


# Fresh neighbors


def measure_afresh(stated: Explanation | Rule, case: Case) -> Fresh:
    """Measure what a record states about its facts, with the seed and the confidence of the case."""
    looks = _looks_at_rule(stated, case) if isinstance(stated, Rule) else _looks_at_sum(stated, case)
    for fresh in looks:
        if all(reason.code != "not_confirmed" for reason in doubts(stated, fresh.figures)):
            break
    return fresh


def _looks_at_sum(stated: Explanation, case: Case) -> Iterator[Fresh]:
    """Yield what is known about the facts and effects of an explanation after every look."""
    facts = candidates_of(case.neighborhood, stated.facts)
    broken = case.neighborhood.candidates.broken(case.replace_probability)[facts]
    measured = begin(case, stated.effects, broken, stated.output.spread)
    for batch, n in enumerate(LOOKS):
        measured = ask_round(case, measured, _round(stated, n), batch, facts, stated.effects)
        yield Fresh(figures_of(measured), measured.verdict, measured.n_queries)


def _looks_at_rule(stated: Rule, case: Case) -> Iterator[Fresh]:
    """Yield what is known about the facts of a rule after every look."""
    facts, case = candidates_of(case.neighborhood, stated.facts), replace(case, within=stated.within)
    target, of_all = stated.settings["holds"], failures_of_all(case.settings.confidence)
    law = None if stated.holds_law is None else Count()
    everything = Certificate(Count(), None, of_all, target)
    certificate = Certificate(Count(), law, failures_of(case.settings.confidence, 0), target)
    for batch, n in enumerate(LOOKS):
        answers = ask_streams(case, _round(stated, n), batch, facts, None)
        of_law, drawn, unbroken = (each.decisions for each in answers)
        everything = replace(everything, drawn=everything.drawn.added(of_law))
        certificate = replace(
            certificate,
            drawn=certificate.drawn.added(drawn),
            law=None if certificate.law is None else certificate.law.added(unbroken),
        )
        shares = {
            "holds_drawn": certificate.drawn.share(certificate.failures),
            "holds_law": None if certificate.law is None else certificate.law.share(certificate.failures),
            "all": everything.drawn.share(of_all),
        }
        verdict = certificate.verdict if facts else everything.verdict
        n_queries = sum(count.n for count in (*certificate.counts, everything.drawn))
        yield Fresh({name: share for name, share in shares.items() if share is not None}, verdict, n_queries)


def _round(stated: Explanation | Rule, n: int) -> Round:
    """Return a round of n neighbors, in equal parts for all shares that are stated."""
    names = {"law": True, "facts": stated.holds_drawn is not None, "unbroken": stated.holds_law is not None}
    streams = [name for name, is_stated in names.items() if is_stated]
    return Round(**{name: n // len(streams) for name in streams})


def candidates_of(neighborhood: Neighborhood, facts: Sequence[Fact]) -> list[int]:
    """Return the numbers of the candidates that state these facts."""
    found = []
    for fact in facts:
        own = np.flatnonzero(neighborhood.candidates.groups == neighborhood.names.index(fact.attribute)).tolist()
        same = [j for j in own if neighborhood.fact(j) == fact]
        if not same:
            raise ParameterError(f"No fact about {fact.attribute!r} that is true of the row is {fact!r}.")
        found.append(same[0])
    return found


def figures_of(result: Explanation | Measurement | Rule) -> Figures:
    """Return the shares and the fit that are there, by name."""
    figures = {
        "holds_drawn": result.holds_drawn,
        "holds_law": result.holds_law,
        "all": result.all,
        "fit": None if isinstance(result, Rule) else result.fit,
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def doubts(stated: Explanation | Rule, fresh: Figures) -> list[Reason]:
    """Return the figures that fresh neighbors contradict; if there are none, those that they do not confirm."""
    contradicted, unconfirmed = [], []
    for name, ours in figures_of(stated).items():
        own = fresh.get(name)
        if own is None:
            continue
        is_always = stated.verdict is RuleVerdict.ALWAYS and (name != "all" or not stated.facts)
        if is_always and isinstance(own, Share) and own.value < 1:
            contradicted.append(Reason("counterexample", name, ours, own))
        elif ours.is_exact:
            continue
        elif own.high < ours.low or own.low > ours.high:
            contradicted.append(Reason("contradicted", name, ours, own))
        elif own.low < ours.low - MARGIN or own.high > ours.high + MARGIN:
            unconfirmed.append(Reason("not_confirmed", name, ours, own))
    return contradicted or unconfirmed


# Changes


def verify_changes(
    changes: Changes, explainer: Explainer, instance: Any, seed: int, check: Check = None
) -> Verification:
    """Return whether stated changes hold for the model and the space of an explainer.

    The model is asked about every example. Then the search is repeated with the recorded settings, and every
    figure is compared. A cost function is not recorded, so that the search cannot be repeated where one was used;
    nor can it if leaves of trees decided that the model does not show. Then nobody can tell, unless a figure
    differs that depends on neither, or a smaller change turns than is said to be proven. Shares that were
    estimated from draws are measured on more and fresh draws, from ``seed``, because a maker may try many seeds.
    """
    wrong = list(_wrong_answers(changes, explainer, instance, check))
    if wrong:
        return Verification(Outcome.DOES_NOT_HOLD, tuple(wrong))
    settings = ChangeSettings.from_dict(changes.settings)
    found = explainer.changes_with(instance, settings, check)
    lacks_trees = explainer.trees.deciding(explainer.target) is None and any(e.by_leaves for e in changes.levels)
    if lacks_trees or changes.settings["cost"] == "function":
        wrong = list(_impossible(changes, found))
        excuse = _unknown("no_trees" if lacks_trees else "cost_function")
        return Verification(Outcome.DOES_NOT_HOLD, tuple(wrong)) if wrong else excuse
    wrong = list(_differences(changes, found))
    if not wrong and any(option.share is not None and not option.share.is_exact for option in changes):
        own = replace(settings.measuring(LOOKS[0]), seed=seed, confidence=CONFIDENCE)
        fresh = explainer.changes_with(instance, own, check)
        wrong = list(_contradicted(changes, fresh))
    if wrong:
        return Verification(Outcome.DOES_NOT_HOLD, tuple(wrong))
    turned = Reason("turned", stated=len(changes)) if len(changes) else Reason("nothing_turns")
    return Verification(Outcome.HOLDS, (Reason("repeated"), turned))


def _wrong_answers(changes: Changes, explainer: Explainer, instance: Any, check: Check) -> Iterator[Reason]:
    """Yield what is not as stated when the model is asked about the instance and its examples, one by one."""
    space = explainer.space
    predictor = explainer.predictor().open(space.at(instance).original)
    asked = None if predictor.is_label else predictor.prediction, predictor.output.decision
    stated = changes.prediction, changes.output.decision
    for where, ours, own in zip(("prediction", "output.decision"), stated, asked, strict=True):
        if not _is_equal(ours, own):
            yield Reason("other_model", where, ours, own)
            return
    for place, option in enumerate(changes):
        if check is not None:
            check()
        example = _example(changes, place, space, instance)
        # The output is that of the instance's class, the decision is the example's own.
        output = None if predictor.is_label else float(predictor.answer(example, 1).outputs[0])
        decision = explainer.predictor().open(example).output.decision
        is_decided = option.decision is not None and changes.output.threshold is None
        if not _is_equal(option.output, output) or (is_decided and decision != option.decision):
            yield Reason("other_example", str(place + 1))


def _example(changes: Changes, place: int, space: Space, instance: Any) -> Any:
    """Return the model's input of an example: another row, or the instance without some words or regions."""
    case = changeable(space.at(instance))
    if isinstance(case, ChangeableParts):
        names = [choice.name for choice in case.choices]
        moved = np.array([[names.index(move.attribute) for move in changes[place].moves]], dtype=np.intp)
        return case.realize(moved, np.zeros_like(moved))
    row = changes.changed(place)
    return space.at([row[name] for name in changes.columns]).original


def _differences(changes: Changes, again: Changes) -> Iterator[Reason]:
    """Yield the figures that differ; ``output.choices`` are repeated, not computed."""
    stated, found = json.loads(changes.to_json()), json.loads(again.to_json())
    for name in sorted(stated.keys() - {"sha256", "versions"}):
        for reason in _unlike(stated[name], found[name], name):
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


def _unlike(stated: Any, found: Any, where: str) -> Iterator[Reason]:
    """Yield the places in which two values of JSON differ, numbers by more than rounding."""
    if isinstance(stated, dict) and isinstance(found, dict) and stated.keys() == found.keys():
        for name in stated:
            yield from _unlike(stated[name], found[name], f"{where}.{name}")
    elif isinstance(stated, list) and isinstance(found, list) and len(stated) == len(found):
        for place, (ours, own) in enumerate(zip(stated, found, strict=True)):
            yield from _unlike(ours, own, f"{where}[{place}]")
    elif not _is_equal(stated, found):
        yield Reason("differs", where, stated, found)


# Reasons


def verify_reasons(claimed: Reasons, explainer: Explainer, instance: Any, seed: int, check: Check) -> Verification:
    """Find the reasons again with the recorded settings, and compare the shortfalls with those of fresh copies."""
    settings = ReasonSettings.from_dict(claimed.settings)
    explainer.table_answers(ask=settings.common.is_auto)

    def again() -> str:
        return explainer.reasons_with(instance, settings, check).to_json()

    def doubts_of() -> list[Reason]:
        own = replace(settings, seed=seed, confidence=CONFIDENCE)
        return list(_reason_doubts(claimed, explainer.reasons_with(instance, own, check)))

    found = Reasons.from_json(again())
    if found.source != claimed.source and "leaves" in (found.source, claimed.source):
        if claimed.source == "leaves":
            wrong = doubts_of()
            return Verification(Outcome.DOES_NOT_HOLD, tuple(wrong)) if wrong else _unknown("no_leaves")
        explainer = explainer.without_trees()  # it was made from a mere function
        found = Reasons.from_json(again())
    wrong = list(differences(claimed, found))
    if wrong:
        return _if_steady(again, *wrong)
    if claimed.source == "drawn" and (wrong := doubts_of()):
        return Verification(Outcome.DOES_NOT_HOLD, tuple(wrong))
    if claimed.model is not None and claimed.model != explainer.digest:
        return Verification(Outcome.CANNOT_TELL, (Reason("other_digest", stated=claimed.model),))
    notes = [Reason("repeated"), *([Reason("agreed")] if claimed.source == "drawn" else [])]
    notes += [Reason("no_digest")] if claimed.model is None else []
    notes += [Reason("codes_by_maker", stated=claimed.codes_sha256)] if settings.codes else []
    notes += [Reason("time_by_maker", stated=settings.time)] if settings.time else []
    return Verification(Outcome.HOLDS, (*notes, *_named_by_maker(claimed.output, explainer.model)))


def _reason_doubts(stated: Reasons, fresh: Reasons) -> Iterator[Reason]:
    """Yield what fresh copies contradict: limits of a shortfall without a common number, and reasons left out."""
    for ours in stated.shortfalls:
        own = fresh.shortfall(ours.attribute)
        if own.high < ours.low or own.low > ours.high:
            yield Reason("contradicted", f"the shortfall of {ours.attribute}", ours, own)
    known = {*(reason.attribute for reason in stated), *stated.near_ties}
    for reason in fresh:
        if reason.attribute not in {*known, *fresh.near_ties}:
            yield Reason("not_chosen", reason.attribute)
