"""The steps of a verification, from the text to the answer."""

import json
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from anchorline.changes.result import Changes
from anchorline.changes.verify import verify_changes
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
from anchorline.model.outputs import classes_of, plain_label
from anchorline.model.predictor import Predictor, Questions
from anchorline.optimize.choose import TIE, best_sum
from anchorline.optimize.moments import Moments
from anchorline.optimize.sums import Limits, Solution, Status, fit
from anchorline.result.explanation import Explanation, Output
from anchorline.result.rule import Rule
from anchorline.result.verification import Outcome, Reason, Verification
from anchorline.rules.assemble import tolerance
from anchorline.search.case import Case
from anchorline.search.sources import Choose
from anchorline.settings import RuleSettings, Settings
from anchorline.spaces.base import Neighborhood, Space
from anchorline.spaces.table import as_space
from anchorline.verify.compare import ROUNDING, Reproduced, differences, leaves_of
from anchorline.verify.fresh import CONFIDENCE, candidates_of, doubts, figures_of, measure_afresh

_SINGLE = 1e-5  # answers in single precision may differ by this, because the row was asked about among others
_SUBJECTS: dict[type, str] = {Explanation: "explanation", Rule: "rule", Changes: "list of changes"}
# What settings that nobody could have chosen may lead to.
_NOT_COMPUTED = (AnchorlineError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_KINDS: dict[Any, type[Rule | Changes]] = {"rule": Rule, "changes": Changes}


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
        return _refuted("tampered", detail=str(error))
    except FormatError as error:
        return _unknown("unreadable", detail=str(error))
    try:
        answer = _verify(claimed, model, space, instance, secrets.randbits(62) if seed is None else seed, check)
    except PredictorError as error:
        answer = _unknown("model_failed", detail=str(error))
    except InstanceNeededError as error:
        answer = _unknown("instance_needed", detail=str(error))
    except _NOT_COMPUTED as error:
        answer = _refuted("not_computed", detail=str(error))
    return replace(answer, subject=_SUBJECTS[type(claimed)])


def _check_arguments(record: Any, model: Any) -> None:
    """Raise `ParameterError` if the arguments are swapped, or if the first is not a result."""
    results = str | Explanation | Rule | Changes
    if isinstance(record, results) and not isinstance(model, results):
        return
    raise ParameterError(
        f"The first argument is of type {type(record).__name__}, and the second of type {type(model).__name__}; "
        "first comes an Explanation, a Rule, Changes, or their JSON as a text, and then the model. Type "
        "verify(explanation, model, table), or verify(pathlib.Path(file).read_text(), model, table)."
    )


def read_result(text: str) -> Explanation | Rule | Changes:
    """Read the JSON of any result that can be verified; the errors are those of `Explanation.from_json`."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"The text is not JSON: {error}") from error
    kind = body.get("kind") if isinstance(body, dict) else None
    return (_KINDS.get(kind, Explanation) if isinstance(kind, str) else Explanation).from_json(text)


def _refuted(code: str, stated: Any = None, found: Any = None, detail: str = "") -> Verification:
    return Verification(Outcome.DOES_NOT_HOLD, (Reason(code, "", stated, found, detail),))


def _unknown(code: str, detail: str = "") -> Verification:
    return Verification(Outcome.CANNOT_TELL, (Reason(code, detail=detail),))


def _verify(
    claimed: Reproduced | Changes, model: Any, space: Space, instance: Any, seed: int, check: Check
) -> Verification:
    own, stated = classes_of(model), claimed.output.choices.classes
    if own is not None and stated is not None and [plain_label(label) for label in own] != list(stated):
        return _refuted("other_classes", list(stated), own)
    explainer = explainer_of(claimed.output, model, space)
    if explainer.space.fingerprint != claimed.space["fingerprint"]:
        return _refuted("other_space")
    if instance is None:
        instance = _plain(claimed.instance)
    elif _as_json(explainer.space.at(instance).instance) != _as_json(claimed.instance):
        return _refuted("other_instance")
    if isinstance(claimed, Changes):
        trees = explainer.trees.deciding(explainer.target)
        answer = verify_changes(claimed, explainer.space, explainer.predictor, seed, trees, instance, check)
        named = _named_by_maker(claimed.output, model) if answer.outcome is Outcome.HOLDS else []
        return replace(answer, reasons=(*answer.reasons, *named))
    return _verify_figures(claimed, explainer, instance, seed, check)


def _verify_figures(
    claimed: Reproduced, explainer: Explainer, instance: Any, seed: int, check: Check
) -> Verification:
    n_attributes = len(explainer.space.at(instance).names)
    lacks_columns = explainer.columns.positions is None and claimed.space["n_attributes"] < n_attributes
    if lacks_columns:  # even if nobody can tell whether the model reads them, all else must be as stated
        explainer = explainer_of(claimed.output, explainer.model, explainer.space.holding(claimed.space["held"]))
    settings = _settings_of(claimed)
    settings = settings.common if isinstance(settings, RuleSettings) else settings
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
    return Explainer(
        model,
        space,
        output=tuple(choices.output) if pair else choices.output,
        output_scale=choices.output_scale,
        task=choices.task,
        classes=None if has_own else choices.classes,
        threshold=output.threshold,
        output_range=choices.output_range,
        input=choices.input,
    )


def _opened(explainer: Explainer, instance: Any, settings: Settings, check: Check) -> Case:
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
        differing = differences(claimed, again)
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
