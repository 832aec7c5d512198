"""Explainer: what people type."""

import copy
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, Unpack

from anchorline.changes.find import find_changes
from anchorline.changes.result import Changes
from anchorline.changes.settings import ChangeKeywords, ChangeSettings
from anchorline.errors import CacheError, ParameterError, SetupWarning, names_similar_keywords
from anchorline.model.cache import AnswerCache, fingerprint
from anchorline.model.features import match_columns
from anchorline.model.outputs import (
    Target,
    checked_range,
    checked_threshold,
    classes_of,
    resolve,
    scores_only,
    tells_labels_later,
)
from anchorline.model.predictor import Predictor, Questions
from anchorline.optimize.choose import best_sum
from anchorline.reasons.find import find_reasons, near, require
from anchorline.reasons.use import find_use
from anchorline.result.codes import Codes
from anchorline.result.explanation import Explanation
from anchorline.result.explanations import Explanations
from anchorline.result.frontier import Frontier
from anchorline.result.reasons import Reasons, Use
from anchorline.result.rule import Rule
from anchorline.rules.assemble import rule_of
from anchorline.search.assemble import altered_copies, assemble, assemble_frontier
from anchorline.search.case import Case
from anchorline.search.sources import Choose, Cost, Search, Source, estimate_cost, source_of
from anchorline.search.table import ADVICE, TableAnswers, check_answers, check_setup
from anchorline.search.trees import ModelTrees
from anchorline.settings import (
    FEWEST_QUERIES,
    Drawing,
    DrawingKeywords,
    ExplainKeywords,
    ReasonKeywords,
    ReasonSettings,
    RuleKeywords,
    RuleSettings,
    Settings,
    checked_count,
    checked_ks,
    plain_number,
    shows_keywords,
)
from anchorline.spaces.base import Finding, Neighborhood, Space
from anchorline.spaces.table import Table, as_space, check_order

Check = Callable[[], object] | None  # is called in every loop, and may raise to interrupt
_GONE = {
    "column": "output= takes the name of a class or its number.",
    "same_within": "A number counts as the same within 2% of the spread on the table. Leave it out.",
    "training_mean": "The mean output of altered copies is `e.fit.mean_output`. Leave it out.",
}
_LACKING = (
    "Explainer() needs a model and the table that it was trained on, or a space such as Text(). Type "
    "Explainer(model, table)."
)


