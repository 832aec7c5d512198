"""Explainer and explain: what people type."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, Unpack

import numpy as np

from anchorline._links import call
from anchorline.model.predictor import Predictor
from anchorline.model.target import Target
from anchorline.result.assemble import assemble, assemble_frontier
from anchorline.result.changes import Changes
from anchorline.result.explanation import Explanation
from anchorline.result.explanations import Explanations
from anchorline.result.frontier import Frontier
from anchorline.result.neighbors import NeighborSample
from anchorline.search.assess import Assessment, assess_sum
from anchorline.search.case import Case, open_case
from anchorline.search.cost import Cost, estimate_cost
from anchorline.search.investigate import investigate
from anchorline.search.leaves.investigating import investigate_by_leaves
from anchorline.search.leaves.tracing import trace_sums
from anchorline.search.neighbors import look
from anchorline.search.ranges import mean_on_examples, ranges_on_examples, refuse_to_learn
from anchorline.search.ready import ModelOnSpace
from anchorline.search.trace import checked_ks
from anchorline.settings import Keywords, Settings, show_keywords
from anchorline.spaces.base import Finding
from anchorline.spaces.hypercube import Hypercube

_R = TypeVar("_R")
Recorded = Mapping[str, Any] | None  # parameters of an earlier explanation


class Explainer(ModelOnSpace):
    """A model and the space its instances live in.

    Parameters
    ----------
    model
        A fitted estimator, or a callable on model inputs of n rows that returns n numbers, n labels, or (n, c)
        scores of c classes. The constructor does not query it.
    space
        The kind of instance: `anchorline.Table`, `Text`, `Image`, `Signal`, `Hypercube`, or your own (see
        `anchorline.spaces`). A bare training frame is taken as ``Table(frame)``.
    output
        The label of the class to explain; by default the class that the model predicts. If the model's answers
        are not classes, the name of the output. A pair of labels stands for the difference of their scores.
    column
        The class to explain, by its column in the answers.
    task
        "label" explains why the predicted label is what it is; "number" declares that integers are numbers.
    classes
        Labels of the columns of a callable's answers; an estimator provides its own.
    output_range
        Lowest and highest output; outputs beyond are clipped and counted. By default 0 and 1 for probabilities, -1
        and 1 on the hypercube, otherwise those of at most 10,000 training rows, which are queried once.
    threshold
        The decision is "output >= threshold"; by default, for classes, the class that `predict` names.
    same_within
        A number stays the same if it changes by at most this much; by default a tenth of the range of the middle
        90% of predictions on the training table, or of ``output_range`` if given.
    input
        "array" passes 2-D arrays, "frame" the training table's own type, "auto" what the model was fitted on.
    cache
        A file, or an `AnswerCache`, in which answers are kept, so that nothing is asked twice.
    output_scale
        "margin" explains a classifier's margins, such as log-odds, in their own units instead of probabilities.

    Examples
    --------
    >>> rate = lambda z: 0.3 * z[:, 0] - 0.2 * z[:, 1] * z[:, 2]
    >>> explainer = Explainer(rate, Hypercube(["income", "debt", "owner", "citizen"]), output="rate")
    >>> print(str(explainer.explain([1, -1, 1, 1], k=3)).splitlines()[0])
    0.306 [income = +1] + 0.097 [debt = -1] + 0.097 [owner = +1] -> rate = 0.500
    """

    @property
    def target(self) -> Target:
        """Which of the model's numbers is explained; some models are queried about one row for their labels."""
        if self._target is None:
            inputs, cache = self.space.at(0).original, self.cache
            labels = self.model.classes_for(inputs) if cache is None else cache.classes_of(self.model, inputs)
            self._target = self.resolved(classes=labels)
        return self._target

    @target.setter
    def target(self, target: Target) -> None:
        """Explain another number of the same model, or query the model in another way."""
        self._target = target

    def explain(self, instance: Any, **keywords: Unpack[Keywords]) -> Explanation:
        """Explain one prediction; see `anchorline.explain` for the keywords."""
        settings = Settings.from_keywords(**keywords)
        return self._warned(self.explain_with(instance, settings), settings)

    def _warned(self, result: _R, settings: Settings) -> _R:
        if not self._is_checked:
            self.setup.report(self.check(query=settings.max_queries is None), stacklevel=3)
        return result

    def cost(self, instance: Any, **keywords: Unpack[Keywords]) -> Cost:
        """Return how many queries `explain` takes at most, and about how long; asks one query to find out."""
        space, settings = self.space, Settings.from_keywords(**keywords)
        return estimate_cost(Case(space.at(instance), Predictor(self.target), settings, space.fingerprint))

    def explain_with(self, instance: Any, settings: Settings, recorded: Recorded = None) -> Explanation:
        """Explain one prediction with given settings; ``recorded`` are parameters of an explanation to repeat."""
        case = self.prepare(instance, settings, recorded)
        return assemble(case, investigate(case) if case.leaves is None else investigate_by_leaves(case))

    def prepare(self, instance: Any, settings: Settings, recorded: Recorded = None) -> Case:
        """Return the instance's case, opened, with the warnings about the setup, which are found once."""
        case = self.open(instance, settings, recorded)
        findings = self._found(query=settings.max_queries is None)
        return replace(case, warnings=tuple(finding.text for finding in findings)) if findings else case

    def open(self, instance: Any, settings: Settings, recorded: Recorded = None) -> Case:
        """Return the instance's case, opened, which takes one query."""
        predictor = self.predictor(self.target, settings, recorded)
        return open_case(self.space, instance, predictor, settings, recorded, self.setup.trees)

    def predictor(self, target: Target, settings: Settings, recorded: Recorded = None) -> Predictor:
        """Return the model as it will be seen from an instance; nothing is queried."""
        learn = self.learn if settings.max_queries is None or self.learned_ranges else refuse_to_learn
        return Predictor(
            target,
            output_range=self.output_range,
            threshold=self.threshold,
            same_within=self.same_within,
            max_queries=settings.max_queries,
            learn=learn if hasattr(self.space, "examples") else None,
            compare=recorded is None or "same_within" in recorded,
        )

    def check(self, *, query: bool = True) -> tuple[Finding, ...]:
        """Return what makes explanations of this model on this table misleading; see docs/tables.md.

        With ``query``, the model is queried about at most 512 training rows, once. The first explanation calls it
        and warns about the findings, without queries if ``max_queries`` is set.

        Examples
        --------
        >>> import anchorline as al
        >>> table = al.Table(np.sin(np.arange(200.0)).reshape(100, 2))
        >>> [finding.code for finding in Explainer(lambda rows: 0 * rows[:, 0], table).check()]
        ['constant']
        """
        self._is_checked = self._is_checked or query
        return self._found(query)

    def _found(self, query: bool) -> tuple[Finding, ...]:
        is_learned = query and self.learned_ranges is not None and self.output_range is None
        if (query, is_learned) not in self._findings:
            learned = self.learn_range(self.target.column) if is_learned else None
            answers = self.setup.of_answers(self.target, self.output_range, learned) if query else []
            self._findings[query, is_learned] = (*self.setup.of_table, *answers)
        return self._findings[query, is_learned]

    def learn_range(self, column: int | None = None) -> tuple[float, float]:
        """Return lowest and highest prediction on at most 10,000 training rows, which are queried once."""
        return self.learn(column)[:2]

    def learn(self, column: int | None = None) -> tuple[float, float, float]:
        """Return the range of predictions as `learn_range` does, and the spread of the middle 90% of them."""
        if self.learned_ranges is None:
            self.learned_ranges = ranges_on_examples(self.space, self.target)
        low, high, spread = (ends[column or 0] for ends in self.learned_ranges)
        return low, high, spread

    def training_mean(self, explanation: Explanation) -> float:
        """Return the mean of the explained output over at most 10,000 training rows, which are queried for it."""
        return mean_on_examples(self.space, self.target, explanation.parameters, explanation.label)

    def frontier(self, instance: Any, ks: Sequence[int] = range(1, 9), **keywords: Unpack[Keywords]) -> Frontier:
        """Return the best sum for every k in ``ks``, found on one search sample and certified on one fresh sample.

        Examples
        --------
        >>> explainer = Explainer(lambda z: 0.5 * z[:, 0] + 0.2 * z[:, 1], Hypercube())
        >>> print(explainer.frontier([1, 1, 1], ks=[1, 2]))
          k  fidelity error            relevance error           terms
          1  0.0157                    0.0108                    x0 = +1
          2  0.0000                    0.0000                    x0 = +1, x1 = +1
        """
        ks, settings = checked_ks(ks), Settings.from_keywords(**keywords)
        case = self.prepare(instance, settings)
        return self._warned(assemble_frontier(case, trace_sums(case, ks)), settings)

    def shortest(self, instance: Any, max_relevance_error: float, **keywords: Unpack[Keywords]) -> Explanation:
        """Return the fewest facts that hold the output to a relevance error of at most ``max_relevance_error``.

        Up to k - 1 facts are tried (k is 11 by default). Status OPTIMAL means that no rule of fewer facts reaches
        the error on this sample. Raises `InfeasibleError` if no rule is found.

        Examples
        --------
        >>> vote = lambda z: (z[:, :3].sum(axis=1) > 0) * 2 - 1
        >>> explainer = Explainer(vote, Hypercube(["a", "b", "c", "d"]), output="vote")
        >>> print(explainer.shortest([1, 1, 1, 1], max_relevance_error=0.05).as_rule())
        If a = +1 and b = +1, then the predicted vote stays 1 in all 3 possible neighbors.
        """
        chosen: dict[str, Any] = {"k": 11, **keywords, "objective": "shortest"}
        settings = Settings.from_keywords(max_relevance_error=max_relevance_error, **chosen)
        return self._warned(self.explain_with(instance, settings), settings)

    def changes(self, instance: Any, target: Any = None, n: int = 3, **keywords: Any) -> Changes:
        """Return up to ``n`` sets of few facts whose change turns the decision; see docs/changes.md.

        Examples
        --------
        >>> vote = lambda z: (z[:, :3].sum(axis=1) > 0) * 2 - 1
        >>> found = Explainer(vote, Hypercube(["a", "b", "c", "d"])).changes([1, 1, -1, 1])
        >>> [option.facts for option in found]
        [('a = -1',), ('b = -1',)]
        """
        found: Changes = call("changes.find", self, instance, target=target, n=n, **keywords)
        return self._warned(found, Settings(max_queries=1))

    def repeat(self, instance: Any, n_seeds: int = 10, **keywords: Unpack[Keywords]) -> dict[str, float]:
        """Explain with ``n_seeds`` seeds and return the share of the answers in which each literal appears.

        Examples
        --------
        >>> explainer = Explainer(lambda z: 0.5 * z[:, 0] + 0.2 * z[:, 1], Hypercube())
        >>> explainer.repeat([1, 1, 1], n_seeds=3, k=3, n_certify=0)
        {'x0 = +1': 1.0, 'x1 = +1': 1.0}
        """
        settings, counts = Settings.from_keywords(**keywords), Counter[str]()
        for seed in range(settings.seed, settings.seed + n_seeds):
            terms = self.explain_with(instance, replace(settings, seed=seed)).terms
            counts.update(dict.fromkeys((term.literal.text for term in terms), 1))  # each once
        return {text: count / n_seeds for text, count in counts.most_common()}

    def explain_many(
        self,
        frame: Any,
        *,
        n_jobs: int = 1,
        progress: Callable[[Any], None] | bool | None = None,
        errors: str = "raise",
        row_timeout: float | None = None,
        share_calls: bool = False,
        id: str | None = None,
        **keywords: Unpack[Keywords],
    ) -> Explanations:
        """Explain every row of a frame, array or list in ``n_jobs`` processes (-1: all cores); see docs/batch.md.

        With ``errors="keep"``, a row that fails, or takes more than ``row_timeout`` seconds, becomes a `Failure`.
        ``progress`` is True or a function of `Progress`. ``share_calls`` allows rows to be mixed in one call of
        the model. ``id`` names a column that identifies the rows.
        """
        _ = self.target  # a wrong output raises here, not once per row
        plan = call("batch.plan", n_jobs=n_jobs, row_timeout=row_timeout)
        choices = {"errors": errors, "share_calls": share_calls, "id": id, **keywords}
        return call("batch.explain_many", self, frame, plan, progress, **choices)  # type: ignore[no-any-return]

    __call__ = explain_many

    def neighbors(self, explanation: Explanation, n_neighbors: int = 1000) -> NeighborSample:
        """Return fresh neighbors of an explained instance, for `anchorline.render.plot.neighborhood`."""
        settings = replace(Settings.from_dict(explanation.parameters), max_queries=None)
        case = self.prepare(list(explanation.instance), settings)
        n_flips, outputs, sums = look(case.stating(explanation.pairs), n_neighbors, explanation.contributions)
        prediction, output = case.predictor.prediction, explanation.output
        return NeighborSample(n_flips=n_flips, outputs=outputs, sums=sums, prediction=prediction, output=output)

    def assess(
        self,
        instance: Any,
        contributions: Any,
        intercept: float | None = None,
        *,
        n_fresh: int = 10_000,
        **keywords: Unpack[Keywords],
    ) -> Assessment:
        """Measure anyone's contributions (d,), in the output's own units; without intercept the sum is anchored.

        Examples
        --------
        >>> explainer = Explainer(lambda z: 0.5 * z[:, 0], Hypercube())
        >>> explainer.assess([1, 1], [0.4, 0.0], intercept=0.0).fidelity_error.value.__round__(6)
        0.0025
        """
        case = self.prepare(instance, Settings.from_keywords(**keywords))
        return assess_sum(case, contributions, intercept, n_fresh)


