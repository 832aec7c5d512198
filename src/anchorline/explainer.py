"""Explainer and explain: what people type."""

import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Unpack

import numpy as np

from anchorline._version import __version__
from anchorline.assessment import Assessment, assess
from anchorline.choice import Rival
from anchorline.errors import ParameterError
from anchorline.explanation import Alternative, Certificate, Explanation, plain_label, texts_digest
from anchorline.frontier import Frontier, trace_frontier
from anchorline.guarantees import achievable_epsilon
from anchorline.investigation import Findings, investigate
from anchorline.jsonform import canonical_json
from anchorline.optimize.solution import Status
from anchorline.predictor import Predictor, checked_range, checked_threshold
from anchorline.sampling import stream_key
from anchorline.settings import Keywords, Settings
from anchorline.spaces.base import Neighborhood, Space
from anchorline.spaces.hypercube import Hypercube


class Explainer:
    """A model and the space its instances live in.

    Parameters
    ----------
    model
        Callable on model inputs of n rows, returning n numbers (or labels, with ``task="label"``).
    space
        What an instance can be; see `anchorline.spaces`.
    output
        What the output is called in rules and reports.
    task, output_range, threshold
        See `anchorline.predictor.Predictor`.

    Examples
    --------
    >>> rate = lambda z: 0.3 * z[:, 0] - 0.2 * z[:, 1] * z[:, 2]
    >>> explainer = Explainer(rate, Hypercube(["income", "debt", "owner", "citizen"]), output="rate")
    >>> from anchorline.render.text import rule
    >>> print(rule(explainer.explain([1, -1, 1, 1], k=3)))
    0.305 [income = +1] + 0.098 [owner = +1] + 0.097 [debt = -1] -> rate = 0.500
    """

    def __init__(
        self,
        model: Callable[[Any], Any],
        space: Space,
        *,
        output: str = "f(x)",
        task: str | None = None,
        output_range: tuple[float, float] = (-1.0, 1.0),
        threshold: float | None = None,
    ) -> None:
        self.model, self.space, self.output, self.task = model, space, output, task
        self.output_range, self.threshold = checked_range(output_range), checked_threshold(threshold)
        low, high = self.output_range
        if self.threshold is not None and not low <= self.threshold <= high:
            raise ParameterError(
                f"threshold is {self.threshold:g}, outside output_range ({low:g}, {high:g}): no decision ever "
                "changes. Type output_range=(lowest, highest) of the model's outputs."
            )

    def explain(self, instance: Any, **keywords: Unpack[Keywords]) -> Explanation:
        """Explain one prediction; see `anchorline.explain` for the keywords."""
        return self.explain_with(instance, Settings.of(**keywords))

    def explain_with(
        self, instance: Any, settings: Settings, parameters: Mapping[str, Any] | None = None
    ) -> Explanation:
        """Explain one prediction with settings made before; ``parameters`` recorded then, to repeat it now."""
        neighborhood = self.space.at(instance)
        if parameters is None:
            parameters = self.parameters(settings) | {"texts": texts_digest(neighborhood.literals)}
        predictor = self._predictor_at(neighborhood, settings, parameters)
        findings = investigate(neighborhood, predictor, settings)
        return _assemble(self.output, neighborhood, predictor, settings, findings, parameters)

    def prepare(self, instance: Any, settings: Settings) -> tuple[Neighborhood, Predictor]:
        """The instance's neighborhood, and the model as seen from there; asks one query."""
        neighborhood = self.space.at(instance)
        return neighborhood, self._predictor_at(neighborhood, settings, self.parameters(settings))

    def _predictor_at(
        self, neighborhood: Neighborhood, settings: Settings, parameters: Mapping[str, Any]
    ) -> Predictor:
        return Predictor(
            self.model,
            neighborhood.original,
            output_range=self.output_range,
            task=self.task,
            threshold=self.threshold,
            max_queries=settings.max_queries,
            checksum_key=stream_key(settings.seed, neighborhood.key, "checksum:" + canonical_json(parameters)),
        )

    def frontier(self, instance: Any, ks: Sequence[int] = range(1, 9), **keywords: Unpack[Keywords]) -> Frontier:
        """The best sum for every k in ``ks``, on one search sample, certified by one fresh sample.

        Examples
        --------
        >>> explainer = Explainer(lambda z: 0.5 * z[:, 0] + 0.2 * z[:, 1], Hypercube())
        >>> print(explainer.frontier([1, 1, 1], ks=[1, 2]))
          k  fidelity error            relevance error           terms
          1  0.0157                    0.0108                    x0 = +1
          2  0.0000                    0.0000                    x0 = +1, x1 = +1
        """
        if not isinstance(ks, Iterable):
            raise ParameterError(f"ks is {ks!r}; needed several numbers of terms. Type ks=range(1, 9).")
        settings = Settings.of(**keywords)
        neighborhood, predictor = self.prepare(instance, settings)
        return trace_frontier(neighborhood, predictor, settings, list(ks))

    def shortest(self, instance: Any, max_relevance_error: float, **keywords: Unpack[Keywords]) -> Explanation:
        """The fewest facts that hold the output to a relevance error of at most ``max_relevance_error``.

        Tried on the search sample from no fact upward, up to k - 1 (k: 11 unless given); then certified like
        any explanation. Status OPTIMAL: no rule of fewer facts does, on this sample. `InfeasibleError` where
        none is found.

        Examples
        --------
        >>> vote = lambda z: (z[:, :3].sum(axis=1) > 0) * 2 - 1
        >>> explainer = Explainer(vote, Hypercube(["a", "b", "c", "d"]), output="vote")
        >>> print(explainer.shortest([1, 1, 1, 1], max_relevance_error=0.05).as_rule())
        If a = +1 and b = +1 then vote stays 1.
        """
        chosen: dict[str, Any] = {"k": 11, **keywords, "objective": "shortest"}
        return self.explain_with(instance, Settings.of(max_relevance_error=max_relevance_error, **chosen))

    def repeat(self, instance: Any, n_seeds: int = 10, **keywords: Unpack[Keywords]) -> dict[str, float]:
        """Explain with so many different seeds; in which share of the answers each literal appears.

        Examples
        --------
        >>> explainer = Explainer(lambda z: 0.5 * z[:, 0] + 0.2 * z[:, 1], Hypercube())
        >>> explainer.repeat([1, 1, 1], n_seeds=3, k=3, n_certify=0)
        {'x0 = +1': 1.0, 'x1 = +1': 1.0}
        """
        settings = Settings.of(**keywords)
        counts: Counter[str] = Counter()
        for i in range(n_seeds):
            explanation = self.explain_with(instance, replace(settings, seed=settings.seed + i))
            counts.update(term.literal.text for term in explanation.terms)
        return {text: count / n_seeds for text, count in counts.most_common()}

    def assess(
        self,
        instance: Any,
        contributions: Any,
        intercept: float | None = None,
        *,
        n_fresh: int = 10_000,
        **keywords: Unpack[Keywords],
    ) -> Assessment:
        """Measure anyone's contributions (d,) in the output's own units; intercept None: anchored.

        Examples
        --------
        >>> explainer = Explainer(lambda z: 0.5 * z[:, 0], Hypercube())
        >>> explainer.assess([1, 1], [0.4, 0.0], intercept=0.0).fidelity_error.value.__round__(6)
        0.0025
        """
        settings = Settings.of(**keywords)
        neighborhood, predictor = self.prepare(instance, settings)
        if n_fresh < 2:
            raise ParameterError(f"n_fresh is {n_fresh!r}; needed at least 2. Type n_fresh=10_000.")
        try:
            scaled = np.asarray(contributions, dtype=np.float64) / predictor.half_range
        except (TypeError, ValueError):
            scaled = np.zeros(0)
        if scaled.shape != (len(neighborhood.literals),) or not np.isfinite(scaled).all():
            raise ParameterError(
                f"contributions have shape {scaled.shape}; needed one finite number a literal, "
                f"({len(neighborhood.literals)},)."
            )
        gap = 0.0
        if intercept is not None:
            total = float(intercept) / predictor.half_range + float(scaled.sum())
            gap = total + predictor.origin - predictor.scaled_prediction
        return assess(
            neighborhood,
            predictor,
            scaled,
            anchoring_gap=gap,
            flip_probability=settings.flip_probability,
            n_samples=n_fresh,
            seed=settings.seed,
            stream="assess",
            most_enumerated=0 if settings.sampling == "draw" else n_fresh // 2,
            confidence=settings.confidence,
        )

    def parameters(self, settings: Settings) -> dict[str, Any]:
        """All that is needed to repeat the explanation, in plain values."""
        return settings.to_dict() | {
            "output": self.output,
            "task": self.task,
            "output_range": list(self.output_range),
            "threshold": self.threshold,
            "space": self.space.fingerprint,
            "versions": {"anchorline": __version__, "numpy": np.__version__},
        }