class Explainer:
    """A model and the space that its instances live in. The constructor asks the model nothing.

    Parameters
    ----------
    model
        A fitted estimator, or a callable on model inputs of n rows that returns n numbers, n labels, or (n, c)
        scores of c classes.
    space
        The kind of instance: `Table`, `Text`, `Image`, `Signal` or `Hypercube`. A bare training frame is taken as
        ``Table(frame)``.
    output
        The class to explain, by its label or number; by default the class that the model names. If the answers are
        not classes, the name of the output, with its unit: "price [USD]". A pair of labels stands for the
        difference of their scores.
    output_scale
        "margin" explains a classifier's margins, such as log-odds, instead of probabilities.
    task
        "label" explains why the predicted label is what it is; "number" declares that integers are numbers.
    classes
        Labels of the columns of a callable's answers; an estimator provides its own.
    threshold
        The decision is "output >= threshold"; by default, for classes, the class that the model names.
    output_range
        Lowest and highest output, if they are known. Then the limits of R2 are exact.
    input
        "array" passes 2-D arrays, "frame" the table's own type, "auto" what the model was fitted on.
    cache
        A file, or an `AnswerCache`, in which answers are kept, so that nothing is asked twice.

    Examples
    --------
    >>> from anchorline.spaces.hypercube import Hypercube
    >>> rate = lambda z: 0.3 * z[:, 0] - 0.2 * z[:, 1] * z[:, 2]
    >>> explainer = Explainer(rate, Hypercube(["income", "debt", "owner", "citizen"]), output="rate")
    >>> e = explainer.explain([1, -1, 1, 1], sigma=0)
    >>> [fact.attribute for fact in e.facts], e.contributions.round(9).tolist()
    (['income'], [0.4])
    """

    @names_similar_keywords("Explainer", _GONE, _LACKING)
    def __init__(
        self,
        model: Any,
        space: Any,
        *,
        output: Any = None,
        output_scale: Literal["margin", "probability"] | None = None,
        task: Literal["label", "number"] | None = None,
        classes: Sequence[Any] | None = None,
        threshold: float | None = None,
        output_range: tuple[float, float] | None = None,
        input: Literal["auto", "array", "frame"] = "auto",
        cache: Any = None,
    ) -> None:
        check_order(model, space)
        self.model = model
        self._space: Space = as_space(space)
        is_contrast = threshold is None and isinstance(output, list | tuple)
        self.threshold = 0.0 if is_contrast else checked_threshold(threshold)
        self.output_range = None if output_range is None else checked_range(output_range)
        self.cache = AnswerCache.of(cache)
        self.columns = match_columns(model, self._space.names)
        if self.columns.ignored:
            self._space = self._space.holding(self.columns.ignored)
        self._choices: dict[str, Any] = {"output": output, "task": task, "classes": classes, "input": input}
        self._choices |= {"output_scale": output_scale, "own_decision": threshold is None}
        target = self._resolved()
        classes_come_with_answers = classes is None and tells_labels_later(model)
        self._target = None if classes_come_with_answers and self._space.names else target
        self._shows_trees = True
        self._tables: dict[Any, tuple[Any, Table]] = {}  # with other references, of `reasons`
        self._others: dict[Any, Explainer] = {}  # over these tables
        self._answers: TableAnswers | None = None
        self._is_asked = False
        self._found: tuple[Finding, ...] | None = None
        self._warned: set[Finding] = set()

    def __repr__(self) -> str:
        return f"Explainer({self._model_name}, {self._space!r})"

    def _repr_html_(self) -> str:
        from anchorline.render.report import explainer_view

        return explainer_view(self._model_name, self._space)  # the space as it is known, without a question

    @property
    def _model_name(self) -> str:
        return str(getattr(self.model, "__qualname__", None) or type(self.model).__name__)

    @property
    def space(self) -> Space:
        """The space; a table whose reference is "near" gets it from the answers about its rows, at first use."""
        if self._space.awaits_near:
            self._space = self._near("below")
        return self._space

    def _near(self, adverse: str) -> Table:
        answers = self.table_answers()
        assert isinstance(self._space, Table)
        assert answers is not None  # a table has rows
        return near(self._space, answers, self.predictor(), self.threshold, adverse)

    @cached_property
    def trees(self) -> ModelTrees:
        """The trees of the model on the table, which are read at first use."""
        return ModelTrees(self.model if self._shows_trees else None, self.columns, self.space)

    def _with(self, **changes: Any) -> "Explainer":
        """Return a copy whose answers, space or trees differ; what depends on them is made again."""
        other = copy.copy(self)
        other.__dict__.pop("trees", None)
        other.__dict__.update(_others={}, **changes)
        return other

    @property
    def target(self) -> Target:
        """Which of the model's numbers is explained; some models are asked about one row for their labels."""
        if self._target is None:
            inputs, cache = self._space.at(0).original, self.cache
            labels = self.model.classes_for(inputs) if cache is None else cache.classes_of(self.model, inputs)
            self._target = self._resolved(classes=labels)
        return self._target

    def _resolved(self, **changes: Any) -> Target:
        """Return what to ask the model, which gets its own columns of the table."""
        target = resolve(self.model, **self._choices | changes)
        ask = target.ask if self.cache is None else self.cache.wrapping(self.model, target)
        return replace(target, ask=self.columns.selecting(ask))

    @shows_keywords(Settings)
    def explain(self, instance: Any, *, check: Check = None, **keywords: Unpack[ExplainKeywords]) -> Explanation:
        """Explain one prediction as a sum of at most ``k`` facts.

        ``check`` is called in every loop, and may raise to interrupt.
        """
        explanation = self.explain_with(instance, Settings.from_keywords("explain", **keywords), check)
        self.warn()
        return explanation

    def explain_with(
        self, instance: Any, settings: Settings, check: Check = None, choose: Choose = best_sum
    ) -> Explanation:
        """Explain one prediction with given settings, without warnings; ``choose`` says which sum is stated."""
        return self.explain_source(instance, settings, check, choose)[0]

    def explain_source(
        self, instance: Any, settings: Settings, check: Check = None, choose: Choose = best_sum
    ) -> tuple[Explanation, Source, Search]:
        """Explain one prediction as `explain_with`, and return where it comes from and what was found, too."""
        case, answers = self.case(instance, settings, check), self._answers_for(settings)
        source = self.source(case)
        search = source.search(choose)
        measured = source.measure(search, None if answers is None else answers.extent(case.predictor)[2])
        return assemble(source, search, measured, self.space, answers, self.findings), source, search

    def source(self, case: Case) -> Source:
        """Return where the moments of a case come from; the model is asked about the instance."""
        answers = self._answers_for(case.settings)
        if answers is None:  # the first question shows whether the model works; one row is enough for that
            case.predictor.open(case.neighborhood.original)
        return source_of(case, self.trees.moments(case, answers))

    def case(self, instance: Any, settings: Drawing, check: Check = None) -> Case:
        """Return the case of an instance, which is not asked about yet."""
        neighborhood = instance if isinstance(instance, Neighborhood) else self.space.at(instance)
        if not neighborhood.can_change:
            raise ParameterError(
                "Every altered copy would equal the row, because each column is fixed, is not read by the model, "
                "or has the row's value in the whole table. At least one must be able to change. Type a shorter "
                "fixed=[...], or pass a table with more rows."
            )
        answers = self._answers_for(settings)
        rule = None if answers is None else answers.rule
        questions = Questions(self.target, rule, settings.most_queries)
        predictor = Predictor(questions, self.threshold, self.output_range)
        k = self.space.default_k if settings.k is None else settings.k
        return Case(neighborhood, predictor, settings, k, check)

    def _answers_for(self, settings: Drawing) -> TableAnswers | None:
        """Return the answers about the table; with a number of queries none, even if they are known.

        Otherwise the bytes of an explanation would depend on what was explained before.
        """
        return self.table_answers() if settings.is_auto else None

    def table_answers(self, *, ask: bool = True) -> TableAnswers | None:
        """Return the model's answers about the table, which are asked for once; None if they are not there."""
        if ask and not self._is_asked:
            self._answers, self._is_asked = TableAnswers.ask(self._space, self.target), True
            self._found = None
        return self._answers

    def take_answers(self, answers: TableAnswers) -> None:
        """Take answers about the table that another process asked for."""
        self._answers, self._is_asked, self._found = answers, True, None

    @shows_keywords(Settings)
    def cost(self, instance: Any, **keywords: Unpack[ExplainKeywords]) -> Cost:
        """Return how many queries `explain` takes at most, and about how long; asks one query to find out."""
        return estimate_cost(self.case(instance, Settings.from_keywords("cost", **keywords)))

    @shows_keywords(Settings)
    def frontier(
        self, instance: Any, ks: Sequence[int] = range(1, 9), **keywords: Unpack[ExplainKeywords]
    ) -> Frontier:
        """Return the best sum of at most k facts for every k in ``ks``, all from one search: what each fact gains.

        Examples
        --------
        >>> from anchorline.spaces.hypercube import Hypercube
        >>> explainer = Explainer(lambda z: 0.5 * z[:, 0] + 0.2 * z[:, 1], Hypercube())
        >>> [round(r2, 3) for r2 in explainer.frontier([1, 1, 1], ks=[1, 2]).r2]
        [0.892, 1.0]
        """
        ks = checked_ks(ks)
        settings = Settings.from_keywords("frontier", **{"k": ks[-1], **keywords})
        case = self.case(instance, settings)
        found = assemble_frontier(case, self.source(case).search(), self.space, ks)
        self.warn()
        return found

    def copies(self, instance: Any, n: int = 1000, **keywords: Unpack[DrawingKeywords]) -> Any:
        """Return a frame of ``n`` altered copies of an instance, with the model's outputs; takes n + 1 queries.

        ``sigma`` and ``seed`` are those of `explain`.
        """
        n = plain_number(n)
        checked_count("n", n, 1, "n=1000")
        settings = Settings.from_keywords("copies", **keywords)
        case = self.case(instance, replace(settings, queries=max(FEWEST_QUERIES, 2 * (n + 1))))
        case.predictor.open(case.neighborhood.original)
        return altered_copies(case, self.space, n)

    @shows_keywords(ChangeSettings)
    def changes(
        self,
        instance: Any,
        target: Any = None,
        n: int = 3,
        *,
        check: Check = None,
        **keywords: Unpack[ChangeKeywords],
    ) -> Changes:
        """Return up to ``n`` changes of few facts that turn the decision.

        ``target`` is the wanted class or label, a limit (">= 300") or a move ("+50") of the output; None for
        another decision.

        Examples
        --------
        >>> from anchorline.spaces.hypercube import Hypercube
        >>> vote = lambda z: (z[:, :3].sum(axis=1) > 0) * 2 - 1
        >>> print(Explainer(vote, Hypercube(["a", "b", "c", "d"])).changes([1, 1, -1, 1], n=1))
        The model's decision becomes class -1 with one change: a = -1 instead of +1.
        """
        found = self.changes_with(
            instance, ChangeSettings.from_keywords("changes", target=target, n=n, **keywords), check
        )
        self.warn()
        return found

    def changes_with(self, instance: Any, settings: ChangeSettings, check: Check = None) -> Changes:
        """Return changes with given settings, without warnings."""
        predictor, trees = self.predictor(settings.queries), self.trees.deciding(self.target)
        return find_changes(self.space, predictor, instance, settings, trees, check)

    @shows_keywords(RuleSettings)
    def rule(self, instance: Any, *, check: Check = None, **keywords: Unpack[RuleKeywords]) -> Rule:
        """Return the fewest facts, as wide as possible, that keep the decision.

        ``check`` is called in every loop, and may raise to interrupt.

        Examples
        --------
        >>> from anchorline.spaces.hypercube import Hypercube
        >>> vote = lambda z: (z[:, :3].sum(axis=1) > 0) * 2 - 1
        >>> rule = Explainer(vote, Hypercube(["a", "b", "c", "d"])).rule([1, 1, -1, 1])
        >>> [fact.attribute for fact in rule.facts], rule.holds.value, rule.is_proven
        (['a', 'b'], 1.0, True)
        """
        rule = self.rule_with(instance, RuleSettings.from_keywords("rule", **keywords), check)
        self.warn()
        return rule

    def rule_with(self, instance: Any, settings: RuleSettings, check: Check = None) -> Rule:
        """Return a rule with given settings, without warnings."""
        case = self.case(instance, settings, check)
        case.predictor.open(case.neighborhood.original)
        return rule_of(case, self.space, settings, self._answers_for(settings), self.trees)

    @shows_keywords(ReasonSettings)
    def reasons(
        self,
        instance: Any,
        *,
        codes: Any = None,
        reference: Any = None,
        check: Check = None,
        **keywords: Unpack[ReasonKeywords],
    ) -> Reasons:
        """Return the main reasons for an adverse decision, for a letter; see docs/reasons.md.

        ``codes`` maps attributes to codes and texts: a mapping, a frame, or a CSV or JSON file. ``reference`` are
        the rows that the case is compared with: a frame, "all" of the table, or "near" (those at the threshold or
        slightly beyond it); by default those from which the table draws. Shortfalls are in units of the output:
        for scorecards and logistic models, ``output_scale="margin"`` gives the reasons of their own points.

        Examples
        --------
        >>> import numpy as np
        >>> from anchorline.spaces.table import Table
        >>> rows = np.array([[income, debt] for income in range(10) for debt in range(10)])
        >>> table = Table(rows, names=["income", "debt"])
        >>> explainer = Explainer(lambda rows: rows[:, 0] - 2.0 * rows[:, 1], table, output="points", threshold=-9)
        >>> codes = {"income": ("R1", "Income too low"), "debt": ("R2", "Debt too high")}
        >>> explainer.reasons([1, 9], codes=codes, reference="near").letter()
        ['Debt too high', 'Income too low']
        """
        settings = self.reason_settings(codes=codes, reference=reference, **keywords)
        found = self.referring_to(reference, settings).reasons_with(instance, settings, check)
        self.warn()
        return found

    def reason_settings(self, *, codes: Any = None, reference: Any = None, **keywords: Any) -> ReasonSettings:
        """Return the settings of a call of `reasons`; a frame is the reference of a table of its own."""
        if reference is None and self._space.reference == "near":
            reference = "near"
        kind = reference if isinstance(reference, str) else "table"
        return ReasonSettings.from_keywords("reasons", codes=Codes.of(codes).entries, reference=kind, **keywords)

    def referring_to(self, reference: Any, settings: ReasonSettings) -> "Explainer":
        """Return the explainer whose table draws from this reference; it is made once."""
        if self.threshold is None and self.target.task == "label":
            raise ParameterError(
                "Reasons need a score and a threshold, but the model returns labels. Pass a model with "
                "`predict_proba`, or a function that returns scores, and threshold=0.5."
            )
        classes = self._choices["classes"] or classes_of(self.model)
        table = require(self._space, self.threshold, classes, settings, self.columns.ignored)
        reference = settings.reference if settings.reference != "table" else reference
        if reference is None:
            return self
        is_near = isinstance(reference, str) and reference == "near"
        key = settings.adverse if is_near else reference if isinstance(reference, str) else id(reference)
        if key not in self._tables:
            drawing = self._near(settings.adverse) if is_near else table.drawing_from(reference)
            self._tables[key] = reference, drawing  # with the reference, whose id is then not given again
        if key not in self._others:
            self._others[key] = self.over(self._tables[key][1])
        return self._others[key]

    def reasons_with(self, instance: Any, settings: ReasonSettings, check: Check = None) -> Reasons:
        """Return the reasons with given settings, compared with this explainer's own table, without warnings."""
        case, answers = self.case(instance, settings.common, check), self._answers_for(settings.common)
        return find_reasons(case, settings, lambda: self.trees.gains(case, answers), self.digest)

    @cached_property
    def digest(self) -> str | None:
        """What identifies the content of a fitted model, as in `AnswerCache`; None if nothing can."""
        try:
            return fingerprint(getattr(self.model, "counted_model", self.model))
        except CacheError:
            return None

    def check_use(self, attribute: str, *, queries: int = 1_000_000) -> Use:
        """Return which decisions in the table some value of an attribute changes; see `anchorline.check_use`."""
        return find_use(self._space, self.target, self.threshold, self.trees, attribute, queries)

    def predictor(self, limit: float = math.inf) -> Predictor:
        """Return the model with a limit of answers; nothing is asked yet."""
        return Predictor(Questions(self.target, None, limit), self.threshold, self.output_range)

    @shows_keywords(Settings)
    def explain_many(
        self,
        frame: Any,
        *,
        n_jobs: int = 1,
        progress: Callable[[Any], None] | bool | None = None,
        errors: Literal["raise", "keep"] = "raise",
        row_timeout: float | None = None,
        share_calls: bool = False,
        id: str | None = None,
        changes: bool = False,
        rule: bool | Mapping[str, Any] = False,
        reasons: Any = None,
        **keywords: Unpack[ExplainKeywords],
    ) -> Explanations:
        """Explain every row of a frame, array or list in ``n_jobs`` processes (-1: all cores); docs/production.md.

        With ``errors="keep"``, a row that fails, or takes more than ``row_timeout`` seconds, becomes a `Failure`.
        ``progress`` is True or a function of `Progress`. ``share_calls`` allows rows to be mixed in one call of
        the model. ``id`` names a column that identifies the rows. ``rule=True`` finds the rule of every row,
        too, and keywords of `rule` (``rule=dict(holds=0.9)``) say how; ``changes=True`` finds what would turn it.
        ``reasons`` takes codes, or keywords of `reasons`, and adds the reasons of every adverse decision.
        """
        from anchorline.batch.local import explain_many

        plan = {"n_jobs": n_jobs, "row_timeout": row_timeout}
        work = {"share_calls": share_calls, "changes": changes, "rule": rule, "reasons": reasons, **keywords}
        return explain_many(self, frame, plan, progress=progress, errors=errors, id=id, **work)

    def asking_through(self, wrap: Callable[[Callable[[Any], Any]], Callable[[Any], Any]]) -> "Explainer":
        """Return the explainer that asks ``wrap(ask)`` what this one asks ``ask``; it may join calls."""
        target, answers = self.target, self._answers
        if target.asks_predict and answers is not None and answers.rule is not None:  # the scores decide
            target = replace(target, ask=scores_only(target.ask), rule=None)
        return self._with(_target=replace(target, ask=wrap(target.ask)))

    def explaining(self, column: int) -> "Explainer":
        """Return the explainer of another class, by the number of its score; it shares answers about the table."""
        return self._with(_target=replace(self.target, column=column, name=None), _tables={})

    def without_trees(self) -> "Explainer":
        """Return the explainer that draws neighbors even if it could read trees, as for a mere function."""
        return self._with(_shows_trees=False)

    def over(self, space: Space) -> "Explainer":
        """Return the explainer of the same model in another space, such as one with another reference."""
        return self._with(_space=space, _found=None)

    def check(self) -> tuple[Finding, ...]:
        """Return what makes explanations of this model on this table misleading; see docs/tables.md.

        The model is asked about at most 10,000 rows of the table, once. The first explanation warns about this.

        Examples
        --------
        >>> import numpy as np
        >>> from anchorline.spaces.table import Table
        >>> table = Table(np.sin(np.arange(200.0)).reshape(100, 2))
        >>> [finding.code for finding in Explainer(lambda rows: 0.0 * rows[:, 0], table).check()]
        ['constant']
        """
        self.table_answers()
        return self.findings

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is known about the setup, with the answers about the table if they were asked for."""
        if self._found is None:
            found = check_setup(self.model, self.columns, classes_of(self.model), self.space)
            of_answers = (
                ()
                if self._answers is None
                else check_answers(self.model, self._answers, are_numbers=self.target.task == "number")
            )
            self._found = (*found, *of_answers)
        return self._found

    def warn(self, stacklevel: int = 3) -> None:
        """Warn once about every finding so far that is not mere advice."""
        new: Iterable[Finding] = {*self.findings} - self._warned
        for finding in sorted(new, key=self.findings.index):
            self._warned.add(finding)
            if finding.code not in ADVICE:
                warnings.warn(SetupWarning(finding.text, finding.code, finding.columns), stacklevel=stacklevel)


def check_use(model: Any, space: Any, attribute: str, *, queries: int = 1_000_000, **keywords: Any) -> Use:
    """Return whether any value of an attribute changes any decision in a table, and how many decisions.

    Every row of the table (at most 10,000) is asked about with every value of the attribute in the table. Of
    trees that can be read, one value per set of values that pass the same tests is enough. If that takes more
    than ``queries``, fewer values are tried, and the answer is not exact. ``attribute`` is a column or a group,
    fixed or not; the other keywords are those of `Explainer`. The decision is that of the threshold, or the
    class; of numbers, every difference counts.

    Examples
    --------
    >>> import numpy as np
    >>> from anchorline.spaces.table import Table
    >>> rows = np.array([[income, sex] for income in range(10) for sex in (0, 1)])
    >>> table = Table(rows, names=["income", "sex"])
    >>> print(check_use(lambda rows: rows[:, 0] - 0.1 * rows[:, 1], table, "sex", threshold=5))
    sex changes 2 of 20 decisions in the table (exact: each row was asked with all 2 values; 60 queries).
    """
    if isinstance(model, Explainer):
        raise ParameterError(
            f"The model is an Explainer, which has its own. Type explainer.check_use({attribute!r})."
        )
    return Explainer(model, space, **keywords).check_use(attribute, queries=queries)