def explain(
    predict: Callable[[np.ndarray], Any],
    x: Any,
    *,
    names: Sequence[str | tuple[str, str]] | None = None,
    output: Any = None,
    task: str | None = None,
    output_range: tuple[float, float] | None = None,
    threshold: float | None = None,
    cache: Any = None,
    **keywords: Unpack[Keywords],
) -> Explanation:
    r"""Explain ``predict`` at ``x`` in {-1, +1}^d by the best anchored sum of at most ``k`` terms.

    .. math:: \min_u\ \tfrac1n\sum_i (t_i - F_i u)^2 \quad\text{s.t.}\quad
              u_0 + \textstyle\sum_j u_j = f(x),\ \text{at most } k \text{ terms}

    Parameters
    ----------
    predict, x
        A function of an (n, d) array of -1 and +1 that returns n numbers or n labels; the instance, (d,).
    names, output
        One name per coordinate, or a pair of texts for +1 and for -1; and the name of the output.
    task
        ``"label"`` explains why the label is what it is: +1 where it stays, -1 where it changes.
    output_range
        Lowest and highest output (-1 and 1; 0 and 1 for probabilities); outputs beyond are clipped and counted.
    threshold
        The decision is "output >= threshold"; its stability is then measured too.
    cache
        A file, or an `AnswerCache`, in which answers are kept, so that nothing is asked twice.
    k
        Largest number of terms, the intercept included (5).
    sigma, flip_probability
        How local the neighborhood is: the probability of a flip is 1 / (1 + e^sigma), with sigma = 1, or as given.
    n_samples
        Number of neighbors to search with (5000). "auto" samples until the relevance interval is narrower than
        ``tolerance`` (0.02) and the best support is separated from the runner-up, at most max_queries (200,000).
        With ``sampling="auto"``, all 2^d neighbors are used if they are no more than the samples.
    n_certify
        Number of fresh neighbors to measure with (as many as searched, at most 10,000); 0 measures nothing.
    confidence
        Probability that all limits of the certificate hold together (0.95).
    budget
        Number of queries in all, 32 or more, split between search and certificate and never exceeded, for models
        that are slow to ask; see docs/slow-models.md. It replaces n_samples, n_certify and max_queries.
    max_queries
        Hard limit of rows shown to the model; a `BudgetError` is raised before it would be exceeded.
    moments
        "known" estimates effects for all facts together, and only them ("sample"; with a budget: "known").
    solver
        "exact" (proves the optimum), "iht", "scip", "gurobi", or "relaxation" (a bound, not sparse).
    time_limit, node_limit, box
        Stop the search early, with a gap; the largest size of a term, in half output ranges (1, or None).
    objective
        "fidelity" (the sum that fits best), or "relevance" (the facts that hold the output best, by 20,000 samples
        and half as many to choose; see docs/relevance.md).
    alternatives
        List up to this number of other sums that the evidence cannot distinguish from the best (0).
    keep_noise
        Keep facts whose effect on the output cannot be distinguished from zero (False); see docs/guarantees.md.
    pairs
        "and" also offers conjunctions of two facts, [a and b]; "parity" offers products of two coordinates, [a and
        b, or neither]. A pair counts as two terms (None); see docs/tables.md.
    seed
        The same seed and the same x give the same bytes (0).

    Examples
    --------
    >>> import anchorline as al
    >>> e = al.explain(lambda z: 0.5 * z[:, 0] + 0.1, [1] * 12, k=2, threshold=0)
    >>> print(e)  # doctest: +ELLIPSIS
    0.5 [x0 = +1] + 0.1 -> f(x) = 0.6
    Proven best 2-term explanation (1 fact and the starting level) on the case and all 4,095 possible neighbors.
    While this fact holds, the output stays at or above 0 in all 2,047 possible neighbors; over all 4,095 ...
    Verdict: trustworthy explanation. As tested, this fact explains the decision.
    """
    Settings.check_names(keywords, also=("names", "output", "task", "output_range", "threshold", "cache"))
    choices = {
        "output": output,
        "task": task,
        "output_range": output_range,
        "threshold": threshold,
        "cache": cache,
    }
    explainer = Explainer(predict, Hypercube(names), **choices)
    return explainer.explain(x, **keywords)


for _name in ("explain", "explain_many", "frontier", "shortest", "repeat", "cost"):
    show_keywords(getattr(Explainer, _name))
show_keywords(explain)