def explain(
    predict: Callable[[np.ndarray], Any],
    x: Any,
    *,
    names: Sequence[str | tuple[str, str]] | None = None,
    output: str = "f(x)",
    task: str | None = None,
    output_range: tuple[float, float] = (-1.0, 1.0),
    threshold: float | None = None,
    **keywords: Unpack[Keywords],
) -> Explanation:
    r"""Explain ``predict`` at ``x`` in {-1, +1}^d by the best anchored sum of at most ``k`` terms.

    .. math:: \min_u\ \tfrac1n\sum_i (t_i - F_i u)^2 \quad\text{s.t.}\quad
              u_0 + \textstyle\sum_j u_j = f(x),\ \text{at most } k \text{ terms}

    Parameters
    ----------
    predict
        From an (n, d) array of -1 and +1 to n numbers in ``output_range``, or labels.
    x
        The instance: d numbers, -1 or +1.
    names
        A name a coordinate, or what +1 says and what -1 says.
    output
        What the output is called.
    task
        ``"label"`` explains why the label is what it is: +1 where it stays, -1 where it changes.
    output_range
        Lowest and highest output; beyond is clipped and counted.
    threshold
        The decision is "output >= threshold"; its stability is then measured too.
    k
        Most terms, the intercept included (5).
    sigma, flip_probability
        How local: each literal is flipped with probability 1 / (1 + e^sigma) (sigma 1), or as given.
    n_samples
        Neighbors to search with (5000), or "auto": until the relevance interval is narrower than
        ``tolerance`` (0.02) and the best support is separated from the runner-up, or max_queries is met
        (200,000 if not given). With ``sampling="auto"`` all 2^d are taken where that is not more.
    n_certify
        Fresh neighbors to measure with: as many as searched, at most 10,000; 0 for no measurement.
    confidence
        With which all limits of the certificate hold together (0.95).
    max_queries
        Hard limit of rows shown to the model; `BudgetError` before it is passed.
    solver
        "exact" (proves the optimum), "iht", "scip", "gurobi", or "relaxation" (a bound, not sparse).
    time_limit, node_limit
        Stop the search early; the best answer so far comes back with its gap.
    box
        Largest size of a term, in half output ranges (1); None lifts it.
    objective
        "fidelity" (the sum that fits best), or "relevance" (the facts that hold the output best; see
        `anchorline.optimize.relevance`; 20,000 samples unless given, and half as many to choose).
    alternatives
        List up to so many other sums that this much evidence cannot tell from the best (0).
    seed
        The same seed and the same x give the same bytes (0).

    Examples
    --------
    >>> import anchorline as al
    >>> e = al.explain(lambda z: 0.5 * z[:, 0] + 0.25 * z[:, 2], [1, -1, -1], k=2)
    >>> print(e)
    0.50 [x0 = +1] - 0.25 [x2 = -1] -> f(x) = 0.25
    Proven best 2-term explanation on all 8 neighbors.
    While these 2 facts hold, the output stays; without them it moves by 0.514.
    Verdict: trustworthy.
    """
    explainer = Explainer(
        predict, Hypercube(names), output=output, task=task, output_range=output_range, threshold=threshold
    )
    return explainer.explain(x, **keywords)


def _assemble(
    output: str,
    neighborhood: Neighborhood,
    predictor: Predictor,
    settings: Settings,
    findings: Findings,
    parameters: Mapping[str, Any],
) -> Explanation:
    """Turn findings on the scale [-1, +1] into an explanation in the output's own units."""
    solution, problem = findings.solution, findings.problem
    contributions, intercept = predictor.in_own_units(solution.contributions, solution.intercept)
    n, d = problem.evidence.n_rows, problem.n_literals
    epsilon = None  # the theorem needs the box, and k terms
    if findings.exhaustive:
        epsilon = 0.0
    elif settings.box is not None and solution.status not in (Status.RELAXED, Status.HEURISTIC):
        radius = max(1.0, settings.k * settings.box)
        epsilon = achievable_epsilon(n, settings.k, d, 1 - settings.confidence, radius)
    certificate = Certificate(
        status=solution.status,
        goal=settings.objective,
        objective=solution.objective,
        lower_bound=solution.lower_bound,
        anchoring_residual=abs(float(intercept + contributions.sum() - predictor.prediction)),
        n_terms=int(np.count_nonzero(contributions)) + int(intercept != 0),
        n_facts=int(np.count_nonzero(contributions)),
        n_samples=n,
        n_queries=predictor.n_queries,
        n_clipped=predictor.n_clipped,
        exhaustive=findings.exhaustive,
        confidence=settings.confidence,
        theorem_epsilon=epsilon,
        answers_checksum=predictor.checksum,
        stopped_because=findings.stopped_because,
        **_measurements(findings.assessment, predictor),
    )
    return Explanation(
        prediction=predictor.prediction,
        intercept=intercept,
        contributions=contributions,
        literals=neighborhood.literals,
        output=output,
        label=plain_label(predictor.label),
        half_range=predictor.half_range,
        instance=tuple(neighborhood.instance),
        parameters=parameters,
        certificate=certificate,
        alternatives=tuple(_alternative(rival, predictor) for rival in findings.rivals),
    )


def _alternative(rival: Rival, predictor: Predictor) -> Alternative:
    contributions, intercept = predictor.in_own_units(rival.contributions, rival.intercept)
    support = np.flatnonzero(contributions)
    return Alternative(
        support=tuple(support.tolist()),
        values=tuple(contributions[support].tolist()),
        intercept=intercept,
        objective=rival.objective,
        excess=rival.excess,
    )


def _measurements(assessment: Assessment | None, predictor: Predictor) -> dict[str, Any]:
    """The certificate's estimates; the typical (RMS) change is told in the output's own units."""
    if assessment is None:
        return {}

    def change(error: float) -> float:
        return 2 * predictor.half_range * math.sqrt(error)

    measured = {field.name: getattr(assessment, field.name) for field in fields(assessment)}
    return measured | {
        "typical_change": assessment.relevance_error.map(change),
        "baseline_change": assessment.baseline_error.map(change),
    }


def _show_keywords(function: Callable[..., Any]) -> None:
    """Put every keyword of `Settings`, with its default, into the signature that help() and editors show."""
    signature = inspect.signature(function)
    shown = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    defaults = {"sigma": 1.0} | {field.name: field.default for field in fields(Settings)}
    defaults |= {"flip_probability": None, "n_samples": None}
    named = {p.name for p in shown} | {"max_relevance_error"}
    shown += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in defaults.items()
        if name not in named
    ]
    function.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]


for _function in (explain, Explainer.explain, Explainer.frontier, Explainer.shortest, Explainer.repeat):
    _show_keywords(_function)
